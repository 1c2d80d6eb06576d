package engine

import (
	"context"
	"slices"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

// Results of other builds, on this machine or another one, are looked up when no trace here holds. That takes
// two questions, both asked and answered without the lock, many at once. First: what did runs of this task
// observe? Then, when the current values of these things are known: what was the result of a run that saw the
// same values?
//
// The observations of a run are compared in order, like a trace. Another task is brought up to date for them
// only if some run saw the same values up to that point, and so asked for it next; a run here would do the
// same. So nothing runs that is not needed, and only real cycles are reported.

// Elsewhere finds results of other builds. Its methods, except Sought and Possible, are called without
// locks.
type Elsewhere interface {
	// Hints asks what runs of tasks observed. It calls answer once for each, from any goroutine, before it
	// returns.
	Hints(ctx context.Context, tasks []*Task, answer func(i int, hints []Hint))
	// Results asks for the results of runs that made these observations. The trace has no observations, reason or
	// build. It is nil if there is none whose output files can all be fetched.
	Results(ctx context.Context, asked []Asked, answer func(i int, t *Trace))
	// Ran is called for each run whose trace is stored, and for each trace that a twin lent.
	Ran(*Task, *Trace)
	// Sought and Possible are called with the engine's lock held. Sought returns the task that a subject means,
	// like World.Resolve. It also returns a task that cannot run here because its requester has not provided its
	// bytes yet: its result may be found elsewhere.
	Sought(subject string) *Task
	// Possible reports whether a task can run here.
	Possible(*Task) bool
}

// Asked is a task and the observations of a run.
type Asked struct {
	Task         *Task
	Observations []Observation
}

// Hint lists what runs of a task observed, without values, and for each known run the first bytes of the
// values.
type Hint struct {
	Observations []Observation
	Seen         [][]uint32
	Short        func(digest.Hash) uint32
}

// looking is the state of the search for a node's result in other builds.
type looking struct {
	hints []Hint
	at    int        // index of the current hint; node.seen is the position in it
	alive [][]uint32 // the entries of its Seen that agree with all values so far
	begun bool       // alive is set
}

// miss handles a node none of whose traces holds here.
func (b *build) miss(n *node, why *Reason) {
	if b.opts.Shared == nil || b.opts.DryRun {
		b.enqueue(n, why)
		return
	}
	n.phase, n.why = asking, why
	n.waitNoMore()
	b.unasked = append(b.unasked, n)
}

// ask sends the collected questions. b.mu is held.
func (b *build) ask() {
	unasked, followed := b.unasked, b.followed
	if b.unasked, b.followed = nil, nil; b.stopped {
		return // they are not done, and will not be
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

// background runs f on a goroutine that the build waits for. b.mu is held, but not by f.
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

// observe sets the values of the leaf observations of hints. It omits a hint if one of them cannot be observed.
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

// hinted continues with a node when it is known what its runs observed.
func (b *build) hinted(n *node, hints []Hint) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.stopped {
		n.phase, n.seen, n.looking = checking, 0, &looking{hints: hints}
		b.follow(n)
		b.start()
	}
}

// follow compares what runs of n observed, starting where it stopped last time. Afterwards n is queued,
// parked, asking for the result, or checking and waiting for another node. b.mu is held.
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
	if len(n.resumes) > 0 || b.opts.Shared.Possible(n.task) { // a run that asks for it has provided its source
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
				return false, false // no run that saw these values asked for it
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

// narrow keeps the runs that saw a value.
func (l *looking) narrow(at int, value uint32) {
	var alive [][]uint32
	for _, seen := range l.alive {
		if at < len(seen) && seen[at] == value {
			alive = append(alive, seen)
		}
	}
	l.alive = alive
}

// park sets aside a node that has no shared result and cannot run yet. For nodes that check, it does not
// exist; it can run once a run asks for it.
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

// notThere continues with a node for whose observations there is no shared result.
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

// adopt makes a result of another build the result of this node, as if it had run.
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
