package cli

import (
	"math"
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

// mostGarbage is how much may be allocated in bytes before the collector begins again, however much is live: a project of a million assets
// has 2 GB.
const mostGarbage = 384 << 20

// leastKept is what the process keeps of memory besides, for stacks, tables of the runtime and what is read in pieces.
const leastKept = 64 << 20

// followLimit: GOMEMLIMIT is not set.
var followLimit = debug.SetMemoryLimit(-1) == math.MaxInt64

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

// followHeap sets, after each cycle of the collector, the percent, and how much memory the process keeps: what is live, what may be
// garbage, and a tenth for what lies between. Of a build that had more before, the rest goes back to the system.
func followHeap() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	n := live[0].Value.Uint64()
	percent, garbage := usualCollector, n
	if n > mostGarbage {
		percent, garbage = max(leastCollector, int(usualCollector*mostGarbage/n)), max(mostGarbage, n*leastCollector/100)
	}
	debug.SetGCPercent(percent)
	if followLimit {
		debug.SetMemoryLimit(int64(n+garbage)*11/10 + leastKept)
	}
	afterCycle(followHeap)
}

// afterCycle calls f after the next collection.
func afterCycle(f func()) {
	runtime.AddCleanup(new([16]byte), func(f func()) { f() }, f)
}
