package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// loadTexels writes a function that widens the bytes of texels, and finds their sums: two registers for each texel, which are
// products of a register of factors and another one.
func loadTexels() {
	factors := GLOBL("loadFactors", RODATA|NOPTR) // the bytes of a texel by double word; 4 is none
	none := uint8(4)
	for i, row := range [4][8]uint8{
		{0, 1, 2, 3, 0, 0, 0, 0}, {none, none, none, none, 0, 1, 2, 3},
		{1, 1, 1, 2, 2, 3, none, none}, {1, 2, 3, 2, 3, 3, none, none},
	} {
		for k, from := range row {
			v := uint32(0x80808000) | uint32(from)
			if from == none {
				v = 0x80808080
			}
			DATA(lane*i+4*k, U32(v))
		}
	}
	for k, v := range [16]uint32{1, 1, 1, 1, 14: 1} { // ones in place of missing factors
		DATA(4*lane+4*k, U32(v))
	}
	TEXT("loadLanes", NOSPLIT, "func(texels *uint8, n int, texel *int32, value *float32, moments, all *int32)")
	Doc("loadLanes fills out what encoder.load has of each texel, and their sums.")
	texels, texel, value := pointer("texels"), pointer("texel"), pointer("value")
	n, moments, all := Load(Param("n"), GP64()), pointer("moments"), pointer("all")
	for i := range 6 {
		VMOVDQU(factors.Offset(lane*i), y(8+i))
	}
	VPXOR(reg.Y4, reg.Y4, reg.Y4)
	VPXOR(reg.Y5, reg.Y5, reg.Y5)
	Label("loadNext")
	VPBROADCASTD(texels, reg.Y0)
	for half := range 2 {
		VPSHUFB(y(8+2*half), reg.Y0, reg.Y1)
		VPSHUFB(y(9+2*half), reg.Y0, reg.Y2)
		if half == 0 {
			VMOVDQU(reg.X1, texel)
			VCVTDQ2PS(reg.X1, reg.X3)
			VMOVUPS(reg.X3, value)
		} else {
			VPOR(reg.Y13, reg.Y1, reg.Y1)
		}
		VPOR(y(12+half), reg.Y2, reg.Y2)
		VPMADDWD(reg.Y1, reg.Y2, reg.Y2)
		VMOVDQU(reg.Y2, moments.Offset(lane*half))
		VPADDD(reg.Y2, y(4+half), y(4+half))
	}
	ADDQ(Imm(4), texels.Base)
	ADDQ(Imm(16), texel.Base)
	ADDQ(Imm(16), value.Base)
	ADDQ(Imm(64), moments.Base)
	DECQ(n)
	JNZ(LabelRef("loadNext"))
	VMOVDQU(reg.Y4, all)
	VMOVDQU(reg.Y5, all.Offset(lane))
	VZEROUPPER()
	RET()
}

// splitTexels writes a function that splits texels by channel, eight at once, to words and to floats.
func splitTexels() {
	TEXT("splitLanes", NOSPLIT, "func(texels *uint8, groups int, words *int16, channels *float32)")
	Doc("splitLanes fills out the channels of eight texels in each group.")
	texels, words, channels := pointer("texels"), pointer("words"), pointer("channels")
	groups := Load(Param("groups"), GP64())
	mask := reg.Y4
	VPCMPEQD(mask, mask, mask)
	VPSRLD(Imm(24), mask, mask)
	Label("splitNext")
	VMOVDQU(texels, reg.Y0)
	for c := range 4 {
		VPAND(mask, reg.Y0, reg.Y1)
		VCVTDQ2PS(reg.Y1, reg.Y2)
		VMOVUPS(reg.Y2, channels.Offset(c*4*maxTexels))
		VEXTRACTI128(Imm(1), reg.Y1, reg.X2)
		VPACKUSDW(reg.X2, reg.X1, reg.X1)
		VMOVDQU(reg.X1, words.Offset(c*2*maxTexels))
		VPSRLD(Imm(8), reg.Y0, reg.Y0)
	}
	ADDQ(Imm(lane), texels.Base)
	ADDQ(Imm(16), words.Base)
	ADDQ(Imm(lane), channels.Base)
	DECQ(groups)
	JNZ(LabelRef("splitNext"))
	VZEROUPPER()
	RET()
}

