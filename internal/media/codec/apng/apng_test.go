package apng

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

// still returns a PNG of one colour.
func still(w, h int, c color.NRGBA) []byte {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for i := range w * h {
		m.SetNRGBA(i%w, i/w, c)
	}
	var b bytes.Buffer
	png.Encode(&b, m)
	return b.Bytes()
}

// idat returns the compressed pixels of a PNG.
func idat(file []byte) (all []byte) {
	for b := file[8:]; len(b) >= 12; {
		size := binary.BigEndian.Uint32(b)
		if string(b[4:8]) == "IDAT" {
			all = append(all, b[8:8+size]...)
		}
		b = b[12+size:]
	}
	return all
}

func control(frames, plays uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, frames), plays)
}

func frameControl(sequence, w, h, x, y uint32, delay, part uint16, dispose, blend byte) []byte {
	var b []byte
	for _, n := range []uint32{sequence, w, h, x, y} {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, delay), part)
	return append(b, dispose, blend)
}

// chunks builds a file from pairs of a name and a body.
func chunks(pairs ...any) []byte {
	b := []byte(signature)
	for i := 0; i < len(pairs); i += 2 {
		body, _ := pairs[i+1].([]byte)
		b = appendChunk(b, pairs[i].(string), body)
	}
	return b
}

func numbered(n uint32, data []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, n), data...)
}

var (
	red, blue = color.NRGBA{200, 10, 10, 254}, color.NRGBA{10, 10, 200, 128}
	first     = still(4, 3, red)
	second    = still(2, 2, blue)
	head      = first[16:29]
)

func two() []byte {
	return chunks("IHDR", head, "gAMA", []byte{0, 0, 0xb1, 0x8f}, "acTL", control(2, 5),
		"fcTL", frameControl(0, 4, 3, 0, 0, 1, 4, 0, 0), "IDAT", idat(first),
		"fcTL", frameControl(1, 2, 2, 1, 1, 7, 0, 2, 1), "fdAT", numbered(2, idat(second)[:5]), "fdAT", numbered(3, idat(second)[5:]), "IEND", nil)
}

func TestRead(t *testing.T) {
	a, err := Read(two())
	if err != nil {
		t.Fatal(err)
	}
	if a.Width != 4 || a.Height != 3 || a.Plays != 5 || len(a.Frames) != 2 || Count(two()) != 2 {
		t.Fatalf("%+v", a)
	}
	f := a.Frames[1]
	if f.X != 1 || f.Y != 1 || f.Width != 2 || f.Height != 2 || f.Delay != 70*time.Millisecond || f.Dispose != Previous || f.Blend != Over {
		t.Errorf("%+v", f)
	}
	if a.Frames[0].Delay != time.Second/4 {
		t.Errorf("%v", a.Frames[0].Delay)
	}
	for i, want := range []color.NRGBA{red, blue} {
		m, err := png.Decode(bytes.NewReader(a.Frames[i].PNG()))
		if err != nil {
			t.Fatal(err)
		}
		if got := color.NRGBAModel.Convert(m.At(1, 1)); got != want {
			t.Errorf("frame %d: %v", i, got)
		}
	}
	// The image in IDAT need not be a frame.
	hidden := chunks("IHDR", head, "acTL", control(1, 0), "IDAT", idat(first),
		"fcTL", frameControl(0, 2, 2, 0, 0, 0, 0, 0, 0), "fdAT", numbered(1, idat(second)), "IEND", nil)
	if a, err := Read(hidden); err != nil || len(a.Frames) != 1 || a.Frames[0].Width != 2 {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err := Read(first); a != nil || err != nil || Count(first) != 0 {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestDamaged(t *testing.T) {
	good := two()
	for n := range len(good) {
		if a, err := Read(good[:n]); err == nil {
			t.Fatalf("%d bytes of %d are read: %+v", n, len(good), a)
		}
	}
	data := idat(first)
	// one returns an animation of one frame that ends with the given chunks.
	one := func(frames uint32, more ...any) []byte {
		return chunks(append([]any{"IHDR", head, "acTL", control(frames, 0)}, more...)...)
	}
	behind := func(control []byte, more ...any) []byte {
		return one(1, append([]any{"IDAT", data, "fcTL", control}, more...)...)
	}
	whole, small := frameControl(0, 4, 3, 0, 0, 1, 1, 0, 0), frameControl(0, 1, 1, 0, 0, 1, 1, 0, 0)
	for name, c := range map[string]struct {
		file []byte
		want error
	}{
		"no signature":      {[]byte("GIF89a"), input.ErrDamaged},
		"no IHDR":           {chunks("IDAT", data), input.ErrDamaged},
		"no frames":         {one(0), input.ErrDamaged},
		"too many":          {one(1 << 20), input.ErrTooLarge},
		"short acTL":        {chunks("IHDR", head, "acTL", []byte{0}), input.ErrDamaged},
		"short fcTL":        {one(1, "fcTL", []byte{0}), input.ErrDamaged},
		"wrong sequence":    {one(1, "fcTL", frameControl(1, 4, 3, 0, 0, 1, 1, 0, 0)), input.ErrDamaged},
		"first not whole":   {one(1, "fcTL", small), input.ErrDamaged},
		"outside":           {behind(frameControl(0, 4, 3, 1, 0, 1, 1, 0, 0)), input.ErrDamaged},
		"far outside":       {behind(frameControl(0, 1, 1, 1<<31, 0, 1, 1, 0, 0)), input.ErrDamaged},
		"dispose":           {behind(frameControl(0, 1, 1, 0, 0, 1, 1, 3, 0)), input.ErrDamaged},
		"data before frame": {one(1, "IDAT", data, "fdAT", numbered(0, data)), input.ErrDamaged},
		"one frame of two":  {one(2, "fcTL", whole, "IDAT", data, "IEND", nil), input.ErrTruncated},
		"two of one":        {behind(small, "fdAT", numbered(1, data), "fcTL", frameControl(2, 1, 1, 0, 0, 1, 1, 0, 0)), input.ErrDamaged},
		"no picture":        {behind(small, "IEND", nil), input.ErrDamaged},
		"checksum":          {bytes.Replace(good, []byte("acTL\x00"), []byte("acTL\x01"), 1), input.ErrDamaged},
	} {
		if _, err := Read(c.file); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// TestFFmpeg reads the output of ffmpeg, if it is installed.
func TestFFmpeg(t *testing.T) {
	ffmpeg, err := exec.LookPath("ffmpeg")
	if err != nil {
		t.Skip("ffmpeg is not installed")
	}
	file := filepath.Join(t.TempDir(), "a.apng")
	cmd := exec.Command(ffmpeg, "-loglevel", "error", "-f", "lavfi", "-i", "testsrc=duration=0.5:size=32x24:rate=10", "-plays", "3", file)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	a, err := Read(data)
	if err != nil || len(a.Frames) != 5 || a.Plays != 3 || a.Width != 32 || a.Frames[1].Delay != 100*time.Millisecond {
		t.Fatalf("%+v, %v", a, err)
	}
	for i := range a.Frames {
		if _, err := png.Decode(bytes.NewReader(a.Frames[i].PNG())); err != nil {
			t.Errorf("frame %d: %v", i, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(two())
	f.Add(first)
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := Read(data)
		if a == nil || err != nil {
			return
		}
		for i := range a.Frames {
			if n := len(a.Frames[i].PNG()); n > len(data)+100 {
				t.Errorf("frame %d has %d bytes, of %d", i, n, len(data))
			}
		}
	})
}
