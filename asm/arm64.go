package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	_ "unsafe" // for the name of avo's context

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/reg"
)

// context is what the functions of avo's package build add to.
//
//go:linkname context github.com/mmcloughlin/avo/build.ctx
var context *build.Context

// compiled returns what was built, with registers allocated.
func compiled() (*ir.File, error) {
	f, err := context.Result()
	if err != nil {
		return nil, err
	}
	return f, pass.Concat(pass.Compile, pass.FunctionPass(pass.LabelTarget), pass.FunctionPass(pass.CFG)).Execute(f)
}

// A translator prints functions for AVX2 as functions for arm64, instruction by instruction, with the same results to the bit (except
// which NaN an operation on a NaN returns).
//
// The lower half of Yn is V(2n), the upper half V(2n+1). General registers keep their numbers. What an instruction needs besides is in
// registers of NEON that hold nothing at that point (parts has what does), and in R16 and above. If all hold something, one is saved on
// the stack meanwhile.
//
// Constants stay in such registers until they are needed, or until the next label.
type translator struct {
	data map[string][]byte // of globals
	out  *strings.Builder

	// Of a function:
	name    string
	symbols []string // whose addresses are in R19 and above
	locals  int      // bytes of the stack frame
	slots   int      // for saved registers
	flags   flags    // what the flags are of
	kept    []kept

	// Of an instruction:
	in    *ir.Instruction
	next  []*ir.Instruction // those after it
	after parts             // what is read later
	busy  []V               // operands and temporaries
	saved []V
}

// kept is a register that still holds what key says, computed of register of.
type kept struct {
	key string
	reg V
	of  V
}

// arm64 prints a file. It skips functions with registers of AVX-512.
func arm64(f *ir.File) ([]byte, error) {
	t := &translator{data: map[string][]byte{}}
	var b bytes.Buffer
	b.WriteString("\n\n#include \"textflag.h\"\n")
	for _, s := range f.Sections {
		if g, ok := s.(*ir.Global); ok {
			t.data[g.Symbol.String()] = contents(g)
		}
	}
	var errs []error
	for _, s := range f.Sections {
		switch s := s.(type) {
		case *ir.Global:
			b.WriteString("\n")
			for _, d := range s.Data {
				fmt.Fprintf(&b, "DATA %s/%d, %s\n", operand.NewDataAddr(s.Symbol, d.Offset).Asm(), d.Value.Bytes(), d.Value.Asm())
			}
			fmt.Fprintf(&b, "GLOBL %s(SB), %s, $%d\n", s.Symbol, s.Attributes.Asm(), s.Size)
		case *ir.Function:
			if wider(s) {
				continue
			}
			body, unknown := t.function(s)
			errs = append(errs, unknown...)
			size := 0
			if s.LocalSize > 0 || t.slots > 0 {
				size = 8 + t.locals + 16*t.slots
			}
			fmt.Fprintf(&b, "\n// %s\nTEXT ·%s(SB), %s, $%d-%d\n%s", s.Stub(), s.Name, s.Attributes.Asm(), size, s.ArgumentBytes(), body)
		}
	}
	return b.Bytes(), errors.Join(errs...)
}

// contents are the bytes of a global that are integers.
func contents(g *ir.Global) []byte {
	b := make([]byte, g.Size)
	for _, d := range g.Data {
		var v uint64
		if _, err := fmt.Sscanf(d.Value.Asm(), "$%v", &v); err != nil {
			panic(err)
		}
		for i := range d.Value.Bytes() {
			b[d.Offset+i] = byte(v >> (8 * i))
		}
	}
	return b
}

// wider reports whether a function has registers of AVX-512.
func wider(f *ir.Function) bool {
	for _, in := range f.Instructions() {
		for _, r := range in.Registers() {
			if r.Kind() == reg.KindOpmask || r.Kind() == reg.KindVector && (r.Size() > lane || r.ID().Index() > 15) {
				return true
			}
		}
	}
	return false
}

