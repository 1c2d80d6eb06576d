package engine_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/kiln-pipeline/kiln/internal/engine"
)

var (
	flagBuilds = flag.Int("engine.builds", 10_000, "builds of the random graph test")
	flagSeed   = flag.Uint64("engine.seed", 0, "seed of the one graph to try; 0: others each time")
)

// buildsPerGraph is how often a graph is edited and built.
const buildsPerGraph = 20

// TestRandomGraphs edits random graphs and builds them. After each build all that was
// asked for is as if it had been built from nothing, and only what had to run did.
func TestRandomGraphs(t *testing.T) {
	if *flagSeed != 0 {
		newGraph(t, *flagSeed).live()
		return
	}
	builds := *flagBuilds
	if !thorough.Enabled() {
		builds /= 10
	}
	first := thorough.Seed(t)
	for i := 0; i < builds/buildsPerGraph && !t.Failed(); i++ {
		newGraph(t, first+uint64(i)).live()
	}
}

// graph is a world that is edited at random.
type graph struct {
	t        *testing.T
	seed     uint64
	rnd      *rand.Rand
	w        *world
	s        *store
	assets   []string
	leaves   []string
	versions map[string]int // of the code, by task
	past     map[string][]string
	workers  int
	pool     *pool // results are shared; nil: they are not
	history  []string
	told     bool // of a failure, at length
}

func newGraph(t *testing.T, seed uint64) *graph {
	g := &graph{
		t: t, seed: seed, rnd: rand.New(rand.NewPCG(seed, 1)), w: newWorld(), s: newStore(),
		versions: map[string]int{}, past: map[string][]string{}, workers: []int{1, 2, 8}[seed%3],
	}
	for i := range 2 + g.rnd.IntN(9) {
		g.assets = append(g.assets, fmt.Sprintf("t%d", i))
	}
	for i := range 1 + g.rnd.IntN(5) {
		g.leaves = append(g.leaves, fmt.Sprintf("f%d", i))
	}
	for _, a := range g.assets {
		g.appear(a)
	}
	for _, f := range g.leaves {
		g.editLeaf(f)
	}
	return g
}

var platforms = []string{"pc", "web"}

func (g *graph) appear(asset string) {
	g.write(asset, g.program())
	for _, p := range platforms {
		name := asset + "@" + p
		task := g.w.add(name, nil)
		g.version(task, g.versions[name])
	}
}

// version gives a task's code a version.
func (g *graph) version(task *engine.Task, v int) {
	g.versions[task.Name] = v
	task.Fingerprint = hashOf("code", fmt.Sprint(v))
	task.Memory = int64(g.rnd.IntN(10))
	task.Run = func(r *engine.Run) (engine.Output, error) {
		for range int(task.Name[1]) % 4 {
			runtime.Gosched() // so that runs meet in many orders
		}
		ask := func(when int) { // before what others make, or after it, or both
			if (int(task.Name[1])+v)%4 == when || (int(task.Name[1])+v)%4 == 3 {
				if err := r.NeedMemory(int64(when+1) * 7 * int64(task.Name[1]%5)); err != nil && r.Context().Err() == nil {
					g.t.Errorf("seed %d: %s: %v", g.seed, task.Name, err)
				}
			}
		}
		ask(0)
		if r.Away() && (int(task.Name[1])+v)%2 == 0 { // it is overdue there, for a while
			end := r.Elsewhere(0)
			for range 20 + int(task.Name[1])%4*20 {
				runtime.Gosched()
			}
			end()
		}
		ps, err := interpret(runEyes{g.w, r}, task.Name, v)
		if r.Away() {
			switch (int(task.Name[1]) + v + len(g.history)) % 3 {
			case 0:
				return engine.Output{}, fmt.Errorf("not there: %w", engine.ErrHere)
			case 1: // once more, from the start
				r.Rewind(0)
				ps, err = interpret(runEyes{g.w, r}, task.Name, v)
			}
		}
		ask(1)
		return engine.Output{Products: ps, Memory: task.Memory}, err
	}
}

