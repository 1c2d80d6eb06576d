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
	least, first, second, chosen, better := reg.X0, reg.X1, reg.X2, reg.X3, reg.X4
	parityCosts(parities, costs, cross, offs, mode.Offset(used*lane))
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

// span writes a function that does the same as group.span, and sums the pixels. Two of four channels share half a
// register.
func span() {
	pairs := GLOBL("spanPairs", RODATA|NOPTR) // r0 g0 b0 a0 r1 g1 b1 a1 to r0 r1 g0 g1 b0 b1 a0 a1
	for i, v := range []uint64{0x0b0a030209080100, 0x0f0e07060d0c0504, 0x0b0a030209080100, 0x0f0e07060d0c0504} {
		DATA(8*i, U64(v))
	}
	apart := GLOBL("spanChannels", RODATA|NOPTR) // a channel of two pixels as double words: the lower or the upper channel
	for c := range uint64(4) {
		const none = 0x8080808080808080
		at := 0x8080_0908_8080_0100 + c*0x0000_0202_0000_0202
		for i, v := range []uint64{at, none, at, none, none, at, none, at} {
			DATA(int(c)*64+8*i, U64(v))
		}
	}
	TEXT("spanLanes", NOSPLIT, "func(pix *int16, masks *uint32, n int32, inverse float32, sum *int32, ends *float32)")
	Doc("spanLanes finds the line through pixels, as group.span does, and their sum.")
	pix, masks := Mem{Base: Load(Param("pix"), GP64())}, Mem{Base: Load(Param("masks"), GP64())}
	n, inverse := GP32(), reg.X11
	Load(Param("n"), n)
	broadcast("inverse", inverse)
	sum, ends := Mem{Base: Load(Param("sum"), GP64())}, Mem{Base: Load(Param("ends"), GP64())}
	ones := reg.Y9
	VPCMPEQW(ones, ones, ones)
	VPSRLW(Imm(15), ones, ones)
	for i := range 5 {
		VPXOR(y(i), y(i), y(i))
	}
	kept := []reg.VecPhysical{reg.Y12, reg.Y13, reg.Y14, reg.Y15}
	for k, p := range kept {
		VMOVDQU(pix.Offset(k*lane), p)
		VPAND(masks.Offset((2+k)*lane), p, p)
		VPSHUFB(pairs, p, reg.Y5)
		for i := range 4 { // rows of the sums of products
			VPSHUFD(Imm(uint64(i*0x55)), reg.Y5, reg.Y6)
			VPMADDWD(reg.Y6, reg.Y5, reg.Y6)
			VPADDD(reg.Y6, y(i), y(i))
		}
		VPMADDWD(ones, reg.Y5, reg.Y5)
		VPADDD(reg.Y5, reg.Y4, reg.Y4)
	}
	rows := []reg.VecPhysical{reg.X0, reg.X1, reg.X2, reg.X3}
	sums, count, v, most := reg.X4, reg.X5, reg.X8, reg.X9
	for i, r := range append(rows, sums) {
		VEXTRACTI128(Imm(1), y(i), reg.X6)
		VPADDD(reg.X6, r, r)
	}
	VMOVDQU(sums, sum)
	VMOVD(n, count)
	VPBROADCASTD(count, count)
	for i, r := range rows { // n times the covariance
		VPMULLD(count, r, r)
		VPSHUFD(Imm(uint64(i*0x55)), sums, reg.X6)
		VPMULLD(sums, reg.X6, reg.X6)
		VPSUBD(reg.X6, r, r)
		VCVTDQ2PS(r, r)
	}
	VMOVAPS(rows[0], v) // the row of the largest variance
	VPSHUFD(Imm(0), rows[0], most)
	for i := 1; i < 4; i++ {
		VPSHUFD(Imm(uint64(i*0x55)), rows[i], reg.X6)
		VCMPPS(Imm(1), reg.X6, most, reg.X7)
		VBLENDVPS(reg.X7, reg.X6, most, most)
		VBLENDVPS(reg.X7, rows[i], v, v)
	}
	ahead := func(from, to reg.VecPhysical) { // sums the four floats in their order, in X6, to the lowest
		VPSHUFD(Imm(0xe5), from, reg.X6)
		VADDSS(reg.X6, from, to)
		VPSHUFD(Imm(0xe6), from, reg.X6)
		VADDSS(reg.X6, to, to)
		VPSHUFD(Imm(0xe7), from, reg.X6)
		VADDSS(reg.X6, to, to)
	}
	one := reg.X5
	VPCMPEQD(one, one, one)
	VPSRLD(Imm(25), one, one)
	VPSLLD(Imm(23), one, one)
	u := reg.X7
	for range 4 {
		VPSHUFD(Imm(0), v, u)
		VMULPS(rows[0], u, u)
		for i := 1; i < 4; i++ {
			VPSHUFD(Imm(uint64(i*0x55)), v, reg.X6)
			VMULPS(rows[i], reg.X6, reg.X6)
			VADDPS(reg.X6, u, u)
		}
		VPSLLD(Imm(1), u, most) // without the sign
		VPSRLD(Imm(1), most, most)
		VPSHUFD(Imm(0x4e), most, reg.X6)
		VMAXPS(reg.X6, most, most)
		VPSHUFD(Imm(0xb1), most, reg.X6)
		VMAXPS(reg.X6, most, most)
		VPXOR(reg.X6, reg.X6, reg.X6)
		VUCOMISS(reg.X6, most)
		JE(LabelRef("spanFound"))
		VDIVPS(most, one, most)
		VMULPS(most, u, v)
	}
	VMULPS(v, v, u)
	ahead(u, most)
	VSQRTSS(most, most, most)
	VDIVSS(most, one, most)
	VPSHUFD(Imm(0), most, most)
	VMULPS(most, v, v)
	Label("spanFound")
	mean := reg.X10
	VCVTDQ2PS(sums, mean)
	VMULPS(inverse, mean, mean)
	low, high, t := reg.Y0, reg.Y1, reg.Y2
	VPXOR(low, low, low)
	VPXOR(high, high, high)
	for half := range 2 {
		for c := range 4 {
			VPSHUFB(apart.Offset(c*64), kept[2*half], reg.Y3)
			VPSHUFB(apart.Offset(c*64+32), kept[2*half+1], reg.Y4)
			VPOR(reg.Y4, reg.Y3, reg.Y3)
			VCVTDQ2PS(reg.Y3, reg.Y3)
			VPSHUFD(Imm(uint64(c*0x55)), mean, reg.X4)
			VBROADCASTSS(reg.X4, reg.Y4)
			VSUBPS(reg.Y4, reg.Y3, reg.Y3)
			VPSHUFD(Imm(uint64(c*0x55)), v, reg.X4)
			VBROADCASTSS(reg.X4, reg.Y4)
			if c == 0 {
				VMULPS(reg.Y4, reg.Y3, t)
			} else {
				VMULPS(reg.Y4, reg.Y3, reg.Y3)
				VADDPS(reg.Y3, t, t)
			}
		}
		VPERMQ(Imm(0xd8), masks.Offset(half*lane), reg.Y4)
		VPAND(reg.Y4, t, t)
		VMINPS(t, low, low)
		VMAXPS(t, high, high)
	}
	for i, extreme := range []reg.VecPhysical{reg.X0, reg.X1} {
		fold := VMINPS
		if i == 1 {
			fold = VMAXPS
		}
		VEXTRACTF128(Imm(1), y(i), reg.X4)
		fold(reg.X4, extreme, extreme)
		VPSHUFD(Imm(0x4e), extreme, reg.X4)
		fold(reg.X4, extreme, extreme)
		VPSHUFD(Imm(0xb1), extreme, reg.X4)
		fold(reg.X4, extreme, extreme)
		VMULPS(v, extreme, extreme)
		VADDPS(extreme, mean, extreme)
		VMOVUPS(extreme, ends.Offset(16*i))
	}
	VZEROUPPER()
	RET()
}

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

