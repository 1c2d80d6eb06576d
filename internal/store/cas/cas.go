// Package cas keeps immutable blobs by the hash of their content, and puts them into the output tree. It
// knows no jobs.
//
// What any store of blobs does, on this machine or another one, is the interface Blobs: report which blobs
// are there, open one, take one whose hash is known. Store is the one on this machine's disk, and does more,
// which only a folder of files can: products whose hash is not known yet are written or moved into it
// (Create, Add, Adopt), files are opened as such (OpenFile) and linked into the output tree (Materialise),
// lost blobs are restored from outputs (Restore), and what blobs look like is noted and doubted (Known,
// Verify, Distrust, Flush). Builds and what cleans up after them (Walk, Remove) work on it; callers that only
// read products take Blobs.
//
// A blob is written beside, or adopted, named when it is whole, and read-only from then on. It is not synced:
// after a power failure it may be short, empty or full of zeros. So it is trusted only as long as it looks as
// it did when its bytes were known: see trust.go.
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

// ErrDamaged says that a blob's bytes are not those of its name.
var ErrDamaged = errors.New("blob is damaged")

// smallBlob is what a writer holds in memory before it begins a file: below it, a blob that is already
// there costs no file at all.
const smallBlob = 256 << 10

// Store is a folder of blobs: <dir>/ab/cdef..., temporary files in <dir>/tmp. Its methods may be called by several goroutines.
type Store struct {
	OnDamage func(digest.Hash) // called for each damaged blob that is found; may be nil
	Fetch    Fetch             // where promised blobs come from; nil: no promise counts
	Workers  int               // how many blobs Has looks at at once; 0 stands for as many as there are processors

	dir   string
	temp  atomic.Int64
	place atomic.Int32 // how blobs get into the output tree: a method below
	made  sync.Map     // folders known to be there
	still bool         // read only: a damaged blob is left where it is
	notes notes
	locks [64]sync.Mutex                      // by blob; see lock
	ways  [byCopy]func(src, dst string) error // but for byCopy; replaced in tests
}

// Open opens or makes a store, and removes what an interrupted writer left behind. The
// caller holds the project's lock.
func Open(dir string) (*Store, error) {
	s := &Store{dir: dir, ways: sharing}
	tmp := filepath.Join(dir, "tmp")
	if err := os.RemoveAll(tmp); err != nil {
		return nil, err
	}
	return s, os.MkdirAll(tmp, 0o777)
}

// OpenReadOnly opens a store to look into. Nothing is made, removed or written.
func OpenReadOnly(dir string) *Store { return &Store{dir: dir, ways: sharing, still: true} }

// LetRemove lets blobs be removed from a store that was opened to look into. The caller holds the project's lock.
func (s *Store) LetRemove() {
	s.notes.mu.Lock()
	defer s.notes.mu.Unlock()
	s.still = false
}

// Path is where a blob is or would be.
func (s *Store) Path(h digest.Hash) string {
	x := h.String()
	return filepath.Join(s.dir, x[:2], x[2:])
}

// Remove removes a blob, unless the store is open for reading only.
func (s *Store) Remove(h digest.Hash) error {
	if s.still {
		return nil
	}
	s.drop(h)
	return disk.Remove(s.Path(h))
}

// Read reads a blob whole and verifies it.
func (s *Store) Read(h digest.Hash) ([]byte, error) {
	s.bring(h)
	b, err := disk.ReadFile(s.Path(h))
	if err != nil {
		return nil, err
	}
	if digest.Of(b) != h {
		s.Verify(h) // which removes it, unless it has just been made again
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
			return nil // not ours
		}
		info, err := e.Info()
		if err != nil {
			return nil // gone meanwhile
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
	file *os.File // once buf became too small
	err  error    // of the first write that failed; there will be no blob
}

var writers = sync.Pool{New: func() any { return &Writer{h: digest.New()} }}

// Create begins a blob. Commit or Abort must follow.
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

// Commit names the blob and gives its hash and its size in bytes. If a Write failed, it gives that error again and there is no blob.
func (w *Writer) Commit() (digest.Hash, int64, error) { return w.commit(nil) }

// CommitAs is Commit for bytes that are to have that hash. If they have not, nothing is kept, and the error is ErrDamaged.
func (w *Writer) CommitAs(h digest.Hash) error {
	_, _, err := w.commit(&h)
	return err
}

// commit is Commit for bytes that are to have that hash; nil stands for any.
func (w *Writer) commit(want *digest.Hash) (digest.Hash, int64, error) {
	defer w.release()
	if w.err != nil {
		return digest.Hash{}, 0, errors.Join(w.err, w.drop())
	}
	var h digest.Hash
	if w.file == nil {
		h = digest.Of(w.buf.Bytes())
	} else {
		h = w.h.Sum()
	}
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

// name makes the temporary file read-only and gives it the blob's name.
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

// name gives a temporary file the name of the blob that it is, in place of one that is not sound. The blob's lock is held: equal products
// are one file in the output tree, however many made them at once.
func (s *Store) name(tmp string, h digest.Hash) error {
	to := s.Path(h)
	err := s.mkdir(filepath.Dir(to))
	if err == nil {
		err = nameFile(tmp, to)
	}
	if errors.Is(err, fs.ErrExist) {
		err = disk.Replace(tmp, to) // a blob that was cut short
	}
	if err != nil {
		os.Remove(tmp)
		return err
	}
	s.wrote(h)
	return nil
}

// Abort drops what was written.
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

// Add stores bytes and gives their hash.
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

// mkdir makes a folder and remembers that it is there.
func (s *Store) mkdir(dir string) error {
	if _, ok := s.made.Load(dir); ok {
		return nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	s.made.Store(dir, true)
	return nil
}

// Forget forgets which folders are there; for when another process may have removed some.
func (s *Store) Forget() { s.made.Clear() }

// Ways to put a blob into the output tree, best first.
const (
	byReflink = iota // shares the bytes, not the file: an edit of the output cannot damage the blob
	byLink           // is the same file
	byCopy
)

var sharing = [byCopy]func(src, dst string) error{byReflink: reflink, byLink: link}

// Materialise makes the file dst the content of a blob, which has to be sound, whole or not at all, read-only. Folders are made as needed.
// A way that the file system refuses is not tried again. After an error a file whose name begins with disk.TempPrefix may be left in dst's
// folder.
func (s *Store) Materialise(h digest.Hash, dst string) error {
	s.bring(h)
	l := s.lock(h)
	l.Lock()
	err := s.check(h, anySize)
	l.Unlock()
	if err != nil {
		return err
	}
	if err := s.mkdir(filepath.Dir(dst)); err != nil {
		return err
	}
	err = s.materialise(h, dst)
	if errors.Is(err, fs.ErrNotExist) {
		if _, serr := os.Lstat(s.Path(h)); serr == nil { // somebody removed the folder
			s.made.Delete(filepath.Dir(dst))
			if err := s.mkdir(filepath.Dir(dst)); err != nil {
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

// share makes dst by reflink or hard link. A hard link is there at once; a reflink is made beside, since it begins as an empty file.
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
	// rename(2) does nothing if both are links to one file, and leaves tmp.
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
	in.Close() // dst may be a link to it, and Windows replaces no file that is open
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

// RemoveOutput removes a read-only file of the output tree, and the folders above it that became empty, up to
// and without root. A file that is not there is no error.
func RemoveOutput(root, file string) error {
	if err := disk.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for dir := filepath.Dir(file); len(dir) > len(root); dir = filepath.Dir(dir) {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return nil
}