// function returns the text of a function, and what is not known.
func (t *translator) function(f *ir.Function) (text string, unknown []error) {
	*t = translator{data: t.data, out: new(strings.Builder), name: f.Name, locals: (f.LocalSize + 15) &^ 15}
	for _, in := range f.Instructions() {
		for _, o := range in.Operands {
			if m, ok := o.(operand.Mem); ok && m.Symbol.Static && !slices.Contains(t.symbols, m.Symbol.String()) {
				t.symbols = append(t.symbols, m.Symbol.String())
			}
		}
	}
	if len(t.symbols) > 7 {
		return "", []error{fmt.Errorf("%s: %d tables; R19 to R25 are for seven", f.Name, len(t.symbols))}
	}
	for i, s := range t.symbols {
		t.print("MOVD $%s(SB), R%d", s, 19+i)
	}
	live, all := liveness(f), f.Instructions()
	for _, n := range f.Nodes {
		switch n := n.(type) {
		case ir.Label:
			t.kept, t.flags = nil, 0
			fmt.Fprintf(t.out, "\n%s:\n", n)
		case *ir.Instruction:
			all = all[1:]
			t.next = all
			if err := t.instruction(n, live[n]); err != nil {
				unknown = append(unknown, err)
			}
		}
	}
	return t.out.String(), unknown
}

func (t *translator) instruction(in *ir.Instruction, after parts) (err error) {
	defer func() {
		if r := recover(); r != nil {
			operands := make([]string, len(in.Operands))
			for i, o := range in.Operands {
				operands[i] = o.Asm()
			}
			err = fmt.Errorf("%s: %s %s: %v", t.name, in.Opcode, strings.Join(operands, ", "), r)
		}
	}()
	t.in, t.after, t.busy, t.saved = in, after, nil, nil
	for _, o := range in.Operands {
		if v, ok := vectorOf(o); ok {
			t.busy = append(t.busy, v.half(0), v.half(1))
		}
	}
	if o, ok := vectors[in.Opcode]; ok {
		o.do(t, in.Operands)
		if d, ok := t.destination(); ok && !d.wide && after&d.part(upper) != 0 {
			t.fill(d.half(1), 0)
		}
	} else if do, ok := generals[in.Opcode]; ok {
		do(t, in.Operands)
	} else {
		panic("this instruction is not known")
	}
	for i, v := range t.saved {
		t.wrote(v)
		t.print("FMOVQ %d(RSP), F%d", 16+t.locals+16*i, v)
	}
	return nil
}

func (t *translator) print(format string, args ...any) { fmt.Fprintf(t.out, "\t"+format+"\n", args...) }

// wrote is called before a register is written.
func (t *translator) wrote(v V) {
	t.kept = slices.DeleteFunc(t.kept, func(k kept) bool { return k.reg == v || k.of == v })
}

// temp returns a register that nobody else uses during an instruction: one that keeps nothing and is written soon, if there is one.
func (t *translator) temp() V { return t.free(func(distance int) int { return -distance }) }

// free returns the best of the registers that hold nothing, by the distance in instructions to the next one that writes it.
func (t *translator) free(rank func(distance int) int) V {
	best, most := V(-1), 0
	for v := V(0); v < 32; v++ {
		if !t.holdsNothing(v) {
			continue
		}
		r := rank(t.distance(v))
		if slices.ContainsFunc(t.kept, func(k kept) bool { return k.reg == v }) {
			r -= 1000
		}
		if best < 0 || r > most {
			best, most = v, r
		}
	}
	if best < 0 {
		for best = 31; slices.Contains(t.busy, best); best-- {
		}
		t.print("FMOVQ F%d, %d(RSP)", best, 16+t.locals+16*len(t.saved))
		t.saved = append(t.saved, best)
		t.slots = max(t.slots, len(t.saved))
	}
	t.wrote(best)
	t.busy = append(t.busy, best)
	return best
}

// full reports whether no register is free to keep what key names.
func (t *translator) full(key string) bool {
	for v := range V(32) {
		if t.holdsNothing(v) || slices.ContainsFunc(t.kept, func(k kept) bool { return k.reg == v && k.key == key }) {
			return false
		}
	}
	return true
}

