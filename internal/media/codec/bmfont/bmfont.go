// Package bmfont reads and writes bitmap fonts in the text form of AngelCode's BMFont (*.fnt), which most engines read. A
// font file has the place of each glyph on the page images, and the distances between glyphs. The format is that of
// https://www.angelcode.com/products/bmfont/doc/file_format.html.
//
// Unknown lines and fields are ignored; numbers are whole pixels; limits are checked before memory is allocated.
package bmfont

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Limits of a font.
const (
	MaxPages    = 4096
	MaxChars    = 0x110000 // all of Unicode
	MaxKernings = 1 << 20
)

// Font is a bitmap font.
type Font struct {
	Face       string
	Size       int // in pixels
	LineHeight int // distance of base lines
	Base       int // distance from the top of a line to its base line
	ScaleW     int // size of the pages
	ScaleH     int
	Pages      []string // file names
	Chars      []Char
	Kernings   []Kerning
}

// Char is a glyph. X, Y, Width and Height are its rectangle on its page.
type Char struct {
	ID                  int // code point; -1 is the glyph for missing characters
	X, Y, Width, Height int
	XOffset, YOffset    int // from the pen position and the top of the line to the glyph's top left corner
	XAdvance            int // how far the pen moves, in pixels
	Page                int
}

// Kerning changes the distance between the glyphs First and Second by Amount pixels.
type Kerning struct{ First, Second, Amount int }

// Write encodes a font.
func Write(f *Font) ([]byte, error) {
	if len(f.Pages) > MaxPages || len(f.Chars) > MaxChars || len(f.Kernings) > MaxKernings {
		return nil, fmt.Errorf("%d pages, %d characters and %d kernings are more than %d, %d and %d",
			len(f.Pages), len(f.Chars), len(f.Kernings), MaxPages, MaxChars, MaxKernings)
	}
	for _, s := range append([]string{f.Face}, f.Pages...) {
		if strings.ContainsAny(s, "\"\r\n") {
			return nil, fmt.Errorf("the name %q cannot be written in a BMFont", s)
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "info face=\"%s\" size=%d bold=0 italic=0 charset=\"\" unicode=1 stretchH=100 smooth=1 aa=1 padding=0,0,0,0 spacing=0,0 outline=0\n", f.Face, f.Size)
	fmt.Fprintf(&b, "common lineHeight=%d base=%d scaleW=%d scaleH=%d pages=%d packed=0\n", f.LineHeight, f.Base, f.ScaleW, f.ScaleH, len(f.Pages))
	for i, p := range f.Pages {
		fmt.Fprintf(&b, "page id=%d file=\"%s\"\n", i, p)
	}
	fmt.Fprintf(&b, "chars count=%d\n", len(f.Chars))
	for _, c := range f.Chars {
		fmt.Fprintf(&b, "char id=%d x=%d y=%d width=%d height=%d xoffset=%d yoffset=%d xadvance=%d page=%d chnl=15\n",
			c.ID, c.X, c.Y, c.Width, c.Height, c.XOffset, c.YOffset, c.XAdvance, c.Page)
	}
	if len(f.Kernings) > 0 {
		fmt.Fprintf(&b, "kernings count=%d\n", len(f.Kernings))
	}
	for _, k := range f.Kernings {
		fmt.Fprintf(&b, "kerning first=%d second=%d amount=%d\n", k.First, k.Second, k.Amount)
	}
	return b.Bytes(), nil
}

// Read decodes a font.
func Read(data []byte) (*Font, error) {
	if !bytes.HasPrefix(bytes.TrimLeft(data, "\ufeff \r\n"), []byte("info ")) {
		return nil, fmt.Errorf("not the text form of BMFont: it does not begin with \"info\"")
	}
	f := &Font{}
	for n, line := range strings.Split(strings.TrimPrefix(string(data), "\ufeff"), "\n") {
		tag, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		v, err := values(rest)
		if err == nil {
			err = f.line(tag, v)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
	}
	return f, nil
}

func (f *Font) line(tag string, v fields) error {
	switch tag {
	case "info":
		f.Face, f.Size = v.text("face"), v.number("size")
	case "common":
		f.LineHeight, f.Base, f.ScaleW, f.ScaleH = v.number("lineHeight"), v.number("base"), v.number("scaleW"), v.number("scaleH")
	case "page":
		if id := v.number("id"); id != len(f.Pages) || id >= MaxPages {
			return fmt.Errorf("page %d, want %d of at most %d", id, len(f.Pages), MaxPages)
		}
		f.Pages = append(f.Pages, v.text("file"))
	case "char":
		if len(f.Chars) == MaxChars {
			return fmt.Errorf("more than %d characters", MaxChars)
		}
		f.Chars = append(f.Chars, Char{
			v.number("id"), v.number("x"), v.number("y"), v.number("width"), v.number("height"),
			v.number("xoffset"), v.number("yoffset"), v.number("xadvance"), v.number("page"),
		})
	case "kerning":
		if len(f.Kernings) == MaxKernings {
			return fmt.Errorf("more than %d kernings", MaxKernings)
		}
		f.Kernings = append(f.Kernings, Kerning{v.number("first"), v.number("second"), v.number("amount")})
	}
	return v.err()
}

// fields are the name=value pairs of a line; values with spaces are in quotes.
type fields struct {
	values map[string]string
	wrong  *string // the first value that is not a number
}

func values(s string) (fields, error) {
	v := fields{map[string]string{}, new(string)}
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		name, rest, ok := strings.Cut(s, "=")
		if !ok {
			return v, fmt.Errorf("%q has no value", s)
		}
		value := ""
		if quoted, found := strings.CutPrefix(rest, `"`); found {
			if value, s, ok = closing(quoted); !ok {
				return v, fmt.Errorf("a quote is not closed")
			}
		} else {
			value, s, _ = strings.Cut(rest, " ")
		}
		v.values[name] = value
	}
	return v, nil
}

// closing splits s at the quote that ends a value: the first quote before a space or the end, because some programs write
// letter=""".
func closing(s string) (value, rest string, ok bool) {
	for i := range len(s) {
		if s[i] == '"' && (i+1 == len(s) || s[i+1] == ' ') {
			return s[:i], s[i+1:], true
		}
	}
	return "", "", false
}

func (v fields) text(name string) string { return v.values[name] }

// number returns the number in a field, or 0 if the field is missing.
func (v fields) number(name string) int {
	text, ok := v.values[name]
	n, err := strconv.ParseInt(text, 10, 32)
	if ok && err != nil && *v.wrong == "" {
		*v.wrong = name + "=" + text
	}
	return int(n)
}

func (v fields) err() error {
	if *v.wrong == "" {
		return nil
	}
	return fmt.Errorf("%s is not a number", *v.wrong)
}
