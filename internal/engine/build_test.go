package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/engine"
)

var workerCounts = []int{1, 2, 8}

// atWorkers runs a test at several numbers of workers.
func atWorkers(t *testing.T, f func(t *testing.T, workers int)) {
	for _, n := range workerCounts {
		t.Run(fmt.Sprintf("workers=%d", n), func(t *testing.T) { f(t, n) })
	}
}

func TestOnceHoweverManyAsk(t *testing.T) {
	atWorkers(t, func(t *testing.T, workers int) {
		w, s := newWorld(), newStore()
		w.add("shared", func(r *engine.Run) error { w.see(r, "f"); return nil })
		for i := range 50 {
			w.needs(fmt.Sprintf("user%d", i), "shared", "shared")
		}
		must(t, w, s, engine.Options{Workers: workers}, append(w.all(), w.all()...))
		for n, c := range w.runs {
			if c != 1 {
				t.Errorf("%s ran %d times", n, c)
			}
		}
		if len(w.took()) != 51 {
			t.Error("not all ran")
		}
		must(t, w, s, engine.Options{Workers: workers}, w.all())
		wantRan(t, w)
		w.files["f"] = "new"
		must(t, w, s, engine.Options{Workers: workers}, w.all())
		wantRan(t, w, "shared")
	})
}

// A chain of 100 suspended runs needs one slot only.
func TestSuspensionFreesTheSlot(t *testing.T) {
	w, s := newWorld(), newStore()
	var most, now int
	w.suspended = func(_ *engine.Task, begins bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if begins {
			now++
			most = max(most, now)
		} else {
			now--
		}
	}
	for i := range 100 {
		w.needs(fmt.Sprint(i), fmt.Sprint(i+1))
	}
	w.needs("100")
	rs := must(t, w, s, engine.Options{Workers: 1}, w.names("0"))
	if most != 100 || now != 0 {
		t.Errorf("%d runs were suspended at once, want 100; %d still are", most, now)
	}
	if len(rs) != 101 || rs["0"].Trace.Outcome != engine.Succeeded {
		t.Errorf("%d results, %+v", len(rs), rs["0"])
	}
}

func permutations(names []string) [][]string {
	if len(names) == 0 {
		return [][]string{nil}
	}
	var all [][]string
	for i := range names {
		rest := slices.Concat(names[:i], names[i+1:])
		for _, p := range permutations(rest) {
			all = append(all, append([]string{names[i]}, p...))
		}
	}
	return all
}

// TestCycles wants the same cycle whoever is asked first, kept like any other outcome, and gone
// when one edge of it is.
func TestCycles(t *testing.T) {
	tests := []struct {
		name  string
		needs map[string][]string // one group
		want  map[string]string   // cycle, or root after "!"
	}{
		{"one", map[string][]string{"a": {"a"}}, map[string]string{"a": "a"}},
		{"two", map[string][]string{"a": {"b"}, "b": {"a"}}, map[string]string{"a": "a b", "b": "a b"}},
		{"three", map[string][]string{"a": {"c"}, "b": {"a"}, "c": {"b"}}, map[string]string{"a": "a c b", "b": "a c b", "c": "a c b"}},
		{"behind", map[string][]string{"a": {"b"}, "b": {"c"}, "c": {"b"}}, map[string]string{"a": "!b", "b": "b c", "c": "b c"}},
		{"beside", map[string][]string{"a": {"x", "b"}, "b": {"a"}, "x": {}}, map[string]string{"a": "a b", "b": "a b", "x": ""}},
		// b and c both need a, which waits for both: what a waits for first decides.
		{"overlapping", map[string][]string{"a": {"b", "c"}, "b": {"a"}, "c": {"a"}}, map[string]string{"a": "a b", "b": "a b", "c": "!a"}},
		{"overlapping, other order", map[string][]string{"a": {"c", "b"}, "b": {"a"}, "c": {"a"}}, map[string]string{"a": "a c", "b": "!a", "c": "a c"}},
		{"eight", map[string][]string{"a": {"b", "c"}, "b": {"c", "a"}, "c": {"a", "b"}}, map[string]string{"a": "a b c", "b": "a b c", "c": "a b c"}},
		{"a failure beside", map[string][]string{"a": {"x", "b"}, "b": {"a"}, "x": {"nobody"}}, map[string]string{"a": "a b", "b": "a b", "x": "!"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			atWorkers(t, func(t *testing.T, workers int) {
				var names []string
				for n := range tt.needs {
					names = append(names, n)
				}
				slices.Sort(names)
				for _, p := range permutations(names) {
					for k := 1; k <= len(p); k++ {
						testRing(t, workers, p[:k], names, tt.needs, tt.want)
					}
				}
			})
		})
	}
}

