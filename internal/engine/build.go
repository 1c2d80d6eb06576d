package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

// build is one build under way.
type build struct {
	opts  Options
	world World
	store Store
	ctx   context.Context

	mu        sync.Mutex
	nodes     *digest.Index[node] // by key
	slab      []node              // not used yet
	held      []Result            // the same, of tasks that do not run
	order     []*node             // as they were met
	swept     int                 // of order, those that the sweep met: in the same order each time
	queued    int                 // nodes that were put into the queue so far
	walks     int                 // looks for a cycle so far
	borrowers int                 // how many nodes wait for a twin
	queue     queue               // of nodes that run here
	movable   queue               // of nodes that may run on another machine, or here
	away      int                 // slots of other machines that are in use
	expects   expectation         // what is queued
	late      []*Run              // that other machines take too long for, longest first
	resumes   []*waiting          // runs that may go on, first come first served, before anything in the queue
	asking    []*weighing         // runs that wait for memory, first come first served
	slots     int                 // in use
	outside   int                 // of these, by tasks that are Outside
	memory    int64               // promised to running and suspended tasks
	alive     int                 // goroutines of runs
	stopped   bool                // nothing is started any more
	idle      sync.Cond           // alive became 0
	err       error               // of the store
	paths     map[*node][]*node   // known dependents of nodes that are not done
	ran       int                 // tasks

	asks     context.Context // for questions to other builds; cancelled when nothing is started any more
	askNo    func()          // cancels asks
	unasked  []*node         // nodes to ask other builds about
	followed []*node         // nodes for which it is known what a run would see
	seconds  float64         // seconds that these took
}

// waiting is a run that is suspended.
type waiting struct {
	n     *node
	left  int      // number of nodes it waits for; 0 once it is woken
	cycle []string // the cycle that it is in
	wake  chan struct{}
}

// Build brings tasks up to date. It returns the result of each of them and of all tasks that they needed, in a
// stable order. The error is the context's or the store's; a failed task is not an error here.
func Build(ctx context.Context, world World, store Store, opts Options, tasks []*Task) ([]*Result, error) {
	b := &build{
		opts: opts, world: world, store: store, ctx: ctx,
		nodes: digest.NewIndex(func(n *node) *digest.Hash { return n.task.hash() }, len(tasks)), order: make([]*node, 0, len(tasks)),
	}
	b.idle.L = &b.mu
	b.asks, b.askNo = context.WithCancel(ctx)
	defer b.askNo()
	stop := context.AfterFunc(ctx, b.stop)
	defer stop()
	if opts.Control != nil {
		opts.Control.begin(b)
		defer opts.Control.end()
	}

	b.mu.Lock()
	defer b.mu.Unlock()
	b.sweep(tasks)
	if ctx.Err() != nil {
		b.halt()
	}
	if !opts.DryRun {
		b.world.Planned(b.open())
		b.findPaths()
		b.orderFirst()
		b.start()
		for b.alive > 0 {
			b.idle.Wait()
		}
		b.abandon()
	}
	err := b.err
	if err == nil {
		err = ctx.Err()
	}
	return b.results(), err
}

func (b *build) sweep(tasks []*Task) {
	over := false
	for i, t := range tasks {
		over = over || i%1024 == 0 && b.ctx.Err() != nil
		if n := b.node(t); n.phase == unvisited && !over {
			b.check(n)
		}
	}
	b.swept = len(b.order)
}

// orderFirst moves tasks that somebody waits for to the front.
func (b *build) orderFirst() {
	if b.opts.First != nil {
		for _, n := range slices.Concat(b.queue, b.movable) {
			if b.opts.First(n.task, n.why) {
				b.promote(n, first)
			}
		}
	}
	if b.opts.Control != nil {
		b.opts.Control.prepare(b)
	}
}

// open counts the tasks that are not done.
func (b *build) open() int {
	open := 0
	for _, n := range b.order {
		if n.phase != done {
			open++
		}
	}
	return open
}

