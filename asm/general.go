package main

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Registers that no register of amd64 is translated to: for the address of a memory operand, and for a value.
const address, value = "R16", "R17"

// general is the name of a general register.
func general(o operand.Op) string { return fmt.Sprintf("R%d", o.(reg.Register).ID().Index()) }

// memory returns a memory operand, whose index it adds first.
func (t *translator) memory(m operand.Mem) string {
	base := ""
	switch m.Base {
	case reg.FramePointer:
		return m.Asm()
	case reg.StackPointer:
		m.Disp += 16 // the saved link register, and what aligns the rest
		base = "RSP"
	case reg.StaticBase:
		for i, s := range t.symbols {
			if s == m.Symbol.String() {
				base = fmt.Sprintf("R%d", 19+i)
			}
		}
	default:
		base = general(m.Base)
	}
	if m.Index != nil {
		t.print("ADD %s, %s, %s", shifted(m), base, address)
		base = address
	}
	if m.Disp == 0 {
		return "(" + base + ")"
	}
	return fmt.Sprintf("%d(%s)", m.Disp, base)
}

// shifted is the index of a memory operand.
func shifted(m operand.Mem) string {
	if m.Scale == 1 {
		return general(m.Index)
	}
	return fmt.Sprintf("%s<<%d", general(m.Index), bits.TrailingZeros8(m.Scale))
}

// source returns a constant or a register with an operand of 8 << size bits.
func (t *translator) source(o operand.Op, size int) string {
	switch o := o.(type) {
	case operand.Mem:
		t.print("%s %s, %s", loads[size], t.memory(o), value)
		return value
	case reg.Register:
		return general(o)
	}
	return o.Asm()
}

// Moves by size, 8 << size bits; loads fill the rest of a register with zeros.
var (
	loads  = [4]string{"MOVBU", "MOVHU", "MOVWU", "MOVD"}
	stores = [4]string{"MOVB", "MOVH", "MOVW", "MOVD"}
	suffix = [4]string{"B", "H", "W", ""}
)

// flags says which instruction set the flags.
type flags int

const (
	byDifference flags = iota + 1 // a comparison or subtraction: carry is borrow on amd64
	byResult                      // carry is not that of amd64
	byShift                       // nor is overflow
	byFloats
)

// setsFlags and readsFlags are about opcodes of amd64.
func setsFlags(opcode string) bool {
	return opcode == "VUCOMISS" || strings.HasPrefix(opcode, "IMUL") || strings.HasPrefix(opcode, "BSF") ||
		strings.HasPrefix(opcode, "POPCNT") || arithmetic[opcode[:len(opcode)-1]]
}

func readsFlags(opcode string) bool {
	return opcode != "JMP" && (opcode[0] == 'J' || strings.HasPrefix(opcode, "SET"))
}

var arithmetic = map[string]bool{"ADD": true, "SUB": true, "AND": true, "OR": true, "XOR": true, "INC": true, "DEC": true,
	"CMP": true, "TEST": true, "SHL": true, "SHR": true, "SAR": true}

// conditions of amd64, without J or SET; which ones depends on what set the flags.
var (
	onZero = map[string]string{"EQ": "EQ", "E": "EQ", "Z": "EQ", "NE": "NE", "NZ": "NE", "S": "MI", "MI": "MI", "NS": "PL", "PL": "PL"}
	signed = map[string]string{"LT": "LT", "L": "LT", "GE": "GE", "LE": "LE", "GT": "GT", "G": "GT"}
	within = map[string]string{"AE": "HS", "CC": "HS", "NC": "HS", "B": "LO", "CS": "LO", "C": "LO", "LO": "LO", "A": "HI", "HI": "HI",
		"BE": "LS", "LS": "LS"}
	// Equal is also true if one is not a number; so it is two conditions, and not equal is two.
	floats = map[string]string{"AE": "GE", "CC": "GE", "A": "GT", "HI": "GT", "B": "LT", "CS": "LT", "BE": "LE", "LS": "LE",
		"EQ": "EQ VS", "E": "EQ VS", "Z": "EQ VS", "NE": "MI GT", "NZ": "MI GT", "P": "VS", "PS": "VS", "NP": "VC", "PC": "VC"}
)

