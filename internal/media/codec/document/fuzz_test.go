package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"
)

// check checks the result of a reader for any text.
func check(t *testing.T, text []byte, v Value, err error) {
	t.Helper()
	lines := bytes.Count(text, []byte("\n")) + 1
	if err != nil {
		var e *Error
		if !errors.As(err, &e) {
			t.Fatalf("error of type %T: %v", err, err)
		}
		if e.Text == "" || strings.Contains(e.Text, "(MISSING)") || int(e.Pos.Line) > lines {
			t.Fatalf("error %q at %v in a text of %d lines", e.Text, e.Pos, lines)
		}
		return
	}
	checkPlaces(t, &v, lines)
	out := AppendJSON(nil, &v)
	if !json.Valid(out) {
		t.Fatalf("not JSON: %q", out)
	}
	again, err := JSON(out)
	if err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	if out2 := AppendJSON(nil, &again); !bytes.Equal(out, out2) {
		t.Fatalf("%q became %q", out, out2)
	}
	var into any
	if err := msgpack.Unmarshal(AppendMessagePack(nil, &v), &into); err != nil {
		t.Fatalf("MessagePack: %v", err)
	}
}

func checkPlaces(t *testing.T, v *Value, lines int) {
	if v.Line < 1 || v.Column < 1 || v.Length < 1 || int(v.Line) > lines {
		t.Fatalf("value %v has the place %v in a text of %d lines", v.V, v.Pos, lines)
	}
	switch x := v.V.(type) {
	case []Value:
		for i := range x {
			checkPlaces(t, &x[i], lines)
		}
	case Object:
		for i := range x {
			if x[i].KeyPos.Line < 1 || x[i].KeyPos.Column < 1 {
				t.Fatalf("key %q has the place %v", x[i].Key, x[i].KeyPos)
			}
			checkPlaces(t, &x[i].Value, lines)
		}
	}
}

func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5,"x",null,true]}`, `{"a":1,}`, `[1 // c` + "\n]", "{a: b\nc: d e}", `"\ud83d\ude00"`, `"\ud800"`,
		"\ufeff{}", "[0x1F, +.5, 5., 'x']", `{"a":1,"a":2}`, "18446744073709551616", "1e999", strings.Repeat("[", 300), "/*", `"\`, "{a:"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		strict, err := JSON(text)
		check(t, text, strict, err)
		relaxed, err2 := RelaxedJSON(text)
		check(t, text, relaxed, err2)
		if err == nil && (err2 != nil || !bytes.Equal(AppendJSON(nil, &strict), AppendJSON(nil, &relaxed))) {
			t.Fatalf("strict and relaxed differ: %v", err2)
		}
		var e *Error
		valid := json.Valid(bytes.TrimPrefix(text, []byte("\ufeff")))
		if err == nil && !valid || errors.As(err, &e) && e.Fault == Syntax && valid {
			t.Fatalf("encoding/json says %t, we say %v", valid, err)
		}
	})
}

func FuzzTOML(f *testing.F) {
	for _, s := range []string{"a = 1\n[t]\nb.c = [1, [2, 3], {x = 1}]\n[[u]]\n[[u]]\nd = 1979-05-27", "a=[ # c\n1,\n[ 2 ] ]", "a={b={c=1},\nd=2,}", "a=inf", "x=\"\"\"\nab\"\"\"", "'a b'.c = 07:32:00",
		"[a]\n[a]", "a=" + strings.Repeat("[", 300), strings.Repeat("a.", 300) + "b=1"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := TOML(text)
		check(t, text, v, err)
		tree, faults, ended := TOMLTree(text)
		if (ended != nil || len(faults) > 0) != (err != nil) {
			t.Fatalf("%v, but the tree has %v and ends in %v", err, faults, ended)
		}
		checkPlaces(t, &tree, bytes.Count(text, []byte("\n"))+1)
	})
}

func FuzzYAML(f *testing.F) {
	for _, s := range []string{"a: 1\nb: [x, 'y', {z: ~}]\n", "a: &x {p: 1}\nb:\n  <<: *x\n  q: 2\n", "a: &a [*a]", "--- 1\n--- 2\n", "a: |\n  text\n  more\n", "!!str 12", "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]", "? [1]\n: 2",
		strings.Repeat("[", 300), "a: .inf", "\ta: 1", "<<: {a: 1}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := YAML(text)
		check(t, text, v, err)
	})
}

func FuzzCSV(f *testing.F) {
	for _, s := range []string{"a,b\n1,x\n,\"q\"\"r\"\n", "a;b\n1;2\n", "a\n\"x\ny\"\n\n1e5\n", "a,a\n", "a\n1,2\n", "a,b\n1\n", "a\n\"\n", "ä,ö\nü,1\n", "a,b,\r1,2,\r"} {
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, text []byte, semicolon bool) {
		o := CSVOptions{}
		if semicolon {
			o = CSVOptions{Comma: ';', Strings: true}
		}
		for _, o.NoHeader = range []bool{false, true} {
			v, err := CSV(text, o)
			check(t, unixLines(text, max(o.Comma, 44)), v, err)
		}
	})
}

func FuzzProperties(f *testing.F) {
	for _, s := range []string{"a = b\n", "# c\r\na\\ b: \\u00e9\\\n  x\r", "\\", "a=\\ud83d\\ude00", "caf\xe9", "= x", ":", "a\\"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := Properties(text)
		if !utf8.Valid(text) {
			return // each byte is a character; places are those of the characters
		}
		check(t, unixLines(text, 0), v, err)
	})
}
