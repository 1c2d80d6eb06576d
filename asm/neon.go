package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
)

// A vector is an instruction of AVX: how to translate it, and what parts of operand i it reads if parts of its result are wanted; nil is
// halves.
type vector struct {
	do    translation
	reads func(in *ir.Instruction, i int, wanted parts) parts
}

// A step prints what an instruction does to half a register: d may be a or b. As in manuals of Intel, a is the first source.
type step func(t *translator, d, a, b V)

// vectors are the instructions of AVX by their names. Sizes are 0 for bytes, 1 for words, 2 for double words and floats, 3 for quad words.
var vectors = map[string]vector{
	"VMOVDQU": {do: moveAll}, "VMOVDQA": {do: moveAll}, "VMOVUPS": {do: moveAll}, "VMOVAPS": {do: moveAll},
	"VMOVD": {do: moveLow("FMOVS"), reads: lowest}, "VMOVSS": {do: moveLow("FMOVS"), reads: lowest}, "VMOVQ": {do: moveLow("FMOVD")},
	"VPEXTRD":      {do: extractLane},
	"VEXTRACTI128": {extractHalf, readsHalf}, "VEXTRACTF128": {extractHalf, readsHalf},
	"VINSERTI128": {insertHalf, readsInsert}, "VINSERTF128": {insertHalf, readsInsert},
	"VBROADCASTI128": {do: broadcastHalf}, "VBROADCASTF128": {do: broadcastHalf},
	"VBROADCASTSS": {broadcastLane(2), broadcasts}, "VPBROADCASTD": {broadcastLane(2), broadcasts},
	"VPBROADCASTW": {broadcastLane(1), broadcasts}, "VPBROADCASTB": {broadcastLane(0), broadcasts},
	"VPBROADCASTQ": {broadcastLane(3), everything},

	"VPADDB": two("ADD", 0), "VPADDW": two("ADD", 1), "VPADDD": two("ADD", 2), "VPADDQ": two("ADD", 3),
	"VPSUBB": two("SUB", 0), "VPSUBW": two("SUB", 1), "VPSUBD": two("SUB", 2), "VPSUBQ": two("SUB", 3),
	"VPADDSB": two("SQADD", 0), "VPADDSW": two("SQADD", 1), "VPADDUSB": two("UQADD", 0), "VPADDUSW": two("UQADD", 1),
	"VPSUBSB": two("SQSUB", 0), "VPSUBSW": two("SQSUB", 1), "VPSUBUSB": two("UQSUB", 0), "VPSUBUSW": two("UQSUB", 1),
	"VPMULLW": two("MUL", 1), "VPMULLD": two("MUL", 2), "VPAVGB": two("URHADD", 0), "VPAVGW": two("URHADD", 1),
	"VPMAXSB": two("SMAX", 0), "VPMAXSW": two("SMAX", 1), "VPMAXSD": two("SMAX", 2),
	"VPMAXUB": two("UMAX", 0), "VPMAXUW": two("UMAX", 1), "VPMAXUD": two("UMAX", 2),
	"VPMINSB": two("SMIN", 0), "VPMINSW": two("SMIN", 1), "VPMINSD": two("SMIN", 2),
	"VPMINUB": two("UMIN", 0), "VPMINUW": two("UMIN", 1), "VPMINUD": two("UMIN", 2),
	"VPAND": two("AND", 0), "VPOR": two("ORR", 0), "VPXOR": two("EOR", 0),
	"VANDPS": two("AND", 0), "VORPS": two("ORR", 0), "VXORPS": two("EOR", 0),
	"VPCMPEQB": two("CMEQ", 0), "VPCMPEQW": two("CMEQ", 1), "VPCMPEQD": two("CMEQ", 2), "VPCMPEQQ": two("CMEQ", 3),
	"VPCMPGTB": two("CMGT", 0), "VPCMPGTW": two("CMGT", 1), "VPCMPGTD": two("CMGT", 2), "VPCMPGTQ": two("CMGT", 3),
	"VADDPS": two("FADD", 2), "VSUBPS": two("FSUB", 2), "VMULPS": two("FMUL", 2), "VDIVPS": two("FDIV", 2),
	"VPHADDW": two("ADDP", 1), "VPHADDD": two("ADDP", 2), "VHADDPS": two("FADDP", 2),
	"VPUNPCKLBW": two("ZIP1", 0), "VPUNPCKLWD": two("ZIP1", 1), "VPUNPCKLDQ": two("ZIP1", 2), "VPUNPCKLQDQ": two("ZIP1", 3),
	"VPUNPCKHBW": two("ZIP2", 0), "VPUNPCKHWD": two("ZIP2", 1), "VPUNPCKHDQ": two("ZIP2", 2), "VPUNPCKHQDQ": two("ZIP2", 3),
	"VUNPCKLPS": two("ZIP1", 2), "VUNPCKHPS": two("ZIP2", 2),
	"VPABSB": oneOperand("ABS", 0), "VPABSW": oneOperand("ABS", 1), "VPABSD": oneOperand("ABS", 2),
	"VCVTDQ2PS": oneOperand("SCVTF", 2), "VSQRTPS": oneOperand("FSQRT", 2),

	"VPANDN":   byHalves(func(t *translator, d, a, b V) { t.op("BIC", 0, d, b, a) }),
	"VANDNPS":  byHalves(func(t *translator, d, a, b V) { t.op("BIC", 0, d, b, a) }),
	"VMAXPS":   byHalves(extreme(func(t *translator, d, a, b V) { t.op("FCMGT", 2, d, a, b) })),
	"VMINPS":   byHalves(extreme(func(t *translator, d, a, b V) { t.op("FCMGT", 2, d, b, a) })),
	"VPMADDWD": byHalves(products("SMULL", "ADDP", 2)),
	"VPMULHUW": byHalves(products("UMULL", "UZP2", 1)),
	"VPMULHW":  byHalves(products("SMULL", "UZP2", 1)),
	"VPMULDQ":  byHalves(lowProducts("SMULL")), "VPMULUDQ": byHalves(lowProducts("UMULL")),
	"VPMADDUBSW": byHalves(sumProducts), "VPSADBW": byHalves(differences),
	"VPACKSSDW": byHalves(pack("SQXTN", 1)), "VPACKUSDW": byHalves(pack("SQXTUN", 1)),
	"VPACKSSWB": byHalves(pack("SQXTN", 0)), "VPACKUSWB": byHalves(pack("SQXTUN", 0)),
	"VPSIGNB": byHalves(bySign(0)), "VPSIGNW": byHalves(bySign(1)), "VPSIGND": byHalves(bySign(2)),
	"VPSLLVD": byHalves(shiftLanes("USHL", false)), "VPSRLVD": byHalves(shiftLanes("USHL", true)),
	"VPSRAVD": byHalves(shiftLanes("SSHL", true)),
	"VPSLLW":  shiftAll("SHL", 1), "VPSLLD": shiftAll("SHL", 2), "VPSLLQ": shiftAll("SHL", 3),
	"VPSRLW": shiftAll("USHR", 1), "VPSRLD": shiftAll("USHR", 2), "VPSRLQ": shiftAll("USHR", 3),
	"VPSRAW": shiftAll("SSHR", 1), "VPSRAD": shiftAll("SSHR", 2),
	"VCVTTPS2DQ": {do: toIntegers}, "VCVTTSS2SIQ": {toInteger, lowest},
	"VCMPPS": {do: compareFloats}, "VBLENDVPS": {do: choose(2)}, "VPBLENDVB": {do: choose(0)},
	"VADDSS": scalar("FADDS"), "VSUBSS": scalar("FSUBS"), "VMULSS": scalar("FMULS"), "VDIVSS": scalar("FDIVS"), "VSQRTSS": scalar("FSQRTS"),
	"VUCOMISS":  {compareLowest, lowest},
	"VPMOVSXBW": widen("SSHLL", 0, 1), "VPMOVSXWD": widen("SSHLL", 1, 1), "VPMOVSXDQ": widen("SSHLL", 2, 1), "VPMOVSXBD": widen("SSHLL", 0, 2),
	"VPMOVZXBW": widen("USHLL", 0, 1), "VPMOVZXWD": widen("USHLL", 1, 1), "VPMOVZXDQ": widen("USHLL", 2, 1), "VPMOVZXBD": widen("USHLL", 0, 2),
	"VPMOVMSKB": {byteSigns, everything}, "VMOVMSKPS": {floatSigns, everything},
}

