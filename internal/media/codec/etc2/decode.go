package etc2

// A block of colour is a word of 64 bits. Bytes 7, 6 and 5 (from the top) are each read as a number of 5 bits and a signed
// number of 3 bits. If the sum of such a pair is outside of 0..31, the word is in one of the modes that ETC2 added to ETC1.
// Bit 33 is 0 in the individual mode; with punch-through alpha that mode does not exist, and the bit is set in an opaque
// block.
//
//	individual    R1:4 R2:4 G1:4 G2:4 B1:4 B2:4 table1:3 table2:3 0 flip             bits 63..32
//	differential  R:5 dR:3 G:5 dG:3 B:5 dB:3 table1:3 table2:3 1 flip
//	T             x:3 R1a:2 x R1b:2 G1:4 B1:4 R2:4 G2:4 B2:4 da:2 1 db               dR overflows
//	H             x R1:4 G1a:3 x:3 G1b B1a x B1b:3 R2:4 G2:4 B2:4 da 1 db            dG overflows
//	planar        x RO:6 GO1 x GO2:6 BO1 x:3 BO2:2 x BO3:3 RH1:5 1 RH2               dB overflows
//	              GH:7 BH:6 RV:6 GV:7 BV:6                                           bits 31..0
//
// In all modes but planar, bits 16+i and i are the index of pixel i, counted down the columns from the left.

// modifiers are those of the individual and the differential mode: indices 0 and 1 add them; 2 and 3 subtract them.
var modifiers = [8][2]int32{{2, 8}, {5, 17}, {9, 29}, {13, 42}, {18, 60}, {24, 80}, {33, 106}, {47, 183}}

// punched are the modifiers of a punch-through block with a transparent pixel; index 2 is transparent.
var punched = [8][2]int32{{0, 8}, {0, 17}, {0, 29}, {0, 42}, {0, 60}, {0, 80}, {0, 106}, {0, 183}}

// distances are those of the modes T and H.
var distances = [8]int32{3, 6, 11, 16, 23, 32, 41, 64}

// outside reports whether the sum of the 5-bit number and the signed 3-bit number is outside of 0..31.
func outside(b uint8) bool {
	return uint8(int8(b>>3)+int8(b<<5)>>5) > 31
}

func clamp8(v int32) int32 { return min(max(v, 0), 255) }

// rgb is a colour; the number of bits varies.
type rgb [3]int32

func (c rgb) add(v int32) rgb { return rgb{clamp8(c[0] + v), clamp8(c[1] + v), clamp8(c[2] + v)} }

// widen widens numbers of 4 or 5 bits to 8 by repeating their upper bits below.
func (c rgb) widen(bits int) rgb {
	for i := range c {
		c[i] = c[i]<<(8-bits) | c[i]>>(2*bits-8)
	}
	return c
}

// value returns the number by which the H mode orders base colours.
func (c rgb) value() int32 { return c[0]<<16 | c[1]<<8 | c[2] }

