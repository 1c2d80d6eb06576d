package diag

import (
	"bytes"
	"strings"
	"sync"
	"unicode/utf8"
)

// maxLine is the longest part of a line that a message has, in characters. A file of a megabyte may be one line, and have a
// thousand errors.
const maxLine = 160

// Lines is a text of which messages show lines.
type Lines struct {
	text   []byte
	starts []int // of each line

	mu              sync.Mutex
	start, off, col int // the place that was found last: its line and itself as offsets, and its column, from 0
}

func NewLines(text []byte) *Lines {
	l := &Lines{text: text, starts: []int{0}}
	for i := 0; ; {
		n := bytes.IndexByte(text[i:], '\n')
		if n < 0 {
			return l
		}
		i += n + 1
		l.starts = append(l.starts, i)
	}
}

// line returns where line n is, counted from 1, without its end. It is empty if there is none.
func (l *Lines) line(n int) (from, to int) {
	if n < 1 || n > len(l.starts) {
		return 0, 0
	}
	from, to = l.starts[n-1], len(l.text)
	if n < len(l.starts) {
		to = l.starts[n] - 1
	}
	return from, from + len(bytes.TrimRight(l.text[from:to], "\r"))
}

// Line returns line n, counted from 1, without its end; "" if there is none or it is not text.
func (l *Lines) Line(n int) string {
	from, to := l.line(n)
	return shown(l.text[from:to])
}

// shown is a text, or "" if it is not one.
func shown(b []byte) string {
	if !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
		return ""
	}
	return string(b)
}

// around returns line n, or of a line with more than maxLine characters the part around a column, and the column at which that
// begins; all from 1.
func (l *Lines) around(n, column int) (string, int) {
	from, to := l.line(n)
	if to-from <= maxLine {
		return shown(l.text[from:to]), 1
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	at, col := l.find(from, to, max(column, 1)-1)
	begin, before := l.back(from, at, maxLine/2-1)
	end, some := l.ahead(begin, to, maxLine)
	if some < maxLine { // the column is near the end of the line
		var more int
		begin, more = l.back(from, begin, maxLine-some)
		before += more
	}
	return shown(l.text[begin:end]), col - before + 1
}

// find returns the offset of a column, from 0, in the line text[from:to], and the column, which is smaller if the line is
// shorter. It continues from the place before, because messages come in the order of the text.
func (l *Lines) find(from, to, column int) (off, col int) {
	if l.start != from || column < l.col || l.off < from {
		l.start, l.off, l.col = from, from, 0
	}
	off, n := l.ahead(l.off, to, column-l.col)
	l.off, l.col = off, l.col+n
	return l.off, l.col
}

// ahead returns the offset n characters after off, at most to, and how many they are.
func (l *Lines) ahead(off, to, n int) (int, int) {
	i := 0
	for ; i < n && off < to; i++ {
		for off++; off < to && l.text[off]&0xc0 == 0x80; off++ {
		}
	}
	return off, i
}

// back returns the offset n characters before off, at least from, and how many they are.
func (l *Lines) back(from, off, n int) (int, int) {
	i := 0
	for ; i < n && off > from; i++ {
		for off--; off > from && l.text[off]&0xc0 == 0x80; off-- {
		}
	}
	return off, i
}

// WithLine is WithSource for a text of which several messages show lines.
func (m *Message) WithLine(l *Lines, length int) *Message {
	m.Line, m.From = l.around(m.Pos.Line, m.Column)
	if m.From == 1 {
		m.From = 0
	}
	m.Length = length
	return m
}

// clip shortens a text that is too long.
func clip(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + " ..."
}
