package etc2

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// The layouts of the specification (table "Texel Data format for ETC2 compressed texture formats"), one letter per bit from
// 63 down. Upper case is base colour 1 or O; u, v, w are the channels of V; F and D are the flip bit and the distance or
// tables.
const (
	individualBits   = "RRRRrrrrGGGGggggBBBBbbbbTTTttt.F"
	differentialBits = "RRRRRrrrGGGGGgggBBBBBbbbTTTttt.F"
	tBits            = "...RR.RRGGGGBBBBrrrrggggbbbbDD.D"
	hBits            = ".RRRRGGG...GB.BBBrrrrggggbbbbD.D"
	planarLayout     = ".RRRRRRG.GGGGGGB...BB.BBBrrrrr.rgggggggbbbbbbuuuuuuvvvvvvvwwwwww"
	// Indices: upper bits, then lower bits, of pixels p down to a.
	pixelNames = "ponmlkjihgfedcba"
)

// field returns the number in the bits of a letter, from the top.
func field(w uint64, layout string, letter byte) (v int) {
	for i := range len(layout) {
		if layout[i] == letter {
			v = v<<1 | int(w>>(63-i)&1)
		}
	}
	return v
}

// repeat widens a number to 8 bits by repeating its bits.
func repeat(v, bits int) int {
	all := 0
	for range 8 {
		all = all<<bits | v
	}
	return all >> (8*bits - 8) & 255
}

func clampInt(v int) int { return min(max(v, 0), 255) }

// modeOf returns the mode of a word, by section a of the table.
func modeOf(w uint64, punch bool) string {
	if !punch && w>>33&1 == 0 {
		return "individual"
	}
	for i, mode := range []string{"T", "H", "planar"} {
		c := "RGB"[i]
		delta := (field(w, differentialBits, c|32)+4)%8 - 4
		if sum := field(w, differentialBits, c) + delta; sum < 0 || sum > 31 {
			return mode
		}
	}
	return "differential"
}

var distanceTable = [8]int{3, 6, 11, 16, 23, 32, 41, 64}

// reference decodes pixel x, y of a word in the order of the specification's text, one pixel and one channel at a time.
func reference(w uint64, x, y int, punch bool) (out [4]int, mode string) {
	mode = modeOf(w, punch)
	at := strings.IndexByte(pixelNames, byte('a'+4*x+y))
	index := int(w>>(31-at)&1)<<1 | int(w>>(15-at)&1)
	transparent := punch && w>>33&1 == 0 && mode != "planar"
	if transparent && index == 2 {
		return [4]int{}, mode
	}
	for i := range 3 {
		switch mode {
		case "planar":
			out[i] = planarReference(w, i, float64(x), float64(y))
		case "T":
			c1, c2 := repeat(field(w, tBits, "RGB"[i]), 4), repeat(field(w, tBits, "rgb"[i]), 4)
			d := distanceTable[field(w, tBits, 'D')]
			out[i] = clampInt([4]int{c1, c2 + d, c2, c2 - d}[index])
		case "H":
			c1, c2, d := hReference(w, i)
			out[i] = clampInt([4]int{c1 + d, c1 - d, c2 + d, c2 - d}[index])
		default:
			out[i] = splitReference(w, i, x, y, index, mode == "individual", transparent)
		}
	}
	out[3] = 255
	return out, mode
}

func splitReference(w uint64, i, x, y, index int, individual, transparent bool) int {
	second := x >= 2
	if field(w, individualBits, 'F') == 1 {
		second = y >= 2
	}
	table := field(w, individualBits, 'T')
	if second {
		table = field(w, individualBits, 't')
	}
	var base int
	switch upper, lower := "RGB"[i], "rgb"[i]; {
	case individual && second:
		base = repeat(field(w, individualBits, lower), 4)
	case individual:
		base = repeat(field(w, individualBits, upper), 4)
	case second:
		base = repeat(field(w, differentialBits, upper)+(field(w, differentialBits, lower)+4)%8-4, 5)
	default:
		base = repeat(field(w, differentialBits, upper), 5)
	}
	small := [8]int{2, 5, 9, 13, 18, 24, 33, 47}[table]
	if transparent {
		small = 0
	}
	large := [8]int{8, 17, 29, 42, 60, 80, 106, 183}[table]
	return clampInt(base + [4]int{small, large, -small, -large}[index])
}

