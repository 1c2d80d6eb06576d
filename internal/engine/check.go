package engine

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

// phase is the state of a node.
type phase uint8

const (
	unvisited phase = iota
	checking        // its traces are being compared; may wait for other nodes
	asking          // no trace holds; waits for answers from other builds
	parked          // no trace holds, other builds have no result, and it cannot run until a requester provides its source
	queued          // no trace holds; in the queue
	running         // holds a slot
	suspended       // its run waits, its slot is free
	done            // result is set
)

// node is a task of a build.
type node struct {
	task     *Task
	phase    phase
	where    where
	asked    bool // some node waits or waited for it
	borrows  bool // it waits for a twin that may lend it a trace
	pathDone bool
	traces   []*Trace // its own, and then those that twins lend it
	own      int
	twins    []*Task  // nil before they are asked
	lent     int      // of these, how many were
	at       int      // trace being compared
	seen     int      // its observations that are known to hold
	unsure   bool     // the next of them may be another after the build: see Options.Unsure
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
	race    *race         // between two runs of it; nil: there is one, or none
	waited  time.Duration // of its run, suspended
	memory  int64         // promised to its run
	looking *looking      // for its result in other builds; nil: not yet, or no more
}

// check compares the traces of n with the world, starting where it stopped last time. Afterwards n is done, queued,
// asking, or checking and waiting for another node. b.mu is held.
func (b *build) check(n *node) {
	if n.looking != nil {
		b.follow(n)
		return
	}
	if n.borrows {
		n.borrows = false
		b.borrowers--
	}
	if n.phase == unvisited {
		n.phase = checking
		n.traces = b.store.Traces(n.task.Key)
		n.own = len(n.traces)
		if b.opts.Force != nil && b.opts.Force(n.task) {
			b.enqueue(n, forced)
			return
		}
		if n.why = neverBuilt; n.own == 0 && b.opts.Rekeyed != nil && b.opts.Rekeyed(n.task) {
			n.why = rekeyed
		}
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

// hasHeld finishes a node whose trace t holds. A borrowed trace is stored as its own.
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
		if err := b.store.Add(n.task.Key, t); err == nil {
			b.offer(n.task, t)
		} else if b.err == nil {
			b.err = err
			b.halt()
		}
	case n.at > 0:
		b.store.Use(n.task.Key, t)
	}
	b.finish(n, r)
}

// offer has a new result stored for others, if it is stored here.
func (b *build) offer(t *Task, tr *Trace) {
	if b.opts.Shared != nil && tr.ID != 0 {
		b.opts.Shared.Ran(t, tr)
	}
}

// borrow takes the traces of the next twin that has some that may hold for n. If an earlier twin is not done, n waits
// for it, because its run may produce such a trace, unless that waits for n.
func (b *build) borrow(n *node) (more, wait bool) {
	if b.opts.DryRun { // a dry run does not know the twins' results
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
		case m.phase != done && m.phase != parked && n.lent < at: // a parked node cannot run: see shared.go
			if leads, _ := b.leads(m, n); leads {
				continue // it needs n
			}
			n.wait(m)
			n.borrows = true
			b.borrowers++
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

// yield lets nodes continue without the twin that they wait for if that waits for n, which asks for m and does not wait yet, or waits
// for m alone. That is so if a task needs a task of another platform. Nobody needs a twin's trace, so that is no dependency cycle.
func (b *build) yield(m, n *node) {
	for b.borrowers > 0 {
		leads, borrower := b.leads(m, n)
		if !leads || borrower == nil {
			return
		}
		twin := borrower.waitsFor()
		twin.checks = slices.DeleteFunc(twin.checks, func(c *node) bool { return c == borrower })
		borrower.waitNoMore()
		borrower.lent++
		b.check(borrower)
	}
}

// leads reports whether m is n, or waits for it by way of others. borrower is the first of these, m included, that waits for a twin.
func (b *build) leads(m, n *node) (yes bool, borrower *node) {
	if !n.asked {
		return m == n, nil // nothing waits for it
	}
	b.walks++
	for ; m != nil && m != n && m.walk != b.walks; m = m.waitsFor() {
		m.walk = b.walks
		if borrower == nil && m.borrows {
			borrower = m
		}
	}
	return m == n, borrower
}

// compare continues with one trace. wait reports that another node must be done first.
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
		} else if b.opts.Unsure != nil && o.Kind >= FirstLeaf && b.opts.Unsure(o) {
			n.unsure = true
			return false, nil, true
		}
	}
	if lost, ok := b.world.Available(t); !ok {
		return false, &Reason{Cause: ProductLost, Subject: lost}, false
	}
	return true, nil, false
}

