// Package job implements what a processor sees of the world: a Job, with which it reads source files and other assets'
// products and writes its own, and the World that answers, from one scan of the source files. All access is recorded,
// so that the engine knows on what a result depends.
//
// The engine asks a World for current values (Observe), for the task that a name means (Resolve), and to run it
// (Task.Run). A build makes a World, has the engine bring tasks up to date, and then reads their results from it.
package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/extend/command"
	"github.com/kiln-pipeline/kiln/internal/make/task"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
	"github.com/kiln-pipeline/kiln/internal/store/state"
	"github.com/kiln-pipeline/kiln/processor"
)

// What a job may observe, besides other assets' products. The numbers are in the trace log.
const (
	SawFile      = engine.FirstLeaf + iota // content of a source file; no value if it is missing
	SawExists                              // whether a source file exists
	SawGlob                                // the names that a glob matches
	SawAsset                               // whether an asset exists, and its UUID
	SawTool                                // content of an external program
	SawEnv                                 // value of an environment variable
	SawPackers                             // the assets that ask to have images packed
	SawRoots                               // the list of source roots
	SawNamed                               // settings that rules give to a request by its name; no value if there are none
	SawAssets                              // the assets that a pattern means on a platform
	SawSettings                            // settings that a processor of another asset has
	SawCatalogue                           // which assets a pattern means on a platform, and what their processors and settings are
	SawListed                              // the same, and their metadata
	SawID                                  // the number that kiln.ids has for a product of the job's asset; no value if it has none
)

// World answers the engine's questions from one scan of the source files, and runs jobs.
type World struct {
	Table      *source.Table
	prefixes   []string          // by root: prefix of displayed paths
	namedRoots map[string]string // see Setting.NamedRoots
	Assets     *asset.Table      // all assets, or nil if single ones are looked up with Finder
	Finder     *asset.Finder     // else nil
	procs      map[string]*Installed
	Blobs      *cas.Store
	dir        string       // the project folder
	Bounds     *disk.Bounds // of the output folder
	hidden     []string     // Kiln's own folders, absolute: listings leave them out
	Scratch    string       // folder for the jobs' scratch folders
	Kept       string       // folder for copies of the folders of commands that fail; "": they are not kept
	Mark       string       // a file that exists unless Kiln's state is deleted while jobs run; "": jobs do not run
	stamp      string       // prefix of scratch folders, different in each build: a program of a killed kiln may still write into its own
	jobs       map[ID]*Task
	parts      map[partID]*Task
	byKey      *digest.Index[Task]
	works      map[workOf]*engine.Work
	platforms  []string
	programs   *command.Programs
	settings   func(info processor.Info, platform, given, byHand string) (asset.Resolved, error)
	ids        func() IDs
	parcel     func(name string) *project.Parcel
	All        []*Task         // by asset, then platform; without parts
	Packs      map[string]bool // by platform: whether products go into parcels
	Reporter   Reporter
	Away       Away                 // nil: there are no other machines
	Done       func(*engine.Result) // called after a run, when its products are in place; may be nil

	Paths func() []string     // all visible source paths, sorted
	Names func() *asset.Table // all assets, at any cost

	mu        sync.Mutex // guards all fields below
	globs     map[string]digest.Hash
	meanings  map[string][]*asset.Asset // assets by pattern
	Tools     map[string]*Tool
	Vars      map[string]digest.Hash
	Outputs   map[string]state.Output    // correct files in the output tree; see output
	Before    *state.Outputs             // where to look up other outputs; may be nil
	Edited    map[string]source.Presence // outputs that are wrong, or no longer correct
	Changed   string                     // the first by name of what changed during this build, for display
	Spoilt    map[digest.Hash]bool       // contents whose blobs were damaged
	Lost      map[digest.Hash]bool       // contents of products that are needed, and lost or damaged; see Lose
	Leftovers bool                       // an output could not be put in place: a temporary file may be left beside it

	AskedIDs  atomic.Bool     // a job asked for a number, or had
	AskedHeld map[string]bool // what jobs asked for, or had, of Held
	Held      func() Held     // what parcels held at the end of the last build
	scratches atomic.Int64

	Named *asset.Named // settings that rules give to requests

	requestsMu sync.Mutex
	requests   map[string]*asset.Asset // assets that stand for requests, by id; nil: the request is not valid
}

