package wasm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/processor"
)

// aboutTimeout is how long a module may take to start and to describe itself; Go's guests take 5 ms.
const aboutTimeout = 30 * time.Second

// page is WebAssembly's unit of memory.
const page = 64 << 10

// engine runs one module's jobs.
type engine struct {
	p        *proc
	timeout  time.Duration
	limit    int64 // of memory, in bytes
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	globals  []string // names of exported globals
	about    []byte   // result of kiln_info

	// State of an instance before each job: after _initialize and kiln_info.
	memory []byte
	values []uint64

	mu   sync.Mutex
	idle []*instance // ready for a job, at most GOMAXPROCS
}

// instance is the module with its own memory, for one job at a time.
type instance struct {
	api.Module
	process api.Function
	globals []api.MutableGlobal
}

// newEngine compiles the module and asks it for its description.
func newEngine(ctx context.Context, p *proc) (e *engine, err error) {
	defer func() {
		if x := recover(); x != nil { // the engine reads a module that may be hostile
			e, err = nil, p.problem(diag.WasmModule, "", "the module cannot be compiled: %v", x)
		}
	}()
	ready, err := prepare(p.code)
	var problem *processor.Problem
	if errors.As(err, &problem) {
		problem.Path = p.what
		return nil, problem
	}
	e = &engine{p: p, timeout: p.config.Timeout, limit: p.config.Memory, globals: ready.globals}
	if e.timeout <= 0 {
		e.timeout = DefaultTimeout
	}
	if e.limit <= 0 {
		e.limit = DefaultMemory
	}
	if err := e.compile(ctx, ready.code); err != nil {
		return nil, p.problem(diag.WasmModule, "", "the module cannot be compiled: %v", err)
	}
	if err := e.checkExports(); err != nil {
		return nil, err
	}
	return e, e.start(ctx)
}

// compile uses the cache. A damaged cache is emptied.
func (e *engine) compile(ctx context.Context, code []byte) error {
	config := wazero.NewRuntimeConfig().WithCloseOnContextDone(true).WithMemoryLimitPages(uint32(min(max(e.limit/page, 1), 1<<16)))
	if e.p.config.Cache != "" {
		folder := filepath.Join(e.p.config.Cache, "compiled")
		if cache, err := wazero.NewCompilationCacheWithDir(folder); err == nil {
			if err = e.compileWith(ctx, config.WithCompilationCache(cache), code); err == nil {
				return nil
			}
			os.RemoveAll(folder)
		}
	}
	return e.compileWith(ctx, config, code)
}

func (e *engine) compileWith(ctx context.Context, config wazero.RuntimeConfig, code []byte) (err error) {
	e.runtime = wazero.NewRuntimeWithConfig(ctx, config)
	for module, functions := range map[string]map[string]function{hostModule: hostFunctions(), wasiModule: wasiFunctions()} {
		b := e.runtime.NewHostModuleBuilder(module)
		for name, f := range functions {
			b.NewFunctionBuilder().WithGoModuleFunction(hostCall(module, name, f), values(f.params), values(f.results)).Export(name)
		}
		if _, err := b.Instantiate(ctx); err != nil {
			return err
		}
	}
	e.compiled, err = e.runtime.CompileModule(ctx, code)
	return err
}

// hostHas reports whether a guest may import a function.
func hostHas(module, name string) bool {
	functions := hostFunctionsOnce()
	if module == wasiModule {
		functions = wasiFunctionsOnce()
	}
	_, ok := functions[name]
	return ok && (module == hostModule || module == wasiModule)
}

var (
	hostFunctionsOnce = sync.OnceValue(hostFunctions)
	wasiFunctionsOnce = sync.OnceValue(wasiFunctions)
)

// runKey is the key of a call's run in its context.
type runKey struct{}

func hostCall(module, name string, f function) api.GoModuleFunc {
	ours := module == hostModule
	return func(ctx context.Context, m api.Module, s []uint64) {
		r := ctx.Value(runKey{}).(*run)
		r.calling, r.memory = name, m.Memory()
		if ours && (r.job == nil) != (name == "describe") {
			if r.job == nil {
				r.abuse("is called outside of kiln_process")
			}
			r.abuse("is called outside of kiln_info")
		}
		f.call(r, s)
	}
}