func (g *graph) write(file, content string) {
	g.w.files[file] = content
	g.past[file] = append(g.past[file], content)
}

func (g *graph) editLeaf(f string) { g.write(f, pick(g.rnd, "y", "n")+fmt.Sprint(g.rnd.IntN(3))) }

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// program makes up what an asset does. Most needs point at later assets, so that not everything is in a cycle.
func (g *graph) program() string {
	var lines []string
	for range 1 + g.rnd.IntN(5) {
		line := g.instruction()
		for g.rnd.IntN(4) == 0 {
			line = "when " + g.leaf() + " " + line
		}
		lines = append(lines, line)
	}
	for range g.rnd.IntN(3) {
		lines = append(lines, pick(g.rnd, "write", "half", "const", "maybe")+" "+g.product())
	}
	return strings.Join(lines, "\n")
}

func (g *graph) instruction() string {
	switch g.rnd.IntN(16) {
	case 0, 1:
		return "read " + g.leaf()
	case 2:
		return "or " + g.leaf() + " " + g.leaf()
	case 3:
		return "glob " + pick(g.rnd, "f*", "f[0-2]", "t?", "*3")
	case 4, 5, 6, 7:
		return "need " + g.others()
	case 8, 9:
		return "try " + g.others()
	case 10, 11, 12:
		return "use " + g.other() + " " + g.product()
	case 13:
		return "failif " + g.leaf()
	case 14:
		return pick(g.rnd, "fail", "passif "+g.leaf(), "failif "+g.leaf())
	default:
		return pick(g.rnd, "write", "half", "const", "maybe") + " " + g.product()
	}
}

func (g *graph) leaf() string    { return fmt.Sprintf("f%d", g.rnd.IntN(len(g.leaves)+1)) } // one is never there
func (g *graph) product() string { return pick(g.rnd, "a", "b", "c") }

func (g *graph) other() string {
	i := g.rnd.IntN(len(g.assets))
	if g.rnd.IntN(8) > 0 {
		i = min(len(g.assets)-1, i+g.rnd.IntN(len(g.assets)))
	}
	name := g.assets[i]
	if g.rnd.IntN(8) == 0 {
		name += "@" + pick(g.rnd, platforms...)
	}
	if g.rnd.IntN(40) == 0 {
		name = "nobody"
	}
	return name
}

func (g *graph) others() string {
	names := []string{g.other()}
	for g.rnd.IntN(2) == 0 && len(names) < 4 {
		names = append(names, g.other())
	}
	return strings.Join(names, " ")
}

// edit changes something, and says what.
func (g *graph) edit() string {
	file := pick(g.rnd, append(slices.Clone(g.leaves), g.assets...)...)
	switch g.rnd.IntN(12) {
	case 0, 1, 2:
		f := pick(g.rnd, g.leaves...)
		g.editLeaf(f)
		return fmt.Sprintf("%s is now %q", f, g.w.files[f])
	case 3:
		f := pick(g.rnd, g.leaves...)
		delete(g.w.files, f)
		return f + " is gone"
	case 4, 5:
		a := pick(g.rnd, g.assets...)
		g.write(a, g.program())
		return fmt.Sprintf("%s does %q", a, g.w.files[a])
	case 6, 7:
		if p := g.past[file]; len(p) > 0 {
			g.w.files[file] = pick(g.rnd, p...)
		}
		return fmt.Sprintf("%s is again %q", file, g.w.files[file])
	case 8:
		a := pick(g.rnd, g.assets...)
		if g.w.tasks[a+"@pc"] == nil {
			g.appear(a)
			return a + " appears"
		}
		for _, p := range platforms {
			delete(g.w.tasks, a+"@"+p)
		}
		return a + " is no more"
	case 9:
		if len(g.w.tasks) == 0 {
			return "nothing"
		}
		task := pick(g.rnd, g.w.all()...)
		g.version(task, max(0, g.versions[task.Name]+pick(g.rnd, 1, 1, -1)))
		return task.Name + " has other code"
	case 10:
		return g.lose()
	}
	return "nothing"
}

