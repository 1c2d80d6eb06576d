package etc2

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
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

// someBlocks returns blocks of all kinds, one after another: from the scene, noise of every strength, two values, few
// values, greys.
func someBlocks(n int) []byte {
	r := rand.New(rand.NewPCG(7, 8))
	pix := scene(64, 64)
	all := make([]byte, 0, 64*n)
	for i := range n {
		var src [64]byte
		block.Gather(src[:], pix, 64, 64, 4, 4, r.IntN(16), r.IntN(16))
		around, strength, few := r.IntN(256), 1+r.IntN(255), 2+r.IntN(4)
		for j := range src {
			switch i % 5 {
			case 1:
				src[j] = byte(min(max(around+r.IntN(strength)-strength/2, 0), 255))
			case 2:
				src[j] = byte(255 * r.IntN(2))
			case 3:
				src[j] = byte(37 * (r.IntN(few) + j%4))
			case 4:
				if src[j] = byte(around + r.IntN(strength)); j%4 > 0 {
					src[j] = src[j-1]
				}
			}
		}
		all = append(all, src[:]...)
	}
	return all
}

// blockOf returns the search of a block of opaque pixels, and whether it is for vector code.
func blockOf(src *[64]byte, vector bool) (s search) {
	for j := range s.px {
		at := src[4*(j&3<<2|j>>2):]
		s.px[j] = rgb{int32(at[0]), int32(at[1]), int32(at[2])}
	}
	s.mask = 0xffff
	if vector {
		s.pack(src)
	}
	return s
}

// sameBytes checks that both ways encode an image to the same bytes, in every format and at every quality.
func sameBytes(t *testing.T, pix []byte, width, height int) {
	t.Helper()
	for f := range formats {
		for _, q := range qualities {
			o := block.Options{Quality: q, Workers: 1}
			fast, err := Encode(f, pix, width, height, o)
			if err != nil {
				t.Fatal(err)
			}
			scalar(t, func() {
				if slow, err := Encode(f, pix, width, height, o); err != nil || !bytes.Equal(fast, slow) {
					t.Errorf("%v, quality %d: lanes give other bytes (%v)", f, q, err)
				}
			})
		}
	}
}

func TestLanesSameBytes(t *testing.T) {
	const n = 256 // an image row has the four rows of one block, so the image has other blocks than someBlocks
	sameBytes(t, someBlocks(n), 16, n)
	sameBytes(t, scene(72, 60), 72, 60)
}

// Textures of games are encoded to the same bytes, too.
func TestLanesCorpus(t *testing.T) {
	corpus := os.Getenv("KILN_CORPUS")
	if corpus == "" {
		t.Skip("KILN_CORPUS is not set: no real textures are encoded")
	}
	for _, name := range textures {
		pix, width, height := open(t, filepath.Join(corpus, name))
		x, y, side := width/2, height/2, 96
		piece := make([]byte, 0, 4*side*side)
		for j := range side {
			piece = append(piece, pix[4*((y-side/2+j)*width+x-side/2):][:4*side]...)
		}
		sameBytes(t, piece, side, side)
	}
}

