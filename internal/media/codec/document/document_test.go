package document

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
	"pgregory.net/rapid"
)

func readers() map[string]func([]byte) (Value, error) {
	return map[string]func([]byte) (Value, error){
		"json": JSON, "relaxed": RelaxedJSON, "toml": TOML, "yaml": YAML,
		"csv": func(b []byte) (Value, error) { return CSV(b, CSVOptions{}) },
		"csv;": func(b []byte) (Value, error) {
			return CSV(b, CSVOptions{Comma: ';', Strings: true})
		},
		"rows":       func(b []byte) (Value, error) { return CSV(b, CSVOptions{NoHeader: true}) },
		"tsv":        TabCSV,
		"properties": Properties,
	}
}

func TestRead(t *testing.T) {
	for _, c := range []struct{ reader, text, want string }{
		{"json", "\ufeff {\"b\":[1,2.50,-0,1E2],\"a\":null} ", `{"a":null,"b":[1,2.5,0,100]}`},
		{"json", `"\u00e9\ud83d\ude00\/\b\u0001"`, `"é😀/\b\u0001"`},
		{"json", `[9223372036854775807,-9223372036854775808,18446744073709551615]`,
			`[9223372036854775807,-9223372036854775808,18446744073709551615]`},
		{"json", `[20000000000000000000]`, `[20000000000000000000]`},
		{"json", `{"":{},"x":[]}`, `{"":{},"x":[]}`},
		{"json", `{"\ue000":1,"😀":2}`, "{\"\ue000\":1,\"😀\":2}"}, // order of bytes; UTF-16 has the opposite order
		{"relaxed", "{ // c\n a: b c /* d */, 'e': +1,\n f: .5\n g: [1,2,], h: 0x1F, i: 5., j: -.5e1 }",
			`{"a":"b c","e":1,"f":0.5,"g":[1,2],"h":31,"i":5,"j":-5}`},
		{"relaxed", "{com.x.Skin$Tinted: {file: fonts/a.fnt}\nn: 007\nm: 10px\nok: true, no: null}",
			`{"com.x.Skin$Tinted":{"file":"fonts/a.fnt"},"m":"10px","n":"007","no":null,"ok":true}`},
		{"relaxed", "'it\\'s \\\n on'", `"it's  on"`},
		{"toml",
			"a.b = 1\n[t]\nd = 1979-05-27T07:32:00-08:00\nl = 1979-05-27\n[[u]]\nx = [ # c\n [1], {y = 2.0} ]\n[[u]]\n[u.v]\nw = 07:32:00",
			`{"a":{"b":1},"t":{"d":"1979-05-27T07:32:00-08:00","l":"1979-05-27"},"u":[{"x":[[1],{"y":2}]},{"v":{"w":"07:32:00"}}]}`},
		{"toml", "", `{}`},
		{"toml", "a = 0x1F\nb = 1_000\nc = '''\nx\ny'''", `{"a":31,"b":1000,"c":"x\ny"}`},
		{"yaml", "a: yes\nb: 010\nc: 0o17\nd: 2001-01-01\ne: ~\nf: !!str 12\ng: [0x1f, +1, .5, 1e3, True]\nh: |\n  x\n  y\n",
			`{"a":"yes","b":10,"c":15,"d":"2001-01-01","e":null,"f":"12","g":[31,1,0.5,1000,true],"h":"x\ny\n"}`},
		{"yaml", "base: &b {x: 1, y: 2}\ntwo: &c {y: 3, z: 4}\nt:\n  <<: [*b, *c]\n  x: 5\nu: *b",
			`{"base":{"x":1,"y":2},"t":{"x":5,"y":2,"z":4},"two":{"y":3,"z":4},"u":{"x":1,"y":2}}`},
		{"yaml", "", `null`},
		{"yaml", "---\n- 1\n...\n", `[1]`},
		{"csv", "id,n,f,t,e,q,z\nx,1,2.5,true,,\"3\",007\n\n\"a\"\"b\nc\",0,1e3,false,\"\",null,-1\n",
			`[{"e":null,"f":2.5,"id":"x","n":1,"q":"3","t":true,"z":"007"},{"e":"","f":1000,"id":"a\"b\nc","n":0,"q":"null","t":false,"z":-1}]`},
		{"csv", "a\n", `[]`},
		{"csv;", "a;b\r\n1;x,y\r\n", `[{"a":"1","b":"x,y"}]`},
		{"csv", "a,b\r1,2\r\r3,\"x\ry\"\r", `[{"a":1,"b":2},{"a":3,"b":"x\ry"}]`}, // old Macs
		{"csv", "a,b\r\r\n1,2\r\r\n", `[{"a":1,"b":2}]`},                          // converted twice
		{"csv", "a,b,\n1,2,\n3,4\n5,,\n", `[{"a":1,"b":2},{"a":3,"b":4},{"a":5,"b":null}]`},
		{"csv", "a,b, ,\n1,2,,\n", `[{"a":1,"b":2}]`},
		{"rows", "1,x\n2,\"3\"\n", `[[1,"x"],[2,"3"]]`},
		{"rows", "a,a,\n,,\n", `[["a","a",null],[null,null,null]]`},
		{"rows", "", `[]`},
		{"csv", "name,size\nscreen,27\"\rtv,40\" wide\r\"a,\"\"b\r\n\",2",
			`[{"name":"screen","size":"27\""},{"name":"tv","size":"40\" wide"},{"name":"a,\"b\n","size":2}]`},
		{"tsv", "a\tb,c\n1\tx;y\n", `[{"a":1,"b,c":"x;y"}]`},
		{"properties", "# c\n! d\n\n a = b \nc:d\ne f=g\nh\ni=\n", `{"a":"b ","c":"d","e":"f=g","h":"","i":""}`},
		{"properties", "a\\ b\\=c = \\ x\\ty\\\\z\\q\nlong = one, \\\n   two\\\r\n, three\r\nlast = \\",
			`{"a b=c":" x\ty\\zq","last":"","long":"one, two, three"}`},
		{"properties", "a = \\u00e9\\ud83d\\ude00é \"x\rb=1\r", `{"a":"é😀é \"x","b":"1"}`},
		{"properties", "caf\xe9 = \xfc", `{"café":"ü"}`},
		{"properties", "", `{}`},
	} {
		v, err := readers()[c.reader]([]byte(c.text))
		if err != nil {
			t.Errorf("%s %q: %v", c.reader, c.text, err)
		} else if got := string(AppendJSON(nil, &v)); got != c.want {
			t.Errorf("%s %q:\n got %s\nwant %s", c.reader, c.text, got, c.want)
		}
	}
}

