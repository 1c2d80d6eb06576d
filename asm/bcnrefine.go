package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// refineCode has what the parts of refineEnds share. Places are four words each: red, green, blue and 0. If there are three places, the
// fourth is equal to the third.
type refineCode struct {
	widen, down    Mem // 5 or 6 bits are widened to 8 by a product and a shift: of words
	first          Mem // weights of three places, then of four: of both endpoints, and the divisor
	redGreen, blue Mem // numbers of double words

	scales, tops, by, shift Mem // of red, green, blue and 0: from 8 bits, the greatest endpoints; a product and a shift to widen
	above, floats           Mem // 0, and 1 in the upper half; 255 and 0.5

	pixels, sum Mem
	last        reg.GPVirtual
	next        Mem // endpoints whose error is not known: red, green, blue and any number of the first, then of the second
	sums        Mem // of places, and of their squares; the error; 0; of colours times places, and 0

	middle [3]reg.VecPhysical
	places [2]reg.VecPhysical // of eight pixels each
}

// refineEnds writes a function that does what colors.refine does for 16 pixels with a colour.
func refineEnds() {
	r := &refineCode{middle: [3]reg.VecPhysical{y(12), reg.Y14, reg.Y15}, places: [2]reg.VecPhysical{y(9), y(10)}}
	r.constants()
	TEXT("refineEnds", NOSPLIT, "func(pixels *uint32, sum *int32, last, rounds int, ends *int32) int32")
	Doc("refineEnds improves endpoints as colors.refine does, and returns the error.")
	r.pixels, r.sum, r.last = pointer("pixels"), pointer("sum"), GP64()
	Load(Param("last"), r.last)
	rounds, ends, err, now := Load(Param("rounds"), GP64()), pointer("ends"), GP32(), GP32()
	r.next, r.sums = AllocLocal(lane), AllocLocal(48)
	VMOVDQU(ends, reg.X4)
	VMOVDQU(ends.Offset(8), reg.X5) // the last blue would be beyond the endpoints
	VPSHUFD(Imm(0x39), reg.X5, reg.X5)
	MOVL(U32(math.MaxInt32), err)
	Label("refineNext")
	VMOVDQU(reg.X4, r.next)
	VMOVDQU(reg.X5, r.next.Offset(16))
	r.between()
	r.nearest()
	r.error()
	r.sumUp()
	MOVL(r.sums.Offset(8), now)
	CMPL(now, err)
	JAE(LabelRef("refineEnded"))
	MOVL(now, err)
	VMOVDQU(r.next, reg.X4)
	VMOVDQU(r.next.Offset(16), reg.X5)
	VMOVDQU(reg.X4, ends) // and the first number of the second one
	VMOVQ(reg.X5, ends.Offset(12))
	VPSHUFD(Imm(2), reg.X5, reg.X5)
	VMOVD(reg.X5, ends.Offset(20))
	DECQ(rounds)
	JS(LabelRef("refineEnded"))
	r.products()
	r.solve()
	JMP(LabelRef("refineNext"))
	Label("refineEnded")
	VZEROUPPER()
	Store(err, ReturnIndex(0))
	RET()
}

// constants fills the table.
func (r *refineCode) constants() {
	table := GLOBL("refineTables", RODATA|NOPTR)
	r.widen = quads(table, 0, [4]int{33, 65, 33, 0})
	r.down = quads(table, 16, [4]int{1 << 14, 1 << 12, 1 << 14, 0})
	at := lane
	doubles := func(of func(i int) uint32) Mem {
		for i := range 8 {
			DATA(at+4*i, U32(of(i)))
		}
		at += lane
		return table.Offset(at - lane)
	}
	words := func(w ...uint32) Mem { // one word for each place
		return doubles(func(i int) uint32 { return w[i/2] | w[i/2]<<16 })
	}
	r.first = words(2, 1, 0, 0)
	words(0, 1, 2, 2)
	words(1<<15, 1<<15, 1<<15, 1<<15)
	words(3, 2, 1, 0)
	words(0, 1, 2, 3)
	words(65536/3+1, 65536/3+1, 65536/3+1, 65536/3+1)
	for from, to := range []*Mem{&r.redGreen, &r.blue} { // in every other double word
		*to = doubles(func(i int) uint32 { return uint32(from + i%4*2) })
	}
	colours := func(red, green uint32) Mem {
		return doubles(func(i int) uint32 { return [4]uint32{red, green, red, 0}[i%4] })
	}
	r.scales = colours(math.Float32bits(float32(31)/255), math.Float32bits(float32(63)/255))
	r.tops, r.by, r.shift = colours(31, 63), colours(33, 65), colours(2, 4)
	r.above = doubles(func(i int) uint32 { return uint32(i / 4) })
	r.floats = doubles(func(i int) uint32 { return math.Float32bits([2]float32{255, 0.5}[i%2]) })
}

