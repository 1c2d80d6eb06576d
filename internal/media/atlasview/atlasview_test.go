package atlasview

import (
	"bytes"
	"flag"
	"image/color"
	"image/png"
	"os"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/atlas"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
)

var update = flag.Bool("update", false, "write the goldens")

func example() (*atlas.Table, *pixel.Image) {
	t := &atlas.Table{
		Pages: []atlas.Page{{File: "ui.0.ktx2", Width: 64, Height: 32}},
		Frames: []atlas.Frame{
			{Name: "a", X: 2, Y: 2, W: 20, H: 10, SourceW: 20, SourceH: 10},
			{Name: "b", X: 2, Y: 2, W: 20, H: 10, SourceW: 20, SourceH: 10},
			{Name: "panel", X: 24, Y: 2, W: 30, H: 20, SourceW: 30, SourceH: 20, Patch: &atlas.Patch{Split: atlas.Sides{8, 8, 6, 6}}},
			{Name: "turned", X: 2, Y: 14, W: 16, H: 20, SourceW: 16, SourceH: 20, Turn: atlas.Right},
		},
	}
	img := pixel.New(64, 32)
	for i := 0; i < len(img.Pix); i += 4 {
		x, y := i/4%64, i/4/64
		copy(img.Pix[i:], []byte{byte(4 * x), byte(8 * y), 120, byte(255 * ((x / 4) % 2))})
	}
	return t, img
}

func TestMeasure(t *testing.T) {
	table, _ := example()
	// The frames are 20 x 10, 30 x 20, and 20 x 16 (the rotated one).
	if s := Measure(table, 0); s != (Stats{Frames: 4, Places: 3, Covered: 200 + 600 + 320, Area: 2048}) || s.Fill() != 1120./2048 {
		t.Errorf("%+v", s)
	}
}

func TestDraw(t *testing.T) {
	table, img := example()
	got := Draw(table, 0, img)
	var b bytes.Buffer
	if err := png.Encode(&b, got); err != nil {
		t.Fatal(err)
	}
	const file = "testdata/page.png"
	if *update {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if got.Bounds() != want.Bounds() {
		t.Fatalf("%v, want %v", got.Bounds(), want.Bounds())
	}
	for y := range got.Rect.Dy() {
		for x := range got.Rect.Dx() {
			if w := color.NRGBAModel.Convert(want.At(x, y)); got.NRGBAAt(x, y) != w {
				t.Fatalf("at %d,%d: %v, want %v; look at the difference, then run with -update", x, y, got.NRGBAAt(x, y), w)
			}
		}
	}
	// The page is enlarged 8 times. The middle of pixel 60,30 is unused area. The middle of pixel 26,4 has its own
	// colour, because it is opaque.
	at := func(px, py int) color.NRGBA { return got.NRGBAAt(margin+8*px+4, barHeight+margin+8*py+4) }
	if c := at(60, 30); c != waste && c != stripe {
		t.Errorf("waste is %v", c)
	}
	if c := at(30, 12); c != (color.NRGBA{120, 96, 120, 255}) {
		t.Errorf("content is %v", c)
	}
	// Draw also works without pixels, and with an empty table.
	Draw(table, 0, nil)
	Draw(&atlas.Table{Pages: []atlas.Page{{File: "x", Width: 1, Height: 1}}}, 0, nil)
}
