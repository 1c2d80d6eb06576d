package engine

import "container/heap"

// queue holds the nodes to run: longest known path to the end of the build first; equal nodes in order of arrival.
type queue []*node

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q.before(q[i], q[j]) }

// before reports whether n starts before m.
func (queue) before(n, m *node) bool {
	if n.path != m.path {
		return n.path > m.path
	}
	return n.order < m.order
}

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}
func (q *queue) Push(x any) {
	n := x.(*node)
	n.index = len(*q)
	*q = append(*q, n)
}
func (q *queue) Pop() any {
	old := *q
	n := old[len(old)-1]
	*q = old[:len(old)-1]
	return n
}

// pathsKnown reports whether findPaths was called.
func (b *build) pathsKnown() bool { return b.paths != nil }

// findPaths computes, for each node that is not done, the seconds from its start to the end of the build along the
// dependents that traces name.
func (b *build) findPaths() {
	b.paths = map[*node][]*node{}
	for _, n := range b.order {
		if n.phase == done || len(n.traces) == 0 {
			continue
		}
		for i := range n.traces[0].Observations {
			o := &n.traces[0].Observations[i]
			if o.Kind != Outline {
				continue
			}
			if t := b.world.Resolve(o.Subject); t != nil {
				if m := b.nodes.Get(*t.hash()); m != nil && m.phase != done {
					b.paths[m] = append(b.paths[m], n)
				}
			}
		}
	}
	for _, n := range b.order {
		if n.phase != done {
			b.path(n)
		}
	}
	heap.Init(&b.queue)
	heap.Init(&b.movable)
}

func (b *build) path(n *node) float64 {
	if n.pathDone {
		return n.path
	}
	n.pathDone = true // set first, so that a cycle in old traces ends
	longest := 0.0
	for _, d := range b.paths[n] {
		longest = max(longest, b.path(d))
	}
	n.path = longest + n.seconds()
	return n.path
}

// seconds is the expected duration of a run.
func (n *node) seconds() float64 {
	if len(n.traces) > 0 {
		return n.traces[0].Seconds
	}
	return n.task.Estimate
}

// advance moves a queued node that a running one asks for before less urgent ones.
func (b *build) advance(m, asks *node) {
	if path := asks.path + m.seconds(); m.phase == queued && m.path < path {
		m.path = path
		heap.Fix(b.queueOf(m), m.index)
	}
}
