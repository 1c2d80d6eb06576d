package build

import (
	"context"
	"sync"
)

// gate lets jobs take memory as long as it lasts: one that knows from the head of its picture how much that is asks before it takes it. A
// job that needs more than there is at all waits until it is alone. Whoever has been let through waits for nothing and nobody until it
// ends, so nobody waits for good.
type gate struct {
	mu    sync.Mutex
	limit int64 // 0 is none
	taken int64
	freed chan struct{} // closed when memory is given back; nil if nobody waits
}

// take waits until there is memory. An error is the context's.
func (g *gate) take(ctx context.Context, bytes int64) error {
	for {
		g.mu.Lock()
		if g.limit <= 0 || g.taken == 0 || g.taken+bytes <= g.limit {
			g.taken += bytes
			g.mu.Unlock()
			return nil
		}
		if g.freed == nil {
			g.freed = make(chan struct{})
		}
		freed := g.freed
		g.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// give gives back.
func (g *gate) give(bytes int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.taken -= bytes
	if g.freed != nil {
		close(g.freed)
		g.freed = nil
	}
}

// NeedMemory waits until there is so much memory for the job, which has it until it ends. Only the first call of a job waits, and a job
// that called it must ask for nothing that other jobs make. It is not part of processor.Job; the texture processor looks for it.
func (j *job) NeedMemory(ctx context.Context, bytes int64) error {
	j.mu.Lock()
	first := j.held == 0
	j.mu.Unlock()
	if !first {
		return nil
	}
	if err := j.w.memory.take(ctx, bytes); err != nil {
		return err
	}
	j.mu.Lock()
	j.held = bytes
	j.mu.Unlock()
	return nil
}
