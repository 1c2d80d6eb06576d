package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func astc() {
	loadTexels()
	splitTexels()
	quantize()
	infill()
	weigh()
	rest()
	direct()
	sumTexels()
	rank()
	weightSteps()
	rough()
	resemble()
	pick()
	project()
	mul()
	extremes()
	scaleTexels()
	near()
}

// maxTexels is the most texels of a block, and the distance between two channels of texels.
const maxTexels = 144

func pointer(name string) Mem { return Mem{Base: Load(Param(name), GP64())} }

// loadTexels writes a function that widens the bytes of texels, and finds their sums: two registers for each texel, which are
// products of a register of factors and another one.
func loadTexels() {
	factors := GLOBL("loadFactors", RODATA|NOPTR) // the bytes of a texel by double word; 4 is none
	none := uint8(4)
	for i, row := range [4][8]uint8{
		{0, 1, 2, 3, 0, 0, 0, 0}, {none, none, none, none, 0, 1, 2, 3},
		{1, 1, 1, 2, 2, 3, none, none}, {1, 2, 3, 2, 3, 3, none, none},
	} {
		for k, from := range row {
			v := uint32(0x80808000) | uint32(from)
			if from == none {
				v = 0x80808080
			}
			DATA(lane*i+4*k, U32(v))
		}
	}
	for k, v := range [16]uint32{1, 1, 1, 1, 14: 1} { // ones in place of missing factors
		DATA(4*lane+4*k, U32(v))
	}
	TEXT("loadLanes", NOSPLIT, "func(texels *uint8, n int, texel *int32, value *float32, moments, all *int32)")
	Doc("loadLanes fills out what encoder.load has of each texel, and their sums.")
	texels, texel, value := pointer("texels"), pointer("texel"), pointer("value")
	n, moments, all := Load(Param("n"), GP64()), pointer("moments"), pointer("all")
	for i := range 6 {
		VMOVDQU(factors.Offset(lane*i), y(8+i))
	}
	VPXOR(reg.Y4, reg.Y4, reg.Y4)
	VPXOR(reg.Y5, reg.Y5, reg.Y5)
	Label("loadNext")
	VPBROADCASTD(texels, reg.Y0)
	for half := range 2 {
		VPSHUFB(y(8+2*half), reg.Y0, reg.Y1)
		VPSHUFB(y(9+2*half), reg.Y0, reg.Y2)
		if half == 0 {
			VMOVDQU(reg.X1, texel)
			VCVTDQ2PS(reg.X1, reg.X3)
			VMOVUPS(reg.X3, value)
		} else {
			VPOR(reg.Y13, reg.Y1, reg.Y1)
		}
		VPOR(y(12+half), reg.Y2, reg.Y2)
		VPMADDWD(reg.Y1, reg.Y2, reg.Y2)
		VMOVDQU(reg.Y2, moments.Offset(lane*half))
		VPADDD(reg.Y2, y(4+half), y(4+half))
	}
	ADDQ(Imm(4), texels.Base)
	ADDQ(Imm(16), texel.Base)
	ADDQ(Imm(16), value.Base)
	ADDQ(Imm(64), moments.Base)
	DECQ(n)
	JNZ(LabelRef("loadNext"))
	VMOVDQU(reg.Y4, all)
	VMOVDQU(reg.Y5, all.Offset(lane))
	VZEROUPPER()
	RET()
}

// splitTexels writes a function that splits texels by channel, eight at once, to words and to floats.
func splitTexels() {
	TEXT("splitLanes", NOSPLIT, "func(texels *uint8, groups int, words *int16, channels *float32)")
	Doc("splitLanes fills out the channels of eight texels in each group.")
	texels, words, channels := pointer("texels"), pointer("words"), pointer("channels")
	groups := Load(Param("groups"), GP64())
	mask := reg.Y4
	VPCMPEQD(mask, mask, mask)
	VPSRLD(Imm(24), mask, mask)
	Label("splitNext")
	VMOVDQU(texels, reg.Y0)
	for c := range 4 {
		VPAND(mask, reg.Y0, reg.Y1)
		VCVTDQ2PS(reg.Y1, reg.Y2)
		VMOVUPS(reg.Y2, channels.Offset(c*4*maxTexels))
		VEXTRACTI128(Imm(1), reg.Y1, reg.X2)
		VPACKUSDW(reg.X2, reg.X1, reg.X1)
		VMOVDQU(reg.X1, words.Offset(c*2*maxTexels))
		VPSRLD(Imm(8), reg.Y0, reg.Y0)
	}
	ADDQ(Imm(lane), texels.Base)
	ADDQ(Imm(16), words.Base)
	ADDQ(Imm(lane), channels.Base)
	DECQ(groups)
	JNZ(LabelRef("splitNext"))
	VZEROUPPER()
	RET()
}

