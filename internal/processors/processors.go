// Package processors is the list of the kinds of content that Kiln knows. There is no registration: what is not in the list is not there.
//
// Whatever has to know something about files by their names asks here: `kiln init`, `kiln doctor`, `kiln inspect`, placeholders, the
// dashboard, the tables in the documentation. docs/contributing-a-kind.md shows how one more is added.
package processors

import (
	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
	"github.com/kiln-pipeline/kiln/internal/media/preview"
	"github.com/kiln-pipeline/kiln/internal/media/whole"
	"github.com/kiln-pipeline/kiln/internal/processors/copy"
	"github.com/kiln-pipeline/kiln/processor"
)

// Kind is a kind of content: the formats of its files, and what becomes of them.
type Kind struct {
	Name string // "texture"
	Doc  string // in a few words: "pictures and textures"
	Page string // of docs: "textures.md"; empty if there is none

	// Processor takes the files of the kind by default; nil: the game gets them as they are, by copy.
	Processor func() processor.Processor

	// Codes is what the codes of its messages begin with: "K12"; empty if it has none.
	Codes string

	// Everywhere says that such files are found in folders that have nothing to do with a game, too: `kiln init` does not take them for a sign
	// of content.
	Everywhere bool

	// Glyph stands for an asset that has no picture, in lists: one or two characters.
	Glyph string

	// Guess finds out which setting a file needs besides the defaults, by its name and, if it has to, its bytes; read gives nil where they
	// cannot be read. nil: none ever. `kiln init` writes rules of it.
	Guess func(file string, size int64, read func() []byte) processor.Guess

	Formats []Format
}

// Format is a format of files. What it does not answer is nil.
type Format struct {
	Name       string   // "PNG"
	Extensions []string // of its files, in lower case and with the dot

	// Made says that Kiln makes such files and its processor does not read them.
	Made bool

	// Edited says that artists work on such files and that games do not load them: models, scenes, layered and vector pictures, sound
	// projects. One that nothing processes is most often in the game by mistake.
	Edited bool

	// View is how a product or a source is shown; Media as what its bytes are sent to a browser that can show them by itself.
	View  preview.Kind
	Media string

	// Parse reads a document. It is there if View is preview.Data.
	Parse func(data []byte) (document.Value, error)

	// Check reports whether a file has its end.
	Check func(f *whole.File) whole.State

	// Describe says what a file holds in a line; an error says that it is not of the format.
	Describe func(file string, data []byte) (string, error)

	// Placeholder is a small file that stands for one that cannot be built.
	Placeholder func() []byte
}

// All are Kiln's own processors, in the order they are shown.
func All() []processor.Processor {
	var all []processor.Processor
	for _, k := range Kinds {
		if k.Processor != nil {
			all = append(all, k.Processor())
		}
	}
	return append(all, copy.New())
}
