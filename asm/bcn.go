package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func bcn() { lineErrors() }

// lineErrors writes a function that gives the errors of eight lines for 16 values of a channel: the sums of the squares of how far each value
// is from the nearest of eight places. Two lines are in a register, four after each other.
//
// The table has, as words, by how much the low end counts at each place, and the high end, what is added, and what the sum is multiplied by for
// a division by 7 or 5; and then for each place the bytes that pick its value out of eight.
func lineErrors() {
	TEXT("lineErrors", NOSPLIT, "func(values *[16]uint8, low, high *[8]int16, table *int16, errs *[8]int32)")
	Doc("lineErrors gives the errors of eight lines.")
	values, low := Mem{Base: Load(Param("values"), GP64())}, Mem{Base: Load(Param("low"), GP64())}
	high, table := Mem{Base: Load(Param("high"), GP64())}, Mem{Base: Load(Param("table"), GP64())}
	errs := Mem{Base: Load(Param("errs"), GP64())}
	x, zero := reg.Y15, reg.Y14
	VBROADCASTI128(values, x)
	VPXOR(zero, zero, zero)
	sums := []reg.VecPhysical{reg.Y10, reg.Y11, reg.Y12, reg.Y13}
	for k, sum := range sums {
		both := func(from Mem, lower reg.VecPhysical, to reg.VecPhysical) {
			VPBROADCASTW(from.Offset(2*k), lower)
			VPBROADCASTW(from.Offset(2*(k+4)), reg.X9)
			VINSERTI128(Imm(1), reg.X9, to, to)
		}
		both(low, reg.X0, reg.Y0)
		both(high, reg.X1, reg.Y1)
		VPMULLW(table, reg.Y0, reg.Y0)
		VPMULLW(table.Offset(lane), reg.Y1, reg.Y1)
		VPADDW(reg.Y1, reg.Y0, reg.Y0)
		VPADDW(table.Offset(2*lane), reg.Y0, reg.Y0)
		VPMULHUW(table.Offset(3*lane), reg.Y0, reg.Y0)
		VPACKUSWB(reg.Y0, reg.Y0, reg.Y0)
		least := reg.Y1
		for place := range 8 {
			v := reg.Y2
			VPSHUFB(table.Offset((4+place)*lane), reg.Y0, v)
			VPSUBUSB(x, v, reg.Y3)
			VPSUBUSB(v, x, v)
			if place == 0 {
				VPOR(reg.Y3, v, least)
			} else {
				VPOR(reg.Y3, v, v)
				VPMINUB(v, least, least)
			}
		}
		VPUNPCKLBW(zero, least, reg.Y2)
		VPUNPCKHBW(zero, least, reg.Y3)
		VPMADDWD(reg.Y2, reg.Y2, reg.Y2)
		VPMADDWD(reg.Y3, reg.Y3, reg.Y3)
		VPADDD(reg.Y3, reg.Y2, sum)
	}
	VPHADDD(reg.Y11, reg.Y10, reg.Y10)
	VPHADDD(reg.Y13, reg.Y12, reg.Y12)
	VPHADDD(reg.Y12, reg.Y10, reg.Y10)
	VMOVDQU(reg.Y10, errs)
	VZEROUPPER()
	RET()
}