// quantize writes a function that stretches numbers to 0..64, eight at once, and looks them up in a table of bytes. The numbers
// are padded by copies of any of them.
func quantize() {
	TEXT("quantizeLanes", NOSPLIT, "func(grid *float32, groups int, near, out *uint8)")
	Doc("quantizeLanes does the same as shape.quantize, for eight places in each group.")
	g, near, out := pointer("grid"), pointer("near"), pointer("out")
	groups := Load(Param("groups"), GP64())
	low, span, scale, zero, half, most := reg.Y0, reg.Y1, reg.Y1, reg.Y3, reg.Y9, reg.Y7
	at, left, bits := GP64(), GP64(), GP32()
	constant := func(v uint32, to reg.VecPhysical) {
		MOVL(U32(v), bits)
		VMOVD(bits, to.AsX())
		VPBROADCASTD(to.AsX(), to)
	}
	VMOVUPS(g, low)
	VMOVAPS(low, span)
	MOVQ(g.Base, at)
	MOVQ(groups, left)
	Label("quantizeRange")
	VMOVUPS(Mem{Base: at}, reg.Y2)
	VMINPS(reg.Y2, low, low)
	VMAXPS(reg.Y2, span, span)
	ADDQ(Imm(lane), at)
	DECQ(left)
	JNZ(LabelRef("quantizeRange"))
	for i, fold := range []func(...Op){func(o ...Op) { VMINPS(o[0], o[1], o[2]) }, func(o ...Op) { VMAXPS(o[0], o[1], o[2]) }} {
		VPERM2F128(Imm(1), y(i), y(i), reg.Y2)
		fold(reg.Y2, y(i), y(i))
		for _, order := range []uint64{0x4e, 0xb1} {
			VPERMILPS(Imm(order), y(i), reg.Y2)
			fold(reg.Y2, y(i), y(i))
		}
	}
	VXORPS(zero, zero, zero)
	VMAXPS(zero, low, low)
	constant(0x3f800000, reg.Y2) // 1
	VMINPS(reg.Y2, span, span)
	VSUBPS(low, span, span)
	constant(0x358637bd, reg.Y2) // 1e-6
	VCMPPS(Imm(1), span, reg.Y2, reg.Y2)
	constant(0x42800000, most) // 64
	VDIVPS(span, most, scale)
	VANDPS(reg.Y2, scale, scale)
	constant(0x3f000000, half) // 1/2
	for k := range 4 {
		VBROADCASTI128(near.Offset(16*k), y(10+k))
	}
	step, past, last := reg.Y14, reg.Y15, reg.Y6
	constant(0x10101010, step)
	constant(0x70707070, past) // moves what is beyond 15 to where VPSHUFB returns 0
	constant(0x40404040, last) // 64, whose value is 64
	Label("quantizeNext")
	v, t, sum := reg.Y2, reg.X4, reg.X5
	VMOVUPS(g, v)
	VSUBPS(low, v, v)
	VMULPS(scale, v, v)
	VMAXPS(zero, v, v)
	VMINPS(most, v, v)
	VADDPS(half, v, v)
	VCVTTPS2DQ(v, v)
	VEXTRACTI128(Imm(1), v, t)
	VPACKSSDW(t, reg.X2, reg.X2)
	VPACKUSWB(reg.X2, reg.X2, reg.X2)
	VPAND(reg.X6, reg.X2, sum)
	for k := range 4 {
		if k > 0 {
			VPSUBB(reg.X14, reg.X2, reg.X2)
		}
		VPADDUSB(reg.X15, reg.X2, t)
		VPSHUFB(t, y(10+k).AsX(), t)
		VPOR(t, sum, sum)
	}
	VMOVQ(sum, out)
	ADDQ(Imm(lane), g.Base)
	ADDQ(Imm(8), out.Base)
	DECQ(groups)
	JNZ(LabelRef("quantizeNext"))
	VZEROUPPER()
	RET()
}

// infill writes a function that interpolates the weights of a grid to texels, 16 at once. Up to four registers hold the
// weights. For 16 texels, the table has the indices of the first two weights of each, once for each register of
// weights, with 0x80 for weights in another register; the factors of the two, in sixteenths; and the same for the other
// two weights.
func infill() {
	TEXT("infillLanes", NOSPLIT, "func(weights, table *uint8, groups, tables int, out *int16)")
	Doc("infillLanes gives the weights of 16 texels in each group, as shape.infill does.")
	weights, table, out := pointer("weights"), pointer("table"), pointer("out")
	groups, tables := Load(Param("groups"), GP64()), Load(Param("tables"), GP64())
	kept := []reg.VecPhysical{reg.Y8, reg.Y9, reg.Y10, reg.Y11}
	for k, to := range kept {
		VBROADCASTI128(weights.Offset(16*k), to)
	}
	eight := reg.Y12
	VPCMPEQW(eight, eight, eight)
	VPSRLW(Imm(15), eight, eight)
	VPSLLW(Imm(3), eight, eight)
	Label("infillNext")
	for half := range 2 {
		done := fmt.Sprintf("infillDone%d", half)
		for k, from := range kept {
			if k == 0 {
				VMOVDQU(table, reg.Y2)
				VPSHUFB(reg.Y2, from, y(half))
			} else {
				CMPQ(tables, Imm(uint64(k)))
				JLE(LabelRef(done))
				VMOVDQU(table, reg.Y2)
				VPSHUFB(reg.Y2, from, reg.Y2)
				VPOR(reg.Y2, y(half), y(half))
			}
			ADDQ(Imm(lane), table.Base)
		}
		Label(done)
		VPMADDUBSW(table, y(half), y(half))
		ADDQ(Imm(lane), table.Base)
	}
	VPADDW(reg.Y1, reg.Y0, reg.Y0)
	VPADDW(eight, reg.Y0, reg.Y0)
	VPSRLW(Imm(4), reg.Y0, reg.Y0)
	VMOVDQU(reg.Y0, out)
	ADDQ(Imm(lane), out.Base)
	DECQ(groups)
	JNZ(LabelRef("infillNext"))
	VZEROUPPER()
	RET()
}

