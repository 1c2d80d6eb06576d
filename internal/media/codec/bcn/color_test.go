package bcn

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/block"
)

// few returns n blocks of a few colours, some of them similar, as in drawings and where endpoints coincide.
func few(n int) []byte {
	r := rand.New(rand.NewPCG(13, 14))
	pix := make([]byte, 0, 64*n)
	for range n {
		var colors [4][4]byte
		for i := range colors {
			for k := range 4 {
				colors[i][k] = byte(r.Uint32())
				if i > 0 && r.IntN(2) == 0 {
					colors[i][k] = colors[0][k] + byte(r.IntN(3))
				}
			}
		}
		of := 1 + r.IntN(4)
		for range 16 {
			c := colors[r.IntN(of)]
			pix = append(pix, c[:]...)
		}
	}
	return pix
}

// row arranges blocks of 4 x 4 as an image of one row of blocks.
func row(blocks []byte) (pix []byte, w, h int) {
	w = len(blocks) / 16
	pix = make([]byte, len(blocks))
	for i := range len(blocks) / 64 {
		block.Scatter(pix, blocks[64*i:64*i+64], w, 4, 4, 4, i, 0)
	}
	return pix, w, 4
}

// An opaque texture has no transparent pixels in any decoder: Direct3D has only the variant of BC1 that may have transparent
// pixels.
func TestOpaque(t *testing.T) {
	for _, blocks := range [][]byte{few(400), noise(4, 1600, 3)} {
		pix, w, h := row(blocks)
		for _, q := range qualities {
			data, _ := encode(t, BC1, pix, w, h, block.Options{Quality: q})
			back, err := Decode(BC1A, data, w, h)
			if err != nil {
				t.Fatal(err)
			}
			for i := 3; i < len(back); i += 4 {
				if back[i] != 255 {
					t.Fatalf("quality %d: pixel %d is transparent", q, i/4)
				}
			}
		}
	}
}

// Pixels with an alpha below 128 become transparent black, all others opaque. The opaque pixels lose only what three places
// cost.
func TestPunchThrough(t *testing.T) {
	for _, blocks := range [][]byte{few(400), noise(4, 1600, 3), make([]byte, 64)} {
		pix, w, h := row(blocks)
		for _, q := range qualities {
			_, back := encode(t, BC1A, pix, w, h, block.Options{Quality: q})
			for i := 0; i < len(pix); i += 4 {
				if p := [4]byte(back[i : i+4]); pix[i+3] < 128 && p != [4]byte{} || pix[i+3] >= 128 && p[3] != 255 {
					t.Fatalf("quality %d: alpha %d came back as %v", q, pix[i+3], p)
				}
			}
		}
	}
	pix := picture(64, 64)
	for i := range len(pix) / 4 {
		pix[4*i+3] = byte(i % 7 * 42) // three of seven are transparent
	}
	_, back := encode(t, BC1A, pix, 64, 64, block.Options{Quality: block.Normal})
	for i := 0; i < len(pix); i += 4 {
		if pix[i+3] < 128 {
			copy(pix[i:i+3], []byte{0, 0, 0})
		}
	}
	if got := decibels(BC1A, pix, back); got < 35.5 {
		t.Errorf("%.1f dB", got)
	}
}

// Old hardware reads the colour of BC3 as that of BC1. So the first endpoint must be the greater one, for four places in
// both.
func TestEndpointOrder(t *testing.T) {
	pix, w, h := row(few(400))
	for _, q := range qualities {
		data, _ := encode(t, BC3, pix, w, h, block.Options{Quality: q})
		for i := 8; i < len(data); i += 16 {
			q0, q1 := binary.LittleEndian.Uint16(data[i:]), binary.LittleEndian.Uint16(data[i+2:])
			if q0 < q1 || q0 == q1 && binary.LittleEndian.Uint32(data[i+4:]) != 0 {
				t.Fatalf("quality %d: endpoints %04x %04x, indices %08x", q, q0, q1, data[i+4:i+8])
			}
		}
	}
}

