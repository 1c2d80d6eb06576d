package build

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/extend/command"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
	"github.com/kiln-pipeline/kiln/internal/store/state"
	"github.com/kiln-pipeline/kiln/processor"
)

// What a job may look at, besides other assets' products. The numbers are in the trace log.
const (
	sawFile    = engine.FirstLeaf + iota // content; no value if it is missing
	sawExists                            // whether a file is there
	sawGlob                              // the names that match
	sawAsset                             // whether an asset exists, and its UUID
	sawTool                              // content of an external program
	sawEnv                               // value of an environment variable
	sawPackers                           // which assets ask to have images packed
	sawRoots                             // the list of source roots
)

// task is one job: an asset, a platform, a processor with settings; or a part of it.
type task struct {
	engine.Task
	asset    *asset.Asset
	on       *asset.Resolved
	platform string
	part     string // "" for the job itself
	settings any
	proc     *installed
}

// world answers the engine's questions out of one scan of the source files, and runs jobs.
type world struct {
	table     *source.Table
	prefixes  []string      // by root: what stands before a path when people see it
	assets    *asset.Table  // all, or nil if only single ones are looked for, with finder
	finder    *asset.Finder // else nil
	procs     map[string]*installed
	blobs     *cas.Store
	dir       string   // of the project
	outputDir string   // absolute
	hidden    []string // folders of Kiln's own, absolute: no list of names has them
	scratch   string   // folder for the jobs' scratch folders
	mark      string   // is there as long as nobody removes Kiln's state while jobs run; "": jobs do not run
	stamp     string   // what these begin with, something else each build: a program that outlived a kiln which was killed may still write into its own
	tasks     map[taskID]*task
	byKey     map[engine.Key]*task
	all       []*task         // by asset, then platform; parts are not among them
	packs     map[string]bool // by platform: whether products go into parcels
	reporter  Reporter
	done      func(*engine.Result) // told of runs that came to an end, once their products are in place; may be nil

	paths func() []string     // all visible source paths, sorted
	names func() *asset.Table // all assets, whatever it costs

	mu      sync.Mutex // all below
	globs   map[string]digest.Hash
	tools   map[string]*tool
	vars    map[string]digest.Hash
	outputs map[string]state.Output    // files in the output tree that are as they should be; see output
	before  *state.Outputs             // where to look for those that are not in outputs; may be nil
	edited  map[string]source.Presence // those that are not, or no more
	changed string                     // what changed between two looks at it in this build, for people; the first by name
	spoilt  map[digest.Hash]bool       // contents of which the blobs were damaged
	lost    bool                       // contents of a product that a job needs are lost, or damaged
	untidy  bool                       // an output could not be put in place: what was to become it may lie beside

	scratches atomic.Int64
}

type taskID struct {
	asset *asset.Asset
	on    *asset.Resolved
	part  string
}

// subject names a job, or a part of one. String is how the engine hands it around, and how it stands in traces.
type subject struct {
	platform  string
	asset     string // by id or path
	part      string // "" for the job itself
	processor string // of a part, always, whose trace may outlive its job's place; of a job unless it is the asset's first on the platform
}

func (s subject) String() string {
	text := s.platform + "\x00" + s.asset
	if s.part != "" || s.processor != "" {
		text += "\x00" + s.part
	}
	if s.processor != "" {
		text += "\x00" + s.processor
	}
	return text
}

func parseSubject(text string) (s subject) {
	s.platform, text, _ = strings.Cut(text, "\x00")
	s.asset, text, _ = strings.Cut(text, "\x00")
	s.part, s.processor, _ = strings.Cut(text, "\x00")
	return s
}

// find finds the asset that a name means, as asset.Table's Find.
func (w *world) find(name string) *asset.Asset {
	if w.finder == nil {
		return w.assets.Find(name)
	}
	a := w.finder.Find(name)
	if uuid, ok := processor.UUIDOf(name); ok && a == nil {
		if a = w.names().ByUUID(uuid); a != nil {
			a = w.finder.Find(a.ID)
		}
	}
	return a
}

// Resolve finds the task for a subject. The engine calls it for one subject at a time.
func (w *world) Resolve(s string) *engine.Task {
	if t := w.taskFor(s); t != nil {
		return &t.Task
	}
	return nil
}

