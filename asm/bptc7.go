package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Rows of a batch7 of bptc, each of eight numbers.
const (
	ends7, err7, by7, span7, args7                         = 0, 6, 7, 8, 10
	one7, half7, round7, round64of7, tiny7, most7, little7 = 11, 12, 13, 14, 15, 16, 17
	memory7                                                = 18
	levels7, step7, count7, inverse7, sum7                 = 0, 1, 2, 3, 4 // numbers of the row args7
)

// restarts has the memory of restart7.
type restarts struct {
	batch
	memory             Mem
	parities, n, count reg.Register // the bits of parities, the number of pixels, a counter
}

func (r restarts) local(i int) Mem { return r.memory.Offset(i * lane) }

// Rows of the memory.
func (r restarts) want(end, c int) Mem           { return r.local(3*end + c) }
func (r restarts) ends(end, c int) Mem           { return r.local(6 + 3*end + c) }
func (r restarts) quadric(i int) Mem             { return r.local(12 + i) }
func (r restarts) mode(i int) Mem                { return r.local(15 + i) }
func (r restarts) values(end, p, side int) Mem   { return r.local(20 + 4*end + 2*p + side) }
func (r restarts) offs(end, p, side int) Mem     { return r.local(28 + 4*end + 2*p + side) }
func (r restarts) squares(end, p, side int) Mem  { return r.local(36 + 4*end + 2*p + side) }
func (r restarts) crosses(p, side int) Mem       { return r.local(44 + 2*p + side) }
func (r restarts) costs(p int) Mem               { return r.local(48 + p) }
func (r restarts) chosen(p, end, c int) Mem      { return r.local(52 + 6*p + 3*end + c) }
func (r restarts) arg(i int, to reg.VecPhysical) { VBROADCASTSS(r.row(args7).Offset(4*i), to) }

// restart7 writes a function that does the same as batch7.restart of bptc.
func restart7() {
	TEXT("restart7", NOSPLIT, "func(batch *[95][8]float32, pix *float32, n int, mode *uint32, parities uint32, rounds int)")
	Doc("restart7 improves eight lines through the same pixels, as batch7.restart does.")
	r := restarts{batch: batchOf(), parities: GP32(), count: GP64()}
	r.memory = r.row(memory7)
	r.n = Load(Param("n"), GP64())
	mode := Mem{Base: Load(Param("mode"), GP64())}
	Load(Param("parities"), r.parities)
	rounds := Load(Param("rounds"), GP64())
	r.scale = r.local(76)
	for i := range 5 {
		VPBROADCASTD(mode.Offset(i*lane), reg.Y0)
		VMOVDQU(reg.Y0, r.mode(i))
	}
	for c := range 3 {
		first, last := reg.Y0, reg.Y1
		VBROADCASTSS(r.row(span7).Offset(4*c), first)
		VBROADCASTSS(r.row(span7+1).Offset(4*c), last)
		VADDPS(last, first, reg.Y2)
		VMULPS(r.row(half7), reg.Y2, reg.Y2)
		VSUBPS(first, last, last)
		VMULPS(r.row(by7), last, last)
		VSUBPS(last, reg.Y2, first)
		VMOVUPS(first, r.want(0, c))
		VADDPS(last, reg.Y2, last)
		VMOVUPS(last, r.want(1, c))
	}
	VMOVUPS(r.row(one7), reg.Y0)
	VXORPS(reg.Y1, reg.Y1, reg.Y1)
	VMOVUPS(reg.Y0, r.quadric(0))
	VMOVUPS(reg.Y1, r.quadric(1))
	VMOVUPS(reg.Y0, r.quadric(2))
	VMOVUPS(r.row(most7), reg.Y0)
	VMOVUPS(reg.Y0, r.row(err7))
	Label("restart7Round")
	for c := range 3 {
		r.neighbours(c)
		r.combine(c)
	}
	r.choose()
	r.pass7()
	least := reg.Y9
	VMOVUPS(r.row(err7), least)
	VCMPPS(Imm(1), least, reg.Y0, reg.Y10)
	VBLENDVPS(reg.Y10, reg.Y0, least, least)
	VMOVUPS(least, r.row(err7))
	for i := range 6 {
		VMOVUPS(r.row(ends7+i), reg.Y11)
		VBLENDVPS(reg.Y10, r.ends(i/3, i%3), reg.Y11, reg.Y11)
		VMOVUPS(reg.Y11, r.row(ends7+i))
	}
	DECQ(rounds)
	JL(LabelRef("restart7Done"))
	r.solve()
	JMP(LabelRef("restart7Round"))
	Label("restart7Done")
	VZEROUPPER()
	RET()
}

