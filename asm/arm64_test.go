package main

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/printer"
	"github.com/mmcloughlin/avo/reg"
)

// TestInstructions runs each instruction that the functions have, with its constants and with operands that coincide as theirs do, here
// and as arm64 under qemu: on random and extreme values the results are the same. Each runs with all other registers
// in use, which have to keep their values, and with the others free, where a part of the result is used. Then random programs of them run,
// of which only some registers are used at the end.
func TestInstructions(t *testing.T) {
	qemu, err := exec.LookPath("qemu-aarch64")
	if err != nil {
		t.Skip("there is no qemu-aarch64")
	}
	if cpu, _ := os.ReadFile("/proc/cpuinfo"); !bytes.Contains(cpu, []byte(" avx2 ")) {
		t.Skip("this processor has no AVX2")
	}
	forms := instructions(t)
	if len(forms) < 150 {
		t.Fatalf("only %d instructions", len(forms))
	}
	dir := t.TempDir()
	var calls, declared strings.Builder
	context = build.NewContext()
	for k, text := range slices.Sorted(maps.Keys(forms)) {
		for _, v := range variants {
			function := fmt.Sprintf("f%d%s", k, v)
			trial(function, forms[text], v)
			fmt.Fprintf(&declared, "func %s(in, out *byte)\n", function)
			fmt.Fprintf(&calls, "\t{%q, %s},\n", text+" "+v, function)
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	for k := range 500 {
		function := fmt.Sprintf("program%d", k)
		program(r, function, forms)
		fmt.Fprintf(&declared, "func %s(in, out *byte)\n", function)
		fmt.Fprintf(&calls, "\t{%q, %s},\n", function, function)
	}
	file, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	intel, err := printer.NewGoAsm(printer.Config{Pkg: "main"}).Print(file)
	if err != nil {
		t.Fatal(err)
	}
	arm, err := arm64(file)
	if err != nil {
		t.Fatal(err)
	}
	main, err := os.ReadFile("testdata/trial.go")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"go.mod": []byte("module trial\n\ngo 1.26\n"), "main.go": bytes.TrimPrefix(main, []byte("//go:build ignore\n")),
		"f.go":      []byte("package main\n\n" + declared.String() + "\nvar functions = []function{\n" + calls.String() + "}\n"),
		"f_amd64.s": intel, "f_arm64.s": append([]byte("// Generated."), arm...)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, got := results(t, dir, "amd64"), results(t, dir, "arm64", qemu)
	if len(want) != len(got) {
		t.Fatalf("%d lines, want %d", len(got), len(want))
	}
	for i, line := range got {
		if line != want[i] {
			t.Errorf("got  %s\nwant %s", line, want[i])
		}
	}
	t.Logf("%d instructions, %d results", len(forms), len(want))
}

// results compiles the functions for an architecture, and returns what they print.
func results(t *testing.T, dir, arch string, command ...string) []string {
	exe := filepath.Join(dir, arch)
	cmd := exec.Command("go", "build", "-o", exe, ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOARCH="+arch, "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	command = append(command, exe)
	cmd = exec.Command(command[0], command[1:]...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return strings.Split(out.String(), "\n")
}

// instructions returns those of all functions, each once: with the registers 0, 1 and so on in the order of its operands.
func instructions(t *testing.T) map[string][]*ir.Instruction {
	all := map[string][]*ir.Instruction{}
	for _, name := range slices.Sorted(maps.Keys(generators)) {
		context = build.NewContext()
		generators[name]()
		f, err := compiled()
		if err != nil {
			t.Fatal(err)
		}
		for _, function := range f.Functions() {
			if wider(function) {
				continue
			}
			list := function.Instructions()
			for i, in := range list {
				if in.IsBranch || in.IsTerminal || readsFlags(in.Opcode) || in.Opcode == "VZEROUPPER" {
					continue
				}
				if m, ok := in.Operands[0].(operand.Mem); ok && m.Base == reg.StaticBase && in.Opcode == "LEAQ" {
					continue // an address is not the same on both
				}
				form := []*ir.Instruction{in}
				if setsFlags(in.Opcode) && i+1 < len(list) && readsFlags(list[i+1].Opcode) {
					form = append(form, list[i+1]) // the condition is tried, too
				}
				form, text := renamed(form)
				all[text] = form
			}
		}
	}
	return all
}

// variants are what of the result is used.
var variants = []string{"all", "result", "low", "high"}

// Registers of trials: pointers, and those that operands get.
var (
	in, out, place = reg.R14, reg.R15, reg.R13
	free           = []reg.GPPhysical{reg.RCX, reg.RDX, reg.RBX, reg.RSI, reg.RDI}
)

// renamed returns instructions with other registers, and with memory operands at one place, and their text.
func renamed(list []*ir.Instruction) (form []*ir.Instruction, text string) {
	var vectors, generals []reg.ID
	number := func(ids *[]reg.ID, id reg.ID) int {
		if !slices.Contains(*ids, id) {
			*ids = append(*ids, id)
		}
		return slices.Index(*ids, id)
	}
	register := func(r reg.Register) reg.Register {
		if r.Kind() == reg.KindVector {
			v := y(number(&vectors, r.ID()))
			if r.Size() == 16 {
				return v.AsX()
			}
			return v
		}
		g := free[number(&generals, r.ID())]
		return map[uint]reg.Register{1: g.As8(), 2: g.As16(), 4: g.As32(), 8: g.As64()}[r.Size()]
	}
	for _, in := range list {
		c := *in
		c.Operands = slices.Clone(in.Operands)
		for i, o := range c.Operands {
			switch o := o.(type) {
			case reg.Register:
				c.Operands[i] = register(o)
			case operand.Mem:
				if !strings.HasPrefix(in.Opcode, "LEA") {
					o = operand.Mem{Base: place}
				} else {
					o.Base = register(o.Base)
					if o.Index != nil {
						o.Index = register(o.Index)
					}
				}
				c.Operands[i] = o
			case operand.LabelRef:
				c.Operands[i] = operand.LabelRef("there")
			}
		}
		c.Inputs, c.Outputs, c.Pred, c.Succ, c.CancellingInputs = nil, nil, nil, nil, false // all registers are allocated
		form = append(form, &c)
		asm := make([]string, len(c.Operands))
		for i, o := range c.Operands {
			asm[i] = o.Asm()
		}
		text += c.Opcode + " " + strings.Join(asm, ", ") + " "
	}
	return form, strings.TrimSpace(text)
}

// registers are all of AVX2.
var registers = []reg.VecPhysical{y(0), y(1), y(2), y(3), y(4), y(5), y(6), y(7), y(8), y(9), y(10), y(11), y(12), y(13), reg.Y14, reg.Y15}

func at(base reg.Register, disp int) operand.Mem { return operand.Mem{Base: base, Disp: disp} }

// begin starts a function that loads registers of AVX2, as many as are asked for, and general ones.
func begin(name string, count int) *build.Context {
	c := context
	c.Function(name)
	c.Attributes(attr.NOSPLIT)
	c.SignatureExpr("func(in, out *byte)")
	c.Load(c.Param("in"), in)
	c.Load(c.Param("out"), out)
	c.LEAQ(at(in, 640), place)
	for i, v := range registers[:count] {
		c.VMOVDQU(at(in, i*lane), v)
	}
	for i, g := range free {
		c.MOVQ(at(in, 512+8*i), g)
	}
	return c
}

// program writes a function of random instructions on random registers, without those that may return another NaN, that need flags, or
// that write memory.
func program(r *rand.Rand, name string, forms map[string][]*ir.Instruction) {
	c := begin(name, len(registers))
	few := 2 + r.IntN(len(registers)-1)
	texts := slices.Sorted(maps.Keys(forms))
	for n := 10 + r.IntN(60); n > 0; {
		form := forms[texts[r.IntN(len(texts))]]
		in := *form[0]
		_, writes := destination(&in)
		if _, known := vectors[in.Opcode]; !known || !writes && in.Opcode != "VMOVD" || len(form) > 1 || in.Opcode == "VUCOMISS" ||
			slices.Contains([]string{"VADD", "VSUB", "VMUL", "VDIV", "VSQR"}, in.Opcode[:4]) {
			continue
		}
		if _, ok := in.Operands[len(in.Operands)-1].(operand.Mem); ok {
			continue
		}
		in.Operands = slices.Clone(in.Operands)
		for i, o := range in.Operands {
			if v, ok := vectorOf(o); ok {
				to := registers[r.IntN(few)]
				if in.Operands[i] = to; !v.wide {
					in.Operands[i] = to.AsX()
				}
			}
		}
		c.Instruction(&in)
		n--
	}
	for i, v := range registers[:1+r.IntN(few)] {
		c.VMOVDQU(v, at(out, i*lane))
	}
	for i, g := range free {
		c.MOVQ(g, at(out, 512+8*i))
	}
	c.RET()
}

// trial writes a function that loads registers, executes a form, and stores what the variant uses.
func trial(name string, form []*ir.Instruction, variant string) {
	count := 4
	if variant == "all" {
		count = len(registers)
	}
	c := begin(name, count)
	if _, ok := form[0].Operands[len(form[0].Operands)-1].(operand.Mem); ok {
		c.LEAQ(at(out, 640), place)
	}
	taken := reg.R12
	c.MOVL(operand.U32(1), taken.As32())
	if strings.HasPrefix(form[0].Opcode, "BSF") { // not defined for 0
		c.MOVQ(operand.U32(1<<31), reg.R11)
		c.ORQ(reg.R11, form[0].Operands[0].(reg.GPPhysical).As64())
	}
	for _, in := range form {
		c.Instruction(in)
	}
	if last := form[len(form)-1]; last.IsBranch {
		c.MOVL(operand.U32(2), taken.As32())
		c.Label("there")
	}
	for i, g := range append(free, taken) {
		c.MOVQ(g, at(out, 512+8*i))
	}
	d, ok := destination(form[0])
	switch {
	case variant == "all":
		for i, v := range registers {
			c.VMOVDQU(v, at(out, i*lane))
		}
	case !ok:
	case variant == "low":
		c.VMOVD(registers[d.n].AsX(), at(out, 0))
	case variant == "high" && d.wide:
		c.VEXTRACTI128(operand.Imm(1), registers[d.n], at(out, 0))
	case d.wide:
		c.VMOVDQU(registers[d.n], at(out, 0))
	default:
		c.VMOVDQU(registers[d.n].AsX(), at(out, 0))
	}
	c.RET()
}
