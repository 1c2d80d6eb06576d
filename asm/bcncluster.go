package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// orderLanes writes a function that sorts 16 pixels along an axis, as colors.sort does, and finds what colors.measure needs of
// them. It does not move pixels: the place of a pixel is the number of pixels before it, and the sums from a place on are over
// the pixels that are not before it. Sums are words, one for each place, from the second place on.
func orderLanes() {
	table := GLOBL("orderTables", RODATA|NOPTR)
	numbers := func(at, size int, of func(i int) int) Mem {
		for i := range lane / size {
			if size == 2 {
				DATA(at+2*i, U16(uint16(of(i))))
			} else {
				DATA(at+4*i, U32(uint32(of(i))))
			}
		}
		return table.Offset(at)
	}
	index := [2]Mem{numbers(0, 4, func(i int) int { return i }), numbers(lane, 4, func(i int) int { return 8 + i })}
	place, pixelsAfter := numbers(2*lane, 2, func(i int) int { return i }), numbers(3*lane, 2, func(i int) int { return 15 - i })

	TEXT("orderLanes", NOSPLIT,
		"func(pixels *uint32, axis *[2]uint32, sum *int32, places *[16]uint8, tails *[3][16]int16, sums *[3][16]float32) float32")
	Doc("orderLanes finds the places of pixels in the order along an axis, the sums of the colours from each place on but the first, 16 times",
		"their deviations from the mean, and 256 times the sum of all squared distances from the mean.")
	pixels, axis := Mem{Base: Load(Param("pixels"), GP64())}, Mem{Base: Load(Param("axis"), GP64())}
	sum, out := Mem{Base: Load(Param("sum"), GP64())}, Mem{Base: Load(Param("places"), GP64())}
	tails, sums := Mem{Base: Load(Param("tails"), GP64())}, Mem{Base: Load(Param("sums"), GP64())}
	memory := AllocLocal(10 * lane)
	keys, places := memory, memory.Offset(2*lane)
	channel := func(c int) Mem { return memory.Offset((4 + 2*c) * lane) }
	VPBROADCASTD(axis, y(4))
	VPBROADCASTD(axis.Offset(4), y(5))
	twice := func(v, to reg.VecPhysical, shift, back func(...Op)) { // the same word in both halves
		shift(Imm(16), v, to)
		back(Imm(16), to, y(9))
		VPOR(y(9), to, to)
	}
	for k := range 2 { // Y0 and Y1: keys
		VMOVDQU(pixels.Offset(k*lane), y(6))
		VMOVDQU(pixels.Offset((2+k)*lane), y(7))
		for c, v := range []reg.VecPhysical{y(6), y(6), y(7)} {
			if c == 1 {
				twice(v, y(8), VPSRLD, VPSLLD)
			} else {
				twice(v, y(8), VPSLLD, VPSRLD)
			}
			VMOVDQU(y(8), channel(c).Offset(k*lane))
		}
		VPMADDWD(y(4), y(6), y(6))
		VPMADDWD(y(5), y(7), y(7))
		VPADDD(y(7), y(6), y(6))
		VPSLLD(Imm(4), y(6), y(6))
		VPOR(index[k], y(6), y(k))
		VMOVDQU(y(k), keys.Offset(k*lane))
	}
	VPXOR(y(2), y(2), y(2))
	VPXOR(y(3), y(3), y(3))
	for i := range 16 { // Y2 and Y3: places
		VPBROADCASTD(keys.Offset(4*i), y(4))
		for k := range 2 {
			VPCMPGTD(y(4), y(k), y(5+k))
			VPSUBD(y(5+k), y(2+k), y(2+k))
		}
	}
	for k := range 2 {
		VPSLLD(Imm(16), y(2+k), y(4))
		VPOR(y(2+k), y(4), y(4))
		VMOVDQU(y(4), places.Offset(k*lane))
	}
	VPACKUSDW(y(3), y(2), y(4))
	VPERMQ(Imm(0xd8), y(4), y(4))
	VEXTRACTI128(Imm(1), y(4), reg.X5)
	VPACKUSWB(reg.X5, reg.X4, reg.X4)
	VMOVDQU(reg.X4, out)
	VMOVDQU(place, y(7))
	for c := range 3 { // Y8 to Y10: sums of colours
		VPXOR(y(8+c), y(8+c), y(8+c))
	}
	for i := range 16 {
		VPBROADCASTD(places.Offset(4*i), y(4))
		VPCMPGTW(y(7), y(4), y(4))
		for c := range 3 {
			VPBROADCASTD(channel(c).Offset(4*i), y(5))
			VPAND(y(4), y(5), y(5))
			VPADDW(y(5), y(8+c), y(8+c))
		}
	}
	low := []reg.VecPhysical{reg.X8, reg.X9, reg.X10}
	for c := range 3 { // Y8 to Y10: deviations of pixels, in order
		v := y(8 + c)
		VMOVDQU(v, tails.Offset(c*lane))
		VPBROADCASTW(sum.Offset(4*c), y(4))
		VPMULLW(pixelsAfter, y(4), y(4))
		VPSLLW(Imm(4), v, v)
		VPSUBW(y(4), v, v)
		VPMOVSXWD(low[c], y(4))
		VCVTDQ2PS(y(4), y(4))
		VMOVUPS(y(4), sums.Offset(2*c*lane))
		VEXTRACTI128(Imm(1), v, reg.X5)
		VPMOVSXWD(reg.X5, y(5))
		VCVTDQ2PS(y(5), y(5))
		VMOVUPS(y(5), sums.Offset((2*c+1)*lane))
		VPERM2I128(Imm(0x08), v, v, y(4)) // the deviations one place before
		VPALIGNR(Imm(14), y(4), v, y(4))
		VPSUBW(v, y(4), v)
	}
	VPXOR(y(7), y(7), y(7))
	for k, unpack := range []func(...Op){VPUNPCKLWD, VPUNPCKHWD} {
		unpack(y(9), y(8), y(4))
		unpack(y(7), y(10), y(5))
		VPMADDWD(y(4), y(4), y(4))
		VPMADDWD(y(5), y(5), y(5))
		VCVTDQ2PS(y(4), y(4))
		VCVTDQ2PS(y(5), y(5))
		VADDPS(y(5), y(4), y(4))
		VMOVUPS(y(4), memory.Offset(k*lane))
	}
	for i := range 16 {
		from := memory.Offset(i/8*16 + i/4%2*lane + i%4*4)
		if i == 0 {
			VMOVSS(from, reg.X0)
		} else {
			VADDSS(from, reg.X0, reg.X0)
		}
	}
	spread, err := ReturnIndex(0).Resolve()
	if err != nil {
		panic(err)
	}
	VMOVSS(reg.X0, spread.Addr)
	VZEROUPPER()
	RET()
}

