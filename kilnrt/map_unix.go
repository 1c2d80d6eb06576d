//go:build unix

package kilnrt

import (
	"math"
	"os"
	"syscall"
)

const noWait = syscall.O_NONBLOCK // for opening a pipe

// mapFile maps the first size bytes of a file. If the address space is too small, it returns no mapping and no error.
func mapFile(f *os.File, size int64) (data []byte, unmap func() error, err error) {
	nothing := func() error { return nil }
	if size > math.MaxInt {
		return nil, nothing, nil
	}
	data, err = syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, nothing, nil
	}
	return data, func() error { return syscall.Munmap(data) }, nil
}
