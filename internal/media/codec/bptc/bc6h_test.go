package bptc

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/block"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

// modes.bc6h has 256 blocks of random bits, with each mode in turn. modes.bc6h.half and modes.bc6hs.half have their red,
// green and blue, as half floats, as decoded by SwiftShader in Chromium's WebGL2, unsigned and signed.
func TestDecodeBC6H(t *testing.T) {
	for name, signed := range map[string]bool{"modes.bc6h.half": false, "modes.bc6hs.half": true} {
		got, err := DecodeBC6H(read(t, "modes.bc6h"), 64, 64, signed)
		if err != nil {
			t.Fatal(err)
		}
		want := read(t, name)
		if len(want) != 6*64*64 || len(got) != 4*64*64 {
			t.Fatalf("%s: %d bytes for %d values", name, len(want), len(got))
		}
		for i := range 3 * 64 * 64 {
			pixel, c := i/3, i%3
			w := input.Half(binary.LittleEndian.Uint16(want[2*i:]))
			if g := got[4*pixel+c]; g != w {
				t.Fatalf("%s: pixel %d,%d channel %d: %g, want %g", name, pixel%64, pixel/64, c, g, w)
			}
		}
	}
}

func TestReservedBC6H(t *testing.T) {
	for _, mode := range []byte{19, 23, 27, 31} {
		data := bytes.Repeat([]byte{0xff}, 16)
		data[0] = mode
		got, err := DecodeBC6H(data, 4, 4, false)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range got {
			if want := float32(i % 4 / 3); v != want {
				t.Fatalf("mode %d: value %d is %g, want %g", mode, i, v, want)
			}
		}
	}
}

// A layout has each bit of each endpoint once, and covers all bits of a block except its mode, partition and indices.
func TestLayouts(t *testing.T) {
	for i := range modes6 {
		m := &modes6[i]
		seen := map[[3]int]int{}
		total := uint(0)
		for _, r := range runs6()[i] {
			total += uint(r.count)
			for k := range int(r.count) {
				bit := int(r.from) + k
				if r.down {
					bit = int(r.from) - k
				}
				seen[[3]int{int(r.end), int(r.channel), bit}]++
			}
		}
		for end := range 2 * int(m.subsets) {
			for c := range 3 {
				for bit := range int(m.channelBits(end, c)) {
					if n := seen[[3]int{end, c, bit}]; n != 1 {
						t.Errorf("mode %d: bit %d of channel %d of endpoint %d is there %d times", m.number, bit, c, end, n)
					}
				}
			}
		}
		if rest := m.modeBits() + m.partitionBits() + 16*uint(m.indexBits()) - uint(m.subsets); total+rest != 128 {
			t.Errorf("mode %d: %d bits", m.number, total+rest)
		}
	}
}

func TestPackBC6H(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		in := bits{lo: r.Uint64(), hi: r.Uint64()}
		var b block6
		if !b.unpack(in, r.IntN(2) == 0) {
			continue
		}
		if out := b.pack(); out.lo != in.lo || out.hi != in.hi || out.at != 128 {
			t.Fatalf("mode %d: %x %x became %x %x with %d bits", b.mode, in.hi, in.lo, out.hi, out.lo, out.at)
		}
	}
}

