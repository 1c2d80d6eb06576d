package wasm

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

// hostile is a module that loads, and whose job must fail by itself.
type hostile struct {
	name string
	b    *builder
	code diag.Code
	text string // in the message
}

// pointers are what a guest with one page of memory must not pass as a text: where, and how long.
var pointers = [][2]int{{65536, 1}, {65535, 2}, {0, 65537}, {1 << 31, 1}, {-1, 1}, {-1, -1}, {4096, -1}, {4096, 1 << 31}, {-65536, 65537}}

// badPointers gives each pointer parameter of each host function each bad pointer, and all else what is good.
func badPointers() (all []hostile) {
	good := map[string][]any{
		"open": {4096, 3}, "exists": {4096, 3}, "glob": {4096, 3}, "setting": {4200, 0}, "products": {4200, 0},
		"assets": {4096, 3}, "listed": {4096, 3}, "try_products": {4096, 3, 4096, 0, 4096, 0},
		"open_product": {4096, 3, 4200, 0}, "reference": {4096, 3, 4200, 0, 1}, "resource_id": {4096, 3}, "create": {4096, 3, 4096, 3, 4096, 3, 4200, 0},
		"run":           {4096, 2, 4200, 0},
		"request_named": {4096, 3, 4096, 3, 4200, 0, 4096, 3, 4200, 0, 1},
		"request":       {4096, 3, 4200, 0, 4096, 3, 4200, 0, 1}, "adopt": {4096, 3, 4096, 3, 4096, 3, 4096, 3, 4096, 3},
		"warn": {4096, 3, 4096, 3, 4096, 3, 1, 1, 1}, "fail": {4096, 3, 4096, 3, 4096, 3, 1, 1, 1, 0},
	}
	texts := map[string]int{
		"open": 1, "exists": 1, "glob": 1, "setting": 1, "products": 1, "open_product": 2, "run": 2, "assets": 1, "listed": 1, "try_products": 3,
		"request": 3, "request_named": 4, "reference": 2, "resource_id": 1, "create": 4, "warn": 3, "fail": 3,
	}
	for _, name := range []string{"open", "exists", "glob", "setting", "products", "open_product", "request", "request_named",
		"run", "assets", "listed", "try_products",
		"reference", "resource_id", "create", "warn", "fail"} {
		for i := range texts[name] {
			for _, p := range pointers {
				b := guest(name)
				args := slices.Clone(good[name])
				args[2*i], args[2*i+1] = p[0], p[1]
				b.process = append(b.call(name, args...), drop(name)...)
				all = append(all, hostile{fmt.Sprintf("%s text %d at %d of %d", name, i, p[0], p[1]), b, diag.WasmAbuse, name + " got"})
			}
		}
	}
	return all
}

// drop is what makes a function's result go away, and kiln_process end well.
func drop(name string) []byte {
	if hostFunctions()[name].results == "" {
		return []byte{0x41, 0}
	}
	return []byte{0x1a, 0x41, 0}
}

