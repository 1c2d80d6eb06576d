package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/make/control"
	"github.com/kiln-pipeline/kiln/processor"
)

const shortcuts = `
-- assets/a.txt --
alpha
-- assets/b.txt --
beta
-- assets/d/e.txt --
epsilon
-- assets/d/f.txt --
phi
-- assets/join.s --
read a.txt
use b.txt
-- assets/above.s --
use join.s
-- assets/glob.s --
glob d/*.txt
-- assets/maybe.s --
try d/new.txt
-- assets/asks.s --
list d/f.txt
-- assets/warns.s --
warn of something
-- kiln.toml --
[project]
name = "test"
`

// shortStep is something that is done to a project, which jobs run then, and whether the build looks at few tasks.
type shortStep struct {
	name  string
	do    func(p *fixture)
	ran   string
	short bool
}

// goShort does each step to a project of its own, which was built, and checked by first; then more. That builds come to the same as clean
// ones is compared as for all builds here.
func goShort(t *testing.T, files string, first func(t *testing.T, b built), steps []shortStep, more func(t *testing.T, p *fixture, s shortStep)) {
	for _, s := range steps {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, files)
			p.age()
			first(t, p.build())
			p.nothing()
			s.do(p)
			if b := p.build(); b.ran != s.ran || b.short != s.short {
				t.Errorf("ran %q, short %t (%s); want %q, %t\n%s", b.ran, b.short, b.Because, s.ran, s.short, b.messages)
			}
			p.nothing()
			more(t, p, s)
		})
	}
}

// TestFewTasks tells which builds look at few tasks.
func TestFewTasks(t *testing.T) {
	goShort(t, shortcuts, func(*testing.T, built) {}, []shortStep{
		{"an edit", func(p *fixture) { p.write("assets/d/e.txt", "EPSILON") }, "d/e.txt", true},
		{"an edit that others see", func(p *fixture) { p.write("assets/b.txt", "BETA") }, "above.s b.txt join.s", true},
		{"an edit of a script that makes the same", func(p *fixture) { p.write("assets/join.s", "read a.txt\n\nuse b.txt\n") }, "join.s", true},
		{"a failure", func(p *fixture) { p.write("assets/join.s", "fail now\n") }, "above.s join.s", true},
		{"a warning goes", func(p *fixture) { p.write("assets/warns.s", "text no more\n") }, "warns.s", true},
		{"a file more", func(p *fixture) { p.write("assets/d/new.txt", "nu") }, "d/new.txt glob.s maybe.s", true},
		{"a file less", func(p *fixture) { p.remove("assets/d/e.txt") }, "glob.s", true},
		{"a file less that is asked for", func(p *fixture) { p.remove("assets/d/f.txt") }, "asks.s glob.s", true},
		{"another name", func(p *fixture) { p.rename("assets/d/e.txt", "assets/d/g.txt") }, "d/g.txt glob.s", true},
		{"several at once", func(p *fixture) {
			p.write("assets/a.txt", "ALPHA")
			p.write("assets/d/f.txt", "PHI")
			p.remove("assets/d/e.txt")
		}, "a.txt above.s d/f.txt glob.s join.s", true},
		{"a name that differs in case only", func(p *fixture) { p.write("assets/d/E.TXT", "other") }, "d/E.TXT d/e.txt", false},
		{"a file of another type, to which no rule applies either", func(p *fixture) { p.write("assets/d/x.bin", "x") }, "d/x.bin", true},
		{"the first file for another processor", func(p *fixture) { p.write("assets/d/x.s", "text x") }, "d/x.s", true},
		{"a new folder", func(p *fixture) { p.write("assets/n/x.txt", "x") }, "n/x.txt", true},
		{"an empty file", func(p *fixture) { p.write("assets/d/e.txt", "") }, "d/e.txt", true},
		{"a rule", func(p *fixture) {
			p.write("assets/d/rules.toml", "[[rules]]\nmatch = \"e.txt\"\nprocessor = \"none\"\n")
		}, "", true},
		{"a rule with settings", func(p *fixture) {
			p.write("assets/d/rules.toml", "[[rules]]\nmatch = \"*.s\"\nsettings = { say = \"bye\" }\n[[rules]]\nmatch = \"e.*\"\nprocessor = \"script\"\n")
		}, "d/e.txt", true},
		{"a rule that gives an id", func(p *fixture) {
			p.write("assets/rules.toml", "[[rules]]\nmatch = \"b.txt\"\nid = \"other\"\n")
		}, "join.s other", true},
		{"a folder less", func(p *fixture) { p.remove("assets/d") }, "asks.s glob.s", true},
		{"an output edited", func(p *fixture) { p.write("assets/a.txt", "ALPHA"); p.scribble("build/pc/d/e.txt") }, "a.txt above.s d/e.txt join.s", false},
	}, func(*testing.T, *fixture, shortStep) {})
}

