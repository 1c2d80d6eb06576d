package skeleton

import (
	"errors"
	"fmt"
	"go/version"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/extend/gocode"
)

// packages is the folder of Kiln's packages, which is a module.
const packages = "tools/kiln-go"

// mark is the first line of its go.mod.
const mark = "// Kiln's packages for processors in Go. Kiln wrote this folder; after an update of Kiln, `kiln new source` writes it again.\n"

// goVersion is the oldest version that compiles Kiln's packages.
const goVersion = "1.26.0"

// goModule is the module that contains the project folder.
type goModule struct {
	dir     string // folder of the project
	root    string // folder of the module
	path    string // import path of the project folder
	mod     string // new text of go.mod and of go.sum; "" if unchanged
	sum     string
	newMod  bool
	sources []file   // Kiln's packages
	outside []string // see Request
	next    []string // commands to run before it can be compiled
}

// goModule finds the go.mod at or above the project folder, or makes one there. It adds a requirement for Kiln's
// packages, which are written beside the processor. A module that has them from elsewhere is not changed.
func (r *Request) goModule() (*goModule, error) {
	dir, err := filepath.Abs(r.Dir)
	if err != nil {
		return nil, err
	}
	m := &goModule{dir: dir, outside: r.Outside}
	if m.path, m.root, err = gocode.ImportPath(dir); err != nil {
		return nil, diag.Errorf(diag.BadValue, diag.Pos{File: filepath.Join(m.root, "go.mod")}, "it names no module").WithHint("its first line is `module NAME`")
	}
	var old, sum []byte
	if m.path == "" {
		m.root, m.newMod = dir, true
		if m.path = strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(r.Project), "-"), "-"); m.path == "" {
			m.path = "game"
		}
		old = []byte("module " + m.path + "\n\ngo " + goVersion + "\n")
	} else if old, err = os.ReadFile(filepath.Join(m.root, "go.mod")); err != nil {
		return nil, err
	}
	if sum, err = os.ReadFile(filepath.Join(m.root, "go.sum")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	at, err := filepath.Rel(m.root, filepath.Join(dir, filepath.FromSlash(packages)))
	if err != nil {
		return nil, err
	}
	here := kilnModule + " => ./" + filepath.ToSlash(at)
	if strings.Contains(string(old), kilnModule) && !strings.Contains(string(old), here) {
		return m, nil
	}
	if v := regexp.MustCompile(`(?m)^go[ \t]+(\S+)`).FindStringSubmatch(string(old)); v == nil || version.Compare("go"+v[1], "go"+goVersion) < 0 {
		m.next = append(m.next, "go mod edit -go="+goVersion)
	}
	all := r.Lang == "go"
	if m.sources, err = sources(r.Source, all); err != nil {
		return nil, err
	}
	return m, m.require(string(old), string(sum), here, r.Source, all)
}

// requirement matches a line of a go.mod that requires a module.
var requirement = regexp.MustCompile(`(?m)^(?:require |\t)(\S+) (v\S+)`)

// require adds what is missing in go.mod and go.sum: Kiln's packages, and with all the modules that they need.
func (m *goModule) require(old, sum, here string, source fs.FS, all bool) error {
	var mod strings.Builder
	if !strings.Contains(old, here) {
		fmt.Fprintf(&mod, "\nrequire %s v0.0.0\n\nreplace %s\n", kilnModule, here)
	}
	if all {
		kiln, err := fs.ReadFile(source, "go.mod")
		if err != nil {
			return err
		}
		sums, err := fs.ReadFile(source, "go.sum")
		if err != nil {
			return err
		}
		other := false
		var lines strings.Builder
		for _, n := range requirement.FindAllStringSubmatch(string(kiln), -1) {
			switch {
			case strings.Contains(old, n[1]+" "+n[2]):
			case strings.Contains(old, n[1]+" v"):
				other = true
			default:
				fmt.Fprintf(&lines, "\t%s %s // indirect\n", n[1], n[2])
			}
		}
		if lines.Len() > 0 {
			fmt.Fprintf(&mod, "\nrequire (\n%s)\n", lines.String())
		}
		if other { // another version is required already; the newer one works for both
			m.next = append(m.next, "go mod tidy")
		}
		for line := range strings.Lines(string(sums)) {
			if !strings.Contains(sum, line) {
				m.sum += line
			}
		}
		if m.sum != "" {
			m.sum = sum + m.sum
		}
	}
	if mod.Len() > 0 || m.newMod {
		m.mod = strings.TrimRight(old, "\n") + "\n" + mod.String()
	}
	return nil
}

