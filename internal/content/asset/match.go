package asset

import (
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/processor"
)

// matcher is a rule's glob, ready for many paths. Most globs are decided by their literal beginning and
// end; with 100,000 files and 20 rules that is the difference between 10 and 150 ns a match.
type matcher struct {
	glob   string // whole, from the source root, without a slash at the end
	exact  bool   // no glob at all
	folder string // the longest folder that all matches lie in; "" is the root

	prefix, suffix string // literal beginning and end
	deep           bool   // prefix + "**/*" + suffix, no more: prefix and the name's end decide
	name           string // what follows prefix + "**/" if that is a glob for names
	tree           bool   // prefix + "/**", no more: the folder itself and all below

	without []matcher // of what is taken out
}

// newMatchers are those of a rule: any of them matches what the rule does.
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
	// A folder's own name is not a glob, whatever characters it has.
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

// match reports whether a path matches; last is its last part.
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

// within is match without what is taken out.
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

// slow is match without short cuts.
func (m *matcher) slow(path string) bool { return doublestar.MatchUnvalidated(m.glob, path) }

// set finds the rules that match a path. A rule is only asked about paths below its literal folder.
type set struct {
	matchers []matcher
	rules    []int32            // index of each matcher's rule
	exact    map[string][]int32 // path to rules
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

// candidates are the matchers of a folder and of those above it, in the order of the rules.
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

// merge joins two ascending lists.
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

// parent is the folder that holds a path; "" for the root.
func parent(path string) string { return path[:max(strings.LastIndexByte(path, '/'), 0)] }

// Matches reports whether an id or a path is one that a pattern means: one below a folder, or one that matches a glob, which is valid. What
// the pattern takes out is left out.
func Matches(pattern, id string) bool {
	glob, without := project.SplitPattern(pattern)
	return within(glob, id) && !slices.ContainsFunc(without, func(x string) bool { return x == id || within(x, id) })
}

// MatchesFile reports whether a path matches a glob of source files, and nothing that is taken out.
func MatchesFile(pattern, path string) bool {
	glob, without := project.SplitPattern(pattern)
	return doublestar.MatchUnvalidated(glob, path) &&
		!slices.ContainsFunc(without, func(x string) bool { return doublestar.MatchUnvalidated(x, path) })
}

// within is Matches of a glob alone.
func within(pattern, id string) bool {
	folder := strings.TrimSuffix(pattern, "/")
	return strings.HasPrefix(id, folder) && strings.HasPrefix(id[len(folder):], "/") ||
		doublestar.MatchUnvalidated(pattern, id) || doublestar.MatchUnvalidated(pattern, strings.TrimSuffix(id, "/"))
}

// MeantBy reports whether a pattern means an asset: by its id or by its path. A rule that gives it another id takes it out of nothing.
func (a *Asset) MeantBy(pattern string) bool {
	glob, without := project.SplitPattern(pattern)
	return (within(glob, a.ID) || a.Renamed() && within(glob, a.Path)) && !a.takenOut(without)
}

// takenOut reports whether one of some globs, or of names of assets, means an asset.
func (a *Asset) takenOut(without []string) bool {
	return slices.ContainsFunc(without, func(x string) bool { return a.Called(x) || a.MeantBy(x) })
}

// Called reports whether a name is that of an asset, and no pattern of others: its id, its path or its UUID.
func (a *Asset) Called(name string) bool {
	uuid, is := processor.UUIDOf(name)
	return name == a.ID || !a.Declared && strings.TrimSuffix(name, "/") == a.Path || is && uuid == a.UUID
}

// Renamed reports whether an asset has an id besides its path.
func (a *Asset) Renamed() bool { return !a.Declared && strings.TrimSuffix(a.ID, "/") != a.Path }

// Pinned tells whether a rule gives an asset an id or a UUID, or has it follow.
func (a *Asset) Pinned() bool { return a.Renamed() || a.UUID != UUID(a.ID) || a.Follows }
