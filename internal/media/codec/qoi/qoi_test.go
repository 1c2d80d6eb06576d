package qoi

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

func header(width, height uint8) string {
	return "qoif\x00\x00\x00" + string(rune(width)) + "\x00\x00\x00" + string(rune(height)) + "\x04\x00"
}

// Single chunks, worked out from the specification.
func TestChunks(t *testing.T) {
	black := "\x00\x00\x00\xff"
	for _, c := range []struct {
		name   string
		width  uint8
		chunks string
		pixels string
	}{
		{"rgb keeps alpha", 1, "\xfe\x51\x02\x83", "\x51\x02\x83\xff"},
		{"rgba", 2, "\xff\x01\x02\x03\x04\xfe\x05\x06\x07", "\x01\x02\x03\x04\x05\x06\x07\x04"},
		{"run of 3 at the start is black", 3, "\xc2", black + black + black},
		{"diff -2 1 0", 1, "\x4e", "\xfe\x01\x00\xff"},                          // 01 00 11 10
		{"luma green +5, red 5+7, blue 5-8", 1, "\xa5\xf0", "\x0c\x05\xfd\xff"}, // 10 100101, 1111 0000
		// (81*3+2*5+131*7+255*11)%64 = 3975%64 = 7
		{"index", 3, "\xfe\x51\x02\x83\xfe\x09\x99\x09\x07", "\x51\x02\x83\xff\x09\x99\x09\xff\x51\x02\x83\xff"},
		// A run stores its pixel in the table, too: black is at 255*11%64 = 53.
		{"index after run", 3, "\xc0\xfe\x09\x09\x09\x35", black + "\x09\x09\x09\xff" + black},
		{"index of nothing is all 0", 1, "\x05", "\x00\x00\x00\x00"},
	} {
		data := header(c.width, 1) + c.chunks + end
		pix, w, h, err := Decode([]byte(data), 100)
		if err != nil || w != int(c.width) || h != 1 || string(pix) != c.pixels {
			t.Errorf("%s: %dx%d %q, %v; want %q", c.name, w, h, pix, err, c.pixels)
		}
		// A writer may choose among several chunks, but each of these has a single shortest form.
		if c.name == "index after run" || c.name == "index of nothing is all 0" || c.name == "rgba" {
			continue
		}
		out, err := Encode([]byte(c.pixels), int(c.width), 1)
		if err != nil || string(out[headerSize:]) != c.chunks+end {
			t.Errorf("%s: written as %q, %v; want %q", c.name, out, err, c.chunks)
		}
	}
}

// image returns an image with runs, small steps, repeated colours, and noise, with alpha if set.
func image(width, height int, alpha bool) []byte {
	r := rand.New(rand.NewPCG(uint64(width), uint64(height)))
	pix := make([]byte, 0, 4*width*height)
	p := pixel{10, 20, 30, 255}
	for range width * height {
		switch k := r.IntN(8); {
		case k == 0:
			p = pixel{byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32()), p[3]}
		case k == 1 && alpha:
			p[3] = byte(r.Uint32())
		case k == 2:
			p[0] += byte(r.IntN(4) - 2)
			p[2] += byte(r.IntN(4) - 2)
		case k == 3:
			p[1] += 20
			p[0] += 25
			p[2] += 15
		case k == 4 && len(pix) > 40:
			p = pixel(pix[len(pix)-40:][:4])
		}
		pix = append(pix, p[:]...)
	}
	return pix
}

func TestRoundTrip(t *testing.T) {
	sizes := [][2]int{{200, 1}, {1, 300}, {64, 64}, {257, 129}}
	for w := 1; w <= 17; w++ {
		for h := 1; h <= 17; h++ {
			sizes = append(sizes, [2]int{w, h})
		}
	}
	for _, s := range sizes {
		for name, in := range map[string][]byte{
			"opaque": image(s[0], s[1], false), "alpha": image(s[0], s[1], true), "clear": make([]byte, 4*s[0]*s[1]),
		} {
			data, err := Encode(in, s[0], s[1])
			if err != nil {
				t.Fatal(err)
			}
			out, w, h, err := Decode(append(data, "trailing"...), s[0]*s[1])
			if err != nil || w != s[0] || h != s[1] || !bytes.Equal(in, out) {
				t.Fatalf("%s %v comes back as %dx%d, %v", name, s, w, h, err)
			}
			c, err := Config(data)
			if want := map[bool]int{true: 3, false: 4}[name == "opaque"]; err != nil || c.Channels != want && name != "alpha" || c.Linear {
				t.Fatalf("%s %v: header %+v, %v", name, s, c, err)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	good, err := Encode(image(9, 5, true), 9, 5)
	if err != nil {
		t.Fatal(err)
	}
	for n := range good {
		if _, _, _, err := Decode(good[:n], 1000); !errors.Is(err, input.ErrTruncated) {
			t.Fatalf("cut to %d of %d bytes: %v", n, len(good), err)
		}
	}
	change := func(at int, b byte) []byte {
		c := bytes.Clone(good)
		c[at] = b
		return c
	}
	for name, c := range map[string]struct {
		data []byte
		max  int
		want error
	}{
		"too large":        {good, 44, input.ErrTooLarge},
		"bomb":             {[]byte("qoif\x7f\xff\xff\xff\x7f\xff\xff\xff\x04\x00\xff" + end), 1 << 62, input.ErrTruncated},
		"no magic":         {change(0, 'Q'), 1000, input.ErrDamaged},
		"no width":         {change(7, 0), 1000, input.ErrDamaged},
		"huge height":      {change(8, 0xff), 1000, input.ErrDamaged},
		"five channels":    {change(12, 5), 1000, input.ErrDamaged},
		"a colour space":   {change(13, 2), 1000, input.ErrDamaged},
		"no end":           {change(len(good)-1, 2), 1000, input.ErrDamaged},
		"run over the end": {[]byte(header(2, 1) + "\xc2" + end), 1000, input.ErrDamaged},
	} {
		if _, _, _, err := Decode(c.data, c.max); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	for _, s := range [][2]int{{0, 0}, {3, 3}, {-4, -4}, {16, 2}, {1 << 40, 1}} {
		if _, err := Encode(make([]byte, 64), s[0], s[1]); err == nil {
			t.Errorf("64 bytes are written as %v", s)
		}
	}
}

func FuzzDecode(f *testing.F) {
	good, err := Encode(image(7, 3, true), 7, 3)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(header(3, 1) + "\xc2" + end))
	f.Fuzz(func(t *testing.T, data []byte) {
		pix, w, h, err := Decode(data, 1<<16)
		if err != nil {
			return
		}
		if len(pix) != 4*w*h {
			t.Fatalf("%d bytes for %dx%d", len(pix), w, h)
		}
		again, err := Encode(pix, w, h)
		if err != nil {
			t.Fatal(err)
		}
		back, _, _, err := Decode(again, w*h)
		if err != nil || !bytes.Equal(pix, back) {
			t.Fatalf("what was read is not what comes back of it: %v", err)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	data, err := Encode(image(1024, 1024, true), 1024, 1024)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, _, _, err := Decode(data, 1<<20); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()*1.048576, "MPix/s")
}

func BenchmarkEncode(b *testing.B) {
	pix := image(1024, 1024, true)
	for b.Loop() {
		if _, err := Encode(pix, 1024, 1024); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()*1.048576, "MPix/s")
}
