package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func bptc() {
	estimate("estimateTwo", 2, false)
	estimate("estimateTwoAlpha", 2, true)
	estimate("estimateThree", 3, false)
	span()
	assign()
	round()
	settle6()
	judge6()
	restart7()
}

// Positions of the moments, as in the struct of bptc: sums, then products.
const (
	r, g, b                = 0, 1, 2
	rr, gg, bb, rg, rb, gb = 3, 4, 5, 6, 7, 8
	a, aa, ra, ga, ba      = 9, 10, 11, 12, 13
)

// estimate writes a function that estimates partitions, eight in a group. The moments of each pixel, followed by the
// total moments, are 16 floats each. They are whole numbers whose sums are exact. A group's table has for each subset
// except the first a mask for each pixel, and then for each subset 1 divided by its number of pixels.
func estimate(name string, subsets int, alpha bool) {
	TEXT(name, NOSPLIT, "func(moments *float32, table *uint32, off, along *float32, groups int)")
	Doc(fmt.Sprintf("%s estimates partitions of %d subsets, as moments.scatter does.", name, subsets))
	moments, table := Load(Param("moments"), GP64()), Load(Param("table"), GP64())
	off, along := Load(Param("off"), GP64()), Load(Param("along"), GP64())
	groups := Load(Param("groups"), GP64())
	n := 9
	if alpha {
		n = 14
	}
	rest := AllocLocal((n + 4) * lane)
	found := rest.Offset(n * lane) // off and along of the previous subsets
	zero := name + "Group"
	Label(zero)
	for s := 1; s < subsets; s++ {
		sum(moments, Mem{Base: table}.Offset((s-1)*16*lane), n)
		for i := range n {
			if s == 1 {
				VBROADCASTSS(Mem{Base: moments}.Offset(16*64+4*i), reg.Y15)
			} else {
				VMOVUPS(rest.Offset(i*lane), reg.Y15)
			}
			VSUBPS(y(i), reg.Y15, reg.Y15)
			VMOVUPS(reg.Y15, rest.Offset(i*lane))
		}
		scatter(Mem{Base: table}.Offset((subsets-1)*16*lane+s*lane), found.Offset((s-1)*2*lane), n)
	}
	for i := range n {
		VMOVUPS(rest.Offset(i*lane), y(i))
	}
	last := (subsets - 1) * 16 * lane
	scatter(Mem{Base: table}.Offset(last), Mem{}, n)
	for s := 1; s < subsets; s++ {
		VADDPS(found.Offset((s-1)*2*lane), reg.Y0, reg.Y0)
		VADDPS(found.Offset((s-1)*2*lane+lane), reg.Y1, reg.Y1)
	}
	VMOVUPS(reg.Y0, Mem{Base: off})
	VMOVUPS(reg.Y1, Mem{Base: along})
	ADDQ(U32(last+subsets*lane), table)
	ADDQ(Imm(lane), off)
	ADDQ(Imm(lane), along)
	DECQ(groups)
	JNZ(LabelRef(zero))
	VZEROUPPER()
	RET()
}

// sum adds n moments of the pixels that masks select, in the registers from Y0.
func sum(moments reg.Register, masks Mem, n int) {
	for i := range n {
		VXORPS(y(i), y(i), y(i))
	}
	for pixel := range 16 {
		VMOVUPS(masks.Offset(pixel*lane), reg.Y14)
		for i := range n {
			VBROADCASTSS(Mem{Base: moments}.Offset(pixel*64+4*i), reg.Y15)
			VANDPS(reg.Y14, reg.Y15, reg.Y15)
			VADDPS(reg.Y15, y(i), y(i))
		}
	}
}

