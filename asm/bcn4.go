package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Registers of channelLanes. A word of each is for one line; each half has the eight lines of a search.
var (
	lowEnds, from, by, far   = reg.Y0, reg.Y1, reg.Y2, reg.Y3 // of lines: see place and distance
	most, numbers            = reg.Y4, reg.Y5                 // the limit of places, and the bits of their numbers
	errs, ends               = reg.Y6, reg.Y7                 // of lines; the low end is in the upper byte
	topEnds, topErrs, stride = reg.Y8, reg.Y9, reg.Y10        // the state of a search
)

// channelCode writes channelLanes.
type channelCode struct {
	table      Mem
	size       int
	memory     Mem // of the function
	starts     reg.GPVirtual
	later, top reg.GPVirtual // whether errs are those of a move; the best line of all searches

	pick, swap, ones, five, six, half, limit, full, wide, near, places Mem // constants
	moves                                                              [2]Mem
	pairs, quads                                                       Mem // the factors that put codes one after the other
}

// channelKind has what is different for lines of eight places, and for those of six and 0 and 255.
type channelKind struct {
	name                              string
	six                               bool
	steps, widen, most, divide, codes Mem
	passes                            int // where their number is
}

// Parts of the memory of channelLanes: values of pixels in double words of two equal words, in any order.
const (
	channelValues  = 0        // the values
	channelWide    = 2 * lane // 64 times the values, and 2048 more
	channelOutside = 4 * lane // how far they are from 0 or 255
	channelWords   = 6 * lane // the values as words, in order
	channelRange   = 7 * lane // the least value, then the range, then the greatest, in all words
	channelSize    = 10 * lane
)

// words adds a vector of words to the table.
func (c *channelCode) words(of func(i int) int) Mem {
	for i := range 16 {
		DATA(c.size+2*i, U16(uint16(of(i))))
	}
	c.size += lane
	return c.table.Offset(c.size - lane)
}

func (c *channelCode) bytes(of func(i int) int) Mem {
	return c.words(func(i int) int { return of(2*i)&255 | of(2*i+1)<<8 })
}

func (c *channelCode) filled(w int) Mem { return c.words(func(int) int { return w }) }

// constants fills the table.
func (c *channelCode) constants() (eight, six *channelKind) {
	for at := range 4 { // a channel of four pixels to the first or the second double word of a half
		for part := range 2 {
			m := c.bytes(func(i int) int {
				if i%16/4 != part {
					return 0x80
				}
				return i%4*4 + at
			})
			if at+part == 0 {
				c.pick = m
			}
		}
	}
	c.swap = c.bytes(func(i int) int { return i%16 ^ 2 })
	c.ones, c.five, c.six, c.half = c.filled(1), c.filled(5), c.filled(6), c.filled(127)
	c.limit, c.full, c.wide, c.near = c.filled(250), c.filled(255), c.filled(2048), c.filled(2048-28)
	c.places, c.pairs, c.quads = c.filled(7<<6), c.filled(8<<8+1), c.words(func(i int) int { return 1 + i%2*63 })
	moves := [8][2]int{{1, 0}, {0, -1}, {-1, 0}, {0, 1}, {1, 1}, {-1, -1}, {1, -1}, {-1, 1}}
	for k := range c.moves {
		c.moves[k] = c.words(func(i int) int { return moves[i%8][k] })
	}
	kind := func(name string, passes, steps, widen int, codes []int) *channelKind {
		divide := math.Float32bits(float32(steps << 16))
		return &channelKind{name: name, six: steps == 5, passes: passes,
			steps: c.filled(steps), widen: c.filled(widen), most: c.filled(steps<<6 + 63),
			divide: c.words(func(i int) int { return int(divide >> (16 * (i % 2))) }),
			codes:  c.bytes(func(i int) int { return codes[i%8] })}
	}
	eight = kind("Eight", lane, 7, 37450, []int{1, 7, 6, 5, 4, 3, 2, 0})
	return eight, kind("Six", lane+8, 5, 52429, []int{0, 2, 3, 4, 5, 1, 6, 7})
}