func lowest(_ *ir.Instruction, _ int, wanted parts) parts { return low }

func everything(_ *ir.Instruction, _ int, wanted parts) parts {
	if wanted == 0 {
		return 0
	}
	return low | middle | upper
}

// load puts the halves of a memory operand in registers; there is only one if not wide.
func (t *translator) load(m operand.Mem, to []V) {
	for _, v := range to {
		t.wrote(v)
	}
	if len(to) == 1 {
		t.print("FMOVQ %s, F%d", t.memory(m), to[0])
		return
	}
	t.print("FLDPQ %s, (F%d, F%d)", t.memory(m), to[0], to[1])
}

// pair returns the halves of an operand. What is in memory is loaded: into the destination, unless another operand is there.
func (t *translator) pair(o operand.Op, d vec, wide bool) [2]V {
	if v, ok := vectorOf(o); ok {
		return [2]V{v.half(0), v.half(1)}
	}
	free := true
	for _, other := range t.in.Operands[:len(t.in.Operands)-1] {
		v, ok := vectorOf(other)
		free = free && !(ok && v.n == d.n)
	}
	to := [2]V{d.half(0), d.half(1)}
	if !free {
		to[0] = t.temp()
		if wide {
			to[1] = t.temp()
		}
	}
	switch m := o.(operand.Mem); {
	case !wide || !t.need(d, 1):
		t.load(m, to[:1])
	default:
		t.load(m, to[:])
	}
	return to
}