func testRing(t *testing.T, workers int, first, all []string, needs map[string][]string, want map[string]string) {
	t.Helper()
	w, s := newWorld(), newStore()
	for n, group := range needs {
		w.files[n] = strings.Join(group, " ")
		w.add(n, func(r *engine.Run) error {
			text, _ := w.see(r, n)
			_, err := r.Need(strings.Fields(text)...)
			return err
		})
	}
	look := func(when string, rs map[string]*engine.Result) {
		t.Helper()
		for n, r := range rs {
			cycle := strings.Join(r.Trace.Cycle, " ")
			if r.Trace.Outcome == engine.NeedsFailed || r.Trace.Outcome == engine.Failed {
				cycle = "!" + r.Trace.Root
			}
			if cycle != want[n] {
				t.Errorf("%s, %s first: %s is in %q, want %q", when, first, n, cycle, want[n])
			}
		}
	}
	o := engine.Options{Workers: workers}
	look("new", must(t, w, s, o, w.names(first...)))
	look("all", must(t, w, s, o, w.names(all...)))
	w.took()
	for _, p := range permutations(all) {
		look("again", must(t, w, s, o, w.names(p...)))
		wantRan(t, w)
	}
	for n := range needs {
		w.files[n] = "" // breaks all cycles through n
		rs := must(t, w, s, o, w.names(all...))
		if rs[n].Trace.Outcome != engine.Succeeded {
			t.Errorf("%s needs nothing any more, but: %+v", n, rs[n].Trace)
		}
		w.files[n] = strings.Join(needs[n], " ")
		look("mended and broken again", must(t, w, s, o, w.names(all...)))
		w.took()
	}
}

// A cycle is a fault of who is in it, even if it would go on after a failure; who is outside may go on.
func TestCyclesCannotBeSwallowed(t *testing.T) {
	atWorkers(t, func(t *testing.T, workers int) {
		w := newWorld()
		swallow := func(name string, needs ...string) {
			w.add(name, func(r *engine.Run) error {
				for _, n := range needs {
					r.Need(n)
				}
				return nil
			})
		}
		swallow("a", "b", "c")
		swallow("b", "a", "c")
		swallow("c")
		swallow("d", "a")
		for _, first := range permutations([]string{"a", "b", "c", "d"}) {
			rs := must(t, w, newStore(), engine.Options{Workers: workers}, w.names(first...))
			got := fmt.Sprint(rs["a"].Trace.Outcome, rs["b"].Trace.Outcome, rs["c"].Trace.Outcome, rs["d"].Trace.Outcome)
			if got != "4 4 1 1" {
				t.Errorf("outcomes %s with %s", got, first)
			}
			if n := len(rs["a"].Trace.Observations); n != 1 {
				t.Errorf("a recorded %d observations, want just the cycle", n)
			}
		}
	})
}

// The cause of a failure is told to people from the trace, so a trace must not outlive it.
func TestRootOfAFailureIsPartOfIt(t *testing.T) {
	w, s := newWorld(), newStore()
	w.add("deep", func(r *engine.Run) error { w.see(r, "f"); return errFail })
	w.add("mid", func(r *engine.Run) error {
		if _, ok := w.see(r, "f"); ok {
			return errFail
		}
		_, err := r.Need("deep")
		return err
	})
	w.needs("top", "mid")
	for i, want := range []string{"deep", "mid", "deep"} {
		if delete(w.files, "f"); i == 1 {
			w.files["f"] = "x"
		}
		rs := must(t, w, s, engine.Options{Workers: 1}, w.names("top"))
		if tr := rs["top"].Trace; tr.Outcome != engine.NeedsFailed || tr.Root != want {
			t.Errorf("build %d: outcome %d, root %q, want %q", i, tr.Outcome, tr.Root, want)
		}
	}
	w.took()
	must(t, w, s, engine.Options{Workers: 1}, w.names("top"))
	wantRan(t, w)
}

