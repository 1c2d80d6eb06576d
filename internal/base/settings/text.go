package settings

import (
	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

// Text is a file with settings. It is kept as long as messages may refer to places in it: an error
// in a rule often shows only when the assets are known.
type Text struct {
	file  string
	lines *diag.Lines
}

// NewText returns a file's text; file is its path relative to the project folder, with forward
// slashes.
func NewText(file string, data []byte) *Text {
	return &Text{file, diag.NewLines(data)}
}

// At is a place in it: length characters from a line and column, which count from 1.
func (t *Text) At(line, column, length int) Span {
	return Span{diag.Pos{File: t.file, Line: max(line, 1), Column: max(column, 1)}, length, t}
}

// Span is a place in a file, with the number of characters that it covers. The zero Span is no
// place.
type Span struct {
	diag.Pos
	Length int
	text   *Text
}

// IsZero reports whether there is no place.
func (s Span) IsZero() bool { return s.Line == 0 }

// Within narrows a span to n characters, starting from characters after its beginning.
func (s Span) Within(from, n int) Span {
	s.Column += from
	s.Length = n
	return s
}

// Source is the text that the span covers.
func (s Span) Source() string {
	r := []rune(s.line())
	from := min(max(s.Column-1, 0), len(r))
	return string(r[from:min(from+s.Length, len(r))])
}

func (s Span) line() string {
	if s.text == nil {
		return ""
	}
	return s.text.lines.Line(s.Line)
}

// Errorf makes an error with this place.
func (s Span) Errorf(code diag.Code, format string, args ...any) *diag.Message {
	return s.show(diag.Errorf(code, s.Pos, format, args...))
}

// Warningf makes a warning with this place.
func (s Span) Warningf(code diag.Code, format string, args ...any) *diag.Message {
	return s.show(diag.Warningf(code, s.Pos, format, args...))
}

func (s Span) show(m *diag.Message) *diag.Message {
	m.Length = s.Length
	if s.text != nil {
		m.WithLine(s.text.lines, s.Length)
	}
	return m
}