// results returns the nodes that the sweep found, in that order, and then those that runs found, sorted by name
// because runs find them in no fixed order.
func (b *build) results() []*Result {
	slices.SortFunc(b.order[b.swept:], func(x, y *node) int { return strings.Compare(x.task.Name, y.task.Name) })
	all := make([]*Result, 0, len(b.order))
	for _, n := range b.order {
		if n.phase == parked {
			continue // nothing asked for it
		}
		if n.result == nil {
			n.result = &Result{Task: n.task, State: Stopped, Why: n.why}
			if b.opts.DryRun && n.phase == queued {
				n.result.State = WouldRun
			} else if b.opts.DryRun && (len(n.waits) > 0 || n.unsure) {
				n.result.State = Undecided
				n.result.Why = &Reason{Cause: NeedsUndecided, Observation: n.traces[n.at].Observations[n.seen]}
			}
		}
		all = append(all, n.result)
	}
	return all
}

func (b *build) node(t *Task) *node {
	n := b.nodes.Get(*t.hash())
	if n == nil {
		if len(b.slab) == 0 {
			b.slab = make([]node, min(max(len(b.order), 16), 4096)) // one allocation for each node would be half of the sweep's time
		}
		n = &b.slab[0]
		b.slab = b.slab[1:]
		n.task = t
		b.nodes.Put(n)
		b.order = append(b.order, n)
	}
	return n
}

// enqueue puts a node whose traces do not hold into the queue.
func (b *build) enqueue(n *node, why *Reason) {
	n.phase, n.why, n.order = queued, why, b.queued
	n.waitNoMore()
	b.queued++
	if b.opts.DryRun {
		return
	}
	if b.pathsKnown() {
		b.path(n)
		n.path += n.lift
	}
	if n.where != back {
		if n.where = here; b.opts.Away != nil && b.opts.Away.May(n.task, n.last()) {
			n.where = movable
		}
	}
	b.push(n)
}

// finish sets the result of a node and resumes the runs that wait for it. b.mu is held.
func (b *build) finish(n *node, r *Result) {
	n.phase, n.result = done, r
	n.waitNoMore()
	if r.Trace == nil || b.opts.FailFast && r.Trace.Outcome != Succeeded {
		b.halt()
	}
	b.resume(n)
}

// resume resumes the runs that wait for a node. b.mu is held.
func (b *build) resume(n *node) {
	r := n.result // nil if the node is parked
	checks, resumes := n.checks, n.resumes
	n.checks, n.resumes = nil, nil
	// First the runs that are in a cycle with n. Otherwise they could be taken for members of another cycle, because n
	// is done.
	for _, w := range resumes {
		if w.left > 0 && r != nil && r.Trace != nil && inRing(r.Trace, w.n.task) {
			b.wake(w, r.Trace.Cycle)
		}
	}
	for _, c := range checks {
		c.waitNoMore()
		b.check(c)
	}
	for _, w := range resumes {
		if m := w.n.waitsFor(); w.left > 0 && m != nil {
			b.yield(m, w.n)
		}
		if w.left == 0 {
			continue
		}
		if cycle := b.cycleOf(w.n); w.left == 1 || cycle != nil {
			b.wake(w, cycle)
		} else {
			w.left--
		}
	}
}

// wake lets a run continue as soon as there is a slot.
func (b *build) wake(w *waiting, cycle []string) {
	w.left, w.cycle = 0, cycle
	w.n.waitNoMore()
	b.resumes = append(b.resumes, w)
}

// stop calls halt when the context ends.
func (b *build) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.halt()
	b.start()
}

// halt starts nothing more and wakes suspended runs, since what they wait for may never be done.
// b.mu is held.
func (b *build) halt() {
	if b.stopped {
		return
	}
	b.stopped = true
	b.askNo()
	for _, n := range b.order {
		for _, w := range n.resumes {
			if w.left > 0 {
				b.wake(w, nil)
			}
		}
		n.resumes = nil
	}
}

// start assigns free slots. b.mu is held.
func (b *build) start() {
	b.ask()
	b.grant()
	for b.goOn() {
	}
	for n := b.next(); n != nil; n = b.next() {
		b.take(n)
		b.alive++
		go b.work(n)
	}
}