// Tasks that were asked for together are all observed, although the first failure is what is returned: whether
// the others ever come to an end decided too.
func TestAllOfAGroupIsObserved(t *testing.T) {
	w, s := newWorld(), newStore()
	w.add("bad", func(*engine.Run) error { return errFail })
	w.add("other", func(r *engine.Run) error {
		if _, ok := w.see(r, "f"); ok {
			_, err := r.Need("a")
			return err
		}
		return nil
	})
	w.add("a", func(r *engine.Run) error {
		_, err := r.Need("bad", "other")
		var need *engine.NeedError
		if !errors.As(err, &need) || need.Name != "bad" {
			return err
		}
		return nil // goes on without
	})
	rs := must(t, w, s, engine.Options{Workers: 1}, w.all())
	if n := len(rs["a"].Trace.Observations); n != 2 {
		t.Errorf("%d observations, want 2", n)
	}
	w.files["f"] = "now other needs a"
	rs = must(t, w, s, engine.Options{Workers: 1}, w.all())
	for _, n := range []string{"a", "other"} {
		if got := rs[n].Trace.Cycle; !slices.Equal(got, []string{"a", "other"}) {
			t.Errorf("%s: cycle %q", n, got)
		}
	}
}

// What a run was refused because the build was over must not count as seen.
func TestStoppedNeedLeavesNoTrace(t *testing.T) {
	for range 200 {
		w, s := newWorld(), newStore()
		ctx, cancel := context.WithCancel(context.Background())
		w.add("low", func(r *engine.Run) error { cancel(); return r.Context().Err() })
		w.add("top", func(r *engine.Run) error { r.Need("low"); return nil })
		rs, err := build(t, ctx, w, s, engine.Options{Workers: 1}, w.all())
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if rs["top"].State != engine.Stopped || len(s.traces) != 0 {
			t.Fatalf("top: state %d, %d traces kept", rs["top"].State, len(s.traces))
		}
	}
}

// Cancelled before it begins, or after a few looks: nothing is started, and each task has its result.
func TestCancelledInTheSweep(t *testing.T) {
	for looks := range 4 {
		w, s := newWorld(), newStore()
		for _, n := range []string{"a", "b", "c"} {
			w.add(n, func(r *engine.Run) error { w.see(r, n); return nil })
		}
		must(t, w, s, engine.Options{Workers: 2}, w.all())
		w.took()
		w.files["a"], w.files["b"], w.files["c"] = "x", "x", "x"
		ctx, cancel := context.WithCancel(context.Background())
		left := looks
		if left == 0 {
			cancel()
		}
		w.observed = func(string) {
			if left--; left == 0 {
				cancel()
			}
		}
		rs, err := build(t, ctx, w, s, engine.Options{Workers: 2}, w.all())
		if cancel(); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		wantRan(t, w)
		for _, n := range []string{"a", "b", "c"} {
			if rs[n] == nil || rs[n].State != engine.Stopped {
				t.Errorf("%s: %+v", n, rs[n])
			}
		}
	}
}

// Ctrl-C keeps what is finished and wakes who sleeps.
func TestCancelKeepsWhatIsFinished(t *testing.T) {
	atWorkers(t, func(t *testing.T, workers int) {
		w, s := newWorld(), newStore()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		w.needs("finished")
		for i := range 20 {
			w.needs(fmt.Sprintf("sleeper%d", i), "finished", "stuck")
		}
		w.add("stuck", func(r *engine.Run) error {
			w.mu.Lock()
			done := w.runs["finished"] > 0
			w.mu.Unlock()
			if !done {
				r.Need("finished")
			}
			cancel()
			<-r.Context().Done()
			return r.Context().Err()
		})
		rs, err := build(t, ctx, w, s, engine.Options{Workers: workers}, w.all())
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if r := rs["finished"]; r.State != engine.Ran || r.Trace == nil {
			t.Errorf("finished: %+v", r)
		}
		for n, r := range rs {
			if n != "finished" && (r.State != engine.Stopped || r.Trace != nil) {
				t.Errorf("%s: %+v", n, r)
			}
		}
		w.took()
		w.needs("stuck")
		must(t, w, s, engine.Options{Workers: workers}, w.all())
		if ran := w.took(); slices.Contains(ran, "finished") || len(ran) != 21 {
			t.Errorf("afterwards ran %q", ran)
		}
	})
}