// weigh writes a function that sums the texels of a partition for their weights, 16 at once.
func weigh() {
	TEXT("weighLanes", NOSPLIT, "func(spread, words *int16, part *uint8, partition, groups int, out *int32)")
	Doc("weighLanes sums the texels of a partition, 16 in each group, as encoder.weigh does.")
	spread, words, part, out := pointer("spread"), pointer("words"), pointer("part"), pointer("out")
	partition, groups := Load(Param("partition"), GP64()), Load(Param("groups"), GP64())
	for i := range 6 {
		VPXOR(y(i), y(i), y(i))
	}
	VMOVQ(partition, reg.X6)
	VPBROADCASTW(reg.X6, reg.Y6)
	ones, w, t := reg.Y7, reg.Y8, reg.Y9
	VPCMPEQW(ones, ones, ones)
	VPSRLW(Imm(15), ones, ones)
	Label("weighNext")
	VPMOVZXBW(part, w)
	VPCMPEQW(reg.Y6, w, w)
	VPAND(spread, w, w)
	for c := range 4 {
		VPMADDWD(words.Offset(c*2*maxTexels), w, t)
		VPADDD(t, y(c), y(c))
	}
	VPMADDWD(ones, w, t)
	VPADDD(t, y(4), y(4))
	VPMADDWD(w, w, t)
	VPADDD(t, y(5), y(5))
	ADDQ(Imm(16), part.Base)
	ADDQ(Imm(lane), spread.Base)
	ADDQ(Imm(lane), words.Base)
	DECQ(groups)
	JNZ(LabelRef("weighNext"))
	VPHADDD(y(1), y(0), y(0))
	VPHADDD(y(3), y(2), y(2))
	VPHADDD(y(2), y(0), y(0))
	VEXTRACTI128(Imm(1), y(0), reg.X1)
	VPADDD(reg.X1, reg.X0, reg.X0)
	VMOVDQU(reg.X0, out)
	VPHADDD(y(5), y(4), y(4))
	VPHADDD(y(4), y(4), y(4))
	VEXTRACTI128(Imm(1), y(4), reg.X5)
	VPADDD(reg.X5, reg.X4, reg.X4)
	VMOVQ(reg.X4, out.Offset(16))
	VZEROUPPER()
	RET()
}

// rest writes a function that returns the distances of texels from the positions of their weights, along the lines of
// their partitions, eight at once. The table has a row for each channel's start, then for each channel's length, then
// the square of all lengths. A row is indexed by partition.
func rest() {
	TEXT("restLanes", NOSPLIT, "func(channels *float32, spread *int16, part *uint8, table *[9][8]float32, groups int, rest *float32)")
	Doc("restLanes finds what encoder.settle does for eight texels in each group.")
	channels, spread, part := pointer("channels"), pointer("spread"), pointer("part")
	table, groups, out := pointer("table"), Load(Param("groups"), GP64()), pointer("rest")
	rows := []reg.VecPhysical{reg.Y7, reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15}
	for i, r := range rows {
		VMOVUPS(table.Offset(i*lane), r)
	}
	at, sum := reg.Y0, reg.Y3
	Label("restNext")
	VPMOVZXBD(part, at)
	for c := range 4 {
		VPERMPS(rows[c], at, reg.Y1)
		VMOVUPS(channels.Offset(c*4*maxTexels), reg.Y2)
		VSUBPS(reg.Y1, reg.Y2, reg.Y1)
		VPERMPS(rows[4+c], at, reg.Y2)
		if c == 0 {
			VMULPS(reg.Y2, reg.Y1, sum)
		} else {
			VMULPS(reg.Y2, reg.Y1, reg.Y1)
			VADDPS(reg.Y1, sum, sum)
		}
	}
	VPMOVSXWD(spread, reg.Y1)
	VCVTDQ2PS(reg.Y1, reg.Y1)
	VPERMPS(rows[8], at, reg.Y2)
	VMULPS(reg.Y2, reg.Y1, reg.Y1)
	VSUBPS(reg.Y1, sum, sum)
	VMOVUPS(sum, out)
	ADDQ(Imm(8), part.Base)
	ADDQ(Imm(16), spread.Base)
	ADDQ(Imm(lane), channels.Base)
	ADDQ(Imm(lane), out.Base)
	DECQ(groups)
	JNZ(LabelRef("restNext"))
	VZEROUPPER()
	RET()
}

// transpose exchanges rows and columns of eight registers of eight double words. It uses eight more registers, to,
// which hold the rows at the end.
func transpose(from, to [8]reg.VecPhysical) {
	for i := range 4 { // pairs of rows
		VPUNPCKLDQ(from[2*i+1], from[2*i], to[2*i])
		VPUNPCKHDQ(from[2*i+1], from[2*i], to[2*i+1])
	}
	for i := range 2 { // fours
		a, b, c, d := to[4*i], to[4*i+1], to[4*i+2], to[4*i+3]
		VPUNPCKLQDQ(c, a, from[4*i])
		VPUNPCKHQDQ(c, a, from[4*i+1])
		VPUNPCKLQDQ(d, b, from[4*i+2])
		VPUNPCKHQDQ(d, b, from[4*i+3])
	}
	for i := range 4 {
		VPERM2I128(Imm(0x20), from[4+i], from[i], to[i])
		VPERM2I128(Imm(0x31), from[4+i], from[i], to[4+i])
	}
}