func (w *world) taskFor(text string) *task {
	s := parseSubject(text)
	a := w.find(s.asset)
	if a == nil {
		return nil
	}
	all := a.On(s.platform)
	for i := range all {
		if s.processor == "" || s.processor == all[i].Processor {
			return w.task(a, &all[i], s.part)
		}
	}
	return nil
}

// task is an asset's job, or a part of it; nil if its processor makes no parts.
func (w *world) task(a *asset.Asset, on *asset.Resolved, part string) *task {
	id := taskID{a, on, part}
	if t := w.tasks[id]; t != nil {
		return t
	}
	pr := w.procs[on.Processor]
	if _, parts := pr.Processor.(processor.Parter); part != "" && !parts {
		return nil
	}
	t := &task{asset: a, on: on, platform: on.Platform, part: part, settings: on.Settings, proc: pr}
	t.Key = engine.Key(t.preimage().Sum())
	t.Name = taskName(JobName(a.ID, t.among(), part), on.Platform)
	t.Fingerprint = pr.fingerprint
	t.Outside = command.Runs(pr.Processor)
	if t.Memory = pr.info.Memory; t.Memory == 0 {
		t.Memory = defaultJobMemory
	}
	t.Run = func(r *engine.Run) (engine.Output, error) { return w.run(t, r) }
	t.World = t
	w.tasks[id], w.byKey[t.Key] = t, t
	return t
}

// subject is what a task is asked for by.
func (t *task) subject() string { return t.subjectOf(t.part) }

// subjectOf is what a part of the same job is asked for by.
func (t *task) subjectOf(part string) string {
	s := subject{t.platform, t.asset.ID, part, t.on.Processor}
	if part == "" && t.on == &t.asset.On(t.platform)[0] {
		s.processor = ""
	}
	return s.String()
}

// among is the processor's name if the asset has several on the platform, else "".
func (t *task) among() string {
	if len(t.asset.On(t.platform)) > 1 {
		return t.on.Processor
	}
	return ""
}

// ofSameJob tells whether a subject is a part of the job that a task is of.
func (t *task) ofSameJob(s subject) bool {
	return s.part != "" && s.asset == t.asset.ID && (s.processor == t.on.Processor || s.processor == "")
}

var present = digest.Build("present").Sum()

// Observe tells how a leaf is now.
func (w *world) Observe(kind engine.Kind, subject string) (digest.Hash, error) {
	switch kind {
	case sawFile:
		i, _, ok := w.table.Find(subject)
		if !ok {
			return digest.Hash{}, nil
		}
		return w.table.Hash(i)
	case sawExists:
		if _, _, ok := w.table.Find(subject); !ok {
			return digest.Hash{}, nil
		}
		return present, nil
	case sawGlob:
		w.mu.Lock()
		h, ok := w.globs[subject]
		w.mu.Unlock()
		if ok {
			return h, nil
		}
		_, h, err := w.glob(subject)
		return h, err
	case sawAsset:
		if assetName(subject) != subject {
			return present, nil // of a kiln that recorded names as they were written: the job has to run once more
		}
		return w.assetHash(subject), nil
	case sawTool:
		t := w.tool(subject)
		return t.hash, nil
	case sawEnv:
		return w.env(subject, envHash(subject)), nil
	case sawPackers:
		_, h := w.packers(subject)
		return h, nil
	case sawRoots:
		return w.rootsHash(), nil
	}
	return digest.Hash{}, fmt.Errorf("unknown kind of observation %d", kind)
}

// rootsHash is that of the list of source roots, as kiln.toml has it.
func (w *world) rootsHash() digest.Hash {
	b := digest.Build("roots")
	for _, prefix := range w.prefixes {
		b.Str("root", prefix)
	}
	return b.Sum()
}

// packers are the parts of jobs on a platform that ask to have images packed, and the hash of the list.
func (w *world) packers(platform string) ([]subject, digest.Hash) {
	var parts []subject
	b := digest.Build("packers")
	if w.anyPacks() {
		all := w.names()
		for i := range all.Assets {
			a := &all.Assets[i]
			for _, on := range a.On(platform) {
				if w.procs[on.Processor].info.Packs {
					parts = append(parts, subject{platform, a.ID, processor.PackPart, on.Processor})
					b.Str("asset", a.ID).Str("processor", on.Processor)
				}
			}
		}
	}
	return parts, b.Sum()
}

