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
	Messages diag.List // what is wrong with rules and names first, then what jobs said of files that did not change, then references
	Seconds  float64
}

// Check finds what is wrong without running anything and without the lock: in rules, settings and names; what jobs of the last build said
// of files that have not changed since; and what files that have not changed name although it was there then and is not there now. It reads
// the snapshot and the tables of folders, no traces, so that it takes as long as a build in which nothing changed and the evaluation of the
// rules.
func (p *Project) Check() (*Checked, error) {
	s := p.newSession(Request{Reporter: job.Silent{}})
	if err := s.readSnapshot(); err != nil {
		return nil, p.OwnFiles(err)
	}
	s.messages = nil // of state that is damaged: the next build says so
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
