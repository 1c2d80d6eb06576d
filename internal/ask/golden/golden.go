// Package golden runs the golden tests of a project's own processors. A test is a folder testdata beside the code of a
// processor. It has source files in `in` and the expected products in `want`.
//
// A test is a normal build with `in` as the only source root and none of the project's rules. Its state and output are
// in a temporary folder. It changes only `want`, and only if an update was requested. [Result.Keep] puts what differs
// into the project's state folder, for users to see.
package golden

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/extend/gocode"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/processor"
)

// Messages is the file in want with the expected messages, if there are any.
const Messages = "messages.txt"

// Kept is the folder for products that differ, relative to the project folder: see [Result.Keep].
const Kept = project.StateFolder + "/test"

// Find lists the folders testdata of a project's own processors, relative to the project folder, sorted. without has
// the reason for each Go processor in this kiln that has none.
func Find(p *build.Project) (dirs, without []string) {
	found := map[string]bool{}
	add := func(dir string) bool {
		data := path.Join(dir, "testdata")
		info, err := os.Stat(filepath.Join(p.Dir, filepath.FromSlash(data), "in"))
		if err != nil || !info.IsDir() {
			return false
		}
		found[data] = true
		return true
	}
	for i := range p.Project.Processors {
		c := &p.Project.Processors[i]
		dir := c.WasmGo
		for _, file := range []string{c.Script, c.Wasm} {
			if file != "" {
				dir = path.Dir(file)
			}
		}
		if dir != "" {
			add(dir)
		}
		for _, file := range ownFiles(p, c.Command) {
			add(path.Dir(file))
		}
	}
	for _, pr := range p.Team() {
		name, pkg := pr.Info().Name, packageOf(pr)
		switch dir := folderOf(p, pkg); {
		case dir == "":
			without = append(without, fmt.Sprintf("%s: its package %s is not of the project's Go module; its tests are where it is", name, pkg))
		case !add(dir):
			without = append(without, fmt.Sprintf("%s: there is no folder %s/testdata/in", name, dir))
		}
	}
	return slices.Sorted(maps.Keys(found)), without
}

var toolOf = regexp.MustCompile(`\{tool:([^{}]+)\}`)

// ownFiles returns the files of the project that a command runs: its program, and those that {tool:...} names.
func ownFiles(p *build.Project, command []string) (files []string) {
	for i, arg := range command {
		names := toolOf.FindAllStringSubmatch(arg, -1)
		if i == 0 && len(names) == 0 {
			names = [][]string{{"", arg}}
		}
		for _, m := range names {
			file := path.Clean(filepath.ToSlash(m[1]))
			if !strings.Contains(file, "/") || !filepath.IsLocal(filepath.FromSlash(file)) {
				continue
			}
			if info, err := os.Stat(filepath.Join(p.Dir, filepath.FromSlash(file))); err == nil && info.Mode().IsRegular() {
				files = append(files, file)
			}
		}
	}
	return files
}

// packageOf returns the import path of a processor's package.
func packageOf(pr processor.Processor) string {
	t := reflect.TypeOf(pr)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if info, ok := debug.ReadBuildInfo(); ok && t.PkgPath() == "main" {
		return info.Path
	}
	return t.PkgPath()
}

// folderOf returns the folder of a package in the project's module, relative to the project folder, or "" if it is in
// another module. The module is that of the project's own kiln, or that of the project folder.
func folderOf(p *build.Project, pkg string) string {
	for _, dir := range []string{filepath.Join(p.Dir, filepath.FromSlash(p.Kiln)), p.Dir} {
		name, _, err := gocode.ImportPath(dir)
		if err != nil || name == "" {
			continue
		}
		for up, at := name, dir; ; up, at = path.Dir(up), filepath.Dir(at) {
			if rest, ok := strings.CutPrefix(pkg+"/", up+"/"); ok {
				rel, err := filepath.Rel(p.Dir, filepath.Join(at, filepath.FromSlash(rest)))
				if _, serr := os.Stat(filepath.Join(p.Dir, rel)); err != nil || serr != nil {
					break
				}
				return filepath.ToSlash(rel)
			}
			if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
				break
			}
		}
	}
	return ""
}

// Result is the result of one test.
type Result struct {
	Dir       string   // the folder testdata, relative to the project folder
	Products  int      // number of products, where the messages count as one
	Different []string // paths in want: products that differ, are missing, or are unexpected
	New       []string // of these, the ones that want does not have
	Removed   []string // of these, the ones that were not made

	Unexpected diag.List // messages that want does not have
	Broken     bool      // of these, one is about the processor itself: nothing was written to want

	got map[string][]byte // products and messages
}

// faults are the codes of errors of a processor itself, whatever it was given. They are never the expected result. A program that rejects
// its input says where, which is CommandReported; with CommandFailed it may as well have crashed.
var faults = []diag.Code{
	diag.ProcessorPanic, diag.Internal, diag.OutputUnwritable,
	diag.ScriptSyntax, diag.ScriptLoad, diag.ScriptDeclaration, diag.ScriptError, diag.ScriptLimit, diag.ScriptTime,
	diag.WasmModule, diag.WasmImport, diag.WasmInfo, diag.WasmTrap, diag.WasmTimeout, diag.WasmMemory, diag.WasmAbuse,
	diag.CommandTemplate, diag.CommandConfig, diag.CommandStart, diag.CommandTimeout, diag.CommandView, diag.ToolMissing,
	diag.CommandFailed, diag.CommandOutputMissing, diag.CommandOutputKind, diag.CommandDepfile, diag.CommandUndeclared,
	diag.CommandChanged, diag.CommandUntraced, diag.CommandReadsBuilt,
}