// direct writes a function that does the same as sums.direction, for eight partitions in each group. use has, for each
// channel, all ones for the partitions that use it.
func direct() {
	TEXT("directLanes", NOSPLIT, "func(s *int32, use *[4][8]uint32, groups int, out *float32)")
	Doc("directLanes finds the directions of eight partitions in each group, as sums.direction does.")
	s, use, out := pointer("s"), pointer("use"), pointer("out")
	groups := Load(Param("groups"), GP64())
	memory := AllocLocal(17 * lane)
	at := func(i int) Mem { return memory.Offset(i * lane) } // 0 to 3: x; 4 to 13: products, then the matrix; 14: n; 16: trace
	const count, trace = 14, 16
	product := func(i, j int) Mem {
		return at(4 + [4][4]int{{0, 1, 2, 3}, {1, 4, 5, 6}, {2, 5, 7, 8}, {3, 6, 8, 9}}[i][j])
	}
	low := [8]reg.VecPhysical{reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7}
	high := [8]reg.VecPhysical{reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15}
	Label("directNext")
	for half := range 2 {
		for i, r := range low {
			VMOVDQU(s.Offset(64*i+lane*half), r)
		}
		transpose(low, high)
		for i, r := range high {
			VMOVDQU(r, at(8*half+i))
		}
	}
	VMOVDQU(at(count), reg.Y8)
	VCVTDQ2PS(reg.Y8, reg.Y9)
	for i := range 4 {
		VMOVDQU(at(i), y(i))
	}
	for i := range 4 {
		for j := i; j < 4; j++ {
			VPMULLD(product(i, j), reg.Y8, reg.Y4)
			VPMULLD(y(j), y(i), reg.Y5)
			VPSUBD(reg.Y5, reg.Y4, reg.Y4)
			VCVTDQ2PS(reg.Y4, reg.Y4)
			VDIVPS(reg.Y9, reg.Y4, reg.Y4)
			VPAND(use.Offset(lane*i), reg.Y4, reg.Y4)
			VPAND(use.Offset(lane*j), reg.Y4, reg.Y4)
			VMOVUPS(reg.Y4, product(i, j))
		}
	}
	v, w := low[:4], low[4:]
	t, most, less := reg.Y8, reg.Y9, reg.Y10
	VMOVUPS(product(0, 0), t)
	for i := 1; i < 4; i++ {
		VADDPS(product(i, i), t, t)
	}
	VMOVUPS(t, at(trace))
	scale := reg.Y11
	VPCMPEQD(scale, scale, scale) // 1
	VPSRLD(Imm(25), scale, scale)
	VPSLLD(Imm(23), scale, scale)
	one := reg.Y12
	VMOVAPS(scale, one)
	VDIVPS(t, scale, scale)
	for c, r := range v {
		VMOVUPS(product(0, c), r)
	}
	VMOVUPS(product(0, 0), most)
	for i := 1; i < 4; i++ { // the row of the largest variance
		VMOVUPS(product(i, i), t)
		VCMPPS(Imm(1), t, most, less)
		VBLENDVPS(less, t, most, most)
		for c, r := range v {
			VBLENDVPS(less, product(i, c), r, r)
		}
	}
	times := func() {
		for i, r := range w {
			VMULPS(product(i, 0), v[0], r)
			for c := 1; c < 4; c++ {
				VMULPS(product(i, c), v[c], t)
				VADDPS(t, r, r)
			}
		}
	}
	for _, r := range v {
		VMULPS(scale, r, r)
	}
	for range 5 {
		times()
		for i := range v {
			VMULPS(scale, w[i], v[i])
		}
	}
	small := reg.Y13 // without variance, all used channels get the same value
	bits := GP32()
	MOVL(U32(0x3a83126f), bits) // 1e-3
	VMOVD(bits, reg.X8)
	VBROADCASTSS(reg.X8, t)
	VMOVUPS(at(trace), most)
	VCMPPS(Imm(1), t, most, small)
	for c, r := range v {
		VPAND(use.Offset(lane*c), one, t)
		VBLENDVPS(small, t, r, r)
	}
	VMULPS(v[0], v[0], most)
	for c := 1; c < 4; c++ {
		VMULPS(v[c], v[c], t)
		VADDPS(t, most, most)
	}
	VXORPS(t, t, t)
	VCMPPS(Imm(4), t, most, less) // not equal
	VSQRTPS(most, most)
	VDIVPS(most, one, most)
	VBLENDVPS(less, most, one, most)
	for _, r := range v {
		VMULPS(most, r, r)
	}
	times()
	value := reg.Y14
	VMULPS(w[0], v[0], value)
	for c := 1; c < 4; c++ {
		VMULPS(w[c], v[c], t)
		VADDPS(t, value, value)
	}
	VMOVUPS(at(trace), most)
	VSUBPS(value, most, value)
	VXORPS(t, t, t)
	VMAXPS(t, value, value)
	VPANDN(value, small, w[0]) // w is free now
	VADDPS(v[1], v[0], most)
	VADDPS(v[2], most, most)
	VCMPPS(Imm(1), t, most, less)
	VPSLLD(Imm(31), less, less)
	for _, r := range v {
		VXORPS(less, r, r)
	}
	for _, r := range w[1:] {
		VXORPS(r, r, r)
	}
	transpose(low, high)
	for i, r := range high {
		VMOVUPS(r, out.Offset(lane*i))
	}
	ADDQ(U32(lane*8), out.Base)
	ADDQ(U32(64*8), s.Base)
	DECQ(groups)
	JNZ(LabelRef("directNext"))
	VZEROUPPER()
	RET()
}

// sumTexels writes a function that adds sums of texels.
func sumTexels() {
	TEXT("sumLanes", NOSPLIT, "func(moments *int32, mask uint64, out *int32)")
	Doc("sumLanes adds the sums of those of 64 texels up that mask has a bit for.")
	moments, out := pointer("moments"), pointer("out")
	mask := Load(Param("mask"), GP64())
	VPXOR(reg.Y0, reg.Y0, reg.Y0)
	VPXOR(reg.Y1, reg.Y1, reg.Y1)
	next := GP64()
	TESTQ(mask, mask)
	JZ(LabelRef("sumDone"))
	Label("sumNext")
	BSFQ(mask, next)
	SHLQ(Imm(6), next)
	from := Mem{Base: moments.Base, Index: next, Scale: 1}
	VPADDD(from, reg.Y0, reg.Y0)
	VPADDD(from.Offset(lane), reg.Y1, reg.Y1)
	LEAQ(Mem{Base: mask, Disp: -1}, next)
	ANDQ(next, mask)
	JNZ(LabelRef("sumNext"))
	Label("sumDone")
	VMOVDQU(reg.Y0, out)
	VMOVDQU(reg.Y1, out.Offset(lane))
	VZEROUPPER()
	RET()
}