// scatter computes off and along of the moments in the registers from Y0, in the same order as moments.scatter. It
// stores them at to, or leaves them in Y0 and Y1 if to is the zero Mem. It computes each product when it is needed,
// because registers are few: Y14 and Y15 are free.
func scatter(inverse, to Mem, n int) {
	around := func(product, i, j int) { // the product minus that of the means
		VMULPS(y(j), y(i), reg.Y15)
		VMULPS(reg.Y14, reg.Y15, reg.Y15)
		VSUBPS(reg.Y15, y(product), y(product))
	}
	square := func(i int) { VMULPS(y(i), y(i), y(i)) }
	VMOVUPS(inverse, reg.Y14)
	around(rr, r, r)
	around(gg, g, g)
	around(bb, b, b)
	around(rg, r, g)
	around(rb, r, b)
	around(gb, g, b)
	if n > 9 {
		around(aa, a, a)
		around(ra, r, a)
		around(ga, g, a)
		around(ba, b, a)
	}
	trace, norm := reg.Y0, reg.Y1 // r and g are not needed any more
	VADDPS(y(gg), y(rr), trace)
	VADDPS(y(bb), trace, trace)
	for i := rr; i <= gb; i++ {
		if i < rg {
			continue
		}
		square(i)
	}
	VADDPS(y(rb), y(rg), y(rg))
	VADDPS(y(gb), y(rg), y(rg))
	VADDPS(y(rg), y(rg), y(rg))
	square(rr)
	square(gg)
	square(bb)
	VADDPS(y(gg), y(rr), norm)
	VADDPS(y(bb), norm, norm)
	VADDPS(y(rg), norm, norm)
	if n > 9 {
		VADDPS(y(aa), trace, trace)
		square(ra)
		square(ga)
		square(ba)
		VADDPS(y(ga), y(ra), y(ra))
		VADDPS(y(ba), y(ra), y(ra))
		VADDPS(y(ra), y(ra), y(ra))
		square(aa)
		VADDPS(y(ra), y(aa), y(aa))
		VADDPS(y(aa), norm, norm)
	}
	VADDPS(norm, norm, norm)
	VMULPS(trace, trace, reg.Y15)
	VSUBPS(reg.Y15, norm, norm)
	VXORPS(reg.Y15, reg.Y15, reg.Y15)
	VMAXPS(reg.Y15, norm, norm)
	VSQRTPS(norm, norm)
	VADDPS(norm, trace, norm)
	half()
	VMULPS(reg.Y15, norm, norm)
	VSUBPS(norm, trace, trace)
	if to.Base != nil {
		VMOVUPS(trace, to)
		VMOVUPS(norm, to.Offset(lane))
	}
}

// half sets Y15 to 1/2: the exponent 126 of a float.
func half() {
	VPCMPEQD(reg.Y15, reg.Y15, reg.Y15)
	VPSRLD(Imm(26), reg.Y15, reg.Y15)
	VPSLLD(Imm(24), reg.Y15, reg.Y15)
}

// y returns a register by its number.
func y(i int) reg.VecPhysical {
	return [...]reg.VecPhysical{reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7, reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13}[i]
}

// assign writes a function that does the same as group.assign, for pixels of 8 bits. Words of 16 bits hold the pixels,
// their differences, and the differences times a weight. A register has four pixels, or eight dot products, indices or
// weights.
func assign() {
	TEXT("assignLanes", NOSPLIT, "func(pix *int16, shown *int32, weights *[16]int32, masks *uint32, levels int32, index *uint8, sums *int32) int32")
	Doc("assignLanes gives pixels the nearest places on a line, as group.assign does, and returns the error.")
	pix, shown := Mem{Base: Load(Param("pix"), GP64())}, Mem{Base: Load(Param("shown"), GP64())}
	weights, masks := Mem{Base: Load(Param("weights"), GP64())}, Mem{Base: Load(Param("masks"), GP64())}
	index, sums := Mem{Base: Load(Param("index"), GP64())}, Mem{Base: Load(Param("sums"), GP64())}
	levels := GP32()
	Load(Param("levels"), levels)
	e0, d, scale, top := y(12), y(13), reg.Y14, reg.Y15
	VMOVDQU(shown, reg.X12)
	VPACKSSDW(reg.X12, reg.X12, reg.X12)
	VMOVDQU(shown.Offset(16), reg.X13)
	VPACKSSDW(reg.X13, reg.X13, reg.X13)
	VPSUBW(reg.X12, reg.X13, reg.X13)
	VPMADDWD(reg.X13, reg.X13, reg.X0) // the length of d, squared
	VPSHUFD(Imm(0xb1), reg.X0, reg.X1)
	VPADDD(reg.X1, reg.X0, reg.X0)
	VPXOR(reg.X2, reg.X2, reg.X2)
	VPCMPEQD(reg.X2, reg.X0, reg.X2)
	VCVTDQ2PS(reg.X0, reg.X0)
	VMOVD(levels, reg.X15)
	VCVTDQ2PS(reg.X15, reg.X1)
	VDIVSS(reg.X0, reg.X1, reg.X1)
	VPANDN(reg.X1, reg.X2, reg.X1) // 0 if there is no length
	VBROADCASTSS(reg.X1, scale)
	VPBROADCASTD(reg.X15, top)
	VPBROADCASTQ(reg.X12, e0)
	VPBROADCASTQ(reg.X13, d)
	few := GP32()
	MOVL(masks.Offset(lane), few) // of the ninth pixel
	TESTL(few, few)
	JZ(LabelRef("assignFew"))
	assignRest(4, pix, weights, masks, index, sums)
	Label("assignFew")
	assignRest(2, pix, weights, masks, index, sums)
}