// A single colour is as exact as any two endpoints allow.
func TestSolid(t *testing.T) {
	nearest := func(v, bits int, four bool) int { // the smallest error by trying all pairs
		least := 255
		for q0 := range 1 << bits {
			for q1 := range 1 << bits {
				a, b := q0<<(8-bits)|q0>>(2*bits-8), q1<<(8-bits)|q1>>(2*bits-8)
				at := (a + b) / 2
				if four {
					at = (2*a + b) / 3
				}
				least = min(least, max(v-at, at-v))
			}
		}
		return least
	}
	var want [2][256][2]int // squared errors, by four places, value and 6 bits
	for v := range 256 {
		for wide := range 2 {
			for four := range 2 {
				e := nearest(v, 5+wide, four == 1)
				if e > 2-four {
					t.Errorf("%d bits miss %d by %d, four places: %d", 5+wide, v, e, four)
				}
				want[four][v][wide] = e * e
			}
		}
	}
	r := rand.New(rand.NewPCG(15, 16))
	for i := range 2000 {
		c := [3]int{r.IntN(256), r.IntN(256), r.IntN(256)}
		if i < 256 {
			c = [3]int{i, i, i}
		}
		pix := make([]byte, 64)
		for k := range 16 {
			copy(pix[4*k:], []byte{byte(c[0]), byte(c[1]), byte(c[2]), byte(128 * (k & 1))})
		}
		var sums [2]int
		for four := range sums {
			sums[four] = want[four][c[0]][0] + want[four][c[1]][1] + want[four][c[2]][0]
		}
		for _, f := range []Format{BC1, BC1A, BC3} {
			_, back := encode(t, f, pix, 4, 4, block.Options{Quality: block.Quality(i % 3)})
			sum := map[Format]int{BC1: min(sums[0], sums[1]), BC1A: sums[0], BC3: sums[1]}[f]
			if got := squares(BC1, pix[4:8], back[4:8]); got != sum {
				t.Fatalf("%v of %v has an error of %d, want %d", f, c, got, sum)
			}
		}
	}
}

// The gain of a shape equals the result of ordinary least squares.
func TestClusterGains(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 18))
	for n := 2; n <= 16; n++ {
		var c colors
		c.n = n
		for i := range n {
			for k := range 3 {
				c.x[i][k] = int32(r.IntN(256))
				c.sum[k] += c.x[i][k]
			}
		}
		c.sort(c.axis())
		for three := range 2 {
			s := &allShapes()[three][n]
			if want := []int{n * (n - 1) * (n + 4) / 6, n * (n - 1) / 2}[three]; len(s.cuts) != want || want > maxShapes {
				t.Fatalf("%d shapes of %d pixels, want %d", len(s.cuts), n, want)
			}
			best, spread := c.measure(s, three == 1)
			greatest := float32(0)
			for at, cut := range s.cuts {
				got := math.Float32frombits(uint32(c.gains[at]))
				greatest = max(greatest, got)
				if s.inverse[at] == 0 {
					if got != 0 {
						t.Fatalf("%v of %d pixels is passed over with a gain of %v", cut, n, got)
					}
					continue
				}
				all, left := leastSquares(&c, cut)
				if math.Abs(all-float64(spread)) > 1e-3*all || math.Abs(all-left-float64(got)) > 1e-3*all {
					t.Fatalf("%v of %d pixels: gain %v of %v, want %v of %v", cut, n, got, spread, all-left, all)
				}
			}
			if best != greatest {
				t.Fatalf("the greatest gain is %v, not %v", greatest, best)
			}
		}
	}
}

// leastSquares returns the sums of squared errors for a single colour, and for the best line with the pixels at the places
// of a shape.
func leastSquares(c *colors, cut [3]uint8) (all, left float64) {
	n := float64(c.n)
	for k := range 3 {
		var t, tt, x, tx, xx float64
		for i := range c.n {
			place := 0.0
			for _, at := range cut {
				if i >= int(at) {
					place++
				}
			}
			v := float64(c.x[c.order[i]][k])
			t, tt, x, tx, xx = t+place, tt+place*place, x+v, tx+place*v, xx+v*v
		}
		b := (n*tx - t*x) / (n*tt - t*t)
		a := (x - b*t) / n
		all += xx - x*x/n
		left += xx - 2*a*x - 2*b*tx + n*a*a + 2*a*b*t + b*b*tt
	}
	return all, left
}

// A network that sorts all sequences of 0 and 1 sorts everything (Knuth, 5.3.4, theorem Z).
func TestNetwork(t *testing.T) {
	for bits := range 1 << 16 {
		v := bits
		for _, ij := range network {
			i, j := ij[0], ij[1]
			if v>>i&1 == 1 && v>>j&1 == 0 {
				v ^= 1<<i | 1<<j
			}
		}
		if ones := v & -v; v != 0 && v+ones != 1<<16 {
			t.Fatalf("%016b is not sorted", bits)
		}
	}
}