const everyday = shortcuts + `
[[rules]]
match = "nothing/*.here"
processor = "none"

[[rules]]
match = "d/nobody.txt"
processor = "none"

[[parcels]]
name = "letters"
assets = ["**/*.txt"]

[[parcels]]
name = "scripts"
assets = ["*.s"]
-- assets/empty.txt --
-- assets/fails.s --
fail always
`

// TestFewEveryday has what projects have on most days: an empty file, rules that match nothing, parcels, one of which lacks something,
// and a job that fails.
func TestFewEveryday(t *testing.T) {
	goShort(t, everyday, func(t *testing.T, b built) {
		for _, want := range []string{"K0103", "K1603", "d/nobody.txt", "nothing/*.here"} {
			if !strings.Contains(b.messages, want) {
				t.Fatalf("nothing of %s: %s", want, b.messages)
			}
		}
	}, []shortStep{
		{"an edit", func(p *fixture) { p.write("assets/d/e.txt", "EPSILON") }, "d/e.txt", true},
		{"an edit that others see", func(p *fixture) { p.write("assets/b.txt", "BETA") }, "above.s b.txt join.s", true},
		{"an edit of what is in a parcel that lacks something", func(p *fixture) { p.write("assets/warns.s", "text other\n") }, "warns.s", true},
		{"an edit of what fails, which fails again", func(p *fixture) { p.write("assets/fails.s", "fail otherwise\n") }, "fails.s", true},
		{"it is mended", func(p *fixture) { p.write("assets/fails.s", "text well\n") }, "fails.s", false},
		{"another file is empty", func(p *fixture) { p.write("assets/d/e.txt", "") }, "d/e.txt", true},
		{"the file is empty no more", func(p *fixture) { p.write("assets/empty.txt", "full") }, "empty.txt", true},
		{"what a rule may have been meant for", func(p *fixture) { p.write("assets/d/nobodi.txt", "x") }, "d/nobodi.txt glob.s", false},
	}, func(t *testing.T, p *fixture, s shortStep) {
		s.do(p)
		p.write("assets/a.txt", "ALPHA")
		if b := p.build(); !b.short {
			t.Errorf("an edit after it: %s\n%s", b.Because, b.messages)
		}
		p.nothing()
	})
}

const parcelled = shortcuts + `
[[parcels]]
name = "letters"
assets = ["**/*.txt"]

[[parcels]]
name = "scripts"
assets = ["*.s"]

[[parcels]]
name = "single"
assets = ["d/e.txt"]
-- assets/x/far.s --
text far
ref x/farther.s
opt nobody.s
-- assets/x/farther.s --
text farther
`