// badHandles gives functions handles that are none, are closed, or are of another kind.
func badHandles() (all []hostile) {
	add := func(name, text string, b *builder, body ...[]byte) {
		b.process = append(slices.Concat(body...), 0x1a, 0x41, 0)
		all = append(all, hostile{name, b, diag.WasmAbuse, text})
	}
	for _, h := range []int{0, 1, 7, -1, 1 << 31} {
		for _, c := range []struct {
			name string
			rest []any
		}{{"size", nil}, {"read", []any{int64(0), 4096, 3}}, {"write", []any{4096, 3}}, {"close", nil}} {
			b := guest(c.name)
			add(fmt.Sprintf("%s of handle %d", c.name, h), "which was never given", b, b.call(c.name, append([]any{h}, c.rest...)...))
		}
	}
	b := guest("open", "close", "read")
	opened := b.call("open", 4096, 3)
	add("read after close", "handle 1, which is closed", b, opened, []byte{0x21, 0, 0x20, 0}, b.call("close"), []byte{0x1a}, b.call("read", []byte{0x20, 0}, int64(0), 4096, 3))
	b = guest("open", "close")
	add("close twice", "handle 1, which is closed", b, b.call("open", 4096, 3), []byte{0x21, 0, 0x20, 0}, b.call("close"), []byte{0x1a, 0x20, 0}, b.call("close"))
	b = guest("create", "close", "write")
	create := b.call("create", 4096, 3, 4096, 3, 4200, 0, 4200, 0)
	add("write after close", "handle 1, which is closed", b, create, []byte{0x21, 0, 0x20, 0}, b.call("close"), []byte{0x1a}, b.call("write", []byte{0x20, 0}, 4096, 3))
	b = guest("create", "read")
	add("read of a product", "product that is being written", b, b.call("create", 4096, 3, 4096, 3, 4200, 0, 4200, 0), []byte{0x1a}, b.call("read", 1, int64(0), 4096, 3))
	b = guest("create", "size")
	add("size of a product", "product that is being written", b, b.call("create", 4096, 3, 4096, 3, 4200, 0, 4200, 0), []byte{0x1a}, b.call("size", 1))
	b = guest("open", "write")
	add("write to a file", "which is not a product", b, b.call("open", 4096, 3), []byte{0x1a}, b.call("write", 1, 4096, 3))
	b = guest("create")
	add("product left open", "did not close the product", b, b.call("create", 4096, 3, 4096, 3, 4200, 0, 4200, 0))
	b = guest("settings", "fail")
	add("a cause that is no error", "that error did not give", b, b.call("settings"), []byte{0x1a}, b.call("fail", 4096, 3, 4096, 3, 4096, 3, 1, 1, 1, 1), []byte{0x41, 0})
	b = guest("error")
	add("an error without one", "nothing went wrong", b, b.call("error"))
	return all
}

// badValues are calls with good pointers.
func badValues() (all []hostile) {
	add := func(name string, code diag.Code, text string, b *builder, body ...[]byte) {
		b.process = slices.Concat(body...)
		all = append(all, hostile{name, b, code, text})
	}
	end := []byte{0x1a, 0x41, 0}
	for _, v := range []int{4, -1, 1 << 31} {
		b := guest("asset")
		add(fmt.Sprint("asset ", v), diag.WasmAbuse, "which stands for nothing", b, b.call("asset", v), end)
	}
	text := func(name, data, want string, call string, args ...any) {
		b := guest(call)
		b.data = data
		add(name, diag.WasmAbuse, want, b, b.call(call, args...), drop(call))
	}
	text("text that is not UTF-8", "\xff\xfe", "not UTF-8", "open", 4096, 2)
	text("a list that is not UTF-8", "\xff\x00", "not UTF-8", "products", 4096, 2)
	text("a list without an end", "abc", "no zero byte at its end", "products", 4096, 3)
	text("a setting that is none", "abc", "not a setting", "setting", 4096, 3)
	text("a product that was not told of", "abc", "did not return", "open_product", 4096, 1, 4096, 2)
	text("a request about what there is not", "abc", "no request is about", "request", 4096, 3, 4200, 0, 4200, 0, 4200, 0, 4)
	text("a request about a product that was not told of", "abc", "did not return", "request", 4096, 3, 4200, 0, 4096, 3, 4200, 0, 2)
	text("a request with settings that are none", "[1]", "not a JSON object", "request", 4096, 3, 4096, 3, 4200, 0, 4200, 0, 0)
	for data, want := range map[string]string{
		`{"args":["x"],"stdin":1}`:                        "1 bytes of files or standard input, of which 0 follow",
		`{"args":["x"],"files":[{"path":"a","size":-1}]}`: "of which 0 follow", `{"args":["x"],"arg":1}`: "unknown field",
		`{"args":1}`: "cannot unmarshal", `{} {}`: "more follows", `{"timeout":-1}`: "at most a day", `[]`: "cannot unmarshal",
	} {
		text("a command "+data, data, want, "run", 4096, len(data), 4200, 0)
	}
	text("a command with too much", "{}", "1 bytes more", "run", 4096, 2, 4096, 1)
	text("adopting a product that was not told of", "abc", "did not return", "adopt", 4096, 3, 4200, 0, 4200, 0, 4200, 0, 4200, 0)
	text("references of two texts", "a\x00b\x00", "each has three", "create", 4200, 0, 4096, 1, 4200, 0, 4096, 4)
	text("a reference without a number", "a\x00b\x001\x00", "sub id", "create", 4200, 0, 4096, 1, 4200, 0, 4096, 6)
	text("a reference with too large a number", "a\x004294967296\x001\x00", "sub id", "create", 4200, 0, 4096, 1, 4200, 0, 4096, 15)
	text("a reference that is half required", "a\x001\x002\x00", "required", "create", 4200, 0, 4096, 1, 4200, 0, 4096, 6)
	text("a line below zero", "abc", "below zero", "warn", 4096, 3, 4096, 3, 4096, 3, -1, 0, 0)
	text("a column below zero", "abc", "below zero", "fail", 4096, 3, 4096, 3, 4096, 3, 1, -5, 0, 0)
	b := guest("open", "read")
	for _, at := range []int64{-1, -1 << 63} {
		add(fmt.Sprint("read from ", at), diag.WasmAbuse, "got the offset", b, b.call("open", 4096, 3), []byte{0x1a}, b.call("read", 1, at, 4096, 3), end)
		b = guest("open", "read")
	}
	for _, p := range pointers {
		b := guest("open", "read")
		add(fmt.Sprint("read to ", p), diag.WasmAbuse, "read got", b, b.call("open", 4096, 3), []byte{0x1a}, b.call("read", 1, int64(0), p[0], p[1]), end)
		b = guest("create", "write")
		add(fmt.Sprint("write from ", p), diag.WasmAbuse, "write got", b, b.call("create", 4096, 3, 4096, 3, 4200, 0, 4200, 0), []byte{0x1a}, b.call("write", 1, p[0], p[1]), end)
	}
	b = guest("describe")
	add("describe in a job", diag.WasmAbuse, "outside of kiln_info", b, b.call("describe", 16, 4), []byte{0x41, 0})
	b = guest()
	add("a code without a reason", diag.WasmFailed, "with code -3", b, i32(-3))
	b = guest("warn")
	add("warnings without end", diag.WasmAbuse, "more than 1000", b, forever(b.call("warn", 4096, 3, 4096, 3, 4096, 3, 1, 1, 1)))
	b = guest("fail")
	add("errors without end", diag.WasmAbuse, "more than 1000", b, forever(b.call("fail", 4096, 3, 4096, 3, 4096, 3, 1, 1, 1, 0)))
	b = guest("open")
	add("handles without end", diag.WasmAbuse, "close some", b, forever(b.call("open", 4096, 3), []byte{0x1a}))
	b = guest("settings")
	add("settings without end", diag.WasmAbuse, "close some", b, forever(b.call("settings"), []byte{0x1a}))
	return all
}

