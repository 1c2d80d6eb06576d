//go:build unix

package cas

import (
	"errors"
	"os"
	"syscall"
)

// readOnly only protects against accidents: nothing depends on it where a file system has no modes.
func readOnly(f *os.File) error {
	if err := f.Chmod(0o444); !refused(err) {
		return err
	}
	return nil
}

// linkFile renames a file by a link, which never replaces another file. Without links, a rename is used,
// which may.
func linkFile(from, to string) error {
	err := os.Link(from, to)
	if err == nil {
		return os.Remove(from)
	}
	if refused(err) {
		return os.Rename(from, to)
	}
	return err
}

func link(blob, dst string) error { return os.Link(blob, dst) }

// ext4 allows 65,000 links to a file.
var errTooManyLinks = syscall.EMLINK

// refused reports whether the file system does not support an operation, so that another way is
// tried.
func refused(err error) bool {
	for _, e := range []error{
		syscall.EOPNOTSUPP, syscall.ENOTSUP, syscall.ENOSYS, syscall.EINVAL, syscall.EXDEV, syscall.EPERM, syscall.EMLINK, syscall.ENOTTY, errors.ErrUnsupported,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
