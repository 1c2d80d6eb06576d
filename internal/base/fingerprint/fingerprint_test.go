package fingerprint

import (
	"context"
	"io/fs"
	"maps"
	"runtime/debug"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/kiln-pipeline/kiln/processor"
)

// plain is a processor without its source.
type plain struct{}

func (plain) Info() processor.Info                               { return processor.Info{Name: "plain"} }
func (plain) Process(_ context.Context, job processor.Job) error { return nil }

// sourced is one with some, which is not among the values that it holds.
type sourced struct {
	plain
	number int
}

var sources []fstest.MapFS

func with(source fstest.MapFS) *sourced {
	sources = append(sources, source)
	return &sourced{number: len(sources) - 1}
}

func (s *sourced) Source() fs.FS { return sources[s.number] }

const here = "github.com/kiln-pipeline/kiln/internal/base/fingerprint"

// binary is a program whose main module is where these tests are.
func binary(version string, deps ...*debug.Module) Binary {
	info := &debug.BuildInfo{Path: here + "/cmd", Main: debug.Module{Path: here, Version: version, Sum: "h1:here"}, Deps: deps}
	return Binary{info, func() string { return "the program" }}
}

func files(list ...string) fstest.MapFS {
	m := fstest.MapFS{"p.go": {Data: []byte("package p\n\ntype sourced struct{}\n")}}
	for i := 0; i < len(list); i += 2 {
		m[list[i]] = &fstest.MapFile{Data: []byte(list[i+1])}
	}
	return m
}

// made is one that holds something.
type made struct {
	plain
	Size  int
	Names map[string]string
	Sizes []*int
	Any   any
	Do    func()
}

func (m made) Source() fs.FS { return files("m.go", "package p\n\ntype made struct{}\n") }

// TestValues tells which values that processors are made with count.
func TestValues(t *testing.T) {
	one, two := 1, 2
	in := binary("(devel)")
	was := Of(made{}, in)
	seen := map[string]string{}
	for name, tt := range map[string]struct {
		p    made
		want Way
	}{
		"nothing": {made{}, Source}, "a size": {made{Size: 1}, Source}, "another": {made{Size: 2}, Source}, "a name": {made{Names: map[string]string{"a": "b"}}, Source},
		"two names": {made{Names: map[string]string{"a": "b", "c": "d"}}, Source}, "pointers": {made{Sizes: []*int{&one, nil}}, Source}, "others": {made{Sizes: []*int{&two, nil}}, Source},
		"turned round": {made{Sizes: []*int{nil, &one}}, Source},
		"a function":   {made{Do: func() {}}, Program}, "anything": {made{Any: 1}, Program},
	} {
		c := Of(tt.p, in)
		if c.Way != tt.want || (c == was) != (name == "nothing") {
			t.Errorf("%s: %+v", name, c)
		}
		if other := seen[c.Text]; other != "" && c.Way == Source {
			t.Errorf("%s and %s are the same", name, other)
		}
		if seen[c.Text] = name; Of(&tt.p, in) != c {
			t.Errorf("%s: a pointer to it is another", name)
		}
	}
	if a := Of(made{Names: map[string]string{"a": "1", "b": "2", "c": "3"}}, in); a != Of(made{Names: map[string]string{"c": "3", "b": "2", "a": "1"}}, in) {
		t.Error("the order of a map counts")
	}
	type ring struct {
		plain
		next *ring
	}
	r := &ring{}
	r.next = r
	if c := Of(r, binary("v1.0.0")); c.Way != Program {
		t.Errorf("a ring: %+v", c)
	}
}