// forever is a loop without an end, and a value after it.
func forever(body ...[]byte) []byte {
	return slices.Concat([]byte{0x03, 0x40}, slices.Concat(body...), []byte{0x0c, 0, 0x0b, 0x41, 0})
}

// traps are what WebAssembly itself ends, and what time and memory do.
func traps() (all []hostile) {
	add := func(name string, code diag.Code, text string, b *builder, body ...[]byte) {
		b.process = slices.Concat(body...)
		all = append(all, hostile{name, b, code, text})
	}
	add("unreachable", diag.WasmTrap, "unreachable", guest(), []byte{0x00})
	add("divide by zero", diag.WasmTrap, "divide by zero", guest(), i32(1), i32(0), []byte{0x6d})
	add("overflow", diag.WasmTrap, "overflow", guest(), i32(-1<<31), i32(-1), []byte{0x6d})
	add("truncation of a NaN", diag.WasmTrap, "invalid conversion", guest(), []byte{0x43, 0, 0, 0xc0, 0x7f, 0xa8})
	add("load beyond the end", diag.WasmTrap, "out of bounds", guest(), i32(65536), []byte{0x28, 2, 0})
	add("load with an offset", diag.WasmTrap, "out of bounds", guest(), i32(-1), []byte{0x28, 2}, leb(1<<32-1))
	add("store beyond the end", diag.WasmTrap, "out of bounds", guest(), i32(65533), i32(1), []byte{0x36, 2, 0, 0x41, 0})
	add("copy beyond the end", diag.WasmTrap, "out of bounds", guest(), i32(0), i32(1), i32(65536), []byte{0xfc, 10, 0, 0, 0x41, 0})
	add("fill beyond the end", diag.WasmTrap, "out of bounds", guest(), i32(1), i32(1), i32(-1), []byte{0xfc, 11, 0, 0x41, 0})
	b := guest()
	b.tables = []byte{1, 0x70, 0, 1}
	add("call of nothing", diag.WasmTrap, "table", b, i32(5), []byte{0x11, 1, 0, 0x41, 0})
	add("call of a null", diag.WasmTrap, "table", withTable(), i32(0), []byte{0x11, 1, 0, 0x41, 0})
	b = guest()
	add("recursion", diag.WasmTrap, "stack", b, []byte{0x10, 2})
	b = guest()
	b.more = [][]byte{{0x10, 4}, {0x10, 3}}
	add("recursion of two", diag.WasmTrap, "stack", b, []byte{0x10, 3, 0x41, 0})
	add("a loop without an end", diag.WasmTimeout, "took too long", guest(), forever())
	b = guest("exists")
	add("calls without an end", diag.WasmTimeout, "took too long", b, forever(b.call("exists", 4096, 3), []byte{0x1a}))
	b = guest("sched_yield")
	add("yields without an end", diag.WasmTimeout, "took too long", b, forever(b.call("sched_yield"), []byte{0x1a}))
	b = guest()
	for i := range 64 { // each calls the next one twice
		next := leb(uint32(4 + i))
		b.more = append(b.more, slices.Concat([]byte{0x10}, next, []byte{0x10}, next))
	}
	b.more = append(b.more, []byte{0x01})
	add("2^64 calls", diag.WasmTimeout, "took too long", b, []byte{0x10, 3, 0x41, 0})
	grow := slices.Concat([]byte{0x03, 0x40}, i32(16), []byte{0x40, 0}, i32(-1), []byte{0x47, 0x0d, 0, 0x0b, 0x00}) // until it fails, then unreachable
	add("memory without an end", diag.WasmMemory, "out of memory", guest(), grow)
	for _, code := range []int{0, 1, -1} {
		b = guest("proc_exit")
		add(fmt.Sprint("exit ", code), diag.WasmTrap, "ended itself with exit code", b, b.call("proc_exit", code), []byte{0x41, 0})
	}
	return all
}

