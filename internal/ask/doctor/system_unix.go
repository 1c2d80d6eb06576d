//go:build unix

package doctor

import (
	"errors"
	"math"

	"golang.org/x/sys/unix"
)

func openFiles() Limit {
	l := Limit{"open files", -1, openFilesWanted, "raise it: ulimit -n 4096"}
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &lim) == nil && uint64(lim.Cur) < math.MaxInt64 {
		l.Value = int64(lim.Cur)
	}
	return l
}

func freeSpace(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	if st.Blocks == 0 { // a file system in memory or on another machine that does not count blocks
		return 0, errors.ErrUnsupported
	}
	return int64(min(uint64(st.Bavail), math.MaxInt64/uint64(st.Bsize)) * uint64(st.Bsize)), nil
}
