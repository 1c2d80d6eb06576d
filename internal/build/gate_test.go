package build

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
)

// However many ask, no more is taken at once than there is, but for one that is alone; and all come through.
func TestGate(t *testing.T) {
	g := &gate{limit: 100}
	var now, most atomic.Int64
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			bytes := int64(1 + i*7%60)
			if err := g.take(t.Context(), bytes); err != nil {
				t.Error(err)
				return
			}
			most.Store(max(most.Load(), now.Add(bytes)))
			now.Add(-bytes)
			g.give(bytes)
		})
	}
	wg.Wait()
	if m := most.Load(); m > 100 || m == 0 || g.taken != 0 {
		t.Errorf("%d at once, %d left", m, g.taken)
	}
	if err := g.take(t.Context(), 1000); err != nil { // alone
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.take(ctx, 1); err == nil {
		t.Error("one that was told to stop came through")
	}
	g.give(1000)
	if err := g.take(ctx, 1); err != nil || g.taken != 1 {
		t.Error("memory was kept:", err)
	}
}