// holdsNothing reports whether a register is free.
func (t *translator) holdsNothing(v V) bool {
	return t.after&vec{n: int(v / 2)}.part([2]parts{low | middle, upper}[v%2]) == 0 && !slices.Contains(t.busy, v)
}

// distance returns after how many instructions a register is written, or 100.
func (t *translator) distance(v V) int {
	for i, in := range t.next[:min(len(t.next), 100)] {
		if d, ok := destination(in); ok && d.n == int(v/2) {
			return i
		}
	}
	return 100
}

// keep returns a register that holds what fill puts there; key names it, and of is the register that it depends on, or -1.
func (t *translator) keep(key string, of V, fill func(v V)) V {
	for _, k := range t.kept {
		if k.key == key && k.of == of {
			t.busy = append(t.busy, k.reg)
			return k.reg
		}
	}
	v := t.free(func(distance int) int { return distance })
	fill(v)
	if !slices.Contains(t.saved, v) {
		t.kept = append(t.kept, kept{key, v, of})
	}
	return v
}

// vec is a register of AVX: X or, if wide, Y.
type vec struct {
	n    int
	wide bool
}

func vectorOf(o operand.Op) (vec, bool) {
	r, ok := o.(reg.Register)
	if !ok || r.Kind() != reg.KindVector {
		return vec{}, false
	}
	return vec{int(r.ID().Index()), r.Size() == lane}, true
}

func (v vec) half(i int) V { return V(2*v.n + i) }

// parts are those of all registers: three bits for each, and one for the flags.
type parts uint64

const (
	low    parts = 1 << iota // 32 bits
	middle                   // 96 bits
	upper                    // 128 bits

	theFlags parts = 1 << 48
)

func (v vec) part(p parts) parts { return p << (3 * v.n) }

// all are the parts that a register has by its name.
func (v vec) all() parts {
	if v.wide {
		return v.part(low | middle | upper)
	}
	return v.part(low | middle)
}

// destination is the register of AVX that an instruction writes. All of it is written, the upper half of an X with zeros.
func destination(in *ir.Instruction) (vec, bool) {
	if len(in.Operands) == 0 || in.Opcode == "VUCOMISS" {
		return vec{}, false
	}
	return vectorOf(in.Operands[len(in.Operands)-1])
}

func (t *translator) destination() (vec, bool) { return destination(t.in) }

// need reports whether half i of the destination is read later.
func (t *translator) need(d vec, i int) bool {
	return t.after&d.part([2]parts{low | middle, upper}[i]) != 0
}

// before returns what is needed before an instruction of what is needed after it.
func before(in *ir.Instruction, after parts) parts {
	d, writes := destination(in)
	wanted := low | middle | upper
	if writes {
		wanted &= after >> (3 * d.n)
		after &^= d.part(low | middle | upper)
	}
	switch {
	case setsFlags(in.Opcode):
		after &^= theFlags
	case readsFlags(in.Opcode):
		after |= theFlags
	case in.Opcode == "VZEROUPPER":
		for n := range 16 {
			after &^= vec{n: n}.part(upper)
		}
	}
	reads := halves
	if o, ok := vectors[in.Opcode]; ok && o.reads != nil {
		reads = o.reads
	}
	for i, o := range in.Operands {
		v, ok := vectorOf(o)
		if !ok || writes && i == len(in.Operands)-1 {
			continue
		}
		after |= v.part(reads(in, i, wanted)) & v.all()
	}
	return after
}

// halves is what most instructions read: each half of the result depends on the same halves.
func halves(in *ir.Instruction, _ int, wanted parts) parts {
	if wanted&(low|middle) != 0 {
		wanted |= low | middle
	}
	return wanted
}

// liveness returns what is read after each instruction.
func liveness(f *ir.Function) map[*ir.Instruction]parts {
	all := f.Instructions()
	in, out := map[*ir.Instruction]parts{}, map[*ir.Instruction]parts{}
	for changed := true; changed; {
		changed = false
		for _, i := range slices.Backward(all) {
			var after parts
			for _, s := range i.Succ {
				if s != nil {
					after |= in[s]
				}
			}
			was := in[i]
			out[i], in[i] = after, before(i, after)
			changed = changed || in[i] != was
		}
	}
	return out
}
