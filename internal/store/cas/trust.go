package cas

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/source"
)

// A blob may be the same file as an output that somebody edits, and a power failure may lose written data. So the store
// records the stat of each blob when its bytes are known: when it has written or hashed it. A blob with that stat is
// trusted. Any other one is hashed before it is used, and removed if its bytes do not have its hash. The records only
// save hashing: if they are lost, blobs are hashed once more.

const (
	manyRecords = 512 // are written at once, so that a killed build does not lose all of them
	fewHashed   = 16  // this many small blobs are hashed before reading the records is worth it
)

// notes are the records about blobs; noted.go stores them.
type notes struct {
	mu sync.Mutex
	records
	loaded bool
	hashed int    // blobs hashed because the records were not loaded
	fresh  []byte // records that are not in the file yet
	anew   bool   // the file must be rewritten
}

// noted returns the recorded stat of a blob.
func (s *Store) noted(h digest.Hash) (source.Stat, bool) {
	s.notes.mu.Lock()
	defer s.notes.mu.Unlock()
	st, ok := s.notes.known[h]
	if !ok && !s.notes.loaded {
		s.load()
		st, ok = s.notes.known[h]
	}
	return st, ok
}

// note records that a blob's bytes are correct while it has this stat.
func (s *Store) note(h digest.Hash, st source.Stat) {
	s.notes.mu.Lock()
	defer s.notes.mu.Unlock()
	if s.notes.known == nil {
		s.notes.known = map[digest.Hash]source.Stat{}
	}
	s.notes.known[h] = st
	s.writeLater(appendLook(nil, h, st))
}

// writeLater adds a record to be written to the file later. The lock is held.
func (s *Store) writeLater(record []byte) {
	if s.still {
		return
	}
	s.notes.fresh = append(s.notes.fresh, record...)
	if len(s.notes.fresh) >= manyRecords*recordSize {
		s.flush() // if it fails, these blobs are hashed again later
	}
}

// Flush writes the records. The store can still be used.
func (s *Store) Flush() error {
	s.notes.mu.Lock()
	defer s.notes.mu.Unlock()
	return s.flush()
}

// Unload writes down what was noted, and reads it again when it is needed: of a million blobs it takes 140 MB.
func (s *Store) Unload() error {
	s.notes.mu.Lock()
	defer s.notes.mu.Unlock()
	err := s.flush()
	if err == nil && !s.still {
		s.notes.records, s.notes.loaded = records{}, false
	}
	return err
}

func (s *Store) flush() error {
	if s.still || len(s.notes.fresh) == 0 && !s.notes.anew {
		return nil
	}
	path := s.dir + notedFile
	if !s.notes.anew {
		f, err := disk.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
		if err == nil {
			var head [len(notedHead)]byte
			_, err = f.ReadAt(head[:], 0)
			info, serr := f.Stat()
			err = errors.Join(err, serr)
			if err == nil && (string(head[:]) != notedHead || (info.Size()-int64(len(notedHead)))%recordSize != 0) {
				err = fs.ErrInvalid // it has another version, or an incomplete end
			}
			if err == nil {
				_, err = f.Write(s.notes.fresh)
			}
			err = errors.Join(err, f.Close())
		}
		if err == nil {
			s.notes.fresh = s.notes.fresh[:0]
			return nil
		}
	}
	if !s.notes.loaded {
		s.load()
	}
	tmp := path + ".tmp"
	err := os.WriteFile(tmp, s.notes.records.file(), 0o666)
	if err == nil {
		err = disk.Replace(tmp, path)
	}
	if err != nil {
		return errors.Join(err, removeIfThere(tmp))
	}
	s.notes.fresh, s.notes.anew = nil, false
	return nil
}

