package build

import (
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/make/upkeep"
	"github.com/kiln-pipeline/kiln/processor"
)

// wantsFew builds, and tells if other jobs ran than those named, or if the build looked at all tasks.
func (p *fixture) wantsFew(ran ...string) built {
	p.Helper()
	b := p.build()
	if want := strings.Join(ran, " "); b.ran != want {
		p.Errorf("ran %q, not %q\n%s", b.ran, want, b.messages)
	}
	if !b.short {
		p.Errorf("all tasks were looked at: %s", b.Because)
	}
	return b
}

// reads tells if an output holds something else.
func (p *fixture) reads(name, want string) {
	p.Helper()
	if got := p.read(name); got != want {
		p.Errorf("%s has %q, not %q", name, got, want)
	}
}

const (
	oneOfX = `script of x.txt {"say":"one"}`
	seven  = `seed {"say":"7"}`
)

// Equal requests are one task, and each change costs what it reaches.
func TestRequests(t *testing.T) {
	p := newProject(t, `
-- assets/a.s --
request one x.txt
seed 7
-- assets/b.s --
request one x.txt
-- assets/x.txt --
setting
text from x
-- assets/c.s --
text alone
`)
	b := p.build()
	if b.Requests != 2 || b.RequestsRun != 2 || b.Jobs != 4 || b.Built != 4 {
		t.Errorf("first: %+v", b.Summary)
	}
	p.reads("build/pc/a.s.txt", "one\nfrom x\nseed 7\n")
	p.nothing()

	p.write("assets/x.txt", "setting\ntext other\n") // the request, and both who asked
	b = p.wantsFew("a.s", "b.s", oneOfX, "x.txt")
	if b.RequestsRun != 1 || b.LookedAt > 6 {
		t.Errorf("edited: %+v", b.Summary)
	}
	p.write("assets/x.txt", "setting\ntext other\n\n") // what the request makes of it is the same
	if b = p.wantsFew(oneOfX, "x.txt"); b.Built != 1 {
		t.Errorf("cut off: %+v", b.Summary)
	}
	p.write("assets/b.s", "text b\n")
	p.wantsFew("b.s")
	p.write("assets/x.txt", "setting\ntext other\n\n\n") // only a.s asks now: it was built
	if b = p.wantsFew(oneOfX, "x.txt"); b.Built != 2 {
		t.Errorf("asked for by one: %+v", b.Summary)
	}
	p.write("assets/b.s", "request one x.txt\n")
	p.wantsFew()                                 // as it was
	p.write("assets/a.s", "request one x.txt\n") // nobody asks for the seed any more
	if b = p.wantsFew("a.s"); b.Requests != 1 {
		t.Errorf("one asked for less: %+v", b.Summary)
	}
	p.write("assets/a.s", "seed 7\n") // somebody else asks for the other one, and the seed is as it was
	if b = p.wantsFew("a.s"); b.Requests != 2 || b.RequestsRun != 0 {
		t.Errorf("asked again: %+v", b.Summary)
	}
	p.remove("assets/b.s")
	if b = p.wantsFew(); b.Requests != 1 {
		t.Errorf("nobody asks: %+v", b.Summary)
	}
	p.write("assets/c.s", "request one x.txt\nseed 8\n")
	if b = p.wantsFew("c.s", `seed {"say":"8"}`); b.Requests != 3 {
		t.Errorf("another one asks: %+v", b.Summary)
	}
	p.nothing()
}

