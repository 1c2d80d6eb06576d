package watch

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestFolders compares folders with a map that is looked through.
func TestFolders(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var f folders[string]
	model := map[string]bool{}
	path := func() string {
		p := string(filepath.Separator)
		for range r.IntN(5) {
			p = filepath.Join(p, string(rune('a'+r.IntN(3))))
		}
		return p
	}
	for range 20_000 {
		switch p := path(); r.IntN(3) {
		case 0:
			f.put(p, p)
			model[p] = true
		case 1:
			if v, known := f.get(p); known != model[p] || known && v != p {
				t.Fatalf("%s: %q, %v", p, v, known)
			}
		default:
			if len(p) == 1 && r.IntN(20) > 0 {
				continue
			}
			var want []string
			for k := range model {
				if within(k, p) {
					want = append(want, k)
					delete(model, k)
				}
			}
			got := f.cut(p)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Fatalf("below %s: %q, want %q", p, got, want)
			}
		}
		if len(f.all()) != len(model) || len(model) == 0 && len(f.sub) > 0 {
			t.Fatalf("%d, want %d; %d are held", len(f.all()), len(model), len(f.sub))
		}
	}
}

// BenchmarkForget removes a tree of n folders and waits until the watcher knows: what that takes for one of them must not grow with their
// number.
func BenchmarkForget(b *testing.B) {
	for _, n := range []int{1000, 4000, 16000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				root := b.TempDir()
				for i := range n {
					if err := os.MkdirAll(filepath.Join(root, "tree", fmt.Sprint(i%100), fmt.Sprint(i)), 0o777); err != nil {
						b.Fatal(err)
					}
				}
				w, err := New(Options{Trees: []Tree{{Path: root}}, Poll: time.Hour}) // so that all of it is told at once
				if err != nil {
					b.Fatal(err)
				}
				if err := os.RemoveAll(filepath.Join(root, "tree")); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				w.Flush(b.Context())
				b.StopTimer()
				w.Close()
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/folder")
		})
	}
}