// Rows of a batch7 of bptc, each of eight numbers.
const (
	ends7, err7, by7, span7, args7                         = 0, 6, 7, 8, 10
	one7, half7, round7, round64of7, tiny7, most7, little7 = 11, 12, 13, 14, 15, 16, 17
	memory7                                                = 18
	levels7, step7, count7, inverse7, sum7                 = 0, 1, 2, 3, 4 // numbers of the row args7
)

// restarts has the memory of restart7.
type restarts struct {
	batch
	memory             Mem
	parities, n, count reg.Register // the bits of parities, the number of pixels, a counter
}

func (r restarts) local(i int) Mem { return r.memory.Offset(i * lane) }

// Rows of the memory.
func (r restarts) want(end, c int) Mem           { return r.local(3*end + c) }
func (r restarts) ends(end, c int) Mem           { return r.local(6 + 3*end + c) }
func (r restarts) quadric(i int) Mem             { return r.local(12 + i) }
func (r restarts) mode(i int) Mem                { return r.local(15 + i) }
func (r restarts) values(end, p, side int) Mem   { return r.local(20 + 4*end + 2*p + side) }
func (r restarts) offs(end, p, side int) Mem     { return r.local(28 + 4*end + 2*p + side) }
func (r restarts) squares(end, p, side int) Mem  { return r.local(36 + 4*end + 2*p + side) }
func (r restarts) crosses(p, side int) Mem       { return r.local(44 + 2*p + side) }
func (r restarts) costs(p int) Mem               { return r.local(48 + p) }
func (r restarts) chosen(p, end, c int) Mem      { return r.local(52 + 6*p + 3*end + c) }
func (r restarts) arg(i int, to reg.VecPhysical) { VBROADCASTSS(r.row(args7).Offset(4*i), to) }

