package settings

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/processor"
)

type font struct {
	Size  int     `toml:"size" doc:"Size." min:"1" max:"100"`
	Gamma float64 `toml:"gamma" doc:"Gamma." min:"0.5"`
}

type sample struct {
	Mips    bool              `toml:"mips" doc:"Mip chain."`
	Format  string            `toml:"format" doc:"Format." values:"rgba8,r8,rg8"`
	MaxSize int               `toml:"max_size" doc:"Largest side." min:"0" max:"16384"`
	Big     int64             `toml:"big" doc:"Big."`
	Sizes   []int             `toml:"sizes" doc:"Sizes." min:"1"`
	Names   []string          `toml:"names" doc:"Names."`
	Tags    map[string]string `toml:"tags" doc:"Tags."`
	Free    map[string]any    `toml:"free" doc:"Anything."`
	Font    font              `toml:"font"`
}

func sampleInfo() processor.Info {
	return processor.Info{Name: "sample", Version: 1, Extensions: []string{".png"}, Settings: &sample{
		Mips: true, Format: "rgba8", Sizes: []int{1, 2}, Tags: map[string]string{"a": "1"},
		Free: map[string]any{"inner": map[string]any{"x": int64(1)}}, Font: font{12, 1},
	}}
}

// values in tests stand in no file, but for the line they are given.
func at(line int) Span { return Span{Pos: diag.Pos{File: "t", Line: line, Column: 1}, Length: 1} }

func s(x string) *Value      { return &Value{Kind: String, Str: x} }
func i(x int64) *Value       { return &Value{Kind: Integer, Int: x} }
func f(x float64) *Value     { return &Value{Kind: Float, Float: x} }
func yes(x bool) *Value      { return &Value{Kind: Bool, Bool: x} }
func arr(x ...*Value) *Value { return &Value{Kind: Array, Array: x} }

// tab makes a table; the values' lines count from the given one.
func tab(line int, pairs ...any) *Table {
	t := &Table{Span: at(line)}
	for n := 0; n < len(pairs); n += 2 {
		v := pairs[n+1]
		if x, ok := v.(*Table); ok {
			v = &Value{Kind: Inner, Table: x}
		}
		value := v.(*Value)
		value.Span = at(line + n/2)
		t.Entries = append(t.Entries, Entry{pairs[n].(string), at(line + n/2), value})
	}
	return t
}

func TestResolve(t *testing.T) {
	info := sampleInfo()
	layers := []Layer{
		{Table: tab(10, "mips", yes(false), "font", tab(20, "size", i(9)), "tags", tab(30, "b", s("2")))},
		{Table: nil},
		{Table: tab(40, "sizes", arr(i(7)), "font", tab(50, "gamma", i(2)), "format", s("r8"))},
		{Table: tab(60, "free", tab(70, "inner", tab(80, "y", arr(s("z"))), "k", f(1.5)), "wav_only", i(3)), Lenient: true},
	}
	value, diags := Resolve(info, layers)
	if diags != nil {
		t.Fatal(diags)
	}
	want := &sample{
		Format: "r8", Sizes: []int{7}, Names: []string{}, Tags: map[string]string{"a": "1", "b": "2"}, Font: font{9, 2},
		Free: map[string]any{"inner": map[string]any{"x": int64(1), "y": []any{"z"}}, "k": 1.5},
	}
	if d := cmp.Diff(want, value); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(sampleInfo().Settings, info.Settings); d != "" {
		t.Errorf("the defaults were changed:\n%s", d)
	}
	got := map[string]string{}
	for _, o := range Origins(value, layers) {
		got[o.Name] = o.Value + " @" + o.Span.Pos.String()
	}
	wantOrigins := map[string]string{
		"mips": "false @t:10:1", "format": `"r8" @t:42:1`, "max_size": "0 @", "big": "0 @", "sizes": "[7] @t:40:1",
		"names": "[] @", "tags.a": `"1" @`, "tags.b": `"2" @t:30:1`, "font.size": "9 @t:20:1", "font.gamma": "2.0 @t:50:1",
		"free.inner": `{ "x" = 1, "y" = ["z"] } @t:70:1`, "free.k": "1.5 @t:71:1",
	}
	if d := cmp.Diff(wantOrigins, got); d != "" {
		t.Error(d)
	}
}

