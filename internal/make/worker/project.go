package worker

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/extend/command"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/written"
)

// A traced program sees a project folder like the client's, which has only what the answers of the job have: files with their content,
// folders, and the names in those that it listed last time. All that it accesses is asked for afterwards, as at the client. If the job has
// no answer to one of these questions, the run has no result; else the folder is the same as at the client wherever the program looked.

// layProject makes the folder.
func (w *run) layProject() error {
	said := w.written.Project
	if said == nil {
		return nil
	}
	own, err := filepath.EvalSymlinks(w.own) // as in a trace
	if err != nil {
		return err
	}
	w.climbed = map[string]bool{}
	w.own, w.project = own, filepath.Join(own, strings.Repeat("d/", written.Above), "project")
	w.kiln = command.Kiln{Built: w.places(said.Built), State: w.places(said.State), Shipped: w.places(said.Shipped)}
	for _, dir := range append(w.places(said.Roots), w.places([]string{said.Scratch})...) {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return err
		}
	}
	var folders []written.Answer
	for _, key := range slices.Sorted(maps.Keys(w.written.Answers)) {
		c, err := written.Question(key)
		a := w.written.Answers[key]
		switch {
		case err != nil || a.Missing != "":
		case (c.Kind == written.Open || c.Kind == written.Exists && a.Yes) && len(a.Names) > 0:
			err = w.layFile(a.Names[0], a.Content, mode(a.Names[1:]))
		case c.Kind == written.Tool && len(a.Names) > 2 && a.Names[2] == written.Folder:
			folders = append(folders, a)
		case c.Kind == written.Tool && inProject(a) != "":
			err = w.layFile(inProject(a), a.Content, mode(a.Names[2:]))
		}
		if err != nil {
			return err
		}
	}
	for _, a := range folders { // after the files, some of which are in their lists
		if err := w.layFolder(inProject(a), a.Names[3:]); err != nil {
			return err
		}
	}
	return nil
}

// mode is that of a file of which an answer says this.
func mode(said []string) fs.FileMode {
	if slices.Contains(said, written.Executable) {
		return 0o755
	}
	return 0o644
}

// inProject is the path below the project folder of what an answer about a program is about; "" if that is elsewhere.
func inProject(a written.Answer) string {
	if len(a.Names) < 2 || !strings.HasPrefix(a.Names[0], job.InProject) {
		return ""
	}
	return a.Names[0][len(job.InProject):]
}

// place is where something of the project is; what is elsewhere at the client has its path there.
func (w *run) place(below string) string {
	if at := filepath.FromSlash(below); !filepath.IsAbs(at) {
		return filepath.Join(w.project, at)
	}
	return filepath.FromSlash(below)
}

func (w *run) places(all []string) (list []string) {
	for _, below := range all {
		list = append(list, w.place(below))
	}
	return list
}

// errPlace means that two answers do not fit into one folder.
var errPlace = errors.New("its files are in each other's way")

// layFile makes a file. It may be there already: a source file can be asked for in several ways.
func (w *run) layFile(below string, c written.Content, mode fs.FileMode) error {
	if !filepath.IsLocal(filepath.FromSlash(below)) {
		return errPlace
	}
	at := w.place(below)
	if st, err := os.Lstat(at); err == nil && st.Mode().IsRegular() {
		return os.Chmod(at, st.Mode()|mode)
	}
	in, err := os.Open(filepath.Join(written.InFolder, c.Name()))
	if err != nil {
		return err
	}
	defer in.Close()
	if err := w.whole(in, c); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
		return err
	}
	out, err := os.OpenFile(at, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// layFolder makes a folder, and what has these names in it: see written.Folder.
func (w *run) layFolder(below string, names []string) error {
	if below != "" && !filepath.IsLocal(filepath.FromSlash(below)) {
		return errPlace
	}
	if err := os.MkdirAll(w.place(below), 0o777); err != nil {
		return err
	}
	for _, name := range names {
		if len(name) < 2 || !filepath.IsLocal(name[1:]) {
			return errPlace
		}
		at := filepath.Join(w.place(below), name[1:])
		if there(at) {
			continue
		}
		var err error
		if name[0] == 'd' {
			err = os.Mkdir(at, 0o777)
		} else {
			err = os.WriteFile(at, nil, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// beside asks for something that is beside the project folder, or beside a folder that it is in, where many programs look for
// settings. There is nothing here, so there must be nothing there.
func (w *run) beside(name string) (is bool, err error) {
	dir, base := filepath.Split(name)
	if _, up := strings.CutPrefix(w.own+string(filepath.Separator), dir); up && w.climbed[base] && !there(name) {
		return true, missing(name) // there, it was in the topmost folder already
	}
	if !strings.HasPrefix(name, w.own+string(filepath.Separator)) {
		return false, nil
	}
	if filepath.Clean(dir) == w.own {
		w.climbed[base] = true
	}
	below, err := filepath.Rel(w.project, name)
	if err == nil {
		_, err = w.ask(written.Call{Kind: written.Tool, Names: []string{job.InProject + filepath.ToSlash(below)}})
	}
	if err == nil {
		return true, w.onlyThere("it looked at what is beside the project folder")
	}
	return true, missing(name)
}

// there reports whether there is anything at a path.
func there(at string) bool {
	_, err := os.Lstat(at)
	return err == nil
}

// laid checks that a part of the project folder is here what it is at the client, and returns where it is.
func (w *run) laid(a written.Answer) (string, error) {
	at := w.place(inProject(a))
	if strings.HasSuffix(a.Names[0], "/") {
		at += "/" // the names in it
	}
	h, err := job.HashTool(at, slices.Concat(w.kiln.Built, w.kiln.State))
	if err != nil || h.String() != a.Names[1] {
		return "", w.onlyThere("%s is not here what it is there", fmt.Sprintf("%q", a.Names[0]))
	}
	return at, nil
}
