package pixel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestKaiser compares the functions behind the kernels with the standard library and published tables.
func TestKaiser(t *testing.T) {
	for x := -3.99; x < 4; x += 0.01 {
		want := 1.0
		if math.Abs(x) > 1e-9 {
			want = math.Sin(math.Pi*x) / (math.Pi * x)
		}
		if got := sinc(x); math.Abs(got-want) > 1e-12 {
			t.Errorf("sinc(%v) = %v, want %v", x, got, want)
		}
	}
	// Abramowitz and Stegun, table 9.8: exp(-x) I0(x).
	for x, want := range map[float64]float64{0: 1, 1: 0.4657596077, 2: 0.3085083225, 4: 0.2070019212} {
		if got := math.Exp(-x) * bessel(x); math.Abs(got-want) > 1e-9 {
			t.Errorf("I0(%v) is off: %v, want %v", x, got, want)
		}
	}
	if kaiser(3) != 0 || kaiser(-3.1) != 0 || math.Abs(kaiser(1)) > 1e-12 || kaiser(1.5) >= 0 {
		t.Error("the window's zeros")
	}
}

// TestAxes checks for all small sizes that the weights of each new pixel have the sum one, and that all positions
// exist.
func TestAxes(t *testing.T) {
	for name, axisOf := range map[string]func(int, int) axis{"kaiser": kaiserAxis, "linear": linearAxis, "box": boxAxis, "area": areaAxis} {
		for old := 1; old <= 33; old++ {
			for size := 1; size <= 33; size++ {
				if name == "area" && size > old {
					continue
				}
				a := axisOf(old, size)
				if len(a.first) != size || len(a.weights) != size*a.taps {
					t.Fatalf("%s %d to %d: %d places, %d weights", name, old, size, len(a.first), len(a.weights))
				}
				centre, total := 0.0, make([]float64, old)
				for i, first := range a.first {
					sum := int32(0)
					for k, w := range a.weights[i*a.taps:][:a.taps] {
						sum += w
						centre += float64(w) * (float64(first+k) + 0.5)
						total[first+k] += float64(w)
					}
					if sum != int32(a.one) || first < 0 || first+a.taps > old {
						t.Fatalf("%s %d to %d: new pixel %d of %d..%d, sum %d", name, old, size, i, first, first+a.taps, sum)
					}
				}
				// Nothing shifts: the mean position of all that is used is the middle.
				if c := centre / float64(a.one) / float64(size); math.Abs(c-float64(old)/2) > 0.02 {
					t.Errorf("%s %d to %d: the middle is at %v", name, old, size, c)
				}
				if name == "box" && size < old {
					for i, w := range total {
						if want := float64(size) / float64(old); math.Abs(w/weightOne-want) > 0.005 {
							t.Errorf("box %d to %d: old pixel %d counts %v, want %v", old, size, i, w/weightOne, want)
						}
					}
				}
			}
		}
	}
}

// TestKaiserHalves compares the weights for halving with another form of the formula.
func TestKaiserHalves(t *testing.T) {
	a := kaiserAxis(64, 32)
	var want [12]float64
	sum := 0.0
	for k := range want {
		x := (float64(k) - 5.5) / 2
		r := x / 3
		i0 := func(v float64) (s float64) {
			term := 1.0
			for n := 1.0; n < 40; n++ {
				s += term
				term *= v * v / 4 / n / n
			}
			return s
		}
		want[k] = math.Sin(math.Pi*x) / x * i0(4*math.Sqrt(1-r*r))
		sum += want[k]
	}
	got := map[int]int32{}
	for k, w := range a.weights[16*a.taps:][:a.taps] {
		if w != 0 {
			got[a.first[16]+k] = w
		}
	}
	for k, w := range want {
		if d := float64(got[2*16-5+k]) - w/sum*weightOne; math.Abs(d) > 2 {
			t.Errorf("weight %d is %d, want %.2f", k, got[2*16-5+k], w/sum*weightOne)
		}
	}
}

func TestKaiserKeepsConstants(t *testing.T) {
	for _, f := range filters {
		f.Kernel = Kaiser
		for w := 1; w <= 17; w++ {
			for h := 1; h <= 17; h++ {
				for _, px := range [][]byte{{200, 100, 3, 255}, {200, 100, 3, 1}, {200, 100, 3, 0}, {255, 255, 255, 255}} {
					for n, m := range f.Mips(constant(w, h, px...)) {
						if want := constant(m.Width, m.Height, px...); string(want.Pix) != string(m.Pix) {
							t.Fatalf("%+v %d x %d of %v: level %d is %v", f, w, h, px, n, m.Pix)
						}
					}
				}
			}
		}
	}
}