// eachHalf calls f for the halves of the destination that are needed.
func (t *translator) eachHalf(f func(i int)) {
	d, _ := t.destination()
	for i := range 2 {
		if t.need(d, i) && (i == 0 || d.wide) {
			f(i)
		}
	}
}

// equal reports whether the two sources of an instruction are the same register.
func equal(o []operand.Op) bool {
	a, ok := vectorOf(o[0])
	b, _ := vectorOf(o[1])
	return ok && a == b
}

// two is an instruction that NEON has. A register combined with itself may be a constant.
func two(name string, size int) vector {
	v := byHalves(func(t *translator, d, a, b V) {
		t.op(name, size, d, a, b)
		if name == "CMEQ" || name == "CMGT" {
			t.isMask(size, d)
		}
	})
	value := map[string]int{"EOR": 0, "CMEQ": 255}
	fill, constant := value[name]
	if !constant {
		return v
	}
	return vector{
		do: func(t *translator, o []operand.Op) {
			if !equal(o) {
				v.do(t, o)
				return
			}
			d, _ := t.destination()
			t.eachHalf(func(i int) { t.fill(d.half(i), fill) })
		},
		reads: func(in *ir.Instruction, i int, wanted parts) parts {
			if equal(in.Operands) {
				return 0
			}
			return halves(in, i, wanted)
		},
	}
}

func oneOperand(name string, size int) vector {
	return vector{do: func(t *translator, o []operand.Op) {
		d, _ := vectorOf(o[1])
		from := t.pair(o[0], d, d.wide)
		t.eachHalf(func(i int) { t.op(name, size, d.half(i), from[i]) })
	}}
}

func byHalves(do step) vector {
	return vector{do: func(t *translator, o []operand.Op) {
		d, _ := vectorOf(o[2])
		b, a := t.pair(o[0], d, d.wide), t.pair(o[1], d, d.wide)
		t.eachHalf(func(i int) { do(t, d.half(i), a[i], b[i]) })
	}}
}

