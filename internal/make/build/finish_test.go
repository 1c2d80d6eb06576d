package build

import (
	"context"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/processor"
)

// TestRootCause changes why something fails far below: the messages of those above tell of the cause as it is now.
func TestRootCause(t *testing.T) {
	p := newProject(t, "-- assets/a.s --\nuse b.s\n-- assets/b.s --\nuse c.s\n-- assets/c.s --\nfail here\n")
	b := p.wants("a.s b.s c.s")
	if b.Failed != 3 || !strings.Contains(b.messages, "needs b.s, which failed\n  the cause is c.s\n") {
		t.Errorf("failed %d:\n%s", b.Failed, b.messages)
	}
	p.write("assets/c.s", "text good")
	p.write("assets/b.s", "use c.s\nfail here")
	b = p.wants("a.s b.s c.s")
	if b.Failed != 2 || strings.Contains(b.messages, "the cause is c.s") {
		t.Errorf("failed %d:\n%s", b.Failed, b.messages)
	}
	p.nothing()
	p.write("assets/b.s", "text good")
	p.wants("a.s b.s")
}

// TestDidYouMean adds an asset with a name that is more like the one that is missing.
func TestDidYouMean(t *testing.T) {
	p := newProject(t, "-- assets/a.s --\nuse taank.txt\n-- assets/tork.txt --\ntork\n")
	hint := func(like string) {
		t.Helper()
		if b := p.build(); b.messages != "assets/a.s: error[K0208]: there is no asset \"taank.txt\"\n  did you mean \""+like+"\"?\n" {
			t.Errorf("got %s", b.messages)
		}
	}
	hint("tork.txt")
	p.write("assets/tank.txt", "tank")
	hint("tank.txt")
}

// TestFolderClash has one output where another one needs a folder.
func TestFolderClash(t *testing.T) {
	p := newProject(t, `
-- assets/sounds/jump.wav --
jump
-- assets/sounds/run.wav --
run
-- assets/theme.ogg --
theme
-- assets/fine.txt --
fine
-- assets/rules.toml --
[[rules]]
match = "theme.ogg"
id    = "sounds"
`)
	b := p.wants("fine.txt sounds sounds/jump.wav sounds/run.wav")
	if b.Failed != 3 {
		t.Errorf("failed %d:\n%s", b.Failed, b.messages)
	}
	p.nothing()
	p.remove("assets/rules.toml")
	p.wants("theme.ogg")
}

// TestToolNoLongerWanted changes a program that no job looks for any more: nothing is to be done, and that is soon found out.
func TestToolNoLongerWanted(t *testing.T) {
	p := newProject(t, "-- assets/a.s --\nhook tool\n-- tool --\n#!/bin/sh\n")
	p.must(chmodExecutable(p.path("tool")))
	p.procs = testProcessors(&hooks{call: func(_ context.Context, _ string, job processor.Job) error {
		_, err := job.Tool("./tool")
		return err
	}})
	p.unchecked = true // a clean build has its tool elsewhere
	p.wants("a.s")
	p.nothing()
	p.write("tool", "#!/bin/sh\n# more")
	p.wants("a.s")
	p.write("assets/a.s", "text without")
	p.wants("a.s")
	p.write("tool", "#!/bin/sh\n# even more")
	p.nothing()
}

// TestLessPlatforms takes an asset from one platform: its outputs go, and the database no longer tells of them.
func TestLessPlatforms(t *testing.T) {
	p := newProject(t, twoPlatforms)
	p.build()
	p.write("assets/rules.toml", "[[rules]]\nmatch = \"b.txt\"\nplatforms.web.processor = \"none\"\n")
	p.wants("")
	p.remove("assets/rules.toml")
	p.wants("")
	p.write("kiln.toml", "[project]\nname = \"test\"\n[platforms.web]\n")
	p.wants("")
	p.nothing()
}

// TestRemovalFails has an output that cannot be removed: it stays known, and goes when it can.
func TestRemovalFails(t *testing.T) {
	p := newProject(t, "-- assets/a.txt --\na\n-- assets/sub/b.txt --\nb\n")
	p.build()
	p.remove("assets/sub")
	release := immutable(t, p.path("build/pc/sub"))
	p.unchecked = true
	for range 2 {
		b := p.build()
		if want := "build/pc/sub/b.txt: error[K0210]: the output cannot be removed: operation not permitted\n  check that the output folder can be written to and nothing stands in the way\n"; b.messages != want {
			t.Errorf("got %q, not %q", b.messages, want)
		}
		if b.ran != "" {
			t.Errorf("ran %s", b.ran)
		}
	}
	release()
	p.unchecked = false
	p.wants("")
	p.nothing()
}

// TestFolderInTheWay puts a folder where an output stands.
func TestFolderInTheWay(t *testing.T) {
	for _, inside := range []bool{false, true} {
		p := newProject(t, "-- assets/a.txt --\na\n-- assets/b.txt --\nb\n")
		p.build()
		p.remove("build/pc/a.txt")
		p.mkdir("build/pc/a.txt")
		if inside {
			p.write("build/pc/a.txt/mine", "mine")
		}
		p.write("assets/b.txt", "B")
		p.unchecked = true
		for range 2 {
			b := p.build()
			if b.Failed != 1 || !strings.HasPrefix(b.messages, "build/pc/a.txt: error[K0210]: the output cannot be written: a folder stands in its place\n") {
				t.Errorf("failed %d: %q", b.Failed, b.messages)
			}
		}
		if got := p.read("build/pc/b.txt"); got != "B" {
			t.Errorf("b.txt is %q", got)
		}
		p.unchecked = false
		p.remove("build/pc/a.txt")
		p.wants("")
		p.nothing()
	}
}

// TestFileForFolder has an output where a folder of outputs was.
func TestFileForFolder(t *testing.T) {
	p := newProject(t, "-- assets/sub/a.txt --\na\n-- assets/sub/deep/b.txt --\nb\n")
	p.build()
	p.remove("assets/sub")
	p.write("assets/sub", "a file")
	p.wants("sub")
	p.nothing()
	p.remove("assets/sub")
	p.write("assets/sub/a.txt", "a")
	p.wants("sub/a.txt")
	p.nothing()
}

// TestFileInTheWay puts a file where a folder of outputs stands, and where the output folder stands.
func TestFileInTheWay(t *testing.T) {
	for _, f := range []string{"build/pc/sub", "build/pc", "build"} {
		p := newProject(t, "-- assets/a.txt --\na\n-- assets/sub/b.txt --\nb\n")
		p.build()
		p.remove(f)
		p.write(f, "mine")
		p.unchecked = true
		for range 2 {
			if b := p.build(); b.Failed == 0 || b.ran != "" || !strings.Contains(b.messages, "error[K0210]: the output cannot be written: a file stands where a folder should be") {
				t.Errorf("%s: failed %d, ran %q: %s", f, b.Failed, b.ran, b.messages)
			}
		}
		p.unchecked = false
		p.remove(f)
		p.wants("")
		p.nothing()
	}
}
