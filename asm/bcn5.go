package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Registers of channelsWide: 16 values of the first channel and 16 of the second, and for each word what is of its channel.
var (
	wideValues, wideShifted, wideOutside = reg.Z16, reg.Z17, reg.Z18
	wideLow, wideApart, wideHigh         = reg.Z19, reg.Z20, reg.Z21
	wideTop, wideBest                    = reg.Z22, reg.Z23 // scores
	active, isWide, isSix, isNear        = reg.K2, reg.K3, reg.K4, reg.K5
)

// Comparisons of numbers without a sign.
const below, above = 1, 6

// channelsWide writes a function that encodes the first two channels of a block, as channel.encode does, in registers of AVX-512.
func (c *channelCode) channelsWide(eight, six *channelKind) {
	TEXT("channelsWide", NOSPLIT, "func(pixels *[64]byte, starts *uint16, values *[3072]byte, block *[16]byte)")
	Doc("channelsWide encodes two channels, as channel.encode does.")
	c.use(true)
	c.memory, c.starts, c.later = Mem{Base: Load(Param("values"), GP64())}, GP64(), GP32()
	c.loadWide()
	c.move(c.places, c.numbers)
	c.xor(wideTop, wideTop, wideTop)
	c.xor(wideBest, wideBest, wideBest)
	KXORD(isSix, isSix, isSix)
	VPCMPUW(Imm(above), c.seven, wideApart, isWide)
	KORTESTD(isWide, isWide)
	JZ(LabelRef("wideWrite"))
	KMOVD(isWide, active)
	c.fillWide(valuePlain, wideValues)
	c.fillWide(valueLarger, wideShifted)
	Load(Param("starts"), c.starts)
	tables := GP64()
	LEAQ(Mem{Base: c.starts, Disp: 2*lane + 16}, tables)
	c.searches(eight, Mem{Base: tables})
	c.move(wideTop, wideBest)
	VPCMPUW(Imm(below), c.lower, wideLow, isNear)
	VPCMPUW(Imm(above), c.upper, wideHigh, active)
	KORD(active, isNear, isNear)
	KANDD(isNear, isWide, active)
	KORTESTD(active, active)
	JZ(LabelRef("wideWrite"))
	c.fillWide(valueOutside, wideOutside)
	c.searches(six, Mem{Base: tables})
	VMOVDQU16_Z(wideTop, active, wideTop)
	VPORD(c.errorOnly, wideBest, c.free[0]) // endpoints do not count here
	VPCMPUD(Imm(above), c.free[0], wideTop, isSix)
	VMOVDQU32(wideTop, isSix, wideBest)
	VPMOVM2D(isSix, c.free[1])
	VPMOVW2M(c.free[1], isSix)
	Label("wideWrite")
	c.writeWide(eight, six)
}

// loadWide finds the values, and the least and the greatest of them.
func (c *channelCode) loadWide() {
	all, t := reg.Z11, reg.Z12
	VMOVDQU32(Mem{Base: Load(Param("pixels"), GP64())}, all)
	VPSHUFB(c.pickTwo, all, all)
	VMOVDQU32(c.order, t)
	VPERMD(all, t, all)
	VPMOVZXBW(reg.Y11, wideValues)
	c.variants(wideValues, wideShifted, wideOutside)
	c.allBits(t)
	VPXORD(all, t, t)
	VINSERTI64X4(Imm(1), reg.Y12, all, all)
	leastByte(all, t)
	VPSHUFB(c.firstByte, all, all)
	VSHUFI64X2(Imm(0x50), all, all, wideLow)
	VSHUFI64X2(Imm(0xfa), all, all, wideHigh)
	VPXORD(c.full, wideHigh, wideHigh)
	VPSUBW(wideLow, wideHigh, wideApart)
}

// fillWide fills the memory with one kind of values.
func (c *channelCode) fillWide(kind int, values reg.VecPhysical) {
	half, four, one := c.free[0], c.free[1], c.free[2]
	for i, order := range []uint64{0xa0, 0xf5} {
		VSHUFI64X2(Imm(order), values, values, half)
		for j, unpack := range []func(...Op){VPUNPCKLWD, VPUNPCKHWD} {
			unpack(half, half, four)
			for k := range 4 {
				VPSHUFD(Imm(uint64(0x55*k)), four, one)
				VMOVDQU32(one, c.memory.Offset((16*kind+8*i+4*j+k)*2*lane))
			}
		}
	}
}

// writeWide writes both blocks.
func (c *channelCode) writeWide(eight, six *channelKind) {
	key, divide, widen, codes, places := reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28
	narrow, place, t := c.free[0], c.free[3], c.free[1]
	VPMINUW(c.lastLow, wideLow, narrow)
	VPSLLW(Imm(8), narrow, t)
	VPADDW(t, narrow, narrow)
	VPADDW(c.seven, narrow, narrow)
	VPSHUFB(c.firstWord, wideBest, key)
	VPBLENDMW(key, narrow, isWide, key)
	for _, m := range []struct {
		to         reg.VecPhysical
		eight, six Mem
	}{{divide, eight.divide, six.divide}, {widen, eight.widen, six.widen}, {codes, eight.codes, six.codes}, {c.most, eight.most, six.most}} {
		VMOVDQU32(m.eight, m.to)
		VMOVDQU16(m.six, isSix, m.to)
	}
	VPSRLW(Imm(8), key, c.lowEnds)
	VPANDD(c.full, key, c.free[0])
	c.prepare(eight.steps, divide, widen)
	c.place(wideShifted, place)
	VPSRLW(Imm(6), place, places)
	VPSRLW(Imm(7), wideValues, t)
	VMOVDQU32(wideValues, c.free[0])
	c.distance(c.free[0], place)
	VPABSW(place, place)
	VPCMPUW(Imm(above), wideOutside, place, isSix, reg.K1)
	VPADDW(c.six, t, reg.K1, places)
	VPSHUFB(places, codes, codes)
	VPMOVWB(codes, reg.Y11)
	c.pack(reg.Y11, reg.Y13)
	VPSHUFB(c.otherByte, key, t)
	VPBLENDMW(t, key, isSix, key)
	VSHUFI64X2(Imm(0x08), key, key, reg.Z12)
	VPBLENDW(Imm(1), reg.Y12, reg.Y11, reg.Y11)
	VPERMQ(Imm(0x08), reg.Y11, reg.Y11)
	VMOVDQU(reg.X11, Mem{Base: Load(Param("block"), GP64())})
	VZEROUPPER()
	RET()
}
