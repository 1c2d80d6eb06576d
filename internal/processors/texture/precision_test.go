package texture

import (
	"image"
	"image/color"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/texture"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

// TestSixteenBits has tables of 16 bits, whose product keeps all of them, or a warning says that it does not.
func TestSixteenBits(t *testing.T) {
	m := image.NewGray16(image.Rect(0, 0, 4, 1))
	for x, v := range []uint16{0x1234, 0x1235, 0x1236, 0xffff} {
		m.SetGray16(x, 0, color.Gray16{Y: v})
	}
	deep := pngFile(t, m)
	eight := plain(t, 4, 1, color.NRGBA{7, 8, 9, 255})
	for _, tt := range []struct {
		name   string
		o      func(*texture.Options)
		format string
		warns  bool
	}{
		{"by its name", func(*texture.Options) {}, "R16", false},
		{"on PCs", func(o *texture.Options) { o.Family = "bc" }, "R16", false},
		{"on phones", func(o *texture.Options) { o.Family = "astc" }, "RGBA8", true},
		{"as asked", func(o *texture.Options) { o.Format = "rgba8" }, "RGBA8", true},
		{"with a channel of 8 bits", func(o *texture.Options) { o.A = "eight.png:b" }, "RGBA16", false},
		{"as a colour", func(o *texture.Options) { o.Use = "color" }, "RGBA8 sRGB", false},
	} {
		r := processortest.Run(t, New(), processortest.Case{
			Files: map[string][]byte{"lut_data.png": deep, "eight.png": eight}, Asset: "lut_data.png", Settings: settings(tt.o),
		})
		f := opened(t, r)
		warned := len(r.Warnings) == 1 && r.Warnings[0].Code == "K1217"
		if f.Format != tt.format || warned != tt.warns || !tt.warns && len(r.Warnings) > 0 {
			t.Errorf("%s: %s, %+v", tt.name, f.Format, r.Warnings)
		}
		if tt.format != "R16" && tt.format != "RGBA16" {
			continue
		}
		p, err := f.Picture(0, 0, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for x, v := range []float32{0x1234, 0x1235, 0x1236, 0xffff} {
			if got := p.Float.Pix[4*x]; got != v/0xffff {
				t.Errorf("%s: pixel %d is %v, not %v", tt.name, x, got*0xffff, v)
			}
		}
		if want := float32(9) / 255; tt.format == "RGBA16" && p.Float.Pix[3] != want {
			t.Errorf("%s: the other channel is %v, not %v", tt.name, p.Float.Pix[3], want)
		}
	}
	// A channel of 16 bits in a picture of 8.
	r := processortest.Run(t, New(), processortest.Case{Files: map[string][]byte{"a_data.png": eight, "lut.png": deep}, Asset: "a_data.png",
		Settings: settings(func(o *texture.Options) { o.G = "lut.png" })})
	if p, err := opened(t, r).Picture(0, 0, 0, 0); err != nil || p.Float == nil || p.Float.Pix[5] != float32(0x1235)/0xffff || p.Float.Pix[4] != float32(7)/255 {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestGamma has a linear PNG: with gamma turned off, as for the images of models, its numbers stay.
func TestGamma(t *testing.T) {
	linear := chunk(grey(t, 4, 128), "gAMA", []byte{0, 1, 0x86, 0xa0})
	for gamma, want := range map[bool]byte{true: 188, false: 128} {
		r := processortest.Run(t, New(), processortest.Case{Files: map[string][]byte{"a.png": linear}, Asset: "a.png",
			Settings: settings(func(o *texture.Options) { o.Gamma = gamma })})
		if got := first(t, opened(t, r), 0, 0, 0, 0); got[0] != want {
			t.Errorf("gamma %v: %v, not %d", gamma, got, want)
		}
	}
}
