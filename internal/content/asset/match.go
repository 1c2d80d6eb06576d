package asset

import (
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/processor"
)

// matcher is a prepared glob of a rule. Most globs are decided by their literal beginning and end; with
// 100,000 files and 20 rules that is the difference between 10 and 150 ns a match.
type matcher struct {
	glob   string // the whole glob, from the source root, without a slash at the end
	exact  bool   // it is not a glob
	folder string // the longest folder that contains all matches; "" is the root

	prefix, suffix string // literal beginning and end of the glob
	deep           bool   // the glob is prefix + "**/*" + suffix: prefix and the name's end decide
	name           string // the part after prefix + "**/" if it is a glob for names
	tree           bool   // the glob is prefix + "/**": the folder itself and everything below

	without []matcher // matchers of excluded paths
}

// newMatchers returns the matchers of a rule: a path matches if one of them does.
func newMatchers(r *project.Rule) []matcher {
	if r.List == nil {
		return []matcher{newMatcher(r.Match, r.Base)}
	}
	list := make([]matcher, len(r.List))
	for i, p := range r.List {
		glob, without := project.SplitPattern(p.Text)
		list[i] = newMatcher(glob, "")
		for _, x := range without {
			list[i].without = append(list[i].without, newMatcher(x, ""))
		}
	}
	return list
}