// assignRest does the rest of assign for n registers of four pixels.
func assignRest(n int, pix, weights, masks, index, sums Mem) {
	assignIndices(n, pix, index)
	assignWeights(n, weights, masks, sums)
	assignErrors(n, pix, masks, sums)
}

// assignIndices leaves the differences from the first endpoint in Y0 to Y3 and the indices in Y4 and Y5, and stores these.
func assignIndices(n int, pix, index Mem) {
	e0, d, scale, top := y(12), y(13), reg.Y14, reg.Y15
	for k := range n { // Y0 to Y3: pixels minus e0; Y4 to Y7: their dot products
		VMOVDQU(pix.Offset(k*lane), y(k))
		VPSUBW(e0, y(k), y(k))
		VPMADDWD(d, y(k), y(4+k))
	}
	VPHADDD(y(5), y(4), y(4))
	if n > 2 {
		VPHADDD(y(7), y(6), y(5))
	}
	half7 := y(7)
	VPCMPEQD(half7, half7, half7)
	VPSRLD(Imm(26), half7, half7)
	VPSLLD(Imm(24), half7, half7)
	VPXOR(y(6), y(6), y(6))
	for k := range n / 2 { // Y4 and Y5: indices
		at := y(4 + k)
		VPERMQ(Imm(0xd8), at, at)
		VCVTDQ2PS(at, at)
		VMULPS(scale, at, at)
		VADDPS(half7, at, at)
		VCVTTPS2DQ(at, at)
		VPMAXSD(y(6), at, at)
		VPMINSD(top, at, at)
	}
	if n == 2 {
		VPXOR(y(5), y(5), y(5))
	}
	VPACKUSDW(y(5), y(4), y(6))
	VPERMQ(Imm(0xd8), y(6), y(6))
	VEXTRACTI128(Imm(1), y(6), reg.X7)
	VPACKUSWB(reg.X7, reg.X6, reg.X6)
	VMOVDQU(reg.X6, index)
}

// assignWeights turns the indices in Y4 and Y5 to weights, and stores the sums of these and of their squares.
func assignWeights(n int, weights, masks, sums Mem) {
	VMOVDQU(weights, reg.Y14)
	VMOVDQU(weights.Offset(lane), reg.Y15)
	for k := range n / 2 { // Y4 and Y5: weights, 0 beyond the last pixel
		VPERMD(reg.Y14, y(4+k), y(6))
		VPERMD(reg.Y15, y(4+k), y(7))
		VPSLLD(Imm(28), y(4+k), y(4+k))
		VBLENDVPS(y(4+k), y(7), y(6), y(4+k))
		VPAND(masks.Offset(k*lane), y(4+k), y(4+k))
	}
	VPADDD(y(5), y(4), y(6))
	VPMADDWD(y(4), y(4), y(7))
	if n > 2 {
		VPMADDWD(y(5), y(5), y(8))
		VPADDD(y(8), y(7), y(7))
	}
	across(reg.Y6, reg.X6, reg.X8)
	VMOVD(reg.X6, sums)
	across(reg.Y7, reg.X7, reg.X8)
	VMOVD(reg.X7, sums.Offset(4))
}