// checkExports checks the exports that every module must have.
func (e *engine) checkExports() error {
	if e.compiled.ExportedMemories()["memory"] == nil {
		return e.p.problem(diag.WasmModule, buildHint, "the module does not export its memory as \"memory\"")
	}
	functions := e.compiled.ExportedFunctions()
	for _, want := range []struct {
		name    string
		results string
		must    bool
	}{{"kiln_info", "", true}, {"kiln_process", "i", true}, {"_initialize", "", false}} {
		f := functions[want.name]
		switch {
		case f == nil && !want.must:
		case f == nil:
			hint := buildHint
			if functions["_start"] != nil {
				hint = "it is a command and not a library: " + buildHint
			}
			return e.p.problem(diag.WasmModule, hint, "the module does not export %s", want.name)
		case len(f.ParamTypes()) > 0 || string(f.ResultTypes()) != string(values(want.results)):
			return e.p.problem(diag.WasmModule, "", "%s has parameters or results that it should not have: it is %s() and its result %s",
				want.name, want.name, map[string]string{"": "nothing", "i": "an i32"}[want.results])
		}
	}
	return nil
}

// start makes the first instance, and stores its state before its first job.
func (e *engine) start(ctx context.Context) error {
	r := newRun(ctx, nil, e.p, min(e.timeout, aboutTimeout))
	defer r.end()
	in, err := e.instantiate(r.ctx)
	for _, name := range []string{"_initialize", "kiln_info"} {
		if err == nil {
			if f := in.ExportedFunction(name); f != nil {
				_, err = f.Call(r.ctx)
			}
		}
	}
	if err != nil {
		return r.explain(e.limit, err, " while it started")
	}
	e.about = r.about
	memory, _ := in.Memory().Read(0, in.Memory().Size())
	e.memory = append([]byte(nil), memory...)
	for _, g := range in.globals {
		e.values = append(e.values, g.Get())
	}
	e.idle = append(e.idle, in)
	return nil
}

func (e *engine) instantiate(ctx context.Context) (*instance, error) {
	m, err := e.runtime.InstantiateModule(ctx, e.compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return nil, err
	}
	in := &instance{Module: m, process: m.ExportedFunction("kiln_process")}
	for _, name := range e.globals {
		in.globals = append(in.globals, m.ExportedGlobal(name).(api.MutableGlobal))
	}
	return in, nil
}

// instance returns an instance that is ready for a job. A new one needs no _initialize, which would only set memory and
// globals.
func (e *engine) instance(ctx context.Context) (*instance, error) {
	e.mu.Lock()
	if n := len(e.idle); n > 0 {
		in := e.idle[n-1]
		e.idle = e.idle[:n-1]
		e.mu.Unlock()
		return in, nil
	}
	e.mu.Unlock()
	in, err := e.instantiate(ctx)
	if err != nil {
		return nil, err
	}
	if more := int64(len(e.memory)) - int64(in.Memory().Size()); more > 0 {
		in.Memory().Grow(uint32(more / page))
	}
	if !e.reset(in) {
		return nil, fmt.Errorf("a new instance has %d bytes of memory, the first one had %d", in.Memory().Size(), len(e.memory))
	}
	return in, nil
}

// reset restores the state of an instance before its first job. It fails if memory has grown, because memory cannot
// shrink.
func (e *engine) reset(in *instance) bool {
	if int64(in.Memory().Size()) != int64(len(e.memory)) || !in.Memory().Write(0, e.memory) {
		return false
	}
	for i, g := range in.globals {
		g.Set(e.values[i])
	}
	return true
}

// done returns an instance after a successful job.
func (e *engine) done(in *instance) {
	if e.reset(in) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if len(e.idle) < runtime.GOMAXPROCS(0) {
			e.idle = append(e.idle, in)
			return
		}
	}
	in.Close(context.Background())
}

func (e *engine) process(ctx context.Context, job processor.Job) error {
	r := newRun(ctx, job, e.p, e.timeout)
	defer r.end()
	in, err := e.instance(r.ctx)
	if err != nil {
		return r.explain(e.limit, err, " while it started")
	}
	code, err := in.process.Call(r.ctx)
	if err != nil {
		r.memory = in.Memory()
		in.Close(context.WithoutCancel(ctx))
		return r.explain(e.limit, err, "")
	}
	e.done(in)
	return r.outcome(api.DecodeI32(code[0]))
}

// firstLines are the lines of a trap's message without the engine's own text, and with the innermost calls only.
func firstLines(text string) string {
	text = strings.TrimPrefix(text, "wasm error: ")
	head, stack, _ := strings.Cut(text, "\nwasm stack trace:\n")
	var b strings.Builder
	b.WriteString(head)
	for i, line := range strings.Split(stack, "\n") {
		if line = strings.TrimSpace(line); i == 8 || line == "" {
			break
		}
		b.WriteString("\n  in " + line)
	}
	return b.String()
}
