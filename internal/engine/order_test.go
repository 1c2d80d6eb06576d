package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kiln-pipeline/kiln/internal/engine"
)

// TestMemoryIsNotPromisedTwice: tasks start only while all that are under way fit, suspended ones included; but one
// always may where nothing else runs.
func TestMemoryIsNotPromisedTwice(t *testing.T) {
	atWorkers(t, func(t *testing.T, workers int) {
		w, s := newWorld(), newStore()
		var promised, running int64
		const limit = 100
		w.started = func(task *engine.Task) {
			w.mu.Lock()
			defer w.mu.Unlock()
			promised += task.Memory
			if running++; promised > limit && running > 1 {
				t.Errorf("%s starts: %d runs, %d promised", task.Name, running, promised)
			}
		}
		w.suspended = func(_ *engine.Task, begins bool) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if begins {
				running--
			} else {
				running++
			}
		}
		w.finished = func(r *engine.Result) {
			w.mu.Lock()
			defer w.mu.Unlock()
			promised -= r.Task.Memory
			running--
		}
		for i := range 60 {
			w.needs(fmt.Sprintf("t%02d", i)).Memory = int64(1 + i*7%60)
		}
		w.needs("huge").Memory = 10 * limit
		rs := must(t, w, s, engine.Options{Workers: workers, Memory: limit}, w.all())
		if len(rs) != 61 || promised != 0 {
			t.Errorf("%d results, %d promised at the end", len(rs), promised)
		}
		for n, r := range rs {
			if r.State != engine.Ran {
				t.Errorf("%s: state %d", n, r.State)
			}
		}
	})
}

// Suspended tasks hold all memory there is, and what they wait for needs some.
func TestMemoryOfSuspendedTasksDoesNotStopTheBuild(t *testing.T) {
	atWorkers(t, func(t *testing.T, workers int) {
		w, s := newWorld(), newStore()
		for i := range 20 {
			w.needs(fmt.Sprintf("chain%02d", i), fmt.Sprintf("chain%02d", i+1)).Memory = 80
			w.needs(fmt.Sprintf("wide%02d", i), "chain00").Memory = 30
		}
		w.needs("chain20").Memory = 200
		rs := must(t, w, s, engine.Options{Workers: workers, Memory: 100}, w.all())
		for n, r := range rs {
			if r.State != engine.Ran || r.Trace.Outcome != engine.Succeeded {
				t.Errorf("%s: %+v", n, r)
			}
		}
	})
}

// Runs that ask for memory get no more at once than there is, but for one that is alone.
func TestMemoryIsAskedFor(t *testing.T) {
	atWorkers(t, func(t *testing.T, workers int) {
		w, s := newWorld(), newStore()
		const limit = 100
		var taken, most int64
		takers := 0
		wants := map[string]int64{}
		for i := range 100 {
			name, bytes := fmt.Sprintf("t%02d", i), int64(1+i*7%60)
			if i%20 == 0 {
				bytes = 3 * limit
			}
			wants[name] = bytes
			w.add(name, func(r *engine.Run) error {
				if i%3 > 0 {
					if _, err := r.Need(fmt.Sprintf("t%02d", i-1)); err != nil {
						return err
					}
				}
				if err := r.NeedMemory(bytes); err != nil {
					return err
				}
				w.mu.Lock()
				defer w.mu.Unlock()
				taken, takers = taken+bytes, takers+1
				if taken > limit && takers > 1 {
					t.Errorf("%d runs have %d at once", takers, taken)
				}
				most = max(most, taken)
				return r.NeedMemory(bytes) // it has it
			}).Memory = 1
		}
		w.finished = func(r *engine.Result) {
			w.mu.Lock()
			defer w.mu.Unlock()
			taken, takers = taken-wants[r.Task.Name], takers-1
		}
		for n, r := range must(t, w, s, engine.Options{Workers: workers, Memory: limit}, w.all()) {
			if r.State != engine.Ran || r.Trace.Outcome != engine.Succeeded {
				t.Errorf("%s: %+v", n, r)
			}
		}
		if taken != 0 || most < 3*limit {
			t.Errorf("%d taken at the end, %d at most", taken, most)
		}
	})
}