// TestEnlarge checks that a linear ramp stays a ramp, away from the edges.
func TestEnlarge(t *testing.T) {
	for _, kernel := range []Kernel{Box, Kaiser} {
		f := Filter{Kernel: kernel}
		m := New(16, 1)
		for x := range 16 {
			m.Pix[4*x], m.Pix[4*x+3] = byte(16*x), 255
		}
		for _, w := range []int{17, 24, 32, 40} {
			big := f.Resize(m, w, 3)
			for y := range 3 {
				for x := w / 4; x < 3*w/4; x++ {
					want := (float64(x)+0.5)*16/float64(w)*16 - 8
					if got := float64(big.Pix[4*(y*w+x)]); math.Abs(got-want) > 1 {
						t.Errorf("kernel %d to %d: pixel %d is %v, want %.1f", kernel, w, x, got, want)
					}
				}
			}
		}
	}
	for w := 1; w <= 17; w++ { // each size to each other size
		for h := 1; h <= 17; h++ {
			m := Filter{SRGB: true, Weighted: true}.Resize(constant(5, 7, 9, 80, 200, 77), w, h)
			if string(m.Pix) != string(constant(w, h, 9, 80, 200, 77).Pix) {
				t.Fatalf("5 x 7 to %d x %d: %v", w, h, m.Pix)
			}
		}
	}
}

// TestWorkers checks that the pixels do not depend on the number of workers.
func TestWorkers(t *testing.T) {
	m := noise(301, 203, 9)
	light := m.Light(true)
	for _, kernel := range []Kernel{Box, Kaiser} {
		for _, f := range append(filters, Filter{Normal: true}) {
			f.Kernel = kernel
			one, oneLight := f.Mips(m), f.MipsFloat(light)
			for _, n := range []int{2, 7} {
				f.Workers = n
				for i, got := range f.Mips(m) {
					if string(got.Pix) != string(one[i].Pix) {
						t.Errorf("%+v: level %d differs", f, i)
					}
				}
				for i, got := range f.MipsFloat(light) {
					for k, v := range got.Pix {
						if v != oneLight[i].Pix[k] {
							t.Fatalf("%+v: level %d of light differs", f, i)
						}
					}
				}
			}
		}
	}
}

func TestNormals(t *testing.T) {
	f := Filter{Normal: true}
	for _, s := range [][2]int{{64, 64}, {17, 5}, {3, 1}} {
		m := New(s[0], s[1])
		for i := range s[0] * s[1] {
			a, b := float64(i)*0.7, float64(i)*0.31
			v := [3]float64{math.Sin(a) * 0.8, math.Cos(b) * 0.5, 0}
			v[2] = math.Sqrt(1 - v[0]*v[0] - v[1]*v[1])
			for c := range 3 {
				m.Pix[4*i+c] = byte(math.Round(127.5 + 127.5*v[c]))
			}
			m.Pix[4*i+3] = 200
		}
		levels := f.Mips(m)
		for n, l := range levels[1:] {
			for i := 0; i < len(l.Pix); i += 4 {
				sq := 0.0
				for c := range 3 {
					d := (float64(l.Pix[i+c]) - 127.5) / 127.5
					sq += d * d
				}
				if math.Abs(math.Sqrt(sq)-1) > 0.008 || l.Pix[i+3] != 200 { // half of a level of 127.5, in three directions
					t.Fatalf("%v level %d: %v has the length %.3f", s, n+1, l.Pix[i:i+4], math.Sqrt(sq))
				}
			}
		}
	}
	// Opposite slopes give a flat surface. A pixel without any direction points up.
	two := func(a, b [4]byte) *Image { return &Image{2, 1, append(a[:], b[:]...)} }
	for _, tt := range []struct {
		in   *Image
		want [4]byte
	}{
		{two([4]byte{218, 128, 218, 255}, [4]byte{37, 127, 218, 255}), [4]byte{128, 128, 255, 255}},
		{two([4]byte{255, 127, 128, 9}, [4]byte{0, 128, 127, 9}), [4]byte{128, 128, 255, 9}},
		{two([4]byte{255, 128, 128, 0}, [4]byte{255, 128, 128, 0}), [4]byte{255, 128, 128, 0}},
	} {
		if got := [4]byte(f.Mips(tt.in)[1].Pix); got != tt.want {
			t.Errorf("%v: got %v, want %v", tt.in.Pix, got, tt.want)
		}
	}
}

