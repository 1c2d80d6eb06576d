//go:build !linux

package thorough

import "time"

var start = time.Now()

// CPU is the time of day here.
func CPU() time.Duration { return time.Since(start) }
