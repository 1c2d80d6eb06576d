package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// pairDistances are those of the modes T and H.
var pairDistances = [8]int{3, 6, 11, 16, 23, 32, 41, 64}

// loadPixels loads 16 pixels: Y0 and Y2 have red and green, Y1 and Y3 blue and 0, of eight pixels each.
func loadPixels(pixels Mem) {
	for k := range 4 {
		VMOVDQU(pixels.Offset(k*lane), y(k))
	}
}

// starts writes a function that returns the errors of 16 pixels in the modes T and H with all distances.
//
// For each distance there are four colours, above and below each base colour. H has all of them; T has two of them and the base
// colours.
func starts() {
	table := GLOBL("startTables", RODATA|NOPTR)
	for i, d := range pairDistances {
		DATA(8*i, U64(d|d<<16|d<<32)) // for red and green, then for blue
	}
	full := words(GLOBL("startFull", RODATA|NOPTR), 0, 255, 255)

	TEXT("startLanes", NOSPLIT, "func(pixels *int16, colours *[2]uint64, costs *[8][4]int32)")
	Doc("startLanes finds the errors of all distances, in the mode H, and in T with one and the other base colour as the first.")
	pixels, colours := Mem{Base: Load(Param("pixels"), GP64())}, Mem{Base: Load(Param("colours"), GP64())}
	out, entry, n := Load(Param("costs"), GP64()), GP64(), GP64()
	loadPixels(pixels)
	LEAQ(table, entry)
	MOVQ(U32(8), n)
	rg, b, one, two := y(4), y(5), y(6), y(7)
	bases := [2]reg.VecPhysical{y(8), y(9)} // the distances from the nearer base colour
	VPBROADCASTD(colours, rg)
	VPBROADCASTD(colours.Offset(4), b)
	for k := range 2 {
		apart(y(2*k), y(2*k+1), rg, b, bases[k], two)
	}
	VPBROADCASTD(colours.Offset(8), rg)
	VPBROADCASTD(colours.Offset(12), b)
	for k := range 2 {
		apart(y(2*k), y(2*k+1), rg, b, one, two)
		VPMINSD(one, bases[k], bases[k])
	}
	Label("startDistance")
	near := [2][2]reg.VecPhysical{{y(10), y(11)}, {y(12), y(13)}} // by base colour and half of the pixels
	for c := range 2 {
		for sign := range 2 {
			VPBROADCASTD(colours.Offset(8*c), rg)
			VPBROADCASTD(colours.Offset(8*c+4), b)
			VPBROADCASTD(Mem{Base: entry}, one)
			VPBROADCASTD(Mem{Base: entry}.Offset(4), two)
			if sign == 0 {
				VPADDW(one, rg, rg)
				VPADDW(two, b, b)
				VPMINSW(full, rg, rg)
				VPMINSW(full, b, b)
			} else {
				VPSUBUSW(one, rg, rg)
				VPSUBUSW(two, b, b)
			}
			for k := range 2 {
				if sign == 0 {
					apart(y(2*k), y(2*k+1), rg, b, near[c][k], two)
					continue
				}
				apart(y(2*k), y(2*k+1), rg, b, one, two)
				VPMINSD(one, near[c][k], near[c][k])
			}
		}
	}
	VPMINSD(near[1][0], near[0][0], one)
	VPMINSD(near[1][1], near[0][1], two)
	VPADDD(two, one, one)
	for c := range 2 { // colours on both sides of the second base colour, then of the first
		for k := range 2 {
			VPMINSD(bases[k], near[c][k], near[c][k])
		}
		VPADDD(near[c][1], near[c][0], near[c][0])
	}
	VPHADDD(near[1][0], one, one)
	VPHADDD(near[0][0], near[0][0], two)
	VPHADDD(two, one, one)
	VEXTRACTI128(Imm(1), one, reg.X7)
	VPADDD(reg.X7, reg.X6, reg.X6)
	VMOVDQU(reg.X6, Mem{Base: out})
	ADDQ(Imm(16), out)
	ADDQ(Imm(8), entry)
	DECQ(n)
	JNZ(LabelRef("startDistance"))
	VZEROUPPER()
	RET()
}

