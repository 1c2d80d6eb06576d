package share

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Patience with a folder on a share that does not answer: a system call on it may block for ever, and cannot be interrupted.
const (
	callPatience  = 15 * time.Second // as with a server
	slowest       = 100_000          // bytes a second
	closePatience = 20               // times callPatience: deleting what is too much takes long in a large folder
	mostStuck     = 8                // calls that block at once, each with a thread of its own; the next ones fail at once
)

// errLate means that a call was given up.
type errLate struct{ after time.Duration }

func (e errLate) Error() string { return fmt.Sprintf("no answer within %v", e.after) }
func (e errLate) Unwrap() error { return os.ErrDeadlineExceeded }

// Within calls f, and gives it up after a time; 0 is that of a call. f goes on in the background, as long as it takes.
func Within(patience time.Duration, f func() error) error {
	if patience == 0 {
		patience = callPatience
	}
	return within(context.Background(), patience, f)
}

func within(ctx context.Context, patience time.Duration, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return errLate{patience}
	}
}

// Moving calls f, and gives it up when it has not called moved for a time; 0 is that of a call. f goes on in the background.
func Moving(patience time.Duration, f func(moved func()) error) error {
	if patience == 0 {
		patience = callPatience
	}
	var steps atomic.Int64
	done := make(chan error, 1)
	go func() { done <- f(func() { steps.Add(1) }) }()
	for seen := int64(-1); ; {
		select {
		case err := <-done:
			return err
		case <-time.After(patience):
			now := steps.Load()
			if now == seen || seen < 0 && now == 0 {
				return errLate{patience}
			}
			seen = now
		}
	}
}

// Patient is a cache whose calls are given up after a time, and when the context of the caller ends, although the cache under it cannot
// interrupt them. What was given up goes on in the background, and writes nothing to the caller any more.
type Patient struct {
	cache Cache
	call  time.Duration
	stuck atomic.Int64
}

// NewPatient makes one; call is the time for a call that moves little, 0 for the default.
func NewPatient(c Cache, call time.Duration) *Patient {
	if call == 0 {
		call = callPatience
	}
	return &Patient{cache: c, call: call}
}

// do calls f with a context that ends when it is given up.
func (p *Patient) do(ctx context.Context, size int64, f func(context.Context) error) error {
	if p.stuck.Load() >= mostStuck {
		return errLate{p.call}
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	var state atomic.Int32 // 1: given up, 2: ended
	patience := p.call + time.Duration(size)*time.Second/slowest
	err := within(ctx, patience, func() error {
		err := f(inner)
		if !state.CompareAndSwap(0, 2) {
			p.stuck.Add(-1)
		}
		return err
	})
	if _, late := err.(errLate); late && state.CompareAndSwap(0, 1) {
		p.stuck.Add(1)
	}
	return err
}

// Get returns an entry.
func (p *Patient) Get(ctx context.Context, key Key) ([]byte, error) {
	got := make(chan []byte, 1)
	err := p.do(ctx, 0, func(ctx context.Context) error {
		value, err := p.cache.Get(ctx, key)
		got <- value
		return err
	})
	if err != nil {
		return nil, err
	}
	return <-got, nil
}

// Put stores an entry.
func (p *Patient) Put(ctx context.Context, key Key, value []byte, blobs []Blob) error {
	return p.do(ctx, int64(len(value)), func(ctx context.Context) error { return p.cache.Put(ctx, key, value, blobs) })
}

// Missing returns which blobs the cache does not have.
func (p *Patient) Missing(ctx context.Context, blobs []Blob) ([]Blob, error) {
	got := make(chan []Blob, 1)
	err := p.do(ctx, 0, func(ctx context.Context) error {
		missing, err := p.cache.Missing(ctx, blobs)
		got <- missing
		return err
	})
	if err != nil {
		return nil, err
	}
	return <-got, nil
}

// Fetch fetches a blob.
func (p *Patient) Fetch(ctx context.Context, blob Blob, to io.Writer) error {
	w := &until{to: to}
	defer w.close()
	return p.do(ctx, blob.Size, func(ctx context.Context) error { return p.cache.Fetch(ctx, blob, w) })
}

// Store stores a blob.
func (p *Patient) Store(ctx context.Context, blob Blob, open func() (io.ReadCloser, error)) error {
	return p.do(ctx, blob.Size, func(ctx context.Context) error {
		return p.cache.Store(ctx, blob, func() (io.ReadCloser, error) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			return open()
		})
	})
}

// Close closes the cache.
func (p *Patient) Close() error {
	if p.stuck.Load() > 0 {
		return nil // it would block too, and what it does, another build does
	}
	return Within(closePatience*p.call, p.cache.Close)
}

// until is a writer until it is closed, by another goroutine.
type until struct {
	mu     sync.Mutex
	to     io.Writer
	closed bool
}

func (u *until) Write(data []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return 0, os.ErrClosed
	}
	return u.to.Write(data)
}

func (u *until) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
}
