package wasm

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/processor"
)

// Sections of a module that are read (WebAssembly core specification 2.0, 5.5).
const (
	sectionCustom   = 0
	sectionType     = 1
	sectionImport   = 2
	sectionFunction = 3
	sectionTable    = 4
	sectionGlobal   = 6
	sectionExport   = 7
	sectionElement  = 9
	sectionCode     = 10
	sectionData     = 11
)

// maxTable is how many elements a module's tables may have: each needs 8 bytes in the host, and Go's guests have 3,000.
const maxTable = 1 << 20

// maxLocals is how many locals a function may have, as in browsers: a module of ten bytes can request 2^32, at 8 bytes
// each.
const maxLocals = 50_000

// globalExport is the prefix of the names under which mutable globals are exported, so that they can be
// restored.
const globalExport = "kiln:global:"

// prepared is a module that may be compiled.
type prepared struct {
	code    []byte   // exports its mutable globals
	globals []string // the names of these exports
}

// prepare refuses what a guest must not have, names it, and exports all mutable globals. The compiler checks whether
// the module is valid; but the engine allocates as many elements as a list claims, so all lists are read here first, to
// check their lengths.
func prepare(code []byte) (p prepared, err error) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case *processor.Problem:
			err = e
		default:
			panic(e)
		}
	}()
	r := &reader{b: code}
	if string(r.take(8)) != "\x00asm\x01\x00\x00\x00" {
		r.refuse(diag.WasmModule, "compile it for wasm32; `wasm = { go = \"folder\" }` compiles a Go package", "it is not a WebAssembly module")
	}
	exports := -1 // start of the section of exports in p.code
	var section []byte
	var mutable []uint32
	p.code = append(p.code, code[:8]...)
	for len(r.b) > 0 {
		id := r.byte()
		body := r.take(int(r.u32()))
		s := &reader{b: body}
		switch id {
		case sectionCustom:
			if body = s.names(); body == nil {
				continue
			}
		case sectionType:
			s.types()
		case sectionFunction:
			s.each(func() { s.u32() })
		case sectionElement:
			s.each(s.element)
		case sectionData:
			s.each(s.data)
		case sectionImport:
			s.imports()
		case sectionTable:
			s.tables()
		case sectionGlobal:
			mutable = s.globals()
		case sectionCode:
			body = s.functions()
		case sectionExport:
			s.each(func() { s.name(); s.byte(); s.u32() })
			exports, section = len(p.code), body
			continue
		}
		p.code = append(p.code, id)
		p.code = binary.AppendUvarint(p.code, uint64(len(body)))
		p.code = append(p.code, body...)
	}
	if exports < 0 {
		r.refuse(diag.WasmModule, buildHint, "it exports nothing")
	}
	s := &reader{b: section}
	body := binary.AppendUvarint(nil, uint64(s.u32())+uint64(len(mutable)))
	body = append(body, s.b...)
	for _, g := range mutable {
		name := fmt.Sprint(globalExport, g)
		p.globals = append(p.globals, name)
		body = append(binary.AppendUvarint(body, uint64(len(name))), name...)
		body = binary.AppendUvarint(append(body, 3), uint64(g)) // 3 is a global
	}
	head := binary.AppendUvarint([]byte{sectionExport}, uint64(len(body)))
	p.code = slices.Insert(p.code, exports, append(head, body...)...)
	return p, nil
}

const buildHint = "a Go guest is built with GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared, a C guest with clang --target=wasm32 -nostdlib -Wl,--no-entry"

// reader reads a module; it panics with a *processor.Problem if the module is incomplete or
// refused.
type reader struct{ b []byte }

func (r *reader) refuse(code diag.Code, hint, format string, args ...any) {
	panic(&processor.Problem{Code: string(code), Text: fmt.Sprintf(format, args...), Hint: hint})
}

func (r *reader) damaged() {
	r.refuse(diag.WasmModule, "build it again", "the module is damaged or cut short")
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.damaged()
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) byte() byte { return r.take(1)[0] }

// leb skips a signed or unsigned number with at most n bits.
func (r *reader) leb(n int) {
	for i := 0; i < (n+6)/7; i++ {
		if r.byte() < 0x80 {
			return
		}
	}
	r.damaged()
}

