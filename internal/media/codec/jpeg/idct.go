package jpeg

import "encoding/binary"

// The inverse cosine transform is libjpeg's accurate one for integers ("islow"): the algorithm of Loeffler, Ligtenberg and
// Moschytz, "Practical fast 1-D DCT algorithms with 11 multiplications" (ICASSP 1989), first for columns, then for rows.
// Constants have 13 bits of fraction; between the two passes values keep 2 bits of fraction.
const (
	fraction = 13
	between  = 2

	c0298 = 2446  // sqrt(2) * (-c1+c3+c5-c7), where cN is cos(N*pi/16)
	c0390 = 3196  // sqrt(2) * (c3-c5)
	c0541 = 4433  // sqrt(2) * c6
	c0765 = 6270  // sqrt(2) * (c2-c6)
	c0899 = 7373  // sqrt(2) * (c3-c7)
	c1175 = 9633  // sqrt(2) * c3
	c1501 = 12299 // sqrt(2) * (c1+c3-c5-c7)
	c1847 = 15137 // sqrt(2) * (c2+c6)
	c1961 = 16069 // sqrt(2) * (c3+c5)
	c2053 = 16819 // sqrt(2) * (c1+c3-c5+c7)
	c2562 = 20995 // sqrt(2) * (c1+c3)
	c3072 = 25172 // sqrt(2) * (c1+c3+c5-c7)
)

// corner is the number of coefficients in the order of the file that are in the first four columns and rows.
const corner = 10

// samples transforms a block into samples of the strip, and clears the block. last is the place of the last coefficient, or
// anything above.
func (p *part) samples(b *block, last, x, y int) {
	wide := 8 * p.across
	dst := p.strip[(1+8*y)*wide+8*x:]
	switch {
	case last == 0:
		flat(dst, wide, int32(b[0])*p.scale[0])
		b[0] = 0
		return
	case last < corner:
		smallTransform(dst, wide, b, &p.scale)
	default:
		transform(dst, wide, b, &p.scale)
	}
	*b = block{}
}

// flat writes a block without detail.
func flat(dst []byte, wide int, dc int32) {
	v := uint64(clamp((dc+4)>>3+128)) * 0x0101010101010101
	for y := range 8 {
		binary.LittleEndian.PutUint64(dst[y*wide:], v)
	}
}

// clamp limits a value to 0..255.
func clamp(v int32) int32 {
	if uint32(v) > 255 {
		v = ^(v >> 31) & 255
	}
	return v
}

// odd is the odd part: coefficients 7, 5, 3 and 1.
func odd(t0, t1, t2, t3 int32) (int32, int32, int32, int32) {
	z1, z2, z3, z4 := t0+t3, t1+t2, t0+t2, t1+t3
	z5 := (z3 + z4) * c1175
	z1 *= -c0899
	z2 *= -c2562
	z3 = z3*-c1961 + z5
	z4 = z4*-c0390 + z5
	return t0*c0298 + z1 + z3, t1*c2053 + z2 + z4, t2*c3072 + z2 + z3, t3*c1501 + z1 + z4
}

// even is the even part: coefficients 0, 2, 4 and 6, and what to add for rounding.
func even(a, b, c, d, round int32) (int32, int32, int32, int32) {
	z := (b + d) * c0541
	t2, t3 := z-d*c1847, z+b*c0765
	t0, t1 := (a+c)<<fraction+round, (a-c)<<fraction+round
	return t0 + t3, t1 + t2, t1 - t2, t0 - t3
}

func transform(dst []byte, wide int, b *block, q *[64]int32) {
	var w [64]int32
	const down = fraction - between
	for i := range 8 {
		if b[8+i]|b[16+i]|b[24+i]|b[32+i]|b[40+i]|b[48+i]|b[56+i] == 0 {
			v := int32(b[i]) * q[i] << between
			w[i], w[8+i], w[16+i], w[24+i], w[32+i], w[40+i], w[48+i], w[56+i] = v, v, v, v, v, v, v, v
			continue
		}
		e0, e1, e2, e3 := even(int32(b[i])*q[i], int32(b[16+i])*q[16+i], int32(b[32+i])*q[32+i], int32(b[48+i])*q[48+i], 1<<(down-1))
		o0, o1, o2, o3 := odd(int32(b[56+i])*q[56+i], int32(b[40+i])*q[40+i], int32(b[24+i])*q[24+i], int32(b[8+i])*q[8+i])
		w[i], w[56+i] = (e0+o3)>>down, (e0-o3)>>down
		w[8+i], w[48+i] = (e1+o2)>>down, (e1-o2)>>down
		w[16+i], w[40+i] = (e2+o1)>>down, (e2-o1)>>down
		w[24+i], w[32+i] = (e3+o0)>>down, (e3-o0)>>down
	}
	for y := range 8 {
		r := (*[8]int32)(w[8*y:])
		e0, e1, e2, e3 := even(r[0], r[2], r[4], r[6], rowRound)
		o0, o1, o2, o3 := odd(r[7], r[5], r[3], r[1])
		row(dst[y*wide:], e0, e1, e2, e3, o0, o1, o2, o3)
	}
}

// The second pass also divides by 8, and adds 128, the middle of the samples.
const (
	rowDown  = fraction + between + 3
	rowRound = 1<<(rowDown-1) + 128<<rowDown
)

func row(dst []byte, e0, e1, e2, e3, o0, o1, o2, o3 int32) {
	v0, v1, v2, v3 := (e0+o3)>>rowDown, (e1+o2)>>rowDown, (e2+o1)>>rowDown, (e3+o0)>>rowDown
	v4, v5, v6, v7 := (e3-o0)>>rowDown, (e2-o1)>>rowDown, (e1-o2)>>rowDown, (e0-o3)>>rowDown
	if uint32(v0|v1|v2|v3|v4|v5|v6|v7) > 255 {
		v0, v1, v2, v3, v4, v5, v6, v7 = clamp(v0), clamp(v1), clamp(v2), clamp(v3), clamp(v4), clamp(v5), clamp(v6), clamp(v7)
	}
	low, high := uint32(v0|v1<<8|v2<<16|v3<<24), uint32(v4|v5<<8|v6<<16|v7<<24)
	binary.LittleEndian.PutUint64(dst, uint64(low)|uint64(high)<<32)
}

// smallTransform is transform for a block that has zeros outside of its first four columns and rows.
func smallTransform(dst []byte, wide int, b *block, q *[64]int32) {
	var w [32]int32 // 8 rows of 4
	const down = fraction - between
	for i := range 4 {
		e0, e1, e2, e3 := even(int32(b[i])*q[i], int32(b[16+i])*q[16+i], 0, 0, 1<<(down-1))
		o0, o1, o2, o3 := odd(0, 0, int32(b[24+i])*q[24+i], int32(b[8+i])*q[8+i])
		w[i], w[28+i] = (e0+o3)>>down, (e0-o3)>>down
		w[4+i], w[24+i] = (e1+o2)>>down, (e1-o2)>>down
		w[8+i], w[20+i] = (e2+o1)>>down, (e2-o1)>>down
		w[12+i], w[16+i] = (e3+o0)>>down, (e3-o0)>>down
	}
	for y := range 8 {
		r := (*[4]int32)(w[4*y:])
		e0, e1, e2, e3 := even(r[0], r[2], 0, 0, rowRound)
		o0, o1, o2, o3 := odd(0, 0, r[3], r[1])
		row(dst[y*wide:], e0, e1, e2, e3, o0, o1, o2, o3)
	}
}
