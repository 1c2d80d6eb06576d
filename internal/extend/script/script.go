// Package script turns Starlark scripts of a project into processors.
//
// Its rules: a script sees the world only through its Job, so there is no clock, no file, no network and only seeded
// randomness. Everything that it loads is part of its fingerprint. A module is executed once, by [Load], and frozen;
// jobs call its function `process` (or `pack` and `write`, see pack.go) on threads of their own, in parallel. Whatever
// a script does, the worst result is a failed job: steps, memory and time have limits (see guard.go), and messages show
// the place in the script, the calls that led there, and the asset.
package script

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/processor"
)

// runner is part of every fingerprint. It is raised when the meaning of a script changes, or what it reads from an image.
const runner = "3"

// Interpreter is the version of go.starlark.net, which is part of every fingerprint too.
const Interpreter = "v0.0.0-20260908191801-89a6a09411d5"

// Limits of scripts.
const (
	MaxSource  = 256 << 10        // bytes of one module
	MaxModules = 256              // number of modules of one script
	MaxSteps   = 1_000_000_000    // of one job: half a minute at least
	MaxMemory  = int64(1) << 30   // bytes that one job may have used while the whole Kiln process has grown by as much
	loadSteps  = 2_000_000        // of all modules together: nested values are frozen recursively
	patience   = 5 * time.Second  // how long to wait for a script that does not stop at its timeout
	Timeout    = 10 * time.Minute // default for one job
)

// Script is a loaded script. It is a [processor.Processor].
type Script struct {
	info    processor.Info
	code    digest.Hash
	sources map[string][]byte // of all modules, by path from the project folder

	// Either process, or pack and write.
	process, pack, write *starlark.Function
	data                 bool // write has a parameter for the result of pack

	// Steps, Memory and Timeout are limits of one job; [Load] sets them to MaxSteps, MaxMemory and Timeout. Change them
	// only before the first job.
	Steps   uint64
	Memory  int64
	Timeout time.Duration
}

// Load reads and executes the script at path, relative to the project folder, and everything that it loads. Compiled
// modules are cached in the folder cacheDir, which is created if necessary; "" means no cache. The error is a
// [diag.List].
func Load(projectDir, path, cacheDir string) (*Script, error) {
	root, err := os.OpenRoot(projectDir)
	if err != nil {
		return nil, diag.List{diag.Errorf(diag.ScriptLoad, diag.Pos{File: path}, "the project's folder cannot be read: %v", err)}
	}
	defer root.Close()
	l := newLoader(root, cacheDir)
	s := &Script{sources: l.sources, Steps: MaxSteps, Memory: MaxMemory, Timeout: Timeout}
	globals, err := l.load(path, nil)
	if err == nil {
		err = s.declare(path, globals, l.declared)
	}
	if err != nil {
		return nil, l.messages(err)
	}
	s.code = l.fingerprint(path)
	return s, nil
}

// Info describes the processor, as the script declares it.
func (s *Script) Info() processor.Info { return s.info }

// Fingerprint is the hash of the script, everything that it loads, and the interpreter.
func (s *Script) Fingerprint() string { return s.code.String() }

// Sources are the script and everything that it loads, by paths below the project folder.
func (s *Script) Sources() map[string][]byte { return maps.Clone(s.sources) }

// Declared is the declaration of a script's processor in a project file. Zero values do not override
// the script's.
type Declared struct {
	Summary    string
	Version    int
	Extensions []string
	Timeout    time.Duration // of one job, without the time for building other assets
	Memory     int64         // bytes that one job may take
}

// Declare is called before the first job.
func (s *Script) Declare(d Declared) {
	if d.Summary != "" {
		s.info.Summary = d.Summary
	}
	if d.Version > 1 {
		s.info.Version = d.Version
	}
	if d.Extensions != nil {
		s.info.Extensions = d.Extensions
	}
	if d.Timeout > 0 {
		s.Timeout = d.Timeout
	}
	if d.Memory > 0 {
		s.Memory, s.info.Memory = d.Memory, d.Memory
	}
}

// declare reads the script's declaration.
func (s *Script) declare(path string, globals starlark.StringDict, declared []*declaration) error {
	switch {
	case len(declared) == 0:
		return diag.Errorf(diag.ScriptDeclaration, diag.Pos{File: path}, "the script declares no processor").
			WithHint(`write processor(%q, extensions = [".map"])`, strings.TrimSuffix(filepath.Base(path), ".star"))
	case len(declared) > 1:
		return at(diag.ScriptDeclaration, declared[1].pos, "the script declares a second processor").WithHint("a script makes one; let two scripts load what they share")
	}
	s.info = declared[0].info
	function := func(name string, params ...string) (*starlark.Function, error) {
		return function(globals[name], declared[0].pos, name, params...)
	}
	var err error
	// With process, the other names may be any functions.
	if globals["process"] != nil || globals["pack"] == nil && globals["write"] == nil {
		s.process, err = function("process", "job")
		return err
	}
	s.info.Packs = true
	if s.pack, err = function("pack", "job"); err == nil {
		params := []string{"job", "responses"}
		if fn, ok := globals["write"].(*starlark.Function); ok && fn.NumParams() == 3 {
			s.data, params = true, append(params, "data")
		}
		s.write, err = function("write", params...)
	}
	return err
}

