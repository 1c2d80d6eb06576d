package block

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// Every pixel of an image is restored, at any size of image and block; pixels beyond the edge repeat it.
func TestGatherScatter(t *testing.T) {
	for _, b := range [][2]int{{4, 4}, {6, 6}, {8, 5}} {
		for w := 1; w <= 17; w++ {
			for h := 1; h <= 17; h++ {
				in := make([]byte, 4*w*h)
				for i := range in {
					in[i] = byte(i*7 + i/251)
				}
				out := make([]byte, len(in))
				block := make([]byte, 4*b[0]*b[1])
				columns, rows := Size(w, h, b[0], b[1])
				for r := range rows {
					for c := range columns {
						Gather(block, in, w, h, b[0], b[1], c, r)
						for y := range b[1] {
							for x := range b[0] {
								px, py := min(c*b[0]+x, w-1), min(r*b[1]+y, h-1)
								if got, want := block[4*(y*b[0]+x):][:4], in[4*(py*w+px):][:4]; !bytes.Equal(got, want) {
									t.Fatalf("%v in %dx%d: pixel %d,%d of block %d,%d is %v, want %v", b, w, h, x, y, c, r, got, want)
								}
							}
						}
						Scatter(out, block, w, h, b[0], b[1], c, r)
					}
				}
				if !bytes.Equal(in, out) {
					t.Fatalf("%v in %dx%d: what was gathered and scattered differs", b, w, h)
				}
			}
		}
	}
}

func TestRows(t *testing.T) {
	for _, workers := range []int{-1, 1, 2, 8, 100} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			var mu sync.Mutex
			var seen []int
			Rows(50, workers, func(next func() int) {
				for r := next(); r >= 0; r = next() {
					mu.Lock()
					seen = append(seen, r)
					mu.Unlock()
				}
			})
			slices.Sort(seen)
			for i, r := range seen {
				if i != r || len(seen) != 50 {
					t.Fatalf("rows %v", seen)
				}
			}
		})
	}
	Rows(0, 2, func(next func() int) {
		if next() >= 0 {
			t.Error("a row of none")
		}
	})
}

func TestStop(t *testing.T) {
	stop := make(chan struct{})
	for _, workers := range []int{1, 4} {
		o := Options{Workers: workers, Stop: stop}
		var done atomic.Int64
		o.Rows(100, func(next func() int) {
			for next() >= 0 {
				done.Add(1)
			}
		})
		if done.Load() != 100 {
			t.Errorf("%d workers did %d rows", workers, done.Load())
		}
	}
	close(stop)
	o := Options{Workers: 4, Stop: stop}
	o.Rows(100, func(next func() int) {
		if r := next(); r >= 0 {
			t.Errorf("row %d after the end", r)
		}
	})
}