// TestFewParcels has what parcels hold change: only those that it concerns are looked at.
func TestFewParcels(t *testing.T) {
	goShort(t, parcelled, func(*testing.T, built) {}, []shortStep{
		{"a file more", func(p *fixture) { p.write("assets/d/new.txt", "nu") }, "d/new.txt glob.s maybe.s", true},
		{"a file less", func(p *fixture) { p.remove("assets/d/e.txt") }, "glob.s", true},
		{"another name", func(p *fixture) { p.rename("assets/d/e.txt", "assets/d/g.txt") }, "d/g.txt glob.s", true},
		{"a folder less", func(p *fixture) { p.remove("assets/x") }, "", true},
		{"a reference to what is there", func(p *fixture) { p.write("assets/warns.s", "text w\nref join.s\n") }, "warns.s", true},
		{"a reference to what comes along with more", func(p *fixture) { p.write("assets/warns.s", "text w\nref x/far.s\n") }, "warns.s", true},
		{"an optional reference", func(p *fixture) { p.write("assets/warns.s", "text w\nopt x/far.s\n") }, "warns.s", true},
		{"two that refer to each other", func(p *fixture) {
			p.write("assets/warns.s", "text w\nref join.s\n")
			p.write("assets/join.s", "text j\nref warns.s\n")
		}, "above.s join.s warns.s", false},
		{"a file more that refers", func(p *fixture) { p.write("assets/more.s", "text more\nref x/far.s\nref a.txt\n") }, "more.s", true},
		{"a product more", func(p *fixture) { p.write("assets/warns.s", "text w\nmore side\n") }, "warns.s", true},
		{"a failure", func(p *fixture) { p.write("assets/warns.s", "fail\n") }, "warns.s", false},
		{"a failure outside of parcels", func(p *fixture) { p.write("assets/x/far.s", "fail\n") }, "x/far.s", true},
		{"somebody referred to it before it came", func(p *fixture) { p.write("assets/nobody.s", "text here\n") }, "nobody.s x/far.s", true},
	}, func(t *testing.T, p *fixture, _ shortStep) {
		if b := p.build(); b.Failed > 0 {
			return
		}
		p.write("assets/a.txt", "ALPHA")
		p.remove("assets/x/far.s")
		p.build()
		p.write("assets/x/far.s", "text far\nref b.txt\nref maybe.s\n")
		if p.build(); t.Failed() {
			t.Log("in the builds after it")
		}
		p.nothing()
	})
}

// TestFewRules has rules change what an asset is made by: what they do not concern stays, parts of its jobs and numbers included.
func TestFewRules(t *testing.T) {
	p := newProject(t, "-- kiln.toml --\n[project]\nname = \"test\"\n[platforms.pc]\n[platforms.web]\n[[parcels]]\nname = \"all\"\nassets = [\"**\"]\n"+
		"-- assets/rules.toml --\n[[rules]]\nmatch = \"p.s\"\nprocessors = [\"script\", \"shadow\"]\n-- assets/p.s --\npart x 1\nmore side\n-- assets/q.s --\ntext q\n")
	p.age()
	p.build()
	p.nothing()
	for _, rules := range []string{
		"[[rules]]\nmatch = \"p.s\"\nprocessors = [\"script\"]\n",
		"[[rules]]\nmatch = \"p.s\"\nplatforms.pc.processor = \"none\"\n",
		"[[rules]]\nmatch = \"p.s\"\nplatforms.web.processors = [\"script\", \"shadow\"]\n",
		"[[rules]]\nmatch = \"p.s\"\nplatforms.web.processor = \"copy\"\n",
		"[[rules]]\nmatch = \"q.s\"\nprocessor = \"none\"\n",
	} {
		p.write("assets/rules.toml", rules)
		if b := p.build(); !b.short {
			t.Errorf("%s: %s", rules, b.Because)
		}
		if ids := p.read("kiln.ids"); !strings.Contains(ids, "p.s\t") {
			t.Errorf("%s: kiln.ids:\n%s", rules, ids)
		}
		p.nothing()
	}
}

// TestFewStopped stops a build of few tasks; the next one goes on from there.
func TestFewStopped(t *testing.T) {
	p := newProject(t, shortcuts)
	p.age()
	p.build()
	p.write("assets/b.txt", "BETA")
	ctx, cancel := context.WithCancel(context.Background())
	b, err := p.try(ctx, Request{Workers: 1, Reporter: stopper{cancel: cancel}})
	if err != nil || !b.stopped {
		t.Fatalf("%+v, %v", b, err)
	}
	rest := p.build()
	if b.Built+rest.Built != 3 {
		t.Errorf("%d ran, then %d (%s)", b.Built, rest.Built, rest.ran)
	}
	p.nothing()
}

// stopper stops a build after its first job.
type stopper struct {
	Silent
	cancel func()
}

func (s stopper) JobFinished(string, bool, time.Duration) { s.cancel() }