func removeIfThere(file string) error {
	if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Distrust forgets the stats of blobs that changed after a time, in nanoseconds since 1970, also in the file: each of
// them is hashed once more before it is used.
func (s *Store) Distrust(since int64) error {
	s.notes.mu.Lock()
	defer s.notes.mu.Unlock()
	if !s.notes.loaded {
		s.load()
	}
	for h, st := range s.notes.known {
		if max(st.MTime, st.CTime) >= since {
			delete(s.notes.known, h)
		}
	}
	s.notes.anew = true
	return s.flush()
}

// drop forgets a blob's records.
func (s *Store) drop(h digest.Hash) {
	s.notes.mu.Lock()
	defer s.notes.mu.Unlock()
	if !s.notes.loaded {
		s.load()
	}
	delete(s.notes.known, h)
	delete(s.notes.sums, h)
	delete(s.notes.promised, h)
	s.notes.anew = true
}

// lock returns the lock to hold while checking and then using a blob.
func (s *Store) lock(h digest.Hash) *sync.Mutex { return &s.locks[h[0]%byte(len(s.locks))] }

// anySize stands for an unknown size.
const anySize = -1

// check returns what is wrong with a blob of this size (or anySize), or nil. It hashes the blob if its
// stat differs from the recorded one, and removes a damaged one. The lock is held.
func (s *Store) check(h digest.Hash, size int64) error {
	st, mode, err := source.StatPath(s.Path(h))
	switch {
	case err != nil:
		return err
	case mode != 0 || size != anySize && st.Size != size:
		return fmt.Errorf("%s: %w", h.Short(), ErrDamaged)
	case s.known(h, st):
		return nil
	}
	return s.verify(h, io.Discard)
}

// known reports whether a blob has its recorded stat. For the first few small blobs it returns false,
// because hashing them takes less time than reading all records.
func (s *Store) known(h digest.Hash, st source.Stat) bool {
	s.notes.mu.Lock()
	was, ok := s.notes.known[h]
	if !ok && !s.notes.loaded && st.Size <= smallBlob && s.notes.hashed < fewHashed {
		s.notes.hashed++
		s.notes.mu.Unlock()
		return false
	}
	s.notes.mu.Unlock()
	if !ok {
		was, ok = s.noted(h)
	}
	return ok && was == st
}

// Verify hashes a blob. It removes a damaged one and returns ErrDamaged; it makes a correct one read-only again.
func (s *Store) Verify(h digest.Hash) error {
	l := s.lock(h)
	l.Lock()
	defer l.Unlock()
	return s.verify(h, io.Discard)
}

// verify is Verify with the lock held. It also writes the bytes to another writer, which must not fail; after an error
// these are not the blob's.
func (s *Store) verify(h digest.Hash, also io.Writer) error {
	f, err := disk.Open(s.Path(h))
	if err != nil {
		return err
	}
	now := time.Now()
	before, err := source.StatFile(f)
	if err != nil {
		f.Close()
		return err
	}
	got, _, err := digest.Reader(io.TeeReader(f, also))
	after, serr := source.StatFile(f)
	same := before == after
	if info, ierr := f.Stat(); ierr == nil && got == h && same && !s.still && info.Mode()&0o222 != 0 && readOnly(f) == nil {
		after, serr = source.StatFile(f)
	}
	f.Close()
	if err = errors.Join(err, serr); err != nil {
		return err
	}
	if got != h {
		if s.OnDamage != nil {
			s.OnDamage(h)
		}
		if err := s.Remove(h); err != nil {
			return err
		}
		return fmt.Errorf("%s: %w", h.Short(), ErrDamaged)
	}
	if same && !before.TooYoung(now) {
		s.note(h, after)
	}
	return nil
}

// wrote records a blob that was just written and renamed. Its time is set back, so that an edit within the same clock
// tick shows.
func (s *Store) wrote(h digest.Hash) {
	if st, err := source.Aged(s.Path(h)); err == nil && !st.TooYoung(time.Now()) {
		s.note(h, st)
	}
}

// relinked runs an operation that adds or removes a name of a blob, which changes only its change time. The lock is
// held.
func (s *Store) relinked(h digest.Hash, do func() error) error {
	before, _, err := source.StatPath(s.Path(h))
	trusted := err == nil && s.known(h, before)
	err = do()
	if after, _, serr := source.StatPath(s.Path(h)); trusted && serr == nil {
		if before.CTime = after.CTime; before == after {
			s.note(h, after)
		}
	}
	return err
}

// Known reports whether a blob has its recorded stat, so that it need not be hashed.
func (s *Store) Known(h digest.Hash) bool {
	st, _, err := source.StatPath(s.Path(h))
	was, ok := s.noted(h)
	return err == nil && ok && was == st
}

// OpenFile opens a correct blob. A missing or damaged one is an error.
func (s *Store) OpenFile(h digest.Hash) (*os.File, error) {
	s.bring(h)
	l := s.lock(h)
	l.Lock()
	err := s.check(h, anySize)
	l.Unlock()
	if err != nil {
		return nil, err
	}
	return disk.Open(s.Path(h))
}

// Restore makes a lost blob from a file with the same content, and reports whether that succeeded. A
// read-only store does nothing.
func (s *Store) Restore(h digest.Hash, file string) bool {
	if got, err := source.HashFile(file); err != nil || got != h {
		return false
	}
	if s.still {
		return true
	}
	f, err := disk.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	return s.Put(context.Background(), h, f) == nil // fails if it changed meanwhile
}
