package bptc

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/block"
)

func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// modes.bc7 has 256 blocks of random bits, with each mode in turn. modes.bc7.rgba has their pixels as decoded by Pillow 9.4,
// and by SwiftShader.
func TestDecodeBC7(t *testing.T) {
	got, err := DecodeBC7(read(t, "modes.bc7"), 64, 64)
	if err != nil {
		t.Fatal(err)
	}
	want := read(t, "modes.bc7.rgba")
	if len(got) != len(want) {
		t.Fatalf("%d bytes, want %d", len(got), len(want))
	}
	for i := range got {
		if pixel := i / 4; got[i] != want[i] {
			t.Fatalf("pixel %d,%d channel %d: %d, want %d", pixel%64, pixel/64, i%4, got[i], want[i])
		}
	}
}

func TestReservedBC7(t *testing.T) {
	data := bytes.Repeat([]byte{0xff}, 16)
	data[0] = 0
	got, err := DecodeBC7(data, 4, 4)
	if err != nil || !bytes.Equal(got, make([]byte, 64)) {
		t.Errorf("%v, %v; want zeros", got, err)
	}
}

// Every block of random bits, except reserved ones, can be unpacked and packed again to the same bits.
func TestPackBC7(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		in := bits{lo: r.Uint64(), hi: r.Uint64()}
		in.lo = in.lo&^0xff | 1<<r.IntN(8)
		var b block7
		if !b.unpack(in) {
			t.Fatalf("block %x %x is none", in.hi, in.lo)
		}
		if out := b.pack(); out.lo != in.lo || out.hi != in.hi || out.at != 128 {
			t.Fatalf("mode %d: %x %x became %x %x with %d bits", b.mode, in.hi, in.lo, out.hi, out.lo, out.at)
		}
	}
}

// Swapping endpoints changes the bits of a block but not its pixels, except for parities shared by both endpoints.
func TestOrient(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20000 {
		in := bits{lo: r.Uint64(), hi: r.Uint64()}
		var b block7
		if in.lo = in.lo&^0xff | 1<<r.IntN(8); !b.unpack(in) {
			t.Fatal("no block")
		}
		m := &modes7[b.mode]
		for i := range b.index { // indices of anchors, too, may have any value
			b.index[i] = uint8(r.IntN(1 << m.indexBits))
			if m.index2Bits > 0 {
				b.index2[i] = uint8(r.IntN(1 << m.index2Bits))
			}
		}
		var before, after [64]byte
		b.pixels(&before)
		b.orient()
		out := b.pack()
		var data [16]byte
		out.store(&data)
		decode7(&data, &after)
		if before != after {
			t.Fatalf("mode %d partition %d rotation %d selector %d: shows\n%v, not\n%v", b.mode, b.partition, b.rotation, b.selector, after, before)
		}
	}
}

// picture returns an image with a smooth part, edges, noise, flat colours, and alpha on the right half. It is computed from
// integers, so it is the same on every machine.
func picture(width, height int) []byte {
	r := rand.New(rand.NewPCG(5, 6))
	wave := func(x int) int { // from 30 to 222
		x = x&511 - 256
		return 30 + x*x*3/1024
	}
	out := make([]byte, 0, 4*width*height)
	for y := range height {
		for x := range width {
			p := [4]int{wave(2*x + 3*y), wave(5*x - y), wave(x * y / 40), 255}
			switch {
			case (x/12+y/20)%5 == 0:
				p[0], p[1], p[2] = 200, 30, 60
			case (x+2*y)%23 < 4:
				p[0], p[1] = p[0]/3, 255-p[1]
			case y%16 > 10:
				p[0] += r.IntN(80) - 40
				p[2] += r.IntN(20) - 10
			}
			if x >= width/2 {
				p[3] = 2*wave(12*x+3*y) - 120
			}
			for _, c := range p {
				out = append(out, byte(min(max(c, 0), 255)))
			}
		}
	}
	return out
}

