package project

import (
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
)

// Pattern is a glob and its place. After the glob, Text has the globs that the list excludes, each on a line of its own
// after a "!": see SplitPattern.
type Pattern struct {
	Text string
	Span settings.Span
}

// takeOut is the mark of an exclusion, and groupMark that of a group.
const takeOut, groupMark = "!", "@"

// SplitPattern splits the text of a pattern into its glob and the excluded globs.
func SplitPattern(text string) (glob string, without []string) {
	glob, rest, more := strings.Cut(text, "\n"+takeOut)
	if more {
		without = strings.Split(rest, "\n"+takeOut)
	}
	return glob, without
}

// JoinPattern is the reverse of SplitPattern.
func JoinPattern(glob string, without []string) string {
	for _, x := range without {
		glob += "\n" + takeOut + x
	}
	return glob
}

// ShowPattern is the text of a pattern on one line.
func ShowPattern(text string) string {
	glob, without := SplitPattern(text)
	if len(without) == 0 {
		return glob
	}
	return glob + " without " + strings.Join(without, ", ")
}

// EnvMark and ToolMark stand before patterns of what jobs find besides source files: environment variables and programs. What a traced
// program reads outside of the source roots counts as a program.
const EnvMark, ToolMark = "env:", "tool:"

// CutFound splits a pattern of what jobs find into its mark, "" for source files, and its glob.
func CutFound(pattern string) (mark, glob string) {
	for _, mark := range []string{EnvMark, ToolMark} {
		if glob, ok := strings.CutPrefix(pattern, mark); ok {
			return mark, glob
		}
	}
	return "", pattern
}

// foundGlob takes a glob that follows a mark; "" if there is a mistake. Programs may have absolute paths.
func (d *decoder) foundGlob(v *settings.Value, key, mark, glob string) string {
	if mark == ToolMark && strings.HasPrefix(glob, "/") {
		mark, glob = mark+"/", glob[1:]
	}
	if glob == "" {
		d.bad(v, `write a name or a glob after it: "env:USER", "tool:python3"`, "%q names nothing", v.Str)
		return ""
	}
	if glob = d.glob(v, key, glob); glob == "" {
		return ""
	}
	return mark + glob
}

// maxPattern is the longest glob, in bytes.
const maxPattern = 1024

// Meta are the characters that make a path a glob.
const Meta = `*?[{\`

// IsGlob reports whether a pattern may match other paths than itself.
func IsGlob(pattern string) bool { return strings.ContainsAny(pattern, Meta) }

// glob checks the end of a string, which must be a glob, and reports the place of an error in it; it
// returns "" then.
func (d *decoder) glob(v *settings.Value, name, s string) string {
	if s == "" {
		return ""
	}
	at, n, what, hint := badPattern(s)
	if what == "" {
		return s
	}
	span := v.Span
	// The place inside the string is known if there is no escape before it.
	if quote := `"`; n > 0 && (span.Source() == quote+v.Str+quote || span.Source() == "'"+v.Str+"'") {
		span = span.Within(1+utf8.RuneCountInString(v.Str[:len(v.Str)-len(s)+at]), n)
	}
	d.add(span.Errorf(diag.BadGlob, "%q %s", name, what).WithHint("%s", hint))
	return ""
}

// badPattern finds what is wrong with a glob: n characters from byte at.
func badPattern(s string) (at, n int, what, hint string) {
	if len(s) > maxPattern {
		return 0, 0, "is longer than 1024 bytes", "split it into several rules"
	}
	if i, ok := manyBraces(s); ok {
		return i, 1, "has more than 8 braces", "split it into several rules" // each multiplies the time of a match
	}
	if s == "./" {
		return // the folder of rules.toml itself
	}
	if s[0] == '/' {
		return 0, 1, "begins with a slash", "globs are relative: write \"" + strings.TrimLeft(s, "/") + "\""
	}
	if i := strings.IndexByte(s, '\\'); i >= 0 && (i+1 == len(s) || !strings.ContainsRune(`*?[]{},!@-^\`, rune(s[i+1]))) {
		return i, 1, "has a backslash", "use forward slashes: \"" + strings.ReplaceAll(s, `\`, "/") + "\""
	}
	for i := 0; i < len(s); {
		part, _, more := strings.Cut(s[i:], "/")
		switch {
		case part == "." || part == "..":
			return i, len(part), "has a part " + part, "globs are relative to the folder of the file they stand in, and stay below it"
		case part == "" && more:
			return i, 1, "has two slashes in a row", "remove one"
		}
		i += len(part) + 1
	}
	if !doublestar.ValidatePattern(s) {
		at, what = unclosed(s)
		return at, 1, what, "put a backslash before it if it is part of a name"
	}
	return
}

// maxBraces is how many braces a glob may have.
const maxBraces = 8

// manyBraces finds the first brace beyond maxBraces.
func manyBraces(s string) (int, bool) {
	n := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '{':
			if n++; n > maxBraces {
				return i, true
			}
		}
	}
	return 0, false
}

// unclosed finds the bracket that makes a glob invalid.
func unclosed(s string) (int, string) {
	var braces []int
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '{':
			braces = append(braces, i)
		case '}':
			if len(braces) == 0 {
				return i, "closes a brace that was not opened"
			}
			braces = braces[:len(braces)-1]
		case '[':
			class := i + 1
			for class < len(s) && (s[class] != ']' || class == i+1) {
				if s[class] == '\\' {
					class++
				}
				class++
			}
			if class >= len(s) {
				return i, "opens a bracket that is not closed"
			}
			if !doublestar.ValidatePattern(s[i : class+1]) {
				return i, "has an empty or broken character class"
			}
			i = class
		}
	}
	if len(braces) > 0 {
		return braces[len(braces)-1], "opens a brace that is not closed"
	}
	return 0, "is not a glob"
}