// Halves are the same in vector code, and base colours have the same costs and tables, clamped or not.
func TestPriceLanes(t *testing.T) {
	if !lanes {
		t.Skip("this processor has no AVX2")
	}
	all := someBlocks(2000)
	for i := range len(all) / 64 {
		for flip, of := range []*[16]uint8{&leftHalf, &topHalf} {
			for bits := 4; bits <= 5; bits++ {
				var found [2][2]bases
				var halves [2][2]half
				for way := range found {
					s := blockOf((*[64]byte)(all[64*i:]), way == 1)
					halves[way] = s.halves(flip, of)
					for k := range found[way] {
						h := &halves[way][k]
						h.walk(&found[way][k], bits, int32(i%11), &modifiers)
						h.polish(&found[way][k], bits, &modifiers)
					}
				}
				for k := range found[0] {
					a, b := &found[0][k], &found[1][k]
					if a.n != b.n || a.best != b.best || a.clamped != b.clamped ||
						!slices.Equal(a.keys[:a.n], b.keys[:b.n]) || !slices.Equal(a.codes[:a.n], b.codes[:b.n]) {
						t.Fatalf("block %d, bits %d: bases are %v, by lanes %v", i, bits, a, b)
					}
					g, h := &halves[0][k], &halves[1][k]
					if g.n != h.n || g.total != h.total || g.squares != h.squares || g.greys != h.greys || g.low != h.low || g.high != h.high {
						t.Fatalf("block %d: half %v, by lanes %v", i, g, h)
					}
					key, clamped := g.price(rgb{int32(i) & 15, int32(k), 9}, bits, &modifiers)
					if key1, clamped1 := h.price(rgb{int32(i) & 15, int32(k), 9}, bits, &modifiers); key1 != key || clamped1 != clamped {
						t.Fatalf("block %d, bits %d: key %d, by lanes %d", i, bits, key, key1)
					}
				}
			}
		}
	}
}

// The sums and the costs of planes are the same in vector code.
func TestPlanesLanes(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	colour := func() rgb { return rgb{r.Int32N(64), r.Int32N(128), r.Int32N(64)} }
	all := someBlocks(500)
	for i := range len(all) / 64 {
		src := (*[64]byte)(all[64*i:])
		fast := planeSums(src)
		o, h, v := colour(), colour(), colour()
		cost := planeCost(src, o, h, v)
		scalar(t, func() {
			if by := planeCost(src, o, h, v); by != cost {
				t.Fatalf("%v, planes %v %v %v: cost %d, by lanes %d", src, o, h, v, by, cost)
			}
			if slow := planeSums(src); fast != slow {
				t.Fatalf("%v: sums %v, by lanes %v", src, slow, fast)
			}
		})
	}
}

// A walk visits the base colours in the order in which the grey diagonal reaches them, and in the order of channels for
// ties.
func TestWalk(t *testing.T) {
	all := someBlocks(500)
	for i := range len(all) / 64 {
		s := blockOf((*[64]byte)(all[64*i:]), false)
		h := s.halves(1, &topHalf)[i%2]
		for bits := 4; bits <= 5; bits++ {
			top, reach := int32(1)<<bits-1, int32(i%11)
			var out bases
			out.least = never
			h.walk(&out, bits, reach, &modifiers)
			if out.n != int(6*reach+1) {
				t.Fatalf("a walk of reach %d has %d steps", reach, out.n)
			}
			unit := 255 * h.n
			var c, next rgb
			for k := range c {
				m := h.total[k]*top - reach*unit
				for c[k] = -16; c[k]*unit+unit/2 < m || c[k]*unit+unit/2 == m; c[k]++ {
				}
				next[k] = c[k]*unit + unit/2 - m
			}
			for j := range out.n {
				if want := (rgb{min(max(c[0], 0), top), min(max(c[1], 0), top), min(max(c[2], 0), top)}); out.at(j).c != want {
					t.Fatalf("block %d, bits %d, step %d: base colour %v, want %v", i, bits, j, out.at(j).c, want)
				}
				k := 0
				for other := 1; other < 3; other++ {
					if next[other] < next[k] {
						k = other
					}
				}
				c[k]++
				next[k] += unit
			}
		}
	}
}