// FailFast starts nothing more, and lets nobody sleep who waits for what is not started.
func TestFailFast(t *testing.T) {
	atWorkers(t, func(t *testing.T, workers int) {
		w, s := newWorld(), newStore()
		w.add("bad", func(*engine.Run) error { return errFail })
		w.needs("a", "never", "bad") // "bad" is asked for once "never" is done
		w.needs("never", "bad", "later")
		w.needs("later")
		rs := must(t, w, s, engine.Options{Workers: workers, FailFast: true}, w.names("a"))
		if rs["bad"].State != engine.Ran {
			t.Errorf("bad: %+v", rs["bad"])
		}
		for _, n := range []string{"a", "never"} {
			// Who was woken may see the failure, or that the build is over.
			if r := rs[n]; r.State != engine.Stopped && r.Trace.Root != "bad" {
				t.Errorf("%s: %+v", n, r)
			}
		}
		if rs["later"] != nil && rs["later"].State == engine.Ran {
			t.Error("later was started")
		}
	})
}

// The same with a failure that is known from its trace, and with many who sleep.
func TestFailFastWithSleepers(t *testing.T) {
	atWorkers(t, func(t *testing.T, workers int) {
		w, s := newWorld(), newStore()
		var asleep atomic.Int32
		w.suspended = func(_ *engine.Task, begins bool) {
			if begins {
				asleep.Add(1)
			} else {
				asleep.Add(-1)
			}
		}
		for i := range 30 {
			w.needs(fmt.Sprintf("sleeper%d", i), "last")
		}
		w.needs("last", "a", "bad", "b")
		w.needs("a")
		w.needs("b")
		w.add("bad", func(*engine.Run) error { return errFail })
		must(t, w, s, engine.Options{Workers: workers, FailFast: true}, w.all())
		if asleep.Load() != 0 {
			t.Errorf("%d still sleep", asleep.Load())
		}
		w.took()
		must(t, w, s, engine.Options{Workers: workers, FailFast: true}, w.all())
		if ran := w.took(); len(ran) > 0 {
			t.Errorf("a known failure stops everything, but %q ran", ran)
		}
	})
}

func TestForce(t *testing.T) {
	w, s := newWorld(), newStore()
	w.needs("a", "b")
	w.needs("b", "c")
	w.needs("c")
	must(t, w, s, engine.Options{Workers: 2}, w.all())
	w.took()
	rs := must(t, w, s, engine.Options{Workers: 2, Force: func(t *engine.Task) bool { return t.Name != "b" }}, w.names("a", "c"))
	wantRan(t, w, "a", "c")
	if why := rs["a"].Why.Cause; why != engine.Forced {
		t.Errorf("a ran for %d", why)
	}
	if rs["b"].State != engine.Held {
		t.Errorf("b: %+v", rs["b"])
	}
}

// Of a trace that is known to hold nothing is looked at, and tasks that only it needs are not met.
func TestHolds(t *testing.T) {
	w, s := newWorld(), newStore()
	w.needs("a", "b")
	w.needs("b", "c")
	w.add("c", func(r *engine.Run) error { w.see(r, "f"); return nil })
	must(t, w, s, engine.Options{Workers: 2}, w.all())
	w.took()
	w.files["f"] = "new"
	w.observed = func(subject string) { t.Errorf("looked at %s", subject) }
	known := engine.Options{Workers: 2, Holds: func(task *engine.Task, _ *engine.Trace) bool { return task.Name == "b" }}
	rs := must(t, w, s, known, w.names("a"))
	wantRan(t, w)
	if rs["a"].State != engine.Held || rs["c"] != nil {
		t.Errorf("a: %+v, c: %+v", rs["a"], rs["c"])
	}
}

