// Package header puts into words what a file holds that is in one of the formats Kiln writes.
package header

import (
	"fmt"
	"path"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/media/codec/atlas"
	"github.com/kiln-pipeline/kiln/internal/media/codec/dds"
	"github.com/kiln-pipeline/kiln/internal/media/codec/gltf"
	"github.com/kiln-pipeline/kiln/internal/media/codec/ktx2"
)

// MaxSize is the largest file that is worth reading for this, in bytes.
const MaxSize = 256 << 20

// Known tells by its name whether a file is of one of the formats.
func Known(file string) bool {
	switch strings.ToLower(path.Ext(file)) {
	case ".ktx2", ".dds", ".atlas", ".glb":
		return true
	}
	return false
}

// Describe says what a file holds; an error says that it is not what its name says.
func Describe(file string, data []byte) (string, error) {
	switch strings.ToLower(path.Ext(file)) {
	case ".ktx2":
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
	case ".dds":
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
	case ".atlas":
		t, err := atlas.Read(data)
		if err != nil {
			return "", err
		}
		return table(t), nil
	case ".glb":
		d, err := gltf.Read(data, gltf.DefaultLimits())
		if err != nil {
			return "", err
		}
		return model(d), nil
	}
	return "", nil
}

// side is the size in pixels; depth is 0 in two dimensions.
func side(w, h, depth int) string {
	if depth > 0 {
		return fmt.Sprintf("%d x %d x %d", w, h, depth)
	}
	return fmt.Sprintf("%d x %d", w, h)
}

// shape is what a texture is beside an image.
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

// model counts what is in a .glb, as far as there is any.
func model(d *gltf.Document) string {
	words := []string{"glTF binary"}
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
