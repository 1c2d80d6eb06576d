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

// sourced is one with some.
type sourced struct {
	plain
	source fstest.MapFS
}

func (s *sourced) Source() fs.FS { return s.source }

const here = "github.com/kiln-pipeline/kiln/internal/fingerprint"

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
		"its source":                      {&sourced{source: files()}, binary("(devel)"), Source},
		"its source, and a version":       {&sourced{source: files()}, binary("v1.0.0"), Source},
		"the source of another package":   {&sourced{source: fstest.MapFS{"p.go": {Data: []byte("package p\n")}}}, binary("(devel)"), Program},
		"no source":                       {&sourced{source: fstest.MapFS{}}, binary("(devel)"), Program},
		"no Go":                           {&sourced{source: files("a.go", "packag p")}, binary("(devel)"), Program},
		"the standard library":            {&sourced{source: files("a.go", "package p\nimport \"image/png\"\n")}, binary("(devel)"), Source},
		"Kiln's contract":                 {&sourced{source: files("a.go", "package p\nimport \"github.com/kiln-pipeline/kiln/processor/pack\"\n")}, binary("(devel)"), Source},
		"a package of the work tree":      {&sourced{source: files("a.go", "package p\nimport _ \""+here+"/other\"\n")}, binary("(devel)"), Program},
		"one that is there":               {&sourced{source: files("a.go", "package p\nimport _ \""+here+"/other\"\n", "other/o.go", "package other\n")}, binary("(devel)"), Source},
		"one that is there imports more":  {&sourced{source: files("a.go", "package p\nimport _ \""+here+"/other\"\n", "other/o.go", "package other\nimport _ \""+here+"\"\nimport _ \""+here+"/more\"\n")}, binary("(devel)"), Program},
		"a test imports more":             {&sourced{source: files("a_test.go", "package p\nimport _ \""+here+"/more\"\n")}, binary("(devel)"), Source},
		"a module":                        {&sourced{source: files("a.go", "package p\nimport _ \"team.example/lib/x\"\n")}, binary("(devel)", team), Source},
		"a module beside it":              {&sourced{source: files("a.go", "package p\nimport _ \"team.example/local\"\n")}, binary("(devel)", team, local), Program},
		"C":                               {&sourced{source: files("a.go", "package p\nimport \"C\"\n")}, binary("(devel)"), Program},
		"assembly":                        {&sourced{source: files("a.go", "package p\nfunc f()\n")}, binary("(devel)"), Program},
		"an embedded file":                {&sourced{source: files("a.go", "package p\n\n//go:embed *.go data/*.txt\nvar x string\n", "data/a.txt", "a")}, binary("(devel)"), Source},
		"an embedded file elsewhere":      {&sourced{source: files("a.go", "package p\n\n//go:embed \"data/*.txt\"\nvar x string\n")}, binary("(devel)"), Program},
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
		c := Of(&sourced{source: source}, Binary{&debug.BuildInfo{Path: "main", Main: debug.Module{Path: here}, Deps: []*debug.Module{kiln, lib}}, nil})
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