// channelLanes writes a function that encodes a channel of a block, as channel.encode does. Two searches go side by side, each with
// the errors of eight lines: first of its starts, then of the moves from the best line. Errors of 1<<16 and more are that of a line
// that is not valid; no start has them.
func channelLanes() {
	c := &channelCode{table: GLOBL("channelTables", RODATA|NOPTR)}
	eight, six := c.constants()
	TEXT("channelLanes", NOSPLIT, "func(pixels *[64]byte, at int, starts *uint16) uint64")
	Doc("channelLanes encodes a channel, as channel.encode does.")
	c.memory, c.starts, c.later, c.top = AllocLocal(channelSize), GP64(), GP32(), GP32()
	low, high, apart, best := GP32(), GP32(), GP32(), GP32()
	c.load(low, high)
	VMOVDQU(c.places, numbers)
	MOVL(high, apart)
	SUBL(low, apart)
	CMPL(apart, Imm(7))
	JBE(LabelRef("channelNarrow"))
	c.fill(low, apart, high)
	Load(Param("starts"), c.starts)
	tables := GP64()
	LEAQ(Mem{Base: c.starts, Disp: lane + 16}, tables)
	c.searches(eight, Mem{Base: tables})
	MOVL(c.top, best)
	CMPL(low, Imm(32))
	JB(LabelRef("channelTrySix"))
	CMPL(high, U32(255-32))
	JBE(LabelRef("channelWrite"))
	Label("channelTrySix")
	c.searches(six, Mem{Base: tables})
	limit := GP32()
	MOVL(best, limit)
	ORL(U32(0xffff), limit) // endpoints do not count here
	CMPL(c.top, limit)
	JA(LabelRef("channelWriteSix"))
	Label("channelWrite")
	c.write(eight, best)
	Label("channelWriteSix")
	c.write(six, c.top)
	Label("channelNarrow")
	CMPL(low, U32(248))
	JBE(LabelRef("channelSteps"))
	MOVL(U32(248), low)
	Label("channelSteps")
	MOVL(low, best)
	SHLL(Imm(8), best)
	ADDL(low, best)
	ADDL(Imm(7), best)
	JMP(LabelRef("channelWrite"))
}

// load puts a channel as words in order into memory, and finds the least and the greatest value.
func (c *channelCode) load(low, high reg.GPVirtual) {
	pixels := Mem{Base: Load(Param("pixels"), GP64())}
	pick, at := GP64(), Load(Param("at"), GP64())
	LEAQ(c.pick, pick)
	SHLQ(Imm(6), at)
	ADDQ(at, pick)
	VMOVDQU(pixels, reg.Y11)
	VMOVDQU(pixels.Offset(lane), reg.Y12)
	VPSHUFB(Mem{Base: pick}, reg.Y11, reg.Y11)
	VPSHUFB(Mem{Base: pick}.Offset(lane), reg.Y12, reg.Y12)
	VPOR(reg.Y12, reg.Y11, reg.Y11)
	VEXTRACTI128(Imm(1), reg.Y11, reg.X12)
	VPUNPCKLDQ(reg.X12, reg.X11, reg.X11)
	VPMOVZXBW(reg.X11, reg.Y12)
	VMOVDQU(reg.Y12, c.memory.Offset(channelWords))
	VPCMPEQB(reg.X13, reg.X13, reg.X13)
	VPXOR(reg.X11, reg.X13, reg.X13)
	VINSERTI128(Imm(1), reg.X13, reg.Y11, reg.Y11) // the least of the upper half is the greatest value
	for _, order := range []uint64{0x4e, 0xb1} {
		VPSHUFD(Imm(order), reg.Y11, reg.Y13)
		VPMINUB(reg.Y13, reg.Y11, reg.Y11)
	}
	for _, bits := range []uint64{16, 8} {
		VPSRLD(Imm(bits), reg.Y11, reg.Y13)
		VPMINUB(reg.Y13, reg.Y11, reg.Y11)
	}
	VEXTRACTI128(Imm(1), reg.Y11, reg.X13)
	VMOVD(reg.X11, low)
	VMOVD(reg.X13, high)
	ANDL(U32(255), low)
	ANDL(U32(255), high)
	XORL(U32(255), high)
}

