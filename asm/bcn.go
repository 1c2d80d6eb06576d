package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func bcn() {
	channels()
	endErrors()
	solve()
	solveEight()
	nearest()
	loadColors()
	orderLanes()
	shapeGains()
	shapesAbove()
}

// quads fills half of a register's data with four words, repeated twice.
func quads(to Mem, at int, w [4]int) Mem {
	v := uint64(0)
	for i, x := range w {
		v |= uint64(uint16(x)) << (16 * i)
	}
	DATA(at, U64(v))
	DATA(at+8, U64(v))
	return to.Offset(at)
}

// endErrors writes two functions. One returns the error of 16 colours for a pair of endpoints after each of some moves. The other
// returns it for one pair, with the results of colors.assign. Both take endpoints as words: 5, 6, 5 and 0 bits of the
// first, then of the second.
//
// Places are four words each: red, green, blue and 0. If there are three places, the fourth is equal to the third.
func endErrors() {
	table := GLOBL("endTables", RODATA|NOPTR)
	by := quads(table, 0, [4]int{33, 65, 33, 0}) // widens 5 or 6 bits to 8
	down := quads(table, 16, [4]int{1 << 14, 1 << 12, 1 << 14, 0})
	words := func(at int, w ...int) Mem { // one word for each place
		for i, x := range w {
			x := uint64(uint16(x))
			DATA(at+8*i, U64(x|x<<16|x<<32|x<<48))
		}
		return table.Offset(at)
	}
	numbers := func(at int, from int) Mem { // in every other double word
		for i := range 4 {
			k := uint64(from + i%2*4)
			DATA(at+8*i, U64(k|(k+2)<<32))
		}
		return table.Offset(at)
	}
	// For three places, then for four: the factor of the first endpoint, that of the second, and the divisor.
	const size = 3 * lane
	first := words(32, 2, 1, 0, 0)
	words(32+lane, 0, 1, 2, 2)
	words(32+2*lane, 1<<15, 1<<15, 1<<15, 1<<15)
	words(32+size, 3, 2, 1, 0)
	words(32+size+lane, 0, 1, 2, 3)
	words(32+size+2*lane, 65536/3+1, 65536/3+1, 65536/3+1, 65536/3+1)
	redGreen, blue := numbers(32+2*size, 0), numbers(32+2*size+lane, 1)

	for _, sums := range []bool{false, true} {
		name := "endErrors"
		if sums {
			name = "endSums"
			TEXT(name, NOSPLIT, "func(pixels *uint32, ends *[8]int16, last int, sums *[12]int32)")
			Doc(name + " finds what colors.assign does: the sums of places and of their squares, the error, 0, and the sums of colours times places.")
		} else {
			TEXT(name, NOSPLIT, "func(pixels *uint32, ends, moves *[8]int16, last int, n int, errs *int32)")
			Doc(name + " finds the errors of a pair of endpoints after each of some moves.")
		}
		pixels, ends := Mem{Base: Load(Param("pixels"), GP64())}, Load(Param("ends"), GP64())
		last := Load(Param("last"), GP64())
		var n, moves, out reg.Register
		if sums {
			out = Load(Param("sums"), GP64())
		} else {
			n, moves, out = Load(Param("n"), GP64()), Load(Param("moves"), GP64()), Load(Param("errs"), GP64())
		}
		weights := GP64()
		LEAQ(first, weights)
		at := GP64()
		MOVQ(last, at)
		SUBQ(Imm(2), at)
		IMUL3Q(Imm(size), at, at)
		ADDQ(at, weights)
		for k := range 2 { // Y0 to Y3: red and green, blue and 0
			VMOVDQU(pixels.Offset(k*lane), y(2*k))
			VMOVDQU(pixels.Offset((2+k)*lane), y(2*k+1))
		}
		next := name + "Next"
		Label(next)
		VMOVDQU(Mem{Base: ends}, reg.X4)
		if !sums {
			VPADDW(Mem{Base: moves}, reg.X4, reg.X4)
		}
		VPMULLW(by, reg.X4, reg.X4)
		VPMULHUW(down, reg.X4, reg.X4)
		VPBROADCASTQ(reg.X4, y(5))
		VPERMQ(Imm(0x55), y(4), y(6))
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
		VMOVDQU(redGreen, y(6))
		VPERMD(y(5), y(6), y(4))
		VMOVDQU(blue, y(6))
		VPERMD(y(5), y(6), y(5))
		VPSHUFD(Imm(0), y(8), y(6))
		VPSHUFD(Imm(0x55), y(8), y(8))
		middle := [3]reg.VecPhysical{y(12), reg.Y14, reg.Y15}
		VPBROADCASTD(reg.X7, middle[0])
		for i := 1; i < 3; i++ {
			VPERMQ(Imm(uint64(0x55*i)), y(7), middle[i])
			VPSHUFD(Imm(0), middle[i], middle[i])
		}
		places := [2]reg.VecPhysical{y(9), y(10)}
		for k := range 2 {
			to := places[k]
			VPMADDWD(y(6), y(2*k), y(11))
			VPMADDWD(y(8), y(2*k+1), to)
			VPADDD(to, y(11), y(11))
			for i := range 3 {
				if i == 0 {
					VPCMPGTD(middle[i], y(11), to)
				} else {
					VPCMPGTD(middle[i], y(11), y(7))
					VPADDD(y(7), to, to)
				}
			}
			VPABSD(to, to)
		}
		for k := range 2 {
			VPERMILPS(places[k], y(4), y(11))
			VPERMILPS(places[k], y(5), y(12))
			VPSUBW(y(11), y(2*k), y(11))
			VPSUBW(y(12), y(2*k+1), y(12))
			VPMADDWD(y(11), y(11), y(11))
			VPMADDWD(y(12), y(12), y(12))
			if k == 0 {
				VPADDD(y(12), y(11), y(13))
			} else {
				VPADDD(y(12), y(11), y(11))
				VPADDD(y(11), y(13), y(13))
			}
		}
		if !sums {
			across(y(13), reg.X13, reg.X12)
			VMOVD(reg.X13, Mem{Base: out})
			ADDQ(Imm(4), out)
			ADDQ(Imm(16), moves)
			DECQ(n)
			JNZ(LabelRef(next))
			VZEROUPPER()
			RET()
			continue
		}
		VMOVQ(last, reg.X12)
		VPBROADCASTD(reg.X12, y(12))
		red, blues := y(4), y(5)
		for k := range 2 {
			t := places[k]
			VPMINSD(y(12), t, t)
			VPSLLD(Imm(16), t, y(11))
			VPOR(t, y(11), y(11))
			VPMULLW(y(11), y(2*k), y(2*k))
			VPMULLW(y(11), y(2*k+1), y(2*k+1))
		}
		VPADDW(y(2), y(0), red)
		VPADDW(y(3), y(1), blues)
		VPADDD(places[1], places[0], y(6))
		VPMADDWD(places[0], places[0], y(7))
		VPMADDWD(places[1], places[1], y(8))
		VPADDD(y(8), y(7), y(7))
		VPHADDD(y(7), y(6), y(6))
		VPXOR(y(8), y(8), y(8))
		VPHADDD(y(8), y(13), y(13))
		VPHADDD(y(13), y(6), y(6))
		VEXTRACTI128(Imm(1), y(6), reg.X7)
		VPADDD(reg.X7, reg.X6, reg.X6)
		VMOVDQU(reg.X6, Mem{Base: out})
		VPUNPCKLDQ(blues, red, y(6))
		VPUNPCKHDQ(blues, red, y(7))
		VPADDW(y(7), y(6), y(6))
		VEXTRACTI128(Imm(1), y(6), reg.X7)
		VPADDW(reg.X7, reg.X6, reg.X6)
		VPSHUFD(Imm(0x4e), reg.X6, reg.X7)
		VPADDW(reg.X7, reg.X6, reg.X6)
		VPMOVZXWD(reg.X6, y(6))
		VMOVDQU(y(6), Mem{Base: out}.Offset(16))
		VZEROUPPER()
		RET()
	}
}

