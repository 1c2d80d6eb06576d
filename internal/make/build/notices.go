package build

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/delivery/ship"
)

// notices are what is to be said that is not of jobs: of the rules, of source files, and of what is made of products. They stand from
// build to build until something that they are about changes.
type notices struct {
	Rules   diag.List       `json:"rules,omitempty"`
	Folders []source.Remark `json:"folders,omitempty"` // in the order of the table
	Empty   []emptyFile     `json:"empty,omitempty"`   // sorted by asset
	Shipped diag.List       `json:"shipped,omitempty"`
	Lacks   []lack          `json:"lacks,omitempty"` // why, of those in Shipped that say that a parcel lacks something
	Left    []string        `json:"left,omitempty"`  // parcels that stay as they are, below the output folder
}

// emptyFile is what is said of an asset that has no content.
type emptyFile struct {
	Asset string `json:"asset"`
	Path  string `json:"path"`
	*diag.Message
}

// lack is ship.Lack with its message by number.
type lack struct {
	ship.Lack
	Number int `json:"number"`
}

// messages are all of them, as people read them.
func (n *notices) messages() diag.List {
	l := slices.Concat(n.Rules, source.Messages(n.Folders))
	for _, e := range n.Empty {
		l = append(l, e.Message)
	}
	return append(l, n.Shipped...)
}

// encode is what a snapshot has of them.
func (n *notices) encode() []byte {
	if len(n.Rules)+len(n.Folders)+len(n.Empty)+len(n.Shipped)+len(n.Left) == 0 {
		return nil
	}
	b, _ := json.Marshal(n) // strings and numbers
	return b
}

// decodeNotices is false if they are damaged.
func decodeNotices(b []byte) (n notices, ok bool) {
	if len(b) == 0 {
		return n, true
	}
	err := json.Unmarshal(b, &n)
	for i := range n.Lacks {
		l := &n.Lacks[i]
		if err != nil || l.Number < 0 || l.Number >= len(n.Shipped) {
			return n, false
		}
		l.Message = n.Shipped[l.Number]
	}
	return n, err == nil
}

// shipped takes in what is said of parcels and constants.
func (n *notices) shipped(res *ship.Result) {
	n.Shipped, n.Lacks, n.Left = res.Messages, nil, res.Left
	for _, l := range res.Lacks {
		n.Lacks = append(n.Lacks, lack{l, slices.Index(res.Messages, l.Message)})
	}
}

// emptyFile is what is said of an asset if it has no content: most often an export or a copy that was cut short. Names that begin with a
// dot are meant to be empty (.gitkeep).
func (p *Project) emptyFile(t *source.Table, a *asset.Asset) (e emptyFile, ok bool) {
	if a.Folder || strings.HasPrefix(path.Base(a.Path), ".") {
		return e, false
	}
	at, root, ok := t.Find(a.Path)
	if !ok || t.At(at).Stat.Size > 0 {
		return e, false
	}
	m := diag.Warningf(diag.EmptyFile, diag.Pos{File: p.prefixes()[root] + a.Path}, "the file is empty").
		WithHint("write it again, or name it in %s", source.IgnoreFile)
	return emptyFile{a.ID, a.Path, m}, true
}

// notice says what is to be said of the rules and of all source files. What was said of parcels and constants stands.
func (s *session) notice(t *source.Table, set *asset.Table, rules diag.List, before notices) {
	s.notices = before
	s.notices.Rules, s.notices.Folders, s.notices.Empty = rules, t.Report(s.p.prefixes(), nil, nil), nil
	var paths []string
	for i := range set.Assets {
		paths = append(paths, set.Assets[i].Path)
	}
	s.notices.look(s.p, t, paths, set.ByPath)
}

// said is all messages that are not of jobs: those of this build alone, those of kiln.toml, and notices.
func (s *session) said() diag.List {
	return slices.Concat(s.messages, s.p.warnings, s.notices.messages())
}

// noticeLearnt looks again at which files are empty, among those whose content jobs read in this build: they may have changed since the
// scan.
func (s *session) noticeLearnt() {
	paths, ok := s.w.Table.Learnt()
	if !ok {
		for i := range s.w.Names().Assets {
			paths = append(paths, s.w.Names().Assets[i].Path)
		}
	}
	s.notices.look(s.p, s.w.Table, paths, s.w.Find)
}

// look says of some files, by path, whether they are empty.
func (n *notices) look(p *Project, t *source.Table, paths []string, find func(path string) *asset.Asset) {
	empty := map[string]emptyFile{}
	for _, e := range n.Empty {
		empty[e.Path] = e
	}
	for _, path := range paths {
		a := find(path)
		if a == nil || a.Path != path {
			delete(empty, path)
		} else if e, is := p.emptyFile(t, a); !is {
			delete(empty, path)
		} else if was, ok := empty[path]; !ok || was.Message.ID() != e.Message.ID() {
			empty[path] = e
		}
	}
	n.Empty = nil
	for _, path := range sortedKeys(empty) {
		n.Empty = append(n.Empty, empty[path])
	}
	slices.SortStableFunc(n.Empty, func(a, b emptyFile) int { return strings.Compare(a.Asset, b.Asset) })
}

// keepNotices takes over what was to be said, but of files that changed. It is false if that may be otherwise for rules, too.
func (s *session) keepNotices(t *source.Table, find func(path string) *asset.Asset) bool {
	n, ok := decodeNotices(s.prev.Notices)
	if !ok {
		return false
	}
	folders, ok := t.Since(s.prev.Sources)
	n.Folders = t.Report(s.p.prefixes(), n.Folders, append([]int{}, folders...))
	if !ok || source.Messages(n.Folders).Err() != nil && ship.Wanted(s.p.Project) {
		return false // what there is to be packed is not known
	}
	n.look(s.p, t, slices.Concat(s.few.edited, s.few.added, s.few.removed), find)
	s.notices = n
	return true
}
