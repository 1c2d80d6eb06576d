package workspace

import (
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/fingerprint"
	"github.com/kiln-pipeline/kiln/internal/extend/gocode"
	"github.com/kiln-pipeline/kiln/internal/extend/own"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/processor"
)

// OwnCode returns pairs of a processor of the project and a file that it is made of, or for Go the folder of a package; relative to
// the project folder. What commands run is not among them: their jobs observe it.
func (p *Workspace) OwnCode() (list [][2]string) {
	for _, info := range p.TeamInfos {
		for _, f := range p.teamCode()[info.Name].listed {
			list = append(list, [2]string{info.Name, f})
		}
	}
	for i := range p.Project.Processors {
		c := &p.Project.Processors[i]
		files := slices.DeleteFunc([]string{c.Script, c.Wasm, c.WasmGo}, func(s string) bool { return s == "" })
		if pr := p.Procs[c.Name]; c.Script != "" && pr != nil {
			files = append(files, slices.Collect(maps.Keys(sources(pr.Processor)))...)
		}
		slices.Sort(files)
		for _, f := range slices.Compact(files) {
			list = append(list, [2]string{c.Name, f})
		}
	}
	return list
}

// ProcessorsOf returns the project's processors that are made of a file, by its path relative to the project folder.
func (p *Workspace) ProcessorsOf(file string) (names []string) {
	for _, info := range p.TeamInfos {
		if p.teamCode()[info.Name].has(file) {
			names = append(names, info.Name)
		}
	}
	for i := range p.Project.Processors {
		c := &p.Project.Processors[i]
		is := file == c.Script || file == c.Wasm || c.WasmGo != "" && strings.HasPrefix(file+"/", c.WasmGo+"/")
		if pr := p.Procs[c.Name]; !is && c.Script != "" && pr != nil {
			_, is = sources(pr.Processor)[file]
		}
		if is {
			names = append(names, c.Name)
		}
	}
	return names
}

// code is what a processor of a team's own kiln is made of, relative to the project folder.
type code struct {
	listed  []string // files, or folders of packages where the whole program counts
	files   map[string]bool
	folders map[string]bool // folders of packages: a Go file that is added there is part of the program too
}

// has reports whether the processor is made of a file or a folder, or would be after it is added.
func (c *code) has(name string) bool {
	if c == nil {
		return false
	}
	added := path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") && c.folders[path.Dir(name)]
	return added || c.files[name] || c.folders[name]
}

// findTeamCode returns the code of the team's processors, by their names.
func (p *Workspace) findTeamCode() map[string]*code {
	found := map[string]*code{}
	for _, info := range p.TeamInfos {
		found[info.Name] = p.codeOf(p.Procs[info.Name])
	}
	return found
}

// codeOf returns the source of a processor in Go, as far as it is in the project.
func (p *Workspace) codeOf(pr *job.Installed) *code {
	c := &code{files: map[string]bool{}, folders: map[string]bool{}}
	if p.Kiln != "" {
		c.folders[p.Kiln] = true // it makes the processor, maybe with values
	}
	folder, ok := p.goFolder(pr.Processor)
	switch s, embeds := pr.Processor.(processor.Sourced); {
	case pr.Code == fingerprint.Source && embeds && ok:
		c.listed = embedded(s.Source(), folder)
		c.add(c.listed)
	case pr.Code == fingerprint.Program && p.Kiln != "":
		c.add(own.Sources(p.Dir))
		c.listed = []string{p.Kiln}
		if ok && folder != p.Kiln {
			c.listed = append(c.listed, folder)
		}
	}
	return c
}

func (c *code) add(files []string) {
	for _, f := range files {
		c.files[f] = true
		if path.Ext(f) == ".go" {
			c.folders[path.Dir(f)] = true
		}
	}
}

// embedded lists the source that a processor embeds, without tests.
func embedded(source fs.FS, folder string) (files []string) {
	fs.WalkDir(source, ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && !strings.HasSuffix(name, "_test.go") {
			files = append(files, path.Join(folder, name))
		}
		return err // it was read without errors before, for the fingerprint
	})
	return files
}

// goFolder returns the folder of the package in which a processor is declared, relative to the project folder. It is not known
// for packages of other modules than those of the project folder and of the team's own kiln.
func (p *Workspace) goFolder(pr processor.Processor) (string, bool) {
	t := reflect.TypeOf(pr)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.PkgPath() == "main" {
		return p.Kiln, p.Kiln != ""
	}
	for _, in := range []string{filepath.Join(p.Dir, filepath.FromSlash(p.Kiln)), p.Dir} {
		_, folder, err := gocode.ImportPath(in)
		if err != nil || folder == "" {
			continue
		}
		module, _, err := gocode.ImportPath(folder)
		below, ok := strings.CutPrefix(t.PkgPath()+"/", module+"/")
		if err != nil || !ok {
			continue
		}
		if rel, err := filepath.Rel(p.Dir, filepath.Join(folder, filepath.FromSlash(below))); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel), true
		}
	}
	return "", false
}