// loadColors writes a function that does the same as colors.load for 16 pixels with a colour, and as colors.powers. Sums of
// products have the order of pixels: they are above 1<<24, so another order would round them differently.
func loadColors() {
	table := GLOBL("loadTables", RODATA|NOPTR)
	at := 0
	bytes := func(of func(i int) uint8) Mem {
		for i := range lane {
			DATA(at+i, U8(of(i)))
		}
		at += lane
		return table.Offset(at - lane)
	}
	chosen := func(of [6]int, most int) Mem { // double words; the last two repeat the one before
		for i := range 8 {
			DATA(at+4*i, U32(uint32(of[min(i, 5)]&most)))
		}
		at += lane
		return table.Offset(at - lane)
	}
	redGreen := bytes(func(i int) uint8 { return [4]uint8{0, 0x80, 1, 0x80}[i%4] + uint8(i%16/4*4) })
	blue := bytes(func(i int) uint8 { return [4]uint8{2, 0x80, 0x80, 0x80}[i%4] + uint8(i%16/4*4) })
	left, right := [6]int{0, 0, 0, 1, 1, 2}, [6]int{0, 1, 2, 1, 2, 2} // the factors of rr, rg, rb, gg, gb, bb
	firsts, seconds := chosen(left, 3), chosen(right, 3)
	row := [3][3]int{{0, 1, 2}, {1, 3, 4}, {2, 4, 5}} // of the matrix
	var factors [3][2]Mem
	for k := range 3 {
		var a, b [6]int
		for i := range 6 {
			a[i], b[i] = row[left[i]][k], row[k][right[i]]
		}
		factors[k] = [2]Mem{chosen(a, 7), chosen(b, 7)}
	}

	TEXT("loadColors", NOSPLIT, "func(pixels *[64]byte, words *uint32, sum *[4]int32, powers *[8]float32) bool")
	Doc("loadColors stores the words of pixels, their sum, and the eighth power of their covariance, and reports whether they are equal.")
	pixels, words := Mem{Base: Load(Param("pixels"), GP64())}, Mem{Base: Load(Param("words"), GP64())}
	sum, powers := Mem{Base: Load(Param("sum"), GP64())}, Mem{Base: Load(Param("powers"), GP64())}
	memory := AllocLocal(8 * lane)
	for k := range 2 { // Y0 to Y3: red and green, blue and 0
		VMOVDQU(pixels.Offset(k*lane), y(4))
		VPSHUFB(redGreen, y(4), y(k))
		VPSHUFB(blue, y(4), y(2+k))
		VMOVDQU(y(k), words.Offset(k*lane))
		VMOVDQU(y(2+k), words.Offset((2+k)*lane))
	}
	VPBROADCASTD(reg.X0, y(4))
	VPBROADCASTD(reg.X2, y(5))
	VPCMPEQD(y(0), y(4), y(6))
	VPCMPEQD(y(1), y(4), y(7))
	VPAND(y(7), y(6), y(6))
	VPCMPEQD(y(2), y(5), y(7))
	VPAND(y(7), y(6), y(6))
	VPCMPEQD(y(3), y(5), y(7))
	VPAND(y(7), y(6), y(6))
	mask, same := GP32(), GP8()
	VPMOVMSKB(y(6), mask)
	ADDL(Imm(1), mask)
	SETEQ(same)
	Store(same, ReturnIndex(0))
	VPADDW(y(1), y(0), y(0))
	VPADDW(y(3), y(2), y(2))
	VPUNPCKLDQ(y(2), y(0), y(1)) // red, green, blue and 0, as words
	VPUNPCKHDQ(y(2), y(0), y(0))
	VPADDW(y(1), y(0), y(0))
	VEXTRACTI128(Imm(1), y(0), reg.X1)
	VPADDW(reg.X1, reg.X0, reg.X0)
	VPSHUFD(Imm(0x4e), reg.X0, reg.X1)
	VPADDW(reg.X1, reg.X0, reg.X0)
	VPMOVZXWD(reg.X0, reg.X0)
	VMOVDQU(reg.X0, sum)
	VINSERTI128(Imm(1), reg.X0, y(0), y(0))
	for i := range 8 {
		VPMOVZXBD(pixels.Offset(8*i), y(1))
		VPSLLD(Imm(4), y(1), y(1))
		VPSUBD(y(0), y(1), y(1))
		VCVTDQ2PS(y(1), y(1))
		VMOVUPS(y(1), memory.Offset(i*lane))
	}
	m := y(0)
	VMOVDQU(firsts, y(4))
	VMOVDQU(seconds, y(5))
	VXORPS(m, m, m)
	for i := range 16 {
		VBROADCASTF128(memory.Offset(16*i), y(1))
		VPERMILPS(y(4), y(1), y(2))
		VPERMILPS(y(5), y(1), y(3))
		VMULPS(y(3), y(2), y(2))
		VADDPS(y(2), m, m)
	}
	one := reg.X6
	VPCMPEQD(one, one, one)
	VPSRLD(Imm(25), one, one)
	VPSLLD(Imm(23), one, one)
	for range 3 {
		VPERMILPS(Imm(0xff), reg.X0, reg.X1)
		VADDSS(reg.X1, reg.X0, reg.X1)
		VEXTRACTF128(Imm(1), m, reg.X2)
		VPERMILPS(Imm(0x55), reg.X2, reg.X2)
		VADDSS(reg.X2, reg.X1, reg.X1)
		VDIVSS(reg.X1, one, reg.X1)
		VBROADCASTSS(reg.X1, y(1))
		VMULPS(y(1), m, m)
		for k, f := range factors {
			VMOVDQU(f[0], y(2))
			VPERMPS(m, y(2), y(2))
			VMOVDQU(f[1], y(3))
			VPERMPS(m, y(3), y(3))
			if k == 0 {
				VMULPS(y(3), y(2), y(1))
				continue
			}
			VMULPS(y(3), y(2), y(2))
			VADDPS(y(2), y(1), y(1))
		}
		VMOVAPS(y(1), m)
	}
	VMOVUPS(m, powers)
	VZEROUPPER()
	RET()
}

