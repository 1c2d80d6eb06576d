package build

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/make/report"
	"github.com/kiln-pipeline/kiln/internal/make/results"
	"github.com/kiln-pipeline/kiln/processor"
)

// numbered is a project whose jobs write the resource ids of their products. On pc, maybe.s has a product x if b.txt says so, and on web
// it writes the number of x.
const numbered = `
-- kiln.toml --
[project]
name = "test"
[platforms.pc]
[platforms.web]
[[parcels]]
name = "all"
assets = ["**/*.s"]
-- assets/b.txt --
no
-- assets/c.s --
more x
number
number x
number none
-- assets/maybe.s --
hook maybe
-- assets/plain.s --
text plain
`

// maybe are the hooks of numbered.
func maybe(_ context.Context, name string, j processor.Job) error {
	if j.Platform() != "pc" {
		id, ok := j.ResourceID("x")
		return j.Write(processor.Output{Name: "seen", Type: "text", Extension: ".txt"}, fmt.Appendln(nil, id, ok))
	}
	text, err := j.ReadFile("b.txt")
	if err != nil || strings.TrimSpace(string(text)) != "yes" {
		return err
	}
	return j.Write(processor.Output{Name: "x", Type: "text", Extension: ".x"}, []byte("x"))
}

func newNumbered(t testing.TB) *fixture {
	p := newProject(t, numbered)
	p.procs = testProcessors(&hooks{maybe})
	p.age()
	return p
}

// says compares the outputs of an asset's main product with lines.
func (p *fixture) says(asset, lines string) {
	p.Helper()
	for _, platform := range []string{"pc", "web"} {
		if got := p.read("build/" + platform + "/" + asset + ".txt"); got != lines {
			p.Errorf("%s on %s says %q, not %q", asset, platform, got, lines)
		}
	}
}

// TestNumbers: a job knows the resource ids of its own products. The build that assigns them runs it once more; no other build does, unless
// a number differs.
func TestNumbers(t *testing.T) {
	p := newNumbered(t)
	if b := p.build(); b.Built != 5 || b.Failed != 0 {
		t.Errorf("%+v", b.Summary)
	}
	p.says("c.s", "1 true\n2 true\n0 false\n")
	seen := func(want string) {
		if got := p.read("build/web/maybe.s.seen.txt"); got != want+"\n" {
			t.Errorf("maybe.s says %q, not %q", got, want)
		}
		p.nothing()
	}
	seen("0 false")

	// Another asset, in a build of few tasks.
	p.write("assets/d.s", "number\n")
	if b := p.build(); !strings.Contains(b.ran, "d.s") || strings.Contains(b.ran, "c.s") || b.Built != 1 {
		t.Errorf("ran %q", b.ran)
	}
	p.says("d.s", "6 true\n")
	p.nothing()

	// A product that only pc makes gets a number. The job on web saw that it has none; nothing else that it read has changed.
	p.write("assets/b.txt", "yes")
	p.build()
	seen("7 true")
	p.write("assets/b.txt", "no")
	p.build()
	seen("0 false")

	// The file is edited, merged, lost.
	p.write("kiln.ids", strings.Replace(p.read("kiln.ids"), "c.s\t1\n", "c.s\t77\n", 1))
	p.wants("c.s")
	p.says("c.s", "77 true\n2 true\n0 false\n")
	p.nothing()
	p.remove("kiln.ids")
	p.wants("") // numbers stay
	p.says("c.s", "77 true\n2 true\n0 false\n")
	p.nothing()
}

// TestNumbersAtOnce: an edit of kiln.ids right after a build that wrote it is noticed, also if the length stays.
func TestNumbersAtOnce(t *testing.T) {
	p := newNumbered(t)
	p.build()
	was := "1"
	for i, now := range []string{"77", "88", "66", "55"} {
		p.write(fmt.Sprintf("assets/d%d.s", i), "number\n") // the file gets a line
		p.build()
		p.write("kiln.ids", strings.Replace(p.read("kiln.ids"), "c.s\t"+was+"\n", "c.s\t"+now+"\n", 1))
		p.wants("c.s")
		p.says("c.s", now+" true\n2 true\n0 false\n")
		was = now
	}
}

