package build

import (
	"runtime"
	"testing"
)

// catScript is a program that reads its asset and all that is in the folder inc of its view.
const catScript = "#!/bin/sh\nset -e\n" +
	"{ cat \"$1\"; for f in $(find inc -type f 2>/dev/null | LC_ALL=C sort); do echo \"$f\"; cat \"$f\"; done; } > \"$2\"\n"

// TestFarmDeclared: a program with declared inputs that lists a folder finds the same files in each of its runs on a worker. What it may
// read is declared with its job, and is not what was recorded of its last run.
func TestFarmDeclared(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the program is a shell script")
	}
	p := newProject(t, `-- kiln.toml --
[project]
name = "test"
[[rules]]
match = "inc/**"
processor = "none"
[[processors]]
name = "cat"
command = ["./tools/cat.sh", "{in}", "{out}"]
extensions = [".c1"]
output = ".out"
inputs = ["inc/**/*.h"]
-- tools/cat.sh --
`+catScript+`-- assets/a.c1 --
a
-- assets/b.c1 --
b
-- assets/inc/1.h --
1
-- assets/inc/deep/2.h --
2
`)
	p.must(chmodExecutable(p.path("tools/cat.sh")))
	p.farmed(2)
	for _, edit := range []struct {
		of   string
		do   func()
		jobs int
	}{
		{"nothing", func() {}, 2},
		{"the tool", func() { p.write("tools/cat.sh", catScript+"# edited\n") }, 2},
		{"the asset", func() { p.write("assets/a.c1", "edited\n") }, 1},
		{"an input", func() { p.write("assets/inc/1.h", "edited\n") }, 2},
		{"the list, by one more", func() { p.write("assets/inc/deep/3.h", "new\n") }, 2},
		{"the list, by one fewer", func() { p.remove("assets/inc/1.h") }, 2},
		{"all inputs", func() { p.remove("assets/inc") }, 2},
	} {
		edit.do()
		if b := p.build(); b.Remote != edit.jobs || b.Failed > 0 { // and it is compared with a build without workers
			t.Errorf("edit of %s: %+v\n%s%s", edit.of, b.Summary, b.messages, b.warned)
		}
	}
	p.farm = nil
	p.nothing()
}
