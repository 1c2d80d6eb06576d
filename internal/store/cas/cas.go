// Package cas keeps immutable blobs by the hash of their content, and puts them into the output tree. It
// knows no jobs.
//
// The interface Blobs has what any store of blobs does, on this machine or another one: report which blobs
// exist, open one, take one whose hash is known. Store is on this machine's disk, and does more, which only a
// folder of files can: it takes products whose hash is not known yet, by writing or moving them (Create, Add,
// Adopt); it opens blobs as files (OpenFile) and links them into the output tree (Materialise); it restores
// lost blobs from outputs (Restore); and it records the stats of blobs and doubts them (Known, Verify,
// Distrust, Flush). Builds and cleaning (Walk, Remove) use Store; callers that only read products use Blobs.
//
// A blob is written under a temporary name (or adopted), renamed when it is complete, and read-only from then
// on. It is not synced: after a power failure it may be short, empty or full of zeros. So it is trusted only
// as long as its stat is the one that was recorded when its bytes were known: see trust.go.
package cas

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/source"
)

// ErrDamaged means that a blob's bytes do not have its hash.
var ErrDamaged = errors.New("blob is damaged")

// smallBlob is how much a writer keeps in memory before it creates a file. A smaller blob that exists
// already needs no file.
const smallBlob = 256 << 10

// Store is a folder of blobs: <dir>/ab/cdef..., temporary files in <dir>/tmp. Its methods may be called by several goroutines.
type Store struct {
	OnDamage func(digest.Hash) // called for each damaged blob; may be nil
	Fetch    Fetch             // fetches promised blobs; nil: promises do not count
	Workers  int               // how many blobs Has checks at once; 0 means the number of processors

	dir   string
	temp  atomic.Int64
	place atomic.Int32 // how blobs get into the output tree: one of the constants below
	below *disk.Bounds // of dir: a link in it leads nowhere else
	still bool         // read-only: damaged blobs are not removed
	notes notes
	locks [64]sync.Mutex                      // by blob; see lock
	ways  [byCopy]func(src, dst string) error // one for each way except byCopy; replaced in tests
}

// Open opens or creates a store, and removes temporary files of interrupted writers. The caller
// holds the project's lock.
func Open(dir string) (*Store, error) {
	s := &Store{dir: dir, below: disk.NewBounds(dir, nil), ways: sharing}
	tmp := filepath.Join(dir, "tmp")
	if err := os.RemoveAll(tmp); err != nil {
		return nil, err
	}
	return s, os.MkdirAll(tmp, 0o777)
}

// OpenReadOnly opens a store for inspection. Nothing is created, removed or written.
func OpenReadOnly(dir string) *Store {
	return &Store{dir: dir, below: disk.NewBounds(dir, nil), ways: sharing, still: true}
}

// LetRemove allows removing and writing in a store opened by OpenReadOnly. The caller holds the project's lock.
func (s *Store) LetRemove() {
	s.notes.mu.Lock()
	defer s.notes.mu.Unlock()
	s.still = false
}

// Path is the path of a blob, whether it exists or not.
func (s *Store) Path(h digest.Hash) string {
	x := h.String()
	return filepath.Join(s.dir, x[:2], x[2:])
}

// Remove removes a blob, unless the store is read-only.
func (s *Store) Remove(h digest.Hash) error {
	if s.still {
		return nil
	}
	s.drop(h)
	if err := s.below.Folder(filepath.Dir(s.Path(h))); err != nil {
		return err
	}
	return disk.Remove(s.Path(h))
}

// Read reads a whole blob and checks it.
func (s *Store) Read(h digest.Hash) ([]byte, error) {
	s.bring(h)
	b, err := disk.ReadFile(s.Path(h))
	if err != nil {
		return nil, err
	}
	if digest.Of(b) != h {
		s.Verify(h) // this removes it, unless it was made again meanwhile
		return nil, fmt.Errorf("%s: %w", h.Short(), ErrDamaged)
	}
	return b, nil
}

// Walk calls f for each blob, in the order of their names.
func (s *Store) Walk(f func(digest.Hash, fs.FileInfo) error) error {
	return filepath.WalkDir(s.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if e.Name() == "tmp" {
				return fs.SkipDir
			}
			return nil
		}
		h, err := digest.Parse(filepath.Base(filepath.Dir(path)) + e.Name())
		if err != nil {
			return nil // not a blob
		}
		info, err := e.Info()
		if err != nil {
			return nil // removed meanwhile
		}
		return f(h, info)
	})
}

