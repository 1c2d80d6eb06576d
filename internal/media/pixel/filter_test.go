package pixel

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
)

// filters are all combinations of SRGB and Weighted.
var filters = []Filter{{}, {SRGB: true}, {Weighted: true}, {SRGB: true, Weighted: true}}

func constant(w, h int, rgba ...byte) *Image {
	m := New(w, h)
	for i := range m.Pix {
		m.Pix[i] = rgba[i%4]
	}
	return m
}

func noise(w, h int, seed uint64) *Image {
	r := rand.New(rand.NewPCG(seed, 0))
	m := New(w, h)
	for i := range m.Pix {
		m.Pix[i] = byte(r.Uint32())
	}
	return m
}

// TestMipsOfConstant checks the sizes of mip chains, and that an image of one colour keeps it exactly, for all small
// sizes.
func TestMipsOfConstant(t *testing.T) {
	for _, f := range filters {
		for w := 1; w <= 17; w++ {
			for h := 1; h <= 17; h++ {
				for _, px := range [][]byte{{200, 100, 3, 255}, {200, 100, 3, 1}, {200, 100, 3, 0}, {255, 255, 255, 255}, {0, 1, 2, 128}} {
					levels := f.Mips(constant(w, h, px...))
					if want := 1 + int(math.Log2(float64(max(w, h)))); len(levels) != want {
						t.Fatalf("%d x %d: %d levels, want %d", w, h, len(levels), want)
					}
					for n, m := range levels {
						if m.Width != max(1, w>>n) || m.Height != max(1, h>>n) || len(m.Pix) != 4*m.Width*m.Height {
							t.Fatalf("%d x %d: level %d is %d x %d", w, h, n, m.Width, m.Height)
						}
						if want := constant(m.Width, m.Height, px...); string(want.Pix) != string(m.Pix) {
							t.Fatalf("%+v %d x %d of %v: level %d is %v", f, w, h, px, n, m.Pix)
						}
					}
				}
			}
		}
	}
}

// naive implements the definition of Filter in floating point, pixel by pixel.
func naive(f Filter, m *Image, width, height int) []float64 {
	out := make([]float64, 4*width*height)
	for y := range height {
		for x := range width {
			var sum [4]float64
			var weights, area float64
			for j := range m.Height {
				for i := range m.Width {
					cover := overlap(i, m.Width, x, width) * overlap(j, m.Height, y, height)
					p := m.Pix[4*(j*m.Width+i):]
					w := cover
					if f.Weighted {
						w *= float64(p[3])
					}
					for c := range 3 {
						v := float64(p[c]) / 255
						if f.SRGB {
							v = decodeSRGB(v)
						}
						sum[c] += w * v
					}
					sum[3] += cover * float64(p[3]) / 255
					weights += w
					area += cover
				}
			}
			for c := range 3 {
				out[4*(y*width+x)+c] = sum[c] / weights
			}
			out[4*(y*width+x)+3] = sum[3] / area
		}
	}
	return out
}

// overlap returns the overlap of pixel i of n with pixel x of m, where both rows have the same length.
func overlap(i, n, x, m int) float64 {
	lo := max(float64(i)/float64(n), float64(x)/float64(m))
	hi := min(float64(i+1)/float64(n), float64(x+1)/float64(m))
	return max(0, hi-lo)
}

func encodeSRGB(v float64) float64 {
	if v <= 0.0031308 {
		return 12.92 * v
	}
	return 1.055*math.Pow(v, 1/2.4) - 0.055
}

// TestResizeAgainstNaive compares every result with the naive one, rounded. The tolerance is for 16-bit light in the
// darkest colours, and for the 1 in the weights.
func TestResizeAgainstNaive(t *testing.T) {
	for _, f := range filters {
		for _, s := range [][4]int{{2, 2, 1, 1}, {3, 3, 1, 1}, {5, 7, 2, 3}, {17, 1, 8, 1}, {1, 17, 1, 8}, {16, 16, 8, 8}, {16, 9, 8, 4}, {13, 11, 5, 10}, {9, 9, 9, 4}, {12, 12, 12, 12}} {
			m := noise(s[0], s[1], 1)
			got, want := f.Resize(m, s[2], s[3]), naive(f, m, s[2], s[3])
			for i, v := range want {
				if f.SRGB && i%4 != 3 {
					v = encodeSRGB(v)
				}
				if d := math.Abs(float64(got.Pix[i]) - 255*v); d > 0.56 {
					t.Errorf("%+v %v: value %d is %d, want %.3f", f, s, i, got.Pix[i], 255*v)
				}
			}
		}
	}
}

