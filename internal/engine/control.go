package engine

import (
	"container/heap"
	"slices"
	"sync"
)

// Control influences a build under way. The zero value is ready to use. It belongs to one request: if that is done in
// several builds, one after the other, earlier calls also apply to the later builds.
type Control struct {
	// Prepared, if set, is called on its own goroutine once it is known which tasks hold and which will run.
	Prepared func()

	// Sooner are the subjects of tasks that run before others, in this order, but after tasks that somebody waits for.
	Sooner []string

	mu     sync.Mutex
	b      *build // nil if no build is under way
	halted bool
	urgent map[string]bool // subjects
}

func (c *Control) begin(b *build) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.b = b
}

func (c *Control) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.b = nil
}

func (c *Control) build() *build {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.b
}

// Prioritise has a task, and what it needs, done before all others. It returns the result if there is one already.
// known reports whether the subject means a task; it is false if no build is under way.
func (c *Control) Prioritise(subject string) (r *Result, known bool) {
	c.mu.Lock()
	if c.urgent == nil {
		c.urgent = map[string]bool{}
	}
	c.urgent[subject] = true
	b := c.b
	c.mu.Unlock()
	if b == nil {
		return nil, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.prioritiseTask(subject)
}

// prioritiseTask is Prioritise with b.mu held.
func (b *build) prioritiseTask(subject string) (r *Result, known bool) {
	task := b.world.Resolve(subject)
	if task == nil {
		return nil, false
	}
	n := b.nodes.Get(*task.hash())
	if n == nil {
		return nil, true
	}
	if n.phase == done {
		return n.result, true
	}
	b.promote(n, urgent)
	if b.swept > 0 {
		b.start()
	}
	return nil, true
}

// Seconds added to the path of a node: for a node that somebody waits for, more than for all others; for each place in
// Control.Sooner, more than any build takes. A float64 of this size is exact to 15 microseconds.
const (
	urgent     = 1e11
	first      = urgent / 2 // for nodes that Options.First names
	soonerStep = 1e5
	mostSooner = 1e5 // number of places
)

// promote moves a node, and what it waits for, before less urgent ones. b.mu is held.
func (b *build) promote(n *node, lift float64) {
	if n.lift >= lift || n.phase == done {
		return
	}
	n.path += lift - n.lift
	n.lift = lift
	if n.phase == queued {
		heap.Fix(b.queueOf(n), n.index)
	}
	for _, m := range n.waits {
		b.promote(m, lift)
	}
}

// Invalidate cancels those running tasks that have read something that is no longer true, so that they run again. It
// returns their number. Tasks that have read nothing of it continue.
func (c *Control) Invalidate(stale func(Kind, string) bool) int {
	b := c.build()
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	touched := 0
	for _, n := range b.order {
		for _, r := range n.runs() {
			if !r.again && r.saw(stale) {
				touched++
				r.again = true
				r.cancel()
			}
		}
	}
	return touched
}

func (r *Run) saw(stale func(Kind, string) bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.seen {
		if stale(r.seen[i].Kind, r.seen[i].Subject) {
			return true
		}
	}
	return false
}

// Halt starts nothing more. Running tasks continue to their end.
func (c *Control) Halt() {
	c.mu.Lock()
	c.halted = true
	b := c.b
	c.mu.Unlock()
	if b != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.halt()
		b.start()
	}
}

// Halted reports whether Halt was called.
func (c *Control) Halted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.halted
}

// Left is how many seconds the queued tasks take one after the other. A task of unknown duration counts as the average
// of those that ran.
func (c *Control) Left() float64 {
	b := c.build()
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	mean := 0.0
	if b.ran > 0 {
		mean = b.seconds / float64(b.ran)
	}
	left := 0.0
	for _, n := range slices.Concat(b.queue, b.movable) {
		if s := n.seconds(); s > 0 {
			left += s
		} else {
			left += mean
		}
	}
	return left
}

// prepare applies earlier calls of a control to a build after its sweep. b.mu is held.
func (c *Control) prepare(b *build) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for subject := range c.urgent {
		b.prioritiseTask(subject)
	}
	for i, subject := range c.Sooner[:min(len(c.Sooner), mostSooner)] {
		if task := b.world.Resolve(subject); task != nil {
			if n := b.nodes.Get(*task.hash()); n != nil {
				b.promote(n, float64(mostSooner-i)*soonerStep)
			}
		}
	}
	if c.Prepared != nil {
		go c.Prepared() // it may call methods that need b.mu
	}
	if c.halted {
		b.halt()
	}
}
