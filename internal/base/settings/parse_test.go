package settings

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kiln-pipeline/kiln/internal/processors"
	"github.com/kiln-pipeline/kiln/processor"
)

type free struct {
	X map[string]any `toml:"x" doc:"d"`
}

// allInfos are those of all processors, and of one with settings of all types.
func allInfos() []processor.Info {
	all := []processor.Info{sampleInfo()}
	for _, p := range processors.All() {
		all = append(all, p.Info())
	}
	return all
}

// wantRoundTrip checks that settings are read back from their text.
func wantRoundTrip(t *testing.T, what string, value any) {
	t.Helper()
	text := Canonical(value)
	got, err := Parse(value, text)
	if err != nil {
		t.Fatalf("%s: %v\n%s", what, err, text)
	}
	if !reflect.DeepEqual(value, got) || string(Canonical(got)) != string(text) {
		t.Fatalf("%s: %s\n%s", what, text, cmp.Diff(value, got))
	}
}

// TestParse: what Canonical writes of any settings of any processor is read back as the same.
func TestParse(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, info := range allInfos() {
		value, diags := Resolve(info, nil)
		if diags != nil {
			t.Fatal(diags)
		}
		if info.Settings == nil {
			if got, err := Parse(nil, nil); err != nil || got != nil {
				t.Errorf("%s: %v, %v", info.Name, got, err)
			}
			continue
		}
		wantRoundTrip(t, info.Name+", defaults", value)
		for n := range 200 {
			x := reflect.New(reflect.TypeOf(info.Settings).Elem())
			random(r, x.Elem(), 4)
			wantRoundTrip(t, fmt.Sprintf("%s, random settings %d", info.Name, n), x.Interface())
		}
	}
}

// random fills a value with anything that it can hold.
func random(r *rand.Rand, v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			random(r, v.Field(i), depth)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(4), 4))
		for i := range v.Len() {
			random(r, v.Index(i), depth-1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range r.IntN(4) {
			x := reflect.New(v.Type().Elem()).Elem()
			random(r, x, depth-1)
			v.SetMapIndex(reflect.ValueOf(randomText(r)), x)
		}
	case reflect.Interface:
		kinds := []reflect.Type{reflect.TypeFor[string](), reflect.TypeFor[bool](), reflect.TypeFor[int64](), reflect.TypeFor[float64]()}
		if depth > 0 {
			kinds = append(kinds, reflect.TypeFor[[]any](), reflect.TypeFor[map[string]any]())
		}
		x := reflect.New(kinds[r.IntN(len(kinds))]).Elem()
		random(r, x, depth)
		v.Set(x)
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(r.Uint64()) >> r.IntN(64))
	case reflect.Float64:
		some := []float64{0, math.Copysign(0, -1), 1, 1e21, 0.1, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(1), math.Inf(-1)}
		if x := math.Float64frombits(r.Uint64()); r.IntN(2) == 0 && x == x {
			some = []float64{x}
		}
		v.SetFloat(some[r.IntN(len(some))])
	case reflect.String:
		v.SetString(randomText(r))
	}
}

