package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/processor"
)

// Below returns the path of a folder below the project folder, with forward slashes; "" if it is not below it.
func (p *Workspace) Below(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	rel, err := filepath.Rel(p.Dir, dir)
	if err != nil || !filepath.IsLocal(rel) { // one of them may be named by a link
		real, rerr := filepath.EvalSymlinks(dir)
		top, terr := filepath.EvalSymlinks(p.Dir)
		if rerr != nil || terr != nil {
			return ""
		}
		rel, err = filepath.Rel(top, real)
	}
	if err != nil || rel == "." || !filepath.IsLocal(rel) {
		return ""
	}
	return filepath.ToSlash(rel)
}

// Inside returns the path of a folder, as Below returns it, below the source root that it is in, with a slash at the end;
// "" if it is a source root, or in none.
func (p *Workspace) Inside(folder string) string {
	for _, prefix := range p.Prefixes() {
		if rest, ok := strings.CutPrefix(p.InProject(folder)+"/", prefix); ok && folder != "" {
			return rest
		}
	}
	return ""
}

// From converts a name or pattern that was given in a folder, as Below returns it, to its form in the project folder. It
// means what there is in that folder, as for a shell: if a source file has the name, or the pattern matches some, or a
// file in one of the other folders, which are below the project folder. Otherwise it is returned unchanged, and means the
// same as in the project folder.
func (p *Workspace) From(folder, name string, others ...string) string {
	if folder == "" || name == "" || filepath.IsAbs(name) || strings.HasPrefix(name, "/") {
		return name
	}
	if full, ok := p.in(folder, name, others); ok {
		return full
	}
	if rest, minus := project.CutOut(name); minus && rest != "" {
		if full, ok := p.in(folder, rest, others); ok {
			return name[:len(name)-len(rest)] + full
		}
	}
	return name
}

// in joins a folder and a name or pattern, if there is something of that name, or that the pattern matches.
func (p *Workspace) in(folder, name string, others []string) (full string, ok bool) {
	name = filepath.ToSlash(name)
	full = path.Join(folder, name)
	if !filepath.IsLocal(filepath.FromSlash(full)) {
		return "", false
	}
	for _, place := range p.placesOf(full, others) {
		if _, err := os.Lstat(place); err == nil {
			if strings.HasSuffix(name, "/") {
				full += "/"
			}
			return full, true
		}
	}
	if !project.IsGlob(name) {
		return "", false
	}
	full = path.Join(processor.QuoteGlob(folder), name)
	base, glob := doublestar.SplitPattern(full)
	for _, place := range p.placesOf(base, others) {
		if matchesSome(place, glob) {
			return full, true
		}
	}
	return "", false
}

// placesOf returns where a path of the project may lie: below each source root, because roots overlay each other, or in
// one of the other folders.
func (p *Workspace) placesOf(file string, others []string) (places []string) {
	within := func(dir string) (rest string, ok bool) {
		if dir == "." {
			return file, true
		}
		rest, ok = strings.CutPrefix(file+"/", dir+"/")
		return strings.TrimSuffix(rest, "/"), ok
	}
	for i := range p.Roots {
		rest, ok := within(strings.TrimSuffix(p.Roots[i].Path, "/"))
		for k := 0; ok && k < len(p.Roots); k++ {
			places = append(places, filepath.Join(p.Roots[k].Dir(p.Dir), filepath.FromSlash(rest)))
		}
	}
	for _, dir := range others {
		if _, ok := within(dir); ok {
			places = append(places, filepath.Join(p.Dir, filepath.FromSlash(file)))
		}
	}
	return places
}

// errFound ends a walk.
var errFound = errors.New("found")

// matchesSome reports whether a glob matches something below a folder.
func matchesSome(dir, glob string) bool {
	err := doublestar.GlobWalk(os.DirFS(dir), glob, func(path string, _ fs.DirEntry) error {
		if path == "." {
			return nil
		}
		return errFound
	})
	return errors.Is(err, errFound)
}
