package etc2

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/block"
)

var update = flag.Bool("update", false, "write the golden files anew")

// scene returns an image with smooth gradients, two hues that meet, noise, flat areas, soft and hard alpha.
func scene(width, height int) []byte {
	r := rand.New(rand.NewPCG(3, 4))
	pix := make([]byte, 4*width*height)
	for y := range height {
		for x := range width {
			p := pix[4*(y*width+x):][:4]
			switch (x/12 + y/12*3) % 6 {
			case 0:
				p[0], p[1], p[2], p[3] = byte(3*x), byte(255-2*y), byte(x+y), 255
			case 1:
				p[0], p[1], p[2], p[3] = 200, 30, 40, 255
				if (x*7+y*3)%11 < 5 {
					p[0], p[1], p[2] = 20, 60, 220
				}
			case 2:
				v := byte(r.IntN(120))
				p[0], p[1], p[2], p[3] = v+60, v+20, v+90, byte(4*x)
			case 3:
				p[0], p[1], p[2], p[3] = 17, 130, 251, 77
			case 4:
				p[0], p[1], p[2], p[3] = byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32())
			default:
				d := math.Hypot(float64(x%24)-12, float64(y%24)-12)
				p[0], p[1], p[2], p[3] = 250, 240, 90, byte(max(0, min(255, 255*(9-d))))
			}
		}
	}
	return pix
}

var qualities = []block.Quality{block.Fast, block.Normal, block.Best}

// encodes encodes and decodes an image.
func encodes(t testing.TB, f Format, pix []byte, width, height int, q block.Quality) (data, back []byte) {
	t.Helper()
	data, err := Encode(f, pix, width, height, block.Options{Quality: q})
	if err != nil {
		t.Fatal(err)
	}
	if columns, rows := block.Size(width, height, 4, 4); len(data) != columns*rows*f.BlockBytes() {
		t.Fatalf("%v of %dx%d: %d bytes", f, width, height, len(data))
	}
	back, err = Decode(f, data, width, height)
	if err != nil {
		t.Fatal(err)
	}
	return data, back
}

// used returns the channels of a format.
func used(f Format) []int {
	return [][]int{RGB8: {0, 1, 2}, RGB8A1: {0, 1, 2}, RGBA8: {0, 1, 2, 3}, R11: {0}, RG11: {0, 1}, R11S: {0}, RG11S: {0, 1}}[f]
}

// psnr returns the PSNR over some channels in dB.
func psnr(a, b []byte, channels []int) float64 {
	var sum, n float64
	for i := 0; i < len(a); i += 4 {
		for _, c := range channels {
			d := float64(a[i+c]) - float64(b[i+c])
			sum += d * d
			n++
		}
	}
	return 10 * math.Log10(255*255*n/max(sum, 1e-9))
}

// Smooth images keep a high quality at any size, and missing channels have the documented values.
func TestSizes(t *testing.T) {
	for f := range formats {
		for w := 1; w <= 17; w++ {
			for h := 1; h <= 17; h++ {
				pix := make([]byte, 4*w*h)
				for i := range w * h {
					x, y := i%w, i/w
					p := pix[4*i:][:4]
					p[0], p[1], p[2], p[3] = byte(20+8*x+y), byte(200-5*y), byte(90+3*x+3*y), byte(255-6*x)
				}
				_, back := encodes(t, f, pix, w, h, block.Normal)
				// The planar mode and small tables of EAC keep the error of such gradients within 2 or 3; 40 dB is an error
				// of 2.55.
				if got := psnr(pix, back, used(f)); got < 40 {
					t.Fatalf("%v of %dx%d: %.1f dB", f, w, h, got)
				}
				for i := 0; i < len(back); i += 4 {
					if f != RGBA8 && back[i+3] != 255 || f.channels() > 0 && back[i+2] != 0 || f.channels() == 1 && back[i+1] != 0 {
						t.Fatalf("%v of %dx%d: a pixel comes back as %v", f, w, h, back[i:i+4])
					}
				}
			}
		}
	}
}

