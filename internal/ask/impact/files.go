package impact

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/make/view"
)

// Files finds the source files for a path: a file, all files in a folder, or all that match a glob. The path is
// absolute, or relative to the project folder or to a source root. If the file does not exist, it is one that would be
// added; with removed set, all files found are to be removed. rules reports that the path is a file of rules, whose
// effect cannot be predicted.
func Files(p *build.Project, v *view.View, name string, removed bool) (files []File, rules bool, err error) {
	files, rules, err = named(p, v, name, removed)
	return linked(v.Sources(), files), rules, err
}

// linked adds the source files that are the same file on disk through symbolic links.
func linked(t *source.Table, files []File) []File {
	links := t.Links()
	if len(links) == 0 {
		return files
	}
	leads := map[string]string{} // targets by the path of a root or a link
	for _, root := range t.Roots {
		leads[root] = root
	}
	for _, l := range links {
		if to, err := filepath.EvalSymlinks(filepath.FromSlash(l)); err == nil {
			leads[l] = filepath.ToSlash(to)
		}
	}
	for _, f := range slices.Clone(files) {
		for _, real := range onDisk(t, f) {
			for link, to := range leads {
				rest, ok := strings.CutPrefix(real+"/", to+"/")
				if !ok {
					continue
				}
				for _, root := range t.Roots {
					also := File{Path: strings.Trim(strings.TrimPrefix(link, root)+"/"+rest, "/"), Change: f.Change}
					if _, _, is := t.Find(also.Path); strings.HasPrefix(link+"/", root+"/") && (is || f.Change == Added) && !slices.Contains(files, also) {
						files = append(files, also)
					}
				}
			}
		}
	}
	slices.SortStableFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files
}

// onDisk returns the paths of a source file without symbolic links. A file that would be added can be in any root that
// has its folder.
func onDisk(t *source.Table, f File) (files []string) {
	for i := range t.Roots {
		if _, root, ok := t.Find(f.Path); ok && root != i {
			continue
		}
		abs := filepath.FromSlash(t.Abs(i, f.Path))
		real, err := filepath.EvalSymlinks(abs)
		if err != nil && f.Change == Added {
			real, err = filepath.EvalSymlinks(filepath.Dir(abs))
			real = filepath.Join(real, filepath.Base(abs))
		}
		if err == nil {
			files = append(files, filepath.ToSlash(real))
		}
	}
	return files
}

// named finds the source files for a path by name.
func named(p *build.Project, v *view.View, name string, removed bool) (files []File, rules bool, err error) {
	given := name
	name = path.Clean(p.InProject(name))
	change := Edited
	if removed {
		change = Removed
	}
	if base := path.Base(name); base == project.RulesFile || name == project.File {
		return nil, true, nil
	}
	for _, processor := range p.ProcessorsOf(name) {
		files = append(files, File{name, change, processor})
	}
	if found, ok := v.SourcePath(name); ok {
		return append(files, File{Path: found, Change: change}), false, nil
	}
	if len(files) > 0 {
		return files, false, nil
	}
	names := []string{name}
	for _, prefix := range p.Prefixes() {
		if rest, ok := strings.CutPrefix(name+"/", prefix); ok && prefix != "" {
			names = append(names, strings.TrimSuffix(rest, "/"))
		}
	}
	for _, n := range names {
		in := meaning(n)
		for _, f := range v.Sources().Paths() {
			if in(f) {
				files = append(files, File{Path: f, Change: change})
			}
		}
		if len(files) > 0 {
			return files, false, nil
		}
	}
	// A tool is known by its path relative to the project folder, other files by their path relative to a root.
	if _, err := os.Lstat(filepath.Join(p.Dir, filepath.FromSlash(name))); errors.Is(err, fs.ErrNotExist) {
		if strings.ContainsAny(name, "*?") { // these are rare in file names; brackets and braces are not
			return nil, false, noMatch(name, given)
		}
		if rest, ok := inRepository(p, name); ok {
			return named(p, v, rest, removed)
		}
		change = Added
	}
	return []File{{Path: names[len(names)-1], Change: change}}, false, nil
}

// inRepository returns a source file's path relative to the project folder, if name is relative to a folder above it:
// git diff prints paths relative to the top of the repository.
func inRepository(p *build.Project, name string) (string, bool) {
	above := ""
	for dir := p.Dir; filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		above = filepath.Base(dir) + "/" + above
		rest, ok := strings.CutPrefix(name, above)
		if ok && slices.ContainsFunc(p.Roots, func(r project.Root) bool { return r.Path == "." || strings.HasPrefix(rest, r.Path+"/") }) {
			return rest, true
		}
	}
	return "", false
}

// meaning returns a function that reports whether a folder or a glob contains a source file.
func meaning(name string) func(file string) bool {
	if !strings.ContainsAny(name, "*?[{") || !doublestar.ValidatePattern(name) {
		return func(file string) bool { return name == "" || name == "." || strings.HasPrefix(file, name+"/") }
	}
	return func(file string) bool {
		return strings.HasPrefix(file, name+"/") || doublestar.MatchUnvalidated(name, file)
	}
}

// noMatch returns the error for a glob without matches.
func noMatch(name, given string) error {
	if !doublestar.ValidatePattern(name) {
		return diag.Errorf(diag.BadGlob, diag.Pos{}, "pattern %q is not well formed", given).WithHint("`kiln explain K0007` says more")
	}
	return diag.Errorf(diag.PatternNoMatch, diag.Pos{}, "no source file matches %q", given).WithHint("* stays within a folder, ** goes below; a path without them may be of a file that is not there yet")
}
