package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

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
	full, half := filled(math.Float32bits(255)), filled(math.Float32bits(0.5))
	two, three, third, unreachable := filled(2), filled(3), filled(65536/3+1), filled(1<<30)
	var scales [2]Mem // of 5 and 6 bits
	for i, top := range []uint32{31, 63} {
		scales[i] = filled(math.Float32bits(float32(top) / 255))
	}

	TEXT("lineSums", NOSPLIT, "func(pixels *uint32, line *[2][4]float32, scale *float32, last *int32, sums *[6][8]int32)")
	Doc("lineSums finds, for each of eight lines, the last place, the sums of places and of their squares, and of colours times places. line has",
		"the mean of the colours, and half a line, whose multiples by scale the lines are.")
	pixels, line, scale := pointer("pixels"), pointer("line"), pointer("scale")
	last, sums := pointer("last"), pointer("sums")
	// Y0 to Y4: what places are found by, for eight lines; the differences are doubled.
	redGreen, blue, middle := y(0), y(1), [3]reg.VecPhysical{y(2), y(3), y(4)}
	a, b, p, q, t, free, d := y(5), y(6), y(7), y(8), y(9), y(10), y(11)
	places, divisor := y(12), y(13)
	VMOVDQU(last, places)
	VMOVDQU(places, sums)
	VPCMPEQD(three, places, free)
	VPCMPEQD(p, p, p)
	VPSRLD(Imm(31), p, p)
	VPSLLD(Imm(15), p, divisor) // a half of 1<<16 for three places, a third for four
	VMOVDQU(third, p)
	VPBLENDVB(free, p, divisor, divisor)
	for i := range middle {
		VPXOR(middle[i], middle[i], middle[i])
	}
	for k := range 3 {
		green := k & 1
		VBROADCASTSS(line.Offset(16+4*k), free)
		VMULPS(scale, free, free)
		VBROADCASTSS(line.Offset(4*k), t)
		VSUBPS(free, t, a)
		VADDPS(free, t, b)
		VXORPS(free, free, free)
		for _, end := range []reg.VecPhysical{a, b} {
			VMAXPS(free, end, end)
			VMINPS(full, end, end)
			VMULPS(scales[green], end, end)
			VADDPS(half, end, end)
			VCVTTPS2DQ(end, end)
			VPSLLD(Imm(uint64(3-green)), end, t)
			VPSRLD(Imm(uint64(2+2*green)), end, end)
			VPOR(t, end, end)
		}
		VPSUBD(a, b, d)
		VPCMPEQD(t, t, t)
		VPADDD(t, places, t)
		VPMADDWD(t, a, p)
		VPADDD(b, p, p)
		VPMULLD(divisor, p, p)
		VPSRLD(Imm(16), p, p) // place 1
		VPSUBD(two, places, t)
		VPMADDWD(t, a, q)
		VPADDD(b, q, q)
		VPADDD(b, q, q)
		VPMULLD(divisor, q, q)
		VPSRLD(Imm(16), q, q) // place 2
		VPADDD(p, a, a)
		VPADDD(q, p, p)
		VPADDD(b, q, q)
		for i, sum := range []reg.VecPhysical{a, p, q} {
			VPMADDWD(d, sum, sum)
			VPADDD(sum, middle[i], middle[i])
		}
		VPADDD(d, d, d)
		switch k {
		case 0:
			VPSLLD(Imm(16), d, redGreen)
			VPSRLD(Imm(16), redGreen, redGreen)
		case 1:
			VPSLLD(Imm(16), d, d)
			VPOR(d, redGreen, redGreen)
		case 2:
			VMOVDQA(d, blue)
		}
	}
	VPCMPEQD(three, places, free)
	VMOVDQU(unreachable, t)
	VPBLENDVB(free, middle[2], t, middle[2])
	sum, squares, sumRedGreen, sumBlue := y(5), y(6), y(7), y(8)
	for _, v := range []reg.VecPhysical{sum, squares, sumRedGreen, sumBlue} {
		VPXOR(v, v, v)
	}
	rg, bl, at2, place := y(9), y(10), y(11), y(12)
	left := GP64()
	MOVQ(U32(16), left)
	Label("linePixel")
	VPBROADCASTD(pixels, rg)
	VPBROADCASTD(pixels.Offset(64), bl)
	VPMADDWD(redGreen, rg, at2)
	VPMADDWD(blue, bl, place)
	VPADDD(place, at2, at2)
	VPCMPGTD(middle[0], at2, place)
	for _, m := range middle[1:] {
		VPCMPGTD(m, at2, y(13))
		VPADDD(y(13), place, place)
	}
	VPABSD(place, place)
	VPADDD(place, sum, sum)
	VPMADDWD(place, place, y(13))
	VPADDD(y(13), squares, squares)
	VPSLLD(Imm(16), place, y(13))
	VPOR(y(13), place, place)
	VPMULLW(place, rg, rg)
	VPADDW(rg, sumRedGreen, sumRedGreen)
	VPMULLW(place, bl, bl)
	VPADDW(bl, sumBlue, sumBlue)
	ADDQ(Imm(4), pixels.Base)
	DECQ(left)
	JNZ(LabelRef("linePixel"))
	VMOVDQU(sum, sums.Offset(lane))
	VMOVDQU(squares, sums.Offset(2*lane))
	VPSLLD(Imm(16), sumRedGreen, rg)
	VPSRLD(Imm(16), rg, rg)
	VMOVDQU(rg, sums.Offset(3*lane))
	VPSRLD(Imm(16), sumRedGreen, sumRedGreen)
	VMOVDQU(sumRedGreen, sums.Offset(4*lane))
	VMOVDQU(sumBlue, sums.Offset(5*lane))
	VZEROUPPER()
	RET()
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