// The cost in the search equals the cost of the decoded block, and all modes occur.
func TestCost(t *testing.T) {
	const size = 72
	pix := scene(size, size)
	for q, e := range efforts {
		modes := map[string]int{}
		for _, punch := range []bool{false, true} {
			for b := range size * size / 16 {
				var src, got [64]byte
				block.Gather(src[:], pix, size, size, 4, 4, b%(size/4), b/(size/4))
				s := e.search(punch)
				s.find(&src)
				w := e.colour(&src, punch)
				decodeColour(&got, w, punch)
				cost := int32(0)
				for i := range 16 {
					a, b := src[4*i:][:4], got[4*i:][:4]
					if clear := punch && a[3] < 128; clear != (b[3] == 0) {
						t.Fatalf("alpha %d comes back as %d", a[3], b[3])
					} else if !clear {
						x, y := rgb{int32(a[0]), int32(a[1]), int32(a[2])}, rgb{int32(b[0]), int32(b[1]), int32(b[2])}
						cost += distance(&x, &y)
					}
				}
				if cost != s.best.cost && s.mask != 0 {
					t.Fatalf("quality %d, punch %v: block %d costs %d, not %d", q, punch, b, cost, s.best.cost)
				}
				modes[fmt.Sprintf("%s %v %v", modeOf(w, punch), punch, s.mask != 0xffff)]++
			}
		}
		t.Logf("quality %d, by mode, punch-through, transparent: %v", q, modes)
		for _, m := range []string{"individual", "differential", "T", "H", "planar"} {
			if modes[m+" false false"] == 0 {
				t.Errorf("quality %d: no block in the %s mode", q, m)
			}
		}
		for _, m := range []string{"T", "H", "planar", "differential"} {
			if modes[m+" true true"]+modes[m+" true false"] == 0 {
				t.Errorf("quality %d, with punch-through: no block in the %s mode", q, m)
			}
		}
	}
}

// Packed words decode in their own mode to their own numbers, for any numbers.
func TestPack(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	colour := func(n int32) rgb { return rgb{r.Int32N(n), r.Int32N(n), r.Int32N(n)} }
	for range 20_000 {
		c1, c2, d := colour(16), colour(16), r.Int32N(8)
		w := packT(c1, c2, d) | opaque | 0xffff0000
		want := c2.widen(4)
		if got, mode := reference(w, 0, 0, false); mode != "T" || got != [4]int{int(want[0]), int(want[1]), int(want[2]), 255} {
			t.Fatalf("T %v %v %d: %s mode, %v", c1, c2, d, mode, got)
		}
		for _, h := range []bool{true, false} {
			p := pairing{h, c1, c2, d}
			w, ok := p.word()
			if !ok {
				continue
			}
			paint := p.paint(false)
			for i := range uint64(4) {
				got, mode := reference(w|opaque|i>>1<<16|i&1, 0, 0, false)
				if (mode == "H") != h || got != [4]int{int(paint[i][0]), int(paint[i][1]), int(paint[i][2]), 255} {
					t.Fatalf("%+v: paint %d is %v in %s mode, want %v", p, i, got, mode, paint[i])
				}
			}
		}
		o, h, v := colour(64), colour(64), colour(64)
		o[1], h[1], v[1] = r.Int32N(128), r.Int32N(128), r.Int32N(128)
		w = packPlanar(o, h, v) | opaque
		if mode := modeOf(w, false); mode != "planar" {
			t.Fatalf("planar %v: %s mode", o, mode)
		}
		for i, letters := range []string{"Rru", "Ggv", "Bbw"} {
			for k, c := range [3]rgb{o, h, v} {
				if got := field(w, planarLayout, letters[k]); got != int(c[i]) {
					t.Fatalf("planar: field %c is %d, want %d", letters[k], got, c[i])
				}
			}
		}
	}
}

// Uniform alpha is exact, and a uniform colour within 4 of 255.
func TestFlat(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for i := range 1024 {
		pix := bytes.Repeat([]byte{byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32()), byte(i)}, 16)
		for _, f := range []Format{RGB8, RGBA8, R11, RG11, R11S, RG11S} {
			_, back := encodes(t, f, pix, 4, 4, block.Fast)
			for _, c := range used(f) {
				limit := 4
				if c == 3 || f.channels() > 0 {
					limit = 0
				}
				want := int(pix[c])
				if f.signed() {
					want = max(want, 1)
				}
				if d := int(back[c]) - want; d > limit || d < -limit {
					t.Fatalf("%v: channel %d of %v is %d", f, c, pix[:4], back[c])
				}
			}
		}
	}
}

// One-bit alpha is exact.
func TestPunchThrough(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	pix := make([]byte, 64*64*4)
	for i := range pix {
		pix[i] = byte(r.Uint32())
	}
	for _, q := range qualities {
		_, back := encodes(t, RGB8A1, pix, 64, 64, q)
		for i := 3; i < len(pix); i += 4 {
			if (pix[i] >= 128) != (back[i] == 255) || back[i] != 0 && back[i] != 255 {
				t.Fatalf("alpha %d comes back as %d", pix[i], back[i])
			}
		}
	}
}

// A higher quality never gives a worse image, and each quality reaches its minimum on the scene.
func TestQuality(t *testing.T) {
	pix := scene(144, 144)
	for f := range formats {
		var last float64
		line := f.String()
		for _, q := range qualities {
			_, back := encodes(t, f, pix, 144, 144, q)
			got := psnr(pix, back, used(f))
			line += fmt.Sprintf(" %.2f dB", got)
			if got < last && f != RGB8A1 {
				t.Errorf("%v: quality %d has %.3f dB, the one before %.3f", f, q, got, last)
			}
			last = got
		}
		t.Log(line)
	}
}