// shapeGains writes a function that does the same as colors.measure for 16 pixels: the gains of all shapes of up to
// four runs. The first cut is at i and the second at j; the third is at 8 places in a register: 1 to 8, or 9 to 16. An
// invalid shape has a negative gain.
func shapeGains() {
	TEXT("shapeGains", NOSPLIT, "func(sums *[3][16]float32, inverse *float32, scratch *float32, gains *int32, top *[24]int32)")
	Doc("shapeGains finds the gains of all shapes of 16 pixels, and the greatest of every 24th.")
	sums := Mem{Base: Load(Param("sums"), GP64())}
	inverse, gains := Mem{Base: Load(Param("inverse"), GP64())}, Mem{Base: Load(Param("gains"), GP64())}
	scratch := Mem{Base: Load(Param("scratch"), GP64())}
	twice, square, both := scratch, scratch.Offset(32*lane), scratch.Offset(34*lane) // twice has dot products
	for k := range 2 {                                                               // squares
		for c := range 3 {
			VMOVUPS(sums.Offset(64*c+lane*k), y(c))
			VMULPS(y(c), y(c), y(c))
		}
		VADDPS(y(1), y(0), y(0))
		VADDPS(y(2), y(0), y(0))
		VMOVUPS(y(0), square.Offset(lane*k))
	}
	for c := range 3 {
		for k := range 2 {
			VMOVUPS(sums.Offset(64*c+lane*k), y(2*c+k))
		}
	}
	for j := range 15 {
		for c := range 3 {
			VBROADCASTSS(sums.Offset(64*c+4*j), y(6+c))
		}
		for k := j / 8; k < 2; k++ {
			VMULPS(y(6), y(k), y(9))
			VMULPS(y(7), y(2+k), y(10))
			VADDPS(y(10), y(9), y(9))
			VMULPS(y(8), y(4+k), y(10))
			VADDPS(y(10), y(9), y(9))
			VADDPS(y(9), y(9), y(9))
			VMOVUPS(y(9), twice.Offset((2*j+k)*lane))
		}
	}
	top := [3]reg.VecPhysical{y(13), reg.Y14, reg.Y15}
	for _, t := range top {
		VPXOR(t, t, t)
	}
	VMOVUPS(square, y(11))
	VMOVUPS(square.Offset(lane), y(12))
	at := 0
	for i := range 15 {
		for k := i / 8; k < 2; k++ {
			VADDPS(twice.Offset((2*i+k)*lane), y(11+k), y(k))
			VMOVUPS(y(k), both.Offset(k*lane))
		}
		VBROADCASTSS(square.Offset(4*i), y(2))
		for j := i; j < 15; j++ {
			base := y(3 + j%2*4)
			VBROADCASTSS(both.Offset(4*j), base)
			VADDPS(base, y(2), base)
			for k := j / 8; k < 2; k++ {
				g := y(4 + k + j%2*4)
				VADDPS(y(k), base, g)
				VADDPS(twice.Offset((2*j+k)*lane), g, g)
				VMULPS(inverse.Offset(at), g, g)
				VMOVUPS(g, gains.Offset(at))
				VPMAXSD(g, top[at/lane%3], top[at/lane%3])
				at += lane
			}
		}
	}
	out := Mem{Base: Load(Param("top"), GP64())}
	for k, t := range top {
		VMOVDQU(t, out.Offset(k*lane))
	}
	VZEROUPPER()
	RET()
}

