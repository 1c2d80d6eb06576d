package cli

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// Percent of the live heap that may be allocated before the next collection.
const (
	usualCollector = 100
	lateCollector  = 2400
	leastCollector = 20
)

// mostGarbage is how many bytes may be allocated before the next collection, however large the live heap is: a project
// of a million assets has 2 GB.
const mostGarbage = 512 << 20

// setCollector makes the first collection start at 96 MB instead of Go's 4 MB, and later ones when the heap has grown
// by the size of the live heap, but at most by mostGarbage. A build of 100,000 assets of which one was touched needs 52
// MB either way; a collection during its copy of the table of files takes it from 0.15 s to 0.26 s. GOGC, if set, is
// respected.
func setCollector() {
	if was := debug.SetGCPercent(lateCollector); was != usualCollector {
		debug.SetGCPercent(was)
		return
	}
	afterCycle(followHeap)
}

// followHeap sets the percent after each collection.
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

// afterCycle calls f after the next collection.
func afterCycle(f func()) {
	runtime.AddCleanup(new([16]byte), func(f func()) { f() }, f)
}
