package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

// ErrPassing marks an error that may pass without any input changing: a full disk, a file that changed while it was read.
// A run that fails with it leaves no trace.
var ErrPassing = errors.New("may pass")

// NeedError reports that a needed task failed.
type NeedError struct {
	Subject string
	Name    string // the task that was asked for
	Root    string // the task that failed first
}

func (n *NeedError) Error() string {
	if n.Root != n.Name {
		return fmt.Sprintf("needs %s, which failed because of %s", n.Name, n.Root)
	}
	return fmt.Sprintf("needs %s, which failed", n.Name)
}

// CycleError reports that a task needs itself. Cycle begins with the smallest name.
type CycleError struct{ Cycle []string }

func (c *CycleError) Error() string {
	return "cycle: " + strings.Join(append(c.Cycle[:len(c.Cycle):len(c.Cycle)], c.Cycle[0]), " -> ")
}

// Run is one run of a task. It records what the task looks at. Its methods may be called from several goroutines.
type Run struct {
	ctx  context.Context
	node *node
	b    *build

	unrecorded bool // see Unrecorded
	away       bool // on another machine

	asking  sync.Mutex // held during Need, so that a run is suspended at most once
	cancel  func()     // cancels ctx; nil if no control can reach the run
	again   bool       // what it saw has changed; guarded by b.mu
	stopped bool       // something it waited for was not done when the build stopped; guarded by b.mu

	mu    sync.Mutex
	seen  []Observation
	known map[observationID]int // indexes of observations, if there are more than fewObservations
	later map[int]bool          // indexes of observations without a value yet
	cycle *CycleError
	torn  *Observation // the first one that it saw with two values
	over  bool         // the run has ended; nothing more is recorded
}

type observationID struct {
	kind    Kind
	subID   uint32
	subject string
}

// Up to fewObservations are searched one by one; most tasks have one or two, and a map costs more.
const fewObservations = 16

// Context is cancelled when the build ends, or when something that the run saw has changed.
func (r *Run) Context() context.Context { return r.ctx }

// Task is the task that runs.
func (r *Run) Task() *Task { return r.node.task }

// ErrOver is the error of calls after the end of a run, for example from a goroutine that it left
// behind.
var ErrOver = errors.New("the run is over")

// See records a leaf observation. The first value of a subject counts; if another one follows, the run
// is torn.
func (r *Run) See(kind Kind, subject string, value digest.Hash) {
	r.record(Observation{Kind: kind, Subject: subject, Value: value})
}

// SeeLater reserves the place of a leaf observation whose value is known later: for a large file that is hashed while
// it is read. The returned function sets the value, and calls learn, which keeps it where others read it after the run. When the
// run has ended, it does nothing.
func (r *Run) SeeLater(kind Kind, subject string) func(h digest.Hash, learn func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := Observation{Kind: kind, Subject: subject}
	at := r.place(o)
	if at < 0 && r.cycle == nil && !r.over && !r.unrecorded {
		at = r.add(o)
		if r.later == nil {
			r.later = map[int]bool{}
		}
		r.later[at] = true
	}
	return func(h digest.Hash, learn func()) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.over {
			return
		}
		learn()
		if at >= 0 {
			r.settle(at, h)
		}
	}
}

// Tear records that a run saw two states of a subject. Its result is discarded; it runs again, a few times, and then
// fails with ErrPassing.
func (r *Run) Tear(kind Kind, subject string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tear(&Observation{Kind: kind, Subject: subject})
}

func (r *Run) tear(o *Observation) {
	if r.torn == nil && !r.over {
		r.torn = o
	}
}

// Torn is the observation that had two values, or nil.
func (r *Run) Torn() *Observation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.torn
}

// End waits for a Need or NeedMemory under way; nothing is recorded afterwards. The engine calls it when a task's Run
// has returned; Run may call it before.
func (r *Run) End() {
	r.asking.Lock()
	defer r.asking.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
}

// isOver reports whether the run has ended.
func (r *Run) isOver() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over
}

// record adds an observation. If it was made before, its value must be the same.
func (r *Run) record(o Observation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cycle != nil || r.over || r.unrecorded {
		return
	}
	if at := r.place(o); at >= 0 {
		r.settle(at, o.Value)
		return
	}
	r.add(o)
}

func (r *Run) add(o Observation) int {
	r.seen = append(r.seen, o)
	if r.known != nil {
		r.known[observationID{o.Kind, o.SubID, o.Subject}] = len(r.seen) - 1
	}
	return len(r.seen) - 1
}

// settle sets the value of a known observation, or compares it.
func (r *Run) settle(at int, value digest.Hash) {
	switch o := &r.seen[at]; {
	case r.later[at]:
		delete(r.later, at)
		o.Value = value
	case o.Value != value:
		r.tear(&Observation{Kind: o.Kind, SubID: o.SubID, Subject: o.Subject})
	}
}

// place is the index of the same observation, or -1.
func (r *Run) place(o Observation) int {
	if len(r.seen) < fewObservations {
		for i := range r.seen {
			if s := &r.seen[i]; s.Kind == o.Kind && s.SubID == o.SubID && s.Subject == o.Subject {
				return i
			}
		}
		return -1
	}
	if r.known == nil {
		r.known = map[observationID]int{}
		for i, s := range r.seen {
			r.known[observationID{s.Kind, s.SubID, s.Subject}] = i
		}
	}
	if at, ok := r.known[observationID{o.Kind, o.SubID, o.Subject}]; ok {
		return at
	}
	return -1
}

// Need brings tasks up to date, in parallel, and returns their products; the run is suspended meanwhile and its slot is
// free. It records which products they have, not their contents. For a subject that means no task the error is
// fs.ErrNotExist, for a task that failed *NeedError; the first error in the order of subjects is returned. All are
// recorded anyway, because the run waited for all. A run in a cycle gets *CycleError from then on, and fails whatever
// it returns.
func (r *Run) Need(subjects ...string) ([][]Product, error) {
	r.asking.Lock()
	defer r.asking.Unlock()
	if err := r.refused(); err != nil {
		return nil, err
	}
	answers, cycle, err := r.b.await(r, subjects)
	if err != nil {
		return nil, err
	}
	all := make([][]Product, len(subjects))
	var first error
	for i, a := range answers {
		o := Observation{Kind: Outline, Subject: subjects[i], Joined: i > 0}
		var err error
		switch {
		case cycle != nil && i == len(answers)-1:
			o.Value = cycleValue(cycle)
		case a.node == nil:
			err = fmt.Errorf("%s: %w", subjects[i], fs.ErrNotExist)
		default:
			o.Value = observed(r.node.task, a.result, &o)
			if a.result.Trace.Outcome != Succeeded {
				err = &NeedError{Subject: subjects[i], Name: a.result.Task.Name, Root: rootOf(a.result)}
			}
			all[i] = a.result.Trace.Products
		}
		r.record(o)
		if first == nil {
			first = err
		}
	}
	if cycle != nil {
		return nil, r.cyclic(cycle)
	}
	if first != nil {
		return nil, first
	}
	return all, nil
}

// Use records that the run read the content of a product that Need returned.
func (r *Run) Use(subject string, p Product) {
	r.record(Observation{Kind: Content, Subject: subject, SubID: p.SubID, Value: p.content()})
}

func (r *Run) cyclic(cycle []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cycle = &CycleError{cycle}
	return r.cycle
}

// refused returns why a run may not ask, or nil.
func (r *Run) refused() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.over:
		return ErrOver
	case r.unrecorded:
		return errUnrecorded
	case r.cycle != nil:
		return r.cycle
	}
	return nil
}
