package etc2

// A block of one EAC channel is a word of 64 bits:
//
//	base:8 multiplier:4 table:4 and 16 indices of 3 bits, pixels counted down the columns from the left
//
// A pixel is base + modifier*multiplier in 8 bits. In 11 bits it is 8 times that, plus 4 if it is unsigned; a multiplier of
// 0 then means 1/8, and base may be signed.

// eacModifiers are the modifiers of the 16 tables, by index.
var eacModifiers = [16][8]int32{
	{-3, -6, -9, -15, 2, 5, 8, 14},
	{-3, -7, -10, -13, 2, 6, 9, 12},
	{-2, -5, -8, -13, 1, 4, 7, 12},
	{-2, -4, -6, -13, 1, 3, 5, 12},
	{-3, -6, -8, -12, 2, 5, 7, 11},
	{-3, -7, -9, -11, 2, 6, 8, 10},
	{-4, -7, -8, -11, 3, 6, 7, 10},
	{-3, -5, -8, -11, 2, 4, 7, 10},
	{-2, -6, -8, -10, 1, 5, 7, 9},
	{-2, -5, -8, -10, 1, 4, 7, 9},
	{-2, -4, -8, -10, 1, 3, 7, 9},
	{-2, -5, -7, -10, 1, 4, 6, 9},
	{-3, -4, -7, -10, 2, 3, 6, 9},
	{-1, -2, -3, -10, 0, 1, 2, 9},
	{-4, -6, -8, -9, 3, 5, 7, 8},
	{-3, -5, -7, -9, 2, 4, 6, 8},
}

// decodeAlpha decodes a word to the alpha of 16 RGBA pixels.
func decodeAlpha(dst *[64]byte, w uint64) {
	base, multiplier, table := int32(w>>56), int32(w>>52&15), &eacModifiers[w>>48&15]
	var paint [8]byte
	for i, m := range table {
		paint[i] = byte(clamp8(base + m*multiplier))
	}
	for i := range 16 {
		dst[4*(i&3<<2|i>>2)+3] = paint[w>>(45-3*i)&7]
	}
}

// decode11 decodes a word to 16 values, in rows: 0 to 2047, or -1023 to 1023 if signed.
func decode11(w uint64, signed bool) [16]int32 {
	base, low, high := 8*int32(w>>56)+4, int32(0), int32(2047)
	if signed {
		base, low, high = 8*max(int32(int8(w>>56)), -127), -1023, 1023
	}
	multiplier := max(8*int32(w>>52&15), 1)
	var paint [8]int32
	for i, m := range eacModifiers[w>>48&15] {
		paint[i] = min(max(base+m*multiplier, low), high)
	}
	var out [16]int32
	for i := range 16 {
		out[i&3<<2|i>>2] = paint[w>>(45-3*i)&7]
	}
	return out
}

// to8 returns the byte nearest to a value of 11 bits. It maps 0..2047 to 0..255, or if signed -1023..1023 to 1..255.
func to8(v int32, signed bool) byte {
	if signed {
		return byte((v*127 + 1023*128 + 511) / 1023)
	}
	return byte((v*255 + 1023) / 2047)
}

// to11 is the reverse of to8: it returns the value of 11 bits for a byte.
func to11(b byte, signed bool) int32 {
	if signed {
		v := max(int32(b)-128, -127)*1023*2 + 127
		return (v+127*2*1023)/(2*127) - 1023
	}
	return (int32(b)*2047*2 + 255) / 510
}

// to16 widens a value of 11 bits as the specification defines.
func to16(v int32, signed bool) uint16 {
	switch {
	case !signed:
		return uint16(v<<5 | v>>6)
	case v < 0:
		return uint16(-(-v<<5 | -v>>5))
	}
	return uint16(v<<5 | v>>5)
}