func withTable() *builder {
	b := guest()
	b.tables = []byte{1, 0x70, 0, 2}
	return b
}

// TestHostile: whatever a module does, its job fails, with the right code and words, and the processor's next job is as good as the first.
func TestHostile(t *testing.T) {
	all := slices.Concat(badPointers(), badHandles(), badValues(), traps())
	if len(all) < 200 {
		t.Errorf("only %d hostile modules", len(all))
	}
	for _, h := range all {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			p := loadModule(t, h.b, Config{}).(*proc)
			if h.code == diag.WasmTimeout { // its job is short of time, and its start is not
				p.once.Do(func() { p.engine, p.failed = newEngine(t.Context(), p) })
				if p.failed != nil {
					t.Fatal(p.failed)
				}
				p.engine.timeout = 100 * time.Millisecond
			}
			for range 2 {
				r := runOn(t, p, "a.x", "content")
				problem := problemOf(t, r.Err)
				if problem.Code != string(h.code) || !strings.Contains(problem.Text, h.text) || problem.Path != "" {
					t.Errorf("%s %q at %q", problem.Code, problem.Text, problem.Path)
				}
				if len(r.Products) > 0 {
					t.Error("it has products")
				}
			}
		})
	}
}

// TestRefused: modules that cannot be processors are refused when they are loaded, and say why.
func TestRefused(t *testing.T) {
	change := func(f func(*builder)) []byte {
		b := guest()
		f(b)
		return b.module()
	}
	good := guest().module()
	importOf := func(module, name string) []byte {
		b := guest(name)
		b.types[name] = [2]string{"", ""}
		b.types["module "+name] = [2]string{module, ""}
		return b.module()
	}
	stateful := func(name string, body ...[]byte) (string, []byte) {
		b := withTable()
		b.process = append(slices.Concat(body...), 0x41, 0)
		return name, b.module()
	}
	cases := []struct {
		name string
		code []byte
		want diag.Code
		text string
	}{
		{"nothing", nil, diag.WasmModule, "cut short"},
		{"text", []byte("hello, world"), diag.WasmModule, "not a WebAssembly"},
		{"a component", []byte("\x00asm\x0d\x00\x01\x00"), diag.WasmModule, "not a WebAssembly"},
		{"no exports", good[:8], diag.WasmModule, "exports nothing"},
		{"no memory", change(func(b *builder) { b.exports = b.exports[1:] }), diag.WasmModule, "memory"},
		{"no info", change(func(b *builder) { b.exports = []export{b.exports[0], b.exports[2]} }), diag.WasmModule, "does not export kiln_info"},
		{"no process", change(func(b *builder) { b.exports = b.exports[:2] }), diag.WasmModule, "does not export kiln_process"},
		{"a command", change(func(b *builder) { b.exports[2].name = "_start" }), diag.WasmModule, "does not export kiln_process"},
		{"process takes something", change(func(b *builder) { b.types["kiln_process"] = [2]string{"i", "i"} }), diag.WasmModule, "should not have"},
		{"process gives nothing", change(func(b *builder) { b.types["kiln_process"] = [2]string{"", ""}; b.process = nil }), diag.WasmModule, "should not have"},
		{"process gives i64", change(func(b *builder) { b.types["kiln_process"] = [2]string{"", "l"}; b.process = i64(0) }), diag.WasmModule, "should not have"},
		{"info gives something", change(func(b *builder) { b.types["kiln_info"] = [2]string{"", "i"}; b.info = i32(0) }), diag.WasmModule, "should not have"},
		{"an import of env", importOf("env", "system"), diag.WasmImport, `a function "system" of "env"`},
		{"an import of wasi's other version", importOf("wasi_unstable", "fd_write"), diag.WasmImport, `"wasi_unstable"`},
		{"an import that is not there", importOf("kiln_v1", "tool"), diag.WasmImport, `"tool" of "kiln_v1"`},
		{"an import of the next version", importOf("kiln_v2", "open"), diag.WasmImport, `"kiln_v2"`},
		{"wasi that is none", importOf("wasi_snapshot_preview1", "system"), diag.WasmImport, `"system"`},
		{"a wrong type", change(func(b *builder) { b.types["describe"] = [2]string{"il", ""}; b.info = []byte{} }), diag.WasmTrap, "signature mismatch"},
		{"too much memory", change(func(b *builder) { b.pages = 65536 }), diag.WasmModule, "memory"},
		{"more memory than there is", change(func(b *builder) { b.pages = 65537 }), diag.WasmModule, "memory"},
		{"a large table", change(func(b *builder) { b.tables = append([]byte{1, 0x70, 0}, leb(1<<27)...) }), diag.WasmModule, "more than 1048576 elements"},
		{"many tables", change(func(b *builder) { b.tables = slices.Concat([]byte{2, 0x70, 0}, leb(1<<20), []byte{0x70, 0, 1}) }), diag.WasmModule, "more than 1048576 elements"},
		{"a global that is not a number", change(func(b *builder) { b.globals = []byte{1, 0x70, 1, 0xd0, 0x70, 0x0b} }), diag.WasmModule, "is not a number"},
		{"no body", change(func(b *builder) { b.process = []byte{} }), diag.WasmModule, "cannot be compiled"},
		{"an instruction that is none", change(func(b *builder) { b.process = []byte{0x41, 0, 0xff} }), diag.WasmModule, "not known"},
		{"an atomic", change(func(b *builder) { b.process = []byte{0x41, 0, 0xfe, 0, 2, 0} }), diag.WasmModule, "not known"},
		{"info crashes", change(func(b *builder) { b.info = []byte{0} }), diag.WasmTrap, "while it started"},
		{"info is silent", change(func(b *builder) { b.info = []byte{1} }), diag.WasmInfo, "does not call describe"},
		{"info opens", func() []byte { b := guest("open"); b.info = append(b.call("open", 4096, 3), 0x1a); return b.module() }(), diag.WasmAbuse, "outside of kiln_process"},
		{"start opens", func() []byte {
			b := guest("open")
			b.more, b.start = [][]byte{append(b.call("open", 4096, 3), 0x1a)}, true
			return b.module()
		}(), diag.WasmAbuse, "outside of kiln_process"},
		{"start does not end", change(func(b *builder) { b.more, b.start = [][]byte{{0x03, 0x40, 0x0c, 0, 0x0b}}, true }), diag.WasmTimeout, "while it started"},
		{"info does not end", change(func(b *builder) { b.info = []byte{0x03, 0x40, 0x0c, 0, 0x0b} }), diag.WasmTimeout, "while it started"},
	}
	for _, s := range []struct {
		name string
		body []byte
	}{
		{"table.set", []byte{0x41, 0, 0xd0, 0x70, 0x26, 0}}, {"table.grow", slices.Concat([]byte{0xd0, 0x70}, i32(-1), []byte{0xfc, 15, 0, 0x1a})},
		{"table.fill", []byte{0x41, 0, 0xd0, 0x70, 0x41, 1, 0xfc, 17, 0}}, {"table.copy", []byte{0x41, 0, 0x41, 0, 0x41, 1, 0xfc, 14, 0, 0}},
		{"table.init", []byte{0x41, 0, 0x41, 0, 0x41, 1, 0xfc, 12, 0, 0}}, {"elem.drop", []byte{0xfc, 13, 0}}, {"data.drop", []byte{0xfc, 9, 0}},
	} {
		name, code := stateful(s.name, s.body)
		cases = append(cases, struct {
			name string
			code []byte
			want diag.Code
			text string
		}{name, code, diag.WasmModule, "it uses " + name})
	}
	for _, long := range longLists() {
		cases = append(cases, struct {
			name string
			code []byte
			want diag.Code
			text string
		}{long.name, long.code, diag.WasmModule, long.text})
	}
	for _, about := range []struct{ json, text string }{
		{`{`, "unexpected EOF"}, {`[]`, "cannot unmarshal"}, {`{} {}`, "follows"}, {`{"abi":2}`, "version 2 of the interface"}, {`{"abi":1,"nam":"x"}`, "unknown field"},
		{`{"abi":1,"name":"X"}`, "not a name of a processor"}, {`{"abi":1,"name":"x","version":0}`, "version 0"}, {`{"abi":1,"name":"x","version":1}`, "no products"},
		{`{"abi":1,"name":"x","version":1,"products":[{"type":""}]}`, "product of type"}, {`{"abi":1,"name":"x","version":1,"products":[{"type":"x","extension":"../x"}]}`, "product of type"},
		{`{"abi":1,"name":"x","version":1,"extensions":["x"],"products":[{"type":"x"}]}`, "not an extension"},
		{`{"abi":1,"name":"x","version":1,"products":[{"type":"x"}],"memory":-1}`, "memory -1"},
		{strings.Replace(aboutX, `"string"`, `"int"`, 1), `type "int" is not known`}, {strings.Replace(aboutX, `"name":"a"`, `"name":"A"`, 1), "begins with a letter"},
		{strings.Replace(aboutX, `"b"`, `5`, 1), "the default"}, {strings.Replace(aboutX, `"b"`, `"b","min":1`, 1), "only a number"},
		{strings.Replace(aboutX, `"b"`, `"b","values":["c,d"]`, 1), "comma"}, {strings.Replace(aboutX, `"b"}`, `"b"},{"name":"a","type":"string"}`, 1), "there twice"},
	} {
		b := guest()
		b.about = about.json
		cases = append(cases, struct {
			name string
			code []byte
			want diag.Code
			text string
		}{about.json, b.module(), diag.WasmInfo, about.text})
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			config := configOf(t, c.code, Config{Cache: sharedCache()})
			if c.want == diag.WasmTimeout {
				config.Timeout = 100 * time.Millisecond
			}
			_, _, err := Load(context.Background(), config)
			problem := problemOf(t, err)
			if problem.Code != string(c.want) || !strings.Contains(problem.Text, c.text) || problem.Path != "m.wasm" {
				t.Errorf("%s %q at %q", problem.Code, problem.Text, problem.Path)
			}
		})
	}
}

