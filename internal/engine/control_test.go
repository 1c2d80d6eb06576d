package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/engine"
)

// A task that is wanted goes before others, with what it needs; so does one that was wanted before the build began, or that First names.
func TestHurry(t *testing.T) {
	for _, how := range []string{"while it runs", "before", "first"} {
		w, s := newWorld(), newStore()
		c := &engine.Control{}
		var order []string
		note := func(name string) { order = append(order, name) }
		opts := engine.Options{Workers: 1, Control: c}
		w.add("0", func(r *engine.Run) error {
			if note("0"); how == "while it runs" {
				if res, known := c.Prioritise("wanted"); res != nil || !known {
					t.Errorf("%+v, %v", res, known)
				}
				if _, known := c.Prioritise("none"); known {
					t.Error("a task that is none is known")
				}
			}
			return nil
		})
		for _, n := range []string{"1", "2", "low"} {
			w.add(n, func(*engine.Run) error { note(n); return nil })
		}
		w.add("wanted", func(r *engine.Run) error {
			_, err := r.Need("low")
			note("wanted")
			return err
		})
		want := "0 low wanted 1 2"
		switch how {
		case "before":
			c.Prioritise("wanted")
			want = "low wanted 0 1 2"
		case "first":
			opts.First = func(t *engine.Task, _ *engine.Reason) bool { return t.Name == "wanted" }
			want = "low wanted 0 1 2"
		}
		must(t, w, s, opts, w.names("0", "1", "2", "low", "wanted"))
		if got := strings.Join(order, " "); got != want {
			t.Errorf("%s: %s, not %s", how, got, want)
		}
	}
}

// A task that waits for others hurries these, too, and one that is done is told of at once.
func TestHurryWhoWaits(t *testing.T) {
	w, s := newWorld(), newStore()
	c := &engine.Control{}
	var order []string
	w.add("top", func(r *engine.Run) error {
		_, err := r.Need("low")
		order = append(order, "top")
		return err
	})
	w.add("a", func(*engine.Run) error {
		order = append(order, "a")
		c.Prioritise("top") // which is suspended by now
		return nil
	})
	for _, n := range []string{"b", "low"} {
		w.add(n, func(*engine.Run) error {
			if order = append(order, n); n == "b" {
				if res, known := c.Prioritise("a"); res == nil || res.Trace == nil || !known {
					t.Errorf("a is done: %+v, %v", res, known)
				}
			}
			return nil
		})
	}
	must(t, w, s, engine.Options{Workers: 1, Control: c}, w.names("top", "a", "b", "low"))
	if !slices.Contains([]string{"low top a b", "a low top b"}, strings.Join(order, " ")) {
		t.Error(order)
	}
}

// A running task that saw what changed is cancelled and runs again; others go on.
func TestTouch(t *testing.T) {
	atWorkers(t, func(t *testing.T, workers int) {
		w, s := newWorld(), newStore()
		w.files["f"], w.files["g"] = "old", "same"
		c := &engine.Control{}
		runs := map[string]int{}
		other := make(chan struct{}) // closed once it has run: files and runs are nobody else's then
		w.add("other", func(r *engine.Run) error {
			w.see(r, "g")
			runs["other"]++
			close(other)
			return nil
		})
		w.add("reads", func(r *engine.Run) error {
			<-other
			w.see(r, "f")
			if runs["reads"]++; runs["reads"] == 1 {
				w.files["f"] = "new"
				if n := c.Invalidate(func(kind engine.Kind, subject string) bool { return kind == sawFile && subject == "f" }); n != 1 {
					t.Errorf("touched %d", n)
				}
				<-r.Context().Done()
				return r.Context().Err()
			}
			return r.Context().Err()
		})
		rs := must(t, w, s, engine.Options{Workers: workers, Control: c}, w.all())
		if runs["reads"] != 2 || runs["other"] != 1 || rs["reads"].State != engine.Ran || len(s.traces) != 2 {
			t.Errorf("%v, %+v, %d traces", runs, rs["reads"], len(s.traces))
		}
		if got := rs["reads"].Trace.Observations; len(got) != 1 || got[0].Value != w.hashFile("f") {
			t.Errorf("%+v", got)
		}
		must(t, w, s, engine.Options{Workers: workers}, w.all())
		if runs["reads"] != 2 {
			t.Error("its trace does not hold")
		}
	})
}

// A build that is halted keeps what is finished and lets go on what runs, unless what that saw changed. What was wanted of it is wanted of
// the next.
func TestHalt(t *testing.T) {
	for _, touched := range []bool{false, true} {
		w, s := newWorld(), newStore()
		w.files["f"] = "old"
		c := &engine.Control{}
		w.add("a", func(r *engine.Run) error {
			w.see(r, "f")
			c.Halt()
			if touched {
				c.Invalidate(func(engine.Kind, string) bool { return true })
			}
			return nil
		})
		w.add("b", func(*engine.Run) error { return nil })
		rs, err := build(t, context.Background(), w, s, engine.Options{Workers: 1, Control: c}, w.all())
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]engine.State{false: engine.Ran, true: engine.Stopped}[touched]; rs["a"].State != want || rs["b"].State != engine.Stopped {
			t.Errorf("touched %v: %+v, %+v", touched, rs["a"], rs["b"])
		}
		if rs, _ = build(t, context.Background(), w, s, engine.Options{Workers: 1, Control: c}, w.all()); rs["b"].State != engine.Stopped {
			t.Errorf("another build of the same request went on: %+v", rs["b"])
		}
	}
}

// Left adds up what waits, by what it took before.
func TestLeft(t *testing.T) {
	w, s := newWorld(), newStore()
	c := &engine.Control{}
	if c.Left() != 0 {
		t.Error("without a build")
	}
	left := 0.0
	for _, n := range []string{"a", "b", "c"} {
		task := w.add(n, func(*engine.Run) error {
			if n == "a" {
				left = c.Left()
			}
			return nil
		})
		task.Estimate = 3
	}
	must(t, w, s, engine.Options{Workers: 1, Control: c}, w.names("a", "b", "c"))
	if left != 6 {
		t.Errorf("%v s are left, not 6", left)
	}
}
