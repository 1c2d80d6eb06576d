package job

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
	"github.com/kiln-pipeline/kiln/processor"
)

// Job is a processor.Job in a build. All its access to the world is recorded by the engine.
type Job struct {
	w   *World
	t   *Task
	run *engine.Run

	mu       sync.Mutex
	given    *given      // replaces the source file; nil: there is no replacement
	open     []io.Closer // source files and products still open
	tools    map[string]*Tool
	writers  []*writer
	products []engine.Product
	warnings diag.Collector
	shown    map[string]string      // source paths by their displayed form
	quotes   map[string]*diag.Lines // source files of which messages quote lines, by path
	scratch  string
	ended    bool
	passing  error          // the first that may pass: what the processor made of it is worth nothing
	memory   int64          // peak, in bytes; 0: not measured
	asked    int64          // by NeedMemory
	started  int            // what was recorded before the processor was to start
	away     *engine.Remote // where it ran, if that was another machine

	askedPlatform atomic.Bool
}

func (j *Job) UsedMemory(bytes int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.ended {
		j.memory = max(j.memory, bytes)
	}
}

func (j *Job) NeedMemory(bytes int64) error {
	if err := j.run.NeedMemory(bytes); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.asked = max(j.asked, bytes)
	return nil
}

// muchMemory, in bytes: garbage is collected if a job asked for this much, and this much is in the heap when it ends.
const muchMemory = 64 << 20

// freed collects the garbage of a job with large pictures and returns it to the system, before its memory is given to another job. The
// collector alone would wait until the heap has doubled, and would leave fragments too small for the next large picture.
func (j *Job) freed() {
	j.mu.Lock()
	asked := j.asked
	j.mu.Unlock()
	if asked < muchMemory {
		return
	}
	there := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}} // includes garbage
	if metrics.Read(there); there[0].Value.Uint64() >= muchMemory {
		debug.FreeOSMemory()
	}
}

// ErrOver is the error of calls that a goroutine of a processor makes after the processor has returned.
var ErrOver = fmt.Errorf("the job is over: its processor has returned: %w", fs.ErrClosed)

// over returns ErrOver if the job is over.
func (j *Job) over() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ended {
		return ErrOver
	}
	return nil
}

// may reports whether a processor may ask for this, or use this name: the job must not be over, and the name
// must not contain a zero byte, which separates parts of names in Kiln's records.
func (j *Job) may(names ...string) error {
	if err := j.over(); err != nil {
		return err
	}
	for _, name := range names {
		if strings.Contains(name, "\x00") {
			return diag.Errorf(diag.NameRefused, diag.Pos{File: j.display(j.t.Asset.Path)}, "the name %q has a zero byte in it", name).
				WithHint("this is a mistake in the processor %q; report it to its authors, with this asset", j.t.Proc.Info.Name)
		}
	}
	return nil
}

// mayPass marks an error whose cause is not in what the job observed. The job then fails with it, even if the processor
// ignores it, and is tried again.
func (j *Job) mayPass(err error) error {
	if err == nil {
		return nil
	}
	err = AsPassing(err)
	j.mu.Lock()
	if j.passing == nil {
		j.passing = err
	}
	j.mu.Unlock()
	return err
}

func (j *Job) Asset() processor.Asset {
	a := j.t.Asset
	if j.t.Request() {
		return processor.Asset{UUID: a.UUID, Path: j.path(), Made: j.given != nil}
	}
	return processor.Asset{ID: a.ID, UUID: a.UUID, Path: j.path(), Folder: a.Folder, Made: j.given != nil}
}

func (j *Job) Platform() string {
	j.askedPlatform.Store(true)
	return j.t.Platform
}

func (j *Job) Settings() any { return j.t.On.Settings }

func (j *Job) Exists(path string) (bool, error) {
	path = j.sourceOf(path)
	if j.given != nil && path == j.given.path {
		return path != "", j.over()
	}
	if err := j.allowed(path); err != nil {
		return false, err
	}
	h, err := j.w.Observe(SawExists, path)
	j.run.See(SawExists, path, h)
	return !h.IsZero(), err
}

func (j *Job) Glob(pattern string) ([]string, error) {
	if err := j.may(pattern); err != nil {
		return nil, err
	}
	found, h, err := j.w.glob(pattern)
	if err == nil {
		j.run.See(SawGlob, pattern, h)
	}
	return found, err
}

func (j *Job) Tool(name string) (string, error) {
	path, _, err := j.ToolContent(name)
	return path, err
}

