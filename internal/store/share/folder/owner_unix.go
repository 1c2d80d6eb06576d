//go:build unix

package folder

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// group is the group of a file.
func group(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Gid)
	}
	return -1
}

// setGroup gives a file to a group, if it has another one. Only the owner can, and only to a group of the user's.
func setGroup(path string, info fs.FileInfo, to int) {
	if to >= 0 && group(info) != to {
		os.Chown(path, -1, to)
	}
}

// touchNow sets the times of a file to now. Unlike other times, these may be set by a user who can write to the file and does not own it.
func touchNow(path string) error { return unix.Utimes(path, nil) }
