package cas

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/windows"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
)

// On Windows, read-only is an attribute, which also prevents replacing and removing a file.
func readOnly(f *os.File) error { return os.Chmod(f.Name(), 0o444) }

// nameFile renames a file. If the new name exists, the error is fs.ErrExist.
func nameFile(from, to string) error {
	old, err := windows.UTF16PtrFromString(from)
	if err != nil {
		return err
	}
	name, err := windows.UTF16PtrFromString(to)
	if err != nil {
		return err
	}
	err = disk.Try(func() error { return windows.MoveFileEx(old, name, 0) })
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

// link makes the blob read-only again, because replacing or removing another link to it clears
// that.
func link(blob, dst string) error {
	if err := os.Link(blob, dst); err != nil {
		return err
	}
	return os.Chmod(dst, 0o444)
}

// NTFS allows 1,024 links to a file.
var errTooManyLinks = error(windows.ERROR_TOO_MANY_LINKS)

func refused(err error) bool {
	for _, e := range []error{
		windows.ERROR_NOT_SUPPORTED, windows.ERROR_INVALID_FUNCTION, windows.ERROR_NOT_SAME_DEVICE, windows.ERROR_ACCESS_DENIED,
		windows.ERROR_TOO_MANY_LINKS, syscall.EWINDOWS, errors.ErrUnsupported,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
