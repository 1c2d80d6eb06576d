package pixel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// animated returns a GIF of 8 x 6 pixels with four frames: a whole one; a part that is removed after it was shown; a
// part whose area is cleared afterwards; one with transparent pixels.
func animated(t testing.TB) []byte {
	t.Helper()
	p := color.Palette{color.NRGBA{}, color.NRGBA{200, 0, 0, 255}, color.NRGBA{0, 200, 0, 255}, color.NRGBA{0, 0, 200, 255}}
	frame := func(at image.Rectangle, index byte) *image.Paletted {
		m := image.NewPaletted(at, p)
		for i := range m.Pix {
			m.Pix[i] = index
		}
		return m
	}
	hole := frame(image.Rect(1, 1, 4, 4), 2)
	hole.SetColorIndex(2, 2, 0)
	g := gif.GIF{
		Image:    []*image.Paletted{frame(image.Rect(0, 0, 8, 6), 1), frame(image.Rect(2, 2, 6, 5), 2), frame(image.Rect(0, 0, 3, 3), 3), hole},
		Delay:    []int{10, 20, 30, 4},
		Disposal: []byte{gif.DisposalNone, gif.DisposalPrevious, gif.DisposalBackground, gif.DisposalNone},
		Config:   image.Config{Width: 8, Height: 6, ColorModel: p}, LoopCount: 2,
	}
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, &g); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func at(m *Image, x, y int) [4]byte { return [4]byte(m.Pix[4*(y*m.Width+x):]) }

func TestGIFFrames(t *testing.T) {
	data := animated(t)
	d, err := DecodeDocument("a.gif", data, DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Frames) != 4 || d.Width != 8 || d.Height != 6 || d.Plays != 3 ||
		Frames("a.gif", data) != 4 || d.Frames[1].Duration != 200*time.Millisecond {
		t.Fatalf("%d frames, %d plays, %v", len(d.Frames), d.Plays, d.Frames[1].Duration)
	}
	red, green, blue, none := [4]byte{200, 0, 0, 255}, [4]byte{0, 200, 0, 255}, [4]byte{0, 0, 200, 255}, [4]byte{}
	for _, c := range []struct {
		frame, x, y int
		want        [4]byte
	}{
		{0, 3, 3, red}, {1, 3, 3, green}, {1, 0, 0, red}, {2, 3, 3, red}, {2, 2, 2, blue},
		{3, 0, 0, none}, {3, 2, 2, none}, {3, 1, 1, green}, {3, 3, 3, green}, {3, 5, 5, red},
	} {
		if got := at(d.Frames[c.frame].Picture.Eight, c.x, c.y); got != c.want {
			t.Errorf("frame %d at %d,%d: %v, want %v", c.frame, c.x, c.y, got, c.want)
		}
	}
	first, err := Decode("a.gif", data, DefaultLimits())
	if err != nil || !bytes.Equal(first.Pix, d.Frames[0].Picture.Eight.Pix) {
		t.Errorf("the first frame is another: %v", err)
	}
}

// animatedPNG has four frames of 6 x 4 pixels, like [animated], with half transparent ones.
func animatedPNG(t testing.TB) []byte {
	t.Helper()
	var b []byte
	chunk := func(kind string, body []byte) {
		b = binary.BigEndian.AppendUint32(b, uint32(len(body)))
		from := len(b)
		b = append(append(b, kind...), body...)
		b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[from:]))
	}
	u32 := func(n ...uint32) (out []byte) {
		for _, v := range n {
			out = binary.BigEndian.AppendUint32(out, v)
		}
		return out
	}
	b = append(b, "\x89PNG\r\n\x1a\n"...)
	sequence := uint32(0)
	for i, f := range []struct {
		x, y, w, h     uint32
		c              color.NRGBA
		dispose, blend byte
	}{
		{0, 0, 6, 4, color.NRGBA{200, 0, 0, 254}, 0, 0}, {1, 1, 3, 2, color.NRGBA{0, 200, 0, 128}, 2, 1},
		{0, 0, 2, 2, color.NRGBA{0, 0, 200, 100}, 1, 0}, {1, 0, 4, 3, color.NRGBA{90, 90, 0, 60}, 0, 1},
	} {
		m := image.NewNRGBA(image.Rect(0, 0, int(f.w), int(f.h)))
		for k := range m.Pix {
			m.Pix[k] = [4]byte{f.c.R, f.c.G, f.c.B, f.c.A}[k%4]
		}
		var still bytes.Buffer
		if err := png.Encode(&still, m); err != nil {
			t.Fatal(err)
		}
		var packed []byte
		for rest := still.Bytes()[8:]; len(rest) >= 12; {
			size := binary.BigEndian.Uint32(rest)
			if string(rest[4:8]) == "IDAT" {
				packed = append(packed, rest[8:8+size]...)
			}
			rest = rest[12+size:]
		}
		if i == 0 {
			chunk("IHDR", still.Bytes()[16:29])
			chunk("gAMA", u32(100000))
			chunk("acTL", u32(4, 0))
		}
		chunk("fcTL", append(append(u32(sequence, f.w, f.h, f.x, f.y), 0, 10, 0, 100), f.dispose, f.blend))
		if sequence++; i == 0 {
			chunk("IDAT", packed)
		} else {
			chunk("fdAT", append(u32(sequence), packed...))
			sequence++
		}
	}
	chunk("IEND", nil)
	return b
}