func hReference(w uint64, i int) (c1, c2, d int) {
	value := func(letters string) (v int) {
		for _, l := range []byte(letters) {
			v = v<<8 | repeat(field(w, hBits, l), 4)
		}
		return v
	}
	d = field(w, hBits, 'D') << 1
	if value("RGB") >= value("rgb") {
		d++
	}
	return repeat(field(w, hBits, "RGB"[i]), 4), repeat(field(w, hBits, "rgb"[i]), 4), distanceTable[d]
}

func planarReference(w uint64, i int, x, y float64) int {
	bits := [3]int{6, 7, 6}[i]
	number := func(letter byte) float64 { return float64(repeat(field(w, planarLayout, letter), bits)) }
	o, h, v := number("RGB"[i]), number("rgb"[i]), number("uvw"[i])
	return clampInt(int(math.Floor(x*(h-o)/4 + y*(v-o)/4 + o + 0.5)))
}

func TestDecodeColour(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[string]int{}
	for range 20_000 {
		w := r.Uint64()
		for _, punch := range []bool{false, true} {
			var got [64]byte
			decodeColour(&got, w, punch)
			for i := range 16 {
				want, mode := reference(w, i%4, i/4, punch)
				seen[mode]++
				if p := got[4*i:][:4]; int(p[0]) != want[0] || int(p[1]) != want[1] || int(p[2]) != want[2] || int(p[3]) != want[3] {
					t.Fatalf("%016x, punch %v, %s mode: pixel %d,%d is %v, want %v", w, punch, mode, i%4, i/4, p, want)
				}
			}
		}
	}
	if len(seen) != 5 {
		t.Errorf("modes %v: not all", seen)
	}
}

// The worked examples of the specification.
func TestWorkedExamples(t *testing.T) {
	const index3 = 3<<45 | 3<<42 // of pixels a and b
	word := func(base, multiplier, table uint64) uint64 { return base<<56 | multiplier<<52 | table<<48 | index3 }
	var px [64]byte
	decodeAlpha(&px, word(103, 2, 13))
	for _, c := range []struct {
		name      string
		got, want int
	}{
		{"alpha 103-10*2", int(px[16+3]), 83},
		{"unsigned 103*8+4-10*2*8", int(decode11(word(103, 2, 13), false)[4]), 668},
		{"unsigned with multiplier 0", int(decode11(word(103, 0, 13), false)[4]), 818},
		{"signed 60*8-10*2*8", int(decode11(word(60, 2, 13), true)[4]), 320},
		{"signed with multiplier 0", int(decode11(word(60, 0, 13), true)[4]), 470},
		{"signed -128 is -127", int(decode11(0x80<<56|13<<48|4<<45, true)[0]), -127 * 8},
		{"668 widened", int(to16(668, false)), 21386},
		{"470 widened", int(to16(470, true)), 15054},
		{"-470 widened", int(int16(to16(-470, true))), -15054},
		{"2047 widened", int(to16(2047, false)), 65535},
		{"-1023 widened", int(int16(to16(-1023, true))), -32767},
		{"14 of 4 bits", int(rgb{14}.widen(4)[0]), 238},
		{"28 of 5 bits", int(rgb{28}.widen(5)[0]), 231},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", c.name, c.got, c.want)
		}
	}
	// Differential: R=28 G=4 B=3, dR=-4 dG=2 dB=0; table 2 adds 29 for index 1.
	w := packDifferential(rgb{28, 4, 3}, rgb{24, 6, 3}, 2, 2, 0) | opaque | 1
	decodeColour(&px, w, false)
	if got, want := [3]byte(px[:3]), [3]byte{231 + 24, 33 + 29, 24 + 29}; got != want {
		t.Errorf("left half %v, want %v", got, want)
	}
	if got, want := [3]byte(px[12:15]), [3]byte{198 + 9, 49 + 9, 24 + 9}; got != want {
		t.Errorf("right half %v, want %v", got, want)
	}
}

