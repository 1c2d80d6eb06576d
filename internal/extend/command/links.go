package command

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/extend/seal"
	"github.com/kiln-pipeline/kiln/processor"
)

// links lays out a view of the source roots, for a program whose reads are known only afterwards: a link to each file
// and folder at their top. If several roots have a folder, the view has a folder too, with links to its entries; a
// later root's file has precedence. Kiln's own folders are left out, because they come and go with builds. The links,
// and so the paths that the program gets, are the same in each run, wherever the project is.
func (p *proc) links(job processor.Job, v *view) (err error) {
	if len(p.config.Built) > 0 { // whether it exists yet must not show in a listing of its parent
		if err := os.MkdirAll(p.config.Built[0], 0o777); err != nil {
			return moment(err)
		}
	}
	v.hidden = slices.Concat(p.config.Built, p.config.State, p.config.Shipped)
	if v.began, err = diskTime(v.scratch); err != nil {
		return moment(err)
	}
	return moment(v.linkAll(rootsOf(job), whereOf(job)))
}

// diskTime is a time, in nanoseconds, that is not later than that of any file change from now on, and later than that
// of all earlier changes. If the file system has a clock that ticks every few milliseconds, it is the time of the last
// tick: a change within the same tick may have come later. Linux since 6.13 has finer times for files that were
// observed since their last change, such as this folder.
func diskTime(folder string) (now int64, err error) {
	for range 2 {
		if err := os.Chmod(folder, 0o755); err != nil {
			return 0, err
		}
		now = seal.StateOf(folder).Moved
	}
	return now, nil
}

// linkAll creates the links. A frame has them already, unless files were added or removed.
func (v *view) linkAll(roots []string, where func(source string) string) error {
	before, folders := v.links, map[string]bool{}
	v.links, v.listed = map[string]string{}, nil
	if err := v.plan("", roots, folders, where); err != nil {
		return err
	}
	for at := range v.placed {
		for at = path.Dir(path.Join(viewFolder, at)); at != viewFolder; at = path.Dir(at) {
			folders[at] = true
		}
	}
	for at, to := range before {
		if v.links[at] != to {
			if err := os.Remove(v.path(at)); err != nil {
				return err
			}
		}
	}
	if err := v.prune(viewFolder, folders); err != nil {
		return err
	}
	for _, folder := range slices.Sorted(maps.Keys(folders)) { // each after its parent
		if err := v.mkdir(folder); err != nil {
			return err
		}
	}
	for _, at := range slices.Sorted(maps.Keys(v.links)) {
		if before[at] == v.links[at] {
			continue
		}
		if err := os.Symlink(v.links[at], v.path(at)); err != nil {
			return err
		}
	}
	return nil
}

// plan adds links to the entries of these folders of the roots, for a folder of the view, and the folders for these links.
func (v *view) plan(folder string, roots []string, folders map[string]bool, where func(source string) string) error {
	found := map[string][]string{} // by name, in the order of the roots
	var names []string
	for _, root := range roots {
		state := seal.StateOf(root)
		entries, err := v.entries(folder, root)
		if err != nil {
			return err
		}
		v.listed = append(v.listed, listed{folder, root, state, entries})
		for _, name := range entries {
			name = strings.TrimSuffix(name, "/")
			if found[name] == nil {
				names = append(names, name)
			}
			found[name] = append(found[name], filepath.Join(root, name))
		}
	}
	slices.Sort(names)
	for _, name := range names {
		at := path.Join(folder, name)
		from := found[name]
		if v.placed[at] {
			continue // the run has something else at this path
		}
		if len(from) > 1 { // the others may be ignored; if a name is a file in one root and a folder in another, the folder counts
			if known := where(at); known != "" {
				from = []string{known}
			} else if is := slices.DeleteFunc(slices.Clone(from), func(p string) bool { return !isFolder(p) }); len(is) > 0 {
				from = is
			} else {
				from = from[len(from)-1:]
			}
		}
		in := path.Join(viewFolder, at)
		if len(from) == 1 && !v.hides(from[0]) && !(v.holds(at) && isFolder(from[0])) {
			v.links[in] = from[0]
			continue
		}
		folders[in] = true
		if err := v.plan(at, from, folders, where); err != nil {
			return err
		}
	}
	return nil
}

// holds reports whether something is placed in a folder of the view.
func (v *view) holds(folder string) bool {
	for at := range v.placed {
		if strings.HasPrefix(at, folder+"/") {
			return true
		}
	}
	return false
}

// listed is the content of a folder of a source root when the links were created for a folder of the view.
type listed struct {
	folder, root string
	state        seal.State // before the listing
	entries      []string
}

// entries are the names in a folder of a source root that a folder of the view shows, in order; those of folders end in
// a slash. The root may not exist.
func (v *view) entries(folder, root string) (names []string, err error) {
	entries, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, unlisted(folder, err)
	}
	for _, e := range entries {
		name := e.Name()
		if folder == "" && strings.HasPrefix(name, ".") {
			continue // .git, .kiln: not content
		}
		if slices.Contains(v.hidden, filepath.Join(root, name)) {
			continue
		}
		if e.IsDir() {
			name += "/"
		}
		names = append(names, name)
	}
	return names, nil
}

// unlisted is the error for a folder below the source roots that cannot be listed.
func unlisted(folder string, err error) error {
	why := err
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		why = pe.Err // without its absolute path
	}
	return &processor.Problem{
		Code: string(diag.SourceUnreadable), Path: cmp.Or(folder, "."), Text: fmt.Sprintf("this folder cannot be listed: %v", why),
		Hint: "check its permissions", Err: errors.Join(err, diag.ErrMoment),
	}
}

// outdated returns the names in the view that were added, removed or replaced in a source root since the links were created.
func (v *view) outdated() (names []string) {
	for _, l := range v.listed {
		if l.state.Moved < v.began && seal.StateOf(l.root) == l.state {
			continue // any later change would show in its times
		}
		now, err := v.entries(l.folder, l.root)
		if err == nil && slices.Equal(now, l.entries) {
			continue
		}
		times := map[string]int{} // how many of the two lists have a name
		for _, name := range slices.Concat(now, l.entries) {
			times[name]++
		}
		for _, name := range slices.Sorted(maps.Keys(times)) {
			if times[name] == 1 {
				names = append(names, path.Join(l.folder, name))
			}
		}
	}
	return names
}

// hides reports whether a folder contains something that a view must not have.
func (v *view) hides(folder string) bool {
	return slices.ContainsFunc(v.hidden, func(dir string) bool {
		_, below := cutFolder(folder, dir)
		return below
	})
}

func isFolder(p string) bool {
	st, err := os.Stat(p)
	return err == nil && st.IsDir()
}
