package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// span writes a function that does the same as group.span, and sums the pixels. Two of four channels share half a
// register.
func span() {
	pairs := GLOBL("spanPairs", RODATA|NOPTR) // r0 g0 b0 a0 r1 g1 b1 a1 to r0 r1 g0 g1 b0 b1 a0 a1
	for i, v := range []uint64{0x0b0a030209080100, 0x0f0e07060d0c0504, 0x0b0a030209080100, 0x0f0e07060d0c0504} {
		DATA(8*i, U64(v))
	}
	apart := GLOBL("spanChannels", RODATA|NOPTR) // a channel of two pixels as double words: the lower or the upper channel
	for c := range uint64(4) {
		const none = 0x8080808080808080
		at := 0x8080_0908_8080_0100 + c*0x0000_0202_0000_0202
		for i, v := range []uint64{at, none, at, none, none, at, none, at} {
			DATA(int(c)*64+8*i, U64(v))
		}
	}
	TEXT("spanLanes", NOSPLIT, "func(pix *int16, masks *uint32, n int32, inverse float32, sum *int32, ends *float32)")
	Doc("spanLanes finds the line through pixels, as group.span does, and their sum.")
	pix, masks := Mem{Base: Load(Param("pix"), GP64())}, Mem{Base: Load(Param("masks"), GP64())}
	n, inverse := GP32(), reg.X11
	Load(Param("n"), n)
	broadcast("inverse", inverse)
	sum, ends := Mem{Base: Load(Param("sum"), GP64())}, Mem{Base: Load(Param("ends"), GP64())}
	kept := []reg.VecPhysical{reg.Y12, reg.Y13, reg.Y14, reg.Y15}
	spanSums(pix, masks, pairs, kept)
	rows, v := []reg.VecPhysical{reg.X0, reg.X1, reg.X2, reg.X3}, reg.X8
	spanCovariance(n, sum, rows, v)
	spanAxis(rows, v)
	spanExtremes(masks, apart, ends, inverse, v, kept)
	VZEROUPPER()
	RET()
}

// spanSums adds the products of channels to Y0 to Y3, and the channels to Y4.
func spanSums(pix, masks, pairs Mem, kept []reg.VecPhysical) {
	ones := reg.Y9
	VPCMPEQW(ones, ones, ones)
	VPSRLW(Imm(15), ones, ones)
	for i := range 5 {
		VPXOR(y(i), y(i), y(i))
	}
	for k, p := range kept {
		VMOVDQU(pix.Offset(k*lane), p)
		VPAND(masks.Offset((2+k)*lane), p, p)
		VPSHUFB(pairs, p, reg.Y5)
		for i := range 4 { // rows of the sums of products
			VPSHUFD(Imm(uint64(i*0x55)), reg.Y5, reg.Y6)
			VPMADDWD(reg.Y6, reg.Y5, reg.Y6)
			VPADDD(reg.Y6, y(i), y(i))
		}
		VPMADDWD(ones, reg.Y5, reg.Y5)
		VPADDD(reg.Y5, reg.Y4, reg.Y4)
	}
}

// spanCovariance computes n times the covariance of channels, and v, its row of the largest variance.
func spanCovariance(n reg.Register, sum Mem, rows []reg.VecPhysical, v reg.VecPhysical) {
	sums, count, most := reg.X4, reg.X5, reg.X9
	for i, r := range append(rows, sums) {
		VEXTRACTI128(Imm(1), y(i), reg.X6)
		VPADDD(reg.X6, r, r)
	}
	VMOVDQU(sums, sum)
	VMOVD(n, count)
	VPBROADCASTD(count, count)
	for i, r := range rows { // n times the covariance
		VPMULLD(count, r, r)
		VPSHUFD(Imm(uint64(i*0x55)), sums, reg.X6)
		VPMULLD(sums, reg.X6, reg.X6)
		VPSUBD(reg.X6, r, r)
		VCVTDQ2PS(r, r)
	}
	VMOVAPS(rows[0], v) // the row of the largest variance
	VPSHUFD(Imm(0), rows[0], most)
	for i := 1; i < 4; i++ {
		VPSHUFD(Imm(uint64(i*0x55)), rows[i], reg.X6)
		VCMPPS(Imm(1), reg.X6, most, reg.X7)
		VBLENDVPS(reg.X7, reg.X6, most, most)
		VBLENDVPS(reg.X7, rows[i], v, v)
	}
}