// goOn resumes the first run that may continue and has a slot. It reports whether there was one.
func (b *build) goOn() bool {
	for i, w := range b.resumes {
		if w.n.where == away && !b.freeAway() || w.n.where != away && !b.freeFor(w.n) {
			continue
		}
		b.resumes = slices.Delete(b.resumes, i, i+1)
		b.hold(w.n, 1)
		w.n.phase = running
		close(w.wake)
		return true
	}
	return false
}

// free reports whether there is a slot for another task.
func (b *build) free() bool { return b.slots < b.limit() }

// freeFor reports whether there is a slot for a node. Nodes that somebody waits for have additional
// slots.
func (b *build) freeFor(n *node) bool {
	return b.free() || n.path >= urgent && b.slots < b.limit()+b.opts.Hurry
}

// limit is the number of slots.
func (b *build) limit() int { return max(1, b.opts.Workers) + min(b.outside, b.opts.Extra) }

// hold counts a slot that a node takes (by is 1) or returns (by is -1).
func (b *build) hold(n *node, by int) {
	if n.where == away {
		b.away += by
		return
	}
	b.slots += by
	if n.task.Outside {
		b.outside += by
	}
}

// next returns a queued node that may start now, here or on another machine, or nil. Suspended runs go first.
func (b *build) next() *node {
	if b.stopped || b.opts.NoRuns {
		return nil
	}
	for {
		if n := b.nextHere(); n != nil {
			return n
		}
		if n, more := b.nextAway(); n != nil || !more {
			return n
		}
	}
}

// nextHere returns the first of both queues if there is a slot and memory for it. If nothing runs, it starts
// whatever it needs: so neither a task larger than the limit, nor suspended tasks that hold memory, can stop the
// build.
func (b *build) nextHere() *node {
	q := &b.queue
	if len(b.movable) > 0 && !b.opts.Away.Only() && (len(b.queue) == 0 || b.movable.before(b.movable[0], b.queue[0])) {
		q = &b.movable
	}
	if len(*q) == 0 {
		return b.nextLate()
	}
	if !b.freeFor((*q)[0]) {
		return nil
	}
	n := (*q)[0]
	if b.opts.Memory > 0 && b.slots > 0 && b.memory+n.needs() > b.opts.Memory {
		return nil
	}
	return b.pop(q)
}

func (b *build) take(n *node) {
	n.phase = running
	b.hold(n, 1)
	if n.where == away {
		return // the memory of another machine counts, not of this one
	}
	n.memory = n.needs()
	b.memory += n.memory
}

// weighing is a run that waits for memory. It keeps its slot.
type weighing struct {
	r       *Run
	memory  int64 // in all
	granted chan struct{}
}

// NeedMemory waits until the run can have this many bytes in all, and reserves them until the run ends. They replace
// the estimate for its task, if that is lower. The engine has one account for estimates and for NeedMemory.
//
// No run waits for good: runs wait only while another run has a slot and does not wait for memory itself. That one
// ends, or waits for other tasks or for memory; each time the waiting runs are checked again, and if none is at work,
// the first one continues even without enough memory. A run that holds memory may therefore wait for other tasks, but
// it is better to ask for memory after that, because others lack what it holds.
func (r *Run) NeedMemory(bytes int64) error {
	r.asking.Lock() // one wait at a time
	defer r.asking.Unlock()
	b, n := r.b, r.node
	b.mu.Lock()
	if b.opts.Memory <= 0 || bytes <= n.memory || r.away || r.isOver() {
		b.mu.Unlock()
		return nil
	}
	w := &weighing{r: r, memory: bytes, granted: make(chan struct{})}
	b.asking = append(b.asking, w)
	b.start() // this run waits, so others may start
	b.mu.Unlock()
	select {
	case <-w.granted:
		return nil
	case <-r.ctx.Done():
		b.mu.Lock()
		defer b.mu.Unlock()
		b.asking = slices.DeleteFunc(b.asking, func(other *weighing) bool { return other == w })
		b.start()
		return r.ctx.Err()
	}
}

