package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/engine"
)

// A task that is overdue on another machine starts here as well. The first run that ends gives the result, and the other one is cancelled:
// here is who is first, and what the run here does when it is not.
func TestRace(t *testing.T) {
	for name, c := range map[string]struct {
		here, there func(r *engine.Run, started, let chan struct{}) error
		worker      string
		waits       bool // the other task is done when this one is
	}{
		"a machine that hangs": {
			here:  func(*engine.Run, chan struct{}, chan struct{}) error { return nil },
			there: func(r *engine.Run, _, _ chan struct{}) error { <-r.Context().Done(); return r.Context().Err() },
		},
		"one that ends after all": {
			here: func(r *engine.Run, started, _ chan struct{}) error {
				close(started)
				<-r.Context().Done()
				return r.Context().Err()
			},
			there:  func(_ *engine.Run, started, _ chan struct{}) error { <-started; return nil },
			worker: "w",
		},
		"one that ends while the run here waits for another task": {
			here: func(r *engine.Run, started, _ chan struct{}) error {
				close(started)
				_, err := r.Need("slow")
				return err
			},
			there:  func(_ *engine.Run, started, _ chan struct{}) error { <-started; return nil },
			worker: "w", waits: true,
		},
		"one that fails": {
			here: func(_ *engine.Run, started, let chan struct{}) error { close(started); <-let; return nil },
			there: func(_ *engine.Run, started, let chan struct{}) error {
				<-started
				defer close(let)
				return errors.New("there")
			},
		},
		"one that sends the task back too late": {
			here: func(_ *engine.Run, started, let chan struct{}) error { close(started); <-let; return nil },
			there: func(_ *engine.Run, started, let chan struct{}) error {
				<-started
				defer close(let)
				return engine.ErrHere
			},
		},
		"one where the task needs another one that is not done": {
			here: func(_ *engine.Run, started, let chan struct{}) error { close(started); <-let; return nil },
			there: func(r *engine.Run, started, let chan struct{}) error {
				<-started
				defer close(let)
				if _, err := r.Need("t2"); err == nil || !r.Rival() {
					t.Errorf("the need of a rival: %v", err)
				}
				return nil
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := newWorld(), newStore()
			started, let := make(chan struct{}), make(chan struct{})
			finished := 0
			w.finished = func(r *engine.Result) {
				if r.Task.Name == "t1" {
					if finished++; c.waits {
						close(let)
					}
				}
			}
			w.add("slow", func(*engine.Run) error { <-let; return nil })
			w.add("t2", func(*engine.Run) error { return nil })
			task := w.add("t1", func(r *engine.Run) error {
				if !r.Away() {
					return c.here(r, started, let)
				}
				end := r.Elsewhere(0)
				for !r.Rival() { // until the run here has begun
					if r.Context().Err() != nil {
						break
					}
				}
				end()
				return c.there(r, started, let)
			})
			results, err := engine.Build(context.Background(), w, s, engine.Options{Workers: 2, Away: onlyThere{}}, []*engine.Task{task})
			if err != nil || results[0].State != engine.Ran || results[0].Trace.Outcome != engine.Succeeded || results[0].Trace.Worker != c.worker || finished != 1 {
				t.Errorf("%v, %+v, finished %d times", err, results[0], finished)
			}
		})
	}
}

// onlyThere has t1 run there.
type onlyThere struct{}

func (onlyThere) Slots() int                               { return 1 }
func (onlyThere) Only() bool                               { return true }
func (onlyThere) May(t *engine.Task, _ *engine.Trace) bool { return t.Name == "t1" }
func (onlyThere) Takes(*engine.Task, *engine.Trace, float64) (there, decided bool) {
	return true, true
}
