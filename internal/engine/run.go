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

// NeedError says that a task was asked for and failed.
type NeedError struct {
	Subject string
	Name    string // of the task that was asked for
	Root    string // of the task that failed first
}

func (n *NeedError) Error() string {
	if n.Root != n.Name {
		return fmt.Sprintf("needs %s, which failed because of %s", n.Name, n.Root)
	}
	return fmt.Sprintf("needs %s, which failed", n.Name)
}

// CycleError says that a task needs itself. Ring begins with the smallest name.
type CycleError struct{ Ring []string }

func (c *CycleError) Error() string {
	return "cycle: " + strings.Join(append(c.Ring[:len(c.Ring):len(c.Ring)], c.Ring[0]), " -> ")
}

// Run is one run of a task. It records what the task looks at. Its methods may be called from several goroutines.
type Run struct {
	ctx  context.Context
	node *node
	b    *build

	unrecorded bool // see Unrecorded

	asking  sync.Mutex // one Need at a time, so that a run is suspended at most once
	cancel  func()     // ends ctx; nil if nobody can reach in
	again   bool       // what it saw is not so any more; b.mu
	stopped bool       // something it waited for was not done when the build stopped; b.mu

	mu    sync.Mutex
	seen  []Observation
	known map[observationID]int // places, beyond fewObservations
	later map[int]bool          // places of those that have no value yet
	cycle *CycleError
	torn  *Observation // the first that it saw with two values
	over  bool         // nothing is recorded any more
}

type observationID struct {
	kind    Kind
	subID   uint32
	subject string
}

// Up to fewObservations are looked through one by one; most tasks have one or two, and a map costs more than they do.
const fewObservations = 16

// Context ends when the build does, or when what the run saw is not so any more.
func (r *Run) Context() context.Context { return r.ctx }

// Task is the one that runs.
func (r *Run) Task() *Task { return r.node.task }

// ErrOver says that a run asks although it has come to its end: something that it left behind does.
var ErrOver = errors.New("the run is over")

// See records a leaf observation. The first of a subject counts; another value than that tears the run.
func (r *Run) See(kind Kind, subject string, value digest.Hash) {
	r.record(Observation{Kind: kind, Subject: subject, Value: value})
}

// SeeLater takes the place of a leaf observation whose value is known only when the look is over: a large file that is
// hashed while it is read. The answer sets it.
func (r *Run) SeeLater(kind Kind, subject string) func(digest.Hash) {
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
	return func(h digest.Hash) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if at >= 0 && !r.over {
			r.settle(at, h)
		}
	}
}

// Tear says that what a run saw of a subject is not of one moment. Its result is worth nothing, whatever it is: it runs again, a few times,
// and then fails in a way that may pass.
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

// Torn is what the run saw with two values; nil: nothing.
func (r *Run) Torn() *Observation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.torn
}

// End waits for a Need or NeedMemory under way, and records nothing from then on. The engine calls it when a task's Run has returned,
// unless that has.
func (r *Run) End() {
	r.asking.Lock()
	defer r.asking.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
}

// isOver tells whether the run has come to its end.
func (r *Run) isOver() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over
}

// record notes an observation, unless it was made before: then it has to be the same.
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

// settle gives a known observation its value, or compares it.
func (r *Run) settle(at int, value digest.Hash) {
	switch o := &r.seen[at]; {
	case r.later[at]:
		delete(r.later, at)
		o.Value = value
	case o.Value != value:
		r.tear(&Observation{Kind: o.Kind, SubID: o.SubID, Subject: o.Subject})
	}
}

// place is where an observation of the same stands; -1: nowhere.
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

// Need brings tasks up to date, side by side, and gives their products; the run is suspended meanwhile and its slot is free.
// Which products they have is recorded, not their contents. A subject that means no task
// is fs.ErrNotExist, a task that failed *NeedError; the first error in the order asked for is returned. All are recorded though: that
// the others came to an end decided too. A run that is in a ring gets *CycleError from then on, and fails whatever it does.
func (r *Run) Need(subjects ...string) ([][]Product, error) {
	r.asking.Lock()
	defer r.asking.Unlock()
	if err := r.refused(); err != nil {
		return nil, err
	}
	answers, ring, err := r.b.await(r, subjects)
	if err != nil {
		return nil, err
	}
	all := make([][]Product, len(subjects))
	var first error
	for i, a := range answers {
		o := Observation{Kind: Outline, Subject: subjects[i], Joined: i > 0}
		var err error
		switch {
		case ring != nil && i == len(answers)-1:
			o.Value = ringValue(ring)
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
	if ring != nil {
		return nil, r.cyclic(ring)
	}
	if first != nil {
		return nil, first
	}
	return all, nil
}

// Use records that the content of a product that Need gave was looked at.
func (r *Run) Use(subject string, p Product) {
	r.record(Observation{Kind: Content, Subject: subject, SubID: p.SubID, Value: p.content()})
}

func (r *Run) cyclic(ring []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cycle = &CycleError{ring}
	return r.cycle
}

// refused says why a run may not ask.
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