// between finds the places between the endpoints in X4 and X5, and what tells which one is nearest. It leaves reds and greens of the
// places in Y4, blues in Y5, and the direction of the line, doubled, in Y6 and Y8.
func (r *refineCode) between() {
	for k := range 2 { // Y0 to Y3: red and green, blue and 0
		VMOVDQU(r.pixels.Offset(k*lane), y(2*k))
		VMOVDQU(r.pixels.Offset((2+k)*lane), y(2*k+1))
	}
	weights := weightsOf(r.first, r.last)
	VPACKUSDW(reg.X5, reg.X5, reg.X6)
	VPACKUSDW(reg.X4, reg.X4, reg.X5)
	for i, v := range []reg.VecPhysical{reg.X5, reg.X6} {
		VPMULLW(r.widen, v, v)
		VPMULHUW(r.down, v, v)
		VPBROADCASTQ(v, y(5+i))
	}
	VPSUBW(y(5), y(6), y(8)) // from the first endpoint to the second, for all places
	VPMULLW(Mem{Base: weights}, y(5), y(5))
	VPMULLW(Mem{Base: weights}.Offset(lane), y(6), y(6))
	VPADDW(y(6), y(5), y(5))
	VPMULHUW(Mem{Base: weights}.Offset(2*lane), y(5), y(5)) // the places
	VPERMQ(Imm(0x39), y(5), y(7))
	VPADDW(y(5), y(7), y(7))
	VPMADDWD(y(8), y(7), y(7))
	VPSRLQ(Imm(32), y(7), y(6))
	VPADDD(y(6), y(7), y(7)) // the midpoints
	VPADDW(y(8), y(8), y(8))
	VMOVDQU(r.redGreen, y(6))
	VPERMD(y(5), y(6), y(4))
	VMOVDQU(r.blue, y(6))
	VPERMD(y(5), y(6), y(5))
	VPSHUFD(Imm(0), y(8), y(6))
	VPSHUFD(Imm(0x55), y(8), y(8))
	VPBROADCASTD(reg.X7, r.middle[0])
	for i := 1; i < 3; i++ {
		VPERMQ(Imm(uint64(0x55*i)), y(7), r.middle[i])
		VPSHUFD(Imm(0), r.middle[i], r.middle[i])
	}
}

// nearest finds the place of each pixel.
func (r *refineCode) nearest() {
	for k, to := range r.places {
		VPMADDWD(y(6), y(2*k), y(11))
		VPMADDWD(y(8), y(2*k+1), to)
		VPADDD(to, y(11), y(11))
		VPCMPGTD(r.middle[0], y(11), to)
		for _, m := range r.middle[1:] {
			VPCMPGTD(m, y(11), y(7))
			VPADDD(y(7), to, to)
		}
		VPABSD(to, to)
	}
}

// error leaves the sum of the squared errors in Y13.
func (r *refineCode) error() {
	for k, place := range r.places {
		VPERMILPS(place, y(4), y(11))
		VPERMILPS(place, y(5), y(12))
		VPSUBW(y(11), y(2*k), y(11))
		VPSUBW(y(12), y(2*k+1), y(12))
		VPMADDWD(y(11), y(11), y(11))
		VPMADDWD(y(12), y(12), y(12))
		if k == 0 {
			VPADDD(y(12), y(11), y(13))
			continue
		}
		VPADDD(y(12), y(11), y(11))
		VPADDD(y(11), y(13), y(13))
	}
}

// sumUp stores the sums.
func (r *refineCode) sumUp() {
	VMOVQ(r.last, reg.X12)
	VPBROADCASTD(reg.X12, y(12))
	red, blues := y(4), y(5)
	for k, t := range r.places {
		VPMINSD(y(12), t, t)
		VPSLLD(Imm(16), t, y(11))
		VPOR(t, y(11), y(11))
		VPMULLW(y(11), y(2*k), y(2*k))
		VPMULLW(y(11), y(2*k+1), y(2*k+1))
	}
	VPADDW(y(2), y(0), red)
	VPADDW(y(3), y(1), blues)
	VPADDD(r.places[1], r.places[0], y(6))
	VPMADDWD(r.places[0], r.places[0], y(7))
	VPMADDWD(r.places[1], r.places[1], y(8))
	VPADDD(y(8), y(7), y(7))
	VPHADDD(y(7), y(6), y(6))
	VPXOR(y(8), y(8), y(8))
	VPHADDD(y(8), y(13), y(13))
	VPHADDD(y(13), y(6), y(6))
	VEXTRACTI128(Imm(1), y(6), reg.X7)
	VPADDD(reg.X7, reg.X6, reg.X6)
	VMOVDQU(reg.X6, r.sums)
	sumColors(red, blues)
	VPMOVZXWD(reg.X6, y(6))
	VMOVDQU(y(6), r.sums.Offset(16))
}

