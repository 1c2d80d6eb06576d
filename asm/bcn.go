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

// loadCode has what the parts of loadColors share.
type loadCode struct {
	redGreen, blue  Mem       // take words from bytes
	firsts, seconds Mem       // the factors of rr, rg, rb, gg, gb and bb
	factors         [3][2]Mem // those of the three products that are a number of the square of a matrix

	pixels, words, sum, powers, memory Mem
}

// loadColors writes a function that does the same as colors.load for 16 pixels with a colour, and as colors.powers. Sums of
// products have the order of pixels: they are above 1<<24, so another order would round them differently.
func loadColors() {
	l := &loadCode{}
	l.constants()
	TEXT("loadColors", NOSPLIT, "func(pixels *[64]byte, words *uint32, sum *[4]int32, powers *[8]float32) bool")
	Doc("loadColors stores the words of pixels, their sum, and the eighth power of their covariance, and reports whether they are equal.")
	l.pixels, l.words, l.sum, l.powers = pointer("pixels"), pointer("words"), pointer("sum"), pointer("powers")
	l.memory = AllocLocal(8 * lane)
	l.load()
	l.covariance()
	l.square()
	VMOVUPS(y(0), l.powers)
	VZEROUPPER()
	RET()
}

// constants fills the table.
func (l *loadCode) constants() {
	table, at := GLOBL("loadTables", RODATA|NOPTR), 0
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
	l.redGreen = bytes(func(i int) uint8 { return [4]uint8{0, 0x80, 1, 0x80}[i%4] + uint8(i%16/4*4) })
	l.blue = bytes(func(i int) uint8 { return [4]uint8{2, 0x80, 0x80, 0x80}[i%4] + uint8(i%16/4*4) })
	left, right := [6]int{0, 0, 0, 1, 1, 2}, [6]int{0, 1, 2, 1, 2, 2}
	l.firsts, l.seconds = chosen(left, 3), chosen(right, 3)
	row := [3][3]int{{0, 1, 2}, {1, 3, 4}, {2, 4, 5}} // of the matrix
	for k := range 3 {
		var a, b [6]int
		for i := range 6 {
			a[i], b[i] = row[left[i]][k], row[k][right[i]]
		}
		l.factors[k] = [2]Mem{chosen(a, 7), chosen(b, 7)}
	}
}