func TestWay(t *testing.T) {
	team := &debug.Module{Path: "team.example/lib", Version: "v1.2.3", Sum: "h1:x"}
	local := &debug.Module{Path: "team.example/local", Version: "v0.0.0", Replace: &debug.Module{Path: "../local"}}
	for name, tt := range map[string]struct {
		p    processor.Processor
		in   Binary
		want Way
	}{
		"a work tree":                     {plain{}, binary("(devel)"), Program},
		"a pointer":                       {&plain{}, binary("(devel)"), Program},
		"uncommitted changes":             {plain{}, binary("v0.0.0-20260101000000-abcdefabcdef+dirty"), Program},
		"a version":                       {plain{}, binary("v1.0.0"), Module},
		"nothing is known of the program": {plain{}, Binary{nil, func() string { return "the program" }}, Program},
		"its source":                      {with(files()), binary("(devel)"), Source},
		"its source, and a version":       {with(files()), binary("v1.0.0"), Source},
		"the source of another package":   {with(fstest.MapFS{"p.go": {Data: []byte("package p\n")}}), binary("(devel)"), Program},
		"no source":                       {with(fstest.MapFS{}), binary("(devel)"), Program},
		"no Go":                           {with(files("a.go", "packag p")), binary("(devel)"), Program},
		"the standard library":            {with(files("a.go", "package p\nimport \"image/png\"\n")), binary("(devel)"), Source},
		"Kiln's contract":                 {with(files("a.go", "package p\nimport \"github.com/kiln-pipeline/kiln/processor/pack\"\n")), binary("(devel)"), Source},
		"a package of the work tree":      {with(files("a.go", "package p\nimport _ \""+here+"/other\"\n")), binary("(devel)"), Program},
		"one that is there":               {with(files("a.go", "package p\nimport _ \""+here+"/other\"\n", "other/o.go", "package other\n")), binary("(devel)"), Source},
		"one that is there imports more":  {with(files("a.go", "package p\nimport _ \""+here+"/other\"\n", "other/o.go", "package other\nimport _ \""+here+"\"\nimport _ \""+here+"/more\"\n")), binary("(devel)"), Program},
		"a test imports more":             {with(files("a_test.go", "package p\nimport _ \""+here+"/more\"\n")), binary("(devel)"), Source},
		"a module":                        {with(files("a.go", "package p\nimport _ \"team.example/lib/x\"\n")), binary("(devel)", team), Source},
		"a module beside it":              {with(files("a.go", "package p\nimport _ \"team.example/local\"\n")), binary("(devel)", team, local), Program},
		"C":                               {with(files("a.go", "package p\nimport \"C\"\n")), binary("(devel)"), Program},
		"assembly":                        {with(files("a.go", "package p\nfunc f()\n")), binary("(devel)"), Program},
		"an embedded file":                {with(files("a.go", "package p\n\n//go:embed *.go data/*.txt\nvar x string\n", "data/a.txt", "a")), binary("(devel)"), Source},
		"an embedded file elsewhere":      {with(files("a.go", "package p\n\n//go:embed \"data/*.txt\"\nvar x string\n")), binary("(devel)"), Program},
	} {
		c := Of(tt.p, tt.in)
		if c.Way != tt.want || c.Text == "" || c.Way == Program && c.Text != "the program" {
			t.Errorf("%s: %+v, not by %s", name, c, tt.want)
		}
	}
}

// TestChanges tells what makes another fingerprint of source that is there.
func TestChanges(t *testing.T) {
	base := files("a.go", "package p\nimport _ \"team.example/lib/x\"\n", "words.txt", "a")
	of := func(edit func(fstest.MapFS), version string) string {
		source := maps.Clone(base)
		edit(source)
		lib := &debug.Module{Path: "team.example/lib", Version: version, Sum: "h1:x"}
		kiln := &debug.Module{Path: "github.com/kiln-pipeline/kiln", Version: version}
		sources = []fstest.MapFS{source}
		c := Of(&sourced{}, Binary{&debug.BuildInfo{Path: "main", Main: debug.Module{Path: here}, Deps: []*debug.Module{kiln, lib}}, nil})
		if c.Way != Source {
			t.Fatalf("by %s", c.Way)
		}
		return c.Text
	}
	put := func(name, text string) func(fstest.MapFS) {
		return func(m fstest.MapFS) { m[name] = &fstest.MapFile{Data: []byte(text)} }
	}
	was := of(func(fstest.MapFS) {}, "v1.0.0")
	for name, tt := range map[string]struct {
		edit    func(fstest.MapFS)
		version string
		other   bool
	}{
		"nothing":           {func(fstest.MapFS) {}, "v1.0.0", false},
		"a test":            {put("p_test.go", "package p\n"), "v1.0.0", false},
		"a line":            {put("p.go", "package p\n\ntype sourced struct{ x int }\n"), "v1.0.0", true},
		"a file":            {put("b.go", "package p\n"), "v1.0.0", true},
		"an embedded file":  {put("words.txt", "b"), "v1.0.0", true},
		"a file less":       {func(m fstest.MapFS) { delete(m, "words.txt") }, "v1.0.0", true},
		"a module's update": {func(fstest.MapFS) {}, "v1.0.1", true},
	} {
		if got := of(tt.edit, tt.version) != was; got != tt.other {
			t.Errorf("%s: another fingerprint: %v", name, got)
		}
	}
	if strings.Contains(Of(plain{}, This()).Text, "process") {
		t.Error("the program of these tests cannot be read")
	}
}
