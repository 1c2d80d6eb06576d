package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func pixel() {
	halve()
	apply()
	addLine()
	divide()
}

// halve writes a function for the means of four pixels, rounded. The sum of four numbers of 32 bits has 34, so that of their quarters is
// added to the quarter of the sum of what these leave.
func halve() {
	TEXT("halve", NOSPLIT, "func(dst, above, below *uint32, n int)")
	Doc("halve makes n pixels of twice as many in each of two rows. n is even.")
	dst, n := Load(Param("dst"), GP64()), Load(Param("n"), GP64())
	rows, by := []reg.Register{Load(Param("above"), GP64()), Load(Param("below"), GP64())}, GP64()
	two, three, quarters, rests := reg.Y15, reg.Y14, reg.Y0, reg.Y1
	filled(2, two, by.(reg.GPVirtual))
	filled(3, three, by.(reg.GPVirtual))
	Label("pixels")
	VMOVDQA(two, rests)
	VPXOR(quarters, quarters, quarters)
	for _, row := range rows {
		for k, v := range []reg.VecPhysical{reg.Y2, reg.Y3} { // pixels 0 and 2, then 1 and 3
			pixel := Mem{Base: row}.Offset(k * lane / 2)
			VMOVDQU(pixel, v.AsX().(reg.VecPhysical))
			VINSERTI128(Imm(1), pixel.Offset(lane), v, v)
			VPAND(three, v, reg.Y4)
			VPADDD(reg.Y4, rests, rests)
			VPSRLD(Imm(2), v, v)
			VPADDD(v, quarters, quarters)
		}
		ADDQ(Imm(2*lane), row)
	}
	VPSRLD(Imm(2), rests, rests)
	VPADDD(rests, quarters, quarters)
	VMOVDQU(quarters, Mem{Base: dst})
	ADDQ(Imm(lane), dst)
	SUBQ(Imm(2), n)
	JNZ(LabelRef("pixels"))
	VZEROUPPER()
	RET()
}

// apply writes a function for sums of pixels of four numbers of 32 bits, times weights with a sign. It subtracts 1<<31 from each number,
// which then has a sign, too; as the weights have the sum one, it adds one<<31 in the end.
func apply() {
	TEXT("applyLanes", NOSPLIT, "func(dst *uint64, src *uint32, first *int, weights *int32, taps, one, n int)")
	Doc("applyLanes makes n pixels, each the sum of taps pixels of src from first times weights.")
	dst, src, first, weights := pointer("dst"), pointer("src"), pointer("first"), pointer("weights")
	taps, one, n := Load(Param("taps"), GP64()), Load(Param("one"), GP64()), Load(Param("n"), GP64())
	whole, half, sum, weight, v := reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4
	from, left := Mem{Base: GP64()}, GP64()
	SHLQ(Imm(31), one)
	VMOVQ(one, whole.AsX())
	VPBROADCASTQ(whole.AsX(), whole)
	filled(1<<31, half, left)
	Label("pixel")
	VMOVDQA(whole, sum)
	MOVQ(first, from.Base)
	SHLQ(Imm(4), from.Base)
	ADDQ(src.Base, from.Base)
	MOVQ(taps, left)
	Label("tap")
	VPBROADCASTD(weights, weight)
	VPMOVZXDQ(from, v)
	VPXOR(half, v, v)
	VPMULDQ(weight, v, v)
	VPADDQ(v, sum, sum)
	ADDQ(Imm(4), weights.Base)
	ADDQ(Imm(lane/2), from.Base)
	DECQ(left)
	JNZ(LabelRef("tap"))
	VMOVDQU(sum, dst)
	ADDQ(Imm(lane), dst.Base)
	ADDQ(Imm(8), first.Base)
	DECQ(n)
	JNZ(LabelRef("pixel"))
	VZEROUPPER()
	RET()
}

