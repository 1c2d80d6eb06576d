package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// sound writes the loops over samples that need nothing of the sample before: eight samples at a time, with the same
// operations in the same order, so the same results to the bit.
func sound() {
	deinterleave()
	largest()
	highestBetween()
	toInt16()
}

// filled has a value of 32 bits in each part of a register.
func filled(bits uint32, to reg.VecPhysical, by reg.GPVirtual) {
	MOVL(U32(bits), by.As32())
	VMOVD(by.As32(), to.AsX())
	VPBROADCASTD(to.AsX(), to)
}

const withoutSign = 1<<31 - 1

func deinterleave() {
	TEXT("deinterleave", NOSPLIT, "func(left, right, both *float32, n int)")
	Doc("deinterleave separates samples of two channels, n of each, in multiples of 8.")
	left, right := Load(Param("left"), GP64()), Load(Param("right"), GP64())
	both, n := Load(Param("both"), GP64()), Load(Param("n"), GP64())
	Label("frames")
	VMOVUPS(Mem{Base: both}, reg.Y0)
	VMOVUPS(Mem{Base: both}.Offset(lane), reg.Y1)
	for k, to := range []reg.Register{left, right} {
		VSHUFPS(Imm([]uint64{0x88, 0xdd}[k]), reg.Y1, reg.Y0, reg.Y2) // frames 0, 1, 4, 5 and 2, 3, 6, 7
		VPERMPD(Imm(0xd8), reg.Y2, reg.Y2)
		VMOVUPS(reg.Y2, Mem{Base: to})
		ADDQ(Imm(lane), to)
	}
	ADDQ(Imm(2*lane), both)
	SUBQ(Imm(8), n)
	JNZ(LabelRef("frames"))
	VZEROUPPER()
	RET()
}