func TestPNGFrames(t *testing.T) {
	data := animatedPNG(t)
	d, err := DecodeDocument("a.png", data, DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Frames) != 4 || d.Plays != 0 || Frames("a.png", data) != 4 ||
		d.Frames[3].Duration != 100*time.Millisecond || d.Frames[3].Picture.Gamma != 1 {
		t.Fatalf("%d frames, %d plays, %+v", len(d.Frames), d.Plays, d.Frames[3].Picture)
	}
	for _, c := range []struct {
		frame, x, y int
		want        [4]byte
	}{
		{0, 2, 2, [4]byte{200, 0, 0, 254}}, {1, 2, 2, [4]byte{99, 100, 0, 254}}, {2, 2, 2, [4]byte{200, 0, 0, 254}},
		{2, 1, 1, [4]byte{0, 0, 200, 100}},
		{3, 0, 0, [4]byte{}}, {3, 1, 1, [4]byte{90, 90, 0, 60}},
	} {
		if got := at(d.Frames[c.frame].Picture.Eight, c.x, c.y); got != c.want {
			t.Errorf("frame %d at %d,%d: %v, want %v", c.frame, c.x, c.y, got, c.want)
		}
	}
}

// TestFramesAsFFmpeg compares all pixels with FFmpeg's decoding of the same files, if FFmpeg is installed.
func TestFramesAsFFmpeg(t *testing.T) {
	ffmpeg, err := exec.LookPath("ffmpeg")
	if err != nil {
		t.Skip("ffmpeg is not installed")
	}
	for name, data := range map[string][]byte{"a.gif": animated(t), "a.apng": animatedPNG(t)} {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, data, 0o666); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		cmd := exec.Command(ffmpeg, "-loglevel", "error", "-ignore_loop", "1", "-i", file,
			"-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "rgba", "-")
		cmd.Stdout = &out
		if name == "a.apng" {
			cmd.Args = append(cmd.Args[:3:3], cmd.Args[5:]...)
		}
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		d, err := DecodeDocument(name, data, DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		size := 4 * d.Width * d.Height
		if out.Len() != size*len(d.Frames) {
			t.Fatalf("%s: %d bytes, of %d frames", name, out.Len(), len(d.Frames))
		}
		for i, f := range d.Frames {
			theirs := out.Bytes()[i*size:][:size]
			for k, v := range f.Picture.Eight.Pix {
				if off := int(v) - int(theirs[k]); (off < -2 || off > 2) && theirs[k|3] != 0 {
					t.Fatalf("%s, frame %d, byte %d: %d, and %d there", name, i, k, v, theirs[k])
				}
			}
		}
	}
}

func TestStillDocument(t *testing.T) {
	for _, name := range []string{"rgba.png", "rgb.jpg"} {
		data := read(t, name)
		d, err := DecodeDocument(name, data, DefaultLimits())
		if err != nil || len(d.Frames) != 1 || len(d.Layers) != 0 || Frames(name, data) != 1 || LayersIn(name, data) != 0 {
			t.Fatalf("%s: %+v, %v", name, d, err)
		}
		p, err := DecodePicture(name, data, DefaultLimits())
		if err != nil || !bytes.Equal(p.Eight.Pix, d.Frames[0].Picture.Eight.Pix) {
			t.Errorf("%s: other pixels, %v", name, err)
		}
	}
}

// TestPSDLayers reads a document written by ImageMagick.
func TestPSDLayers(t *testing.T) {
	data := read(t, "layers.psd")
	d, err := DecodeDocument("layers.psd", data, DefaultLimits())
	if err != nil || len(d.Frames) != 1 || len(d.Layers) != 2 || LayersIn("layers.psd", data) != 2 {
		t.Fatalf("%+v, %v", d, err)
	}
	glow, cel := d.Layers[1], d.Frames[0].Cels[1]
	if glow.Name != "glow" || glow.Parent != -1 || !glow.Visible || glow.Opacity != 255 || glow.Blend != "normal" {
		t.Errorf("%+v", glow)
	}
	if cel.Layer != 1 || cel.X != 2 || cel.Y != 1 || cel.Image.Width != 3 || at(cel.Image, 2, 1) != [4]byte{1, 2, 250, 255} {
		t.Errorf("%+v %v", cel, cel.Image)
	}
	if got := at(d.Frames[0].Picture.Eight, 0, 0); got != [4]byte{200, 100, 50, 255} {
		t.Errorf("the picture of all is %v", got)
	}
}

// TestFramesBounded checks that the limits apply to all frames together, and that a file with false claims is refused
// before memory is allocated.
func TestFramesBounded(t *testing.T) {
	for name, data := range map[string][]byte{"a.gif": animated(t), "a.png": animatedPNG(t)} {
		var e *Error
		if _, err := DecodeDocument(name, data, Limits{MaxSide: 100, MaxBytes: 300}); !errors.As(err, &e) || e.Fault != TooLarge {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := DecodeDocument(name, data[:len(data)-20], DefaultLimits()); err == nil {
			t.Errorf("%s: read without its end", name)
		}
	}
	lies := animatedPNG(t)
	i := bytes.Index(lies, []byte("acTL"))
	binary.BigEndian.PutUint32(lies[i+4:], 1<<15)
	binary.BigEndian.PutUint32(lies[i+12:], crc32.ChecksumIEEE(lies[i:i+12]))
	var e *Error
	if _, err := DecodeDocument("a.png", lies, DefaultLimits()); !errors.As(err, &e) || e.Fault != Truncated {
		t.Errorf("%v", err)
	}
}

func FuzzDocument(f *testing.F) {
	f.Add("a.gif", animated(f))
	f.Add("a.png", animatedPNG(f))
	f.Add("a.psd", read(f, "layers.psd"))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		Frames(name, data)
		LayersIn(name, data)
		d, err := DecodeDocument(name, data, Limits{MaxSide: 256, MaxBytes: 1 << 20})
		if err != nil {
			var e *Error
			if !errors.As(err, &e) {
				t.Errorf("%T: %v", err, err)
			}
			return
		}
		if len(d.Frames) == 0 {
			t.Error("no frames")
		}
		for _, fr := range d.Frames {
			if w, h := fr.Picture.Size(); w != d.Width || h != d.Height {
				t.Errorf("a frame of %d x %d in %d x %d", w, h, d.Width, d.Height)
			}
		}
	})
}

