package build

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kiln-pipeline/kiln/internal/make/report"
	"github.com/kiln-pipeline/kiln/internal/make/results"
)

// TestRandomLastGood edits a project at random, and compares what a build that keeps last good products comes to with what one comes to
// that looks at everything, of a project with the same past.
func TestRandomLastGood(t *testing.T) {
	t.Parallel()
	r := newRandom(t, randomSource(t))
	r.calm = true
	if r.rng.IntN(2) == 0 {
		r.p.write("kiln.toml", "[project]\nname = \"test\"\n[[rules]]\nmatch = \"**/*.s\"\nignore = [\"**/*.{txt,bin}\", \"sub/**\"]\n")
	}
	for _, dir := range []string{"", "sub/", "sub/deep/", "other/"} {
		for _, ext := range []string{"s", "txt", "bin"} {
			r.put("assets/"+dir+"keep."+ext, "text that stays")
		}
	}
	other := &fixture{TB: t, dir: t.TempDir(), procs: r.p.procs, workers: 1}
	other.write("kiln.toml", r.p.read("kiln.toml"))
	enough := edits() / 8 // builds that look at few tasks: half of them do, but some projects lie so that next to none does for a while
	for r.n = 0; r.n < edits() || r.p.shorts < enough && r.n < 10*edits(); r.n++ {
		r.edit()
		if r.rng.IntN(4) == 0 {
			r.put("assets/"+r.name(), pick(r, "fail now", "fail again"))
		}
		other.remove("assets")
		r.p.must(copyTree(r.p.dir, other.dir))
		short, err := r.p.try(context.Background(), Request{OnError: results.LastGood})
		r.p.must(err)
		r.note("built %s; short %t", short.ran, short.short)
		long, err := other.try(context.Background(), Request{OnError: results.LastGood, Outcomes: report.AllOutcomes})
		r.p.must(err)
		if long.short {
			t.Fatal("the other build looked at few tasks as well")
		}
		short.Seconds, long.Seconds = 0, 0
		short.Built, short.Reused, long.Built, long.Reused = 0, 0, 0, 0
		short.AssetsBuilt, long.AssetsBuilt, short.Wrote, long.Wrote, short.Commit, long.Commit = 0, 0, nil, nil, nil, nil
		short.LookedAt, long.LookedAt, short.Because, long.Because = 0, 0, "", ""
		if d := cmp.Diff(outputFiles(other.dir, "build"), outputFiles(r.p.dir, "build")) + cmp.Diff(long.Summary, short.Summary) + cmp.Diff(sortedMessages(long.list), sortedMessages(short.list)); d != "" {
			t.Fatalf("not as with all tasks (-long +this):\n%safter:\n%s", d, strings.Join(r.log[max(0, len(r.log)-25):], "\n"))
		}
		if r.n%4 == 0 {
			d := cmp.Diff(other.database(), r.p.database())
			if d == "" {
				d = cmp.Diff(files(outputFiles(r.p.dir, "build"), "build/"), strings.Fields(r.p.asked("SELECT file FROM products ORDER BY 1")))
			}
			if d != "" {
				t.Fatalf("the content database is not as that of all tasks, or as the files (-theirs +its):\n%safter:\n%s", d, strings.Join(r.log[max(0, len(r.log)-25):], "\n"))
			}
		}
	}
	t.Logf("%d of %d builds looked at few tasks; %d had something held by ignore", r.p.shorts, r.p.builds, r.p.holding)
	if r.p.shorts < enough {
		t.Error("too few builds looked at few tasks")
	}
}

// files are the names of the outputs that are products.
func files(outputs map[string]string, below string) []string {
	var all []string
	for name, content := range outputs {
		if content != "folder" {
			all = append(all, below+name)
		}
	}
	slices.Sort(all)
	return all
}
