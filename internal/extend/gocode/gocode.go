// Package gocode compiles Go packages of a project, and checks, without calling the go tool, whether their source has
// changed.
//
// Content counts: every file of the package and of the packages of work trees that it imports, the names of the files
// that the go tool would read, the matches of patterns of embedded files, and the versions of everything else. Size and
// times of a file only decide when its content is read.
package gocode

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/base/secret"
	"github.com/kiln-pipeline/kiln/processor"
)

// Package is a Go package of a project.
type Package struct {
	Project string   // the project's folder, absolute
	Folder  string   // of the package, as in the project file
	Env     []string // for the go tool, in addition to this process's
	Flags   []string // for go build
	Kind    string   // kind of the result, and its inputs besides Go: part of the key
	Here    bool     // only for this machine: environment variables and the tool's own file are part of the key
	Record  string   // file in which the sources are recorded; "" for none

	// Codes of errors: the folder does not exist, Go is not installed, it does not compile.
	NoFolder, NoGo, Failed diag.Code
	Without                string // what to do without Go
	Lang                   string // of `kiln new processor --lang`
}

// Sources are the inputs of a compiled package. If they are unchanged, the go tool need not be called, which takes 100
// ms.
type Sources struct {
	Key         digest.Hash       `json:"-"`
	Environment string            // inputs besides files
	Tool        string            // the go tool's own file
	Files       map[string]file   // by absolute path
	Folders     map[string]string // absolute path to hash of the names of its Go files
	Embeds      []embeds
	KeyText     string `json:"Key"`

	changed bool // Files have other stats than when they were read
}

// Dir is the package's folder, absolute.
func (p *Package) Dir() string { return filepath.Join(p.Project, filepath.FromSlash(p.Folder)) }

// Look finds the sources of the package. Its errors are problems in the source, or with the tool.
func (p *Package) Look(ctx context.Context) (*Sources, error) {
	if info, err := os.Stat(p.Dir()); err != nil || !info.IsDir() {
		return nil, p.problem(p.NoFolder, "the path is relative to the project, with forward slashes", "there is no folder "+strconv.Quote(p.Folder))
	}
	s := p.readSources()
	if s != nil && p.hold(s) {
		p.note(s)
		return s, nil
	}
	s, err := p.ask(ctx)
	if err != nil {
		return nil, err
	}
	s.changed = true
	p.note(s)
	return s, nil
}

func (p *Package) readSources() *Sources {
	s := &Sources{}
	text, err := os.ReadFile(p.Record)
	if err != nil || json.Unmarshal(text, s) != nil {
		return nil
	}
	if s.Key, err = digest.Parse(s.KeyText); err != nil {
		return nil
	}
	return s
}

// note writes the record. Without it, the tool is called again.
func (p *Package) note(s *Sources) {
	if p.Record == "" || !s.changed {
		return
	}
	s.KeyText, s.changed = s.Key.String(), false
	text, err := json.Marshal(s)
	if err == nil {
		disk.Keep(p.Record, text) // without it, the go tool is called again
	}
}

// tries is how often a package that changes meanwhile is compiled, or checked.
const tries = 5

// Build compiles the package into a file, and returns its sources, which differ from those of Look if it was edited
// meanwhile.
func (p *Package) Build(ctx context.Context, s *Sources, file string) (*Sources, error) {
	for range tries {
		if _, err := p.run(ctx, append(append([]string{"build"}, p.Flags...), "-o", file, ".")...); err != nil {
			return nil, err
		}
		if p.hold(s) {
			if _, err := os.Stat(file); err != nil {
				return nil, p.problem(p.Failed, "the folder has to be a package main", "go compiled nothing: "+err.Error())
			}
			return s, nil
		}
		var err error
		if s, err = p.Look(ctx); err != nil {
			return nil, err
		}
	}
	return nil, p.problem(p.Failed, "leave it alone for a moment", "its source was edited again and again while it was compiled")
}

func (p *Package) problem(code diag.Code, hint, text string) *processor.Problem {
	return &processor.Problem{Code: string(code), Path: p.Folder, Text: text, Hint: hint}
}

