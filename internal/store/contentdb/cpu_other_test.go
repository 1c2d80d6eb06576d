//go:build !linux

package contentdb

import "time"

var start = time.Now()

// spent is the time of day here.
func spent() time.Duration { return time.Since(start) }
