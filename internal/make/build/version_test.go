package build

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/make/job"
)

// saidOfOthers builds with a version of Kiln, and returns what is said of other versions.
func (p *fixture) saidOfOthers(version string) (texts []string) {
	p.Helper()
	cfg := p.config()
	cfg.Version = version
	pr, err := Open(cfg)
	p.must(err)
	r, err := pr.Build(context.Background(), Request{Reporter: job.Silent{}})
	p.must(err)
	for _, m := range r.Messages {
		if m.Code == diag.OtherKiln {
			texts = append(texts, m.Text)
		}
	}
	return texts
}

// TestOtherVersion: a build that uses results of another version of Kiln says so once.
func TestOtherVersion(t *testing.T) {
	p := newProject(t, "-- assets/a.txt --\na\n")
	p.age()
	said := func(version string, want int) {
		t.Helper()
		got := p.saidOfOthers(version)
		if len(got) != want || want > 0 && !strings.HasPrefix(got[0], "Kiln 0.1.0 built this before, and this is "+version+": results of 1 job") {
			t.Errorf("with version %s: %q", version, got)
		}
	}
	said("0.1.0", 0)
	said("0.1.0", 0)
	said("0.2.0", 1)
	said("0.2.0", 0)
	p.write("assets/a.txt", "b")
	said("0.3.0", 0) // nothing is used again
}

// TestOtherVersionInCache: so does a build that takes such results from a cache, of each version once.
func TestOtherVersionInCache(t *testing.T) {
	const files = "-- assets/a.txt --\na\n-- assets/b.txt --\nb\n"
	first, second := newProject(t, files), newProject(t, files)
	sharingFolder(t, first, second)
	if got := first.saidOfOthers("0.1.0"); got != nil {
		t.Error(got)
	}
	want := []string{"Kiln 0.1.0 made results that come from the cache, and this is 0.2.0: they are used, of processors that did not change"}
	if got := second.saidOfOthers("0.2.0"); !slices.Equal(got, want) {
		t.Error(got)
	}
	if got := second.saidOfOthers("0.2.0"); got != nil {
		t.Error(got)
	}
}
