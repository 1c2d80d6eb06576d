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
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// pattern is the picture in all files of testdata, 8 x 6 pixels. Files without alpha or colour show it without them.
func pattern(x, y int) [4]byte {
	a := byte(255)
	if x >= 5 {
		a = 128
	}
	if x == 7 {
		a = 0
	}
	return [4]byte{byte(x * 36), byte(y * 51), byte(255 - (x*36+y*51)/2), a}
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestDecodeFiles(t *testing.T) {
	tests := []struct {
		file, format string
		alpha, grey  bool
		off          float64 // RMS difference allowed for a lossy format, in 8-bit levels; most of it is from chroma at half size
	}{
		{"rgba.png", "png", true, false, 0},
		{"interlaced.png", "png", true, false, 0},
		{"rgb.png", "png", false, false, 0},
		{"grey.png", "png", false, true, 0.6},
		{"palette.png", "png", false, false, 0},
		{"rgb.bmp", "bmp", false, false, 0},
		{"raw.tif", "tiff", true, false, 0},
		{"deflate.tif", "tiff", true, false, 0},
		{"lzw.tif", "tiff", false, false, 0},
		{"packbits.tif", "tiff", false, true, 0.6},
		{"palette.tif", "tiff", false, false, 0},
		{"lossless.webp", "webp", true, false, 0},
		{"lossy.webp", "webp", true, false, 20},
		{"lossyrgb.webp", "webp", false, false, 20},
		{"rgb.jpg", "jpeg", false, false, 3},
		{"progressive.jpg", "jpeg", false, false, 20},
		{"cmyk.jpg", "jpeg", false, false, 3},
		{"grey.jpg", "jpeg", false, true, 2},
		{"rgba.tga", "tga", true, false, 0},
		{"rle.tga", "tga", false, false, 0},
		{"grey.tga", "tga", false, true, 0.6},
		{"palette.tga", "tga", false, false, 0},
		{"rgb.gif", "gif", false, false, 0},
		{"deep.png", "png", true, false, 0},
		{"rgba.qoi", "qoi", true, false, 0},
		{"rgba.psd", "psd", true, false, 0},
		{"rgb.exr", "exr", false, false, 0.6},
		{"rgb.hdr", "hdr", false, false, 2}, // 8 bits for the brightest channel leave few steps for dark ones
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			data := read(t, tt.file)
			c, err := DecodeConfig(tt.file, data)
			light := tt.format == "exr" || tt.format == "hdr"
			want := Config{Width: 8, Height: 6, Format: tt.format, Deep: light || tt.file == "deep.png", HDR: light}
			if err != nil || c != want {
				t.Errorf("config is %+v, %v; want %+v", c, err, want)
			}
			m, err := Decode(tt.file, data, DefaultLimits())
			if err != nil {
				t.Fatal(err)
			}
			if m.Width != 8 || m.Height != 6 || len(m.Pix) != 4*8*6 {
				t.Fatalf("%d x %d, %d bytes", m.Width, m.Height, len(m.Pix))
			}
			var sum float64
			for i := range m.Pix {
				p := pattern(i/4%8, i/32)
				want := float64(p[i%4])
				switch {
				case i%4 == 3 && !tt.alpha:
					want = 255
				case i%4 != 3 && tt.grey:
					want = 0.299*float64(p[0]) + 0.587*float64(p[1]) + 0.114*float64(p[2])
				case i%4 != 3 && tt.alpha && tt.off > 0 && p[3] == 0:
					continue // invisible, so it may have any colour
				}
				sum += (float64(m.Pix[i]) - want) * (float64(m.Pix[i]) - want)
			}
			if off := math.Sqrt(sum / float64(len(m.Pix))); off > tt.off {
				t.Errorf("off by %.2f, more than %.2f: %v", off, tt.off, m.Pix)
			}
		})
	}
}