// addLine writes a function that adds numbers of 64 bits times a weight with a sign. A number is its lower half, with a sign, and the
// rest, so that two products of 32 bits make one.
func addLine() {
	TEXT("addLineLanes", NOSPLIT, "func(sum, line *uint64, weight int32, n int)")
	Doc("addLineLanes adds n pixels of line times weight to sum.")
	sum, line, n := pointer("sum"), pointer("line"), Load(Param("n"), GP64())
	half, weight, v, t, by := reg.Y0, reg.Y1, reg.Y2, reg.Y3, GP64()
	MOVL(U32(1<<31), by.As32())
	VMOVQ(by, half.AsX())
	VPBROADCASTQ(half.AsX(), half)
	VMOVD(Load(Param("weight"), GP32()), weight.AsX())
	VPBROADCASTD(weight.AsX(), weight)
	Label("next")
	VMOVDQU(line, v)
	VPADDQ(half, v, t)
	VPSRLQ(Imm(32), t, t)
	VPMULDQ(weight, v, v)
	VPMULDQ(weight, t, t)
	VPSLLQ(Imm(32), t, t)
	VPADDQ(t, v, v)
	VPADDQ(sum, v, v)
	VMOVDQU(v, sum)
	ADDQ(Imm(lane), sum.Base)
	ADDQ(Imm(lane), line.Base)
	DECQ(n)
	JNZ(LabelRef("next"))
	VZEROUPPER()
	RET()
}

// divide writes a function for quotients of numbers of 64 bits, by a number of 32 bits. The upper half of the product with 1<<64 / area
// is the quotient, or one less.
func divide() {
	TEXT("divideLanes", NOSPLIT, "func(dst *uint32, sum *uint64, area, inverse, most uint64, n int)")
	Doc("divideLanes divides n times four numbers, as divide does.")
	dst, sum, n := pointer("dst"), pointer("sum"), Load(Param("n"), GP64())
	area, by, byHigh, most := reg.Y15, reg.Y14, reg.Y13, reg.Y12
	for i, to := range []reg.VecPhysical{area, by, most} {
		VMOVQ(Load(Param([]string{"area", "inverse", "most"}[i]), GP64()), to.AsX())
		VPBROADCASTQ(to.AsX(), to)
	}
	zero, sign, signed, half, below := reg.Y11, reg.Y10, reg.Y9, reg.Y8, reg.Y7
	VPXOR(zero, zero, zero)
	VPCMPEQD(sign, sign, sign)
	VPADDQ(sign, area, below) // area - 1
	VPSLLQ(Imm(63), sign, sign)
	VPXOR(sign, most, signed) // in order when compared as numbers with a sign
	VPSRLQ(Imm(1), area, half)
	VPSRLQ(Imm(32), by, byHigh)
	v, high, t, u, q := reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4
	Label("divisions")
	VMOVDQU(sum, v)
	VPCMPGTQ(v, zero, t)
	VPANDN(most, t, t)
	VPXOR(sign, v, u)
	VPCMPGTQ(signed, u, u)
	VPBLENDVB(u, t, v, v)
	VPADDQ(half, v, v)
	VPSRLQ(Imm(32), v, high)
	VPMULUDQ(by, v, t)
	VPSRLQ(Imm(32), t, t)
	VPMULUDQ(by, high, u)
	VPADDQ(u, t, t)
	VPMULUDQ(byHigh, high, q)
	VPSRLQ(Imm(32), t, u)
	VPADDQ(u, q, q)
	VPSLLQ(Imm(32), t, t)
	VPSRLQ(Imm(32), t, t)
	VPMULUDQ(byHigh, v, u)
	VPADDQ(u, t, t)
	VPSRLQ(Imm(32), t, t)
	VPADDQ(t, q, q)
	VPMULUDQ(area, q, t)
	VPSUBQ(t, v, t)
	VPCMPGTQ(below, t, t)
	VPSUBQ(t, q, q)
	VPSHUFD(Imm(8), q, q)
	VPERMQ(Imm(8), q, q)
	VMOVDQU(q.AsX(), dst)
	ADDQ(Imm(lane/2), dst.Base)
	ADDQ(Imm(lane), sum.Base)
	DECQ(n)
	JNZ(LabelRef("divisions"))
	VZEROUPPER()
	RET()
}
