package cas

import (
	"os"

	"golang.org/x/sys/unix"
)

// nameFile renames a file. If the new name exists, the error is fs.ErrExist.
func nameFile(from, to string) error {
	switch err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE); err {
	case nil:
		return nil
	case unix.EINVAL, unix.ENOSYS: // not supported by this file system
		return linkFile(from, to)
	default:
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
}
