package cli

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

func gcPercent() uint64 {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

func TestLateCollector(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	setCollector()
	if p := gcPercent(); p != 2400 {
		t.Errorf("it begins at %d%%", p)
	}
	for late := time.Now().Add(30 * time.Second); gcPercent() != 100; {
		if time.Now().After(late) {
			t.Fatalf("after a cycle it is at %d%%", gcPercent())
		}
		runtime.GC()
	}
	if most := debug.SetMemoryLimit(-1); most < leastKept || most > leastKept+mostGarbage {
		t.Errorf("after a cycle it keeps up to %d bytes", most)
	}
	debug.SetGCPercent(50) // as GOGC=50 does
	setCollector()
	if p := gcPercent(); p != 50 {
		t.Errorf("what was asked for became %d%%", p)
	}
}
