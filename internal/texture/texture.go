// Package texture makes a texture file of an image: size, orientation, mip levels, pixel
// format, container. It is the whole way from pixels to the bytes that a game loads, for every processor that
// has an image in hand: a picture, an atlas page, an image inside a model.
//
// Its rule: the same image and options give the same bytes on every machine.
package texture

import (
	"errors"

	"github.com/kiln-pipeline/kiln/internal/pixel"
	"github.com/kiln-pipeline/kiln/processor"
)

// Type is the product type of a texture.
const Type = "texture"

// Options say what texture to make. It is a settings struct of the texture processor, and may be
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

// Encode makes the bytes of a texture file. The image is not changed.
func Encode(img *pixel.Image, o Options) ([]byte, error) {
	return nil, errors.New("not yet")
}

// Problem puts an error of pixel.Decode into words for people. The path is that of the image's
// source file, or empty for the asset's own; what names the image if it is only a part of the file ("image 2").
func Problem(path, what string, err error) *processor.Problem {
	return &processor.Problem{Path: path, Text: err.Error(), Err: err}
}
