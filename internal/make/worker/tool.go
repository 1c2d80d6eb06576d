package worker

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/extend/command"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/written"
	"github.com/kiln-pipeline/kiln/processor"
)

// Programs that jobs run. Those of the project come with the job. All else, programs and the libraries that they are linked with, this
// machine has to have itself, in the same place and with the same content as where the project is: else the job has to run there.

// Tool finds a program, or a file that one is linked with.
func (w *run) Tool(name string) (string, error) {
	code, err := filepath.Abs(cmp.Or(w.project, written.Code))
	if err != nil {
		return "", w.onlyThere("%v", err)
	}
	if rest, ok := strings.CutPrefix(name, code+string(filepath.Separator)); ok {
		name = job.InProject + filepath.ToSlash(rest)
	} else if w.project != "" && filepath.IsAbs(name) {
		if outside, err := w.beside(name); outside {
			return "", err
		}
	}
	ours := job.ProjectTool(name)
	within := ours != "" || strings.HasPrefix(name, job.InProject)
	a, err := w.ask(written.Call{Kind: written.Tool, Names: []string{name}})
	at := ""
	if !within {
		at = job.FindTool("", nil, name)
	}
	switch {
	case err == errUnknown && at != "":
		return at, nil // a guess, so that the rest is asked for as well
	case err == errUnknown && (!within && filepath.IsAbs(name) || w.project != ""):
		return "", missing(name)
	case err == errUnknown:
		return "", err
	case err != nil && (at != "" || w.project != "" && within && there(w.place(ours))):
		return "", w.onlyThere("this worker has %s", name)
	case err != nil:
		return "", err
	case len(a.Names) < 2:
		return "", w.onlyThere("it runs %s", name)
	case w.project != "" && strings.HasPrefix(a.Names[0], job.InProject):
		return w.laid(a)
	case ours != "":
		return w.ofProject(filepath.Join(code, filepath.FromSlash(ours)), a.Content)
	}
	at = a.Names[0]
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tools[at] == "" {
		h, err := job.HashTool(at, nil)
		if err != nil {
			w.local = fmt.Sprintf("this worker does not have %s", at)
			return "", fs.ErrNotExist
		}
		w.tools[at] = h.String()
	}
	if w.tools[at] != a.Names[1] {
		w.local = fmt.Sprintf("this worker has another %s", at)
		return "", fs.ErrNotExist
	}
	return at, nil
}

// ofProject checks a program that came with the job.
func (w *run) ofProject(at string, c written.Content) (string, error) {
	f, err := os.Open(at)
	if err != nil {
		return "", w.onlyThere("a program: %v", err)
	}
	defer f.Close()
	if err := w.whole(f, c); err != nil {
		return "", w.onlyThere("the program %s: %v", filepath.Base(at), err)
	}
	return at, nil
}

// Inputs and Needs are of job.Job, for package command.
func (w *run) Inputs() []string { return w.written.Inputs }

func (w *run) Needs() ([]processor.Product, error) {
	a, err := w.ask(written.Call{Kind: written.Needed})
	if err != nil || len(a.Products) == 0 {
		return nil, err
	}
	return a.Products[0], nil
}

// Roots and Where are of job.Job, for package command: a program that is not traced sees no source roots, only that they count is recorded.
func (w *run) Roots() (roots []string) {
	w.log(written.Call{Kind: written.Roots})
	if w.project != "" {
		roots = w.places(w.written.Project.Roots)
	}
	return roots
}

func (w *run) Where(source string) string {
	for _, kind := range []written.Kind{written.Open, written.Exists} {
		c := written.Call{Kind: kind, Names: []string{source}}
		if a := w.written.Answers[c.Key()]; len(a.Names) > 0 && w.project != "" {
			return w.place(a.Names[0])
		}
	}
	return ""
}

// Run runs a program, as job.Job does.
func (w *run) Run(ctx context.Context, c processor.Command) (processor.Result, error) {
	if c.Traced && w.project == "" {
		return processor.Result{}, w.onlyThere("it runs a program that is traced")
	}
	return command.NewPrograms(w.kiln).Run(ctx, w, w.written.Processor, c)
}

func (w *run) Scratch() (string, error) {
	w.mu.Lock()
	needs := w.needs
	w.mu.Unlock()
	if needs { // a program would run for nothing
		return "", errUnknown
	}
	dir := filepath.Join(w.own, "scratch")
	if w.project != "" {
		dir = filepath.Join(w.place(w.written.Project.Scratch), "1")
	}
	return dir, os.MkdirAll(dir, 0o777)
}

func (w *run) Warn(p processor.Problem) {
	if strings.Contains(p.Text, w.own) || strings.Contains(p.Text, w.folder) {
		w.onlyThere("a warning names a folder of the worker")
	}
	w.log(written.Call{Kind: written.Warn, Problem: &p})
}
