package processors

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"

	table "github.com/kiln-pipeline/kiln/internal/media/codec/atlas"
	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
	"github.com/kiln-pipeline/kiln/internal/media/preview"
	"github.com/kiln-pipeline/kiln/internal/media/whole"
	"github.com/kiln-pipeline/kiln/internal/processors/atlas"
)

// found is an entry of byExtension.
type found struct {
	kind   *Kind
	format *Format
}

// byExtension is the list by extension of files.
var byExtension = sync.OnceValue(func() map[string]found {
	m := map[string]found{}
	for i := range Kinds {
		k := &Kinds[i]
		for j := range k.Formats {
			for _, ext := range k.Formats[j].Extensions {
				if _, is := m[ext]; !is {
					m[ext] = found{k, &k.Formats[j]}
				}
			}
		}
	}
	return m
})

// Of returns the kind and the format of a file, by the extension of its name, or nil.
func Of(file string) (*Kind, *Format) {
	f := byExtension()[strings.ToLower(path.Ext(file))]
	return f.kind, f.format
}

// SourceFormat is the extension, in lower case, of a file that artists work on and that games do not load; ""
// for other files.
func SourceFormat(file string) string {
	if _, f := Of(file); f != nil && f.Edited {
		return strings.ToLower(path.Ext(file))
	}
	return ""
}

// byProcessor is the list by name of processors.
var byProcessor = sync.OnceValue(func() map[string]*Kind {
	m := map[string]*Kind{}
	for i := range Kinds {
		if k := &Kinds[i]; k.Processor != nil {
			m[k.Processor().Info().Name] = k
		}
	}
	return m
})

// KindOf returns a kind by its name, or nil.
func KindOf(name string) *Kind {
	if i := slices.IndexFunc(Kinds, func(k Kind) bool { return k.Name == name }); i >= 0 {
		return &Kinds[i]
	}
	return nil
}

// Extensions returns the extensions of all formats of a kind.
func (k *Kind) Extensions() []string {
	var list []string
	for _, f := range k.Formats {
		list = append(list, f.Extensions...)
	}
	return list
}

// Placeholder returns the file that replaces a source file, by its name; false: there is none.
func Placeholder(file string) ([]byte, bool) {
	_, f := Of(file)
	if f == nil || f.Placeholder == nil {
		return nil, false
	}
	return f.Placeholder(), true
}

// Check reports whether a file is complete, by the format of its name, or else by any other format that it may
// have.
func Check(file string, r io.ReaderAt, size int64) whole.State {
	w := whole.NewFile(r, size)
	if _, f := Of(file); f != nil && f.Check != nil {
		if s := f.Check(w); s != whole.Other {
			return s
		}
	}
	for i := range Kinds {
		for _, f := range Kinds[i].Formats {
			if f.Check == nil {
				continue
			}
			if s := f.Check(w); s != whole.Other {
				return s
			}
		}
	}
	return whole.Other
}

// MaxDescribed is the size of the largest file that [Describe] should be given, in bytes.
const MaxDescribed = 256 << 20

// CanDescribe reports whether [Describe] supports a file, by its name.
func CanDescribe(file string) bool {
	_, f := Of(file)
	return f != nil && f.Describe != nil
}

// Describe describes the content of a file; the error means that it does not have the format of its
// name.
func Describe(file string, data []byte) (string, error) {
	if !CanDescribe(file) {
		return "", nil
	}
	_, f := Of(file)
	return f.Describe(file, data)
}

// Parse reads a document by the format of its name.
func Parse(file string, data []byte) (document.Value, error) {
	_, f := Of(file)
	if f == nil || f.Parse == nil {
		return document.Value{}, fmt.Errorf("%s is of no format that holds data", path.Base(file))
	}
	return f.Parse(data)
}

// View is how a file is shown, by its name and its product type, which may be empty.
func View(file, productType string) preview.Kind {
	if productType == table.Type && strings.HasSuffix(file, table.JSONExtension) {
		return preview.Atlas
	}
	if _, f := Of(file); f != nil {
		return f.View
	}
	return preview.None
}

// Media is the media type for the bytes of a file. It is never one that a browser would show as a
// page.
func Media(file string) string {
	if _, f := Of(file); f != nil && f.Media != "" {
		return f.Media
	}
	return "application/octet-stream"
}

// Glyph is the sign for an asset in lists: that of its processor's kind, or else of its file's.
func Glyph(file, processorName string) string {
	if k := byProcessor()[processorName]; k != nil && k.Glyph != "" {
		return k.Glyph
	}
	if k, _ := Of(file); k != nil {
		return k.Glyph
	}
	return ""
}

// ParcelOf returns the parcel whose images an asset with these settings packs, or "".
func ParcelOf(settings any) string {
	if s, ok := settings.(*atlas.Settings); ok {
		return s.Parcel
	}
	return ""
}
