package engine

import (
	"container/heap"
	"slices"
	"sync"
)

// Control reaches into a build under way. The zero value is ready. It is for one request: if several builds are made for that, one after
// the other, what was said holds for the later ones too.
type Control struct {
	// Prepared is called once it is known which tasks hold and which are to run, on a goroutine of its own. May be nil.
	Prepared func()

	// Sooner are the subjects of tasks that go before others, in this order, though after those that somebody waits for.
	Sooner []string

	mu     sync.Mutex
	b      *build // nil: none is under way
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

// Prioritise has a task done before all others, with what it needs. It gives the result if there is one already. Known tells whether the subject
// means a task at all; without a build under way nothing is known.
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

// prioritiseTask is Prioritise. b.mu is held.
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

// What is added to the path of a node, in seconds: for one that somebody waits for more than for all others, and for each place in
// Control.Sooner more than any build takes. A float64 of this size is exact to 15 microseconds.
const (
	urgent     = 1e11
	first      = urgent / 2 // for those that Options.First names
	soonerStep = 1e5
	mostSooner = 1e5 // places
)

// promote puts a node, and what it waits for, before those that are lifted less. b.mu is held.
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

// Invalidate has those running tasks run again that have seen something which is not so any more: they are cancelled, and what they made is
// worth nothing. It tells how many there are. What has seen nothing of it goes on.
func (c *Control) Invalidate(stale func(Kind, string) bool) int {
	b := c.build()
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	touched := 0
	for _, n := range b.order {
		if r := n.run; r != nil && !r.again && r.saw(stale) {
			touched++
			r.again = true
			r.cancel()
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

// Halt starts nothing more. What runs goes on to its end.
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

// Halted tells whether Halt was called.
func (c *Control) Halted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.halted
}

// Left is how many seconds the tasks in the queue will take, one after the other, as far as that is known; those of which nothing is known
// count as those that ran.
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

// prepare says to a build that has swept what was said before. b.mu is held.
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
		go c.Prepared() // which may ask for what needs b.mu
	}
	if c.halted {
		b.halt()
	}
}