// fill fills the memory: Y12 has the values.
func (c *channelCode) fill(low, apart, high reg.GPVirtual) {
	for i, v := range []reg.GPVirtual{low, apart, high} {
		VMOVD(v, reg.X11)
		VPBROADCASTW(reg.X11, reg.Y11)
		VMOVDQU(reg.Y11, c.memory.Offset(channelRange+i*lane))
	}
	VPSLLW(Imm(6), reg.Y12, reg.Y13)
	VPADDW(c.wide, reg.Y13, reg.Y13)
	VMOVDQU(c.full, reg.Y14)
	VPSUBW(reg.Y12, reg.Y14, reg.Y14)
	VPMINUW(reg.Y12, reg.Y14, reg.Y14)
	for i, v := range []reg.VecPhysical{reg.Y12, reg.Y13, reg.Y14} {
		VPUNPCKLWD(v, v, reg.Y11)
		VMOVDQU(reg.Y11, c.memory.Offset(2*i*lane))
		VPUNPCKHWD(v, v, reg.Y11)
		VMOVDQU(reg.Y11, c.memory.Offset((2*i+1)*lane))
	}
}

// between finds the starts of six places: for each word, of the values that are as far from 0 and from 255 as the table says.
func (c *channelCode) between(table Mem) {
	far, to, low, high, value := reg.Y0, reg.Y1, reg.Y11, reg.Y12, reg.Y13
	VMOVDQU(table, far)
	VMOVDQU(table.Offset(lane), to)
	VPCMPEQW(low, low, low)
	VPCMPEQW(high, high, high)
	for i := range 16 { // what is too small, or too large, is a large number without a sign
		VPBROADCASTD(c.memory.Offset(channelValues+4*i), value)
		VPSUBW(far, value, reg.Y14)
		VPMINUW(reg.Y14, low, low)
		VPSUBW(value, to, reg.Y14)
		VPMINUW(reg.Y14, high, high)
	}
	VPADDW(far, low, low)
	VPSUBW(high, to, high)
	VPCMPGTW(low, far, far)
	VPCMPGTW(to, high, to)
	VPOR(to, far, reg.Y14)
	VPCMPGTW(high, low, reg.Y13)
	VPOR(reg.Y13, reg.Y14, reg.Y14) // there is none
	VPMINUW(c.limit, low, lowEnds)
	VPADDW(c.five, lowEnds, reg.Y11)
	VPMAXUW(high, reg.Y11, reg.Y11)
	VPOR(reg.Y14, reg.Y11, reg.Y11)
}

// searches writes a loop over the tables of a kind. It leaves the best line in top, with its error inverted in the upper word.
func (c *channelCode) searches(kind *channelKind, table Mem) {
	passes, next := GP64(), "channel"+kind.name
	MOVQ(Mem{Base: c.starts, Disp: kind.passes}, passes)
	VMOVDQU(kind.most, most)
	XORL(c.top, c.top)
	Label(next)
	if kind.six {
		c.between(table)
	} else {
		VMOVDQU(c.memory.Offset(channelRange+lane), reg.Y12)
		VMOVDQU(c.memory.Offset(channelRange), lowEnds)
		VPMULHUW(table, reg.Y12, reg.Y11)
		VPSUBUSW(reg.Y11, lowEnds, lowEnds)
		VPMULHUW(table.Offset(lane), reg.Y12, reg.Y11)
		VPADDW(c.memory.Offset(channelRange+2*lane), reg.Y11, reg.Y11)
		VPMINUW(c.full, reg.Y11, reg.Y11)
	}
	c.search(kind)
	ADDQ(Imm(2*lane), table.Base)
	DECQ(passes)
	JNZ(LabelRef(next))
}