// Every half is preserved, and any number is rounded to the nearest half.
func TestHalf(t *testing.T) {
	for h := range uint16(largest + 1) {
		if got := toHalf(input.Half(h), false); got != h {
			t.Fatalf("%#x became %#x", h, got)
		}
		if got := toHalf(input.Half(h|0x8000), true); got != h|0x8000 {
			t.Fatalf("%#x became %#x", h|0x8000, got)
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 100000 {
		f := math.Float32frombits(r.Uint32() % 0x47800000) // up to 65536
		h := toHalf(f, false)
		d := math.Abs(float64(input.Half(h)) - float64(f))
		for _, other := range []uint16{h - 1, h + 1} {
			if other > largest {
				continue
			}
			switch e := math.Abs(float64(input.Half(other)) - float64(f)); {
			case e < d, e == d && h&1 == 1:
				t.Fatalf("%g became %g, not %g", f, input.Half(h), input.Half(other))
			}
		}
	}
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		f      float32
		signed bool
		want   float32
	}{{inf, false, 65504}, {1e9, true, 65504}, {-inf, true, -65504}, {-inf, false, 0}, {-3, false, 0}, {float32(math.NaN()), true, 0}, {65519, false, 65504}} {
		if got := input.Half(toHalf(c.f, c.signed)); got != c.want {
			t.Errorf("%g became %g, want %g", c.f, got, c.want)
		}
	}
}

func encodeBC6H(t testing.TB, rgba []float32, w, h int, signed bool, o block.Options) (data []byte, back []float32) {
	t.Helper()
	data, err := EncodeBC6H(rgba, w, h, signed, o)
	if err != nil {
		t.Fatal(err)
	}
	if back, err = DecodeBC6H(data, w, h, signed); err != nil {
		t.Fatal(err)
	}
	return data, back
}

// A block of one colour is exact, for any half floats.
func TestSolidBC6H(t *testing.T) {
	for h := uint16(0); h <= largest; h += 7 {
		for _, signed := range []bool{false, true} {
			p := []float32{input.Half(h), input.Half(largest - h), input.Half(h * 5 % largest), 1}
			if signed {
				p[0], p[2] = -p[0], -p[2]
			}
			rgba := make([]float32, 0, 64)
			for range 16 {
				rgba = append(rgba, p...)
			}
			_, back := encodeBC6H(t, rgba, 4, 4, signed, block.Options{})
			for i, v := range back {
				if v != rgba[i] {
					t.Fatalf("signed %v: %v became %v", signed, p, back[:4])
				}
			}
		}
	}
}

// light returns picture over several stops of exposure, with a sun; each value is exact.
func light(width, height int) []float32 {
	out := make([]float32, 4*width*height)
	for i, v := range picture(width, height) {
		out[i] = float32(math.Ldexp(float64(v), i/4/width/8-12))
		if i%4 == 3 {
			out[i] = 1
		}
	}
	for i := range 3 * 4 {
		out[4*(width*height/2)+i] = 30000
	}
	return out
}

// stops returns the root mean square difference of two images in stops: one stop is twice the light. Light below a
// thousandth is not visible.
func stops(a, b []float32) float64 {
	sum, n := 0.0, 0.0
	for i := range a {
		if i%4 < 3 {
			d := math.Log2(float64(a[i])+1e-3) - math.Log2(float64(b[i])+1e-3)
			sum += d * d
			n++
		}
	}
	return math.Sqrt(sum / n)
}

func TestQualityBC6H(t *testing.T) {
	rgba := light(128, 128)
	for _, signed := range []bool{false, true} {
		last := math.Inf(1)
		for q := block.Fast; q <= block.Best; q++ {
			_, back := encodeBC6H(t, rgba, 128, 128, signed, block.Options{Quality: q})
			if got := stops(rgba, back); got > 0.08 || got >= last {
				t.Errorf("signed %v quality %d: %.4f stops, want at most 0.08 and less than %.4f", signed, q, got, last)
			} else {
				last = got
			}
		}
	}
}

func TestSizesBC6H(t *testing.T) {
	for w := 1; w <= 17; w++ {
		for h := 1; h <= 17; h++ {
			rgba := make([]float32, 0, 4*w*h)
			for y := range h {
				for x := range w {
					rgba = append(rgba, 1+float32(x)/16, 2+float32(y)/8, 8+float32(x)/4, 1)
				}
			}
			data, back := encodeBC6H(t, rgba, w, h, false, block.Options{Quality: block.Normal})
			if want := (w + 3) / 4 * ((h + 3) / 4) * 16; len(data) != want {
				t.Fatalf("%d x %d: %d bytes, want %d", w, h, len(data), want)
			}
			for i := range rgba {
				if d := math.Abs(float64(rgba[i]/back[i] - 1)); d > 0.06 {
					t.Fatalf("%d x %d: value %d is %g, want %g", w, h, i, back[i], rgba[i])
				}
			}
		}
	}
}

// Colours on either side of zero keep their signs, except for the smallest.
func TestSigns(t *testing.T) {
	var rgba [64]float32
	for i := range rgba {
		rgba[i] = float32(i%13) - 6
	}
	_, back := encodeBC6H(t, rgba[:], 4, 4, true, block.Options{Quality: block.Best})
	if back[0] >= 0 {
		t.Errorf("%g became %g", rgba[0], back[0])
	}
	_, back = encodeBC6H(t, rgba[:], 4, 4, false, block.Options{Quality: block.Best})
	for i, v := range back {
		if v < 0 {
			t.Errorf("value %d is %g", i, v)
		}
	}
}

func TestWorkersBC6H(t *testing.T) {
	rgba := light(61, 47)
	want, _ := encodeBC6H(t, rgba, 61, 47, false, block.Options{Quality: block.Normal, Workers: 1})
	for _, workers := range []int{2, 7} {
		if got, _ := encodeBC6H(t, rgba, 61, 47, false, block.Options{Quality: block.Normal, Workers: workers}); !bytes.Equal(got, want) {
			t.Errorf("%d workers give other bytes", workers)
		}
	}
}

// Any bytes of sufficient length decode to an image, which can be encoded again.
func FuzzDecodeBC6H(f *testing.F) {
	f.Add([]byte{}, 0, 0, false)
	f.Add(bytes.Repeat([]byte{0x40, 0x55, 0}, 32), 7, 9, true)
	for i := range modes6 {
		f.Add(append([]byte{modes6[i].number | 0xe0}, "fifteen letters"...), 3, 4, i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, data []byte, w, h int, signed bool) {
		rgba, err := DecodeBC6H(data, w, h, signed)
		if err != nil {
			return
		}
		if len(rgba) != 4*w*h {
			t.Fatalf("%d values for %d x %d", len(rgba), w, h)
		}
		if w*h > 1<<12 {
			return
		}
		again, err := EncodeBC6H(rgba, w, h, signed, block.Options{})
		if err != nil || len(again) != len(data) {
			t.Fatalf("%d bytes, %v", len(again), err)
		}
	})
}
