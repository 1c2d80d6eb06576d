// Package atlas is the frame table of an atlas: which image is where on which page. It
// reads and writes *.atlas, the form for games, and writes the same as JSON for people
// and for engines that have no reader. docs/formats/atlas.md is the specification.
//
// Its rules: frames are sorted by name, so that a reader can search them by halves; a table has
// exactly one encoding; what [Read] returns obeys all that [Table.Check] asks for, whatever the bytes.
package atlas

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
)

// Type is the product type of a frame table, and Extension that of its file.
const (
	Type          = "atlas"
	Extension     = ".atlas"
	JSONExtension = ".atlas.json"
)

// Limits of a table.
const (
	MaxPages  = 4096
	MaxFrames = 1 << 20
	MaxSide   = math.MaxUint16 // of a page and of an image, in pixels
	MaxName   = math.MaxUint16 // bytes
)

// Table says where on which page each image is.
type Table struct {
	Pages  []Page
	Frames []Frame // sorted bytewise by name
}

// Page is a texture that holds many images.
type Page struct {
	File   string `json:"file"`   // relative to the table's own file
	SubID  uint32 `json:"sub_id"` // of the product, which belongs to the same asset as the table
	Width  int    `json:"width"`  // in pixels
	Height int    `json:"height"`
}

// Frame is one image on a page. Lengths are in pixels, the origin is at the top left.
type Frame struct {
	Name string `json:"-"`

	Page int `json:"page"`
	X    int `json:"x"` // of what is on the page
	Y    int `json:"y"`
	W    int `json:"w"`
	H    int `json:"h"`

	// The image was SourceW x SourceH before its transparent edges were taken
	// off, and what is left of it began at OffsetX, OffsetY.
	OffsetX int `json:"offset_x"`
	OffsetY int `json:"offset_y"`
	SourceW int `json:"source_w"`
	SourceH int `json:"source_h"`
}

// Find returns the frame of that name.
func (t *Table) Find(name string) (Frame, bool) {
	i, ok := slices.BinarySearchFunc(t.Frames, name, func(f Frame, name string) int { return cmp.Compare(f.Name, name) })
	if !ok {
		return Frame{}, false
	}
	return t.Frames[i], true
}

// Check tells what is wrong with a table: limits, the order of names, frames that reach over their
// page, parts that reach over their image.
func (t *Table) Check() error {
	if len(t.Pages) > MaxPages {
		return fmt.Errorf("%d pages, more than %d", len(t.Pages), MaxPages)
	}
	if len(t.Frames) > MaxFrames {
		return fmt.Errorf("%d frames, more than %d", len(t.Frames), MaxFrames)
	}
	for i, p := range t.Pages {
		if err := checkName(p.File); err != nil {
			return fmt.Errorf("page %d: file %w", i, err)
		}
		if !within(0, p.Width, MaxSide) || !within(0, p.Height, MaxSide) {
			return fmt.Errorf("page %d: size %d x %d is not between 1 and %d", i, p.Width, p.Height, MaxSide)
		}
	}
	for i, f := range t.Frames {
		if err := f.check(t.Pages); err != nil {
			return fmt.Errorf("frame %d: %w", i, err)
		}
		if i > 0 && t.Frames[i-1].Name >= f.Name {
			return fmt.Errorf("frame %d: name %q does not come after %q", i, f.Name, t.Frames[i-1].Name)
		}
	}
	return nil
}

func (f Frame) check(pages []Page) error {
	if err := checkName(f.Name); err != nil {
		return fmt.Errorf("name %w", err)
	}
	if f.Page < 0 || f.Page >= len(pages) {
		return fmt.Errorf("%q is on page %d of %d", f.Name, f.Page, len(pages))
	}
	p := pages[f.Page]
	if !within(f.X, f.W, p.Width) || !within(f.Y, f.H, p.Height) {
		return fmt.Errorf("%q: %d x %d at %d,%d is not inside its page of %d x %d", f.Name, f.W, f.H, f.X, f.Y, p.Width, p.Height)
	}
	if !within(0, f.SourceW, MaxSide) || !within(0, f.SourceH, MaxSide) ||
		!within(f.OffsetX, f.W, f.SourceW) || !within(f.OffsetY, f.H, f.SourceH) {
		return fmt.Errorf("%q: %d x %d at %d,%d is not inside its image of %d x %d", f.Name, f.W, f.H, f.OffsetX, f.OffsetY, f.SourceW, f.SourceH)
	}
	return nil
}

// within tells whether n > 0 pixels from start lie within size, without overflow.
func within(start, n, size int) bool {
	return start >= 0 && n > 0 && size <= MaxSide && start <= size && n <= size-start
}

func checkName(s string) error {
	switch {
	case s == "":
		return fmt.Errorf("is empty")
	case len(s) > MaxName:
		return fmt.Errorf("has %d bytes, more than %d", len(s), MaxName)
	case !utf8.ValidString(s):
		return fmt.Errorf("%q is not valid UTF-8", s)
	}
	return nil
}