// What differs and is harmless does not make a task run; what follows it in the trace is compared all the same.
func TestHarmless(t *testing.T) {
	w, s := newWorld(), newStore()
	w.add("a", func(r *engine.Run) error {
		w.see(r, "stamp")
		w.see(r, "f")
		if _, ok := w.see(r, "bad"); ok {
			return errors.New("bad")
		}
		_, err := r.Need("b")
		return err
	})
	w.needs("b", "c")
	w.add("c", func(r *engine.Run) error { w.see(r, "g"); return nil })
	harmless := func(t *engine.Task, o *engine.Observation) bool { return t.Name == "a" && o.Subject == "stamp" }
	o := engine.Options{Workers: 2, Harmless: harmless}
	must(t, w, s, o, w.all())
	w.took()

	w.files["stamp"] = "new"
	want := []engine.Reason{{Cause: engine.InputDiffers, New: w.hashFile("stamp"), Observation: engine.Observation{Kind: sawFile, Subject: "stamp"}}}
	rs := must(t, w, s, o, w.all())
	wantRan(t, w)
	if rs["a"].State != engine.Held || !slices.Equal(rs["a"].Ignored, want) || rs["b"].Ignored != nil {
		t.Errorf("a: %+v, b: %+v", rs["a"], rs["b"])
	}
	w.files["g"] = "new"
	must(t, w, s, o, w.all())
	wantRan(t, w, "c")

	w.files["f"] = "new"
	rs = must(t, w, s, o, w.all())
	wantRan(t, w, "a")
	if why := rs["a"].Why; why.Observation.Subject != "f" || rs["a"].Ignored != nil {
		t.Errorf("a ran because of %+v, and ignored %+v", why, rs["a"].Ignored)
	}

	w.files["stamp"] = "newer"
	must(t, w, s, engine.Options{Workers: 2}, w.all())
	wantRan(t, w, "a")

	w.files["bad"] = "" // a failure is not held
	must(t, w, s, o, w.all())
	w.took()
	w.files["stamp"] = "newest"
	must(t, w, s, o, w.all())
	wantRan(t, w, "a")
}

// TestHarmlessProductLost: a task whose result holds but for a lost product runs, even if an older result would hold by what is harmless.
func TestHarmlessProductLost(t *testing.T) {
	w, s := newWorld(), newStore()
	a := w.add("a", nil)
	a.Run = func(r *engine.Run) (engine.Output, error) {
		text, _ := w.see(r, "stamp")
		return engine.Output{Products: []engine.Product{{SubID: 1, Name: "p", Hash: w.blob(text)}}}, nil
	}
	o := engine.Options{Workers: 1, Harmless: func(*engine.Task, *engine.Observation) bool { return true }}
	for _, stamp := range []string{"old", "new"} {
		w.files["stamp"] = stamp
		must(t, w, s, engine.Options{Workers: 1}, w.all())
	}
	delete(w.blobs, digest.Of([]byte("new")))
	if r := must(t, w, s, o, w.all())["a"]; r.State != engine.Ran || r.Why.Cause != engine.ProductLost {
		t.Errorf("state %d because of %+v, ignored %+v", r.State, r.Why, r.Ignored)
	}
}

// TestHarmlessUndone: a task whose input is as it was before the last run does not get back what was made from an older state of what is
// harmless.
func TestHarmlessUndone(t *testing.T) {
	w, s := newWorld(), newStore()
	a := w.add("a", nil)
	a.Run = func(r *engine.Run) (engine.Output, error) {
		stamp, _ := w.see(r, "stamp")
		f, _ := w.see(r, "f")
		return engine.Output{Products: []engine.Product{{SubID: 1, Name: "p", Hash: w.blob(stamp + f)}}}, nil
	}
	o := engine.Options{Workers: 1, Harmless: func(_ *engine.Task, o *engine.Observation) bool { return o.Subject == "stamp" }}
	for _, c := range []struct{ stamp, f, ran, product string }{
		{"1", "old", "a", "1old"}, {"2", "old", "", "1old"}, {"2", "new", "a", "2new"}, {"2", "old", "a", "2old"}, {"3", "old", "", "2old"},
		{"1", "old", "", "2old"}, {"2", "new", "", "2new"},
	} {
		w.files["stamp"], w.files["f"] = c.stamp, c.f
		r := must(t, w, s, o, w.all())["a"]
		wantRan(t, w, strings.Fields(c.ran)...)
		if r.Trace.Products[0].Hash != digest.Of([]byte(c.product)) {
			t.Errorf("stamp %s, f %s: not product %s", c.stamp, c.f, c.product)
		}
	}
}