// orderLanes writes a function that sorts 16 pixels along an axis, as colors.sort does, and finds what colors.measure needs of
// them. It does not move pixels: the place of a pixel is the number of pixels before it, and the sums from a place on are over
// the pixels that are not before it. Sums are words, one for each place, from the second place on.
func orderLanes() {
	table := GLOBL("orderTables", RODATA|NOPTR)
	numbers := func(at, size int, of func(i int) int) Mem {
		for i := range lane / size {
			if size == 2 {
				DATA(at+2*i, U16(uint16(of(i))))
			} else {
				DATA(at+4*i, U32(uint32(of(i))))
			}
		}
		return table.Offset(at)
	}
	index := [2]Mem{numbers(0, 4, func(i int) int { return i }), numbers(lane, 4, func(i int) int { return 8 + i })}
	place, pixelsAfter := numbers(2*lane, 2, func(i int) int { return i }), numbers(3*lane, 2, func(i int) int { return 15 - i })

	TEXT("orderLanes", NOSPLIT,
		"func(pixels *uint32, axis *[2]uint32, sum *int32, places *[16]uint8, tails *[3][16]int16, sums *[3][16]float32) float32")
	Doc("orderLanes finds the places of pixels in the order along an axis, the sums of the colours from each place on but the first, 16 times",
		"their deviations from the mean, and 256 times the sum of all squared distances from the mean.")
	pixels, axis := Mem{Base: Load(Param("pixels"), GP64())}, Mem{Base: Load(Param("axis"), GP64())}
	sum, out := Mem{Base: Load(Param("sum"), GP64())}, Mem{Base: Load(Param("places"), GP64())}
	tails, sums := Mem{Base: Load(Param("tails"), GP64())}, Mem{Base: Load(Param("sums"), GP64())}
	memory := AllocLocal(10 * lane)
	keys, places := memory, memory.Offset(2*lane)
	channel := func(c int) Mem { return memory.Offset((4 + 2*c) * lane) }
	VPBROADCASTD(axis, y(4))
	VPBROADCASTD(axis.Offset(4), y(5))
	twice := func(v, to reg.VecPhysical, shift, back func(...Op)) { // the same word in both halves
		shift(Imm(16), v, to)
		back(Imm(16), to, y(9))
		VPOR(y(9), to, to)
	}
	for k := range 2 { // Y0 and Y1: keys
		VMOVDQU(pixels.Offset(k*lane), y(6))
		VMOVDQU(pixels.Offset((2+k)*lane), y(7))
		for c, v := range []reg.VecPhysical{y(6), y(6), y(7)} {
			if c == 1 {
				twice(v, y(8), VPSRLD, VPSLLD)
			} else {
				twice(v, y(8), VPSLLD, VPSRLD)
			}
			VMOVDQU(y(8), channel(c).Offset(k*lane))
		}
		VPMADDWD(y(4), y(6), y(6))
		VPMADDWD(y(5), y(7), y(7))
		VPADDD(y(7), y(6), y(6))
		VPSLLD(Imm(4), y(6), y(6))
		VPOR(index[k], y(6), y(k))
		VMOVDQU(y(k), keys.Offset(k*lane))
	}
	VPXOR(y(2), y(2), y(2))
	VPXOR(y(3), y(3), y(3))
	for i := range 16 { // Y2 and Y3: places
		VPBROADCASTD(keys.Offset(4*i), y(4))
		for k := range 2 {
			VPCMPGTD(y(4), y(k), y(5+k))
			VPSUBD(y(5+k), y(2+k), y(2+k))
		}
	}
	for k := range 2 {
		VPSLLD(Imm(16), y(2+k), y(4))
		VPOR(y(2+k), y(4), y(4))
		VMOVDQU(y(4), places.Offset(k*lane))
	}
	VPACKUSDW(y(3), y(2), y(4))
	VPERMQ(Imm(0xd8), y(4), y(4))
	VEXTRACTI128(Imm(1), y(4), reg.X5)
	VPACKUSWB(reg.X5, reg.X4, reg.X4)
	VMOVDQU(reg.X4, out)
	VMOVDQU(place, y(7))
	for c := range 3 { // Y8 to Y10: sums of colours
		VPXOR(y(8+c), y(8+c), y(8+c))
	}
	for i := range 16 {
		VPBROADCASTD(places.Offset(4*i), y(4))
		VPCMPGTW(y(7), y(4), y(4))
		for c := range 3 {
			VPBROADCASTD(channel(c).Offset(4*i), y(5))
			VPAND(y(4), y(5), y(5))
			VPADDW(y(5), y(8+c), y(8+c))
		}
	}
	low := []reg.VecPhysical{reg.X8, reg.X9, reg.X10}
	for c := range 3 { // Y8 to Y10: deviations of pixels, in order
		v := y(8 + c)
		VMOVDQU(v, tails.Offset(c*lane))
		VPBROADCASTW(sum.Offset(4*c), y(4))
		VPMULLW(pixelsAfter, y(4), y(4))
		VPSLLW(Imm(4), v, v)
		VPSUBW(y(4), v, v)
		VPMOVSXWD(low[c], y(4))
		VCVTDQ2PS(y(4), y(4))
		VMOVUPS(y(4), sums.Offset(2*c*lane))
		VEXTRACTI128(Imm(1), v, reg.X5)
		VPMOVSXWD(reg.X5, y(5))
		VCVTDQ2PS(y(5), y(5))
		VMOVUPS(y(5), sums.Offset((2*c+1)*lane))
		VPERM2I128(Imm(0x08), v, v, y(4)) // the deviations one place before
		VPALIGNR(Imm(14), y(4), v, y(4))
		VPSUBW(v, y(4), v)
	}
	VPXOR(y(7), y(7), y(7))
	for k, unpack := range []func(...Op){VPUNPCKLWD, VPUNPCKHWD} {
		unpack(y(9), y(8), y(4))
		unpack(y(7), y(10), y(5))
		VPMADDWD(y(4), y(4), y(4))
		VPMADDWD(y(5), y(5), y(5))
		VCVTDQ2PS(y(4), y(4))
		VCVTDQ2PS(y(5), y(5))
		VADDPS(y(5), y(4), y(4))
		VMOVUPS(y(4), memory.Offset(k*lane))
	}
	for i := range 16 {
		from := memory.Offset(i/8*16 + i/4%2*lane + i%4*4)
		if i == 0 {
			VMOVSS(from, reg.X0)
		} else {
			VADDSS(from, reg.X0, reg.X0)
		}
	}
	spread, err := ReturnIndex(0).Resolve()
	if err != nil {
		panic(err)
	}
	VMOVSS(reg.X0, spread.Addr)
	VZEROUPPER()
	RET()
}