// TestNumbersTwice: a number that a merge gave twice is an error of the build. The jobs see it until it is repaired, and run once.
func TestNumbersTwice(t *testing.T) {
	p := newNumbered(t)
	p.build()
	p.write("kiln.ids", strings.Replace(p.read("kiln.ids"), "c.s\t1\n", "c.s\t4\n", 1))
	p.unchecked = true
	for _, ran := range []string{"c.s", ""} {
		if b := p.buildWith(Request{}); b.ran != ran || len(b.list) != 1 || b.list[0].Code != diag.IDsConflict {
			t.Errorf("ran %q, not %q\n%s", b.ran, ran, b.messages)
		}
		p.says("c.s", "4 true\n2 true\n0 false\n")
	}
}

// TestNumbersLocked: what is locked gets no numbers, and no job runs twice. A build of single assets assigns none either.
func TestNumbersLocked(t *testing.T) {
	p := newNumbered(t)
	p.unchecked = true
	b := p.buildWith(Request{Locked: true})
	if b.Built != 5 || len(b.list) != 1 || b.list[0].Code != diag.IDsChange || p.read("kiln.ids") != "" {
		t.Errorf("%+v\n%s", b.Summary, b.messages)
	}
	p.says("c.s", "0 false\n0 false\n0 false\n")
	p.buildWith(Request{Patterns: []string{"c.s"}})
	p.says("c.s", "0 false\n0 false\n0 false\n")
	p.wants("c.s")
	p.says("c.s", "1 true\n2 true\n0 false\n")
	if b := p.buildWith(Request{Locked: true}); b.Built != 0 || b.messages != "" {
		t.Errorf("ran %q\n%s", b.ran, b.messages)
	}
}

// TestNumbersOnce: what only the first pass has to say is said, once; so is what both have to say.
func TestNumbersOnce(t *testing.T) {
	p := newNumbered(t)
	p.unchecked = true
	p.write("assets/a.blend", "of a format that is copied as it is")
	p.write(".kiln/snapshot", "damaged")
	p.write("assets/c.s", "warn of something\nnumber\n")
	told := map[string]int{}
	b := p.buildWith(Request{Tell: func(_ *report.JobReport, l diag.List) {
		for _, m := range l {
			told[m.Text]++
		}
	}})
	said := map[diag.Code]int{}
	for _, m := range b.list {
		said[m.Code]++
	}
	if said[diag.StateDamaged] != 1 || said[diag.CopiedAsIs] != 1 || len(b.list) != 3 || b.Warnings != 2 {
		t.Errorf("%d warnings, %v\n%s", b.Warnings, said, b.messages)
	}
	for text, n := range told {
		if n != 1 || text == "of something" { // of a job that runs again, so it is only in the report
			t.Errorf("told %d times: %s", n, text)
		}
	}
}

// TestNumbersForced: what is forced runs once for itself, and what asked for a number once more.
func TestNumbersForced(t *testing.T) {
	p := newNumbered(t)
	p.unchecked = true
	runs := 0
	p.procs = testProcessors(&hooks{func(ctx context.Context, name string, j processor.Job) error { runs++; return nil }})
	p.workers = 1
	p.buildWith(Request{Force: true})
	if runs != 2 {
		t.Errorf("what has no number ran %d times, not once on each platform", runs)
	}
	p.says("c.s", "1 true\n2 true\n0 false\n")
}

// TestNumbersDecide: builds of a job that makes a product because it has no number, and does not because it has one, come to an end.
func TestNumbersDecide(t *testing.T) {
	p := newProject(t, numbered+"-- assets/never.s --\nhook never\n")
	runs := 0
	p.procs = testProcessors(&hooks{func(ctx context.Context, name string, j processor.Job) error {
		if name == "maybe" || j.Platform() != "pc" {
			return nil
		}
		runs++
		if _, ok := j.ResourceID("x"); ok {
			return nil
		}
		return j.Write(processor.Output{Name: "x", Type: "text", Extension: ".x"}, []byte("x"))
	}})
	p.unchecked = true
	for build := range 3 {
		if p.build(); runs != 2 { // what it made with a number and without is known
			t.Fatalf("after build %d it ran %d times", build, runs)
		}
	}
}