// anyPacks tells whether the project has a processor that packs. Nearly none has.
func (w *world) anyPacks() bool {
	for _, p := range w.procs {
		if p.info.Packs {
			return true
		}
	}
	return false
}

// assetHash is that of what is told of an asset of this name: its UUID, and what else the name does not say, which is little of most assets. It is zero if there is
// no such asset.
func (w *world) assetHash(name string) digest.Hash {
	a := w.find(name)
	if a == nil {
		return digest.Hash{}
	}
	named := name == a.ID && !a.Renamed() // and not by another name, or one that is not its path
	several := slices.ContainsFunc(a.Resolved, func(r asset.Resolved) bool { return len(a.On(r.Platform)) > 1 })
	if named && !several {
		return digest.Of([]byte(a.UUID))
	}
	b := digest.Build("asset").Str("uuid", a.UUID).Str("id", a.ID).Str("path", a.Path)
	for i := range a.Resolved {
		if r := &a.Resolved[i]; several {
			b.Str("platform", r.Platform).Str("processor", r.Processor)
		}
	}
	return b.Sum()
}

// glob lists the files that match, and hashes the list.
func (w *world) glob(pattern string) ([]string, digest.Hash, error) {
	if !doublestar.ValidatePattern(pattern) {
		return nil, digest.Hash{}, fmt.Errorf("glob %q is not well formed", pattern)
	}
	all := w.paths()
	base, _ := doublestar.SplitPattern(pattern)
	if base != "." {
		from := sort.SearchStrings(all, base+"/")
		to := from + sort.Search(len(all)-from, func(i int) bool { return !strings.HasPrefix(all[from+i], base+"/") })
		all = all[from:to]
	}
	var found []string
	b := digest.Build("glob")
	for _, p := range all {
		if doublestar.MatchUnvalidated(pattern, p) {
			found = append(found, p)
			b.Str("path", p)
		}
	}
	h := b.Sum()
	w.mu.Lock()
	w.globs[pattern] = h
	w.mu.Unlock()
	return found, h, nil
}

// tool is an external program as found by name.
type tool struct {
	path  string      // "" if there is none
	seen  source.Stat // as it was when it was looked at in this build
	stat  source.Stat // the same if it is sure to change with the content; else zero
	hash  digest.Hash
	found bool // in this build, not only in the one before
}

// tool finds a program and hashes it. Once a build, unless it changes meanwhile: then a job that comes later has seen another one.
func (w *world) tool(name string) *tool {
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.tools[name]
	if old != nil && old.found && old.same(w.dir, name) {
		return old
	}
	now := time.Now()
	path := findTool(w.dir, name)
	t := &tool{path: path, found: true}
	if path != "" {
		st, err := statTool(path)
		if t.seen = st; old != nil && !old.found && old.path == path && err == nil && old.stat == st {
			old.found, old.seen = true, st
			return old
		}
		if h, err := w.hashTool(path); err == nil {
			if t.hash = h; !st.TooYoung(now) { // else the next build looks into it again
				t.stat = st
			}
		} else {
			t.path = ""
		}
	}
	if old != nil && old.found && old.hash != t.hash {
		w.unsettled(name) // others may have seen the old one: the next build must look at all traces
	}
	w.tools[name] = t
	return t
}

// same tells whether a program is as it was when it was looked at in this build. That one turns up on PATH meanwhile is for the next build.
func (t *tool) same(dir, name string) bool {
	if t.path == "" {
		return !strings.Contains(name, "/") || findTool(dir, name) == ""
	}
	st, err := statTool(t.path)
	return err == nil && st == t.seen
}

// statTool is what tells that a program, or whatever else jobs name like one, is not what it was.
func statTool(path string) (source.Stat, error) {
	if file, _, ok := command.CachedLibrary(path); ok {
		path = file
	}
	st, _, err := source.StatPath(path)
	return st, err
}

// sameTool tells whether a program is what it was when it was found. If not, it is looked for anew, and so by the next build: what was run,
// and what was taken for good, may have seen either.
func (w *world) sameTool(name string, t *tool) bool {
	same := false
	if strings.HasSuffix(t.path, "/") { // its own times change with each name that comes and goes, also while nobody looks
		h, err := w.hashTool(t.path)
		same = err == nil && h == t.hash
	} else {
		same = t.same(w.dir, name) || w.relinked(t)
	}
	if !same {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.unsettled(name)
		if w.tools[name] == t {
			delete(w.tools, name)
		}
	}
	return same
}