// function checks that a global is a function with these parameters.
func function(global starlark.Value, declared syntax.Position, name string, params ...string) (*starlark.Function, error) {
	hint := fmt.Sprintf("write def %s(%s): ...", name, strings.Join(params, ", "))
	fn, ok := global.(*starlark.Function)
	if !ok {
		return nil, at(diag.ScriptDeclaration, declared, "the script has no function %q", name).WithHint("%s", hint)
	}
	if fn.NumParams() != len(params) || fn.HasVarargs() || fn.HasKwargs() {
		return nil, at(diag.ScriptDeclaration, fn.Position(), "the function %q takes %s", name, map[int]string{1: "one argument", 2: "two arguments", 3: "three arguments"}[len(params)]).WithHint("%s", hint)
	}
	return fn, nil
}

// Process runs the script's function `process`, or its function `write`.
func (s *Script) Process(ctx context.Context, job processor.Job) error {
	j := &jobValue{job: job, script: s}
	if s.process == nil {
		return s.packed(ctx, j)
	}
	return s.run(ctx, j, s.process)
}

// run calls one of the script's functions with the job and further arguments.
func (s *Script) run(ctx context.Context, j *jobValue, fn *starlark.Function, more ...starlark.Value) error {
	g := newGuard(s.Steps, s.Memory)
	j.file = fn.Position().Filename()
	thread := &starlark.Thread{Name: j.job.Asset().ID, Print: j.print}
	g.attach(thread)
	thread.SetLocal(jobKey, j)

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	j.ctx = ctx
	j.clock = newStopwatch(s.Timeout, func() { cancel(errTooLong) })
	defer j.clock.end()
	defer context.AfterFunc(ctx, func() { thread.Cancel(timeIsUp) })()

	done := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- diag.Errorf(diag.ScriptError, diag.Pos{File: j.file}, "the interpreter panicked: %v", p)
			}
		}()
		var err error
		j.returned, err = starlark.Call(thread, fn, append(starlark.Tuple{j}, more...), nil)
		done <- err
	}()
	select {
	case err := <-done:
		return s.explain(ctx, j, g, err)
	case <-ctx.Done():
	}
	// The thread is cancelled between two steps; a single built-in, or a read of a file, may take longer.
	left := time.NewTimer(patience)
	defer left.Stop()
	select {
	case err := <-done:
		return s.explain(ctx, j, g, err)
	case <-left.C:
		j.ended.Store(true)
		return s.tooLong(ctx, j)
	}
}

// stopwatch ends a job that takes too long; it is paused while other assets are built.
type stopwatch struct {
	mu    sync.Mutex
	timer *time.Timer
	left  time.Duration
	since time.Time
	over  bool // the job has ended: it is not resumed
}

func newStopwatch(d time.Duration, end func()) *stopwatch {
	return &stopwatch{timer: time.AfterFunc(d, end), left: d, since: time.Now()}
}

func (w *stopwatch) pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Stop()
	w.left -= time.Since(w.since)
}

func (w *stopwatch) resume() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.since = time.Now()
		w.timer.Reset(max(w.left, time.Millisecond))
	}
}

func (w *stopwatch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.timer.Stop()
}

var errTooLong = errors.New("the script took too long")

// timeIsUp is the reason that a thread is cancelled with.
const timeIsUp = "its time is up"

func (s *Script) tooLong(ctx context.Context, j *jobValue) error {
	if !errors.Is(context.Cause(ctx), errTooLong) {
		return ctx.Err()
	}
	m := diag.Errorf(diag.ScriptTime, diag.Pos{File: j.file}, "the script took longer than %v", s.Timeout).
		WithHint("raise `timeout` of the processor in kiln.toml if it needs that long")
	j.note(m)
	return fmt.Errorf("%w: %w", m, diag.ErrMoment)
}

// explain turns the error of a call into a message: the place in the script, the calls, and the asset.
func (s *Script) explain(ctx context.Context, j *jobValue, g *guard, err error) error {
	j.ended.Store(true)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil && strings.Contains(err.Error(), timeIsUp) {
		return s.tooLong(ctx, j)
	}
	var told *jobError
	if errors.As(err, &told) && !told.missing() {
		return told.err // the job has its own message for it
	}
	var failed *failure
	if errors.As(err, &failed) {
		return &failed.problem
	}
	m := evalMessage(err, s.sources)
	limit := limitOf(m, g, err)
	if told != nil {
		m.Code = diag.SourceMissing
		m.WithHint("put the file there, or ask job.exists(path) first")
	}
	j.note(m)
	if limit != nil && limit.moment {
		return fmt.Errorf("%w: %w", m, diag.ErrMoment)
	}
	return m
}

// limitOf turns a message into a limitError, if the script exceeded a limit.
func limitOf(m *diag.Message, g *guard, err error) *limitError {
	var limit *limitError
	if g.over != nil { // the thread was cancelled
		limit = g.over
		m.Text = limit.text
	} else if !errors.As(err, &limit) {
		return nil
	}
	m.Code, m.Hint = diag.ScriptLimit, limit.hint
	return limit
}

// at is a message with a place in a script.
func at(code diag.Code, pos syntax.Position, format string, args ...any) *diag.Message {
	return diag.Errorf(code, diag.Pos{File: pos.Filename(), Line: int(pos.Line), Column: int(pos.Col)}, format, args...)
}
