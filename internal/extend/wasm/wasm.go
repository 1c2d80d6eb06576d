// Package wasm turns a WebAssembly module into a processor.
//
// The module is a guest: it sees the world only through the functions of docs/formats/wasm-abi.md, which correspond to
// [processor.Job]'s methods of the same names. Its rules:
//
//   - No other imports. Of WASI it gets what a language's runtime needs to start: a clock that is the same in
//     each run, random numbers that are the same too, no arguments, no variables, no files.
//   - No state outside of memory and globals: instructions that change tables or drop segments are refused
//     when a module is loaded. So restoring memory and globals before each job makes a used instance equal to a new one:
//     0.3 ms for the 4 MiB of a small Go guest, while a new instance takes 4.
//   - An error of the world (a file that does not exist) is an error code for the guest. An error of the guest (a
//     pointer out of its memory, a closed handle) ends the job, at once and with a message; so do traps, the timeout
//     and the memory limit.
//   - An instance whose job failed is never used again.
//   - Nothing is compiled, and no engine is made, before a job runs: a module's description is cached beside its
//     compiled code.
package wasm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/processor"
)

// abi is part of every fingerprint, and the number that a guest was written for. It is raised when a host function
// changes its meaning.
const abi = 1

// Defaults for Config. The timeout ends endless loops, and does not limit a module that works; the memory is enough for
// four pictures of 8192x8192 pixels.
const (
	DefaultTimeout = 10 * time.Minute
	DefaultMemory  = 1 << 30
)

// maxModule is the maximum size of a module, in bytes: Go's have 2 to 10 MB.
const maxModule = 256 << 20

// Config declares a processor in WebAssembly. One of Path and Go is set.
type Config struct {
	Dir  string // of the project, absolute
	Path string // of the module, relative to Dir
	Go   string // folder of a Go package that is compiled to a module, relative to Dir

	// Cache is a folder for compiled code and for modules of Go packages. Absolute; it is created if necessary. ""
	// means no cache.
	Cache string

	// Name is the name in rules; Summary, Version, Extensions and Folder override the module's description, unless they
	// are zero.
	Name       string
	Summary    string
	Version    int
	Extensions []string
	Folder     bool

	Timeout time.Duration // of one job, without the time for building other assets; 0 is DefaultTimeout
	Memory  int64         // maximum of one job, in bytes, up to 4 GiB; 0 is DefaultMemory
}

// Load makes the processor, and returns a hash of its code. The error is a [*processor.Problem] with a code, whose
// Path, if it has one, is relative to the project.
func Load(ctx context.Context, c Config) (processor.Processor, string, error) {
	p := &proc{config: c, what: c.Path}
	var err error
	if c.Go != "" {
		p.what = c.Go
		p.code, p.key, err = goModule(ctx, c)
	} else {
		p.code, err = readModule(c)
		p.key = digest.Build("wasm").Str("abi", fmt.Sprint(abi)).Hash("module", digest.Of(p.code)).Sum()
	}
	if err == nil {
		err = p.describe(ctx)
	}
	if err != nil {
		return nil, "", err
	}
	return p, p.key.String(), nil
}

// Code is the module of a processor that Load made.
func Code(p processor.Processor) (code []byte, ok bool) {
	if p, ok := p.(*proc); ok {
		return p.code, true
	}
	return nil, false
}

func readModule(c Config) ([]byte, error) {
	bad := func(hint, format string, args ...any) ([]byte, error) {
		return nil, &processor.Problem{Code: string(diag.WasmModule), Path: c.Path, Text: fmt.Sprintf(format, args...), Hint: hint}
	}
	file := filepath.Join(c.Dir, filepath.FromSlash(c.Path))
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return bad("the path is relative to the project; `wasm = { go = \"folder\" }` compiles a Go package", "there is no module %q", c.Path)
	case err == nil && !info.Mode().IsRegular():
		return bad("`wasm = { go = \"folder\" }` compiles a Go package", "%q is not a file", c.Path)
	case err == nil && info.Size() > maxModule:
		return bad("strip it of debugging information", "%q has %d MB; a module may have %d", c.Path, info.Size()>>20, maxModule>>20)
	}
	var code []byte
	if err == nil {
		code, err = os.ReadFile(file)
	}
	if err != nil {
		return bad("", "the module cannot be read: %v", err)
	}
	return code, nil
}

// proc is a processor made of a module.
type proc struct {
	config Config
	what   string      // the module or the package, for display
	code   []byte      // as it was read
	key    digest.Hash // of the code
	about  description
	info   processor.Info

	once   sync.Once // for making the engine at the first job
	engine *engine
	failed error // error of making it
}

func (p *proc) Info() processor.Info { return p.info }

func (p *proc) Process(ctx context.Context, job processor.Job) error {
	p.once.Do(func() { p.engine, p.failed = newEngine(context.WithoutCancel(ctx), p) })
	if p.failed != nil {
		return p.failed
	}
	return p.engine.process(ctx, job)
}

// problem is about the module, whichever job it is.
func (p *proc) problem(code diag.Code, hint, format string, args ...any) *processor.Problem {
	return &processor.Problem{Code: string(code), Path: p.what, Text: fmt.Sprintf(format, args...), Hint: hint}
}

var validName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`) })

// describe reads the module's description: from the cache, or by running it.
func (p *proc) describe(ctx context.Context) error {
	kept := filepath.Join(p.config.Cache, "about-"+p.key.String()+".json")
	text, err := os.ReadFile(kept)
	if err == nil && p.config.Cache != "" && len(text) <= maxAbout {
		if p.about, err = parseDescription(text); err == nil {
			return p.setInfo()
		}
	}
	p.once.Do(func() { p.engine, p.failed = newEngine(ctx, p) })
	if p.failed != nil {
		return p.failed
	}
	if p.about, err = parseDescription(p.engine.about); err != nil {
		return p.problem(diag.WasmInfo, "", "kiln_info describes it wrongly: %v", err)
	}
	if err := p.setInfo(); err != nil {
		return err
	}
	p.config.keep(kept, p.engine.about) // without it, the module is run again
	return nil
}

// keep writes a file of the cache, completely or not at all, if there is a cache.
func (c *Config) keep(file string, data []byte) error {
	if c.Cache == "" {
		return nil
	}
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, data) {
		return nil
	}
	return disk.Keep(file, data)
}
