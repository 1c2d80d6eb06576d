package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func bcn() {
	channels()
	refineEnds()
	solveEight()
	lineSums()
	reach()
	polishEnds()
	nearest()
	loadColors()
	orderLanes()
	shapeGains()
	shapesAbove()
}

// quads fills half of a register's data with four words, repeated twice.
func quads(to Mem, at int, w [4]int) Mem {
	v := uint64(0)
	for i, x := range w {
		v |= uint64(uint16(x)) << (16 * i)
	}
	DATA(at, U64(v))
	DATA(at+8, U64(v))
	return to.Offset(at)
}

// loadColors writes a function that does the same as colors.load for 16 pixels with a colour, and as colors.powers. Sums of
// products have the order of pixels: they are above 1<<24, so another order would round them differently.
func loadColors() {
	table := GLOBL("loadTables", RODATA|NOPTR)
	at := 0
	bytes := func(of func(i int) uint8) Mem {
		for i := range lane {
			DATA(at+i, U8(of(i)))
		}
		at += lane
		return table.Offset(at - lane)
	}
	chosen := func(of [6]int, most int) Mem { // double words; the last two repeat the one before
		for i := range 8 {
			DATA(at+4*i, U32(uint32(of[min(i, 5)]&most)))
		}
		at += lane
		return table.Offset(at - lane)
	}
	redGreen := bytes(func(i int) uint8 { return [4]uint8{0, 0x80, 1, 0x80}[i%4] + uint8(i%16/4*4) })
	blue := bytes(func(i int) uint8 { return [4]uint8{2, 0x80, 0x80, 0x80}[i%4] + uint8(i%16/4*4) })
	left, right := [6]int{0, 0, 0, 1, 1, 2}, [6]int{0, 1, 2, 1, 2, 2} // the factors of rr, rg, rb, gg, gb, bb
	firsts, seconds := chosen(left, 3), chosen(right, 3)
	row := [3][3]int{{0, 1, 2}, {1, 3, 4}, {2, 4, 5}} // of the matrix
	var factors [3][2]Mem
	for k := range 3 {
		var a, b [6]int
		for i := range 6 {
			a[i], b[i] = row[left[i]][k], row[k][right[i]]
		}
		factors[k] = [2]Mem{chosen(a, 7), chosen(b, 7)}
	}

	TEXT("loadColors", NOSPLIT, "func(pixels *[64]byte, words *uint32, sum *[4]int32, powers *[8]float32) bool")
	Doc("loadColors stores the words of pixels, their sum, and the eighth power of their covariance, and reports whether they are equal.")
	pixels, words := Mem{Base: Load(Param("pixels"), GP64())}, Mem{Base: Load(Param("words"), GP64())}
	sum, powers := Mem{Base: Load(Param("sum"), GP64())}, Mem{Base: Load(Param("powers"), GP64())}
	memory := AllocLocal(8 * lane)
	for k := range 2 { // Y0 to Y3: red and green, blue and 0
		VMOVDQU(pixels.Offset(k*lane), y(4))
		VPSHUFB(redGreen, y(4), y(k))
		VPSHUFB(blue, y(4), y(2+k))
		VMOVDQU(y(k), words.Offset(k*lane))
		VMOVDQU(y(2+k), words.Offset((2+k)*lane))
	}
	VPBROADCASTD(reg.X0, y(4))
	VPBROADCASTD(reg.X2, y(5))
	VPCMPEQD(y(0), y(4), y(6))
	VPCMPEQD(y(1), y(4), y(7))
	VPAND(y(7), y(6), y(6))
	VPCMPEQD(y(2), y(5), y(7))
	VPAND(y(7), y(6), y(6))
	VPCMPEQD(y(3), y(5), y(7))
	VPAND(y(7), y(6), y(6))
	mask, same := GP32(), GP8()
	VPMOVMSKB(y(6), mask)
	ADDL(Imm(1), mask)
	SETEQ(same)
	Store(same, ReturnIndex(0))
	VPADDW(y(1), y(0), y(0))
	VPADDW(y(3), y(2), y(2))
	VPUNPCKLDQ(y(2), y(0), y(1)) // red, green, blue and 0, as words
	VPUNPCKHDQ(y(2), y(0), y(0))
	VPADDW(y(1), y(0), y(0))
	VEXTRACTI128(Imm(1), y(0), reg.X1)
	VPADDW(reg.X1, reg.X0, reg.X0)
	VPSHUFD(Imm(0x4e), reg.X0, reg.X1)
	VPADDW(reg.X1, reg.X0, reg.X0)
	VPMOVZXWD(reg.X0, reg.X0)
	VMOVDQU(reg.X0, sum)
	VINSERTI128(Imm(1), reg.X0, y(0), y(0))
	for i := range 8 {
		VPMOVZXBD(pixels.Offset(8*i), y(1))
		VPSLLD(Imm(4), y(1), y(1))
		VPSUBD(y(0), y(1), y(1))
		VCVTDQ2PS(y(1), y(1))
		VMOVUPS(y(1), memory.Offset(i*lane))
	}
	m := y(0)
	VMOVDQU(firsts, y(4))
	VMOVDQU(seconds, y(5))
	VXORPS(m, m, m)
	for i := range 16 {
		VBROADCASTF128(memory.Offset(16*i), y(1))
		VPERMILPS(y(4), y(1), y(2))
		VPERMILPS(y(5), y(1), y(3))
		VMULPS(y(3), y(2), y(2))
		VADDPS(y(2), m, m)
	}
	one := reg.X6
	VPCMPEQD(one, one, one)
	VPSRLD(Imm(25), one, one)
	VPSLLD(Imm(23), one, one)
	for range 3 {
		VPERMILPS(Imm(0xff), reg.X0, reg.X1)
		VADDSS(reg.X1, reg.X0, reg.X1)
		VEXTRACTF128(Imm(1), m, reg.X2)
		VPERMILPS(Imm(0x55), reg.X2, reg.X2)
		VADDSS(reg.X2, reg.X1, reg.X1)
		VDIVSS(reg.X1, one, reg.X1)
		VBROADCASTSS(reg.X1, y(1))
		VMULPS(y(1), m, m)
		for k, f := range factors {
			VMOVDQU(f[0], y(2))
			VPERMPS(m, y(2), y(2))
			VMOVDQU(f[1], y(3))
			VPERMPS(m, y(3), y(3))
			if k == 0 {
				VMULPS(y(3), y(2), y(1))
				continue
			}
			VMULPS(y(3), y(2), y(2))
			VADDPS(y(2), y(1), y(1))
		}
		VMOVAPS(y(1), m)
	}
	VMOVUPS(m, powers)
	VZEROUPPER()
	RET()
}

