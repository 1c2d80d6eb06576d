package thorough

import (
	"time"

	"golang.org/x/sys/unix"
)

// CPU is the processor time of the calling thread: unlike the time of day, it is almost the same on a busy machine. The
// caller locks its goroutine to the thread.
func CPU() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}
