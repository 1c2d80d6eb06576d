package build

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/report"
	"github.com/kiln-pipeline/kiln/internal/make/results"
	"github.com/kiln-pipeline/kiln/internal/make/upkeep"
	"github.com/kiln-pipeline/kiln/internal/store/state"
	"github.com/kiln-pipeline/kiln/processor"
)

const twoPlatforms = `
-- kiln.toml --
[project]
name = "test"
[platforms.pc]
[platforms.web]
-- assets/a.txt --
alpha
-- assets/b.txt --
beta
-- assets/join.s --
text joined
use a.txt
`

func names(m map[string]string) string {
	var all []string
	for f, what := range m {
		if what != "folder" {
			all = append(all, f)
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// TestPartial builds parts between whole builds, which must come out as if there had been no parts. What ran on one platform does for the
// other.
func TestPartial(t *testing.T) {
	const all = "pc/a.txt pc/b.txt pc/join.s.txt web/a.txt web/b.txt web/join.s.txt"
	edit := func(p *fixture) {
		p.write("assets/a.txt", "ALPHA")
		p.write("assets/b.txt", "BETA")
	}
	rules := func(p *fixture) {
		p.write("assets/rules.toml", "[[rules]]\nmatch = \"*.s\"\nsettings = { say = \"bye\" }\n[[rules]]\nmatch = \"*.txt\"\nprocessor = \"script\"\n")
		p.write("assets/a.txt", "text a")
		p.write("assets/b.txt", "text b")
	}
	for _, c := range []struct {
		name       string
		do         func(p *fixture)
		req        Request
		ran, files string // of the part
		rest       string // what the whole build after it ran
	}{
		{"one asset", edit, Request{Patterns: []string{"a.txt"}}, "a.txt", all, "b.txt join.s"},
		{"one platform", edit, Request{Platforms: []string{"web"}}, "a.txt@web b.txt@web join.s@web", all, ""},
		{"one asset and what it needs", edit, Request{Patterns: []string{"join.s"}, Platforms: []string{"pc"}}, "a.txt join.s", all,
			"b.txt"},
		{"another key for all", rules, Request{Platforms: []string{"pc"}}, "a.txt b.txt join.s",
			"pc/a.txt.txt pc/b.txt.txt pc/join.s.txt web/a.txt web/b.txt web/join.s.txt", ""},
		{"asset removed", func(p *fixture) { p.remove("assets/b.txt") }, Request{Patterns: []string{"a.txt"}}, "", all, ""},
		{"asset removed, then one platform", func(p *fixture) { p.remove("assets/b.txt") }, Request{Platforms: []string{"web"}}, "",
			"pc/a.txt pc/b.txt pc/join.s.txt web/a.txt web/join.s.txt", ""},
		{"platform removed", func(p *fixture) { p.write("kiln.toml", "[project]\nname = \"test\"\n[platforms.pc]\n") }, Request{Patterns: []string{"a.txt"}}, "",
			"pc/a.txt pc/b.txt pc/join.s.txt", ""},
		{"all state but traces lost", func(p *fixture) { p.remove(".kiln/snapshot"); p.remove(".kiln/content.db") }, Request{Patterns: []string{"a.txt"}}, "", all, ""},
		{"snapshot lost, asset removed after the part", func(p *fixture) {
			p.remove(".kiln/snapshot")
			p.buildWith(Request{Patterns: []string{"a.txt"}})
			p.remove("assets/b.txt")
		}, Request{Patterns: []string{"a.txt"}}, "", all, ""},
		{"fails now", func(p *fixture) { p.write("assets/join.s", "fail now") }, Request{Patterns: []string{"join.s"}, Platforms: []string{"pc"}}, "join.s",
			"pc/a.txt pc/b.txt web/a.txt web/b.txt web/join.s.txt", "join.s@web"},
		{"a product less", func(p *fixture) {
			p.write("assets/join.s", "part x 1")
			p.build()
			p.write("assets/join.s", "part y 1")
		}, Request{Patterns: []string{"join.s"}, Platforms: []string{"pc"}}, "join.s",
			"pc/a.txt pc/b.txt pc/join.s.txt pc/join.s.y.txt web/a.txt web/b.txt web/join.s.txt web/join.s.x.txt", ""},
		{"an edited product of another asset stays Kiln's", func(p *fixture) {
			p.write("assets/a.txt", "ALPHA")
			p.scribble("build/pc/b.txt")
		}, Request{Patterns: []string{"a.txt"}}, "a.txt", all, "b.txt join.s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, twoPlatforms)
			p.build()
			c.do(p)
			b := p.buildWith(c.req)
			if b.ran != c.ran {
				t.Errorf("the part ran %q, not %q", b.ran, c.ran)
			}
			if got := names(outputFiles(p.dir, "build")); got != c.files {
				t.Errorf("after the part there are\n%s, not\n%s", got, c.files)
			}
			p.wants(c.rest)
			p.nothing()
		})
	}
}

// TestPartialFirst begins with parts.
func TestPartialFirst(t *testing.T) {
	p := newProject(t, twoPlatforms)
	p.buildWith(Request{Patterns: []string{"join.s"}, Platforms: []string{"web"}})
	if got, want := names(outputFiles(p.dir, "build")), "web/a.txt web/join.s.txt"; got != want {
		t.Errorf("got %s, not %s", got, want)
	}
	p.buildWith(Request{Patterns: []string{"b.txt"}, Platforms: []string{"pc"}})
	p.wants("")
	p.nothing()
}

// TestCancel stops a build in the middle: what is finished stays finished, what was there before stays there.
func TestCancel(t *testing.T) {
	const files = `
-- assets/1.s --
text one
-- assets/2.s --
text two
hook stop
-- assets/3.s --
text three
use 2.s
-- assets/4.s --
text four
`
	for _, first := range []bool{true, false} {
		p := newProject(t, files)
		p.workers = 1
		h := &hooks{call: func(context.Context, string, processor.Job) error { return nil }}
		p.procs = testProcessors(h)
		want := "1.s.txt 2.s.txt 3.s.txt 4.s.txt" // outputs after the cancelled build
		if !first {
			p.build()
			for _, f := range []string{"1", "2", "3", "4"} {
				p.write("assets/"+f+".s", strings.Replace(p.read("assets/"+f+".s"), "text", "text again", 1))
			}
		}
		ctx, cancel := context.WithCancel(context.Background())
		h.call = func(ctx context.Context, _ string, _ processor.Job) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		}
		b, err := p.try(ctx, Request{})
		if err != nil || !b.stopped || strings.Contains(b.ran, "2.s") {
			t.Fatalf("the cancelled build: stopped %v, ran %q, %v", b.stopped, b.ran, err)
		}
		if first {
			want = strings.ReplaceAll(b.ran, ".s", ".s.txt")
		}
		if got := strings.ReplaceAll(names(outputFiles(p.dir, "build")), "pc/", ""); got != want {
			t.Errorf("after the cancelled build there are %q, not %q", got, want)
		}
		h.call = func(context.Context, string, processor.Job) error { return nil }
		rest := []string{"1.s", "2.s", "3.s", "4.s"}
		rest = slices.DeleteFunc(rest, func(s string) bool { return strings.Contains(b.ran, s) })
		p.wants(strings.Join(rest, " "))
		p.nothing()
	}
}

// TestCancelThenLess stops a build, and then removes an asset that it did not come to: its output is known, and goes.
func TestCancelThenLess(t *testing.T) {
	p := newProject(t, "-- assets/1.s --\nhook stop\n-- assets/2.txt --\ntwo\n-- assets/3.txt --\nthree\n")
	p.workers = 1
	h := &hooks{call: func(context.Context, string, processor.Job) error { return nil }}
	p.procs = testProcessors(h)
	p.build()
	ctx, cancel := context.WithCancel(context.Background())
	h.call = func(context.Context, string, processor.Job) error { cancel(); return errors.New("cancelled") }
	p.write("assets/1.s", "hook stop\ntext more")
	p.scribble("build/pc/3.txt")
	p.write("assets/3.txt", "drei")
	if _, err := p.try(ctx, Request{}); err != nil {
		t.Fatal(err)
	}
	h.call = func(context.Context, string, processor.Job) error { return nil }
	p.remove("assets/2.txt")
	p.remove("assets/3.txt")
	p.wants("1.s")
}

func TestFailFast(t *testing.T) {
	p := newProject(t, "-- assets/1.s --\nfail first\n-- assets/2.s --\ntext two\n-- assets/3.s --\ntext three\n")
	p.workers = 1
	b := p.buildWith(Request{FailFast: true})
	if b.ran != "1.s" || !b.stopped || b.Failed != 1 {
		t.Errorf("ran %q, %+v", b.ran, b.Summary)
	}
	p.wants("2.s 3.s")
	p.write("assets/1.s", "fail again")
	b = p.buildWith(Request{FailFast: true})
	if b.ran != "1.s" || names(outputFiles(p.dir, "build")) != "pc/2.s.txt pc/3.s.txt" {
		t.Errorf("ran %q, left %s", b.ran, names(outputFiles(p.dir, "build")))
	}
	p.wants("")
}

func TestForce(t *testing.T) {
	p := newProject(t, twoPlatforms)
	p.build()
	if b := p.buildWith(Request{Force: true}); b.Built != 6 {
		t.Errorf("built %d", b.Built)
	}
	if b := p.buildWith(Request{Force: true, Patterns: []string{"join.s"}}); b.ran != "join.s join.s@web" {
		t.Errorf("ran %q", b.ran)
	}
	p.nothing()
}

// TestForceParts: the parts of a job that is asked for run as well, those of others do not.
func TestForceParts(t *testing.T) {
	p := newProject(t, parted)
	p.build()
	all := "a.txt b.txt c.txt lister.s set.s set.s#+b.txt set.s#a.txt set.s#b.txt user.s"
	for _, c := range []struct{ pattern, ran string }{{"", all}, {"set.s", "set.s set.s#+b.txt set.s#a.txt set.s#b.txt"}, {"user.s", "user.s"}} {
		req := Request{Force: true}
		if c.pattern != "" {
			req.Patterns = []string{c.pattern}
		}
		if b := p.buildWith(req); b.ran != c.ran {
			t.Errorf("%q: ran %q, not %q", c.pattern, b.ran, c.ran)
		}
	}
	p.nothing()
}

// TestDryRun tells what a build would do, and writes nothing.
func TestDryRun(t *testing.T) {
	p := newProject(t, twoPlatforms)
	p.workers = 1 // so that both products of b.txt are links to one blob
	all := p.build()
	try := func(looked int) {
		t.Helper()
		if b := p.buildWith(Request{DryRun: true}); b.ran != "" || b.Summary.Reused != all.Jobs || b.Summary.LookedAt != looked {
			t.Errorf("ran %q; %d of %d up to date, looked at %d jobs", b.ran, b.Summary.Reused, all.Jobs, b.Summary.LookedAt)
		}
	}
	try(0) // no more than a build that has nothing to do
	p.write(".kiln/underway", "")
	try(all.Jobs)
	p.remove(".kiln/underway")
	p.write("assets/a.txt", "ALPHA")
	p.scribble("build/pc/b.txt")
	before := stamps(p.dir)
	b := p.buildWith(Request{DryRun: true})
	if b.ran != "a.txt a.txt@web b.txt b.txt@web" {
		t.Errorf("would run %q", b.ran)
	}
	after := stamps(p.dir)
	delete(before, ".kiln/lock")
	delete(after, ".kiln/lock")
	if len(before) != len(after) {
		t.Errorf("%d files before, %d after", len(before), len(after))
	}
	for f, s := range before {
		if after[f] != s {
			t.Errorf("%s was %s and is %s", f, s, after[f])
		}
	}
	p.wants("a.txt b.txt join.s")
}

// TestLastGood keeps the products of the last run that went well.
func TestLastGood(t *testing.T) {
	p := newProject(t, "-- assets/a.s --\ntext good\npart x 1\n-- assets/b.txt --\nb\n")
	good := func(text string) {
		t.Helper()
		if got := p.read("build/pc/a.s.txt"); got != text {
			t.Errorf("a.s.txt is %q, not %q", got, text)
		}
	}
	lastGood := func(failed int, ran string) {
		t.Helper()
		if b := p.buildWith(Request{OnError: results.LastGood}); b.Failed != failed || b.ran != ran {
			t.Errorf("failed %d, ran %q", b.Failed, b.ran)
		}
	}
	lastGood(0, "a.s b.txt")
	p.write("assets/a.s", "fail now")
	lastGood(1, "a.s")
	good("good\n")
	lastGood(1, "") // again, with nothing to do
	good("good\n")
	p.remove("build/pc/a.s.txt")
	lastGood(1, "")
	good("good\n")
	p.remove(".kiln/snapshot")
	lastGood(1, "")
	good("good\n")
	p.wants("") // without, the products of what failed go
	good("")
	if got := p.asked("SELECT file FROM products"); got != "build/pc/b.txt" {
		t.Errorf("the content database has %s", got)
	}
	lastGood(1, "")
	good("good\n")
	for i := range state.KeptTraces - 2 {
		p.write("assets/a.s", "fail "+strings.Repeat("again ", i+1))
		lastGood(1, "a.s")
		good("good\n")
	}
	p.write("assets/a.s", "text better")
	lastGood(0, "a.s")
	good("better\n")
	if got := names(outputFiles(p.dir, "build")); got != "pc/a.s.txt pc/b.txt" {
		t.Errorf("there are %s", got)
	}
	p.wants("")
}

// TestLastGoodShort: what stood for a failed asset goes when an older source comes back, whose products have other files, in a build of
// few tasks as well.
func TestLastGoodShort(t *testing.T) {
	p := newProject(t, "-- assets/b.txt --\nb\n-- assets/a.s --\ntext\n")
	p.age()
	for _, tt := range []struct {
		script, files string
		short         bool
	}{
		{"text", "pc/a.s.txt pc/b.txt", false},
		{"part x 1", "pc/a.s.txt pc/a.s.x.txt pc/b.txt", true},
		{"part y 1", "pc/a.s.txt pc/a.s.y.txt pc/b.txt", true},
		{"fail now", "pc/a.s.txt pc/a.s.y.txt pc/b.txt", true},
		{"part x 1", "pc/a.s.txt pc/a.s.x.txt pc/b.txt", true}, // holds again, and so is the last good one itself
	} {
		p.write("assets/a.s", tt.script)
		b := p.buildWith(Request{OnError: results.LastGood})
		if got := names(outputFiles(p.dir, "build")); got != tt.files || b.short != tt.short {
			t.Errorf("%s: short %t, there are %s", tt.script, b.short, got)
		}
		if got := strings.ReplaceAll(p.asked("SELECT file FROM products ORDER BY file"), "build/", ""); got != tt.files {
			t.Errorf("%s: the content database has %s", tt.script, got)
		}
	}
}

// TestLastGoodYields: products that stood for what failed go where what did not fail makes the same.
func TestLastGoodYields(t *testing.T) {
	for name, tt := range map[string]struct {
		script string
		also   map[string]string // file by name
		files  string
	}{
		"to a product of another processor": {"fail now\nshadow part x 2", nil, "pc/a.s.shadow.sh pc/a.s.x.txt pc/b.txt"},
		"to another asset's file":           {"fail now\nshadow text dark", map[string]string{"a.s.x.txt": "mine"}, "pc/a.s.shadow.sh pc/a.s.x.txt pc/b.txt"},
		"to another asset's folder":         {"fail now\nshadow text dark", map[string]string{"a.s.x.txt/c.txt": "c"}, "pc/a.s.shadow.sh pc/a.s.x.txt/c.txt pc/b.txt"},
		"to nothing":                        {"fail now\nshadow text dark", nil, "pc/a.s.shadow.sh pc/a.s.txt pc/a.s.x.txt pc/b.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, strings.Replace(several, "read other.bin\nshadow", "", 1)+"-- assets/b.txt --\nb\n")
			for _, f := range []string{"above.s", "list.s", "other.bin"} {
				p.remove("assets/" + f)
			}
			p.write("assets/a.s", "text a\npart x 1\nshadow text light")
			p.age()
			p.build()
			p.write("assets/a.s", tt.script)
			for f, text := range tt.also {
				p.write("assets/"+f, text)
			}
			for range 2 {
				b := p.buildWith(Request{OnError: results.LastGood})
				if got := names(outputFiles(p.dir, "build")); got != tt.files || b.Failed != 1 || strings.Contains(b.messages, "K0204") || strings.Contains(b.messages, "K0209") {
					t.Errorf("there are %s; failed %d\n%s", got, b.Failed, b.messages)
				}
				if got := p.read("build/pc/a.s.x.txt"); strings.HasPrefix(got, "1") != (name == "to nothing") {
					t.Errorf("a.s.x.txt has %q", got)
				}
				if got := strings.ReplaceAll(p.asked("SELECT file FROM products ORDER BY file"), "build/", ""); got != tt.files {
					t.Errorf("the content database has %s", got)
				}
				p.remove(".kiln/snapshot")
			}
		})
	}
}

