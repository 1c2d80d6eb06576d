package atlas

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// LibGDXOptions are the properties of pages in a libGDX atlas, apart from their size.
type LibGDXOptions struct {
	Format    string // "RGBA8888"
	MinFilter string // "Nearest", "Linear", "MipMapLinearLinear"
	MagFilter string
	Repeat    string // "none", "x", "y", "xy"
}

// WriteLibGDX encodes a table as the text that libGDX's TextureAtlas and the Spine runtimes read. A numbered frame has its
// name without the number, and the number as index. Offsets count from the bottom. Turned frames must be turned left. Names
// with a colon or a line end cannot be written in this text.
func WriteLibGDX(t *Table, o LibGDXOptions) ([]byte, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	index := map[int]string{} // frames of animations
	for _, a := range t.Animations {
		for _, f := range a.Frames {
			index[f] = a.Name
		}
	}
	var b bytes.Buffer
	for i, p := range t.Pages {
		if err := plain(p.File); err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "\n%s\nsize: %d,%d\nformat: %s\nfilter: %s,%s\nrepeat: %s\n", p.File, p.Width, p.Height, o.Format, o.MinFilter, o.MagFilter, o.Repeat)
		for k, f := range t.Frames {
			if f.Page != i {
				continue
			}
			name, number := f.Name, -1
			if base, ok := index[k]; ok {
				name, number = base, f.Number-1
			}
			if err := plain(name); err != nil {
				return nil, err
			}
			if f.Turn == Right {
				return nil, fmt.Errorf("%q is turned clockwise, which this format cannot represent", f.Name)
			}
			fmt.Fprintf(&b, "%s\n  rotate: %t\n  xy: %d, %d\n  size: %d, %d\n", name, f.Turn == Left, f.X, f.Y, f.W, f.H)
			if f.Patch != nil {
				fmt.Fprintf(&b, "  split: %s\n", f.Patch.Split.text())
				if f.Patch.Pad != nil {
					fmt.Fprintf(&b, "  pad: %s\n", f.Patch.Pad.text())
				}
			}
			fmt.Fprintf(&b, "  orig: %d, %d\n  offset: %d, %d\n  index: %d\n", f.SourceW, f.SourceH, f.OffsetX, f.SourceH-f.H-f.OffsetY, number)
		}
	}
	return b.Bytes(), nil
}

func (s Sides) text() string { return fmt.Sprintf("%d, %d, %d, %d", s[0], s[1], s[2], s[3]) }

// plain returns an error for names that the text cannot represent.
func plain(name string) error {
	if strings.ContainsAny(name, ":\r\n") || strings.TrimSpace(name) != name {
		return fmt.Errorf("the name %q cannot be written in a libGDX atlas", name)
	}
	return nil
}

// Region is an image in a libGDX atlas, with libGDX's names.
type Region struct {
	Page   int
	Name   string
	Rotate bool
	XY     [2]int
	Size   [2]int
	Split  []int // none or 4
	Pad    []int // none or 4
	Orig   [2]int
	Offset [2]int // from the left and the bottom
	Index  int    // -1: none
}

// LibGDX is a libGDX atlas.
type LibGDX struct {
	Pages   []Page // SubID is 0
	Regions []Region
}

// ReadLibGDX decodes the text of a libGDX or Spine atlas, in the older form ("xy" and "size") or the newer one ("bounds").
// It ignores unknown lines.
func ReadLibGDX(data []byte) (*LibGDX, error) {
	const (
		wantsPage = iota // at the start, and after an empty line
		inPage
		inRegion
	)
	a, state := &LibGDX{}, wantsPage
	for n, line := range strings.Split(string(data), "\n") {
		line = strings.TrimRight(line, "\r \t")
		key, value, entry := strings.Cut(line, ":")
		var err error
		switch {
		case line == "":
			state = wantsPage
		case !entry && state == wantsPage:
			if len(a.Pages) == MaxPages {
				return nil, fmt.Errorf("line %d: more than %d pages", n+1, MaxPages)
			}
			a.Pages = append(a.Pages, Page{File: line})
			state = inPage
		case !entry:
			if len(a.Regions) == MaxFrames {
				return nil, fmt.Errorf("line %d: more than %d regions", n+1, MaxFrames)
			}
			a.Regions = append(a.Regions, Region{Page: len(a.Pages) - 1, Name: line, Index: -1})
			state = inRegion
		case state == wantsPage:
			err = fmt.Errorf("%q stands where the name of a page should", line)
		case state == inPage:
			err = a.Pages[len(a.Pages)-1].entry(key, value)
		default:
			err = a.Regions[len(a.Regions)-1].entry(strings.TrimSpace(key), value)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
	}
	return a, nil
}

func (p *Page) entry(key, value string) error {
	if key != "size" {
		return nil
	}
	v, err := numbers(value, 2)
	if err == nil {
		p.Width, p.Height = v[0], v[1]
	}
	return err
}

func (r *Region) entry(key, value string) error {
	n := map[string]int{"xy": 2, "size": 2, "orig": 2, "offset": 2, "index": 1, "split": 4, "pad": 4, "bounds": 4, "offsets": 4}[key]
	if key == "rotate" {
		value = strings.TrimSpace(value)
		r.Rotate = value == "true" || value == "90"
		return nil
	}
	if n == 0 {
		return nil
	}
	v, err := numbers(value, n)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	switch key {
	case "xy":
		r.XY = [2]int(v)
	case "size":
		r.Size = [2]int(v)
		if r.Orig == [2]int{} {
			r.Orig = r.Size
		}
	case "bounds":
		r.XY, r.Size = [2]int(v), [2]int(v[2:])
		if r.Orig == [2]int{} {
			r.Orig = r.Size
		}
	case "orig":
		r.Orig = [2]int(v)
	case "offset":
		r.Offset = [2]int(v)
	case "offsets":
		r.Offset, r.Orig = [2]int(v), [2]int(v[2:])
	case "index":
		r.Index = v[0]
	case "split":
		r.Split = v
	case "pad":
		r.Pad = v
	}
	return nil
}

// numbers reads n integers with commas between them.
func numbers(s string, n int) ([]int, error) {
	parts := strings.Split(s, ",")
	if len(parts) != n {
		return nil, fmt.Errorf("%q is not %d numbers", strings.TrimSpace(s), n)
	}
	v := make([]int, n)
	for i, p := range parts {
		x, err := strconv.ParseInt(strings.TrimSpace(p), 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number", strings.TrimSpace(p))
		}
		v[i] = int(x)
	}
	return v, nil
}
