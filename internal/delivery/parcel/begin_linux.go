package parcel

import (
	"os"

	"golang.org/x/sys/unix"
)

// beginWriting has the system begin to write a range to the disk, and does not wait. That it cannot is no error: Sync waits for all.
func beginWriting(f file, offset, size int64) {
	if f, ok := f.(*os.File); ok {
		unix.SyncFileRange(int(f.Fd()), offset, size, unix.SYNC_FILE_RANGE_WRITE)
	}
}