// quantize writes a function that stretches numbers to 0..64, eight at once, and looks them up in a table of bytes. The numbers
// are padded by copies of any of them.
func quantize() {
	TEXT("quantizeLanes", NOSPLIT, "func(grid *float32, groups int, near, out *uint8)")
	Doc("quantizeLanes does the same as shape.quantize, for eight places in each group.")
	g, near, out := pointer("grid"), pointer("near"), pointer("out")
	groups := Load(Param("groups"), GP64())
	low, span, scale, zero, half, most := reg.Y0, reg.Y1, reg.Y1, reg.Y3, reg.Y9, reg.Y7
	at, left, bits := GP64(), GP64(), GP32()
	constant := func(v uint32, to reg.VecPhysical) {
		MOVL(U32(v), bits)
		VMOVD(bits, to.AsX())
		VPBROADCASTD(to.AsX(), to)
	}
	VMOVUPS(g, low)
	VMOVAPS(low, span)
	MOVQ(g.Base, at)
	MOVQ(groups, left)
	Label("quantizeRange")
	VMOVUPS(Mem{Base: at}, reg.Y2)
	VMINPS(reg.Y2, low, low)
	VMAXPS(reg.Y2, span, span)
	ADDQ(Imm(lane), at)
	DECQ(left)
	JNZ(LabelRef("quantizeRange"))
	for i, fold := range []func(...Op){func(o ...Op) { VMINPS(o[0], o[1], o[2]) }, func(o ...Op) { VMAXPS(o[0], o[1], o[2]) }} {
		VPERM2F128(Imm(1), y(i), y(i), reg.Y2)
		fold(reg.Y2, y(i), y(i))
		for _, order := range []uint64{0x4e, 0xb1} {
			VPERMILPS(Imm(order), y(i), reg.Y2)
			fold(reg.Y2, y(i), y(i))
		}
	}
	VXORPS(zero, zero, zero)
	VMAXPS(zero, low, low)
	constant(0x3f800000, reg.Y2) // 1
	VMINPS(reg.Y2, span, span)
	VSUBPS(low, span, span)
	constant(0x358637bd, reg.Y2) // 1e-6
	VCMPPS(Imm(1), span, reg.Y2, reg.Y2)
	constant(0x42800000, most) // 64
	VDIVPS(span, most, scale)
	VANDPS(reg.Y2, scale, scale)
	constant(0x3f000000, half) // 1/2
	for k := range 4 {
		VBROADCASTI128(near.Offset(16*k), y(10+k))
	}
	step, past, last := reg.Y14, reg.Y15, reg.Y6
	constant(0x10101010, step)
	constant(0x70707070, past) // moves what is beyond 15 to where VPSHUFB returns 0
	constant(0x40404040, last) // 64, whose value is 64
	Label("quantizeNext")
	v, t, sum := reg.Y2, reg.X4, reg.X5
	VMOVUPS(g, v)
	VSUBPS(low, v, v)
	VMULPS(scale, v, v)
	VMAXPS(zero, v, v)
	VMINPS(most, v, v)
	VADDPS(half, v, v)
	VCVTTPS2DQ(v, v)
	VEXTRACTI128(Imm(1), v, t)
	VPACKSSDW(t, reg.X2, reg.X2)
	VPACKUSWB(reg.X2, reg.X2, reg.X2)
	VPAND(reg.X6, reg.X2, sum)
	for k := range 4 {
		if k > 0 {
			VPSUBB(reg.X14, reg.X2, reg.X2)
		}
		VPADDUSB(reg.X15, reg.X2, t)
		VPSHUFB(t, y(10+k).AsX(), t)
		VPOR(t, sum, sum)
	}
	VMOVQ(sum, out)
	ADDQ(Imm(lane), g.Base)
	ADDQ(Imm(8), out.Base)
	DECQ(groups)
	JNZ(LabelRef("quantizeNext"))
	VZEROUPPER()
	RET()
}
