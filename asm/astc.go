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
