package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/kiln-pipeline/kiln/internal/engine"
)

// twin is what a task does on each of some platforms.
type twin struct {
	asks  bool       // for its platform, which is then in its product
	fails bool       // if what it needs did not
	needs [][]string // names, by platform; the same for all if it does not ask. "a@1" is always that of platform 1
	file  string
}

// twins adds the tasks name@0, name@1... for each name.
func (w *world) addTwins(all map[string]twin, platforms int) {
	w.twins = map[*engine.Task][]*engine.Task{}
	for name, x := range all {
		var tasks []*engine.Task
		for p := range platforms {
			t := w.add(fmt.Sprintf("%s@%d", name, p), nil)
			t.Folder = fmt.Sprintf("%d/", p)
			t.Run = func(r *engine.Run) (engine.Output, error) { return w.runTwin(r, x, name, p) }
			tasks = append(tasks, t)
		}
		for _, t := range tasks {
			w.twins[t] = tasks
		}
	}
}

func (w *world) runTwin(r *engine.Run, x twin, name string, p int) (engine.Output, error) {
	content := name
	if x.asks {
		content += fmt.Sprint(" on ", p)
	}
	if x.file != "" {
		text, _ := w.see(r, x.file)
		content += " " + text
	}
	for _, need := range x.needs[p] {
		subject := need
		if strings.Contains(need, "@") {
			x.asks = true // what it saw is not what it would see on another platform
		} else {
			subject = fmt.Sprintf("%s@%d", need, p)
		}
		got, err := r.Need(subject)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return engine.Output{}, err
		}
		r.Use(subject, got[0][0])
		text, _ := w.content(got[0][0].Hash)
		content += " (" + text + ")"
	}
	if x.fails {
		return engine.Output{}, errors.New("it fails")
	}
	out := engine.Product{File: fmt.Sprintf("%d/%s", p, name), Type: "text", Hash: w.blob(content)}
	return engine.Output{Products: []engine.Product{out}, Shareable: !x.asks}, nil
}

// comesTo is what became of all tasks, in a word each.
func (w *world) comesTo(t *testing.T, s *store, o engine.Options, tasks []*engine.Task) (all map[string]string, shared int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	rs, err := engine.Build(ctx, w, s, o, tasks)
	if err != nil {
		t.Fatal(err)
	}
	all = map[string]string{}
	for _, r := range rs {
		if r.Trace == nil {
			t.Fatalf("%s was not done", r.Task.Name)
		}
		text := fmt.Sprint(r.Trace.Outcome, r.Trace.Root, r.Trace.Cycle)
		for _, p := range r.Trace.Products {
			content, _ := w.content(p.Hash)
			text += " " + p.File + ": " + content
		}
		all[r.Task.Name] = text
		if r.State == engine.Shared {
			shared++
			if r.Trace.ID == 0 || r.Trace.Why.Subject == "" {
				t.Errorf("%s: %+v", r.Task.Name, r.Trace)
			}
		}
	}
	return all, shared
}

func same(names ...string) [][]string { return [][]string{names, names, names} }

// TestTwins: what does not ask for its platform runs once, as long as what it needs is the same.
func TestTwins(t *testing.T) {
	w, s := newWorld(), newStore()
	w.files["f"] = "one"
	w.addTwins(map[string]twin{
		"plain": {needs: same(), file: "f"}, "asks": {asks: true, needs: same()},
		"needs": {needs: same("plain")}, "other": {needs: same("asks")}, "fails": {fails: true, needs: same()},
	}, 2)
	o := engine.Options{Workers: 2}
	ran := func(want string) {
		t.Helper()
		if got := strings.Join(w.took(), " "); got != want {
			t.Errorf("ran %s, not %s", got, want)
		}
	}
	w.comesTo(t, s, o, w.all())
	ran("asks@0 asks@1 fails@0 fails@1 needs@0 other@0 other@1 plain@0")
	w.comesTo(t, s, o, w.all())
	ran("")
	w.files["f"] = "two"
	w.comesTo(t, s, o, w.names("needs@1")) // the other one is not asked for
	ran("needs@1 plain@1")
	all, shared := w.comesTo(t, s, o, w.all())
	ran("")
	if shared != 2 || all["needs@0"] != "1[] 0/needs: needs (plain two)" {
		t.Errorf("%d shared, %q", shared, all["needs@0"])
	}
	o.Force = func(*engine.Task) bool { return true }
	w.comesTo(t, s, o, w.all())
	ran("asks@0 asks@1 fails@0 fails@1 needs@0 needs@1 other@0 other@1 plain@0 plain@1")
}

// TestOldOutlines: traces of kilns that recorded which products there are with their folder hold.
func TestOldOutlines(t *testing.T) {
	w, s := newWorld(), newStore()
	w.addTwins(map[string]twin{"plain": {needs: same()}, "needs": {needs: same("plain")}}, 1)
	for _, t := range w.all() {
		t.Folder = ""
	}
	w.comesTo(t, s, engine.Options{Workers: 1}, w.all())
	w.took()
	for _, t := range w.all() {
		t.Folder = "0/"
	}
	w.comesTo(t, s, engine.Options{Workers: 1}, w.all())
	if ran := w.took(); len(ran) != 0 {
		t.Errorf("ran %s", ran)
	}
}

// TestRandomTwins: any graph of tasks on several platforms, cycles included, comes to the same whether runs
// are shared or not, asked for in any order, by any number of workers, over edits; and no build hangs.
func TestRandomTwins(t *testing.T) {
	seed := thorough.Seed(t)
	rng := rand.New(rand.NewPCG(seed, seed))
	shared := 0
	for range 400 {
		const platforms = 3
		names := []string{"a", "b", "c", "d", "e", "f"}[:2+rng.IntN(5)]
		some := func() (needs []string) {
			for range rng.IntN(3) {
				need := names[rng.IntN(len(names))]
				if rng.IntN(6) == 0 {
					need += fmt.Sprintf("@%d", rng.IntN(platforms))
				}
				needs = append(needs, need)
			}
			return needs
		}
		graph := map[string]twin{}
		for _, name := range names {
			x := twin{asks: rng.IntN(3) == 0, fails: rng.IntN(12) == 0, needs: same(some()...)}
			for p := 0; x.asks && p < platforms; p++ {
				x.needs[p] = some()
			}
			if rng.IntN(2) == 0 {
				x.file = "file"
			}
			graph[name] = x
		}
		w, s := newWorld(), newStore()
		w.addTwins(graph, platforms)
		for step := range 3 {
			w.files["file"] = fmt.Sprint(rng.IntN(2))
			tasks := w.all()
			rng.Shuffle(len(tasks), func(i, j int) { tasks[i], tasks[j] = tasks[j], tasks[i] })
			if rng.IntN(3) == 0 {
				tasks = tasks[:1+rng.IntN(len(tasks))]
			}
			got, n := w.comesTo(t, s, engine.Options{Workers: 1 + rng.IntN(3)}, tasks)
			shared += n
			want, _ := w.comesTo(t, newStore(), engine.Options{Workers: 1, Force: func(*engine.Task) bool { return true }}, w.all())
			for name, text := range got {
				if text != want[name] {
					t.Fatalf("step %d of %+v: %s came to %q, not %q", step, graph, name, text, want[name])
				}
			}
		}
	}
	if shared < 100 {
		t.Errorf("only %d runs were shared", shared)
	}
}
