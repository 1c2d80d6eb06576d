package build

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/delivery/ids"
)

// renamed are the messages of a build about files that look renamed.
func (b built) renamed() (l []string) {
	for _, m := range b.list {
		if m.Code == diag.IDsRenamed {
			from, _, _ := strings.Cut(strings.TrimPrefix(m.Text, "looks like "), ", renamed")
			l = append(l, from+" > "+m.File)
		}
	}
	return l
}

// TestLooksRenamed: a file or folder that looks renamed is reported once, in builds of few tasks and of all, if its asset is called by its
// path.
func TestLooksRenamed(t *testing.T) {
	project := `
-- kiln.toml --
[project]
name = "test"
[[rules]]
match = "named/new.txt"
id = "called"
[[parcels]]
name = "all"
assets = ["**"]
-- assets/keep.txt --
keep
-- assets/a.txt --
a
-- assets/b.txt --
b
-- assets/same1.txt --
same
-- assets/same2.txt --
same
-- assets/folder/x.txt --
x
-- assets/folder/deep/y.txt --
y
-- assets/other/keep.txt --
other
-- assets/named/new.txt --
called
-- assets/empty.txt --
`
	rename := func(from, to string) func(*fixture) {
		return func(p *fixture) { p.rename("assets/"+from, "assets/"+to) }
	}
	for _, c := range []struct {
		name  string
		edits []func(*fixture)
		want  []string
	}{
		{"a file", []func(*fixture){rename("a.txt", "c.txt")}, []string{"a.txt > assets/c.txt"}},
		{"into a folder", []func(*fixture){rename("a.txt", "other/a.txt")}, []string{"a.txt > assets/other/a.txt"}},
		{"two", []func(*fixture){rename("a.txt", "c.txt"), rename("b.txt", "a.txt")}, nil}, // a.txt is edited: none is gone that has its content
		{"a folder", []func(*fixture){rename("folder", "moved")}, []string{"folder > assets/moved"}},
		{"a folder in another", []func(*fixture){rename("folder/deep", "other/deep")}, []string{"folder/deep > assets/other/deep"}},
		{"one of two alike", []func(*fixture){rename("same1.txt", "same3.txt")}, []string{"same1.txt > assets/same3.txt"}},
		{"two alike", []func(*fixture){rename("same1.txt", "c.txt"), rename("same2.txt", "d.txt")}, nil},
		{"two alike by name", []func(*fixture){rename("same1.txt", "other/same1.txt"), rename("same2.txt", "other/same2.txt")},
			[]string{"same1.txt > assets/other/same1.txt", "same2.txt > assets/other/same2.txt"}},
		{"edited", []func(*fixture){rename("a.txt", "c.txt"), func(p *fixture) { p.write("assets/c.txt", "aa") }}, nil},
		{"copied", []func(*fixture){func(p *fixture) { p.write("assets/c.txt", p.read("assets/a.txt")) }}, nil},
		{"without content", []func(*fixture){rename("empty.txt", "c.txt")}, nil},
		{"with an id of its own", []func(*fixture){rename("a.txt", "c.txt"),
			rename("named/new.txt", "named/old.txt"), rename("named/old.txt", "named/new.txt")},
			[]string{"a.txt > assets/c.txt"}},
	} {
		for _, whole := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, " ", whole), func(t *testing.T) {
				p := newProject(t, project)
				p.unchecked = true
				p.age()
				p.build()
				for _, edit := range c.edits {
					edit(p)
				}
				if whole {
					p.write("kiln.toml", p.read("kiln.toml")+"# changed\n")
				}
				b := p.buildWith(Request{})
				if got := b.renamed(); !slices.Equal(got, c.want) {
					t.Errorf("got %q, not %q\n%s", got, c.want, b.messages)
				}
				if got := p.build0().renamed(); got != nil {
					t.Errorf("said again: %q", got)
				}
			})
		}
	}
}

// TestIDsLost: a lost kiln.ids is written again with the numbers of the last build, in a build of few tasks, of all, of one after state was
// lost, and by jobs that ask for them; unless the build before had none.
func TestIDsLost(t *testing.T) {
	p := newNumbered(t)
	p.build()
	p.write("kiln.ids", strings.Replace(p.read("kiln.ids"), "c.s\t1\n", "c.s\t77\n", 1))
	p.build()
	was := p.read("kiln.ids")
	lost := func(lose ...string) {
		t.Helper()
		for _, file := range append(lose, "kiln.ids") {
			p.remove(file)
		}
		b := p.buildWith(Request{})
		if n := len(b.list); n != 1 || b.list[0].Code != diag.IDsLost {
			t.Errorf("after the loss of %v:\n%s", lose, b.messages)
		}
		if b.ran != "" && lose == nil {
			t.Errorf("ran %q", b.ran)
		}
		if now := p.read("kiln.ids"); now != was {
			t.Errorf("after the loss of %v:\n%s\nbefore:\n%s", lose, now, was)
		}
		p.nothing()
	}
	lost()
	lost(".kiln/snapshot")
	lost(".kiln/snapshot", ".kiln/traces", ".kiln/content.db", ".kiln/cas")
	p.write("assets/d.s", "number\n")
	p.remove("kiln.ids")
	p.buildWith(Request{})
	if now := p.read("kiln.ids"); now != strings.Replace(was, "maybe.s", "d.s\t1\nmaybe.s", 1) {
		t.Errorf("with one more asset:\n%s\nbefore:\n%s", now, was)
	}

	// With --locked, nothing is written. Jobs see the numbers all the same.
	p.remove("kiln.ids")
	p.unchecked = true
	if b := p.buildWith(Request{Locked: true}); b.ran != "" || len(b.list) != 1 || b.list[0].Code != diag.IDsChange {
		t.Errorf("ran %q\n%s", b.ran, b.messages)
	}
	if _, err := os.Stat(p.path(ids.FileName)); err == nil {
		t.Error("the file was written")
	}
	if b, err := p.open().Build(t.Context(), Request{DryRun: true}); err != nil || b.Summary.Reused != 10 {
		t.Errorf("%+v, %v", b.Summary, err)
	}

	// What is kept is damaged, or contradicts itself.
	for _, kept := range []string{"nonsense", "a.s\t1\nb.s\t1\n", ""} {
		p.write(".kiln/ids", kept)
		p.remove("kiln.ids")
		p.buildWith(Request{})
		if now := p.read("kiln.ids"); !strings.Contains(now, "c.s\t1\n") {
			t.Errorf("with %q kept:\n%s", kept, now)
		}
	}
}
