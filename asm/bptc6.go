package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Rows of a batch6 of bptc, each of eight numbers.
const (
	masks6, tops6                         = 0, 16
	count6, inverse6, levels6, step6, by6 = 32, 33, 34, 35, 36
	low6, high6, ends6                    = 37, 40, 43
	err6, sums6, index6                   = 49, 50, 55
	one6, half6, round6                   = 71, 72, 73
	round64of6, tiny6, most6              = 74, 75, 76
	least6, anchor6, paired6, top6        = 77, 80, 83, 84
	at6, stored6, info6, modes6           = 85, 91, 97, 98
)

// batch has the pointers of a function for eight groups of pixels.
type batch struct {
	rows, pix reg.Register
	scale     Mem // memory of pass
}

func batchOf() batch {
	return batch{rows: Load(Param("batch"), GP64()), pix: Load(Param("pix"), GP64())}
}

func (b batch) row(i int) Mem { return Mem{Base: b.rows}.Offset(i * lane) }

// each writes a loop over the 16 pixels. The body gets the channels of the pixel, and its row in a table of rows for pixels.
func (b batch) each(name string, body func(channel func(int) Mem, row func(int) Mem)) {
	pix, rows, n := GP64(), GP64(), GP64()
	MOVQ(b.pix, pix)
	MOVQ(b.rows, rows)
	MOVQ(U32(16), n)
	Label(name)
	body(func(c int) Mem { return Mem{Base: pix}.Offset(4 * c) }, func(i int) Mem { return Mem{Base: rows}.Offset(i * lane) })
	ADDQ(Imm(16), pix)
	ADDQ(Imm(lane), rows)
	DECQ(n)
	JNZ(LabelRef(name))
}

// settle6 writes a function that does the same as batch6.settle of bptc, for all groups at once.
func settle6() {
	TEXT("settle6", NOSPLIT, "func(batch *[105][8]float32, pix *float32, rounds int)")
	Doc("settle6 finds a line for each of eight groups of pixels, as batch6.settle does.")
	b := batchOf()
	rounds := Load(Param("rounds"), GP64())
	memory := AllocLocal(10 * lane)
	sum := func(c int) Mem { return memory.Offset(c * lane) }
	best := func(i int) Mem { return memory.Offset((3 + i) * lane) }
	b.scale = memory.Offset(9 * lane)
	b.span6(sum)
	VMOVUPS(b.row(most6), reg.Y0)
	VMOVUPS(reg.Y0, b.row(err6))
	Label("settle6Round")
	for i := range 6 {
		VMOVUPS(b.row(ends6+i), reg.Y0)
		VMAXPS(b.row(low6+i%3), reg.Y0, reg.Y0)
		VMINPS(b.row(high6+i%3), reg.Y0, reg.Y0)
		VMOVUPS(reg.Y0, b.row(ends6+i))
	}
	b.pass6("settle6Pass", false)
	least := reg.Y9
	VMOVUPS(b.row(err6), least)
	VCMPPS(Imm(1), least, reg.Y0, reg.Y10)
	VBLENDVPS(reg.Y10, reg.Y0, least, least)
	VMOVUPS(least, b.row(err6))
	for i := range 6 {
		VMOVUPS(best(i), reg.Y11)
		VBLENDVPS(reg.Y10, b.row(ends6+i), reg.Y11, reg.Y11)
		VMOVUPS(reg.Y11, best(i))
	}
	DECQ(rounds)
	JL(LabelRef("settle6Done"))
	b.solve6(sum)
	JMP(LabelRef("settle6Round"))
	Label("settle6Done")
	for i := range 6 {
		VMOVUPS(best(i), reg.Y0)
		VMOVUPS(reg.Y0, b.row(ends6+i))
	}
	b.orient6()
	b.mode6()
	b.store6()
	b.pass6("settle6Judge", true)
	for i := range 6 {
		VMOVUPS(y(i), b.row(err6+i))
	}
	VZEROUPPER()
	RET()
}

