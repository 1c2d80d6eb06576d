package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// channelCode writes channelLanes, or with registers of AVX-512 channelsWide. A word of a register is for one line; 16 bytes have the
// eight lines of a search. So there are two searches for one channel, or two for each of two channels.
type channelCode struct {
	table      Mem
	size       int
	memory     Mem // values of pixels, see fill
	starts     reg.GPVirtual
	later, top reg.GPVirtual // whether errs are those of a move; the best line of all searches

	wide                     bool
	lowEnds, from, by, far   reg.VecPhysical // of lines: see place and distance
	most, numbers            reg.VecPhysical // the limit of places, and the bits of their numbers
	errs, ends               reg.VecPhysical // of lines; the low end is in the upper byte
	topEnds, topErrs, stride reg.VecPhysical // the state of a search
	free                     [5]reg.VecPhysical

	pick, swap, ones, five, six, limit, full, more, near, places Mem // constants
	moves                                                        [2]Mem
	pairs, quads, block                                          Mem // put codes one after the other

	// Constants of channelsWide.
	pickTwo, order, firstByte, firstWord, otherByte Mem
	seven, lower, upper, lastLow, errorOnly         Mem
}

// use chooses the registers.
func (c *channelCode) use(wide bool) {
	all := registers256
	if wide {
		all = registers512
	}
	c.wide = wide
	c.lowEnds, c.from, c.by, c.far, c.most, c.numbers = all[0], all[1], all[2], all[3], all[4], all[5]
	c.errs, c.ends, c.topEnds, c.topErrs, c.stride = all[6], all[7], all[8], all[9], all[10]
	copy(c.free[:], all[11:])
}

var (
	registers256 = []reg.VecPhysical{reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7,
		reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15}
	registers512 = []reg.VecPhysical{reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7,
		reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15}
)

// channelKind has what is different for lines of eight places, and for those of six and 0 and 255.
type channelKind struct {
	name                              string
	six                               bool
	steps, widen, most, divide, codes Mem
	passes                            int // where their number is
}

// Parts of the memory of channelLanes: values of pixels in double words of two equal words, in any order.
const (
	channelWords = 6 * lane // the values as words, in order
	channelRange = 7 * lane // the least value, then the range, then the greatest, in all words
	channelSize  = 10 * lane
)

// Kinds of values.
const (
	valuePlain   = iota // as they are
	valueLarger         // 64 times as much, and 2048 more
	valueOutside        // how far they are from 0 or 255
)

// value puts one value of a pixel into all words; with two channels, into those of its channel.
func (c *channelCode) value(kind, pixel int, to reg.VecPhysical) {
	if c.wide {
		VMOVDQU32(c.memory.Offset((16*kind+pixel)*2*lane), to)
	} else {
		VPBROADCASTD(c.memory.Offset(2*kind*lane+4*pixel), to)
	}
}

// words adds a vector of words to the table, twice.
func (c *channelCode) words(of func(i int) int) Mem {
	for i := range 32 {
		DATA(c.size+2*i, U16(uint16(of(i%16))))
	}
	c.size += 2 * lane
	return c.table.Offset(c.size - 2*lane)
}

func (c *channelCode) bytes(of func(i int) int) Mem {
	return c.words(func(i int) int { return of(2*i)&255 | of(2*i+1)<<8 })
}

func (c *channelCode) filled(w int) Mem { return c.words(func(int) int { return w }) }

// Instructions with other names in AVX-512, or with masks.

func (c *channelCode) and(a, b, to Op) {
	if c.wide {
		VPANDD(a, b, to)
	} else {
		VPAND(a, b, to)
	}
}

func (c *channelCode) or(a, b, to Op) {
	if c.wide {
		VPORD(a, b, to)
	} else {
		VPOR(a, b, to)
	}
}

func (c *channelCode) xor(a, b, to Op) {
	if c.wide {
		VPXORD(a, b, to)
	} else {
		VPXOR(a, b, to)
	}
}

func (c *channelCode) move(from, to Op) {
	if c.wide {
		VMOVDQU32(from, to)
	} else {
		VMOVDQU(from, to)
	}
}

