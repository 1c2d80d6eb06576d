package engine_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/kiln-pipeline/kiln/internal/engine"
)

// pool is results that all builds of a test share, in memory.
type pool struct {
	w *world

	mu      sync.Mutex
	hints   map[string][]engine.Hint // by task and code
	results map[string]*engine.Trace // and by what was seen
	blobs   map[digest.Hash]string
	forget  int // one answer of so many is left out; 0: none
	asked   int
}

func newPool(w *world) *pool {
	return &pool{w: w, hints: map[string][]engine.Hint{}, results: map[string]*engine.Trace{}, blobs: map[digest.Hash]string{}}
}

func hintName(t *engine.Task) string { return fmt.Sprint(t.Key, t.Fingerprint) }

func resultName(t *engine.Task, seen []engine.Observation) string {
	return hintName(t) + fmt.Sprint(seen)
}

func shorten(h digest.Hash) uint32 { return binary.LittleEndian.Uint32(h[:]) }

// skips reports whether this answer is left out. p.mu is held.
func (p *pool) skips() bool {
	p.asked++
	return p.forget > 0 && p.asked%p.forget == 0
}

func (p *pool) Hints(_ context.Context, tasks []*engine.Task, answer func(int, []engine.Hint)) {
	var wg sync.WaitGroup
	for i, t := range tasks {
		wg.Go(func() {
			p.mu.Lock()
			var list []engine.Hint
			for _, h := range p.hints[hintName(t)] {
				list = append(list, engine.Hint{Observations: slices.Clone(h.Observations), Seen: slices.Clone(h.Seen), Short: shorten})
			}
			if p.skips() {
				list = nil
			}
			p.mu.Unlock()
			answer(i, list)
		})
	}
	wg.Wait()
}

func (p *pool) Results(_ context.Context, asked []engine.Asked, answer func(int, *engine.Trace)) {
	var wg sync.WaitGroup
	for i, a := range asked {
		wg.Go(func() {
			p.mu.Lock()
			found := p.results[resultName(a.Task, a.Observations)]
			if p.skips() {
				found = nil
			}
			p.mu.Unlock()
			if found == nil {
				answer(i, nil)
				return
			}
			t := *found
			for _, product := range t.Products {
				p.w.blob(p.blobs[product.Hash])
			}
			answer(i, &t)
		})
	}
	wg.Wait()
}

func (p *pool) Ran(t *engine.Task, tr *engine.Trace) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, product := range tr.Products {
		p.blobs[product.Hash], _ = p.w.content(product.Hash)
	}
	p.results[resultName(t, tr.Observations)] = &engine.Trace{
		Outcome: tr.Outcome, Products: tr.Products, Messages: tr.Messages, Root: tr.Root, Cycle: tr.Cycle, Seconds: tr.Seconds,
	}
	bare, seen := slices.Clone(tr.Observations), make([]uint32, len(tr.Observations))
	for i := range bare {
		seen[i], bare[i].Value = shorten(bare[i].Value), digest.Hash{}
	}
	hints := p.hints[hintName(t)]
	at := slices.IndexFunc(hints, func(h engine.Hint) bool { return slices.Equal(h.Observations, bare) })
	if at < 0 {
		p.hints[hintName(t)] = append(hints, engine.Hint{Observations: bare, Seen: [][]uint32{seen}})
	} else {
		hints[at].Seen = append(hints[at].Seen, seen)
	}
}

func (p *pool) Sought(subject string) *engine.Task { return p.w.Resolve(subject) }
func (p *pool) Possible(*engine.Task) bool         { return true }

// TestRandomGraphsShared edits random graphs and builds them while results are shared: what comes of a build is the same, and nothing
// runs that would not have to without that. A second checkout of the same, which knows nothing, runs nothing, but for what failed in
// passing.
func TestRandomGraphsShared(t *testing.T) {
	graphs := 150
	if !thorough.Enabled() {
		graphs = 25
	}
	first := thorough.Seed(t)
	if *flagSeed != 0 {
		first, graphs = *flagSeed, 1
	}
	adopted := 0
	for i := 0; i < graphs && !t.Failed(); i++ {
		g := newGraph(t, first+uint64(i))
		g.pool = newPool(g.w)
		for range buildsPerGraph {
			for range g.rnd.IntN(3) {
				g.history = append(g.history, g.edit())
			}
			g.pool.forget = g.rnd.IntN(4)
			g.build()
			if g.rnd.IntN(3) == 0 && !t.Failed() {
				adopted += g.elsewhere()
			}
			if t.Failed() {
				return
			}
		}
	}
	if adopted == 0 {
		t.Error("nothing was ever adopted")
	}
}

// elsewhere builds everything here, and then as if from a fresh checkout.
func (g *graph) elsewhere() (adopted int) {
	g.pool.forget = 0
	all, o := g.w.all(), engine.Options{Workers: g.workers, Shared: g.pool}
	here := must(g.t, g.w, g.s, o, all)
	g.w.took()
	for name, r := range here {
		if r.State == engine.Held { // it may have been built while nobody shared it
			g.pool.Ran(g.w.tasks[name], r.Trace)
		}
	}
	s, blobs := g.s, g.w.blobs
	g.s, g.w.blobs = newStore(), map[digest.Hash]string{}
	g.history = append(g.history, "-- built elsewhere")
	there := must(g.t, g.w, g.s, o, all)
	for _, name := range g.w.took() {
		if !passing(here, name, map[string]bool{}) {
			g.errorf("%s ran elsewhere too, for %+v", name, there[name].Why)
		}
	}
	m := rebuild(g.w, g.versions, all).done
	for name, r := range there {
		if g.compareResult(name, r, m[name]); r.State == engine.Adopted {
			adopted++
			if !r.Trace.Adopted || !slices.Equal(r.Trace.Observations, here[name].Trace.Observations) && here[name].Trace.ID != 0 {
				g.errorf("%s was adopted with the observations %v, not %v", name, r.Trace.Observations, here[name].Trace.Observations)
			}
		}
	}
	if again := must(g.t, g.w, g.s, o, all); len(again) != len(there) {
		g.errorf("built again elsewhere, %d tasks in place of %d", len(again), len(there))
	}
	for _, name := range g.w.took() {
		if !passing(here, name, map[string]bool{}) {
			g.errorf("%s ran in the second build elsewhere", name)
		}
	}
	maps.Copy(blobs, g.w.blobs)
	g.s, g.w.blobs = s, blobs
	return adopted
}

// passing reports whether a task failed in passing, or needs one that did.
func passing(rs map[string]*engine.Result, name string, visited map[string]bool) bool {
	r := rs[name]
	if r == nil || visited[name] {
		return false
	}
	visited[name] = true
	if r.Trace.ID == 0 {
		return true
	}
	for _, o := range r.Trace.Observations {
		if o.Kind < engine.FirstLeaf && passing(rs, o.Subject, visited) {
			return true
		}
	}
	return false
}
