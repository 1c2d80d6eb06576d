package hdrpack

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// value returns a half float by the standard's formula, in float64.
func value(h uint16) float64 {
	s, e, m := 1-2*float64(h>>15), int(h>>10&31), float64(h&1023)
	switch {
	case e == 0:
		return s * math.Ldexp(m, -24)
	case e == 31 && m == 0:
		return math.Inf(int(s))
	case e == 31:
		return math.NaN()
	}
	return s * math.Ldexp(1024+m, e-25)
}

func TestFloat(t *testing.T) {
	for h := range 1 << 16 {
		want := value(uint16(h))
		if got := float64(Float(uint16(h))); got != want && !(math.IsNaN(got) && math.IsNaN(want)) || math.Signbit(got) != math.Signbit(want) && !math.IsNaN(want) {
			t.Fatalf("%#x is %v, want %v", h, got, want)
		}
	}
}

// Every finite half is preserved; numbers between two halfs are rounded to the nearer one, ties to even.
func TestHalf(t *testing.T) {
	for h := range uint16(0x7bff) {
		lo, hi := value(h), value(h+1)
		mid := (lo + hi) / 2 // exact: it needs one more bit than a half has
		even := h + h&1
		for _, tt := range []struct {
			f    float64
			want uint16
		}{{lo, h}, {mid, even}, {hi, h + 1},
			{float64(math.Nextafter32(float32(mid), 0)), h}, {float64(math.Nextafter32(float32(mid), 1e6)), h + 1}} {
			if got := Half(float32(tt.f)); got != tt.want {
				t.Fatalf("%v is %#x, want %#x", tt.f, got, tt.want)
			}
			if got := Half(-float32(tt.f)); got != tt.want|0x8000 {
				t.Fatalf("%v is %#x, want %#x", -tt.f, got, tt.want|0x8000)
			}
		}
	}
	inf := float32(math.Inf(1))
	for _, tt := range []struct {
		f    float32
		want uint16
	}{{0, 0}, {float32(math.Copysign(0, -1)), 0x8000}, {1, 0x3c00}, {65504, 0x7bff}, {65520, 0x7bff}, {1e30, 0x7bff}, {inf, 0x7bff}, {-inf, 0xfbff},
		{float32(math.NaN()), 0}, {-float32(math.NaN()), 0}, {math.SmallestNonzeroFloat32, 0}, {0x1p-25, 0}, {0x1.8p-24, 2}} {
		if got := Half(tt.f); got != tt.want {
			t.Errorf("%v is %#x, want %#x", tt.f, got, tt.want)
		}
	}
}

// share follows the text of the specification in float64 and integer logarithms (EXT_texture_shared_exponent, section
// 3.8.x).
func share(r, g, b float64) uint32 {
	limit := func(f float64) float64 { return math.Max(0, math.Min(65408, f)) }
	r, g, b = limit(r), limit(g), limit(b)
	most := math.Max(r, math.Max(g, b))
	log := -16.0
	if most > 0 {
		_, e := math.Frexp(most)
		log = math.Max(-16, float64(e-1))
	}
	e := log + 1 + 15
	m := func(f float64) uint32 { return uint32(math.Floor(f/math.Pow(2, e-15-9) + 0.5)) }
	if m(most) == 512 {
		e++
	}
	return m(r) | m(g)<<9 | m(b)<<18 | uint32(e)<<27
}

