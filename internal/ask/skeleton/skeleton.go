// Package skeleton writes the first files of a project's own processor: a working processor and its golden test.
//
// It overwrites nothing. It adds to kiln.toml a line and a table at the end, and to go.mod and go.sum what they lack.
// The templates are in files, a folder for each language.
package skeleton

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/processor/wasmguest"
)

// Languages are the languages with a skeleton: a script, Go compiled into the project's own kiln, and Go and C as
// WebAssembly.
var Languages = []string{"star", "go", "wasm", "c"}

//go:embed files
var templates embed.FS

// kilnModule is the module that Go code of a processor imports.
const kilnModule = "github.com/kiln-pipeline/kiln"

// Request has the settings for a new processor.
type Request struct {
	Dir     string // folder of the project
	Project string // name of the project
	Name    string // name of the processor
	Lang    string // one of Languages
	Source  fs.FS  // Kiln's sources, for processors in Go
	DryRun  bool   // write nothing, only return what would be written

	Outside []string // folders elsewhere into which links in the project may lead
}

// Written is the result.
type Written struct {
	Files []string // relative to the project folder, with forward slashes
	Next  []string // commands to run in the project folder, in order
}

// New writes a processor's first files into a project. It declares the processor in kiln.toml, unless it is compiled
// in.
func New(r Request) (*Written, error) {
	folder := path.Join("tools", r.Name)
	if r.Lang == "go" && r.Name == "kiln" || folder == packages {
		return nil, diag.Errorf(diag.BadValue, diag.Pos{}, "%s is the folder of the program itself", folder).WithHint("take another name")
	}
	var files []file
	var w Written
	declaration := ""
	switch r.Lang {
	case "star":
		declaration = fmt.Sprintf("[[processors]]\nscript = %q\n", path.Join(folder, r.Name+".star"))
	case "wasm":
		declaration = fmt.Sprintf("[[processors]]\nname = %q\nwasm = { go = %q }\n", r.Name, folder)
	case "c":
		declaration = fmt.Sprintf("[[processors]]\nname = %q\nwasm = %q\n", r.Name, path.Join(folder, r.Name+".wasm"))
		files = append(files, file{path.Join(folder, "kiln_guest.h"), wasmguest.Header()})
		w.Next = []string{fmt.Sprintf("clang --target=wasm32 -O2 -nostdlib -Wl,--no-entry -o %s/%s.wasm %[1]s/%[2]s.c", folder, r.Name)}
	case "go":
	default:
		return nil, diag.Errorf(diag.BadValue, diag.Pos{}, "there is no skeleton in %q", r.Lang).WithHint("one of: %s", strings.Join(Languages, ", "))
	}
	m := &goModule{}
	if r.Lang == "go" || r.Lang == "wasm" {
		var err error
		if m, err = r.goModule(); err != nil {
			return nil, err
		}
		w.Next = append(w.Next, m.next...)
	}
	text := strings.NewReplacer("NAME", r.Name, "PACKAGE", goName(r.Name), "MODULE", m.path)
	more, err := read(path.Join("files", r.Lang), folder, text)
	if err != nil {
		return nil, err
	}
	files = append(more, files...)
	named := false // kiln.toml names the program
	if r.Lang == "go" {
		if exists(r.Dir, ownMain) {
			w.Next = append(w.Next, fmt.Sprintf("add kiln.With(%s.New()) to %s, and import %q", goName(r.Name), ownMain, path.Join(m.path, folder)))
		} else {
			more, err := read("files/kiln", path.Dir(ownMain), text)
			if err != nil {
				return nil, err
			}
			files = append(files, more...)
		}
		named, err = nameKiln(filepath.Join(r.Dir, project.File))
		if p, _ := project.Load(r.Dir, project.Given{}); err != nil {
			return nil, err
		} else if !named && (p == nil || p.Kiln == "") {
			w.Next = append(w.Next, `write kiln = "tools/kiln" below [project] in kiln.toml`)
		}
		w.Next = append(w.Next, "go test ./"+folder)
	}
	w.Next = append(w.Next, "kiln test")
	if r.DryRun {
		return w.plan(r.Dir, files, m, declaration != "" || named)
	}
	return w.write(disk.NewBounds(r.Dir, r.Outside), files, m, declaration, named)
}

