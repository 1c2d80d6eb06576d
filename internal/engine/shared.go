package engine

import (
	"context"
	"slices"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

// Results of other builds, on this machine or another one, are looked up when no trace here holds. That takes
// two questions, both asked and answered without the lock, many at once: what did runs of this task observe?
// And, once the values of these things here are known, what was the result of a run that saw the same values?
//
// The observations of a run are compared in order, like a trace: another task is brought up to date for it
// only if some run saw the same values up to that point, and so asked for it next. A run here would do the
// same. So nothing runs that is not needed, and a cycle is reported only where there is one.

// Elsewhere is where results of other builds can be had. Its methods are called without locks, but for two.
type Elsewhere interface {
	// Hints asks what runs of tasks observed. It calls answer once for each, from any goroutine, before it
	// returns.
	Hints(ctx context.Context, tasks []*Task, answer func(i int, hints []Hint))
	// Results asks what runs came to that saw this. The trace has no observations, reason or build; it is nil if there is none that can be
	// had, with everything that stands in the output folder.
	Results(ctx context.Context, asked []Asked, answer func(i int, t *Trace))
	// Ran is called for each run whose trace is kept.
	Ran(*Task, *Trace)
	// Sought and Possible are called with the engine's lock held. Sought finds the task that a subject means, as
	// World.Resolve, and also one that cannot run here, because bytes are missing that its requester would
	// provide; its result may be there.
	Sought(subject string) *Task
	// Possible reports whether a task can run here.
	Possible(*Task) bool
}

// Asked is a task, and what a run of it would see.
type Asked struct {
	Task         *Task
	Observations []Observation
}

// Hint lists what runs of a task observed, without values, and for each known run the first bytes of the
// values that it saw.
type Hint struct {
	Observations []Observation
	Seen         [][]uint32
	Short        func(digest.Hash) uint32
}

// looking is what is known of a node whose result is looked for.
type looking struct {
	hints []Hint
	at    int        // hint that is followed; node.seen is how far
	alive [][]uint32 // of its Seen, those that saw what is seen here so far
	begun bool       // alive is set
}

// miss is for a node of which no trace holds here.
func (b *build) miss(n *node, why *Reason) {
	if b.opts.Shared == nil || b.opts.DryRun {
		b.enqueue(n, why)
		return
	}
	n.phase, n.why = asking, why
	n.waitNoMore()
	b.unasked = append(b.unasked, n)
}

// ask sends off the questions that came up. b.mu is held.
func (b *build) ask() {
	unasked, followed := b.unasked, b.followed
	if b.unasked, b.followed = nil, nil; b.stopped {
		return // they are not done, and stay so
	}
	if len(unasked) > 0 {
		b.background(func() { b.askHints(unasked) })
	}
	if len(followed) > 0 {
		asked := make([]Asked, len(followed))
		for i, n := range followed {
			asked[i] = Asked{n.task, n.looking.hints[n.looking.at].Observations}
		}
		b.background(func() { b.askResults(followed, asked) })
	}
}

// background runs what the build waits for. b.mu is held, but not by f.
func (b *build) background(f func()) {
	b.alive++
	go func() {
		f()
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.alive--; b.alive == 0 {
			b.idle.Broadcast()
		}
	}()
}

func (b *build) askHints(nodes []*node) {
	tasks := make([]*Task, len(nodes))
	for i, n := range nodes {
		tasks[i] = n.task
	}
	b.opts.Shared.Hints(b.asks, tasks, func(i int, hints []Hint) { b.hinted(nodes[i], b.observe(hints)) })
}

// observe gives the leaf observations of hints their values. A hint with one that cannot be observed is left out.
func (b *build) observe(hints []Hint) []Hint {
	return slices.DeleteFunc(hints, func(h Hint) bool {
		for i := range h.Observations {
			if o := &h.Observations[i]; o.Kind >= FirstLeaf {
				var err error
				if o.Value, err = b.world.Observe(o.Kind, o.Subject); err != nil {
					return true
				}
			}
		}
		return false
	})
}

// hinted continues with a node once it is known what its runs observed.
func (b *build) hinted(n *node, hints []Hint) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.stopped {
		n.phase, n.seen, n.looking = checking, 0, &looking{hints: hints}
		b.follow(n)
		b.start()
	}
}

// follow checks what runs of n observed, from where it stopped last. It ends with n queued, parked, asking
// for the result, or checking and waiting for another node. b.mu is held.
func (b *build) follow(n *node) {
	for l := n.looking; l.at < len(l.hints); l.at, l.begun, n.seen = l.at+1, false, 0 {
		same, wait := b.followHint(n, &l.hints[l.at])
		if wait {
			return
		}
		if same {
			n.phase = asking
			n.waitNoMore()
			b.followed = append(b.followed, n)
			return
		}
	}
	n.looking = nil
	if len(n.resumes) > 0 || b.opts.Shared.Possible(n.task) { // a run that asks for it has brought what it works on
		b.enqueue(n, n.why)
	} else {
		b.park(n)
	}
}

func (b *build) followHint(n *node, h *Hint) (same, wait bool) {
	l := n.looking
	if !l.begun {
		l.alive, l.begun = h.Seen, true
	}
	for ; n.seen < len(h.Observations); n.seen++ {
		o := &h.Observations[n.seen]
		if o.Kind < FirstLeaf {
			if o.Kind == Outline && len(l.alive) == 0 {
				return false, false // no run that saw this asked for it
			}
			value, ok := b.valueOf(n, o, b.opts.Shared.Sought(o.Subject))
			if !ok {
				return false, true
			}
			o.Value = value
		}
		l.narrow(n.seen, h.Short(o.Value))
	}
	return true, false
}

// narrow leaves those runs that saw a value.
func (l *looking) narrow(at int, value uint32) {
	var alive [][]uint32
	for _, seen := range l.alive {
		if at < len(seen) && seen[at] == value {
			alive = append(alive, seen)
		}
	}
	l.alive = alive
}

// park sets aside a node that has no shared result and that cannot run yet. To the nodes that wait for it, it
// does not exist; once a run asks for it, it can run.
func (b *build) park(n *node) {
	n.phase = parked
	n.waitNoMore()
	b.resume(n)
}

func (b *build) askResults(nodes []*node, asked []Asked) {
	b.opts.Shared.Results(b.asks, asked, func(i int, t *Trace) {
		if t == nil {
			b.notThere(nodes[i])
			return
		}
		t.Observations = slices.Clone(asked[i].Observations)
		b.adopt(nodes[i], t)
	})
}

// notThere continues with a node that has no shared result for what it observed.
func (b *build) notThere(n *node) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.stopped {
		n.phase, n.seen = checking, 0
		n.looking.at++
		n.looking.begun = false
		b.follow(n)
		b.start()
	}
}

// adopt makes a result of another build the one of this node: it is as if it had run.
func (b *build) adopt(n *node, t *Trace) {
	t.Fingerprint, t.Why, t.Build, t.Adopted = n.task.Fingerprint, n.why, b.opts.Build, true
	if err := b.store.Add(n.task.Key, t); err != nil {
		b.fail(err)
		return
	}
	res := &Result{Task: n.task, State: Adopted, Trace: t, Why: n.why}
	b.world.Finished(res)
	b.mu.Lock()
	defer b.mu.Unlock()
	n.looking = nil
	b.finish(n, res)
	b.start()
}
