package role

import (
	"bytes"
	"encoding/binary"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/media/codec/gltf"
	"github.com/kiln-pipeline/kiln/processor"
)

// Purpose is what the materials of a model use an image for.
type Purpose int

const (
	Colours    Purpose = iota
	Directions         // of normals
	Measures           // roughness, metalness, occlusion and others
	Purposes           // number of purposes
)

// Use returns the use of a texture for the purpose.
func (p Purpose) Use() string { return [Purposes]string{Color, Normal, Mask}[p] }

// ServedBy reports whether a texture for a use fits the purpose.
func (p Purpose) ServedBy(use string) bool {
	switch p {
	case Colours:
		return use == Color || use == UI || use == HDR
	case Directions:
		return use == Normal
	}
	return use == Mask || use == Data
}

// Used is a file that a model uses.
type Used struct {
	File   string         // its path below the source roots, or the result of [processor.ByUUID]
	Buffer bool           // as a buffer: its bytes become part of the model's product
	Image  bool           // as an image
	For    [Purposes]bool // of an image; all are false if no material uses it
}

// Purpose returns the purpose of an image; ok is false if it has none, or several that exclude each other.
func (u Used) Purpose() (p Purpose, ok bool) {
	for i := range Purposes {
		if u.For[i] && ok {
			return 0, false
		}
		if u.For[i] {
			p, ok = i, true
		}
	}
	return p, ok
}

// Model reports whether a file is a model that [UsedBy] reads, by its name.
func Model(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, gltf.TextExtension) || strings.HasSuffix(name, gltf.BinaryExtension)
}

// UsedBy returns the files that a model uses, each once, in the order of the model: buffers, then images. It returns nil if the model
// cannot be read; the processor of models reports why.
func UsedBy(model string, in io.ReaderAt, size int64) []Used {
	text, err := jsonOf(in, size)
	if err != nil {
		return nil
	}
	return usedBy(model, text)
}

// Uses reports whether a model uses an image. It parses only models that contain the name.
func Uses(model string, in io.ReaderAt, size int64, file, uuid string) bool {
	text, err := jsonOf(in, size)
	base := path.Base(file)
	if err != nil || plain(base) && !bytes.Contains(text, []byte(base)) && !bytes.Contains(text, []byte("uuid:")) {
		return false
	}
	return slices.ContainsFunc(usedBy(model, text), func(u Used) bool {
		return (u.File == file || u.File == processor.ByUUID(uuid)) && u.For != [Purposes]bool{}
	})
}

// plain reports whether JSON and URIs contain a name as it is.
func plain(name string) bool {
	for _, c := range []byte(name) {
		if c != '.' && c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

func usedBy(model string, text []byte) []Used {
	doc, err := gltf.Read(text, gltf.DefaultLimits())
	if err != nil {
		return nil
	}
	var list []Used
	at := map[string]int{} // index by file
	add := func(v *gltf.Value) *Used {
		uri := v.Get("uri")
		if uri == nil || uri.Kind != gltf.String || gltf.IsDataURI(uri.Text) {
			return &Used{}
		}
		file, err := processor.ResolveURI(model, uri.Text)
		if strings.HasPrefix(uri.Text, "uuid:") {
			file, err = processor.ResolveAsset("", uri.Text)
		}
		if err != nil {
			return &Used{}
		}
		i, known := at[file]
		if !known {
			i = len(list)
			list, at[file] = append(list, Used{File: file}), i
		}
		return &list[i]
	}
	for _, b := range doc.Root.Array("buffers") {
		add(b).Buffer = true
	}
	uses := doc.ImageUses()
	for i, image := range doc.Root.Array("images") {
		u := add(image)
		u.Image = true
		for p, slot := range [Purposes]gltf.Slot{Colours: uses[i].Colours, Directions: uses[i].Directions, Measures: uses[i].Measures} {
			u.For[p] = u.For[p] || slot.At != nil
		}
	}
	return list
}

// jsonOf reads the JSON of a model, and not the binary part of a .glb, which may be large.
func jsonOf(in io.ReaderAt, size int64) ([]byte, error) {
	from, limit := int64(0), int64(gltf.DefaultLimits().JSON)
	head := make([]byte, 20) // magic, version, length; length and type of the first chunk, which is the JSON
	if n, _ := in.ReadAt(head, 0); n == len(head) && string(head[:4]) == "glTF" {
		from, size = 20, min(size, 20+int64(binary.LittleEndian.Uint32(head[12:])))
	}
	text := make([]byte, min(max(0, size-from), limit+1))
	_, err := io.ReadFull(io.NewSectionReader(in, from, int64(len(text))), text)
	return text, err
}