func (r *reader) u32() uint32 {
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		c := r.byte()
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			if v > 1<<32-1 {
				break
			}
			return uint32(v)
		}
	}
	r.damaged()
	return 0
}

func (r *reader) name() string { return string(r.take(int(r.u32()))) }

func (r *reader) imports() {
	for n := r.u32(); n > 0; n-- {
		module, name, kind := r.name(), r.name(), r.byte()
		if kind == 0 && hostHas(module, name) {
			r.u32()
			continue
		}
		what := "a function"
		if kind > 0 {
			what = [...]string{"a table", "a memory", "a global", "a tag"}[min(kind, 4)-1]
		}
		hint := "a processor has the functions of docs/formats/wasm-abi.md and of WASI preview 1, and makes its own memory"
		if module == "env" {
			hint = "\"env\" is where clang puts functions that nothing defines: is it a misspelt name, or one of a library that is not there?"
		}
		r.refuse(diag.WasmImport, hint, "it imports %s %q of %q, which a processor cannot have", what, name, module)
	}
}

// each reads a list, which begins with its length.
func (r *reader) each(one func()) {
	for n := r.u32(); n > 0; n-- {
		one()
	}
}

// bytes skips a list of bytes.
func (r *reader) bytes() { r.take(int(r.u32())) }

// names is a custom section with the names of functions, for messages about crashes; nil if it is another section, or
// has none.
func (r *reader) names() (section []byte) {
	if r.name() != "name" {
		return nil
	}
	for len(r.b) > 0 {
		id, names := r.byte(), r.take(int(r.u32()))
		if id != 1 { // of functions
			continue
		}
		s := &reader{b: names}
		s.each(func() { s.u32(); s.name() })
		section = binary.AppendUvarint([]byte("\x04name\x01"), uint64(len(names)))
		section = append(section, names...)
	}
	return section
}

func (r *reader) types() {
	r.each(func() {
		r.byte()
		r.bytes() // of parameters
		r.bytes() // of results
	})
}

// element skips a segment of a table (5.5.12).
func (r *reader) element() {
	flags := r.u32()
	if flags > 7 {
		r.damaged()
	}
	if flags&1 == 0 {
		if flags&2 != 0 {
			r.u32() // the table
		}
		r.expression()
	}
	if flags&3 != 0 {
		r.byte() // what is in it
	}
	if flags&4 != 0 {
		r.each(r.expression)
	} else {
		r.each(func() { r.u32() })
	}
}

// data skips a segment of memory (5.5.14).
func (r *reader) data() {
	flags := r.u32()
	if flags == 2 {
		r.u32() // the memory
	}
	if flags != 1 {
		r.expression()
	}
	r.bytes()
}

func (r *reader) limits() (least uint32) {
	flags := r.byte()
	least = r.u32()
	if flags&1 != 0 {
		r.u32()
	}
	return least
}

func (r *reader) tables() {
	total := uint64(0)
	for n := r.u32(); n > 0; n-- {
		r.byte() // type of its elements
		if total += uint64(r.limits()); total > maxTable {
			r.refuse(diag.WasmModule, "", "its tables have more than %d elements", maxTable)
		}
	}
}

// globals returns the indexes of the mutable ones. There are no imported ones before them.
func (r *reader) globals() (mutable []uint32) {
	for i, n := uint32(0), r.u32(); i < n; i++ {
		typ, mut := r.byte(), r.byte()
		if mut == 1 {
			if typ < 0x7c { // i32, i64, f32 and f64 are 0x7f to 0x7c
				r.refuse(diag.WasmModule, "compile it without the features that need it", "global %d can be changed and is not a number", i)
			}
			mutable = append(mutable, i)
		}
		r.expression()
	}
	return mutable
}

