package build

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/report"
	"github.com/kiln-pipeline/kiln/internal/make/results"
	"github.com/kiln-pipeline/kiln/internal/make/view"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
)

// kept builds a project in one process, telling what changed.
func (p *fixture) kept(pr *Project, changed ...string) *report.Report {
	p.Helper()
	req := Request{Reporter: job.Silent{}, Detect: workspace.ByWatch, OnError: results.LastGood, Outcomes: report.ChangedOutcomes}
	for _, c := range changed {
		req.Changed = append(req.Changed, p.path(c))
	}
	r, err := pr.Build(context.Background(), req)
	p.must(err)
	return r
}

// TestKept: builds that go on with what is in memory end as others do, and so does one after them that reads it from disk.
func TestKept(t *testing.T) {
	p := newProject(t, "-- assets/a.s --\ntext a\n-- assets/b.s --\nuse a.s\ntext b\n")
	pr := p.open()
	pr.Keep()
	if r := p.kept(pr); r.Summary.Built != 2 || len(r.Outcomes) != 2 {
		t.Fatalf("%+v", r.Summary)
	}
	p.must(pr.Read())
	for i := range 120 { // more than the deltas that a snapshot may have
		p.write("assets/a.s", fmt.Sprintf("text a%d\n", i))
		if i == 60 && !pr.Untidy() {
			t.Error("after 60 builds nothing is to be tidied")
		}
		if i%70 == 60 {
			p.must(pr.Tidy(context.Background()))
			if pr.Untidy() || !pr.Holds() {
				t.Error("it was not tidied")
			}
		}
		r := p.kept(pr, "assets/a.s")
		if !r.Short || r.Summary.Built == 0 || !slices.ContainsFunc(r.Outcomes, func(o report.Outcome) bool { return o.Asset == "a.s" && !o.Gone }) {
			t.Fatalf("build %d: %+v, %v", i, r.Summary, r.Short)
		}
		if !pr.Holds() {
			p.must(pr.Read())
		}
	}
	if r := p.kept(pr); r.Summary.Built != 0 || len(r.Outcomes) != 0 {
		t.Errorf("nothing changed: %+v", r.Summary)
	}
	p.nothing()
	p.build()
}

// TestKeptByOthers: what another process wrote is read.
func TestKeptByOthers(t *testing.T) {
	p := newProject(t, "-- assets/a.s --\ntext a\n")
	pr := p.open()
	pr.Keep()
	p.kept(pr)
	p.must(pr.Read())
	p.write("assets/b.s", "text b\n")
	p.wants("b.s")
	if pr.Holds() {
		t.Error("what is held is of before")
	}
	if r := p.kept(pr, "assets/b.s"); r.Summary.Built != 0 || r.Summary.Assets != 2 {
		t.Errorf("%+v", r.Summary)
	}
}

// TestLook learns hashes, and what is held does not.
func TestLookAtKept(t *testing.T) {
	p := newProject(t, "-- assets/a.s --\ntext a\n")
	pr := p.open()
	pr.Keep()
	p.kept(pr)
	p.must(pr.Read())
	p.write("assets/a.s", "text other\n")
	v, err := pr.LookAt(context.Background(), Request{Detect: workspace.ByWatch, Changed: []string{p.path("assets/a.s")}})
	p.must(err)
	if v.Assets[0].Jobs[0].State != view.Stale {
		t.Errorf("%s", v.Assets[0].Jobs[0].State)
	}
	if r := p.kept(pr, "assets/a.s"); r.Summary.Built != 1 || !r.Short {
		t.Errorf("%+v", r.Summary)
	}
	p.nothing()
}
