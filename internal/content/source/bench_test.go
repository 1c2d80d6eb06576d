package source

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
)

// BenchmarkUnchanged prints what a scan that finds nothing costs beside the bare stat calls: raw, of the same files relative to their
// open folders, from as many goroutines as there are processors.
func BenchmarkUnchanged(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			dir := b.TempDir()
			var folders []string
			for i := range n / 50 {
				p := filepath.Join(dir, fmt.Sprintf("d%02d", i/100), fmt.Sprintf("e%02d", i%100))
				folders = append(folders, p)
				if err := os.MkdirAll(p, 0o777); err != nil {
					b.Fatal(err)
				}
				for j := range 50 {
					if err := os.WriteFile(filepath.Join(p, fmt.Sprintf("sprite%02d.png", j)), []byte("x"), 0o666); err != nil {
						b.Fatal(err)
					}
				}
			}
			settle(b, dir)
			o := Options{Roots: []string{dir}, Workers: runtime.NumCPU()}
			table, _, _ := scanned(b, nil, o)
			floor, took := time.Duration(0), time.Duration(0)
			b.ReportAllocs()
			for b.Loop() {
				start := time.Now()
				statAll(b, folders)
				floor += time.Since(start)
				start = time.Now()
				if same, contents, stats := scanned(b, table, o); same != table || contents || stats {
					b.Fatal("something changed")
				}
				took += time.Since(start)
			}
			b.ReportMetric(float64(took)/float64(floor), "scan/floor")
			b.ReportMetric(float64(took.Milliseconds())/float64(b.N), "scan-ms")
		})
	}
}

func statAll(b *testing.B, folders []string) {
	names := make([]string, 50)
	for j := range names {
		names[j] = fmt.Sprintf("sprite%02d.png", j)
	}
	var wg sync.WaitGroup
	workers := runtime.NumCPU()
	for w := range workers {
		wg.Go(func() {
			for i := w; i < len(folders); i += workers {
				rawStats(b, folders[i], names)
			}
		})
	}
	wg.Wait()
}