// harmless reports whether a trace may hold although an observation differs. A failed one may not, because what made it fail is not
// harmless. Nor may one that a twin lent, because the task has not run with what that one observed. Nor may an older one: it was made from
// an older state of what is harmless than the last one.
func (b *build) harmless(n *node, t *Trace, o *Observation) bool {
	return b.opts.Harmless != nil && t.Outcome == Succeeded && n.at == 0 && n.own > 0 && b.opts.Harmless(n.task, o)
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
	b.yield(m, n)
	if m.phase != done {
		n.wait(m)
		if m.phase == unvisited {
			b.check(m) // if it needs n, this finds the cycle, because n waits already
			b.yield(m, n)
		} else if cycle := b.cycleOf(n); cycle != nil {
			n.waitNoMore()
			return cycleValue(cycle), true
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

// observed is the value that a task sees of another task that is done.
func observed(who *Task, r *Result, o *Observation) digest.Hash {
	switch {
	case r.Trace == nil:
		return stoppedValue
	case inRing(r.Trace, who):
		return cycleValue(r.Trace.Cycle)
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

// inRing reports whether a trace records a cycle that contains the task.
func inRing(t *Trace, who *Task) bool {
	return t.Outcome == Cyclic && slices.Contains(t.Cycle, who.Name)
}

// stoppedValue stands for products that are missing because the build is over.
var stoppedValue = digest.Build("task stopped").Sum()

// failedValue stands for products that are missing because of a failure. It contains the name of the task that
// failed first, because traces of all dependents report that name, but not the message.
func failedValue(root string) digest.Hash {
	h := digest.Build("task failed").Str("root", root).Sum()
	copy(h[:], failedMark)
	return h
}

// failedMark is the prefix of a failure's value, so that it can be recognised.
const failedMark = "\x00failed\x00"

// IsFailure reports whether the value of an Outline or Content observation says that the other task
// failed.
func IsFailure(value digest.Hash) bool { return string(value[:len(failedMark)]) == failedMark }

// rootOf is the name of the task that failed first.
func rootOf(r *Result) string {
	if r.Trace.Outcome == NeedsFailed {
		return r.Trace.Root
	}
	return r.Task.Name
}

func cycleValue(cycle []string) digest.Hash {
	return digest.Build("cycle").Str("ring", strings.Join(cycle, "\x00")).Sum()
}

// outlineOf is the value of Outline. The folder of the task's files is left out.
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

// content is the value of Content: the hash of the bytes, combined with references and facts if there are any.
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

// asBefore reports whether an Outline holds that was recorded by an older Kiln, with the folder.
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

// wait sets the nodes that n waits for.
func (n *node) wait(on ...*node) {
	n.waits, n.first = append(n.waits[:0], on...), 0
	for _, m := range on {
		m.asked = true
	}
}

func (n *node) waitNoMore() { n.waits, n.first = n.waits[:0], 0 }

// waitsFor is the first node that n asked for and that is not done, or nil if n does not wait.
func (n *node) waitsFor() *node {
	for ; n.first < len(n.waits); n.first++ {
		if m := n.waits[n.first]; m.phase != done {
			return m
		}
	}
	return nil
}

// cycleOf returns the names of the dependency cycle that n is in because of what it waits for, beginning with the
// smallest, or nil.
//
// A node waits for the first of its nodes that is not done. If following these pointers leads back to n, none of the
// nodes on the way can ever be done. So a cycle is permanent, whatever else is running, and cycles depend on what tasks
// ask for, not on the order in which they started.
func (b *build) cycleOf(n *node) []string {
	if !n.asked {
		return nil
	}
	b.walks++
	for x := n.waitsFor(); x != n; x = x.waitsFor() {
		if x == nil || x.walk == b.walks {
			return nil // n waits for a cycle that it is not part of
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
