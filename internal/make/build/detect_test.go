package build

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
)

// age dates files and folders back, so that nothing is so young that it is looked at in any case.
func (p *fixture) age() {
	p.Helper()
	p.must(filepath.WalkDir(p.path("assets"), func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			rel, _ := filepath.Rel(p.dir, path)
			p.touch(rel, 1)
		}
		return err
	}))
}

// contents of all source files and folders by path in the project.
func (p *fixture) contents() map[string]string {
	all := map[string]string{}
	filepath.WalkDir(p.dir, func(path string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(p.dir, path)
		rel = filepath.ToSlash(rel)
		switch {
		case err != nil || !strings.HasPrefix(rel, "assets") && !strings.HasPrefix(rel, "mod"):
		case e.IsDir():
			all[rel] = "folder"
		default:
			all[rel] = "file " + p.read(rel)
		}
		return nil
	})
	return all
}

// TestRandomLists edits a project at random and builds by lists: one that has all that changed, which must come to the same as a clean
// build, or one that has some of it, after which a build without a list must.
func TestRandomLists(t *testing.T) {
	t.Parallel()
	r := newRandom(t, randomSource(t))
	r.p.build()
	before := r.p.contents()
	for r.n = range edits() / 2 {
		for range 1 + r.rng.IntN(3) {
			if r.rng.IntN(6) == 0 {
				r.rules()
			} else {
				r.edit()
			}
		}
		r.p.age()
		after := r.p.contents()
		list := []string{"nonsense", "assets/nonsense", "../assets"}
		all := maps.Clone(before)
		maps.Copy(all, after)
		exact := r.rng.IntN(2) == 0
		for _, p := range slices.Sorted(maps.Keys(all)) {
			if before[p] != after[p] && (exact || r.rng.IntN(2) == 0) {
				list = append(list, p)
			}
		}
		b, err := r.p.try(context.Background(), Request{Detect: workspace.ByList, Changed: list})
		r.note("with the list %q ran %s, %v", list[3:], b.ran, err)
		if err != nil { // a clean build would refuse it too
			r.removeIf("assets/rules.toml")
			r.removeIf("assets/sub/rules.toml")
		} else if exact && !slices.ContainsFunc(b.list, func(m *diag.Message) bool { return m.Code == diag.ListNotEnough }) {
			r.p.compareWithClean(b)
		}
		r.accept() // the list may have left out rules that are refused
		r.note("without a list ran %s", r.p.build().ran)
		if b := r.p.build0(); b.Built != 0 {
			t.Errorf("built again: %s", b.ran)
		}
		if t.Failed() {
			t.Fatalf("after:\n%s", strings.Join(r.log[max(0, len(r.log)-25):], "\n"))
		}
		before = r.p.contents()
	}
}

// TestListLeavesOut: a job that runs reads a file that changed and is not in the list. What it read is what its trace says, and the build
// without a list that comes next is right.
func TestListLeavesOut(t *testing.T) {
	p := newProject(t, everything)
	p.age()
	p.build()
	p.write("assets/a.txt", "ALPHA")
	p.write("assets/b.txt", "BETA")
	p.write("assets/sub/extra.txt", "extra")
	b, err := p.try(context.Background(), Request{Detect: workspace.ByList, Changed: []string{"assets/b.txt"}})
	p.must(err)
	if b.ran != "b.txt join.s" || b.Failed != 0 {
		t.Errorf("ran %q, failed %d, %s", b.ran, b.Failed, b.messages)
	}
	if got := p.read("build/pc/a.txt"); got != "alpha\n" {
		t.Errorf("a file that is not in the list was built: %q", got)
	}
	if b := p.build(); b.ran != "a.txt exists.s glob.s maybe.s sub/extra.txt use.s" {
		t.Errorf("then ran %q", b.ran) // not join.s: it has read the new a.txt already
	}
}

// TestListThatFails: a file that is gone and not in the list fails the job that reads it, until a build without a list sees it.
func TestListThatFails(t *testing.T) {
	p := newProject(t, everything)
	p.age()
	p.build()
	p.remove("assets/a.txt")
	p.write("assets/b.txt", "BETA")
	b, err := p.try(context.Background(), Request{Detect: workspace.ByList, Changed: []string{p.path("assets/b.txt")}})
	p.must(err)
	if b.ran != "b.txt join.s" || b.Failed != 1 || !strings.Contains(b.messages, string(diag.SourceUnreadable)) {
		t.Errorf("ran %q, failed %d, %s", b.ran, b.Failed, b.messages)
	}
	if b := p.build(); b.ran != "glob.s join.s list.s refs.s use.s" {
		t.Errorf("then ran %q", b.ran)
	}
}

// TestListAfterAFailure: the list of a build that did not come to its end may be lost, so the next one does not go by a list.
func TestListAfterAFailure(t *testing.T) {
	for dry, ran := range map[bool]string{false: "a.txt join.s use.s", true: "a.txt join.s"} { // use.s is not decided before
		p := newProject(t, everything)
		p.age()
		p.build()
		p.write("assets/a.txt", "ALPHA")
		p.write(".kiln/underway", "")
		b, err := p.try(context.Background(), Request{Detect: workspace.ByList, DryRun: dry})
		p.must(err)
		if b.ran != ran || b.list[0].Code != diag.ListNotEnough || b.list[0].Severity != diag.Note {
			t.Errorf("dry run %t: ran %q, %s", dry, b.ran, b.messages)
		}
	}
}

// BenchmarkList prints what a build by a list of one edited file costs beside one that looks at all of them.
func BenchmarkList(b *testing.B) {
	dir := benchProject(b)
	p := &fixture{TB: b, dir: dir, procs: testProcessors(nil)}
	p.age()
	n := 0
	edit := func(req Request) time.Duration {
		n++
		p.must(os.WriteFile(benchFile(dir, n), []byte(strings.Repeat("x", n)), 0o666))
		req.Changed = []string{benchFile(dir, n)}
		start := time.Now()
		r, err := p.try(context.Background(), req)
		p.must(err)
		if r.Built != 1 && n > 1 {
			b.Fatalf("%+v", r.Summary)
		}
		return time.Since(start)
	}
	edit(Request{})
	var all, some time.Duration
	for b.Loop() {
		all += edit(Request{})
		some += edit(Request{Detect: workspace.ByList})
	}
	b.ReportMetric(float64(some.Microseconds())/float64(b.N)/1000, "ms/list")
	b.ReportMetric(float64(all.Microseconds())/float64(b.N)/1000, "ms/stat")
	b.ReportMetric(float64(some)/float64(all), "list/stat")
}