// webpFrame is a frame of one colour: a lossless image whose five codes have one symbol each.
func webpFrame(x, y, w, h, delay int, flags byte, c [4]byte) string {
	var bits []byte // the lowest first
	add := func(v, n int) {
		for i := range n {
			bits = append(bits, byte(v>>i&1))
		}
	}
	add(0x2f, 8)
	add(w-1, 14)
	add(h-1, 14)
	add(0, 4+3) // alpha and version; no transform, no cache of colours, one group of codes
	for _, v := range []byte{c[1], c[0], c[2], c[3], 0} {
		add(0b101, 3) // a simple code, of one symbol, of 8 bits
		add(int(v), 8)
	}
	image := make([]byte, len(bits)/8+3)
	for i, b := range bits {
		image[i/8] |= b << (i % 8)
	}
	u24 := func(v int) string { return string([]byte{byte(v), byte(v >> 8), byte(v >> 16)}) }
	part := func(name, body string) string {
		return name + string(binary.LittleEndian.AppendUint32(nil, uint32(len(body)))) + body + "\x00"[:len(body)%2]
	}
	return part("ANMF", u24(x/2)+u24(y/2)+u24(w-1)+u24(h-1)+u24(delay)+string(flags)+part("VP8L", string(image)))
}

// TestWebPFrames has frames like [animated]: one that fills no more than a part of the canvas, one that is blended and then
// cleared, one that replaces.
func TestWebPFrames(t *testing.T) {
	const over, clear, replace = 0, 1, 2
	data := []byte(riff("VP8X\x0a\x00\x00\x00\x02\x00\x00\x00\x07\x00\x00\x05\x00\x00" + "ANIM\x06\x00\x00\x00\xff\x00\x00\xff\x02\x00" +
		webpFrame(0, 0, 6, 6, 100, over, [4]byte{200, 0, 0, 255}) + webpFrame(2, 2, 2, 2, 50, over|clear, [4]byte{0, 200, 0, 0}) +
		webpFrame(4, 0, 4, 4, 50, replace, [4]byte{0, 0, 200, 100})))
	d, err := DecodeDocument("a.webp", data, DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Frames) != 3 || Frames("a.webp", data) != 3 || d.Plays != 2 || d.Width != 8 || d.Frames[1].Duration != 50*time.Millisecond {
		t.Fatalf("%d frames, %d plays, %d wide, %v", len(d.Frames), d.Plays, d.Width, d.Frames[1].Duration)
	}
	red, blue, none := [4]byte{200, 0, 0, 255}, [4]byte{0, 0, 200, 100}, [4]byte{}
	for _, c := range []struct {
		frame, x, y int
		want        [4]byte
	}{{0, 0, 0, red}, {0, 6, 0, none}, {1, 2, 2, red}, {2, 2, 2, none}, {2, 4, 0, blue}, {2, 7, 3, blue}, {2, 5, 5, red}} {
		if got := at(d.Frames[c.frame].Picture.Eight, c.x, c.y); got != c.want {
			t.Errorf("frame %d at %d,%d: %v, want %v", c.frame, c.x, c.y, got, c.want)
		}
	}
	first, err := Decode("a.webp", data, DefaultLimits())
	if err != nil || !bytes.Equal(first.Pix, d.Frames[0].Picture.Eight.Pix) {
		t.Errorf("the first frame is another: %v", err)
	}
}