// Two colours are as exact as the bits of the endpoints allow, with transparent pixels or without: the error is at most 4, 2
// and 4.
func TestTwoColors(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	for range 1000 {
		var colors [3][4]byte // the third is transparent
		for i := range 2 {
			colors[i] = [4]byte{byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32()), 255}
		}
		of := 2 + r.IntN(2)
		pix := make([]byte, 0, 64)
		for range 16 {
			c := colors[r.IntN(of)]
			pix = append(pix, c[:]...)
		}
		for _, f := range []Format{BC1, BC1A, BC3} {
			for _, q := range qualities {
				if _, back := encode(t, f, pix, 4, 4, block.Options{Quality: q}); of == 2 || f == BC1A {
					if got := squares(BC1, pix, back); got > 16*(16+4+16) {
						t.Fatalf("%v, quality %d: %v came back as %v", f, q, pix, back)
					}
				}
			}
		}
	}
}

// The error in a search equals the final error.
func TestAssign(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 24))
	for range 2000 {
		pixels := [64]byte(noise(4, 4, r.Uint64()))
		var c colors
		c.load(&pixels, BC1)
		e := ends{last: 2 + r.Int32N(2)}
		for i := range e.q {
			for k := range 3 {
				e.q[i][k] = r.Int32N(levels[k] + 1)
			}
		}
		_, got := c.assign(&e)
		back := pixels
		decodeColor(&back, c.write(e), BC1)
		// Rounding moves the places off the line, so the nearest place along the line is not always the nearest colour.
		if want := int32(squares(BC1, pixels[:], back[:])); got < want || float64(got) > 1.01*float64(want)+50 {
			t.Fatalf("%v: %d, want %d", e, got, want)
		}
	}
}

// The error of polish is that of the decoded block. Where it changes nothing, no single step of a channel's endpoints lowers the error.
func TestPolish(t *testing.T) {
	r := rand.New(rand.NewPCG(27, 28))
	for i := range 500 {
		pixels := [64]byte(noise(4, 4, r.Uint64()))
		for j := range pixels {
			pixels[j] = 100 + pixels[j]>>(1+i%5)
		}
		var c colors
		c.load(&pixels, BC1)
		error := func(e ends) int32 {
			back := pixels
			decodeColor(&back, c.write(e), BC1)
			return int32(squares(BC1, pixels[:], back[:]))
		}
		from := c.extremes(c.axis(), BC1)
		e, err := c.polish(from)
		for {
			next, less := c.polish(e)
			if next == e {
				break
			}
			if less >= err {
				t.Fatalf("%v of error %d became %v of %d", e, err, next, less)
			}
			e, err = next, less
		}
		if want := error(e); err != want || want > error(from) {
			t.Fatalf("%v from %v: error %d, decoded %d, at first %d", e, from, err, want, error(from))
		}
		for k := range 3 {
			for _, d := range moves {
				to := e
				to.q[0][k] = min(max(to.q[0][k]+d[0], 0), levels[k])
				to.q[1][k] = min(max(to.q[1][k]+d[1], 0), levels[k])
				if better := error(to); better < err {
					t.Fatalf("%v has an error of %d, %v of %d", e, err, to, better)
				}
			}
		}
	}
}

// Colours on a line between possible endpoints are nearly exact: only the rounding of the endpoints is lost.
func TestColorLine(t *testing.T) {
	r := rand.New(rand.NewPCG(19, 20))
	for range 300 {
		var e [2]rgb
		for i := range e {
			for k := range 3 {
				e[i][k] = r.Int32N(levels[k] + 1)
			}
		}
		line := ends{last: 3, q: e}
		p := line.palette()
		pix := make([]byte, 64)
		places := []int{0, 1, 2, 3, r.IntN(4), r.IntN(4), r.IntN(4), r.IntN(4), 0, 3, 1, 2, 1, 2, 0, 3}
		r.Shuffle(16, func(i, j int) { places[i], places[j] = places[j], places[i] })
		for i, at := range places {
			copy(pix[4*i:], []byte{byte(p[at][0]), byte(p[at][1]), byte(p[at][2]), 255})
		}
		for _, q := range []block.Quality{block.Normal, block.Best} {
			if _, back := encode(t, BC1, pix, 4, 4, block.Options{Quality: q}); !slices.Equal(back, pix) {
				t.Fatalf("quality %d: endpoints %v came back as %v, want %v", q, e, back, pix)
			}
		}
	}
}