// TestLastGoodParts: of an asset that fails, what its parts made stays as well, each as the others saw it.
func TestLastGoodParts(t *testing.T) {
	const parcels = "-- kiln.toml --\n[project]\nname = \"test\"\n[[parcels]]\nname = \"all\"\nassets = [\"**\"]\n"
	p := newProject(t, parcels+"-- assets/x.txt --\nold\n-- assets/y.txt --\ny\n-- assets/a.s --\ntake +x.txt\n")
	p.age()
	files := func() map[string]string {
		got := outputFiles(p.dir, "build/pc")
		maps.DeleteFunc(got, func(f, _ string) bool { return !strings.HasPrefix(f, "a.s") })
		return got
	}
	step := func(what string, failed int, want map[string]string) {
		t.Helper()
		b := p.buildWith(Request{OnError: results.LastGood})
		if got := files(); b.Failed != failed || !maps.Equal(got, want) {
			t.Errorf("%s: failed %d, short %t, there are %v, not %v", what, b.Failed, b.short, got, want)
		}
		if b.Failed > 0 && strings.Contains(b.messages, "K1603") {
			t.Errorf("%s: %s", what, b.messages)
		}
	}
	p.buildWith(Request{OnError: results.LastGood})
	want := files()
	if got := names(want); got != "a.s.+x.txt.part a.s.txt a.s.x.txt.part" {
		t.Fatalf("it made %s", got)
	}
	p.write("assets/a.s", "fail now\n")
	step("it asks for no part", 1, want)
	p.write("assets/y.txt", "other\n")
	step("while something else changes", 1, want)
	pr := p.open()
	p.must(pr.Lock(t.Context(), true, func() {}))
	r, err := pr.Build(t.Context(), Request{OnError: results.LastGood, Outcomes: report.AllOutcomes, Reporter: job.Silent{}})
	p.must(err)
	p.must(pr.Unlock())
	var told []string
	for _, o := range r.Outcomes {
		for i := range o.Products {
			if o.Asset == "a.s" {
				told = append(told, o.Products[i].File)
			}
		}
	}
	if slices.Sort(told); !slices.Equal(told, []string{"pc/a.s.+x.txt.part", "pc/a.s.txt", "pc/a.s.x.txt.part"}) {
		t.Errorf("told of %q", told)
	}
	p.remove("build/pc/a.s.x.txt.part")
	p.remove(".kiln/snapshot")
	step("with a lost output, and no snapshot", 1, want)
	p.write("assets/a.s", "take +x.txt\n")
	step("mended", 0, want)
	p.write("assets/x.txt", "fail\n")
	step("a part fails", 1, want)
	p.write("assets/x.txt", "old\n")
	step("mended again", 0, want)
	p.write("assets/a.s", "take y.txt\nfail now\n")
	step("another part is made before it fails", 1, want)
	p.write("assets/a.s", "take x.txt\n")
	p.write("assets/x.txt", "show one\n")
	p.buildWith(Request{OnError: results.LastGood})
	want = files()
	p.write("assets/a.s", "take x.txt\nfail now\n")
	p.write("assets/x.txt", "show two\n")
	step("the part is another one before it fails", 1, want)
	p.gc(365, upkeep.GCRequest{})
	p.remove("build/pc/a.s.x.txt.part")
	step("after all that nobody needs was dropped", 1, want)
	p.write("assets/a.s", "text\n")
	p.buildWith(Request{OnError: results.LastGood})
	if got := names(files()); got != "a.s.txt" {
		t.Errorf("it needs no part any more, and there are %s", got)
	}
	p.build()
}