// TestMipsKeepLight checks that each level has the same mean light as the image, also at odd sizes.
func TestMipsKeepLight(t *testing.T) {
	f := Filter{SRGB: true}
	mean := func(m *Image) (sum float64) {
		for i := 0; i < len(m.Pix); i += 4 {
			sum += decodeSRGB(float64(m.Pix[i]) / 255)
		}
		return sum / float64(m.Width*m.Height)
	}
	for _, size := range [][2]int{{64, 64}, {63, 65}, {100, 37}, {33, 33}} {
		levels := f.Mips(noise(size[0], size[1], 7))
		want := mean(levels[0])
		for n, m := range levels {
			// One 8-bit level at this brightness is 0.0055 of light. In larger levels the rounding averages out.
			if got := mean(m); math.Abs(got-want) > 0.004 {
				t.Errorf("%v: light of level %d is %.4f, want %.4f", size, n, got, want)
			}
		}
	}
}

func TestFilterTable(t *testing.T) {
	two := func(a, b [4]byte) *Image { return &Image{2, 1, append(a[:], b[:]...)} }
	tests := []struct {
		name string
		f    Filter
		in   *Image
		want [4]byte
	}{
		{"unseen green does not bleed", Filter{SRGB: true, Weighted: true}, two([4]byte{255, 0, 0, 255}, [4]byte{0, 255, 0, 0}), [4]byte{255, 0, 0, 128}},
		{"nor without sRGB", Filter{SRGB: false, Weighted: true}, two([4]byte{255, 0, 0, 255}, [4]byte{0, 255, 0, 0}), [4]byte{255, 0, 0, 128}},
		{"unseen colour stays where nothing is seen", Filter{SRGB: true, Weighted: true}, two([4]byte{255, 0, 0, 0}, [4]byte{255, 0, 0, 0}), [4]byte{255, 0, 0, 0}},
		{"half of white light is 188", Filter{SRGB: true, Weighted: true}, two([4]byte{255, 255, 255, 255}, [4]byte{0, 0, 0, 255}), [4]byte{188, 188, 188, 255}},
		{"half of the number is 128", Filter{SRGB: false, Weighted: false}, two([4]byte{255, 255, 255, 255}, [4]byte{0, 0, 0, 255}), [4]byte{128, 128, 128, 255}},
		{"data does not care for alpha", Filter{SRGB: false, Weighted: false}, two([4]byte{200, 0, 0, 255}, [4]byte{0, 100, 0, 0}), [4]byte{100, 50, 0, 128}},
		{"colours count by alpha", Filter{SRGB: false, Weighted: true}, two([4]byte{255, 0, 0, 192}, [4]byte{0, 0, 255, 64}), [4]byte{191, 0, 64, 128}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := [4]byte(tt.f.Resize(tt.in, 1, 1).Pix); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			levels := tt.f.Mips(tt.in)
			if got := [4]byte(levels[1].Pix); got != tt.want {
				t.Errorf("as a mip level: got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestFit(t *testing.T) {
	for _, tt := range [][5]int{ // width, height, limit, width, height
		{100, 50, 0, 100, 50}, {100, 50, 100, 100, 50}, {100, 50, 64, 64, 32}, {50, 100, 64, 32, 64},
		{1000, 1, 10, 10, 1}, {1, 1, 1, 1, 1}, {16384, 16384, 1, 1, 1}, {1920, 1080, 512, 512, 288},
	} {
		if w, h := Fit(tt[0], tt[1], tt[2]); w != tt[3] || h != tt[4] {
			t.Errorf("Fit(%d, %d, %d) = %d, %d, want %d, %d", tt[0], tt[1], tt[2], w, h, tt[3], tt[4])
		}
	}
}

// TestNoOverflow uses the largest sums: a white image with the largest sides must stay white.
func TestNoOverflow(t *testing.T) {
	for _, size := range [][2]int{{maxFilterSide, 1}, {1, maxFilterSide}, {16383, 31}} {
		for _, f := range filters {
			m := f.Resize(constant(size[0], size[1], 255, 255, 255, 255), 1, 1)
			if [4]byte(m.Pix) != [4]byte{255, 255, 255, 255} {
				t.Errorf("%v %+v: %v", size, f, m.Pix)
			}
		}
	}
	const side = float64(maxFilterSide)
	if worst := 65535 * float64(maxWeight) * side * side; worst >= 1<<64 {
		t.Errorf("sums of up to %g", worst)
	}
}

// TestTablesAreFirm checks that no table entry depends on the last bits of math.Pow, which may differ between machines.
func TestTablesAreFirm(t *testing.T) {
	const enough = 1e-7 // the relative error of math.Pow is below 1e-15
	for i := range 256 {
		v := 65535 * decodeSRGB(float64(i)/255)
		if d := math.Abs(v - math.Floor(v) - 0.5); d < enough {
			t.Errorf("light of %d is %v", i, v)
		}
		if i < 255 {
			v = 65535 * decodeSRGB((float64(i)+0.5)/255)
			if d := math.Abs(v - math.Round(v)); d < enough {
				t.Errorf("codes %d and %d meet at %v", i, i+1, v)
			}
		}
	}
	for i := range 256 {
		if got := tables().code[tables().light[i]]; got != byte(i) {
			t.Errorf("code %d comes back as %d", i, got)
		}
	}
}

// TestSameEverywhere checks that the pixels are the same on every machine. The sum was computed on amd64.
func TestSameEverywhere(t *testing.T) {
	var sums string
	for _, f := range filters {
		h := crc32.NewIEEE()
		for _, m := range f.Mips(f.Resize(noise(97, 64, 3), 61, 40)) {
			h.Write(m.Pix)
			h.Write(m.Premultiplied(f.SRGB).Pix)
		}
		sums += fmt.Sprintf("%08x ", h.Sum32())
	}
	if want := "38d92ad7 11e84fb9 3ecaf32d 630a82cc "; sums != want {
		t.Errorf("got %q, want %q", sums, want)
	}
}

func TestFlipped(t *testing.T) {
	m := noise(3, 5, 1)
	f := m.Flipped()
	for y := range 5 {
		if string(f.Pix[12*y:12*y+12]) != string(m.Pix[12*(4-y):12*(4-y)+12]) {
			t.Errorf("row %d", y)
		}
	}
	if string(f.Flipped().Pix) != string(m.Pix) {
		t.Error("twice is not once")
	}
}

func TestPremultiplied(t *testing.T) {
	tests := []struct {
		srgb     bool
		in, want [4]byte
	}{
		{false, [4]byte{255, 128, 0, 128}, [4]byte{128, 64, 0, 128}},
		{true, [4]byte{255, 128, 0, 128}, [4]byte{188, 93, 0, 128}},
		{true, [4]byte{9, 99, 199, 255}, [4]byte{9, 99, 199, 255}},
		{true, [4]byte{9, 99, 199, 0}, [4]byte{0, 0, 0, 0}},
		{false, [4]byte{9, 99, 199, 0}, [4]byte{0, 0, 0, 0}},
	}
	for _, tt := range tests {
		in := &Image{1, 1, tt.in[:]}
		if got := [4]byte(in.Premultiplied(tt.srgb).Pix); got != tt.want {
			t.Errorf("%v, sRGB %t: got %v, want %v", tt.in, tt.srgb, got, tt.want)
		}
	}
}

func TestChannels(t *testing.T) {
	m := &Image{2, 1, []byte{1, 2, 3, 4, 5, 6, 7, 8}}
	for n, want := range map[int]string{1: "\x01\x05", 2: "\x01\x02\x05\x06", 3: "\x01\x02\x03\x05\x06\x07", 4: string(m.Pix)} {
		if got := string(m.Channels(n)); got != want {
			t.Errorf("%d channels: %q, want %q", n, got, want)
		}
	}
}

func BenchmarkMips(b *testing.B) {
	color := Filter{SRGB: true, Weighted: true}
	for _, bm := range []struct {
		name string
		size int
		f    Filter
	}{
		{"color", 1024, color}, {"numbers", 1024, Filter{}}, {"normal", 1024, Filter{Normal: true}},
		{"kaiser", 1024, Filter{SRGB: true, Weighted: true, Kernel: Kaiser}}, {"odd", 1023, color},
	} {
		m := noise(bm.size, bm.size, 1)
		for _, workers := range []int{1, runtime.GOMAXPROCS(0)} {
			bm.f.Workers = workers
			b.Run(fmt.Sprintf("%s/%d/workers=%d", bm.name, bm.size, workers), func(b *testing.B) {
				b.SetBytes(int64(bm.size * bm.size)) // MB/s then means megapixels per second
				for range b.N {
					bm.f.Mips(m)
				}
			})
		}
	}
}

// BenchmarkResize changes the size by factors other than two.
func BenchmarkResize(b *testing.B) {
	m := noise(1024, 1024, 1)
	for _, side := range []int{300, 700, 1500} {
		b.Run(fmt.Sprint(side), func(b *testing.B) {
			b.SetBytes(int64(side * side)) // MB/s then means megapixels per second
			for range b.N {
				Filter{SRGB: true, Weighted: true}.Resize(m, side, side)
			}
		})
	}
}

// TestMipsWithoutPlanes checks that large levels, which are rounded while the next one is made, are those of whole planes.
func TestMipsWithoutPlanes(t *testing.T) {
	for _, size := range [][2]int{{2050, 2048}, {2101, 2003}, {65535, 66}} {
		img := noise(size[0], size[1], 8)
		for _, f := range []Filter{{SRGB: true, Weighted: true, Workers: 3}, {Normal: true}} {
			src := f.source(img)
			for n, got := range f.Mips(img)[1:] {
				p := f.resize(src, max(1, src.width/2), max(1, src.height/2))
				if want := f.image(p); !bytes.Equal(got.Pix, want.Pix) || got.Width != want.Width {
					t.Errorf("%+v of %d x %d: level %d is different", f, size[0], size[1], n+1)
				}
				src = p.source()
			}
		}
	}
}

// TestResizeMemory checks that sums of few rows are kept when many become one.
func TestResizeMemory(t *testing.T) {
	m := New(2, 60000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	Filter{}.Resize(m, 2, 1)
	runtime.ReadMemStats(&after)
	if size := after.TotalAlloc - before.TotalAlloc; size > 1<<19 {
		t.Errorf("%d bytes for %d of an image", size, len(m.Pix))
	}
}
