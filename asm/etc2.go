package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func etc2() {
	blockHalves()
	planes()
	planeCost()
	price()
	clamp()
	pairCost()
	starts()
	clusters()
	polishPair()
	levels()
}

// splitModifiers are those of the individual and the differential mode: the smaller and the larger of each table.
var splitModifiers = [8][2]int{{2, 8}, {5, 17}, {9, 29}, {13, 42}, {18, 60}, {24, 80}, {33, 106}, {47, 183}}

// words fills a register's data with a repeated pair of words.
func words(to Mem, at, low, high int) Mem {
	pair := uint64(uint16(low)) | uint64(uint16(high))<<16
	for i := range 4 {
		DATA(at+8*i, U64(pair<<32|pair))
	}
	return to.Offset(at)
}

// price writes a function that finds the best table for base colours, 16 in a group, as half.luma does, and adds the
// part that does not depend on tables. A key is eight times a cost, plus the table.
//
// For each table there are, as words in a register, the distance from which its larger modifier is better, then the
// factors of the sum of the distances and of the sum beyond that distance, and as double words the constant.
func price() {
	table := GLOBL("priceTables", RODATA|NOPTR)
	var edges, factors, fixed [8]Mem
	for t, m := range splitModifiers {
		a, b := m[0], m[1]
		edges[t] = words(table, t*3*lane, 3*(a+b), 3*(a+b))
		factors[t] = words(table, t*3*lane+lane, -16*a, -8*(b-a))
		add := 192*a*a + t
		fixed[t] = words(table, t*3*lane+2*lane, add, add>>16)
	}
	full := words(table, 24*lane, 255, 255)
	larger := table.Offset(25 * lane)
	for i := range 4 { // the larger modifiers, as bytes
		v := uint64(0)
		for t, m := range splitModifiers {
			v |= uint64(m[1]) << (8 * t)
		}
		DATA(25*lane+8*i, U64(v))
	}
	seven, none := words(table, 26*lane, 7, 0), words(table, 27*lane, 0x8000, 0x8000)

	TEXT("priceLanes", NOSPLIT, "func(half *int16, start *[4]int16, red, green, blue *int16, bits, groups int, "+
		"keys *int32, codes *uint16, clamped *[4]uint16)")
	Doc("priceLanes finds the best tables for groups of 16 base colours of 4 or 5 bits: start, plus red, green and blue. " +
		"It sets bits of those that need clamping.")
	half, start := Mem{Base: Load(Param("half"), GP64())}, Mem{Base: Load(Param("start"), GP64())}
	steps := [3]reg.Register{Load(Param("red"), GP64()), Load(Param("green"), GP64()), Load(Param("blue"), GP64())}
	bits, groups := Load(Param("bits"), GP64()), Load(Param("groups"), GP64())
	out, codes, clamped := Load(Param("keys"), GP64()), Load(Param("codes"), GP64()), Load(Param("clamped"), GP64())
	twice, squares := half.Offset(16), half.Offset(24) // after the sums
	low, high, room := AllocLocal(lane), AllocLocal(lane), AllocLocal(lane)
	left, right, count := GP64(), GP64(), GP64()
	LEAQ(Mem{Base: bits, Index: bits, Scale: 1}.Offset(-8), right)
	MOVQ(U32(16), count)
	SUBQ(bits, count)
	Label("priceGroup")
	top, zero := y(10), y(9)
	VPCMPEQW(top, top, top)
	VMOVQ(count, reg.X9)
	VPSRLW(reg.X9, top, top)
	VPXOR(zero, zero, zero)
	MOVQ(U32(8), left)
	SUBQ(bits, left)
	VMOVQ(left, reg.X11)
	VMOVQ(right, reg.X12)
	for k := range 3 {
		w := y(k)
		VPBROADCASTW(start.Offset(2*k), w)
		VPADDW(Mem{Base: steps[k]}, w, w)
		VPMAXSW(zero, w, w)
		VPMINSW(top, w, w)
		if k == 0 {
			VMOVDQA(w, y(4))
		} else {
			VPSLLW(Imm(uint64(5*k)), w, y(3))
			VPOR(y(3), y(4), y(4))
		}
		VPSRLW(reg.X12, w, y(3))
		VPSLLW(reg.X11, w, w)
		VPOR(y(3), w, w)
		ADDQ(Imm(lane), steps[k])
	}
	VMOVDQU(y(4), Mem{Base: codes})
	ADDQ(Imm(lane), codes)
	VPMINSW(y(1), y(0), y(3))
	VPMINSW(y(2), y(3), y(3))
	VPMAXSW(y(1), y(0), y(4))
	VPMAXSW(y(2), y(4), y(4))
	VMOVDQU(full, y(5))
	VPSUBW(y(4), y(5), y(4))
	VPMINSW(y(4), y(3), y(3))
	VMOVDQU(y(3), room)
	for k := range 3 {
		VPBROADCASTW(twice.Offset(2*k), y(6))
		VPSLLW(Imm(3), y(k), y(3+k))
		VPSUBW(y(6), y(3+k), y(3+k))
	}
	quadratic := func(unpack func(a, b, to reg.VecPhysical), to Mem) {
		unpack(y(0), y(1), y(6))
		unpack(y(3), y(4), y(7))
		VPMADDWD(y(7), y(6), y(6))
		unpack(y(2), zero, y(7))
		unpack(y(5), zero, y(8))
		VPMADDWD(y(8), y(7), y(7))
		VPADDD(y(7), y(6), y(6))
		VPBROADCASTD(squares, y(7))
		VPADDD(y(7), y(6), y(6))
		VPSLLD(Imm(3), y(6), y(6))
		VMOVDQU(y(6), to)
	}
	lower := func(a, b, to reg.VecPhysical) { VPUNPCKLWD(b, a, to) }
	upper := func(a, b, to reg.VecPhysical) { VPUNPCKHWD(b, a, to) }
	quadratic(lower, low)
	quadratic(upper, high)
	grey, sum := reg.Y15, y(8)
	VPADDW(y(1), y(0), grey)
	VPADDW(y(2), grey, grey)
	for i := range 8 { // twice the distances
		VPBROADCASTW(half.Offset(2*i), y(i))
		VPSUBW(grey, y(i), y(i))
		VPABSW(y(i), y(i))
		if i == 0 {
			VMOVDQA(y(i), sum)
		} else {
			VPADDW(y(i), sum, sum)
		}
		VPADDW(y(i), y(i), y(i))
	}
	keys := [2]reg.VecPhysical{y(12), y(13)}
	for t := range 8 {
		far := y(9)
		VMOVDQU(edges[t], reg.Y15)
		VPSUBUSW(reg.Y15, y(0), far)
		for i := 1; i < 8; i++ {
			by := [2]reg.VecPhysical{y(10), y(11)}[i%2]
			VPSUBUSW(reg.Y15, y(i), by)
			VPADDW(by, far, far)
		}
		for k, unpack := range []func(a, b, to reg.VecPhysical){lower, upper} {
			to := y(10 + k)
			if t == 0 {
				to = keys[k]
			}
			unpack(sum, far, to)
			VPMADDWD(factors[t], to, to)
			VPADDD(fixed[t], to, to)
			if t > 0 {
				VPMINSD(to, keys[k], keys[k])
			}
		}
	}
	VPADDD(low, keys[0], keys[0])
	VPADDD(high, keys[1], keys[1])
	VPAND(seven, keys[0], y(2))
	VPAND(seven, keys[1], y(3))
	VPACKUSDW(y(3), y(2), y(2))
	VPOR(none, y(2), y(2)) // no modifier in the upper bytes
	VMOVDQU(larger, y(3))
	VPSHUFB(y(2), y(3), y(2))
	VPCMPGTW(room, y(2), y(2))
	VPACKSSWB(y(2), y(2), y(2))
	VPERMQ(Imm(0x08), y(2), y(2))
	VPMOVMSKB(y(2), left.As32())
	MOVW(left.As16(), Mem{Base: clamped})
	ADDQ(Imm(2), clamped)
	VPERM2I128(Imm(0x20), keys[1], keys[0], y(0))
	VPERM2I128(Imm(0x31), keys[1], keys[0], y(1))
	VMOVDQU(y(0), Mem{Base: out})
	VMOVDQU(y(1), Mem{Base: out}.Offset(lane))
	ADDQ(Imm(2*lane), out)
	DECQ(groups)
	JNZ(LabelRef("priceGroup"))
	VZEROUPPER()
	RET()
}

