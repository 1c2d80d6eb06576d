package source

import (
	"path"
	"strings"
)

// IgnoreFile in any folder lists patterns in .gitignore syntax.
const IgnoreFile = ".kilnignore"

// maxIgnoreFile is the size in bytes up to which an ignore file is read. A larger one ignores nothing.
const maxIgnoreFile = 1 << 20

// builtinIgnore are files that are never game content: of version control, desktops and editors.
var builtinIgnore = []string{
	".git", ".hg", ".svn", ".jj", ".sl", ".bzr", ".pijul", ".p4", ".DS_Store", "Thumbs.db", "desktop.ini", "*~", ".#*", ".*.sw[op]",
}

// pattern is one line of an ignore file (gitignore(5)). It is matched against an entry only, not against its parents,
// because the content of an ignored folder is never read.
type pattern struct {
	base     string   // folder of the ignore file, with a slash at the end; "" is the root
	segments []string // split at slashes; a single segment without a slash is matched against the name
	literal  bool     // the only segment has no special characters
	anchored bool
	negated  bool
	dirOnly  bool
}

// parsePattern parses a line; ok is false if it is empty or a comment.
func parsePattern(line, base string) (p pattern, ok bool) {
	line = strings.TrimRight(line, "\r\n")
	if strings.HasPrefix(line, "#") {
		return p, false
	}
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	p.base = base
	line, p.negated = strings.CutPrefix(line, "!")
	line, p.dirOnly = strings.CutSuffix(line, "/")
	if line == "" {
		return p, false
	}
	p.anchored = strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	line = strings.ReplaceAll(line, "[!", "[^") // the syntax of package path
	p.segments = strings.Split(line, "/")
	if p.anchored && p.segments[len(p.segments)-1] == "**" {
		p.segments = append(p.segments, "*") // everything inside, not the folder itself
	}
	p.literal = !strings.ContainsAny(line, `*?[\`)
	return p, true
}

func parsePatterns(text, base string) []pattern {
	var ps []pattern
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		if p, ok := parsePattern(line, base); ok {
			ps = append(ps, p)
		}
	}
	return ps
}

func (p *pattern) match(rel string, isDir bool) bool {
	below, ok := strings.CutPrefix(rel, p.base)
	if !ok || p.dirOnly && !isDir {
		return false
	}
	if p.anchored {
		return matchSegments(p.segments, strings.Split(below, "/"))
	}
	_, name := split(below)
	if p.literal {
		return name == p.segments[0]
	}
	return matchName(p.segments[0], name)
}

// matchName returns false for an invalid pattern, as git does.
func matchName(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// matchSegments matches names with patterns, where "**" means any number of names. Only the last "**" needs to be tried
// again, as with the stars of a glob.
func matchSegments(patterns, names []string) bool {
	p, n, star, mark := 0, 0, -1, 0
	for n < len(names) {
		switch {
		case p < len(patterns) && patterns[p] == "**":
			star, mark = p, n
			p++
		case p < len(patterns) && matchName(patterns[p], names[n]):
			p, n = p+1, n+1
		case star >= 0:
			mark++
			p, n = star+1, mark
		default:
			return false
		}
	}
	for p < len(patterns) && patterns[p] == "**" {
		p++
	}
	return p == len(patterns)
}

// ignored reports whether an entry is skipped: the last matching pattern decides.
func ignored(ps []pattern, rel string, isDir bool) bool {
	for i := len(ps) - 1; i >= 0; i-- {
		if ps[i].match(rel, isDir) {
			return !ps[i].negated
		}
	}
	return false
}
