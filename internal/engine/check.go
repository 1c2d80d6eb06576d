package engine

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

// phase of a node.
type phase uint8

const (
	unvisited phase = iota
	checking        // its traces are being compared; may wait for other nodes
	asking          // no trace holds; waits for what other builds know of it
	parked          // no trace holds, nor does another build know of it, and it cannot run until whoever asks for it brings what it works on
	queued          // no trace holds; in the queue
	running         // holds a slot
	suspended       // its run waits, its slot is free
	done            // result is set
)

// node is a task in a build.
type node struct {
	task     *Task
	phase    phase
	where    where
	asked    bool // some node waits or waited for it
	pathDone bool
	traces   []*Trace // its own, and then those that twins lend it
	own      int
	twins    []*Task  // nil before they are asked
	lent     int      // of these, how many were
	at       int      // trace being compared
	seen     int      // its observations that are known to hold
	ignored  []Reason // those of them that differ, and are harmless
	why      *Reason
	result   *Result

	waits   []*node       // those it waits for now, in the order it asked for them
	first   int           // of waits, the first that may not be done
	walk    int           // of b.walks, the last that came by
	checks  []*node       // checks that go on when it is done
	resumes []*waiting    // runs that go on when it is done
	path    float64       // seconds to the end of the build through it
	order   int           // place in the queue among equals: as they came
	index   int           // in the heap
	lift    float64       // seconds that are added to its path, since somebody waits for it or it goes sooner than others
	run     *Run          // that a control can reach
	waited  time.Duration // of its run, suspended
	memory  int64         // promised to its run
	looking *looking      // for its result in other builds; nil: not yet, or no more
}

// check compares the traces of n with the world, from where it stopped last. It ends with n done, queued, asking, or checking
// and waiting for another node. b.mu is held.
func (b *build) check(n *node) {
	if n.looking != nil {
		b.follow(n)
		return
	}
	if n.phase == unvisited {
		n.phase = checking
		n.traces = b.store.Traces(n.task.Key)
		n.own = len(n.traces)
		if b.opts.Force != nil && b.opts.Force(n.task) {
			b.enqueue(n, forced)
			return
		}
		n.why = neverBuilt
	}
	for more := true; more; {
		for ; n.at < len(n.traces); n.at, n.seen, n.ignored = n.at+1, 0, nil {
			t := n.traces[n.at]
			holds, why, wait := b.compare(n, t)
			switch {
			case wait:
				return
			case holds:
				b.hasHeld(n, t)
				return
			case n.at == 0 && n.own > 0:
				n.why = why
			}
		}
		var wait bool
		if more, wait = b.borrow(n); wait {
			return
		}
	}
	b.miss(n, n.why)
}

// hasHeld ends a node one of whose traces holds. One that a twin lent becomes its own.
func (b *build) hasHeld(n *node, t *Trace) {
	if len(b.held) == 0 {
		b.held = make([]Result, min(max(len(b.order), 16), 4096))
	}
	r := &b.held[0] // and not a part of the node, which ends with the build
	b.held = b.held[1:]
	*r = Result{Task: n.task, State: Held, Trace: t, Ignored: n.ignored}
	switch {
	case n.at >= n.own:
		r.State, r.Why = Shared, t.Why
		if err := b.store.Add(n.task.Key, t); err != nil && b.err == nil {
			b.err = err
			b.halt()
		}
	case n.at > 0:
		b.store.Use(n.task.Key, t)
	}
	b.finish(n, r)
}

// borrow takes the traces of the next twin that has some which may hold for n. It waits for twins before n that are not done: their runs
// may do. Whoever waits so waits for a smaller one, and needs lead to tasks of the same place in the order: so no ring comes of it.
func (b *build) borrow(n *node) (more, wait bool) {
	if b.opts.DryRun { // it does not know what twins would come to
		return false, false
	}
	if n.twins == nil {
		n.twins = b.world.Twins(n.task)
	}
	at := slices.IndexFunc(n.twins, func(t *Task) bool { return t.Key == n.task.Key })
	for ; n.lent < len(n.twins); n.lent++ {
		t, had := n.twins[n.lent], len(n.traces)
		m := b.nodes.Get(*t.hash())
		var traces []*Trace
		switch {
		case n.lent == at:
		case m == nil:
			traces = b.store.Traces(t.Key)
		case m.phase == done && m.result.Trace != nil:
			traces = []*Trace{m.result.Trace}
		case m.phase != done && m.phase != parked && n.lent < at: // one that is parked cannot run: see shared.go
			n.wait(m)
			m.checks = append(m.checks, n)
			return false, true
		}
		for _, tr := range traces {
			if !tr.Shareable {
				continue
			}
			if own := b.world.Translate(tr, t, n.task); own != nil {
				why := *n.why
				if why.Cause != ProductLost {
					why.Subject = own.Why.Subject
				}
				own.Why = &why
				n.traces = append(n.traces[:len(n.traces):len(n.traces)], own)
			}
		}
		if len(n.traces) > had {
			n.lent++
			return true, false
		}
	}
	return false, false
}

