package cas

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

// Windows knows read-only as an attribute, which also keeps a file from being replaced or removed.
func readOnly(f *os.File) error { return os.Chmod(f.Name(), 0o444) }

// nameFile renames a file, but not over another one: that is fs.ErrExist.
func nameFile(from, to string) error {
	old, err := windows.UTF16PtrFromString(from)
	if err != nil {
		return err
	}
	name, err := windows.UTF16PtrFromString(to)
	if err != nil {
		return err
	}
	return windows.MoveFileEx(old, name, 0)
}

func replaceFile(from, to string) error {
	err := os.Rename(from, to)
	if err != nil {
		os.Chmod(to, 0o666)
		err = os.Rename(from, to)
	}
	return err
}

func removeFile(path string) error {
	err := os.Remove(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		os.Chmod(path, 0o666)
		err = os.Remove(path)
	}
	return err
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
