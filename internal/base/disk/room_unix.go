//go:build linux || darwin || freebsd

package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// Room returns how many bytes can still be written in a folder.
func Room(folder string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(folder, &st); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: folder, Err: err}
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}