// solve6 sets the endpoints to those that are best for the places of pass6, whose sums are in Y1 to Y5.
func (b batch) solve6(sum func(c int) Mem) {
	count, det, inverse := reg.Y6, reg.Y7, reg.Y8
	VMOVUPS(b.row(count6), count)
	VMULPS(count, reg.Y2, det)
	VMULPS(reg.Y1, reg.Y1, reg.Y10)
	VSUBPS(reg.Y10, det, det)
	VMOVUPS(b.row(one6), inverse)
	VMAXPS(b.row(tiny6), det, reg.Y10)
	VDIVPS(reg.Y10, inverse, inverse)
	VXORPS(reg.Y10, reg.Y10, reg.Y10)
	VCMPPS(Imm(1), det, reg.Y10, det)
	for c := range 3 {
		first, q, slope := reg.Y10, reg.Y11, reg.Y12
		VMOVUPS(b.row(ends6+c), first)
		VMULPS(first, count, reg.Y13)
		VMOVUPS(sum(c), q)
		VSUBPS(reg.Y13, q, q)
		VMULPS(y(3+c), count, slope)
		VMULPS(q, reg.Y1, reg.Y13)
		VSUBPS(reg.Y13, slope, slope)
		VMULPS(inverse, slope, slope)
		VANDPS(det, slope, slope)
		VMULPS(slope, reg.Y1, reg.Y13)
		VSUBPS(reg.Y13, q, q)
		VMULPS(b.row(inverse6), q, q)
		VADDPS(q, first, first)
		VMOVUPS(first, b.row(ends6+c))
		VADDPS(slope, first, first)
		VMOVUPS(first, b.row(ends6+3+c))
	}
}

// orient6 swaps the endpoints whose anchor is nearer to the second, and stores them as integers.
func (b batch) orient6() {
	t, swap := reg.Y14, reg.Y13
	for c := range 3 { // endpoints in Y0 to Y2, and Y3 to Y5
		VMOVUPS(b.row(ends6+c), y(c))
		VMOVUPS(b.row(ends6+3+c), y(3+c))
		VADDPS(y(3+c), y(c), y(6))
		VMULPS(b.row(half6), y(6), y(6))
		VMOVUPS(b.row(anchor6+c), y(7))
		VSUBPS(y(6), y(7), y(7))
		VSUBPS(y(c), y(3+c), y(6))
		if c == 0 {
			VMULPS(y(6), y(7), t)
		} else {
			VMULPS(y(6), y(7), y(7))
			VADDPS(y(7), t, t)
		}
	}
	VXORPS(y(6), y(6), y(6))
	VCMPPS(Imm(1), t, y(6), swap)
	for c := range 3 {
		for end := range 2 {
			VBLENDVPS(swap, y(3-3*end+c), y(3*end+c), y(6))
			VADDPS(b.row(least6+c), y(6), y(6))
			VADDPS(b.row(round6), y(6), y(6))
			VPSUBD(b.row(round6), y(6), y(6))
			VMOVUPS(y(6), b.row(at6+3*end+c))
		}
	}
}

// first6 replaces the numbers of second subsets by those of first ones.
func (b batch) first6(of, to, free reg.VecPhysical) {
	VPSHUFD(Imm(0xa0), of, to)
	VMOVUPS(b.row(paired6), free)
	VBLENDVPS(free, to, of, to)
}

