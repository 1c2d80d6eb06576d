package texture

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/pixel"
)

// TestRows checks that the blocks of a picture made in pieces are those of the whole picture, for any use and its
// spellings.
func TestRows(t *testing.T) {
	rnd := rand.New(rand.NewPCG(6, 1))
	m := pixel.New(40, 2*RowsOf+10)
	for i := range m.Pix {
		m.Pix[i] = byte(rnd.UintN(256))
	}
	bands := func(o Options, format string) (all []byte) {
		for y := 0; y < m.Height; y += RowsOf {
			rows := min(RowsOf, m.Height-y)
			blocks, err := EncodeRows(&pixel.Image{Width: m.Width, Height: rows, Pix: m.Pix[4*m.Width*y:][:4*m.Width*rows]}, format, o, Tools{Workers: 1})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, blocks...)
		}
		return all
	}
	for _, use := range []string{"", "auto", "color", "ui", "normal", "mask", "data"} {
		for _, format := range []string{"auto", "bc1", "bc3", "bc7", "etc2a", "astc4x4", "astc8x8"} {
			for _, premultiply := range []bool{false, true} {
				o := with(func(o *Options) {
					o.Use, o.Format, o.Family, o.Quality, o.Premultiply, o.Mips = use, format, "bc", "fast", premultiply, false
				})
				p, err := NewPlan(Images{Pictures: []*pixel.Picture{{Eight: m}}}, o)
				if err != nil {
					t.Fatal(err)
				}
				if p.Format == "rgba8" && use == "data" { // a format without blocks
					continue
				}
				if !p.ByRows() {
					t.Fatalf("use %q, format %s is not by rows", use, p.Format)
				}
				whole, err := p.Encode(Tools{})
				if err != nil {
					t.Fatal(err)
				}
				joined, err := p.Encode(Tools{First: bands(o, p.Format)})
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(slices.Concat(whole...), slices.Concat(joined...)) {
					t.Errorf("use %q, format %s, premultiplied %v: rows make other bytes", use, p.Format, premultiply)
				}
			}
		}
	}
}