func encoded(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestDepths checks that 16 bits are rounded, not truncated (0x00ff is nearer to 1, which is 0x0101, than to 0), and
// that colours with low alpha are exact.
func TestDepths(t *testing.T) {
	deep := image.NewNRGBA64(image.Rect(0, 0, 1, 1))
	deep.SetNRGBA64(0, 0, color.NRGBA64{0x00ff, 0x8000, 0xffff, 0x0080})
	opaque := image.NewNRGBA64(image.Rect(0, 0, 1, 1))
	opaque.SetNRGBA64(0, 0, color.NRGBA64{0x00ff, 0x8000, 0x007f, 0xffff})
	grey := image.NewGray16(image.Rect(0, 0, 1, 1))
	grey.SetGray16(0, 0, color.Gray16{0x00ff})
	palette := image.NewPaletted(image.Rect(0, 0, 1, 1), color.Palette{color.NRGBA{200, 100, 50, 3}})
	for _, tt := range []struct {
		in   image.Image
		want [4]byte
	}{
		{palette, [4]byte{200, 100, 50, 3}},
		{deep, [4]byte{1, 128, 255, 0}}, {opaque, [4]byte{1, 128, 0, 255}}, {grey, [4]byte{1, 1, 1, 255}},
	} {
		m, err := Decode("", encoded(t, tt.in), DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		if got := [4]byte(m.Pix); got != tt.want {
			t.Errorf("%T: got %v, want %v", tt.in, got, tt.want)
		}
	}
}

// TestFromImage compares the conversion of each image type with a slow one.
func TestFromImage(t *testing.T) {
	r := image.Rect(0, 0, 5, 3)
	kinds := []image.Image{
		&image.RGBA{Pix: []byte{64, 32, 200, 128, 9, 9, 9, 0, 1, 2, 3, 255}, Stride: 12, Rect: image.Rect(0, 0, 3, 1)},
		fill(image.NewNRGBA(r)), fill(image.NewNRGBA64(r)), fill(image.NewGray(r)), fill(image.NewGray16(r)), fill(image.NewCMYK(r)),
		fill(image.NewRGBA64(r)), fill(image.NewNRGBA(r)).(*image.NRGBA).SubImage(image.Rect(1, 1, 4, 3)),
		fill(image.NewPaletted(r, color.Palette{color.NRGBA{200, 100, 50, 3}, color.Black, color.Transparent})),
		image.NewYCbCr(image.Rect(1, 1, 6, 4), image.YCbCrSubsampleRatio420),
		image.NewNYCbCrA(r, image.YCbCrSubsampleRatio444),
	}
	for _, m := range kinds {
		got, b := fromImage(m), m.Bounds()
		if got.Width != b.Dx() || got.Height != b.Dy() {
			t.Fatalf("%T: %d x %d", m, got.Width, got.Height)
		}
		for i := range got.Width * got.Height {
			want := straight(m.At(b.Min.X+i%got.Width, b.Min.Y+i/got.Width))
			if y, ok := m.(*image.YCbCr); ok {
				want[0], want[1], want[2] = color.YCbCrToRGB(y.Y[0], y.Cb[0], y.Cr[0])
			}
			if y, ok := m.(*image.NYCbCrA); ok { // transparent: straight cannot see the colour
				want[0], want[1], want[2] = color.YCbCrToRGB(y.Y[0], y.Cb[0], y.Cr[0])
			}
			for c := range 4 {
				if d := int(got.Pix[4*i+c]) - int(want[c]); d < -1 || d > 1 {
					t.Errorf("%T pixel %d: got %v, want %v", m, i, got.Pix[4*i:4*i+4], want)
				}
			}
		}
	}
}

func fill(m image.Image) image.Image {
	var pix []byte
	step := byte(29)
	switch m := m.(type) {
	case *image.NRGBA:
		pix = m.Pix
	case *image.NRGBA64:
		pix = m.Pix
	case *image.RGBA64: // premultiplied: no colour exceeds its alpha
		for i := range m.Pix {
			m.Pix[i] = byte(i%8*16 + i/8)
		}
	case *image.Gray:
		pix = m.Pix
	case *image.Gray16:
		pix = m.Pix
	case *image.CMYK:
		pix = m.Pix
	case *image.Paletted:
		for i := range m.Pix {
			m.Pix[i] = byte(i % len(m.Palette))
		}
	}
	for i := range pix {
		pix[i] = byte(i) * step
	}
	return m
}

// TestGIFFrame reads a GIF whose first frame is smaller than its screen.
func TestGIFFrame(t *testing.T) {
	frame := image.NewPaletted(image.Rect(2, 1, 4, 2), color.Palette{color.NRGBA{9, 8, 7, 255}})
	var b bytes.Buffer
	err := gif.EncodeAll(&b, &gif.GIF{Image: []*image.Paletted{frame}, Delay: []int{0}, Config: image.Config{Width: 5, Height: 3, ColorModel: frame.Palette}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := Decode("x.gif", b.Bytes(), DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	want := New(5, 3)
	for x := 2; x < 4; x++ {
		copy(want.Pix[4*(5+x):], []byte{9, 8, 7, 255})
	}
	if m.Width != 5 || m.Height != 3 || !bytes.Equal(m.Pix, want.Pix) {
		t.Errorf("%d x %d: %v", m.Width, m.Height, m.Pix)
	}
}

// claim returns a PNG whose header claims a size. The checksum of the header is correct.
func claim(t testing.TB, w, h uint32) []byte {
	data := encoded(t, image.NewNRGBA(image.Rect(0, 0, 1, 1)))
	binary.BigEndian.PutUint32(data[16:], w)
	binary.BigEndian.PutUint32(data[20:], h)
	binary.BigEndian.PutUint32(data[29:], crc32.ChecksumIEEE(data[12:29]))
	return data
}

func TestFaults(t *testing.T) {
	pngData, jpg := read(t, "rgba.png"), read(t, "rgb.jpg")
	broken := bytes.Clone(pngData)
	broken[20] = 99 // the checksum is now wrong
	arithmetic := bytes.Clone(jpg)
	arithmetic[bytes.Index(jpg, []byte{0xff, 0xc0})+1] = 0xc9
	wide := bytes.Clone(jpg)
	copy(wide[bytes.Index(jpg, []byte{0xff, 0xc0})+5:], []byte{0x40, 0, 0x40, 0})
	bmp := read(t, "rgb.bmp")
	rleBMP := bytes.Clone(bmp)
	rleBMP[30] = 1
	tgaData := read(t, "rgba.tga")
	jpegTIFF := bytes.Replace(read(t, "lzw.tif"), []byte("\x03\x01\x03\x00\x01\x00\x00\x00\x05"), []byte("\x03\x01\x03\x00\x01\x00\x00\x00\x07"), 1)
	huffman := bytes.Clone(tgaData)
	huffman[2] = 32
	tests := []struct {
		name, file string
		data       []byte
		want       Fault
		text       string // part of the message
	}{
		{"nothing", "a.png", nil, Empty, "empty"},
		{"text", "a.png", []byte("hello"), Unknown, "not an image"},
		{"Photoshop, half", "a.psd", []byte("8BPS\x00\x01"), Truncated, "Photoshop image ends too early"},
		{"Git LFS", "a.png", []byte("version https://git-lfs.github.com/spec/v1\n"), Unknown, "a Git LFS pointer"},
		{"TGA by another name", "a.png", tgaData, Unknown, "not an image"},
		{"PNG, half", "a.png", pngData[:len(pngData)/2], Truncated, "PNG image ends too early"},
		{"PNG, only signature", "a.png", pngData[:8], Truncated, ""},
		{"JPEG, half", "a.jpg", jpg[:len(jpg)/2], Truncated, ""},
		{"GIF, half", "a.gif", read(t, "rgb.gif")[:400], Truncated, ""},
		{"BMP, half", "a.bmp", bmp[:100], Truncated, ""},
		{"TIFF, half", "a.tif", read(t, "raw.tif")[:150], Truncated, ""},
		{"TIFF, head", "a.tif", read(t, "raw.tif")[:6], Truncated, ""},
		{"WebP, half", "a.webp", read(t, "lossless.webp")[:40], Truncated, ""},
		{"lossy WebP, half", "a.webp", read(t, "lossyrgb.webp")[:80], Truncated, ""},
		{"TGA, half", "a.tga", tgaData[:100], Truncated, "TGA image ends too early"},
		{"TGA, head", "a.tga", tgaData[:10], Truncated, ""},
		{"PNG with a wrong checksum", "a.png", broken, Damaged, "checksum"},
		{"JPEG with arithmetic coding", "a.jpg", arithmetic, Unsupported, "JPEG image cannot be read"},
		{"BMP with RLE", "a.bmp", rleBMP, Unsupported, ""},
		{"TGA of another kind", "a.tga", huffman, Unsupported, "image type 32"},
		{"WebP with an animation without frames", "a.webp",
			[]byte("RIFF\x1e\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x02\x00\x00\x00\x07\x00\x00\x05\x00\x00ANIM"), Truncated, ""},
		{"TIFF in planes", "a.tif", []byte("II*\x00\x08\x00\x00\x00\x02\x00\x15\x01\x03\x00\x01\x00\x00\x00\x03\x00\x00\x00\x1c\x01\x03\x00\x01\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00"),
			Damaged, "size 0 x 0"},
		{"TIFF with JPEG inside", "a.tif", jpegTIFF, Unsupported, "JPEG inside; save it as JPEG"},
		{"BigTIFF", "a.tif", []byte("II+\x00\x08\x00\x00\x00\x10\x00\x00\x00"), Unknown, "BigTIFF image; save it as TIFF"},
		{"PNG of 60000 x 60000", "a.png", claim(t, 60000, 60000), TooLarge, "claims 60000 x 60000 pixels, over the limit of 16384 a side and 1024 MiB"},
		{"PNG of 16384 x 16384 in 70 bytes", "a.png", claim(t, 16384, 16384), Truncated, "cannot hold 16384 x 16384"},
		{"JPEG of 16384 x 16384 in 700 bytes", "a.jpg", wide, Truncated, "cannot hold 16384 x 16384"},
		{"GIF of 16384 x 16384 around a frame of 1 x 1", "a.gif", []byte(gifOf16384 + gifFrame + ";"), Truncated, "cannot hold 16384 x 16384"},
		{"animated GIF of 16384 x 16384", "a.gif", []byte(gifOf16384 + gifFrame + gifFrame + ";"), Truncated, "cannot hold 16384 x 16384"},
		{"GIF with a frame of 16384 x 16384", "a.gif", []byte(gifOf16384 + ",\x00\x00\x00\x00\x00\x40\x00\x40\x00\x02\x02\x44\x01\x00;"),
			Truncated, "cannot hold"},
		{"lossless WebP of 16384 x 16384", "a.webp", []byte(riff("VP8L" + webpOf16384)), Truncated, "cannot hold 16384 x 16384"},
		{"WebP with a canvas of 16384 x 16384", "a.webp", []byte(riff(webpCanvas("\x00") + "VP8L" + webpOf16384)), Truncated, "cannot hold"},
		{"WebP with nothing but alpha", "a.webp", []byte(riff(webpCanvas("\x10") + "ALPH\x08\x00\x00\x00\x01\x88\x88\x08\x00\x00\x00\x00")),
			Truncated, "cannot hold"},
		{"animated WebP of 16384 x 16384", "a.webp", []byte(riff(webpCanvas("\x02") + webpFrame(0, 0, 1, 1, 0, 0, [4]byte{}))),
			Truncated, "cannot hold 16384 x 16384"},
		{"PNG of 0 x 5", "a.png", claim(t, 0, 5), Damaged, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Decode(tt.file, tt.data, DefaultLimits())
			runtime.ReadMemStats(&after)
			var e *Error
			if !errors.As(err, &e) || e.Fault != tt.want || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %+v: %v; want fault %d with %q", e, err, tt.want, tt.text)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
				t.Errorf("%d bytes allocated", n)
			}
		})
	}
}

// Headers that claim 16384 x 16384 pixels.
const (
	gifOf16384 = "GIF89a\x00\x40\x00\x40\x80\x00\x00\x00\x00\x00\xff\xff\xff"
	gifFrame   = ",\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02\x44\x01\x00"
	// u32 size, u8 0x2f, two 14-bit numbers: width and height minus 1
	webpOf16384 = "\x10\x00\x00\x00\x2f\xff\xff\xff\x0f\x88\x88\x08\x00\x00\x00\x00\x00\x00\x00\x00"
)

func riff(chunks string) string {
	return "RIFF" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(chunks)+4))) + "WEBP" + chunks
}

