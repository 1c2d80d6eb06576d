package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// lineCode has what the parts of lineSums share.
type lineCode struct {
	full, half, two, three, third, unreachable Mem
	scales                                     [2]Mem // of 5 and 6 bits
	pixels, line, scale, sums                  Mem
	redGreen, blue                             reg.VecPhysical // differences of the endpoints, doubled, as words
	middle                                     [3]reg.VecPhysical
	last, divisor                              reg.VecPhysical // until the places are known
}

// lineSums writes a function that does the same as colors.assign for eight lines through the mean of 16 pixels, a line in each double
// word, except for the error.
func lineSums() {
	table, at := GLOBL("lineTables", RODATA|NOPTR), 0
	filled := func(v uint32) Mem {
		for i := range 8 {
			DATA(at+4*i, U32(v))
		}
		at += lane
		return table.Offset(at - lane)
	}
	l := &lineCode{full: filled(math.Float32bits(255)), half: filled(math.Float32bits(0.5)), two: filled(2), three: filled(3),
		third: filled(65536/3 + 1), unreachable: filled(1 << 30),
		redGreen: y(0), blue: y(1), middle: [3]reg.VecPhysical{y(2), y(3), y(4)}, last: y(12), divisor: y(13)}
	for i, top := range []uint32{31, 63} {
		l.scales[i] = filled(math.Float32bits(float32(top) / 255))
	}

	TEXT("lineSums", NOSPLIT, "func(pixels *uint32, line *[2][4]float32, scale *float32, last *int32, sums *[6][8]int32)")
	Doc("lineSums finds, for each of eight lines, the last place, the sums of places and of their squares, and of colours times places.",
		"line has the mean of the colours, and half a line, whose multiples by scale the lines are.")
	l.pixels, l.line, l.scale = pointer("pixels"), pointer("line"), pointer("scale")
	last := pointer("last")
	l.sums = pointer("sums")
	VMOVDQU(last, l.last)
	VMOVDQU(l.last, l.sums)
	four, third := y(10), y(7)
	VPCMPEQD(l.three, l.last, four)
	VPCMPEQD(third, third, third)
	VPSRLD(Imm(31), third, third)
	VPSLLD(Imm(15), third, l.divisor) // a half of 1<<16 for three places, a third for four
	VMOVDQU(l.third, third)
	VPBLENDVB(four, third, l.divisor, l.divisor)
	for _, m := range l.middle {
		VPXOR(m, m, m)
	}
	for k := range 3 {
		l.channel(k)
	}
	VPCMPEQD(l.three, l.last, four)
	VMOVDQU(l.unreachable, y(9))
	VPBLENDVB(four, l.middle[2], y(9), l.middle[2])
	l.sum()
	VZEROUPPER()
	RET()
}

// channel finds the endpoints and the places between them in a channel, and adds to what tells which place is nearest.
func (l *lineCode) channel(k int) {
	green := k & 1
	a, b, p, q, t, free, d := y(5), y(6), y(7), y(8), y(9), y(10), y(11)
	VBROADCASTSS(l.line.Offset(16+4*k), free)
	VMULPS(l.scale, free, free)
	VBROADCASTSS(l.line.Offset(4*k), t)
	VSUBPS(free, t, a)
	VADDPS(free, t, b)
	VXORPS(free, free, free)
	for _, end := range []reg.VecPhysical{a, b} {
		VMAXPS(free, end, end)
		VMINPS(l.full, end, end)
		VMULPS(l.scales[green], end, end)
		VADDPS(l.half, end, end)
		VCVTTPS2DQ(end, end)
		VPSLLD(Imm(uint64(3-green)), end, t) // 5 or 6 bits to 8
		VPSRLD(Imm(uint64(2+2*green)), end, end)
		VPOR(t, end, end)
	}
	VPSUBD(a, b, d)
	VPCMPEQD(t, t, t)
	VPADDD(t, l.last, t)
	VPMADDWD(t, a, p)
	VPADDD(b, p, p)
	VPMULLD(l.divisor, p, p)
	VPSRLD(Imm(16), p, p) // place 1
	VPSUBD(l.two, l.last, t)
	VPMADDWD(t, a, q)
	VPADDD(b, q, q)
	VPADDD(b, q, q)
	VPMULLD(l.divisor, q, q)
	VPSRLD(Imm(16), q, q) // place 2
	VPADDD(p, a, a)
	VPADDD(q, p, p)
	VPADDD(b, q, q)
	for i, sum := range []reg.VecPhysical{a, p, q} {
		VPMADDWD(d, sum, sum)
		VPADDD(sum, l.middle[i], l.middle[i])
	}
	VPADDD(d, d, d)
	switch k {
	case 0:
		VPSLLD(Imm(16), d, l.redGreen)
		VPSRLD(Imm(16), l.redGreen, l.redGreen)
	case 1:
		VPSLLD(Imm(16), d, d)
		VPOR(d, l.redGreen, l.redGreen)
	case 2:
		VMOVDQA(d, l.blue)
	}
}

