package pixel

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/lanestest"
)

// plainly computes without lanes.
func plainly(t *testing.T, f func()) {
	t.Helper()
	if !lanes {
		t.Skip("this processor has no AVX2")
	}
	defer func() { lanes = true }()
	lanes = false
	f()
}

// Means of two rows are the same, of any numbers, and nothing beyond them is written.
func TestHalveLanes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		n := 1 + r.IntN(19)
		above, below := make([]uint32, 8*n), make([]uint32, 8*n)
		for i := range above {
			above[i], below[i] = r.Uint32(), r.Uint32()
			if r.IntN(4) == 0 {
				above[i], below[i] = 1<<32-1, 1<<32-1-r.Uint32N(4)
			}
		}
		got, want := slices.Repeat([]uint32{7}, 4*n+8), slices.Repeat([]uint32{7}, 4*n+8)
		halveRow(got[:4*n], above, below)
		plainly(t, func() { halveRow(want[:4*n], above, below) })
		if !slices.Equal(got, want) {
			t.Fatalf("%d pixels: %v, want %v", n, got, want)
		}
	}
}

// Levels of pictures are the same.
func TestMipsLanes(t *testing.T) {
	for _, size := range [][2]int{{256, 128}, {100, 36}, {6, 2}} {
		img := noise(size[0], size[1], 9)
		for _, f := range []Filter{{SRGB: true, Weighted: true}, {}, {Normal: true}} {
			got := f.Mips(img)
			plainly(t, func() {
				for i, want := range f.Mips(img) {
					if !bytes.Equal(got[i].Pix, want.Pix) {
						t.Errorf("%+v of %v: level %d is different", f, size, i)
					}
				}
			})
		}
	}
}

func TestGenerated(t *testing.T) { lanestest.Generated(t, "pixel") }

// Sums of pixels and of lines are the same with weights of both signs, and nothing beyond them is written.
func TestResampleLanes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		n, size := 1+r.IntN(19), 1+r.IntN(19)
		row, line := make([]uint32, 4*n), make([]uint64, 4*n)
		for i := range row {
			row[i], line[i] = r.Uint32(), r.Uint64()
			if r.IntN(4) == 0 {
				row[i], line[i] = 1<<32-1, 1<<63-r.Uint64N(2)
			}
		}
		a := emptyAxis(n, size, 1+r.IntN(n), r.IntN(1<<20))
		for i := range size {
			a.first[i] = r.IntN(n - a.taps + 1)
			weights, rest := a.weights[i*a.taps:][:a.taps], int32(a.one)
			for k := 1; k < a.taps; k++ {
				weights[k] = r.Int32N(1<<20) - r.Int32N(1<<20)
				rest -= weights[k]
			}
			weights[0] = rest
		}
		got, want := slices.Repeat([]uint64{7}, 4*size+4), slices.Repeat([]uint64{7}, 4*size+4)
		a.apply(got, row)
		plainly(t, func() { a.apply(want, row) })
		if !slices.Equal(got, want) {
			t.Fatalf("%d of %d pixels, %d taps: %v, want %v", size, n, a.taps, got, want)
		}
		weight := r.Int32() - r.Int32()
		got, want = slices.Repeat([]uint64{7}, 4*n+4), slices.Repeat([]uint64{7}, 4*n+4)
		addLine(got, line, weight)
		plainly(t, func() { addLine(want, line, weight) })
		if !slices.Equal(got, want) {
			t.Fatalf("%d pixels times %d: %v, want %v", n, weight, got, want)
		}
	}
}
