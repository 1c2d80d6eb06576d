package script

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/processor"
)

// loader reads the modules of one script, each once.
type loader struct {
	root     *os.Root
	sources  map[string][]byte
	modules  map[string]starlark.StringDict
	declared []*declaration
	guard    *guard
	names    starlark.StringDict
	cache    cache
}

func newLoader(root *os.Root, cacheDir string) *loader {
	l := &loader{root: root, cache: cache{cacheDir}, sources: map[string][]byte{}, modules: map[string]starlark.StringDict{}, guard: newGuard(loadSteps, MaxMemory)}
	l.names = predeclared()
	l.names["processor"] = starlark.NewBuiltin("processor", l.processor)
	return l
}

// options of the language: `while` is allowed, because steps limit loops; recursion is not, because it uses the host's
// stack.
func options() *syntax.FileOptions {
	return &syntax.FileOptions{Set: true, While: true, TopLevelControl: true}
}

// load executes a module and returns its frozen globals. by are the modules that are being loaded, outermost
// first.
func (l *loader) load(path string, by []string) (starlark.StringDict, error) {
	if g, ok := l.modules[path]; ok {
		return g, nil
	}
	data, err := l.read(path)
	if err != nil {
		return nil, err
	}
	l.sources[path] = data
	prog, err := l.compile(path, data)
	if err != nil {
		return nil, err
	}
	by = append(slices.Clip(by), path)
	loaded, err := l.loads(prog, by)
	if err != nil {
		return nil, err
	}
	thread := &starlark.Thread{
		Name:  path,
		Print: func(*starlark.Thread, string) {}, // there is no job to keep it with
		Load:  func(_ *starlark.Thread, ref string) (starlark.StringDict, error) { return loaded[ref], nil },
	}
	l.guard.attach(thread)
	globals, err := prog.Init(thread, l.names)
	l.guard.used += thread.ExecutionSteps()
	if err != nil {
		return nil, err
	}
	globals.Freeze()
	l.modules[path] = globals
	return globals, nil
}

// compile returns a module's code.
func (l *loader) compile(path string, data []byte) (*starlark.Program, error) {
	if prog := l.cache.get(path, data); prog != nil {
		return prog, nil
	}
	file, err := options().Parse(path, data, 0)
	if err != nil {
		return nil, err
	}
	rewrite(file)
	prog, err := starlark.FileProgram(file, l.names.Has)
	if err == nil {
		l.cache.keep(path, data, prog)
	}
	return prog, err
}

// loads loads the modules in a module's load statements.
func (l *loader) loads(prog *starlark.Program, by []string) (map[string]starlark.StringDict, error) {
	loaded := map[string]starlark.StringDict{}
	for i := range prog.NumLoads() {
		ref, pos := prog.Load(i)
		switch target, err := processor.Resolve(by[len(by)-1], ref); {
		case err != nil:
			return nil, at(diag.ScriptLoad, pos, "load: %v", strings.Replace(err.Error(), "the source roots", "the project", 1)).
				WithHint("name a file in the project by its path from this one")
		case slices.Contains(by, target):
			ring := append(slices.Clone(by[slices.Index(by, target):]), target)
			return nil, at(diag.ScriptLoad, pos, "modules load each other in a cycle: %s", strings.Join(ring, " -> ")).
				WithHint("put what both need into a third one")
		case len(l.sources) >= MaxModules:
			return nil, at(diag.ScriptLoad, pos, "the script loads more than %d modules", MaxModules)
		default:
			g, err := l.load(target, by)
			var m *diag.Message
			if errors.As(err, &m) && m.Code == diag.ScriptLoad && m.Pos.Line == 0 { // about the file itself: report the place that names it
				m.Pos = diag.Pos{File: pos.Filename(), Line: int(pos.Line), Column: int(pos.Col)}
				m.Length = len(ref) + 2
			}
			if err != nil {
				return nil, err
			}
			loaded[ref] = g
		}
	}
	return loaded, nil
}