// Run builds dir/in and compares the result with dir/want. With update it writes the result to dir/want, unless the processor is broken.
func Run(ctx context.Context, cfg workspace.Config, dir string, update bool) (*Result, error) {
	temp, err := os.MkdirTemp("", "kiln-test-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	cfg.State, cfg.Output = filepath.Join(temp, "state"), filepath.Join(temp, "out")
	p, err := build.Open(cfg)
	if err != nil {
		return nil, err
	}
	p.Project.Roots = []project.Root{{Path: path.Join(dir, "in")}}
	p.Project.Rules, p.Project.Parcels, p.Project.Ignore = nil, nil, nil
	p.Project.Platforms = p.Project.Platforms[:1]
	if err := p.Lock(ctx, true, func() {}); err != nil {
		return nil, err
	}
	defer p.Unlock()
	report, err := p.Build(ctx, build.Request{Reporter: build.Silent{}})
	if err != nil {
		return nil, err
	}
	got, err := read(filepath.Join(cfg.Output, p.PlatformNames()[0]))
	if err != nil {
		return nil, err
	}
	said := about(report.Messages, path.Join(dir, "in"))
	if text := words(said); len(text) > 0 {
		got[Messages] = text
	}
	want := filepath.Join(p.Dir, filepath.FromSlash(dir), "want")
	in := disk.NewBounds(above(p.Dir, dir), cfg.Outside)
	if m := project.LinkMessage(p.Dir, in.Folder(want)); m != nil {
		return nil, m
	}
	there, err := read(want)
	if err != nil {
		return nil, err
	}
	r := &Result{Dir: dir, Products: len(got), got: got}
	r.Different, r.New, r.Removed = differ(there, got)
	for _, m := range said {
		if bytes.Contains(there[Messages], words(diag.List{m})) {
			continue
		}
		r.Unexpected = append(r.Unexpected, m)
		r.Broken = r.Broken || m.Severity == diag.Error && slices.Contains(faults, m.Code)
	}
	if update && !r.Broken {
		err = rewrite(in, want, got, r.Different)
	}
	return r, err
}

// about removes warnings and notes that are not about files in a folder but about the project file, which was written
// for other files.
func about(l diag.List, folder string) diag.List {
	return slices.DeleteFunc(slices.Clone(l), func(m *diag.Message) bool {
		return m.Severity != diag.Error && !strings.HasPrefix(m.File, folder+"/")
	})
}

// words formats messages as they are shown.
func words(l diag.List) []byte {
	var b bytes.Buffer
	for _, m := range l {
		m.Write(&b, diag.Style{})
	}
	return b.Bytes()
}

// read reads all files in a folder. It returns none if the folder does not exist.
func read(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil && file == dir && os.IsNotExist(err) {
			return nil
		}
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(file)
		rel, _ := filepath.Rel(dir, file)
		files[filepath.ToSlash(rel)] = data
		return err
	})
	return files, err
}

// differ returns the files that differ, and of these the ones that are not in want, and those that are only there.
func differ(there, got map[string][]byte) (different, added, removed []string) {
	for name, data := range got {
		old, ok := there[name]
		if !ok {
			added = append(added, name)
		}
		if !ok || !bytes.Equal(old, data) {
			different = append(different, name)
		}
	}
	for name := range there {
		if _, ok := got[name]; !ok {
			different, removed = append(different, name), append(removed, name)
		}
	}
	slices.Sort(different)
	return different, added, removed
}

// Keep replaces the files that the last run of this test left in the project's state folder: with those that differ now,
// if wanted, else with nothing. It returns their folder, relative to the project folder; "" if there are none.
func (r *Result) Keep(p *build.Project, wanted bool) (string, error) {
	if !filepath.IsLocal(filepath.FromSlash(r.Dir)) { // a Go module may be above the project folder
		return "", nil
	}
	in := p.Bounds(Kept)
	dir := filepath.Join(p.Dir, filepath.FromSlash(Kept), filepath.FromSlash(r.Dir))
	if err := in.Folder(filepath.Dir(dir)); err != nil {
		return "", err
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	names := slices.DeleteFunc(slices.Clone(r.Different), func(name string) bool { return slices.Contains(r.Removed, name) })
	if !wanted || len(names) == 0 {
		return "", nil
	}
	if err := p.MakeStateDir(); err != nil {
		return "", err
	}
	if err := rewrite(in, dir, r.got, names); err != nil {
		return "", err
	}
	rel, err := filepath.Rel(p.Dir, dir)
	return filepath.ToSlash(rel), err
}

// above is the folder of the project, or, for tests of a Go module that is above it, the folder above it that has both.
func above(project, dir string) string {
	for rest, up := strings.CutPrefix(dir+"/", "../"); up; rest, up = strings.CutPrefix(rest, "../") {
		project = filepath.Dir(project)
	}
	return project
}

// rewrite writes the products that differ, and removes unexpected ones, within bounds.
func rewrite(in *disk.Bounds, want string, got map[string][]byte, different []string) error {
	for _, name := range different {
		file := filepath.Join(want, filepath.FromSlash(name))
		data, ok := got[name]
		if !ok {
			if err := in.Folder(filepath.Dir(file)); err != nil {
				return err
			}
			if err := os.Remove(file); err != nil {
				return err
			}
			continue
		}
		if err := in.ForWriting(file); err != nil {
			return err
		}
		if err := disk.Save(file, data); err != nil {
			return err
		}
	}
	return nil
}
