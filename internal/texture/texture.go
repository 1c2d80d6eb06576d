// Package texture makes a texture file of an image: size, orientation, mip levels, pixel
// format, container. It is the whole way from pixels to the bytes that a game loads, for every processor that
// has an image in hand: a picture, an atlas page, an image inside a model.
//
// Its rule: the same image and options give the same bytes on every machine.
package texture

import (
	"fmt"

	"github.com/kiln-pipeline/kiln/internal/codec/dds"
	"github.com/kiln-pipeline/kiln/internal/codec/ktx2"
	"github.com/kiln-pipeline/kiln/internal/pixel"
)

// Type is the product type of a texture.
const Type = "texture"

// writer is what a KTX2 file names as its maker.
const writer = "Kiln"

// Options say what texture to make. They are the settings of the texture processor, and may be
// a field of another processor's.
type Options struct {
	Format      string `toml:"format" values:"auto,rgba8,r8,rg8" doc:"Pixel format. auto is rgba8; r8 and rg8 keep red, or red and green, as data."`
	Container   string `toml:"container" values:"ktx2,dds" doc:"File format of the product."`
	Mips        bool   `toml:"mips" doc:"Make mip levels down to 1 x 1."`
	SRGB        bool   `toml:"srgb" doc:"Pixels are colours, sRGB-encoded. Turn it off for normal maps, masks and other data."`
	MaxSize     int    `toml:"max_size" min:"0" max:"16384" doc:"Largest side, in pixels; larger images are scaled down, keeping their proportions. 0 keeps the size."`
	Premultiply bool   `toml:"premultiply" doc:"Multiply colours by alpha."`
	Flip        bool   `toml:"flip" doc:"Store the bottom row first, as OpenGL counts."`
}

// Defaults is the options of a texture that nothing was said about.
func Defaults() Options {
	return Options{Format: "auto", Container: "ktx2", Mips: true, SRGB: true}
}

// Extension is that of the container, with the dot.
func (o Options) Extension() string { return "." + o.Container }

// layout is a pixel format in the words of both containers.
type layout struct {
	channels int
	color    bool // red, green and blue are a colour, and alpha is alpha
	ktx2     ktx2.Format
	dds      dds.Format
}

func (o Options) layout() (layout, error) {
	switch o.Format {
	case "auto", "rgba8":
		if o.SRGB {
			return layout{4, true, ktx2.RGBA8SRGB, dds.RGBA8SRGB}, nil
		}
		// Without sRGB it is data, unless something is to be multiplied by alpha: then alpha is alpha.
		return layout{4, o.Premultiply, ktx2.RGBA8, dds.RGBA8}, nil
	case "r8":
		return layout{1, false, ktx2.R8, dds.R8}, nil
	case "rg8":
		return layout{2, false, ktx2.RG8, dds.RG8}, nil
	}
	return layout{}, fmt.Errorf("texture format %q is unknown", o.Format)
}

// Encode makes the bytes of a texture file. The image is not changed.
func Encode(img *pixel.Image, o Options) ([]byte, error) {
	l, err := o.layout()
	if err != nil {
		return nil, err
	}
	if limit := pixel.DefaultLimits().MaxSide; img.Width < 1 || img.Height < 1 || max(img.Width, img.Height) > limit {
		return nil, fmt.Errorf("an image of %d x %d pixels cannot be a texture: sides are 1 to %d", img.Width, img.Height, limit)
	}
	if len(img.Pix) != 4*img.Width*img.Height {
		return nil, fmt.Errorf("%d bytes are no image of %d x %d pixels", len(img.Pix), img.Width, img.Height)
	}
	filter := pixel.Filter{SRGB: l.color && o.SRGB, Weighted: l.color}
	width, height := pixel.Fit(img.Width, img.Height, o.MaxSize)
	mips := []*pixel.Image{filter.Resize(img, width, height)}
	if o.Mips {
		mips = filter.Mips(mips[0])
	}
	levels := make([][]byte, len(mips))
	for n, m := range mips {
		if o.Premultiply && l.color {
			m = m.Premultiplied(o.SRGB)
		}
		if o.Flip {
			m = m.Flipped()
		}
		levels[n] = m.Channels(l.channels)
	}
	premultiplied := o.Premultiply && l.color
	switch o.Container {
	case "ktx2":
		return ktx2.Encode(&ktx2.Texture{Format: l.ktx2, Width: width, Height: height, Levels: levels,
			Premultiplied: premultiplied, BottomUp: o.Flip, Writer: writer})
	case "dds":
		return dds.Encode(&dds.Texture{Format: l.dds, Width: width, Height: height, Levels: levels, Alpha: l.alpha(premultiplied)})
	}
	return nil, fmt.Errorf("texture container %q is unknown", o.Container)
}

func (l layout) alpha(premultiplied bool) dds.AlphaMode {
	switch {
	case premultiplied:
		return dds.AlphaPremultiplied
	case l.color:
		return dds.AlphaStraight
	case l.channels == 4:
		return dds.AlphaCustom
	}
	return dds.AlphaUnknown
}