// shapeGains writes a function that does the same as colors.measure for 16 pixels: the gains of all shapes of up to
// four runs. The first cut is at i and the second at j; the third is at 8 places in a register: 1 to 8, or 9 to 16. An
// invalid shape has a negative gain.
func shapeGains() {
	TEXT("shapeGains", NOSPLIT, "func(sums *[3][16]float32, inverse *float32, scratch *float32, gains *int32, top *[24]int32)")
	Doc("shapeGains finds the gains of all shapes of 16 pixels, and the greatest of every 24th.")
	sums := Mem{Base: Load(Param("sums"), GP64())}
	inverse, gains := Mem{Base: Load(Param("inverse"), GP64())}, Mem{Base: Load(Param("gains"), GP64())}
	scratch := Mem{Base: Load(Param("scratch"), GP64())}
	twice, square, both := scratch, scratch.Offset(32*lane), scratch.Offset(34*lane) // twice has dot products
	for k := range 2 {                                                               // squares
		for c := range 3 {
			VMOVUPS(sums.Offset(64*c+lane*k), y(c))
			VMULPS(y(c), y(c), y(c))
		}
		VADDPS(y(1), y(0), y(0))
		VADDPS(y(2), y(0), y(0))
		VMOVUPS(y(0), square.Offset(lane*k))
	}
	for c := range 3 {
		for k := range 2 {
			VMOVUPS(sums.Offset(64*c+lane*k), y(2*c+k))
		}
	}
	for j := range 15 {
		for c := range 3 {
			VBROADCASTSS(sums.Offset(64*c+4*j), y(6+c))
		}
		for k := j / 8; k < 2; k++ {
			VMULPS(y(6), y(k), y(9))
			VMULPS(y(7), y(2+k), y(10))
			VADDPS(y(10), y(9), y(9))
			VMULPS(y(8), y(4+k), y(10))
			VADDPS(y(10), y(9), y(9))
			VADDPS(y(9), y(9), y(9))
			VMOVUPS(y(9), twice.Offset((2*j+k)*lane))
		}
	}
	top := [3]reg.VecPhysical{y(13), reg.Y14, reg.Y15}
	for _, t := range top {
		VPXOR(t, t, t)
	}
	VMOVUPS(square, y(11))
	VMOVUPS(square.Offset(lane), y(12))
	at := 0
	for i := range 15 {
		for k := i / 8; k < 2; k++ {
			VADDPS(twice.Offset((2*i+k)*lane), y(11+k), y(k))
			VMOVUPS(y(k), both.Offset(k*lane))
		}
		VBROADCASTSS(square.Offset(4*i), y(2))
		for j := i; j < 15; j++ {
			base := y(3 + j%2*4)
			VBROADCASTSS(both.Offset(4*j), base)
			VADDPS(base, y(2), base)
			for k := j / 8; k < 2; k++ {
				g := y(4 + k + j%2*4)
				VADDPS(y(k), base, g)
				VADDPS(twice.Offset((2*j+k)*lane), g, g)
				VMULPS(inverse.Offset(at), g, g)
				VMOVUPS(g, gains.Offset(at))
				VPMAXSD(g, top[at/lane%3], top[at/lane%3])
				at += lane
			}
		}
	}
	out := Mem{Base: Load(Param("top"), GP64())}
	for k, t := range top {
		VMOVDQU(t, out.Offset(k*lane))
	}
	VZEROUPPER()
	RET()
}