// grant gives memory to waiting runs, in order: what fits, or any amount if no run is at work. b.mu is held.
func (b *build) grant() {
	for len(b.asking) > 0 {
		w := b.asking[0]
		more := w.memory - w.r.node.memory
		if b.memory+more > b.opts.Memory && b.slots > len(b.asking) {
			return
		}
		b.asking = b.asking[1:]
		w.r.node.memory += more
		b.memory += more
		close(w.granted)
	}
}

// needs is the expected memory of a run, in bytes.
func (n *node) needs() int64 {
	for _, t := range n.traces {
		if t.Memory > 0 {
			return t.Memory
		}
	}
	return n.task.Memory
}

// work runs a node, and then others, until there is nothing to start.
func (b *build) work(n *node) {
	for n != nil {
		r, rival := b.run(n)
		b.mu.Lock()
		if rival {
			b.away--
		} else {
			b.ended(n, r)
		}
		b.grant()
		n = nil
		if len(b.resumes) == 0 {
			if n = b.next(); n != nil {
				b.take(n)
			}
		}
		b.start()
		if n == nil {
			if b.alive--; b.alive == 0 {
				b.idle.Broadcast()
			}
		}
		b.mu.Unlock()
	}
}

// ended frees what a node had while it ran, and sets its result. Without one, another machine sent it back. b.mu is held.
func (b *build) ended(n *node, r *Result) {
	b.hold(n, -1)
	b.memory -= n.memory
	n.memory = 0
	if r == nil {
		b.bringBack(n)
		return
	}
	if r.Trace != nil {
		b.ran, b.seconds = b.ran+1, b.seconds+r.Trace.Seconds
	}
	b.finish(n, r)
}

// tornRuns is how many times a task runs at most if what it reads changes during the run.
const tornRuns = 3

// run runs a node's task and stores the trace; it repeats the run if what it read has changed meanwhile. The result is nil if another
// machine sent the task back to run here; and for a rival, whose result is that of the run here if it was first.
func (b *build) run(n *node) (res *Result, rival bool) {
	started, there := time.Now(), n.where == away
	if n.where != back { // else it was started already, on another machine
		b.world.Started(n.task)
	}
	for torn := 0; ; {
		r := &Run{ctx: b.ctx, node: n, b: b, away: there}
		b.watch(n, r)
		out, err := n.task.Run(r)
		r.End()
		again := b.watched(n, r)
		if b.rivalEnded(r, started, out, err) {
			return nil, true
		}
		if !b.lost(n) {
			if again {
				continue
			}
			if torn++; r.torn != nil && torn < tornRuns && b.ctx.Err() == nil {
				continue
			}
		}
		if there && errors.Is(err, ErrHere) && !r.stopped && b.ctx.Err() == nil {
			return nil, false
		}
		if w := b.decide(n); w != nil {
			return b.keep(n, w.run, w.started, w.out, nil), false
		}
		return b.keep(n, r, started, out, err), false
	}
}