// condition returns the condition of arm64, or two of which one has to be true.
func (t *translator) condition(name string) []string {
	for _, table := range map[flags][]map[string]string{byDifference: {onZero, signed, within}, byResult: {onZero, signed},
		byShift: {onZero}, byFloats: {floats}}[t.flags] {
		if c, ok := table[name]; ok {
			return strings.Fields(c)
		}
	}
	panic("this condition is not known after what set the flags")
}

type translation = func(t *translator, o []operand.Op)

// generals are the instructions without registers of AVX.
var generals = map[string]translation{
	"RET":        func(t *translator, _ []operand.Op) { t.print("RET") },
	"VZEROUPPER": func(*translator, []operand.Op) {},
	"JMP":        func(t *translator, o []operand.Op) { t.print("JMP %s", o[0].Asm()) },
	"MOVQ":       moves(3, "MOVD"), "MOVL": moves(2, "MOVWU"), "MOVW": moves(1, ""), "MOVB": moves(0, ""),
	"MOVWQZX": extends(1, "MOVHU"), "MOVWLZX": extends(1, "MOVHU"), "MOVWQSX": extends(1, "MOVH"),
	"MOVBQZX": extends(0, "MOVBU"), "MOVBLZX": extends(0, "MOVBU"), "MOVBQSX": extends(0, "MOVB"), "MOVLQSX": extends(2, "MOVW"),
	"LEAQ": leaq, "LEAL": leal,
	"BSFQ": firstBit(""), "BSFL": firstBit("W"), "POPCNTL": popcount(2), "POPCNTQ": popcount(3),
	"NOTQ": func(t *translator, o []operand.Op) { t.print("MVN %s, %s", general(o[0]), general(o[0])) },
	"NOTL": func(t *translator, o []operand.Op) { t.print("MVNW %s, %s", general(o[0]), general(o[0])) },
	"IMULQ": func(t *translator, o []operand.Op) {
		t.print("MUL %s, %s, %s", t.source(o[0], 3), general(o[1]), general(o[1]))
	},
	"IMUL3Q": func(t *translator, o []operand.Op) {
		t.print("MOVD %s, %s", o[0].Asm(), value)
		t.print("MUL %s, %s, %s", value, t.source(o[1], 3), general(o[2]))
	},
}

func init() {
	for size := range 4 {
		s := string("BWLQ"[size])
		for name, arm := range map[string]string{"ADD": "ADD", "SUB": "SUB", "AND": "AND", "OR": "ORR", "XOR": "EOR",
			"SHL": "LSL", "SHR": "LSR", "SAR": "ASR"} {
			generals[name+s] = binary(arm, size)
		}
		generals["CMP"+s] = compares("CMP", size)
		generals["TEST"+s] = compares("TST", size)
		generals["INC"+s] = counts("ADD", size)
		generals["DEC"+s] = counts("SUB", size)
	}
	for _, table := range []map[string]string{onZero, signed, within, floats} {
		for name := range table {
			generals["J"+name] = branches(name)
			generals["SET"+name] = sets(name)
		}
	}
}

// moves copies between registers and memory, or a constant to one of these. Parts of registers cannot be written.
func moves(size int, load string) translation {
	return func(t *translator, o []operand.Op) {
		if to, ok := o[1].(operand.Mem); ok {
			from := t.source(o[0], size)
			if strings.HasPrefix(from, "$") {
				t.print("MOVD %s, %s", from, value)
				from = value
			}
			t.print("%s %s, %s", stores[size], from, t.memory(to))
			return
		}
		to := general(o[1])
		switch from := o[0].(type) {
		case operand.Constant:
			t.print("MOVD %s, %s", from.Asm(), to)
			return
		case operand.Mem:
			if load != "" {
				t.print("%s %s, %s", load, t.memory(from), to)
				return
			}
		case reg.Register:
			if load != "" {
				t.print("%s %s, %s", load, general(from), to)
				return
			}
		}
		panic("only a part of the register is written")
	}
}

func extends(size int, load string) translation {
	return func(t *translator, o []operand.Op) {
		from, ok := o[0].(operand.Mem)
		if !ok {
			t.print("%s %s, %s", load, general(o[0]), general(o[1]))
			return
		}
		t.print("%s %s, %s", load, t.memory(from), general(o[1]))
	}
}