// Requests of bytes, of what requests made, and of products; and products that are adopted.
func TestRequestSources(t *testing.T) {
	p := newProject(t, `
-- assets/a.s --
bytes one setting|text of bytes
adopt twin x.txt
-- assets/b.s --
bytes one setting|text of bytes
request two +x.txt
-- assets/x.txt --
setting
text text deep
`)
	b := p.build()
	if b.Requests != 4 || b.RequestsRun != 4 || b.Failed != 0 {
		t.Errorf("first: %+v\n%s", b.Summary, b.messages)
	}
	p.reads("build/pc/a.s.txt", "one\nof bytes\n")
	p.reads("build/pc/a.s.twin.txt", "hello\ntext deep\n")
	p.reads("build/pc/b.s.txt", "one\nof bytes\ndeep\n")
	p.write("assets/x.txt", "setting\ntext text deeper\n")
	if b = p.build(); b.RequestsRun != 3 || !b.short {
		t.Errorf("edited: %+v", b.Summary)
	}
	p.reads("build/pc/a.s.twin.txt", "hello\ntext deeper\n")
	p.write("assets/a.s", "bytes one setting|text of other bytes\nadopt twin x.txt\n")
	if b = p.build(); b.RequestsRun != 1 || b.Requests != 5 || !b.short {
		t.Errorf("other bytes: %+v", b.Summary)
	}
	p.nothing()
}

// A request that fails says so once, and each who asked says that it needs it.
func TestRequestFails(t *testing.T) {
	p := newProject(t, `
-- assets/a.s --
request one x.txt
-- assets/b.s --
text before
request one x.txt
-- assets/x.txt --
text fine
`)
	p.build()
	p.write("assets/x.txt", "fail it is broken\n")
	b := p.wantsFew("a.s", "b.s", oneOfX, "x.txt")
	if b.Failed != 2 || strings.Count(b.messages, "error[K0201]") != 1 || strings.Count(b.messages, "needs script of x.txt") != 2 {
		t.Errorf("%+v\n%s", b.Summary, b.messages)
	}
	p.nothing()
	p.write("assets/x.txt", "text fine\n")
	if b = p.wantsFew(); b.Failed != 0 { // all is as it was
		t.Errorf("corrected: %+v", b.Summary)
	}
	p.write("assets/a.s", "request one y.txt\n")
	b = p.build()
	if b.Failed != 1 || !strings.Contains(b.messages, "y.txt") {
		t.Errorf("missing: %+v\n%s", b.Summary, b.messages)
	}
	p.write("assets/y.txt", "text here now\n")
	if b = p.build(); b.Failed != 0 {
		t.Errorf("there now: %+v\n%s", b.Summary, b.messages)
	}
}

// Parts of a request are the request's.
func TestRequestParts(t *testing.T) {
	p := newProject(t, `
-- assets/a.s --
request one x.txt
-- assets/x.txt --
take y.txt
-- assets/y.txt --
inner
`)
	p.build()
	p.reads("build/pc/a.s.txt", "inner\n\n")
	p.write("assets/y.txt", "another")
	p.build()
	p.reads("build/pc/a.s.txt", "another\n")
	p.write("assets/a.s", "text before\nrequest one x.txt\n") // the request is concerned, and does not run
	if b := p.wantsFew("a.s"); b.RequestsRun != 0 {
		t.Errorf("%+v", b.Summary)
	}
	p.write("assets/y.txt", "a third")
	p.build()
	p.reads("build/pc/a.s.txt", "before\na third\n")
	p.write("assets/x.txt", "text no parts")
	p.build()
	p.write("assets/a.s", "text nothing")
	if b := p.build(); b.Requests != 0 {
		t.Errorf("%+v", b.Summary)
	}
	p.nothing()
}