// run returns the output of the tool. Its errors have places in the sources.
func (p *Package) run(ctx context.Context, args ...string) ([]byte, error) {
	tool, err := exec.LookPath("go")
	if err != nil {
		return nil, p.problem(p.NoGo, "install it from https://go.dev/dl"+p.Without,
			"there is no Go to compile "+strconv.Quote(p.Folder)+" with: `go` is not on PATH")
	}
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Dir = p.Dir()
	cmd.Env = slices.Concat(secret.Environ(), p.Env, []string{"PWD=" + cmd.Dir})
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, p.complaints(said.String(), err)
	}
	return out.Bytes(), nil
}

var goLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^(?:\./)?([^\s:]+(?:\.go|go\.mod|go\.work)):([0-9]{1,9}):(?:([0-9]{1,9}):)? *(.*(?:\n\t.*)*)$`)
})

// maxComplaints is how many of the compiler's errors are shown.
const maxComplaints = 20

// complaints returns the compiler's errors with their places.
func (p *Package) complaints(said string, err error) error {
	var errs []error
	for _, m := range goLine().FindAllStringSubmatch(said, maxComplaints) {
		text, more, _ := strings.Cut(p.inProject(m[4]), "\n\t") // what to do about it: a line that is indented
		text, more = strings.TrimSuffix(text, "; to add it:"), strings.ReplaceAll(more, "\n\t", ", ")
		if before, _, ok := strings.Cut(text, " is not in std ("); ok {
			text = before + " is not in std"
		}
		problem := p.problem(p.Failed, cmp.Or(more, p.remedy(text)), text)
		problem.Line, _ = strconv.Atoi(m[2])
		problem.Column, _ = strconv.Atoi(m[3])
		if problem.Path = m[1]; !filepath.IsAbs(m[1]) {
			problem.Path = path.Join(p.Folder, filepath.ToSlash(m[1]))
		}
		errs = append(errs, problem)
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	text := cmp.Or(p.inProject(strings.TrimSpace(said)), err.Error())
	hint := cmp.Or(p.remedy(text), "`go build ./"+p.Folder+"` in the project folder says the same")
	return p.problem(p.Failed, hint, "go cannot compile "+p.Folder+":\n  "+strings.ReplaceAll(text, "\n", "\n  "))
}

var upPath = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\.\.?/[^\s:]*`) })

// inProject makes paths in what the tool says relative to the project. It says them as seen from the package.
func (p *Package) inProject(text string) string {
	text = strings.ReplaceAll(text, p.Project+string(filepath.Separator), "")
	return upPath().ReplaceAllStringFunc(text, func(file string) string {
		if at := path.Join(p.Folder, file); !strings.HasPrefix(at, "../") {
			return at
		}
		return file
	})
}

// kilnModule is what processors import.
const kilnModule = "github.com/kiln-pipeline/kiln"

// remedy is what to do about an error of the tool where the tool does not say; "" if that is plain, or not known.
func (p *Package) remedy(text string) string {
	absent := strings.Contains(text, "is not in std") || strings.Contains(text, "no required module provides") ||
		strings.Contains(text, "cannot find module")
	switch {
	case strings.Contains(text, "go.mod file not found"), absent && strings.Contains(text, kilnModule):
		return "`kiln new processor NAME --lang " + p.Lang + "`, with another name, writes a go.mod that knows Kiln's packages"
	case absent:
		return "correct the import, or run `go get` with it in the project folder"
	}
	return ""
}

var moduleLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^module\s+"?([^\s"]+)`) })

// ImportPath returns the import path of a folder by the go.mod in or above it, and the folder of go.mod; "" if there
// is none.
func ImportPath(dir string) (name, module string, err error) {
	for up := dir; ; up = filepath.Dir(up) {
		text, err := os.ReadFile(filepath.Join(up, "go.mod"))
		if err == nil {
			found := moduleLine().FindSubmatch(text)
			rel, err := filepath.Rel(up, dir)
			if found == nil || err != nil {
				return "", up, fmt.Errorf("%s names no module", filepath.Join(up, "go.mod"))
			}
			return path.Join(string(found[1]), filepath.ToSlash(rel)), up, nil
		}
		if up == filepath.Dir(up) {
			return "", "", nil
		}
	}
}