func TestResolveRefuses(t *testing.T) {
	cases := []struct {
		name  string
		value *Value
		want  string
	}{
		{"formt", s("r8"), `K0003 processor "sample" has no setting "formt" | did you mean "format"?`},
		{"zzzzzzz", s("r8"), `K0003 processor "sample" has no setting "zzzzzzz" | it has mips, format, max_size, big, sizes, names, tags, free, font`},
		{"mips", s("true"), `K0004 setting "mips" of sample must be a boolean, not a string | write true, without quotes`},
		{"mips", i(1), `K0004 setting "mips" of sample must be a boolean, not an integer | write true or false`},
		{"max_size", s("512"), `K0004 setting "max_size" of sample must be an integer, not a string | write 512, without quotes`},
		{"max_size", f(512), `K0004 setting "max_size" of sample must be an integer, not a float | `},
		{"max_size", i(-1), `K0005 setting "max_size" of sample is below 0 | 0 to 16384`},
		{"max_size", i(99999), `K0005 setting "max_size" of sample is above 16384 | 0 to 16384`},
		{"format", s("rgb8"), `K0005 setting "format" of sample cannot be "rgb8" | did you mean "rgba8"?`},
		{"format", s("float"), `K0005 setting "format" of sample cannot be "float" | one of rgba8, r8, rg8`},
		{"format", i(8), `K0004 setting "format" of sample must be a string, not an integer | put it in quotes`},
		{"sizes", i(8), `K0004 setting "sizes" of sample must be a list of integer, not an integer | put it in brackets: []`},
		{"sizes", arr(i(3), i(0)), `K0005 setting "sizes[1]" of sample is below 1 | 1 or more`},
		{"tags", s("x"), `K0004 setting "tags" of sample must be a table of string, not a string | `},
		{"tags", &Value{Kind: Inner, Table: tab(1, "x", i(1))}, `K0004 setting "tags.x" of sample must be a string, not an integer | put it in quotes`},
		{"font", i(3), `K0004 setting "font" of sample must be a table, not an integer | `},
		{"font", &Value{Kind: Inner, Table: tab(1, "siz", i(1))}, `K0003 processor "sample" has no setting "font.siz" | did you mean "size"?`},
		{"font", &Value{Kind: Inner, Table: tab(1, "gamma", f(math.Inf(1)))}, `K0005 setting "font.gamma" of sample is not a finite number | write a number, or leave the setting out`},
		{"font", &Value{Kind: Inner, Table: tab(1, "gamma", f(0.25))}, `K0005 setting "font.gamma" of sample is below 0.5 | 0.5 or more`},
		{"free", &Value{Kind: Inner, Table: tab(1, "d", &Value{Kind: Time})}, `K0004 setting "free.d" of sample cannot be a date or time | write it as a string`},
	}
	defaults, _ := Resolve(sampleInfo(), nil)
	for _, c := range cases {
		value, diags := Resolve(sampleInfo(), []Layer{{Table: tab(1, c.name, c.value)}})
		if len(diags) != 1 {
			t.Errorf("%s: %d messages: %v", c.name, len(diags), diags)
			continue
		}
		if got := string(diags[0].Code) + " " + diags[0].Text + " | " + diags[0].Hint; got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
		if c.name != "tags" && c.name != "free" && !reflect.DeepEqual(value, defaults) {
			t.Errorf("%s: what was refused was set all the same", c.name)
		}
	}
	_, diags := Resolve(processor.Info{Name: "copy"}, []Layer{{Table: tab(1, "x", i(1))}, {Table: tab(2, "y", i(1)), Lenient: true}})
	if len(diags) != 1 || diags[0].Text != `processor "copy" has no settings` {
		t.Errorf("got %v", diags)
	}
}

func TestCanonical(t *testing.T) {
	want := strings.Join([]string{
		`big = 0`, `font.gamma = 1.0`, `font.size = 12`, `format = "rgba8"`, `free = { "inner" = { "x" = 1 } }`, `max_size = 0`,
		`mips = true`, `names = []`, `sizes = [1, 2]`, `tags = { "a" = "1" }`, ``,
	}, "\n")
	if got := string(Canonical(sampleInfo().Settings)); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if Canonical(nil) != nil {
		t.Error("no settings have a canonical text")
	}
	// Whatever differs must differ in the text.
	texts := map[string]int{}
	for n, change := range []func(*sample){
		func(*sample) {}, func(x *sample) { x.Mips = false }, func(x *sample) { x.Names = []string{""} },
		func(x *sample) { x.Names = []string{"a", "b"} }, func(x *sample) { x.Names = []string{`a", "b`} },
		func(x *sample) { x.Free = map[string]any{"k": "1"} }, func(x *sample) { x.Free = map[string]any{"k": int64(1)} },
		func(x *sample) { x.Free = map[string]any{"k": 1.0} }, func(x *sample) { x.Free = map[string]any{"k": []any{}} },
		func(x *sample) { x.Free = map[string]any{"k": map[string]any{}} }, func(x *sample) { x.Free = nil },
		func(x *sample) { x.Tags = map[string]string{"a = 1": ""} }, func(x *sample) { x.Font.Gamma = math.Copysign(0, -1) },
		func(x *sample) { x.Font.Gamma = 0 },
	} {
		x := sampleInfo()
		change(x.Settings.(*sample))
		text := string(Canonical(x.Settings))
		if other, ok := texts[text]; ok {
			t.Errorf("changes %d and %d have the same text", other, n)
		}
		texts[text] = n
	}
}

