// Package header describes in words what a file contains. It has one function for each group of formats.
package header

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/image/font/sfnt"

	"github.com/kiln-pipeline/kiln/internal/media/codec/atlas"
	"github.com/kiln-pipeline/kiln/internal/media/codec/dds"
	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
	"github.com/kiln-pipeline/kiln/internal/media/codec/gltf"
	"github.com/kiln-pipeline/kiln/internal/media/codec/ktx2"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
)

// MaxSize is the size in bytes above which files are not read for a description.
const MaxSize = 256 << 20

// KTX2 describes a KTX 2.0 texture. Like all functions here, it returns an error if the bytes are not of the format.
func KTX2(_ string, data []byte) (string, error) {
	t, n, err := ktx2.DecodeConfig(data)
	if err != nil {
		return "", err
	}
	words := append([]string{"KTX2", side(t.Width, t.Height, t.Depth), t.Format.String()}, shape(t.Cube, t.Layers)...)
	words = append(words, levels(n))
	if t.Zstd {
		words = append(words, "Zstandard")
	}
	if t.Premultiplied {
		words = append(words, "premultiplied")
	}
	if t.BottomUp {
		words = append(words, "bottom row first")
	}
	if t.Swizzle != "" {
		words = append(words, "sampled as "+t.Swizzle)
	}
	return strings.Join(words, ", "), nil
}

// DDS describes a DirectDraw Surface texture.
func DDS(_ string, data []byte) (string, error) {
	t, err := dds.Decode(data)
	if err != nil {
		return "", err
	}
	words := append([]string{"DDS", side(t.Width, t.Height, t.Depth), t.Format.String()}, shape(t.Cube, t.Layers)...)
	words = append(words, levels(len(t.Levels)))
	if t.Alpha == dds.AlphaPremultiplied {
		words = append(words, "premultiplied")
	}
	return strings.Join(words, ", "), nil
}

// Atlas describes a frame table of Kiln, or an atlas in the text format of libGDX and Spine.
func Atlas(name string, data []byte) (string, error) {
	if !bytes.HasPrefix(data, []byte("KATL")) && utf8.Valid(data) && bytes.ContainsRune(data, '\n') {
		return Text(name, data)
	}
	t, err := atlas.Read(data)
	if err != nil {
		return "", err
	}
	return table(t), nil
}

// GLTF describes a glTF model, in text or binary form.
func GLTF(_ string, data []byte) (string, error) {
	d, err := gltf.Read(data, gltf.DefaultLimits())
	if err != nil {
		return "", err
	}
	return model(d, bytes.HasPrefix(data, []byte("glTF"))), nil
}

// Picture describes an image file from its header.
func Picture(name string, data []byte) (string, error) {
	c, err := pixel.DecodeConfig(name, data)
	if err != nil {
		return "", err
	}
	words := []string{pixel.FormatName(c.Format), side(c.Width, c.Height, 0)}
	switch {
	case c.HDR:
		words = append(words, "linear light")
	case c.Deep:
		words = append(words, "16 bits a channel")
	}
	if n := pixel.Frames(name, data); n > 1 {
		words = append(words, count(n, "frame"))
	}
	if n := pixel.LayersIn(name, data); n > 0 {
		words = append(words, count(n, "layer"))
	}
	return strings.Join(words, ", "), nil
}

// Data returns a function that describes a document. parse reads the document.
func Data(format string, parse func([]byte) (document.Value, error)) func(string, []byte) (string, error) {
	return func(_ string, data []byte) (string, error) {
		v, err := parse(data)
		if err != nil {
			return "", err
		}
		switch v := v.V.(type) {
		case document.Object:
			return format + ", an object of " + count(len(v), "member"), nil
		case []document.Value:
			return format + ", a list of " + count(len(v), "value"), nil
		}
		return format + ", one value", nil
	}
}

// Text describes a text file.
func Text(_ string, data []byte) (string, error) {
	if !utf8.Valid(data) {
		return "", errors.New("it is not text in UTF-8")
	}
	lines := bytes.Count(data, []byte("\n"))
	if len(data) > 0 && data[len(data)-1] != '\n' {
		lines++
	}
	return "text, " + count(lines, "line"), nil
}

// Font describes an OpenType or TrueType font.
func Font(_ string, data []byte) (string, error) {
	f, err := sfnt.Parse(data)
	if err != nil {
		return "", err
	}
	words := []string{"font"}
	if name, err := f.Name(nil, sfnt.NameIDFull); err == nil && name != "" {
		words = append(words, name)
	}
	return strings.Join(append(words, count(f.NumGlyphs(), "glyph")), ", "), nil
}

// side formats a size in pixels. depth is 0 for a two-dimensional texture.
func side(w, h, depth int) string {
	if depth > 0 {
		return fmt.Sprintf("%d x %d x %d", w, h, depth)
	}
	return fmt.Sprintf("%d x %d", w, h)
}

// shape describes a texture that is not a plain 2D image.
func shape(cube bool, layers int) (words []string) {
	if cube {
		words = append(words, "cube")
	}
	if layers > 0 {
		words = append(words, fmt.Sprintf("array of %d", layers))
	}
	return words
}

func levels(n int) string {
	if n == 1 {
		return "no mips"
	}
	return fmt.Sprintf("%d mip levels", n)
}

func table(t *atlas.Table) string {
	words := []string{"atlas", count(len(t.Frames), "frame"), count(len(t.Pages), "page")}
	for i, p := range t.Pages {
		if i == 4 {
			words = append(words, "and more")
			break
		}
		words = append(words, fmt.Sprintf("%s %s", p.File, side(p.Width, p.Height, 0)))
	}
	return strings.Join(words, ", ")
}

// model lists the counts of what a model contains. Counts of 0 are left out.
func model(d *gltf.Document, binary bool) string {
	words := []string{"glTF text"}
	if binary {
		words[0] = "glTF binary"
	}
	for _, kind := range []string{"scene", "node", "mesh", "material", "texture", "image", "skin", "animation", "camera"} {
		name := kind + "s"
		if kind == "mesh" {
			name = "meshes"
		}
		if n := len(d.Root.Array(name)); n == 1 {
			words = append(words, "1 "+kind)
		} else if n > 1 {
			words = append(words, fmt.Sprintf("%d %s", n, name))
		}
	}
	if len(d.BIN) > 0 {
		words = append(words, fmt.Sprintf("%d bytes of geometry and animation", len(d.BIN)))
	}
	return strings.Join(words, ", ")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
