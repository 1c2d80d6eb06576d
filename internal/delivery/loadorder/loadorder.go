// Package loadorder reads and writes what games load, in order: a text file that a team commits, and that decides the
// order of a parcel's contents. docs/parcels.md specifies the file.
//
// The rules:
//   - A line is the name of a resource, a folder or a glob of names. The first line that means a resource counts.
//   - The order depends only on the lines and on names: it is the same on every machine and platform.
//   - Merging what a game loaded moves no line: a new name goes before what the game loaded after it,
//     and after what it loaded before it.
package loadorder

import (
	"bufio"
	"bytes"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/processor"
)

// Limits of a file. Each glob is compared with each name that has its literal beginning: 1,000 globs with 100,000 names
// take 0.1 s if none has.
const (
	MaxSize  = 64 << 20 // maximum size of a file in bytes
	maxLines = 1 << 20
	maxLine  = 8192 // bytes: a name of 4096, each of them escaped
	maxGlobs = 1000
)

// List is the lines of a file.
type List struct {
	lines []line
	below []string // comments after the last line
	globs []int    // indexes of lines
	exact map[string]int
}

// line means one resource or several.
type line struct {
	above  []string // comments and empty lines before it
	text   string   // as it is written
	name   string   // the only resource that it means; "": it is a folder or a glob
	prefix string   // of a folder or a glob: the common beginning of all names that it means
	glob   bool
	number int // in the file, from 1; 0: it is new
}

// Parse reads a file. The messages are errors with places; wrong lines are ignored, and so is everything beyond a
// limit.
func Parse(file string, text []byte) (*List, diag.List) {
	var bad diag.Collector
	wrong := func(number int, hint, format string, args ...any) {
		bad.Add(diag.Errorf(diag.OrderWrong, diag.Pos{File: file, Line: number, Column: 1}, format, args...).WithHint("%s", hint))
	}
	l := &List{exact: map[string]int{}}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxLine+2)
	var above []string
	number := 0
	for lines.Scan() {
		number++
		s := strings.TrimRight(lines.Text(), "\r")
		if s == "" || s[0] == '#' {
			above = append(above, s)
			continue
		}
		x, ok := parseLine(s)
		switch {
		case !ok:
			wrong(number, "a backslash before a character takes it as it is", "%q is not a glob", s)
			continue
		case len(l.lines) == maxLines:
			wrong(number, "folders and globs say more with less", "the order has more than %d lines", maxLines)
			return l, bad.List()
		case x.name == "" && len(l.globs) == maxGlobs:
			wrong(number, "name the resources", "the order has more than %d folders and globs", maxGlobs)
			return l, bad.List()
		}
		x.above, x.number = above, number
		above = nil
		l.add(x)
	}
	if lines.Err() != nil {
		wrong(number+1, "no name of a resource is so long", "the line has more than %d bytes", maxLine)
	}
	l.below = above
	return l, bad.List()
}