// ToolContent is Tool with the hash of what is there.
func (j *Job) ToolContent(name string) (string, digest.Hash, error) {
	if err := j.may(name); err != nil {
		return "", digest.Hash{}, err
	}
	name = j.w.inProject(name)
	t := j.w.tool(name)
	j.run.See(SawTool, name, t.Hash)
	j.mu.Lock()
	if !j.ended {
		if j.tools == nil {
			j.tools = map[string]*Tool{}
		}
		j.tools[name] = t
	}
	j.mu.Unlock()
	switch {
	case t.Path == "" && !t.Hash.IsZero():
		return "", t.Hash, fmt.Errorf("tool %q: %w: %w", name, fs.ErrNotExist, fs.ErrPermission) // there is none, but a file at its path
	case t.Path == "":
		return "", t.Hash, fmt.Errorf("tool %q: %w", name, fs.ErrNotExist)
	}
	return t.Path, t.Hash, nil
}

func (j *Job) Env(name string) (string, bool) {
	if j.may(name) != nil {
		return "", false // no file has such a name
	}
	value, ok := os.LookupEnv(name)
	j.run.See(SawEnv, name, j.w.env(name, valueHash(value, ok)))
	return value, ok
}

// writer is a product being written.
type writer struct {
	j    *Job
	out  processor.Output
	file string
	ext  string // of a product without a file
	refs []engine.Reference

	facts string // in the form of encodeFacts

	mu   sync.Mutex
	blob *cas.Writer // nil: closed
}

func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.blob == nil {
		return 0, fs.ErrClosed
	}
	n, err := w.blob.Write(p)
	return n, w.j.mayPass(err)
}

func (w *writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	blob := w.blob
	w.blob = nil
	if blob == nil {
		return fs.ErrClosed
	}
	h, n, err := blob.Commit()
	if err != nil {
		return w.j.mayPass(err)
	}
	return w.made(h, n)
}

// abort discards what was written, unless it is a product already.
func (w *writer) abort() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.blob != nil {
		w.blob.Abort()
		w.blob = nil
	}
}

// made adds the product to the job once its blob is stored.
func (w *writer) made(h digest.Hash, size int64) error {
	w.j.mu.Lock()
	defer w.j.mu.Unlock()
	if w.j.ended {
		return ErrOver
	}
	w.j.products = append(w.j.products, engine.Product{
		SubID: processor.SubID(w.out.Name), Name: w.out.Name, Type: w.out.Type, File: w.file, Extension: w.ext,
		Hash: h, Size: size, References: w.refs, Facts: w.facts,
	})
	return nil
}

// TakeIn makes a product of a file that a program wrote, by moving the file. It returns errors.ErrUnsupported if the
// file has to be copied with Create. It is not part of processor.Job; package command uses it through an interface.
func (j *Job) TakeIn(out processor.Output, dir *os.File, name string) error {
	w, err := j.writer(out)
	if err != nil {
		return err
	}
	h, n, err := j.w.Blobs.Adopt(dir, name)
	if errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if err != nil {
		return j.mayPass(err)
	}
	return w.made(h, n)
}

func (j *Job) Create(out processor.Output) (io.WriteCloser, error) {
	w, err := j.writer(out)
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ended {
		return nil, ErrOver
	}
	w.blob = j.w.Blobs.Create()
	j.writers = append(j.writers, w)
	return w, nil
}

// writer returns a writer without a blob.
func (j *Job) writer(out processor.Output) (*writer, error) {
	if err := j.may(out.Name, out.Type, out.Extension); err != nil {
		return nil, err
	}
	if bad := badOutput(out); bad != "" {
		return nil, fmt.Errorf("product %q of %s: %s", out.Name, j.t.Asset.ID, bad)
	}
	refs := make([]engine.Reference, len(out.References))
	for i, r := range out.References {
		id, err := uuid.Parse(r.UUID)
		if err != nil {
			return nil, fmt.Errorf("product %q of %s: reference %d: %w", out.Name, j.t.Asset.ID, i, err)
		}
		refs[i] = engine.Reference{UUID: id, SubID: r.SubID, Required: r.Required}
	}
	facts, err := encodeFacts(out.Facts)
	if err != nil {
		return nil, fmt.Errorf("product %q of %s: %w", out.Name, j.t.Asset.ID, err)
	}
	file := j.t.Platform + "/" + strings.TrimSuffix(j.t.Asset.ID, "/")
	if out.Name != "" {
		file += "." + out.Name
	}
	file += out.Extension
	w := &writer{j: j, out: out, file: file, refs: refs, facts: facts}
	switch {
	case out.Hidden:
		w.file = ""
	case j.t.Request():
		w.file, w.ext = "", cmp.Or(out.Extension, path.Ext(j.path()), noExtension)
	}
	return w, nil
}

// badOutput returns what is wrong with an output's name or extension, or "".
func badOutput(out processor.Output) string {
	switch {
	case !out.Hidden && strings.ContainsAny(out.Name, "/\\\x00:*?\"<>|"), strings.ContainsAny(out.Extension, "/\\\x00:*?\"<>|"):
		return "its name has a character that file names cannot have"
	case out.Extension != "" && out.Extension[0] != '.':
		return "its extension does not begin with a dot"
	case out.Type == "":
		return "it has no type"
	}
	return ""
}

