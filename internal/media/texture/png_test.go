package texture

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/processor"
)

// TestPNG checks that a PNG product has exactly the pixels of a texture's first level.
func TestPNG(t *testing.T) {
	img := &pixel.Image{Width: 3, Height: 2, Pix: []byte{
		255, 0, 0, 255, 0, 255, 0, 128, 0, 0, 255, 0,
		1, 2, 3, 4, 250, 251, 252, 253, 7, 7, 7, 7,
	}}
	o := Defaults()
	o.Container, o.Family = "png", "bc" // the family of a policy applies only to textures
	for _, premultiply := range []bool{false, true} {
		o.Premultiply = premultiply
		data, err := Encode(img, o)
		if err != nil {
			t.Fatal(err)
		}
		got, err := png.Decode(bytes.NewReader(data))
		if err != nil || got.Bounds() != image.Rect(0, 0, 3, 2) {
			t.Fatal(got.Bounds(), err)
		}
		want := img
		if premultiply {
			want = img.Premultiplied(true)
		}
		for i := range 6 {
			c := color.NRGBAModel.Convert(got.At(i%3, i/3)).(color.NRGBA)
			if p := want.Pix[4*i:]; c != (color.NRGBA{p[0], p[1], p[2], p[3]}) && p[3] != 0 {
				t.Errorf("premultiply %v, pixel %d: %v, not %v", premultiply, i, c, p[:4])
			}
		}
	}
	o.Format = "r8"
	data, err := Encode(img, o)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := png.Decode(bytes.NewReader(data)); err != nil || got.ColorModel() != color.GrayModel {
		t.Error(err, "r8 is not grey")
	}
	var p *processor.Problem
	o.Format = "bc7"
	if _, err := Encode(img, o); !errors.As(err, &p) {
		t.Errorf("bc7 in a PNG: %v", err)
	}
	o.Format = "auto"
	light := Images{Pictures: []*pixel.Picture{{Float: &pixel.Float{Width: 1, Height: 1, Pix: make([]float32, 4)}, HDR: true}}}
	if _, err := NewPlan(light, o); !errors.As(err, &p) {
		t.Errorf("light in a PNG: %v", err)
	}
	six := Images{Shape: Array, Pictures: []*pixel.Picture{{Eight: img}, {Eight: img}}}
	if _, err := NewPlan(six, o); !errors.As(err, &p) {
		t.Errorf("an array in a PNG: %v", err)
	}
}
