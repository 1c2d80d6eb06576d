package etc2

// The layouts of these words are in decode.go. Each function takes colours in the bits of its mode.

// overflowing returns the byte with the given bits a (2) and b (2) in which the sum of the 5-bit number and the signed 3-bit
// number overflows.
func overflowing(a, b int32) uint64 {
	if a+b > 3 {
		return 0xe0 | uint64(a<<3|b) // 28+a plus b
	}
	return 4 | uint64(a<<3|b) // a plus b-4
}

// within returns the byte with the lower 4 bits of its 5-bit number and its 3-bit number given. The first bit of the 5-bit
// number is chosen so that the sum does not overflow.
func within(a, b int32) uint64 { return uint64(b&4<<5 | a<<3 | b) }

func packIndividual(c1, c2 rgb, table1, table2 int32, flip int) uint64 {
	return uint64(c1[0])<<60 | uint64(c2[0])<<56 | uint64(c1[1])<<52 | uint64(c2[1])<<48 | uint64(c1[2])<<44 | uint64(c2[2])<<40 |
		uint64(table1)<<37 | uint64(table2)<<34 | uint64(flip)<<32
}

// packDifferential needs channels of c2-c1 within -4..3. Like the functions below, it leaves the bit opaque unset.
func packDifferential(c1, c2 rgb, table1, table2 int32, flip int) uint64 {
	w := uint64(table1)<<37 | uint64(table2)<<34 | uint64(flip)<<32
	for i, at := range [3]int{56, 48, 40} {
		w |= uint64(c1[i]<<3|(c2[i]-c1[i])&7) << at
	}
	return w
}

func packT(c1, c2 rgb, distance int32) uint64 {
	return overflowing(c1[0]>>2, c1[0]&3)<<56 | uint64(c1[1])<<52 | uint64(c1[2])<<48 |
		uint64(c2[0])<<44 | uint64(c2[1])<<40 | uint64(c2[2])<<36 | uint64(distance>>1)<<34 | uint64(distance&1)<<32
}

// packH needs c1.value() >= c2.value() if and only if distance is odd.
func packH(c1, c2 rgb, distance int32) uint64 {
	g, b := c1[1], c1[2]
	return within(c1[0], g>>1)<<56 | overflowing(g&1<<1|b>>3, b>>1&3)<<48 | uint64(b&1)<<47 |
		uint64(c2[0])<<43 | uint64(c2[1])<<39 | uint64(c2[2])<<35 | uint64(distance>>2)<<34 | uint64(distance>>1&1)<<32
}

// packPlanar takes channels of 6, 7 and 6 bits.
func packPlanar(o, h, v rgb) uint64 {
	return within(o[0]>>2, o[0]&3<<1|o[1]>>6)<<56 | within(o[1]>>2&15, o[1]&3<<1|o[2]>>5)<<48 |
		overflowing(o[2]>>3&3, o[2]>>1&3)<<40 | uint64(o[2]&1)<<39 |
		uint64(h[0]>>1)<<34 | uint64(h[0]&1)<<32 |
		uint64(h[1])<<25 | uint64(h[2])<<19 | uint64(v[0])<<13 | uint64(v[1])<<6 | uint64(v[2])
}
