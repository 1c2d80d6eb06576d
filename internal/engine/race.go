package engine

import (
	"context"
	"slices"
	"time"
)

// A task that is overdue on another machine starts here as well, in a slot that has nothing else to do. The first of the two runs that
// succeeds there, or ends here, gives the result. The other one is cancelled, and what it comes to is dropped.
//
// From then on the run here is that of the node, and the one there is its rival: it keeps its slot, is not suspended any more (if it needs
// a task that is not done, it gives up), and so it is in no cycle.

// race is between two runs of a node.
type race struct {
	rival *Run // there; nil once it ended
	won   *won // the rival was first
	over  bool // the run here was first
}

// won is a run that was first.
type won struct {
	run     *Run
	started time.Time
	out     Output
}

// Elsewhere notes that a run waits for another machine, and is overdue if that takes longer than patience. The function that it returns
// ends the wait.
func (r *Run) Elsewhere(patience time.Duration) (end func()) {
	b, over := r.b, false
	overdue := time.AfterFunc(patience, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if !over && r.node.race == nil {
			b.late = append(b.late, r)
			b.start()
		}
	})
	return func() {
		overdue.Stop()
		b.mu.Lock()
		defer b.mu.Unlock()
		over = true
		b.late = slices.DeleteFunc(b.late, func(other *Run) bool { return other == r })
	}
}

// Rival reports whether the task of a run on another machine runs here as well.
func (r *Run) Rival() bool {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	return r.isRival()
}

// isRival is Rival with b.mu held.
func (r *Run) isRival() bool { return r.away && r.node.race != nil }

// nextLate starts a race for the task that is overdue for the longest time, if there is a slot and memory for it. b.mu is held.
func (b *build) nextLate() *node {
	if len(b.late) == 0 || !b.free() {
		return nil
	}
	r := b.late[0]
	n := r.node
	if b.opts.Memory > 0 && b.slots > 0 && b.memory+n.needs() > b.opts.Memory {
		return nil
	}
	b.late = b.late[1:]
	n.race = &race{rival: r}
	n.where, n.waited = back, 0
	return n
}

// rivalEnded notes that a run has ended, if it was a rival, and reports whether it was. If it was first, the run here is cancelled.
func (b *build) rivalEnded(r *Run, started time.Time, out Output, err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !r.isRival() {
		return false
	}
	n := r.node
	if n.race.rival = nil; err != nil || r.torn != nil || r.again || r.stopped || r.cycle != nil || n.race.over || b.ctx.Err() != nil {
		return true
	}
	n.race.won = &won{r, started, out}
	if n.run != nil && n.run != r {
		n.run.cancel()
	}
	for _, m := range n.waits { // it may be suspended
		for _, w := range m.resumes {
			if w.n == n && w.left > 0 {
				b.wake(w, nil)
				return true
			}
		}
	}
	return true
}

// lost reports whether the rival of a run here was first.
func (b *build) lost(n *node) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return n.race != nil && n.race.won != nil
}

// decide ends a race, and returns the winner if that is the rival. Otherwise that is cancelled.
func (b *build) decide(n *node) *won {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n.race == nil {
		return nil
	}
	if n.race.over = n.race.won == nil; n.race.over && n.race.rival != nil {
		n.race.rival.cancel()
	}
	return n.race.won
}

// runs are the runs of a node that can be cancelled. b.mu is held.
func (n *node) runs() (all []*Run) {
	if n.run != nil {
		all = append(all, n.run)
	}
	if n.race != nil && n.race.rival != nil && n.race.rival != n.run {
		all = append(all, n.race.rival)
	}
	return all
}

// known is what a rival gets of the tasks that it needs: they have to be done. b.mu is held.
func (b *build) known(r *Run, subjects []string) ([]answer, []string, error) {
	answers := make([]answer, len(subjects))
	for i, s := range subjects {
		task := b.world.Resolve(s)
		if task == nil {
			continue
		}
		m := b.nodes.Get(*task.hash())
		if m == nil || m.phase != done || m.result.Trace == nil || inRing(m.result.Trace, r.node.task) {
			r.stopped = true
			return nil, nil, context.Canceled
		}
		answers[i] = answer{node: m, result: m.result}
	}
	return answers, nil, nil
}
