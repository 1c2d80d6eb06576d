package cas

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

// A blob may be promised: it is not on this disk, but can be fetched from where results are shared, and
// is fetched when it is opened. If it cannot be fetched, the promise is void, and the blob counts as
// lost, which all readers of blobs handle already.

// Fetch writes a promised blob. Its SHA-256 and size identify it at its source.
type Fetch func(ctx context.Context, h digest.Hash, sum [sha256.Size]byte, size int64, to io.Writer) error

// Promise records that a blob can be fetched.
func (s *Store) Promise(h digest.Hash, sum [sha256.Size]byte, size int64) {
	s.notes.mu.Lock()
	defer s.notes.mu.Unlock()
	if was, ok := s.notes.promised[h]; ok && was == size && s.notes.sums[h] == sum {
		return
	}
	s.notes.know(h, sum)
	if s.notes.promised == nil {
		s.notes.promised = map[digest.Hash]int64{}
	}
	s.notes.promised[h] = size
	s.writeLater(appendRecord(nil, h, sum, sumRecord))
	s.writeLater(appendPromise(nil, h, size))
}

func (r *records) know(h digest.Hash, sum [sha256.Size]byte) {
	if r.sums == nil {
		r.sums = map[digest.Hash][sha256.Size]byte{}
	}
	r.sums[h] = sum
}

func appendPromise(b []byte, h digest.Hash, size int64) []byte {
	var about [lookSize]byte
	binary.LittleEndian.PutUint64(about[:], uint64(size))
	return appendRecord(b, h, about, promiseRecord)
}

// promised returns the record of a promised blob.
func (s *Store) promised(h digest.Hash) (sum [sha256.Size]byte, size int64, ok bool) {
	if s.Fetch == nil {
		return sum, 0, false
	}
	s.notes.mu.Lock()
	defer s.notes.mu.Unlock()
	if !s.notes.loaded {
		s.load()
	}
	size, ok = s.notes.promised[h]
	return s.notes.sums[h], size, ok
}

// Bring fetches a promised blob if it is not on this disk. If that fails, it returns an error for which
// Lost reports true.
func (s *Store) Bring(h digest.Hash) error {
	if s.Fetch == nil {
		return nil
	}
	s.bring(h)
	_, err := os.Lstat(s.Path(h))
	return err
}

// bring is Bring without a result; the next reader of the blob finds out. No lock is held.
func (s *Store) bring(h digest.Hash) {
	if s.Fetch == nil || s.still {
		return
	}
	if _, err := os.Lstat(s.Path(h)); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	sum, size, ok := s.promised(h)
	if !ok {
		return
	}
	w := s.Create()
	err := s.Fetch(context.Background(), h, sum, size, w)
	if err == nil {
		_, _, err = w.commit(&h)
	} else {
		w.Abort()
	}
	if err != nil {
		s.drop(h)
	}
}