// neighbours stores the values of a channel that both endpoints may have, and what they cost.
func (r restarts) neighbours(c int) {
	ones, zero, top := reg.Y10, reg.Y11, reg.Y12
	VPCMPEQD(ones, ones, ones)
	VPSRLD(Imm(31), ones, ones)
	VPXOR(zero, zero, zero)
	VMOVDQU(r.mode(tops), top)
	for end := range 2 {
		want, near, square, cross := reg.Y0, reg.Y1, reg.Y2, reg.Y3
		VMOVUPS(r.want(end, c), want)
		VMULPS(r.mode(scales), want, near)
		VCVTTPS2DQ(near, near)
		VMOVUPS(r.quadric(2*end), square)
		VMOVUPS(r.quadric(1), cross)
		for p := range 2 {
			skip := fmt.Sprintf("restart7Without%d%d%d", c, end, p)
			TESTL(U32([2][2]int{{0b0101, 0b1010}, {0b0011, 0b1100}}[end][p]), r.parities)
			JZ(LabelRef(skip))
			below, above := reg.Y4, reg.Y5
			if p == 1 {
				VPSUBD(ones, near, below)
			} else {
				VMOVDQA(near, below)
			}
			VPSRAVD(r.mode(steps), below, below)
			VPMAXSD(zero, below, below)
			VPMINSD(top, below, below)
			VPADDD(ones, below, above)
			VPMINSD(top, above, above)
			for side, v := range []reg.VecPhysical{below, above} {
				VPSLLVD(r.mode(steps), v, v)
				if p == 1 {
					VPOR(ones, v, v)
				}
				VPSRLVD(r.mode(downs), v, reg.Y6)
				VPSLLVD(r.mode(ups), v, v)
				VPOR(reg.Y6, v, v)
				VCVTDQ2PS(v, v)
				VMOVUPS(v, r.values(end, p, side))
				VSUBPS(want, v, v)
				VMOVUPS(v, r.offs(end, p, side))
				if end == 0 {
					VMULPS(v, cross, reg.Y6)
					VMOVUPS(reg.Y6, r.crosses(p, side))
				}
				VMULPS(v, square, reg.Y6)
				VMULPS(v, reg.Y6, reg.Y6)
				VMOVUPS(reg.Y6, r.squares(end, p, side))
			}
			Label(skip)
		}
	}
}

// combine finds the best values of a channel for each pair of parities, and adds their costs.
func (r restarts) combine(c int) {
	for p := range 4 {
		skip := fmt.Sprintf("restart7Skip%d%d", c, p)
		TESTL(U32(1<<p), r.parities)
		JZ(LabelRef(skip))
		for side1 := range 2 { // the costs in Y0 and Y1 or Y4 and Y5, the lower one in Y0 or Y4, and where the second is lower in Y2 or Y6
			first, second, lower := y(4*side1), y(4*side1+1), y(4*side1+2)
			for side0, v := range []reg.VecPhysical{first, second} {
				VMOVUPS(r.squares(0, p&1, side0), v)
				VADDPS(r.squares(1, p>>1, side1), v, v)
				VMOVUPS(r.crosses(p&1, side0), reg.Y8)
				VMULPS(r.offs(1, p>>1, side1), reg.Y8, reg.Y8)
				VADDPS(reg.Y8, v, v)
			}
			VCMPPS(Imm(1), first, second, lower)
			VBLENDVPS(lower, second, first, first)
		}
		VCMPPS(Imm(1), reg.Y0, reg.Y4, reg.Y8)
		VBLENDVPS(reg.Y8, reg.Y4, reg.Y0, reg.Y0)
		VBLENDVPS(reg.Y8, reg.Y6, reg.Y2, reg.Y2)
		if c > 0 {
			VADDPS(r.costs(p), reg.Y0, reg.Y0)
		}
		VMOVUPS(reg.Y0, r.costs(p))
		for end, side := range []reg.VecPhysical{reg.Y2, reg.Y8} {
			parity := p >> end & 1
			VMOVUPS(r.values(end, parity, 0), reg.Y9)
			VBLENDVPS(side, r.values(end, parity, 1), reg.Y9, reg.Y9)
			VMOVUPS(reg.Y9, r.chosen(p, end, c))
		}
		Label(skip)
	}
}

// choose stores the endpoints of the parities that cost least.
func (r restarts) choose() {
	least, better := reg.Y6, reg.Y7
	VMOVUPS(r.row(most7), least)
	for i := range 6 {
		VMOVUPS(r.ends(i/3, i%3), y(i))
	}
	for p := range 4 {
		skip := fmt.Sprintf("restart7Worse%d", p)
		TESTL(U32(1<<p), r.parities)
		JZ(LabelRef(skip))
		VMOVUPS(r.costs(p), reg.Y8)
		VCMPPS(Imm(1), least, reg.Y8, better)
		VBLENDVPS(better, reg.Y8, least, least)
		for i := range 6 {
			VBLENDVPS(better, r.chosen(p, i/3, i%3), y(i), y(i))
		}
		Label(skip)
	}
	for i := range 6 {
		VMOVUPS(y(i), r.ends(i/3, i%3))
	}
}