// TestVolumeMips checks that a volume whose slices are the rows of another image shrinks in depth as that image does in
// height.
func TestVolumeMips(t *testing.T) {
	f := Filter{SRGB: true, Weighted: true}
	for depth := 1; depth <= 17; depth++ {
		m := noise(1, depth, uint64(depth))
		slices := make([]*Image, depth)
		for z := range slices {
			slices[z] = m.Crop(0, z, 1, 1)
		}
		levels, want := f.VolumeMips(slices), f.Mips(m)
		if len(levels) != len(want) {
			t.Fatalf("depth %d: %d levels, want %d", depth, len(levels), len(want))
		}
		for n, level := range levels {
			for z, s := range level {
				for c, v := range s.Pix {
					if d := int(v) - int(want[n].Pix[4*z+c]); d < -1 || d > 1 || len(level) != want[n].Height {
						t.Fatalf("depth %d level %d: slice %d is %v, want %v", depth, n, z, s.Pix, want[n].Pix[4*z:4*z+4])
					}
				}
			}
		}
		light := make([]*Float, depth)
		for z := range light {
			light[z] = slices[z].Light(true)
		}
		for n, level := range f.VolumeMipsFloat(light) {
			if len(level) != len(levels[n]) {
				t.Fatalf("depth %d level %d of light has %d slices", depth, n, len(level))
			}
		}
	}
	// Two slices of 4 x 2 of one colour.
	same := []*Image{constant(4, 2, 1, 2, 3, 4), constant(4, 2, 1, 2, 3, 4)}
	levels := f.VolumeMips(same)
	if len(levels) != 3 || len(levels[1]) != 1 || levels[1][0].Width != 2 || string(levels[2][0].Pix) != "\x01\x02\x03\x04" {
		t.Errorf("4 x 2 x 2: %d levels", len(levels))
	}
}

// TestMipsFloat compares the results for light in floating point and in integers.
func TestMipsFloat(t *testing.T) {
	for _, s := range [][2]int{{32, 16}, {17, 9}, {1, 5}} {
		for _, weighted := range []bool{false, true} {
			m := noise(s[0], s[1], 4)
			want := Filter{SRGB: true, Weighted: weighted}.Mips(m)
			for n, l := range (Filter{Weighted: weighted}).MipsFloat(m.Light(true)) {
				got := l.Encoded()
				for i, v := range got.Pix {
					if d := int(v) - int(want[n].Pix[i]); d < -1 || d > 1 {
						t.Fatalf("%v weighted %t level %d: value %d is %d, want %d", s, weighted, n, i, v, want[n].Pix[i])
					}
				}
			}
		}
	}
}

func TestLight(t *testing.T) {
	m := noise(16, 16, 2)
	if got := m.Light(true).Encoded(); string(got.Pix) != string(m.Pix) {
		t.Error("light does not come back as it was")
	}
	p := &Picture{Eight: m}
	if l := p.Light(false); l.Pix[5] != float32(m.Pix[5])/255 || p.Bits(true) != m {
		t.Error("numbers")
	}
	deep := &Picture{Eight: New(1, 1), Float: &Float{1, 1, []float32{0.5, 0, 1, 0.25}}}
	want := [4]float64{math.Pow((0.5+0.055)/1.055, 2.4), 0, 1, 0.25}
	for c, v := range deep.Light(true).Pix {
		if math.Abs(float64(v)-want[c]) > 2e-5 {
			t.Errorf("channel %d is %v, want %v", c, v, want[c])
		}
	}
	if deep.Light(false) != deep.Float {
		t.Error("16 bits of numbers")
	}
	hdr := &Picture{HDR: true, Float: &Float{1, 1, []float32{4, 0.2140411, 0, 1}}}
	if hdr.Light(true) != hdr.Float || [4]byte(hdr.Bits(true).Pix) != [4]byte{255, 127, 0, 255} && [4]byte(hdr.Bits(true).Pix) != [4]byte{255, 128, 0, 255} {
		t.Errorf("light: %v", hdr.Bits(true).Pix)
	}
	if got := [4]byte(hdr.Bits(false).Pix); got != [4]byte{255, 55, 0, 255} {
		t.Errorf("numbers: %v", got)
	}
}

// Quotients are rounded as by a division, near every border, and kept inside of what a plane holds.
func TestDivide(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	check := func(area uint64, v []uint64, want []uint32) {
		t.Helper()
		got, plain := make([]uint32, len(v)), make([]uint32, len(v))
		divide(got, v, area)
		plainly(t, func() { divide(plain, v, area) })
		if !slices.Equal(got, want) || !slices.Equal(plain, want) {
			t.Fatalf("%d / %d is %d, without vector code %d, want %d", v, area, got, plain, want)
		}
	}
	for range 20000 {
		area := uint64(1+r.IntN(maxFilterSide)) * uint64(1+r.IntN(maxFilterSide))
		if r.IntN(4) == 0 {
			area = 1 << r.IntN(31)
		}
		v, want := make([]uint64, 4), make([]uint32, 4)
		for i := range v {
			v[i] = r.Uint64N(maxValue*area + 1)
			if r.IntN(2) == 0 {
				v[i] = min(v[i]/area*area+area/2+r.Uint64N(3)-1, maxValue*area)
			}
			want[i] = uint32((v[i] + area/2) / area)
		}
		check(area, v, want)
	}
	check(1<<28, []uint64{math.MaxUint64, 1 << 63, 1<<62 + 7, maxValue<<28 + 1}, []uint32{0, 0, maxValue, maxValue})
}
