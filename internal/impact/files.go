package impact

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/build"
	"github.com/kiln-pipeline/kiln/internal/project"
)

// Files finds the source files that a path means: one, or all below a folder. The path is absolute, or relative to the
// project folder or to a source root. One that is not there is a file that would be added; with removed, all are removed. rules says that the path is
// a file of rules, of which nobody knows what it would change.
func Files(p *build.Project, v *build.View, name string, removed bool) (files []File, rules bool) {
	name = relative(p.Dir, name)
	change := Edited
	if removed {
		change = Removed
	}
	if base := path.Base(name); base == project.RulesFile || name == project.File {
		return nil, true
	}
	if found, ok := v.SourcePath(name); ok {
		return []File{{found, change}}, false
	}
	names := []string{name}
	for _, r := range p.Roots {
		if rest, ok := strings.CutPrefix(name+"/", r.Path+"/"); ok {
			names = append(names, strings.TrimSuffix(rest, "/"))
		}
	}
	for _, n := range names {
		for _, f := range v.Sources().Paths() {
			if n == "" || n == "." || strings.HasPrefix(f, n+"/") {
				files = append(files, File{f, change})
			}
		}
		if len(files) > 0 {
			return files, false
		}
	}
	// A tool of the project is known by its path from the project folder; for any other file, what is left below the root counts.
	if _, err := os.Lstat(filepath.Join(p.Dir, filepath.FromSlash(name))); errors.Is(err, fs.ErrNotExist) {
		change = Added
	}
	return []File{{names[len(names)-1], change}}, false
}

// relative is a path from the project folder, with forward slashes.
func relative(dir, name string) string {
	if filepath.IsAbs(name) {
		if rel, err := filepath.Rel(dir, name); err == nil {
			name = rel
		}
	}
	slashed := filepath.ToSlash(name)
	return path.Clean(slashed)
}