// write writes the files and Kiln's packages, and declares the processor in kiln.toml.
func (w *Written) write(in *disk.Bounds, files []file, m *goModule, declaration string, named bool) (*Written, error) {
	var err error
	if w.Files, err = write(in, files); err != nil {
		return w, err
	}
	more, err := m.write()
	for _, f := range more {
		w.Files = append(w.Files, f.name)
	}
	if err == nil && (declaration != "" || named) {
		w.Files = append(w.Files, project.File)
		err = declare(in, declaration, named)
	}
	return w, err
}

// plan returns what would be written.
func (w *Written) plan(dir string, files []file, m *goModule, declares bool) (*Written, error) {
	if err := free(dir, files); err != nil {
		return nil, err
	}
	for _, f := range append(files, m.files()...) {
		w.Files = append(w.Files, f.name)
	}
	if declares {
		w.Files = append(w.Files, project.File)
	}
	return w, nil
}

// ownMain is the program of a project's own kiln.
const ownMain = "tools/kiln/main.go"

// file is a file to write.
type file struct{ name, text string }

// read returns the files of a folder of templates. Templates in Go end in .txt, so that the go tool ignores them.
func read(from, to string, text *strings.Replacer) (files []file, err error) {
	err = fs.WalkDir(templates, from, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := templates.ReadFile(name)
		rel := strings.TrimPrefix(name, from+"/")
		if strings.HasSuffix(rel, ".go.txt") {
			rel = strings.TrimSuffix(rel, ".txt")
		}
		files = append(files, file{path.Join(to, text.Replace(rel)), text.Replace(string(data))})
		return err
	})
	return files, err
}

// free returns an error if one of the files exists.
func free(dir string, files []file) error {
	for _, f := range files {
		if exists(dir, f.name) {
			return diag.Errorf(diag.ProjectExists, diag.Pos{File: f.name}, "the file is there already").WithHint("take another name, or remove it")
		}
	}
	return nil
}

// write writes files. It returns an error if one of them exists.
func write(in *disk.Bounds, files []file) (written []string, err error) {
	if err := free(in.Root(), files); err != nil {
		return nil, err
	}
	for _, f := range files {
		file := filepath.Join(in.Root(), filepath.FromSlash(f.name))
		if err := in.ForWriting(file); err != nil {
			return written, err
		}
		if err := disk.Save(file, []byte(f.text)); err != nil {
			return written, err
		}
		written = append(written, f.name)
	}
	return written, nil
}

func exists(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(name)))
	return !errors.Is(err, fs.ErrNotExist)
}

var projectTable = regexp.MustCompile(`(?m)^\[project\][ \t]*(#.*)?\r?\n`)

// nameKiln reports whether the project's own kiln can be added to kiln.toml: there is no other, and [project] is a
// plain table.
func nameKiln(name string) (bool, error) {
	p, _ := project.Load(filepath.Dir(name), project.Given{})
	text, err := os.ReadFile(name)
	return p != nil && p.Kiln == "" && projectTable.Match(text), err
}

// declare adds text at the end of kiln.toml, and with kiln the project's own kiln to its table [project].
func declare(in *disk.Bounds, text string, kiln bool) error {
	file := filepath.Join(in.Root(), project.File)
	if err := in.File(file); err != nil {
		return err
	}
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if at := projectTable.FindIndex(old); kiln && at != nil {
		old = slices.Insert(old, at[1], []byte("kiln = \"tools/kiln\"\n")...)
	}
	if text != "" {
		if !bytes.HasSuffix(old, []byte("\n")) {
			old = append(old, '\n')
		}
		old = append(old, "\n"+text...)
	}
	return disk.Save(file, old)
}

// goName returns a package name for a processor's name.
func goName(name string) string {
	name = strings.ReplaceAll(name, "-", "")
	if name[0] <= '9' {
		name = "p" + name
	}
	if token.IsKeyword(name) || name == "main" {
		name += "proc"
	}
	return name
}