// assignErrors stores the sums of weights times pixels, and returns the error.
func assignErrors(n int, pix, masks, sums Mem) {
	d := y(13)
	errs, wp := y(10), y(11)
	VPXOR(errs, errs, errs)
	VPXOR(wp, wp, wp)
	VPCMPEQW(y(9), y(9), y(9)) // 32 in each word
	VPSRLW(Imm(15), y(9), y(9))
	VPSLLW(Imm(5), y(9), y(9))
	for k := range n / 2 {
		VPSLLD(Imm(16), y(4+k), y(6))
		VPOR(y(6), y(4+k), y(4+k))
	}
	for k := range n {
		VMOVDQU(masks.Offset((6+k%2)*lane), y(6)) // selects the weights of these pixels
		VPERMD(y(4+k/2), y(6), y(6))
		VPMULLW(pix.Offset(k*lane), y(6), y(7))
		VPADDW(y(7), wp, wp)
		VPMULLW(d, y(6), y(6))
		VPADDW(y(9), y(6), y(6))
		VPSRAW(Imm(6), y(6), y(6))
		VPSUBW(y(6), y(k), y(6))
		VPAND(masks.Offset((2+k)*lane), y(6), y(6))
		VPMADDWD(y(6), y(6), y(6))
		VPADDD(y(6), errs, errs)
	}
	VEXTRACTI128(Imm(1), wp, reg.X6)
	VPMOVZXWD(reg.X6, y(6))
	VPMOVZXWD(reg.X11, y(7))
	VPADDD(y(7), y(6), y(6))
	VEXTRACTI128(Imm(1), y(6), reg.X7)
	VPADDD(reg.X7, reg.X6, reg.X6)
	VMOVDQU(reg.X6, sums.Offset(8))
	across(errs, reg.X10, reg.X8)
	err := GP32()
	VMOVD(reg.X10, err)
	VZEROUPPER()
	Store(err, ReturnIndex(0))
	RET()
}

// across adds the eight numbers of a register, with the sum in the lowest of its half.
func across(all, low, free reg.VecPhysical) {
	VEXTRACTI128(Imm(1), all, free)
	VPADDD(free, low, low)
	VPSHUFD(Imm(0x4e), low, free)
	VPADDD(free, low, low)
	VPSHUFD(Imm(0xb1), low, free)
	VPADDD(free, low, low)
}

// Vectors of a mode's table for round, each for four channels of both endpoints.
const (
	scales = iota // from 8 bits
	steps         // 1 if there is a parity bit
	tops
	ups
	downs
	drops
	used // all ones for existing channels
)

