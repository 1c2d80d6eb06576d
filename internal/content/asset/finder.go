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

// Finder finds single assets without making all assets of a project. It assumes that the project's assets were made
// before without an error, and then returns equal ones. It does not check what depends on all of them, such as
// colliding ids.
type Finder struct {
	mu     sync.Mutex
	b      *builder
	exists func(path string) bool
	pinned map[string]string // id to path
	known  map[string]*Asset // by path

	declared map[string]*Asset // by id
}

// NewFinder makes a finder from the input of Build, except for the files: one or more files of each folder that has any
// are enough, and exists reports whether a path is a file. It returns nil if the rules do not allow finding single
// assets.
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

// Find returns the asset that a name means: its id, its path, or a folder's path without the slash; nil if there is
// none.
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

// Would returns the asset of a file, assuming that the file exists.
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

// Meant returns the assets that a pattern means, like Table.Meant, among all source files and the asset whose name the
// pattern is (byName, or nil).
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
	for _, a := range f.known { // all folder assets are known
		if a != nil && a.Folder {
			add(a)
		}
	}
	add(byName)
	slices.SortFunc(list, func(a, b *Asset) int { return strings.Compare(a.ID, b.ID) })
	return slices.Compact(list)
}

// Kind is equal for files with the same rules and the same default processor. As long as there is another file of its
// kind, which is an asset or not as the file is, adding or removing the file does not change messages about rules.
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
		if a.Path == path { // a message says that this file does not exist
			return "\x00" + path
		}
	}
	byExtension, extension := f.b.byExtension(strings.TrimPrefix(path[len(folder):], "/"))
	if len(f.b.clashes) > 0 {
		byExtension += extension // a message may mention the extension
	}
	return string(kind) + "\x00" + byExtension
}

// Named returns the settings that rules give to requests.
func (f *Finder) Named() *Named { return f.b.named }

// mayMean reports whether a rule that matches nothing may match a file, or may have been meant for it.
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

// ByHand iterates over all patterns of dependencies by hand: globs of source files, and patterns of assets.
func (f *Finder) ByHand() iter.Seq2[project.Pattern, bool] { return f.b.byHandPatterns() }

// IDs returns the ids that rules set, and those of declared assets.
func (f *Finder) IDs() []string {
	ids := slices.Collect(maps.Keys(f.declared))
	for id := range f.pinned {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Concerned reports whether adding or removing a file may change a message about rules or patterns of parcels: that
// nothing matches them, or the suggestion. It does not handle files that are the last of their kind.
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
			if about(pat.Span.Pos) { // the suggestion depends on the ids of all assets
				return true
			}
		}
	}
	return false
}
