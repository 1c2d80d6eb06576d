package engine

import (
	"container/heap"
	"context"
	"errors"
	"time"
)

// Tasks can run on other machines, which have slots of their own. A free local slot takes the first task of the queue,
// since a task starts there at once. A slot elsewhere takes the first task that may run there, but only if the task
// ends there before it would start here.

// Away is a set of other machines. All its methods are called with the engine's lock held, except those that Task.Run
// calls.
type Away interface {
	// Slots is how many tasks may run there at once.
	Slots() int
	// May reports whether a task can run there. last is its newest trace, or nil.
	May(t *Task, last *Trace) bool
	// Takes decides about the first task that may run there. wait is how many seconds the local slots need for all
	// queued tasks. If decided is true, the task starts there (there is true) or runs here. If not, it stays in the
	// queue until a slot is free, here or there.
	Takes(t *Task, last *Trace, wait float64) (there, decided bool)
	// Only reports whether tasks that may run there never start here. Takes then decides about each of
	// them.
	Only() bool
}

// where is the machine on which a node runs.
type where uint8

const (
	here    where = iota // this one
	movable              // this one or another one: not decided yet
	away                 // another one
	back                 // this one: it was sent back by another one
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

// Away reports whether the task runs on another machine.
func (r *Run) Away() bool { return r.away }

// Last is the newest trace of the task, or nil.
func (r *Run) Last() *Trace { return r.node.last() }

// Unrecorded is a run without a record: its observations are not kept, and it cannot ask for other tasks.
func Unrecorded(ctx context.Context) *Run { return &Run{ctx: ctx, node: &node{}, unrecorded: true} }

// errUnrecorded is the error of an unrecorded run that asks for other tasks.
var errUnrecorded = errors.New("an unrecorded run cannot ask for other tasks")

// Recorded returns the number of observations recorded so far, for Rewind.
func (r *Run) Recorded() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.seen)
}

// Rewind forgets the observations recorded after the first to, unless the run is in a cycle: then it
// fails anyway.
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

// expectation sums up the queued tasks.
type expectation struct {
	known   float64 // seconds
	unknown int     // tasks without an earlier run
}

// unknownTask is the expected duration of a task, in seconds, while no duration of any task is
// known.
const unknownTask = 1.0

func (e *expectation) add(n *node, by int) {
	if s := n.seconds(); s > 0 {
		e.known += float64(by) * s
	} else {
		e.unknown += by
	}
}

// wait returns how many seconds the local slots need for the queued tasks.
func (b *build) wait() float64 {
	mean := unknownTask
	if b.ran > 0 {
		mean = b.seconds / float64(b.ran)
	}
	return (b.expects.known + float64(b.expects.unknown)*mean) / float64(max(1, b.opts.Workers))
}

// last is the newest of the node's own traces, or nil.
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

// nextAway is the first node that starts on another machine now. more reports whether it queued other nodes to run
// here.
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

// abandon ends runs that another machine sent back and that did not start here because the build was stopped. b.mu is
// held, but released while the runs end.
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

// bringBack queues a node that another machine sent back because it must run here. b.mu is held.
func (b *build) bringBack(n *node) {
	n.phase, n.where = queued, back
	n.waited = 0
	n.waitNoMore()
	b.push(n)
}