// shapesAbove writes a function that finds the gains that are not below a limit.
func shapesAbove() {
	TEXT("shapesAbove", NOSPLIT, "func(gains *int32, groups int, limit int32, found *uint16) int")
	Doc("shapesAbove finds the places of gains that are not below a limit, in order, and how many there are. The groups of eight are a multiple of four.")
	gains, groups := Load(Param("gains"), GP64()), Load(Param("groups"), GP64())
	limit := GP32()
	Load(Param("limit"), limit)
	out := Load(Param("found"), GP64())
	start := GP64()
	MOVQ(out, start)
	VMOVD(limit, reg.X0)
	VPBROADCASTD(reg.X0, reg.Y0)
	at := GP64()
	XORQ(at, at)
	bits, place := GP32(), GP32()
	Label("shapesGroup")
	from := func(k int) Mem { return Mem{Base: gains, Disp: k * lane, Index: at, Scale: 4} }
	VMOVDQU(from(0), reg.Y1)
	VMOVDQU(from(2), reg.Y2)
	VPMAXSD(from(1), reg.Y1, reg.Y1)
	VPMAXSD(from(3), reg.Y2, reg.Y2)
	VPMAXSD(reg.Y2, reg.Y1, reg.Y1)
	VPCMPGTD(reg.Y1, reg.Y0, reg.Y1) // below
	VMOVMSKPS(reg.Y1, bits)
	CMPL(bits, Imm(0xff))
	JE(LabelRef("shapesNone"))
	for k := range 4 {
		one, none := fmt.Sprintf("shapesOne%d", k), fmt.Sprintf("shapesNone%d", k)
		VPCMPGTD(from(k), reg.Y0, reg.Y1)
		VMOVMSKPS(reg.Y1, bits)
		XORL(Imm(0xff), bits)
		JZ(LabelRef(none))
		Label(one)
		BSFL(bits, place)
		LEAL(Mem{Base: at, Index: place, Scale: 1, Disp: 8 * k}, place)
		MOVW(place.As16(), Mem{Base: out})
		ADDQ(Imm(2), out)
		LEAL(Mem{Base: bits, Disp: -1}, place)
		ANDL(place, bits)
		JNZ(LabelRef(one))
		Label(none)
	}
	Label("shapesNone")
	ADDQ(Imm(32), at)
	SUBQ(Imm(4), groups)
	JNZ(LabelRef("shapesGroup"))
	VZEROUPPER()
	SUBQ(start, out)
	SHRQ(Imm(1), out)
	Store(out, ReturnIndex(0))
	RET()
}