// load stores the words, their sum, which it leaves in both halves of Y0, and whether the pixels are equal.
func (l *loadCode) load() {
	for k := range 2 { // Y0 to Y3: red and green, blue and 0
		VMOVDQU(l.pixels.Offset(k*lane), y(4))
		VPSHUFB(l.redGreen, y(4), y(k))
		VPSHUFB(l.blue, y(4), y(2+k))
		VMOVDQU(y(k), l.words.Offset(k*lane))
		VMOVDQU(y(2+k), l.words.Offset((2+k)*lane))
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
	sumColors(y(0), y(2))
	VPMOVZXWD(reg.X6, reg.X0)
	VMOVDQU(reg.X0, l.sum)
	VINSERTI128(Imm(1), reg.X0, y(0), y(0))
}

// sumColors adds words of eight pixels: reds and greens, blues and 0. It leaves the sums of red, green, blue and 0 in X6, and uses Y7.
func sumColors(redGreen, blue reg.VecPhysical) {
	VPUNPCKLDQ(blue, redGreen, y(6))
	VPUNPCKHDQ(blue, redGreen, y(7))
	VPADDW(y(7), y(6), y(6))
	VEXTRACTI128(Imm(1), y(6), reg.X7)
	VPADDW(reg.X7, reg.X6, reg.X6)
	VPSHUFD(Imm(0x4e), reg.X6, reg.X7)
	VPADDW(reg.X7, reg.X6, reg.X6)
}

// covariance finds that of the pixels, 256 times as large, in Y0, where their sum is.
func (l *loadCode) covariance() {
	for i := range 8 {
		VPMOVZXBD(l.pixels.Offset(8*i), y(1))
		VPSLLD(Imm(4), y(1), y(1))
		VPSUBD(y(0), y(1), y(1))
		VCVTDQ2PS(y(1), y(1))
		VMOVUPS(y(1), l.memory.Offset(i*lane))
	}
	VMOVDQU(l.firsts, y(4))
	VMOVDQU(l.seconds, y(5))
	VXORPS(y(0), y(0), y(0))
	for i := range 16 {
		VBROADCASTF128(l.memory.Offset(16*i), y(1))
		VPERMILPS(y(4), y(1), y(2))
		VPERMILPS(y(5), y(1), y(3))
		VMULPS(y(3), y(2), y(2))
		VADDPS(y(2), y(0), y(0))
	}
}

// square multiplies the matrix in Y0 with itself three times, each time after a division by its trace.
func (l *loadCode) square() {
	m, one := y(0), reg.X6
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
		for k, f := range l.factors {
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
}

// eightCode has what the parts of solveEight share.
type eightCode struct {
	full, half, five, nineteen Mem
	scales, tops               [2]Mem // of 5 and 6 bits

	sums, x, ends        Mem
	squared, lower       Mem // the last places, squared; the errors of the lower first endpoint
	zero, total          reg.VecPhysical
	aa, ab, bb           reg.VecPhysical // as in fit.solve
	det, inverse         reg.VecPhysical
	xa, xb, q0, a, q1, b reg.VecPhysical
	t, err, free         reg.VecPhysical
}

// solveEight writes a function that does the same as fit.solve for eight fits of 16 pixels with the same colours, a fit in
// each double word. Words suffice for most factors, which are positive: VPMADDWD is faster than VPMULLD.
func solveEight() {
	e := &eightCode{zero: y(0), aa: y(1), ab: y(2), bb: y(3), det: y(4), inverse: y(5), total: y(6),
		xa: y(7), xb: y(8), q0: y(9), a: y(10), q1: y(11), t: y(12), b: y(13), err: reg.Y14, free: reg.Y15}
	e.constants()
	TEXT("solveEight", NOSPLIT, "func(sums *[6][8]int32, x *int32, ends *[6][8]int32, errs *[8]int32)")
	Doc("solveEight finds the endpoints of least squares of eight fits, as fit.solve does: first endpoints, second endpoints and scores. sums has",
		"last places, sums of places, of their squares, and of colours times places.")
	e.sums, e.x, e.ends = pointer("sums"), pointer("x"), pointer("ends")
	errs := pointer("errs")
	memory := AllocLocal(2 * lane)
	e.squared, e.lower = memory, memory.Offset(lane)
	VPXOR(e.zero, e.zero, e.zero)
	VPXOR(e.total, e.total, e.total)
	e.products()
	for k := range 3 {
		e.channel(k)
	}
	t := e.t
	VMOVDQU(e.sums, e.free)
	VPMADDWD(e.five, e.free, e.free)
	VMOVDQU(e.nineteen, t)
	VPSUBD(e.free, t, t) // 36 by the square of 2 or 3
	VPMULLD(t, e.total, e.total)
	VMOVDQU(e.total, errs)
	VZEROUPPER()
	RET()
}

// constants fills the table.
func (e *eightCode) constants() {
	table, at := GLOBL("solveEightTables", RODATA|NOPTR), 0
	filled := func(v uint32) Mem {
		for i := range 8 {
			DATA(at+4*i, U32(v))
		}
		at += lane
		return table.Offset(at - lane)
	}
	e.full, e.half = filled(math.Float32bits(255)), filled(math.Float32bits(0.5))
	e.five, e.nineteen = filled(5), filled(19)
	for i, top := range []uint32{31, 63} {
		e.scales[i], e.tops[i] = filled(math.Float32bits(float32(top)/255)), filled(top)
	}
}

// products finds what all channels need of the sums of places.
func (e *eightCode) products() {
	free := e.free
	VMOVDQU(e.sums, free)
	VMOVDQU(e.sums.Offset(2*lane), e.bb)
	VPMADDWD(e.sums.Offset(lane), free, e.ab) // last*t
	VPMADDWD(free, free, free)
	VMOVDQU(free, e.squared)
	VPSLLD(Imm(4), free, e.aa)
	VPSUBD(e.ab, e.aa, e.aa)
	VPSUBD(e.ab, e.aa, e.aa)
	VPADDD(e.bb, e.aa, e.aa)
	VPSUBD(e.bb, e.ab, e.ab)
	VPMADDWD(e.bb, e.aa, e.det)
	VPMADDWD(e.ab, e.ab, free)
	VPSUBD(free, e.det, e.det)
	VPCMPEQD(free, free, free) // 1
	VPSRLD(Imm(25), free, free)
	VPSLLD(Imm(23), free, free)
	VCVTDQ2PS(e.det, e.det)
	VDIVPS(e.det, free, e.det)
	VCVTDQ2PS(e.bb, e.inverse)
	VDIVPS(e.inverse, free, e.inverse)
}

// channel finds the endpoints in a channel, and adds their scores.
func (e *eightCode) channel(k int) {
	xa, xb, q0, free, t := e.xa, e.xb, e.q0, e.free, e.t
	VPBROADCASTD(e.x.Offset(4*k), xa)
	VMOVDQU(e.sums.Offset((3+k)*lane), xb)
	VPMADDWD(e.sums, xb, xb)
	VPMADDWD(e.squared, xa, xa)
	VPSUBD(xb, xa, xa)
	VPMULLD(e.bb, xa, q0)
	VPMULLD(e.ab, xb, e.a)
	VPSUBD(e.a, q0, q0)
	VCVTDQ2PS(q0, q0)
	VMULPS(e.det, q0, q0)
	e.clip(k, q0)
	VCVTTPS2DQ(q0, q0)
	e.second(k)
	VMOVDQU(e.err, e.lower)
	VMOVDQU(q0, e.ends.Offset(k*lane))
	VMOVDQU(e.q1, e.ends.Offset((3+k)*lane))
	VPCMPEQD(free, free, free)
	VPSUBD(free, q0, q0)
	e.second(k)
	VPCMPGTD(e.tops[k&1], q0, t) // none exceeds the maximum
	VPSRLD(Imm(1), t, e.b)
	VPBLENDVB(t, e.b, e.err, e.err)
	VMOVDQU(e.lower, free)
	VPCMPGTD(e.err, free, t) // the higher one is better
	VPMINSD(e.err, free, free)
	VPADDD(free, e.total, e.total)
	for i, q := range []reg.VecPhysical{q0, e.q1} {
		VMOVDQU(e.ends.Offset((3*i+k)*lane), free)
		VPBLENDVB(t, q, free, free)
		VMOVDQU(free, e.ends.Offset((3*i+k)*lane))
	}
}

// second finds the best second endpoints for the first ones, and the errors of both.
func (e *eightCode) second(k int) {
	t, a, b, q1, err := e.t, e.a, e.b, e.q1, e.err
	e.widened(k, e.q0, a)
	VPMADDWD(e.ab, a, t)
	VPSUBD(t, e.xb, q1)
	VCVTDQ2PS(q1, q1)
	VMULPS(e.inverse, q1, q1)
	e.clip(k, q1)
	VADDPS(e.half, q1, q1)
	VCVTTPS2DQ(q1, q1)
	e.widened(k, q1, b)
	VPMADDWD(b, t, t)
	VPMADDWD(e.aa, a, err)
	VPSUBD(e.xa, err, err)
	VPSUBD(e.xa, err, err)
	VPMULLD(a, err, err)
	VPADDD(t, err, err)
	VPADDD(t, err, err)
	VPMADDWD(e.bb, b, t)
	VPSUBD(e.xb, t, t)
	VPSUBD(e.xb, t, t)
	VPMULLD(b, t, t)
	VPADDD(t, err, err)
}

func (e *eightCode) clip(k int, v reg.VecPhysical) {
	VMAXPS(e.zero, v, v)
	VMINPS(e.full, v, v)
	VMULPS(e.scales[k&1], v, v)
}

// widened widens endpoints to 8 bits.
func (e *eightCode) widened(k int, q, to reg.VecPhysical) {
	green := uint64(k & 1)
	VPSLLD(Imm(3-green), q, to)
	VPSRLD(Imm(2+2*green), q, e.free)
	VPOR(e.free, to, to)
}

// weightsOf returns where the weights of places are, from a table with three registers for three places and then those for four.
func weightsOf(table Mem, last reg.Register) reg.GPVirtual {
	weights, at := GP64(), GP64()
	LEAQ(table, weights)
	MOVQ(last, at)
	SUBQ(Imm(2), at)
	IMUL3Q(Imm(3*lane), at, at)
	ADDQ(at, weights)
	return weights
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