// functions is the section of code with an empty loop at the beginning of each function that calls in two places or
// more. The engine checks the timeout only at the beginning of a loop: 64 functions that each call the next one twice
// would run forever. A function that calls in one place and has no loop does so once, and the stack limits that.
func (r *reader) functions() []byte {
	n := r.u32()
	out := binary.AppendUvarint(make([]byte, 0, len(r.b)*17/16), uint64(n))
	for ; n > 0; n-- {
		all := r.take(int(r.u32()))
		body := &reader{b: all}
		locals := uint64(0)
		body.each(func() {
			locals += uint64(body.u32())
			body.byte()
		})
		if locals > maxLocals {
			r.refuse(diag.WasmModule, "keep large things in memory", "a function has %d locals; it may have %d", locals, maxLocals)
		}
		instructions, calls := body.b, 0
		for len(body.b) > 0 {
			if op := body.instruction(); op == 0x10 || op == 0x11 { // call, call_indirect
				calls++
			}
		}
		var look []byte
		if calls > 1 {
			look = []byte{0x03, 0x40, 0x0b} // loop, end
		}
		out = binary.AppendUvarint(out, uint64(len(all)+len(look)))
		out = append(append(append(out, all[:len(all)-len(instructions)]...), look...), instructions...)
	}
	return out
}

// expression skips one that ends with the first `end`: it has no blocks.
func (r *reader) expression() {
	for r.instruction() != 0x0b {
	}
}

// instruction skips one, and refuses it if it changes anything but memory and globals (core specification 2.0, 5.4).
func (r *reader) instruction() byte {
	op := r.byte()
	switch {
	case op >= 0x45 && op <= 0xc4, strings.IndexByte("\x00\x01\x05\x0b\x0f\x1a\x1b\xd1", op) >= 0:
	case op >= 0x02 && op <= 0x04: // block, loop, if
		r.leb(33)
	case op == 0x0c, op == 0x0d, op == 0x10, op >= 0x20 && op <= 0x26, op == 0xd2: // br, br_if, call, of locals, globals and tables, ref.func
		r.u32()
	case op == 0x0e: // br_table
		for n := r.u32(); n > 0; n-- {
			r.u32()
		}
		r.u32()
	case op == 0x11: // call_indirect
		r.u32()
		r.u32()
	case op == 0x1c: // select with types
		r.take(int(r.u32()))
	case op >= 0x28 && op <= 0x3e: // loads and stores
		r.u32()
		r.u32()
	case op == 0x3f, op == 0x40, op == 0xd0: // memory.size, memory.grow, ref.null
		r.byte()
	case op == 0x41:
		r.leb(32)
	case op == 0x42:
		r.leb(64)
	case op == 0x43:
		r.take(4)
	case op == 0x44:
		r.take(8)
	case op == 0xfc:
		r.bulk()
	case op == 0xfd:
		r.vector()
	default:
		r.unknown(uint32(op))
	}
	if op == 0x26 {
		r.stateful("table.set")
	}
	return op
}

func (r *reader) unknown(op uint32) {
	r.refuse(diag.WasmModule, "compile it without features beyond WebAssembly 2.0 (threads, exceptions, tail calls)", "it has an instruction that is not known (%#x)", op)
}

func (r *reader) stateful(name string) {
	r.refuse(diag.WasmModule, "compile it without reference types and passive segments", "it uses %s: what a processor changes in tables and segments cannot be put back for its next job", name)
}

// bulk skips the rest of an instruction after 0xfc.
func (r *reader) bulk() {
	switch op := r.u32(); op {
	case 0, 1, 2, 3, 4, 5, 6, 7: // saturating conversions
	case 8, 10: // memory.init, memory.copy
		r.u32()
		r.u32()
	case 11, 16: // memory.fill, table.size
		r.u32()
	case 9, 12, 13, 14, 15, 17:
		r.stateful(map[uint32]string{9: "data.drop", 12: "table.init", 13: "elem.drop", 14: "table.copy", 15: "table.grow", 17: "table.fill"}[op])
	default:
		r.unknown(0xfc00 | op)
	}
}

// vector skips the rest of an instruction after 0xfd.
func (r *reader) vector() {
	switch op := r.u32(); {
	case op <= 11, op == 92, op == 93: // loads and stores
		r.u32()
		r.u32()
	case op == 12, op == 13: // v128.const, shuffle
		r.take(16)
	case op >= 21 && op <= 34: // lanes
		r.byte()
	case op >= 84 && op <= 91: // loads and stores of lanes
		r.u32()
		r.u32()
		r.byte()
	case op <= 255:
	default:
		r.unknown(0xfd00 | op)
	}
}
