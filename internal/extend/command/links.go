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

// links lays out a view of the source roots as they are, for a program of which it is known only afterwards what it reads: a
// link to each file and folder at their top. Where several roots have a folder, the view has one too, and links to what
// is in them; a later root's file is before an earlier one's. Kiln's own folders are left out: they come
// and go with builds. The links are the same in each run, and so the paths that the program
// is given are, wherever the project lies.
func (p *proc) links(job processor.Job, v *view) (err error) {
	if len(p.config.Built) > 0 { // whether it is there yet must not show in a list of the folder that it is in
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

// diskTime is not later than the time that a change of a file from now on gets, and later than that of all changes before, in
// nanoseconds. Where file systems have a clock that ticks every few milliseconds, it is the time of the last tick: what changed in the same
// one may have changed later. Linux since 6.13 gives finer times to what was looked at since it last changed, as this folder.
func diskTime(folder string) (now int64, err error) {
	for range 2 {
		if err := os.Chmod(folder, 0o755); err != nil {
			return 0, err
		}
		now = seal.StateOf(folder).Moved
	}
	return now, nil
}

// linkAll lays out the links. A frame has them already, unless files came or went.
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
	for _, folder := range slices.Sorted(maps.Keys(folders)) { // each after the one it lies in
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

// plan notes links to what these folders of the roots have, for a folder of the view, and the folders that these links are in.
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
			continue // the run has something else in its place
		}
		if len(from) > 1 { // the rest may be ignored; of what is a file in one root and a folder in another, the folder counts
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

// holds tells whether something is placed in a folder of the view.
func (v *view) holds(folder string) bool {
	for at := range v.placed {
		if strings.HasPrefix(at, folder+"/") {
			return true
		}
	}
	return false
}

// listed is what a folder of a source root had when the links were laid out for a folder of the view.
type listed struct {
	folder, root string
	state        seal.State // before that
	entries      []string
}

// entries are the names in a folder of a source root that a folder of the view shows, in order; those of folders end in a slash. A root
// need not be there.
func (v *view) entries(folder, root string) (names []string, err error) {
	entries, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, unlisted(folder, err)
	}
	for _, e := range entries {
		name := e.Name()
		if folder == "" && strings.HasPrefix(name, ".") {
			continue // .git, .kiln: no content
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

// unlisted says that a folder below the source roots cannot be listed.
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

// outdated are the names in the view that came, went or became something else in a source root since the links were laid out.
func (v *view) outdated() (names []string) {
	for _, l := range v.listed {
		if l.state.Moved < v.began && seal.StateOf(l.root) == l.state {
			continue // any change since would show in its times
		}
		now, err := v.entries(l.folder, l.root)
		if err == nil && slices.Equal(now, l.entries) {
			continue
		}
		times := map[string]int{} // how often a name is in one of the two lists
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

// hides tells whether there is something in a folder that a view must not have.
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
