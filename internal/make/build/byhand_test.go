package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/processor"
)

// gather writes what its job depends on by hand: the names and contents of source files, which it reads behind Kiln's back, and of
// products. Its own file it does not read.
type gather struct{ *script }

func (gather) Info() processor.Info {
	return processor.Info{Name: "gather", Version: 1, Summary: "for tests", Products: []processor.ProductType{{Type: "text"}}}
}

func (g gather) Process(_ context.Context, job processor.Job) error {
	j := job.(interface {
		Inputs() []string
		Needs() ([]processor.Product, error)
		Where(string) string
	})
	var out strings.Builder
	for _, glob := range j.Inputs() {
		names, err := job.Glob(glob)
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%s\n", glob)
		for _, name := range names {
			read := func() ([]byte, error) { return os.ReadFile(j.Where(name)) }
			if g.meddle.Load() != nil { // files change while jobs run
				read = func() ([]byte, error) { return job.ReadFile(name) }
			}
			if a := job.Asset(); name != a.Path && name != a.ID { // of an import, the path is another
				text, err := read()
				if err != nil {
					return err
				}
				fmt.Fprintf(&out, "  %s: %s\n", name, text)
			}
		}
	}
	needs, err := j.Needs()
	if err != nil {
		return err
	}
	for _, p := range needs {
		f, err := job.OpenProduct(p)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(f)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		fmt.Fprintf(&out, "  %s of %s: %s\n", p.File, p.AssetID, text)
	}
	return job.Write(processor.Output{Type: "text", Extension: ".all"}, []byte(out.String()))
}

func newGathering(t *testing.T, files string) *fixture {
	p := newProject(t, files)
	p.procs = append(p.procs, gather{p.procs[0].(*script)})
	return p
}

// Each change of what a job depends on by hand costs what it reaches.
func TestByHand(t *testing.T) {
	p := newGathering(t, `
-- kiln.toml --
[project]
name = "test"
[[rules]]
match = "*.g"
processor = "gather"
inputs = ["in/*.txt", "a.g"]
needs = ["**/*.s", "s"]
-- assets/rules.toml --
[[rules]]
match = "b.g"
needs = ["in/x.txt", "a.g", "b.g"]
-- assets/a.g --
a
-- assets/b.g --
b
-- assets/in/x.txt --
x
-- assets/in/y.txt --
y
-- assets/s/one.s --
text one
-- assets/s/two.s --
text two
-- assets/other.txt --
other
`)
	p.build()
	p.reads("build/pc/a.g.all",
		"in/*.txt\n  in/x.txt: x\n\n  in/y.txt: y\n\na.g\n  s/one.s.txt of s/one.s: one\n\n  s/two.s.txt of s/two.s: two\n\n")
	p.nothing()

	p.write("assets/in/y.txt", "other y\n")
	p.wantsFew("a.g", "b.g", "in/y.txt")
	p.write("assets/other.txt", "no concern of theirs\n")
	p.wantsFew("other.txt")
	p.write("assets/b.g", "its own file is left out, and it does not read that")
	p.wantsFew()
	p.write("assets/a.g", "an input of b.g, by name")
	p.wantsFew("b.g")
	p.write("assets/in/z.txt", "z\n")
	p.wantsFew("a.g", "b.g", "in/z.txt")
	p.remove("assets/in/z.txt")
	p.wantsFew() // as before

	p.write("assets/s/one.s", "text one\n\n") // its product is as it was
	p.wantsFew("s/one.s")
	p.write("assets/s/one.s", "text 1\n")
	p.wantsFew("a.g", "b.g", "s/one.s") // b.g needs a.g, which is another
	p.write("assets/s/three.s", "text three\n")
	p.wantsFew("a.g", "b.g", "s/three.s")
	p.rename("assets/s/three.s", "assets/s/four.s")
	p.wantsFew("a.g", "b.g", "s/four.s")
	p.write("assets/s/four.s", "fail now\n")
	if b := p.wantsFew("a.g", "b.g", "s/four.s"); b.Failed != 3 || strings.Count(b.messages, "fail now") > 2 {
		t.Errorf("%+v\n%s", b.Summary, b.messages)
	}
	p.remove("assets/s/four.s")
	if b := p.wantsFew(); b.Failed != 0 { // as before
		t.Errorf("%+v\n%s", b.Summary, b.messages)
	}

	p.write("assets/rules.toml", "[[rules]]\nmatch = \"b.g\"\nneeds = []\ninputs = []\n")
	p.wants("b.g")
	p.write("assets/in/y.txt", "y\n")
	p.wantsFew("a.g") // in/y.txt is as it was once
}

