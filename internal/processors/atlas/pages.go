package atlas

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	table "github.com/kiln-pipeline/kiln/internal/codec/atlas"
	"github.com/kiln-pipeline/kiln/internal/packing"
	"github.com/kiln-pipeline/kiln/internal/pixel"
	"github.com/kiln-pipeline/kiln/processor"
)

// pageName is the name of a page's product.
func pageName(i int) string { return strconv.Itoa(i) }

// table says where everything is.
func (sh sheet) table(asset processor.Asset, s *Settings, pages []packing.Size) *table.Table {
	t := &table.Table{}
	base := path.Base(strings.TrimSuffix(asset.ID, "/"))
	extension := s.options().Extension()
	for i, size := range pages {
		t.Pages = append(t.Pages, table.Page{
			File:  base + "." + pageName(i) + extension,
			SubID: processor.SubID(pageName(i)),
			Width: size.W, Height: size.H,
		})
	}
	for _, m := range sh.images {
		at := m.part.place
		t.Frames = append(t.Frames, table.Frame{
			Name: m.name, Page: at.Page,
			X: at.X, Y: at.Y, W: m.part.pixels.Width, H: m.part.pixels.Height,
			OffsetX: m.offsetX, OffsetY: m.offsetY, SourceW: m.width, SourceH: m.height,
		})
	}
	slices.SortFunc(t.Frames, func(a, b table.Frame) int { return cmp.Compare(a.Name, b.Name) })
	return t
}

// draw paints one page.
func (sh sheet) draw(size packing.Size, page, extrude int) *pixel.Image {
	img := pixel.New(size.W, size.H)
	for _, p := range sh.parts {
		if p.place.Page == page {
			drawPart(img, p, extrude)
		}
	}
	return img
}

// drawPart copies a part to its place, and repeats its edge pixels around it.
func drawPart(page *pixel.Image, p *part, extrude int) {
	src := p.pixels
	for y := -extrude; y < src.Height+extrude; y++ {
		row := src.Pix[clamp(y, src.Height)*4*src.Width:][:4*src.Width]
		to := page.Pix[4*((p.place.Y+y)*page.Width+p.place.X-extrude):]
		for x := range extrude {
			copy(to[4*x:], row[:4])
			copy(to[4*(extrude+src.Width+x):], row[len(row)-4:])
		}
		copy(to[4*extrude:], row)
	}
}

// clamp moves i into [0, n).
func clamp(i, n int) int { return max(0, min(i, n-1)) }
