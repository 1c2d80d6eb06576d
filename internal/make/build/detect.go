package build

import (
	"errors"
	"path/filepath"
	"slices"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/content/source"
)

// Detect is how a build sees that source files changed.
type Detect uint8

const (
	ByStat  Detect = iota // size, times and inode say which files to look into
	ByHash                // all of them are
	ByList                // somebody says which ones may have; all else is taken for what it was
	ByWatch               // somebody has watched them since the build before, and says which ones did; so with outputs
)

// scan looks at the source files.
func (s *session) scan() (t *source.Table, contents, stats bool, err error) {
	o, err := s.p.scanOptions()
	if err != nil {
		return nil, false, false, err
	}
	o.Workers, o.Hash = s.p.workers(s.req.Workers), s.req.Detect == ByHash
	var prev *source.Table
	if s.prev != nil && slices.Equal(s.prev.Sources.Roots, o.Roots) {
		prev = s.prev.Sources
		o.Relist = s.prev.Project != s.p.text
	}
	switch {
	case s.req.Detect == ByList:
		o.List = s.list(prev, o.Relist)
	case s.trusting():
		o.List = &source.List{Paths: s.req.Changed, Roots: s.p.rootNames()}
	}
	if s.p.resident != nil {
		o.Spare, s.p.resident.spare = s.p.resident.spare, nil
	}
	t, contents, stats, err = source.Scan(prev, o)
	var gone *source.RootError
	if errors.As(err, &gone) { // since it was looked for
		return nil, false, false, diag.List{s.p.noRoot(gone.Root)}
	}
	if t != prev {
		s.scanned = t
	}
	return t, contents, stats, err
}

// scanOptions says where source files are and what is passed over there.
func (p *Project) scanOptions() (source.Options, error) {
	roots, l := p.roots()
	o := source.Options{Roots: roots, Ignore: p.Ignore}
	o.Exclude = append(p.builtFolders(), p.stateFolders()...)
	if len(l) > 0 {
		return o, l
	}
	return o, nil
}

// builtFolders are those where products may be, and stateFolders those for what Kiln remembers, under all names that they have.
func (p *Project) builtFolders() []string {
	return allNames(p.OutputDir(), filepath.Join(p.Dir, filepath.FromSlash(p.Output)))
}

func (p *Project) stateFolders() []string {
	return allNames(filepath.Join(p.Dir, project.StateFolder), p.stateDir())
}

// shippedFiles are the files outside the output folder that builds write.
func (p *Project) shippedFiles() (all []string) {
	for _, file := range p.shippedOutside() {
		all = append(all, allNames(p.shippedPath(file))...)
	}
	return all
}

func allNames(dirs ...string) (all []string) {
	for _, dir := range dirs {
		real := dir
		if folder, err := filepath.EvalSymlinks(filepath.Dir(dir)); err == nil { // it may not be there yet
			real = filepath.Join(folder, filepath.Base(dir))
		}
		if to, err := filepath.EvalSymlinks(dir); err == nil {
			real = to
		}
		for _, name := range []string{dir, real} {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
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
	case s.p.booted():
		why = "the system was started since the build before this one"
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
		l.Roots = s.p.rootNames()
		return l
	}
	m := &diag.Message{Severity: diag.Note, Code: diag.ListNotEnough, Text: "all source files were looked at, not only those in the list: " + why}
	s.notes = append(s.notes, m.WithHint("the next build can go by a list again"))
	return nil
}

// rootNames are the source roots as the project file names them, absolute.
func (p *Project) rootNames() []string {
	var names []string
	for _, r := range p.Roots {
		names = append(names, filepath.Join(p.Dir, filepath.FromSlash(r.Path)))
	}
	return names
}
