// Package diag has the messages for users: every message says where, what, why and what to do next,
// and has a code that never changes its meaning. It makes text and JSON; it prints nothing and ends
// nothing.
package diag

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
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

// Message is one message.
type Message struct {
	Severity Severity `json:"severity"`
	Code     Code     `json:"code"`
	Pos
	Length int      `json:"length,omitempty"` // characters to underline
	Text   string   `json:"text"`
	Line   string   `json:"source,omitempty"`        // the line itself, or the part around Column
	From   int      `json:"source_column,omitempty"` // column of the first character of Line; 0: 1
	Hint   string   `json:"hint,omitempty"`          // what to do next
	Notes  []string `json:"notes,omitempty"`         // why, and what else is affected
	More   []string `json:"more,omitempty"`          // further subjects of the same message; the text has their number
	Count  int      `json:"count,omitempty"`         // of a message that stands for others of its code: how many; see Collector
}

// Errorf makes an error message.
func Errorf(code Code, pos Pos, format string, args ...any) *Message {
	return &Message{Severity: Error, Code: code, Pos: pos, Text: fmt.Sprintf(format, args...)}
}

// Warningf makes a warning.
func Warningf(code Code, pos Pos, format string, args ...any) *Message {
	return &Message{Severity: Warning, Code: code, Pos: pos, Text: fmt.Sprintf(format, args...)}
}

// WithHint sets what to do next.
func (m *Message) WithHint(format string, args ...any) *Message {
	m.Hint = fmt.Sprintf(format, args...)
	return m
}

// WithNote adds a reason, or what else is affected.
func (m *Message) WithNote(format string, args ...any) *Message {
	m.Notes = append(m.Notes, fmt.Sprintf(format, args...))
	return m
}

// WithSource sets the line to show, from the file's text, and the number of characters to
// underline.
func (m *Message) WithSource(text []byte, length int) *Message {
	return m.WithLine(NewLines(text), length)
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

// ID is equal for equal messages: place, text and notes.
func (m *Message) ID() string { return strings.Join(append([]string{m.Error()}, m.Notes...), "\n") }

// Style is how a message is shown. The zero Style is plain.
type Style struct {
	Color bool
	Width int // columns at which lines are broken; 0: never
}

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
	before := 0
	if p := harmless(m.Pos.String()); p != "" {
		b.WriteString(st.paint("1", p) + ": ")
		before = columns([]rune(p)) + 2
	}
	color := map[Severity]string{Error: "1;31", Warning: "1;33", Note: "1;36"}[m.Severity]
	label := fmt.Sprintf("%s[%s]", m.Severity, m.Code)
	fmt.Fprintf(&b, "%s: %s\n", st.paint(color, label), st.wrap(harmless(m.Text), before+len(label)+2, 2))
	hint := harmless(m.Hint)
	if m.Line != "" {
		line, space, mark := m.excerpt()
		fmt.Fprintf(&b, "    %s\n", line)
		if mark > 0 {
			fmt.Fprintf(&b, "    %s%s", strings.Repeat(" ", space), st.paint(color, strings.Repeat("^", mark)))
			if at := 4 + space + mark + 1; hint != "" && (st.Width == 0 || at+columns([]rune(hint)) <= st.Width) {
				b.WriteString(" " + hint)
				hint = ""
			}
			b.WriteByte('\n')
		}
	}
	if hint != "" {
		fmt.Fprintf(&b, "  %s\n", st.wrap(hint, 2, 2))
	}
	for _, n := range m.Notes {
		fmt.Fprintf(&b, "  %s\n", st.wrap(harmless(n), 2, 4))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// excerpt returns the line to show, the columns of a terminal before the mark, and the columns of the mark; 0 if there
// is none.
func (m *Message) excerpt() (line string, space, mark int) {
	line = strings.ReplaceAll(harmless(m.Line), "\t", " ")
	if m.Column < 1 {
		return line, 0, 0
	}
	r := []rune(line)
	from := min(max(m.Column-max(m.From, 1), 0), len(r))
	to := min(from+max(1, m.Length), len(r))
	return line, columns(r[:from]), max(1, columns(r[from:to]))
}

// harmless removes control characters, so that a file with an error cannot control the terminal.
func harmless(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return utf8.RuneError
		}
		return r
	}, s)
}

// columns is the width of characters on a terminal: two columns for wide ones (UAX #11), none for combining ones.
func columns(rs []rune) int {
	n := 0
	for _, r := range rs {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case wide(r):
			n += 2
		default:
			n++
		}
	}
	return n
}

func wide(r rune) bool {
	switch {
	case r < 0x1100, 0xff61 <= r && r <= 0xffdc: // the latter are half width forms
		return false
	case 0x3001 <= r && r <= 0x303e, 0xff01 <= r && r <= 0xff60, 0x1f300 <= r && r <= 0x1faff: // punctuation, full width forms, emoji
		return true
	}
	return unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana, unicode.Bopomofo, unicode.Yi)
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

// Messages returns all messages in an error, in order; an error without messages, or such a part of joined errors,
// becomes one with the given code.
func Messages(err error, otherwise Code) List {
	if err == nil {
		return nil
	}
	var some List
	var one *Message
	if !errors.As(err, &some) && !errors.As(err, &one) {
		return List{Errorf(otherwise, Pos{}, "%v", err)}
	}
	switch e := err.(type) {
	case List:
		return e
	case *Message:
		return List{e}
	case interface{ Unwrap() []error }:
		var l List
		for _, part := range e.Unwrap() {
			l = append(l, Messages(part, otherwise)...)
		}
		return l
	}
	return Messages(errors.Unwrap(err), otherwise)
}
