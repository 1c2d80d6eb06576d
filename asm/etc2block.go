package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// blockHalves writes a function that loads a block: for the left, right, upper and lower half, its pixels as in halfPixels, and what the
// search of base colours needs to know, as in halfLanes.
func blockHalves() {
	table := GLOBL("halvesTables", RODATA|NOPTR)
	for i := range 4 { // red and green of pixels, then blue, as words
		DATA(8*i, U64(0x8005800480018000+uint64(i%2)*0x0008000800080008))
	}
	for i := range 4 {
		DATA(lane+8*i, U64(0x8080800680808002+uint64(i%2)*0x0000000800000008))
	}
	one := words(table, 2*lane, 1, 1)

	TEXT("halvesLanes", NOSPLIT, "func(src *[64]byte, pixels *int16, halves *int16)")
	Doc("halvesLanes loads the halves of a block of RGBA pixels.")
	src, pixels := Mem{Base: Load(Param("src"), GP64())}, Mem{Base: Load(Param("pixels"), GP64())}
	out := Mem{Base: Load(Param("halves"), GP64())}
	upper, lower := y(0), y(1)
	VMOVDQU(src, upper)
	VMOVDQU(src.Offset(lane), lower)
	VPUNPCKLQDQ(lower, upper, y(2))
	VPUNPCKHQDQ(lower, upper, y(3))
	for i, half := range []reg.VecPhysical{y(2), y(3), upper, lower} {
		to := out.Offset(40 * i)
		rg, b, sums, squares := y(4), y(5), y(6), y(7)
		VPSHUFB(table, half, rg)
		VPSHUFB(table.Offset(lane), half, b)
		VMOVDQU(rg, pixels.Offset(2*lane*i))
		VMOVDQU(b, pixels.Offset(2*lane*i+lane))
		VPMADDWD(one, rg, sums)
		VPADDD(b, sums, sums)
		VPMADDWD(rg, rg, squares)
		VPMADDWD(b, b, y(8))
		VPADDD(y(8), squares, squares)
		VPMADDWD(sums, sums, y(8))
		VPHADDD(y(8), squares, squares)
		VPHADDD(squares, squares, squares)
		VEXTRACTI128(Imm(1), squares, reg.X8)
		VPADDD(reg.X8, reg.X7, reg.X7)
		VMOVQ(reg.X7, to.Offset(24))
		VPACKUSDW(sums, sums, sums)
		VPERMQ(Imm(0x08), sums, sums)
		VMOVDQU(reg.X6, to)
		VMOVDQA(reg.X6, reg.X7)
		for _, other := range []int{0x4e, 0xb1} {
			VPSHUFD(Imm(uint64(other)), reg.X6, reg.X8)
			VPMINSW(reg.X8, reg.X6, reg.X6)
			VPSHUFD(Imm(uint64(other)), reg.X7, reg.X8)
			VPMAXSW(reg.X8, reg.X7, reg.X7)
		}
		VPSRLD(Imm(16), reg.X6, reg.X8)
		VPMINSW(reg.X8, reg.X6, reg.X6)
		VPSRLD(Imm(16), reg.X7, reg.X8)
		VPMAXSW(reg.X8, reg.X7, reg.X7)
		VPUNPCKLWD(reg.X7, reg.X6, reg.X6)
		VMOVD(reg.X6, to.Offset(32))
		sumColors(rg, b)
		VPADDW(reg.X6, reg.X6, reg.X6)
		VMOVQ(reg.X6, to.Offset(16))
	}
	VZEROUPPER()
	RET()
}

