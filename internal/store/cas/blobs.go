package cas

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

// Blobs is a store of immutable blobs by the hash of their content, on this machine or another one. Its methods may be
// called by several goroutines. If the context ends, a call returns the context's error and stores nothing. Package
// castest has the tests that every store must pass.
type Blobs interface {
	// Has reports for each hash whether its blob exists, with correct bytes.
	Has(ctx context.Context, hashes []digest.Hash) ([]bool, error)

	// Open opens a blob whose bytes have been checked. If it is not available, Lost reports true for the
	// error.
	Open(ctx context.Context, h digest.Hash) (io.ReadSeekCloser, error)

	// Put stores the blob of a hash, completely or not at all. If the bytes have another hash, nothing is stored and
	// the error is ErrDamaged; an error of the reader is returned. If the blob exists already, Put may read nothing.
	Put(ctx context.Context, h digest.Hash, from io.Reader) error
}

var _ Blobs = (*Store)(nil)

// Lost reports whether an error means that a blob is not available because it is missing or was damaged.
func Lost(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrDamaged) }

// Has checks several blobs at once; a promised blob counts as existing. A blob whose stat differs from the
// recorded one is hashed, and removed if it is damaged.
func (s *Store) Has(ctx context.Context, hashes []digest.Hash) ([]bool, error) {
	if len(hashes) == 0 {
		return nil, ctx.Err() // must be free: builds ask for each trace
	}
	has := make([]bool, len(hashes))
	var next atomic.Int64
	look := func() {
		for i := int(next.Add(1)) - 1; i < len(hashes); i = int(next.Add(1)) - 1 {
			select {
			case <-ctx.Done():
				return
			default:
			}
			l := s.lock(hashes[i])
			l.Lock()
			has[i] = s.check(hashes[i], anySize) == nil
			l.Unlock()
			if !has[i] {
				_, _, has[i] = s.promised(hashes[i])
			}
		}
	}
	workers := s.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	var wg sync.WaitGroup
	for range min(workers, len(hashes)) - 1 {
		wg.Go(look)
	}
	look()
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return has, nil
}

// Open is OpenFile as a method of Blobs.
func (s *Store) Open(ctx context.Context, h digest.Hash) (io.ReadSeekCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := s.OpenFile(h)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Put stores a blob whose hash is known. It fails if the store is read-only.
func (s *Store) Put(ctx context.Context, h digest.Hash, from io.Reader) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.still {
		return fmt.Errorf("%s: the store is open for reading only: %w", h.Short(), fs.ErrPermission)
	}
	l := s.lock(h)
	l.Lock()
	err := s.check(h, anySize)
	l.Unlock()
	if err == nil {
		return nil
	}
	w := s.Create()
	if _, err := io.Copy(w, &stoppable{ctx, from}); err != nil {
		w.Abort()
		return err
	}
	_, _, err = w.commit(&h)
	return err
}

// stoppable is a reader that fails when a context ends.
type stoppable struct {
	ctx  context.Context
	from io.Reader
}

func (s *stoppable) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.from.Read(p)
}