// pass7 gives the pixels the nearest places on the lines. It leaves the error in Y0 and the sums in Y1 to Y5.
func (r restarts) pass7() {
	err, w, ww, zero, levels := reg.Y0, reg.Y1, reg.Y2, reg.Y11, reg.Y10
	d := []reg.VecPhysical{reg.Y6, reg.Y7, reg.Y8}
	for c := range 3 {
		VMOVUPS(r.ends(1, c), d[c])
		VSUBPS(r.ends(0, c), d[c], d[c])
	}
	VMULPS(d[0], d[0], reg.Y9)
	for c := 1; c < 3; c++ {
		VMULPS(d[c], d[c], reg.Y10)
		VADDPS(reg.Y10, reg.Y9, reg.Y9)
	}
	VMAXPS(r.row(tiny7), reg.Y9, reg.Y9)
	r.arg(levels7, levels)
	VDIVPS(reg.Y9, levels, reg.Y9)
	VMOVUPS(reg.Y9, r.scale)
	for i := range 6 {
		VXORPS(y(i), y(i), y(i))
	}
	VXORPS(zero, zero, zero)
	pix := GP64()
	MOVQ(r.pix, pix)
	MOVQ(r.n, r.count)
	Label("restart7Pixel")
	q, u, free := []reg.VecPhysical{reg.Y12, reg.Y13, reg.Y14}, reg.Y15, reg.Y9
	for c := range 3 {
		VBROADCASTSS(Mem{Base: pix}.Offset(4*c), q[c])
		VSUBPS(r.ends(0, c), q[c], q[c])
	}
	VMULPS(d[0], q[0], u)
	for c := 1; c < 3; c++ {
		VMULPS(d[c], q[c], free)
		VADDPS(free, u, u)
	}
	VMULPS(r.scale, u, u)
	VMAXPS(zero, u, u)
	VMINPS(levels, u, u)
	VADDPS(r.row(round7), u, u)
	VSUBPS(r.row(round7), u, u)
	r.arg(step7, free)
	VMULPS(free, u, u)
	VADDPS(r.row(round64of7), u, u)
	VSUBPS(r.row(round64of7), u, u)
	VADDPS(u, w, w)
	VMULPS(u, u, free)
	VADDPS(free, ww, ww)
	for c := range 3 {
		VMULPS(q[c], u, free)
		VADDPS(free, y(3+c), y(3+c))
	}
	for c := range 3 {
		VMULPS(d[c], u, free)
		VADDPS(r.row(little7), free, free)
		VADDPS(r.row(round7), free, free)
		VSUBPS(r.row(round7), free, free)
		VSUBPS(free, q[c], q[c])
		VMULPS(q[c], q[c], q[c])
	}
	VADDPS(q[1], q[0], q[0])
	VADDPS(q[2], q[0], q[0])
	VADDPS(q[0], err, err)
	ADDQ(Imm(16), pix)
	DECQ(r.count)
	JNZ(LabelRef("restart7Pixel"))
}

// solve stores the endpoints that are best for the indices of pass7, and what it costs to leave them.
func (r restarts) solve() {
	count, det, by := reg.Y6, reg.Y7, reg.Y8
	r.arg(count7, count)
	VMULPS(count, reg.Y2, det)
	VMULPS(reg.Y1, reg.Y1, reg.Y10)
	VSUBPS(reg.Y10, det, det)
	VMOVUPS(r.row(one7), by)
	VMAXPS(r.row(tiny7), det, reg.Y10)
	VDIVPS(reg.Y10, by, by)
	VXORPS(reg.Y10, reg.Y10, reg.Y10)
	VCMPPS(Imm(1), det, reg.Y10, det)
	for c := range 3 {
		first, sum, slope := reg.Y10, reg.Y11, reg.Y12
		VMOVUPS(r.ends(0, c), first)
		VMULPS(first, count, reg.Y13)
		r.arg(sum7+c, sum)
		VSUBPS(reg.Y13, sum, sum)
		VMULPS(y(3+c), count, slope)
		VMULPS(sum, reg.Y1, reg.Y13)
		VSUBPS(reg.Y13, slope, slope)
		VMULPS(by, slope, slope)
		VANDPS(det, slope, slope)
		VMULPS(slope, reg.Y1, reg.Y13)
		VSUBPS(reg.Y13, sum, sum)
		r.arg(inverse7, reg.Y13)
		VMULPS(reg.Y13, sum, sum)
		VADDPS(sum, first, first)
		VMOVUPS(first, r.want(0, c))
		VADDPS(slope, first, first)
		VMOVUPS(first, r.want(1, c))
	}
	apart := reg.Y10
	VSUBPS(reg.Y2, reg.Y1, apart)
	VSUBPS(reg.Y1, count, count)
	VSUBPS(apart, count, count)
	VMOVUPS(count, r.quadric(0))
	VADDPS(apart, apart, apart)
	VMOVUPS(apart, r.quadric(1))
	VMOVUPS(reg.Y2, r.quadric(2))
}
