package build

import (
	"context"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/make/job"
)

// TestOtherVersion: a build that uses results of another version of Kiln says so once.
func TestOtherVersion(t *testing.T) {
	p := newProject(t, "-- assets/a.txt --\na\n")
	p.age()
	said := func(version string, want int) {
		t.Helper()
		cfg := p.config()
		cfg.Version = version
		pr, err := Open(cfg)
		p.must(err)
		r, err := pr.Build(context.Background(), Request{Reporter: job.Silent{}})
		p.must(err)
		var got []string
		for _, m := range r.Messages {
			if m.Code == diag.OtherKiln {
				got = append(got, m.Text)
			}
		}
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