// relinked tells whether no more than the change time of a program is another, as when somebody links a further name to it, and its
// content is not.
func (w *world) relinked(t *tool) bool {
	if t.path == "" {
		return false
	}
	st, err := statTool(t.path)
	if st.CTime = t.seen.CTime; err != nil || st != t.seen {
		return false
	}
	h, err := w.hashTool(t.path)
	return err == nil && h == t.hash
}

// hashTool is the hash of a program's content; that of a folder says no more than that it is one, unless the path ends in a slash: then it
// is of the names in it, and what they are names of, but for Kiln's own.
func (w *world) hashTool(path string) (digest.Hash, error) {
	if file, name, ok := command.CachedLibrary(path); ok {
		b := digest.Build("library")
		for _, p := range command.CachedPaths(file, name) {
			b.Str("path", p)
		}
		return b.Sum(), nil
	}
	st, err := os.Stat(path)
	if err != nil || !st.IsDir() {
		return source.HashFile(path)
	}
	b := digest.Build("folder")
	if !strings.HasSuffix(path, "/") {
		return b.Sum(), nil
	}
	entries, err := os.ReadDir(path)
	if real, rerr := filepath.EvalSymlinks(path); rerr == nil {
		path = real
	}
	for _, e := range entries {
		if !slices.Contains(w.hidden, filepath.Join(path, e.Name())) {
			b.Str("name", e.Name()).Str("type", e.Type().String())
		}
	}
	return b.Sum(), err
}

// InProject begins the name of what a program read in the project's folder, or in a source root elsewhere; the path from the project's folder follows.
const InProject = "{project}/"

// inProject names a file, or a folder with a slash at the end, that is given by its absolute path: by its path from the project's folder if it is in there
// or in a source root, so that a project can be copied, or moved, with what Kiln remembers.
func (w *world) inProject(name string) string {
	if !filepath.IsAbs(name) {
		return name
	}
	within := func(dir, is string) bool {
		rest, ok := strings.CutPrefix(filepath.ToSlash(name), strings.TrimSuffix(filepath.ToSlash(dir), "/")+"/")
		if ok {
			name = InProject + is + rest
		}
		return ok
	}
	for i, root := range w.table.Roots {
		if within(root, w.prefixes[i]) {
			return name
		}
	}
	if real, err := filepath.EvalSymlinks(w.dir); !within(w.dir, "") && err == nil {
		within(real, "")
	}
	return name
}

