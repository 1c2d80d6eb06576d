package castest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
)

// Memory is a store of blobs in memory. The zero Memory is empty.
type Memory struct {
	mu    sync.RWMutex
	blobs map[digest.Hash][]byte
}

var _ cas.Blobs = (*Memory)(nil)

// Add stores bytes and gives their hash.
func (m *Memory) Add(b []byte) digest.Hash {
	h := digest.Of(b)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.blobs == nil {
		m.blobs = map[digest.Hash][]byte{}
	}
	m.blobs[h] = bytes.Clone(b)
	return h
}

func (m *Memory) Has(ctx context.Context, hashes []digest.Hash) ([]bool, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	has := make([]bool, len(hashes))
	for i, h := range hashes {
		_, has[i] = m.blobs[h]
	}
	return has, ctx.Err()
}

func (m *Memory) Open(ctx context.Context, h digest.Hash) (io.ReadSeekCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	b, ok := m.blobs[h]
	if !ok {
		return nil, fmt.Errorf("%s: %w", h.Short(), fs.ErrNotExist)
	}
	return reader{bytes.NewReader(b)}, nil
}

type reader struct{ *bytes.Reader }

func (reader) Close() error { return nil }

func (m *Memory) Put(ctx context.Context, h digest.Hash, from io.Reader) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if digest.Of(b) != h {
		return fmt.Errorf("%s: %w", h.Short(), cas.ErrDamaged)
	}
	m.Add(b)
	return nil
}