// restart7 writes a function that does the same as batch7.restart of bptc.
func restart7() {
	TEXT("restart7", NOSPLIT, "func(batch *[95][8]float32, pix *float32, n int, mode *uint32, parities uint32, rounds int)")
	Doc("restart7 improves eight lines through the same pixels, as batch7.restart does.")
	r := restarts{batch: batchOf(), parities: GP32(), count: GP64()}
	r.memory = r.row(memory7)
	r.n = Load(Param("n"), GP64())
	mode := Mem{Base: Load(Param("mode"), GP64())}
	Load(Param("parities"), r.parities)
	rounds := Load(Param("rounds"), GP64())
	r.scale = r.local(76)
	for i := range 5 {
		VPBROADCASTD(mode.Offset(i*lane), reg.Y0)
		VMOVDQU(reg.Y0, r.mode(i))
	}
	for c := range 3 {
		first, last := reg.Y0, reg.Y1
		VBROADCASTSS(r.row(span7).Offset(4*c), first)
		VBROADCASTSS(r.row(span7+1).Offset(4*c), last)
		VADDPS(last, first, reg.Y2)
		VMULPS(r.row(half7), reg.Y2, reg.Y2)
		VSUBPS(first, last, last)
		VMULPS(r.row(by7), last, last)
		VSUBPS(last, reg.Y2, first)
		VMOVUPS(first, r.want(0, c))
		VADDPS(last, reg.Y2, last)
		VMOVUPS(last, r.want(1, c))
	}
	VMOVUPS(r.row(one7), reg.Y0)
	VXORPS(reg.Y1, reg.Y1, reg.Y1)
	VMOVUPS(reg.Y0, r.quadric(0))
	VMOVUPS(reg.Y1, r.quadric(1))
	VMOVUPS(reg.Y0, r.quadric(2))
	VMOVUPS(r.row(most7), reg.Y0)
	VMOVUPS(reg.Y0, r.row(err7))
	Label("restart7Round")
	for c := range 3 {
		r.neighbours(c)
		r.combine(c)
	}
	r.choose()
	r.pass7()
	least := reg.Y9
	VMOVUPS(r.row(err7), least)
	VCMPPS(Imm(1), least, reg.Y0, reg.Y10)
	VBLENDVPS(reg.Y10, reg.Y0, least, least)
	VMOVUPS(least, r.row(err7))
	for i := range 6 {
		VMOVUPS(r.row(ends7+i), reg.Y11)
		VBLENDVPS(reg.Y10, r.ends(i/3, i%3), reg.Y11, reg.Y11)
		VMOVUPS(reg.Y11, r.row(ends7+i))
	}
	DECQ(rounds)
	JL(LabelRef("restart7Done"))
	r.solve()
	JMP(LabelRef("restart7Round"))
	Label("restart7Done")
	VZEROUPPER()
	RET()
}