// search searches from the best of the lines in lowEnds and Y11 in each half.
func (c *channelCode) search(kind *channelKind) {
	lines, go_, ended := "channelLines"+kind.name, "channelGo"+kind.name, "channelEnded"+kind.name
	VPCMPEQW(topErrs, topErrs, topErrs)
	VPXOR(topEnds, topEnds, topEnds)
	XORL(c.later, c.later)
	Label(lines)
	c.prepare(kind)
	c.errors(kind)
	c.choose()
	VPSRLW(Imm(1), stride, reg.Y13)
	VPBLENDVB(reg.Y14, reg.Y13, stride, stride) // smaller if nothing was better
	TESTL(c.later, c.later)
	JNZ(LabelRef(go_))
	INCL(c.later)
	VPSRLW(Imm(8), topEnds, reg.Y11)
	VPAND(c.full, topEnds, stride)
	VPSUBW(reg.Y11, stride, stride)
	VPSRLW(Imm(4), stride, stride)
	VPMAXUW(c.ones, stride, stride)
	VPAND(Mem{Base: c.starts}, stride, stride)
	VPCMPEQW(reg.Y12, reg.Y12, reg.Y12)
	VPCMPEQW(topErrs, reg.Y12, reg.Y12) // no line is valid
	VPANDN(stride, reg.Y12, stride)
	Label(go_)
	VPXOR(reg.Y12, reg.Y12, reg.Y12)
	VPCMPEQW(reg.Y12, stride, reg.Y12)
	none := GP32()
	VPMOVMSKB(reg.Y12, none)
	INCL(none)
	JZ(LabelRef(ended))
	VPSRLW(Imm(8), topEnds, lowEnds)
	VPAND(c.full, topEnds, reg.Y11)
	VPMULLW(c.moves[0], stride, reg.Y12)
	VPMULLW(c.moves[1], stride, reg.Y13)
	VPADDW(reg.Y12, lowEnds, lowEnds)
	VPADDW(reg.Y13, reg.Y11, reg.Y11)
	JMP(LabelRef(lines))
	Label(ended)
	VPCMPEQW(reg.Y12, reg.Y12, reg.Y12)
	VPXOR(reg.Y12, topErrs, reg.Y12)
	VPUNPCKLWD(reg.Y12, topEnds, reg.Y12)
	VEXTRACTI128(Imm(1), reg.Y12, reg.X13)
	VPMAXUD(reg.X13, reg.X12, reg.X12)
	found, worse := GP32(), "channelWorse"+kind.name
	VMOVD(reg.X12, found)
	CMPL(found, c.top)
	JBE(LabelRef(worse))
	MOVL(found, c.top)
	Label(worse)
}

// prepare finds what places needs for the lines in lowEnds and Y11. Errors of lines that are not valid start at the greatest.
func (c *channelCode) prepare(kind *channelKind) {
	highEnds, apart, zero := reg.Y11, reg.Y12, reg.Y13
	VPSLLW(Imm(8), lowEnds, ends)
	VPOR(highEnds, ends, ends)
	VPSUBW(lowEnds, highEnds, apart)
	VMOVDQU(c.full, errs)
	VPSUBW(highEnds, errs, errs)
	VPOR(lowEnds, errs, errs)
	VPSUBW(kind.steps, apart, reg.Y13)
	VPOR(reg.Y13, errs, errs)
	VPSRAW(Imm(15), errs, errs)
	VPXOR(zero, zero, zero)
	VPUNPCKLWD(zero, apart, reg.Y14)
	VPUNPCKHWD(zero, apart, reg.Y15)
	VMOVDQU(kind.divide, by)
	for _, v := range []reg.VecPhysical{reg.Y14, reg.Y15} {
		VCVTDQ2PS(v, v)
		VDIVPS(v, by, v)
		VCVTTPS2DQ(v, v)
	}
	VPACKUSDW(reg.Y15, reg.Y14, by)
	VPSLLW(Imm(8), apart, far)
	VPMULHUW(kind.widen, far, far)
	VPADDW(c.ones, far, far)
	VPSLLW(Imm(6), lowEnds, from)
	VPADDW(c.near, from, from)
	VPSRLW(Imm(5), far, reg.Y13)
	VPSUBW(reg.Y13, from, from)
}

// place finds the places nearest to values, as type nearest does, of channelWide. place is 64 times the number.
func (c *channelCode) place(values, place reg.VecPhysical) {
	VPSUBUSW(from, values, place)
	VPMULHUW(by, place, place)
	VPMINUW(most, place, place)
	VPAND(numbers, place, place)
}

// distance finds how far values are from places. The sign may be wrong.
func (c *channelCode) distance(values, place reg.VecPhysical) {
	VPMULHUW(far, place, place)
	VPSUBW(values, lowEnds, values)
	VPADDW(values, place, place)
}

