package parcel

import (
	"os"

	"golang.org/x/sys/unix"
)

// beginWriting asks the system to start writing a range to the disk, and does not wait. Errors are ignored, because
// Sync waits for everything.
func beginWriting(f file, offset, size int64) {
	if f, ok := f.(*os.File); ok {
		unix.SyncFileRange(int(f.Fd()), offset, size, unix.SYNC_FILE_RANGE_WRITE)
	}
}