func TestDescribe(t *testing.T) {
	var got []string
	for _, x := range Describe(sampleInfo()) {
		got = append(got, x.Name+": "+x.Type+" = "+x.DefaultText()+" "+strings.Join(x.Values, "|")+x.Min+".."+x.Max)
	}
	want := []string{
		`mips: boolean = true ..`, `format: string = "rgba8" rgba8|r8|rg8..`, `max_size: integer = 0 0..16384`, `big: integer = 0 ..`,
		`sizes: list of integer = [1, 2] 1..`, `names: list of string = [] ..`, `tags: table of string = { "a" = "1" } ..`,
		`free: table = { "inner" = { "x" = 1 } } ..`, `font.size: integer = 12 1..100`, `font.gamma: number = 1.0 0.5..`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestCheck(t *testing.T) {
	if err := Check(sampleInfo()); err != nil {
		t.Error(err)
	}
	if err := Check(processor.Info{Name: "copy"}); err != nil {
		t.Error(err)
	}
	type inner struct{ X int }
	cases := []struct {
		info processor.Info
		want string
	}{
		{processor.Info{Name: "Copy"}, "lower case"},
		{processor.Info{Name: "none"}, "not none"},
		{processor.Info{Name: "a", Extensions: []string{"png"}}, `extension "png"`},
		{processor.Info{Name: "a", Extensions: []string{".PNG"}}, `extension ".PNG"`},
		{processor.Info{Name: "a", Extensions: []string{".a", ".a"}}, "twice"},
		{processor.Info{Name: "a", Settings: sample{}}, "not a pointer to a struct"},
		{processor.Info{Name: "a", Settings: (*sample)(nil)}, "not a pointer to a struct"},
		{processor.Info{Name: "a", Settings: &struct{ x int }{}}, "not exported"},
		{processor.Info{Name: "a", Settings: &struct{ X int }{}}, "no usable tag"},
		{processor.Info{Name: "a", Settings: &struct{ inner }{}}, "embedded"},
		{processor.Info{Name: "a", Settings: &struct {
			X int `toml:"x"`
		}{}}, "no tag doc"},
		{processor.Info{Name: "a", Settings: &struct {
			X int `toml:"x" doc:"d"`
			Y int `toml:"x" doc:"d"`
		}{}}, "twice"},
		{processor.Info{Name: "a", Settings: &struct {
			X int32 `toml:"x" doc:"d"`
		}{}}, "int32, which files cannot give"},
		{processor.Info{Name: "a", Settings: &struct {
			X []font `toml:"x" doc:"d"`
		}{}}, "which files cannot give"},
		{processor.Info{Name: "a", Settings: &struct {
			X int `toml:"x" doc:"d" values:"a"`
		}{}}, "is not a string"},
		{processor.Info{Name: "a", Settings: &struct {
			X int `toml:"x" doc:"d" min:"0.5"`
		}{}}, `min "0.5" does not fit`},
		{processor.Info{Name: "a", Settings: &struct {
			X string `toml:"x" doc:"d" max:"5"`
		}{}}, `max "5" does not fit`},
		{processor.Info{Name: "a", Settings: &struct {
			X int `toml:"x" doc:"d" min:"1"`
		}{}}, "out of its bounds"},
		{processor.Info{Name: "a", Settings: &struct {
			X string `toml:"x" doc:"d" values:"a,b"`
		}{}}, `default "" is none of its values`},
		{processor.Info{Name: "a", Settings: &free{map[string]any{"x": []any{nil}}}}, "something that files cannot give"},
		{processor.Info{Name: "a", Settings: &free{map[string]any{"x": math.NaN()}}}, "something that files cannot give"},
		{processor.Info{Name: "a", Settings: &free{map[string]any{"x": map[int]string{1: ""}}}}, "something that files cannot give"},
	}
	for _, c := range cases {
		if err := Check(c.info); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("want %q, got %v", c.want, err)
		}
	}
}

func TestText(t *testing.T) {
	text := NewText("f.toml", []byte("a = 1\r\nö = \"x\"\n"))
	m := text.At(2, 5, 99).Errorf(diag.BadValue, "no")
	if got, want := m.String(), "f.toml:2:5: error[K0005]: no\n    ö = \"x\"\n        ^^^\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, at := range [][2]int{{0, 0}, {-1, -1}, {1, 99}, {99, 1}, {3, 1}} {
		x := text.At(at[0], at[1], 3)
		if x.Line < 1 || x.Column < 1 || len(x.Source()) > 3 {
			t.Errorf("%v is at %v", at, x.Pos)
		}
	}
}

func BenchmarkResolve(b *testing.B) {
	info := sampleInfo()
	layers := []Layer{{Table: tab(10, "mips", yes(false), "font", tab(20, "size", i(9)))}, {Table: tab(40, "sizes", arr(i(7)), "format", s("r8"))}}
	for b.Loop() {
		v, _ := Resolve(info, layers)
		Canonical(v)
	}
}