// binary changes a register or memory. Of the results that set flags, only differences have a carry that is used.
func binary(name string, size int) translation {
	return func(t *translator, o []operand.Op) {
		from, to, w := t.source(o[0], size), "", suffix[size]
		m, stored := o[1].(operand.Mem)
		switch {
		case stored && from == value:
			panic("both operands are in memory")
		case stored:
			at := t.memory(m)
			t.print("%s %s, %s", loads[size], at, value)
			defer t.print("%s %s, %s", stores[size], value, at)
			to, w = value, suffix[max(size, 2)]
		case size < 2:
			panic("only a part of the register is written")
		default:
			to = general(o[1])
		}
		if t.after&theFlags == 0 {
			t.print("%s%s %s, %s, %s", name, w, from, to, to)
			return
		}
		if size < 2 {
			panic("flags of a part of a register")
		}
		t.flags = byResult
		switch name {
		case "SUB":
			t.flags = byDifference
			t.print("SUBS%s %s, %s, %s", w, from, to, to)
		case "ADD", "AND":
			t.print("%sS%s %s, %s, %s", name, w, from, to, to)
		default:
			if name != "EOR" && name != "ORR" {
				t.flags = byShift
			}
			t.print("%s%s %s, %s, %s", name, w, from, to, to)
			t.print("CMP%s $0, %s", w, to)
		}
	}
}

func counts(name string, size int) translation {
	return func(t *translator, o []operand.Op) {
		binary(name, size)(t, []operand.Op{operand.Imm(1), o[0]})
		t.flags = byResult
	}
}

func compares(name string, size int) translation {
	return func(t *translator, o []operand.Op) {
		if size < 2 {
			panic("flags of a part of a register")
		}
		t.flags = byDifference
		a, b := o[0], o[1]
		if name == "TST" { // its first operand may be a constant
			t.flags = byResult
			a, b = b, a
		}
		first, second := t.source(a, size), t.source(b, size)
		if first == second && first == value {
			panic("both operands are in memory")
		}
		t.print("%s%s %s, %s", name, suffix[size], second, first)
	}
}

func branches(name string) translation {
	return func(t *translator, o []operand.Op) {
		for _, c := range t.condition(name) {
			t.print("B%s %s", c, o[0].Asm())
		}
	}
}

// sets writes a byte and keeps the rest of the register.
func sets(name string) translation {
	return func(t *translator, o []operand.Op) {
		c := t.condition(name)
		if len(c) > 1 {
			panic("two conditions")
		}
		t.print("CSET %s, %s", c[0], value)
		if m, ok := o[0].(operand.Mem); ok {
			t.print("MOVB %s, %s", value, t.memory(m))
			return
		}
		t.print("BFI $0, %s, $8, %s", value, general(o[0]))
	}
}

func leaq(t *translator, o []operand.Op) { t.addressOf(o[0].(operand.Mem), general(o[1])) }

// addressOf puts the address of a memory operand in a register.
func (t *translator) addressOf(m operand.Mem, to string) {
	disp, base, _ := strings.Cut(strings.TrimSuffix(t.memory(m), ")"), "(")
	if disp == "" {
		t.print("MOVD %s, %s", base, to)
		return
	}
	t.print("ADD $%s, %s, %s", disp, base, to)
}

func leal(t *translator, o []operand.Op) {
	m, to := o[0].(operand.Mem), general(o[1])
	from := general(m.Base)
	if m.Index != nil {
		t.print("ADDW %s, %s, %s", shifted(m), from, to)
		from = to
	}
	t.print("ADDW $%d, %s, %s", m.Disp, from, to)
}

func firstBit(w string) translation {
	return func(t *translator, o []operand.Op) {
		t.noFlags()
		t.print("RBIT%s %s, %s", w, general(o[0]), general(o[1]))
		t.print("CLZ%s %s, %s", w, general(o[1]), general(o[1]))
	}
}

func popcount(size int) translation {
	return func(t *translator, o []operand.Op) {
		t.noFlags()
		v := t.temp()
		move := [4]string{2: "FMOVS", 3: "FMOVD"}[size]
		t.print("%s %s, F%d", move, t.source(o[0], size), v)
		t.print("VCNT V%d.B8, V%d.B8", v, v)
		t.print("VUADDLV V%d.B8, V%d", v, v)
		t.print("FMOVS F%d, %s", v, general(o[1]))
	}
}

// noFlags is for instructions whose flags are not those of amd64.
func (t *translator) noFlags() {
	if t.after&theFlags != 0 {
		panic("its flags are read")
	}
}
