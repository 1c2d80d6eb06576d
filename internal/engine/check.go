package engine

import (
	"slices"
	"strings"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

// phase of a node.
type phase uint8

const (
	unvisited phase = iota
	checking        // its traces are being compared; may wait for other nodes
	queued          // no trace holds; in the queue
	running         // holds a slot
	suspended       // its run waits, its slot is free
	done            // result is set
)

// node is a task in a build.
type node struct {
	task   *Task
	phase  phase
	traces []*Trace
	at     int // trace being compared
	seen   int // its observations that are known to hold
	why    *Reason
	result *Result
	held   Result // what result points at if a trace holds

	waits    []*node    // those it waits for now, in the order it asked for them
	first    int        // of waits, the first that may not be done
	asked    bool       // some node waits or waited for it
	walk     int        // of b.walks, the last that came by
	checks   []*node    // checks that go on when it is done
	resumes  []*waiting // runs that go on when it is done
	path     float64    // seconds to the end of the build through it
	pathDone bool
	order    int // place in the queue among equals: as they came
	index    int // in the heap
	urgent   bool
	run      *Run          // that a control can reach
	waited   time.Duration // of its run, suspended
	memory   int64         // promised to its run
}

// check compares the traces of n with the world, from where it stopped last. It ends with n done, queued, or checking
// and waiting for another node. b.mu is held.
func (b *build) check(n *node) {
	if n.phase == unvisited {
		n.phase = checking
		n.traces = b.store.Traces(n.task.Key)
		if b.opts.Force != nil && b.opts.Force(n.task) {
			b.enqueue(n, forced)
			return
		}
		if len(n.traces) == 0 {
			b.enqueue(n, neverBuilt)
			return
		}
	}
	for ; n.at < len(n.traces); n.at, n.seen = n.at+1, 0 {
		t := n.traces[n.at]
		holds, why, wait := b.compare(n, t)
		if wait {
			return
		}
		if holds {
			if n.at > 0 {
				b.store.Use(n.task.Key, t)
			}
			n.held = Result{Task: n.task, State: Held, Trace: t}
			b.finish(n, &n.held)
			return
		}
		if n.at == 0 {
			n.why = why
		}
	}
	b.enqueue(n, n.why)
}

// compare goes on with one trace. wait says that it cannot tell before another node is done.
func (b *build) compare(n *node, t *Trace) (holds bool, why *Reason, wait bool) {
	if t.Fingerprint != n.task.Fingerprint {
		return false, codeChanged, false
	}
	if n.seen == 0 && b.opts.Holds != nil && b.opts.Holds(n.task, t) {
		return true, nil, false
	}
	for ; n.seen < len(t.Observations); n.seen++ {
		o := &t.Observations[n.seen]
		var now digest.Hash
		var err error
		if o.Kind < FirstLeaf {
			var ok bool
			if now, ok = b.valueOf(n, o); !ok {
				return false, nil, true
			}
		} else if now, err = b.world.Observe(o.Kind, o.Subject); err != nil {
			return false, &Reason{Cause: InputUnreadable, Observation: *o}, false
		}
		if now != o.Value {
			return false, &Reason{Cause: InputDiffers, Observation: *o, New: now}, false
		}
	}
	if lost, ok := b.world.Available(t); !ok {
		return false, &Reason{Cause: ProductLost, Subject: lost}, false
	}
	return true, nil, false
}

// valueOf is the present value of an observation of another task, or false if n has to wait for it.
func (b *build) valueOf(n *node, o *Observation) (digest.Hash, bool) {
	task := b.world.Resolve(o.Subject)
	if task == nil {
		return digest.Hash{}, true
	}
	m := b.node(task)
	if m.phase != done {
		n.wait(m)
		if m.phase == unvisited {
			b.check(m) // finds a ring through n itself: n waits already
		} else if ring := b.ring(n); ring != nil {
			n.waitNoMore()
			return ringValue(ring), true
		}
		if m.phase != done {
			m.checks = append(m.checks, n)
			return digest.Hash{}, false
		}
		n.waitNoMore()
	}
	return observed(n.task, m.result, o), true
}

// observed is what a task sees of another one that is done.
func observed(who *Task, r *Result, o *Observation) digest.Hash {
	switch {
	case r.Trace == nil:
		return stoppedValue
	case inRing(r.Trace, who):
		return ringValue(r.Trace.Ring)
	case r.Trace.Outcome != Succeeded:
		return failedValue(rootOf(r))
	case o.Kind == Outline:
		return outlineOf(r.Trace.Products)
	}
	for i := range r.Trace.Products {
		if p := &r.Trace.Products[i]; p.SubID == o.SubID {
			return p.Hash
		}
	}
	return digest.Hash{}
}

// inRing tells whether a task is in the ring that a trace tells of.
func inRing(t *Trace, who *Task) bool {
	return t.Outcome == Cyclic && slices.Contains(t.Ring, who.Name)
}

// stoppedValue stands for no products because the build is over.
var stoppedValue = digest.Build("task stopped").Sum()

// failedValue stands for no products because of a failure. It tells which task failed first, since that is told to
// people out of the trace of all that need it, and not how.
func failedValue(root string) digest.Hash {
	h := digest.Build("task failed").Str("root", root).Sum()
	copy(h[:], failedMark)
	return h
}

// failedMark begins the value of a failure, so that it can be told to people as one.
const failedMark = "\x00failed\x00"

// IsFailure tells whether the value of an Outline or Content observation says that the other task failed.
func IsFailure(value digest.Hash) bool { return string(value[:len(failedMark)]) == failedMark }

// rootOf is the name of the task that failed first.
func rootOf(r *Result) string {
	if r.Trace.Outcome == NeedsFailed {
		return r.Trace.Root
	}
	return r.Task.Name
}

func ringValue(ring []string) digest.Hash {
	return digest.Build("cycle").Str("ring", strings.Join(ring, "\x00")).Sum()
}

func outlineOf(ps []Product) digest.Hash {
	b := digest.Build("outline")
	for i := range ps {
		b.Str("name", ps[i].Name).Str("type", ps[i].Type).Str("file", ps[i].File)
		if ps[i].Extension != "" {
			b.Str("extension", ps[i].Extension)
		}
	}
	return b.Sum()
}

// wait says what n waits for from now on.
func (n *node) wait(on ...*node) {
	n.waits, n.first = append(n.waits[:0], on...), 0
	for _, m := range on {
		m.asked = true
	}
}

func (n *node) waitNoMore() { n.waits, n.first = n.waits[:0], 0 }

// waitsFor is the first of those n asked for that is not done; nil if n does not wait.
func (n *node) waitsFor() *node {
	for ; n.first < len(n.waits); n.first++ {
		if m := n.waits[n.first]; m.phase != done {
			return m
		}
	}
	return nil
}

// ring is the cycle of names that n is in because of what it waits for, beginning with the smallest; nil if it is in none.
//
// A node waits for the first of its group that is not done. Where following that leads back, none of
// the nodes on the way can ever be done, so a ring that is there stays there, whatever else is still running; and which rings there are
// depends on what the tasks ask for, not on who came first.
func (b *build) ring(n *node) []string {
	if !n.asked {
		return nil
	}
	b.walks++
	for x := n.waitsFor(); x != n; x = x.waitsFor() {
		if x == nil || x.walk == b.walks {
			return nil // or n waits for a ring that it is not in
		}
		x.walk = b.walks
	}
	names := []string{n.task.Name}
	for x := n.waitsFor(); x != n; x = x.waitsFor() {
		names = append(names, x.task.Name)
	}
	least := slices.Index(names, slices.Min(names))
	return append(names[least:len(names):len(names)], names[:least]...)
}
