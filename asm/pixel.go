package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func pixel() {
	halve()
}

// halve writes a function for the means of four pixels, rounded. The sum of four numbers of 32 bits has 34, so that of their quarters is
// added to the quarter of the sum of what these leave.
func halve() {
	TEXT("halve", NOSPLIT, "func(dst, above, below *uint32, n int)")
	Doc("halve makes n pixels of twice as many in each of two rows. n is even.")
	dst, n := Load(Param("dst"), GP64()), Load(Param("n"), GP64())
	rows, by := []reg.Register{Load(Param("above"), GP64()), Load(Param("below"), GP64())}, GP64()
	two, three, quarters, rests := reg.Y15, reg.Y14, reg.Y0, reg.Y1
	filled(2, two, by.(reg.GPVirtual))
	filled(3, three, by.(reg.GPVirtual))
	Label("pixels")
	VMOVDQA(two, rests)
	VPXOR(quarters, quarters, quarters)
	for _, row := range rows {
		for k, v := range []reg.VecPhysical{reg.Y2, reg.Y3} { // pixels 0 and 2, then 1 and 3
			pixel := Mem{Base: row}.Offset(k * lane / 2)
			VMOVDQU(pixel, v.AsX().(reg.VecPhysical))
			VINSERTI128(Imm(1), pixel.Offset(lane), v, v)
			VPAND(three, v, reg.Y4)
			VPADDD(reg.Y4, rests, rests)
			VPSRLD(Imm(2), v, v)
			VPADDD(v, quarters, quarters)
		}
		ADDQ(Imm(2*lane), row)
	}
	VPSRLD(Imm(2), rests, rests)
	VPADDD(rests, quarters, quarters)
	VMOVDQU(quarters, Mem{Base: dst})
	ADDQ(Imm(lane), dst)
	SUBQ(Imm(2), n)
	JNZ(LabelRef("pixels"))
	VZEROUPPER()
	RET()
}
