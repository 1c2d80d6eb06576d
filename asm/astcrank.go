package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// rank writes a function that finds the modes with an expected error below a limit: for each shape, 16 modes by the
// range of their weights.
func rank() {
	TEXT("rankLanes", NOSPLIT,
		"func(spread, share, steps, noise *float32, shapes int, values, extra, limit float32, id uint64, found *uint64) int")
	Doc("rankLanes writes the keys of the modes with an error below limit, as encoder.rankWay does, and returns their number.")
	spread, share, steps := pointer("spread"), pointer("share"), pointer("steps")
	noise, shapes, found := pointer("noise"), Load(Param("shapes"), GP64()), pointer("found")
	id := Load(Param("id"), GP64())
	values, extra, limit := reg.Y15, reg.Y14, reg.Y13
	broadcast("values", values)
	broadcast("extra", extra)
	broadcast("limit", limit)
	VMOVUPS(steps, reg.Y11)
	VMOVUPS(steps.Offset(lane), reg.Y12)
	memory := AllocLocal(2 * lane)
	hits, high, bit, rest, key, first := GP32(), GP32(), GP64(), GP32(), GP64(), GP64()
	MOVQ(found.Base, first)
	Label("rankNext")
	VMOVSS(spread, reg.X0)
	VADDSS(reg.X14, reg.X0, reg.X1)
	VUCOMISS(reg.X13, reg.X1)
	JAE(LabelRef("rankSkip"))
	VBROADCASTSS(reg.X0, reg.Y0)
	VBROADCASTSS(share, reg.Y1)
	for half, to := range []reg.Register{hits, high} {
		err, t := y(2+2*half), y(3+2*half)
		VMULPS(reg.Y1, []reg.VecPhysical{reg.Y11, reg.Y12}[half], err)
		VADDPS(err, reg.Y0, err)
		VMULPS(noise.Offset(lane*half), values, t)
		VADDPS(t, err, err)
		VADDPS(extra, err, err)
		VCMPPS(Imm(1), limit, err, t)
		VMOVMSKPS(t, to)
	}
	SHLL(Imm(8), high)
	ORL(high, hits)
	JZ(LabelRef("rankSkip"))
	VMOVUPS(reg.Y2, memory)
	VMOVUPS(reg.Y4, memory.Offset(lane))
	Label("rankHit")
	BSFL(hits, bit.As32())
	MOVL(Mem{Base: memory.Base, Disp: memory.Disp, Index: bit, Scale: 4}, key.As32())
	SHLQ(Imm(32), key)
	SHLQ(Imm(4), bit)
	ORQ(bit, key)
	ORQ(id, key)
	MOVQ(key, found)
	ADDQ(Imm(8), found.Base)
	LEAL(Mem{Base: hits, Disp: -1}, rest)
	ANDL(rest, hits)
	JNZ(LabelRef("rankHit"))
	Label("rankSkip")
	ADDQ(Imm(4), spread.Base)
	ADDQ(Imm(4), share.Base)
	ADDQ(U32(1<<8), id)
	ADDQ(Imm(2*lane), noise.Base)
	DECQ(shapes)
	JNZ(LabelRef("rankNext"))
	VZEROUPPER()
	SUBQ(first, found.Base)
	SHRQ(Imm(3), found.Base)
	Store(found.Base, ReturnIndex(0))
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