// findTool looks in PATH, or, where the name has a slash, in the project folder.
func findTool(dir, name string) string {
	if rest, ok := strings.CutPrefix(name, InProject); ok {
		name = dir + "/" + rest
	}
	if file, _, ok := command.CachedLibrary(name); ok {
		if _, err := os.Stat(file); err != nil {
			return ""
		}
		return name
	}
	if strings.ContainsAny(name, `/\`) {
		p := filepath.FromSlash(name)
		if !filepath.IsAbs(p) {
			p = filepath.Join(dir, p)
		}
		if p, err := exec.LookPath(p); err == nil {
			return p
		}
		if st, err := os.Stat(p); err == nil && filepath.IsAbs(name) && (st.IsDir() || !strings.HasSuffix(name, "/")) {
			return name // a traced program read it: a library, a font, the names in a folder, or asked whether there is one
		}
		return ""
	}
	p, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	if p, err = filepath.Abs(p); err != nil {
		return ""
	}
	return p
}

// unsettled notes that something changed between two looks at it. w.mu is held.
func (w *world) unsettled(what string) {
	if w.changed == "" || what < w.changed {
		w.changed = what
	}
}

// env notes a value.
func (w *world) env(name string, h digest.Hash) digest.Hash {
	w.mu.Lock()
	defer w.mu.Unlock()
	if was, ok := w.vars[name]; ok && was != h {
		w.unsettled(name)
	}
	w.vars[name] = h
	return h
}

// Available tells whether the products of a trace are in place, or can be put there. Of those that parcels are packed of the blobs have to
// be there, too: one that was lost is made anew of the output.
func (w *world) Available(t *engine.Trace) (string, bool) {
	for i := range t.Products {
		p := &t.Products[i]
		w.mu.Lock()
		out, ok := w.output(p.File)
		w.mu.Unlock()
		ok = ok && out.Hash == p.Hash
		platform, _, _ := strings.Cut(p.File, "/")
		if ok && !w.packs[platform] || w.blobs.Sound(p.Hash, p.Size) || ok && w.restore(p.Hash, p.File) {
			continue
		}
		return cmp.Or(p.File, p.Name), false
	}
	return "", true
}

// output is what is known of a file in the output tree that is as it should be. w.mu is held.
func (w *world) output(file string) (state.Output, bool) {
	out, ok := w.outputs[file]
	if ok || w.before == nil || file == "" || w.edited[file] != source.Same {
		return out, ok
	}
	out, ok, err := w.before.Find(file)
	return out, ok && err == nil
}

// forget says that an output is not as it should be. w.mu is held.
func (w *world) forget(file string) {
	delete(w.outputs, file)
	if w.before != nil {
		w.edited[file] = source.Missing
	}
}

// Planned, Started, Finished and Suspended pass on what people want to see.
func (w *world) Planned(tasks int) { w.reporter.Planned(tasks) }

func (w *world) Started(t *engine.Task) { w.reporter.JobStarted(t.Name) }

func (w *world) Suspended(t *engine.Task, on []*engine.Task, begins bool) {
	names := make([]string, len(on))
	for i := range on {
		names[i] = on[i].Name
	}
	w.reporter.JobSuspended(t.Name, names, begins)
}

// Finished puts the products of a run in place.
func (w *world) Finished(r *engine.Result) {
	if r.Trace != nil && r.Trace.Outcome == engine.Succeeded {
		for i := range r.Trace.Products {
			w.place(&r.Trace.Products[i]) // what fails is tried again, and told of, at the end
		}
	}
	if w.done != nil && r.Trace != nil {
		w.done(r)
	}
	failed := r.Trace != nil && r.Trace.Outcome != engine.Succeeded
	w.reporter.JobFinished(r.Task.Name, failed, time.Since(r.Started))
}

// place makes an output what its product says, if it is not.
func (w *world) place(p *engine.Product) error {
	if p.File == "" {
		return nil // hidden
	}
	w.mu.Lock()
	out, ok := w.output(p.File)
	w.mu.Unlock()
	if ok && out.Hash == p.Hash {
		return nil
	}
	abs := filepath.Join(w.outputDir, filepath.FromSlash(p.File))
	err := w.blobs.Materialise(p.Hash, abs)
	if cas.Lost(err) && w.restore(p.Hash, p.File) {
		err = w.blobs.Materialise(p.Hash, abs)
	}
	if err != nil {
		w.mu.Lock()
		w.untidy = true
		w.mu.Unlock()
		return err
	}
	st, _, err := source.StatPath(abs)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.outputs[p.File] = state.Output{File: p.File, Stat: st, Hash: p.Hash}
	w.mu.Unlock()
	return nil
}

// content is the bytes of a product of an asset: those of its blob, or, if that is lost, of the output. If both are, it is made again.
func (w *world) content(p engine.Product, of string) ([]byte, error) {
	data, err := w.blobs.Read(p.Hash)
	if err == nil {
		return data, nil
	}
	if w.restore(p.Hash, p.File) {
		return w.blobs.Read(p.Hash)
	}
	if p.File != "" {
		w.mu.Lock()
		w.forget(p.File)
		w.mu.Unlock()
	}
	w.mu.Lock()
	w.lost = true
	w.mu.Unlock()
	return nil, diag.Errorf(diag.BlobDamaged, diag.Pos{File: cmp.Or(p.File, w.display(of))}, "the product was lost or damaged since it was made").
		WithHint("build again: the job that makes it runs then")
}

// run is a task's work.
func (w *world) run(t *task, r *engine.Run) (out engine.Output, err error) {
	j := &job{w: w, t: t, run: r}
	defer j.freed()
	defer func() {
		j.problems(err) // before the run ends: it looked at what its messages quote
		if cerr := j.close(); err == nil {
			err = cerr
		}
		j.mu.Lock() // what a processor left running may still hold it
		passing, warnings, memory := j.passing, j.warnings, j.memory
		j.mu.Unlock()
		if o := r.Torn(); o != nil {
			err = asPassing(j.torn(o))
		} else if passing != nil && !errors.Is(err, engine.ErrPassing) {
			err = passing
		}
		if err == nil {
			out.Products, err = j.result()
			out.Memory = memory // of a run that failed it would say nothing: that may have ended early
		}
		if err != nil {
			out.Products = nil
			if w.mark != "" {
				if _, gone := os.Lstat(w.mark); gone != nil { // with the folder that it worked in: that says nothing of the job
					err = asPassing(err)
				}
			}
		}
		out.Messages = j.keep(append(slices.Clone(warnings), j.messages(err)...))
	}()
	err = errExit
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = w.process(t, j)
	}()
	<-done
	return out, err
}

// errExit is of a processor that ends its goroutine, as testing.T's FailNow does, in place of returning.
var errExit = errors.New("the processor ended its goroutine (runtime.Goexit)")

// process calls the processor. What it panics with is its error.
func (w *world) process(t *task, j *job) (err error) {
	defer func() {
		if v := recover(); v != nil {
			m := diag.Errorf(diag.ProcessorPanic, diag.Pos{File: j.display(t.asset.Path)}, "processor %q panicked: %v", t.proc.info.Name, v).
				WithHint("this is a mistake in the processor; tell its authors, with this asset")
			for _, f := range frames(debug.Stack()) {
				m.WithNote("%s", f)
			}
			err = m
		}
	}()
	if other := t.asset.Collides; other != "" {
		if path.Dir(other) == path.Dir(t.asset.Path) {
			other = path.Base(other)
		}
		return source.CaseCollision(j.display(t.asset.Path), other)
	}
	if i, _, ok := w.table.Find(t.asset.Path); ok && w.table.At(i).Trouble == source.LFSPointer {
		if _, err := j.ReadFile(t.asset.Path); err != nil {
			return err
		}
		return source.LFS(j.display(t.asset.Path))
	}
	if t.part != "" {
		err = t.proc.Processor.(processor.Parter).Part(j.run.Context(), j, t.part)
	} else {
		err = t.proc.Process(j.run.Context(), j)
	}
	if errors.Is(err, command.ErrMoment) {
		return asPassing(err)
	}
	return err
}

// frames picks the calls out of a stack that lead to the panic, innermost first, without addresses, which differ between runs.
func frames(stack []byte) []string {
	lines := strings.Split(string(stack), "\n")
	at := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "panic(") })
	var out []string
	for i := at + 2; at >= 0 && i+1 < len(lines) && len(out) < 6; i += 2 {
		place := strings.TrimSpace(lines[i+1])
		place, _, _ = strings.Cut(place, " +0x")
		call := lines[i]
		if i := strings.LastIndexByte(call, '('); i > 0 { // what follows are addresses, other ones each time
			call = call[:i]
		}
		if strings.Contains(call, "internal/make/build.(*world)") {
			break
		}
		out = append(out, fmt.Sprintf("in %s (%s)", path.Base(call), path.Base(filepath.ToSlash(place))))
	}
	return out
}

// asPassing marks an error of the disk, so that the job is tried again next time.
func asPassing(err error) error {
	if err == nil || errors.Is(err, engine.ErrPassing) {
		return err
	}
	return fmt.Errorf("%w (%w)", err, engine.ErrPassing)
}

// keeper keeps traces. A job of which the trace is too large to be kept has failed, and runs again in the next build.
type keeper struct {
	engine.Store
	w *world
}

func (k keeper) Add(key engine.Key, tr *engine.Trace) error {
	err := k.Store.Add(key, tr)
	if !errors.Is(err, state.ErrTooLarge) {
		return err
	}
	j := &job{w: k.w, t: k.w.byKey[key]}
	m := diag.Errorf(diag.TraceTooLarge, diag.Pos{File: j.display(j.t.asset.Path)}, "the job looked at more than can be kept: %d things, with %d products",
		len(tr.Observations), len(tr.Products)).
		WithHint("have it look at less, or say less: narrower globs, or several jobs")
	*tr = engine.Trace{
		Fingerprint: tr.Fingerprint, Outcome: engine.Failed, Messages: j.keep(diag.List{m}), Why: tr.Why, Seconds: tr.Seconds, Build: tr.Build,
	}
	return nil
}