// Runs that have all memory there is wait for others that ask for some.
func TestMemoryThatWaitsDoesNotStopTheBuild(t *testing.T) {
	atWorkers(t, func(t *testing.T, workers int) {
		w, s := newWorld(), newStore()
		for i := range 50 {
			w.add(fmt.Sprintf("t%02d", i), func(r *engine.Run) error {
				if err := r.NeedMemory(int64(i * 13 % 100)); err != nil {
					return err
				}
				if i > 0 {
					if _, err := r.Need(fmt.Sprintf("t%02d", i-1)); err != nil {
						return err
					}
				}
				return r.NeedMemory(80)
			})
		}
		for n, r := range must(t, w, s, engine.Options{Workers: workers, Memory: 100}, w.all()) {
			if r.State != engine.Ran || r.Trace.Outcome != engine.Succeeded {
				t.Errorf("%s: %+v", n, r)
			}
		}
	})
}

// A build that is told to stop waits for no memory.
func TestStopWhileMemoryIsWaitedFor(t *testing.T) {
	w, s := newWorld(), newStore()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, name := range []string{"a", "b"} {
		w.add(name, func(r *engine.Run) error {
			if err := r.NeedMemory(100); err != nil {
				return err
			}
			cancel() // the other one asks, or is about to
			<-r.Context().Done()
			return r.Context().Err()
		})
	}
	if _, err := engine.Build(ctx, w, s, engine.Options{Workers: 2, Memory: 100}, w.all()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// What a task was measured to need counts more than what it was thought to.
func TestMemoryIsLearnt(t *testing.T) {
	w, s := newWorld(), newStore()
	together, most := 0, 0
	w.started = func(*engine.Task) { w.mu.Lock(); together++; most = max(most, together); w.mu.Unlock() }
	w.finished = func(*engine.Result) { w.mu.Lock(); together--; w.mu.Unlock() }
	for i := range 40 {
		t := w.add(fmt.Sprint(i), nil)
		t.Run = func(r *engine.Run) (engine.Output, error) {
			w.see(r, "f")
			return engine.Output{Memory: 60}, nil
		}
	}
	o := engine.Options{Workers: 8, Memory: 100}
	must(t, w, s, o, w.all())
	w.files["f"] = "x"
	most = 0
	must(t, w, s, o, w.all())
	if most != 1 {
		t.Errorf("%d ran at once; two need more than there is", most)
	}
}

// started records the order in which runs start.
func (w *world) order() *[]string {
	var names []string
	w.started = func(t *engine.Task) { w.mu.Lock(); names = append(names, t.Name); w.mu.Unlock() }
	return &names
}

func TestLongestKnownPathFirst(t *testing.T) {
	w, s := newWorld(), newStore()
	add := func(name string, seconds float64, needs ...string) {
		t := w.add(name, func(r *engine.Run) error {
			w.see(r, "f")
			for _, n := range needs {
				if _, err := r.Need(n); err != nil {
					return err
				}
			}
			return nil
		})
		t.Estimate = seconds
	}
	add("short", 1)
	add("middle", 5)
	add("long", 9)
	add("also long", 9)
	order := w.order()
	must(t, w, s, engine.Options{Workers: 1}, w.names("short", "middle", "long", "also long"))
	if want := []string{"long", "also long", "middle", "short"}; !slices.Equal(*order, want) {
		t.Errorf("by estimate: %q, want %q", *order, want)
	}

	// Now a short one that much comes after: "root" (1) <- "user" (20), against 9.
	w, s = newWorld(), newStore()
	add("user", 20, "root")
	add("root", 1)
	add("alone", 9)
	must(t, w, s, engine.Options{Workers: 1}, w.all())
	for _, ts := range s.traces {
		ts[0].Seconds = 0 // what the machine took says nothing
	}
	s.traces[w.tasks["user"].Key][0].Seconds = 20
	s.traces[w.tasks["root"].Key][0].Seconds = 1
	s.traces[w.tasks["alone"].Key][0].Seconds = 9
	w.files["f"] = "x"
	w.tasks["user"].Run = func(r *engine.Run) (engine.Output, error) { _, err := r.Need("root"); return engine.Output{}, err }
	s.traces[w.tasks["user"].Key][0].Observations = s.traces[w.tasks["user"].Key][0].Observations[1:] // not the file: it waits for root
	order = w.order()
	must(t, w, s, engine.Options{Workers: 1}, w.names("alone", "user", "root"))
	if want := []string{"root", "alone"}; !slices.Equal(*order, want) {
		t.Errorf("by path: %q, want %q", *order, want)
	}
}

// Among equals, first come first served, also for those that come while others run.
func TestFirstComeFirstServed(t *testing.T) {
	w, s := newWorld(), newStore()
	w.add("low", func(r *engine.Run) error {
		if _, ok := w.see(r, "f"); ok {
			return errFail
		}
		return nil
	})
	want := []string{"low"}
	var late func(*engine.Run)
	for i := range 10 {
		n := fmt.Sprintf("a%d", i)
		want = append(want, n)
		w.add(n, func(r *engine.Run) error {
			if r.Need("low"); n == "a4" {
				late(r)
			}
			return nil
		})
	}
	w.needs("late")
	late = func(*engine.Run) {}
	must(t, w, s, engine.Options{Workers: 1}, w.names(want...))
	for _, ts := range s.traces {
		ts[0].Seconds = 0
	}
	w.files["f"] = "x"
	late = func(r *engine.Run) { r.Need("late") }
	order := w.order()
	must(t, w, s, engine.Options{Workers: 1}, w.names(want...))
	if want = append(want, "late"); !slices.Equal(*order, want) {
		t.Errorf("started %q, want %q", *order, want)
	}
}

// Each task that runs Outside gives a slot more, up to the limit, so that there are never more of the others than workers.
func TestExtraSlots(t *testing.T) {
	for _, test := range []struct {
		outside string // tasks whose names begin with one of these
		extra   int
		want    int // tasks at once
	}{
		{"", 1, 2},
		{"a", 0, 2},
		{"a", 1, 3},
		{"a", 2, 4},
		{"ai", 1, 3},
	} {
		w, s := newWorld(), newStore()
		var together, inside int
		full := make(chan struct{})
		running := func(task *engine.Task, by int) {
			w.mu.Lock()
			defer w.mu.Unlock()
			together += by
			if !task.Outside {
				inside += by
			}
			if together == test.want {
				select {
				case <-full:
				default:
					close(full)
				}
			}
			if together > test.want || inside > 2 {
				t.Errorf("%+v: %d at once, %d of these not outside", test, together, inside)
			}
		}
		w.started = func(task *engine.Task) { running(task, 1) }
		w.finished = func(r *engine.Result) { running(r.Task, -1) }
		w.suspended = func(task *engine.Task, begins bool) {
			if begins {
				running(task, -1)
			} else {
				running(task, 1)
			}
		}
		for i := range 40 { // "a" comes before "i"
			for _, kind := range []string{"a", "i"} {
				name := fmt.Sprint(kind, i)
				w.add("leaf of "+name, func(*engine.Run) error { return nil })
				w.add(name, func(r *engine.Run) error {
					select {
					case <-full:
					case <-time.After(hangs / 2):
						t.Errorf("%+v: never as many at once", test)
					}
					_, err := r.Need("leaf of " + name)
					return err
				}).Outside = strings.Contains(test.outside, kind)
			}
		}
		rs := must(t, w, s, engine.Options{Workers: 2, Extra: test.extra}, w.all())
		if len(rs) != 160 || together != 0 {
			t.Errorf("%+v: %d results, %d running at the end", test, len(rs), together)
		}
	}
}

// What a run waited for others is not what it took: else the slowest would be those that did nothing, and what others took would count
// twice.
func TestSecondsAreThoseOfTheRunItself(t *testing.T) {
	atWorkers(t, func(t *testing.T, workers int) {
		synctest.Test(t, func(t *testing.T) {
			w, s := newWorld(), newStore()
			w.add("page", func(*engine.Run) error { time.Sleep(3 * time.Second); return nil })
			w.add("image", func(*engine.Run) error { time.Sleep(2 * time.Second); return nil })
			w.add("model", func(r *engine.Run) error {
				time.Sleep(time.Second)
				for _, name := range []string{"page", "image"} {
					if _, err := r.Need(name); err != nil {
						return err
					}
				}
				time.Sleep(500 * time.Millisecond)
				return nil
			})
			rs := must(t, w, s, engine.Options{Workers: workers}, w.names("model"))
			for name, want := range map[string]float64{"page": 3, "image": 2, "model": 1.5} {
				if got := rs[name].Trace.Seconds; got != want {
					t.Errorf("%s took %v s, want %v", name, got, want)
				}
			}
		})
	})
}
