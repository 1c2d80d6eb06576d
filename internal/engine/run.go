package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/digest"
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

	asking  sync.Mutex // one Need at a time, so that a run is suspended at most once
	cancel  func()     // ends ctx; nil if nobody can reach in
	again   bool       // what it saw is not so any more; b.mu
	stopped bool       // something it waited for was not done when the build stopped; b.mu

	mu    sync.Mutex
	seen  []Observation
	known map[observationID]struct{} // beyond fewObservations
	cycle *CycleError
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

// See records a leaf observation. The first of a subject counts.
func (r *Run) See(kind Kind, subject string, value digest.Hash) {
	r.record(Observation{Kind: kind, Subject: subject, Value: value})
}

// SeeLater takes the place of a leaf observation whose value is known only when the look is over: a large file that is
// hashed while it is read. The answer sets it.
func (r *Run) SeeLater(kind Kind, subject string) func(digest.Hash) {
	at := r.record(Observation{Kind: kind, Subject: subject})
	return func(h digest.Hash) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if at >= 0 {
			r.seen[at].Value = h
		}
	}
}

// record gives the place of the observation, or -1 if it is not a new one.
func (r *Run) record(o Observation) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cycle != nil || r.has(o) {
		return -1
	}
	r.seen = append(r.seen, o)
	if r.known != nil {
		r.known[observationID{o.Kind, o.SubID, o.Subject}] = struct{}{}
	}
	return len(r.seen) - 1
}

func (r *Run) has(o Observation) bool {
	if len(r.seen) < fewObservations {
		for i := range r.seen {
			if s := &r.seen[i]; s.Kind == o.Kind && s.SubID == o.SubID && s.Subject == o.Subject {
				return true
			}
		}
		return false
	}
	if r.known == nil {
		r.known = map[observationID]struct{}{}
		for _, s := range r.seen {
			r.known[observationID{s.Kind, s.SubID, s.Subject}] = struct{}{}
		}
	}
	_, ok := r.known[observationID{o.Kind, o.SubID, o.Subject}]
	return ok
}

// Need brings tasks up to date, side by side, and gives their products; the run is suspended meanwhile and its slot is free.
// Which products they have is recorded, not their contents. A subject that means no task
// is fs.ErrNotExist, a task that failed *NeedError; the first error in the order asked for is returned. All are recorded though: that
// the others came to an end decided too. A run that is in a ring gets *CycleError from then on, and fails whatever it does.
func (r *Run) Need(subjects ...string) ([][]Product, error) {
	r.asking.Lock()
	defer r.asking.Unlock()
	if err := r.inRing(); err != nil {
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
	r.record(Observation{Kind: Content, Subject: subject, SubID: p.SubID, Value: p.Hash})
}

func (r *Run) cyclic(ring []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cycle = &CycleError{ring}
	return r.cycle
}

func (r *Run) inRing() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cycle == nil {
		return nil
	}
	return r.cycle
}
