package command

import (
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
)

// What systems say of what may be otherwise the next time, as C libraries and Windows put it, in lower case; programs run with LC_ALL=C.
var (
	saysFull  = []string{"no space left on device", "disk quota exceeded", "not enough space on the disk"}
	saysShort = []string{
		"input/output error", "cannot allocate memory", "not enough memory resources", "too many open files", "resource temporarily unavailable", "text file busy",
		"stale file handle",
	}
)

// leastRoom is how much room the disk must have, in bytes, for a failure to be no fault of that: what a program could not write may be gone
// again, but hardly all.
const leastRoom = 1 << 20

// shortOf tells whether a program that failed may have done so because this machine was short of something. The same input may go well then
// the next time: a failure that is tried again and fails again costs its time in each build, and one that is kept wrongly stays until somebody
// changes the file.
func shortOf(output, folder string) bool {
	return says(output, saysFull) || says(output, saysShort) || full(folder)
}

// cutShort tells whether the disk was full for a program that says so, and succeeded all the same: as a shell script does that goes on
// after what failed. What it wrote is not whole.
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