func TestRefuse(t *testing.T) {
	bomb := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 10; i++ {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	for _, c := range []struct {
		reader, text string
		fault        Fault
		want         string // of the error, with its position
	}{
		{"json", "", Syntax, "1:1: the file has no value"},
		{"json", "{\n\t\"é\": 1,\n}", Syntax, "2:8: a comma stands before the closing"},
		{"json", "[1] x", Syntax, `1:5: "x" stands where the end of the file should be`},
		{"json", "{a: 1}", Syntax, `1:2: "a" stands where a key in double quotes should be`},
		{"json", "[1, // c\n2]", Syntax, "1:5: a comment stands where a value should be"},
		{"json", "[1", Syntax, "1:3: the file ends before the bracket at 1:1 is closed"},
		{"json", `["é", nan]`, Syntax, `1:7: "nan" is not a JSON value`},
		{"json", "[01]", Syntax, `1:2: "01" is not a JSON value`},
		{"json", "[1 2]", Syntax, `1:4: "2" stands where "," or "]" should be`},
		{"json", "\"a\nb\"", Syntax, "1:1: the string is not closed on its line"},
		{"json", "\"a\tb\"", Syntax, "1:3: character U+0009 stands in a string as it is"},
		{"json", `"\x"`, Syntax, "1:2: unknown escape"},
		{"json", `"\u12g4"`, Syntax, `1:2: \u needs four hexadecimal digits`},
		{"json", `"a`, Syntax, "1:1: the string is not closed"},
		{"json", `{"a" 1}`, Syntax, `1:6: "1" stands where ":" should be`},
		{"json", `"\ud800"`, Encoding, `1:2: \ud800 is half a character`},
		{"json", "\"é\xff\"", Encoding, "1:3: byte 0xff is not UTF-8"},
		{"json", "\xff\xfe{\x00}\x00", Encoding, "1:1: the file is UTF-16"},
		{"json", "{\"a\": 1,\n \"a\": 2}", Duplicate, `2:2: key "a" is given again; the first is at 1:2`},
		{"json", "[18446744073709551616]", Number, "1:2: integer 18446744073709551616 does not fit"},
		{"json", "[1e999]", Number, "1:2: 1e999 is not a finite number"},
		{"json", strings.Repeat("[", 201), Limit, "1:201: values are nested more than 200"},
		{"json", strings.Repeat(" ", MaxSize+1), Limit, "the file has"},
		{"json", "[" + strings.Repeat("1,", MaxValues) + "1]", Limit, "more than 4194304 values"},
		{"relaxed", "/* x", Syntax, "1:1: the comment is not closed"},
		{"relaxed", "{a: NaN}", Number, "1:5: NaN is not a finite number"},
		{"relaxed", "{a: 1 b: 2}", Syntax, `1:8: ":" stands where "," or "}" should be`},
		{"toml", "a = 1\n\n[b]\nc = 1\n[b]", Duplicate, `5:2: key "b" is given again; the first is at 3:2`},
		{"toml", "é = 1", Syntax, "1:1: "},
		{"toml", "\"é\" = 1\n\"é\" = 2", Duplicate, `2:1: key "é" is given again; the first is at 1:1`},
		{"toml", "x = {a = 1, a = 2}", Duplicate, `1:13: key "a" is given again; the first is at 1:6`},
		{"toml", "a = \"é\"\nb = [\"ü\", ?]", Syntax, "2:11: unexpected character"},
		{"toml", "a = inf", Number, "1:5: +Inf is not a finite number"},
		{"toml", "[t]\na = 99999999999999999999", Number, "2:5: the number does not fit into 64 bits"},
		{"toml", "a = " + strings.Repeat("[", 201) + strings.Repeat("]", 201), Limit, "1:204: values are nested more than 200"},
		{"toml", strings.Repeat("a.", 300) + "b = 1", Limit, "values are nested more than 200"},
		{"toml", strings.Repeat("\n", maxMarks+1), Limit, "more than 2097152 separators"},
		{"toml", "a.b = 1\n[a]\n", Syntax, "2:2: "},
		{"csv", "a,b,\n1,2,3\n", Syntax, "2:5: column 3 has a value, but no name"},
		{"csv", "a,,b\n1,2,3\n", Syntax, "1:3: column 2 has no name"},
		{"csv", ",\n1,2\n", Syntax, "1:1: column 1 has no name"},
		{"csv", "a,b\r1\r", Ragged, `2:1: the row ends after cell 1 of 2; "b" is missing`},
		{"rows", "1,2\n3\n", Ragged, "2:1: the row has 1 cells, the first row 2"},
		{"rows", "1\n3,4,5\n", Ragged, "2:3: the row has 3 cells, the first row 1"},
		{"properties", "a = 1\n b = 2\na: 3", Duplicate, `3:1: key "a" is given again; the first is at 1:1`},
		{"properties", "a = x\\u12g4", Syntax, `1:6: \u needs four hexadecimal digits`},
		{"properties", "a = \\ud800x", Encoding, `1:5: \ud800 is half a character`},
		{"properties", "\xff\xfea\x00", Encoding, "1:1: the file is UTF-16"},
		{"yaml", "a: 1\nb:\n\tc: 2\n", Syntax, "3:1: found character that cannot start any token"},
		{"yaml", "- a\nb: 1", Syntax, "2: did not find expected '-' indicator"},
		{"yaml", "a: 1\né: *x\n", Syntax, `2:4: there is no anchor "x" above`},
		{"yaml", "a: 1\nb: {x: 1,\n  x: 2}", Duplicate, `3:3: key "x" is given again; the first is at 2:5`},
		{"yaml", "é: [ü, .inf]", Number, "1:8: .inf is not a finite number"},
		{"yaml", "a: 1\n---\nb: 2", Unsupported, "a second YAML document begins"},
		{"yaml", "1: a", Unsupported, "1:1: key 1 is not a string"},
		{"yaml", "? [a]\n: b", Unsupported, "1:3: a key is a list or a mapping"},
		{"yaml", "a: !!binary eA==", Unsupported, "1:4: tag !!binary is not of YAML's core schema"},
		{"yaml", "a: !sprite {x: 1}", Unsupported, "1:4: tag !sprite is not of YAML's core schema"},
		{"yaml", "a: !!int x", Unsupported, `1:4: "x" is not of its tag !!int`},
		{"yaml", "a: &a\n  - *a", Unsupported, `1:4: anchor "a" holds an alias of itself`},
		{"yaml", "a:\n  <<: 1", Unsupported, `2:7: "<<" merges mappings only`},
		{"yaml", bomb, Limit, "more than 4194304 values"},
		{"yaml", strings.Repeat("[", 300) + strings.Repeat("]", 300), Limit, "1:201: values are nested more than 200"},
		{"csv", "", Syntax, "1:1: the file has no header"},
		{"csv", "a,,b\n", Syntax, "1:3: column 2 has no name"},
		{"csv", "é,a,é\n", Duplicate, `1:5: key "é" is given again; the first is at 1:1`},
		{"csv", "a,b\né,1,2\n", Ragged, "2:5: the row has 3 cells, the header 2"},
		{"csv", "a,b\n1,2\n\"x\ny\"\n", Ragged, `3:1: the row ends after cell 1 of 2; "b" is missing`},
		{"csv", "é;b\n1;2\n", Ragged, `1:1: the header is one column, "é;b"`},
		{"csv", "a,b\né, \"x\"\n", Syntax, "2:4: white space stands before the quotes"},
		{"csv", "a,b\né,\"x\"y\n", Syntax, "2:6: text stands after the quotes"},
		{"csv", "a,b\né,\"x\ny\n", Syntax, "2:3: the quotes around a cell are not closed"},
		{"csv", "a\n99999999999999999999\n", Number, "2:1: integer 99999999999999999999"},
	} {
		_, err := readers()[c.reader]([]byte(c.text))
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s %.40q: got %v", c.reader, c.text, err)
			continue
		}
		if e.Fault != c.fault || !strings.Contains(e.Error(), c.want) {
			t.Errorf("%s %.40q: got fault %d, %q; want %d, %q", c.reader, c.text, e.Fault, e.Error(), c.fault, c.want)
		}
	}
}

