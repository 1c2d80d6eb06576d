package cli

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// Percent of the live heap that may be allocated before the garbage collector begins again.
const (
	usualCollector  = 100
	lateCollector   = 2400
	thriftCollector = 35
)

// largeHeap is what is live, in bytes, from which on the collector runs more often: a project of a million assets has 2 GB.
const largeHeap = 512 << 20

// setCollector has the garbage collector begin at 96 MB and not at Go's 4 MB, and from its first cycle on with as much again as is live. A
// build of 100,000 assets of which one was touched ends at 52 MB either way; a cycle that falls into its copy of the table of files takes
// it from 0.15 s to 0.26 s. Of a large heap less is left to garbage. Who sets GOGC is heard.
func setCollector() {
	if was := debug.SetGCPercent(lateCollector); was != usualCollector {
		debug.SetGCPercent(was)
		return
	}
	afterCycle(func() {
		debug.SetGCPercent(usualCollector)
		watchHeap()
	})
}

// watchHeap looks after each cycle how much is live.
func watchHeap() {
	afterCycle(func() {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		if live[0].Value.Uint64() > largeHeap {
			debug.SetGCPercent(thriftCollector)
			return
		}
		watchHeap()
	})
}

// afterCycle calls f after the collector's next cycle.
func afterCycle(f func()) {
	runtime.AddCleanup(new([16]byte), func(f func()) { f() }, f)
}