// read reads a module's file, at most MaxSource bytes of it.
func (l *loader) read(path string) ([]byte, error) {
	here := diag.Pos{File: path}
	if !fs.ValidPath(path) {
		return nil, diag.Errorf(diag.ScriptLoad, here, "%q is not a path in the project", path).WithHint("write it relative to kiln.toml, with forward slashes")
	}
	info, err := l.root.Stat(path)
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil, diag.Errorf(diag.ScriptLoad, here, "the script %q cannot be read: %v", path, disk.ErrNotAFile).WithHint("put a file in its place")
	}
	f, err := l.root.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, diag.Errorf(diag.ScriptLoad, here, "the script %q does not exist", path).WithHint("put it there, or correct the path")
	}
	if err != nil {
		return nil, diag.Errorf(diag.ScriptLoad, here, "the script %q cannot be read: %v", path, plainPath(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxSource+1))
	if err != nil {
		return nil, diag.Errorf(diag.ScriptLoad, here, "the script %q cannot be read: %v", path, plainPath(err))
	}
	if len(data) > MaxSource {
		return nil, diag.Errorf(diag.ScriptLoad, here, "the script %q is larger than %d KiB", path, MaxSource>>10).
			WithHint("keep tables in JSON, and read them with job.json")
	}
	return data, nil
}

func plainPath(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// fingerprint hashes the interpreter's version and all modules by path.
func (l *loader) fingerprint(path string) digest.Hash {
	b := digest.Build("script").Str("runner", runner).Str("interpreter", Interpreter).Str("script", path)
	for _, p := range slices.Sorted(maps.Keys(l.sources)) {
		b.Str("path", p).Hash("source", digest.Of(l.sources[p]))
	}
	return b.Sum()
}

// messages turns errors of loading a script into messages.
func (l *loader) messages(err error) diag.List {
	var m *diag.Message
	var se syntax.Error
	var re resolve.ErrorList
	switch {
	case errors.As(err, &m):
		if m.Line == "" {
			m.WithSource(l.sources[m.File], max(1, m.Length))
		}
		return diag.List{m}
	case errors.As(err, &se):
		return diag.List{at(diag.ScriptSyntax, se.Pos, "%s", se.Msg).WithSource(l.sources[se.Pos.Filename()], 1)}
	case errors.As(err, &re):
		var list diag.List
		for _, e := range re[:min(len(re), 20)] {
			list = append(list, at(diag.ScriptSyntax, e.Pos, "%s", ownName(e.Msg)).WithSource(l.sources[e.Pos.Filename()], 1))
		}
		return list
	}
	msg := evalMessage(err, l.sources)
	limitOf(msg, l.guard, err)
	return diag.List{msg}
}

// ownName removes hints to names that rewrite adds.
func ownName(msg string) string {
	if i := strings.Index(msg, " (did you mean "+hidden); i >= 0 {
		return msg[:i]
	}
	return msg
}

// evalMessage is an error of a running script, with its place, its line and the calls that led there.
func evalMessage(err error, sources map[string][]byte) *diag.Message {
	m := diag.Errorf(diag.ScriptError, diag.Pos{}, "%s", ownWords(err.Error()))
	var ee *starlark.EvalError
	if !errors.As(err, &ee) {
		return m
	}
	calls := 0
	for i := range ee.CallStack {
		f := ee.CallStack.At(i)
		if f.Pos.Line == 0 { // a built-in
			continue
		}
		if calls++; calls == 1 {
			m.Pos = diag.Pos{File: f.Pos.Filename(), Line: int(f.Pos.Line), Column: int(f.Pos.Col)}
			m.WithSource(sources[m.File], 1)
		}
		if calls <= 10 {
			m.WithNote("in %s (%s)", f.Name, f.Pos)
		}
	}
	if calls > 10 {
		m.WithNote("and %d calls more", calls-10)
	}
	return m
}

// ownWords removes the names of rewrite's own calls from an error's text.
func ownWords(text string) string {
	for strings.HasPrefix(text, hidden) {
		_, rest, ok := strings.Cut(text, ": ")
		if !ok {
			break
		}
		text = rest
	}
	if len(text) > 2000 {
		text = text[:2000] + "..."
	}
	return strings.ToValidUTF8(text, "?")
}

var errNoJob = fmt.Errorf("a job is over, or has not begun: keep no functions of it")