// into calls f with d, or with a temporary that is then moved to d if d is among what f still reads after it has written.
func (t *translator) into(d V, f func(to V), read ...V) {
	to := d
	for _, v := range read {
		if v == d {
			to = t.temp()
			break
		}
	}
	f(to)
	t.move(d, to)
}

// extreme returns a where a comparison is true, else b: also where one is not a number, and where both are zeros.
func extreme(compare step) step {
	return func(t *translator, d, a, b V) {
		if d != a && d != b {
			compare(t, d, a, b)
			t.op("BSL", 0, d, a, b)
			return
		}
		m := t.temp()
		compare(t, m, a, b)
		if d == a {
			t.op("BIF", 0, d, b, m)
		} else {
			t.op("BIT", 0, d, a, m)
		}
	}
}

// products multiplies words to double words, and combines the lower four and the upper four.
func products(multiply, combine string, size int) step {
	return func(t *translator, d, a, b V) {
		v := t.temp()
		t.op(multiply+"2", 1, v, a, b)
		t.op(multiply, 1, d, a, b)
		t.op(combine, size, d, d, v)
	}
}

// lowProducts multiplies the lower halves of quad words.
func lowProducts(multiply string) step {
	return func(t *translator, d, a, b V) {
		u, v := t.temp(), t.temp()
		t.op("XTN", 2, u, a)
		t.op("XTN", 2, v, b)
		t.op(multiply, 2, d, u, v)
	}
}

// sumProducts multiplies bytes without a sign by bytes with one; pairs are added with saturation.
func sumProducts(t *translator, d, a, b V) {
	u, v, w := t.temp(), t.temp(), t.temp()
	t.shift("USHLL2", 0, u, a, 0)
	t.shift("SSHLL2", 0, v, b, 0)
	t.op("MUL", 1, u, u, v)
	t.shift("USHLL", 0, v, a, 0)
	t.shift("SSHLL", 0, w, b, 0)
	t.op("MUL", 1, v, v, w)
	t.op("UZP1", 1, w, v, u)
	t.op("UZP2", 1, v, v, u)
	t.op("SQADD", 1, d, w, v)
}

func differences(t *translator, d, a, b V) {
	t.op("UABD", 0, d, a, b)
	for size := range 3 {
		t.op("UADDLP", size, d, d)
	}
}

func pack(name string, size int) step {
	return func(t *translator, d, a, b V) {
		if a == b {
			t.op(name, size, d, a)
			t.spread(3, d, d, 0)
			return
		}
		t.into(d, func(to V) {
			t.op(name, size, to, a)
			t.op(name+"2", size, to, b)
		}, b)
	}
}

// bySign multiplies a by 1, 0 or -1, of which b has the sign.
func bySign(size int) step {
	return func(t *translator, d, a, b V) {
		v := t.temp()
		less := t.keep("-1", -1, func(v V) { t.fill(v, 255) })
		t.op("SMIN", size, v, b, t.keep(fmt.Sprint("1 of size ", size), -1, func(v V) { t.op("NEG", size, v, less) }))
		t.op("SMAX", size, v, v, less)
		t.op("MUL", size, d, a, v)
	}
}

// shiftLanes shifts by lanes of b, of which NEON uses the lowest byte, with a sign: to the left.
func shiftLanes(name string, right bool) step {
	return func(t *translator, d, a, b V) {
		most := t.keep("32", -1, func(v V) { t.fillLanes(v, 32, 0) })
		v := t.temp()
		t.op("UMIN", 2, v, b, most)
		if right {
			t.op("NEG", 2, v, v)
		}
		t.op(name, 2, d, a, v)
	}
}

