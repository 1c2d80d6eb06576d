package command

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// maxDepfile is the largest depfile that is read, in bytes: some 100,000 paths.
const maxDepfile = 16 << 20

// parseDepfile lists the prerequisites that a depfile names, each once, in order. The
// grammar is the part of make's that compilers write:
//
//	depfile = { [ rule ] newline }
//	rule    = word { space word } ":" { space word }
//
// A colon ends the targets where a space, a line's end or nothing follows: `C:\a` has none.
// In a word, `\ ` is a space, `\#` a `#`, `\:` a `:`, `$$` a `$`; 2n backslashes before a
// space or `#` are n backslashes and the word's end, 2n+1 are n of them and the character
// itself; any other backslash is a backslash, as Windows paths need it. A backslash at the end of a line
// joins the next one to it. A line that starts with `#` is a comment.
func parseDepfile(data []byte) ([]string, error) {
	if bytes.IndexByte(data, 0) >= 0 {
		return nil, errors.New("it holds a zero byte")
	}
	s := strings.NewReplacer("\r\n", "\n").Replace(string(data))
	var (
		found []string
		seen  = map[string]bool{}
		line  = 1
	)
	for s != "" {
		words, colon, rest, lines := depfileRule(s)
		if colon < 0 && len(words) > 0 {
			return nil, fmt.Errorf("line %d has no `target: prerequisite`", line)
		}
		for _, w := range words[max(colon, 0):] {
			if w != "|" && !seen[w] { // a lone bar stands before prerequisites that matter less
				seen[w] = true
				found = append(found, w)
			}
		}
		s, line = rest, line+lines
	}
	return found, nil
}

// depfileRule reads one rule: its words, how many of them are targets (-1 if there is no
// colon), what follows it, and how many lines it took.
func depfileRule(s string) (words []string, colon int, rest string, lines int) {
	colon = -1
	if strings.HasPrefix(s, "#") {
		_, rest, _ := strings.Cut(s, "\n")
		return nil, colon, rest, 1
	}
	for {
		var newlines int
		s, newlines = skipSpace(s)
		lines += newlines
		if s == "" {
			return words, colon, "", lines
		}
		if s[0] == '\n' {
			return words, colon, s[1:], lines + 1
		}
		word, ends, after := depfileWord(s, colon < 0)
		if word != "" {
			words = append(words, word)
		}
		if ends {
			colon = len(words)
		}
		s = after
	}
}

// skipSpace skips blanks and joined lines.
func skipSpace(s string) (rest string, lines int) {
	for {
		switch {
		case strings.HasPrefix(s, " "), strings.HasPrefix(s, "\t"):
			s = s[1:]
		case strings.HasPrefix(s, "\\\n"):
			s, lines = s[2:], lines+1
		default:
			return s, lines
		}
	}
}

// depfileWord reads a word; ends is true if it is the last target and its colon was read.
func depfileWord(s string, target bool) (word string, ends bool, rest string) {
	var b strings.Builder
	for s != "" {
		switch c := s[0]; {
		case c == ' ' || c == '\t' || c == '\n' || strings.HasPrefix(s, "\\\n"):
			return b.String(), false, s
		case c == ':' && target && endsTargets(s[1:]):
			return b.String(), true, s[1:]
		case strings.HasPrefix(s, "$$"):
			b.WriteByte('$')
			s = s[2:]
		case c == '\\':
			s = backslashes(&b, s)
		default:
			b.WriteByte(c)
			s = s[1:]
		}
	}
	return b.String(), false, ""
}

func endsTargets(after string) bool {
	return after == "" || strings.IndexByte(" \t\n", after[0]) >= 0 || strings.HasPrefix(after, "\\\n")
}

// backslashes reads a run of backslashes and what they escape.
func backslashes(b *strings.Builder, s string) (rest string) {
	rest = strings.TrimLeft(s, `\`)
	n := len(s) - len(rest)
	switch {
	case rest != "" && (rest[0] == ' ' || rest[0] == '#'):
		b.WriteString(s[:n/2])
		if n%2 == 1 {
			b.WriteByte(rest[0])
			rest = rest[1:]
		}
	case rest != "" && rest[0] == ':' && !endsTargets(rest[1:]):
		b.WriteString(s[:n-1])
		b.WriteByte(':')
		rest = rest[1:]
	case strings.HasPrefix(rest, "\n"): // the last one joins the lines
		b.WriteString(s[:n-1])
		rest = s[n-1:]
	default:
		b.WriteString(s[:n])
	}
	return rest
}
