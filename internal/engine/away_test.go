package engine_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/engine"
)

// otherMachines decide at random, but the same for one seed.
type otherMachines struct {
	slots int
	only  bool
	seed  int
	asked int
	waits []float64
}

func (o *otherMachines) Slots() int { return o.slots }
func (o *otherMachines) Only() bool { return o.only }

func (o *otherMachines) May(t *engine.Task, _ *engine.Trace) bool {
	return (int(t.Name[1])+o.seed)%4 > 0
}

func (o *otherMachines) Takes(_ *engine.Task, _ *engine.Trace, wait float64) (there, decided bool) {
	o.asked++
	o.waits = append(o.waits, wait)
	return (o.asked+o.seed)%3 > 0, o.only || (o.asked+o.seed)%4 > 0
}

// Each task runs once, in a slot here or elsewhere, and never are there more at once than slots.
func TestAwaySlots(t *testing.T) {
	w, s := newWorld(), newStore()
	var mu sync.Mutex
	here, away, most, mostAway, back := 0, 0, 0, 0, 0
	var tasks []*engine.Task
	for i := range 200 {
		tasks = append(tasks, w.add(fmt.Sprintf("t%03d", i), func(r *engine.Run) error {
			mu.Lock()
			n := &here
			if r.Away() {
				n = &away
			}
			*n++
			most, mostAway = max(most, here), max(mostAway, away)
			mu.Unlock()
			defer func() {
				mu.Lock()
				*n--
				mu.Unlock()
			}()
			if r.Away() && i%10 == 0 {
				mu.Lock()
				back++
				mu.Unlock()
				return engine.ErrHere
			}
			return nil
		}))
	}
	o := &otherMachines{slots: 3, only: true, seed: 1}
	results, err := engine.Build(context.Background(), w, s, engine.Options{Workers: 2, Away: o}, tasks)
	if err != nil || len(results) != len(tasks) {
		t.Fatal(err, len(results))
	}
	there := 0
	for _, r := range results {
		if r.State != engine.Ran || r.Trace.Outcome != engine.Succeeded || (r.Remote != nil) != (r.Trace.Worker == "w") {
			t.Errorf("%s: %+v", r.Task.Name, r)
		}
		if r.Remote != nil {
			there++
		}
	}
	if most > 2 || mostAway > 3 || there == 0 || back == 0 || there+back > len(tasks) {
		t.Errorf("at most %d here and %d elsewhere; %d ran there, %d came back", most, mostAway, there, back)
	}
	// Of nothing is known how long it takes: the first that is asked for waits for all, at a second each on two workers.
	if !slices.IsSortedFunc(o.waits[:3], func(a, b float64) int { return int(b - a) }) || o.waits[0] < 50 {
		t.Errorf("waits are %v...", o.waits[:3])
	}
}

// A run that is away and waits for another task frees its slot, which that one may take.
func TestAwayWaits(t *testing.T) {
	w, s := newWorld(), newStore()
	w.needs("t2", "t5")
	w.needs("t5", "t6")
	w.needs("t6")
	o := &otherMachines{slots: 1, only: true, seed: 2}
	results, err := engine.Build(context.Background(), w, s, engine.Options{Workers: 1, Away: o}, w.all())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.State != engine.Ran || r.Trace.Outcome != engine.Succeeded {
			t.Errorf("%s: %+v", r.Task.Name, r)
		}
	}
}

// What a run without a record sees is not in a trace, and it cannot ask for other tasks.
func TestUnrecorded(t *testing.T) {
	w, s := newWorld(), newStore()
	w.files["f"] = "x"
	w.add("other", func(*engine.Run) error { return nil })
	task := w.add("t", func(r *engine.Run) error {
		u := engine.Unrecorded(r.Context())
		w.see(u, "f")
		if _, err := u.Need("other"); err == nil {
			t.Error("it asked for another task")
		}
		u.SeeLater(sawFile, "f")(w.hashFile("f"), nothing)
		if u.Recorded() != 0 || r.Last() != nil {
			t.Error(u.Recorded(), r.Last())
		}
		return nil
	})
	results, err := engine.Build(context.Background(), w, s, engine.Options{Workers: 1}, []*engine.Task{task})
	if err != nil || len(results) != 1 || len(results[0].Trace.Observations) != 0 {
		t.Errorf("%v, %+v", err, results)
	}
}
