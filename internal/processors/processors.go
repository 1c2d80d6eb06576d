// Package processors is the list of the kinds of content that Kiln knows. There is no registration: the list is
// complete.
//
// Everything that depends on the names of files uses it: `kiln init`, `kiln doctor`, `kiln inspect`, placeholders, the
// dashboard, the tables in the documentation. docs/contributing-a-kind.md shows how to add a kind.
package processors

import (
	"io"

	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
	"github.com/kiln-pipeline/kiln/internal/media/preview"
	"github.com/kiln-pipeline/kiln/internal/media/whole"
	"github.com/kiln-pipeline/kiln/internal/processors/copy"
	"github.com/kiln-pipeline/kiln/processor"
)

// Kind is a kind of content: the formats of its files, and how they are processed.
type Kind struct {
	Name string // "texture"
	Doc  string // in a few words: "pictures and textures"
	Page string // page of docs: "textures.md"; empty if there is none

	// Processor gets the files of the kind by default; nil: they are copied.
	Processor func() processor.Processor

	// Codes is the prefix of the codes of its messages: "K12"; empty if it has none.
	Codes string

	// Everywhere means that such files are also in folders that have nothing to do with a game: for `kiln init` they
	// are no sign of content.
	Everywhere bool

	// Glyph is the sign in lists for an asset without a picture: one or two characters.
	Glyph string

	// Guess returns settings that a file needs besides the defaults, by its name, those of the files in its folder and, if necessary, its
	// bytes; read returns nil if they cannot be read. nil: there are never any. `kiln init` writes rules from them.
	Guess func(file string, beside []string, size int64, read func() []byte) processor.Guess

	// Read reads a file that may be damaged, as far as the processor has to for its products. The format is that of its name, or nil.
	// nil: it is not known what the processor needs.
	Read func(f *Format, file string, in io.ReaderAt, size int64) error

	Formats []Format
}

// Format is a file format. Functions that it does not support are nil.
type Format struct {
	Name       string   // "PNG"
	Extensions []string // in lower case and with the dot

	// Made means that Kiln writes such files and its processor does not read them.
	Made bool

	// Edited means that artists work on such files and games do not load them: models, scenes, layered and vector
	// pictures, sound projects. If no processor reads such a file, it is usually in the game by mistake.
	Edited bool

	// View is how a product or a source is shown; Media is its media type if browsers can show it themselves.
	View  preview.Kind
	Media string

	// Parse reads a document. It is set if View is preview.Data.
	Parse func(data []byte) (document.Value, error)

	// Check reports whether a file is complete.
	Check func(f *whole.File) whole.State

	// Describe describes a file in a line; the error means that it does not have the format.
	Describe func(file string, data []byte) (string, error)

	// Placeholder returns a small file that replaces one that cannot be built.
	Placeholder func() []byte
}

// All returns the built-in processors, in the order of display.
func All() []processor.Processor {
	var all []processor.Processor
	for _, k := range Kinds {
		if k.Processor != nil {
			all = append(all, k.Processor())
		}
	}
	return append(all, copy.New())
}
