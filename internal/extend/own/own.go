// Package own handles a project's own kiln: a Go package of the project that kiln.toml names, `[project] kiln =
// "tools/kiln"`. The kiln that is called compiles it, stores the program below .kiln, and runs it in its own place.
//
// A kiln is the project's own if its main package is the named one, or if its program is stored for this project. The
// program that is run always is such a program, so there is no loop, and no variable has to be passed that could be out
// of date.
package own

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/extend/gocode"
	"github.com/kiln-pipeline/kiln/processor"
)

// Kiln is a project's own kiln.
type Kiln struct {
	pkg    gocode.Package
	folder string       // folder of stored programs
	below  *disk.Bounds // of Kiln's own folder, which it is in
	span   settings.Span
}

// Find returns the own kiln of the project in a folder; nil if there is none, or no valid project file.
func Find(dir string, given project.Given, outside []string) *Kiln {
	p, _ := project.Load(dir, given)
	if p == nil || p.Kiln == "" {
		return nil
	}
	k := &Kiln{folder: folder(p.Dir), span: p.KilnSpan}
	k.below = disk.NewBounds(filepath.Dir(k.folder), outside)
	k.pkg = gocode.Package{
		Project: p.Dir, Folder: p.Kiln,
		Env:   []string{"GOOS=" + runtime.GOOS, "GOARCH=" + runtime.GOARCH},
		Flags: []string{"-buildvcs=false"}, // a commit changes nothing
		Kind:  "a project's own kiln", Here: true, Record: record(k.folder),
		NoFolder: diag.BadValue, NoGo: diag.OwnKilnNoGo, Failed: diag.OwnKilnBuild, Lang: "go",
	}
	return k
}

func folder(dir string) string { return filepath.Join(dir, project.StateFolder, "kiln") }

func record(folder string) string { return filepath.Join(folder, "made.json") }

// Sources returns the files in a project that its own kiln was compiled from, relative to the project's folder.
func Sources(dir string) []string {
	return (&gocode.Package{Project: dir, Record: record(folder(dir))}).Recorded()
}

// Folder is the package's folder in kiln.toml.
func (k *Kiln) Folder() string { return k.pkg.Folder }

// IsThis reports whether this process is the project's own kiln.
func (k *Kiln) IsThis() bool {
	if k.Kept() {
		return true
	}
	info, ok := debug.ReadBuildInfo()
	name, _, err := gocode.ImportPath(k.pkg.Dir())
	return ok && err == nil && name != "" && info.Path == name
}

// Kept reports whether this process is a program stored for the project.
func (k *Kiln) Kept() bool {
	exe, err := os.Executable()
	if err != nil {
		return false
	}
	at, err := os.Stat(filepath.Dir(exe))
	if err != nil {
		return false
	}
	kept, err := os.Stat(k.folder)
	return err == nil && os.SameFile(at, kept)
}

func (k *Kiln) program(s *gocode.Sources) string {
	name := "kiln-" + s.Key.String()[:32]
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return filepath.Join(k.folder, name)
}

// Program returns the program, and compiles it first if its source has changed, after calling compiling. Its errors are
// a diag.List.
func (k *Kiln) Program(ctx context.Context, compiling func()) (string, error) {
	file, err := k.compiled(ctx, compiling)
	if err != nil && ctx.Err() == nil {
		err = k.messages(err)
	}
	return file, err
}

func (k *Kiln) compiled(ctx context.Context, compiling func()) (string, error) {
	if err := cmp.Or(k.below.Itself(), k.below.File(k.folder), k.below.File(record(k.folder))); err != nil {
		return "", err
	}
	s, err := k.pkg.Look(ctx)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(k.program(s)); err == nil {
		return k.program(s), nil
	}
	compiling()
	if err := ignored(k.folder); err != nil {
		return "", err
	}
	temp, err := os.MkdirTemp(k.folder, "tmp-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	made := filepath.Join(temp, filepath.Base(k.program(s)))
	if s, err = k.pkg.Build(ctx, s, made); err != nil {
		return "", err
	}
	if err := os.Rename(made, k.program(s)); err != nil {
		if _, there := os.Stat(k.program(s)); there != nil { // else another kiln has put it there, and runs it
			return "", err
		}
	}
	k.tidy(k.program(s))
	return k.program(s), nil
}

// ignored creates a folder below Kiln's own that version control ignores.
func ignored(folder string) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	ignore := filepath.Join(filepath.Dir(folder), ".gitignore")
	if _, err := os.Lstat(ignore); err == nil {
		return nil
	}
	return os.WriteFile(ignore, []byte("*\n"), 0o666)
}

// keep is how many programs are kept besides the newest: a running one reads its own file, and may be started again.
const keep = 2

// tidy deletes programs that are old.
func (k *Kiln) tidy(newest string) {
	entries, _ := os.ReadDir(k.folder)
	type program struct {
		name string
		made int64
	}
	var old []program
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.HasPrefix(e.Name(), "kiln-") && e.Name() != filepath.Base(newest) {
			old = append(old, program{e.Name(), info.ModTime().UnixNano()})
		}
	}
	slices.SortFunc(old, func(a, b program) int { return int(min(max(b.made-a.made, -1), 1)) })
	for _, p := range old[min(keep, len(old)):] {
		os.Remove(filepath.Join(k.folder, p.name))
	}
}

// messages turns errors of compiling into messages.
func (k *Kiln) messages(err error) diag.List {
	list := []error{err}
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		list = j.Unwrap()
	}
	var l diag.List
	for _, e := range list {
		if m := project.LinkMessage(k.pkg.Project, e); m != nil {
			l = append(l, m)
			continue
		}
		var p *processor.Problem
		switch {
		case !errors.As(e, &p):
			l = append(l, k.span.Errorf(diag.OutputUnwritable, "the project's own kiln cannot be kept: %v", e).WithHint("check the permissions of the folder .kiln"))
			continue
		case p.Line == 0:
			m := k.span.Errorf(diag.Code(p.Code), "%s", p.Text)
			m.Hint = p.Hint
			l = append(l, m)
			continue
		}
		m := diag.Errorf(diag.Code(p.Code), diag.Pos{File: p.Path, Line: p.Line, Column: p.Column}, "%s", p.Text)
		m.Hint = p.Hint
		at := p.Path
		if !filepath.IsAbs(at) {
			at = filepath.Join(k.pkg.Project, filepath.FromSlash(at))
		}
		if text, err := os.ReadFile(at); err == nil {
			m = m.WithSource(text, 1)
		}
		l = append(l, m)
	}
	if last := l[len(l)-1]; last.Hint == "" {
		last.Hint = "fix this first: the project's own kiln runs every command; `go build ./" + k.pkg.Folder + "` says the same"
	}
	return l
}

// State is a text that changes whenever the source may have been edited. It runs no program.
func (k *Kiln) State() string { return fmt.Sprint(k.pkg.Stamp()) }