// TestNumbersParts: a part sees the numbers of its asset; a request has no asset.
func TestNumbersParts(t *testing.T) {
	p := newProject(t, "-- kiln.toml --\n[project]\nname = \"test\"\n[[constants]]\nlanguage = \"lua\"\n"+
		"-- assets/a.s --\nmore x\ntake n.txt\nrequest one r.s\n-- assets/n.txt --\nnumber x\n-- assets/r.s --\nnumber\n")
	p.build()
	if got, want := p.read("build/pc/a.s.txt"), "number x\n2 true\n\n0 false\n"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
	p.nothing()
}

// TestNumbersPlain: in a project without parcels and constants no build writes kiln.ids, and what others write there counts.
func TestNumbersPlain(t *testing.T) {
	p := newProject(t, "-- assets/a.s --\nnumber\n-- assets/b.s --\ntext b\n")
	for _, step := range []struct{ file, says string }{
		{"", "0 false\n"}, {"a.s\t3\n", "3 true\n"}, {"a.s\t4\n", "4 true\n"}, {"", "0 false\n"}, {"a.s\t5\n", "5 true\n"},
	} {
		if p.remove("kiln.ids"); step.file != "" {
			p.write("kiln.ids", "# kiln.ids 1: resource ids, made by `kiln ids`. Commit this file.\n"+step.file)
		}
		p.build()
		if got := p.read("build/pc/a.s.txt"); got != step.says {
			t.Errorf("%q: %q, not %q", step.file, got, step.says)
		}
		p.nothing()
	}
	p.write("assets/a.s", "text a\n") // nobody asks any more
	p.wants("a.s")
	p.remove("kiln.ids")
	p.wants("")
	p.nothing()
	p.write("assets/b.s", "number\n") // in a build of few tasks
	if b := p.wants("b.s"); !b.short {
		t.Error(b.Because)
	}
	p.write("kiln.ids", "# kiln.ids 1: resource ids, made by `kiln ids`. Commit this file.\nb.s\t6\n")
	p.wants("b.s")
}

// TestNumbersKept: a watcher's builds see numbers that were given while it watches, by a build and by hand.
func TestNumbersKept(t *testing.T) {
	p := newNumbered(t)
	pr := p.open()
	pr.Keep()
	if r := p.kept(pr); len(r.Outcomes) == 0 {
		t.Errorf("%+v", r.Summary)
	}
	p.says("c.s", "1 true\n2 true\n0 false\n")
	p.must(pr.Read())
	p.write("assets/d.s", "number\n")
	if r := p.kept(pr, "assets/d.s"); r.Summary.Built != 1 {
		t.Errorf("%+v", r.Summary)
	}
	p.says("d.s", "6 true\n")
	p.must(pr.Read())
	p.write("kiln.ids", strings.Replace(p.read("kiln.ids"), "c.s\t1\n", "c.s\t77\n", 1))
	if r := p.kept(pr); r.Summary.Built != 1 {
		t.Errorf("%+v", r.Summary)
	}
	p.says("c.s", "77 true\n2 true\n0 false\n")
	p.nothing()
}

// TestNumbersShared: results are shared by those that have the same numbers.
func TestNumbersShared(t *testing.T) {
	first, second, third := newNumbered(t), newNumbered(t), newNumbered(t)
	sharingFolder(t, first, second, third)
	first.build()
	second.write("kiln.ids", first.read("kiln.ids"))
	if b := second.wants(""); b.FromCache == 0 {
		t.Errorf("%+v", b.Summary)
	}
	third.write("kiln.ids", strings.Replace(first.read("kiln.ids"), "c.s\t1\n", "c.s\t77\n", 1))
	third.wants("c.s")
	third.says("c.s", "77 true\n2 true\n0 false\n")
}

// TestNumbersFarm: workers are told the numbers, and have others the next time.
func TestNumbersFarm(t *testing.T) {
	t.Parallel()
	p := newProject(t, strings.Replace(numbered, "hook maybe", "text maybe", 1))
	f := p.farmed(2)
	p.build()
	p.says("c.s", "1 true\n2 true\n0 false\n")
	for _, id := range []int{77, 78} {
		ran := f.Ran()
		p.write("kiln.ids", fmt.Sprintf("# kiln.ids 1: resource ids, made by `kiln ids`. Commit this file.\nc.s\t%d\n", id))
		p.build()
		if p.says("c.s", fmt.Sprintf("%d true\n1 true\n0 false\n", id)); f.Ran() == ran {
			t.Error("it did not run there")
		}
	}
}

