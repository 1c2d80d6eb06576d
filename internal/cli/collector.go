package cli

import (
	"runtime"
	"runtime/debug"
)

// lateCollector has the garbage collector begin at 32 MB and not at Go's 4 MB; from its first cycle on it is as ever. A build of 10,000
// assets in which nothing changed ends at 14 MB, and a cycle takes it 1 ms of 17, while it reads the snapshot. Who sets GOGC is
// heard.
func lateCollector() {
	const usual, late = 100, 800
	if was := debug.SetGCPercent(late); was != usual {
		debug.SetGCPercent(was)
		return
	}
	runtime.AddCleanup(new([16]byte), func(percent int) { debug.SetGCPercent(percent) }, usual)
}
