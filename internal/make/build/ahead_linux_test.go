package build

import (
	"testing"

	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
)

// TestLookAhead: what jobs looked at last time is hashed before the engine begins, also what is no job's own source file, and programs.
func TestLookAhead(t *testing.T) {
	t.Parallel()
	p := newProject(t, `
-- kiln.toml --
[project]
name = "g"

[[rules]]
match = "common.txt"
processor = "none"
-- assets/a.s --
read common.txt
text a
-- assets/b.s --
run cat common.txt
-- assets/common.txt --
one
`)
	if b := p.build(); b.Failed != 0 {
		t.Fatal(b.messages)
	}
	p.remove("assets/common.txt")
	p.build()
	p.write("assets/common.txt", "one\n") // as when a branch is left and comes back
	p.write("assets/new.s", "text nobody looked at it\n")
	pr := p.open()
	s := pr.newSession(Request{Reporter: job.Silent{}})
	p.must(s.readSnapshot())
	table, _, _, err := s.Scan(&s.notes)
	p.must(err)
	s.ReadAll()
	p.must(s.openTraces(true))
	p.must(s.makeWorld(table, cas.OpenReadOnly(s.P.CasDir())))
	p.must(s.choose())
	known := func() (n int) {
		for _, path := range []string{"common.txt", "new.s"} {
			if i, _, ok := table.Find(path); ok && !table.At(i).Hash.IsZero() {
				n++
			}
		}
		return n
	}
	if n := known(); n != 0 {
		t.Errorf("%d of the new contents are known before", n)
	}
	s.LookAhead(s.wanted, 2)
	if n := known(); n != 1 {
		t.Errorf("%d are known, not the 1 at which jobs looked at", n)
	}
	if tool := s.W.Tools["cat"]; tool == nil || !tool.Found || tool.Hash.IsZero() {
		t.Errorf("the program is not known: %+v", tool)
	}
}