// apart adds the squared distances of eight pixels from a colour: pairs of words of red and green, and of blue and 0.
func apart(rg, b, colorRG, colorB, to, free reg.VecPhysical) {
	VPSUBW(colorRG, rg, to)
	VPMADDWD(to, to, to)
	VPSUBW(colorB, b, free)
	VPMADDWD(free, free, free)
	VPADDD(free, to, to)
}

// clamp writes a function that does the same as half.clamped, for all base colours that need it.
func clamp() {
	table := GLOBL("clampTables", RODATA|NOPTR)
	for t, m := range splitModifiers {
		for k, v := range m {
			DATA(16*t+8*k, U64(v|v<<16|v<<32)) // for red and green, then for blue
		}
	}
	unpack := GLOBL("clampUnpack", RODATA|NOPTR) // shifts of a code's channels; the last one gives 0
	for i, v := range []uint64{5 << 32, 32<<32 | 10} {
		DATA(8*i, U64(v))
	}
	TEXT("clampLanes", NOSPLIT, "func(pixels *int16, keys *int32, codes *uint16, clamped uint64, bits int)")
	Doc("clampLanes gives the base colours with the bits of clamped the keys that half.clamped finds.")
	pixels := Mem{Base: Load(Param("pixels"), GP64())}
	keys, codes := Load(Param("keys"), GP64()), Load(Param("codes"), GP64())
	left, bits := Load(Param("clamped"), GP64()), Load(Param("bits"), GP64())
	rg, b, colorRG, colorB, full, least := y(0), y(1), y(2), y(3), y(4), y(5)
	right, shifts, mask := reg.X14, reg.X15, reg.X12
	VMOVDQU(pixels, rg)
	VMOVDQU(pixels.Offset(lane), b)
	VPCMPEQW(full, full, full)
	VPSRLW(Imm(8), full, full)
	VPCMPEQD(mask, mask, mask)
	VPSRLD(Imm(27), mask, mask)
	VMOVDQU(unpack, shifts)
	at, best, cost, i, code := GP64(), GP64(), GP32(), GP64(), GP64()
	MOVQ(U32(8), at)
	SUBQ(bits, at)
	VMOVQ(at, reg.X13)
	LEAQ(Mem{Base: bits, Index: bits, Scale: 1}.Offset(-8), at)
	VMOVQ(at, right)
	tables, entry := GP64(), GP64()
	LEAQ(table, tables)
	Label("clampNext")
	BSFQ(left, i)
	MOVL(Mem{Base: keys, Index: i, Scale: 4}, best.As32())
	ANDQ(Imm(7), best)
	MOVQ(best, at)
	MOVQ(best, entry)
	SHLQ(Imm(4), entry)
	ADDQ(tables, entry)
	MOVWQZX(Mem{Base: codes, Index: i, Scale: 2}, code)
	VMOVD(code.As32(), reg.X3)
	VPBROADCASTD(reg.X3, reg.X3)
	VPSRLVD(shifts, reg.X3, reg.X3)
	VPAND(mask, reg.X3, reg.X3)
	VPSRLD(right, reg.X3, reg.X2)
	VPSLLD(reg.X13, reg.X3, reg.X3)
	VPOR(reg.X2, reg.X3, reg.X3)
	VPACKUSDW(reg.X3, reg.X3, reg.X3)
	VPBROADCASTD(reg.X3, colorRG)
	VPSRLQ(Imm(32), reg.X3, reg.X3)
	VPBROADCASTD(reg.X3, colorB)
	MOVL(U32(1<<31-1), cost)
	Label("clampTable")
	for k := range 2 {
		VPBROADCASTD(Mem{Base: entry}.Offset(8*k), y(6))
		VPBROADCASTD(Mem{Base: entry}.Offset(8*k+4), y(7))
		VPADDW(y(6), colorRG, y(8))
		VPMINSW(full, y(8), y(8))
		VPADDW(y(7), colorB, y(9))
		VPMINSW(full, y(9), y(9))
		VPSUBUSW(y(6), colorRG, y(6))
		VPSUBUSW(y(7), colorB, y(7))
		apart(rg, b, y(8), y(9), y(10), y(11))
		if k == 0 {
			apart(rg, b, y(6), y(7), least, y(11))
		} else {
			apart(rg, b, y(6), y(7), y(8), y(11))
			VPMINSD(y(8), least, least)
		}
		VPMINSD(y(10), least, least)
	}
	across(least, reg.X5, reg.X6)
	sum := GP32()
	VMOVD(reg.X5, sum)
	CMPL(sum, cost)
	JGE(LabelRef("clampFound"))
	MOVL(sum, cost)
	MOVQ(at, best)
	INCQ(at)
	ADDQ(Imm(16), entry)
	CMPQ(at, Imm(8))
	JNE(LabelRef("clampTable"))
	Label("clampFound")
	SHLL(Imm(3), cost)
	ORL(best.As32(), cost)
	MOVL(cost, Mem{Base: keys, Index: i, Scale: 4})
	LEAQ(Mem{Base: left}.Offset(-1), i)
	ANDQ(i, left)
	JNZ(LabelRef("clampNext"))
	VZEROUPPER()
	RET()
}