// solve writes a function that does the same as fit.solve, for all channels at once. The lower half of a register holds
// those of the lower first endpoint, the upper half those of the higher one.
func solve() {
	table := GLOBL("solveTables", RODATA|NOPTR)
	numbers := func(at int, w ...uint32) Mem { // for red, green, blue and a zero
		for i := range 8 {
			DATA(at+4*i, U32(w[i%4]))
		}
		return table.Offset(at)
	}
	scales := numbers(0, math.Float32bits(float32(31)/255), math.Float32bits(float32(63)/255), math.Float32bits(float32(31)/255), 0)
	tops := numbers(lane, 31, 63, 31, 0)
	by := numbers(2*lane, 33, 65, 33, 0) // widens 5 or 6 bits to 8
	down := numbers(3*lane, 2, 4, 2, 0)
	for i := range 8 {
		DATA(4*lane+4*i, U32(uint32(i/4)))
	}
	above := table.Offset(4 * lane)
	floats := numbers(5*lane, math.Float32bits(255), math.Float32bits(0.5), 0, 0)

	TEXT("solveLanes", NOSPLIT, "func(sums *[8]int32, last, aa, ab, bb int32, det, half float32, ends *[8]int32) int32")
	Doc("solveLanes finds the endpoints of least squares, as fit.solve does, of sums of colours times places and of colours.")
	sums := Mem{Base: Load(Param("sums"), GP64())}
	xa, xb, zero, full := y(0), y(1), y(2), y(3)
	VPXOR(zero, zero, zero)
	VBROADCASTSS(floats, full)
	whole := func(name string, to reg.VecPhysical) {
		v := GP32()
		Load(Param(name), v)
		low := map[reg.VecPhysical]reg.VecPhysical{y(4): reg.X4, y(5): reg.X5, y(6): reg.X6, y(7): reg.X7}[to]
		VMOVD(v, low)
		VPBROADCASTD(low, to)
	}
	whole("last", y(4))
	VBROADCASTI128(sums, xb)
	VPMULLD(y(4), xb, xb)
	VBROADCASTI128(sums.Offset(16), xa)
	VPMULLD(y(4), y(4), y(4))
	VPMULLD(y(4), xa, xa)
	VPSUBD(xb, xa, xa)
	whole("bb", y(4))
	whole("ab", y(5))
	whole("aa", y(6))
	q0, a, q1, b := y(7), y(8), y(9), y(10)
	clip := func(v reg.VecPhysical) {
		VMAXPS(zero, v, v)
		VMINPS(full, v, v)
		VMULPS(scales, v, v)
	}
	widen := func(q, to reg.VecPhysical) {
		VPMULLD(by, q, to)
		VPSRLVD(down, to, to)
	}
	VPMULLD(y(4), xa, q0)
	VPMULLD(y(5), xb, a)
	VPSUBD(a, q0, q0)
	VCVTDQ2PS(q0, q0)
	broadcast("det", a)
	VMULPS(a, q0, q0)
	clip(q0)
	VCVTTPS2DQ(q0, q0)
	VPADDD(above, q0, q0)
	widen(q0, a)
	VPMULLD(a, y(5), y(11)) // ab*a
	VPSUBD(y(11), xb, q1)
	VCVTDQ2PS(q1, q1)
	broadcast("half", b)
	VMULPS(b, q1, q1)
	clip(q1)
	VBROADCASTSS(floats.Offset(4), b)
	VADDPS(b, q1, q1)
	VCVTTPS2DQ(q1, q1)
	widen(q1, b)
	err := y(12)
	VPMULLD(b, y(11), y(11)) // ab*a*b
	VPADDD(y(11), y(11), y(11))
	VPMULLD(a, y(6), err)
	VPSUBD(xa, err, err)
	VPSUBD(xa, err, err)
	VPMULLD(a, err, err)
	VPADDD(y(11), err, err)
	VPMULLD(b, y(4), y(11))
	VPSUBD(xb, y(11), y(11))
	VPSUBD(xb, y(11), y(11))
	VPMULLD(b, y(11), y(11))
	VPADDD(y(11), err, err)
	VPCMPGTD(tops, q0, y(11)) // none exceeds the maximum
	VPSRLD(Imm(1), y(11), y(13))
	VPBLENDVB(y(11), y(13), err, err)
	VEXTRACTI128(Imm(1), err, reg.X11)
	VPCMPGTD(reg.X11, reg.X12, reg.X13) // the higher one is better
	VPMINSD(reg.X11, reg.X12, reg.X12)
	ends := Mem{Base: Load(Param("ends"), GP64())}
	for k, q := range []reg.VecPhysical{q0, q1} {
		low := []reg.VecPhysical{reg.X7, reg.X9}[k]
		VEXTRACTI128(Imm(1), q, reg.X11)
		VPBLENDVB(reg.X13, reg.X11, low, low)
		VMOVDQU(low, ends.Offset(16*k))
	}
	sum, part := GP32(), GP32()
	VMOVD(reg.X12, sum)
	for i := 1; i < 3; i++ {
		VPEXTRD(Imm(uint64(i)), reg.X12, part)
		ADDL(part, sum)
	}
	VZEROUPPER()
	Store(sum, ReturnIndex(0))
	RET()
}

