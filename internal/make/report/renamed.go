package report

import (
	"path"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/delivery/ship"
	"github.com/kiln-pipeline/kiln/internal/engine"
)

// Once returns the messages of a build that the next one does not repeat. complete is that it was one of all assets.
func (s *Source) Once(complete bool) (l diag.List) {
	if complete {
		l = s.copiedAsIs()
	}
	if m := s.takenOver(); m != nil {
		l = append(l, m)
	}
	if ship.Wanted(s.P.Project) {
		l = append(l, s.renamed()...)
	}
	return l
}

// takenOver is the message that results of another version of Kiln are used again.
func (s *Source) takenOver() *diag.Message {
	before, n := s.P.Before(), 0
	for _, r := range s.Results {
		if r.State == engine.Held {
			n++
		}
	}
	if before == "" || n == 0 {
		return nil
	}
	m := diag.Warningf(diag.OtherKiln, diag.Pos{},
		"Kiln %s built this before, and this is %s: results of %d jobs are used again, of processors that did not change",
		before, s.P.Config.Version, n).WithHint("that needs no action; `kiln build --force` builds all with this version")
	m.Severity = diag.Note
	return m
}

// pair is a file or folder that is gone, and one that is new and has the same content.
type pair struct{ from, to string }

// renamed returns a message for each file that looks renamed since the build before: its content is that of a file that is gone, and its
// asset is called by its path, so that its resources are new ones. Of a folder that moved as a whole it is one message. A file is compared
// if its content is known, as that of all files that jobs read is.
func (s *Source) renamed() (l diag.List) {
	if s.Prev == nil || s.W.Table == nil || !slices.Equal(s.Prev.Sources.Roots, s.W.Table.Roots) {
		return nil
	}
	was, now := map[digest.Hash][]string{}, map[digest.Hash][]string{}
	entries, _ := s.W.Table.Differences(s.Prev.Sources)
	for _, e := range entries {
		switch {
		case e.Was != nil && e.Now == nil:
			s.collect(was, s.Prev.Sources, s.W.Table, e.Folder, e.Was)
		case e.Now != nil && e.Was == nil:
			s.collect(now, s.W.Table, s.Prev.Sources, e.Folder, e.Now)
		}
	}
	seen := map[pair]int{} // and the root of what is new
	for h, files := range now {
		for _, to := range files {
			if from := twin(was[h], files, to); from != "" {
				_, seen[s.widest(pair{from, to})], _ = s.W.Table.Find(to)
			}
		}
	}
	for p, root := range seen {
		if !s.called(p.to) {
			continue
		}
		m := diag.Warningf(diag.IDsRenamed, diag.Pos{File: s.P.Prefixes()[root] + p.to},
			"looks like %s, renamed: its UUIDs and resource ids are new ones", p.from).
			WithHint("kiln mv %s %s would have kept them; for that, rename it back first, and restore kiln.ids", word(p.from), word(p.to))
		m.Severity = diag.Note
		l = append(l, m)
	}
	slices.SortFunc(l, func(x, y *diag.Message) int { return strings.Compare(x.File, y.File) })
	return l
}

// collect adds a file by its content, unless the other table has its path, in whatever root.
func (s *Source) collect(all map[digest.Hash][]string, in, other *source.Table, folder string, f *source.File) {
	p := path.Join(folder, f.Name)
	if _, _, there := other.Find(p); there || f.Hash.IsZero() || f.Stat.Size == 0 || !f.Visible() {
		return
	}
	if i, _, ok := in.Find(p); ok && in.At(i).Hash == f.Hash && !slices.Contains(all[f.Hash], p) { // and not one that another root hides
		all[f.Hash] = append(all[f.Hash], p)
	}
}

// twin is the one of some files that are gone that a new one was, or "" if it is not clear which: the only one, or the only one with the
// name.
func twin(gone, fresh []string, to string) string {
	if len(gone) == 1 && len(fresh) == 1 {
		return gone[0]
	}
	found := ""
	for _, from := range gone {
		if path.Base(from) == path.Base(to) {
			if found != "" {
				return ""
			}
			found = from
		}
	}
	if slices.ContainsFunc(fresh, func(f string) bool { return f != to && path.Base(f) == path.Base(to) }) {
		return ""
	}
	return found
}

// widest is the folders that a pair of files moved with, as far up as one is gone and the other is new.
func (s *Source) widest(p pair) pair {
	for {
		up := pair{path.Dir(p.from), path.Dir(p.to)}
		if path.Base(p.from) != path.Base(p.to) || up.from == "." || up.to == "." ||
			s.W.Table.HasFolder(up.from) || s.Prev.Sources.HasFolder(up.to) {
			return p
		}
		p = up
	}
}

// called reports whether a file or folder is, or holds, an asset that is called by its path.
func (s *Source) called(p string) bool {
	byPath := func(a *asset.Asset, id string) bool {
		return a != nil && a.ID == id && !a.Declared && a.UUID == asset.UUID(id)
	}
	if !s.W.Table.HasFolder(p) {
		return byPath(s.W.Find(p), p)
	}
	all := s.W.Names().Assets
	return slices.ContainsFunc(all, func(a asset.Asset) bool {
		return (a.Path == p || strings.HasPrefix(a.Path, p+"/")) && (byPath(&a, a.Path) || byPath(&a, a.Path+"/"))
	})
}

// word quotes a path for a shell, if it has a space.
func word(p string) string {
	if strings.Contains(p, " ") {
		return `"` + p + `"`
	}
	return p
}
