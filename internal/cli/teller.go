package cli

import (
	"sync"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/make/report"
)

// teller reports a build while it runs: everything with --json, errors as text. What it has reported is not repeated at
// the end.
type teller struct {
	a    *app
	show *progress

	mu    sync.Mutex // guards all fields below; one line is written at a time
	said  map[string]bool
	shown map[diag.Code]int // number of errors shown as text during the build
	jobs  map[jobID]bool
	err   error // the first error
}

// firstErrors is how many errors of one code are shown as text during a build. Further ones are counted at its end.
const firstErrors = 4

// jobID identifies a job or a part.
type jobID struct{ asset, platform, part, processor string }

// startLine is the first line of a build.
type startLine struct {
	Type      string   `json:"type"`
	Project   string   `json:"project"`
	Patterns  []string `json:"patterns,omitempty"`
	Platforms []string `json:"platforms"`
	DryRun    bool     `json:"dry_run,omitempty"`
}

func (a *app) newTeller(show *progress) *teller {
	return &teller{a: a, show: show, said: map[string]bool{}, shown: map[diag.Code]int{}, jobs: map[jobID]bool{}}
}

// start reports that a build begins.
func (t *teller) start(p *build.Project, patterns []string, dryRun bool) error {
	if !t.a.json {
		return nil
	}
	line := startLine{"start", p.Name, patterns, t.a.platforms, dryRun}
	if len(line.Platforms) == 0 {
		line.Platforms = p.PlatformNames()
	}
	return t.a.emit(line)
}

// tell is the Tell of build.Request.
func (t *teller) tell(j *report.JobReport, l diag.List) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range l {
		switch {
		case t.a.json:
			t.message(m)
		case m.Severity == diag.Error && !t.said[m.ID()] && (t.a.verbose || t.shown[m.Code] < firstErrors):
			t.shown[m.Code]++
			t.message(m)
		}
	}
	if j != nil {
		t.job(j)
	}
}

// rest reports what was not reported yet.
func (t *teller) rest(l diag.List) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = t.a.tellMore(l, t.said, "`kiln explain --all` lists all of them")
	}
	return t.err
}

// restOfJobs reports the jobs that did not run to their end.
func (t *teller) restOfJobs(jobs []report.JobReport) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range jobs {
		t.job(&jobs[i])
	}
	return t.err
}

func (t *teller) message(m *diag.Message) {
	if id := m.ID(); !t.said[id] && t.err == nil {
		t.said[id] = true
		t.err = t.show.above(func() error { return t.a.tell(diag.List{m}) })
	}
}

func (t *teller) job(j *report.JobReport) {
	id := jobID{j.Asset, j.Platform, j.Part, j.Processor}
	if t.a.json && !t.jobs[id] && t.err == nil {
		t.jobs[id] = true
		t.err = t.a.emit(newJobLine(*j))
	}
}