// pairCost writes a function that returns the error of 16 pixels with four colours, where each pixel uses the nearest.
// It writes another one that also returns the nearest colours, and the sums of the pixels of each colour.
func pairCost() {
	for _, sums := range []bool{false, true} {
		name, arguments := "paintCost", "func(pixels *int16, paint *[4]uint64) int32"
		if sums {
			name, arguments = "paintSums", "func(pixels *int16, paint *[4]uint64, sums *[4][8]int16, masks *[4]uint32) int32"
		}
		TEXT(name, NOSPLIT, arguments)
		Doc(name + " finds the error of pixels with the nearest of four colours.")
		pixels, paint := Mem{Base: Load(Param("pixels"), GP64())}, Mem{Base: Load(Param("paint"), GP64())}
		var out, masks Mem
		if sums {
			out, masks = Mem{Base: Load(Param("sums"), GP64())}, Mem{Base: Load(Param("masks"), GP64())}
		}
		loadPixels(pixels)
		least := [2]reg.VecPhysical{y(4), y(5)}
		distance := func(i, k int) reg.VecPhysical { return y(6 + 2*i + k) } // Y6 to Y13
		for i := range 4 {
			VPBROADCASTD(paint.Offset(8*i), reg.Y14)
			VPBROADCASTD(paint.Offset(8*i+4), reg.Y15)
			for k := range 2 {
				to := distance(i, k)
				VPSUBW(reg.Y14, y(2*k), to)
				VPMADDWD(to, to, to)
			}
			for k := range 2 {
				free := [2]reg.VecPhysical{reg.Y14, reg.Y15}[k]
				if k == 0 {
					VPSUBW(reg.Y15, y(1), reg.Y14)
				} else {
					VPSUBW(reg.Y15, y(3), reg.Y15)
				}
				VPMADDWD(free, free, free)
				VPADDD(free, distance(i, k), distance(i, k))
				if i == 0 {
					VMOVDQA(distance(i, k), least[k])
				} else {
					VPMINSD(distance(i, k), least[k], least[k])
				}
			}
		}
		if sums {
			taken := AllocLocal(2 * lane) // pixels that already have a colour
			for i := range 4 {
				VPXOR(reg.Y14, reg.Y14, reg.Y14)
				VPXOR(reg.Y15, reg.Y15, reg.Y15)
				bits := GP32()
				for k := range 2 {
					m := distance(i, k)
					VPCMPEQD(least[k], m, m)
					switch i {
					case 0:
						VMOVDQU(m, taken.Offset(k*lane))
					default:
						VMOVDQU(taken.Offset(k*lane), y(6))
						if i < 3 {
							VPOR(m, y(6), y(7))
							VMOVDQU(y(7), taken.Offset(k*lane))
						}
						VPANDN(m, y(6), m)
					}
					part := GP32()
					VMOVMSKPS(m, part)
					if k == 0 {
						MOVL(part, bits)
					} else {
						SHLL(Imm(8), part)
						ORL(part, bits)
					}
				}
				MOVL(bits, masks.Offset(4*i))
				for k := range 2 {
					m := Op(distance(i, k))
					if i == 0 {
						m = taken.Offset(k * lane) // Y6 is needed
					}
					VPAND(m, y(2*k), y(6))
					VPADDW(y(6), reg.Y14, reg.Y14)
					VPAND(m, y(2*k+1), y(6))
					VPADDW(y(6), reg.Y15, reg.Y15)
				}
				VPUNPCKLDQ(reg.Y15, reg.Y14, y(6))
				VPUNPCKHDQ(reg.Y15, reg.Y14, y(7))
				VPADDW(y(7), y(6), y(6))
				VEXTRACTI128(Imm(1), y(6), reg.X7)
				VPADDW(reg.X7, reg.X6, reg.X6)
				VPSHUFD(Imm(0x4e), reg.X6, reg.X7)
				VPADDW(reg.X7, reg.X6, reg.X6)
				VMOVDQU(reg.X6, out.Offset(16*i))
			}
		}
		VPADDD(y(5), y(4), y(4))
		across(y(4), reg.X4, reg.X5)
		cost := GP32()
		VMOVD(reg.X4, cost)
		VZEROUPPER()
		Store(cost, ReturnIndex(0))
		RET()
	}
}