// rank writes a function that finds the modes with an expected error below a limit: for each shape, 16 modes by the
// range of their weights.
func rank() {
	TEXT("rankLanes", NOSPLIT, "func(spread, share, steps, noise *float32, shapes int, values, extra, limit float32, hits *uint16)")
	Doc("rankLanes adds to hits, for each shape, a bit for each range of weights with which the error is below limit.")
	spread, share, steps := pointer("spread"), pointer("share"), pointer("steps")
	noise, shapes, hits := pointer("noise"), Load(Param("shapes"), GP64()), pointer("hits")
	values, extra, limit := reg.Y15, reg.Y14, reg.Y13
	broadcast("values", values)
	broadcast("extra", extra)
	broadcast("limit", limit)
	VMOVUPS(steps, reg.Y11)
	VMOVUPS(steps.Offset(lane), reg.Y12)
	low, high := GP32(), GP32()
	Label("rankNext")
	VMOVSS(spread, reg.X0)
	VUCOMISS(reg.X13, reg.X0)
	JAE(LabelRef("rankSkip"))
	VBROADCASTSS(reg.X0, reg.Y0)
	VBROADCASTSS(share, reg.Y1)
	for half, to := range []reg.Register{low, high} {
		err, t := y(2+2*half), y(3+2*half)
		VMULPS(reg.Y1, []reg.VecPhysical{reg.Y11, reg.Y12}[half], err)
		VADDPS(err, reg.Y0, err)
		VMULPS(noise.Offset(lane*half), values, t)
		VADDPS(t, err, err)
		VADDPS(extra, err, err)
		VCMPPS(Imm(1), limit, err, err)
		VMOVMSKPS(err, to)
	}
	SHLL(Imm(8), high)
	ORL(high, low)
	ORW(low.As16(), hits)
	Label("rankSkip")
	ADDQ(Imm(4), spread.Base)
	ADDQ(Imm(4), share.Base)
	ADDQ(Imm(2), hits.Base)
	ADDQ(Imm(2*lane), noise.Base)
	DECQ(shapes)
	JNZ(LabelRef("rankNext"))
	VZEROUPPER()
	RET()
}

// weightSteps writes a function that looks up positions on lines in a table of 16 ranges of weights, and sums the
// results.
func weightSteps() {
	TEXT("stepLanes", NOSPLIT, "func(ideal *float32, n int, table, out *float32)")
	Doc("stepLanes sums up what a table has for places on a line, as encoder.steps does.")
	ideal, table, out := pointer("ideal"), pointer("table"), pointer("out")
	n := Load(Param("n"), GP64())
	bits, at := GP32(), GP64()
	MOVL(U32(0x43000000), bits) // 128
	VMOVD(bits, reg.X4)
	MOVL(U32(0x3f000000), bits) // 1/2
	VMOVD(bits, reg.X5)
	VXORPS(reg.Y0, reg.Y0, reg.Y0)
	VXORPS(reg.Y1, reg.Y1, reg.Y1)
	Label("stepNext")
	VMULSS(ideal, reg.X4, reg.X2)
	VADDSS(reg.X5, reg.X2, reg.X2)
	VCVTTSS2SIQ(reg.X2, at)
	ANDL(U32(255), at.As32())
	SHLQ(Imm(6), at)
	from := Mem{Base: table.Base, Index: at, Scale: 1}
	VADDPS(from, reg.Y0, reg.Y0)
	VADDPS(from.Offset(lane), reg.Y1, reg.Y1)
	ADDQ(Imm(4), ideal.Base)
	DECQ(n)
	JNZ(LabelRef("stepNext"))
	VMOVUPS(reg.Y0, out)
	VMOVUPS(reg.Y1, out.Offset(lane))
	VZEROUPPER()
	RET()
}

// rough writes a function that does the same as encoder.roughness, for a plane of up to eight by eight texels. across
// has a row for each column of the block, down one for each wave. At the end there is a register for each wave across,
// with the part that waves down do not explain.
func rough() {
	TEXT("roughLanes", NOSPLIT, "func(ideal *float32, width int, across, down *[12][12]float32, total, power, loss float32, out *float32)")
	Doc("roughLanes adds to out what a cosine transform has beyond as many waves, as encoder.roughness finds it.")
	ideal, across, down, out := pointer("ideal"), pointer("across"), pointer("down"), pointer("out")
	width := Load(Param("width"), GP64())
	memory := AllocLocal(8 * lane)
	const row = 12 * 4
	stride, left, from := GP64(), GP64(), GP64()
	MOVQ(width, stride)
	SHLQ(Imm(2), stride)
	for i := range 8 {
		VXORPS(y(i), y(i), y(i))
	}
	MOVQ(width, left)
	Label("roughAcross")
	VMOVUPS(across, reg.Y8)
	MOVQ(ideal.Base, from)
	for i := range 8 {
		VBROADCASTSS(Mem{Base: from}, reg.Y9)
		VMULPS(reg.Y8, reg.Y9, reg.Y9)
		VADDPS(reg.Y9, y(i), y(i))
		if i < 7 {
			ADDQ(stride, from)
		}
	}
	ADDQ(Imm(4), ideal.Base)
	ADDQ(Imm(row), across.Base)
	DECQ(left)
	JNZ(LabelRef("roughAcross"))
	sum := reg.Y10
	VXORPS(sum, sum, sum)
	for j := range 8 {
		VXORPS(reg.Y8, reg.Y8, reg.Y8)
		for i := range 8 {
			VBROADCASTSS(down.Offset(row*j+4*i), reg.Y9)
			VMULPS(y(i), reg.Y9, reg.Y9)
			VADDPS(reg.Y9, reg.Y8, reg.Y8)
		}
		VMULPS(reg.Y8, reg.Y8, reg.Y8)
		VADDPS(reg.Y8, sum, sum)
		VMOVUPS(sum, memory.Offset(lane*j))
	}
	low := [8]reg.VecPhysical{reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7}
	high := [8]reg.VecPhysical{reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15}
	for i, r := range low {
		VMOVUPS(memory.Offset(lane*i), r)
	}
	transpose(low, high)
	total, power, loss, zero, t := reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4
	broadcast("total", total)
	broadcast("power", power)
	broadcast("loss", loss)
	VXORPS(zero, zero, zero)
	inside := reg.Y5
	VXORPS(inside, inside, inside)
	for k, r := range high {
		VADDPS(r, inside, inside)
		VSUBPS(inside, total, t)
		VMAXPS(zero, t, t)
		VMULPS(power, t, t)
		VMULPS(loss, t, t)
		VADDPS(out.Offset(13*4*k), t, t)
		VMOVUPS(t, out.Offset(13*4*k))
	}
	VZEROUPPER()
	RET()
}

