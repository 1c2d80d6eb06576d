//go:build !linux

package build

import "runtime"

// peakMemory is the memory this process has from the system, in bytes.
func peakMemory() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys)
}
