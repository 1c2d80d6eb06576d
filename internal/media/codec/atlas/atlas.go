// Package atlas has the frame table of an atlas: the page and place of each image. It reads and writes *.atlas, the form for
// games. It also writes the table as JSON for developers, as the text of libGDX and Spine, and as the JSON that texture
// packers share. docs/formats/atlas.md is the specification.
//
// Frames are sorted by name, so readers can use binary search. A table has exactly one encoding. A result of [Read]
// satisfies [Table.Check] for any input.
package atlas

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
)

// Type is the product type of a frame table; Extension is its file name extension.
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
	MaxScale  = 1_000_000      // thousandths
)

// Table has the page and place of each image.
type Table struct {
	Scale      int // of the images relative to sources of density 1, in thousandths; 0 is 1000
	Pages      []Page
	Frames     []Frame     // sorted bytewise by name
	Animations []Animation // sorted bytewise by name
}

// Page is a texture with many images.
type Page struct {
	File   string `json:"file"`   // relative to the table's file
	SubID  uint32 `json:"sub_id"` // of the product, which belongs to the same asset as the table
	Width  int    `json:"width"`  // in pixels
	Height int    `json:"height"`
}

// Turn is the orientation of an image on its page. A turned image takes H x W pixels there.
type Turn uint8

const (
	Upright Turn = iota
	Right        // by 90 degrees clockwise, as in the JSON of texture packers
	Left         // by 90 degrees counter-clockwise, as in libGDX and Spine
)

var turns = [...]string{Upright: "none", Right: "right", Left: "left"}

// MarshalText returns the direction as a word.
func (t Turn) MarshalText() ([]byte, error) { return []byte(turns[t]), nil }

// UnmarshalText reads a word of MarshalText.
func (t *Turn) UnmarshalText(text []byte) error {
	i := slices.Index(turns[:], string(text))
	if i < 0 {
		return fmt.Errorf("%q is not a direction", text)
	}
	*t = Turn(i)
	return nil
}

// Frame is one image on a page. Lengths are in pixels, the origin is at the top left.
type Frame struct {
	Name string `json:"-"`

	Page int `json:"page"`
	X    int `json:"x"` // of what is on the page
	Y    int `json:"y"`
	W    int `json:"w"` // of the same, upright
	H    int `json:"h"`

	// The image was SourceW x SourceH before its transparent edges were removed. The rest began at OffsetX, OffsetY.
	OffsetX int `json:"offset_x"`
	OffsetY int `json:"offset_y"`
	SourceW int `json:"source_w"`
	SourceH int `json:"source_h"`

	Turn   Turn   `json:"turn,omitempty"`
	Number int    `json:"number,omitempty"` // the number at the end of its name plus one; 0: none
	Patch  *Patch `json:"patch,omitempty"`  // nil: not a nine-patch
}

// Patch makes an image a nine-patch. Sides are in pixels from the image's edges inwards.
type Patch struct {
	Split Sides  `json:"split"`         // the corners; the area between them is stretched
	Pad   *Sides `json:"pad,omitempty"` // the area for content; nil: as far as the split
}

// Sides are lengths at the left, right, top and bottom. In Pad, both sides of a pair are -1 if they are unspecified.
type Sides [4]int

// Animation is a sequence of numbered images: run_00, run_01, run_02.
type Animation struct {
	Name   string
	Frames []int // indices in Table.Frames, by their numbers
}

// Find returns the frame with a name.
func (t *Table) Find(name string) (Frame, bool) {
	i, ok := slices.BinarySearchFunc(t.Frames, name, func(f Frame, name string) int { return cmp.Compare(f.Name, name) })
	if !ok {
		return Frame{}, false
	}
	return t.Frames[i], true
}

// Check returns the first error of a table: exceeded limits, wrong order of names, frames beyond their page, parts beyond
// their image.
func (t *Table) Check() error {
	if len(t.Pages) > MaxPages {
		return fmt.Errorf("%d pages, more than %d", len(t.Pages), MaxPages)
	}
	if len(t.Frames) > MaxFrames {
		return fmt.Errorf("%d frames, more than %d", len(t.Frames), MaxFrames)
	}
	if t.Scale < 0 || t.Scale > MaxScale {
		return fmt.Errorf("scale of %d thousandths is not between 0 and %d", t.Scale, MaxScale)
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
	return t.checkAnimations()
}

func (t *Table) checkAnimations() error {
	left := len(t.Frames) // each frame is in at most one animation
	for i, a := range t.Animations {
		if err := checkName(a.Name); err != nil {
			return fmt.Errorf("animation %d: name %w", i, err)
		}
		if i > 0 && t.Animations[i-1].Name >= a.Name {
			return fmt.Errorf("animation %d: name %q does not come after %q", i, a.Name, t.Animations[i-1].Name)
		}
		if left -= len(a.Frames); len(a.Frames) == 0 || left < 0 {
			return fmt.Errorf("animation %d: %q has %d frames", i, a.Name, len(a.Frames))
		}
		for k, f := range a.Frames {
			if f < 0 || f >= len(t.Frames) {
				return fmt.Errorf("animation %d: %q has frame %d of %d", i, a.Name, f, len(t.Frames))
			}
			if k > 0 && t.Frames[a.Frames[k-1]].Number >= t.Frames[f].Number {
				return fmt.Errorf("animation %d: %q is not in the order of its numbers", i, a.Name)
			}
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
	w, h := f.OnPage()
	if f.Turn > Left {
		return fmt.Errorf("%q is turned in way %d of %d", f.Name, f.Turn, Left)
	}
	if f.Number < 0 || f.Number > math.MaxUint16 {
		return fmt.Errorf("%q has number %d, more than %d", f.Name, f.Number-1, math.MaxUint16-1)
	}
	if !within(f.X, w, p.Width) || !within(f.Y, h, p.Height) {
		return fmt.Errorf("%q: %d x %d at %d,%d is not inside its page of %d x %d", f.Name, w, h, f.X, f.Y, p.Width, p.Height)
	}
	if !within(0, f.SourceW, MaxSide) || !within(0, f.SourceH, MaxSide) ||
		!within(f.OffsetX, f.W, f.SourceW) || !within(f.OffsetY, f.H, f.SourceH) {
		return fmt.Errorf("%q: %d x %d at %d,%d is not inside its image of %d x %d", f.Name, f.W, f.H, f.OffsetX, f.OffsetY, f.SourceW, f.SourceH)
	}
	return f.checkPatch()
}

func (f Frame) checkPatch() error {
	if f.Patch == nil {
		return nil
	}
	pairs := func(what string, s Sides, unsaid bool) error {
		for i, size := range []int{f.SourceW, f.SourceH} {
			a, b := s[2*i], s[2*i+1]
			if unsaid && a == -1 && b == -1 {
				continue
			}
			if a < 0 || b < 0 || a > size || b > size {
				return fmt.Errorf("%q: %s %v is not inside its image of %d x %d", f.Name, what, s, f.SourceW, f.SourceH)
			}
		}
		return nil
	}
	if err := pairs("split", f.Patch.Split, false); err != nil || f.Patch.Pad == nil {
		return err
	}
	return pairs("pad", *f.Patch.Pad, true)
}

// OnPage returns the size that the frame has on its page.
func (f Frame) OnPage() (w, h int) {
	if f.Turn != Upright {
		return f.H, f.W
	}
	return f.W, f.H
}

// within reports whether n > 0 pixels from start lie within size, without overflow.
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