func (g *graph) lose() string {
	hashes := slices.SortedFunc(maps.Keys(g.w.blobs), func(a, b digest.Hash) int { return strings.Compare(a.String(), b.String()) })
	if len(hashes) == 0 {
		return "nothing"
	}
	h := pick(g.rnd, hashes...)
	s := g.w.blobs[h]
	delete(g.w.blobs, h)
	return fmt.Sprintf("the blob %q is lost", s)
}

func (g *graph) live() {
	for range buildsPerGraph {
		for range g.rnd.IntN(3) {
			g.history = append(g.history, g.edit())
		}
		g.build()
		if g.t.Failed() {
			return
		}
	}
}

// wanted picks what is asked for: mostly all.
func (g *graph) wanted() []*engine.Task {
	all := g.w.all()
	if g.rnd.IntN(4) == 0 {
		g.rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		return all[:g.rnd.IntN(len(all)+1)]
	}
	return all
}

func (g *graph) errorf(format string, args ...any) {
	g.t.Helper()
	if g.told {
		g.t.Errorf(format, args...)
		return
	}
	g.told = true
	var files []string
	for f, s := range g.w.files {
		files = append(files, fmt.Sprintf("%s: %q", f, s))
	}
	sort.Strings(files)
	g.t.Errorf("%s\n-engine.seed=%d (%d workers)\n\nedits:\n%s\n\nfiles:\n%s", fmt.Sprintf(format, args...), g.seed, g.workers,
		strings.Join(g.history, "\n"), strings.Join(files, "\n"))
}

// build builds once, in one of several ways, and compares it with the model.
func (g *graph) build() {
	wanted := g.wanted()
	o := engine.Options{Workers: g.workers, Build: uint64(len(g.history))}
	if g.rnd.IntN(3) == 0 {
		o.Memory = int64(1 + g.rnd.IntN(20))
	}
	if g.pool != nil {
		o.Shared = g.pool
	}
	if g.rnd.IntN(2) == 0 {
		o.Away = &otherMachines{slots: 1 + g.rnd.IntN(3), only: g.rnd.IntN(2) == 0, seed: g.rnd.IntN(100)}
	}
	how := "all"
	switch g.rnd.IntN(8) {
	case 0:
		how = "cancelled"
	case 1:
		how, o.FailFast = "fail fast", true
	case 2:
		how = "forced"
		o.Force = func(t *engine.Task) bool { return slices.Contains(wanted, t) }
	}
	g.history = append(g.history, fmt.Sprintf("-- build %s, of %d tasks", how, len(wanted)))

	m := g.least(wanted, o.Force != nil)
	dry := g.dryRun(o, wanted)
	defer func() {
		if g.t.Failed() {
			g.errorf("the last build")
		}
	}()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if how == "cancelled" {
		after := g.rnd.IntN(4)
		g.w.started = func(*engine.Task) {
			if g.w.ranSoFar() > after {
				cancel()
			}
		}
		defer func() { g.w.started = nil }()
	}
	rs, err := build(g.t, ctx, g.w, g.s, o, wanted)
	if err != nil && how != "cancelled" {
		g.errorf("build: %v", err)
	}
	whole := err == nil && !(o.FailFast && anyFailed(rs))
	g.compareDry(m, dry, rs)
	g.compare(m, rs, whole)
}

func (w *world) ranSoFar() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.runs {
		n += c
	}
	return n
}

func anyFailed(rs map[string]*engine.Result) bool {
	for _, r := range rs {
		if r.Trace != nil && r.Trace.Outcome != engine.Succeeded {
			return true
		}
	}
	return false
}

