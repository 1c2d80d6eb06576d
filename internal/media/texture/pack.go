package texture

import (
	"fmt"

	"github.com/kiln-pipeline/kiln/internal/media/codec/astc"
	"github.com/kiln-pipeline/kiln/internal/media/codec/bcn"
	"github.com/kiln-pipeline/kiln/internal/media/codec/block"
	"github.com/kiln-pipeline/kiln/internal/media/codec/bptc"
	"github.com/kiln-pipeline/kiln/internal/media/codec/etc2"
	"github.com/kiln-pipeline/kiln/internal/media/codec/hdrpack"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
)

// pack encodes one image in the plan's format.
func (p *Plan) pack(m *pixel.Image, t Tools) ([]byte, error) {
	o := block.Options{Quality: p.o.quality(), Workers: t.Workers, Stop: t.Stop}
	f := p.format
	if t.Draft {
		if o.Quality = block.Fast; f.name == "bc7" {
			o.Quality = block.Draft
		}
	}
	switch {
	case f.side == 1:
		return m.Channels(f.channels), nil
	case f.family == "astc":
		return astc.Encode(astc.Footprint{Width: f.side, Height: f.side}, m.Pix, m.Width, m.Height, p.SRGB, o)
	case f.name == "bc7":
		return bptc.EncodeBC7(m.Pix, m.Width, m.Height, o)
	case f.family == "bc":
		return bcn.Encode(bcnFormats[f.name], m.Pix, m.Width, m.Height, o)
	case f.family == "etc2":
		return etc2.Encode(etc2Formats[f.name], m.Pix, m.Width, m.Height, o)
	}
	return nil, fmt.Errorf("format %q does not hold 8 bits a channel", f.name)
}

var bcnFormats = map[string]bcn.Format{"bc1": bcn.BC1, "bc1a": bcn.BC1A, "bc3": bcn.BC3, "bc4": bcn.BC4, "bc5": bcn.BC5}

var etc2Formats = map[string]etc2.Format{"etc2": etc2.RGB8, "etc2a": etc2.RGBA8, "eacr11": etc2.R11, "eacrg11": etc2.RG11}

// packLight encodes one image of light in the plan's format.
func (p *Plan) packLight(m *pixel.Float, t Tools) ([]byte, error) {
	if p.format.deep {
		return m.Sixteens(p.format.channels), nil
	}
	switch p.format.name {
	case "rgba16f":
		return hdrpack.EncodeRGBA16F(m.Pix), nil
	case "rgb9e5":
		return hdrpack.EncodeRGB9E5(m.Pix), nil
	case "bc6h":
		return bptc.EncodeBC6H(m.Pix, m.Width, m.Height, false, block.Options{Quality: p.o.quality(), Workers: t.Workers, Stop: t.Stop})
	}
	return nil, fmt.Errorf("format %q does not hold light", p.format.name)
}
