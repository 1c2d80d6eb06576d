package engine

import (
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/digest"
)

// phase of a node. setPhase is the only place that changes it.
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
	why    Reason
	result *Result

	waits    []*node    // those it waits for now
	checks   []*node    // checks that go on when it is done
	resumes  []*waiting // runs that go on when it is done
	path     float64    // seconds to the end of the build through it
	pathDone bool
	order    int // place in the queue among equals: as they came
	index    int // in the heap
}

// check compares the traces of n with the world, from where it stopped last. It ends with n done, queued, or checking
// and waiting for another node. b.mu is held.
func (b *build) check(n *node) {
	if n.phase == unvisited {
		n.phase = checking
		n.traces = b.store.Traces(n.task.Key)
		if b.opts.Force && b.wanted[n] {
			b.enqueue(n, Reason{Cause: Forced})
			return
		}
		if len(n.traces) == 0 {
			b.enqueue(n, Reason{Cause: NeverBuilt})
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
			b.finish(n, &Result{Task: n.task, State: Held, Trace: t})
			return
		}
		if n.at == 0 {
			n.why = why
		}
	}
	b.enqueue(n, n.why)
}

// compare goes on with one trace. wait says that it cannot tell before another node is done.
func (b *build) compare(n *node, t *Trace) (holds bool, why Reason, wait bool) {
	if t.Fingerprint != n.task.Fingerprint {
		return false, Reason{Cause: CodeChanged}, false
	}
	for ; n.seen < len(t.Observations); n.seen++ {
		o := &t.Observations[n.seen]
		var now digest.Hash
		var err error
		if o.Kind < FirstLeaf {
			var ok bool
			if now, ok = b.valueOf(n, o); !ok {
				return false, Reason{}, true
			}
		} else if now, err = b.world.Observe(o.Kind, o.Subject); err != nil {
			return false, Reason{Cause: InputUnreadable, Observation: *o}, false
		}
		if now != o.Value {
			return false, Reason{Cause: InputDiffers, Observation: *o, New: now}, false
		}
	}
	if lost, ok := b.world.Available(t); !ok {
		return false, Reason{Cause: ProductLost, Subject: lost}, false
	}
	return true, Reason{}, false
}

// valueOf is the present value of an observation of another task, or false if n has to wait for it.
func (b *build) valueOf(n *node, o *Observation) (digest.Hash, bool) {
	task := b.world.Resolve(o.Subject)
	if task == nil {
		return digest.Hash{}, true
	}
	m := b.node(task)
	if m.phase != done {
		if ring := b.ring(n, m); ring != nil {
			return ringValue(ring), true
		}
		n.waits = append(n.waits[:0], m)
		if m.phase == unvisited {
			b.check(m)
		}
		if m.phase != done {
			m.checks = append(m.checks, n)
			return digest.Hash{}, false
		}
		n.waits = n.waits[:0]
	}
	return observed(n.task, m.result, o), true
}

// observed is what a task sees of another one that is done.
func observed(who *Task, r *Result, o *Observation) digest.Hash {
	switch {
	case r.Trace == nil:
		return stoppedValue
	case r.Trace.Outcome == Cyclic && slices.Contains(r.Trace.Ring, who.Name):
		return ringValue(r.Trace.Ring)
	case r.Trace.Outcome != Succeeded:
		return failedValue
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

// Values that stand for no products. That of a failure does not tell which, so that a task whose needs fail in
// another way than before is not run for that.
var (
	failedValue  = digest.Build("task failed").Sum()
	stoppedValue = digest.Build("task stopped").Sum()
)

// IsFailure tells whether the value of an Outline or Content observation says that the other task failed.
func IsFailure(value digest.Hash) bool { return value == failedValue }

func ringValue(ring []string) digest.Hash {
	return digest.Build("cycle").Str("ring", strings.Join(ring, "\x00")).Sum()
}

func outlineOf(ps []Product) digest.Hash {
	b := digest.Build("outline")
	for i := range ps {
		b.Str("name", ps[i].Name).Str("type", ps[i].Type).Str("file", ps[i].File)
	}
	return b.Sum()
}

// ring is the cycle of names that would come about if n waited for m, beginning with the smallest name;
// nil if there is none.
func (b *build) ring(n, m *node) []string {
	var path []*node
	seen := map[*node]bool{}
	var walk func(x *node) bool
	walk = func(x *node) bool {
		if seen[x] {
			return false
		}
		seen[x] = true
		path = append(path, x)
		if x == n {
			return true
		}
		for _, y := range x.waits {
			if walk(y) {
				return true
			}
		}
		path = path[:len(path)-1]
		return false
	}
	if n != m && len(m.waits) == 0 || !walk(m) {
		return nil
	}
	// path is m ... n; the ring is n, m, ..., and back to n.
	names := make([]string, 0, len(path))
	names = append(names, n.task.Name)
	for _, x := range path[:len(path)-1] {
		names = append(names, x.task.Name)
	}
	least := 0
	for i, s := range names {
		if s < names[least] {
			least = i
		}
	}
	return append(names[least:len(names):len(names)], names[:least]...)
}
