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
// The table has eight values of each of these for the lower scales, and for the upper ones: the smallest residual, the
// differences of the three larger ones, and the sizes above which they are nearer; and then 0x8ff, -32768 and 32767.
// The state is samples 0 and 1, samples 2 and 3, weights 0 and 1, weights 2 and 3. The function writes, at these
// offsets in bytes:
//
//	   0  residuals: for each sample 16 of 32 bits
//	1280  state at the end: four times 16
//	1536  sums of squares, of 64 bits: of the scales 0 2 4 6, of 1 3 5 7, of 8 10 12 14, of 9 11 13 15
//	1664  penalty for large weights, 16 of 32 bits
//	1728  not 0 if a weight exceeds 16 bits, which makes all results invalid: eight of 32 bits
func tryAll() {
	TEXT("tryAll", NOSPLIT, "func(want *int32, n int, state *[4]uint32, table *[136]int32, out *[440]uint32)")
	Doc("tryAll encodes up to 20 samples with all scales.")
	want, n := Load(Param("want"), GP64()), Load(Param("n"), GP64())
	state, table := Mem{Base: Load(Param("state"), GP64())}, Mem{Base: Load(Param("table"), GP64())}
	out := Mem{Base: Load(Param("out"), GP64())}
	const (
		states, sums, over, left = 1280, 1536, 1664, 1728
		constants                = 14 * lane
	)
	halves := [2][4]reg.VecPhysical{{reg.Y0, reg.Y1, reg.Y2, reg.Y3}, {reg.Y4, reg.Y5, reg.Y6, reg.Y7}}
	zero, beyond := reg.Y15, reg.Y14
	VPXOR(zero, zero, zero)
	VPXOR(beyond, beyond, beyond)
	for g := range halves {
		for k, r := range halves[g] {
			VPBROADCASTD(state.Offset(4*k), r)
		}
	}
	for at := sums; at < left; at += lane {
		VMOVDQU(zero, out.Offset(at))
	}
	residual := GP64()
	MOVQ(out.Base, residual)
	Label("sample")
	for g, s := range halves {
		h01, h23, w01, w23 := s[0], s[1], s[2], s[3]
		t := func(k int) Mem { return table.Offset((7*g + k) * lane) }
		predicted, a, b, r, x := reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12
		VPMADDWD(w01, h01, predicted)
		VPMADDWD(w23, h23, a)
		VPADDD(a, predicted, predicted)
		VPSRAD(Imm(13), predicted, predicted)
		VPBROADCASTD(Mem{Base: want}, x)
		VPSUBD(predicted, x, a) // the error
		VPABSD(a, b)
		VMOVDQU(t(0), r)
		for k := range 3 {
			VPCMPGTD(t(4+k), b, reg.Y13)
			VPAND(t(1+k), reg.Y13, reg.Y13)
			VPADDD(reg.Y13, r, r)
		}
		VPSRAD(Imm(31), a, a)
		VPXOR(a, r, r)
		VPSUBD(a, r, r)
		VMOVDQU(r, Mem{Base: residual}.Offset(g*lane))
		sample := predicted
		VPADDD(r, predicted, sample)
		VPMAXSD(table.Offset(constants+lane), sample, sample)
		VPMINSD(table.Offset(constants+2*lane), sample, sample)
		// The squared error, and the penalty for large weights.
		VPSUBD(sample, x, x)
		VPMULDQ(x, x, a)
		VPADDQ(out.Offset(sums+2*g*lane), a, a)
		VMOVDQU(a, out.Offset(sums+2*g*lane))
		VPSRLQ(Imm(32), x, x)
		VPMULDQ(x, x, x)
		VPADDQ(out.Offset(sums+(2*g+1)*lane), x, x)
		VMOVDQU(x, out.Offset(sums+(2*g+1)*lane))
		VPMADDWD(w01, w01, a)
		VPMADDWD(w23, w23, b)
		VPADDD(b, a, a)
		VPSRLD(Imm(18), a, a)
		VPSUBD(table.Offset(constants), a, a)
		VPMAXSD(zero, a, a)
		VPMADDWD(a, a, a)
		VPADDD(out.Offset(over+g*lane), a, a)
		VMOVDQU(a, out.Offset(over+g*lane))
		// Update the weights: add a sixteenth of the residual, with the sign of each sample.
		VPSRAD(Imm(4), r, r)
		VPSLLD(Imm(16), r, a)
		VPBLENDW(Imm(0xaa), a, r, r)
		for _, p := range [][2]reg.VecPhysical{{h01, w01}, {h23, w23}} {
			VPSRAW(Imm(15), p[0], a)
			VPXOR(a, r, b)
			VPSUBW(a, b, b)
			VPADDSW(b, p[1], a)
			VPADDW(b, p[1], p[1])
			VPXOR(p[1], a, a)
			VPOR(a, beyond, beyond)
		}
		// Shift the samples.
		VPSRLD(Imm(16), h01, h01)
		VPSLLD(Imm(16), h23, a)
		VPBLENDW(Imm(0xaa), a, h01, h01)
		VPSRLD(Imm(16), h23, h23)
		VPSLLD(Imm(16), sample, a)
		VPBLENDW(Imm(0xaa), a, h23, h23)
	}
	ADDQ(Imm(4), want)
	ADDQ(Imm(2*lane), residual)
	DECQ(n)
	JNZ(LabelRef("sample"))
	for g := range halves {
		for k, r := range halves[g] {
			VMOVDQU(r, out.Offset(states+(2*k+g)*lane))
		}
	}
	VMOVDQU(beyond, out.Offset(left))
	VZEROUPPER()
	RET()
}
