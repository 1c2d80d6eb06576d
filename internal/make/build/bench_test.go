package build

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/processors"
)

// The project that the benchmarks build: benchAssets files of benchSize bytes that are copied, in folders of a hundred.
const (
	benchAssets = 10_000
	benchSize   = 4 << 10
)

func benchProject(b *testing.B) string {
	b.Helper()
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "kiln.toml"), []byte("[project]\nname = \"bench\"\n"), 0o666); err != nil {
		b.Fatal(err)
	}
	rng := rand.NewChaCha8([32]byte{1})
	data := make([]byte, benchSize)
	for i := range benchAssets {
		folder := filepath.Join(dir, "assets", fmt.Sprintf("%03d", i/100))
		if i%100 == 0 {
			if err := os.MkdirAll(folder, 0o777); err != nil {
				b.Fatal(err)
			}
		}
		rng.Read(data)
		if err := os.WriteFile(benchFile(dir, i), data, 0o666); err != nil {
			b.Fatal(err)
		}
	}
	time.Sleep(30 * time.Millisecond) // so that no file is too young to be trusted
	return dir
}

func benchFile(dir string, i int) string {
	return filepath.Join(dir, "assets", fmt.Sprintf("%03d", i/100), fmt.Sprintf("%05d.bin", i))
}

func benchBuild(b *testing.B, dir string, wantBuilt int) {
	b.Helper()
	p, err := Open(workspace.Config{Dir: dir, Version: "bench", Processors: processors.All()})
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	if err := p.Lock(ctx, true, func() {}); err != nil {
		b.Fatal(err)
	}
	defer p.Unlock()
	r, err := p.Build(ctx, Request{Reporter: job.Silent{}})
	if err != nil {
		b.Fatal(err)
	}
	if r.Summary.Built != wantBuilt || r.Summary.Jobs != benchAssets || r.Summary.Failed != 0 {
		b.Fatalf("%+v, not built %d", r.Summary, wantBuilt)
	}
}

// statAll is the floor of a build in which nothing changed: every source and every product looked at once, by path, from
// as many goroutines as there are processors.
func statAll(b *testing.B, dir string) time.Duration {
	b.Helper()
	start := time.Now()
	var wg sync.WaitGroup
	n := runtime.GOMAXPROCS(0)
	for w := range n {
		wg.Go(func() {
			for i := w; i < benchAssets; i += n {
				src := benchFile(dir, i)
				rel, _ := filepath.Rel(filepath.Join(dir, "assets"), src)
				for _, f := range []string{src, filepath.Join(dir, "build", "pc", rel)} {
					if _, err := os.Lstat(f); err != nil {
						b.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

// spawn is what starting one process costs, the floor of a job that runs a command.
func spawn(b *testing.B) time.Duration {
	const n = 50
	start := time.Now()
	for range n {
		if err := exec.Command("true").Run(); err != nil {
			b.Logf("no process to start: %v", err)
			return 0
		}
	}
	return time.Since(start) / n
}

func BenchmarkClean(b *testing.B) {
	dir := benchProject(b)
	for b.Loop() {
		b.StopTimer()
		for _, d := range []string{"build", ".kiln"} {
			if err := os.RemoveAll(filepath.Join(dir, d)); err != nil {
				b.Fatal(err)
			}
		}
		runtime.GC()
		b.StartTimer()
		benchBuild(b, dir, benchAssets)
	}
	b.ReportMetric(float64(benchAssets*b.N)/b.Elapsed().Seconds(), "assets/s")
	b.ReportMetric(float64(peakMemory())/(1<<20), "peak-MB")
	b.ReportMetric(float64(spawn(b).Microseconds()), "µs/spawn")
}

func BenchmarkNoOp(b *testing.B) {
	dir := benchProject(b)
	benchBuild(b, dir, benchAssets)
	benchBuild(b, dir, 0)
	var floor time.Duration
	for b.Loop() {
		benchBuild(b, dir, 0)
		b.StopTimer()
		floor += statAll(b, dir)
		b.StartTimer()
	}
	b.ReportMetric(b.Elapsed().Seconds()/floor.Seconds(), "x-stat-floor")
	b.ReportMetric(float64(floor.Microseconds())/float64(b.N)/1000, "ms/floor")
}

func BenchmarkOneEdit(b *testing.B) {
	dir := benchProject(b)
	benchBuild(b, dir, benchAssets)
	benchBuild(b, dir, 0)
	var floor time.Duration
	n := 0
	for b.Loop() {
		b.StopTimer()
		n++
		data := make([]byte, benchSize)
		copy(data, fmt.Sprint("edit ", n))
		if err := os.WriteFile(benchFile(dir, n%benchAssets), data, 0o666); err != nil {
			b.Fatal(err)
		}
		floor += statAll(b, dir)
		b.StartTimer()
		benchBuild(b, dir, 1)
	}
	b.ReportMetric(b.Elapsed().Seconds()/floor.Seconds(), "x-stat-floor")
}