// shiftAll shifts by a constant, or by the lowest quad word of a register.
func shiftAll(name string, size int) vector {
	return vector{
		do: func(t *translator, o []operand.Op) {
			d, _ := vectorOf(o[2])
			from := t.pair(o[1], d, d.wide)
			if c, ok := o[0].(operand.Constant); ok {
				t.eachHalf(func(i int) { t.shift(name, size, d.half(i), from[i], number(c)) })
				return
			}
			count, ok := vectorOf(o[0])
			if !ok {
				panic("a count in memory")
			}
			by := t.temp() // the count is made a word, then limited to 64
			t.op("UQXTN", 2, by, count.half(0))
			t.op("UQXTN", 1, by, by)
			t.op("UMIN", 1, by, by, t.keep("64 words", -1, func(v V) {
				t.fill(v, 64)
				t.shift("USHLL", 0, v, v, 0)
			}))
			t.spread(0, by, by, 0)
			if name != "SHL" {
				t.op("NEG", 0, by, by)
			}
			shift := map[string]string{"SHL": "USHL", "USHR": "USHL", "SSHR": "SSHL"}[name]
			t.eachHalf(func(i int) { t.op(shift, size, d.half(i), from[i], by) })
		},
		reads: func(in *ir.Instruction, i int, wanted parts) parts {
			if i == 0 {
				return everything(in, i, wanted)
			}
			return halves(in, i, wanted)
		},
	}
}

// number is the value of a constant.
func number(o operand.Op) (n int) {
	if _, err := fmt.Sscanf(o.Asm(), "$%v", &n); err != nil {
		panic(err)
	}
	return n
}

// toIntegers returns 1<<31 for what is out of range or not a number.
func toIntegers(t *translator, o []operand.Op) {
	d, _ := vectorOf(o[1])
	from := t.pair(o[0], d, d.wide)
	beyond := t.keep("2^31", -1, func(v V) { t.fillLanes(v, 0x4f, 24) })
	smallest := t.keep("1<<31", -1, func(v V) { t.fillLanes(v, 0x80, 24) })
	t.eachHalf(func(i int) {
		inside := t.temp()
		t.op("FCMGT", 2, inside, beyond, from[i])
		t.op("FCVTZS", 2, d.half(i), from[i])
		t.op("BIF", 0, d.half(i), smallest, inside)
	})
}

func toInteger(t *translator, o []operand.Op) {
	t.noFlags()
	from, _ := vectorOf(o[0])
	beyond := t.temp()
	t.print("MOVD $0x5f000000, %s", value) // 2^63
	t.print("FMOVS %s, F%d", value, beyond)
	t.print("FCMPS F%d, F%d", beyond, from.half(0))
	t.print("FCVTZSS F%d, %s", from.half(0), general(o[1]))
	t.print("MOVD $-0x8000000000000000, %s", value)
	t.print("CSEL MI, %s, %s, %s", general(o[1]), value, general(o[1]))
}

// compareFloats has as comparison: the instruction, whether the operands are exchanged, and whether it is true where that is false.
func compareFloats(t *translator, o []operand.Op) {
	c, ok := map[int]struct {
		name     string
		back, no bool
	}{0: {"FCMEQ", false, false}, 1: {"FCMGT", true, false}, 2: {"FCMGE", true, false}, 4: {"FCMEQ", false, true}, 5: {"FCMGT", true, true},
		6: {"FCMGE", true, true}, 9: {"FCMGE", false, true}, 10: {"FCMGT", false, true}, 13: {"FCMGE", false, false},
		14: {"FCMGT", false, false}}[number(o[0])&15]
	if !ok {
		panic("this comparison is not known")
	}
	byHalves(func(t *translator, d, a, b V) {
		if c.back {
			a, b = b, a
		}
		t.op(c.name, 2, d, a, b)
		if c.no {
			t.op("NOT", 0, d, d)
		}
		t.isMask(2, d)
	}).do(t, o[1:])
}

// choose takes lanes of b where a mask has its highest bit, else of a.
func choose(size int) translation {
	return func(t *translator, o []operand.Op) {
		d, _ := vectorOf(o[3])
		m, _ := vectorOf(o[0])
		b, a := t.pair(o[1], d, d.wide), t.pair(o[2], d, d.wide)
		t.eachHalf(func(i int) {
			d, a, b, mask := d.half(i), a[i], b[i], t.mask(size, m.half(i))
			switch {
			case d == a && d != mask:
				t.op("BIT", 0, d, b, mask)
			case d == b && d != mask:
				t.op("BIF", 0, d, a, mask)
			default:
				t.into(d, func(to V) {
					t.move(to, mask)
					t.op("BSL", 0, to, b, a)
				}, a, b)
			}
		})
	}
}

