package gocode

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/content/source"
)

// file is the state of a file.
type file struct {
	Hash string      // of its content; "" if it did not exist
	Stat source.Stat // zero: the content may have changed with the same stat
}

// young is how long after its last change a file may change again and have the same times.
const young = 2 * time.Second

// look reads a file.
func look(name string) file {
	stat, _, err := source.StatPath(name) // before the content, so that it is never newer
	if err != nil {
		return file{}
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return file{}
	}
	f := file{Hash: digest.Of(data).String()}
	if time.Since(time.Unix(0, max(stat.MTime, stat.CTime))) > young {
		f.Stat = stat
	}
	return f
}

// embeds are the files that a pattern of go:embed matches.
type embeds struct{ Folder, Pattern, Names string }

// hold reports whether everything is unchanged. Without a go tool the rest decides.
func (p *Package) hold(s *Sources) bool {
	environment, tool, err := p.environment()
	if s.Environment != environment || err == nil && s.Tool != tool {
		return false
	}
	for folder, was := range s.Folders {
		if goNames(folder) != was {
			return false
		}
	}
	for _, e := range s.Embeds {
		if e.names() != e.Names {
			return false
		}
	}
	for name, was := range s.Files {
		if stat, _, err := source.StatPath(name); err == nil && stat == was.Stat || err != nil && was.Hash == "" {
			continue
		}
		now := look(name)
		if now.Hash != was.Hash {
			return false
		}
		if now != was {
			s.Files[name], s.changed = now, true
		}
	}
	return true
}

// environment returns the inputs besides files: variables that the go tool reads, its own file, and where go.mod and
// go.work are. The error means that there is no tool.
func (p *Package) environment() (environment, tool string, err error) {
	var b strings.Builder
	for _, v := range slices.Sorted(slices.Values(slices.Concat(os.Environ(), p.Env))) {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "GO") || strings.HasPrefix(name, "CGO_") || name == "CC" || name == "CXX" || name == "AR" || name == "PKG_CONFIG" {
			fmt.Fprintln(&b, v)
		}
	}
	for up := p.Dir(); ; up = filepath.Dir(up) {
		for _, name := range []string{"go.mod", "go.work"} {
			if info, err := os.Stat(filepath.Join(up, name)); err == nil && !info.IsDir() {
				fmt.Fprintln(&b, filepath.Join(up, name))
			}
		}
		if up == filepath.Dir(up) {
			break
		}
	}
	at, err := exec.LookPath("go")
	if err == nil {
		stat, _, err := source.StatPath(at)
		tool = fmt.Sprintln(at, stat, err)
	}
	return b.String(), tool, err
}

// goNames hashes the names of the files in a folder that the go tool would read.
func goNames(folder string) string {
	entries, _ := os.ReadDir(folder)
	b := digest.Build("go files")
	for _, e := range entries {
		switch path.Ext(e.Name()) {
		case ".go", ".s", ".h", ".c", ".syso":
			b.Str("file", e.Name())
		}
	}
	return b.Sum().String()
}

// names hashes the names of the files that a pattern matches, or a superset.
func (e *embeds) names() string {
	b := digest.Build("embedded files")
	found, _ := filepath.Glob(filepath.Join(e.Folder, filepath.FromSlash(strings.TrimPrefix(e.Pattern, "all:"))))
	for _, f := range found {
		filepath.WalkDir(f, func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				b.Str("file", name)
			}
			return nil
		})
	}
	return b.Sum().String()
}

// goPackage is the output of `go list` for one package.
type goPackage struct {
	ImportPath, Name, Dir                                                           string
	Standard                                                                        bool
	GoFiles, CgoFiles, CFiles, SFiles, HFiles, SysoFiles, EmbedFiles, EmbedPatterns []string
	Module                                                                          *goMod
}

type goMod struct {
	Path, Version, GoMod string
	Main                 bool
	Replace              *goMod
}

// local reports whether a package's files may change without its version: they are in the project, or in a folder that
// replaces a module.
func (g *goPackage) local(project string) bool {
	m := g.Module
	if m != nil && m.Replace != nil {
		m = m.Replace
	}
	return m == nil || m.Version == "" || strings.HasPrefix(g.Dir, project+string(filepath.Separator))
}

// files returns the files of the package, in its folder.
func (g *goPackage) files() []string {
	return slices.Concat(g.GoFiles, g.CgoFiles, g.CFiles, g.SFiles, g.HFiles, g.SysoFiles, g.EmbedFiles)
}

