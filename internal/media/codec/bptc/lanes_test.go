package bptc

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/block"
	"github.com/kiln-pipeline/kiln/internal/media/codec/lanestest"
)

// scalar runs a test without vector code; it skips the test if there is no vector code.
func scalar(t *testing.T, run func()) {
	t.Helper()
	if !lanes {
		t.Skip("this processor has no AVX2")
	}
	lanes = false
	defer func() { lanes = true }()
	run()
}

// someBlocks returns blocks of all kinds: from the generated image, noise of every strength, two colours, extreme values.
func someBlocks(n int) [][16][4]int32 {
	r := rand.New(rand.NewPCG(7, 8))
	rgba := picture(64, 64)
	all := make([][16][4]int32, n)
	for i := range all {
		var pix [64]byte
		block.Gather(pix[:], rgba, 64, 64, 4, 4, r.IntN(16), r.IntN(16))
		around, strength, few := r.IntN(256), 1+r.IntN(255), r.IntN(4)
		for j := range 16 {
			for c := range 4 {
				v := int(pix[4*j+c])
				switch i % 4 {
				case 1:
					v = min(max(around+r.IntN(strength)-strength/2, 0), 255)
				case 2:
					v = 255 * r.IntN(2)
				case 3:
					v = 37 * (r.IntN(few+2) + c)
				}
				all[i][j][c] = int32(v)
			}
		}
	}
	return all
}

// Estimates of eight partitions at once have the same bits as single ones.
func TestEstimateLanes(t *testing.T) {
	if !lanes {
		t.Skip("this processor has no AVX2")
	}
	for i, pix := range someBlocks(2000) {
		var e [2]estimator
		var two, three [2]estimates
		alpha := i/4%2 == 1
		for j := range e {
			e[j].lanes = j == 1
			e[j].fill(&pix, alpha)
			e[j].twos(64, &two[j])
			if !alpha {
				e[j].threes(&three[j])
			}
		}
		if e[0].all != e[1].all {
			t.Fatalf("block %d: moments %v and %v", i, e[0].all, e[1].all)
		}
		if two[0] != two[1] || three[0] != three[1] {
			t.Fatalf("block %d, %v: estimates are\n%v\n%v and by lanes\n%v\n%v", i, pix, two[0], three[0], two[1], three[1])
		}
	}
}

// Vector code and plain Go encode every block to the same bytes, at every quality.
func TestLanesSameBytes(t *testing.T) {
	blocks := someBlocks(512)
	rgba := make([]byte, 0, 64*len(blocks))
	for _, pix := range blocks {
		for _, p := range pix {
			rgba = append(rgba, byte(p[0]), byte(p[1]), byte(p[2]), byte(p[3]))
		}
	}
	for _, opaque := range []bool{false, true} {
		if opaque {
			for i := 3; i < len(rgba); i += 4 {
				rgba[i] = 255
			}
		}
		for q, name := range qualities {
			o := block.Options{Quality: block.Quality(q), Workers: 1}
			fast, err := EncodeBC7(rgba, 64, len(rgba)/256, o)
			if err != nil {
				t.Fatal(err)
			}
			scalar(t, func() {
				slow, err := EncodeBC7(rgba, 64, len(rgba)/256, o)
				if err != nil || !bytes.Equal(fast, slow) {
					t.Errorf("%s, opaque %v: lanes give other bytes (%v)", name, opaque, err)
				}
			})
		}
	}
}

func TestGenerated(t *testing.T) { lanestest.Generated(t, "bptc") }

// Vector code gives the same lines, indices, errors and sums of fits, in every mode, for any number of pixels.
func TestFitLanes(t *testing.T) {
	if !lanes {
		t.Skip("this processor has no AVX2")
	}
	r := rand.New(rand.NewPCG(3, 4))
	for i, pix := range someBlocks(4000) {
		mode := uint8(r.IntN(8))
		m := &modes7[mode]
		subsets := subsetsOf(1+r.IntN(3), uint8(r.IntN(64)))
		parities := []uint8{evenOnly, oddOnly, equalParity, anyParity}[r.IntN(4)]
		if m.p == noParity {
			parities = evenOnly
		}
		var f [2]fitted
		var s [2]sums
		for j := range f {
			var g group
			if j == 1 {
				g.lanes = &allModeLanes()[mode]
			}
			g.gather(&pix, subsets, 0, m.alphaBits > 0)
			g.fit(m, m.indexBits, parities, i%4, far, &f[j])
			g.assign(&f[j], &weights[m.indexBits], 1<<m.indexBits-1, &s[j])
			clear(f[j].index[g.n:]) // indices without a pixel
		}
		if f[0] != f[1] || s[0] != s[1] {
			t.Fatalf("block %d, %v, subsets %#x, mode %d, parities %b: %+v %+v and by lanes %+v %+v",
				i, pix, subsets, mode, parities, f[0], s[0], f[1], s[1])
		}
	}
}
