package texture

import "github.com/kiln-pipeline/kiln/internal/media/pixel"

// ByRows reports whether EncodeRows can encode level 0 a few rows at a time with the same result: no pixel depends on
// pixels of other blocks. It is false for formats without blocks, which are fast.
func (p *Plan) ByRows() bool {
	w, h := p.images.Pictures[0].Size()
	return p.format.side > 1 && !p.format.float && p.images.Shape == Flat && w == p.Width && h == p.Height &&
		p.o.Bleed == 0 && p.o.ColorKey == "" && !p.flips() && !(p.o.GreenUp && p.Use == "normal") && p.images.Pictures[0].Eight != nil
}

// RowsOf is a multiple of the block heights 4, 6 and 8. Each piece except the last must have a multiple of RowsOf rows.
const RowsOf = 24

// EncodeRows encodes some rows of a picture. format is that of a plan with the same options for which ByRows is true.
func EncodeRows(rows *pixel.Image, format string, o Options, t Tools) ([]byte, error) {
	f, err := formatNamed(format)
	if err != nil {
		return nil, err
	}
	p := newPlan(Images{}, o)
	p.setFormat(f)
	return p.code(rows, t)
}