// clusters writes functions that divide 16 pixels into two clusters, as cloud.clusters does: by their distances, and by their
// distances except along grey.
func clusters() {
	table := GLOBL("clusterTables", RODATA|NOPTR)
	for n := range 17 { // (x+add)*factor>>16 is (x+n/2)/n for every x up to 16*255
		add, factor := n/2, 0
		switch {
		case n == 1:
			add, factor = 1, 1<<16-1
		case n > 1:
			factor = (1<<16 + n - 1) / n
		}
		DATA(8*n, U64(uint64(add)<<32|uint64(factor)))
	}
	ones := words(GLOBL("clusterOnes", RODATA|NOPTR), 0, 1, 1)
	for _, name := range []string{"clusterLanes", "clusterHueLanes"} {
		clusterFunction(name, table, ones, name == "clusterHueLanes")
	}
}

// clusterCode writes one of them. Y0 to Y3 have the pixels, Y12 ones, X14 the sum of all pixels.
type clusterCode struct {
	name          string
	hue           bool // without grey
	pixels, means Mem
	tables        reg.GPVirtual
}

func clusterFunction(name string, table, ones Mem, hue bool) {
	TEXT(name, NOSPLIT, "func(pixels *int16, means *[2]uint64)")
	Doc(name + " finds the means of two clusters of 16 pixels.")
	c := &clusterCode{name: name, hue: hue}
	c.pixels, c.means = Mem{Base: Load(Param("pixels"), GP64())}, Mem{Base: Load(Param("means"), GP64())}
	loadPixels(c.pixels)
	c.tables = GP64()
	LEAQ(table, c.tables)
	VMOVDQU(ones, y(12))
	c.begin()
	VPADDW(y(2), y(0), y(6))
	VPADDW(y(3), y(1), y(7))
	sumPixels(reg.X14)
	rounds, last, bits, part, n := GP64(), GP32(), GP32(), GP32(), GP64()
	MOVQ(U32(4), rounds)
	MOVL(U32(1<<31-1), last)
	Label(name + "Round")
	c.divide(bits, part)
	CMPL(bits, last)
	JEQ(LabelRef(name + "Done"))
	MOVL(bits, last)
	c.sums()
	POPCNTL(bits, part)
	MOVL(part, n.As32())
	c.mean(1, n, "NoSecond")
	c.mean(0, n, "Empty")
	DECQ(rounds)
	JNZ(LabelRef(name + "Round"))
	Label(name + "Done")
	VZEROUPPER()
	RET()
}

// distance finds that of eight pixels from the colour in Y4 and Y5. It needs Y6, Y7 and Y13.
func (c *clusterCode) distance(k int, to reg.VecPhysical) {
	rg, b, one := y(6), y(7), y(12)
	VPSUBW(y(4), y(2*k), rg)
	VPSUBW(y(5), y(2*k+1), b)
	VPMADDWD(rg, rg, to)
	if !c.hue {
		VPMADDWD(b, b, b)
		VPADDD(b, to, to)
		return
	}
	VPMADDWD(one, rg, rg)
	VPMADDWD(b, b, y(13))
	VPMADDWD(one, b, b)
	VPADDD(y(13), to, to)
	VPADDD(b, rg, rg)
	VPABSD(rg, rg)
	VPMADDWD(rg, rg, rg)
	VPADDD(to, to, b)
	VPADDD(b, to, to)
	VPSUBD(rg, to, to)
}

// begin takes two pixels as means: the one that is farthest from the first pixel, and the one that is farthest from that.
func (c *clusterCode) begin() {
	at := GP64()
	VPBROADCASTD(c.pixels, y(4))
	VPBROADCASTD(c.pixels.Offset(lane), y(5))
	for k := range 2 {
		c.distance(0, y(8))
		c.distance(1, y(9))
		farthest(at)
		VPBROADCASTD(c.pixels.Idx(at, 4), y(4))
		VPBROADCASTD(c.pixels.Offset(lane).Idx(at, 4), y(5))
		VPUNPCKLDQ(reg.X5, reg.X4, reg.X6)
		VMOVQ(reg.X6, c.means.Offset(8*k))
	}
}