func newMatcher(match, folder string) matcher {
	glob := strings.TrimSuffix(match, "/")
	if glob == "." {
		return matcher{glob: folder, exact: true}
	}
	base := ""
	if folder != "" {
		base = folder + "/"
	}
	if !project.IsGlob(glob) {
		return matcher{glob: base + glob, exact: true}
	}
	// The folder's own name is not a glob, whatever characters it contains.
	m := matcher{glob: processor.QuoteGlob(base) + glob}
	first := strings.IndexAny(glob, project.Meta)
	m.prefix = base + glob[:first]
	if short := strings.TrimSuffix(m.prefix, "/"); m.slow(short) {
		m.prefix, m.tree = short, short != "" && glob[first:] == "**" // a/** matches a
	}
	if i := strings.LastIndexByte(m.prefix, '/'); i >= 0 {
		m.folder = m.prefix[:i]
	}
	if strings.Contains(glob, `\`) {
		return m
	}
	m.suffix = glob[strings.LastIndexAny(glob, "*?]}")+1:]
	if m.prefix == "" || strings.HasSuffix(m.prefix, "/") {
		name, ok := strings.CutPrefix(glob[first:], "**/")
		if ok && !strings.ContainsAny(name, "/") && !strings.Contains(name, "**") {
			m.name, m.deep = name, name == "*"+m.suffix
		}
		m.deep = m.deep || m.glob == "**"
	}
	return m
}

// match reports whether a path matches; last is its last element.
func (m *matcher) match(path, last string) bool {
	if !m.within(path, last) {
		return false
	}
	for i := range m.without {
		if m.without[i].within(path, last) {
			return false
		}
	}
	return true
}

// within is match without exclusions.
func (m *matcher) within(path, last string) bool {
	if m.exact {
		return path == m.glob
	}
	if len(path) < len(m.prefix) || path[:len(m.prefix)] != m.prefix {
		return false
	}
	if !strings.HasSuffix(last, m.suffix) && !strings.Contains(m.suffix, "/") {
		return false
	}
	if m.tree {
		return path == m.prefix || path[len(m.prefix)] == '/'
	}
	if m.name != "" {
		return m.deep || doublestar.MatchUnvalidated(m.name, last)
	}
	return m.deep || m.slow(path)
}

// slow is match without shortcuts.
func (m *matcher) slow(path string) bool { return doublestar.MatchUnvalidated(m.glob, path) }

// set finds the rules that match a path. A rule is only checked for paths below its literal folder.
type set struct {
	matchers []matcher
	rules    []int32            // index of each matcher's rule
	exact    map[string][]int32 // paths without globs to rules
	folders  map[string][]int32 // literal folder to matchers of globs
	cached   map[string][]int32 // folder to all matchers that can match in it, in order
}

func newSet(rules []project.Rule, forFolders bool) *set {
	s := &set{exact: map[string][]int32{}, folders: map[string][]int32{}, cached: map[string][]int32{}}
	for i := range rules {
		if rules[i].ForFolders() != forFolders || rules[i].Declares {
			continue
		}
		for _, m := range newMatchers(&rules[i]) {
			if m.exact && m.without == nil {
				s.exact[m.glob] = append(s.exact[m.glob], int32(i))
				continue
			}
			if m.exact {
				m.folder = parent(m.glob)
			}
			s.folders[m.folder] = append(s.folders[m.folder], int32(len(s.matchers)))
			s.matchers = append(s.matchers, m)
			s.rules = append(s.rules, int32(i))
		}
	}
	return s
}

// candidates returns the matchers of a folder and its parents, in the order of the rules.
func (s *set) candidates(folder string) []int32 {
	if c, ok := s.cached[folder]; ok {
		return c
	}
	var c []int32
	if folder != "" {
		c = s.candidates(parent(folder))
	}
	c = merge(c, s.folders[folder])
	s.cached[folder] = c
	return c
}

// match appends the rules that match a path in a folder, in order, each once.
func (s *set) match(chain []int32, path, folder string) []int32 {
	name := path
	if folder != "" {
		name = path[len(folder)+1:]
	}
	exact, from := s.exact[path], len(chain)
	add := func(rule int32) {
		if n := len(chain); n == from || chain[n-1] != rule {
			chain = append(chain, rule)
		}
	}
	for _, i := range s.candidates(folder) {
		if m := &s.matchers[i]; m.match(path, name) {
			for len(exact) > 0 && exact[0] < s.rules[i] {
				add(exact[0])
				exact = exact[1:]
			}
			add(s.rules[i])
		}
	}
	for _, rule := range exact {
		add(rule)
	}
	return chain
}

// merge merges two ascending lists.
func merge(a, b []int32) []int32 {
	if len(b) == 0 {
		return a
	}
	if len(a) == 0 {
		return b
	}
	out := make([]int32, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0] < b[0] {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// parent is the folder of a path; "" for the root.
func parent(path string) string { return path[:max(strings.LastIndexByte(path, '/'), 0)] }

// Matches reports whether a pattern means an id or a path: it is below the folder, or matches the glob, which must be
// valid, and is not excluded.
func Matches(pattern, id string) bool {
	glob, without := project.SplitPattern(pattern)
	return within(glob, id) && !slices.ContainsFunc(without, func(x string) bool { return x == id || within(x, id) })
}

// MatchesFile reports whether a path matches a glob of source files, and is not excluded.
func MatchesFile(pattern, path string) bool {
	glob, without := project.SplitPattern(pattern)
	return doublestar.MatchUnvalidated(glob, path) &&
		!slices.ContainsFunc(without, func(x string) bool { return doublestar.MatchUnvalidated(x, path) })
}

// within is Matches for a single glob.
func within(pattern, id string) bool {
	folder := strings.TrimSuffix(pattern, "/")
	return strings.HasPrefix(id, folder) && strings.HasPrefix(id[len(folder):], "/") ||
		doublestar.MatchUnvalidated(pattern, id) || doublestar.MatchUnvalidated(pattern, strings.TrimSuffix(id, "/"))
}

// MeantBy reports whether a pattern means an asset, by its id or by its path. An id set by a rule does not change which
// exclusions apply.
func (a *Asset) MeantBy(pattern string) bool {
	glob, without := project.SplitPattern(pattern)
	return (within(glob, a.ID) || a.Renamed() && within(glob, a.Path)) && !a.takenOut(without)
}

// takenOut reports whether one of some globs or names excludes an asset.
func (a *Asset) takenOut(without []string) bool {
	return slices.ContainsFunc(without, func(x string) bool { return a.Called(x) || a.MeantBy(x) })
}

// Called reports whether a name is that of an asset, not a pattern of others: its id, its path or its UUID.
func (a *Asset) Called(name string) bool {
	uuid, is := processor.UUIDOf(name)
	return name == a.ID || !a.Declared && strings.TrimSuffix(name, "/") == a.Path || is && uuid == a.UUID
}

// Renamed reports whether an asset's id differs from its path.
func (a *Asset) Renamed() bool { return !a.Declared && strings.TrimSuffix(a.ID, "/") != a.Path }

// Pinned reports whether a rule sets the id or UUID of an asset, or makes it follow.
func (a *Asset) Pinned() bool { return a.Renamed() || a.UUID != UUID(a.ID) || a.Follows }
