package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Kinds of leaf that the worlds of the tests have.
const (
	sawFile = engine.FirstLeaf + iota
	sawGlob
)

// world is files, tasks and blobs in memory. A task is found under its name.
type world struct {
	files map[string]string
	tasks map[string]*engine.Task

	mu    sync.Mutex
	blobs map[digest.Hash]string
	runs  map[string]int
	now   int // runs between Started and Finished

	twins map[*engine.Task][]*engine.Task

	observed  func(subject string)
	started   func(*engine.Task)
	finished  func(*engine.Result)
	suspended func(t *engine.Task, begins bool)
}

func newWorld() *world {
	return &world{
		files: map[string]string{}, tasks: map[string]*engine.Task{}, blobs: map[digest.Hash]string{}, runs: map[string]int{},
	}
}

// add makes a task whose run is f.
func (w *world) add(name string, f func(*engine.Run) error) *engine.Task {
	t := &engine.Task{
		Key: engine.Key(digest.Of([]byte(name))), Name: name, Work: &engine.Work{
			Fingerprint: digest.Of([]byte("v1")),
			Run:         func(r *engine.Run) (engine.Output, error) { return outputOf(r), f(r) },
		},
	}
	w.tasks[name] = t
	return t
}

// outputOf is of a task without products.
func outputOf(r *engine.Run) (out engine.Output) {
	if r.Away() {
		out.Remote = &engine.Remote{Worker: "w"}
	}
	return out
}

// needs adds a task that needs others, one after the other.
func (w *world) needs(name string, others ...string) *engine.Task {
	return w.add(name, func(r *engine.Run) error {
		for _, o := range others {
			if _, err := r.Need(o); err != nil {
				return err
			}
		}
		return nil
	})
}

// all tasks, by name.
func (w *world) all() []*engine.Task {
	var ts []*engine.Task
	for _, t := range w.tasks {
		ts = append(ts, t)
	}
	slices.SortFunc(ts, func(a, b *engine.Task) int { return strings.Compare(a.Name, b.Name) })
	return ts
}

func (w *world) names(names ...string) []*engine.Task {
	ts := make([]*engine.Task, len(names))
	for i, n := range names {
		ts[i] = w.tasks[n]
	}
	return ts
}

func (w *world) Observe(kind engine.Kind, subject string) (digest.Hash, error) {
	if w.observed != nil {
		w.observed(subject)
	}
	switch kind {
	case sawFile:
		return w.hashFile(subject), nil
	case sawGlob:
		return hashList(w.glob(subject)), nil
	}
	return digest.Hash{}, fmt.Errorf("kind %d", kind)
}

func (w *world) hashFile(name string) digest.Hash {
	if s, ok := w.files[name]; ok {
		return digest.Of([]byte(s))
	}
	return digest.Hash{}
}

func (w *world) glob(pattern string) []string {
	var found []string
	for f := range w.files {
		if ok, _ := path.Match(pattern, f); ok {
			found = append(found, f)
		}
	}
	sort.Strings(found)
	return found
}

func hashList(names []string) digest.Hash { return digest.Of([]byte(strings.Join(names, "\x00"))) }

func (w *world) Resolve(subject string) *engine.Task { return w.tasks[subject] }

func (w *world) Available(t *engine.Trace) (string, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range t.Products {
		if _, ok := w.blobs[t.Products[i].Hash]; !ok {
			return t.Products[i].Name, false
		}
	}
	return "", true
}

func (w *world) blob(content string) digest.Hash {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := digest.Of([]byte(content))
	w.blobs[h] = content
	return h
}

func (w *world) content(h digest.Hash) (string, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, ok := w.blobs[h]
	return s, ok
}

func (w *world) Planned(int) {}

func (w *world) Started(t *engine.Task) {
	w.mu.Lock()
	w.runs[t.Name]++
	w.now++
	w.mu.Unlock()
	if w.started != nil {
		w.started(t)
	}
}

func (w *world) Finished(r *engine.Result) {
	if w.finished != nil {
		w.finished(r)
	}
	if r.State == engine.Adopted {
		return // it never started
	}
	w.mu.Lock()
	w.now--
	w.mu.Unlock()
}

func (w *world) Suspended(t *engine.Task, _ []*engine.Task, begins bool) {
	if w.suspended != nil {
		w.suspended(t, begins)
	}
}

// see reads a file within a run; ok tells whether it is there.
func (w *world) see(r *engine.Run, name string) (content string, ok bool) {
	content, ok = w.files[name]
	r.See(sawFile, name, w.hashFile(name))
	return content, ok
}

