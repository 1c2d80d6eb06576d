package bcn

import (
	"math/rand/v2"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/block"
)

// channelOf returns the pixels of a block with v as red.
func channelOf(v [16]byte) (pixels [64]byte) {
	for i, x := range v {
		pixels[4*i] = x
	}
	return pixels
}

// bestByTrying returns the smallest sum of squared errors of any two endpoints.
func bestByTrying(v [16]byte) int {
	best := 1 << 30
	for e0 := range 256 {
		for e1 := range 256 {
			b := []byte{byte(e0), byte(e1), 0x88, 0xc6, 0xfa, 0, 0, 0} // each index once in the first eight pixels
			sum := 0
			for _, x := range v {
				least := 1 << 30
				for i := range 8 {
					d := int(x) - int(channelByTables(b, i))
					least = min(least, d*d)
				}
				if sum += least; sum >= best {
					break
				}
			}
			best = min(best, sum)
		}
	}
	return best
}

// Blocks with values that are hard to fit: the error of each quality, compared with the least possible error.
func TestChannelNearOptimum(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var sum [3]int
	optimum := 0
	for i := range 24 {
		var v [16]byte
		from, spread := r.IntN(200), 8+r.IntN(48)
		for k := range v {
			v[k] = byte(from + r.IntN(spread))
			if i%3 == 0 && r.IntN(3) == 0 {
				v[k] = byte(255 * r.IntN(2)) // hard edges
			}
		}
		pixels := channelOf(v)
		optimum += bestByTrying(v)
		for q := range sum {
			var c channel
			back := pixels
			decodeChannel(&back, 0, c.encode(&pixels, 0, block.Quality(q)))
			sum[q] += squares(BC4, pixels[:], back[:])
		}
	}
	t.Logf("optimum %d; fast %d, normal %d, best %d", optimum, sum[0], sum[1], sum[2])
	for q, percent := range []int{70, 12, 5} {
		if most := optimum * (100 + percent) / 100; sum[q] < optimum || sum[q] > most {
			t.Errorf("quality %d leaves %d, want %d to %d", q, sum[q], optimum, most)
		}
	}
}

// Values that fit eight places are encoded exactly, at any quality.
func TestChannelExact(t *testing.T) {
	tests := map[string]func(r *rand.Rand, v *[16]byte){
		"one value": func(r *rand.Rand, v *[16]byte) {
			x := byte(r.IntN(256))
			for i := range v {
				v[i] = x
			}
		},
		"two values": func(r *rand.Rand, v *[16]byte) {
			x := [2]byte{byte(r.IntN(256)), byte(r.IntN(256))}
			for i := range v {
				v[i] = x[r.IntN(2)]
			}
		},
		"eight in a row": func(r *rand.Rand, v *[16]byte) {
			from := r.IntN(249)
			for i := range v {
				v[i] = byte(from + r.IntN(8))
			}
		},
		"six in a row, black and white": func(r *rand.Rand, v *[16]byte) {
			from := 9 + r.IntN(230)
			for i := range v {
				v[i] = byte(from + r.IntN(6))
			}
			v[0], v[1], v[2], v[3] = 0, 255, byte(from), byte(from+5)
		},
	}
	for name, fill := range tests {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(9, 10))
			for range 500 {
				var v [16]byte
				fill(r, &v)
				pixels := channelOf(v)
				for _, q := range qualities {
					var c channel
					back := pixels
					decodeChannel(&back, 0, c.encode(&pixels, 0, q))
					if back != pixels {
						t.Fatalf("quality %d: %v came back as %v", q, v, back)
					}
				}
			}
		})
	}
}

// gain returns what its comment says, for any line.
func TestChannelGain(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for range 2000 {
		var v [16]byte
		for i := range v {
			v[i] = byte(r.IntN(256))
		}
		pixels := channelOf(v)
		var c channel
		c.count(&pixels, 0)
		l := line{low: int32(r.IntN(249)), six: r.IntN(2) == 0}
		l.high = l.low + 7 + int32(r.IntN(249-int(l.low)))
		want := int32(0)
		for _, x := range v {
			least := int32(1 << 30)
			for _, p := range l.values() {
				least = min(least, (int32(x)-p)*(int32(x)-p))
			}
			want += int32(x)*int32(x) - least
		}
		if got := c.gain(l); got != want {
			t.Fatalf("%v on %v: %d, want %d", v, l, got, want)
		}
		back := pixels
		decodeChannel(&back, 0, writeChannel(&pixels, 0, l))
		sum := int32(0)
		for _, x := range v {
			sum += int32(x) * int32(x)
		}
		if left := int32(squares(BC4, pixels[:], back[:])); left != sum-want {
			t.Fatalf("%v on %v: written with an error of %d, want %d", v, l, left, sum-want)
		}
	}
}

// The place is one of those that are nearest, for any distance of the endpoints and any value.
func TestChannelNearest(t *testing.T) {
	for _, six := range []bool{false, true} {
		l := line{six: six}
		for l.low = range int32(256) {
			for l.high = l.low + l.steps(); l.high <= 255; l.high++ {
				n, places := l.nearest(), l.values()
				inner := places[:]
				if six {
					inner = places[1:7]
				}
				for v := range int32(256) {
					least := int32(1 << 10)
					for _, p := range inner {
						least = min(least, max(v-p, p-v))
					}
					if p := inner[n.place(v)]; max(v-p, p-v) != least {
						t.Fatalf("%v: %d at place %d, which is at %d", l, v, n.place(v), p)
					}
				}
			}
		}
	}
}
