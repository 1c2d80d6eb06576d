//go:build unix

package session

import (
	"syscall"
	"time"
)

// cpuTime is what this process has used of processors.
func cpuTime() time.Duration {
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
