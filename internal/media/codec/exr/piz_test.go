package exr

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

// bitWriter writes bits from the highest down.
type bitWriter struct {
	out []byte
	n   int
}

func (w *bitWriter) put(v uint64, n int) {
	for n--; n >= 0; n-- {
		if w.n&7 == 0 {
			w.out = append(w.out, 0)
		}
		w.out[w.n>>3] |= byte(v>>n&1) << (7 - w.n&7)
		w.n++
	}
}

// packPIZ is the reverse of unpackPIZ.
func (f file) packPIZ(b []byte) []byte {
	w, size := f.data.width(), 0
	for _, c := range f.channels {
		size += c.kind.size() * w
	}
	lines := len(b) / size
	var v []uint16 // channel by channel
	at := 0
	for _, c := range f.channels {
		for y := range lines {
			for x := range c.kind.size() / 2 * w {
				v = append(v, binary.LittleEndian.Uint16(b[y*size+at+2*x:]))
			}
		}
		at += c.kind.size() * w
	}
	v, out, most := renumber(v)
	rest := v
	for _, c := range f.channels {
		n := c.kind.size() / 2
		for i := range n {
			wave(rest[i:], w, lines, n, most)
		}
		rest = rest[n*w*lines:]
	}
	coded := huffman(v)
	return append(le(out, len(coded)), coded...)
}

// renumber numbers the words that occur, and returns their bitmap.
func renumber(v []uint16) (numbers []uint16, bitmap []byte, most int) {
	var there [8192]byte
	for _, word := range v {
		there[word/8] |= 1 << (word % 8)
	}
	there[0] &^= 1
	var number [words]uint16
	for word := range number {
		if there[word/8]>>(word%8)&1 != 0 {
			most++
			number[word] = uint16(most)
		}
	}
	for _, word := range v {
		numbers = append(numbers, number[word])
	}
	from, to := 0, 8191
	for from < 8192 && there[from] == 0 {
		from++
	}
	for to > 0 && there[to] == 0 {
		to--
	}
	if from > to {
		return numbers, halves(8191, 0), most
	}
	return numbers, append(halves(uint16(from), uint16(to)), there[from:to+1]...), most
}

// wave is the reverse of unwave: it transforms groups of four from the finest level on.
func wave(v []uint16, w, h, step, most int) {
	pair := func(a, b uint16) (average, difference uint16) {
		if most < 1<<14 {
			return uint16((int(int16(a)) + int(int16(b))) >> 1), a - b
		}
		sum := int(a^0x8000) + int(b)
		diff := int(a^0x8000) - int(b)
		if average = uint16(sum >> 1); diff < 0 {
			average ^= 0x8000
		}
		return average, uint16(diff)
	}
	for half := 1; 2*half <= min(w, h); half *= 2 {
		y := 0
		at := func(x, y int) *uint16 { return &v[step*(w*y+x)] }
		one := func(a, b *uint16) { *a, *b = pair(*a, *b) }
		for ; y+2*half <= h; y += 2 * half {
			x := 0
			for ; x+2*half <= w; x += 2 * half {
				one(at(x, y), at(x+half, y))
				one(at(x, y+half), at(x+half, y+half))
				one(at(x, y), at(x, y+half))
				one(at(x+half, y), at(x+half, y+half))
			}
			if w&half != 0 {
				one(at(x, y), at(x, y+half))
			}
		}
		for x := 0; h&half != 0 && x+2*half <= w; x += 2 * half {
			one(at(x, y), at(x+half, y))
		}
	}
}

// huffman assigns a code of n or n-1 bits to each word that occurs, and to the repeat symbol.
func huffman(v []uint16) []byte {
	lengths := map[int]int{}
	for _, word := range v {
		lengths[int(word)] = 0
	}
	from, to := int(slices.Min(v)), int(slices.Max(v))+1
	lengths[to] = 0
	n := bits.Len(uint(len(lengths) - 1))
	short := 1<<n - len(lengths)
	table := &bitWriter{}
	zeros := 0
	for s := from; s <= to; s++ {
		if _, ok := lengths[s]; !ok {
			zeros++
			continue
		}
		for ; zeros > 0; zeros -= min(zeros, 261) {
			switch {
			case zeros == 1:
				table.put(0, 6)
			case zeros < 6:
				table.put(uint64(59+zeros-2), 6)
			default:
				table.put(63, 6)
				table.put(uint64(min(zeros, 261)-6), 8)
			}
		}
		lengths[s] = n
		if short > 0 {
			lengths[s]--
			short--
		}
		table.put(uint64(lengths[s]), 6)
	}
	codes, next := map[int]uint64{}, [2]uint64{} // the longer ones begin at 0
	for s := from; s <= to; s++ {
		if lengths[s] == n {
			codes[s] = next[0]
			next[0]++
		}
	}
	next[1] = next[0] / 2
	for s := from; s <= to; s++ {
		if lengths[s] == n-1 && lengths[s] > 0 {
			codes[s] = next[1]
			next[1]++
		}
	}
	coded := &bitWriter{}
	for i := 0; i < len(v); {
		run := 1
		for i+run < len(v) && v[i+run] == v[i] && run < 256 {
			run++
		}
		coded.put(codes[int(v[i])], lengths[int(v[i])])
		if run > 2 {
			coded.put(codes[to], lengths[to])
			coded.put(uint64(run-1), 8)
		} else {
			run = 1
		}
		i += run
	}
	return slices.Concat(le(nil, from, to, len(table.out), coded.n, 0), table.out, coded.out)
}

