package command

import (
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
)

// Messages of systems about conditions that may pass, from C libraries and Windows, in lower case; programs run with LC_ALL=C.
var (
	saysFull  = []string{"no space left on device", "disk quota exceeded", "not enough space on the disk"}
	saysShort = []string{
		"input/output error", "cannot allocate memory", "not enough memory resources", "too many open files", "resource temporarily unavailable", "text file busy",
		"stale file handle",
	}
)

// leastRoom is how much space the disk must have, in bytes, for a failure to have another cause: a program may have
// deleted what it could not write completely, but hardly everything.
const leastRoom = 1 << 20

// shortOf reports whether a program may have failed because this machine was short of something, so that the same input
// may succeed the next time. A failure that is wrongly tried again costs time in each build; one that is wrongly cached
// stays until a user changes the file.
func shortOf(output, folder string) bool {
	return says(output, saysFull) || says(output, saysShort) || full(folder)
}

// cutShort reports whether the disk was full for a program that says so but succeeded, such as a shell script that
// continues after a failure. Its output is incomplete.
func cutShort(stderr, folder string) bool { return says(stderr, saysFull) && full(folder) }

func says(output string, any []string) bool {
	low := strings.ToLower(output)
	for _, s := range any {
		if strings.Contains(low, s) {
			return true
		}
	}
	return false
}

func full(folder string) bool {
	room, err := disk.Room(folder)
	return err == nil && room < leastRoom
}