// longLists are modules of some bytes with a list that says it has 4 billion entries: an engine that makes room for them takes the host
// down.
func longLists() (all []struct {
	name string
	code []byte
	text string
}) {
	many := leb(1<<32 - 1)
	add := func(name, text string, id byte, body ...[]byte) {
		b := slices.Concat(body...)
		code := slices.Concat([]byte("\x00asm\x01\x00\x00\x00"), []byte{id}, leb(uint32(len(b))), b)
		all = append(all, struct {
			name string
			code []byte
			text string
		}{name, code, text})
	}
	zero := []byte{0x41, 0, 0x0b} // an offset
	for name, id := range map[string]byte{"types": 1, "imports": 2, "functions": 3, "globals": 6, "exports": 7, "segments of tables": 9, "bodies": 10, "segments of memory": 11} {
		add("many "+name, "cut short", id, many)
	}
	add("many parameters", "cut short", 1, []byte{1, 0x60}, many)
	add("many results", "cut short", 1, []byte{1, 0x60, 0}, many)
	add("a long name of an import", "cut short", 2, []byte{1}, many)
	add("a long name of an export", "cut short", 7, []byte{1}, many)
	add("many elements", "cut short", 9, []byte{1, 0}, zero, many)
	add("many elements of a type", "cut short", 9, []byte{1, 1, 0}, many)
	add("many elements of a table", "cut short", 9, []byte{1, 2, 0}, zero, []byte{0}, many)
	add("many expressions", "cut short", 9, []byte{1, 4}, zero, many)
	add("many expressions of a type", "cut short", 9, []byte{1, 5, 0x70}, many)
	add("elements of a kind that is none", "cut short", 9, []byte{1, 8})
	add("much data", "cut short", 11, []byte{1, 0}, zero, many)
	add("much passive data", "cut short", 11, []byte{1, 1}, many)
	add("much data of a memory", "cut short", 11, []byte{1, 2, 0}, zero, many)
	add("a long function", "cut short", 10, []byte{1}, many)
	add("many kinds of locals", "cut short", 10, []byte{1, 6}, many, []byte{0x0b})
	add("many locals", "4294967295 locals", 10, []byte{1, 8, 1}, many, []byte{0x7f, 0x0b})
	add("many locals together", "50001 locals", 10, []byte{1, 8, 2}, leb(50_000), []byte{0x7f, 1, 0x7f, 0x0b})
	add("a long custom name", "cut short", 0, many)
	add("many names", "cut short", 0, []byte("\x04name\x01\x05"), many)
	add("a long name of a function", "cut short", 0, []byte("\x04name\x01\x07\x01\x00"), many)
	add("long names", "cut short", 0, []byte("\x04name\x01"), many)
	return all
}

