//go:build unix

package main

import (
	"syscall"
	"time"
)

// cpu returns the processor time of this process, on all cores.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