// resemble writes functions that count, for four patterns at once, the samples that do not belong to the most common
// cluster of their partition: one for two partitions, one for three. A pattern is two masks of samples.
func resemble() {
	popcount := GLOBL("popcount", RODATA|NOPTR)
	for i := range 4 {
		DATA(8*i, U64([]uint64{0x0302020102010100, 0x0403030203020201}[i%2]))
	}
	ends := GLOBL("resembleOrder", RODATA|NOPTR) // moves the bytes of the first, third, second and fourth double word to the first four
	for i, v := range []uint64{0x8080808080088000, 0x8080808080808080, 0x8080808008800080, 0x8080808080808080} {
		DATA(8*i, U64(v))
	}
	for count := 2; count <= 3; count++ {
		name := fmt.Sprintf("resemble%dLanes", count)
		TEXT(name, NOSPLIT, "func(masks, clusters *[2]uint64, samples, groups int, wrong *uint8)")
		Doc(fmt.Sprintf("%s counts for four patterns of %d partitions in each group what encoder.resemble does.", name, count))
		masks, clusters, wrong := pointer("masks"), pointer("clusters"), pointer("wrong")
		samples, groups := Load(Param("samples"), GP64()), Load(Param("groups"), GP64())
		table, low, zero, n := reg.Y15, reg.Y14, reg.Y13, reg.Y12
		VMOVDQU(popcount, table)
		VPCMPEQB(low, low, low)
		VPSRLW(Imm(12), low, low)
		VPSLLW(Imm(8), low, reg.Y0)
		VPOR(reg.Y0, low, low) // 15 in each byte
		VPXOR(zero, zero, zero)
		VMOVQ(samples, reg.X12)
		VPBROADCASTQ(reg.X12, n)
		bits := func(v, free reg.VecPhysical) { // counts the bits of each of four
			VPSRLW(Imm(4), v, free)
			VPAND(low, v, v)
			VPAND(low, free, free)
			VPSHUFB(v, table, v)
			VPSHUFB(free, table, free)
			VPADDB(free, v, v)
			VPSADBW(zero, v, v)
		}
		a1, a2 := reg.Y11, reg.Y10
		VPBROADCASTQ(clusters, a1)
		VPBROADCASTQ(clusters.Offset(8), a2)
		n0, n1, n2 := reg.Y9, reg.Y8, reg.Y7
		if count == 3 {
			VMOVDQA(a1, n1)
			bits(n1, reg.Y0)
			VMOVDQA(a2, n2)
			bits(n2, reg.Y0)
			VPSUBD(n1, n, n0)
			VPSUBD(n2, n0, n0)
		}
		next := name + "Next"
		Label(next)
		m1, m2 := reg.Y0, reg.Y1
		VMOVDQU(masks, reg.Y2)
		VPUNPCKLQDQ(masks.Offset(lane), reg.Y2, m1)
		d := reg.Y2
		if count == 2 {
			VPXOR(a1, m1, m1)
			bits(m1, reg.Y1)
			VPSUBD(m1, n, d)
			VPMINSD(m1, d, d)
		} else {
			VPUNPCKHQDQ(masks.Offset(lane), reg.Y2, m2)
			b11, b12, b21 := reg.Y2, reg.Y3, reg.Y4
			b22, t := reg.Y5, reg.Y6
			VPAND(a1, m1, b11)
			VPAND(a2, m1, b12)
			VPAND(a1, m2, b21)
			VPAND(a2, m2, b22)
			for _, v := range []reg.VecPhysical{b11, b12, b21, b22, m1, m2} {
				bits(v, t)
			}
			VPSUBD(b11, m1, m1) // b10
			VPSUBD(b12, m1, m1)
			VPSUBD(b21, m2, m2) // b20
			VPSUBD(b22, m2, m2)
			third := reg.Y6
			VPSUBD(m1, n0, third)
			VPSUBD(m2, third, third)
			VPMAXSD(b11, m1, m1)
			VPMAXSD(b12, m1, m1)
			VPMAXSD(b21, m2, m2)
			VPMAXSD(b22, m2, m2)
			VPADDD(m2, m1, m1)
			VPADDD(b21, b11, b11)
			VPSUBD(b11, n1, b11)
			VPMAXSD(b11, third, third)
			VPADDD(b22, b12, b12)
			VPSUBD(b12, n2, b12)
			VPMAXSD(b12, third, third)
			VPADDD(third, m1, m1)
			VPSUBD(m1, n, d)
		}
		VPSHUFB(ends, d, d)
		VEXTRACTI128(Imm(1), d, reg.X1)
		VPOR(reg.X1, reg.X2, reg.X2)
		VMOVD(reg.X2, wrong)
		ADDQ(Imm(2*lane), masks.Base)
		ADDQ(Imm(4), wrong.Base)
		DECQ(groups)
		JNZ(LabelRef(next))
		VZEROUPPER()
		RET()
	}
}