// shapesAbove writes a function that finds the gains that are not below a limit.
func shapesAbove() {
	TEXT("shapesAbove", NOSPLIT, "func(gains *int32, groups int, limit int32, found *uint16) int")
	Doc("shapesAbove finds the places of gains that are not below a limit, in order, and how many there are. The groups of eight are a",
		"multiple of four.")
	gains, groups := Load(Param("gains"), GP64()), Load(Param("groups"), GP64())
	limit := GP32()
	Load(Param("limit"), limit)
	out := Load(Param("found"), GP64())
	start := GP64()
	MOVQ(out, start)
	VMOVD(limit, reg.X0)
	VPBROADCASTD(reg.X0, reg.Y0)
	at := GP64()
	XORQ(at, at)
	bits, place := GP32(), GP32()
	Label("shapesGroup")
	from := func(k int) Mem { return Mem{Base: gains, Disp: k * lane, Index: at, Scale: 4} }
	VMOVDQU(from(0), reg.Y1)
	VMOVDQU(from(2), reg.Y2)
	VPMAXSD(from(1), reg.Y1, reg.Y1)
	VPMAXSD(from(3), reg.Y2, reg.Y2)
	VPMAXSD(reg.Y2, reg.Y1, reg.Y1)
	VPCMPGTD(reg.Y1, reg.Y0, reg.Y1) // below
	VMOVMSKPS(reg.Y1, bits)
	CMPL(bits, Imm(0xff))
	JE(LabelRef("shapesNone"))
	for k := range 4 {
		one, none := fmt.Sprintf("shapesOne%d", k), fmt.Sprintf("shapesNone%d", k)
		VPCMPGTD(from(k), reg.Y0, reg.Y1)
		VMOVMSKPS(reg.Y1, bits)
		XORL(Imm(0xff), bits)
		JZ(LabelRef(none))
		Label(one)
		BSFL(bits, place)
		LEAL(Mem{Base: at, Index: place, Scale: 1, Disp: 8 * k}, place)
		MOVW(place.As16(), Mem{Base: out})
		ADDQ(Imm(2), out)
		LEAL(Mem{Base: bits, Disp: -1}, place)
		ANDL(place, bits)
		JNZ(LabelRef(one))
		Label(none)
	}
	Label("shapesNone")
	ADDQ(Imm(32), at)
	SUBQ(Imm(4), groups)
	JNZ(LabelRef("shapesGroup"))
	VZEROUPPER()
	SUBQ(start, out)
	SHRQ(Imm(1), out)
	Store(out, ReturnIndex(0))
	RET()
}
