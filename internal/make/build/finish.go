package build

import (
	"slices"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
)

// report sums up.
func (s *session) report() *Report {
	r := &Report{Stopped: s.stopped, Passing: s.passing(), Short: s.few != nil}
	s.count(r)
	r.Jobs = make([]JobReport, 0, r.Summary.Built)
	for _, res := range s.results {
		if res.State == engine.Ran || res.State == engine.Stopped {
			r.Jobs = append(r.Jobs, s.jobReport(res))
		}
	}
	r.Summary.Placeholders = len(s.placeholders)
	if r.Summary.LookedAt = s.looked; s.whole() {
		r.Summary.Because = s.because
	}
	r.Messages = s.collect()
	r.Summary.Seconds = time.Since(s.start).Seconds()
	return r
}

// diagnostics is a trace with something to tell, and whose it is.
type diagnostics struct {
	t  *job.Task
	tr *engine.Trace
}

// diagnostics are the results that have something to tell.
func (s *session) diagnostics(results []*engine.Result) []diagnostics {
	var said []diagnostics
	for _, res := range results {
		if res.Trace != nil && len(res.Trace.Messages) > 0 {
			said = append(said, diagnostics{job.TaskOf(res), res.Trace})
		}
	}
	return said
}

// collect gathers the messages of all tasks that have any, those included at which a build of few tasks did not look.
func (s *session) collect() diag.List {
	said := s.diagnostics(s.results)
	if s.few == nil {
		return s.sortMessages(said)
	}
	met := map[engine.Key]bool{}
	for _, x := range said {
		met[x.t.Key] = true
	}
	for _, n := range s.few.tasks.Speaking() {
		at := s.few.tasks.At(n)
		if t := s.w.TaskFor(at.Subject); t != nil && t.Key == at.Key && !met[t.Key] && (!s.few.concerned[t.Asset] || s.isLive(t)) {
			if tr := s.traceOf(t); tr != nil {
				said = append(said, diagnostics{t, tr})
			}
		}
	}
	return s.sortMessages(said)
}

// sortMessages puts first what is wrong with the project and its files, then failures, root causes first, then warnings; those of jobs in the order
// of assets and platforms. What is said of several platforms alike is said once.
func (s *session) sortMessages(said []diagnostics) diag.List {
	var own, needs, warnings diag.List
	seen := map[string]bool{}
	sort := func(l diag.List) {
		for _, m := range l {
			if id := m.ID(); seen[id] {
				continue
			} else {
				seen[id] = true
			}
			switch {
			case m.Severity != diag.Error:
				warnings = append(warnings, m)
			case m.Code == diag.NeedsFailed, m.Code == diag.ParcelLacks:
				needs = append(needs, m)
			default:
				own = append(own, m)
			}
		}
	}
	sort(s.said())
	slices.SortStableFunc(said, func(a, b diagnostics) int { return s.order(a.t, b.t) })
	better := map[string]bool{} // files of which a job says what is wrong; a team's processor may not know that it is their being empty
	for _, x := range said {
		before := len(own)
		sort(s.w.MessagesOf(x.tr))
		for _, m := range own[before:] {
			better[m.File] = better[m.File] || s.p.isBuiltin(x.t.Proc.Info.Name)
		}
	}
	warnings = slices.DeleteFunc(warnings, func(m *diag.Message) bool { return m.Code == diag.EmptyFile && better[m.File] })
	if what := s.w.Changed; what != "" {
		warnings = append(warnings, diag.Warningf(diag.SourceChanged, diag.Pos{}, "%s changed while it was used", what).WithHint("build again"))
	}
	return append(append(own, needs...), warnings...)
}
