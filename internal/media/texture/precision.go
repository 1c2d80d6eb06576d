package texture

import (
	"math"

	"github.com/kiln-pipeline/kiln/internal/media/codec/hdrpack"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
)

// coarser reports whether numbers of data that have more than 8 bits would not come back from a game's texture as they are
// in the file. Formats that compress with loss are asked for by name, and do not count.
func (p *Plan) coarser() bool {
	if p.Use != "data" || p.format.side > 1 {
		return false
	}
	for _, pic := range p.images.Pictures {
		if pic.Float != nil && p.loses(pic) {
			return true
		}
	}
	return false
}

// loses compares the numbers of a picture with what its format makes of them, row by row.
func (p *Plan) loses(pic *pixel.Picture) bool {
	m := pic.Float
	bits := func(v, top float32) float32 { return float32(math.Floor(float64(min(max(v, 0), 1)*top) + 0.5)) }
	eight := !p.format.linear() || p.o.ColorKey != "" || p.o.Bleed > 0 // both work on 8 bits
	for y := range m.Height {
		row := m.Pix[4*m.Width*y:][:4*m.Width]
		var halves []float32
		switch {
		case eight || p.format.deep:
		case p.format.name == "rgba16f":
			halves = hdrpack.DecodeRGBA16F(hdrpack.EncodeRGBA16F(row))
		case p.format.name == "rgb9e5":
			halves = hdrpack.DecodeRGB9E5(hdrpack.EncodeRGB9E5(row))
		}
		for i, v := range row {
			if i%4 >= p.format.channels {
				continue
			}
			got := bits(v, 255) / 255
			switch {
			case halves != nil:
				got = halves[i]
			case !eight:
				got = bits(v, 65535) / 65535
			}
			if pic.HDR && got != v || !pic.HDR && bits(got, 65535) != bits(v, 65535) {
				return true
			}
		}
	}
	return false
}
