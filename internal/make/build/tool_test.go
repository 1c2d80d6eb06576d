package build

import (
	"os"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// TestYoungTool has a program that was changed so lately that it may be changed again without its stat showing it: the next build looks
// into it once more.
func TestYoungTool(t *testing.T) {
	p := newProject(t, `
-- kiln.toml --
[project]
name = "test"
[[processors]]
name = "cut"
command = ["tools/cut", "{in}", "{out}"]
extensions = [".cut"]
-- tools/cut --
#!/bin/sh
exec cp "$1" "$2"
-- assets/a.cut --
a
`)
	requireLinux(t, "a shell script")
	p.unchecked = true
	p.must(chmodExecutable(p.path("tools/cut")))
	for _, young := range []bool{true, false} {
		at := time.Now().Add(time.Hour) // counts as young until then
		if !young {
			at = time.Now().Add(-time.Hour)
		}
		p.must(os.Chtimes(p.path("tools/cut"), at, at))
		p.build()
		snap, _, err := state.ReadSnapshot(p.path(".kiln/snapshot"))
		p.must(err)
		found := false
		for _, tool := range snap.Tools {
			if tool.Name == "tools/cut" {
				found = true
				if forgotten := tool.Stat == (source.Stat{}); forgotten != young {
					t.Errorf("young %v: %+v", young, tool)
				}
			}
		}
		if !found {
			t.Errorf("%+v", snap.Tools)
		}
		p.wants("")
	}
}
