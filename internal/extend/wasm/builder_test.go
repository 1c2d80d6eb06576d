package wasm

import (
	"encoding/binary"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kiln-pipeline/kiln/processor"
)

var update = flag.Bool("update", false, "write the goldens")

// builder makes small modules of bytes (core specification, 5.5). Functions are numbered: the imports, kiln_info, kiln_process, more.
type builder struct {
	about    string
	imports  []string // of kiln_v1; "module.name" of another
	types    map[string][2]string
	info     []byte // instructions
	process  []byte
	more     [][]byte // further functions, without parameters and results
	data     string   // at 4096
	pages    uint32
	maxPages uint32 // 0: none
	globals  []byte // of the section, with its count
	tables   []byte
	elements []byte
	custom   []byte // sections that follow the types, as they are
	exports  []export
	start    bool // the first of more is run when an instance is made
	locals   byte // of kiln_process, i32
}

type export struct {
	name  string
	kind  byte
	index uint32
}

const aboutX = `{"abi":1,"name":"x","version":1,"extensions":[".x"],"products":[{"type":"x","extension":".y"}],"settings":[{"name":"a","type":"string","default":"b"}]}`

// guest is a module that does nothing wrong and nothing else. Text at 4096 is "a.x" and zeroes.
func guest(imports ...string) *builder {
	b := &builder{
		about: aboutX, imports: append([]string{"describe"}, imports...), process: []byte{0x41, 0}, data: "a.x\x00", pages: 1,
		types: map[string][2]string{}, locals: 2,
	}
	n := uint32(len(b.imports))
	b.exports = []export{{"memory", 2, 0}, {"kiln_info", 0, n}, {"kiln_process", 0, n + 1}}
	return b
}

func leb(v uint32) []byte { return binary.AppendUvarint(nil, uint64(v)) }

// i32 and i64 are constants.
func i32(v int32) []byte { return append([]byte{0x41}, sleb(int64(v))...) }
func i64(v int64) []byte { return append([]byte{0x42}, sleb(v)...) }

func sleb(v int64) (out []byte) {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(out, c)
		}
		out = append(out, c|0x80)
	}
}

func named(s string) []byte { return append(leb(uint32(len(s))), s...) }

func section(id byte, body []byte) []byte {
	return append(append([]byte{id}, leb(uint32(len(body)))...), body...)
}

// call is a call of an import with constant arguments: int is i32, int64 is i64.
func (b *builder) call(name string, args ...any) []byte {
	var out []byte
	for _, a := range args {
		switch a := a.(type) {
		case int:
			out = append(out, i32(int32(uint32(a)))...)
		case int64:
			out = append(out, i64(a)...)
		case []byte: // an expression
			out = append(out, a...)
		}
	}
	i := slices.Index(b.imports, name)
	if i < 0 {
		panic(name)
	}
	return append(append(out, 0x10), leb(uint32(i))...)
}

func funcType(params, results string) []byte {
	out := append([]byte{0x60}, leb(uint32(len(params)))...)
	out = append(out, values(params)...)
	return append(append(out, leb(uint32(len(results)))...), values(results)...)
}

func (b *builder) module() []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	functions := hostFunctions()
	var types, imports, funcs, codes []byte
	count := uint32(0)
	typed := func(params, results string) []byte {
		types = append(types, funcType(params, results)...)
		count++
		return leb(count - 1)
	}
	for _, name := range b.imports {
		module, f := hostModule, functions[name]
		if w, ok := wasiFunctions()[name]; ok {
			module, f = wasiModule, w
		}
		if t, ok := b.types[name]; ok {
			f.params, f.results = t[0], t[1]
		}
		if m, ok := b.types["module "+name]; ok {
			module = m[0]
		}
		imports = append(append(append(imports, named(module)...), named(name)...), 0)
		imports = append(imports, typed(f.params, f.results)...)
	}
	function := func(t [2]string, locals byte, body []byte) {
		funcs = append(funcs, typed(t[0], t[1])...)
		code := append([]byte{1, locals, 0x7f}, body...)
		code = append(code, 0x0b)
		codes = append(append(codes, leb(uint32(len(code)))...), code...)
	}
	info := b.info
	if info == nil {
		info = b.call("describe", 16, len(b.about))
	}
	infoType, processType := b.types["kiln_info"], [2]string{"", "i"}
	if t, ok := b.types["kiln_process"]; ok {
		processType = t
	}
	function(infoType, 2, info)
	function(processType, b.locals, b.process)
	for _, f := range b.more {
		function([2]string{}, 2, f)
	}
	n := leb(uint32(2 + len(b.more)))
	out = append(out, section(1, append(leb(count), types...))...)
	out = append(out, b.custom...)
	out = append(out, section(2, append(leb(uint32(len(b.imports))), imports...))...)
	out = append(out, section(3, append(slices.Clone(n), funcs...))...)
	if b.tables != nil {
		out = append(out, section(4, b.tables)...)
	}
	limits := append([]byte{1, 0}, leb(b.pages)...)
	if b.maxPages > 0 {
		limits = append(append([]byte{1, 1}, leb(b.pages)...), leb(b.maxPages)...)
	}
	out = append(out, section(5, limits)...)
	if b.globals != nil {
		out = append(out, section(6, b.globals)...)
	}
	exports := leb(uint32(len(b.exports)))
	for _, e := range b.exports {
		exports = append(append(append(exports, named(e.name)...), e.kind), leb(e.index)...)
	}
	out = append(out, section(7, exports)...)
	if b.start {
		out = append(out, section(8, leb(uint32(len(b.imports)+2)))...)
	}
	if b.elements != nil {
		out = append(out, section(9, b.elements)...)
	}
	out = append(out, section(10, append(slices.Clone(n), codes...))...)
	data := []byte{2}
	for _, d := range []struct {
		at   int32
		text string
	}{{16, b.about}, {4096, b.data}} {
		data = append(append(append(append(data, 0), i32(d.at)...), 0x0b), named(d.text)...)
	}
	return append(out, section(11, data)...)
}

// config puts a module where Load finds it.
func (b *builder) config(t testing.TB, c Config) Config { return configOf(t, b.module(), c) }

func configOf(t testing.TB, code []byte, c Config) Config {
	t.Helper()
	c.Dir, c.Path = t.TempDir(), "m.wasm"
	if c.Memory == 0 {
		c.Memory = 16 << 20
	}
	if err := os.WriteFile(filepath.Join(c.Dir, c.Path), code, 0o666); err != nil {
		t.Fatal(err)
	}
	return c
}

func loadModule(t testing.TB, b *builder, c Config) processor.Processor {
	t.Helper()
	return load(t, b.config(t, c))
}