// neighbours stores the values of a channel that both endpoints may have, and what they cost.
func (r restarts) neighbours(c int) {
	ones, zero, top := reg.Y10, reg.Y11, reg.Y12
	VPCMPEQD(ones, ones, ones)
	VPSRLD(Imm(31), ones, ones)
	VPXOR(zero, zero, zero)
	VMOVDQU(r.mode(tops), top)
	for end := range 2 {
		want, near, square, cross := reg.Y0, reg.Y1, reg.Y2, reg.Y3
		VMOVUPS(r.want(end, c), want)
		VMULPS(r.mode(scales), want, near)
		VCVTTPS2DQ(near, near)
		VMOVUPS(r.quadric(2*end), square)
		VMOVUPS(r.quadric(1), cross)
		for p := range 2 {
			skip := fmt.Sprintf("restart7Without%d%d%d", c, end, p)
			TESTL(U32([2][2]int{{0b0101, 0b1010}, {0b0011, 0b1100}}[end][p]), r.parities)
			JZ(LabelRef(skip))
			below, above := reg.Y4, reg.Y5
			if p == 1 {
				VPSUBD(ones, near, below)
			} else {
				VMOVDQA(near, below)
			}
			VPSRAVD(r.mode(steps), below, below)
			VPMAXSD(zero, below, below)
			VPMINSD(top, below, below)
			VPADDD(ones, below, above)
			VPMINSD(top, above, above)
			for side, v := range []reg.VecPhysical{below, above} {
				VPSLLVD(r.mode(steps), v, v)
				if p == 1 {
					VPOR(ones, v, v)
				}
				VPSRLVD(r.mode(downs), v, reg.Y6)
				VPSLLVD(r.mode(ups), v, v)
				VPOR(reg.Y6, v, v)
				VCVTDQ2PS(v, v)
				VMOVUPS(v, r.values(end, p, side))
				VSUBPS(want, v, v)
				VMOVUPS(v, r.offs(end, p, side))
				if end == 0 {
					VMULPS(v, cross, reg.Y6)
					VMOVUPS(reg.Y6, r.crosses(p, side))
				}
				VMULPS(v, square, reg.Y6)
				VMULPS(v, reg.Y6, reg.Y6)
				VMOVUPS(reg.Y6, r.squares(end, p, side))
			}
			Label(skip)
		}
	}
}

// combine finds the best values of a channel for each pair of parities, and adds their costs.
func (r restarts) combine(c int) {
	for p := range 4 {
		skip := fmt.Sprintf("restart7Skip%d%d", c, p)
		TESTL(U32(1<<p), r.parities)
		JZ(LabelRef(skip))
		for side1 := range 2 { // the costs in Y0 and Y1 or Y4 and Y5, the lower one in Y0 or Y4, and where the second is lower in Y2 or Y6
			first, second, lower := y(4*side1), y(4*side1+1), y(4*side1+2)
			for side0, v := range []reg.VecPhysical{first, second} {
				VMOVUPS(r.squares(0, p&1, side0), v)
				VADDPS(r.squares(1, p>>1, side1), v, v)
				VMOVUPS(r.crosses(p&1, side0), reg.Y8)
				VMULPS(r.offs(1, p>>1, side1), reg.Y8, reg.Y8)
				VADDPS(reg.Y8, v, v)
			}
			VCMPPS(Imm(1), first, second, lower)
			VBLENDVPS(lower, second, first, first)
		}
		VCMPPS(Imm(1), reg.Y0, reg.Y4, reg.Y8)
		VBLENDVPS(reg.Y8, reg.Y4, reg.Y0, reg.Y0)
		VBLENDVPS(reg.Y8, reg.Y6, reg.Y2, reg.Y2)
		if c > 0 {
			VADDPS(r.costs(p), reg.Y0, reg.Y0)
		}
		VMOVUPS(reg.Y0, r.costs(p))
		for end, side := range []reg.VecPhysical{reg.Y2, reg.Y8} {
			parity := p >> end & 1
			VMOVUPS(r.values(end, parity, 0), reg.Y9)
			VBLENDVPS(side, r.values(end, parity, 1), reg.Y9, reg.Y9)
			VMOVUPS(reg.Y9, r.chosen(p, end, c))
		}
		Label(skip)
	}
}

// choose stores the endpoints of the parities that cost least.
func (r restarts) choose() {
	least, better := reg.Y6, reg.Y7
	VMOVUPS(r.row(most7), least)
	for i := range 6 {
		VMOVUPS(r.ends(i/3, i%3), y(i))
	}
	for p := range 4 {
		skip := fmt.Sprintf("restart7Worse%d", p)
		TESTL(U32(1<<p), r.parities)
		JZ(LabelRef(skip))
		VMOVUPS(r.costs(p), reg.Y8)
		VCMPPS(Imm(1), least, reg.Y8, better)
		VBLENDVPS(better, reg.Y8, least, least)
		for i := range 6 {
			VBLENDVPS(better, r.chosen(p, i/3, i%3), y(i), y(i))
		}
		Label(skip)
	}
	for i := range 6 {
		VMOVUPS(y(i), r.ends(i/3, i%3))
	}
}

