package build

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/extend/seal"
	"github.com/kiln-pipeline/kiln/internal/store/share/reapi/reapitest"
)

// lookScript is a program that does what the lines of its asset say, and writes what it saw.
const lookScript = `#!/bin/sh
names() {
	for f in "$1"/* "$1"/.[!.]*; do
		[ -e "$f" ] && case "${f##*/}" in build|.kiln) ;; *) echo "  ${f##*/}" ;; esac
	done
}
while read -r what path; do
	echo "$what $path"
	case $what in
	names) names "$path" ;;
	real) names "../../../../../$path" ;;
	read) [ -f "$path" ] && while read -r line; do echo "  $line"; done <"$path" ;;
	ask) if [ -d "$path" ]; then echo "  folder"; elif [ -f "$path" ]; then echo "  file"; fi ;;
	go) (cd "$path" 2>/dev/null && echo "  gone") ;;
	link) ln -s "$PWD/../../../../../$path" "$TMPDIR/l" && names "$TMPDIR/l"; rm -f "$TMPDIR/l" ;;
	need) [ -f "../needs/$path" ] && while read -r line; do echo "  $line"; done <"../needs/$path" ;;
	built) [ -e "../../../../../build/pc/$path" ] && echo "  built" ;;
	esac
done <"$1" >"$2"
:
`

// lookProcessor is the part of a kiln.toml that runs lookScript.
const lookProcessor = `[[processors]]
name = "look"
command = ["tools/look", "{in}", "{out}"]
extensions = [".look"]
output = ".out"
inputs = "traced"
`

// runLook is a script that has lookScript run, traced, with a file of its own in the place of one that may be there.
const runLook = `processor("run", extensions = [".run"], products = {"text": (".out", "what it saw")})
def process(job):
    r = job.run(["./tools/look", job.path, "../out/seen"], inputs = "traced", files = {"d/b.txt": "given\n"})
    job.write(r.files["seen"])
`

// TestRandomTraced has traced programs that list folders, ask for what is missing and go through links, while source files, ignored ones,
// empty folders and what Kiln makes itself come and go, and compares every build with a clean one.
func TestRandomTraced(t *testing.T) {
	if err := seal.Supported().Trace; err != nil {
		t.Skip(err)
	}
	for _, roots := range []string{
		`["assets"]`, `["assets", "over"]`, `["."]`, `["assets"] # and workers`, `["assets", "over"] # and workers`, `["."] # and workers`,
	} {
		t.Run(roots, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, "-- kiln.toml --\n[project]\nname = \"test\"\nroots = "+roots+"\n"+lookProcessor+`[[rules]]
match = "**/*.sh"
processor = "none"
[[rules]]
match = "**/*.{look,run}"
needs = ["**/*.n", "1.*"]
inputs = ["d/**/*.txt"]
[[processors]]
script = "tools/run.star"
-- tools/run.star --
`+runLook+`-- tools/look --
`+lookScript+"-- over/keep.txt --\nkeep\n-- assets/keep.txt --\nkeep\n")
			p.must(chmodExecutable(p.path("tools/look")))
			p.workers = 2
			r := &random{p: p, rng: randomSource(t)}
			var f *reapitest.Farm
			remote := 0
			if strings.HasSuffix(roots, "workers") {
				f = p.farmed(2)
			}
			for i := range edits() / 50 {
				for range 1 + r.rng.IntN(3) {
					r.lookedAt()
				}
				b := p.build()
				if remote += b.Remote; strings.Contains(b.messages, "K1513") {
					t.Errorf("step %d: nothing changed meanwhile: %s", i, b.messages)
				}
				if t.Failed() {
					t.Fatalf("after:\n%s", strings.Join(r.log[max(0, len(r.log)-12):], "\n"))
				}
			}
			if f != nil {
				if t.Logf("%d actions, %d jobs of them", f.Ran(), remote); remote == 0 && edits() >= 50 {
					t.Error("no worker ran a job to its end")
				}
			}
		})
	}
}