// spanAxis turns v to the principal axis, of length 1.
func spanAxis(rows []reg.VecPhysical, v reg.VecPhysical) {
	most := reg.X9
	ahead := func(from, to reg.VecPhysical) { // sums the four floats in their order, in X6, to the lowest
		VPSHUFD(Imm(0xe5), from, reg.X6)
		VADDSS(reg.X6, from, to)
		VPSHUFD(Imm(0xe6), from, reg.X6)
		VADDSS(reg.X6, to, to)
		VPSHUFD(Imm(0xe7), from, reg.X6)
		VADDSS(reg.X6, to, to)
	}
	one := reg.X5
	VPCMPEQD(one, one, one)
	VPSRLD(Imm(25), one, one)
	VPSLLD(Imm(23), one, one)
	u := reg.X7
	for range 4 {
		VPSHUFD(Imm(0), v, u)
		VMULPS(rows[0], u, u)
		for i := 1; i < 4; i++ {
			VPSHUFD(Imm(uint64(i*0x55)), v, reg.X6)
			VMULPS(rows[i], reg.X6, reg.X6)
			VADDPS(reg.X6, u, u)
		}
		VPSLLD(Imm(1), u, most) // without the sign
		VPSRLD(Imm(1), most, most)
		VPSHUFD(Imm(0x4e), most, reg.X6)
		VMAXPS(reg.X6, most, most)
		VPSHUFD(Imm(0xb1), most, reg.X6)
		VMAXPS(reg.X6, most, most)
		VPXOR(reg.X6, reg.X6, reg.X6)
		VUCOMISS(reg.X6, most)
		JE(LabelRef("spanFound"))
		VDIVPS(most, one, most)
		VMULPS(most, u, v)
	}
	VMULPS(v, v, u)
	ahead(u, most)
	VSQRTSS(most, most, most)
	VDIVSS(most, one, most)
	VPSHUFD(Imm(0), most, most)
	VMULPS(most, v, v)
	Label("spanFound")
}

// spanExtremes stores the first and the last pixel along v.
func spanExtremes(masks, apart, ends Mem, inverse, v reg.VecPhysical, kept []reg.VecPhysical) {
	sums := reg.X4
	mean := reg.X10
	VCVTDQ2PS(sums, mean)
	VMULPS(inverse, mean, mean)
	low, high, t := reg.Y0, reg.Y1, reg.Y2
	VPXOR(low, low, low)
	VPXOR(high, high, high)
	for half := range 2 {
		for c := range 4 {
			VPSHUFB(apart.Offset(c*64), kept[2*half], reg.Y3)
			VPSHUFB(apart.Offset(c*64+32), kept[2*half+1], reg.Y4)
			VPOR(reg.Y4, reg.Y3, reg.Y3)
			VCVTDQ2PS(reg.Y3, reg.Y3)
			VPSHUFD(Imm(uint64(c*0x55)), mean, reg.X4)
			VBROADCASTSS(reg.X4, reg.Y4)
			VSUBPS(reg.Y4, reg.Y3, reg.Y3)
			VPSHUFD(Imm(uint64(c*0x55)), v, reg.X4)
			VBROADCASTSS(reg.X4, reg.Y4)
			if c == 0 {
				VMULPS(reg.Y4, reg.Y3, t)
			} else {
				VMULPS(reg.Y4, reg.Y3, reg.Y3)
				VADDPS(reg.Y3, t, t)
			}
		}
		VPERMQ(Imm(0xd8), masks.Offset(half*lane), reg.Y4)
		VPAND(reg.Y4, t, t)
		VMINPS(t, low, low)
		VMAXPS(t, high, high)
	}
	for i, extreme := range []reg.VecPhysical{reg.X0, reg.X1} {
		fold := VMINPS
		if i == 1 {
			fold = VMAXPS
		}
		VEXTRACTF128(Imm(1), y(i), reg.X4)
		fold(reg.X4, extreme, extreme)
		VPSHUFD(Imm(0x4e), extreme, reg.X4)
		fold(reg.X4, extreme, extreme)
		VPSHUFD(Imm(0xb1), extreme, reg.X4)
		fold(reg.X4, extreme, extreme)
		VMULPS(v, extreme, extreme)
		VADDPS(extreme, mean, extreme)
		VMOVUPS(extreme, ends.Offset(16*i))
	}
}