// decibels returns the PSNR of 8-bit values in the channels from (inclusive) to to (exclusive), of four.
func decibels(a, b []byte, from, to int) float64 {
	sum, n := 0.0, 0.0
	for i := range a {
		if i%4 >= from && i%4 < to {
			d := float64(a[i]) - float64(b[i])
			sum += d * d
			n++
		}
	}
	return 10 * math.Log10(255*255*n/sum)
}

func encodeBC7(t testing.TB, rgba []byte, w, h int, o block.Options) (data, back []byte) {
	t.Helper()
	data, err := EncodeBC7(rgba, w, h, o)
	if err != nil {
		t.Fatal(err)
	}
	if back, err = DecodeBC7(data, w, h); err != nil {
		t.Fatal(err)
	}
	return data, back
}

// qualities are the names of the qualities.
var qualities = [...]string{block.Fast: "fast", block.Normal: "normal", block.Best: "best"}

// A higher quality gives a smaller error.
func TestQualityBC7(t *testing.T) {
	rgba := picture(128, 128)
	last := 0.0
	for _, c := range []struct {
		quality block.Quality
		least   float64
	}{{block.Fast, 38}, {block.Normal, 38.5}, {block.Best, 38.5}} {
		_, back := encodeBC7(t, rgba, 128, 128, block.Options{Quality: c.quality})
		if got := decibels(rgba, back, 0, 4); got < c.least || got <= last {
			t.Errorf("quality %d: %.2f dB, want at least %.1f and more than %.2f", c.quality, got, c.least, last)
		} else {
			last = got
		}
	}
}

func TestSizesBC7(t *testing.T) {
	for w := 1; w <= 17; w++ {
		for h := 1; h <= 17; h++ {
			rgba := make([]byte, 0, 4*w*h)
			for y := range h {
				for x := range w {
					rgba = append(rgba, byte(10*x), byte(100+8*y), byte(200-5*x-5*y), 255)
				}
			}
			data, back := encodeBC7(t, rgba, w, h, block.Options{Quality: block.Normal})
			if want := (w + 3) / 4 * ((h + 3) / 4) * 16; len(data) != want {
				t.Fatalf("%d x %d: %d bytes, want %d", w, h, len(data), want)
			}
			for i := range rgba { // the colours form a plane, not a line, so there must be some error
				if d := int(rgba[i]) - int(back[i]); d < -9 || d > 9 || i%4 == 3 && d != 0 {
					t.Fatalf("%d x %d: value %d is %d, want %d", w, h, i, back[i], rgba[i])
				}
			}
		}
	}
}

func TestSolidBC7(t *testing.T) {
	for _, alpha := range []byte{0, 1, 100, 254, 255} {
		for v := range 256 {
			rgba := bytes.Repeat([]byte{byte(v), byte(255 - v), byte(v * 7), alpha}, 16)
			if _, back := encodeBC7(t, rgba, 4, 4, block.Options{}); !bytes.Equal(back, rgba) {
				t.Fatalf("%v became %v", rgba[:4], back[:4])
			}
		}
	}
}

// A block that is entirely opaque or entirely transparent remains so, for any colours.
func TestAlphaKept(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, alpha := range []byte{0, 255} {
		for q, name := range qualities {
			rgba := make([]byte, 4*64*64)
			for i := range rgba {
				rgba[i] = byte(r.IntN(256)) >> (i / 4096) // from strong to almost no noise
				if i%4 == 3 {
					rgba[i] = alpha
				}
			}
			_, back := encodeBC7(t, rgba, 64, 64, block.Options{Quality: block.Quality(q)})
			for i := 3; i < len(back); i += 4 {
				if back[i] != alpha {
					t.Fatalf("%s: alpha of pixel %d is %d, want %d", name, i/4, back[i], alpha)
				}
			}
		}
	}
}

