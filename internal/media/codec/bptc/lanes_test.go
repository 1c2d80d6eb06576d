package bptc

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/block"
	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
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
		for j := range pix {
			if !alpha {
				pix[j][3] = pix[0][3]
			}
		}
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
			var ends [2][4]float32
			g.span(&ends)
			g.descend(m, m.indexBits, parities, i%4, far, &ends, &f[j], nil)
			g.assign(&f[j], &weights[m.indexBits], 1<<m.indexBits-1, &s[j])
			clear(f[j].index[g.n:]) // indices without a pixel
		}
		if f[0] != f[1] || s[0] != s[1] {
			t.Fatalf("block %d, %v, subsets %#x, mode %d, parities %b: %+v %+v and by lanes %+v %+v",
				i, pix, subsets, mode, parities, f[0], s[0], f[1], s[1])
		}
	}
}

// someLight returns blocks of the pixels that BC6H works with: smooth ones, noise of every strength, few colours, flat ones.
func someLight(n int) [][16][4]float32 {
	r := rand.New(rand.NewPCG(9, 10))
	all := make([][16][4]float32, n)
	for i := range all {
		strength, few := 1+r.IntN(1<<r.IntN(17)), 1+r.IntN(4)
		var slope [3][2]int
		for c := range slope {
			slope[c] = [2]int{r.IntN(strength), r.IntN(strength)}
		}
		for j := range 16 {
			for c := range 3 {
				v := r.IntN(strength)
				switch i % 4 {
				case 1:
					v = (slope[c][0]*(j&3)+slope[c][1]*(j>>2))/6 + v/16
				case 2:
					v = strength / 4 * ((j*c + r.IntN(few)) & 3)
				case 3:
					v = slope[c][r.IntN(few)&1] + r.IntN(2)
				}
				all[i][j][c] = float32(v & 0xffff)
			}
		}
	}
	return all
}

// Eight lines at once have the same endpoints, errors, indices and sums as single ones.
func TestLightLanes(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for i, pix := range someLight(4000) {
		var settled, judged [2]batch6
		b := &settled[0]
		b.init(i%2 == 1)
		for slot := range 4 {
			b.put(slot, &pairs6()[r.IntN(whole6+1)])
		}
		for lane := range 8 {
			b.by[lane] = 0.5 + float32(i%3)*r.Float32()
			for c := range 3 {
				b.least[c][lane] = float32(r.IntN(1000))
				b.low[c][lane], b.high[c][lane] = -b.least[c][lane]*r.Float32(), 32767-b.least[c][lane]
				b.anchor[c][lane] = pix[lane][c]
			}
		}
		settled[1] = *b
		rounds := r.IntN(5)
		settled[0].settle(&pix, 8, rounds)
		judged[0] = settled[0]
		judged[0].judge(&pix, 8)
		scalar(t, func() {
			settled[1].settle(&pix, 8, rounds)
			judged[1] = settled[1]
			judged[1].judge(&pix, 8)
		})
		if settled[0] != settled[1] {
			t.Fatalf("block %d, %v: lines\n%v, errors %v, and by lanes\n%v, %v", i, pix, settled[1].ends, settled[1].err, settled[0].ends, settled[0].err)
		}
		if judged[0] != judged[1] {
			t.Fatalf("block %d, %v: errors %v, sums %v, and by lanes %v, %v", i, pix, judged[1].err, judged[1].sums, judged[0].err, judged[0].sums)
		}
	}
}

// Vector code and plain Go encode every block of light to the same bytes, at every quality.
func TestLightLanesSameBytes(t *testing.T) {
	const w, h = 64, 512
	pix := make([]float32, 0, 4*w*h)
	for i, of := range someLight(w * h / 16) {
		for _, p := range of {
			for c := range 3 {
				half := uint16(int(p[c]) * 31 >> 6 % (largest + 1))
				if i%8 >= 4 && c == i%3 {
					half |= 0x8000
				}
				pix = append(pix, input.Half(half))
			}
			pix = append(pix, 1)
		}
	}
	same := func(name string, pix []float32, w, h int, signed bool, q block.Quality) {
		t.Helper()
		o := block.Options{Quality: q, Workers: 1}
		fast, _ := encodeBC6H(t, pix, w, h, signed, o)
		scalar(t, func() {
			if slow, _ := encodeBC6H(t, pix, w, h, signed, o); !bytes.Equal(fast, slow) {
				t.Errorf("%s, signed %v, quality %d: lanes give other bytes", name, signed, q)
			}
		})
	}
	for q := block.Fast; q <= block.Best; q++ {
		for _, signed := range []bool{false, true} {
			same("noise", pix, w, h, signed, q)
			same("generated", light(64, 64), 64, 64, signed, q)
		}
	}
	t.Run("square", func(t *testing.T) {
		real, _, w, _ := exposed(t)
		for q := block.Fast; q <= block.Best; q++ {
			same("square", real[200*4*w:][:32*4*w], w, 32, false, q)
		}
	})
}

// Eight restarts at once have the same endpoints and errors as single ones.
func TestRestartLanes(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	for i, of := range someBlocks(4000) {
		var pix [16][4]float32
		var b [2]batch7
		b[0].init()
		n := 1 + r.IntN(16)
		for j := range n {
			for c := range 3 {
				pix[j][c] = float32(of[j][c])
				b[0].args[4+c] += pix[j][c]
				b[0].span[j&1][c] = pix[j][c]
			}
		}
		mode := []uint8{0, 1, 2, 3, 6, 7}[r.IntN(6)]
		levels := float32(int(1)<<modes7[mode].indexBits - 1)
		b[0].args[0], b[0].args[1], b[0].args[2], b[0].args[3] = levels, 1/levels, float32(n), inverses[n]
		parities := []uint8{evenOnly, oddOnly, equalParity, anyParity}[r.IntN(4)]
		if modes7[mode].p == noParity {
			parities = evenOnly
		}
		b[1] = b[0]
		b[0].restart(&pix, n, &allModeLanes()[mode], parities, i%4)
		scalar(t, func() { b[1].restart(&pix, n, &allModeLanes()[mode], parities, i%4) })
		b[0].memory = b[1].memory
		if b[0] != b[1] {
			t.Fatalf("block %d, %v, mode %d, parities %b: endpoints %v, errors %v, and by lanes %v, %v",
				i, pix[:n], mode, parities, b[1].ends, b[1].err, b[0].ends, b[0].err)
		}
	}
}