// shared loads what is the same for both channels.
func (c *channelCode) shared(from Mem, to reg.VecPhysical) {
	if c.wide {
		VBROADCASTI64X4(from, to)
	} else {
		VMOVDQU(from, to)
	}
}

func (c *channelCode) allBits(to reg.VecPhysical) {
	if c.wide {
		VPTERNLOGD(U8(255), to, to, to)
	} else {
		VPCMPEQW(to, to, to)
	}
}

// channels writes the functions for channels.
func channels() {
	c := &channelCode{table: GLOBL("channelTables", RODATA|NOPTR)}
	eight, six := c.constants()
	c.channelLanes(eight, six)
	c.constantsWide()
	c.channelsWide(eight, six)
}

// endMoves are the steps of a pair of endpoints, in the order of moves of package bcn.
var endMoves = [8][2]int{{1, 0}, {0, -1}, {-1, 0}, {0, 1}, {1, 1}, {-1, -1}, {1, -1}, {-1, 1}}

// constants fills the table.
func (c *channelCode) constants() (eight, six *channelKind) {
	for at := range 4 { // a channel of four pixels to the first or the second double word of 16 bytes
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
	c.ones, c.five, c.six = c.filled(1), c.filled(5), c.filled(6)
	c.limit, c.full, c.more, c.near = c.filled(250), c.filled(255), c.filled(2048), c.filled(2048-28)
	c.places, c.pairs, c.quads = c.filled(7<<6), c.filled(8<<8+1), c.words(func(i int) int { return 1 + i%2*63 })
	block := [16]int{0x80, 0x80, 0, 1, 2, 8, 9, 10, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80}
	c.block = c.bytes(func(i int) int { return block[i%16] })
	for k := range c.moves {
		c.moves[k] = c.words(func(i int) int { return endMoves[i%8][k] })
	}
	kind := func(name string, passes, steps, widen int, codes []int) *channelKind {
		divide := math.Float32bits(float32(steps << 16))
		return &channelKind{name: name, six: steps == 5, passes: passes,
			steps: c.filled(steps), widen: c.filled(widen), most: c.filled(steps<<6 + 63),
			divide: c.words(func(i int) int { return int(divide >> (16 * (i % 2))) }),
			codes:  c.bytes(func(i int) int { return codes[i%8] })}
	}
	eight = kind("Eight", 2*lane, 7, 37450, []int{1, 7, 6, 5, 4, 3, 2, 0})
	return eight, kind("Six", 2*lane+8, 5, 52429, []int{0, 2, 3, 4, 5, 1, 6, 7})
}

func (c *channelCode) constantsWide() {
	c.pickTwo = c.bytes(func(i int) int {
		if i%16 < 8 {
			return i%4*4 + i%8/4
		}
		return 0x80
	})
	for i := range 16 {
		DATA(c.size+4*i, U32(uint32(i%4*4+i/4)))
	}
	c.order, c.size = c.table.Offset(c.size), c.size+2*lane
	c.firstByte = c.bytes(func(i int) int { return i % 2 * 0x80 })
	c.firstWord, c.otherByte = c.bytes(func(i int) int { return i % 2 }), c.bytes(func(i int) int { return i%16 ^ 1 })
	c.seven, c.lower, c.upper, c.lastLow = c.filled(7), c.filled(32), c.filled(255-32), c.filled(248)
	c.errorOnly = c.words(func(i int) int { return i%2 - 1 })
}

// channelLanes writes a function that encodes a channel of a block, as channel.encode does. Errors of 1<<16 and more are that of a
// line that is not valid; no start has them.
func (c *channelCode) channelLanes(eight, six *channelKind) {
	TEXT("channelLanes", NOSPLIT, "func(pixels *[64]byte, at int, starts *uint16) uint64")
	Doc("channelLanes encodes a channel, as channel.encode does.")
	c.use(false)
	c.memory, c.starts, c.later, c.top = AllocLocal(channelSize), GP64(), GP32(), GP32()
	low, high, apart, best := GP32(), GP32(), GP32(), GP32()
	c.load(low, high)
	c.move(c.places, c.numbers)
	MOVL(high, apart)
	SUBL(low, apart)
	CMPL(apart, Imm(7))
	JBE(LabelRef("channelNarrow"))
	c.fill(low, apart, high)
	Load(Param("starts"), c.starts)
	tables := GP64()
	LEAQ(Mem{Base: c.starts, Disp: 2*lane + 16}, tables)
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

// load puts a channel as words in order into memory and Y12, and finds the least and the greatest value.
func (c *channelCode) load(low, high reg.GPVirtual) {
	pixels := Mem{Base: Load(Param("pixels"), GP64())}
	pick, at := GP64(), Load(Param("at"), GP64())
	LEAQ(c.pick, pick)
	SHLQ(Imm(7), at)
	ADDQ(at, pick)
	VMOVDQU(pixels, reg.Y11)
	VMOVDQU(pixels.Offset(lane), reg.Y12)
	VPSHUFB(Mem{Base: pick}, reg.Y11, reg.Y11)
	VPSHUFB(Mem{Base: pick}.Offset(2*lane), reg.Y12, reg.Y12)
	VPOR(reg.Y12, reg.Y11, reg.Y11)
	VEXTRACTI128(Imm(1), reg.Y11, reg.X12)
	VPUNPCKLDQ(reg.X12, reg.X11, reg.X11)
	VPMOVZXBW(reg.X11, reg.Y12)
	VMOVDQU(reg.Y12, c.memory.Offset(channelWords))
	VPCMPEQB(reg.X13, reg.X13, reg.X13)
	VPXOR(reg.X11, reg.X13, reg.X13)
	VINSERTI128(Imm(1), reg.X13, reg.Y11, reg.Y11) // the least of the upper half is the greatest value
	leastByte(reg.Y11, reg.Y13)
	VEXTRACTI128(Imm(1), reg.Y11, reg.X13)
	VMOVD(reg.X11, low)
	VMOVD(reg.X13, high)
	ANDL(U32(255), low)
	ANDL(U32(255), high)
	XORL(U32(255), high)
}

// leastByte puts the least of 16 bytes into the first of them.
func leastByte(v, free reg.VecPhysical) {
	for _, order := range []uint64{0x4e, 0xb1} {
		VPSHUFD(Imm(order), v, free)
		VPMINUB(free, v, v)
	}
	for _, bits := range []uint64{16, 8} {
		VPSRLD(Imm(bits), v, free)
		VPMINUB(free, v, v)
	}
}

// variants finds the other kinds of values.
func (c *channelCode) variants(values, shifted, outside reg.VecPhysical) {
	VPSLLW(Imm(6), values, shifted)
	VPADDW(c.more, shifted, shifted)
	c.move(c.full, outside)
	VPSUBW(values, outside, outside)
	VPMINUW(values, outside, outside)
}

// fill fills the memory: Y12 has the values.
func (c *channelCode) fill(low, apart, high reg.GPVirtual) {
	for i, v := range []reg.GPVirtual{low, apart, high} {
		VMOVD(v, reg.X11)
		VPBROADCASTW(reg.X11, reg.Y11)
		VMOVDQU(reg.Y11, c.memory.Offset(channelRange+i*lane))
	}
	c.variants(reg.Y12, reg.Y13, reg.Y14)
	for i, v := range []reg.VecPhysical{reg.Y12, reg.Y13, reg.Y14} {
		VPUNPCKLWD(v, v, reg.Y11)
		VMOVDQU(reg.Y11, c.memory.Offset(2*i*lane))
		VPUNPCKHWD(v, v, reg.Y11)
		VMOVDQU(reg.Y11, c.memory.Offset((2*i+1)*lane))
	}
}

// searches writes a loop over the tables of a kind. It leaves the best line in top, with its error inverted in the upper word.
func (c *channelCode) searches(kind *channelKind, table Mem) {
	passes, next := GP64(), LabelRef(c.label("Next", kind))
	MOVQ(Mem{Base: c.starts, Disp: kind.passes}, passes)
	c.move(kind.most, c.most)
	if c.wide {
		VPXORD(wideTop, wideTop, wideTop)
	} else {
		XORL(c.top, c.top)
	}
	Label(string(next))
	if kind.six {
		c.between(table)
	} else {
		c.beyond(table)
	}
	c.search(kind)
	c.keep(kind)
	ADDQ(Imm(2*lane), table.Base)
	DECQ(passes)
	JNZ(next)
}

func (c *channelCode) label(name string, kind *channelKind) string {
	if c.wide {
		return "wide" + name + kind.name
	}
	return "channel" + name + kind.name
}

// beyond finds the starts of eight places: low ends in lowEnds, high ends in the first free register.
func (c *channelCode) beyond(table Mem) {
	highEnds, apart, part := c.free[0], c.free[1], c.free[2]
	low, high := c.free[3], c.free[4]
	c.extremes(low, apart, high)
	c.shared(table, part)
	VPMULHUW(apart, part, part)
	VPSUBUSW(part, low, c.lowEnds)
	c.shared(table.Offset(lane), part)
	VPMULHUW(apart, part, part)
	VPADDW(part, high, highEnds)
	VPMINUW(c.full, highEnds, highEnds)
}

// between finds the starts of six places: for each word, of the values that are as far from 0 and from 255 as the table says.
func (c *channelCode) between(table Mem) {
	far, to, low, high, value := c.from, c.by, c.free[0], c.free[1], c.free[2]
	c.shared(table, far)
	c.shared(table.Offset(lane), to)
	c.allBits(low)
	c.allBits(high)
	for i := range 16 { // what is too small, or too large, is a large number without a sign
		c.value(valuePlain, i, value)
		VPSUBW(far, value, c.free[3])
		VPMINUW(c.free[3], low, low)
		VPSUBW(value, to, c.free[3])
		VPMINUW(c.free[3], high, high)
	}
	VPADDW(far, low, low)
	VPSUBW(high, to, high)
	VPSUBW(far, low, far) // the sign bit is set if there is no value
	VPSUBW(high, to, to)
	c.or(to, far, far)
	VPSUBW(low, high, to)
	c.or(to, far, far)
	VPSRAW(Imm(15), far, far)
	VPMINUW(c.limit, low, c.lowEnds)
	VPADDW(c.five, c.lowEnds, low)
	VPMAXUW(high, low, low)
	c.or(far, low, low)
}

// search searches from the best of some lines, whose ends are in lowEnds and the first free register, in each 16 bytes.
func (c *channelCode) search(kind *channelKind) {
	lines, later, ended := c.label("Lines", kind), c.label("Later", kind), c.label("Ended", kind)
	c.allBits(c.topErrs)
	c.xor(c.topEnds, c.topEnds, c.topEnds)
	XORL(c.later, c.later)
	Label(lines)
	c.prepare(kind.steps, kind.divide, kind.widen)
	c.errors(kind)
	c.choose()
	TESTL(c.later, c.later)
	JNZ(LabelRef(later))
	INCL(c.later)
	VPSRLW(Imm(8), c.topEnds, c.free[0])
	c.and(c.full, c.topEnds, c.stride)
	VPSUBW(c.free[0], c.stride, c.stride)
	VPSRLW(Imm(4), c.stride, c.stride)
	VPMAXUW(c.ones, c.stride, c.stride)
	c.shared(Mem{Base: c.starts}, c.free[0])
	c.and(c.free[0], c.stride, c.stride)
	c.noneValid()
	Label(later)
	c.jumpIfZero(c.stride, ended)
	VPMULLW(c.moves[0], c.stride, c.free[1])
	VPMULLW(c.moves[1], c.stride, c.free[2])
	VPSRLW(Imm(8), c.topEnds, c.lowEnds)
	c.and(c.full, c.topEnds, c.free[0])
	VPADDW(c.free[1], c.lowEnds, c.lowEnds)
	VPADDW(c.free[2], c.free[0], c.free[0])
	JMP(LabelRef(lines))
	Label(ended)
}

// prepare finds what place and distance need. Errors of lines that are not valid start at the greatest.
func (c *channelCode) prepare(steps, divide, widen Op) {
	highEnds, apart, zero := c.free[0], c.free[1], c.free[2]
	VPSLLW(Imm(8), c.lowEnds, c.ends)
	c.or(highEnds, c.ends, c.ends)
	VPSUBW(c.lowEnds, highEnds, apart)
	c.move(c.full, c.errs)
	VPSUBW(highEnds, c.errs, c.errs)
	c.or(c.lowEnds, c.errs, c.errs)
	VPSUBW(steps, apart, zero)
	c.or(zero, c.errs, c.errs)
	VPSRAW(Imm(15), c.errs, c.errs)
	c.xor(zero, zero, zero)
	VPUNPCKLWD(zero, apart, c.free[3])
	VPUNPCKHWD(zero, apart, c.free[4])
	c.move(divide, c.by)
	for _, v := range c.free[3:] {
		VCVTDQ2PS(v, v)
		VDIVPS(v, c.by, v)
		VCVTTPS2DQ(v, v)
	}
	VPACKUSDW(c.free[4], c.free[3], c.by)
	VPSLLW(Imm(8), apart, c.far)
	VPMULHUW(widen, c.far, c.far)
	VPADDW(c.ones, c.far, c.far)
	VPSLLW(Imm(6), c.lowEnds, c.from)
	VPADDW(c.near, c.from, c.from)
	VPSRLW(Imm(5), c.far, zero)
	VPSUBW(zero, c.from, c.from)
}

// place finds the places nearest to values, as type nearest does. The result is 64 times the number of the place.
func (c *channelCode) place(shifted, place reg.VecPhysical) {
	VPSUBUSW(c.from, shifted, place)
	VPMULHUW(c.by, place, place)
	VPMINUW(c.most, place, place)
	c.and(c.numbers, place, place)
}

// distance finds how far values are from places; the sign may be wrong.
func (c *channelCode) distance(values, place reg.VecPhysical) {
	VPMULHUW(c.far, place, place)
	VPSUBW(values, c.lowEnds, values)
	VPADDW(values, place, place)
}

// errors adds the squares of the distances of all values.
func (c *channelCode) errors(kind *channelKind) {
	for i := range 16 {
		place, value := c.free[2*(i%2)], c.free[1+2*(i%2)]
		c.value(valueLarger, i, place)
		c.place(place, place)
		c.value(valuePlain, i, value)
		c.distance(value, place)
		if kind.six {
			c.value(valueOutside, i, value)
			VPABSW(place, place)
			VPMINUW(value, place, place)
		}
		VPMULLW(place, place, place)
		VPADDUSW(place, c.errs, c.errs)
	}
}

// choose takes the best line of each search if it is better than the best until now, and changes the stride.
func (c *channelCode) choose() {
	least, same, t := c.free[0], c.free[1], c.free[2]
	across := func(v reg.VecPhysical, combine func(...Op)) {
		VPSHUFD(Imm(0x4e), v, t)
		combine(t, v, v)
		VPSHUFD(Imm(0xb1), v, t)
		combine(t, v, v)
		VPSHUFB(c.swap, v, t)
		combine(t, v, v)
	}
	c.move(c.errs, least)
	across(least, VPMINUW)
	c.where(c.errs, least, c.ends, same)
	across(same, VPMAXUW)
	VPMINUW(c.topErrs, least, least)
	VPSRLW(Imm(1), c.stride, t)
	c.shared(Mem{Base: c.starts}.Offset(lane), c.free[4])
	c.and(c.free[4], c.stride, c.stride)
	VPMAXUW(t, c.stride, c.stride)
	if c.wide {
		VPCMPEQW(c.topErrs, least, reg.K1)
		VPBLENDMW(c.topEnds, same, reg.K1, c.topEnds)
		VPBLENDMW(t, c.stride, reg.K1, c.stride)
	} else {
		VPCMPEQW(c.topErrs, least, c.free[3])
		VPBLENDVB(c.free[3], c.topEnds, same, c.topEnds)
		VPBLENDVB(c.free[3], t, c.stride, c.stride)
	}
	c.move(least, c.topErrs)
}

// where copies words where a and b are equal, and clears the others.
func (c *channelCode) where(a, b, words, to reg.VecPhysical) {
	if c.wide {
		VPCMPEQW(a, b, reg.K1)
		VMOVDQU16_Z(words, reg.K1, to)
		return
	}
	VPCMPEQW(a, b, to)
	VPAND(words, to, to)
}

// noneValid ends the search where no start is valid.
func (c *channelCode) noneValid() {
	c.allBits(c.free[0])
	c.where(c.topErrs, c.free[0], c.stride, c.free[0])
	c.xor(c.free[0], c.stride, c.stride)
	if c.wide {
		VMOVDQU16_Z(c.stride, active, c.stride)
	}
}

func (c *channelCode) jumpIfZero(words reg.VecPhysical, label string) {
	if c.wide {
		VPTESTMW(words, words, reg.K1)
		KORTESTD(reg.K1, reg.K1)
	} else {
		bits := GP32()
		VPXOR(c.free[1], c.free[1], c.free[1])
		VPCMPEQW(c.free[1], words, c.free[1])
		VPMOVMSKB(c.free[1], bits)
		INCL(bits)
	}
	JZ(LabelRef(label))
}

// scores puts lines into double words: the error, inverted, and the ends.
func (c *channelCode) scores(to reg.VecPhysical) {
	c.allBits(to)
	c.xor(to, c.topErrs, to)
	VPUNPCKLWD(to, c.topEnds, to)
}

// extremes loads the least value, the greatest, and the range.
func (c *channelCode) extremes(low, apart, high reg.VecPhysical) {
	for i, v := range []reg.VecPhysical{low, apart, high} {
		if c.wide {
			VMOVDQU32([]reg.VecPhysical{wideLow, wideApart, wideHigh}[i], v)
			continue
		}
		VMOVDQU(c.memory.Offset(channelRange+i*lane), v)
	}
}

// keep keeps the better one of two lines if it is the best until now.
func (c *channelCode) keep(kind *channelKind) {
	if c.wide {
		c.scores(c.free[0])
		VSHUFI64X2(Imm(0xb1), c.free[0], c.free[0], c.free[1])
		VPMAXUD(c.free[1], c.free[0], c.free[0])
		VPMAXUD(c.free[0], wideTop, wideTop)
		return
	}
	c.scores(reg.Y12)
	VEXTRACTI128(Imm(1), reg.Y12, reg.X13)
	VPMAXUD(reg.X13, reg.X12, reg.X12)
	found, worse := GP32(), c.label("Worse", kind)
	VMOVD(reg.X12, found)
	CMPL(found, c.top)
	JBE(LabelRef(worse))
	MOVL(found, c.top)
	Label(worse)
}

// write returns the block for a line.
func (c *channelCode) write(kind *channelKind, line reg.GPVirtual) {
	values, place, end := reg.Y12, reg.Y14, GP64()
	MOVWQZX(line.As16(), end)
	VMOVQ(end, reg.X12)
	VPBROADCASTW(reg.X12, reg.Y12)
	VPAND(c.full, reg.Y12, reg.Y11)
	VPSRLW(Imm(8), reg.Y12, c.lowEnds)
	c.move(kind.most, c.most)
	c.prepare(kind.steps, kind.divide, kind.widen)
	VMOVDQU(c.memory.Offset(channelWords), values)
	c.variants(values, place, reg.Y13)
	c.place(place, place)
	VPSRLW(Imm(6), place, c.ends)
	if kind.six {
		VPSRLW(Imm(7), values, reg.Y15)
		c.distance(values, place)
		VPABSW(place, place)
		VPCMPGTW(reg.Y13, place, place)
		VPADDW(c.six, reg.Y15, reg.Y15)
		VPBLENDVB(place, reg.Y15, c.ends, c.ends)
		low := GP64()
		MOVQ(end, low)
		SHRQ(Imm(8), low)
		SHLQ(Imm(8), end)
		ANDQ(U32(0xff00), end)
		ORQ(low, end)
	}
	VEXTRACTI128(Imm(1), c.ends, reg.X12)
	VPACKUSWB(reg.X12, reg.X7, reg.X7) // the lower half of ends
	VMOVDQU(kind.codes, reg.X12)
	VPSHUFB(reg.X7, reg.X12, reg.X12)
	c.pack(reg.X12, reg.X13)
	codes := GP64()
	VMOVQ(reg.X12, codes)
	ORQ(end, codes)
	VZEROUPPER()
	Store(codes, ReturnIndex(0))
	RET()
}

// pack packs 16 codes to the bytes of a block that follow the ends.
func (c *channelCode) pack(codes, free reg.VecPhysical) {
	VPMADDUBSW(c.pairs, codes, codes)
	VPMADDWD(c.quads, codes, codes) // four codes in a double word
	VPSRLQ(Imm(20), codes, free)
	VPOR(free, codes, codes)
	VPSHUFB(c.block, codes, codes)
}
