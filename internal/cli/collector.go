package cli

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// Percent of the live heap that may be allocated before the garbage collector begins again.
const (
	usualCollector = 100
	lateCollector  = 2400
	leastCollector = 20
)

// mostGarbage is how much may be allocated in bytes before the collector begins again, however much is live: a project of a million assets
// has 2 GB.
const mostGarbage = 512 << 20

// setCollector has the garbage collector begin at 96 MB and not at Go's 4 MB, and from its first cycle on with as much again as is live, up
// to mostGarbage. A build of 100,000 assets of which one was touched ends at 52 MB either way; a cycle that falls into its copy of the table
// of files takes it from 0.15 s to 0.26 s. Who sets GOGC is heard.
func setCollector() {
	if was := debug.SetGCPercent(lateCollector); was != usualCollector {
		debug.SetGCPercent(was)
		return
	}
	afterCycle(followHeap)
}

// followHeap sets the percent after each cycle of the collector.
func followHeap() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	percent := usualCollector
	if n := live[0].Value.Uint64(); n > mostGarbage {
		percent = max(leastCollector, int(usualCollector*mostGarbage/n))
	}
	debug.SetGCPercent(percent)
	afterCycle(followHeap)
}

// afterCycle calls f after the collector's next cycle.
func afterCycle(f func()) {
	runtime.AddCleanup(new([16]byte), func(f func()) { f() }, f)
}
