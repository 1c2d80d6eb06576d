// Package preview turns the bytes of a product or a source into something that a web page can show: a picture, a table
// of frames, a tree.
//
// It knows no files and no jobs. What it returns is limited in pixels, nodes and bytes; the limits are checked before
// memory is allocated. Invalid bytes are an error, never a panic.
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

// Kind is a way to show a file.
type Kind string

// The kinds. The browser itself shows Sound, Font and Model, from the unchanged bytes.
const (
	None    Kind = ""
	Texture Kind = "texture" // .ktx2, .dds
	Picture Kind = "picture" // image formats
	Atlas   Kind = "atlas"   // a frame table
	Model   Kind = "model"   // .glb
	Sound   Kind = "sound"
	Font    Kind = "font"
	Data    Kind = "data"
	Text    Kind = "text"
)

// Channels selects the channels of a pixel to show.
type Channels string

// RGBA is the picture as it is. RGB is the picture without transparency. The others show one channel as shades of grey.
const (
	RGBA  Channels = "rgba"
	RGB   Channels = "rgb"
	Red   Channels = "r"
	Green Channels = "g"
	Blue  Channels = "b"
	Alpha Channels = "a"
)

// Look selects the part of a texture to show. The zero Look is the whole largest level.
type Look struct {
	Level, Layer, Face, Slice int
	Channels                  Channels // empty means RGBA
	Fit                       int      // largest side in pixels, 0 for no limit; if set, Level is the smallest level of at least this size
}

// Facts is the information in the header of a texture file.
type Facts struct {
	Container, Format string
	Width, Height     int
	Depth             int // number of slices, at least 1
	Layers, Faces     int // at least 1 each
	Levels            int
	Premultiplied     bool
}

// limits bounds the images that a page shows: 8192 x 8192 pixels with 8 bits a channel.
var limits = pixel.Limits{MaxSide: 8192, MaxBytes: 256 << 20}

// FactsOf reads the header of a texture file.
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

// Image decodes the selected part of a texture file or an image file. The name decides the format.
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

// levelFor returns the smallest level whose size is at least side.
func levelFor(f *texture.File, side int) int {
	level := 0
	for level+1 < f.Levels && max(f.Width, f.Height)>>(level+1) >= side {
		level++
	}
	return level
}

// show returns an image with the selected channels. It does not change img.
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

// PNG encodes an image as PNG. It prefers speed to size, because the file is viewed once.
func PNG(img *pixel.Image) ([]byte, error) {
	var b bytes.Buffer
	e := png.Encoder{CompressionLevel: png.BestSpeed}
	err := e.Encode(&b, &image.NRGBA{Pix: img.Pix, Stride: 4 * img.Width, Rect: image.Rect(0, 0, img.Width, img.Height)})
	return b.Bytes(), err
}

// Frames reads a frame table, in binary or text form.
func Frames(file string, data []byte) (*atlas.Table, error) {
	if strings.HasSuffix(file, ".json") {
		return atlas.ReadJSON(data)
	}
	return atlas.Read(data)
}