// eacTables are the modifiers of EAC.
var eacTables = [16][8]int{
	{-3, -6, -9, -15, 2, 5, 8, 14}, {-3, -7, -10, -13, 2, 6, 9, 12}, {-2, -5, -8, -13, 1, 4, 7, 12}, {-2, -4, -6, -13, 1, 3, 5, 12},
	{-3, -6, -8, -12, 2, 5, 7, 11}, {-3, -7, -9, -11, 2, 6, 8, 10}, {-4, -7, -8, -11, 3, 6, 7, 10}, {-3, -5, -8, -11, 2, 4, 7, 10},
	{-2, -6, -8, -10, 1, 5, 7, 9}, {-2, -5, -8, -10, 1, 4, 7, 9}, {-2, -4, -8, -10, 1, 3, 7, 9}, {-2, -5, -7, -10, 1, 4, 6, 9},
	{-3, -4, -7, -10, 2, 3, 6, 9}, {-1, -2, -3, -10, 0, 1, 2, 9}, {-4, -6, -8, -9, 3, 5, 7, 8}, {-3, -5, -7, -9, 2, 4, 6, 8},
}

// levels writes a function that does the same as kind.assign, for several choices.
//
// Paints and pixels are multiplied by eight here, so the lowest three bits of their distance are free for the index.
func levels() {
	table := GLOBL("levelTables", RODATA|NOPTR)
	for t, m := range eacTables {
		for i := range 2 {
			v := uint64(0)
			for k := range 4 {
				v |= uint64(uint16(m[4*i+k])) << (16 * k)
			}
			DATA(16*t+8*i, U64(v))
		}
	}
	pick := GLOBL("levelPick", RODATA|NOPTR)
	var picks, numbers [8]Mem
	for i := range 8 {
		w := (2*i+1)<<8 | 2*i
		picks[i] = words(pick, 2*i*lane, w, w)
		numbers[i] = words(pick, 2*i*lane+lane, i, i)
	}
	twos, ones := words(pick, 16*lane, 0x0202, 0x0202), words(pick, 17*lane, 1, 1)
	next := words(pick, 18*lane, 0x0100, 0x0100)

	TEXT("levelLanes", NOSPLIT, "func(pixels *[16]int16, bounds *[2]int16, choices *int16, n int, results *int32, index *[16]int16)")
	Doc("levelLanes finds the costs of choices for a block of a channel, as kind.assign does. The indices are those of the last choice.")
	pixels, bounds := Mem{Base: Load(Param("pixels"), GP64())}, Mem{Base: Load(Param("bounds"), GP64())}
	choices, n := Load(Param("choices"), GP64()), Load(Param("n"), GP64())
	results, index := Load(Param("results"), GP64()), Mem{Base: Load(Param("index"), GP64())}
	x, x8, low, high, one := reg.Y15, reg.Y14, reg.X13, reg.X12, y(11)
	VMOVDQU(pixels, x)
	VPSLLW(Imm(3), x, x8)
	VPBROADCASTW(bounds, low)
	VPBROADCASTW(bounds.Offset(2), high)
	VMOVDQU(ones, one)
	base := GP64()
	LEAQ(table, base)
	Label("levelChoice")
	c := Mem{Base: choices}
	at := GP64()
	MOVWQZX(c.Offset(4), at)
	SHLQ(Imm(4), at)
	VPBROADCASTW(c.Offset(2), reg.X0)
	VPMULLW(Mem{Base: base, Index: at, Scale: 1}, reg.X0, reg.X0) // the sum of the modifiers
	VPBROADCASTW(c, reg.X1)
	VPADDW(reg.X0, reg.X1, reg.X1)
	VPMAXSW(low, reg.X1, reg.X2)
	VPMINSW(high, reg.X2, reg.X2)
	VPCMPEQW(reg.X2, reg.X1, reg.X1) // which ones are not clamped
	VPSLLW(Imm(3), reg.X2, reg.X2)
	for _, r := range []reg.VecPhysical{reg.Y0, reg.Y1, reg.Y2} {
		VPERMQ(Imm(0x44), r, r)
	}
	least := y(3)
	for i := range 8 {
		to := y(4 + i%2)
		VPSHUFB(picks[i], reg.Y2, to)
		VPSUBW(to, x8, to)
		VPABSW(to, to)
		if i == 0 {
			VMOVDQA(to, least)
			continue
		}
		VPOR(numbers[i], to, to)
		VPMINSW(to, least, least)
	}
	VPAND(numbers[7], least, y(4))
	VPSRLW(Imm(3), least, least)
	VPMADDWD(least, least, least)
	VPMULLW(twos, y(4), y(5))
	VPADDW(next, y(5), y(5))
	VPSHUFB(y(5), reg.Y0, reg.Y0)
	VPSHUFB(y(5), reg.Y1, reg.Y1)
	VPSUBW(reg.Y0, x, reg.Y0)
	VPAND(reg.Y1, reg.Y0, reg.Y0)
	VPMADDWD(one, reg.Y0, reg.Y0)
	VPMADDWD(one, reg.Y1, reg.Y1)
	VPHADDD(reg.Y0, least, least)
	VPHADDD(reg.Y1, reg.Y1, reg.Y1)
	VPHADDD(reg.Y1, least, least)
	VEXTRACTI128(Imm(1), least, reg.X0)
	VPADDD(reg.X0, reg.X3, reg.X3)
	VMOVDQU(reg.X3, Mem{Base: results})
	ADDQ(Imm(16), results)
	ADDQ(Imm(6), choices)
	DECQ(n)
	JNZ(LabelRef("levelChoice"))
	VMOVDQU(y(4), index)
	VZEROUPPER()
	RET()
}
