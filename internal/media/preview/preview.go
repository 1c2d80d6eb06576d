// Package preview turns the bytes of a product or a source into what a page can show: a picture, a table of frames, a tree.
//
// Its rules: it knows no files and no jobs; what is shown is bounded, in pixels, in nodes, in bytes, and the bounds are
// checked before memory is taken; bytes that are not what their name says are an error, never a panic.
package preview

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/media/codec/atlas"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/internal/media/texture"
)

// Kind is a way to show something.
type Kind string

// The kinds. Sound, Font and Model are shown by the browser itself, of the bytes as they are.
const (
	None    Kind = ""
	Texture Kind = "texture" // .ktx2, .dds
	Picture Kind = "picture" // what image programs write
	Atlas   Kind = "atlas"   // a frame table
	Model   Kind = "model"   // .glb
	Sound   Kind = "sound"
	Font    Kind = "font"
	Data    Kind = "data"
	Text    Kind = "text"
)

// Channels says what of a pixel is shown.
type Channels string

// RGBA is the picture as it is, RGB the picture without its transparency; the others are one channel in shades of grey.
const (
	RGBA  Channels = "rgba"
	RGB   Channels = "rgb"
	Red   Channels = "r"
	Green Channels = "g"
	Blue  Channels = "b"
	Alpha Channels = "a"
)

// Look says what of a texture is shown. The zero Look is all of the largest level.
type Look struct {
	Level, Layer, Face, Slice int
	Channels                  Channels // empty is RGBA
	Fit                       int      // largest side in pixels, 0 as it is; with it, Level is the smallest that is as large as this
}

// Facts is what a texture file says of itself.
type Facts struct {
	Container, Format string
	Width, Height     int
	Depth             int // slices; at least 1
	Layers, Faces     int // at least 1
	Levels            int
	Premultiplied     bool
}

// limits are for what a page shows: 8192 x 8192 in 8 bits a channel.
var limits = pixel.Limits{MaxSide: 8192, MaxBytes: 256 << 20}

// FactsOf reads the head of a texture file.
func FactsOf(data []byte) (Facts, error) {
	f, err := texture.Open(data, limits)
	if err != nil {
		return Facts{}, err
	}
	return factsOf(f), nil
}

func factsOf(f *texture.File) Facts {
	return Facts{f.Container, f.Format, f.Width, f.Height, max(1, f.Depth), max(1, f.Layers), max(1, f.Faces), f.Levels, f.Premultiplied}
}

// Image decodes what is looked at in a texture file, or in an image file. The name tells formats apart.
func Image(name string, data []byte, l Look) (*pixel.Image, error) {
	var p *pixel.Picture
	if texture.IsFile(data) {
		f, err := texture.Open(data, limits)
		if err != nil {
			return nil, err
		}
		if l.Fit > 0 {
			l.Level = levelFor(f, l.Fit)
		}
		if p, err = f.Picture(l.Level, l.Layer, l.Face, l.Slice); err != nil {
			return nil, err
		}
	} else {
		var err error
		if p, err = pixel.DecodePicture(name, data, limits); err != nil {
			return nil, err
		}
	}
	img := p.Bits(true)
	if w, h := pixel.Fit(img.Width, img.Height, l.Fit); l.Fit > 0 && (w < img.Width || h < img.Height) {
		img = pixel.Filter{SRGB: true, Weighted: true}.Resize(img, w, h)
	}
	return show(img, l.Channels)
}

// levelFor is the smallest level that is as large as side.
func levelFor(f *texture.File, side int) int {
	level := 0
	for level+1 < f.Levels && max(f.Width, f.Height)>>(level+1) >= side {
		level++
	}
	return level
}

// show is an image of what is asked for of each pixel. img stays as it is.
func show(img *pixel.Image, c Channels) (*pixel.Image, error) {
	from := strings.Index(string(RGBA), string(c))
	switch {
	case c == "" || c == RGBA:
		return img, nil
	case c != RGB && (len(c) != 1 || from < 0):
		return nil, fmt.Errorf("there are no channels %q", c)
	}
	out := pixel.New(img.Width, img.Height)
	for i := 0; i < len(img.Pix); i += 4 {
		if c == RGB {
			copy(out.Pix[i:i+3], img.Pix[i:i+3])
		} else {
			v := img.Pix[i+from]
			out.Pix[i], out.Pix[i+1], out.Pix[i+2] = v, v, v
		}
		out.Pix[i+3] = 255
	}
	return out, nil
}

// PNG is an image as a file. It is made to be looked at once, so quickly rather than small.
func PNG(img *pixel.Image) ([]byte, error) {
	var b bytes.Buffer
	e := png.Encoder{CompressionLevel: png.BestSpeed}
	err := e.Encode(&b, &image.NRGBA{Pix: img.Pix, Stride: 4 * img.Width, Rect: image.Rect(0, 0, img.Width, img.Height)})
	return b.Bytes(), err
}

// Frames reads a frame table, in either of its forms.
func Frames(file string, data []byte) (*atlas.Table, error) {
	if strings.HasSuffix(file, ".json") {
		return atlas.ReadJSON(data)
	}
	return atlas.Read(data)
}