func TestReasons(t *testing.T) {
	w, s := newWorld(), newStore()
	product := engine.Product{SubID: 1, Name: "p", Hash: w.blob("p")}
	a := w.add("a", nil)
	a.Run = func(r *engine.Run) (engine.Output, error) {
		w.see(r, "f")
		w.see(r, "g")
		return engine.Output{Products: []engine.Product{product}}, nil
	}
	why := func(o engine.Options) *engine.Reason {
		t.Helper()
		w.blob("p")
		rs := must(t, w, s, o, w.all())
		if rs["a"].State != engine.Ran || rs["a"].Trace.Why != rs["a"].Why {
			t.Errorf("state %d, traced why %+v, why %+v", rs["a"].State, rs["a"].Trace.Why, rs["a"].Why)
		}
		return rs["a"].Why
	}
	is := func(got *engine.Reason, want engine.Reason) {
		t.Helper()
		if got == nil || *got != want {
			t.Errorf("because of %+v, want %+v", got, want)
		}
	}
	o := engine.Options{Workers: 1}
	is(why(o), engine.Reason{Cause: engine.NeverBuilt})
	w.files["g"] = "new"
	is(why(o), engine.Reason{Cause: engine.InputDiffers, New: w.hashFile("g"), Observation: engine.Observation{Kind: sawFile, Subject: "g"}})
	a.Fingerprint = digest.Of([]byte("v2"))
	is(why(o), engine.Reason{Cause: engine.CodeChanged})
	delete(w.blobs, product.Hash)
	rs := must(t, w, s, engine.Options{DryRun: true}, w.all())
	is(rs["a"].Why, engine.Reason{Cause: engine.ProductLost, Subject: "p"})
	is(why(engine.Options{Workers: 1, Force: func(*engine.Task) bool { return true }}), engine.Reason{Cause: engine.Forced})
}

func TestUndecided(t *testing.T) {
	w, s := newWorld(), newStore()
	w.add("low", func(r *engine.Run) error { w.see(r, "f"); return nil })
	w.needs("top", "low")
	must(t, w, s, engine.Options{Workers: 1}, w.all())
	w.files["f"] = "new"
	w.took()
	rs := must(t, w, s, engine.Options{DryRun: true}, w.all())
	wantRan(t, w)
	if rs["low"].State != engine.WouldRun || rs["low"].Why.Cause != engine.InputDiffers {
		t.Errorf("low: %+v", rs["low"])
	}
	if r := rs["top"]; r.State != engine.Undecided || r.Why.Cause != engine.NeedsUndecided || r.Why.Observation.Subject != "low" {
		t.Errorf("top: %+v", rs["top"])
	}
}

func TestPassingErrorLeavesNoTrace(t *testing.T) {
	w, s := newWorld(), newStore()
	full := true
	a := w.add("a", func(r *engine.Run) error {
		w.see(r, "f")
		if full {
			return fmt.Errorf("the disk is full: %w", engine.ErrPassing)
		}
		return nil
	})
	w.needs("b", "a")
	for range 2 {
		rs := must(t, w, s, engine.Options{Workers: 1}, w.all())
		if rs["a"].Trace.Outcome != engine.Failed || rs["b"].Trace.Outcome != engine.NeedsFailed {
			t.Errorf("%+v, %+v", rs["a"].Trace, rs["b"].Trace)
		}
		if len(s.Traces(a.Key)) != 0 {
			t.Error("there is a trace")
		}
	}
	w.took()
	full = false
	rs := must(t, w, s, engine.Options{Workers: 1}, w.all())
	wantRan(t, w, "a", "b")
	if rs["b"].Trace.Outcome != engine.Succeeded {
		t.Errorf("%+v", rs["b"].Trace)
	}
}

