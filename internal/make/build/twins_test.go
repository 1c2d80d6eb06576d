package build

import (
	"context"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/view"
)

const someTwins = `
-- kiln.toml --
[project]
name = "test"
[platforms.pc]
[platforms.web]
[[rules]]
match = "differs.s"
platforms.web.settings = { say = "web" }
[[rules]]
match = "several.s"
platforms.web.processors = ["script", "shadow"]
[[rules]]
match = "asks.s#cape"
platforms.web.settings = { say = "cape" }
-- assets/plain.s --
text plain
read x.txt
more side
-- assets/platform.s --
platform
-- assets/differs.s --
text differs
-- assets/several.s --
text several
-- assets/uses.s --
use plain.s
list plain.s
request one x.txt
ask x.txt
-- assets/deep.s --
use platform.s
-- assets/list.s --
list several.s
-- assets/asks.s --
named cape x.txt
-- assets/x.txt --
setting
text x
`

// What does not depend on the platform runs once: neither its name, nor settings, nor what is needed there.
func TestRunsOnce(t *testing.T) {
	p := newProject(t, someTwins)
	p.workers = 1
	b := p.build()
	want := "asks.s asks.s@web deep.s deep.s@web differs.s differs.s@web list.s list.s@web plain.s platform.s platform.s@web " +
		`script of x.txt {"say":"cape"}@web script of x.txt {"say":"one"} script of x.txt {"say":"plain"} several.s several.s/shadow@web uses.s uses.s#x.txt x.txt`
	if b.ran != want || b.Jobs != 19 || b.Built != 15 || b.Reused != 4 || b.Requests != 4 || b.RequestsRun != 3 {
		t.Errorf("ran %q, not %q: %+v", b.ran, want, b.Summary)
	}
	p.reads("build/web/plain.s.txt", "plain\nsetting\ntext x\n\n")
	p.reads("build/web/plain.s.side.more", "more side")
	p.nothing()

	p.write("assets/x.txt", "setting\ntext y\n")
	p.wantsFew("asks.s", "asks.s@web", "plain.s", `script of x.txt {"say":"cape"}@web`, `script of x.txt {"say":"one"}`,
		`script of x.txt {"say":"plain"}`, "uses.s", "uses.s#x.txt", "x.txt")
	p.remove("build/web/plain.s.txt")
	if b := p.build(); b.Built != 0 {
		t.Errorf("a product of a run elsewhere was put back by running %s", b.ran)
	}
	if b := p.buildWith(Request{Force: true}); b.Built != 19 || b.RequestsRun != 4 {
		t.Errorf("forced: %+v", b.Summary)
	}
	p.nothing()

	v, err := p.open().Look(context.Background(), []string{"plain.s"}, []string{"web"})
	p.must(err)
	if j := v.Assets[0].Jobs[0]; j.State != view.UpToDate || j.LastRun.Why.Cause != engine.Forced {
		t.Errorf("%+v", j)
	}
}

// A platform that is built later takes what the runs for another one made, and one that is added as well.
func TestRunsOnceLater(t *testing.T) {
	p := newProject(t, "-- assets/plain.s --\nuse x.txt\n-- assets/x.txt --\nx\n-- assets/platform.s --\nplatform\n")
	p.wants("plain.s platform.s x.txt")
	p.write("kiln.toml", "[project]\nname = \"test\"\n[platforms.pc]\n[platforms.web]\n")
	p.wants("platform.s@web")
	p.reads("build/web/plain.s.txt", "x\n")
	p.write("assets/x.txt", "y\n")
	b, err := p.try(context.Background(), Request{Platforms: []string{"web"}})
	p.must(err)
	if b.ran != "plain.s@web x.txt@web" {
		t.Errorf("ran %s", b.ran)
	}
	p.wants("") // on pc, by the run on web
	p.reads("build/pc/plain.s.txt", "y\n")
	v, err := p.open().Look(context.Background(), []string{"plain.s"}, []string{"pc"})
	p.must(err)
	if why := v.Assets[0].Jobs[0].LastRun.Why; why.Cause != engine.InputDiffers || why.Subject != "web" {
		t.Errorf("%+v", why)
	}
}

// TestTwinsByHand: jobs are no twins if rules name other dependencies for them, and what a pattern of assets means is compared on each
// platform by itself.
func TestTwinsByHand(t *testing.T) {
	const head = "-- kiln.toml --\n[project]\nname = \"test\"\n[platforms.pc]\n[platforms.web]\n"
	p := newProject(t, head+"[[rules]]\nmatch = \"a.s\"\nprocessor = \"shadow\"\nneeds = [\"c.txt\"]\nplatforms.web.processor = \"script\"\n"+
		"[[rules]]\nmatch = \"a.s\"\nprocessor = \"script\"\n-- assets/a.s --\ntext a\n-- assets/c.txt --\nc\n")
	p.wants("a.s a.s@web c.txt")
	p.write("assets/c.txt", "other")
	p.wants("a.s@web c.txt c.txt@web") // on web it is asked for first

	p = newProject(t, head+"[[rules]]\nmatch = \"a.s\"\nneeds = [\"c.*\"]\n[[rules]]\nmatch = \"c.bin\"\nplatforms.web.processor = \"none\"\n"+
		"-- assets/a.s --\ntext a\n-- assets/c.txt --\nc\n-- assets/c.bin --\nc\n")
	p.wants("a.s a.s@web c.bin c.txt") // c.bin is not on web
	p.write("assets/c.bin", "other")
	p.wants("a.s c.bin")
	p.write("assets/c.txt", "other")
	p.build()
	p.nothing()

	// Whether the products that it asks for are of another platform depends on its own.
	p = newProject(t, head+"-- assets/a.s --\nperhaps c.txt web -\n-- assets/c.txt --\nc\n")
	p.build()
	for platform, want := range map[string]string{"pc": "c.txt true\nweb copy ", "web": "c.txt true\n copy "} {
		if got := p.read("build/" + platform + "/a.s.txt"); !strings.HasPrefix(got, want) {
			t.Errorf("on %s it says %q", platform, got)
		}
	}
}

// TestOtherPlatformInPart: a build of one platform also runs jobs of another one that a job asks for, and the content database has these.
func TestOtherPlatformInPart(t *testing.T) {
	p := newProject(t, "-- kiln.toml --\n[project]\nname = \"test\"\n[platforms.pc]\n[platforms.web]\n"+
		"-- assets/a.s --\nperhaps c.s web -\n-- assets/c.s --\nread d.txt\n-- assets/d.txt --\nd\n")
	p.build()
	p.write("assets/d.txt", "other")
	p.buildWith(Request{Platforms: []string{"pc"}})
	p.compareWithClean(p.build())
}

// TestTwinOnOtherPlatform: a job asks for the products of its own asset on another platform, whose job would take over its result.
func TestTwinOnOtherPlatform(t *testing.T) {
	p := newProject(t, "-- kiln.toml --\n[project]\nname = \"test\"\n[platforms.pc]\n[platforms.web]\n-- assets/a.s --\ntext 1\n")
	p.build()
	p.write("assets/a.s", "perhaps a.s web script\ntext 2\n")
	b := p.build()
	t.Log(b.messages)
	p.compareWithClean(b)
}