// meta are the characters that make a name a glob.
const meta = `*?[{\`

// parseLine returns false for an invalid glob.
func parseLine(s string) (line, bool) {
	name, plain := unquote(s)
	switch {
	case plain && strings.HasSuffix(s, "/"):
		return line{text: s, prefix: name}, true
	case plain:
		return line{text: s, name: name}, true
	}
	return line{text: s, glob: true, prefix: name}, doublestar.ValidatePattern(s)
}

// add puts a line at the end.
func (l *List) add(x line) {
	at := len(l.lines)
	l.lines = append(l.lines, x)
	if x.name == "" {
		l.globs = append(l.globs, at)
	} else if _, twice := l.exact[x.name]; !twice {
		l.exact[x.name] = at
	}
}

// unquote removes the backslashes, up to the first character that makes it a glob; plain means that
// there is none.
func unquote(s string) (name string, plain bool) {
	if !strings.ContainsAny(s, meta) {
		return s, true
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
		case strings.IndexByte(meta, s[i]) >= 0:
			return b.String(), false
		}
		b.WriteByte(s[i])
	}
	return b.String(), true
}

// quote returns the line for one name, and for what is below it if it is a folder.
func quote(name string) line {
	text := processor.QuoteGlob(name)
	if strings.HasPrefix(text, "#") { // not a comment
		text = `\` + text
	}
	x, _ := parseLine(text)
	return x
}

// means reports whether a folder or a glob means a resource. The main product of a folder asset has the
// folder's name.
func (x *line) means(name string) bool {
	switch {
	case x.name != "":
		return x.name == name
	case !strings.HasPrefix(name, x.prefix):
		return false
	}
	return !x.glob || doublestar.MatchUnvalidated(x.text, name)
}

// at is the index of the first line that means a resource, or -1.
func (l *List) at(name string) int {
	at := -1
	if k, ok := l.exact[name]; ok {
		at = k
	}
	for _, k := range l.globs {
		if at >= 0 && k > at {
			break
		}
		if l.lines[k].means(name) {
			return k
		}
	}
	return at
}

// Sort returns the indexes of the names that the list means, in its order; those of one line in the given order.
func (l *List) Sort(names []string) []int {
	rank := make([]int, len(names))
	var found []int
	for i, name := range names {
		if rank[i] = l.at(name); rank[i] >= 0 && name != "" {
			found = append(found, i)
		}
	}
	slices.SortStableFunc(found, func(a, b int) int { return rank[a] - rank[b] })
	return found
}

// Hash is a hash of the order, without comments.
func (l *List) Hash() digest.Hash {
	b := digest.Build("load order")
	for i := range l.lines {
		b.Str("line", l.lines[i].text)
	}
	return b.Sum()
}

// Gone returns the lines that mean none of the names, which names passes one by one. The products of lost assets, by
// id, are not known, so lines that may mean one of them are not returned.
func (l *List) Gone(names func(tell func(name string)), lost map[string]bool) []Line {
	left := map[int]bool{}
	for i := range l.lines {
		left[i] = true
	}
	tell := func(name string) {
		if k, ok := l.exact[name]; ok {
			delete(left, k)
		}
		for _, k := range l.globs {
			if left[k] && l.lines[k].means(name) {
				delete(left, k)
			}
		}
	}
	names(tell)
	for id := range lost {
		tell(id)
	}
	var gone []Line
	for i := range l.lines {
		if x := &l.lines[i]; left[i] && (x.name == "" || l.exact[x.name] == i) && !x.isOf(lost) {
			gone = append(gone, Line{x.text, x.number})
		}
	}
	return gone
}

// isOf reports whether a line may mean other products than the main one of some assets: it is the asset's id, or a glob
// of it, followed by # and a name.
func (x *line) isOf(assets map[string]bool) bool {
	at := strings.LastIndexByte(x.text, '#')
	if at <= 0 || len(assets) == 0 {
		return false
	}
	of := x.text[:at]
	id, plain := unquote(of)
	if plain {
		return assets[id]
	}
	if !doublestar.ValidatePattern(of) {
		return false
	}
	for id := range assets {
		if doublestar.MatchUnvalidated(of, id) {
			return true
		}
	}
	return false
}

// Line of a file.
type Line struct {
	Text   string
	Number int // from 1
}

// Merge adds names, in the order in which a game loaded them. Names that the list means already do not move. A new name
// goes before the listed name that the game loaded next, or to the end; but never before the name that the game loaded
// just before, which the new one may need.
func (l *List) Merge(loaded []string) {
	before := make([][]line, len(l.lines)+1)
	seen := make(map[string]bool, len(loaded)) // of repeated names, the first counts
	last := -1
	var fresh []line
	for _, name := range loaded {
		if name == "" || strings.ContainsAny(name, "\n\r") || seen[name] {
			continue
		}
		seen[name] = true
		k := l.at(name)
		if k < 0 {
			fresh = append(fresh, quote(name))
			continue
		}
		at := max(k, last+1)
		before[at] = append(before[at], fresh...)
		fresh, last = nil, k
	}
	before[len(l.lines)] = append(before[len(l.lines)], fresh...)
	merged := &List{below: l.below, exact: map[string]int{}}
	for i := range before {
		for _, x := range before[i] {
			merged.add(x)
		}
		if i < len(l.lines) {
			merged.add(l.lines[i])
		}
	}
	*l = *merged
}

// Drop removes lines; comments above them stay.
func (l *List) Drop(gone []Line) {
	out := map[int]bool{}
	for _, g := range gone {
		out[g.Number] = true
	}
	left := &List{exact: map[string]int{}}
	var above []string
	for _, x := range l.lines {
		if above = append(above, x.above...); !out[x.number] || x.number == 0 {
			x.above = above
			left.add(x)
			above = nil
		}
	}
	left.below = append(above, l.below...)
	*l = *left
}

// Len is the number of lines without comments.
func (l *List) Len() int { return len(l.lines) }

// Format writes the file.
func (l *List) Format() []byte {
	var b bytes.Buffer
	put := func(lines ...string) {
		for _, s := range lines {
			b.WriteString(s)
			b.WriteByte('\n')
		}
	}
	for i := range l.lines {
		put(l.lines[i].above...)
		put(l.lines[i].text)
	}
	put(l.below...)
	return b.Bytes()
}
