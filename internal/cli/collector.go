package cli

import (
	"runtime"
	"runtime/debug"
)

// lateCollector has the garbage collector begin at 96 MB and not at Go's 4 MB; from its first cycle on it is as ever. A build of 100,000
// assets of which one was touched ends at 52 MB either way; a cycle that falls into its copy of the table of files takes it from 0.15 s to
// 0.26 s. Who sets GOGC is heard.
func lateCollector() {
	const usual, late = 100, 2400
	if was := debug.SetGCPercent(late); was != usual {
		debug.SetGCPercent(was)
		return
	}
	runtime.AddCleanup(new([16]byte), func(percent int) { debug.SetGCPercent(percent) }, usual)
}