// mode6 stores the info of the finest mode that can store the endpoints of a block.
func (b batch) mode6() {
	for c := range 3 { // Y0 to Y2: the greatest distance from the first endpoint
		VMOVUPS(b.row(at6+c), y(3))
		VMOVUPS(b.row(at6+3+c), y(4))
		b.first6(y(3), y(5), y(6))
		VPSUBD(y(5), y(3), y(3))
		VPABSD(y(3), y(3))
		VPSUBD(y(5), y(4), y(4))
		VPABSD(y(4), y(4))
		VPMAXSD(y(4), y(3), y(3))
		VPSHUFD(Imm(0xb1), y(3), y(4))
		VPAND(b.row(paired6), y(4), y(4))
		VPMAXSD(y(4), y(3), y(c))
	}
	entry := func(i, j int) Mem { return b.row(modes6).Offset(16*i + 4*j) }
	two, one := y(3), y(4)
	VPBROADCASTD(entry(0, 3), two)
	VPBROADCASTD(entry(10, 3), one)
	for i := range 14 {
		to := two
		if i >= 10 {
			to = one
		}
		for c := range 3 {
			VPBROADCASTD(entry(i, c), y(5+c))
			VPCMPGTD(y(c), y(5+c), y(5+c))
		}
		VPAND(y(6), y(5), y(5))
		VPAND(y(7), y(5), y(5))
		VPBROADCASTD(entry(i, 3), y(6))
		VBLENDVPS(y(5), y(6), to, to)
	}
	VMOVUPS(b.row(paired6), y(5))
	VBLENDVPS(y(5), two, one, one)
	VMOVUPS(one, b.row(info6))
}

// store6 stores the endpoints in the modes.
func (b batch) store6() {
	info, drop, half, top, ones := y(0), y(1), y(2), y(3), y(4)
	VMOVUPS(b.row(info6), info)
	VPSLLD(Imm(19), info, drop)
	VPSRLD(Imm(27), drop, drop)
	VPCMPEQD(ones, ones, ones)
	VPSRLD(Imm(31), ones, ones)
	VPSLLVD(drop, ones, half)
	VPSRLD(Imm(1), half, half)
	VMOVUPS(b.row(top6), top)
	VPSRLVD(drop, top, top)
	narrow := func(v reg.VecPhysical) {
		VPSRAD(Imm(31), v, y(12))
		VPABSD(v, v)
		VPSRLVD(drop, v, v)
		VPXOR(y(12), v, v)
		VPSUBD(y(12), v, v)
	}
	for c := range 3 {
		from, low, high := y(5), y(6), y(7)
		VPSLLD(Imm(uint64(12-4*c)), info, high)
		VPSRLD(Imm(28), high, high)
		VPSLLVD(high, ones, high)
		VPXOR(low, low, low)
		VPSUBD(high, low, low)
		VPSUBD(ones, high, high)
		for end := range 2 {
			v, wide := y(8), y(9)
			VMOVUPS(b.row(at6+3*end+c), v)
			narrow(v)
			if end == 0 {
				b.first6(v, from, y(12))
			}
			VPSUBD(from, v, v)
			VPMAXSD(low, v, v)
			VPMINSD(high, v, v)
			VPADDD(from, v, v)
			VMOVUPS(v, b.row(stored6+3*end+c))
			VPSRAD(Imm(31), v, y(12))
			VPABSD(v, v)
			VPSLLVD(drop, v, wide)
			VPADDD(half, wide, wide)
			VPXOR(y(10), y(10), y(10))
			VPCMPEQD(y(10), v, y(10))
			VPANDN(wide, y(10), wide)
			VPCMPEQD(top, v, y(10))
			VBLENDVPS(y(10), b.row(top6), wide, wide)
			VPXOR(y(12), wide, wide)
			VPSUBD(y(12), wide, wide)
			VCVTDQ2PS(wide, wide)
			VSUBPS(b.row(least6+c), wide, wide)
			VMOVUPS(wide, b.row(ends6+3*end+c))
		}
	}
}

