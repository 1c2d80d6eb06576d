package build

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/delivery/ids"
	"github.com/kiln-pipeline/kiln/internal/make/report"
)

// endProject is a project of which everything is made that the end of a build writes.
const endProject = `
-- kiln.toml --
[project]
name = "end"

[[parcels]]
name   = "all"
assets = ["**"]
-- assets/keep.txt --
text that stays
-- assets/sub/keep.txt --
text that stays
`

// withConstants has constants in a committed file, whose template has all that there is to be said of a resource.
const withConstants = `
[[constants]]
language = "lua"
file     = "game/ids.txt"
template = "ids.tmpl"
`

const constantsTemplate = "{{range .Parcels}}{{.Name}}\n{{range .Constants}}{{.ID}} {{.Asset}} {{.Product}}\n{{end}}{{end}}"

func endOf(t testing.TB, constants bool) *fixture {
	p := newProject(t, endProject)
	if constants {
		p.write("kiln.toml", p.read("kiln.toml")+withConstants)
		p.write("ids.tmpl", constantsTemplate)
	}
	return p
}

// An asset whose file is renamed may keep its UUID, which does not depend on case or the form of Unicode. What bears its name follows.
func TestRenameKeepsUUID(t *testing.T) {
	requireLinux(t, "two spellings of one name")
	for _, x := range []struct{ name, from, to string }{
		{"case", "a.txt", "A.txt"},
		{"script", "a.s", "A.s"},
		{"form", "sub/h\u00f6hle.txt", "sub/ho\u0308hle.txt"},
		{"folder", "old/a.txt", "Old/a.txt"},
		{"folder's form", "h\u00f6hle/a.txt", "ho\u0308hle/a.txt"},
	} {
		for _, constants := range []bool{false, true} {
			t.Run(x.name+map[bool]string{true: ", constants"}[constants], func(t *testing.T) {
				t.Parallel()
				p := endOf(t, constants)
				p.write("assets/"+x.from, "text a")
				p.build()
				from, to, _ := cutFirst(x.from, x.to)
				p.rename("assets/"+from, "assets/"+to)
				p.buildLocked(diag.IDsChange)
				b := p.build()
				if !strings.Contains(p.read("kiln.ids"), x.to+"\t") || strings.Contains(p.read("kiln.ids"), x.from+"\t") {
					t.Errorf("kiln.ids, with short %v:\n%s", b.short, p.read("kiln.ids"))
				}
				p.buildLocked("")
				p.nothing()
				p.rename("assets/"+to, "assets/"+from)
				p.build()
			})
		}
	}
}

// cutFirst is the first parts of two paths that differ, with all before them.
func cutFirst(a, b string) (from, to string, ok bool) {
	as, bs := strings.Split(a, "/"), strings.Split(b, "/")
	for i := range as {
		if as[i] != bs[i] {
			return strings.Join(as[:i+1], "/"), strings.Join(bs[:i+1], "/"), true
		}
	}
	return "", "", false
}

// buildLocked builds with --locked, which reports one message with a code about what is committed, or none.
func (p *fixture) buildLocked(code diag.Code) {
	p.Helper()
	before := p.read("kiln.ids")
	b, err := p.try(context.Background(), Request{Locked: true})
	p.must(err)
	found := diag.Code("")
	for _, m := range b.list {
		if m.Code == diag.IDsChange {
			found = m.Code
		}
	}
	if found != code || p.read("kiln.ids") != before {
		p.Errorf("--locked reported %q, not %q:\n%s", found, code, b.messages)
	}
}

// Contents of hidden products are damaged, of which one is made of the other, and their readers run: the build makes all of them again.
// It reports no error, and writes what is made of products once.
func TestLostInOneBuild(t *testing.T) {
	for name, lose := range map[string]func(*fixture, string){
		"spoilt": (*fixture).spoilAlone, "lost": (*fixture).remove, "quietly": (*fixture).spoilQuietly,
	} {
		for _, all := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " all=", all), func(t *testing.T) {
				t.Parallel()
				p := endOf(t, true)
				p.write("assets/raw.txt", "raw words")
				p.write("assets/b.s", "take +raw.txt\n") // of a part that is made of a part
				p.write("assets/c.s", "request one raw.txt\n")
				p.build()
				p.nothing()
				for _, f := range p.blobs() {
					lose(p, f)
				}
				p.write("assets/b.s", "take +raw.txt\ntext more\n")
				p.write("assets/c.s", "request one raw.txt\ntext more\n")
				if all {
					p.write("kiln.toml", p.read("kiln.toml")+"\n")
				}
				before := p.read("kiln.ids") + p.read("game/ids.txt")
				wrote := 0
				b, err := p.try(t.Context(), Request{Done: func(o report.Outcome) {
					if p.read("kiln.ids")+p.read("game/ids.txt") != before {
						wrote++
					}
				}})
				p.must(err)
				if b.Failed > 0 || b.messages != "" || wrote > 0 {
					t.Errorf("%d failed, %d times the committed files were others: %s", b.Failed, wrote, b.messages)
				}
				p.compareWithClean(b)
				p.nothing()
			})
		}
	}
}

