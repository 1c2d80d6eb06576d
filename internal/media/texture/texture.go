// Package texture makes a texture file of pictures: size, orientation, mip levels, pixel
// format, container. It is the whole way from pixels to the bytes that a game loads, for every processor that
// has pictures in hand: a file, an atlas page, an image inside a model. It also reads such files again, of any maker.
//
// A picture's way: options.go says what is wanted, use.go what it is for, format.go what it is stored as; plan.go puts that
// together, levels.go makes the pixels of each level, pack.go codes them, container.go writes the file. open.go is the way back.
//
// Its rule: the same pictures and options give the same bytes on every machine, with any number of workers.
package texture

import (
	"runtime"

	"github.com/kiln-pipeline/kiln/internal/media/pixel"
)

// Type is the product type of a texture.
const Type = "texture"

// writer is what a KTX2 file names as its maker.
const writer = "Kiln"

// Shape is how the images of a texture lie to each other.
type Shape uint8

const (
	Flat   Shape = iota // one
	Cube                // six square faces: +x, -x, +y, -y, +z, -z
	Array               // layers
	Volume              // slices, front to back
)

// Images is what a texture is made of: pictures of one size, as many as its shape has.
type Images struct {
	Shape    Shape
	Pictures []*pixel.Picture
}

// Tools are what an encoder may use. None of it changes what comes out, but for Draft and First.
type Tools struct {
	Workers int // goroutines; 0 is as many as are good for the size: see [Workers]

	Draft bool // as quick as can be, whatever the quality says

	// First is nil or the bytes of level 0, which were made before, of rows: see [Plan.ByRows].
	First []byte

	// Stop, when it is closed, ends Encode early; what it gives is of no use then.
	Stop <-chan struct{}
}

// Workers are all cores for many pixels, and one for few: of small pictures there are many, and other jobs use the other cores.
func Workers(pixels int) int {
	if pixels <= 512*512 {
		return 1
	}
	return runtime.GOMAXPROCS(0)
}

// Encode makes the bytes of a texture file. The image is not changed.
func Encode(img *pixel.Image, o Options) ([]byte, error) {
	p, err := NewPlan(Images{Pictures: []*pixel.Picture{{Eight: img}}}, o)
	if err != nil {
		return nil, err
	}
	return p.Encode(Tools{})
}
