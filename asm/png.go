package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// png writes functions that reverse filters of rows with pixels of four bytes. Each pixel depends on the one before, so
// they take one at a time; its channels are side by side in a register.
func png() {
	paethLanes()
	averageLanes()
}

// paethLanes has the channels as words of 16 bits. The time between two pixels is that of eight instructions.
func paethLanes() {
	TEXT("paethLanes", NOSPLIT, "func(dst, src, above *byte, n int, opaque uint32)")
	Doc("paethLanes reverses the filter of Paeth for n pixels, at least one, and adds bits to each.")
	dst, src, above := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("above"), GP64())
	n, opaque := Load(Param("n"), GP64()), XMM()
	VMOVD(Load(Param("opaque"), GP32()), opaque)
	left, corner := XMM(), XMM()
	VPXOR(left, left, left)
	VPXOR(corner, corner, corner)
	Label("pixel")
	up, now := XMM(), XMM()
	VMOVD(Mem{Base: above}, up)
	VMOVD(Mem{Base: src}, now)
	VPMOVZXBW(up, up)
	VPMOVZXBW(now, now)
	a, b, c, least := XMM(), XMM(), XMM(), XMM() // distances from left, up and corner
	VPSUBW(corner, up, a)
	VPSUBW(corner, left, b)
	VPADDW(a, b, c)
	VPABSW(a, a)
	VPABSW(b, b)
	VPABSW(c, c)
	VPMINSW(b, a, least)
	VPMINSW(c, least, least)
	VPCMPEQW(least, a, a)
	VPCMPEQW(least, b, b)
	VPBLENDVB(b, up, corner, corner)
	VPBLENDVB(a, left, corner, corner)
	VPADDB(corner, now, left)
	VMOVDQA(up, corner)
	VPACKUSWB(left, left, now)
	VPOR(opaque, now, now)
	VMOVD(now, Mem{Base: dst})
	ADDQ(Imm(4), dst)
	ADDQ(Imm(4), src)
	ADDQ(Imm(4), above)
	DECQ(n)
	JNZ(LabelRef("pixel"))
	RET()
}

// averageLanes rounds the mean down: VPAVGB rounds up where the sum is odd.
func averageLanes() {
	TEXT("averageLanes", NOSPLIT, "func(dst, src, above *byte, n int, opaque uint32)")
	Doc("averageLanes reverses the filter of means for n pixels, at least one, and adds bits to each.")
	dst, src, above := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("above"), GP64())
	n, opaque := Load(Param("n"), GP64()), XMM()
	VMOVD(Load(Param("opaque"), GP32()), opaque)
	left, one := XMM(), XMM()
	VPXOR(left, left, left)
	VPCMPEQB(one, one, one)
	VPABSB(one, one)
	Label("pixel")
	up, now, mean, odd := XMM(), XMM(), XMM(), XMM()
	VMOVD(Mem{Base: above}, up)
	VMOVD(Mem{Base: src}, now)
	VPAVGB(up, left, mean)
	VPXOR(up, left, odd)
	VPAND(one, odd, odd)
	VPADDB(now, mean, mean)
	VPSUBB(odd, mean, left)
	VPOR(opaque, left, now)
	VMOVD(now, Mem{Base: dst})
	ADDQ(Imm(4), dst)
	ADDQ(Imm(4), src)
	ADDQ(Imm(4), above)
	DECQ(n)
	JNZ(LabelRef("pixel"))
	RET()
}