// The settings of another asset are seen as they are: what rules and the platform say, and what of it a request has to give itself.
func TestAssetSettings(t *testing.T) {
	p := newProject(t, `
-- kiln.toml --
[project]
name = "test"
[platforms.pc.script]
say = "pc"
-- assets/a.s --
given sub/b.s
-- assets/c.s --
given sub/b.txt
-- assets/sub/b.s --
text b
-- assets/sub/b.txt --
text
`)
	p.build()
	p.reads("build/pc/a.s.txt", "pc\nmap[]\n")
	p.reads("build/pc/c.s.txt", "no settings\n")
	p.write("assets/sub/rules.toml", "[[rules]]\nmatch = \"*.s\"\nsettings = { say = \"sub\" }\n")
	if b := p.build(); b.Built != 2 {
		t.Errorf("a rule: %+v", b.Summary)
	}
	p.reads("build/pc/a.s.txt", "sub\nmap[say:sub]\n")
	p.write("assets/sub/b.s", "text another")
	p.wantsFew("sub/b.s")
	// What the platform says is another matter than what the rule says, although the asset has the same.
	p.write("kiln.toml", "[project]\nname = \"test\"\n[platforms.pc.script]\nsay = \"sub\"\n")
	p.build()
	p.reads("build/pc/a.s.txt", "sub\nmap[]\n")
	p.write("assets/sub/rules.toml", "[[rules]]\nmatch = \"b.s\"\nprocessor = \"copy\"\n")
	p.build()
	p.reads("build/pc/a.s.txt", "no settings\n")
	p.remove("assets/sub/b.s")
	p.build()
	p.write("assets/sub/b.s", "text back")
	p.remove("assets/sub/rules.toml")
	p.build()
	p.reads("build/pc/a.s.txt", "sub\nmap[]\n")
	p.nothing()
}

// What a request is about stays as long as somebody asks, and comes again when it is lost.
func TestRequestGC(t *testing.T) {
	p := newProject(t, `
-- assets/a.s --
bytes one setting|text of bytes
`)
	p.build()
	p.gc(0, upkeep.GCRequest{})
	p.procs = testProcessors(nil)
	p.procs[0].(*script).version = 2 // the request runs again, out of its bytes
	if b := p.build(); b.Failed != 0 || b.RequestsRun != 1 {
		t.Errorf("%+v\n%s", b.Summary, b.messages)
	}
	p.reads("build/pc/a.s.txt", "one\nof bytes\n")
	p.write("assets/a.s", "bytes one read x.txt\n")
	p.build() // it failed once in a way that could be found again
	p.write("assets/x.txt", "x")
	p.build()
	p.remove(".kiln/cas")
	if b := p.build(); b.Failed != 0 {
		t.Errorf("%+v\n%s", b.Summary, b.messages)
	}
}

// A request that cannot be is looked at again: its processor may come, go, and take other settings.
func TestRequestOfNoProcessor(t *testing.T) {
	p := newProject(t, `
-- assets/a.s --
seed 7
`)
	all := p.procs
	p.procs = []processor.Processor{all[0], all[1], all[3]} // without the seeder
	if b := p.build(); b.Failed != 1 || !strings.Contains(b.messages, `there is no processor "seed"`) {
		t.Errorf("not there: %+v\n%s", b.Summary, b.messages)
	}
	p.procs = all
	if b := p.build(); b.Failed != 0 || b.Requests != 1 {
		t.Errorf("there: %+v\n%s", b.Summary, b.messages)
	}
	p.procs = []processor.Processor{all[0], all[1], all[3]}
	if b := p.build(); b.Failed != 1 || b.Requests != 0 {
		t.Errorf("gone: %+v\n%s", b.Summary, b.messages)
	}
}

// Requests of a file, and of the product of the asset with that path, are two, also by name, and one that needs itself says so.
func TestRequestNames(t *testing.T) {
	p := newProject(t, `
-- assets/a.s --
request one x.s
product x.s
request one +x.s
-- assets/x.s --
text hello
`)
	b := p.build()
	for _, name := range []string{
		`script of x.s {"say":"one"}`, "script of the product of x.s", `script of the product of script of x.s {"say":"one"}`,
	} {
		if !strings.Contains(" "+b.ran+" ", " "+name+" ") {
			t.Errorf("ran %q without %q", b.ran, name)
		}
	}
	if strings.ContainsAny(b.ran, "\x00\x01") || b.Requests != 3 || b.Failed != 0 {
		t.Errorf("%q %+v\n%s", b.ran, b.Summary, b.messages)
	}
	p.write("assets/a.s", "seed fail\n")
	b = p.build()
	needs := `assets/a.s: error[K0202]: needs seed {"say":"fail"}, which failed`
	if !strings.HasPrefix(b.messages, `error[K0201]: processor "seed": no such seed`) || !strings.Contains(b.messages, needs) {
		t.Errorf("%s", b.messages)
	}
}