// A pattern that matches nothing is reported in each build, until something matches it.
func TestByHandNothing(t *testing.T) {
	p := newGathering(t, `
-- kiln.toml --
[project]
name = "test"
[[rules]]
match = "*.g"
processor = "gather"
inputs = ["in/*.txt"]
needs = ["late/**"]
-- assets/a.g --
a
-- assets/b.txt --
b
-- assets/in/keep.bin --
-- assets/late.s --
text x
`)
	told := func(b built, what ...string) {
		t.Helper()
		for _, text := range []string{"this matches no source file", "this matches no asset"} {
			if strings.Contains(b.messages, text) != strings.Contains(strings.Join(what, " "), text) {
				t.Errorf("%q, want %q", b.messages, what)
			}
		}
	}
	told(p.build(), "this matches no source file", "this matches no asset")
	p.write("assets/b.txt", "b2")
	told(p.wantsFew("b.txt"), "this matches no source file", "this matches no asset")
	p.write("assets/in/one.txt", "one")
	told(p.wants("a.g in/one.txt"), "this matches no asset")
	p.write("assets/late/x.txt", "x")
	told(p.wants("a.g late/x.txt"))
	p.write("assets/in/two.txt", "two")
	told(p.wants("a.g in/two.txt"))
	p.remove("assets/in/one.txt")
	told(p.build())
	p.remove("assets/in/two.txt")
	told(p.build(), "this matches no source file")
	p.remove("assets/late/x.txt")
	told(p.build(), "this matches no source file", "this matches no asset")
}

// Of a processor's own declaration it holds for requests as well; what a rule says holds for its imports.
func TestByHandRequests(t *testing.T) {
	p := newGathering(t, `
-- kiln.toml --
[project]
name = "test"
[[processors]]
script = "tools/up.star"
inputs = ["in/*.txt"]
needs = ["n/*.s"]
[[processors]]
script = "tools/ask.star"
[[rules]]
match = "*.i"
import = "up"
processor = "gather"
inputs = ["in/x.bin"]
-- tools/up.star --
processor("up", products = {"up": (".up", "")})
def process(job):
    job.write(job.read_text(job.path).upper())
-- tools/ask.star --
processor("ask", extensions = [".ask"], products = {"ask": (".asked", "")})
def process(job):
    job.write(job.open(job.request("up", data = "x", ext = ".t")[0]))
-- assets/a.ask --
a
-- assets/b.i --
b
-- assets/in/x.txt --
x
-- assets/in/x.bin --
x
-- assets/n/n.s --
text n
`)
	const ofB = `up of b.i (input "in/x.bin")`
	b := p.build()
	if b.Failed > 0 || b.Requests != 2 {
		t.Fatalf("%+v\n%s", b.Summary, b.messages)
	}
	bytes := ""
	for _, name := range strings.Split(b.ran, " up of ") {
		if strings.HasPrefix(name, "~") {
			bytes = "up of " + strings.Fields(name)[0]
		}
	}
	p.write("assets/in/x.txt", "other") // the gatherer of b.i does not see that, for the request comes out as it was
	p.wantsFew("in/x.txt", ofB, bytes)
	p.write("assets/in/x.bin", "other")
	p.wantsFew("b.i", "in/x.bin", ofB)
	p.write("assets/n/n.s", "text other")
	p.wantsFew("n/n.s", ofB, bytes)
	p.write("assets/b.i", "another")
	p.wantsFew("b.i", ofB)
}