// A store that cannot write ends the build: what runs is let finish, nothing is started.
func TestStoreError(t *testing.T) {
	atWorkers(t, func(t *testing.T, workers int) {
		w, s := newWorld(), newStore()
		s.err, s.failAt = fs.ErrPermission, 3
		for i := range 40 {
			w.needs(fmt.Sprintf("a%02d", i), "low", fmt.Sprintf("b%02d", i))
			w.needs(fmt.Sprintf("b%02d", i))
		}
		w.needs("low")
		_, err := build(t, context.Background(), w, s, engine.Options{Workers: workers}, w.all())
		if !errors.Is(err, fs.ErrPermission) {
			t.Errorf("error %v", err)
		}
		if s.adds > 3+workers {
			t.Errorf("%d runs ended, with %d workers", s.adds, workers)
		}
	})
}

// One run asks from several goroutines.
func TestConcurrentNeeds(t *testing.T) {
	atWorkers(t, func(t *testing.T, workers int) {
		w, s := newWorld(), newStore()
		var names []string
		for i := range 20 {
			n := fmt.Sprintf("low%02d", i)
			names = append(names, n)
			w.add(n, func(r *engine.Run) error { w.see(r, n); return nil })
		}
		w.add("top", func(r *engine.Run) error {
			var g sync.WaitGroup
			for _, n := range names {
				g.Go(func() {
					if _, err := r.Need(n, "low00"); err != nil {
						t.Error(err)
					}
					w.see(r, "by "+n)
				})
			}
			g.Wait()
			return nil
		})
		rs := must(t, w, s, engine.Options{Workers: workers}, w.names("top"))
		seen := map[string]bool{}
		for _, o := range rs["top"].Trace.Observations {
			if seen[o.Subject] {
				t.Errorf("%s was recorded twice", o.Subject)
			}
			seen[o.Subject] = true
		}
		if len(seen) != 40 || len(w.took()) != 21 {
			t.Errorf("%d observations", len(seen))
		}
		w.files["low07"] = "x"
		must(t, w, s, engine.Options{Workers: workers}, w.names("top"))
		wantRan(t, w, "low07")
	})
}

func nothing() {}

// A subject is recorded once, however often a run looks at it, and if it always sees the same, that is all.
func TestOneObservationASubject(t *testing.T) {
	w, s := newWorld(), newStore()
	first, set := digest.Of([]byte("first")), digest.Of([]byte("set"))
	w.add("a", func(r *engine.Run) error {
		for range 2 {
			for i := range 40 { // more than are looked through one by one
				r.See(sawFile, fmt.Sprint(i), first)
				r.SeeLater(sawFile, fmt.Sprint(i))(first, nothing)
			}
		}
		once, again := r.SeeLater(sawFile, "later"), r.SeeLater(sawFile, "later")
		r.See(sawGlob, "0", digest.Hash{}) // same subject, other kind
		r.See(sawFile, "later", set)
		again(set, nothing)
		once(set, nothing)
		return nil
	})
	obs := must(t, w, s, engine.Options{Workers: 1}, w.all())["a"].Trace.Observations
	if len(obs) != 42 {
		t.Fatalf("%d observations", len(obs))
	}
	for i, o := range obs[:40] {
		if o.Subject != fmt.Sprint(i) || o.Value != first {
			t.Errorf("%d: %+v", i, o)
		}
	}
	if obs[40].Value != set || obs[41].Kind != sawGlob {
		t.Errorf("%+v", obs[40:])
	}
}