// sources returns Kiln's packages, or without all only those that a guest needs.
func sources(source fs.FS, all bool) (files []file, err error) {
	guest := func(name string) bool {
		folder := path.Dir(name)
		return folder == "processor" || strings.HasPrefix(folder, "processor/wasmguest") || name == "LICENSE"
	}
	if !all {
		files = append(files, file{path.Join(packages, "go.mod"), mark + "module " + kilnModule + "\n\ngo " + goVersion + "\n"})
	}
	err = fs.WalkDir(source, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !all && !guest(name) {
			return err
		}
		text, err := fs.ReadFile(source, name)
		if name == "go.mod" {
			text = append([]byte(mark), text...)
		}
		files = append(files, file{path.Join(packages, name), string(text)})
		return err
	})
	return files, err
}

// write writes Kiln's packages, and what go.mod and go.sum lack. It returns the files to report. Existing packages are
// replaced if Kiln wrote them.
func (m *goModule) write() (written []file, err error) {
	for _, f := range m.files() {
		if f.name == packages {
			err = lay(disk.NewBounds(m.dir, m.outside), m.sources)
		} else {
			file := filepath.Join(m.root, path.Base(f.name))
			if err = disk.NewBounds(m.root, m.outside).File(file); err == nil {
				err = disk.Save(file, []byte(f.text))
			}
		}
		if err != nil {
			return written, err
		}
		written = append(written, f)
	}
	return written, nil
}

// files are what write writes: Kiln's packages as one, go.mod and go.sum, relative to the project folder.
func (m *goModule) files() (list []file) {
	if len(m.sources) > 0 {
		list = append(list, file{name: packages})
	}
	for _, f := range []file{{"go.mod", m.mod}, {"go.sum", m.sum}} {
		if f.text == "" {
			continue
		}
		if rel, err := filepath.Rel(m.dir, filepath.Join(m.root, f.name)); err == nil {
			f.name = filepath.ToSlash(rel)
		}
		list = append(list, f)
	}
	return list
}

// lay writes Kiln's packages to their folder and replaces existing ones. A complete set is not replaced by one for
// guests.
func lay(in *disk.Bounds, files []file) error {
	dir := in.Root()
	folder := filepath.Join(dir, filepath.FromSlash(packages))
	if err := in.Folder(filepath.Dir(folder)); err != nil {
		return err
	}
	switch old, err := os.ReadFile(filepath.Join(folder, "go.mod")); {
	case err == nil && !strings.HasPrefix(string(old), mark), err != nil && exists(dir, packages):
		return diag.Errorf(diag.ProjectExists, diag.Pos{File: packages}, "Kiln's packages belong in this folder, and it has other things in it").WithHint("move it")
	case err == nil && complete(dir) && len(files) < leastComplete:
		return nil
	}
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	in.Forget()
	_, err := write(in, files)
	return err
}

// leastComplete is a number of files between that of the packages for guests and that of all packages.
const leastComplete = 50

// complete reports whether all of Kiln's packages are there.
func complete(dir string) bool { return exists(dir, path.Join(packages, "kiln.go")) }

// Renew writes Kiln's packages again into a project that has them, in the version of this kiln.
func Renew(dir string, source fs.FS, outside []string) (*Written, error) {
	if !exists(dir, path.Join(packages, "go.mod")) {
		return nil, diag.Errorf(diag.NothingKnown, diag.Pos{}, "there is no folder %s", packages).WithHint("kiln new processor NAME --lang go writes it, or --lang wasm")
	}
	all := complete(dir)
	r := &Request{Dir: dir, Source: source, Outside: outside, Lang: map[bool]string{true: "go", false: "wasm"}[all]}
	m, err := r.goModule()
	if err != nil {
		return nil, err
	}
	if m.sources == nil { // go.mod has Kiln's packages from elsewhere
		if m.sources, err = sources(source, all); err != nil {
			return nil, err
		}
	}
	files, err := m.write()
	w := &Written{Next: m.next}
	for _, f := range files {
		w.Files = append(w.Files, f.name)
	}
	return w, err
}
