package build

import (
	"path/filepath"
	"slices"

	"github.com/kiln-pipeline/kiln/internal/diag"
	"github.com/kiln-pipeline/kiln/internal/project"
	"github.com/kiln-pipeline/kiln/internal/source"
)

// Detect is how a build sees that source files changed.
type Detect uint8

const (
	ByStat Detect = iota // size, times and inode say which files to look into
	ByHash               // all of them are
	ByList               // somebody says which ones may have; all else is taken for what it was
)

// scan looks at the source files.
func (s *session) scan() (t *source.Table, contents, stats bool, err error) {
	roots, l := s.p.roots()
	if len(l) > 0 {
		return nil, false, false, l
	}
	o := source.Options{
		Roots: roots, Ignore: s.p.Ignore, Workers: s.p.workers(s.req.Workers), Hash: s.req.Detect == ByHash,
	}
	own := []string{filepath.Join(s.p.Dir, filepath.FromSlash(s.p.Output)), filepath.Join(s.p.Dir, project.StateFolder)}
	for _, dir := range append(own, s.p.OutputDir(), s.p.stateDir()) {
		o.Exclude = append(o.Exclude, dir)
		if real, err := filepath.EvalSymlinks(dir); err == nil && real != dir {
			o.Exclude = append(o.Exclude, real)
		}
	}
	var prev *source.Table
	if s.prev != nil && slices.Equal(s.prev.Sources.Roots, roots) {
		prev = s.prev.Sources
		o.Relist = s.prev.Project != s.p.text
	}
	if s.req.Detect == ByList {
		o.List = s.list(prev, o.Relist)
	}
	return source.Scan(prev, o)
}

// list is what the build is told of changes, or nil, with a note, if that is not enough to go by.
func (s *session) list(prev *source.Table, relist bool) *source.List {
	why := ""
	switch {
	case s.prev == nil:
		why = "no build before this one left a record of them"
	case relist:
		why = "kiln.toml is not what it was"
	case prev == nil:
		why = "the source roots are not where they were"
	case s.p.underWay():
		why = "the build before this one did not come to its end"
	default:
		l := &source.List{Paths: s.req.Changed}
		if s.req.From != "" {
			l.Bases = append(l.Bases, s.req.From)
		}
		for dir := s.p.Dir; ; dir = filepath.Dir(dir) {
			l.Bases = append(l.Bases, dir)
			if dir == filepath.Dir(dir) {
				break
			}
		}
		for _, r := range s.p.Roots {
			l.Roots = append(l.Roots, filepath.Join(s.p.Dir, filepath.FromSlash(r.Path)))
		}
		return l
	}
	m := &diag.Message{Severity: diag.Note, Code: diag.ListNotEnough, Text: "all source files were looked at, not only those in the list: " + why}
	s.notes = append(s.notes, m.WithHint("the next build can go by a list again"))
	return nil
}