func (g *graph) least(wanted []*engine.Task, force bool) *least {
	l := &least{
		model: rebuild(g.w, g.versions, wanted), traces: g.s.copyOf(), blobs: maps.Clone(g.w.blobs),
		forced: map[string]bool{}, visited: map[string]bool{}, runs: map[string]bool{},
	}
	for _, t := range wanted {
		l.forced[t.Name] = force
	}
	for _, t := range wanted {
		l.visit(t.Name)
	}
	return l
}

func (g *graph) dryRun(o engine.Options, wanted []*engine.Task) map[string]*engine.Result {
	o.DryRun = true
	rs := must(g.t, g.w, g.s, o, wanted)
	if ran := g.w.took(); len(ran) > 0 {
		g.errorf("a dry run ran %q", ran)
	}
	return rs
}

// compareDry wants a dry run to have known nothing false.
func (g *graph) compareDry(l *least, dry, rs map[string]*engine.Result) {
	for name, d := range dry {
		switch {
		case d.State == engine.WouldRun && !l.runs[name]:
			g.errorf("%s: the dry run says that it would run, for %+v", name, d.Why)
		case d.State == engine.Held && l.runs[name]:
			g.errorf("%s: the dry run says that it holds", name)
		case d.State != engine.WouldRun && d.State != engine.Held && d.State != engine.Undecided:
			g.errorf("%s: the dry run says %d", name, d.State)
		}
	}
	for name := range dry {
		if rs[name] == nil {
			g.errorf("%s: only the dry run looked at it", name)
		}
	}
}

// compare wants each result to be true, and, if the build was whole, that just the least ran.
func (g *graph) compare(l *least, rs map[string]*engine.Result, whole bool) {
	for name, n := range g.w.runs {
		if n > 1 {
			g.errorf("%s ran %d times", name, n)
		}
		if !l.runs[name] {
			g.errorf("%s need not have run: %+v", name, rs[name].Why)
		}
	}
	for name, r := range rs {
		if !l.visited[name] {
			if whole { // else a check that was refused an answer goes on to older traces
				g.errorf("%s was looked at", name)
			}
		} else if r.Trace != nil {
			g.compareResult(name, r, l.done[name])
		} else if whole || r.State != engine.Stopped {
			g.errorf("%s: state %d without a trace", name, r.State)
		}
		if (r.State == engine.Ran) != (g.w.runs[name] > 0) && r.State != engine.Stopped {
			g.errorf("%s: state %d, but it ran %d times", name, r.State, g.w.runs[name])
		}
	}
	for name := range l.visited {
		if whole && rs[name] == nil {
			g.errorf("%s was not looked at", name)
		}
		adopted := g.pool != nil && rs[name] != nil && rs[name].State == engine.Adopted
		if whole && l.runs[name] && g.w.runs[name] == 0 && !adopted {
			g.errorf("%s did not run", name)
		}
	}
	if g.w.now != 0 {
		g.errorf("%d runs are not over", g.w.now)
	}
	g.w.took()
}

func (g *graph) compareResult(name string, r *engine.Result, want *truth) {
	tr := r.Trace
	if tr.Outcome != want.outcome || tr.Root != want.root || !slices.Equal(tr.Cycle, want.cycle) {
		g.errorf("%s (state %d): outcome %d, root %q, cycle %q; want %d, %q, %q",
			name, r.State, tr.Outcome, tr.Root, tr.Cycle, want.outcome, want.root, want.cycle)
	}
	same := slices.EqualFunc(tr.Products, want.products, func(a, b engine.Product) bool {
		return a.SubID == b.SubID && a.Name == b.Name && a.Type == b.Type && a.File == b.File && a.Hash == b.Hash && a.Size == b.Size
	})
	if !same {
		g.errorf("%s (state %d): products\n%+v, want\n%+v", name, r.State, tr.Products, want.products)
	}
	for _, p := range tr.Products {
		if _, ok := g.w.content(p.Hash); !ok {
			g.errorf("%s: the blob of %s is not there", name, p.Name)
		}
	}
}
