package pixel

import (
	"bytes"
	"math"
	"testing"
)

func TestCut(t *testing.T) {
	p := &Picture{Eight: noise(12, 4, 1), Float: NewFloat(12, 4)}
	p.Float.Pix[4*4+1] = 7
	parts := p.Cut(3)
	if len(parts) != 3 || parts[1].Float.Pix[1] != 7 {
		t.Fatalf("%d parts", len(parts))
	}
	for i, part := range parts {
		for y := range 4 {
			if !bytes.Equal(part.Eight.Pix[16*y:16*y+16], p.Eight.Pix[48*y+16*i:][:16]) {
				t.Errorf("part %d row %d", i, y)
			}
		}
	}
	if p.Cut(5) != nil {
		t.Error("12 into 5")
	}
	tall := &Picture{Eight: noise(2, 6, 1)}
	if parts := tall.Cut(3); len(parts) != 3 || !bytes.Equal(parts[2].Eight.Pix, tall.Eight.Pix[32:]) {
		t.Error("a strip downwards")
	}
}

// TestCross uses crosses where each square has its own colour, and a dot in the upper left corner.
func TestCross(t *testing.T) {
	for _, tt := range []struct {
		w, h int
		grid string // in rows: the face in each square
		last int    // corner of the dot of -z: 0 is upper left, 3 is lower right
	}{
		{4, 3, ".2.." + "1405" + ".3..", 0},
		{3, 4, ".2." + "140" + ".3." + ".5.", 3},
	} {
		const side = 2
		m := New(tt.w*side, tt.h*side)
		for i, face := range tt.grid {
			if face == '.' {
				continue
			}
			x, y := i%tt.w*side, i/tt.w*side
			for k := range 4 {
				v := byte(face)
				if k == 0 {
					v += 100
				}
				m.Pix[4*((y+k/2)*m.Width+x+k%2)] = v
			}
		}
		faces := (&Picture{Eight: m}).Cross()
		if len(faces) != 6 {
			t.Fatalf("%d x %d: %d faces", tt.w, tt.h, len(faces))
		}
		for i, f := range faces {
			dot := 0
			if i == 5 {
				dot = tt.last
			}
			for k := range 4 {
				want := byte('0' + i)
				if k == dot {
					want += 100
				}
				if got := f.Eight.Pix[4*k]; got != want {
					t.Errorf("%d x %d face %d pixel %d is %d, want %d", tt.w, tt.h, i, k, got, want)
				}
			}
		}
	}
	for _, s := range [][2]int{{8, 8}, {8, 7}, {3, 3}, {1, 1}} {
		if (&Picture{Eight: New(s[0], s[1])}).Cross() != nil {
			t.Errorf("%v is a cross", s)
		}
	}
}

// TestCube uses a picture whose pixels hold their own direction. Each pixel of a face must hold the direction that the
// formula of the specification gives.
func TestCube(t *testing.T) {
	const w, h, side = 256, 128, 16
	m := NewFloat(w, h)
	for y := range h {
		for x := range w {
			lon, lat := (float64(x)+0.5)/w*2*math.Pi-math.Pi, math.Pi/2-(float64(y)+0.5)/h*math.Pi
			p := m.Pix[4*(y*w+x):]
			p[0] = float32(math.Cos(lat) * math.Sin(lon))
			p[1] = float32(math.Sin(lat))
			p[2] = float32(math.Cos(lat) * math.Cos(lon))
			p[3] = 1
		}
	}
	// Vulkan 1.3, table "Cube map face and coordinate selection": the face's s and t for the direction of a pixel.
	st := func(face int, d [3]float64) (s, t float64) {
		x, y, z := d[0], d[1], d[2]
		sc := [6]float64{-z, z, x, x, x, -x}[face]
		tc := [6]float64{-y, -y, z, -z, -y, -y}[face]
		major := [6]float64{x, x, y, y, z, z}[face]
		return (sc/math.Abs(major) + 1) / 2, (tc/math.Abs(major) + 1) / 2
	}
	faces := m.Cube(side, 2)
	for i, f := range faces {
		for y := range side {
			for x := range side {
				p := f.Pix[4*(y*side+x):]
				d := [3]float64{float64(p[0]), float64(p[1]), float64(p[2])}
				if major := d[i/2] * float64(1-2*(i%2)); major < 0.5 || math.Abs(float64(p[3])-1) > 1e-5 {
					t.Fatalf("face %d at %d, %d looks to %v", i, x, y, d)
				}
				s, v := st(i, d)
				if ds, dt := s*side-float64(x)-0.5, v*side-float64(y)-0.5; math.Abs(ds) > 0.1 || math.Abs(dt) > 0.1 {
					t.Errorf("face %d at %d, %d is off by %.3f, %.3f pixels", i, x, y, ds, dt)
				}
			}
		}
	}
}