// round writes a function that does the same as mode7.round, for all channels of both endpoints at once.
func round() {
	TEXT("roundLanes", NOSPLIT, "func(mode *uint32, both *uint32, ends *float32, q *float32, parities uint32, stored *uint8, shown *int32)")
	Doc("roundLanes finds stored endpoints, as mode7.round does. Behind stored, which is eight, are the two parities.")
	mode, both := Mem{Base: Load(Param("mode"), GP64())}, Load(Param("both"), GP64())
	ends, q := Mem{Base: Load(Param("ends"), GP64())}, Mem{Base: Load(Param("q"), GP64())}
	parities := GP32()
	Load(Param("parities"), parities)
	stored, shown := Mem{Base: Load(Param("stored"), GP64())}, Mem{Base: Load(Param("shown"), GP64())}
	memory := AllocLocal(16 * lane)
	values := func(p, side int) Mem { return memory.Offset((2*p + side) * lane) }   // decoded values
	offs := func(p, side int) Mem { return memory.Offset((4 + 2*p + side) * lane) } // distances from the wanted values
	costs := func(p, side int) Mem { return memory.Offset((8 + 2*p + side) * lane) }
	cross := func(p, side int) Mem { return memory.Offset((12 + 2*p + side) * lane) }
	x, zero, top, ac, by := y(8), y(9), y(10), y(11), y(12)
	VMOVUPS(ends, x)
	VPXOR(zero, zero, zero)
	VMOVDQU(mode.Offset(tops*lane), top)
	VBROADCASTSS(q.Offset(8), ac)
	VBROADCASTSS(q, reg.Y0)
	VBLENDPS(Imm(0x0f), reg.Y0, ac, ac)
	VBROADCASTSS(q.Offset(4), by)
	VMULPS(mode.Offset(scales*lane), x, reg.Y7)
	VCVTTPS2DQ(reg.Y7, reg.Y7)
	roundSides(mode, values, offs, costs, cross)
	parityCosts(parities, costs, cross, offs, mode.Offset(used*lane))
	roundChoose(parities)
	second, chosen := reg.X2, reg.X3
	best := GP64()
	VMOVD(chosen, best.As32())
	VINSERTI128(Imm(1), second, reg.Y1, reg.Y9)
	for p := range 2 {
		VMOVDQU(values(p, 0), y(p))
		VBLENDVPS(reg.Y9, values(p, 1), y(p), y(p))
	}
	at := GP64()
	MOVQ(best, at)
	SHLQ(Imm(5), at)
	VMOVDQU(Mem{Base: both, Index: at, Scale: 1}, reg.Y2)
	VBLENDVPS(reg.Y2, reg.Y1, reg.Y0, reg.Y0)
	VPAND(mode.Offset(used*lane), reg.Y0, reg.Y0)
	VMOVDQU(reg.Y0, shown)
	VPSRLVD(mode.Offset(drops*lane), reg.Y0, reg.Y0)
	VEXTRACTI128(Imm(1), reg.Y0, reg.X1)
	VPACKUSDW(reg.X1, reg.X0, reg.X0)
	VPACKUSWB(reg.X0, reg.X0, reg.X0)
	VMOVQ(reg.X0, stored)
	MOVQ(best, at)
	ANDQ(Imm(1), at)
	MOVB(at.As8(), stored.Offset(8))
	SHRQ(Imm(1), best)
	MOVB(best.As8(), stored.Offset(9))
	VZEROUPPER()
	RET()
}

// roundSides stores the values below and above the wanted ones, for both parities, and what they cost.
func roundSides(mode Mem, values, offs, costs, cross func(p, side int) Mem) {
	x, zero, top, ac, by := y(8), y(9), y(10), y(11), y(12)
	for p := range 2 {
		below, above, one := reg.Y0, reg.Y1, reg.Y2
		VPCMPEQD(one, one, one)
		VPSRLD(Imm(31), one, one)
		if p == 1 {
			VPSUBD(one, reg.Y7, below)
		} else {
			VMOVDQA(reg.Y7, below)
		}
		VPSRAVD(mode.Offset(steps*lane), below, below)
		VPMAXSD(zero, below, below)
		VPMINSD(top, below, below)
		VPADDD(one, below, above)
		VPMINSD(top, above, above)
		for side, v := range []reg.VecPhysical{below, above} {
			VPSLLVD(mode.Offset(steps*lane), v, v)
			if p == 1 {
				VPOR(one, v, v)
			}
			VPSRLVD(mode.Offset(downs*lane), v, reg.Y3)
			VPSLLVD(mode.Offset(ups*lane), v, v)
			VPOR(reg.Y3, v, v)
			VMOVDQU(v, values(p, side))
			VCVTDQ2PS(v, v)
			VSUBPS(x, v, v)
			VMOVUPS(v, offs(p, side))
			VMULPS(v, ac, reg.Y3)
			VMULPS(v, reg.Y3, reg.Y3)
			VMOVUPS(reg.Y3, costs(p, side))
			VMULPS(v, by, reg.Y3)
			VMOVUPS(reg.Y3, cross(p, side))
		}
	}
}

