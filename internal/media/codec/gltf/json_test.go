package gltf

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
)

func TestJSONKeepsAll(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{"b":1,"a":0.10000000000000000000001,"c":1E+400}`, `{"b":1,"a":0.10000000000000000000001,"c":1E+400}`},
		{" [ true , false , null , { } , [ ] ]\n", `[true,false,null,{},[]]`},
		{`"a\u00e4\ud83d\ude00\/\n\"\\\u0001"`, "\"aä😀/\\u000a\\\"\\\\\\u0001\""},
		{`"\ud83d" `, "\"\ufffd\""},
		{"\ufeff-0.0", `-0.0`},
	} {
		v, err := parse([]byte(c.in), DefaultLimits())
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if got := string(v.AppendJSON(nil)); got != c.want {
			t.Errorf("%s: got %s, want %s", c.in, got, c.want)
		}
	}
}

func TestJSONErrors(t *testing.T) {
	lim := Limits{JSON: 100, Depth: 3, Values: 10}
	for _, c := range []struct{ in, want string }{
		{``, "1:1: the file has no value"},
		{`{"a":1,}`, `1:7: a comma stands before the closing "}"`},
		{`[01]`, `1:2: "01" is not a JSON value`},
		{`{"a":1,"a":2}`, `1:8: key "a" is given again; the first is at 1:2`},
		{`{} {}`, `1:4: "{" stands where the end of the file should be`},
		{"[\"\xff\"]", `1:3: byte 0xff is not UTF-8`},
		{`[[[[0]]]]`, `1:4: values are nested more than 3 levels deep`},
		{`[0,0,0,0,0,0,0,0,0,0]`, `1:20: the file has more than 10 values`},
		{strings.Repeat(" ", 101), `the file has 101 bytes; data of at most 0 MiB is read`},
	} {
		_, err := parse([]byte(c.in), lim)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.in, err, c.want)
		}
	}
}

func TestInt(t *testing.T) {
	for text, want := range map[string]int64{"3": 3, "3.0": 3, "3e0": 3, "0.3e1": 3, "-1": -1, "9007199254740992": 1 << 53} {
		if n, ok := (&Value{Kind: Number, Text: text}).Int(); !ok || n != want {
			t.Errorf("%s is %d, %t", text, n, ok)
		}
	}
	for _, text := range []string{"0.5", "9007199254740993", "1e300", "1e999", "-9223372036854775808", "99999999999999999999"} {
		if n, ok := (&Value{Kind: Number, Text: text}).Int(); ok {
			t.Errorf("%s is taken for %d", text, n)
		}
	}
}

// FuzzJSON compares the parser with encoding/json. Both accept the same texts, except for duplicate names, invalid UTF-8 and
// limits. The output has the same meaning as the input.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{base, `[1,-0.5e+3,"\u0041\ud800",{"":{}},null,true]`, `{"a":1,"a":2}`, `[1`, `"\`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := parse([]byte(text), DefaultLimits())
		valid := json.Valid([]byte(strings.TrimPrefix(text, "\ufeff")))
		if err != nil {
			var bad *document.Error
			if !errors.As(err, &bad) {
				t.Fatalf("%#v", err)
			}
			if valid && bad.Fault == document.Syntax {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if !valid {
			t.Fatalf("%q is taken for JSON", text)
		}
		out := v.AppendJSON(nil)
		again, err := parse(out, DefaultLimits())
		if err != nil {
			t.Fatalf("%q becomes %q: %v", text, out, err)
		}
		if s := again.AppendJSON(nil); string(s) != string(out) {
			t.Fatalf("%q becomes %q, then %q", text, out, s)
		}
	})
}