// stagedProject has a stage with an asset of its own, one that has more products there, and one whose products depend on others.
const stagedProject = `
-- kiln.toml --
[project]
name = "staged"

[platforms.pc]
[platforms.web]

[[rules]]
match = "plain.s"
stage = "late"
processors = ["script", "shadow"]

[[assets]]
id        = "late"
source    = "plain.s"
processor = "script"
stage     = "late"

[[assets]]
id        = "later"
source    = "plain.s"
processor = "script"
stage     = "later"
-- assets/plain.s --
text plain
shadow text 1
-- assets/a.txt --
a
-- assets/all.s --
glob *
perhaps late pc script
`

func hasLine(text, line string) bool { return slices.Contains(strings.Split(text, "\n"), line) }

// committed are the numbers of all resources that are to have one, by asset and product.
type committed struct {
	*fixture
	numbers map[string]string
}

// check wants that what is committed has all that it had, but for what is gone, with the same numbers.
func (c *committed) check(gone ...string) {
	c.Helper()
	for _, id := range gone {
		delete(c.numbers, id)
	}
	text, constants := c.read("kiln.ids"), c.read("game/ids.txt")
	for line := range strings.Lines(text) {
		if f := strings.Split(strings.TrimSpace(line), "\t"); line[0] != '#' {
			name := strings.Join(append([]string{f[0]}, f[2:]...), " ")
			if was := c.numbers[name]; was != "" && was != f[1] {
				c.Errorf("%s has number %s, and had %s", name, f[1], was)
			}
			c.numbers[name] = f[1]
		}
	}
	for name, n := range c.numbers {
		asset, product, _ := strings.Cut(name, " ")
		line := strings.TrimSuffix(asset+"\t"+n+"\t"+product, "\t")
		if constant := n + " " + asset + " " + product; !hasLine(text, line) || !hasLine(constants, constant) {
			c.Errorf("no line %q or %q:\n%s%s", line, constant, text, constants)
		}
	}
}

// An asset fails that a parcel needs, and its constant stays, as do those of what it required: where it was built before, and in a new
// checkout.
func TestFailedKeepsConstants(t *testing.T) {
	p := endOf(t, true)
	p.write("kiln.toml", strings.Replace(p.read("kiln.toml"), `"**"`, `"a.s"`, 1))
	p.write("assets/a.s", "text a\nref b.s\nmore x\n")
	p.write("assets/b.s", "text b\nref keep.txt\n")
	p.build()
	old := p.read("game/ids.txt")
	if want := "all\n0 a.s \n1 a.s x\n2 b.s \n3 keep.txt \n"; old != want {
		t.Fatalf("constants: %q", old)
	}
	p.write("assets/b.s", "fail now\n")
	p.build()
	p.buildLocked("")
	p.remove(".kiln")
	p.remove("build")
	p.buildLocked("")
	b := p.build()
	if p.read("game/ids.txt") != old || !strings.Contains(b.messages, "game/ids.txt: warning[K0279]: the constants were left as they are: b.s failed") {
		t.Errorf("constants: %q\n%s", p.read("game/ids.txt"), b.messages)
	}
	p.write("assets/a.s", "text a\nref b.s\nmore x\nmore y\n")
	p.write("assets/b.s", "text b\nref keep.txt\n")
	p.build()
	if !hasLine(p.read("game/ids.txt"), "5 a.s y") {
		t.Errorf("constants: %q", p.read("game/ids.txt"))
	}
}

