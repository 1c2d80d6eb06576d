package texture

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/dds"
	"github.com/kiln-pipeline/kiln/internal/media/codec/ktx2"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
)

// picture has four different pixels: half transparent red over opaque green, and so on.
func picture() *pixel.Image {
	return &pixel.Image{Width: 2, Height: 2, Pix: []byte{
		255, 0, 0, 128, 0, 255, 0, 255,
		0, 0, 255, 0, 100, 110, 120, 255,
	}}
}

func with(change func(*Options)) Options {
	o := Defaults()
	change(&o)
	return o
}

func TestEncode(t *testing.T) {
	// Values that are not copies were computed in floating point from the formula of the sRGB curve.
	tests := []struct {
		name string
		o    Options
		want ktx2.Texture
	}{
		{"defaults", Defaults(), ktx2.Texture{Format: 43, Width: 2, Height: 2, Levels: [][]byte{
			picture().Pix,
			// Red has the weight 128 of 638, green and grey 255 each. The sums of light are 0.252, 0.462 and 0.075.
			{137, 181, 77, 160},
		}}},
		{"no mips", with(func(o *Options) { o.Mips = false }), ktx2.Texture{Format: 43, Width: 2, Height: 2, Levels: [][]byte{picture().Pix}}},
		{"data", with(func(o *Options) { o.SRGB = false }), ktx2.Texture{Format: 37, Width: 2, Height: 2, Levels: [][]byte{
			picture().Pix, {89, 91, 94, 160},
		}}},
		{"red", with(func(o *Options) { o.Format = "r8" }), ktx2.Texture{Format: 9, Width: 2, Height: 2, Levels: [][]byte{
			{255, 0, 0, 100}, {89},
		}}},
		{"red and green", with(func(o *Options) { o.Format = "rg8" }), ktx2.Texture{Format: 16, Width: 2, Height: 2, Levels: [][]byte{
			{255, 0, 0, 255, 0, 0, 100, 110}, {89, 91},
		}}},
		{"flip", with(func(o *Options) { o.Flip, o.Mips = true, false }), ktx2.Texture{Format: 43, Width: 2, Height: 2, BottomUp: true, Levels: [][]byte{
			append(append([]byte{}, picture().Pix[8:]...), picture().Pix[:8]...),
		}}},
		{"premultiply", with(func(o *Options) { o.Premultiply, o.Mips = true, false }), ktx2.Texture{Format: 43, Width: 2, Height: 2, Premultiplied: true, Levels: [][]byte{
			{188, 0, 0, 128, 0, 255, 0, 255, 0, 0, 0, 0, 100, 110, 120, 255},
		}}},
		{"premultiply numbers", with(func(o *Options) { o.Premultiply, o.SRGB = true, false }), ktx2.Texture{Format: 37, Width: 2, Height: 2, Premultiplied: true, Levels: [][]byte{
			{128, 0, 0, 128, 0, 255, 0, 255, 0, 0, 0, 0, 100, 110, 120, 255},
			{57, 92, 30, 160}, // the means of the level above, which are (128+100)/4 and so on, within the rounding of two steps
		}}},
		{"max_size", with(func(o *Options) { o.MaxSize, o.SRGB = 1, false }), ktx2.Texture{Format: 37, Width: 1, Height: 1, Levels: [][]byte{{89, 91, 94, 160}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := picture()
			b, err := Encode(in, tt.o)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(in.Pix, picture().Pix) {
				t.Error("the image was changed")
			}
			got, err := ktx2.Decode(b)
			if err != nil {
				t.Fatal(err)
			}
			tt.want.Writer = "Kiln"
			if g, w := fmt.Sprint(*got), fmt.Sprint(tt.want); g != w {
				t.Errorf("got  %s\nwant %s", g, w)
			}

			tt.o.Container = "dds"
			b, err = Encode(in, tt.o)
			if err != nil {
				t.Fatal(err)
			}
			d, err := dds.Decode(b)
			if err != nil {
				t.Fatal(err)
			}
			if g, w := fmt.Sprint(d.Width, d.Height, d.Levels), fmt.Sprint(tt.want.Width, tt.want.Height, tt.want.Levels); g != w {
				t.Errorf("as DDS: got  %s\nwant %s", g, w)
			}
			if want := map[ktx2.Format]dds.Format{43: 29, 37: 28, 16: 49, 9: 61}[tt.want.Format]; d.Format != want {
				t.Errorf("DXGI format %d, want %d", d.Format, want)
			}
			if (d.Alpha == dds.AlphaPremultiplied) != tt.want.Premultiplied {
				t.Errorf("alpha mode %d", d.Alpha)
			}
		})
	}
}

func TestAlphaMode(t *testing.T) {
	for _, tt := range []struct {
		o    Options
		want dds.AlphaMode
	}{
		{Options{Format: "auto", SRGB: true}, 1}, {Options{Format: "auto", SRGB: true, Premultiply: true}, 2},
		{Options{Format: "rgba8"}, 4}, {Options{Format: "rgba8", Premultiply: true}, 2}, {Options{Format: "r8", SRGB: true}, 0},
	} {
		tt.o.Container = "dds"
		b, err := Encode(picture(), tt.o)
		if err != nil {
			t.Fatal(err)
		}
		if d, err := dds.Decode(b); err != nil || d.Alpha != tt.want {
			t.Errorf("%+v: %v, %v; want %d", tt.o, d.Alpha, err, tt.want)
		}
	}
}

// TestMaxSize checks that proportions are kept, and that mips begin at the new size.
func TestMaxSize(t *testing.T) {
	b, err := Encode(pixel.New(100, 30), with(func(o *Options) { o.MaxSize = 64 }))
	if err != nil {
		t.Fatal(err)
	}
	x, err := ktx2.Decode(b)
	if err != nil || x.Width != 64 || x.Height != 19 || len(x.Levels) != 7 {
		t.Errorf("%d x %d, %d levels, %v", x.Width, x.Height, len(x.Levels), err)
	}
}

func TestEncodeRefuses(t *testing.T) {
	for _, tt := range []struct {
		img  *pixel.Image
		o    Options
		want string
	}{
		{picture(), with(func(o *Options) { o.Format = "bc9" }), `format "bc9"`},
		{picture(), with(func(o *Options) { o.Container = "bmp" }), `container "bmp"`},
		{&pixel.Image{}, Defaults(), "0 x 0"},
		{pixel.New(16385, 1), Defaults(), "16385 x 1"},
		{&pixel.Image{Width: 2, Height: 2, Pix: make([]byte, 15)}, Defaults(), "15 bytes"},
	} {
		if _, err := Encode(tt.img, tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %q", err, tt.want)
		}
	}
}

func TestProblem(t *testing.T) {
	for fault, code := range map[pixel.Fault]string{pixel.Empty: "K1201", pixel.Unknown: "K1202", pixel.Truncated: "K1203",
		pixel.Damaged: "K1204", pixel.Unsupported: "K1205", pixel.TooLarge: "K1206"} {
		err := fmt.Errorf("reading: %w", &pixel.Error{Fault: fault, Format: "png"})
		p := Problem("a.png", "", err)
		if p.Code != code || p.Path != "a.png" || p.Hint == "" || p.Text != err.Error() || !errors.Is(p, err) {
			t.Errorf("fault %d: %+v", fault, p)
		}
	}
	if p := Problem("m.glb", "image 2", errors.New("odd")); p.Text != "image 2: odd" || p.Code != "K1204" {
		t.Errorf("%+v", p)
	}
}
