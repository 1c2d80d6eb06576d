package asset

import (
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
}

// NewFinder makes one of everything that Build takes but the files: a list of one file or more in each folder that has any stands for them,
// and exists tells whether a path is one of a file. It is nil if the rules do not let single assets be found.
func NewFinder(in Input, exists func(path string) bool) *Finder {
	f := &Finder{b: newBuilder(in), exists: exists, pinned: map[string]string{}, known: map[string]*Asset{}}
	for i := range f.b.rules {
		r := &f.b.rules[i]
		if r.ID == "" {
			continue
		}
		if project.IsGlob(r.Match) {
			return nil
		}
		m := newMatcher(r)
		f.pinned[r.ID] = m.glob
	}
	f.b.folderAssets()
	for i := range f.b.assets {
		a := f.b.assets[i]
		f.known[a.Path] = &a
	}
	return f
}

// Find finds the asset that a name means: its id, its path, or a folder's path without the slash; nil if there is none.
func (f *Finder) Find(name string) *Asset {
	f.mu.Lock()
	defer f.mu.Unlock()
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
	byExtension, extension := f.b.byExtension(strings.TrimPrefix(path[len(folder):], "/"))
	if len(f.b.clashes) > 0 {
		byExtension += extension // it may be one of which something is to be said
	}
	return string(kind) + "\x00" + byExtension
}

// IDs are those that rules pin.
func (f *Finder) IDs() []string {
	ids := make([]string, 0, len(f.pinned))
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
		r := &f.b.rules[i]
		if !about(r.MatchSpan.Pos) {
			continue
		}
		m := newMatcher(r)
		switch {
		case m.exact && (parent(file) == parent(m.glob) || strings.EqualFold(path.Base(file), path.Base(m.glob))),
			!m.exact && doublestar.MatchUnvalidated(path.Join(processor.QuoteGlob(r.Base), "**/"+r.Match), file):
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