// solveEight writes a function that does the same as fit.solve for eight fits of 16 pixels with the same colours, a fit in
// each double word. Words suffice for most factors, which are positive: VPMADDWD is faster than VPMULLD.
func solveEight() {
	table := GLOBL("solveEightTables", RODATA|NOPTR)
	at := 0
	filled := func(v uint32) Mem {
		for i := range 8 {
			DATA(at+4*i, U32(v))
		}
		at += lane
		return table.Offset(at - lane)
	}
	full, half := filled(math.Float32bits(255)), filled(math.Float32bits(0.5))
	five, nineteen := filled(5), filled(19)
	var scales, tops [2]Mem // of 5 and 6 bits
	for i, top := range []uint32{31, 63} {
		scales[i], tops[i] = filled(math.Float32bits(float32(top)/255)), filled(top)
	}

	TEXT("solveEight", NOSPLIT, "func(sums *[6][8]int32, x *int32, ends *[6][8]int32, errs *[8]int32)")
	Doc("solveEight finds the endpoints of least squares of eight fits, as fit.solve does: first endpoints, second endpoints and scores. sums has",
		"last places, sums of places, of their squares, and of colours times places.")
	sums, x := Mem{Base: Load(Param("sums"), GP64())}, Mem{Base: Load(Param("x"), GP64())}
	ends, errs := Mem{Base: Load(Param("ends"), GP64())}, Mem{Base: Load(Param("errs"), GP64())}
	memory := AllocLocal(2 * lane)
	squared, lower := memory, memory.Offset(lane) // the last places, squared; the errors of the lower first endpoint
	zero, aa, ab, bb, det, inverse, total := y(0), y(1), y(2), y(3), y(4), y(5), y(6)
	xa, xb, q0, a, q1, t, b, err, free := y(7), y(8), y(9), y(10), y(11), y(12), y(13), reg.Y14, reg.Y15
	VPXOR(zero, zero, zero)
	VPXOR(total, total, total)
	VMOVDQU(sums, free)
	VMOVDQU(sums.Offset(2*lane), bb)
	VPMADDWD(sums.Offset(lane), free, ab) // last*t
	VPMADDWD(free, free, free)
	VMOVDQU(free, squared)
	VPSLLD(Imm(4), free, aa)
	VPSUBD(ab, aa, aa)
	VPSUBD(ab, aa, aa)
	VPADDD(bb, aa, aa)
	VPSUBD(bb, ab, ab)
	VPMADDWD(bb, aa, det)
	VPMADDWD(ab, ab, free)
	VPSUBD(free, det, det)
	VPCMPEQD(free, free, free) // 1
	VPSRLD(Imm(25), free, free)
	VPSLLD(Imm(23), free, free)
	VCVTDQ2PS(det, det)
	VDIVPS(det, free, det)
	VCVTDQ2PS(bb, inverse)
	VDIVPS(inverse, free, inverse)
	for c := range 3 {
		green := c & 1
		clip := func(v reg.VecPhysical) {
			VMAXPS(zero, v, v)
			VMINPS(full, v, v)
			VMULPS(scales[green], v, v)
		}
		widen := func(q, to reg.VecPhysical) {
			VPSLLD(Imm(uint64(3-green)), q, to)
			VPSRLD(Imm(uint64(2+2*green)), q, free)
			VPOR(free, to, to)
		}
		VPBROADCASTD(x.Offset(4*c), xa)
		VMOVDQU(sums.Offset((3+c)*lane), xb)
		VPMADDWD(sums, xb, xb)
		VPMADDWD(squared, xa, xa)
		VPSUBD(xb, xa, xa)
		VPMULLD(bb, xa, q0)
		VPMULLD(ab, xb, a)
		VPSUBD(a, q0, q0)
		VCVTDQ2PS(q0, q0)
		VMULPS(det, q0, q0)
		clip(q0)
		VCVTTPS2DQ(q0, q0)
		for side := range 2 {
			if side == 1 {
				VPCMPEQD(free, free, free)
				VPSUBD(free, q0, q0)
			}
			widen(q0, a)
			VPMADDWD(ab, a, t)
			VPSUBD(t, xb, q1)
			VCVTDQ2PS(q1, q1)
			VMULPS(inverse, q1, q1)
			clip(q1)
			VADDPS(half, q1, q1)
			VCVTTPS2DQ(q1, q1)
			widen(q1, b)
			VPMADDWD(b, t, t)
			VPMADDWD(aa, a, err)
			VPSUBD(xa, err, err)
			VPSUBD(xa, err, err)
			VPMULLD(a, err, err)
			VPADDD(t, err, err)
			VPADDD(t, err, err)
			VPMADDWD(bb, b, t)
			VPSUBD(xb, t, t)
			VPSUBD(xb, t, t)
			VPMULLD(b, t, t)
			VPADDD(t, err, err)
			if side == 0 {
				VMOVDQU(err, lower)
				VMOVDQU(q0, ends.Offset(c*lane))
				VMOVDQU(q1, ends.Offset((3+c)*lane))
			}
		}
		VPCMPGTD(tops[green], q0, t) // none exceeds the maximum
		VPSRLD(Imm(1), t, b)
		VPBLENDVB(t, b, err, err)
		VMOVDQU(lower, free)
		VPCMPGTD(err, free, t) // the higher one is better
		VPMINSD(err, free, free)
		VPADDD(free, total, total)
		for i, q := range []reg.VecPhysical{q0, q1} {
			VMOVDQU(ends.Offset((3*i+c)*lane), free)
			VPBLENDVB(t, q, free, free)
			VMOVDQU(free, ends.Offset((3*i+c)*lane))
		}
	}
	VMOVDQU(sums, free)
	VPMADDWD(five, free, free)
	VMOVDQU(nineteen, t)
	VPSUBD(free, t, t) // 36 by the square of 2 or 3
	VPMULLD(t, total, total)
	VMOVDQU(total, errs)
	VZEROUPPER()
	RET()
}