// lookedAt is an edit of what programs look at.
func (r *random) lookedAt() {
	name := func() string {
		return pick(r, "", "", "d/", "d/e/") + pick(r, "a.txt", "b.txt", "x~", "t.tmp", "f", "f/g.txt", "empty", ".dot")
	}
	root := pick(r, "assets/", "assets/", "assets/", "over/")
	file := root + name()
	switch r.rng.IntN(16) {
	case 0, 1, 2, 3:
		var b strings.Builder
		for range 1 + r.rng.IntN(4) {
			fmt.Fprintf(&b, "%s\n", pick(r, "names .", "names d", "names d/e", "names f", "real assets", "real assets/d", "real .", "real over", "link assets/d", "link .",
				"go d", "go d/empty", "built x.out", "need n.n", "need d/m.n", "need assets/n.n", "ask "+name(), "ask "+name(), "read "+name(), "read "+name(), "ask assets/"+name(), "read assets/"+name(),
				"read d/../"+name(), "ask d/e/../"+name(), "read f/../"+name(), "ask empty/../../"+name()))
		}
		r.writeOver(root+pick(r, "1.look", "2.look", "3.look", "d/4.look", "5.run", "d/6.run"), b.String())
	case 14, 15:
		r.writeOver(root+pick(r, "n.n", "d/m.n"), fmt.Sprint("needed ", r.rng.IntN(3), "\n"))
	case 4, 5, 6:
		r.writeOver(file, fmt.Sprint(r.rng.IntN(3), "\n"))
	case 7:
		r.clear(file)
		r.log = append(r.log, "a folder "+file)
		r.p.mkdir(file)
	case 8, 9:
		r.log = append(r.log, "remove "+file)
		r.clear(file)
	case 10:
		r.writeOver(root+".kilnignore", pick(r, "*.tmp\n", "*.tmp\nd/e/\n", "", "b.txt\n", "f/\n"))
	case 11:
		r.writeOver(pick(r, "note", "more"), "a file of the project\n")
	case 12:
		r.log = append(r.log, "remove a file of the project")
		r.p.remove(pick(r, "note", "more"))
	case 13:
		gone := pick(r, "build", ".kiln")
		r.log = append(r.log, "remove "+gone)
		r.p.remove(gone)
		if gone == ".kiln" {
			r.p.remove("build")
		}
	}
}

// writeOver writes a file, in place of whatever is in the way.
func (r *random) writeOver(name, text string) {
	r.log = append(r.log, fmt.Sprintf("write %s: %q", name, text))
	r.clear(name)
	r.p.write(name, text)
}

// clear removes what has a name, and files that are in place of the folders that it is in.
func (r *random) clear(name string) {
	parts := strings.Split(name, "/")
	for i := 1; i < len(parts); i++ {
		if at := strings.Join(parts[:i], "/"); at != "assets" && at != "over" {
			if info, err := os.Stat(r.p.path(at)); err == nil && !info.IsDir() {
				r.p.remove(at)
			}
		}
	}
	r.p.remove(name)
}

// TestTracedUUID: to a program a name that begins with uuid: is that of a file, and not of an asset.
func TestTracedUUID(t *testing.T) {
	if err := seal.Supported().Trace; err != nil {
		t.Skip(err)
	}
	p := newProject(t, "-- kiln.toml --\n[project]\nname = \"test\"\n"+lookProcessor+"-- tools/look --\n"+lookScript+"-- assets/a.txt --\na\n")
	p.must(chmodExecutable(p.path("tools/look")))
	look, err := p.open().Look(t.Context(), []string{"a.txt"}, nil)
	p.must(err)
	name := "uuid:" + look.Assets[0].UUID
	p.write("assets/x.look", "read "+name+"\nask "+name+"\n")
	for _, do := range []func(){
		func() {}, func() { p.write("assets/"+name, "is there") }, func() { p.write("assets/"+name, "other") }, func() { p.remove("assets/" + name) },
	} {
		do()
		if b := p.build(); b.Failed > 0 {
			t.Fatal(b.messages)
		}
		p.nothing()
	}
}
