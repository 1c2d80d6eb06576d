package source

import (
	"path"
	"strings"
)

// IgnoreFile in any folder lists patterns in .gitignore syntax.
const IgnoreFile = ".kilnignore"

// maxIgnoreFile is the size in bytes up to which an ignore file is read. A larger one ignores nothing.
const maxIgnoreFile = 1 << 20

// builtinIgnore are files and folders that are never game content, by their names alone: of version control, systems, and
// programs. What has other people's names, too, is in litterKinds.
var builtinIgnore = []string{
	".git", ".hg", ".svn", ".bzr", ".jj", ".sl", ".pijul", ".p4", "*~", ".#*", ".*.sw[op]", ".~lock.*#",
	".DS_Store", "__MACOSX/", ".AppleDouble/", ".AppleDB/", ".AppleDesktop/", ".Spotlight-V100/", ".Trashes",
	".fseventsd", ".TemporaryItems/", ".apdisk",
	"Thumbs.db", "ehthumbs.db", "desktop.ini", "$RECYCLE.BIN/", "System Volume Information/",
	".directory", ".nfs[0-9a-f]*", "@eaDir/",
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

	text    string // as written
	file    string // that it stands in, below its root; "" for Kiln's own and the project's
	project bool
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
	p.base, p.text = base, line
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

// decides returns the pattern that decides whether an entry is skipped, the last that matches, or nil.
func decides(ps []pattern, rel string, isDir bool) *pattern {
	for i := len(ps) - 1; i >= 0; i-- {
		if ps[i].match(rel, isDir) {
			return &ps[i]
		}
	}
	return nil
}

// ignored reports whether an entry is skipped.
func ignored(ps []pattern, rel string, isDir bool) bool {
	by := decides(ps, rel, isDir)
	return by != nil && !by.negated
}
