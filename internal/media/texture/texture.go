// Package texture makes a texture file of pictures: size, orientation, mip levels, pixel format, container. It covers
// all steps from pixels to the bytes that a game loads, and serves every processor with pictures: of a file, an atlas
// page, an image in a model. It also reads texture files, made by any program.
//
// The steps: options.go has the settings, use.go the use of a picture, format.go the pixel formats; plan.go combines
// these, levels.go makes the pixels of each level, pack.go encodes them, container.go writes the file. open.go reads
// files.
//
// The same pictures and options give the same bytes on every machine, with any number of workers.
package texture

import (
	"runtime"
	"slices"

	"github.com/kiln-pipeline/kiln/internal/media/pixel"
)

// Type is the product type of a texture.
const Type = "texture"

// writer is the name of the writer in KTX2 files.
const writer = "Kiln"

// Shape is the arrangement of the images of a texture.
type Shape uint8

const (
	Flat   Shape = iota // one image
	Cube                // six square faces: +x, -x, +y, -y, +z, -z
	Array               // layers
	Volume              // slices, front to back
)

// Images are the source of a texture: pictures of one size, as many as the shape has.
type Images struct {
	Shape    Shape
	Pictures []*pixel.Picture
}

// Tools are resources for encoding. Only Draft and First affect the output.
type Tools struct {
	Workers int // number of goroutines; 0 means a number that fits the size: see [Workers]

	Draft bool // encode as fast as possible, whatever the quality is

	// First is nil, or the bytes of level 0, which were encoded by rows: see [Plan.ByRows].
	First []byte

	// Stop ends Encode early when it is closed. The result is then useless.
	Stop <-chan struct{}
}

// Workers returns all cores for many pixels, and one for few. Small pictures come in large numbers, and other jobs use
// the other cores.
func Workers(pixels int) int {
	if pixels <= 512*512 {
		return 1
	}
	return runtime.GOMAXPROCS(0)
}

// Encode encodes a texture file. It does not change the image.
func Encode(img *pixel.Image, o Options) ([]byte, error) {
	p, err := NewPlan(Images{Pictures: []*pixel.Picture{{Eight: img}}}, o)
	if err != nil {
		return nil, err
	}
	pieces, err := p.Encode(Tools{})
	return slices.Concat(pieces...), err
}
