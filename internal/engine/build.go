package engine

import (
	"container/heap"
	"context"
	"errors"
	"sync"
	"time"
)

// build is one build under way.
type build struct {
	opts   Options
	world  World
	store  Store
	ctx    context.Context
	wanted map[*node]bool

	mu      sync.Mutex
	nodes   map[Key]*node
	order   []*node // as they were met, so that results come in a stable order
	queue   queue
	resumes []*waiting        // runs that may go on, first come first served, before anything in the queue
	slots   int               // in use
	memory  int64             // promised to running and suspended tasks
	alive   int               // goroutines of runs
	stopped bool              // nothing is started any more
	idle    sync.Cond         // alive became 0
	err     error             // of the store
	paths   map[*node][]*node // known dependents of nodes that are not done
}

// waiting is a run that is suspended.
type waiting struct {
	n    *node
	left int // nodes it waits for; 0 once it is woken
	wake chan struct{}
}

// Build brings tasks up to date and tells what became of each, and of all that they needed, in a stable order.
// The error is the context's or the store's; tasks that fail are no error here.
func Build(ctx context.Context, world World, store Store, opts Options, tasks []*Task) ([]*Result, error) {
	b := &build{
		opts: opts, world: world, store: store, ctx: ctx,
		nodes: make(map[Key]*node, len(tasks)), order: make([]*node, 0, len(tasks)),
	}
	b.idle.L = &b.mu
	stop := context.AfterFunc(ctx, b.stop)
	defer stop()

	b.mu.Lock()
	defer b.mu.Unlock()
	b.sweep(tasks)
	if !opts.DryRun {
		b.findPaths()
		b.start()
		for b.alive > 0 {
			b.idle.Wait()
		}
	}
	err := b.err
	if err == nil {
		err = ctx.Err()
	}
	return b.results(), err
}

func (b *build) sweep(tasks []*Task) {
	if b.opts.Force {
		b.wanted = make(map[*node]bool, len(tasks))
		for _, t := range tasks {
			b.wanted[b.node(t)] = true
		}
	}
	for i, t := range tasks {
		if i%1024 == 0 && b.ctx.Err() != nil {
			return
		}
		if n := b.node(t); n.phase == unvisited {
			b.check(n)
		}
	}
}

func (b *build) results() []*Result {
	all := make([]*Result, 0, len(b.order))
	for _, n := range b.order {
		if n.result == nil {
			n.result = &Result{Task: n.task, State: Stopped, Why: n.why}
			if b.opts.DryRun && n.phase == queued {
				n.result.State = WouldRun
			} else if b.opts.DryRun && len(n.waits) > 0 {
				n.result.State = Undecided
				n.result.Why = Reason{Cause: NeedsUndecided, Observation: n.traces[n.at].Observations[n.seen]}
			}
		}
		all = append(all, n.result)
	}
	return all
}

func (b *build) node(t *Task) *node {
	n := b.nodes[t.Key]
	if n == nil {
		n = &node{task: t}
		b.nodes[t.Key] = n
		b.order = append(b.order, n)
	}
	return n
}

// enqueue puts a node whose traces do not hold into the queue.
func (b *build) enqueue(n *node, why Reason) {
	n.phase, n.why, n.waits = queued, why, nil
	n.order = len(b.order) + len(b.queue)
	if b.opts.DryRun {
		return
	}
	if b.pathsKnown() {
		b.path(n)
	}
	heap.Push(&b.queue, n)
}

// finish sets the result of a node and lets go on who waited for it. b.mu is held.
func (b *build) finish(n *node, r *Result) {
	n.phase, n.result, n.waits = done, r, nil
	if b.opts.FailFast && r.Trace != nil && r.Trace.Outcome != Succeeded {
		b.halt()
	}
	checks := n.checks
	n.checks = nil
	for _, c := range checks {
		c.waits = c.waits[:0]
		b.check(c)
	}
	for _, w := range n.resumes {
		if w.left > 0 {
			if w.left--; w.left == 0 {
				b.resumes = append(b.resumes, w)
			}
		}
	}
	n.resumes = nil
}

// stop is halt for when the context ends.
func (b *build) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.halt()
	b.start()
}

// halt starts nothing more and wakes who sleeps: what they wait for may never be done. b.mu is held.
func (b *build) halt() {
	b.stopped = true
	for _, n := range b.order {
		for _, w := range n.resumes {
			if w.left > 0 {
				w.left = 0
				b.resumes = append(b.resumes, w)
			}
		}
		n.resumes = nil
	}
}

