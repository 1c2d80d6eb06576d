package build

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/explain"
	"github.com/kiln-pipeline/kiln/internal/make/view"
)

const parted = `
-- assets/set.s --
ask a.txt +b.txt
-- assets/user.s --
use set.s
-- assets/lister.s --
list set.s
-- assets/a.txt --
aaa
-- assets/b.txt --
bbb
-- assets/c.txt --
cc
`

// TestParts edits what the parts of a job read, and wants just those to run that it reaches.
func TestParts(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(p *fixture)
		ran  string
	}{
		{"nothing", func(p *fixture) {}, ""},
		{"content of the same length", func(p *fixture) { p.write("assets/a.txt", "AAA\n") }, "a.txt set.s#a.txt"},
		{"the same through another part", func(p *fixture) { p.write("assets/b.txt", "BBB\n") }, "b.txt set.s#+b.txt set.s#b.txt"},
		{"another length", func(p *fixture) { p.write("assets/b.txt", "longer\n") }, "b.txt set.s set.s#+b.txt set.s#b.txt user.s"},
		{"another part", func(p *fixture) { p.write("assets/set.s", "ask a.txt c.txt\n") }, "set.s set.s#c.txt user.s"},
		{"one part less", func(p *fixture) { p.write("assets/set.s", "ask a.txt\n") }, "set.s user.s"},
		{"a part fails", func(p *fixture) { p.write("assets/a.txt", "fail") }, "a.txt lister.s set.s set.s#a.txt user.s"},
		{"a part's file is gone", func(p *fixture) { p.remove("assets/a.txt") }, "lister.s set.s set.s#a.txt user.s"},
		{"the asset is gone", func(p *fixture) { p.remove("assets/set.s") }, "lister.s user.s"},
		{"a hidden product that nobody wants is lost with its blob", func(p *fixture) { p.remove(blobFile("bbb\n")); p.write("assets/a.txt", "AAA\n") }, "a.txt set.s#a.txt"},
		{"all blobs are lost", func(p *fixture) { p.remove(".kiln/cas") }, "set.s#+b.txt set.s#a.txt set.s#b.txt"},
		{"a hidden product is lost with its blob", func(p *fixture) { p.remove(".kiln/cas"); p.write("assets/a.txt", "longer\n") }, "a.txt set.s set.s#a.txt set.s#b.txt set.s#+b.txt user.s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, parted)
			p.age()
			if b := p.build(); b.Built != 6 || b.Failed != 0 || b.Jobs != 6 || b.Products != 6+3 {
				t.Fatalf("first: %+v %s %s", b.Summary, b.ran, b.messages)
			}
			p.nothing()
			tt.do(p)
			b := p.build()
			if got := strings.Fields(b.ran); len(got) != len(strings.Fields(tt.ran)) || !sameWords(b.ran, tt.ran) {
				t.Errorf("ran %q, want %q\n%s", b.ran, tt.ran, b.messages)
			}
			p.nothing()
			if b.Failed > 0 {
				for _, m := range b.list {
					if m.Text == "" {
						t.Errorf("an empty message: %+v", m)
					}
				}
			}
		})
	}
}

func sameWords(a, b string) bool {
	words := map[string]int{}
	for _, w := range strings.Fields(a) {
		words[w]++
	}
	for _, w := range strings.Fields(b) {
		words[w]--
	}
	for _, n := range words {
		if n != 0 {
			return false
		}
	}
	return true
}

// TestPartsGoBack goes back and forth between two states of a job with parts, without anything that runs twice.
func TestPartsGoBack(t *testing.T) {
	p := newProject(t, parted)
	p.age()
	p.build()
	p.write("assets/set.s", "take c.txt\n")
	p.wants("set.s set.s#c.txt user.s")
	if p.read("build/pc/set.s.a.txt.part") != "" || p.read("build/pc/set.s.c.txt.part") != "c.txt" {
		t.Error("the products of parts are not those of the job as it is")
	}
	p.write("assets/set.s", "ask a.txt +b.txt\n")
	p.wants("")
	if p.read("build/pc/set.s.a.txt.part") != "a.txt" || p.read("build/pc/set.s.c.txt.part") != "" {
		t.Error("the products of parts are not those of the job as it is")
	}
}

// TestPartsStay: a part that a job asks for no more stays as long as another part asks for it, which nothing reaches.
func TestPartsStay(t *testing.T) {
	p := newProject(t, parted)
	p.write("assets/set.s", "ask a.txt b.txt +b.txt\n")
	p.age()
	p.build()
	p.write("assets/set.s", "ask a.txt +b.txt\n")
	if b := p.build(); b.ran != "set.s user.s" || !b.short {
		t.Errorf("ran %q, short %t", b.ran, b.short)
	}
	if p.read("build/pc/set.s.b.txt.part") != "b.txt" {
		t.Error("the part is gone")
	}
	p.nothing()
	p.write("assets/set.s", "ask a.txt\n")
	if b := p.build(); !b.short || p.read("build/pc/set.s.b.txt.part") != "" {
		t.Errorf("the part is still there; short %t", b.short)
	}
	p.nothing()
}

// TestLookAtParts: who looks at a job that is to be built again sees its parts, and through them what changed.
func TestLookAtParts(t *testing.T) {
	p := newProject(t, "-- assets/a.s --\ntake x.txt y.txt\n-- assets/x.txt --\nx\n-- assets/y.txt --\ny\n")
	p.build()
	p.write("assets/x.txt", "other\n")
	v, err := p.open().Look(context.Background(), nil, nil)
	p.must(err)
	j := v.Assets[0].Jobs[0]
	if why := explain.Reason(j.Why); j.State != view.Stale || !strings.HasPrefix(why, "x.txt changed") || len(j.Parts) == 0 {
		t.Errorf("%v, because %s; %d parts", j.State, why, len(j.Parts))
	}
	var parts []string
	v.Traces(func(_ *asset.Asset, _, _, part string, _ *engine.Trace) { parts = append(parts, part) })
	if slices.Sort(parts); !slices.Equal(parts, []string{"", "", "", "x.txt", "y.txt"}) {
		t.Errorf("there are traces of %q", parts)
	}
}