// pick writes a function that counts the bytes that are at most a limit, and returns which are below it and which are
// equal to it.
func pick() {
	TEXT("pickLanes", NOSPLIT, "func(wrong *uint8, limit, groups int, below, same *uint32) int")
	Doc("pickLanes returns how many of 32 bytes in each group are at most limit,",
		"with a bit for each that is below it, and for each that is the same.")
	wrong, below, same := pointer("wrong"), pointer("below"), pointer("same")
	limit, groups := Load(Param("limit"), GP64()), Load(Param("groups"), GP64())
	VMOVQ(limit, reg.X0)
	VPBROADCASTB(reg.X0, reg.Y0)
	less, equal, count := GP32(), GP32(), GP64()
	XORQ(count, count)
	Label("pickNext")
	VMOVDQU(wrong, reg.Y1)
	VPCMPEQB(reg.Y1, reg.Y0, reg.Y2)
	VPMINUB(reg.Y1, reg.Y0, reg.Y3)
	VPCMPEQB(reg.Y1, reg.Y3, reg.Y3) // at most
	VPMOVMSKB(reg.Y2, equal)
	VPMOVMSKB(reg.Y3, less)
	XORL(equal, less)
	MOVL(equal, same)
	MOVL(less, below)
	ORL(equal, less)
	POPCNTL(less, less)
	ADDQ(less.As64(), count)
	ADDQ(Imm(lane), wrong.Base)
	ADDQ(Imm(4), below.Base)
	ADDQ(Imm(4), same.Base)
	DECQ(groups)
	JNZ(LabelRef("pickNext"))
	VZEROUPPER()
	Store(count, ReturnIndex(0))
	RET()
}

// project writes a function that returns the positions of eight texels on their partitions' axes. axes has a row for
// each channel. A row is indexed by partition.
func project() {
	TEXT("projectLanes", NOSPLIT, "func(channels *float32, part *uint8, axes *[4][8]float32, groups int, ideal *float32)")
	Doc("projectLanes places eight texels in each group on their lines, as encoder.project does.")
	channels, part, axes := pointer("channels"), pointer("part"), pointer("axes")
	groups, ideal := Load(Param("groups"), GP64()), pointer("ideal")
	rows := []reg.VecPhysical{reg.Y4, reg.Y5, reg.Y6, reg.Y7}
	for i, r := range rows {
		VMOVUPS(axes.Offset(i*lane), r)
	}
	Label("projectNext")
	VPMOVZXBD(part, reg.Y0)
	for c, r := range rows {
		VPERMPS(r, reg.Y0, reg.Y1)
		to := reg.Y1
		if c == 0 {
			to = reg.Y2
		}
		VMULPS(channels.Offset(c*4*maxTexels), reg.Y1, to)
		if c > 0 {
			VADDPS(reg.Y1, reg.Y2, reg.Y2)
		}
	}
	VMOVUPS(reg.Y2, ideal)
	ADDQ(Imm(8), part.Base)
	ADDQ(Imm(lane), channels.Base)
	ADDQ(Imm(lane), ideal.Base)
	DECQ(groups)
	JNZ(LabelRef("projectNext"))
	VZEROUPPER()
	RET()
}

// mul writes a function that multiplies a vector by a matrix whose rows have up to eight registers: four registers at a
// time, or two, or one.
func mul() {
	TEXT("mulLanes", NOSPLIT, "func(matrix, v *float32, n, registers int, out *float32)")
	Doc("mulLanes sums the rows of a matrix, each times a number.")
	matrix, v, out := pointer("matrix"), pointer("v"), pointer("out")
	n, registers := Load(Param("n"), GP64()), Load(Param("registers"), GP64())
	stride, left, row, at := GP64(), GP64(), GP64(), GP64()
	MOVQ(registers, stride)
	SHLQ(Imm(5), stride)
	for size := 4; size > 0; size /= 2 {
		begin, next, done := fmt.Sprintf("mul%d", size), fmt.Sprintf("mul%dNext", size), fmt.Sprintf("mul%dDone", size)
		Label(begin)
		CMPQ(registers, Imm(uint64(size)))
		JL(LabelRef(done))
		for i := range size {
			VXORPS(y(i), y(i), y(i))
		}
		MOVQ(n, left)
		MOVQ(matrix.Base, row)
		MOVQ(v.Base, at)
		Label(next)
		VBROADCASTSS(Mem{Base: at}, reg.Y8)
		for i := range size {
			VMULPS(Mem{Base: row, Disp: i * lane}, reg.Y8, y(4+i))
			VADDPS(y(4+i), y(i), y(i))
		}
		ADDQ(Imm(4), at)
		ADDQ(stride, row)
		DECQ(left)
		JNZ(LabelRef(next))
		for i := range size {
			VMOVUPS(y(i), out.Offset(i*lane))
		}
		ADDQ(U32(uint32(size*lane)), out.Base)
		ADDQ(U32(uint32(size*lane)), matrix.Base)
		SUBQ(Imm(uint64(size)), registers)
		JMP(LabelRef(begin))
		Label(done)
	}
	VZEROUPPER()
	RET()
}

