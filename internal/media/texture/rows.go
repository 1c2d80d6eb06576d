package texture

import "github.com/kiln-pipeline/kiln/internal/media/pixel"

// ByRows tells whether the blocks of level 0 can be made a few rows at a time, by EncodeRows, and are the same bytes then: nothing is done
// to a pixel that depends on pixels of other blocks. It is said of formats that have blocks; others are quick.
func (p *Plan) ByRows() bool {
	w, h := p.images.Pictures[0].Size()
	return p.format.side > 1 && !p.format.float && p.images.Shape == Flat && w == p.Width && h == p.Height &&
		p.o.Bleed == 0 && p.o.ColorKey == "" && !p.flips() && !(p.o.GreenUp && p.Use == "normal") && p.images.Pictures[0].Eight != nil
}

// RowsOf is what the height of rows must be a multiple of, but at the bottom of a picture, for a block of any format: 4, 6 and 8.
const RowsOf = 24

// EncodeRows makes the blocks of some rows of a picture, of which a plan by these options that is ByRows chose a format.
func EncodeRows(rows *pixel.Image, format string, o Options, t Tools) ([]byte, error) {
	f, err := formatNamed(format)
	if err != nil {
		return nil, err
	}
	p := newPlan(Images{}, o)
	p.setFormat(f)
	return p.code(rows, t)
}