// sum finds the place of each pixel on each line, and writes the sums.
func (l *lineCode) sum() {
	sum, squares, sumRedGreen, sumBlue := y(5), y(6), y(7), y(8)
	for _, v := range []reg.VecPhysical{sum, squares, sumRedGreen, sumBlue} {
		VPXOR(v, v, v)
	}
	redGreen, blue, at, place, t := y(9), y(10), y(11), y(12), y(13)
	left := GP64()
	MOVQ(U32(16), left)
	Label("linePixel")
	VPBROADCASTD(l.pixels, redGreen)
	VPBROADCASTD(l.pixels.Offset(64), blue)
	VPMADDWD(l.redGreen, redGreen, at)
	VPMADDWD(l.blue, blue, place)
	VPADDD(place, at, at)
	VPCMPGTD(l.middle[0], at, place)
	for _, m := range l.middle[1:] {
		VPCMPGTD(m, at, t)
		VPADDD(t, place, place)
	}
	VPABSD(place, place)
	VPADDD(place, sum, sum)
	VPMADDWD(place, place, t)
	VPADDD(t, squares, squares)
	VPSLLD(Imm(16), place, t)
	VPOR(t, place, place)
	VPMULLW(place, redGreen, redGreen)
	VPADDW(redGreen, sumRedGreen, sumRedGreen)
	VPMULLW(place, blue, blue)
	VPADDW(blue, sumBlue, sumBlue)
	ADDQ(Imm(4), l.pixels.Base)
	DECQ(left)
	JNZ(LabelRef("linePixel"))
	VPSLLD(Imm(16), sumRedGreen, redGreen)
	VPSRLD(Imm(16), redGreen, redGreen)
	VPSRLD(Imm(16), sumRedGreen, sumRedGreen)
	for i, v := range []reg.VecPhysical{sum, squares, redGreen, sumRedGreen, sumBlue} {
		VMOVDQU(v, l.sums.Offset((1+i)*lane))
	}
}

// reach writes a function that finds how far 16 colours reach along an axis.
func reach() {
	TEXT("reachLanes", NOSPLIT, "func(pixels *uint32, axis *[2]uint32, ends *[2]int32)")
	Doc("reachLanes finds the least and the greatest product of a colour and an axis, which has words.")
	pixels, axis, ends := pointer("pixels"), pointer("axis"), pointer("ends")
	VPBROADCASTD(axis, y(2))
	VPBROADCASTD(axis.Offset(4), y(3))
	for k := range 2 {
		VPMADDWD(pixels.Offset(k*lane), y(2), y(k))
		VPMADDWD(pixels.Offset((2+k)*lane), y(3), y(4))
		VPADDD(y(4), y(k), y(k))
	}
	least, most, free := reg.X2, reg.X3, reg.X4
	VPMINSD(y(1), y(0), y(2))
	VPMAXSD(y(1), y(0), y(3))
	VEXTRACTI128(Imm(1), y(2), free)
	VPMINSD(free, least, least)
	VEXTRACTI128(Imm(1), y(3), free)
	VPMAXSD(free, most, most)
	for _, order := range []uint64{0x4e, 0xb1} {
		VPSHUFD(Imm(order), least, free)
		VPMINSD(free, least, least)
		VPSHUFD(Imm(order), most, free)
		VPMAXSD(free, most, most)
	}
	VMOVD(least, ends)
	VMOVD(most, ends.Offset(4))
	VZEROUPPER()
	RET()
}