func TestSharedExponent(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, tt := range []struct {
		c    [3]float32
		want uint32
	}{
		// 1 is 256/512 * 2^1: the exponent is 16.
		{[3]float32{1, 0.5, 0.25}, 256 | 128<<9 | 64<<18 | 16<<27},
		{[3]float32{0, 0, 0}, 0},
		{[3]float32{65408, 0, 0}, 511 | 31<<27},
		{[3]float32{inf, -1, nan}, 511 | 31<<27},
		{[3]float32{1e9, 65408, 1}, 511 | 511<<9 | 31<<27},
		{[3]float32{-inf, -0.5, -3}, 0},
		{[3]float32{0x1p-24, 0, 0}, 1},                       // the smallest
		{[3]float32{0x1p-25, 0, 0}, 1},                       // half of it: rounded up
		{[3]float32{0x1.fep-26, 0, 0}, 0},                    // less
		{[3]float32{0.9999, 0, 0.5}, 256 | 128<<18 | 16<<27}, // rounds up to the next power of two
	} {
		if got := SharedExponent(tt.c[0], tt.c[1], tt.c[2]); got != tt.want {
			t.Errorf("%v is %#x, want %#x", tt.c, got, tt.want)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 300000 {
		c := func() float32 { return float32(math.Ldexp(random.Float64(), random.IntN(48)-30)) }
		r, g, b := c(), c(), c()
		got := SharedExponent(r, g, b)
		if want := share(float64(r), float64(g), float64(b)); got != want {
			t.Fatalf("%v %v %v is %#x, want %#x", r, g, b, got, want)
		}
		// Each channel is within half a step, and a step is at most 1/256 of the largest channel.
		most := min(max(r, g, b), MaxRGB9E5)
		x, y, z := FromSharedExponent(got)
		for i, d := range []float32{x - min(r, MaxRGB9E5), y - min(g, MaxRGB9E5), z - min(b, MaxRGB9E5)} {
			if float64(math.Abs(float64(d))) > math.Max(float64(most)/512, 0x1p-25) {
				t.Fatalf("channel %d of %v %v %v is off by %v", i, r, g, b, d)
			}
		}
	}
}

// Every code with a normalised mantissa is preserved.
func TestSharedExponentReturns(t *testing.T) {
	for e := range uint32(32) {
		for m := range uint32(512) {
			if e > 0 && m < 256 {
				continue // a smaller exponent gives the same value
			}
			v := m | (511-m)<<9 | 511<<18 | e<<27
			r, g, b := FromSharedExponent(v)
			if want := math.Ldexp(float64(m), int(e)-24); float64(r) != want {
				t.Fatalf("red of %#x is %v, want %v", v, r, want)
			}
			if got := SharedExponent(r, g, b); got != v {
				t.Fatalf("%#x became %#x", v, got)
			}
		}
	}
}

func TestImages(t *testing.T) {
	pix := []float32{1, 0.5, 2, 0.25, -1, 0, 65504, 1}
	b := EncodeRGBA16F(pix)
	if want := []uint16{0x3c00, 0x3800, 0x4000, 0x3400, 0xbc00, 0, 0x7bff, 0x3c00}; len(b) != 16 || binary.LittleEndian.Uint16(b[6:]) != want[3] ||
		binary.LittleEndian.Uint16(b[12:]) != want[6] {
		t.Errorf("% x", b)
	}
	if got := DecodeRGBA16F(append(b, 1, 2, 3)); !slices.Equal(got, pix) {
		t.Errorf("%v", got)
	}
	b = EncodeRGB9E5(pix)
	if len(b) != 8 || binary.LittleEndian.Uint32(b) != SharedExponent(1, 0.5, 2) {
		t.Errorf("% x", b)
	}
	if got, want := DecodeRGB9E5(append(b[:4:4], 1, 2)), []float32{1, 0.5, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// FuzzHalf checks that any bits have a result, and that it is finite.
func FuzzHalf(f *testing.F) {
	f.Add(uint32(0), uint32(0x7f800001), uint32(0xffffffff))
	f.Fuzz(func(t *testing.T, a, b, c uint32) {
		x, y, z := math.Float32frombits(a), math.Float32frombits(b), math.Float32frombits(c)
		for _, v := range []float32{x, y, z} {
			if got := float64(Float(Half(v))); math.IsNaN(got) || math.Abs(got) > MaxHalf {
				t.Errorf("%v became %v", v, got)
			}
		}
		r, g, bl := FromSharedExponent(SharedExponent(x, y, z))
		if m := max(r, g, bl); !(m <= MaxRGB9E5) || min(r, g, bl) < 0 {
			t.Errorf("%v %v %v", r, g, bl)
		}
	})
}

func megapixel() []float32 {
	pix := make([]float32, 4<<20)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range pix {
		pix[i] = float32(math.Ldexp(random.Float64(), random.IntN(12)-6))
	}
	return pix
}

func BenchmarkRGBA16F(b *testing.B) {
	pix := megapixel()
	b.SetBytes(int64(len(pix) / 4)) // megabytes are megapixels
	for b.Loop() {
		EncodeRGBA16F(pix)
	}
}

func BenchmarkRGB9E5(b *testing.B) {
	pix := megapixel()
	b.SetBytes(int64(len(pix) / 4))
	for b.Loop() {
		EncodeRGB9E5(pix)
	}
}