func largest() {
	TEXT("largest", NOSPLIT, "func(s *float32, n int) uint32")
	Doc("largest returns the bits of the largest absolute sample. n is at least 8; the last 8 are read together.")
	s, n, by := Load(Param("s"), GP64()), Load(Param("n"), GP64()), GP64()
	absolute, most, v := reg.Y0, reg.Y1, reg.Y2
	filled(withoutSign, absolute, by)
	VPAND(Mem{Base: s, Index: n, Scale: 4}.Offset(-lane), absolute, most)
	SUBQ(Imm(8), n)
	JZ(LabelRef("done"))
	Label("samples")
	VPAND(Mem{Base: s}, absolute, v)
	VPMAXUD(v, most, most)
	ADDQ(Imm(lane), s)
	SUBQ(Imm(8), n)
	JG(LabelRef("samples"))
	Label("done")
	VEXTRACTI128(Imm(1), most, v.AsX())
	VPMAXUD(v.AsX(), most.AsX(), most.AsX())
	for _, exchange := range []uint64{0x4e, 0xb1} {
		VPSHUFD(Imm(exchange), most.AsX(), v.AsX())
		VPMAXUD(v.AsX(), most.AsX(), most.AsX())
	}
	result := GP32()
	VMOVD(most.AsX(), result)
	Store(result, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// highestBetween is highest of eight places at a time: the place decides the part of a register.
func highestBetween() {
	TEXT("highestBetween", NOSPLIT, "func(s *float32, n int, taps *[24]float32) float32")
	Doc("highestBetween returns the largest absolute value between samples at n places, in multiples of 8.")
	s, n := Load(Param("s"), GP64()), Load(Param("n"), GP64())
	taps, by := Mem{Base: Load(Param("taps"), GP64())}, GP64()
	absolute, peak := reg.Y15, reg.Y14
	filled(withoutSign, absolute, by)
	VXORPS(peak, peak, peak)
	Label("places")
	half, quarter, across := reg.Y0, reg.Y1, reg.Y2
	sums := [3][2]reg.VecPhysical{{half, reg.Y3}, {quarter, reg.Y4}, {across, reg.Y5}}
	for k := range 8 {
		first, last, tap := reg.Y6, reg.Y7, reg.Y8
		VMOVUPS(Mem{Base: s}.Offset(4*k), first)
		VMOVUPS(Mem{Base: s}.Offset(4*(15-k)), last)
		VADDPS(last, first, reg.Y9)
		VSUBPS(last, first, reg.Y10)
		for row, v := range []reg.VecPhysical{reg.Y9, reg.Y9, reg.Y10} {
			to := sums[row][k/4]
			VBROADCASTSS(taps.Offset(4*(8*row+k)), tap)
			if k%4 == 0 {
				VMULPS(tap, v, to)
				continue
			}
			VMULPS(tap, v, tap)
			VADDPS(tap, to, to)
		}
	}
	for _, sum := range sums {
		VADDPS(sum[1], sum[0], sum[0])
		VANDPS(absolute, sum[0], sum[0])
	}
	VMAXPS(peak, half, peak) // the old peak if the value is not a number
	VADDPS(across, quarter, quarter)
	VMAXPS(peak, quarter, peak)
	ADDQ(Imm(lane), s)
	SUBQ(Imm(8), n)
	JNZ(LabelRef("places"))
	x := reg.Y0
	VEXTRACTF128(Imm(1), peak, x.AsX())
	VMAXPS(x.AsX(), peak.AsX(), peak.AsX())
	for _, exchange := range []uint64{0x4e, 0xb1} {
		VPSHUFD(Imm(exchange), peak.AsX(), x.AsX())
		VMAXPS(x.AsX(), peak.AsX(), peak.AsX())
	}
	result, err := ReturnIndex(0).Resolve()
	if err != nil {
		panic(err)
	}
	VMOVSS(peak.AsX(), result.Addr)
	VZEROUPPER()
	RET()
}

func toInt16() {
	TEXT("toInt16", NOSPLIT, "func(dst *int16, src *float32, n int, inner float32) (done int)")
	Doc("toInt16 rounds samples to 16 bits, in multiples of 16, up to the first 16 of which one is not below inner.")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
	by, done, mask := GP64(), GP64(), GP32()
	absolute, inner, full, one := reg.Y15, reg.Y14, reg.Y13, reg.Y12
	filled(withoutSign, absolute, by)
	broadcast("inner", inner)
	filled(0x47800000, full, by) // 65536
	filled(1, one, by)
	XORQ(done, done)
	Label("samples")
	parts := [2]reg.VecPhysical{reg.Y0, reg.Y1}
	for k, v := range parts {
		VMOVUPS(Mem{Base: src}.Offset(k*lane), v)
		VANDPS(absolute, v, []reg.VecPhysical{reg.Y2, reg.Y3}[k])
	}
	VCMPPS(Imm(17), inner, reg.Y2, reg.Y2) // less; false if it is not a number
	VCMPPS(Imm(17), inner, reg.Y3, reg.Y3)
	VANDPS(reg.Y3, reg.Y2, reg.Y2)
	VMOVMSKPS(reg.Y2, mask)
	CMPL(mask, Imm(0xff))
	JNE(LabelRef("end"))
	for _, v := range parts {
		VMULPS(full, v, v)
		VCVTTPS2DQ(v, v)
		VPSRAD(Imm(31), v, reg.Y2)
		VPADDD(one, v, v)
		VPADDD(reg.Y2, v, v)
		VPSRAD(Imm(1), v, v)
	}
	VPACKSSDW(parts[1], parts[0], reg.Y0)
	VPERMQ(Imm(0xd8), reg.Y0, reg.Y0)
	VMOVDQU(reg.Y0, Mem{Base: dst})
	ADDQ(Imm(lane), dst)
	ADDQ(Imm(2*lane), src)
	ADDQ(Imm(16), done)
	CMPQ(done, n)
	JLT(LabelRef("samples"))
	Label("end")
	Store(done, ReturnIndex(0))
	VZEROUPPER()
	RET()
}