// roundChoose finds the parities that cost least: the sides of both endpoints to X1 and X2, the parities to X3.
func roundChoose(parities reg.Register) {
	least, first, second, chosen, better := reg.X0, reg.X1, reg.X2, reg.X3, reg.X4
	bits := GP32()
	MOVL(U32(0x7f7fffff), bits)
	VMOVD(bits, least)
	for _, v := range []reg.VecPhysical{first, second, chosen} { // the choice: all ones for the upper side
		VPXOR(v, v, v)
	}
	for p := range 4 {
		skip := fmt.Sprintf("roundSkip%d", p)
		TESTL(U32(1<<p), parities)
		JZ(LabelRef(skip))
		cost, side0, side1 := reg.X13, reg.X14, reg.X15
		if p == 1 || p == 2 {
			cost, side0, side1 = reg.X8, reg.X9, reg.X10
		}
		if p > 1 {
			VEXTRACTI128(Imm(1), cost.AsY(), cost)
			VEXTRACTI128(Imm(1), side0.AsY(), side0)
			VEXTRACTI128(Imm(1), side1.AsY(), side1)
		}
		VCMPPS(Imm(1), least, cost, better) // a branch would often be predicted wrongly
		VPSHUFD(Imm(0), better, better)
		VBLENDVPS(better, cost, least, least)
		VBLENDVPS(better, side0, first, first)
		VBLENDVPS(better, side1, second, second)
		MOVL(U32(p), bits)
		VMOVD(bits, reg.X6)
		VBLENDVPS(better, reg.X6, chosen, chosen)
		Label(skip)
	}
}

// parityCosts computes the least costs of parities, the sums over the channels, and for which sides of both endpoints: of parities 0
// and 3 in the halves of Y13 to Y15, and of parities 1 and 2, if they are allowed, in those of Y8 to Y10.
func parityCosts(parities reg.Register, costs, cross, offs func(p, side int) Mem, used Mem) {
	for side := range 2 { // of the first endpoint: costs in Y0 and Y1, crosses in Y2 and Y3; of the second: Y4 and Y5, distances in Y6 and Y7
		for i, from := range []func(p, side int) Mem{costs, cross} {
			VMOVDQU(from(0, side), y(2*i+side).AsX())
			VINSERTI128(Imm(1), from(1, side), y(2*i+side), y(2*i+side))
		}
		for i, from := range []func(p, side int) Mem{costs, offs} {
			VMOVDQU(from(0, side).Offset(16), y(4+2*i+side).AsX())
			VINSERTI128(Imm(1), from(1, side).Offset(16), y(4+2*i+side), y(4+2*i+side))
		}
	}
	for pass := range 2 {
		least, side0, side1 := reg.Y13, reg.Y14, reg.Y15
		if pass == 1 {
			TESTL(U32(0b0110), parities)
			JZ(LabelRef("roundCosts"))
			for i := range 4 {
				VPERM2I128(Imm(1), y(i), y(i), y(i))
			}
			least, side0, side1 = reg.Y8, reg.Y9, reg.Y10
		}
		v, free := reg.Y11, reg.Y12
		sum := func(s0, s1 int, to reg.VecPhysical) {
			VADDPS(y(4+s1), y(s0), to)
			VMULPS(y(6+s1), y(2+s0), free)
			VADDPS(free, to, to)
		}
		less := func(m reg.VecPhysical) { // m is set where v is less than least, which becomes v there
			VCMPPS(Imm(1), least, v, m)
			VBLENDVPS(m, v, least, least)
		}
		sum(0, 0, least)
		sum(1, 0, v)
		less(side0)
		sum(0, 1, v)
		less(side1)
		VPANDN(side0, side1, side0)
		sum(1, 1, v)
		less(free)
		VPOR(free, side0, side0)
		VPOR(free, side1, side1)
		VBROADCASTF128(used, free)
		VPAND(free, least, least)
		VPSHUFD(Imm(0xe5), least, v)
		VADDPS(v, least, free)
		VPSHUFD(Imm(0xe6), least, v)
		VADDPS(v, free, free)
		VPSHUFD(Imm(0xe7), least, v)
		VADDPS(v, free, least)
	}
	Label("roundCosts")
}
