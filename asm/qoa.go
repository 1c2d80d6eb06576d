package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func qoa() {
	tryAll("tryAll", false)
	tryAll("tryWide", true)
}

// tryAll writes two functions, each of which encodes a slice of 20 samples with all 16 scales at once. A register has 16 bits for each
// scale, in the order of the scales. Only predictions need 32: they are products of samples and weights, interleaved and
// summed in pairs, four scales of each half of a register at a time ("low" and "high").
//
// The number of instructions decides the speed. Therefore the functions compute neither the penalty for large weights nor
// whether weights exceed 16 bits, where they are limited, and they limit the sum of squares to 32 bits. tryAll also limits
// the error of a prediction to 16 bits; tryWide has eight instructions more. sliceLanes finds out whether that matters,
// which is rare.
//
// The pairs of samples stay in registers as long as they are used. Of four samples, the two oldest are a pair and the two
// newest. With the next sample the oldest is gone: what was the pair of the newest is in the middle, and a new pair has the
// oldest and the newest. With one more, the pair in the middle is that of the oldest.
//
// The table has 16 values of each of these: the smallest residual of a scale, the differences of the three larger ones, the
// sizes above which they are nearer, and 1; and then the limit of a sum. The state is samples 1, 0, 3, 2 of the history and
// weights 0 to 3. A function writes, at these offsets in bytes, 16 values in each row:
//
//	   0  residuals: 20 rows
//	 640  samples: 4 rows of history, and the 20 new ones
//	1408  the same, each with its lowest bit set, so that 0 counts as positive
//	2176  weights at the end: 4 rows
//	2304  the least sum of squares, of 32 bits, and a bit for each scale that has it: of scales 0 to 7 from bit 0 on,
//	      of the others from bit 16 on
//	2312  tryWide: 2 rows of predictions
func tryAll(name string, wide bool) {
	TEXT(name, NOSPLIT, "func(want *int16, step int, state *[8]int16, table *[160]int16, out *[1188]int16)")
	Doc(name + " encodes 20 samples, which are step bytes apart, with all scales.")
	want, step := Load(Param("want"), GP64()), Load(Param("step"), GP64())
	state, table := Mem{Base: Load(Param("state"), GP64())}, Mem{Base: Load(Param("table"), GP64())}
	out := Mem{Base: Load(Param("out"), GP64())}
	const samples, signs, weights, result, predictions, history = 640, 1408, 2176, 2304, 2312, 4
	constant := func(k int) Mem { return table.Offset(k * lane) }
	ones, most := constant(7), constant(8)
	w := [4]reg.VecPhysical{reg.Y0, reg.Y1, reg.Y2, reg.Y3}
	pairs := [2][2]reg.VecPhysical{{reg.Y4, reg.Y5}, {reg.Y6, reg.Y7}} // low, high
	sums, before := [2]reg.VecPhysical{reg.Y8, reg.Y9}, reg.Y10
	for k := range w {
		VPBROADCASTW(state.Offset(2*(history+k)), w[k])
		VPBROADCASTW(state.Offset(2*(k^1)), before)
		VMOVDQU(before, out.Offset(samples+k*lane))
		VPOR(ones, before, before)
		VMOVDQU(before, out.Offset(signs+k*lane))
	}
	for k := range pairs {
		VPBROADCASTD(state.Offset(4*k), pairs[k][0])
		VMOVDQA(pairs[k][0], pairs[k][1])
		VPXOR(sums[k], sums[k], sums[k])
	}
	row, rows := GP64(), GP64()
	MOVQ(out.Base, row)
	MOVQ(U32(5), rows)
	Label("samples")
	for k := range 4 {
		at := func(offset, i int) Mem { return Mem{Base: row}.Offset(offset + (k+i)*lane) }
		wanted, r, a, b, x := reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15
		VPBROADCASTW(Mem{Base: want}, wanted)
		ADDQ(step, want)
		// The weights in the order of the pairs: those of the pair that stays, and those of the other one.
		stays, other := [2]int{1, 0}, [2]int{3, 2}
		if k%2 == 1 {
			stays, other = [2]int{2, 1}, [2]int{3, 0}
		}
		pair := k / 2 // which pair stays, if k is even; else the other one does
		if k%2 == 1 {
			pair ^= 1
		}
		// The error of the prediction.
		for half, to := range [2]reg.VecPhysical{a, b} {
			unpack := VPUNPCKLWD
			if half == 1 {
				unpack = VPUNPCKHWD
			}
			unpack(w[stays[1]], w[stays[0]], to)
			unpack(w[other[1]], w[other[0]], x)
			VPMADDWD(pairs[pair][half], to, to)
			VPMADDWD(pairs[pair^1][half], x, x)
			VPADDD(x, to, to)
			VPSRAD(Imm(13), to, to)
		}
		if wide {
			VMOVDQU(a, out.Offset(predictions))
			VMOVDQU(b, out.Offset(predictions+lane))
		}
		VPSRAD(Imm(16), wanted, x)
		VPSUBD(a, x, a)
		VPSUBD(b, x, b)
		VPACKSSDW(b, a, a)
		// The nearest residual.
		VPMAXSW(constant(9), a, b)
		VPABSW(b, b)
		VPCMPGTW(constant(4), b, r)
		VPAND(constant(1), r, r)
		VPADDW(constant(0), r, r)
		VPCMPGTW(constant(5), b, x)
		VPAND(constant(2), x, x)
		VPCMPGTW(constant(6), b, b)
		VPAND(constant(3), b, b)
		VPADDW(b, x, x)
		VPADDW(x, r, r)
		VPOR(ones, a, b) // 0 counts as positive
		VPSIGNW(b, r, r)
		VMOVDQU(r, at(0, 0))
		// The sample, and how far it is from what was wanted.
		if wide {
			VPUNPCKLWD(r, r, a)
			VPUNPCKHWD(r, r, b)
			VPSRAD(Imm(16), a, a)
			VPSRAD(Imm(16), b, b)
			VPADDD(out.Offset(predictions), a, a)
			VPADDD(out.Offset(predictions+lane), b, b)
			VPACKSSDW(b, a, a)
		} else {
			VPSUBSW(r, a, a)
			VPSUBSW(a, wanted, a)
		}
		VPSUBSW(a, wanted, x)
		VMOVDQU(a, at(samples, history))
		VPOR(ones, a, b)
		VMOVDQU(b, at(signs, history))
		// The new pair takes the place of the one that is used no more.
		to, with := pairs[pair], -3
		if k%2 == 1 {
			to, with = pairs[pair^1], -1
		}
		VPUNPCKLWD(at(samples, history+with), a, to[0])
		VPUNPCKHWD(at(samples, history+with), a, to[1])
		// Update the weights: add a sixteenth of the residual, with the sign of each sample.
		VPSRAW(Imm(4), r, r)
		for i := range w {
			VPSIGNW(at(signs, i), r, a)
			VPADDSW(a, w[i], w[i])
		}
		if k%2 == 0 {
			VMOVDQA(x, before)
			continue
		}
		VPUNPCKLWD(before, x, a)
		VPUNPCKHWD(before, x, b)
		for half, v := range [2]reg.VecPhysical{a, b} {
			VPMADDWD(v, v, v)
			VPMINUD(most, sums[half], sums[half])
			VPADDD(v, sums[half], sums[half])
		}
	}
	ADDQ(U32(4*lane), row)
	DECQ(rows)
	JNZ(LabelRef("samples"))
	for k := range w {
		VMOVDQU(w[k], out.Offset(weights+k*lane))
	}
	least(sums, out.Offset(result))
	VZEROUPPER()
	RET()
}

// least stores the least of 16 values, and a mask of those that are equal to it.
func least(v [2]reg.VecPhysical, to Mem) {
	VPMINUD(v[0], v[1], reg.Y10)
	VEXTRACTI128(Imm(1), reg.Y10, reg.X11)
	VPMINUD(reg.X11, reg.X10, reg.X10)
	for _, exchange := range []uint64{0x4e, 0xb1} {
		VPSHUFD(Imm(exchange), reg.X10, reg.X11)
		VPMINUD(reg.X11, reg.X10, reg.X10)
	}
	VPBROADCASTD(reg.X10, reg.Y10)
	VPCMPEQD(reg.Y10, v[0], v[0])
	VPCMPEQD(reg.Y10, v[1], v[1])
	VPACKSSDW(v[1], v[0], v[0])
	VPACKSSWB(v[0], v[0], v[0])
	mask := GP32()
	VPMOVMSKB(v[0], mask)
	VMOVD(reg.X10, to)
	MOVL(mask, to.Offset(4))
}