// pass7 gives the pixels the nearest places on the lines. It leaves the error in Y0 and the sums in Y1 to Y5.
func (r restarts) pass7() {
	err, w, ww, zero, levels := reg.Y0, reg.Y1, reg.Y2, reg.Y11, reg.Y10
	d := []reg.VecPhysical{reg.Y6, reg.Y7, reg.Y8}
	for c := range 3 {
		VMOVUPS(r.ends(1, c), d[c])
		VSUBPS(r.ends(0, c), d[c], d[c])
	}
	VMULPS(d[0], d[0], reg.Y9)
	for c := 1; c < 3; c++ {
		VMULPS(d[c], d[c], reg.Y10)
		VADDPS(reg.Y10, reg.Y9, reg.Y9)
	}
	VMAXPS(r.row(tiny7), reg.Y9, reg.Y9)
	r.arg(levels7, levels)
	VDIVPS(reg.Y9, levels, reg.Y9)
	VMOVUPS(reg.Y9, r.scale)
	for i := range 6 {
		VXORPS(y(i), y(i), y(i))
	}
	VXORPS(zero, zero, zero)
	pix := GP64()
	MOVQ(r.pix, pix)
	MOVQ(r.n, r.count)
	Label("restart7Pixel")
	q, u, free := []reg.VecPhysical{reg.Y12, reg.Y13, reg.Y14}, reg.Y15, reg.Y9
	for c := range 3 {
		VBROADCASTSS(Mem{Base: pix}.Offset(4*c), q[c])
		VSUBPS(r.ends(0, c), q[c], q[c])
	}
	VMULPS(d[0], q[0], u)
	for c := 1; c < 3; c++ {
		VMULPS(d[c], q[c], free)
		VADDPS(free, u, u)
	}
	VMULPS(r.scale, u, u)
	VMAXPS(zero, u, u)
	VMINPS(levels, u, u)
	VADDPS(r.row(round7), u, u)
	VSUBPS(r.row(round7), u, u)
	r.arg(step7, free)
	VMULPS(free, u, u)
	VADDPS(r.row(round64of7), u, u)
	VSUBPS(r.row(round64of7), u, u)
	VADDPS(u, w, w)
	VMULPS(u, u, free)
	VADDPS(free, ww, ww)
	for c := range 3 {
		VMULPS(q[c], u, free)
		VADDPS(free, y(3+c), y(3+c))
	}
	for c := range 3 {
		VMULPS(d[c], u, free)
		VADDPS(r.row(little7), free, free)
		VADDPS(r.row(round7), free, free)
		VSUBPS(r.row(round7), free, free)
		VSUBPS(free, q[c], q[c])
		VMULPS(q[c], q[c], q[c])
	}
	VADDPS(q[1], q[0], q[0])
	VADDPS(q[2], q[0], q[0])
	VADDPS(q[0], err, err)
	ADDQ(Imm(16), pix)
	DECQ(r.count)
	JNZ(LabelRef("restart7Pixel"))
}

// solve stores the endpoints that are best for the indices of pass7, and what it costs to leave them.
func (r restarts) solve() {
	count, det, by := reg.Y6, reg.Y7, reg.Y8
	r.arg(count7, count)
	VMULPS(count, reg.Y2, det)
	VMULPS(reg.Y1, reg.Y1, reg.Y10)
	VSUBPS(reg.Y10, det, det)
	VMOVUPS(r.row(one7), by)
	VMAXPS(r.row(tiny7), det, reg.Y10)
	VDIVPS(reg.Y10, by, by)
	VXORPS(reg.Y10, reg.Y10, reg.Y10)
	VCMPPS(Imm(1), det, reg.Y10, det)
	for c := range 3 {
		first, sum, slope := reg.Y10, reg.Y11, reg.Y12
		VMOVUPS(r.ends(0, c), first)
		VMULPS(first, count, reg.Y13)
		r.arg(sum7+c, sum)
		VSUBPS(reg.Y13, sum, sum)
		VMULPS(y(3+c), count, slope)
		VMULPS(sum, reg.Y1, reg.Y13)
		VSUBPS(reg.Y13, slope, slope)
		VMULPS(by, slope, slope)
		VANDPS(det, slope, slope)
		VMULPS(slope, reg.Y1, reg.Y13)
		VSUBPS(reg.Y13, sum, sum)
		r.arg(inverse7, reg.Y13)
		VMULPS(reg.Y13, sum, sum)
		VADDPS(sum, first, first)
		VMOVUPS(first, r.want(0, c))
		VADDPS(slope, first, first)
		VMOVUPS(first, r.want(1, c))
	}
	apart := reg.Y10
	VSUBPS(reg.Y2, reg.Y1, apart)
	VSUBPS(reg.Y1, count, count)
	VSUBPS(apart, count, count)
	VMOVUPS(count, r.quadric(0))
	VADDPS(apart, apart, apart)
	VMOVUPS(apart, r.quadric(1))
	VMOVUPS(reg.Y2, r.quadric(2))
}