// errors adds the squares of the distances of all values.
func (c *channelCode) errors(kind *channelKind) {
	for i := range 16 {
		place, value := reg.Y12, reg.Y11
		if i%2 == 1 {
			place, value = reg.Y14, reg.Y13
		}
		VPBROADCASTD(c.memory.Offset(channelWide+4*i), place)
		c.place(place, place)
		VPBROADCASTD(c.memory.Offset(channelValues+4*i), value)
		c.distance(value, place)
		if kind.six {
			VPBROADCASTD(c.memory.Offset(channelOutside+4*i), value)
			VPABSW(place, place)
			VPMINUW(value, place, place)
		}
		VPMULLW(place, place, place)
		VPADDUSW(place, errs, errs)
	}
}

// choose takes the best line of each half if it is better than the best until now. Y14 has where it is not.
func (c *channelCode) choose() {
	least, same, t := reg.Y11, reg.Y12, reg.Y13
	across := func(v reg.VecPhysical, combine func(...Op)) {
		VPSHUFD(Imm(0x4e), v, t)
		combine(t, v, v)
		VPSHUFD(Imm(0xb1), v, t)
		combine(t, v, v)
		VPSHUFB(c.swap, v, t)
		combine(t, v, v)
	}
	VMOVDQA(errs, least)
	across(least, VPMINUW)
	VPCMPEQW(errs, least, same)
	VPAND(ends, same, same)
	across(same, VPMAXUW)
	VPMINUW(topErrs, least, least)
	VPCMPEQW(topErrs, least, reg.Y14)
	VMOVDQA(least, topErrs)
	VPBLENDVB(reg.Y14, topEnds, same, topEnds)
}

// write returns the block for a line.
func (c *channelCode) write(kind *channelKind, line reg.GPVirtual) {
	values, place, end := reg.Y12, reg.Y14, GP64()
	MOVWQZX(line.As16(), end)
	VMOVQ(end, reg.X12)
	VPBROADCASTW(reg.X12, reg.Y12)
	VPAND(c.full, reg.Y12, reg.Y11)
	VPSRLW(Imm(8), reg.Y12, lowEnds)
	VMOVDQU(kind.most, most)
	c.prepare(kind)
	VMOVDQU(c.memory.Offset(channelWords), values)
	VPSLLW(Imm(6), values, place)
	VPADDW(c.wide, place, place)
	c.place(place, place)
	VPSRLW(Imm(6), place, ends)
	if kind.six {
		VMOVDQU(c.full, reg.Y13)
		VPSUBW(values, reg.Y13, reg.Y13)
		VPMINUW(values, reg.Y13, reg.Y13)
		VPCMPGTW(c.half, values, reg.Y15)
		c.distance(values, place)
		VPABSW(place, place)
		VPCMPGTW(reg.Y13, place, place)
		VMOVDQU(c.six, values)
		VPSUBW(reg.Y15, values, values)
		VPBLENDVB(place, values, ends, ends)
		low := GP64()
		MOVQ(end, low)
		SHRQ(Imm(8), low)
		SHLQ(Imm(8), end)
		ANDQ(U32(0xff00), end)
		ORQ(low, end)
	}
	VEXTRACTI128(Imm(1), ends, reg.X12)
	VPACKUSWB(reg.X12, reg.X7, reg.X7) // the lower half of ends
	VMOVDQU(kind.codes, reg.X12)
	VPSHUFB(reg.X7, reg.X12, reg.X12)
	VPMADDUBSW(c.pairs, reg.X12, reg.X12)
	VPMADDWD(c.quads, reg.X12, reg.X12) // four codes in a double word
	VPSRLQ(Imm(20), reg.X12, reg.X13)
	VPOR(reg.X13, reg.X12, reg.X12)
	lower, upper := GP32(), GP32()
	VMOVD(reg.X12, lower)
	VPEXTRD(Imm(2), reg.X12, upper)
	codes := upper.As64()
	SHLQ(Imm(24), codes)
	ORQ(lower.As64(), codes)
	SHLQ(Imm(16), codes)
	ORQ(end, codes)
	VZEROUPPER()
	Store(codes, ReturnIndex(0))
	RET()
}