// Writer writes one blob. It is for one goroutine.
type Writer struct {
	s    *Store
	h    *digest.Hasher
	n    int64
	buf  bytes.Buffer
	file *os.File // nil while buf is large enough
	err  error    // of the first failed write; no blob will be made
}

var writers = sync.Pool{New: func() any { return &Writer{h: digest.New()} }}

// Create starts a blob. It must be followed by Commit or Abort.
func (s *Store) Create() *Writer {
	w := writers.Get().(*Writer)
	w.s, w.n, w.file, w.err = s, 0, nil, nil
	w.h.Reset()
	w.buf.Reset()
	return w
}

func (w *Writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.write(p)
	w.n, w.err = w.n+int64(n), err
	return n, err
}

func (w *Writer) write(p []byte) (int, error) {
	if w.file == nil && w.buf.Len()+len(p) <= smallBlob {
		return w.buf.Write(p)
	}
	if w.file == nil {
		f, err := w.s.tempFile()
		if err != nil {
			return 0, err
		}
		w.file = f
		w.h.Write(w.buf.Bytes())
		if _, err := f.Write(w.buf.Bytes()); err != nil {
			return 0, err
		}
	}
	w.h.Write(p)
	return w.file.Write(p)
}

// Sum is the hash of what was written.
func (w *Writer) Sum() digest.Hash {
	if w.file == nil {
		return digest.Of(w.buf.Bytes())
	}
	return w.h.Sum()
}

// Commit stores the blob and returns its hash and size in bytes. If a Write failed, Commit returns that error and
// stores nothing.
func (w *Writer) Commit() (digest.Hash, int64, error) { return w.commit(nil) }

// CommitAs is Commit for bytes that must have this hash. If they do not, nothing is stored, and the error is
// ErrDamaged.
func (w *Writer) CommitAs(h digest.Hash) error {
	_, _, err := w.commit(&h)
	return err
}

// commit is Commit for bytes that must have this hash; nil accepts any.
func (w *Writer) commit(want *digest.Hash) (digest.Hash, int64, error) {
	defer w.release()
	if w.err != nil {
		return digest.Hash{}, 0, errors.Join(w.err, w.drop())
	}
	h := w.Sum()
	if want != nil && h != *want {
		return h, w.n, errors.Join(fmt.Errorf("%s: %w", want.Short(), ErrDamaged), w.drop())
	}
	l := w.s.lock(h)
	l.Lock()
	defer l.Unlock()
	if w.s.check(h, w.n) == nil {
		return h, w.n, w.drop()
	}
	if w.file == nil {
		f, err := w.s.tempFile()
		if err != nil {
			return h, 0, err
		}
		w.file = f
		if _, err := f.Write(w.buf.Bytes()); err != nil {
			return h, 0, errors.Join(err, w.drop())
		}
	}
	return h, w.n, w.name(h)
}

// name makes the temporary file read-only and renames it to the blob's name.
func (w *Writer) name(h digest.Hash) error {
	tmp := w.file.Name()
	err := readOnly(w.file)
	if cerr := w.file.Close(); err == nil {
		err = cerr
	}
	w.file = nil
	if err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	return w.s.name(tmp, h)
}

// name renames a temporary file to the name of its blob, and replaces a damaged one. The blob's lock is held, so that
// equal products are one file in the output tree, even if several writers made them at once.
func (s *Store) name(tmp string, h digest.Hash) error {
	to := s.Path(h)
	err := s.below.MkdirAll(filepath.Dir(to))
	if err == nil {
		err = nameFile(tmp, to)
	}
	if errors.Is(err, fs.ErrExist) {
		err = disk.Replace(tmp, to) // the existing blob is incomplete
	}
	if err != nil {
		os.Remove(tmp)
		return err
	}
	s.wrote(h)
	return nil
}

// Abort discards what was written.
func (w *Writer) Abort() {
	w.drop()
	w.release()
}

func (w *Writer) drop() error {
	if w.file == nil {
		return nil
	}
	name := w.file.Name()
	w.file.Close()
	w.file = nil
	return os.Remove(name)
}

func (w *Writer) release() {
	if w.buf.Cap() <= 2*smallBlob {
		w.s = nil
		writers.Put(w)
	}
}

