package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func qoa() { tryAll() }

// tryAll writes a function that encodes a slice with all 16 scales at once: eight in a register, in two registers whose
// computations overlap in the processor. A value of 32 bits holds two samples, or two weights, of a scale in halves of
// 16 bits, because their products are summed in pairs.
//
// The number of instructions decides the speed. Therefore the function computes neither the penalty for large weights nor
// whether weights exceed 16 bits, where they are limited, and its sums of squares have 32 bits: sliceLanes finds out
// whether that matters, which is rare.
//
// The table has eight values of each of these for the lower scales, and for the upper ones: the smallest residual, the
// differences of the three larger ones, and the sizes above which they are nearer; and then 1 in both halves, the limit of
// a sum, and the masks that copy the lower half to the upper one, exchange both, and spread halves that were packed. The
// state is samples 0 and 1, samples 2 and 3, weights 0 and 1, weights 2 and 3. The function writes, at these offsets in
// bytes:
//
//	   0  residuals: for each sample 16 of 32 bits
//	1280  state at the end: four times 16
//	1536  twice the sums of squares, 16 of 32 bits
func tryAll() {
	TEXT("tryAll", NOSPLIT, "func(want *int32, n int, state *[4]uint32, table *[152]int32, out *[400]uint32)")
	Doc("tryAll encodes up to 20 samples with all scales.")
	want, n := Load(Param("want"), GP64()), Load(Param("n"), GP64())
	state, table := Mem{Base: Load(Param("state"), GP64())}, Mem{Base: Load(Param("table"), GP64())}
	out := Mem{Base: Load(Param("out"), GP64())}
	const states, sums = 1280, 1536
	constant := func(k int) Mem { return table.Offset((14 + k) * lane) }
	ones, most, double, exchange, spread := constant(0), constant(1), constant(2), constant(3), constant(4)
	halves := [2][5]reg.VecPhysical{{reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y8}, {reg.Y4, reg.Y5, reg.Y6, reg.Y7, reg.Y9}}
	for _, s := range halves {
		for k, r := range s[:4] {
			VPBROADCASTD(state.Offset(4*k), r)
		}
		VPXOR(s[4], s[4], s[4])
	}
	residual := GP64()
	MOVQ(out.Base, residual)
	Label("sample")
	wanted := reg.Y15 // in both halves
	VPBROADCASTW(Mem{Base: want}, wanted)
	for g, s := range halves {
		h01, h23, w01, w23, sum := s[0], s[1], s[2], s[3], s[4]
		t := func(k int) Mem { return table.Offset((7*g + k) * lane) }
		sample, a, b, r, x := reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14
		// The prediction, its error, and the residual that is nearest to that.
		VPMADDWD(w01, h01, sample)
		VPMADDWD(w23, h23, a)
		VPADDD(a, sample, sample)
		VPSRAD(Imm(13), sample, sample)
		VPBROADCASTD(Mem{Base: want}, a)
		VPSUBD(sample, a, a)
		VPABSD(a, b)
		VMOVDQU(t(0), r)
		for k := range 3 {
			VPCMPGTD(t(4+k), b, x)
			VPAND(t(1+k), x, x)
			VPADDD(x, r, r)
		}
		VPOR(ones, a, a) // 0 counts as positive
		VPSIGND(a, r, r)
		VMOVDQU(r, Mem{Base: residual}.Offset(g*lane))
		// The sample, limited to 16 bits, in both halves, and the square of its error.
		VPADDD(r, sample, sample)
		VPACKSSDW(sample, sample, sample)
		VPSHUFB(spread, sample, sample)
		VPSUBSW(sample, wanted, x)
		VPMADDWD(x, x, x)
		VPMINUD(most, sum, sum)
		VPADDD(x, sum, sum)
		// Update the weights: add a sixteenth of the residual, with the sign of each sample.
		VPSRAD(Imm(4), r, r)
		VPSHUFB(double, r, r)
		for _, p := range [][2]reg.VecPhysical{{h01, w01}, {h23, w23}} {
			VPOR(ones, p[0], a)
			VPSIGNW(a, r, a)
			VPADDSW(a, p[1], p[1])
		}
		// Shift the samples.
		VPBLENDW(Imm(0x55), h23, h01, h01)
		VPSHUFB(exchange, h01, h01)
		VPBLENDW(Imm(0x55), sample, h23, h23)
		VPSHUFB(exchange, h23, h23)
	}
	ADDQ(Imm(4), want)
	ADDQ(Imm(2*lane), residual)
	DECQ(n)
	JNZ(LabelRef("sample"))
	for g, s := range halves {
		for k, r := range s[:4] {
			VMOVDQU(r, out.Offset(states+(2*k+g)*lane))
		}
		VMOVDQU(s[4], out.Offset(sums+g*lane))
	}
	VZEROUPPER()
	RET()
}
