package main

import (
	"math"

	"github.com/kiln-pipeline/kiln/internal/media/codec/astc"
	"github.com/kiln-pipeline/kiln/internal/media/codec/bcn"
	"github.com/kiln-pipeline/kiln/internal/media/codec/block"
	"github.com/kiln-pipeline/kiln/internal/media/codec/bptc"
	"github.com/kiln-pipeline/kiln/internal/media/codec/etc2"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
)

// codec is a format with its encoder and decoder.
type codec struct {
	name     string
	peer     string // peer program with this format, or empty
	arg      string // the peer's name for it
	channels int    // number of channels that are compared, from red on
	targets  [3]target
	encode   func(p *picture, o block.Options) ([]byte, error)
	decode   func(data []byte, width, height int) ([]byte, error)
}

var codecs = []codec{
	ofBCn("BC1", bcn.BC1, 3, target{db: 35, seconds: 0.25}),
	ofBCn("BC3", bcn.BC3, 4, target{}),
	ofBCn("BC4", bcn.BC4, 1, target{}),
	ofBCn("BC5", bcn.BC5, 2, target{db: 45, seconds: 0.15}),
	{
		name: "BC6H", channels: 3,
		encode: func(p *picture, o block.Options) ([]byte, error) {
			return bptc.EncodeBC6H(p.light.Pix, p.light.Width, p.light.Height, false, o)
		},
		decode: func(data []byte, width, height int) ([]byte, error) {
			pix, err := bptc.DecodeBC6H(data, width, height, false)
			if err != nil {
				return nil, err
			}
			return (&pixel.Float{Width: width, Height: height, Pix: pix}).Encoded().Pix, nil
		},
	},
	{
		name: "BC7", channels: 4, targets: [3]target{{41.8, 0.5}, {42.9, 2}},
		encode: func(p *picture, o block.Options) ([]byte, error) {
			return bptc.EncodeBC7(p.image.Pix, p.image.Width, p.image.Height, o)
		},
		decode: bptc.DecodeBC7,
	},
	ofETC2("ETC2 RGB8", etc2.RGB8, 3, target{}),
	ofETC2("ETC2 RGBA8", etc2.RGBA8, 4, target{db: 36, seconds: 1.5}),
	ofETC2("EAC R11", etc2.R11, 1, target{}),
	ofETC2("EAC RG11", etc2.RG11, 2, target{}),
	ofASTC(astc.Block4x4, target{db: 43, seconds: 1.5}),
	ofASTC(astc.Block6x6, target{db: 39, seconds: 1.7}),
	ofASTC(astc.Block8x8, target{db: 36, seconds: 1.7}),
}

func ofBCn(name string, f bcn.Format, channels int, normal target) codec {
	c := codec{name: name, channels: channels, targets: [3]target{block.Normal: normal}}
	switch f {
	case bcn.BC1:
		c.peer, c.arg = "libsquish", "bc1"
	case bcn.BC3:
		c.peer, c.arg = "libsquish", "bc3"
	}
	c.encode = func(p *picture, o block.Options) ([]byte, error) {
		return bcn.Encode(f, p.image.Pix, p.image.Width, p.image.Height, o)
	}
	c.decode = func(data []byte, width, height int) ([]byte, error) { return bcn.Decode(f, data, width, height) }
	return c
}

func ofETC2(name string, f etc2.Format, channels int, normal target) codec {
	return codec{
		name: name, channels: channels, targets: [3]target{block.Normal: normal},
		encode: func(p *picture, o block.Options) ([]byte, error) {
			return etc2.Encode(f, p.image.Pix, p.image.Width, p.image.Height, o)
		},
		decode: func(data []byte, width, height int) ([]byte, error) { return etc2.Decode(f, data, width, height) },
	}
}

func ofASTC(f astc.Footprint, normal target) codec {
	return codec{
		name: "ASTC " + f.String(), peer: "astcenc", arg: f.String(), channels: 4, targets: [3]target{block.Normal: normal},
		encode: func(p *picture, o block.Options) ([]byte, error) {
			return astc.Encode(f, p.image.Pix, p.image.Width, p.image.Height, false, o)
		},
		decode: func(data []byte, width, height int) ([]byte, error) {
			return astc.Decode(f, data, width, height, false)
		},
	}
}

func squaredError(got, want []byte, channels int) (sum float64) {
	for i := 0; i < len(want); i += 4 {
		for c := i; c < i+channels; c++ {
			d := float64(got[c]) - float64(want[c])
			sum += d * d
		}
	}
	return sum
}

// decibels returns the PSNR for a sum of squares over a number of 8-bit values.
func decibels(squares, values float64) float64 { return 10 * math.Log10(255*255*values/squares) }
