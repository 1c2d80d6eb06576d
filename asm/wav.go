package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// wav writes the conversion of samples of 16 bits, sixteen at a time.
func wav() {
	TEXT("fromInt16", NOSPLIT, "func(dst *float32, src *byte, n int)")
	Doc("fromInt16 converts samples of 16 bits, in multiples of 16.")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
	by := GP32()
	step := reg.Y2
	MOVL(U32(0x38000000), by) // 1/32768
	VMOVD(by, step.AsX())
	VPBROADCASTD(step.AsX(), step)
	Label("samples")
	for k, v := range []reg.VecPhysical{reg.Y0, reg.Y1} {
		VPMOVSXWD(Mem{Base: src}.Offset(k*lane/2), v)
		VCVTDQ2PS(v, v)
		VMULPS(step, v, v)
		VMOVUPS(v, Mem{Base: dst}.Offset(k*lane))
	}
	ADDQ(Imm(lane), src)
	ADDQ(Imm(2*lane), dst)
	SUBQ(Imm(16), n)
	JNZ(LabelRef("samples"))
	VZEROUPPER()
	RET()
}