// nearest writes a function that finds the code of the place nearest to each of 16 colours, or the first of several.
func nearest() {
	table := GLOBL("nearestTables", RODATA|NOPTR)
	for i := range 16 {
		DATA(4*i, U32(uint32(2*i)))
	}
	TEXT("nearestLanes", NOSPLIT, "func(pixels *uint32, places *[4]uint64, codes *[4]uint32) uint32")
	Doc("nearestLanes finds the codes of the places nearest to pixels, two bits each.")
	pixels, places := Mem{Base: Load(Param("pixels"), GP64())}, Mem{Base: Load(Param("places"), GP64())}
	codes := Mem{Base: Load(Param("codes"), GP64())}
	for k := range 2 { // Y0 to Y3: red and green, blue and 0
		VMOVDQU(pixels.Offset(k*lane), y(2*k))
		VMOVDQU(pixels.Offset((2+k)*lane), y(2*k+1))
	}
	one, number := y(10), y(11)
	VPCMPEQD(one, one, one)
	VPSRLD(Imm(31), one, one)
	VPXOR(number, number, number)
	least := [2]reg.VecPhysical{y(4), y(5)}
	for i := range 4 {
		VPBROADCASTD(places.Offset(8*i), y(6))
		VPBROADCASTD(places.Offset(8*i+4), y(7))
		for k := range 2 {
			apart(y(2*k), y(2*k+1), y(6), y(7), y(8), y(9))
			VPSLLD(Imm(2), y(8), y(8))
			if i == 0 {
				VMOVDQA(y(8), least[k])
				continue
			}
			VPOR(number, y(8), y(8))
			VPMINSD(y(8), least[k], least[k])
		}
		VPADDD(one, number, number)
	}
	VBROADCASTI128(codes, y(6))
	for k := range 2 {
		VPERMILPS(least[k], y(6), least[k]) // uses the lowest two bits
		VPSLLVD(table.Offset(k*lane), least[k], least[k])
	}
	VPOR(y(5), y(4), y(4))
	VEXTRACTI128(Imm(1), y(4), reg.X5)
	VPOR(reg.X5, reg.X4, reg.X4)
	VPSHUFD(Imm(0x4e), reg.X4, reg.X5)
	VPOR(reg.X5, reg.X4, reg.X4)
	VPSHUFD(Imm(0xb1), reg.X4, reg.X5)
	VPOR(reg.X5, reg.X4, reg.X4)
	result := GP32()
	VMOVD(reg.X4, result)
	VZEROUPPER()
	Store(result, ReturnIndex(0))
	RET()
}