func randomText(r *rand.Rand) string {
	pieces := []string{
		"", "a", "true", "1", ", ", " = ", "\n", "\r\n", `"`, `\`, "]", " }", "{}", "\x00", "\xff", "\ufffd", "ä", "\u202e", "😀", "'", "`", "#", ".",
	}
	var b strings.Builder
	for range r.IntN(5) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

// TestParseRefuses: what Canonical would not write is refused with its line, and why.
func TestParseRefuses(t *testing.T) {
	whole := string(Canonical(sampleInfo().Settings))
	edit := func(was, is string) string {
		t.Helper()
		if !strings.Contains(whole, was) {
			t.Fatalf("no %q in\n%s", was, whole)
		}
		return strings.Replace(whole, was, is, 1)
	}
	for _, c := range []struct{ text, want string }{
		{edit("mips = true\n", ""), `setting "mips" is missing`},
		{edit("mips = true", "mips"), `line 7: "mips\n" is not of the form name = value`},
		{edit("mips = true", "mops = true"), `line 7: no setting is called "mops", or it is there twice`},
		{whole + "mips = true\n", `line 11: no setting is called "mips", or it is there twice`},
		{edit("mips = true", "mips = 1"), `line 7: setting "mips": "1" is neither true nor false`},
		{edit("mips = true", "mips = true "), `line 7: setting "mips": " " is left over`},
		{edit("big = 0", "big = 0.0"), `line 1: setting "big": "0.0" is not an integer of 64 bits`},
		{edit("big = 0", "big = 9223372036854775808"), `line 1: setting "big": "9223372036854775808" is not an integer of 64 bits`},
		{edit("big = 0", "big = +0"), `line 1: not in canonical form, which is "big = 0\n"`},
		{edit("gamma = 1.0", "gamma = 1"), `line 2: not in canonical form, which is "font.gamma = 1.0\n"`},
		{edit("gamma = 1.0", "gamma = x"), `line 2: setting "font.gamma": "x" is not a number`},
		{edit("gamma = 1.0", "gamma = 1e999"), `line 2: setting "font.gamma": "1e999" is not a number`},
		{edit(`"rgba8"`, `rgba8`), `line 4: setting "format": "rgba8" does not begin with a string in quotes`},
		{edit(`"rgba8"`, "`rgba8`"), `line 4: not in canonical form, which is "format = \"rgba8\"\n"`},
		{edit(`"rgba8"`, `"rgba8`), `line 4: setting "format": "\"rgba8" does not begin with a string in quotes`},
		{edit("[1, 2]", "[1,2]"), `line 9: setting "sizes": ", " is expected before ",2]"`},
		{edit("[1, 2]", "[1, 2"), `line 9: setting "sizes": ", " is expected before ""`},
		{edit("[1, 2]", "[1, ]"), `line 9: setting "sizes": "" is not an integer of 64 bits`},
		{edit("[1, 2]", "1"), `line 9: setting "sizes": "[" is expected before "1"`},
		{edit(`{ "x" = 1 }`, `{ "x" = one }`), `line 5: setting "free": "one" is not a number`},
		{edit(`{ "x" = 1 }`, `{ "x" = 1, "x" = 2 }`), "line 5: not in canonical form"},
		{edit(`{ "x" = 1 }`, `{ x = 1 }`), `line 5: setting "free": "x = 1 } }" does not begin with a string in quotes`},
		{edit(`{ "x" = 1 }`, strings.Repeat("[", maxDepth)), `line 5: setting "free": more than 10000 tables and lists lie in each other`},
		{edit("mips = true\nnames = []\n", "names = []\nmips = true\n"), `line 7: not in canonical form, which is "mips = true\n"`},
		{strings.TrimSuffix(whole, "\n"), `line 10: not in canonical form, which is "tags = { \"a\" = \"1\" }\n"`},
	} {
		if _, err := Parse(sampleInfo().Settings, []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("want %s, got %v", c.want, err)
		}
	}
	if _, err := Parse(nil, []byte("x = 1\n")); err == nil {
		t.Error("a processor without settings has some")
	}
}

// TestEqualTexts: settings with one canonical text are the same for a processor, whoever gave them: its own defaults or a file.
func TestEqualTexts(t *testing.T) {
	info := func(x map[string]any) processor.Info {
		return processor.Info{Name: "free", Extensions: []string{".x"}, Settings: &free{x}}
	}
	table := func(t *Table) *Value { return &Value{Kind: Inner, Table: t} }
	for _, c := range []struct {
		code map[string]any
		file *Table
	}{
		{nil, tab(1)},
		{map[string]any{"n": 1}, tab(1, "n", i(1))},
		{map[string]any{"n": int8(1), "s": []string{"a"}}, tab(1, "n", i(1), "s", arr(s("a")))},
		{map[string]any{"t": map[string]string{"a": "b"}, "l": []map[string]int{{"x": 1}}},
			tab(1, "t", tab(1, "a", s("b")), "l", arr(table(tab(1, "x", i(1)))))},
	} {
		if err := Check(info(c.code)); err != nil {
			t.Fatal(err)
		}
		code, _ := Resolve(info(c.code), nil)
		file, diags := Resolve(info(nil), []Layer{{Table: tab(1, "x", table(c.file))}})
		if diags != nil {
			t.Fatal(diags)
		}
		if d := cmp.Diff(code, file); d != "" || string(Canonical(code)) != string(Canonical(file)) || JSON(code) != JSON(file) {
			t.Errorf("%s%s%s", Canonical(code), Canonical(file), d)
		}
		wantRoundTrip(t, "from code", code)
	}
	empty, _ := Resolve(sampleInfo(), []Layer{{Table: tab(1, "names", arr())}})
	none, _ := Resolve(sampleInfo(), nil)
	if d := cmp.Diff(empty, none); d != "" || JSON(empty) != JSON(none) {
		t.Errorf("a missing list is not an empty one: %s", d)
	}
}

// FuzzParse: what is taken is what Canonical writes.
func FuzzParse(f *testing.F) {
	infos := allInfos()
	for i, info := range infos {
		f.Add(i, Canonical(info.Settings))
	}
	f.Add(0, []byte("free = { \"a\" = [true, -0.0, +Inf, NaN, { \"b\" = {} }] }\n"))
	f.Fuzz(func(t *testing.T, i int, text []byte) {
		like := infos[uint(i)%uint(len(infos))].Settings
		value, err := Parse(like, text)
		if err == nil && string(Canonical(value)) != string(text) {
			t.Errorf("%q is taken as %q", text, Canonical(value))
		}
	})
}
