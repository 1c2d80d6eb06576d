package build

import (
	"slices"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/notices"
	"github.com/kiln-pipeline/kiln/internal/make/upkeep"
)

// Checked is what Check found.
type Checked struct {
	Assets   int
	Messages diag.List // first problems of rules and names, then messages of jobs about unchanged files, then references
	Seconds  float64
}

// Check finds problems without running anything and without the lock: in rules, settings and names; messages that jobs
// of the last build reported about files that have not changed since; and references in unchanged files to files that
// existed then and are missing now. It reads the snapshot and the list of folders, but no traces. So it takes as long
// as a build in which nothing changed, plus the evaluation of the rules.
func (p *Project) Check() (*Checked, error) {
	s := p.newSession(Request{Reporter: job.Silent{}})
	if err := s.readSnapshot(); err != nil {
		return nil, p.OwnFiles(err)
	}
	s.messages = nil // about damaged state: the next build reports it
	t, _, _, err := s.Scan(&s.notes)
	if err != nil {
		return nil, p.OwnFiles(err)
	}
	set, _, rules := p.Evaluate(t)
	s.notices = notices.Of(s.P, t, set, rules, notices.Notices{})
	c := upkeep.Check{P: s.P, Table: t, Set: set, Messages: s.said()}
	if s.Prev != nil && slices.Equal(s.Prev.Sources.Roots, t.Roots) {
		c.Prev, c.SameRules = s.Prev, s.SameProject()
	}
	return &Checked{Assets: len(set.Assets), Messages: c.Run(), Seconds: time.Since(s.start).Seconds()}, nil
}