// start gives free slots away. b.mu is held.
func (b *build) start() {
	for b.slots < max(1, b.opts.Workers) {
		if len(b.resumes) > 0 {
			w := b.resumes[0]
			b.resumes = b.resumes[1:]
			b.slots++
			w.n.phase, w.n.waits = running, nil
			close(w.wake)
			continue
		}
		n := b.next()
		if n == nil {
			return
		}
		b.take(n)
		b.alive++
		go b.work(n)
	}
}

// next is the node at the head of the queue, if it may start now: there is memory for it, or
// nothing at all runs, so that a task larger than the limit, or suspended tasks that hold
// memory, never stop the build.
func (b *build) next() *node {
	if b.stopped || len(b.queue) == 0 {
		return nil
	}
	n := b.queue[0]
	if b.opts.Memory > 0 && b.slots > 0 && b.memory+n.needs() > b.opts.Memory {
		return nil
	}
	heap.Pop(&b.queue)
	return n
}

func (b *build) take(n *node) {
	n.phase = running
	b.slots++
	b.memory += n.needs()
}

// needs is the memory that a run is expected to need, in bytes.
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
		r := b.run(n)
		b.mu.Lock()
		b.slots--
		b.memory -= n.needs()
		b.finish(n, r)
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

// run runs a node's task and keeps the trace.
func (b *build) run(n *node) *Result {
	r := &Run{ctx: b.ctx, node: n, b: b}
	res := &Result{Task: n.task, State: Ran, Why: n.why, Started: time.Now()}
	b.world.Started(n.task)
	out, err := n.task.Run(r)
	t := &Trace{
		Fingerprint: n.task.Fingerprint, Observations: r.seen, Messages: out.Messages, Memory: out.Memory,
		Why: n.why, Seconds: time.Since(res.Started).Seconds(), Build: b.opts.Build,
	}
	var need *NeedError
	switch {
	case r.stopped || b.ctx.Err() != nil && err != nil:
		res.State = Stopped
	case r.cycle != nil:
		t.Outcome, t.Ring = Cyclic, r.cycle.Ring
	case err == nil:
		t.Outcome, t.Products = Succeeded, out.Products
	case errors.As(err, &need):
		t.Outcome, t.Root = NeedsFailed, need.Root
	default:
		t.Outcome = Failed
	}
	if res.State == Ran {
		res.Trace = t
		if !errors.Is(err, ErrPassing) {
			if err := b.store.Add(n.task.Key, t); err != nil {
				b.fail(err)
			}
		}
	}
	b.world.Finished(res)
	return res
}

// fail ends the build because traces can no longer be kept.
func (b *build) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
	}
	b.halt()
}

// await brings tasks up to date for a run. For each subject either a result or a ring is given, or neither if there is no such task.
func (b *build) await(r *Run, subjects []string) ([]*Result, [][]string, error) {
	nodes, rings := make([]*node, len(subjects)), make([][]string, len(subjects))
	b.mu.Lock()
	w := &waiting{n: r.node, wake: make(chan struct{})}
	var on []*Task
	for i, s := range subjects {
		task := b.world.Resolve(s)
		if task == nil {
			continue
		}
		m := b.node(task)
		nodes[i] = m
		if m.phase == unvisited {
			// r waits for m already while m is checked: a ring through m's traces is a ring.
			r.node.waits = append(r.node.waits, m)
			b.check(m)
			r.node.waits = r.node.waits[:len(r.node.waits)-1]
		}
		b.hurry(m, r.node)
		if m.phase == done {
			continue
		}
		if rings[i] = b.ring(r.node, m); rings[i] != nil {
			continue
		}
		r.node.waits = append(r.node.waits, m)
		m.resumes = append(m.resumes, w)
		w.left++
		on = append(on, m.task)
	}
	if w.left > 0 && b.stopped {
		w.left = 0
	}
	if w.left > 0 {
		r.node.phase = suspended
		b.slots--
		b.start()
		b.mu.Unlock()
		b.world.Suspended(r.node.task, on, true)
		<-w.wake
		b.world.Suspended(r.node.task, on, false)
		b.mu.Lock()
	}
	defer b.mu.Unlock()
	r.node.waits = nil
	results := make([]*Result, len(subjects))
	for i, m := range nodes {
		if m == nil || rings[i] != nil {
			continue
		}
		if m.phase != done {
			r.node.waits, r.stopped = nil, true
			return nil, nil, context.Canceled
		}
		results[i] = m.result
	}
	return results, rings, nil
}