// watch makes a run known to the control, and to its rival.
func (b *build) watch(n *node, r *Run) {
	if b.opts.Control == nil && b.opts.Away == nil {
		return
	}
	r.ctx, r.cancel = context.WithCancel(b.ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	if n.run = r; n.race != nil && n.race.won != nil {
		r.cancel()
	}
}

// watched ends watch, and reports whether the task must run again.
func (b *build) watched(n *node, r *Run) bool {
	if r.cancel == nil {
		return false
	}
	r.cancel()
	b.mu.Lock()
	defer b.mu.Unlock()
	if n.run == r {
		n.run = nil
	}
	if r.again && b.stopped {
		r.stopped = true
		return false
	}
	return r.again
}

// keep makes and stores the trace of a run.
func (b *build) keep(n *node, r *Run, started time.Time, out Output, err error) *Result {
	res := &Result{Task: n.task, State: Ran, Why: n.why, Started: started, Remote: out.Remote}
	t := &Trace{
		Fingerprint: n.task.Fingerprint, Observations: r.seen, Messages: out.Messages, Memory: out.Memory,
		Why: n.why, Seconds: (time.Since(started) - n.waited).Seconds(), Build: b.opts.Build,
	}
	if away := out.Remote; away != nil {
		t.Worker = away.Worker
		if away.Ran > 0 {
			t.Seconds = away.Ran.Seconds()
		}
	}
	var need *NeedError
	torn := r.torn != nil
	switch {
	case r.stopped || b.ctx.Err() != nil && err != nil:
		res.State = Stopped
	case r.cycle != nil:
		t.Outcome, t.Cycle = Cyclic, r.cycle.Cycle
	case err == nil && !torn:
		t.Outcome, t.Products, t.Shareable = Succeeded, out.Products, out.Shareable
	case errors.As(err, &need):
		t.Outcome, t.Root = NeedsFailed, need.Root
	default:
		t.Outcome = Failed
	}
	if res.State == Ran {
		res.Trace = t
		if !errors.Is(err, ErrPassing) && !torn {
			if err := b.store.Add(n.task.Key, t); err != nil {
				b.fail(err)
			} else {
				b.offer(n.task, t)
			}
		}
	}
	b.world.Finished(res)
	return res
}

// fail ends the build because traces can no longer be stored.
func (b *build) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
	}
	b.halt()
}

// answer is the answer to a subject: without a node if the subject means no task. The node is done unless a cycle is
// reported.
type answer struct {
	node   *node
	result *Result
}

// await brings tasks up to date for a run: all of them, or, if one closes a cycle, those before it.
func (b *build) await(r *Run, subjects []string) ([]answer, []string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.isRival() {
		return b.known(r, subjects)
	}
	answers := make([]answer, len(subjects))
	for i, s := range subjects {
		if task := b.world.Resolve(s); task != nil {
			m := b.node(task)
			answers[i].node = m
			switch m.phase {
			case unvisited:
				b.check(m)
			case parked: // the run has provided its source
				b.enqueue(m, m.why)
			}
			b.yield(m, r.node)
			b.advance(m, r.node)
		}
	}
	cycle := b.suspend(r.node, answers)
	for i := range answers {
		a := &answers[i]
		switch {
		case a.node == nil:
			continue
		case a.node.phase == done && a.node.result.Trace != nil:
			a.result = a.node.result
			if inRing(a.result.Trace, r.node.task) {
				return answers[:i+1], a.result.Trace.Cycle, nil
			}
		case cycle != nil:
			return answers[:i+1], cycle, nil
		default:
			r.stopped = true
			return nil, nil, context.Canceled
		}
	}
	return answers, nil, nil
}

// suspend waits until all nodes are done, or the build is over, or n is found to be in a cycle. b.mu is held, but
// released while it waits.
func (b *build) suspend(n *node, answers []answer) (cycle []string) {
	var open []*node
	var on []*Task
	for _, a := range answers {
		switch {
		case a.node == nil:
		case a.node.phase != done:
			open, on = append(open, a.node), append(on, a.node.task)
		case a.node.result.Trace != nil && inRing(a.node.result.Trace, n.task):
			return a.node.result.Trace.Cycle
		}
	}
	if len(open) == 0 || b.stopped || n.race != nil && n.race.won != nil {
		return nil
	}
	n.wait(open...)
	if cycle := b.cycleOf(n); cycle != nil {
		n.waitNoMore()
		return cycle
	}
	w := &waiting{n: n, left: len(open), wake: make(chan struct{})}
	for _, m := range open {
		m.resumes = append(m.resumes, w)
	}
	n.phase = suspended
	began := time.Now()
	b.mu.Unlock()
	b.world.Suspended(n.task, on, true) // before the slot is free, so that the World sees the beginning of the wait first
	b.mu.Lock()
	b.hold(n, -1)
	b.start()
	b.mu.Unlock()
	<-w.wake
	b.world.Suspended(n.task, on, false)
	b.mu.Lock()
	n.waited += time.Since(began)
	return w.cycle
}