// TestFewFarBack goes back and forth so often that the snapshot is written anew, and the log as well.
func TestFewFarBack(t *testing.T) {
	p := newProject(t, shortcuts)
	p.unchecked = true
	p.age()
	p.build()
	for i := range 250 {
		p.write("assets/a.txt", []string{"one", "two", "three"}[i%3])
		want := "a.txt join.s above.s"
		if i >= 3 {
			want = ""
		}
		if b := p.build(); !sameWords(b.ran, want) || b.Failed > 0 {
			t.Fatalf("round %d: ran %q, want %q", i, b.ran, want)
		}
	}
	p.unchecked = false
	p.build()
	if p.shorts < 200 {
		t.Errorf("%d of %d builds looked at few tasks", p.shorts, p.builds)
	}
}

// TestCompactedLog: a log that holds too much that is dead is rewritten by one build, and the ones after it look at few tasks as those
// before did.
func TestCompactedLog(t *testing.T) {
	p := newProject(t, "-- assets/a.txt --\na\n-- assets/w.s --\ntext\n")
	p.unchecked = true
	p.build()
	long, largest, n := 0, 0, 0
	for size := 0; n < 60 && size >= largest; n++ { // until it shrinks
		largest = size
		p.write("assets/w.s", fmt.Sprintf("warn %d %s", n, strings.Repeat("x", 100_000)))
		if b := p.build(); !b.short {
			long++
		}
		size = len(p.read(".kiln/traces"))
	}
	p.write("assets/a.txt", "other")
	if b := p.build(); long != 1 || !b.short || n == 60 {
		t.Errorf("%d builds of %d looked at all tasks; the next one at few: %t; up to %d bytes", long, n, b.short, largest)
	}
	p.unchecked = false
	p.build()
	p.nothing()
}

// TestFewOtherParts has a job run again in a build of few tasks, since what it read changed meanwhile, and ask for another part then. What
// the first one made is nobody's.
func TestFewOtherParts(t *testing.T) {
	for name, halt := range map[string]bool{"to the end": false, "halted": true} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t, shortcuts)
			p.write("assets/hook.s", "text none")
			p.age()
			meddle := true
			req := Request{Control: &control.Control{}}
			p.procs = testProcessors(&hooks{call: func(_ context.Context, _ string, job processor.Job) error {
				_, err := job.ReadFile("d/f.txt")
				part := "b.txt"
				if meddle {
					meddle, part = false, "a.txt"
					p.write("assets/d/f.txt", "changed")
					if halt {
						defer req.Control.Halt()
					}
				}
				_, err2 := job.Parts(part)
				_, err3 := job.ReadFile("d/f.txt")
				return errors.Join(err, err2, err3)
			}})
			p.build()
			p.write("assets/hook.s", "hook x")
			b, err := p.try(context.Background(), req)
			p.must(err)
			if b.short == halt {
				t.Errorf("it looked at few tasks: %t", b.short)
			}
			if got := p.read("build/pc/hook.s.a.txt.part"); !halt && got != "" {
				t.Errorf("left: %q", got)
			}
			p.build()
			p.nothing()
		})
	}
}

// TestLeftBeside: what was to become an output and could not be put in place is removed, also if all tasks are looked at because of that.
func TestLeftBeside(t *testing.T) {
	p := newProject(t, shortcuts)
	p.write("assets/hook.s", "hook\ntext one")
	p.age()
	hindered := false
	p.procs = testProcessors(&hooks{call: func(_ context.Context, _ string, j processor.Job) error {
		if _, err := j.ReadFile("d/f.txt"); err != nil || !hindered {
			return err
		}
		p.remove("build/pc/hook.s.txt")
		p.mkdir("build/pc/hook.s.txt")
		p.write("build/pc/.kiln-1-1", "half of it")
		return nil
	}})
	p.build()
	hindered = true
	p.write("assets/hook.s", "hook\ntext two")
	b, err := p.try(context.Background(), Request{Reporter: helper{do: func() { p.remove("build/pc/hook.s.txt") }}})
	p.must(err)
	if b.Failed > 0 || b.short {
		t.Errorf("%+v\n%s", b, b.messages)
	}
	if _, err := os.Lstat(p.path("build/pc/.kiln-1-1")); err == nil {
		t.Error("it is still there")
	}
}

// helper does something after each job.
type helper struct {
	Silent
	do func()
}

func (h helper) JobFinished(string, bool, time.Duration) { h.do() }