// compare goes on with one trace. wait says that it cannot tell before another node is done.
func (b *build) compare(n *node, t *Trace) (holds bool, why *Reason, wait bool) {
	if t.Fingerprint != n.task.Fingerprint {
		return false, codeChanged, false
	}
	if n.seen == 0 && n.at < n.own && b.opts.Holds != nil && b.opts.Holds(n.task, t) {
		return true, nil, false
	}
	for ; n.seen < len(t.Observations); n.seen++ {
		o := &t.Observations[n.seen]
		var now digest.Hash
		var err error
		if o.Kind < FirstLeaf {
			var ok bool
			if now, ok = b.valueOf(n, o, b.world.Resolve(o.Subject)); !ok {
				return false, nil, true
			}
		} else if now, err = b.world.Observe(o.Kind, o.Subject); err != nil {
			return false, &Reason{Cause: InputUnreadable, Observation: *o}, false
		}
		if now != o.Value && !b.asBefore(o) {
			differs := Reason{Cause: InputDiffers, Observation: *o, New: now}
			if !b.harmless(n, t, o) {
				return false, &differs, false
			}
			n.ignored = append(n.ignored, differs)
		}
	}
	if lost, ok := b.world.Available(t); !ok {
		return false, &Reason{Cause: ProductLost, Subject: lost}, false
	}
	return true, nil, false
}

// harmless reports whether a trace may hold although an observation differs. One of a failure may not: what had it fail is not
// harmless. Nor may one that a twin lent: the task has not run with what that saw.
func (b *build) harmless(n *node, t *Trace, o *Observation) bool {
	return b.opts.Harmless != nil && t.Outcome == Succeeded && n.at < n.own && b.opts.Harmless(n.task, o)
}

// valueOf is the present value of an observation of another task, which is nil if there is none, or false if n has to wait for it.
func (b *build) valueOf(n *node, o *Observation, task *Task) (digest.Hash, bool) {
	if task == nil {
		return digest.Hash{}, true
	}
	m := b.node(task)
	if m.phase == parked {
		return digest.Hash{}, true
	}
	if m.phase != done {
		n.wait(m)
		if m.phase == unvisited {
			b.check(m) // finds a ring through n itself: n waits already
		} else if ring := b.ring(n); ring != nil {
			n.waitNoMore()
			return ringValue(ring), true
		}
		if m.phase == parked {
			n.waitNoMore()
			return digest.Hash{}, true
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
		return outlineOf(r.Trace.Products, r.Task.Folder)
	}
	for i := range r.Trace.Products {
		if p := &r.Trace.Products[i]; p.SubID == o.SubID {
			return p.content()
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

// outlineOf is of a task whose products have their files in a folder, which is left out.
func outlineOf(ps []Product, folder string) digest.Hash {
	b := digest.Build("outline")
	for i := range ps {
		b.Str("name", ps[i].Name).Str("type", ps[i].Type).Str("file", strings.TrimPrefix(ps[i].File, folder))
		if ps[i].Extension != "" {
			b.Str("extension", ps[i].Extension)
		}
	}
	return b.Sum()
}

// content is what Content observations hold of a product: the hash of its bytes, and with that what else there is to be taken over from it.
func (p *Product) content() digest.Hash {
	if len(p.References) == 0 && p.Facts == "" {
		return p.Hash
	}
	b := digest.Build("content").Hash("bytes", p.Hash).Str("facts", p.Facts)
	for _, r := range p.References {
		b.Str("uuid", string(r.UUID[:])).Str("product", strconv.FormatUint(uint64(r.SubID), 10)).Str("required", strconv.FormatBool(r.Required))
	}
	return b.Sum()
}

// asBefore reports whether an Outline holds as kilns recorded it that did not leave out the folder.
func (b *build) asBefore(o *Observation) bool {
	if o.Kind != Outline {
		return false
	}
	t := b.world.Resolve(o.Subject)
	if t == nil {
		return false
	}
	m := b.nodes.Get(*t.hash())
	return m != nil && m.phase == done && m.result.Trace != nil && m.result.Trace.Outcome == Succeeded && outlineOf(m.result.Trace.Products, "") == o.Value
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
