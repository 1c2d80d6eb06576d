package wasm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/diag"
	"github.com/kiln-pipeline/kiln/internal/digest"
	"github.com/kiln-pipeline/kiln/processor"
)

// goFlags are how a package becomes a module: the same bytes on each machine, with names of functions for crashes.
var goFlags = []string{"-trimpath", "-buildvcs=false", "-buildmode=c-shared", "-ldflags=-w"}

// sources are the files that a module was compiled of, as they were: if they still are, it need not be asked for them again, which
// takes the go tool 100 ms.
type sources struct {
	Environment string            // what `go env` says: version, go.mod, go.work
	Files       map[string]string // absolute path to hash
	Folders     map[string]string // absolute path to hash of the names of its Go files
	Embeds      bool              // files are named by patterns: what they match is not known here
	Key         string            // of the module
}

// goModule is the module that a Go package compiles to, from the cache if it is there.
func goModule(ctx context.Context, c Config) ([]byte, digest.Hash, error) {
	g := &goTool{ctx: ctx, c: c, dir: filepath.Join(c.Dir, filepath.FromSlash(c.Go))}
	fail := func(err error) ([]byte, digest.Hash, error) { return nil, digest.Hash{}, err }
	if info, err := os.Stat(g.dir); err != nil || !info.IsDir() {
		return fail(g.problem(diag.WasmModule, "the path is relative to the project, with forward slashes", "there is no folder "+strconv.Quote(c.Go)))
	}
	env, err := g.run("env", "GOVERSION", "GOMOD", "GOWORK")
	if err != nil {
		return fail(err)
	}
	for range 3 {
		code, key, ok, err := g.compiled(string(env))
		if err != nil {
			return fail(err)
		}
		if ok {
			return code, key, nil
		}
	}
	return fail(g.problem(diag.WasmGoBuild, "build again when whatever writes them is done", "its files changed while they were compiled"))
}

// compiled is the module, and the key of its sources; ok is false if these changed while it was compiled, so that it may be of either.
func (g *goTool) compiled(env string) (code []byte, key digest.Hash, ok bool, err error) {
	kept := filepath.Join(g.c.Cache, "go-"+digest.Of([]byte(g.dir)).String()+".json")
	src := readSources(kept)
	if src.Environment != env || src.Embeds || !src.hold() {
		if src, err = g.sources(env); err != nil {
			return nil, key, false, err
		}
		text, _ := json.Marshal(src)
		g.c.keep(kept, text)
	}
	if key, err = digest.Parse(src.Key); err != nil {
		return nil, key, false, err
	}
	module := filepath.Join(g.c.Cache, "module-"+src.Key+".wasm")
	if code, err := os.ReadFile(module); err == nil && bytes.HasPrefix(code, []byte("\x00asm")) {
		return code, key, true, nil
	}
	if code, err = g.build(); err != nil {
		return nil, key, false, err
	}
	now := src
	if src.Embeds { // what is embedded is not among the files
		if now, err = g.sources(env); err != nil {
			return nil, key, false, err
		}
	}
	if now.Key != src.Key || !src.hold() {
		return nil, key, false, nil
	}
	g.c.keep(module, code)
	return code, key, true, nil
}

func readSources(file string) (s sources) {
	text, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(text, &s) != nil {
		return sources{}
	}
	if _, err := digest.Parse(s.Key); err != nil {
		return sources{}
	}
	return s
}

// hold tells whether the files are what they were.
func (s *sources) hold() bool {
	for file, was := range s.Files {
		if hash, err := fileHash(file); err != nil || hash.String() != was {
			return false
		}
	}
	for folder, was := range s.Folders {
		if goNames(folder).String() != was {
			return false
		}
	}
	return true
}

func fileHash(file string) (digest.Hash, error) {
	data, err := os.ReadFile(file)
	return digest.Of(data), err
}

// goNames hashes the names of the files that the go tool would look at in a folder.
func goNames(folder string) digest.Hash {
	entries, _ := os.ReadDir(folder)
	b := digest.Build("go files")
	for _, e := range entries {
		if ext := path.Ext(e.Name()); ext == ".go" || ext == ".s" || ext == ".h" {
			b.Str("file", e.Name())
		}
	}
	return b.Sum()
}

// goTool runs the go tool on one package.
type goTool struct {
	ctx context.Context
	c   Config
	dir string
}

func (g *goTool) problem(code diag.Code, hint, text string) *processor.Problem {
	return &processor.Problem{Code: string(code), Path: g.c.Go, Text: text, Hint: hint}
}

// run is what the tool prints. Its errors point into the sources.
func (g *goTool) run(args ...string) ([]byte, error) {
	tool, err := exec.LookPath("go")
	if err != nil {
		return nil, g.problem(diag.WasmGoMissing, "install it from https://go.dev/dl, or compile the module elsewhere and give `wasm` its file",
			"there is no Go to compile "+strconv.Quote(g.c.Go)+" with: `go` is not on PATH")
	}
	cmd := exec.CommandContext(g.ctx, tool, args...)
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "CGO_ENABLED=0", "PWD="+g.dir)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		if g.ctx.Err() != nil {
			return nil, context.Cause(g.ctx)
		}
		return nil, g.complaints(said.String(), err)
	}
	return out.Bytes(), nil
}

var goLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^(?:\./)?([^\s:]+\.go):([0-9]{1,9}):(?:([0-9]{1,9}):)? *(.*(?:\n\t.*)*)$`)
})

// maxComplaints is how many of the compiler's errors are shown.
const maxComplaints = 20

// complaints are the compiler's errors, at their places.
func (g *goTool) complaints(said string, err error) error {
	var errs []error
	for _, m := range goLine().FindAllStringSubmatch(said, maxComplaints) {
		text, more, _ := strings.Cut(m[4], "\n\t") // what to do about it: a line that is indented
		p := g.problem(diag.WasmGoBuild, strings.ReplaceAll(more, "\n\t", ", "), strings.TrimSuffix(text, "; to add it:"))
		p.Line, _ = strconv.Atoi(m[2])
		p.Column, _ = strconv.Atoi(m[3])
		if p.Path = m[1]; !filepath.IsAbs(m[1]) {
			p.Path = path.Join(g.c.Go, filepath.ToSlash(m[1]))
		}
		errs = append(errs, p)
	}
	if len(errs) == 0 {
		text := "go cannot compile it: " + err.Error()
		if said = strings.TrimSpace(said); said != "" {
			text += "\n  " + strings.ReplaceAll(said, "\n", "\n  ")
		}
		return g.problem(diag.WasmGoBuild, "", text)
	}
	return errors.Join(errs...)
}

// goPackage is what `go list` tells of one package.
type goPackage struct {
	ImportPath, Dir                     string
	Standard                            bool
	GoFiles, SFiles, HFiles, EmbedFiles []string
	EmbedPatterns                       []string
	Module                              *goMod
}

type goMod struct {
	Path, Version, GoMod string
	Replace              *goMod
}

// local tells whether a package's files may change under its version: they are the project's own, or a folder's that stands in for a module.
func (p *goPackage) local(project string) bool {
	m := p.Module
	if m != nil && m.Replace != nil {
		m = m.Replace
	}
	return m == nil || m.Version == "" || strings.HasPrefix(p.Dir, project+string(filepath.Separator))
}

// sources asks for the files behind the package and all it imports. The key is of what is in them, and of the versions of all else.
func (g *goTool) sources(env string) (sources, error) {
	s := sources{Environment: env, Files: map[string]string{}, Folders: map[string]string{}}
	out, err := g.run("list", "-deps", "-json=ImportPath,Dir,Standard,GoFiles,SFiles,HFiles,EmbedFiles,EmbedPatterns,Module", ".")
	if err != nil {
		return s, err
	}
	version, _, _ := strings.Cut(env, "\n")
	content := map[string]digest.Hash{} // by names that are the same on each machine
	versions := map[string]bool{}
	add := func(name, file string) error {
		hash, err := fileHash(file)
		s.Files[file], content[name] = hash.String(), hash
		return err
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return s, g.problem(diag.WasmGoBuild, "", "what `go list` prints is not understood: "+err.Error())
		}
		switch {
		case p.Standard: // the version tells
			continue
		case !p.local(g.c.Dir):
			m := p.Module
			if m.Replace != nil {
				m = m.Replace
			}
			versions[m.Path+"@"+m.Version] = true
			continue
		}
		s.Folders[p.Dir] = goNames(p.Dir).String()
		s.Embeds = s.Embeds || len(p.EmbedPatterns) > 0
		for _, f := range slices.Concat(p.GoFiles, p.SFiles, p.HFiles, p.EmbedFiles) {
			if err := add(p.ImportPath+"/"+filepath.ToSlash(f), filepath.Join(p.Dir, f)); err != nil {
				return s, g.problem(diag.WasmGoBuild, "", err.Error())
			}
		}
		if p.Module != nil && p.Module.GoMod != "" {
			if err := add(p.Module.Path+"/go.mod", p.Module.GoMod); err != nil {
				return s, g.problem(diag.WasmGoBuild, "", err.Error())
			}
		}
	}
	b := digest.Build("wasm of go").Str("abi", strconv.Itoa(abi)).Str("go", version).Str("flags", strings.Join(goFlags, " "))
	for _, name := range slices.Sorted(maps.Keys(content)) {
		b.Hash(name, content[name])
	}
	for _, m := range slices.Sorted(maps.Keys(versions)) {
		b.Str("module", m)
	}
	s.Key = b.Sum().String()
	return s, nil
}

func (g *goTool) build() ([]byte, error) {
	folder, err := os.MkdirTemp("", "kiln-wasm-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "module.wasm")
	if _, err := g.run(append(append([]string{"build"}, goFlags...), "-o", file, ".")...); err != nil {
		return nil, err
	}
	code, err := os.ReadFile(file)
	if err != nil {
		return nil, g.problem(diag.WasmGoBuild, "the folder has to be a package main", "go compiled nothing: "+err.Error())
	}
	return code, nil
}
