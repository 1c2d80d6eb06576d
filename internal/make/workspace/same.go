package workspace

import (
	"iter"
	"path"
	"path/filepath"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/store/contentdb"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// Whether what the build before left, and what it observed besides source files, is unchanged.

// WorldSame reports whether everything that jobs observed besides files is unchanged, and whether the trace
// log and the database exist.
func (p *Workspace) WorldSame(prev *state.Snapshot) bool {
	for _, v := range prev.Variables {
		if job.EnvHash(v.Name) != v.Value {
			return false
		}
	}
	named := p.namedRoots()
	for _, in := range prev.Tools {
		if !toolSame(p.Dir, named, in) {
			return false
		}
	}
	return p.shippedSame(prev, nil) && prev.Log.Holds(p.TracesPath()) && contentdb.Intact(p.DatabasePath(), prev.Journal)
}

// toolSame reports whether a program is unchanged.
func toolSame(dir string, named map[string]string, t state.Tool) bool {
	path := job.FindTool(dir, named, t.Name)
	if path != t.Path || path == "" {
		return path == t.Path && job.Refused(dir, t.Name) == t.Hash
	}
	st, err := job.StatTool(path)
	return err == nil && st == t.Stat
}

// shippedSame reports whether shipped files, and what decided their content, are unchanged: all of them,
// or those for which about returns true.
func (p *Workspace) shippedSame(prev *state.Snapshot, about func(file string) bool) bool {
	for _, f := range prev.Shipped {
		if about != nil && !about(f.File) {
			continue
		}
		if p.ShippedStat(f.File) != f.Stat || f.Made && f.Stat == (source.Stat{}) {
			return false
		}
	}
	return true
}

// CompareNamed compares the outputs that absolute paths name: files, and folders with everything
// below them.
func (p *Workspace) CompareNamed(prev *state.Snapshot, paths []string, workers int) map[string]source.Presence {
	o := prev.Outputs
	names, named := map[string]map[string]bool{}, map[string]bool{} // files by folder; folders named as a whole
	for _, name := range paths {
		rel, err := filepath.Rel(p.OutputDir(), name)
		if rel = filepath.ToSlash(rel); err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
			continue
		}
		named[rel] = true
		dir, name := path.Split(rel)
		if dir = strings.TrimSuffix(dir, "/"); names[dir] == nil {
			names[dir] = map[string]bool{}
		}
		names[dir][name] = true
	}
	var folders []int
	whole := map[int]bool{}
	for i := range o.Folders() {
		at := o.Path(i)
		if isIn(named, at) {
			folders, whole[i] = append(folders, i), true
		} else if names[at] != nil {
			folders = append(folders, i)
		}
	}
	return source.Compare(p.OutputDir(), len(folders), func(k int) (string, iter.Seq2[string, source.Stat]) {
		at, all := o.Folder(folders[k])
		if whole[folders[k]] {
			return at, all
		}
		return at, func(yield func(string, source.Stat) bool) {
			for name, st := range all {
				if names[at][name] && !yield(name, st) {
					return
				}
			}
		}
	}, p.Workers(workers))
}

// isIn reports whether a folder or one of its parents is in a set.
func isIn(set map[string]bool, folder string) bool {
	for ; folder != "." && folder != ""; folder = path.Dir(folder) {
		if set[folder] {
			return true
		}
	}
	return set["."]
}