// span6 finds the lines through the pixels, and stores the sums of the channels.
func (b batch) span6(sum func(c int) Mem) {
	b.moments6(sum)
	matrix := [3][3]reg.VecPhysical{{y(3), y(4), y(5)}, {y(4), y(6), y(7)}, {y(5), y(7), y(8)}}
	v, most := [3]reg.VecPhysical{y(9), y(10), y(11)}, reg.Y12
	for c := range 3 {
		VMOVAPS(matrix[0][c], v[c])
	}
	VMOVAPS(matrix[0][0], most)
	for i := 1; i < 3; i++ {
		VCMPPS(Imm(1), matrix[i][i], most, reg.Y13)
		VBLENDVPS(reg.Y13, matrix[i][i], most, most)
		for c := range 3 {
			VBLENDVPS(reg.Y13, matrix[i][c], v[c], v[c])
		}
	}
	b.power6(matrix, v)
	low, high, t := reg.Y3, reg.Y4, reg.Y5
	VXORPS(low, low, low)
	VXORPS(high, high, high)
	b.each("span6Extremes", func(channel, row func(int) Mem) {
		for c := range 3 {
			VBROADCASTSS(channel(c), reg.Y6)
			VSUBPS(y(c), reg.Y6, reg.Y6)
			if c == 0 {
				VMULPS(v[c], reg.Y6, t)
			} else {
				VMULPS(v[c], reg.Y6, reg.Y6)
				VADDPS(reg.Y6, t, t)
			}
		}
		VANDPS(row(masks6), t, t)
		VMINPS(t, low, low)
		VMAXPS(t, high, high)
	})
	for c := range 3 {
		first, last := reg.Y5, reg.Y6
		VMULPS(v[c], low, first)
		VADDPS(first, y(c), first)
		VMULPS(v[c], high, last)
		VADDPS(last, y(c), last)
		VADDPS(last, first, reg.Y7)
		VMULPS(b.row(half6), reg.Y7, reg.Y7)
		VSUBPS(first, last, last)
		VMULPS(b.row(by6), last, last)
		VSUBPS(last, reg.Y7, first)
		VMOVUPS(first, b.row(ends6+c))
		VADDPS(last, reg.Y7, last)
		VMOVUPS(last, b.row(ends6+3+c))
	}
}

// moments6 stores the sums of the channels, and leaves their means in Y0 to Y2 and the sums of products of differences in Y3 to Y8.
func (b batch) moments6(sum func(c int) Mem) {
	for c := range 3 {
		VXORPS(y(c), y(c), y(c))
	}
	b.each("span6Sum", func(channel, row func(int) Mem) {
		VMOVUPS(row(masks6), reg.Y4)
		for c := range 3 {
			VBROADCASTSS(channel(c), reg.Y3)
			VANDPS(reg.Y4, reg.Y3, reg.Y3)
			VADDPS(reg.Y3, y(c), y(c))
		}
	})
	for c := range 3 { // Y0 to Y2: means
		VMOVUPS(y(c), sum(c))
		VMULPS(b.row(inverse6), y(c), y(c))
	}
	for i := 3; i < 9; i++ {
		VXORPS(y(i), y(i), y(i))
	}
	b.each("span6Products", func(channel, row func(int) Mem) {
		for c := range 3 {
			VBROADCASTSS(channel(c), y(9+c))
			VSUBPS(y(c), y(9+c), y(9+c))
			VANDPS(row(masks6), y(9+c), y(9+c))
		}
		to := 3
		for c := range 3 {
			for d := c; d < 3; d++ {
				VMULPS(y(9+c), y(9+d), reg.Y12)
				VADDPS(reg.Y12, y(to), y(to))
				to++
			}
		}
	})
}

// power6 turns v to the largest eigenvector of a symmetric matrix, and makes its length 1. It uses Y12 to Y15.
func (b batch) power6(matrix [3][3]reg.VecPhysical, v [3]reg.VecPhysical) {
	u := [3]reg.VecPhysical{reg.Y12, reg.Y13, reg.Y14}
	free := reg.Y15
	for range 4 {
		for i := range 3 {
			VMULPS(matrix[i][0], v[0], u[i])
			for c := 1; c < 3; c++ {
				VMULPS(matrix[i][c], v[c], free)
				VADDPS(free, u[i], u[i])
			}
		}
		for i := range 3 { // without the sign
			VPSLLD(Imm(1), u[i], v[i])
			VPSRLD(Imm(1), v[i], v[i])
		}
		VMAXPS(v[1], v[0], v[0])
		VMAXPS(v[2], v[0], v[0])
		VMAXPS(b.row(tiny6), v[0], v[0])
		VMOVUPS(b.row(one6), free)
		VDIVPS(v[0], free, free)
		for i := range 3 {
			VMULPS(free, u[i], v[i])
		}
	}
	for i := range 3 {
		VMULPS(v[i], v[i], u[i])
	}
	VADDPS(u[1], u[0], u[0])
	VADDPS(u[2], u[0], u[0])
	VMAXPS(b.row(tiny6), u[0], u[0])
	VSQRTPS(u[0], u[0])
	VMOVUPS(b.row(one6), free)
	VDIVPS(u[0], free, free)
	for i := range 3 {
		VMULPS(free, v[i], v[i])
	}
}