func webpCanvas(flags string) string {
	return "VP8X\x0a\x00\x00\x00" + flags + "\x00\x00\x00\xff\x3f\x00\xff\x3f\x00"
}

// TestFlat reads pictures of one colour, which take very few bytes. They are accepted unless they are huge. The frame
// of a GIF may be much smaller than its screen.
func TestFlat(t *testing.T) {
	for _, tt := range []struct {
		name, data string
	}{
		{"a.gif", strings.Replace(gifOf16384, "\x00\x40\x00\x40", "\x00\x01\x00\x02", 1) + gifFrame + ";"},
		{"a.webp", riff("VP8L" + strings.Replace(webpOf16384, "\xff\xff\xff\x0f", "\xff\xc0\x7f\x00", 1))},
	} {
		if m, err := Decode(tt.name, []byte(tt.data), DefaultLimits()); err != nil || m.Width != 256 || m.Height != 512 {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestHalves cuts files everywhere in their first half. A cut file is an error, except that a JPEG may be read in part, with a
// message.
func TestHalves(t *testing.T) {
	files, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.IsDir() {
			continue
		}
		data := read(t, f.Name())
		for n := range len(data) / 2 {
			var e *Error
			p, err := DecodePicture(f.Name(), data[:n], DefaultLimits())
			if err == nil && p.Format == "jpeg" && p.Damage != "" {
				continue
			}
			if !errors.As(err, &e) || e.Error() == "" || e.Fault == TooLarge || e.Fault == Unsupported {
				t.Errorf("%s, %d bytes: %v", f.Name(), n, err)
			}
		}
	}
}

func TestLimits(t *testing.T) {
	data := read(t, "rgba.png")
	for _, tt := range []struct {
		lim Limits
		ok  bool
	}{
		{Limits{8, 8 * 6 * 4}, true}, {Limits{7, 1 << 20}, false}, {Limits{8, 8*6*4 - 1}, false},
	} {
		_, err := Decode("", data, tt.lim)
		var e *Error
		if tt.ok != (err == nil) || !tt.ok && (!errors.As(err, &e) || e.Fault != TooLarge) {
			t.Errorf("%+v: %v", tt.lim, err)
		}
	}
}

// TestRecovered checks that a panic of a decoder becomes an error.
func TestRecovered(t *testing.T) {
	f := format{id: "png"}
	err := func() (err error) {
		defer f.recovered(&err)
		panic("index out of range")
	}()
	var e *Error
	if !errors.As(err, &e) || e.Fault != Damaged {
		t.Errorf("%v", err)
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]string{"a/B.PNG": "png", "x.jpeg": "jpeg", "x.tif": "tiff", "x.TGA": "tga", "x.psd": "psd", "x.xcf": "", "png": ""} {
		if got := FormatOf(name); got != want {
			t.Errorf("FormatOf(%q) = %q, want %q", name, got, want)
		}
	}
	if FormatName("webp") != "WebP" {
		t.Error(FormatName("webp"))
	}
}

// TestCorpus reads every picture of a real corpus.
func TestCorpus(t *testing.T) {
	root := os.Getenv("KILN_CORPUS")
	if root == "" {
		t.Skip("KILN_CORPUS names no folder of real content")
	}
	n := 0
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || FormatOf(file) == "" {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		n++
		if _, err := Decode(file, data, DefaultLimits()); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if got := Sniff(file, data); got != FormatOf(file) {
			t.Logf("%s is %s", file, got)
		}
		return nil
	})
	if err != nil || n == 0 {
		t.Fatalf("%d pictures, %v", n, err)
	}
	t.Logf("%d pictures", n)
}

func FuzzDecode(f *testing.F) {
	files, err := os.ReadDir("testdata")
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range files {
		if !e.IsDir() {
			f.Add(read(f, e.Name()))
		}
	}
	lim := Limits{MaxSide: 1024, MaxBytes: 1 << 20}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Decode("x.tga", data, lim)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || err.Error() == "" {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		if m.Width < 1 || m.Height < 1 || len(m.Pix) != 4*m.Width*m.Height || int64(len(m.Pix)) > lim.MaxBytes {
			t.Fatalf("%d x %d, %d bytes", m.Width, m.Height, len(m.Pix))
		}
		p, err := DecodePicture("x.tga", data, lim)
		if err != nil { // more than 8 bits a channel need more memory
			var e *Error
			if !errors.As(err, &e) || e.Fault != TooLarge {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		if w, h := p.Size(); w != m.Width || h != m.Height || p.HDR != (p.Eight == nil) || p.HDR && p.Float == nil {
			t.Fatalf("%+v", p)
		}
	})
}
