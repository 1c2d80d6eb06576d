package ids

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

// Version of the file's format.
const Version = 1

// header is the first line. It has no counter and no date, so that it causes no merge conflicts.
const header = "# kiln.ids 1: resource ids, made by `kiln ids`. Commit this file."

const headerStart = "# kiln.ids "

// Limits of a file and of its fields, in bytes. An asset id is a path, which no file system allows to be
// longer.
const (
	maxFile  = 1 << 30
	maxField = 16 << 10
)

var errFull = fmt.Errorf("more than %d resources", Limit)

// Parse reads a kiln.ids. file is its path for messages. Lines may be in any order, and may contradict each other: see
// Conflicts. Conflict marks of a merge are errors, unless merged is true: then both sides are read. The error is a
// diag.List with places.
func Parse(file string, data []byte, merged bool) (*File, error) {
	p := parser{file: file, lines: diag.NewLines(data)}
	if len(data) > maxFile {
		return nil, diag.List{diag.Errorf(diag.IDsSyntax, diag.Pos{File: file}, "the file has %d bytes, more than %d", len(data), maxFile)}
	}
	f := &File{Entries: make([]Entry, 0, bytes.Count(data, []byte("\n")))}
	base := false // in the part of a conflict that shows the common ancestor
	n := 0
	for line := range bytes.Lines(data) {
		n++
		text := strings.TrimRight(string(line), "\r\n")
		if n == 1 {
			text = strings.TrimPrefix(text, "\uFEFF")
		}
		if mark := conflictMark(text); mark != 0 {
			base = mark == '|'
			if !merged && !p.marked {
				p.marked = true // one message for all marks: one command handles them
				p.fail(n, text, "an unfinished merge").WithHint("run: kiln ids --repair")
			}
			continue
		}
		if base && merged || text == "" {
			continue
		}
		if text[0] == '#' {
			p.version(n, text)
			continue
		}
		e, err := parseLine(text)
		if err != nil {
			p.fail(n, text, "%v", err).WithHint("a line is: asset, tab, number; `kiln ids` writes them")
			continue
		}
		e.Line = n
		e.Identity() // once, not at each use
		f.Entries = append(f.Entries, e)
	}
	if err := p.messages.List().Err(); err != nil {
		return nil, err
	}
	return f, nil
}

type parser struct {
	file     string
	lines    *diag.Lines
	messages diag.Collector
	marked   bool // the mark of a conflict was reported
}

func (p *parser) fail(line int, text, format string, args ...any) *diag.Message {
	m := diag.Errorf(diag.IDsSyntax, diag.Pos{File: p.file, Line: line, Column: 1}, format, args...)
	p.messages.Add(m.WithLine(p.lines, utf8.RuneCountInString(text)))
	return m
}

// version reports a file of a later Kiln; any other comment is ignored.
func (p *parser) version(line int, text string) {
	rest, ok := strings.CutPrefix(text, headerStart)
	if !ok {
		return
	}
	number, _, _ := strings.Cut(rest, ":")
	if v, err := strconv.Atoi(number); err == nil && v != Version {
		p.fail(line, text, "the file is of version %d, and this Kiln knows %d", v, Version).WithHint("use the Kiln that wrote it")
	}
}

// conflictMark is the character of a line with which git or another system marks the sides of a conflict, or 0.
func conflictMark(line string) byte {
	if line == "" || strings.IndexByte("<|=>", line[0]) < 0 {
		return 0
	}
	for _, c := range []byte("<|=>") {
		if rest, ok := strings.CutPrefix(line, strings.Repeat(string(c), 7)); ok && (rest == "" || rest[0] == ' ') {
			return c
		}
	}
	return 0
}

// parseLine parses asset, number and, if present, product and UUID, separated by tabs.
func parseLine(line string) (Entry, error) {
	fields := strings.SplitN(line, "\t", 5)
	if len(fields) < 2 || len(fields) > 4 {
		return Entry{}, errors.New("a line has 2 to 4 fields with tabs between")
	}
	var e Entry
	var err error
	if e.Asset, err = unquote(fields[0]); err != nil {
		return Entry{}, err
	}
	if e.Asset == "" {
		return Entry{}, errors.New("the asset is missing")
	}
	id, err := strconv.ParseUint(fields[1], 10, 32)
	if err != nil || id >= Limit || strconv.FormatUint(id, 10) != fields[1] {
		return Entry{}, fmt.Errorf("%q is not a number from 0 to %d", clip(fields[1]), Limit-1)
	}
	e.ID = uint32(id)
	if len(fields) > 2 {
		if e.Product, err = unquote(fields[2]); err != nil {
			return Entry{}, err
		}
	}
	if len(fields) > 3 {
		u, err := uuid.Parse(fields[3])
		if err != nil || u.String() != fields[3] {
			return Entry{}, fmt.Errorf("%q is not a UUID in lower case", clip(fields[3]))
		}
		e.UUID = fields[3]
	}
	return e, nil
}

func clip(s string) string { return s[:min(len(s), 40)] }

// Format writes the file: the header, and a line for each entry, in their order.
func (f *File) Format() []byte {
	b := append(make([]byte, 0, 64*(len(f.Entries)+2)), header+"\n"...)
	for i := range f.Entries {
		b = appendLine(b, &f.Entries[i])
	}
	return b
}

func appendLine(b []byte, e *Entry) []byte {
	b = append(b, quote(e.Asset)...)
	b = append(b, '\t')
	b = strconv.AppendUint(b, uint64(e.ID), 10)
	pin := ""
	if e.UUID != "" && e.UUID != (Name{Asset: e.Asset}).Identity() {
		pin = e.UUID
	}
	if e.Product != "" || pin != "" {
		b = append(b, "\t"+quote(e.Product)...)
	}
	if pin != "" {
		b = append(b, "\t"+pin...)
	}
	return append(b, '\n')
}

// quote leaves a name as it is, unless that would not be the same name again: then it is a quoted string of Go.
func quote(s string) string {
	if plain(s) {
		return s
	}
	return strconv.Quote(s)
}

func plain(s string) bool { return plainText(s) && utf8.ValidString(s) }

// plainText is what plain is for UTF-8.
func plainText(s string) bool {
	return classOf(s)&control == 0 && (s == "" || s[0] != '"' && s[0] != '#' && !strings.HasPrefix(s, "\uFEFF") && conflictMark(s) == 0)
}

// Classes of bytes: control characters, and what asset.Fold may change.
const (
	control = 1 << iota
	folds
)

var classes = func() (all [256]uint8) {
	for c := range all {
		switch {
		case c < 0x20 || c == 0x7f:
			all[c] = control
		case 'A' <= c && c <= 'Z' || c >= 0x80:
			all[c] = folds
		}
	}
	return all
}()

// classOf returns the classes of the bytes of a text.
func classOf(s string) (class uint8) {
	for i := range len(s) {
		class |= classes[s[i]]
	}
	return class
}

func unquote(field string) (string, error) {
	if len(field) > maxField {
		return "", fmt.Errorf("a name has %d bytes, more than %d", len(field), maxField)
	}
	if !utf8.ValidString(field) {
		return "", errors.New("a name is not UTF-8")
	}
	if !strings.HasPrefix(field, `"`) {
		return field, nil
	}
	s, err := strconv.Unquote(field)
	if err != nil {
		return "", fmt.Errorf("%s is not a quoted name", clip(field))
	}
	return s, nil
}
