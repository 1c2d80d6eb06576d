package share

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// A cache that fails must not cost more than it saves.
const (
	failuresInRow = 3           // after this many, it is not asked for a while
	leftAlone     = time.Minute // how long
)

// ErrLeftAlone means that a cache was not asked because it failed several times in a row.
var ErrLeftAlone = errors.New("the cache failed several times in a row, and is left alone for a while")

// Health is what is known of whether a cache works. It may outlive the cache: the next one in the same place begins with it. The zero value
// knows nothing.
type Health struct {
	mu       sync.Mutex
	failures int // number in a row
	until    time.Time
	last     error
}

// Alone is why the cache is left alone now; nil: it is not.
func (h *Health) Alone() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failures >= failuresInRow && time.Now().Before(h.until) {
		return h.last
	}
	return nil
}

// note notes how an answer was.
func (h *Health) note(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		h.failures = 0
		return
	}
	if h.failures++; h.failures >= failuresInRow {
		h.until, h.last = time.Now().Add(leftAlone), err
	}
}

// Guard is a cache that is left alone for a while after it failed several times in a row.
type Guard struct {
	cache  Cache
	health *Health

	mu    sync.Mutex
	first error
}

// NewGuard guards a cache. health is what is known of it.
func NewGuard(c Cache, health *Health) *Guard { return &Guard{cache: c, health: health} }

// Trouble is the first failure, or why the cache was left alone from the beginning; nil: there was none.
func (g *Guard) Trouble() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.first
}

func (g *Guard) fails(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.first == nil {
		g.first = err
	}
}

func (g *Guard) do(ctx context.Context, ask func() error) error {
	if err := g.health.Alone(); err != nil {
		g.fails(err)
		return ErrLeftAlone
	}
	err := ask()
	if ctx.Err() != nil {
		return err // the caller's context or deadline may be the cause, so it says nothing about the cache
	}
	if err == nil || IsMiss(err) {
		g.health.note(nil)
		return err
	}
	g.fails(err)
	g.health.note(err)
	return err
}

// Get returns an entry.
func (g *Guard) Get(ctx context.Context, key Key) (value []byte, err error) {
	err = g.do(ctx, func() (err error) { value, err = g.cache.Get(ctx, key); return err })
	return value, err
}

// Put stores an entry.
func (g *Guard) Put(ctx context.Context, key Key, value []byte, blobs []Blob) error {
	return g.do(ctx, func() error { return g.cache.Put(ctx, key, value, blobs) })
}

// Missing returns which blobs the cache does not have.
func (g *Guard) Missing(ctx context.Context, blobs []Blob) (missing []Blob, err error) {
	err = g.do(ctx, func() (err error) { missing, err = g.cache.Missing(ctx, blobs); return err })
	return missing, err
}

// Fetch fetches a blob.
func (g *Guard) Fetch(ctx context.Context, blob Blob, to io.Writer) error {
	return g.do(ctx, func() error { return g.cache.Fetch(ctx, blob, to) })
}

// Store stores a blob.
func (g *Guard) Store(ctx context.Context, blob Blob, open func() (io.ReadCloser, error)) error {
	return g.do(ctx, func() error { return g.cache.Store(ctx, blob, open) })
}

// Close closes the cache.
func (g *Guard) Close() error { return g.cache.Close() }
