// Package skeleton writes the first files of a processor of a project's own: one that works, and its golden test.
//
// It overwrites nothing, and adds to kiln.toml at its end only. The files are templates below files, a folder a language.
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
	"runtime/debug"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/diag"
	"github.com/kiln-pipeline/kiln/internal/disk"
	"github.com/kiln-pipeline/kiln/internal/project"
	"github.com/kiln-pipeline/kiln/processor/wasmguest"
)

// Languages that there are skeletons in: a script, Go compiled into a kiln of the project's own, and Go and C as WebAssembly.
var Languages = []string{"star", "go", "wasm", "c"}

//go:embed files
var templates embed.FS

// kilnModule is what Go code of a processor imports.
const kilnModule = "github.com/kiln-pipeline/kiln"

// Request says what to write.
type Request struct {
	Dir     string // of the project
	Project string // its name
	Name    string // of the processor
	Lang    string // one of Languages
	Kiln    string // folder of Kiln's sources that go.mod names instead of a release; "" for none
}

// Written is what was written.
type Written struct {
	Files []string // relative to the project folder, with forward slashes
	Next  []string // commands to run in the project folder, in order
}

// New writes a processor's first files into a project and, unless it is compiled in, names it in kiln.toml.
func New(r Request) (*Written, error) {
	if r.Lang == "go" && r.Name == "kiln" {
		return nil, diag.Errorf(diag.BadValue, diag.Pos{}, "tools/kiln is the folder of the program itself").WithHint("take another name")
	}
	folder := path.Join("tools", r.Name)
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
	module := ""
	if r.Lang == "go" || r.Lang == "wasm" {
		m, err := r.goModule()
		if err != nil {
			return nil, err
		}
		module = m.path
		files, w.Next = append(files, m.files...), append(w.Next, m.next...)
	}
	text := strings.NewReplacer("NAME", r.Name, "PACKAGE", goName(r.Name), "MODULE", module)
	more, err := read(path.Join("files", r.Lang), folder, text)
	if err != nil {
		return nil, err
	}
	files = append(more, files...)
	if r.Lang == "go" {
		w.Next = append(w.Next, "go test ./"+folder)
		if main := "tools/kiln/main.go"; exists(r.Dir, main) {
			w.Next = append(w.Next, fmt.Sprintf("add kiln.With(%s.New()) to %s, and import %q", goName(r.Name), main, path.Join(module, folder)))
		} else {
			more, err := read("files/kiln", "tools/kiln", text)
			if err != nil {
				return nil, err
			}
			files = append(files, more...)
		}
		w.Next = append(w.Next, "go run ./tools/kiln build")
	} else {
		w.Next = append(w.Next, "kiln test")
	}
	if w.Files, err = write(r.Dir, files); err == nil && declaration != "" {
		w.Files = append(w.Files, project.File)
		err = declare(filepath.Join(r.Dir, project.File), declaration)
	}
	return &w, err
}

// file is one to write.
type file struct{ name, text string }

// read makes files of a folder of templates. The ending .txt keeps the go tool from Go files.
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

// write writes files if none of them is there.
func write(dir string, files []file) (written []string, err error) {
	for _, f := range files {
		if exists(dir, f.name) {
			return nil, diag.Errorf(diag.ProjectExists, diag.Pos{File: f.name}, "the file is there already").WithHint("take another name, or remove it")
		}
	}
	for _, f := range files {
		file := filepath.Join(dir, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
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

// declare adds text at the end of a file.
func declare(file, text string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if !bytes.HasSuffix(old, []byte("\n")) {
		old = append(old, '\n')
	}
	return disk.Save(file, append(old, "\n"+text...))
}

// goModule is the module that the project folder belongs to.
type goModule struct {
	path  string   // import path of the project folder
	files []file   // go.mod, if there is none yet
	next  []string // what to run before it can be compiled
}

// goModule finds the go.mod at or above the project folder, or makes one in it.
func (r *Request) goModule() (m goModule, err error) {
	dir, err := filepath.Abs(r.Dir)
	if err != nil {
		return m, err
	}
	moduleLine := regexp.MustCompile(`(?m)^module\s+"?([^\s"]+)`)
	for up := dir; ; up = filepath.Dir(up) {
		text, err := os.ReadFile(filepath.Join(up, "go.mod"))
		if err == nil {
			name := moduleLine.FindSubmatch(text)
			if name == nil {
				return m, diag.Errorf(diag.BadValue, diag.Pos{File: filepath.Join(up, "go.mod")}, "it names no module").WithHint("its first line is `module NAME`")
			}
			rel, err := filepath.Rel(up, dir)
			m.path = path.Join(string(name[1]), filepath.ToSlash(rel))
			if !bytes.Contains(text, []byte(kilnModule)) {
				m.next = r.need()
			}
			return m, err
		}
		if up == filepath.Dir(up) {
			break
		}
	}
	m.path = strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(r.Project), "-"), "-")
	if m.path == "" {
		m.path = "game"
	}
	m.files = []file{{"go.mod", "module " + m.path + "\n\ngo 1.26.0\n"}}
	m.next = r.need()
	return m, nil
}

// need are the commands that make a module require Kiln: a release, or the sources in a folder.
func (r *Request) need() []string {
	if r.Kiln != "" {
		return []string{"go mod edit -replace " + kilnModule + "=" + r.Kiln, "go mod tidy"}
	}
	return []string{"go get " + kilnModule + release(), "go mod tidy"}
}

// release is "@" and the version of Kiln that runs, or nothing where it has none that others could get.
func release() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == kilnModule && m.Replace == nil && strings.HasPrefix(m.Version, "v") && !strings.ContainsAny(m.Version, "+") {
			return "@" + m.Version
		}
	}
	return ""
}

// goName is a package's name for a processor's.
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