// divide finds the pixels of the second cluster, those nearer to its mean: as masks in Y8 and Y9, and as bits.
func (c *clusterCode) divide(bits, part reg.GPVirtual) {
	for k := range 2 {
		VPBROADCASTD(c.means.Offset(8*k), y(4))
		VPBROADCASTD(c.means.Offset(8*k+4), y(5))
		c.distance(0, y(8+2*k))
		c.distance(1, y(9+2*k))
	}
	for k := range 2 {
		VPCMPGTD(y(10+k), y(8+k), y(8+k))
		VMOVMSKPS(y(8+k), part)
		if k == 0 {
			MOVL(part, bits)
		}
	}
	SHLL(Imm(8), part)
	ORL(part, bits)
}

// sums adds the pixels of the second cluster, whose masks are in Y8 and Y9, to X8, and those of the first one to X9.
func (c *clusterCode) sums() {
	VPAND(y(8), y(0), y(6))
	VPAND(y(9), y(2), y(10))
	VPADDW(y(10), y(6), y(6))
	VPAND(y(8), y(1), y(7))
	VPAND(y(9), y(3), y(10))
	VPADDW(y(10), y(7), y(7))
	sumPixels(reg.X8)
	VPSUBW(reg.X8, reg.X14, reg.X9)
}

// mean stores that of a cluster of n pixels, if there are any, and leaves the number of the others in n.
func (c *clusterCode) mean(cluster int, n reg.GPVirtual, none string) {
	TESTQ(n, n)
	JZ(LabelRef(c.name + none))
	VPBROADCASTW(Mem{Base: c.tables, Index: n, Scale: 8}, reg.X6)
	VPBROADCASTW(Mem{Base: c.tables, Index: n, Scale: 8}.Offset(4), reg.X7)
	VPADDW(reg.X7, []reg.VecPhysical{reg.X9, reg.X8}[cluster], reg.X7)
	VPMULHUW(reg.X6, reg.X7, reg.X7)
	VMOVQ(reg.X7, c.means.Offset(8*cluster))
	Label(c.name + none)
	NOTQ(n)
	ADDQ(Imm(17), n)
}

// farthest finds the first of the largest of the double words in Y8 and Y9. It needs Y6 and Y7.
func farthest(at reg.GPVirtual) {
	VPMAXSD(y(9), y(8), y(6))
	VEXTRACTI128(Imm(1), y(6), reg.X7)
	VPMAXSD(reg.X7, reg.X6, reg.X6)
	VPSHUFD(Imm(0x4e), reg.X6, reg.X7)
	VPMAXSD(reg.X7, reg.X6, reg.X6)
	VPSHUFD(Imm(0xb1), reg.X6, reg.X7)
	VPMAXSD(reg.X7, reg.X6, reg.X6)
	VPBROADCASTD(reg.X6, y(6))
	first, second := GP32(), GP32()
	for k, bits := range []reg.GPVirtual{first, second} {
		VPCMPEQD(y(6), y(8+k), y(7))
		VMOVMSKPS(y(7), bits)
	}
	SHLL(Imm(8), second)
	ORL(second, first)
	BSFL(first, at.As32())
	MOVL(at.As32(), first)
	ANDL(Imm(8), first)
	ADDQ(first.As64(), at) // blue of the first eight is before the others
}

// sumPixels adds eight pixels in Y6, red and green, and Y7, blue and 0. It needs Y10.
func sumPixels(to reg.VecPhysical) {
	VPUNPCKLDQ(y(7), y(6), y(10))
	VPUNPCKHDQ(y(7), y(6), y(7))
	VPADDW(y(10), y(7), y(6))
	VEXTRACTI128(Imm(1), y(6), reg.X7)
	VPADDW(reg.X7, reg.X6, reg.X6)
	VPSHUFD(Imm(0x4e), reg.X6, reg.X7)
	VPADDW(reg.X7, reg.X6, to)
}