// TestNames: what a crash tells by is kept, and what else a module says of names is not read.
func TestNames(t *testing.T) {
	b := guest()
	b.process = []byte{0x00}
	custom := func(body string) string {
		return string(slices.Concat([]byte{0}, leb(uint32(len(body))), []byte(body)))
	}
	names := "\x01\x08\x01\x02\x05inner" // function 2 is "inner"
	code := string(b.module()) + custom("\x04name\x00\x05\xff\xff\xff\xff\x0f"+names+"\x02\x05\xff\xff\xff\xff\x0f") + custom("\x05other\xff\xff")
	p, _, err := Load(t.Context(), configOf(t, []byte(code), Config{}))
	if err != nil {
		t.Fatal(err)
	}
	if problem := problemOf(t, runOn(t, p, "a.x", "content").Err); !strings.Contains(problem.Text, "in .inner") {
		t.Errorf("%s", problem.Text)
	}
}

// TestCut: no part of a module is a module.
func TestCut(t *testing.T) {
	code := guest("open").module()
	for n := range code {
		_, _, err := Load(context.Background(), configOf(t, code[:n], Config{}))
		if err == nil {
			t.Errorf("%d of %d bytes are a module", n, len(code))
		}
	}
}

// TestNoTraces: a job that writes to memory and globals, and one that grows memory, leave nothing to the next.
func TestNoTraces(t *testing.T) {
	b := guest("write", "create", "close")
	b.globals = slices.Concat([]byte{3, 0x7f, 1}, i32(5), []byte{0x0b, 0x7e, 1}, i64(-1), []byte{0x0b, 0x7f, 0}, i32(5), []byte{0x0b})
	b.process = slices.Concat(
		i32(5000), []byte{0x23, 0, 0x36, 2, 0}, // the first global goes to 5000
		i32(5000), i32(5000), []byte{0x28, 2, 0}, i32(5004), []byte{0x28, 2, 0, 0x6a, 0x36, 2, 0}, // plus what is at 5004
		[]byte{0x23, 0}, i32(1), []byte{0x6a, 0x24, 0}, // the global becomes one more
		i32(5004), i32(7), []byte{0x36, 2, 0}, // and so does what is at 5004
		i64(3), []byte{0x24, 1},
		b.call("create", 4200, 0, 4096, 1, 4200, 0, 4200, 0), []byte{0x21, 0}, b.call("write", []byte{0x20, 0}, 5000, 4), []byte{0x1a}, b.call("close", []byte{0x20, 0}),
		[]byte{0x3f, 0, 0x1a, 0x1a}, i32(1), []byte{0x40, 0, 0x1a, 0x41, 0},
	)
	p := loadModule(t, b, Config{})
	for i := range 5 {
		r := runOn(t, p, "a.x", "content")
		if r.Err != nil || string(r.Products[""].Data) != "\x05\x00\x00\x00" {
			t.Errorf("job %d: %q, %v", i, r.Products[""].Data, r.Err)
		}
	}
}

