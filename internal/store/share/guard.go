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

// Guard wraps a cache, and does not use it for a while after it failed several times in a row.
type Guard struct {
	cache Cache
	now   func() time.Time

	mu       sync.Mutex
	failures int // number in a row
	until    time.Time
	first    error
}

// NewGuard wraps a cache.
func NewGuard(c Cache) *Guard { return &Guard{cache: c, now: time.Now} }

// Trouble is the first failure, or nil.
func (g *Guard) Trouble() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.first
}

// Alone reports whether the cache is not used for a while.
func (g *Guard) Alone() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failures >= failuresInRow && g.now().Before(g.until)
}

func (g *Guard) do(ctx context.Context, ask func() error) error {
	if g.Alone() {
		return ErrLeftAlone
	}
	err := ask()
	if ctx.Err() != nil {
		return err // the caller's context or deadline may be the cause, so it says nothing about the cache
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil || IsMiss(err) {
		g.failures = 0
		return err
	}
	if g.first == nil {
		g.first = err
	}
	if g.failures++; g.failures >= failuresInRow {
		g.until = g.now().Add(leftAlone)
	}
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