// packPXR24 is the reverse of unpackPXR24.
func (f file) packPXR24(b []byte) []byte {
	var planes []byte
	for len(b) > 0 {
		for _, c := range f.channels {
			n := f.data.width()
			var diffs []uint32
			last := uint32(0)
			for range n {
				var v uint32
				switch c.kind {
				case kindHalf:
					v = uint32(binary.LittleEndian.Uint16(b))
				case kindFloat:
					v = binary.LittleEndian.Uint32(b) >> 8
				case kindUint:
					v = binary.LittleEndian.Uint32(b)
				}
				diffs, last, b = append(diffs, v-last), v, b[c.kind.size():]
			}
			size := map[kind]int{kindHalf: 2, kindFloat: 3, kindUint: 4}[c.kind]
			for shift := 8 * (size - 1); shift >= 0; shift -= 8 {
				for _, d := range diffs {
					planes = append(planes, byte(d>>shift))
				}
			}
		}
	}
	return deflate(planes)
}

// Images that OpenEXR's own library packed decode to the original pixels, see want.
func TestWrittenByOpenEXR(t *testing.T) {
	ramp := func(x, y int) float32 { return input.Half(uint16(0x3c00 + x*8 + y*4)) }
	for _, tt := range []struct {
		name    string
		w, h    int
		r, g, b func(x, y int) float32
		off     float64 // error of blue
	}{
		{"piz", 37, 39, soft, whole, steps, 0},
		{"piz16", 600, 32, func(x, y int) float32 { return input.Half(uint16(x*32 + y)) }, nil, nil, 0},
		{"pxr24", 21, 19, soft, whole, steps, 0},
		// Steps of 64 and 128 are packed without loss; blue is stored as exponentials.
		{"b44", 22, 35, steep, whole, ramp, 0.02},
		{"b44a", 22, 35, flatSteep, whole, ramp, 0.02},
	} {
		data, err := os.ReadFile(filepath.Join("testdata", tt.name+".exr"))
		if err != nil {
			t.Fatal(err)
		}
		h, pix, err := Decode(data, tt.w*tt.h)
		if err != nil || h.Width != tt.w || h.Height != tt.h {
			t.Errorf("%s: %d x %d, %v", tt.name, h.Width, h.Height, err)
			continue
		}
		for i := range tt.w * tt.h {
			want := [4]float32{0, 0, 0, 1}
			for j, f := range []func(x, y int) float32{tt.r, tt.g, tt.b} {
				if f != nil {
					want[j] = f(i%tt.w, i/tt.w)
				}
			}
			got := [4]float32(pix[4*i:])
			if off := math.Abs(float64(got[2]/want[2] - 1)); off <= tt.off {
				got[2] = want[2]
			}
			if got != want {
				t.Errorf("%s: %d, %d: %v, want %v", tt.name, i%tt.w, i/tt.w, got, want)
				break
			}
		}
	}
}

func soft(x, y int) float32  { return input.Half(uint16(0x3800 + (x*x+3*y)%97*4 + (x*7+y*13)%5)) }
func steep(x, y int) float32 { return input.Half(uint16(0x3800 + x*64 + y*128)) }

// flatSteep returns an image with flat blocks, too.
func flatSteep(x, y int) float32 {
	if x < 12 {
		return 1
	}
	return steep(x, y)
}

func whole(x, y int) float32 { return float32((x*y + 70000) * 3) }
func steps(x, y int) float32 { return math.Float32frombits(0x3f000000 + uint32(x*y)%53<<16) }

// Damage of every length and number in a block is detected.
func TestRefusedPIZ(t *testing.T) {
	f := file{compression: piz, channels: red, data: box{0, 0, 63, 31}, blocks: [][]byte{nil}}
	for i := range 64 * 32 {
		f.blocks[0] = append(f.blocks[0], halves(uint16(i%7+8))...)
	}
	good := f.bytes()
	if _, _, err := Decode(good, 64*32); err != nil {
		t.Fatal(err)
	}
	h, err := ParseHeader(good)
	if err != nil {
		t.Fatal(err)
	}
	block := h.offsets + 8 + 8 // u16, u16, 1 byte of bitmap, u32 size, then the codes
	set := func(at int, v ...byte) []byte {
		data := slices.Clone(good)
		copy(data[block+at:], v)
		return data
	}
	for _, tt := range []struct {
		name string
		data []byte
		text string
	}{
		{"bitmap too long", set(2, 0, 0x20), "a bitmap up to byte 8192"},
		{"bitmap over the end", set(2, 0xff, 0x1f), "data ends too early"},
		{"more codes than there are", set(5, 0xff, 0xff), "bytes of codes"},
		{"fewer codes than their head", set(5, 19, 0, 0, 0), "data ends too early"},
		{"last symbol before the first", set(9, 9, 0, 0, 0, 8, 0, 0, 0), "symbols from 9 to 8"},
		{"last symbol out of all", set(13, 1, 0, 1, 0), "symbols from 0 to 65537"},
		{"lengths cut off", set(5, 22, 0, 0, 0), "the lengths of codes end too early"},
		{"more bits than there are", set(21, 0xff, 0xff, 0xff, 0xff), "4294967295 bits of codes"},
		{"fewer bits", set(21, 1, 0, 0, 0), "damaged"},
		{"no bits", set(21, 0, 0, 0, 0), "codes of 0 words"},
		{"too many short codes", set(29, 0x04, 0x10, 0x41, 0x04, 0x10, 0x41), "invalid lengths of codes"},
		{"a run out of the symbols", set(29, 0xff, 0xff), "a run of 261 symbols"},
	} {
		_, _, err := Decode(tt.data, 64*32)
		if !errors.Is(err, input.ErrDamaged) && !errors.Is(err, input.ErrTruncated) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.text)
		}
	}
}