func TestTurn(t *testing.T) {
	for a := -math.Pi; a < math.Pi; a += 0.001 {
		y, x := math.Sin(a), math.Cos(a)
		if got, want := turn(y, x), math.Atan2(y, x)/(2*math.Pi); math.Abs(got-want) > 1e-12 {
			t.Fatalf("turn(%v, %v) = %v, want %v", y, x, got, want)
		}
	}
	if turn(0, 0) != 0 || turn(1, 0) != 0.25 || turn(0, -1) != 0.5 {
		t.Error("corners")
	}
}

func TestPickAndGreen(t *testing.T) {
	a, b := noise(3, 2, 1), noise(3, 2, 2)
	want := bytes.Clone(a.Pix)
	for i := 0; i < len(want); i += 4 {
		want[i+1] = b.Pix[i+3]
	}
	a.Pick(1, b, 3)
	if !bytes.Equal(a.Pix, want) {
		t.Error("green is not b's alpha")
	}
	g := a.InvertGreen()
	for i, v := range g.Pix {
		if w := a.Pix[i]; i%4 == 1 && v != 255-w || i%4 != 1 && v != w {
			t.Errorf("value %d: %d of %d", i, v, w)
		}
	}
}

func BenchmarkCube(b *testing.B) {
	m := NewFloat(1024, 512)
	b.SetBytes(6 * 256 * 256) // MB/s then means megapixels per second
	for range b.N {
		m.Cube(256, 1)
	}
}

func TestSwizzle(t *testing.T) {
	for order, want := range map[string][4]byte{"": {1, 2, 3, 4}, "rgba": {1, 2, 3, 4}, "rrr1": {1, 1, 1, 255}, "bgra": {3, 2, 1, 4}, "0a1g": {0, 4, 255, 2}} {
		m := &Image{1, 1, []byte{1, 2, 3, 4}}
		if m.Swizzle(order); [4]byte(m.Pix) != want {
			t.Errorf("%q: %v, want %v", order, m.Pix, want)
		}
	}
}

// TestStraighten checks that dividing restores what was multiplied. Higher alpha leaves smaller errors.
func TestStraighten(t *testing.T) {
	for _, srgb := range []bool{false, true} {
		for alpha := 1; alpha < 256; alpha++ {
			m := &Image{3, 1, []byte{255, 0, 128, byte(alpha), 10, 200, 77, byte(alpha), 90, 91, 92, byte(alpha)}}
			got := m.Premultiplied(srgb)
			got.Straighten(srgb)
			for i, v := range got.Pix {
				// Rounding changes a number by at most a half, which becomes 128/alpha after the division. The sRGB
				// curve is steepest near black, where one step of the product is several steps of light.
				most := 1 + 128/alpha
				if srgb {
					most = 2 + 600/alpha
				}
				if d := int(v) - int(m.Pix[i]); d > most || d < -most {
					t.Fatalf("sRGB %t alpha %d: %v, want %v", srgb, alpha, got.Pix, m.Pix)
				}
			}
		}
	}
	clear := &Image{1, 1, []byte{9, 9, 9, 0}}
	if clear.Straighten(true); clear.Pix[0] != 9 {
		t.Error("what is transparent was divided")
	}
}