// decodeColour decodes a word to 16 RGBA pixels; punch is set for a format with punch-through alpha.
func decodeColour(dst *[64]byte, w uint64, punch bool) {
	bits := func(at, n int) int32 { return int32(w >> at & (1<<n - 1)) }
	opaque := bits(33, 1) == 1
	var paint [2][4]rgb // of each half
	switch {
	case !opaque && !punch:
		paint[0] = splitPaint(rgb{bits(60, 4), bits(52, 4), bits(44, 4)}.widen(4), &modifiers[bits(37, 3)])
		paint[1] = splitPaint(rgb{bits(56, 4), bits(48, 4), bits(40, 4)}.widen(4), &modifiers[bits(34, 3)])
		opaque = true
	case outside(uint8(w >> 56)):
		c1, c2 := rgb{bits(59, 2)<<2 | bits(56, 2), bits(52, 4), bits(48, 4)}, rgb{bits(44, 4), bits(40, 4), bits(36, 4)}
		paint[0] = tPaint(c1.widen(4), c2.widen(4), distances[bits(34, 2)<<1|bits(32, 1)])
		paint[1] = paint[0]
	case outside(uint8(w >> 48)):
		c1 := rgb{bits(59, 4), bits(56, 3)<<1 | bits(52, 1), bits(51, 1)<<3 | bits(47, 3)}
		c2 := rgb{bits(43, 4), bits(39, 4), bits(35, 4)}
		d := bits(34, 1)<<2 | bits(32, 1)<<1
		if c1.value() >= c2.value() {
			d |= 1
		}
		paint[0] = hPaint(c1.widen(4), c2.widen(4), distances[d])
		paint[1] = paint[0]
	case outside(uint8(w >> 40)):
		decodePlanar(dst, w)
		return
	default:
		table := &modifiers
		if !opaque {
			table = &punched
		}
		signed := func(at int) int32 { return bits(at, 3) ^ 4 - 4 }
		c := rgb{bits(59, 5), bits(51, 5), bits(43, 5)}
		paint[0] = splitPaint(c.widen(5), &table[bits(37, 3)])
		c = rgb{c[0] + signed(56), c[1] + signed(48), c[2] + signed(40)}
		paint[1] = splitPaint(c.widen(5), &table[bits(34, 3)])
	}
	half := &leftHalf
	// Bit 32 is the flip bit of the two modes with halves; in the other modes both palettes are the same.
	if w>>32&1 == 1 {
		half = &topHalf
	}
	for i := range 16 {
		index := w>>(15+i)&2 | w>>i&1
		at := dst[4*(i&3<<2|i>>2):][:4:4]
		if index == 2 && !opaque {
			at[0], at[1], at[2], at[3] = 0, 0, 0, 0
			continue
		}
		c := &paint[half[i]][index]
		at[0], at[1], at[2], at[3] = byte(c[0]), byte(c[1]), byte(c[2]), 255
	}
}

// The half of a pixel, counted down the columns: 0 is the left or upper one.
var (
	leftHalf = [16]uint8{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1}
	topHalf  = [16]uint8{0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1}
)

// The colours of indices 0 to 3: of a half in the individual and differential mode, and of the modes T and H. Base colours
// have 8 bits.
func splitPaint(c rgb, m *[2]int32) [4]rgb {
	return [4]rgb{c.add(m[0]), c.add(m[1]), c.add(-m[0]), c.add(-m[1])}
}

func tPaint(c1, c2 rgb, d int32) [4]rgb { return [4]rgb{c1, c2.add(d), c2, c2.add(-d)} }

func hPaint(c1, c2 rgb, d int32) [4]rgb {
	return [4]rgb{c1.add(d), c1.add(-d), c2.add(d), c2.add(-d)}
}

// plane has, for a channel, the values at the origin, and 4 pixels to the right and down, in 8 bits.
type plane struct{ o, h, v int32 }

func (p plane) at(x, y int32) int32 {
	return clamp8((x*(p.h-p.o) + y*(p.v-p.o) + 4*p.o + 2) >> 2)
}

func decodePlanar(dst *[64]byte, w uint64) {
	bits := func(at, n int) int32 { return int32(w >> at & (1<<n - 1)) }
	r := plane{widenPlanar(bits(57, 6), 6), widenPlanar(bits(34, 5)<<1|bits(32, 1), 6), widenPlanar(bits(13, 6), 6)}
	g := plane{widenPlanar(bits(56, 1)<<6|bits(49, 6), 7), widenPlanar(bits(25, 7), 7), widenPlanar(bits(6, 7), 7)}
	b := plane{widenPlanar(bits(48, 1)<<5|bits(43, 2)<<3|bits(39, 3), 6), widenPlanar(bits(19, 6), 6), widenPlanar(bits(0, 6), 6)}
	for i := range int32(16) {
		x, y := i&3, i>>2
		at := dst[4*i:][:4:4]
		at[0], at[1], at[2], at[3] = byte(r.at(x, y)), byte(g.at(x, y)), byte(b.at(x, y)), 255
	}
}

// planarBits are the bits of the channels.
var planarBits = [3]int{6, 7, 6}

// widenPlanar widens a number of 6 or 7 bits to 8 by repeating its upper bits below.
func widenPlanar(v int32, bits int) int32 { return v<<((8-bits)&7) | v>>((2*bits-8)&7) }
