package command

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/processor"
)

// newLinks lays out a view of the source roots as they are, for a program of which it is known only afterwards what it reads: a
// link to each file and folder at their top. Where several roots have a folder, the view has one too, and links to what
// is in them; a later root's file is before an earlier one's. The links are the same in each run, and so the paths that the program
// is given are, wherever the project lies.
func newLinks(job processor.Job, roots []string) (*view, error) {
	v, err := openView(job)
	if err != nil {
		return nil, err
	}
	err = v.mkdirs()
	if err == nil {
		err = moment(v.link("", roots))
	}
	if err != nil {
		return nil, errors.Join(err, v.close())
	}
	return v, nil
}

// link puts what these folders of the roots have into a folder of the view.
func (v *view) link(folder string, roots []string) error {
	found := map[string][]string{} // by name, in the order of the roots
	var names []string
	for _, root := range roots {
		entries, err := os.ReadDir(root)
		if err != nil {
			if errors.Is(err, os.ErrNotExist) {
				continue // a root need not be there
			}
			return err
		}
		for _, e := range entries {
			name := e.Name()
			if folder == "" && strings.HasPrefix(name, ".") {
				continue // .git, .kiln: no content
			}
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
		if len(from) > 1 {
			from = slices.DeleteFunc(slices.Clone(from), func(p string) bool { return !isFolder(p) })
			if last := found[name][len(found[name])-1]; len(from) < 2 || !isFolder(last) {
				from = []string{last}
			}
		}
		var err error
		if len(from) == 1 {
			err = os.Symlink(from[0], v.path(path.Join(viewFolder, at)))
		} else if err = v.mkdir(path.Join(viewFolder, at)); err == nil {
			err = v.link(at, from)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func isFolder(p string) bool {
	st, err := os.Stat(p)
	return err == nil && st.IsDir()
}