// polishPair writes a function that moves the base colours of the mode T or H, as cloud.polish does.
func polishPair() {
	offsets := GLOBL("polishOffsets", RODATA|NOPTR)
	for mode, of := range [2][4]int{{0, 1, 0, -1}, {1, -1, 1, -1}} { // as in tPaint and hPaint
		for i, d := range pairDistances {
			for k, v := range of {
				w := uint64(uint16(v * d))
				DATA(8*(32*mode+4*i+k), U64(w|w<<16|w<<32))
			}
		}
	}
	moves := GLOBL("polishMoves", RODATA|NOPTR)
	for i := range 12 { // a step down and up of each channel of each base colour
		move := uint64(uint16(i&1*2-1)) << (16 * (i % 6 / 2))
		both := [2]uint64{}
		both[i/6] = move
		DATA(16*i, U64(both[0]))
		DATA(16*i+8, U64(both[1]))
	}
	numbers := GLOBL("polishNumbers", RODATA|NOPTR)
	full, fifteen, seventeen := words(numbers, 0, 255, 255), words(numbers, lane, 15, 15), words(numbers, 2*lane, 17, 17)

	TEXT("polishLanes", NOSPLIT, "func(pixels *int16, colours *[2][4]int16, h, distance int, cost int32) int32")
	Doc("polishLanes moves single channels of two base colours while the error decreases, and returns it.")
	pixels, colours := Mem{Base: Load(Param("pixels"), GP64())}, Mem{Base: Load(Param("colours"), GP64())}
	mode, of := Load(Param("h"), GP64()), Load(Param("distance"), GP64())
	cost := Load(Param("cost"), GP32())
	least, moved, at, n := GP32(), GP32(), GP64(), GP64()
	local := AllocLocal(16)
	loadPixels(pixels)
	entry, second := GP64(), GP64()
	LEAQ(offsets, entry)
	SHLQ(Imm(5), of)
	ADDQ(of, entry)
	MOVQ(U32(8), second) // where the base colour of the second colour is
	SHLQ(Imm(3), mode)
	SUBQ(mode, second)
	SHLQ(Imm(5), mode)
	ADDQ(mode, entry)
	current, best, zero := reg.X13, reg.X12, y(11)
	VPXOR(zero, zero, zero)
	VMOVDQU(colours, current)
	Label("polishRound")
	MOVL(cost, least)
	LEAQ(moves, at)
	MOVQ(U32(12), n)
	Label("polishMove")
	VPADDW(Mem{Base: at}, current, reg.X10)
	VPMAXSW(reg.X11, reg.X10, reg.X10)
	VPMINSW(fifteen, reg.X10, reg.X10)
	VPMULLW(seventeen, reg.X10, reg.X4)
	VMOVDQU(reg.X4, local)
	near := [2]reg.VecPhysical{y(8), y(9)}
	for i, base := range []Mem{local, local.Idx(second, 1), local.Offset(8), local.Offset(8)} {
		for k := range 2 { // red and green, blue and 0
			c := y(4 + k)
			VPBROADCASTD(base.Offset(4*k), c)
			VPBROADCASTD(Mem{Base: entry}.Offset(8*i+4*k), y(6))
			VPADDW(y(6), c, c)
			VPMAXSW(zero, c, c)
			VPMINSW(full, c, c)
		}
		for k := range 2 {
			if i == 0 {
				apart(y(2*k), y(2*k+1), y(4), y(5), near[k], y(7))
				continue
			}
			apart(y(2*k), y(2*k+1), y(4), y(5), y(6), y(7))
			VPMINSD(y(6), near[k], near[k])
		}
	}
	VPADDD(near[1], near[0], near[0])
	across(near[0], reg.X8, reg.X9)
	VMOVD(reg.X8, moved)
	ADDQ(Imm(16), at)
	CMPL(moved, least)
	JGE(LabelRef("polishNext"))
	MOVL(moved, least)
	VMOVDQA(reg.X10, best)
	Label("polishNext")
	DECQ(n)
	JNZ(LabelRef("polishMove"))
	CMPL(least, cost)
	JGE(LabelRef("polishDone"))
	MOVL(least, cost)
	VMOVDQA(best, current)
	JMP(LabelRef("polishRound"))
	Label("polishDone")
	VMOVDQU(current, colours)
	VZEROUPPER()
	Store(cost, ReturnIndex(0))
	RET()
}
