package cas

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

// ErrOdd means that a file to be stored is not a regular file.
var ErrOdd = errors.New("it is not a file")

// Adopt makes a blob of the named file in dir, by moving it if that is safe and by copying otherwise, and returns its
// hash and size in bytes. The file is removed from dir. Moving is safe if no process can write to the file any more: it
// is first moved into the store, where programs may not open it, and then the kernel is asked whether a process has it
// open for writing or mapped (a lease, fcntl(2)). If dir is on another file system than the store, the error is
// errors.ErrUnsupported and the file stays.
func (s *Store) Adopt(dir *os.File, name string) (digest.Hash, int64, error) {
	tmp := s.tempName()
	switch err := unix.Renameat(int(dir.Fd()), name, unix.AT_FDCWD, tmp); err {
	case nil:
	case unix.EXDEV:
		return digest.Hash{}, 0, errors.ErrUnsupported
	default:
		return digest.Hash{}, 0, &os.PathError{Op: "rename", Path: name, Err: err}
	}
	fd, err := unix.Open(tmp, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err == unix.ELOOP {
		err = ErrOdd
	}
	if err != nil {
		return digest.Hash{}, 0, errors.Join(fmt.Errorf("%s: %w", name, err), os.RemoveAll(tmp))
	}
	f := os.NewFile(uintptr(fd), tmp)
	defer f.Close() // releases the lease
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return digest.Hash{}, 0, errors.Join(fmt.Errorf("%s: %w", name, ErrOdd), err, os.RemoveAll(tmp))
	}
	if st.Nlink != 1 || !plain(fd) || !unshared(fd) {
		h, n, err := s.copyIn(f)
		return h, n, errors.Join(err, os.Remove(tmp))
	}
	return s.moveIn(f, st.Size)
}

// moveIn makes a blob of a file in the temporary folder that no process writes to.
func (s *Store) moveIn(f *os.File, size int64) (h digest.Hash, n int64, err error) {
	if size <= smallBlob {
		data := make([]byte, size)
		if _, err = io.ReadFull(f, data); err == nil {
			h, n = digest.Of(data), size
		}
	} else {
		h, n, err = digest.Reader(f)
	}
	if err == nil && n != size {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		err = readOnly(f)
	}
	if err != nil {
		return h, n, errors.Join(err, os.Remove(f.Name()))
	}
	l := s.lock(h)
	l.Lock()
	defer l.Unlock()
	if s.check(h, n) == nil {
		return h, n, os.Remove(f.Name())
	}
	return h, n, s.name(f.Name(), h)
}

// copyIn makes a blob by copying a file.
func (s *Store) copyIn(f *os.File) (digest.Hash, int64, error) {
	w := s.Create()
	if _, err := io.Copy(w, f); err != nil {
		w.Abort()
		return digest.Hash{}, 0, err
	}
	return w.Commit()
}

// unshared reports whether no process has a file open for writing, or mapped.
func unshared(fd int) bool {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
	return err == nil
}

// plain reports whether a file has only the attributes that the system gives every file.
func plain(fd int) bool {
	var buf [256]byte
	n, err := unix.Flistxattr(fd, buf[:])
	if err != nil {
		return err == unix.EOPNOTSUPP
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(buf[:n]), "\x00"), "\x00") {
		if name != "" && !strings.HasPrefix(name, "security.") {
			return false
		}
	}
	return true
}