// pass6 gives the pixels the nearest places on the lines. It leaves the error in Y0 and the sums in Y1 to Y5. If the places are final,
// they are limited by tops, and stored.
func (b batch) pass6(name string, final bool) {
	err, w, ww, zero := reg.Y0, reg.Y1, reg.Y2, reg.Y11
	d := []reg.VecPhysical{reg.Y6, reg.Y7, reg.Y8}
	for c := range 3 {
		VMOVUPS(b.row(ends6+3+c), d[c])
		VSUBPS(b.row(ends6+c), d[c], d[c])
	}
	VMULPS(d[0], d[0], reg.Y9)
	for c := 1; c < 3; c++ {
		VMULPS(d[c], d[c], reg.Y10)
		VADDPS(reg.Y10, reg.Y9, reg.Y9)
	}
	VMAXPS(b.row(tiny6), reg.Y9, reg.Y9)
	VMOVUPS(b.row(levels6), reg.Y10)
	VDIVPS(reg.Y9, reg.Y10, reg.Y9)
	VMOVUPS(reg.Y9, b.scale)
	for i := range 6 {
		VXORPS(y(i), y(i), y(i))
	}
	VXORPS(zero, zero, zero)
	b.each(name, func(channel, row func(int) Mem) {
		q, u, free := []reg.VecPhysical{reg.Y12, reg.Y13, reg.Y14}, reg.Y15, reg.Y9
		for c := range 3 {
			VBROADCASTSS(channel(c), q[c])
			VSUBPS(b.row(ends6+c), q[c], q[c])
		}
		VMULPS(d[0], q[0], u)
		for c := 1; c < 3; c++ {
			VMULPS(d[c], q[c], free)
			VADDPS(free, u, u)
		}
		VMULPS(b.scale, u, u)
		VMAXPS(zero, u, u)
		if final {
			VMINPS(row(tops6), u, u)
			VADDPS(b.row(round6), u, u)
			VMOVUPS(u, row(index6))
		} else {
			VMINPS(b.row(levels6), u, u)
			VADDPS(b.row(round6), u, u)
		}
		VSUBPS(b.row(round6), u, u)
		VMULPS(b.row(step6), u, u)
		VADDPS(b.row(round64of6), u, u)
		VSUBPS(b.row(round64of6), u, u)
		VANDPS(row(masks6), u, u)
		VADDPS(u, w, w)
		VMULPS(u, u, free)
		VADDPS(free, ww, ww)
		for c := range 3 {
			VMULPS(q[c], u, free)
			VADDPS(free, y(3+c), y(3+c))
		}
		for c := range 3 {
			VMULPS(d[c], u, free)
			VSUBPS(free, q[c], q[c])
			VMULPS(q[c], q[c], q[c])
		}
		VADDPS(q[1], q[0], q[0])
		VADDPS(q[2], q[0], q[0])
		VANDPS(row(masks6), q[0], q[0])
		VADDPS(q[0], err, err)
	})
}

// judge6 writes a function that does the same as batch6.judge of bptc, for all groups at once.
func judge6() {
	TEXT("judge6", NOSPLIT, "func(batch *[105][8]float32, pix *float32)")
	Doc("judge6 measures the line of each of eight groups of pixels, as batch6.judge does.")
	b := batchOf()
	b.scale = AllocLocal(lane)
	b.pass6("judge6Pass", true)
	for i := range 6 { // the error, then the sums
		VMOVUPS(y(i), b.row(err6+i))
	}
	VZEROUPPER()
	RET()
}