// Builds with and without stages take turns, and assets come and go: what is committed names the resources of all stages at any time.
func TestStagesKeepLines(t *testing.T) {
	for _, parcels := range []bool{false, true} {
		t.Run(fmt.Sprint("parcels=", parcels), func(t *testing.T) {
			t.Parallel()
			p := newProject(t, stagedProject)
			text := p.read("kiln.toml") + withConstants
			if parcels {
				text += "[[parcels]]\nname = \"all\"\nassets = [\"**\"]\n"
			}
			p.write("kiln.toml", text)
			p.write("ids.tmpl", constantsTemplate)
			c := &committed{p, map[string]string{}}
			numbers, check := c.numbers, c.check
			build := func(stages ...string) {
				t.Helper()
				p.stages = stages
				p.build()
				p.buildLocked("")
			}
			build("late")
			check()
			build("later")
			check()
			p.remove(".kiln")
			p.remove("build")
			build() // a new checkout
			check()
			if len(numbers) != 6 {
				t.Errorf("numbers: %v", numbers)
			}
			p.write("assets/b.txt", "b")
			p.remove("assets/a.txt")
			build()
			check("a.txt")
			build("late", "later")
			check()
			p.write("assets/plain.s", "fail now")
			p.build()
			p.buildLocked("")
			check()
			p.stages = nil
			p.build()
			check()
			if n := strings.Count(p.read("kiln.ids"), "\n"); n != 7 {
				t.Errorf("%d lines:\n%s", n, p.read("kiln.ids"))
			}
			p.write("kiln.toml", strings.ReplaceAll(p.read("kiln.toml"), `id        = "later"`, `id = "renamed"`))
			p.build()
			check("later")
		})
	}
}

// What the end of a build writes was left as it was before a rename: verify finds all three files, and repairs them.
func TestVerifyShipped(t *testing.T) {
	requireLinux(t, "two spellings of one name")
	p := endOf(t, true)
	p.write("assets/a.txt", "text a")
	p.build()
	files := []string{"kiln.ids", "build/parcels/pc/all.parcel", "game/ids.txt"}
	old := map[string]string{}
	for _, f := range files {
		old[f] = p.read(f)
	}
	p.rename("assets/a.txt", "assets/A.txt")
	p.build()
	if v := p.verify(false); len(v.Messages) > 0 {
		t.Error(v.Messages)
	}
	for _, f := range files {
		p.write(f, old[f])
	}
	for _, fix := range []bool{false, true} {
		v, found := p.verify(fix), map[string]string{}
		for _, m := range v.Messages {
			if m.Code == diag.ShippedWrong && m.Severity == diag.Warning {
				found[m.File] = m.Text
			}
		}
		if len(found) != len(files) || len(v.Messages) != len(files) {
			t.Errorf("fix %v: %v", fix, v.Messages)
		}
		if text := found[files[1]]; !strings.Contains(text, "resource 0 is called a.txt, not A.txt") {
			t.Error(text)
		}
	}
	p.build()
	if v := p.verify(false); len(v.Messages) > 0 {
		t.Error(v.Messages)
	}
	p.nothing()
}

// A product that an asset has while it fails, that of a part, has a number as any other: also if the asset had as many products before.
func TestNumberWhileItFails(t *testing.T) {
	p := newProject(t, strings.Replace(endProject, `assets = ["**"]`, `assets = ["*.txt"]`, 1))
	p.write("assets/b.bin", "b")
	p.write("assets/d.bin", "d")
	p.write("assets/e.s", "ask b.bin\n")
	p.build()
	p.write("assets/e.s", "ask gone.s d.bin\n")
	b := p.build()
	if b.Failed != 1 || !strings.Contains(p.read(ids.FileName), "d.bin\n") {
		t.Errorf("%d failed, kiln.ids is\n%s", b.Failed, p.read(ids.FileName))
	}
}

// The lines of an asset that fails stay in kiln.ids, and go with the asset, in a build of few tasks, too.
func TestNumbersGoWithAFailedAsset(t *testing.T) {
	p := newProject(t, strings.Replace(endProject, `assets = ["**"]`, `assets = ["*.txt"]`, 1))
	p.write("assets/b.s", "text b\n")
	p.build()
	p.write("assets/b.s", "fail now\n")
	p.build()
	if !strings.Contains(p.read(ids.FileName), "b.s\t") {
		t.Fatalf("kiln.ids is\n%s", p.read(ids.FileName))
	}
	p.remove("assets/b.s")
	if p.build(); strings.Contains(p.read(ids.FileName), "b.s\t") {
		t.Errorf("kiln.ids is\n%s", p.read(ids.FileName))
	}
}

// Where case counts, a product that is left of an asset is found by verify although another asset's product has its name but for case.
func TestVerifyOtherCase(t *testing.T) {
	p := newProject(t, "-- assets/b.txt --\ntext\n")
	p.build()
	p.remove(".kiln")
	p.must(os.Rename(p.path("assets/b.txt"), p.path("assets/B.txt")))
	p.build0()
	if _, err := os.Lstat(p.path("build/pc/b.txt")); err != nil {
		t.Skip("the disk has one file for both names")
	}
	left := map[string]bool{}
	if v := p.verify(true); len(v.Messages) != 1 || v.Messages[0].Code != diag.OutputStranger {
		t.Error(v.Messages)
	}
	for name := range outputFiles(p.dir, "build") {
		left[name] = true
	}
	if left["pc/b.txt"] || !left["pc/B.txt"] {
		t.Errorf("left: %v", left)
	}
}