// places lists every key and value with its position, in document order.
func places(b *strings.Builder, pointer string, v *Value) {
	fmt.Fprintf(b, "%s %d:%d+%d\n", pointer, v.Line, v.Column, v.Length)
	switch x := v.V.(type) {
	case []Value:
		for i := range x {
			places(b, fmt.Sprintf("%s/%d", pointer, i), &x[i])
		}
	case Object:
		for i := range x {
			fmt.Fprintf(b, "key %d:%d+%d ", x[i].KeyPos.Line, x[i].KeyPos.Column, x[i].KeyPos.Length)
			places(b, pointer+"/"+x[i].Key, &x[i].Value)
		}
	}
}

func TestPlaces(t *testing.T) {
	for _, c := range []struct{ reader, text, want string }{
		{"json", "{\r\n  \"é\": [\"ü😀\", 1.5,\n\tnull], \"b\": {}}", ` 1:1+1
key 2:3+3 /é 2:8+1
/é/0 2:9+4
/é/1 2:15+3
/é/2 3:2+4
key 3:9+3 /b 3:14+1
`},
		{"relaxed", "{ a: b c\n d: 'e' }", ` 1:1+1
key 1:3+1 /a 1:6+3
key 2:2+1 /d 2:5+3
`},
		{"toml", "a.b = [ # \"é\"\n [1], \"ü\",\n {c = 2}]\n[[t]]\nx = 1979-05-27 # c\n[[t]]\n[t.u]\n\"v w\" = '''\nx'''", ` 1:1+1
key 1:1+1 /a 1:1+1
key 1:3+1 /a/b 1:7+1
/a/b/0 2:2+1
/a/b/0/0 2:3+1
/a/b/1 2:7+3
/a/b/2 3:2+1
key 3:3+1 /a/b/2/c 3:7+1
key 4:3+1 /t 4:3+1
/t/0 4:3+1
key 5:1+1 /t/0/x 5:5+10
/t/1 6:3+1
key 7:4+1 /t/1/u 7:4+1
key 8:1+5 /t/1/u/v w 8:9+3
`},
		{"yaml", "é: &x [ü, 'b c']\nd:\n  - e: *x\n", ` 1:1+1
key 1:1+1 /é 1:4+1
/é/0 1:8+1
/é/1 1:11+5
key 2:1+1 /d 3:3+1
/d/0 3:5+1
key 3:5+1 /d/0/e 1:4+1
/d/0/e/0 1:8+1
/d/0/e/1 1:11+5
`},
		{"csv", "\ufeffa,b\né,\"x\ny\"\n2,zz\n", ` 1:1+1
/0 2:1+1
key 2:1+1 /0/a 2:1+1
key 2:3+2 /0/b 2:3+2
/1 4:1+1
key 4:1+1 /1/a 4:1+1
key 4:3+2 /1/b 4:3+2
`},
	} {
		v, err := readers()[c.reader]([]byte(c.text))
		if err != nil {
			t.Errorf("%s %q: %v", c.reader, c.text, err)
			continue
		}
		var b strings.Builder
		places(&b, "", &v)
		if b.String() != c.want {
			t.Errorf("%s %q:\n%s\nwant\n%s", c.reader, c.text, b.String(), c.want)
		}
	}
}