// took gives what ran since the last call, sorted.
func (w *world) took() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	names := []string{}
	for n := range w.runs {
		names = append(names, n)
	}
	sort.Strings(names)
	clear(w.runs)
	return names
}

// store keeps traces in memory, as package state does on disk, but fewer of them.
type store struct {
	mu     sync.Mutex
	traces map[engine.Key][]*engine.Trace
	lastID uint64
	adds   int
	err    error // of Add, once adds reaches failAt
	failAt int
}

const keptTraces = 3

func newStore() *store { return &store{traces: map[engine.Key][]*engine.Trace{}} }

func (s *store) Traces(k engine.Key) []*engine.Trace {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.traces[k]
}

func (s *store) Add(k engine.Key, t *engine.Trace) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.adds++; s.err != nil && s.adds >= s.failAt {
		return s.err
	}
	s.lastID++
	t.ID = s.lastID
	kept := []*engine.Trace{t}
	for _, o := range s.traces[k] {
		same := o.Fingerprint == t.Fingerprint && slices.Equal(o.Observations, t.Observations)
		if !same && len(kept) < keptTraces {
			kept = append(kept, o)
		}
	}
	s.traces[k] = kept
	return nil
}

func (s *store) Use(k engine.Key, t *engine.Trace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := []*engine.Trace{t}
	for _, o := range s.traces[k] {
		if o != t {
			kept = append(kept, o)
		}
	}
	s.traces[k] = kept
}

// copyOf is for a look at what a build starts from.
func (s *store) copyOf() map[engine.Key][]*engine.Trace {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := map[engine.Key][]*engine.Trace{}
	for k, ts := range s.traces {
		m[k] = slices.Clone(ts)
	}
	return m
}

// hangs is how long a build may take before it counts as hung. Builds of the tests take milliseconds.
const hangs = 60 * time.Second

// build builds, and fails the test if that does not end.
func build(t testing.TB, ctx context.Context, w *world, s *store, o engine.Options, tasks []*engine.Task) (map[string]*engine.Result, error) {
	t.Helper()
	type answer struct {
		results []*engine.Result
		err     error
	}
	c := make(chan answer, 1)
	go func() {
		rs, err := engine.Build(ctx, w, s, o, tasks)
		c <- answer{rs, err}
	}()
	watch := time.NewTimer(hangs)
	defer watch.Stop()
	select {
	case a := <-c:
		byName := map[string]*engine.Result{}
		for _, r := range a.results {
			if byName[r.Task.Name] != nil {
				t.Fatalf("two results for %s", r.Task.Name)
			}
			byName[r.Task.Name] = r
		}
		return byName, a.err
	case <-watch.C:
		t.Fatalf("the build hangs")
	}
	return nil, nil
}

// must builds and wants no error.
func must(t testing.TB, w *world, s *store, o engine.Options, tasks []*engine.Task) map[string]*engine.Result {
	t.Helper()
	rs, err := build(t, context.Background(), w, s, o, tasks)
	if err != nil {
		t.Fatal(err)
	}
	return rs
}

// wantRan fails unless just these ran since the last look.
func wantRan(t testing.TB, w *world, names ...string) {
	t.Helper()
	sort.Strings(names)
	if got := w.took(); !slices.Equal(got, names) {
		t.Fatalf("ran %q, want %q", got, names)
	}
}

func hashOf(parts ...string) digest.Hash {
	var b bytes.Buffer
	for _, p := range parts {
		fmt.Fprintf(&b, "%d:%s", len(p), p)
	}
	return digest.Of(b.Bytes())
}

func (w *world) Twins(t *engine.Task) []*engine.Task { return w.twins[t] }

// Translate puts the name of the twin in place of that of the task: "a@1" for "a@0".
func (w *world) Translate(tr *engine.Trace, from, to *engine.Task) *engine.Trace {
	was, now := from.Name[strings.Index(from.Name, "@"):], to.Name[strings.Index(to.Name, "@"):]
	own := *tr
	own.ID, own.Why = 0, &engine.Reason{Subject: was}
	own.Observations = slices.Clone(tr.Observations)
	for i := range own.Observations {
		if o := &own.Observations[i]; o.Kind < engine.FirstLeaf {
			if !strings.HasSuffix(o.Subject, was) {
				return nil
			}
			o.Subject = strings.TrimSuffix(o.Subject, was) + now
		}
	}
	own.Products = slices.Clone(tr.Products)
	for i := range own.Products {
		own.Products[i].File = to.Folder + strings.TrimPrefix(own.Products[i].File, from.Folder)
	}
	return &own
}