// A byte is unchanged by the conversion to 11 bits and back; the ends and the middle are exact.
func TestEleven(t *testing.T) {
	for b := range 256 {
		if got := to8(to11(byte(b), false), false); got != byte(b) {
			t.Errorf("unsigned %d comes back as %d", b, got)
		}
		if got := to8(to11(byte(b), true), true); got != byte(max(b, 1)) {
			t.Errorf("signed %d comes back as %d", b, got)
		}
		if got, want := to11(byte(b), false), int32(math.Round(float64(b)*2047/255)); got != want {
			t.Errorf("unsigned %d is %d, want %d", b, got, want)
		}
		if got, want := to11(byte(b), true), int32(math.Round(float64(max(b, 1)-128)*1023/127)); got != want {
			t.Errorf("signed %d is %d, want %d", b, got, want)
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	for f := range formats {
		n := 6 * f.BlockBytes() // of 9 by 5
		if _, err := Decode(f, make([]byte, n-1), 9, 5); !errors.Is(err, ErrTruncated) {
			t.Errorf("%v: a byte short: %v", f, err)
		}
		if out, err := Decode(f, make([]byte, n), 9, 5); err != nil || len(out) != 9*5*4 {
			t.Errorf("%v: %d bytes, %v", f, len(out), err)
		}
		if _, err := Decode(f, nil, maxSide, maxSide); !errors.Is(err, ErrTruncated) {
			t.Errorf("%v: nothing for a large image: %v", f, err)
		}
		for _, size := range [][2]int{{0, 1}, {1, 0}, {-1, 1}, {maxSide + 1, 1}, {1, math.MaxInt}} {
			if _, err := Decode(f, make([]byte, 64), size[0], size[1]); err == nil {
				t.Errorf("%v: size %v is taken", f, size)
			}
		}
		out, err := Decode16(f, make([]byte, n), 9, 5)
		if n := f.channels(); n == 0 && err == nil || n > 0 && (err != nil || len(out) != 9*5*n) {
			t.Errorf("%v in 16 bits: %d values, %v", f, len(out), err)
		}
	}
	if _, err := Decode(formats, make([]byte, 64), 4, 4); err == nil {
		t.Error("an unknown format is decoded")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(uint8(RGBA8), uint8(5), uint8(9), make([]byte, 96))
	f.Add(uint8(RG11S), uint8(4), uint8(4), []byte("0123456789abcdef"))
	f.Fuzz(func(t *testing.T, format, width, height uint8, data []byte) {
		out, err := Decode(Format(format), data, int(width), int(height))
		if err == nil && len(out) != 4*int(width)*int(height) {
			t.Errorf("%d bytes for %dx%d", len(out), width, height)
		}
		wide, err16 := Decode16(Format(format), data, int(width), int(height))
		if err16 != nil {
			return
		}
		if err != nil {
			t.Fatalf("16 bits can be had, and not 8: %v", err)
		}
		for i, v := range wide {
			n := Format(format).channels()
			got := int(out[i/n*4+i%n])
			want := float64(v) / 65535 * 255
			if Format(format).signed() {
				want = float64(int16(v))/32767*127 + 128
			}
			if math.Abs(float64(got)-want) > 0.51 {
				t.Fatalf("value %d is %d in 16 bits and %d in 8", i, v, got)
			}
		}
	})
}
