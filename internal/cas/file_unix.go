//go:build unix

package cas

import (
	"errors"
	"os"
	"syscall"
)

func readOnly(f *os.File) error { return f.Chmod(0o444) }

func replaceFile(from, to string) error { return os.Rename(from, to) }

func removeFile(path string) error { return os.Remove(path) }

// ext4 allows 65,000 links to a file.
var errTooManyLinks = syscall.EMLINK

// refused tells whether the file system cannot do a thing at all, so that another way is tried.
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