// Add stores bytes and returns their hash.
func (s *Store) Add(b []byte) (digest.Hash, error) {
	w := s.Create()
	if _, err := w.Write(b); err != nil {
		w.Abort()
		return digest.Hash{}, err
	}
	h, _, err := w.Commit()
	return h, err
}

func (s *Store) tempFile() (*os.File, error) {
	return disk.Create(s.tempName(), 0o600)
}

func (s *Store) tempName() string {
	return filepath.Join(s.dir, "tmp", fmt.Sprintf("%d-%d", os.Getpid(), s.temp.Add(1)))
}

// Ways to put a blob into the output tree, best first.
const (
	byReflink = iota // shares the data, not the file: editing the output cannot damage the blob
	byLink           // the same file
	byCopy
)

var sharing = [byCopy]func(src, dst string) error{byReflink: reflink, byLink: link}

// Materialise puts a blob, which must be correct, into the file dst, completely or not at all, read-only. Folders are
// created as needed, within the bounds of the output tree. A way that the file system refuses is not tried again. After an error, a file
// whose name begins with disk.TempPrefix may be left in dst's folder.
func (s *Store) Materialise(h digest.Hash, in *disk.Bounds, dst string) error {
	s.bring(h)
	l := s.lock(h)
	l.Lock()
	err := s.check(h, anySize)
	l.Unlock()
	if err != nil {
		return err
	}
	if err := in.ForPlacing(dst); err != nil {
		return err
	}
	err = s.materialise(h, dst)
	if errors.Is(err, fs.ErrNotExist) {
		if _, serr := os.Lstat(s.Path(h)); serr == nil { // somebody removed dst's folder
			in.Forget()
			if err := in.ForPlacing(dst); err != nil {
				return err
			}
			err = s.materialise(h, dst)
		}
	}
	return err
}

func (s *Store) materialise(h digest.Hash, dst string) error {
	src := s.Path(h)
	for way := s.place.Load(); way < byCopy; way++ {
		share := func() error { return s.share(int(way), src, dst) }
		var err error
		if way == byLink {
			l := s.lock(h)
			l.Lock()
			err = s.relinked(h, share)
			l.Unlock()
		} else {
			err = share()
		}
		if err == nil {
			return nil
		}
		if !refused(err) {
			return err
		}
		if !errors.Is(err, errTooManyLinks) {
			s.place.CompareAndSwap(way, way+1)
		}
	}
	return s.copy(src, dst)
}

// share makes dst by reflink or hard link. A hard link is complete at once; a reflink starts as an empty file, so it
// gets a temporary name first.
func (s *Store) share(way int, src, dst string) error {
	if way == byLink {
		if err := s.ways[way](src, dst); !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	tmp := filepath.Join(filepath.Dir(dst), fmt.Sprintf(disk.TempPrefix+"%d-%d", os.Getpid(), s.temp.Add(1)))
	if err := s.ways[way](src, tmp); err != nil {
		return err
	}
	if way != byLink {
		source.Aged(tmp)
	}
	return s.rename(tmp, dst)
}

func (s *Store) rename(tmp, dst string) error {
	// If both are links to one file, rename(2) does nothing and leaves tmp.
	err := disk.Replace(tmp, dst)
	if rerr := os.Remove(tmp); err == nil && !errors.Is(rerr, fs.ErrNotExist) {
		err = rerr
	}
	return err
}

func (s *Store) copy(src, dst string) error {
	in, err := disk.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	tmp := filepath.Join(filepath.Dir(dst), fmt.Sprintf(disk.TempPrefix+"%d-%d", os.Getpid(), s.temp.Add(1)))
	out, err := disk.Create(tmp, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	in.Close() // dst may be a link to it, and Windows cannot replace an open file
	if rerr := readOnly(out); err == nil {
		err = rerr
	}
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		os.Remove(tmp)
		return err
	}
	source.Aged(tmp)
	return s.rename(tmp, dst)
}

// RemoveOutput removes a read-only file of the output tree, and the folders above it that became empty,
// except the root of its bounds. A missing file is not an error.
func RemoveOutput(in *disk.Bounds, file string) error {
	if err := in.Folder(filepath.Dir(file)); err != nil {
		return err
	}
	if err := disk.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for dir := filepath.Dir(file); len(dir) > len(in.Root()); dir = filepath.Dir(dir) {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return nil
}