// products finds what solve needs of the sums of places: those of squares in Y4 to Y6 (second, mixed, first), and two inverses in Y14 and
// Y15. It leaves the last place in Y0 and its square in Y1.
func (r *refineCode) products() {
	last, square, bb, ab, aa, det, half, t := y(0), y(1), y(4), y(5), y(6), reg.Y14, reg.Y15, y(7)
	VMOVQ(r.last, reg.X0)
	VPBROADCASTD(reg.X0, last)
	VPMULLD(last, last, square)
	VPBROADCASTD(r.sums.Offset(4), bb)
	VPBROADCASTD(r.sums, ab)
	VPMULLD(last, ab, ab)
	VPSLLD(Imm(4), square, aa)
	VPSUBD(ab, aa, aa)
	VPSUBD(ab, aa, aa)
	VPADDD(bb, aa, aa)
	VPSUBD(bb, ab, ab)
	VPMULLD(bb, aa, det)
	VPMULLD(ab, ab, t)
	VPSUBD(t, det, det)
	places := GP32()
	VMOVD(reg.X14, places)
	TESTL(places, places)
	JZ(LabelRef("refineEnded")) // with one place, the endpoints are undetermined
	VPCMPEQD(t, t, t)           // 1
	VPSRLD(Imm(25), t, t)
	VPSLLD(Imm(23), t, t)
	VCVTDQ2PS(det, det)
	VDIVPS(det, t, det)
	VCVTDQ2PS(bb, half)
	VDIVPS(half, t, half)
}

// solve finds the endpoints of least squares in X4 and X5, as fit.solve does. The lower half of a register has those of the lower first
// endpoint, the upper half those of the higher one.
func (r *refineCode) solve() {
	xa, xb, zero, full := y(0), y(13), y(2), y(3)
	bb, ab, aa, det, half := y(4), y(5), y(6), reg.Y14, reg.Y15
	VBROADCASTI128(r.sums.Offset(16), xb)
	VPMULLD(xa, xb, xb)       // the last place
	VBROADCASTI128(r.sum, xa) // the fourth number does not count
	VPMULLD(y(1), xa, xa)
	VPSUBD(xb, xa, xa)
	VPXOR(zero, zero, zero)
	VBROADCASTSS(r.floats, full)
	q0, a, q1, b := y(7), y(8), y(9), y(10)
	clip := func(v reg.VecPhysical) {
		VMAXPS(zero, v, v)
		VMINPS(full, v, v)
		VMULPS(r.scales, v, v)
	}
	widen := func(q, to reg.VecPhysical) {
		VPMULLD(r.by, q, to)
		VPSRLVD(r.shift, to, to)
	}
	VPMULLD(bb, xa, q0)
	VPMULLD(ab, xb, a)
	VPSUBD(a, q0, q0)
	VCVTDQ2PS(q0, q0)
	VMULPS(det, q0, q0)
	clip(q0)
	VCVTTPS2DQ(q0, q0)
	VPADDD(r.above, q0, q0)
	widen(q0, a)
	VPMULLD(a, ab, y(11)) // ab*a
	VPSUBD(y(11), xb, q1)
	VCVTDQ2PS(q1, q1)
	VMULPS(half, q1, q1)
	clip(q1)
	VBROADCASTSS(r.floats.Offset(4), b)
	VADDPS(b, q1, q1)
	VCVTTPS2DQ(q1, q1)
	widen(q1, b)
	r.choose(aa, bb, xa, xb)
}

// choose takes the better of two pairs of endpoints in each channel.
func (r *refineCode) choose(aa, bb, xa, xb reg.VecPhysical) {
	q0, a, q1, b, err := y(7), y(8), y(9), y(10), y(12)
	VPMULLD(b, y(11), y(11)) // ab*a*b
	VPADDD(y(11), y(11), y(11))
	VPMULLD(a, aa, err)
	VPSUBD(xa, err, err)
	VPSUBD(xa, err, err)
	VPMULLD(a, err, err)
	VPADDD(y(11), err, err)
	VPMULLD(b, bb, y(11))
	VPSUBD(xb, y(11), y(11))
	VPSUBD(xb, y(11), y(11))
	VPMULLD(b, y(11), y(11))
	VPADDD(y(11), err, err)
	VPCMPGTD(r.tops, q0, y(11)) // none exceeds the maximum
	VPSRLD(Imm(1), y(11), y(13))
	VPBLENDVB(y(11), y(13), err, err)
	VEXTRACTI128(Imm(1), err, reg.X11)
	VPCMPGTD(reg.X11, reg.X12, reg.X13) // the higher one is better
	for k, q := range []reg.VecPhysical{q0, q1} {
		VEXTRACTI128(Imm(1), q, reg.X11)
		VPBLENDVB(reg.X13, reg.X11, []reg.VecPhysical{reg.X7, reg.X9}[k], []reg.VecPhysical{reg.X4, reg.X5}[k])
	}
}