func TestAt(t *testing.T) {
	v, err := JSON([]byte(`{"a":[{"b":1}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := v.At("a", "0", "b"); got == nil || got.V != int64(1) {
		t.Errorf("got %v", got)
	}
	for _, tokens := range [][]string{{"x"}, {"a", "1"}, {"a", "-1"}, {"a", "x"}, {"a", "0", "b", "c"}} {
		if got := v.At(tokens...); got != nil {
			t.Errorf("%v: got %v", tokens, got)
		}
	}
}

// The numbers of appendix B of RFC 8785.
func TestFloats(t *testing.T) {
	for bits, want := range map[uint64]string{
		0x0000000000000000: "0", 0x8000000000000000: "0", 0x0000000000000001: "5e-324", 0x7fefffffffffffff: "1.7976931348623157e+308",
		0x4340000000000000: "9007199254740992", 0x4430000000000000: "295147905179352830000", 0x44b52d02c7e14af5: "9.999999999999997e+22",
		0x44b52d02c7e14af6: "1e+23", 0x444b1ae4d6e2ef4e: "999999999999999700000", 0x444b1ae4d6e2ef50: "1e+21",
		0x3eb0c6f7a0b5ed8c: "9.999999999999997e-7", 0x3eb0c6f7a0b5ed8d: "0.000001", 0x41b3de4355555553: "333333333.3333332",
		0xbecbf647612f3696: "-0.0000033333333333333333",
	} {
		if got := string(appendFloat(nil, math.Float64frombits(bits))); got != want {
			t.Errorf("%016x: got %s, want %s", bits, got, want)
		}
	}
}

func TestMessagePack(t *testing.T) {
	for text, want := range map[string]string{
		`null`: "c0", `true`: "c3", `false`: "c2", `127`: "7f", `128`: "cc80", `256`: "cd0100", `65536`: "ce00010000",
		`4294967296`:           "cf0000000100000000",
		`18446744073709551615`: "cfffffffffffffffff", `-1`: "ff", `-32`: "e0", `-33`: "d0df", `-129`: "d1ff7f", `-32769`: "d2ffff7fff",
		`-2147483649`: "d3ffffffff7fffffff",
		`1.5`:         "cb3ff8000000000000", `""`: "a0", `{"b":1,"a":[]}`: "82a16190a16201",
		`[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]`: "dc0010" + strings.Repeat("01", 16),
		`"` + strings.Repeat("x", 32) + `"`: "d920" + strings.Repeat("78", 32),
	} {
		v, err := JSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%x", AppendMessagePack(nil, &v)); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func value(depth int) *rapid.Generator[Value] {
	scalars := []*rapid.Generator[any]{
		rapid.Just[any](nil),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.Int64(), func(i int64) any { return i }),
		rapid.Map(rapid.Uint64Min(1<<63), func(u uint64) any { return u }),
		rapid.Map(rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64), func(f float64) any { return f }),
		rapid.Map(rapid.String(), func(s string) any { return s }),
		rapid.Map(rapid.StringN(0, 300, 70000), func(s string) any { return s }),
	}
	return rapid.Custom(func(t *rapid.T) Value {
		kind := rapid.IntRange(0, len(scalars)+1).Draw(t, "kind")
		switch {
		case kind < len(scalars):
			return Value{V: scalars[kind].Draw(t, "scalar")}
		case depth == 0:
			return Value{}
		case kind == len(scalars):
			return Value{V: rapid.SliceOfN(value(depth-1), 0, 20).Draw(t, "array")}
		}
		o := Object{}
		for k, v := range rapid.MapOfN(rapid.String(), value(depth-1), 0, 20).Draw(t, "object") {
			o = append(o, Member{Key: k, Value: v})
		}
		return Value{V: o}
	})
}

// Written data reads back as the same data: JSON with this package's reader, MessagePack with another library's.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := value(3).Draw(t, "value")
		again, err := JSON(AppendJSON(nil, &v))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := normal(again.Plain()), normal(v.Plain()); !reflect.DeepEqual(got, want) {
			t.Fatalf("JSON: got %#v, want %#v", got, want)
		}
		var unpacked any
		if err := msgpack.Unmarshal(AppendMessagePack(nil, &v), &unpacked); err != nil {
			t.Fatal(err)
		}
		if got, want := normal(unpacked), normal(v.Plain()); !reflect.DeepEqual(got, want) {
			t.Fatalf("MessagePack: got %#v, want %#v", got, want)
		}
	})
}

// normal makes numbers comparable: JSON does not distinguish 1.0 from 1, and MessagePack has many integer types.
func normal(v any) any {
	switch x := v.(type) {
	case []any:
		list := make([]any, len(x))
		for i := range x {
			list[i] = normal(x[i])
		}
		return list
	case map[string]any:
		m := map[string]any{}
		for k := range x {
			m[k] = normal(x[k])
		}
		return m
	case float64:
		return string(appendFloat(nil, x))
	}
	if r := reflect.ValueOf(v); v != nil && (r.CanInt() || r.CanUint()) {
		return fmt.Sprint(v)
	}
	return v
}
