package gltf

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestJSONKeepsAll(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{"b":1,"a":0.10000000000000000000001,"c":1E+400}`, `{"b":1,"a":0.10000000000000000000001,"c":1E+400}`},
		{" [ true , false , null , { } , [ ] ]\n", `[true,false,null,{},[]]`},
		{`"a\u00e4\ud83d\ude00\/\n\"\\\u0001"`, "\"aä😀/\\u000a\\\"\\\\\\u0001\""},
		{"\ufeff-0.0", `-0.0`},
	} {
		v, err := parseJSON(c.in, DefaultLimits())
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
		{``, "byte 0: the text ends where a value should be"},
		{`{"a":1,}`, `byte 7: '}' stands where the name of a member should be`},
		{`{"a" 1}`, `byte 5: '1' stands where ":" should be`},
		{`{"a":1 "b":2}`, `byte 7: '"' stands where "," or "}" should be`},
		{`[1 2]`, `byte 3: '2' stands where "," or "]" should be`},
		{`[1,]`, `byte 3: ']' stands where a value should be`},
		{`[1`, `byte 2: the text ends where "," or "]" should be`},
		{`[01]`, `byte 2: '1' stands where "," or "]" should be`},
		{`[1.]`, `byte 3: ']' stands where a digit should be`},
		{`[1e]`, `byte 3: ']' stands where a digit should be`},
		{`[-]`, `byte 2: ']' stands where a digit should be`},
		{`[NaN]`, `byte 1: 'N' stands where a value should be`},
		{`["a]`, `byte 1: the string has no closing quote`},
		{"[\"a\n\"]", `byte 3: a string has a control character, or its closing quote is missing`},
		{`["\x"]`, `byte 1: the string has an escape that JSON does not know`},
		{`{"a":1,"a":2}`, `byte 7: member "a" is there twice`},
		{`{} {}`, `byte 3: there is more after the end of the JSON`},
		{"[\"\xff\"]", `byte 2: the text is not valid UTF-8`},
		{`[[[[0]]]]`, `byte 4: values are nested over 3 deep`},
		{`[0,0,0,0,0,0,0,0,0,0]`, `byte 19: there are over 10 values`},
		{strings.Repeat(" ", 101), `byte 0: 101 bytes of JSON are over the limit of 100`},
	} {
		_, err := parseJSON(c.in, lim)
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

// FuzzJSON holds the parser against encoding/json: both take the same texts, but for names that are there
// twice, bad UTF-8 and limits; and what is written again means the same.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{base, `[1,-0.5e+3,"\u0041\ud800",{"":{}},null,true]`, `{"a":1,"a":2}`, `[1`, `"\`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := parseJSON(text, DefaultLimits())
		valid := json.Valid([]byte(strings.TrimPrefix(text, "\ufeff")))
		if err != nil {
			var bad *syntaxError
			if !errors.As(err, &bad) || bad.offset < 0 || bad.offset > len(text) {
				t.Fatalf("%#v", err)
			}
			lenient := strings.Contains(err.Error(), "twice") || !utf8.ValidString(text) || bad.kind == TooBig
			if valid && !lenient {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if !valid {
			t.Fatalf("%q is taken for JSON", text)
		}
		out := v.AppendJSON(nil)
		again, err := parseJSON(string(out), DefaultLimits())
		if err != nil {
			t.Fatalf("%q becomes %q: %v", text, out, err)
		}
		if s := again.AppendJSON(nil); string(s) != string(out) {
			t.Fatalf("%q becomes %q, then %q", text, out, s)
		}
	})
}