// FuzzCalls makes a module of calls of any host functions with any arguments: jobs fail or do not, and nothing else.
func FuzzCalls(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
	f.Add([]byte("\x05\x01\x03\x0a\x01\x02\x01\x03\x0c\x01\x03\x01\x03"))
	names := []string{
		"asset", "settings", "setting", "open", "exists", "glob", "products", "assets", "listed", "try_products", "open_product", "size", "read", "reference", "resource_id", "create", "write",
		"close", "request", "request_named", "adopt", "run", "warn", "fail", "error", "fd_write", "random_get", "clock_time_get", "poll_oneoff", "fd_fdstat_get", "args_sizes_get", "environ_get",
	}
	values := []int64{0, 1, 2, 3, 4096, 4097, 4200, 65535, 65536, -1, 1 << 31, 1<<31 - 1, 1 << 20, 40, 8, 100}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 400 {
			return
		}
		b := guest(names...)
		b.data = "a.x\x00\x01\x00\x00\x001\x00\x10\x00\x00\x08\x00\x00\x00a\x00"
		functions := hostFunctions()
		for name, f := range wasiFunctions() {
			functions[name] = f
		}
		next := func() int64 {
			if len(in) == 0 {
				return 0
			}
			v := values[int(in[0])%len(values)]
			in = in[1:]
			return v
		}
		b.process = nil
		for len(in) > 0 {
			name := names[int(in[0])%len(names)]
			in = in[1:]
			var args []any
			for _, c := range functions[name].params {
				if v := next(); c == 'l' {
					args = append(args, v)
				} else {
					args = append(args, int(v))
				}
			}
			b.process = append(b.process, b.call(name, args...)...)
			if functions[name].results != "" {
				b.process = append(b.process, 0x1a)
			}
		}
		b.process = append(b.process, 0x41, 0)
		config := b.config(t, Config{Timeout: 5 * time.Second})
		p, _, err := Load(context.Background(), config)
		if err != nil {
			t.Fatal(err)
		}
		first, second := runOn(t, p, "a.x", "content"), runOn(t, p, "a.x", "content")
		if fmt.Sprint(first.Err, first.Products, first.Observations) != fmt.Sprint(second.Err, second.Products, second.Observations) {
			t.Errorf("%v %v\n%v %v", first.Err, first.Observations, second.Err, second.Observations)
		}
		for _, problem := range processortest.Problems(first.Err) {
			if strings.Contains(problem.Text, "runtime error") {
				t.Error(problem.Text)
			}
		}
	})
}

// FuzzModule reads modules that are none, and has those that are do a job.
func FuzzModule(f *testing.F) {
	f.Add(guest("open").module())
	f.Add(withTable().module())
	for _, h := range slices.Concat(badHandles(), badValues(), traps()) {
		f.Add(h.b.module())
	}
	f.Fuzz(func(t *testing.T, code []byte) {
		if _, err := prepare(code); err != nil {
			return
		}
		p, _, err := Load(context.Background(), configOf(t, code, Config{Timeout: 100 * time.Millisecond, Memory: 1 << 20}))
		if err != nil {
			return
		}
		for range 2 {
			r := runOn(t, p, "a.x", "content")
			for _, problem := range processortest.Problems(r.Err) {
				if strings.Contains(problem.Text, "runtime error") {
					t.Error(problem.Text)
				}
			}
		}
	})
}
