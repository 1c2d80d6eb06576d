package session

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/processors"
)

// benchAssets are files of 64 bytes that are copied, a hundred to a folder. The bars: nothing changed, 5 ms; one edited, in proportion to
// that.
const benchAssets = 100_000

func benchFile(dir string, i int) string {
	return filepath.Join(dir, "assets", fmt.Sprintf("%04d", i/100), fmt.Sprintf("%06d.bin", i))
}

func benchSession(b *testing.B) (*Session, string, chan Ended) {
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "kiln.toml"), []byte("[project]\nname = \"bench\"\n"), 0o666); err != nil {
		b.Fatal(err)
	}
	for i := range benchAssets {
		if i%100 == 0 {
			if err := os.MkdirAll(filepath.Dir(benchFile(dir, i)), 0o777); err != nil {
				b.Fatal(err)
			}
		}
		if err := os.WriteFile(benchFile(dir, i), fmt.Appendf(nil, "%064d", i), 0o666); err != nil {
			b.Fatal(err)
		}
	}
	s, err := Open(Config{Build: workspace.Config{Dir: dir, Version: "bench", Processors: processors.All()}})
	if err != nil {
		b.Fatal(err)
	}
	ended := make(chan Ended, 100)
	s.Follow(func(e Event) {
		if e, ok := e.(Ended); ok {
			ended <- e
		}
	})
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() { s.Run(ctx); close(over) }()
	b.Cleanup(func() { stop(); <-over })
	first := <-ended
	if first.Err != nil || first.Report.Summary.Built != benchAssets {
		b.Fatalf("%+v", first)
	}
	b.Logf("the first build: %.1f s", first.Report.Summary.Seconds)
	return s, dir, ended
}

// BenchmarkSession: "idle" is a tenth of a second in which nothing changes. "nothing" is a build that somebody asks for when nothing
// changed. "edit" is from the closing of a file to the end of the build; what is not waiting for the file to be left alone is told apart.
// The processor time is that of the whole process: on a busy machine it says more than the clock.
func BenchmarkSession(b *testing.B) {
	s, dir, ended := benchSession(b)
	if err := s.Build(context.Background()); err != nil {
		b.Fatal(err)
	}
	<-ended
	runtime.GC()
	b.Run("idle", func(b *testing.B) {
		before := cpuTime()
		for b.Loop() {
			time.Sleep(100 * time.Millisecond)
		}
		b.ReportMetric(float64((cpuTime()-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
	})
	b.Run("nothing", func(b *testing.B) {
		before := cpuTime()
		defer func() { b.ReportMetric(float64((cpuTime()-before).Microseconds())/1000/float64(b.N), "cpu-ms/op") }()
		for b.Loop() {
			if err := s.Build(context.Background()); err != nil {
				b.Fatal(err)
			}
			if e := <-ended; e.Report.Summary.Built != 0 {
				b.Fatalf("%+v", e.Report.Summary)
			}
		}
	})
	i := 0
	b.Run("edit", func(b *testing.B) {
		var building, slowest time.Duration
		before := cpuTime()
		defer func() { b.ReportMetric(float64((cpuTime()-before).Microseconds())/1000/float64(b.N), "cpu-ms/op") }()
		for b.Loop() {
			i += 997
			if err := os.WriteFile(benchFile(dir, i%benchAssets), fmt.Appendf(nil, "%064d", -i), 0o666); err != nil {
				b.Fatal(err)
			}
			e := <-ended
			if e.Report.Summary.Built != 1 || !e.Report.Short {
				b.Fatalf("%+v %v", e.Report.Summary, e.Report.Short)
			}
			took := time.Duration(e.Report.Summary.Seconds * float64(time.Second))
			building, slowest = building+took, max(slowest, took)
		}
		b.ReportMetric(float64(building.Microseconds())/float64(b.N)/1000, "ms/building")
		b.ReportMetric(float64(slowest.Microseconds())/1000, "ms/slowest")
	})
}