// An exhaustive search on a few blocks of alpha finds no better table.
func TestAlphaExhaustive(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	var ours, least int32
	for range 8 {
		var px [16]int32
		at, spread := r.Int32N(256), 1+r.Int32N(90)
		for i := range px {
			px[i] = clamp8(at + r.Int32N(2*spread) - spread)
		}
		v := distinct(&px)
		ours += efforts[block.Best].level(&v, &alpha8).cost
		best := int32(never)
		for table := range int32(16) {
			for multiplier := range int32(16) {
				for base := range int32(256) {
					cost, _, _ := alpha8.assign(&v, &level{base, multiplier, table, 0}, best)
					best = min(best, cost)
				}
			}
		}
		least += best
	}
	if ours > least*11/10 {
		t.Errorf("best quality costs %d, the best there is %d", ours, least)
	}
}

func TestWorkers(t *testing.T) {
	pix := scene(130, 70)
	for f := range formats {
		want, err := Encode(f, pix, 130, 70, block.Options{Quality: block.Normal, Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{2, 7} {
			got, err := Encode(f, pix, 130, 70, block.Options{Quality: block.Normal, Workers: n})
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%v: %d workers make other bytes than one (%v)", f, n, err)
			}
		}
	}
}

func TestEncodeErrors(t *testing.T) {
	for name, err := range map[string]error{
		"no size":        second(Encode(RGB8, nil, 0, 0, block.Options{})),
		"too few pixels": second(Encode(RGB8, make([]byte, 63), 4, 4, block.Options{})),
		"unknown format": second(Encode(formats, make([]byte, 64), 4, 4, block.Options{})),
		"overflow":       second(Encode(RGB8, nil, math.MaxInt, 4, block.Options{})),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func second(_ []byte, err error) error { return err }

// The golden file has a line for each block of the scene's corner, so it shows the effect of a change of the encoder.
func TestGolden(t *testing.T) {
	const size = 36
	pix := scene(size, size)
	var b strings.Builder
	for f := range formats {
		for _, q := range qualities {
			data, back := encodes(t, f, pix, size, size, q)
			fmt.Fprintf(&b, "%v %s: %.2f dB\n", f, [3]string{"fast", "normal", "best"}[q], psnr(pix, back, used(f)))
			for i := 0; i < len(data); i += 8 {
				fmt.Fprintf(&b, "%016x", binary.BigEndian.Uint64(data[i:]))
				if i%72 == 64 {
					b.WriteByte('\n')
				} else {
					b.WriteByte(' ')
				}
			}
		}
	}
	file := filepath.Join("testdata", "blocks.txt")
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("other bytes than in %s; look at them, and run with -update", file)
	}
}

func FuzzEncode(f *testing.F) {
	f.Add(uint8(RGBA8), uint8(1), uint8(5), uint8(3), []byte{0, 255, 128, 7})
	f.Fuzz(func(t *testing.T, format, quality, width, height uint8, seed []byte) {
		fm, w, h := Format(format%uint8(formats)), int(width%18)+1, int(height%18)+1
		pix := make([]byte, 4*w*h)
		for i := range pix {
			if len(seed) > 0 {
				pix[i] = seed[i%len(seed)] ^ byte(i/len(seed))
			}
		}
		_, back := encodes(t, fm, pix, w, h, block.Quality(quality%3))
		// The widest gap between the 8 paints of a table from 0 to 255 is 80.
		for i := range pix {
			if fm == RGBA8 && i%4 == 3 && max(pix[i], back[i])-min(pix[i], back[i]) > 40 {
				t.Fatalf("alpha %d comes back as %d", pix[i], back[i])
			}
		}
	})
}

// No half has a cost far below its bound, and for halves of little contrast the bound is most of the cost.
func TestBound(t *testing.T) {
	all := someBlocks(2000)
	bounds, costs := int32(0), int32(0)
	for i := range len(all) / 64 {
		s := blockOf((*[64]byte)(all[64*i:]), false)
		s.tables, s.margin, s.reach, s.polish = &modifiers, 2, 10, true
		for flip, of := range []*[16]uint8{&leftHalf, &topHalf} {
			for _, h := range s.halves(flip, of) {
				for bits := 4; bits <= 5; bits++ {
					var out bases
					h.spread()
					s.solve(&h, &out, bits)
					bound := h.bound(bits)
					if out.least < bound*9/10-30 {
						t.Errorf("block %d, bits %d: cost %d, but the bound is %d", i, bits, out.least, bound)
					}
					if bound > 0 && h.high-h.low < 30 {
						bounds, costs = bounds+bound, costs+out.least
					}
				}
			}
		}
	}
	if bounds < costs/2 {
		t.Errorf("bounds are %d in all, costs %d", bounds, costs)
	}
}