// Setting configures a world.
type Setting struct {
	Sources    *source.Table
	Prefixes   []string          // by root: prefix of displayed paths
	NamedRoots map[string]string // by prefix: the folder of each named source root, absolute
	Processors map[string]*Installed
	Blobs      *cas.Store
	Dir        string          // the project folder
	Output     *disk.Bounds    // of the output folder, absolute
	Hidden     []string        // Kiln's own folders, absolute: listings leave them out
	Scratch    string          // folder for the jobs' scratch folders
	Packed     map[string]bool // by platform: whether products go into parcels
	Platforms  []string
	Programs   *command.Programs // runs programs for jobs

	// Settings resolves the settings of a request to a processor: those that the requester gives, as JSON, over those
	// of the platform, and its dependencies by hand, in the form of asset.ByHand.
	Settings func(info processor.Info, platform, given, byHand string) (asset.Resolved, error)

	IDs    func() IDs                        // reads kiln.ids, and returns the numbers of products
	Held   func() Held                       // reads what parcels held at the end of the last build
	Parcel func(name string) *project.Parcel // a parcel of kiln.toml, or nil
}

// NewWorld returns a world without tasks.
func NewWorld(s Setting) *World {
	w := &World{
		Table: s.Sources, prefixes: s.Prefixes, namedRoots: s.NamedRoots, Blobs: s.Blobs, dir: s.Dir, Bounds: s.Output, hidden: s.Hidden, procs: s.Processors,
		Scratch: s.Scratch, stamp: strconv.FormatInt(time.Now().UnixMicro(), 36), Reporter: Silent{},
		platforms: s.Platforms, programs: s.Programs, settings: s.Settings, ids: sync.OnceValue(s.IDs), parcel: s.Parcel,
		Held: sync.OnceValue(s.Held), AskedHeld: map[string]bool{}, requests: map[string]*asset.Asset{},
		jobs: map[ID]*Task{}, parts: map[partID]*Task{}, works: map[workOf]*engine.Work{},
		byKey: digest.NewIndex(func(t *Task) *digest.Hash { return (*digest.Hash)(&t.Key) }, 0),
		globs: map[string]digest.Hash{}, meanings: map[string][]*asset.Asset{}, Tools: map[string]*Tool{}, Vars: map[string]digest.Hash{},
		Outputs: map[string]state.Output{}, Edited: map[string]source.Presence{}, Packs: s.Packed, Spoilt: map[digest.Hash]bool{},
	}
	s.Blobs.OnDamage = w.damaged
	return w
}

var present = digest.Build("present").Sum()

// Observe returns the current hash of a leaf observation.
func (w *World) Observe(kind engine.Kind, subject string) (digest.Hash, error) {
	switch kind {
	case SawFile:
		i, _, ok := w.Table.Find(subject)
		if !ok {
			return digest.Hash{}, nil
		}
		return w.Table.Hash(i)
	case SawExists:
		if _, _, ok := w.Table.Find(subject); !ok {
			return digest.Hash{}, nil
		}
		return present, nil
	case SawGlob:
		w.mu.Lock()
		h, ok := w.globs[subject]
		w.mu.Unlock()
		if ok {
			return h, nil
		}
		_, h, err := w.glob(subject)
		return h, err
	case SawAsset:
		if assetName(subject) != subject {
			return present, nil // recorded by an older Kiln, which recorded names as they were written: the job runs once more
		}
		return w.assetHash(subject), nil
	case SawTool:
		t := w.tool(subject)
		return t.Hash, nil
	case SawEnv:
		return w.env(subject, EnvHash(subject)), nil
	case SawPackers:
		_, h := w.packers(subject)
		return h, nil
	case SawRoots:
		return w.rootsHash(), nil
	case SawSettings:
		_, _, h := w.assetSettings(task.ParseSubject(subject))
		return h, nil
	case SawNamed:
		_, h, _ := w.named(parseNamed(subject))
		return h, nil
	case SawAssets:
		_, h := w.meant(Meant(subject))
		return h, nil
	case SawCatalogue, SawListed:
		platform, pattern := Meant(subject)
		_, h := w.catalogue(kind, platform, pattern)
		return h, nil
	case SawID:
		return w.number(subject), nil
	}
	return digest.Hash{}, fmt.Errorf("unknown kind of observation %d", kind)
}

// rootsHash is the hash of the list of source roots in kiln.toml.
func (w *World) rootsHash() digest.Hash {
	b := digest.Build("roots")
	for _, prefix := range w.prefixes {
		b.Str("root", prefix)
	}
	return b.Sum()
}