func TestWorkersBC7(t *testing.T) {
	rgba := picture(61, 47)
	want, _ := encodeBC7(t, rgba, 61, 47, block.Options{Quality: block.Normal, Workers: 1})
	for _, workers := range []int{2, 7} {
		if got, _ := encodeBC7(t, rgba, 61, 47, block.Options{Quality: block.Normal, Workers: workers}); !bytes.Equal(got, want) {
			t.Errorf("%d workers give other bytes", workers)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ n, w, h int }{{0, 0, 0}, {4, 1, 2}, {4, -1, -1}, {64, 1 << 31, 1 << 31}, {16, 4, 4}, {65, 4, 4}} {
		name := fmt.Sprintf("%d of %d x %d", c.n, c.w, c.h)
		if _, err := EncodeBC7(make([]byte, c.n), c.w, c.h, block.Options{}); err == nil {
			t.Errorf("BC7 encoded %s", name)
		}
		if _, err := EncodeBC6H(make([]float32, c.n), c.w, c.h, false, block.Options{}); err == nil {
			t.Errorf("BC6H encoded %s", name)
		}
	}
	for _, c := range []struct{ n, w, h int }{{0, 0, 0}, {15, 4, 4}, {17, 4, 4}, {16, 5, 4}, {16, -4, -4}, {16, 1 << 40, 1 << 40}} {
		name := fmt.Sprintf("%d of %d x %d", c.n, c.w, c.h)
		if _, err := DecodeBC7(make([]byte, c.n), c.w, c.h); err == nil {
			t.Errorf("BC7 decoded %s", name)
		}
		if _, err := DecodeBC6H(make([]byte, c.n), c.w, c.h, false); err == nil {
			t.Errorf("BC6H decoded %s", name)
		}
	}
}

// Any bytes of sufficient length decode to an image, which can be encoded again.
func FuzzDecodeBC7(f *testing.F) {
	f.Add([]byte{}, 0, 0)
	f.Add(bytes.Repeat([]byte{0x40, 0x55, 0}, 32), 7, 9)
	for mode := range 8 {
		f.Add(append([]byte{1 << mode}, "fifteen letters"...), 3, 4)
	}
	f.Fuzz(func(t *testing.T, data []byte, w, h int) {
		rgba, err := DecodeBC7(data, w, h)
		if err != nil {
			return
		}
		if len(rgba) != 4*w*h {
			t.Fatalf("%d bytes for %d x %d", len(rgba), w, h)
		}
		if w*h > 1<<12 {
			return
		}
		if again, err := EncodeBC7(rgba, w, h, block.Options{}); err != nil || len(again) != len(data) {
			t.Fatalf("%d bytes, %v", len(again), err)
		}
	})
}

// The error of the best attempt is that of the decoded block, and restarts never increase it.
func TestAttempts(t *testing.T) {
	for q := block.Fast; q <= block.Draft; q++ {
		e, plain := newEncoder7(q), newEncoder7(q)
		plain.restarts = 0
		for i, pix := range someBlocks(1000) {
			var from, to [64]byte
			for j, p := range pix {
				for c, v := range p {
					if c == 3 && i%8 < 4 {
						v = 255
					}
					from[4*j+c] = byte(v)
				}
			}
			if e.load(&from) {
				continue
			}
			e.search()
			b := e.kept[0].block()
			b.pixels(&to)
			err := int32(0)
			for j := range from {
				d := int32(from[j]) - int32(to[j])
				err += d * d
				if i%8 < 4 && j%4 == 3 && d != 0 {
					t.Fatalf("quality %d, block %d: alpha 255 became %d", q, i, to[j])
				}
			}
			if err != e.least() {
				t.Fatalf("quality %d, block %d, mode %d: the error is %d, not %d", q, i, b.mode, err, e.least())
			}
			if q != block.Normal {
				continue
			}
			plain.load(&from)
			plain.sweeps = 0
			plain.search()
			if err > plain.least() {
				t.Errorf("block %d: restarts increase the error from %d to %d", i, plain.least(), err)
			}
		}
	}
}
