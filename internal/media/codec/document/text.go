package document

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

// prepare checks size and encoding, and removes the byte order mark.
func prepare(data []byte, size int) ([]byte, error) {
	if len(data) > size {
		return nil, errorf(Limit, Pos{}, "the file has %d bytes; data of at most %d MiB is read", len(data), size>>20).
			hint("split it, or use the processor copy")
	}
	text := bytes.TrimPrefix(data, []byte("\ufeff"))
	if utf8.Valid(text) {
		return text, nil
	}
	if bytes.HasPrefix(text, []byte{0xff, 0xfe}) || bytes.HasPrefix(text, []byte{0xfe, 0xff}) {
		return nil, errorf(Encoding, Pos{1, 1, 1}, "the file is UTF-16").hint("save it as UTF-8")
	}
	if kind := input.Kind(data); kind != "" {
		return nil, errorf(Encoding, Pos{1, 1, 1}, "this is %s, and no text", kind).hint("give it the name and the processor of what it is")
	}
	bad := 0
	for {
		r, n := utf8.DecodeRune(text[bad:])
		if r == utf8.RuneError && n <= 1 {
			break
		}
		bad += n
	}
	c := cursor{text: text}
	return nil, errorf(Encoding, c.at(bad, 1), "byte 0x%02x is not UTF-8", text[bad]).hint("save the file as UTF-8")
}

// checkMarks limits the separators of a text before it goes to a parser without limits.
func checkMarks(text []byte, marks string, limit int) error {
	n := 0
	for _, c := range text {
		if strings.IndexByte(marks, c) >= 0 {
			n++
		}
	}
	if n > limit {
		return errorf(Limit, Pos{}, "the file has more than %d separators", limit).hint("split it, or write it as JSON, which may be larger")
	}
	return nil
}

// cursor converts byte offsets to positions. Ascending offsets cost one pass over the text in total; a smaller offset
// restarts at the beginning.
type cursor struct {
	text      []byte
	off       int
	line, col int32 // of off, from 0
}

// at returns the position of a byte offset; length is in characters.
func (c *cursor) at(off, length int) Pos {
	if off < c.off {
		c.off, c.line, c.col = 0, 0, 0
	}
	for _, b := range c.text[c.off:min(off, len(c.text))] {
		switch {
		case b == '\n':
			c.line, c.col = c.line+1, 0
		case b&0xc0 != 0x80: // not inside a character
			c.col++
		}
	}
	c.off = off
	return Pos{c.line + 1, c.col + 1, int32(length)}
}

// span returns the position of text[from:to]; its length ends with the line.
func (c *cursor) span(from, to int) Pos {
	s := c.text[from:to]
	if i := bytes.IndexByte(s, '\n'); i >= 0 {
		s = s[:i]
	}
	return c.at(from, max(1, utf8.RuneCount(s)))
}
