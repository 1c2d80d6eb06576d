// Package mention finds where the text of a source file names another file or an asset: by its path, or by the path
// relative to the file's folder. It knows no formats, so a name counts wherever it is not part of a longer one.
package mention

import (
	"bytes"
	"cmp"
	"path"
	"slices"
	"unicode/utf8"
)

// At is one place.
type At struct {
	Offset       int // in bytes
	Line, Column int // 0 if the file is not text
	Written      string
	Name         string // which of the names
}

// Find returns all places in a file's text where one of the names occurs, in order; file is the path of the text. Of
// overlapping places it returns the first, and of those the longest.
func Find(text []byte, file string, names ...string) []At {
	var all []At
	for _, name := range names {
		for _, written := range Forms(file, name) {
			for _, at := range places(text, written) {
				all = append(all, At{Offset: at, Written: written, Name: name})
			}
		}
	}
	slices.SortFunc(all, func(a, b At) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(len(b.Written), len(a.Written)))
	})
	end := 0
	all = slices.DeleteFunc(all, func(a At) bool {
		if a.Offset < end {
			return true
		}
		end = a.Offset + len(a.Written)
		return false
	})
	if utf8.Valid(text) {
		for i := range all {
			at := all[i].Offset
			start := bytes.LastIndexByte(text[:at], '\n') + 1
			all[i].Line, all[i].Column = bytes.Count(text[:at], []byte("\n"))+1, utf8.RuneCount(text[start:at])+1
		}
	}
	return all
}

// Forms returns the forms in which a file can name a path: as it is, and relative to the file's
// folder.
func Forms(file, name string) []string {
	from := relative(path.Dir(file), name)
	return []string{name, from, "./" + from}
}

// relative is a path relative to a folder, both below the source root.
func relative(dir, file string) string {
	up := ""
	for ; dir != "." && dir != "/"; dir = path.Dir(dir) {
		if len(file) > len(dir) && file[:len(dir)] == dir && file[len(dir)] == '/' {
			return up + file[len(dir)+1:]
		}
		up += "../"
	}
	return up + file
}

// places returns where a name occurs in a text and is not part of a longer one.
func places(text []byte, name string) (all []int) {
	if name == "" {
		return nil
	}
	for from := 0; ; {
		i := bytes.Index(text[from:], []byte(name))
		if i < 0 {
			return all
		}
		at := from + i
		before, _ := utf8.DecodeLastRune(text[:at])
		after, _ := utf8.DecodeRune(text[at+len(name):])
		if (at == 0 || !inName(before)) && (at+len(name) == len(text) || !inName(after)) {
			all = append(all, at)
		}
		from = at + 1
	}
}

// inName reports whether a letter can be part of the path of a file.
func inName(r rune) bool {
	switch {
	case r == utf8.RuneError:
		return false
	case r >= 0x80 || r == '/' || r == '.' || r == '-' || r == '_':
		return true
	}
	return '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}