// isMask keeps that all bits of each lane of a register are equal.
func (t *translator) isMask(size int, v V) {
	for ; size >= 0; size-- {
		t.kept = append(t.kept, kept{fmt.Sprint("is mask", size), v, -1})
	}
}

// mask returns a register that has the highest bits of lanes in all bits.
func (t *translator) mask(size int, v V) V {
	for _, k := range t.kept {
		if k.reg == v && k.key == fmt.Sprint("is mask", size) {
			return v
		}
	}
	return t.keep(fmt.Sprint("mask", size), v, func(m V) { t.op("CMLT", size, m, v) })
}

// scalar changes the lowest lane of a, whose other lanes the result has, too.
func scalar(name string) vector {
	return vector{
		do: func(t *translator, o []operand.Op) {
			d, _ := vectorOf(o[2])
			a, _ := vectorOf(o[1])
			b := V(0)
			if m, ok := o[0].(operand.Mem); ok {
				b = t.temp()
				t.print("FMOVS %s, F%d", t.memory(m), b)
			} else {
				v, _ := vectorOf(o[0])
				b = v.half(0)
			}
			if !t.need(d, 0) {
				return
			}
			rest := t.after&d.part(middle) != 0
			to := d.half(0)
			if rest {
				to = t.temp()
			}
			t.wrote(to)
			if name == "FSQRTS" {
				t.print("%s F%d, F%d", name, b, to)
			} else {
				t.print("%s F%d, F%d, F%d", name, b, a.half(0), to)
			}
			if rest {
				t.move(d.half(0), a.half(0))
				t.insert(2, d.half(0), 0, to, 0)
			}
		},
		reads: func(in *ir.Instruction, i int, wanted parts) parts {
			if i == 1 {
				return wanted & (low | middle)
			}
			return wanted & low
		},
	}
}

func compareLowest(t *translator, o []operand.Op) {
	b, ok := vectorOf(o[0])
	a, _ := vectorOf(o[1])
	if !ok {
		panic("an operand is in memory")
	}
	t.flags = byFloats
	t.print("FCMPS F%d, F%d", b.half(0), a.half(0))
}

// moveAll copies between registers and memory.
func moveAll(t *translator, o []operand.Op) {
	d, ok := vectorOf(o[1])
	if !ok {
		from, _ := vectorOf(o[0])
		if at := t.memory(o[1].(operand.Mem)); from.wide {
			t.print("FSTPQ (F%d, F%d), %s", from.half(0), from.half(1), at)
		} else {
			t.print("FMOVQ F%d, %s", from.half(0), at)
		}
		return
	}
	if !t.need(d, 0) && !t.need(d, 1) {
		return
	}
	from := t.pair(o[0], d, d.wide)
	t.eachHalf(func(i int) { t.move(d.half(i), from[i]) })
}

// moveLow copies 32 or 64 bits; the rest of a register is then 0.
func moveLow(name string) translation {
	return func(t *translator, o []operand.Op) {
		place := func(o operand.Op) string {
			if m, ok := o.(operand.Mem); ok {
				return t.memory(m)
			}
			if v, ok := vectorOf(o); ok {
				return fmt.Sprintf("F%d", v.half(0))
			}
			return general(o)
		}
		if d, ok := vectorOf(o[1]); ok {
			t.wrote(d.half(0))
		}
		t.print("%s %s, %s", name, place(o[0]), place(o[1]))
	}
}

func extractLane(t *translator, o []operand.Op) {
	from, _ := vectorOf(o[1])
	t.print("VMOV V%d.S[%d], %s", from.half(0), number(o[0])&3, general(o[2]))
}