// solveEight writes a function that does the same as fit.solve for eight fits of 16 pixels with the same colours, a fit in
// each double word. Words suffice for most factors, which are positive: VPMADDWD is faster than VPMULLD.
func solveEight() {
	table := GLOBL("solveEightTables", RODATA|NOPTR)
	at := 0
	filled := func(v uint32) Mem {
		for i := range 8 {
			DATA(at+4*i, U32(v))
		}
		at += lane
		return table.Offset(at - lane)
	}
	full, half := filled(math.Float32bits(255)), filled(math.Float32bits(0.5))
	five, nineteen := filled(5), filled(19)
	var scales, tops [2]Mem // of 5 and 6 bits
	for i, top := range []uint32{31, 63} {
		scales[i], tops[i] = filled(math.Float32bits(float32(top)/255)), filled(top)
	}

	TEXT("solveEight", NOSPLIT, "func(sums *[6][8]int32, x *int32, ends *[6][8]int32, errs *[8]int32)")
	Doc("solveEight finds the endpoints of least squares of eight fits, as fit.solve does: first endpoints, second endpoints and scores. sums has",
		"last places, sums of places, of their squares, and of colours times places.")
	sums, x := Mem{Base: Load(Param("sums"), GP64())}, Mem{Base: Load(Param("x"), GP64())}
	ends, errs := Mem{Base: Load(Param("ends"), GP64())}, Mem{Base: Load(Param("errs"), GP64())}
	memory := AllocLocal(2 * lane)
	squared, lower := memory, memory.Offset(lane) // the last places, squared; the errors of the lower first endpoint
	zero, aa, ab, bb, det, inverse, total := y(0), y(1), y(2), y(3), y(4), y(5), y(6)
	xa, xb, q0, a, q1, t, b, err, free := y(7), y(8), y(9), y(10), y(11), y(12), y(13), reg.Y14, reg.Y15
	VPXOR(zero, zero, zero)
	VPXOR(total, total, total)
	VMOVDQU(sums, free)
	VMOVDQU(sums.Offset(2*lane), bb)
	VPMADDWD(sums.Offset(lane), free, ab) // last*t
	VPMADDWD(free, free, free)
	VMOVDQU(free, squared)
	VPSLLD(Imm(4), free, aa)
	VPSUBD(ab, aa, aa)
	VPSUBD(ab, aa, aa)
	VPADDD(bb, aa, aa)
	VPSUBD(bb, ab, ab)
	VPMADDWD(bb, aa, det)
	VPMADDWD(ab, ab, free)
	VPSUBD(free, det, det)
	VPCMPEQD(free, free, free) // 1
	VPSRLD(Imm(25), free, free)
	VPSLLD(Imm(23), free, free)
	VCVTDQ2PS(det, det)
	VDIVPS(det, free, det)
	VCVTDQ2PS(bb, inverse)
	VDIVPS(inverse, free, inverse)
	for c := range 3 {
		green := c & 1
		clip := func(v reg.VecPhysical) {
			VMAXPS(zero, v, v)
			VMINPS(full, v, v)
			VMULPS(scales[green], v, v)
		}
		widen := func(q, to reg.VecPhysical) {
			VPSLLD(Imm(uint64(3-green)), q, to)
			VPSRLD(Imm(uint64(2+2*green)), q, free)
			VPOR(free, to, to)
		}
		VPBROADCASTD(x.Offset(4*c), xa)
		VMOVDQU(sums.Offset((3+c)*lane), xb)
		VPMADDWD(sums, xb, xb)
		VPMADDWD(squared, xa, xa)
		VPSUBD(xb, xa, xa)
		VPMULLD(bb, xa, q0)
		VPMULLD(ab, xb, a)
		VPSUBD(a, q0, q0)
		VCVTDQ2PS(q0, q0)
		VMULPS(det, q0, q0)
		clip(q0)
		VCVTTPS2DQ(q0, q0)
		for side := range 2 {
			if side == 1 {
				VPCMPEQD(free, free, free)
				VPSUBD(free, q0, q0)
			}
			widen(q0, a)
			VPMADDWD(ab, a, t)
			VPSUBD(t, xb, q1)
			VCVTDQ2PS(q1, q1)
			VMULPS(inverse, q1, q1)
			clip(q1)
			VADDPS(half, q1, q1)
			VCVTTPS2DQ(q1, q1)
			widen(q1, b)
			VPMADDWD(b, t, t)
			VPMADDWD(aa, a, err)
			VPSUBD(xa, err, err)
			VPSUBD(xa, err, err)
			VPMULLD(a, err, err)
			VPADDD(t, err, err)
			VPADDD(t, err, err)
			VPMADDWD(bb, b, t)
			VPSUBD(xb, t, t)
			VPSUBD(xb, t, t)
			VPMULLD(b, t, t)
			VPADDD(t, err, err)
			if side == 0 {
				VMOVDQU(err, lower)
				VMOVDQU(q0, ends.Offset(c*lane))
				VMOVDQU(q1, ends.Offset((3+c)*lane))
			}
		}
		VPCMPGTD(tops[green], q0, t) // none exceeds the maximum
		VPSRLD(Imm(1), t, b)
		VPBLENDVB(t, b, err, err)
		VMOVDQU(lower, free)
		VPCMPGTD(err, free, t) // the higher one is better
		VPMINSD(err, free, free)
		VPADDD(free, total, total)
		for i, q := range []reg.VecPhysical{q0, q1} {
			VMOVDQU(ends.Offset((3*i+c)*lane), free)
			VPBLENDVB(t, q, free, free)
			VMOVDQU(free, ends.Offset((3*i+c)*lane))
		}
	}
	VMOVDQU(sums, free)
	VPMADDWD(five, free, free)
	VMOVDQU(nineteen, t)
	VPSUBD(free, t, t) // 36 by the square of 2 or 3
	VPMULLD(t, total, total)
	VMOVDQU(total, errs)
	VZEROUPPER()
	RET()
}