// packers are the parts of jobs on a platform that ask to have images packed, with a hash of the list.
func (w *World) packers(platform string) ([]task.Subject, digest.Hash) {
	var parts []task.Subject
	b := digest.Build("packers")
	if w.AnyPacks() {
		all := w.Names()
		for i := range all.Assets {
			a := &all.Assets[i]
			for _, on := range a.On(platform) {
				if w.procs[on.Processor].Info.Packs {
					parts = append(parts, task.Subject{Platform: platform, Asset: a.ID, Part: processor.PackPart, Processor: on.Processor})
					b.Str("asset", a.ID).Str("processor", on.Processor)
				}
			}
		}
	}
	return parts, b.Sum()
}

// AnyPacks reports whether the project has a processor that packs. Few projects have one.
func (w *World) AnyPacks() bool {
	for _, p := range w.procs {
		if p.Info.Packs {
			return true
		}
	}
	return false
}

// assetHash is the hash of everything that jobs can ask about an asset of this name: its UUID, and what
// the name does not determine, which is little for most assets. It is zero if there is no such asset.
func (w *World) assetHash(name string) digest.Hash {
	a := w.Find(name)
	if a == nil {
		return digest.Hash{}
	}
	named := name == a.ID && !a.Renamed() // not by another name, or by an id that is not its path
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

// glob lists the files that match, with a hash of the list.
func (w *World) glob(pattern string) ([]string, digest.Hash, error) {
	glob, _ := project.SplitPattern(pattern)
	if !doublestar.ValidatePattern(glob) {
		return nil, digest.Hash{}, fmt.Errorf("glob %q is not well formed", pattern)
	}
	all := w.Paths()
	begin := glob // which all matches have
	if i := strings.IndexAny(glob, `*?[{\`); i >= 0 {
		begin = glob[:i]
	}
	from := sort.SearchStrings(all, begin)
	all = all[from : from+sort.Search(len(all)-from, func(i int) bool { return !strings.HasPrefix(all[from+i], begin) })]
	var found []string
	b := digest.Build("glob")
	for _, p := range all {
		if asset.MatchesFile(pattern, p) {
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

// unsettled records that something changed during the build. w.mu is held.
func (w *World) unsettled(what string) {
	if w.Changed == "" || what < w.Changed {
		w.Changed = what
	}
}

// env remembers a value.
func (w *World) env(name string, h digest.Hash) digest.Hash {
	w.mu.Lock()
	defer w.mu.Unlock()
	if was, ok := w.Vars[name]; ok && was != h {
		w.unsettled(name)
	}
	w.Vars[name] = h
	return h
}

// Available reports whether the products of a trace are in place, or can be put there. Products that go into
// parcels also need their blobs; a lost blob is made again from the output.
func (w *World) Available(t *engine.Trace) (string, bool) {
	var wanted []*engine.Product
	var placed []bool
	var hashes []digest.Hash
	for i := range t.Products {
		p := &t.Products[i]
		w.mu.Lock()
		out, ok := w.Output(p.File)
		w.mu.Unlock()
		ok = ok && out.Hash == p.Hash
		if platform, _, _ := strings.Cut(p.File, "/"); !ok || w.Packs[platform] {
			wanted, placed, hashes = append(wanted, p), append(placed, ok), append(hashes, p.Hash)
		}
	}
	has, err := w.Blobs.Has(context.Background(), hashes) // blobs on this machine
	for i, p := range wanted {
		if (err != nil || !has[i]) && !(placed[i] && w.restore(p.Hash, p.File)) {
			return cmp.Or(p.File, p.Name), false
		}
	}
	return "", true
}

// Output returns a correct file in the output tree. w.mu is held.
func (w *World) Output(file string) (state.Output, bool) {
	out, ok := w.Outputs[file]
	if ok || w.Before == nil || file == "" || w.Edited[file] != source.Same {
		return out, ok
	}
	out, ok, err := w.Before.Find(file)
	return out, ok && err == nil
}

// Forget marks an output as wrong. w.mu is held.
func (w *World) Forget(file string) {
	delete(w.Outputs, file)
	if w.Before != nil {
		w.Edited[file] = source.Missing
	}
}

// Planned, Started, Finished and Suspended pass on progress to the Reporter.
func (w *World) Planned(tasks int) { w.Reporter.Planned(tasks) }

func (w *World) Started(t *engine.Task) { w.Reporter.JobStarted(t.Name) }

func (w *World) Suspended(t *engine.Task, on []*engine.Task, begins bool) {
	names := make([]string, len(on))
	for i := range on {
		names[i] = on[i].Name
	}
	w.Reporter.JobSuspended(t.Name, names, begins)
}

// Finished puts the products of a run in place.
func (w *World) Finished(r *engine.Result) {
	if r.Trace != nil && r.Trace.Outcome == engine.Succeeded {
		for i := range r.Trace.Products {
			w.Place(&r.Trace.Products[i]) // a failure is tried again, and reported, at the end
		}
	}
	if w.Done != nil && r.Trace != nil {
		w.Done(r)
	}
	if w.Away != nil {
		w.Away.Ended(r)
	}
	failed := r.Trace != nil && r.Trace.Outcome != engine.Succeeded
	took := time.Duration(0)
	if r.State == engine.Ran {
		took = time.Since(r.Started)
	}
	w.Reporter.JobFinished(r.Task.Name, failed, took)
}

// Place puts a product's content into its output file, unless it is there already.
func (w *World) Place(p *engine.Product) error {
	if p.File == "" {
		return nil // hidden
	}
	w.mu.Lock()
	out, ok := w.Output(p.File)
	w.mu.Unlock()
	if ok && out.Hash == p.Hash {
		return nil
	}
	abs := filepath.Join(w.Bounds.Root(), filepath.FromSlash(p.File))
	err := w.Blobs.Materialise(p.Hash, w.Bounds, abs)
	if cas.Lost(err) && w.restore(p.Hash, p.File) {
		err = w.Blobs.Materialise(p.Hash, w.Bounds, abs)
	}
	if err != nil {
		w.mu.Lock()
		w.Leftovers = true
		w.mu.Unlock()
		return err
	}
	st, _, err := source.StatPath(abs)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.Outputs[p.File] = state.Output{File: p.File, Stat: st, Hash: p.Hash}
	w.mu.Unlock()
	return nil
}

// content calls read for the blob of an asset's product. If the blob is lost or damaged, it is made from the output; if
// the output is too, the product is made again.
func (w *World) content(p *engine.Product, of string, read func() error) error {
	err := read()
	if err == nil {
		return nil
	}
	if w.restore(p.Hash, p.File) {
		return read()
	}
	if p.File != "" {
		w.mu.Lock()
		w.Forget(p.File)
		w.mu.Unlock()
	}
	w.Lose(p.Hash)
	return lostProduct(cmp.Or(p.File, w.Display(of)))
}

// lostProduct is the message for a product that cannot be read, named by its file or its asset's.
func lostProduct(file string) *diag.Message {
	return diag.Errorf(diag.BlobDamaged, diag.Pos{File: file}, "the product was lost or damaged since it was made").
		WithHint("build again: the job that makes it runs then")
}

// run is a task's work.
func (w *World) run(r *engine.Run) (out engine.Output, err error) {
	t := r.Task().World.(*Task)
	j := &Job{w: w, t: t, run: r}
	defer j.freed()
	defer func() {
		j.quote(j.said(err)) // before the run ends, because it reads files, which is an observation
		if cerr := j.close(); err == nil {
			err = cerr
		}
		j.mu.Lock() // what a processor left running may still hold it
		passing, memory, away := j.passing, j.memory, j.away
		j.mu.Unlock()
		if o := r.Torn(); o != nil {
			err = AsPassing(j.torn(o))
		} else if passing != nil && !errors.Is(err, engine.ErrPassing) && !errors.Is(err, engine.ErrHere) {
			err = passing
		}
		if err == nil {
			out.Products, err = j.result()
			out.Shareable = !j.askedPlatform.Load()
			out.Remote = away
			out.Memory = memory // of a run that failed it would say nothing: that may have ended early
		}
		if err != nil {
			out.Products = nil
			if w.Mark != "" {
				if _, gone := os.Lstat(w.Mark); gone != nil { // its folder was deleted too, so the failure says nothing about the job
					err = AsPassing(err)
				}
			}
		}
		said := j.said(err)
		j.quote(said)
		out.Messages = j.keep(said)
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

// errExit is the error of a processor that ends its goroutine instead of returning, as testing.T's FailNow does.
var errExit = errors.New("the processor ended its goroutine (runtime.Goexit)")

// process calls the processor, and turns a panic into an error.
func (w *World) process(t *Task, j *Job) (err error) {
	defer func() {
		if v := recover(); v != nil {
			m := diag.Errorf(diag.ProcessorPanic, diag.Pos{File: j.display(t.Asset.Path)}, "processor %q panicked: %v", t.Proc.Info.Name, v).
				WithHint("this is a mistake in the processor; report it to its authors, with this asset")
			for _, f := range frames(debug.Stack()) {
				m.WithNote("%s", f)
			}
			err = m
		}
	}()
	if other := t.Asset.Collides; other != "" {
		if path.Dir(other) == path.Dir(t.Asset.Path) {
			other = path.Base(other)
		}
		return source.CaseCollision(j.display(t.Asset.Path), other)
	}
	if t.Asset.Declared && t.Asset.Path != "" {
		if there, err := j.Exists(t.Asset.Path); !there {
			return cmp.Or(err, j.noSource())
		}
	}
	if i, _, ok := w.Table.Find(t.Asset.Path); ok && w.Table.At(i).Trouble == source.LFSPointer {
		if _, err := j.ReadFile(t.Asset.Path); err != nil {
			return err
		}
		return source.LFS(j.display(t.Asset.Path))
	}
	if err := j.begin(); err != nil {
		return err
	}
	if w.Away != nil && !j.run.Away() {
		j.Moved(nil) // it may have come back
	}
	if j.run.Away() {
		j.started = j.run.Recorded()
		err = w.Away.Process(j.run.Context(), j, t)
	} else if t.Part != "" {
		err = t.Proc.Processor.(processor.Parter).Part(j.run.Context(), j, t.Part)
	} else {
		err = t.Proc.Process(j.run.Context(), j)
	}
	if errors.Is(err, diag.ErrMoment) || disk.Passing(err) { // for example a file in its scratch folder
		return AsPassing(err)
	}
	return err
}

// frames returns the calls of a stack that lead to the panic, innermost first, without addresses, which differ between runs.
func frames(stack []byte) []string {
	lines := strings.Split(string(stack), "\n")
	at := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "panic(") })
	var out []string
	for i := at + 2; at >= 0 && i+1 < len(lines) && len(out) < 6; i += 2 {
		place := strings.TrimSpace(lines[i+1])
		place, _, _ = strings.Cut(place, " +0x")
		call := lines[i]
		if i := strings.LastIndexByte(call, '('); i > 0 { // addresses follow, which differ each time
			call = call[:i]
		}
		if strings.Contains(call, "internal/make/job.(*World)") {
			break
		}
		out = append(out, fmt.Sprintf("in %s (%s)", path.Base(call), path.Base(filepath.ToSlash(place))))
	}
	return out
}

// AsPassing marks an error of the disk, so that the job is tried again next time.
func AsPassing(err error) error {
	if err == nil || errors.Is(err, engine.ErrPassing) {
		return err
	}
	return fmt.Errorf("%w (%w)", err, engine.ErrPassing)
}

// Keep returns a store that keeps the traces of jobs in the log.
func (w *World) Keep(traces engine.Store) engine.Store { return keeper{traces, w} }

// keeper keeps traces in the log. A job whose trace is too large has failed, and runs again in the next build.
type keeper struct {
	engine.Store
	w *World
}

func (k keeper) Add(key engine.Key, tr *engine.Trace) error {
	err := k.Store.Add(key, tr)
	if !errors.Is(err, state.ErrTooLarge) {
		return err
	}
	j := &Job{w: k.w, t: k.w.ByKey(key)}
	m := diag.Errorf(diag.TraceTooLarge, diag.Pos{File: j.display(j.t.Asset.Path)}, "the job looked at more than can be kept: %d things, with %d products",
		len(tr.Observations), len(tr.Products)).
		WithHint("have it look at less, or say less: narrower globs, or several jobs")
	*tr = engine.Trace{
		Fingerprint: tr.Fingerprint, Outcome: engine.Failed, Messages: j.keep(diag.List{m}), Why: tr.Why, Seconds: tr.Seconds, Build: tr.Build,
	}
	return nil
}

// AddAll makes the tasks: one for each processor of each asset on each platform.
func (w *World) AddAll(set *asset.Table) {
	w.Assets, w.Named = set, set.Named
	w.Names = func() *asset.Table { return set }
	for k := range set.Assets {
		a := &set.Assets[k]
		for i := range a.Resolved {
			w.All = append(w.All, w.Task(a, &a.Resolved[i], ""))
		}
	}
}

// Renamed are the assets whose id a rule sets.
func (w *World) Renamed() (list []*asset.Asset) {
	if w.Finder != nil {
		for _, id := range w.Finder.IDs() {
			if a := w.Finder.Find(id); a != nil && a.Renamed() {
				list = append(list, a)
			}
		}
		return list
	}
	for i := range w.Assets.Assets {
		if a := &w.Assets.Assets[i]; a.Renamed() {
			list = append(list, a)
		}
	}
	return list
}