// What a run made that saw two values of one subject is worth nothing: it runs again, and if that does not help, there is no trace of it.
func TestTornRuns(t *testing.T) {
	first, second := digest.Of([]byte("first")), digest.Of([]byte("second"))
	for name, torn := range map[string]func(r *engine.Run){
		"seen twice": func(r *engine.Run) { r.See(sawFile, "f", first); r.See(sawFile, "f", second) },
		"among many": func(r *engine.Run) {
			for i := range 40 {
				r.See(sawFile, fmt.Sprint(i), first)
			}
			r.See(sawFile, "3", second)
		},
		"gone":      func(r *engine.Run) { r.See(sawFile, "f", first); r.See(sawFile, "f", digest.Hash{}) },
		"come":      func(r *engine.Run) { r.See(sawGlob, "f", digest.Hash{}); r.See(sawGlob, "f", first) },
		"later":     func(r *engine.Run) { r.See(sawFile, "f", first); r.SeeLater(sawFile, "f")(second, nothing) },
		"meanwhile": func(r *engine.Run) { set := r.SeeLater(sawFile, "f"); r.See(sawFile, "f", first); set(second, nothing) },
		"both later": func(r *engine.Run) {
			a, b := r.SeeLater(sawFile, "f"), r.SeeLater(sawFile, "f")
			b(first, nothing)
			a(second, nothing)
		},
		"by its task": func(r *engine.Run) { r.Tear(sawFile, "f") },
	} {
		t.Run(name, func(t *testing.T) {
			for times := range 5 {
				w, s := newWorld(), newStore()
				left, runs := times, 0
				a := w.add("a", func(r *engine.Run) error {
					if runs++; left > 0 {
						left--
						torn(r)
						if r.Torn() == nil {
							t.Error("it does not know")
						}
					}
					return nil
				})
				rs := must(t, w, s, engine.Options{Workers: 1}, w.all())
				if ok := rs["a"].Trace.Outcome == engine.Succeeded; ok != (times < 3) || ok != (len(s.Traces(a.Key)) == 1) || runs != min(times, 2)+1 {
					t.Errorf("torn %d times: outcome %d, %d traces, %d runs", times, rs["a"].Trace.Outcome, len(s.Traces(a.Key)), runs)
				}
			}
		})
	}
}

// What a task left running when it returned is told so, and changes nothing.
func TestRunIsOver(t *testing.T) {
	w, s := newWorld(), newStore()
	w.needs("b")
	var left *engine.Run
	var set, before func(digest.Hash, func())
	learnt := 0
	asked := make(chan error, 1)
	w.add("a", func(r *engine.Run) error {
		left = r
		set, before = r.SeeLater(sawFile, "later"), r.SeeLater(sawFile, "before")
		before(digest.Of([]byte("x")), func() { learnt++ })
		began := make(chan bool)
		go func() {
			close(began)
			_, err := r.Need("b") // may wait when the run ends, which waits for it then
			asked <- err
		}()
		<-began
		return nil
	})
	tr := must(t, w, s, engine.Options{Workers: 2}, w.names("a"))["a"].Trace
	if err := <-asked; err != nil && !errors.Is(err, engine.ErrOver) {
		t.Error(err)
	}
	n := len(tr.Observations)
	left.See(sawFile, "f", digest.Of([]byte("x")))
	set(digest.Of([]byte("x")), func() { learnt++ })
	if learnt != 1 {
		t.Errorf("of two, %d were learnt", learnt)
	}
	left.Tear(sawFile, "f")
	if _, err := left.Need("b"); !errors.Is(err, engine.ErrOver) {
		t.Errorf("a run that is over asks: %v", err)
	}
	if len(tr.Observations) != n || !tr.Observations[0].Value.IsZero() || left.Torn() != nil {
		t.Errorf("it sees: %+v", tr.Observations)
	}
}

func TestNobodyToNeed(t *testing.T) {
	w, s := newWorld(), newStore()
	w.add("a", func(r *engine.Run) error {
		if _, err := r.Need("nobody"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("error %v", err)
		}
		return nil
	})
	must(t, w, s, engine.Options{Workers: 1}, w.all())
	w.took()
	must(t, w, s, engine.Options{Workers: 1}, w.all())
	wantRan(t, w)
	w.needs("nobody")
	ran := false
	w.tasks["a"].Run = func(r *engine.Run) (engine.Output, error) {
		_, err := r.Need("nobody")
		ran = true
		return engine.Output{}, err
	}
	must(t, w, s, engine.Options{Workers: 1}, w.names("a"))
	if !ran {
		t.Error("a did not notice that there is somebody now")
	}
}

// The order of results does not depend on which run met a task first.
func TestResultsInStableOrder(t *testing.T) {
	var want string
	for i := range 100 {
		w, s := newWorld(), newStore()
		for _, n := range []string{"a", "b", "c"} {
			w.needs(n, "of "+n)
			w.needs("of "+n, "deep "+n)
			w.needs("deep " + n)
		}
		rs, err := engine.Build(context.Background(), w, s, engine.Options{Workers: 1 + i%8}, w.names("c", "a", "b"))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range rs {
			names = append(names, r.Task.Name)
		}
		got := strings.Join(names, ", ")
		if want == "" {
			want = got
		}
		if got != want {
			t.Fatalf("order %s, before that %s", got, want)
		}
	}
}