// extremes writes a function that finds the minimum and the maximum of a partition's texels.
func extremes() {
	TEXT("extremeLanes", NOSPLIT, "func(ideal *float32, part *uint8, partition, groups int, low, high *float32)")
	Doc("extremeLanes finds the least and the greatest number of a partition, of eight texels in each group.")
	ideal, part, low, high := pointer("ideal"), pointer("part"), pointer("low"), pointer("high")
	partition, groups := Load(Param("partition"), GP64()), Load(Param("groups"), GP64())
	VMOVQ(partition, reg.X4)
	VPBROADCASTD(reg.X4, reg.Y4)
	VBROADCASTSS(low, reg.Y0)
	VBROADCASTSS(high, reg.Y1)
	VMOVAPS(reg.Y0, reg.Y5)
	VMOVAPS(reg.Y1, reg.Y6)
	Label("extremeNext")
	VPMOVZXBD(part, reg.Y2)
	VPCMPEQD(reg.Y4, reg.Y2, reg.Y2)
	VMOVUPS(ideal, reg.Y3)
	VBLENDVPS(reg.Y2, reg.Y3, reg.Y5, reg.Y7)
	VMINPS(reg.Y7, reg.Y0, reg.Y0)
	VBLENDVPS(reg.Y2, reg.Y3, reg.Y6, reg.Y7)
	VMAXPS(reg.Y7, reg.Y1, reg.Y1)
	ADDQ(Imm(8), part.Base)
	ADDQ(Imm(lane), ideal.Base)
	DECQ(groups)
	JNZ(LabelRef("extremeNext"))
	for i, x := range []reg.VecPhysical{reg.X0, reg.X1} {
		fold, to := VMINPS, low
		if i == 1 {
			fold, to = VMAXPS, high
		}
		VEXTRACTF128(Imm(1), y(i), reg.X4)
		fold(reg.X4, x, x)
		VPSHUFD(Imm(0x4e), x, reg.X4)
		fold(reg.X4, x, x)
		VPSHUFD(Imm(0xb1), x, reg.X4)
		fold(reg.X4, x, x)
		VMOVSS(x, to)
	}
	VZEROUPPER()
	RET()
}

// scaleTexels writes a function that subtracts the low ends of their partitions from texels, and multiplies by a scale.
// The table has a row for each of the two, indexed by partition.
func scaleTexels() {
	TEXT("scaleLanes", NOSPLIT, "func(ideal *float32, part *uint8, table *[2][8]float32, groups int)")
	Doc("scaleLanes does in eight texels of each group what encoder.project does in the end.")
	ideal, part, table := pointer("ideal"), pointer("part"), pointer("table")
	groups := Load(Param("groups"), GP64())
	VMOVUPS(table, reg.Y0)
	VMOVUPS(table.Offset(lane), reg.Y1)
	Label("scaleNext")
	VPMOVZXBD(part, reg.Y2)
	VPERMPS(reg.Y0, reg.Y2, reg.Y3)
	VMOVUPS(ideal, reg.Y4)
	VSUBPS(reg.Y3, reg.Y4, reg.Y4)
	VPERMPS(reg.Y1, reg.Y2, reg.Y3)
	VMULPS(reg.Y3, reg.Y4, reg.Y4)
	VMOVUPS(reg.Y4, ideal)
	ADDQ(Imm(8), part.Base)
	ADDQ(Imm(lane), ideal.Base)
	DECQ(groups)
	JNZ(LabelRef("scaleNext"))
	VZEROUPPER()
	RET()
}

// near writes a function that finds the nearest of two or three centers for up to 64 texels, eight at once.
func near() {
	TEXT("nearLanes", NOSPLIT, "func(channels *float32, centers *[3][4]float32, count, groups int, masks *[2]uint64)")
	Doc("nearLanes gives the texels that are nearest to the second center, and to the third, as encoder.cluster does; eight in each group.")
	channels, centers, masks := pointer("channels"), pointer("centers"), pointer("masks")
	count, groups := Load(Param("count"), GP64()), Load(Param("groups"), GP64())
	row := []reg.VecPhysical{reg.Y4, reg.Y5, reg.Y6, reg.Y7, reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15}
	for i, r := range row {
		VBROADCASTSS(centers.Offset(4*i), r)
	}
	at := GP64() // address for the bytes of masks, written one after the other
	MOVQ(masks.Base, at)
	second, third := GP32(), GP32()
	distance := func(p int, d reg.VecPhysical) {
		for c := range 4 {
			VMOVUPS(channels.Offset(c*4*maxTexels), reg.Y3)
			VSUBPS(row[4*p+c], reg.Y3, reg.Y3)
			if c == 0 {
				VMULPS(reg.Y3, reg.Y3, d)
			} else {
				VMULPS(reg.Y3, reg.Y3, reg.Y3)
				VADDPS(reg.Y3, d, d)
			}
		}
	}
	Label("nearNext")
	distance(0, reg.Y0)
	distance(1, reg.Y1)
	VCMPPS(Imm(1), reg.Y0, reg.Y1, reg.Y2) // the second is nearer
	VMOVMSKPS(reg.Y2, second)
	CMPQ(count, Imm(3))
	JNE(LabelRef("nearTwo"))
	VBLENDVPS(reg.Y2, reg.Y1, reg.Y0, reg.Y0)
	distance(2, reg.Y1)
	VCMPPS(Imm(1), reg.Y0, reg.Y1, reg.Y2)
	VMOVMSKPS(reg.Y2, third)
	MOVB(third.As8(), Mem{Base: at, Disp: 8})
	NOTL(third)
	ANDL(third, second)
	Label("nearTwo")
	MOVB(second.As8(), Mem{Base: at})
	INCQ(at)
	ADDQ(Imm(lane), channels.Base)
	DECQ(groups)
	JNZ(LabelRef("nearNext"))
	VZEROUPPER()
	RET()
}