func (j *Job) Write(out processor.Output, data []byte) error {
	w, err := j.Create(out)
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return err
	}
	return w.Close()
}

// Drafting is implemented by a Reporter that wants drafts of products.
type Drafting interface {
	// Drafted reports a draft. Its bytes are a blob that may be garbage collected.
	Drafted(platform, asset, uuid string, p engine.Product)
}

// Drafts reports whether drafts are requested. They never are for the products of a request, which belongs to no asset.
func (j *Job) Drafts() bool {
	_, ok := j.w.Reporter.(Drafting)
	return ok && !j.t.Request()
}

// Draft passes a draft of a product on. Drafts of hidden products are discarded.
func (j *Job) Draft(out processor.Output, data []byte) error {
	to, ok := j.w.Reporter.(Drafting)
	w, err := j.writer(out)
	if err != nil || !ok || out.Hidden || j.t.Request() {
		return err
	}
	hash, err := j.w.Blobs.Add(data)
	if err == nil {
		to.Drafted(j.t.Platform, j.t.Asset.ID, j.t.Asset.UUID, engine.Product{SubID: processor.SubID(out.Name), Name: out.Name, Type: out.Type, File: w.file,
			Hash: hash, Size: int64(len(data)), References: w.refs})
	}
	return err
}

func (j *Job) Warn(p processor.Problem) {
	m := j.problem(&p)
	m.Severity = diag.Warning
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.ended {
		j.warnings.Add(m)
	}
}

func (j *Job) Scratch() (string, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ended {
		return "", ErrOver
	}
	if j.scratch == "" {
		dir := filepath.Join(j.w.Scratch, fmt.Sprintf("%s-%d", j.w.stamp, j.w.scratches.Add(1)))
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return "", AsPassing(err)
		}
		j.scratch = dir
	}
	return j.scratch, nil
}

// Kept is the folder in which to keep the folder of a program that fails, or "". It is not part of processor.Job;
// package command uses it through an interface.
func (j *Job) Kept() string {
	if j.w.Kept == "" {
		return ""
	}
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>|`, r) || r < ' ' {
			return '_'
		}
		return r
	}, j.t.Asset.ID+" "+j.t.Platform)
	return filepath.Join(j.w.Kept, name)
}

// Shelf is a folder in which a processor can leave something for later jobs of this build. It may not exist yet. It is
// not part of processor.Job; package command uses it through an interface.
func (j *Job) Shelf() string { return filepath.Join(j.w.Scratch, j.w.stamp+"-shelf") }

// Roots are the source roots of the scan that answers the job, and Where returns the root of a source file. They are
// not part of processor.Job; package command uses them through an interface. A job that calls Roots runs again when the
// list changes: what a program finds if several roots have a file, or only a later one, depends on it.
func (j *Job) Roots() []string {
	j.run.See(SawRoots, "roots", j.w.rootsHash())
	return j.w.Table.Roots
}

func (j *Job) Where(path string) string {
	_, root, ok := j.w.Table.Find(path)
	if !ok {
		return ""
	}
	return j.w.Table.Abs(root, path)
}

// close closes all that the processor left open: files count as read, unfinished products are discarded. After that the
// job answers no calls, whatever a processor left running. It fails if a program that the job used has changed.
func (j *Job) close() error {
	j.mu.Lock()
	open, writers, scratch, tools := j.open, j.writers, j.scratch, j.tools
	j.ended = true
	j.mu.Unlock()
	for _, w := range writers {
		w.abort()
	}
	var err error
	for _, f := range open {
		err = errors.Join(err, f.Close())
	}
	for name, t := range tools {
		if !j.w.sameTool(name, t) {
			j.run.Tear(SawTool, name)
		}
	}
	if j.run != nil { // a stand-in has no run
		j.run.End()
	}
	if scratch != "" {
		os.RemoveAll(scratch)
	}
	return err
}

// result returns the products, the main one first, the others by name.
func (j *Job) result() ([]engine.Product, error) {
	j.mu.Lock()
	ps := j.products
	j.mu.Unlock()
	slices.SortFunc(ps, func(a, b engine.Product) int { return strings.Compare(a.Name, b.Name) })
	for i := range ps {
		for k := range i {
			if ps[k].SubID != ps[i].SubID && (ps[k].File != ps[i].File || ps[i].File == "") {
				continue
			}
			m := diag.Errorf(diag.ProductClash, diag.Pos{File: j.display(j.t.Asset.Path)}, "processor %q wrote product %q twice", j.t.Proc.Info.Name, ps[i].Name)
			if ps[k].Name != ps[i].Name {
				m = diag.Errorf(diag.ProductClash, diag.Pos{File: j.display(j.t.Asset.Path)}, "products %q and %q have the same sub id or file", ps[k].Name, ps[i].Name)
			}
			return nil, m.WithHint("each product of an asset needs a name of its own")
		}
	}
	return ps, nil
}