// nearest writes a function that finds the code of the place nearest to each of 16 colours, or the first of several.
func nearest() {
	table := GLOBL("nearestTables", RODATA|NOPTR)
	for i := range 16 {
		DATA(4*i, U32(uint32(2*i)))
	}
	TEXT("nearestLanes", NOSPLIT, "func(pixels *uint32, places *[4]uint64, codes *[4]uint32) uint32")
	Doc("nearestLanes finds the codes of the places nearest to pixels, two bits each.")
	pixels, places := Mem{Base: Load(Param("pixels"), GP64())}, Mem{Base: Load(Param("places"), GP64())}
	codes := Mem{Base: Load(Param("codes"), GP64())}
	for k := range 2 { // Y0 to Y3: red and green, blue and 0
		VMOVDQU(pixels.Offset(k*lane), y(2*k))
		VMOVDQU(pixels.Offset((2+k)*lane), y(2*k+1))
	}
	one, number := y(10), y(11)
	VPCMPEQD(one, one, one)
	VPSRLD(Imm(31), one, one)
	VPXOR(number, number, number)
	least := [2]reg.VecPhysical{y(4), y(5)}
	for i := range 4 {
		VPBROADCASTD(places.Offset(8*i), y(6))
		VPBROADCASTD(places.Offset(8*i+4), y(7))
		for k := range 2 {
			apart(y(2*k), y(2*k+1), y(6), y(7), y(8), y(9))
			VPSLLD(Imm(2), y(8), y(8))
			if i == 0 {
				VMOVDQA(y(8), least[k])
				continue
			}
			VPOR(number, y(8), y(8))
			VPMINSD(y(8), least[k], least[k])
		}
		VPADDD(one, number, number)
	}
	VBROADCASTI128(codes, y(6))
	for k := range 2 {
		VPERMILPS(least[k], y(6), least[k]) // uses the lowest two bits
		VPSLLVD(table.Offset(k*lane), least[k], least[k])
	}
	VPOR(y(5), y(4), y(4))
	VEXTRACTI128(Imm(1), y(4), reg.X5)
	VPOR(reg.X5, reg.X4, reg.X4)
	VPSHUFD(Imm(0x4e), reg.X4, reg.X5)
	VPOR(reg.X5, reg.X4, reg.X4)
	VPSHUFD(Imm(0xb1), reg.X4, reg.X5)
	VPOR(reg.X5, reg.X4, reg.X4)
	result := GP32()
	VMOVD(reg.X4, result)
	VZEROUPPER()
	Store(result, ReturnIndex(0))
	RET()
}
