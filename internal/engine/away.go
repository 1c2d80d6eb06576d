package engine

import (
	"container/heap"
	"context"
	"errors"
	"time"
)

// Tasks can run on other machines. Those have slots of their own. A local slot that is free takes the first task of all, since
// that starts at once; a slot elsewhere takes the first one that may go there, if it ends there before it would begin here.

// Away is a set of other machines. Its methods are called with the engine's lock held, but for those that Task.Run calls.
type Away interface {
	// Slots is how many tasks may run there at once.
	Slots() int
	// May reports whether a task may run there at all. last is its newest trace; nil if there is none.
	May(t *Task, last *Trace) bool
	// Takes decides about the first task that may run there. wait is in how many seconds the tasks that are queued would be done here. If it
	// is decided, the task starts there, or it will run here; if not, it stays in the queue until a slot is free, here or there.
	Takes(t *Task, last *Trace, wait float64) (there, decided bool)
	// Only reports whether tasks that may run there do not start here. Takes then decides about every one.
	Only() bool
}

// where is the machine that a node runs on.
type where uint8

const (
	here    where = iota // this one
	movable              // this one, or another one: nobody has decided yet
	away                 // another one
	back                 // this one, after it came back from another one
)

// Remote is what is known of a run on another machine: so far, or in all.
type Remote struct {
	Stage         string        // what goes on: sending, queued, running, fetching
	Worker        string        // name of the machine; "" as long as nobody said so
	Queued        time.Duration // it waited for a machine
	Ran           time.Duration
	Sent, Fetched int64 // bytes
	Rounds        int   // how often it was sent
	Cached        bool  // nothing ran: it was known what an equal run came to
}

// ErrHere ends a run on another machine of a task that has to run here. It leaves no trace.
var ErrHere = errors.New("this task has to run on this machine")

// Away reports whether the task is to run on another machine.
func (r *Run) Away() bool { return r.node.where == away }

// Last is the newest trace of the task; nil if there is none.
func (r *Run) Last() *Trace { return r.node.last() }

// Unrecorded is a run that nobody sees: what it looks at is not recorded, and it cannot ask for other tasks.
func Unrecorded(ctx context.Context) *Run { return &Run{ctx: ctx, node: &node{}, unrecorded: true} }

// errUnrecorded is what an unrecorded run gets that asks for other tasks.
var errUnrecorded = errors.New("an unrecorded run cannot ask for other tasks")

// Recorded is how much the run has recorded, for Rewind.
func (r *Run) Recorded() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.seen)
}

// Rewind forgets what the run has recorded since, unless it is in a ring: then it fails whatever it does.
func (r *Run) Rewind(to int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cycle != nil {
		return
	}
	r.seen, r.known = r.seen[:to:to], nil
	for at := range r.later {
		if at >= to {
			delete(r.later, at)
		}
	}
}

// expectation sums up what is queued.
type expectation struct {
	known   float64 // seconds
	unknown int     // tasks of which no run is known
}

// unknownTask is how many seconds a task is expected to take while nothing is known of any.
const unknownTask = 1.0

func (e *expectation) add(n *node, by int) {
	if s := n.seconds(); s > 0 {
		e.known += float64(by) * s
	} else {
		e.unknown += by
	}
}

// wait is in how many seconds what is queued would be done here.
func (b *build) wait() float64 {
	mean := unknownTask
	if b.ran > 0 {
		mean = b.seconds / float64(b.ran)
	}
	return (b.expects.known + float64(b.expects.unknown)*mean) / float64(max(1, b.opts.Workers))
}

// last is the newest trace of a node's own; nil if there is none.
func (n *node) last() *Trace {
	if n.own == 0 {
		return nil
	}
	return n.traces[0]
}

func (b *build) queueOf(n *node) *queue {
	if n.where == movable {
		return &b.movable
	}
	return &b.queue
}

func (b *build) push(n *node) {
	b.expects.add(n, 1)
	heap.Push(b.queueOf(n), n)
}

func (b *build) pop(q *queue) *node {
	n := heap.Pop(q).(*node)
	b.expects.add(n, -1)
	return n
}

// freeAway reports whether there is a slot on another machine.
func (b *build) freeAway() bool { return b.opts.Away != nil && b.away < b.opts.Away.Slots() }

// nextAway is the first node that starts on another machine now. more reports that some that are to run here are queued for that since.
func (b *build) nextAway() (start *node, more bool) {
	for len(b.movable) > 0 && b.freeAway() {
		n := b.movable[0]
		there, decided := b.opts.Away.Takes(n.task, n.last(), b.wait())
		if !decided {
			return nil, more
		}
		if b.pop(&b.movable); there {
			n.where = away
			return n, more
		}
		n.where, more = here, true
		b.push(n)
	}
	return nil, more
}

// abandon ends runs that came back from another machine, and did not start here because the build was stopped. b.mu is held, but not
// meanwhile.
func (b *build) abandon() {
	var list []*Result
	for _, n := range b.order {
		if n.where == back && n.result == nil {
			n.result = &Result{Task: n.task, State: Stopped, Why: n.why}
			list = append(list, n.result)
		}
	}
	b.mu.Unlock()
	for _, r := range list {
		b.world.Finished(r)
	}
	b.mu.Lock()
}

// bringBack queues a node that ran on another machine, and has to run here. b.mu is held.
func (b *build) bringBack(n *node) {
	n.phase, n.where = queued, back
	n.waited = 0
	n.waitNoMore()
	b.push(n)
}
