//go:build unix

package source

import (
	"testing"

	"golang.org/x/sys/unix"
)

func rawStats(b *testing.B, folder string, names []string) {
	fd, err := unix.Open(folder, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		b.Error(err)
		return
	}
	defer unix.Close(fd)
	for _, n := range names {
		var st unix.Stat_t
		if err := unix.Fstatat(fd, n, &st, 0); err != nil {
			b.Error(err)
		}
	}
}