// planes writes a function that returns the sums that fit needs, for all channels of a block.
func planes() {
	table := GLOBL("planesTables", RODATA|NOPTR)
	for i := range 4 { // the channels of four pixels: red, green, blue, alpha
		low := uint64(0x0d0905010c080400)
		DATA(8*i, U64(low+uint64(i%2)*0x0202020202020202))
	}
	data := func(at int, v uint64) Mem {
		for i := range 4 {
			DATA(at+8*i, U64(v))
		}
		return table.Offset(at)
	}
	across := data(lane, 0x0301fffd0301fffd) // -3, -1, 1, 3
	one := data(2*lane, 0x0101010101010101)
	down := [2]Mem{}
	for k := range 2 { // rows of -3 and -1, then 1 and 3
		for i := range 4 {
			v := uint64(uint8(4*k + 2*(i/2) - 3))
			DATA((3+k)*lane+8*i, U64(v*0x0101010101010101))
		}
		down[k] = table.Offset((3 + k) * lane)
	}
	ones := words(table, 5*lane, 1, 1)

	TEXT("planesLanes", NOSPLIT, "func(src *[64]byte, sums *[4][4]int32)")
	Doc("planesLanes returns the sums of the channels, of their squares, and of their products with numbers that rise to the right and down.")
	src, out := Mem{Base: Load(Param("src"), GP64())}, Mem{Base: Load(Param("sums"), GP64())}
	zero, all := y(13), [4]reg.VecPhysical{y(8), y(9), y(10), y(11)}
	VPXOR(zero, zero, zero)
	for k := range 2 {
		p := y(k)
		VMOVDQU(src.Offset(lane*k), p)
		VPSHUFB(table, p, p)
		for i, factors := range []Mem{one, across, down[k]} {
			to := y(2 + i)
			VPMADDUBSW(factors, p, to)
			VPMADDWD(ones, to, to)
		}
		VPUNPCKLBW(zero, p, y(6))
		VPUNPCKHBW(zero, p, y(7))
		VPMADDWD(y(6), y(6), y(6))
		VPMADDWD(y(7), y(7), y(7))
		VPHADDD(y(7), y(6), y(5))
		for i := range 4 {
			if k == 0 {
				VMOVDQA(y(2+i), all[i])
			} else {
				VPADDD(y(2+i), all[i], all[i])
			}
		}
	}
	for i, v := range all {
		low, high := [4]reg.VecPhysical{reg.X8, reg.X9, reg.X10, reg.X11}[i], reg.X7
		VEXTRACTI128(Imm(1), v, high)
		VPADDD(high, low, low)
		VMOVDQU(low, out.Offset(16*i))
	}
	VZEROUPPER()
	RET()
}

// planeCost writes a function that returns the error of a plane for each channel, as planeCost of Go does.
func planeCost() {
	table := GLOBL("planeTables", RODATA|NOPTR)
	for i := range 4 {
		DATA(8*i, U64(uint64(i)*0x0001000100010001))
	}
	for i := range 4 {
		DATA(lane+8*i, U64(0x0000ffffffffffff))
	}
	full, two := words(table, 2*lane, 255, 255), words(table, 3*lane, 2, 2)

	TEXT("planeCostLanes", NOSPLIT, "func(src *[64]byte, planes *int32) int32")
	Doc("planeCostLanes returns the error of planes.")
	src, planes := Mem{Base: Load(Param("src"), GP64())}, Mem{Base: Load(Param("planes"), GP64())}
	// X0 to X2: a plane of a channel as double words, then as words o, h and v of four channels.
	for c := range 3 {
		for k := range 3 {
			part := GP32()
			MOVL(planes.Offset(12*c+4*k), part)
			if c == 0 {
				VMOVD(part, [3]reg.VecPhysical{reg.X0, reg.X1, reg.X2}[k])
				continue
			}
			VMOVD(part, reg.X3)
			if c == 1 {
				VPSLLQ(Imm(16), reg.X3, reg.X3)
			} else {
				VPSLLQ(Imm(32), reg.X3, reg.X3)
			}
			VPOR(reg.X3, [3]reg.VecPhysical{reg.X0, reg.X1, reg.X2}[k], [3]reg.VecPhysical{reg.X0, reg.X1, reg.X2}[k])
		}
	}
	o, right, down, row, sum, zero := y(0), y(1), y(2), y(3), y(4), y(5)
	for _, v := range []reg.VecPhysical{reg.X0, reg.X1, reg.X2} {
		w := map[reg.VecPhysical]reg.VecPhysical{reg.X0: reg.Y0, reg.X1: reg.Y1, reg.X2: reg.Y2}[v]
		VPBROADCASTQ(v, w)
	}
	VPSUBW(o, right, right)
	VPSUBW(o, down, down)
	VPMULLW(table, right, right)
	VPSLLW(Imm(2), o, row)
	VPADDW(two, row, row)
	VPADDW(right, row, row)
	VPXOR(zero, zero, zero)
	VPXOR(sum, sum, sum)
	for i := range 4 {
		VPSRAW(Imm(2), row, y(6))
		VPMAXSW(zero, y(6), y(6))
		VPMINSW(full, y(6), y(6))
		VPMOVZXBW(src.Offset(16*i), y(7))
		VPSUBW(y(7), y(6), y(6))
		VPAND(table.Offset(lane), y(6), y(6))
		VPMADDWD(y(6), y(6), y(6))
		VPADDD(y(6), sum, sum)
		if i < 3 {
			VPADDW(down, row, row)
		}
	}
	across(sum, reg.X4, reg.X5)
	cost := GP32()
	VMOVD(reg.X4, cost)
	VZEROUPPER()
	Store(cost, ReturnIndex(0))
	RET()
}