// Choices in the modes T and H have the same costs and sums of pixels in vector code.
func TestPaintLanes(t *testing.T) {
	if !lanes {
		t.Skip("this processor has no AVX2")
	}
	r := rand.New(rand.NewPCG(9, 10))
	all := someBlocks(4000)
	for i := range len(all) / 64 {
		l := cloud{n: 16}
		for j := range l.pixels {
			at := all[64*i+4*j:]
			l.pixels[j] = rgb{int32(at[0]), int32(at[1]), int32(at[2])}
		}
		p := pairing{r.IntN(2) == 1, rgb{r.Int32N(16), r.Int32N(16), r.Int32N(16)}, rgb{r.Int32N(16), r.Int32N(16), r.Int32N(16)}, r.Int32N(8)}
		paint := p.paint(false)
		cost, sum, n := l.nearest(&paint)
		if by := l.cost(&p, false); by != cost {
			t.Fatalf("block %d: cost %d, with sums %d", i, by, cost)
		}
		s := blockOf((*[64]byte)(all[64*i:]), true)
		l.packed = (*[2]halfPixels)(s.packed.pixels[2:])
		cost1, sum1, n1 := l.nearest(&paint)
		if by := l.cost(&p, false); by != cost || cost1 != cost || sum1 != sum || n1 != n {
			t.Fatalf("block %d: %d %v %v, by lanes %d %d %v %v", i, cost, sum, n, by, cost1, sum1, n1)
		}
	}
}

// The starts of the modes T and H are the same in vector code: clusters of pixels, the costs of all distances,
// and the moves of base colours.
func TestStartLanes(t *testing.T) {
	if !lanes {
		t.Skip("this processor has no AVX2")
	}
	r := rand.New(rand.NewPCG(13, 14))
	all := someBlocks(4000)
	for i := range len(all) / 64 {
		slow := cloud{n: 16}
		for j := range slow.pixels {
			at := all[64*i+4*j:]
			slow.pixels[j] = rgb{int32(at[0]), int32(at[1]), int32(at[2])}
		}
		s := blockOf((*[64]byte)(all[64*i:]), true)
		fast := cloud{packed: (*[2]halfPixels)(s.packed.pixels[2:])}
		for grey := range int32(2) {
			if a, b := slow.clusters(grey), fast.clusters(grey); a != b {
				t.Fatalf("%v, grey %d: clusters %v, by lanes %v", slow.pixels, grey, a, b)
			}
		}
		c1, c2 := rgb{r.Int32N(16), r.Int32N(16), r.Int32N(16)}, rgb{r.Int32N(16), r.Int32N(16), r.Int32N(16)}
		a, b := slow.starts(c1, c2, false), fast.starts(c1, c2, false)
		for d := range a {
			if [3]int32(a[d][:3]) != [3]int32(b[d][:3]) {
				t.Fatalf("%v, colours %v and %v, distance %d: costs %v, by lanes %v", slow.pixels, c1, c2, d, a[d], b[d])
			}
		}
		p := pairing{i%2 == 0, c1, c2, r.Int32N(8)}
		q := p
		cost := slow.cost(&p, false)
		if a, b := slow.polish(&p, cost, false), fast.polish(&q, cost, false); a != b || p != q {
			t.Fatalf("%v, colours %v and %v: moved to %v, cost %d, by lanes to %v, cost %d", slow.pixels, c1, c2, p, a, q, b)
		}
	}
}

// Levels of EAC have the same costs in vector code.
func TestLevelLanes(t *testing.T) {
	if !lanes {
		t.Skip("this processor has no AVX2")
	}
	r := rand.New(rand.NewPCG(11, 12))
	all := someBlocks(4000)
	for i := range len(all) / 64 {
		for _, k := range []*kind{&alpha8, &unsigned11, &signed11} {
			var px [16]int32
			for j := range px {
				px[j] = int32(all[64*i+4*j+3])
				if k != &alpha8 {
					px[j] = to11(byte(px[j]), k == &signed11)
				}
			}
			l := level{k.lowBase + r.Int32N(k.topBase-k.lowBase+1), r.Int32N(16), r.Int32N(16), 0}
			fast := distinct(&px)
			var slow values
			scalar(t, func() { slow = distinct(&px) })
			cost, rest, n := k.assign(&slow, &l, never)
			cost1, rest1, n1 := k.assign(&fast, &l, never)
			if cost != cost1 || rest != rest1 || n != n1 {
				t.Fatalf("%v, level %v: %d %d %d, by lanes %d %d %d", px, l, cost, rest, n, cost1, rest1, n1)
			}
		}
	}
}

func TestGenerated(t *testing.T) { lanestest.Generated(t, "etc2") }
