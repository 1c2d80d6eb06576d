// Package diag is how Kiln talks to people: every message says where, what, why and
// what to do next, and has a code that never changes its meaning. It makes text and
// JSON; it prints nothing and ends nothing.
package diag

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Severity of a message.
type Severity string

const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Note    Severity = "note"
)

// Pos is a place in a file. Line and Column count from 1, Column in characters; 0 is unknown.
type Pos struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

func (p Pos) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Message is one thing to tell.
type Message struct {
	Severity Severity `json:"severity"`
	Code     Code     `json:"code"`
	Pos
	Length int      `json:"length,omitempty"` // characters to underline
	Text   string   `json:"text"`
	Line   string   `json:"source,omitempty"` // the line itself
	Hint   string   `json:"hint,omitempty"`   // what to do next
	Notes  []string `json:"notes,omitempty"`  // why, who else is concerned
}

// Errorf makes an error message.
func Errorf(code Code, pos Pos, format string, args ...any) *Message {
	return &Message{Severity: Error, Code: code, Pos: pos, Text: fmt.Sprintf(format, args...)}
}

// Warningf makes a warning.
func Warningf(code Code, pos Pos, format string, args ...any) *Message {
	return &Message{Severity: Warning, Code: code, Pos: pos, Text: fmt.Sprintf(format, args...)}
}

// WithHint says what to do next.
func (m *Message) WithHint(format string, args ...any) *Message {
	m.Hint = fmt.Sprintf(format, args...)
	return m
}

// WithNote says why, or who else is concerned.
func (m *Message) WithNote(format string, args ...any) *Message {
	m.Notes = append(m.Notes, fmt.Sprintf(format, args...))
	return m
}

// WithSource takes the line to show out of the file's text, and how much of it to underline.
func (m *Message) WithSource(text []byte, length int) *Message {
	m.Line, m.Length = SourceLine(text, m.Pos.Line), length
	return m
}

// Error makes a message usable as an error inside Kiln.
func (m *Message) Error() string {
	s := m.Pos.String()
	if s != "" {
		s += ": "
	}
	s += fmt.Sprintf("%s[%s]: %s", m.Severity, m.Code, m.Text)
	return s
}

// maxSourceLine is the longest line that is shown whole, in characters: a minified JSON of a
// megabyte helps nobody.
const maxSourceLine = 160

// SourceLine is line n of a text, counted from 1, without its end; "" if it is not there or not text.
func SourceLine(text []byte, n int) string {
	if n < 1 {
		return ""
	}
	s := text
	for ; n > 1; n-- {
		_, rest, ok := strings.Cut(string(s[:min(len(s), 1<<16)]), "\n")
		if !ok {
			i := indexNewline(s)
			if i < 0 {
				return ""
			}
			s = s[i+1:]
			continue
		}
		s = s[min(len(s), 1<<16)-len(rest):]
	}
	if i := indexNewline(s); i >= 0 {
		s = s[:i]
	}
	line := strings.TrimRight(string(s), "\r")
	if !utf8.ValidString(line) || strings.ContainsRune(line, 0) {
		return ""
	}
	return line
}

func indexNewline(b []byte) int {
	for i, c := range b {
		if c == '\n' {
			return i
		}
	}
	return -1
}

// Style colours parts of a message. The zero Style is plain.
type Style struct{ Color bool }

func (s Style) paint(code, text string) string {
	if !s.Color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Write prints a message as text:
//
//	assets/levels/intro.tmx:14:9: error[K0213]: tileset "castel.tsx" does not exist
//	    <tileset firstgid="1" source="castel.tsx"/>
//	            ^^^^^^^^^^ did you mean "castle.tsx"?
//	  needed by parcel "level1"
func (m *Message) Write(w io.Writer, st Style) error {
	var b strings.Builder
	if p := m.Pos.String(); p != "" {
		b.WriteString(st.paint("1", p) + ": ")
	}
	color := map[Severity]string{Error: "1;31", Warning: "1;33", Note: "1;36"}[m.Severity]
	fmt.Fprintf(&b, "%s: %s\n", st.paint(color, fmt.Sprintf("%s[%s]", m.Severity, m.Code)), m.Text)
	hint := m.Hint
	if m.Line != "" {
		line, col := window(m.Line, m.Column)
		fmt.Fprintf(&b, "    %s\n", strings.ReplaceAll(line, "\t", " "))
		if m.Column > 0 {
			fmt.Fprintf(&b, "    %s%s", strings.Repeat(" ", col-1), st.paint(color, strings.Repeat("^", max(1, min(m.Length, maxSourceLine)))))
			if hint != "" {
				b.WriteString(" " + hint)
				hint = ""
			}
			b.WriteByte('\n')
		}
	}
	if hint != "" {
		fmt.Fprintf(&b, "  %s\n", hint)
	}
	for _, n := range m.Notes {
		fmt.Fprintf(&b, "  %s\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// window cuts a long line so that the column stays in sight.
func window(line string, col int) (string, int) {
	r := []rune(line)
	if len(r) <= maxSourceLine {
		return line, max(col, 1)
	}
	from := max(0, min(col-maxSourceLine/2, len(r)-maxSourceLine))
	return string(r[from:min(len(r), from+maxSourceLine)]), max(col-from, 1)
}

func (m *Message) String() string {
	var b strings.Builder
	m.Write(&b, Style{})
	return b.String()
}

// List is several messages as one error.
type List []*Message

func (l List) Error() string {
	s := make([]string, len(l))
	for i, m := range l {
		s[i] = m.Error()
	}
	return strings.Join(s, "\n")
}

// Err is nil if the list has no error in it.
func (l List) Err() error {
	for _, m := range l {
		if m.Severity == Error {
			return l
		}
	}
	return nil
}

// Messages finds the messages in an error; an error that has none becomes one with the given code.
func Messages(err error, otherwise Code) List {
	if err == nil {
		return nil
	}
	var l List
	if errors.As(err, &l) {
		return l
	}
	var m *Message
	if errors.As(err, &m) {
		return List{m}
	}
	return List{Errorf(otherwise, Pos{}, "%v", err)}
}