// ask calls the go tool for the files of the package and of its imports, until the answer is the same before and after
// they are read, because an import that is added meanwhile leads to other files.
func (p *Package) ask(ctx context.Context) (*Sources, error) {
	var listed []byte
	for range tries {
		s := &Sources{Files: map[string]file{}, Folders: map[string]string{}}
		var err error
		if s.Environment, s.Tool, err = p.environment(); err != nil {
			_, err = p.run(ctx) // it reports the error
			return nil, err
		}
		env, err := p.run(ctx, "env", "GOVERSION", "GOWORK", "GOENV", "GOMOD")
		if err != nil {
			return nil, err
		}
		if listed == nil {
			if listed, err = p.list(ctx); err != nil {
				return nil, err
			}
		}
		if err := p.read(s, string(env), listed); err != nil {
			return nil, err
		}
		again, err := p.list(ctx)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(listed, again) {
			return s, nil
		}
		listed = again
	}
	return nil, p.problem(p.Failed, "leave it alone for a moment", "its source is edited again and again")
}

func (p *Package) list(ctx context.Context) ([]byte, error) {
	const fields = "ImportPath,Name,Dir,Standard,GoFiles,CgoFiles,CFiles,SFiles,HFiles,SysoFiles,EmbedFiles,EmbedPatterns,Module"
	args := []string{"list"}
	for _, f := range p.Flags {
		if strings.HasPrefix(f, "-tags") || strings.HasPrefix(f, "-mod") {
			args = append(args, f)
		}
	}
	return p.run(ctx, append(args, "-deps", "-json="+fields, ".")...)
}

// read reads the listed files. The key covers the content of the files, and the versions of
// everything else.
func (p *Package) read(s *Sources, env string, listed []byte) error {
	name := ""                        // of the package itself, which is the last one
	about := strings.Split(env, "\n") // version, go.work, the tool's settings, go.mod
	content := map[string]string{}    // by names that are the same on each machine
	versions := map[string]bool{}
	add := func(name, at string) {
		s.Files[at] = look(at)
		content[name] = s.Files[at].Hash
	}
	for dec := json.NewDecoder(bytes.NewReader(listed)); ; {
		var g goPackage
		if err := dec.Decode(&g); err == io.EOF {
			break
		} else if err != nil {
			return p.problem(p.Failed, "", "what `go list` prints is not understood: "+err.Error())
		}
		name = g.Name
		switch {
		case g.Standard: // the version covers it
			continue
		case !g.local(p.Project):
			m := g.Module
			if m.Replace != nil {
				m = m.Replace
			}
			versions[m.Path+"@"+m.Version] = true
			continue
		}
		s.Folders[g.Dir] = goNames(g.Dir)
		for _, pattern := range g.EmbedPatterns {
			e := embeds{Folder: g.Dir, Pattern: pattern}
			e.Names = e.names()
			s.Embeds = append(s.Embeds, e)
		}
		for _, f := range g.files() {
			add(g.ImportPath+"/"+filepath.ToSlash(f), filepath.Join(g.Dir, f))
		}
		if g.Module != nil && g.Module.GoMod != "" {
			add(g.Module.Path+"/go.mod", g.Module.GoMod)
		}
	}
	if name != "main" {
		return p.problem(p.Failed, "a program is package main, with a func main", "it is package "+name+", and not main")
	}
	for i, name := range []string{"go.work", "go.env"} {
		if at := about[i+1]; at != "" && at != "off" {
			s.Files[at] = look(at)
		}
		if at := about[i+1]; name == "go.work" && at != "" && at != "off" {
			content[name] = s.Files[at].Hash
		}
	}
	if at := about[3]; filepath.IsAbs(at) && at != os.DevNull {
		sum := strings.TrimSuffix(at, ".mod") + ".sum"
		s.Files[sum] = look(sum)
	}
	b := digest.Build(p.Kind).Str("go", about[0]).Str("flags", strings.Join(p.Flags, " "))
	if p.Here {
		b.Str("environment", s.Environment).Str("tool", s.Tool)
	}
	for _, name := range slices.Sorted(maps.Keys(content)) {
		b.Str(name, content[name])
	}
	for _, m := range slices.Sorted(maps.Keys(versions)) {
		b.Str("module", m)
	}
	s.Key = b.Sum()
	return nil
}

// Recorded returns the recorded files that are in the project, relative to its folder.
func (p *Package) Recorded() (files []string) {
	s := p.readSources()
	if s == nil {
		return nil
	}
	for name := range s.Files {
		if rel, err := filepath.Rel(p.Project, name); err == nil && filepath.IsLocal(rel) {
			files = append(files, filepath.ToSlash(rel))
		}
	}
	slices.Sort(files)
	return files
}

// Stamp is a text that changes whenever the sources of the package may have changed. It runs no program, and reads no
// file except the record.
func (p *Package) Stamp() string {
	s := p.readSources()
	if s == nil {
		return ""
	}
	environment, tool, _ := p.environment()
	b := digest.Build("stamp").Str("environment", environment).Str("tool", tool)
	for _, folder := range slices.Sorted(maps.Keys(s.Folders)) {
		b.Str(folder, goNames(folder))
	}
	for _, e := range s.Embeds {
		b.Str(e.Pattern, e.names())
	}
	for _, name := range slices.Sorted(maps.Keys(s.Files)) {
		stat, _, err := source.StatPath(name)
		b.Str(name, fmt.Sprint(stat, err == nil))
	}
	return b.Sum().String()
}
