package asset

import (
	"iter"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/processor"
)

// Finder finds single assets, without making all of a project. It takes for granted that the project's assets were made before without
// an error, and gives the same assets then; what their number decides, such as ids that collide, it does not know.
type Finder struct {
	mu     sync.Mutex
	b      *builder
	exists func(path string) bool
	pinned map[string]string // id to path
	known  map[string]*Asset // by path

	declared map[string]*Asset // by id
}

// NewFinder makes one of everything that Build takes but the files: a list of one file or more in each folder that has any stands for them,
// and exists tells whether a path is one of a file. It is nil if the rules do not let single assets be found.
func NewFinder(in Input, exists func(path string) bool) *Finder {
	f := &Finder{
		b: newBuilder(in, exists), exists: exists,
		pinned: map[string]string{}, known: map[string]*Asset{}, declared: map[string]*Asset{},
	}
	for i := range f.b.rules {
		r := &f.b.rules[i]
		if r.ID == "" || r.Declares {
			continue
		}
		if project.IsGlob(r.Match) || r.HasFields() {
			return nil
		}
		f.pinned[r.ID] = newMatcher(r.Match, r.Base).glob
	}
	f.b.folderAssets()
	for i := range f.b.assets {
		a := f.b.assets[i]
		f.known[a.Path] = &a
	}
	f.b.assets = nil
	f.b.declaredAssets()
	for i := range f.b.assets {
		f.declared[f.b.assets[i].ID] = &f.b.assets[i]
	}
	f.b.assets = nil
	return f
}

// Find finds the asset that a name means: its id, its path, or a folder's path without the slash; nil if there is none.
func (f *Finder) Find(name string) *Asset {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a, ok := f.declared[name]; ok {
		return a
	}
	if path, ok := f.pinned[name]; ok {
		if a := f.at(path); a != nil && a.ID == name {
			return a
		}
	}
	if a := f.at(strings.TrimSuffix(name, "/")); a != nil {
		return a
	}
	return nil
}

func (f *Finder) at(path string) *Asset {
	if a, ok := f.known[path]; ok {
		return a
	}
	var a *Asset
	if f.exists(path) {
		a = f.make(path)
	}
	f.known[path] = a
	return a
}

// Would is the asset that a file is, if it is there.
func (f *Finder) Would(path string) *Asset {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.make(path)
}

func (f *Finder) make(path string) *Asset {
	f.b.assets = f.b.assets[:0]
	f.b.fileAsset(nil, path)
	if len(f.b.assets) == 0 {
		return nil
	}
	a := f.b.assets[0]
	return &a
}

// Meant lists the assets that a pattern means, as Table's Meant does, of all source files, and of an asset that the pattern is a name of;
// nil if it is none.
func (f *Finder) Meant(pattern string, files []string, byName *Asset) (list []*Asset) {
	glob, without := project.SplitPattern(pattern)
	add := func(a *Asset) {
		if a != nil && (a == byName || a.MeantBy(glob)) && !a.takenOut(without) {
			list = append(list, a)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, file := range files {
		if within(glob, file) {
			add(f.at(file))
		}
	}
	for _, path := range f.pinned {
		add(f.at(path))
	}
	for _, a := range f.declared {
		add(a)
	}
	for _, a := range f.known { // those of folders are all known
		if a != nil && a.Folder {
			add(a)
		}
	}
	add(byName)
	slices.SortFunc(list, func(a, b *Asset) int { return strings.Compare(a.ID, b.ID) })
	return slices.Compact(list)
}

// Kind is the same for files to which the same rules and the same default processor apply. As long as there is another one of its kind,
// which is an asset or not as the file is, no rule has more or less to say because a file comes or goes.
func (f *Finder) Kind(path string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	folder := parent(path)
	chain := f.b.files.match(nil, path, folder)
	kind := make([]byte, 0, 64)
	for _, i := range chain {
		kind = append(kind, byte(i), byte(i>>8), byte(i>>16))
	}
	for i := range f.b.named.rules {
		if r := &f.b.named.rules[i]; r.of(&Asset{ID: path, Path: path}) {
			kind = append(kind, byte(r.number), byte(r.number>>8), byte(r.number>>16)|0x80)
		}
	}
	for _, a := range f.declared {
		if a.Path == path { // of which it is said that there is no such file
			return "\x00" + path
		}
	}
	byExtension, extension := f.b.byExtension(strings.TrimPrefix(path[len(folder):], "/"))
	if len(f.b.clashes) > 0 {
		byExtension += extension // it may be one of which something is to be said
	}
	return string(kind) + "\x00" + byExtension
}

// Named is what rules say of requests.
func (f *Finder) Named() *Named { return f.b.named }

// mayMean tells whether a file is one that a rule which matches nothing may be for, or may have been meant for.
func mayMean(r *project.Rule, file string) bool {
	for _, p := range r.List {
		glob, _ := project.SplitPattern(p.Text)
		if mayMean(&project.Rule{Match: glob}, file) {
			return true
		}
	}
	m := newMatcher(r.Match, r.Base)
	if m.exact {
		return parent(file) == parent(m.glob) || strings.EqualFold(path.Base(file), path.Base(m.glob))
	}
	return doublestar.MatchUnvalidated(path.Join(processor.QuoteGlob(r.Base), "**/"+r.Match), file)
}

// ByHand visits the patterns of all that jobs depend on by hand: globs of source files, and patterns of assets.
func (f *Finder) ByHand() iter.Seq2[project.Pattern, bool] { return f.b.byHandPatterns() }

// IDs are those that rules pin, and those of declared assets.
func (f *Finder) IDs() []string {
	ids := slices.Collect(maps.Keys(f.declared))
	for id := range f.pinned {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Concerned tells whether something that is said of rules, or of the patterns of parcels, may be otherwise because this file comes or goes:
// that nothing matches them, and what they may have been meant for. It knows nothing of files that are the last of their kind.
func (f *Finder) Concerned(file string, said diag.List) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	about := func(p diag.Pos) bool {
		return slices.ContainsFunc(said, func(m *diag.Message) bool { return m.Code == diag.RuleMatchesNothing && m.Pos == p })
	}
	for i := range f.b.rules {
		of := f.b.rules[i]
		if n := f.b.named.is(int32(i)); n != nil {
			of.Match, _, _ = splitNamed(of.Match)
		}
		if about(of.MatchSpan.Pos) && mayMean(&of, file) {
			return true
		}
	}
	for p, ofAssets := range f.b.byHandPatterns() {
		if about(p.Span.Pos) && (ofAssets || mayMean(&project.Rule{List: []project.Pattern{p}}, file)) {
			return true
		}
	}
	for i := range f.b.in.Project.Parcels {
		for _, pat := range f.b.in.Project.Parcels[i].Assets {
			if about(pat.Span.Pos) { // the ids of all assets are what it may have been meant for
				return true
			}
		}
	}
	return false
}