// heldProject has a job that lists what a parcel holds.
const heldProject = `
-- kiln.toml --
[project]
name = "test"
[[parcels]]
name = "one"
assets = ["root.s", "list.s"]
-- assets/list.s --
assets parcel:one
-- assets/root.s --
ref a.s
-- assets/a.s --
text a
-- assets/b.s --
ref a.s
`

// lists compares which assets of a parcel a job listed.
func (p *fixture) lists(want string) {
	p.Helper()
	got := p.read("build/pc/list.s.txt")
	for _, id := range []string{"a.s", "b.s", "list.s", "root.s"} {
		if strings.Contains(got, id) != strings.Contains(want, id) {
			p.Errorf("it lists %q, not %s", got, want)
		}
	}
}

// TestHeld: a job that asks what a parcel holds knows it at the end of the same build: of all, of few tasks, of a watcher, of a fresh clone
// with locked numbers, and after a parcel and an asset went.
func TestHeld(t *testing.T) {
	p := newProject(t, heldProject)
	p.build()
	p.lists("a.s list.s root.s")
	p.nothing()
	p.write("assets/root.s", "ref b.s\n")
	p.build()
	p.lists("a.s b.s list.s root.s")
	p.nothing()

	pr := p.open()
	pr.Keep()
	p.kept(pr)
	p.must(pr.Read())
	p.write("assets/root.s", "ref a.s\n")
	p.kept(pr, "assets/root.s")
	p.lists("a.s list.s root.s")
	p.nothing()

	p.write("assets/root.s", "fail now\n") // what failed requires nothing
	p.build()
	p.lists("list.s root.s")
	p.nothing()
	p.write("assets/root.s", "ref a.s\n")
	p.build()
	p.lists("a.s list.s root.s")

	ids := p.read("kiln.ids")
	p.remove(".kiln")
	p.remove("build")
	if b := p.buildWith(Request{Locked: true}); b.messages != "" || p.read("kiln.ids") != ids {
		t.Errorf("%s\n%s", b.messages, p.read("kiln.ids"))
	}
	p.lists("a.s list.s root.s")
	p.remove(".kiln/held.json")
	p.build()
	p.nothing()
	p.write("kiln.toml", "[project]\nname = \"test\"\n")
	if b := p.build(); !strings.Contains(b.messages, `there is no parcel "one" in kiln.toml`) {
		t.Error(b.messages)
	}
}

// TestHeldLastGood: while an asset fails and its last good products decide what a parcel holds, a job that lists it may see more than in a
// build from nothing. That ends with the failure, and with a build that keeps no last good products; and it reaches no other checkout by
// way of a cache, because there the job lists other assets.
func TestHeldLastGood(t *testing.T) {
	p, other := newProject(t, heldProject), newProject(t, heldProject)
	p.unchecked = true
	sharingFolder(t, p, other)
	p.build()
	p.write("assets/root.s", "ref b.s\n")
	p.build()
	p.lists("a.s b.s list.s root.s")

	p.write("assets/root.s", "fail now\n")
	p.buildWith(Request{OnError: results.LastGood})
	p.lists("a.s b.s list.s root.s")
	p.write("assets/list.s", "assets parcel:one\ntext again\n") // it runs while the last good products stand, and its result is stored
	p.buildWith(Request{OnError: results.LastGood})
	p.lists("a.s b.s list.s root.s")

	for _, onError := range []results.OnError{results.Fail, results.LastGood} { // with no past, nothing stands for what fails
		other.mirror(p)
		other.buildWith(Request{OnError: onError})
		other.lists("list.s root.s")
	}
	p.build() // without last good products
	p.lists("list.s root.s")
	p.buildWith(Request{OnError: results.LastGood})

	p.write("assets/root.s", "ref a.s\n")
	p.buildWith(Request{OnError: results.LastGood})
	p.lists("a.s list.s root.s")
	other.mirror(p)
	other.buildWith(Request{OnError: results.LastGood})
	other.lists("a.s list.s root.s")
	clean := newProject(t, heldProject)
	clean.mirror(p)
	clean.build()
	if d := cmp.Diff(outputFiles(clean.dir, "build"), outputFiles(p.dir, "build")); d != "" {
		t.Errorf("not as from nothing: %s", d)
	}
}
