package references

import (
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/results"
)

// Failure is a job that failed although its run succeeded: its outputs clash or could not be written, or its products
// require what no asset makes.
type Failure struct {
	Job      string    `json:"job"`          // its subject
	To       string    `json:"to,omitempty"` // the asset that does not make what this one requires; "" if outputs are the reason
	Messages diag.List `json:"messages"`

	Kept bool `json:"-"` // from the build before, of a job that is part of this one: it is to be said again
}

// Failures returns the jobs that failed although their runs succeeded. A build that does not have a result for every job
// keeps those of the build before that it does not refute.
func (c *Check) Failures(missing []Missing, before []Failure) (all []Failure) {
	at := map[string]int{}
	add := func(job, to string, messages ...*diag.Message) {
		i, ok := at[job]
		if !ok {
			i = len(all)
			at[job], all = i, append(all, Failure{Job: job, To: to})
		}
		all[i].Messages = append(all[i].Messages, messages...)
	}
	for job, messages := range c.Tree.Failures() {
		add(job, "", messages...)
	}
	for i := range missing {
		if m := &missing[i]; m.Message.Severity == diag.Error {
			for _, job := range m.Jobs {
				add(job, m.To, m.Message)
			}
		}
	}
	if c.Few == nil && !c.Tree.Complete {
		for _, f := range Standing(c.Set, before) {
			if _, ok := at[f.Job]; ok || c.refuted(f) {
				continue
			}
			f.Kept = c.W.TaskFor(f.Job).Decided()
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b Failure) int { return strings.Compare(a.Job, b.Job) })
	return all
}

// refuted reports whether this build has results for a job and for the asset that did not make what it required.
func (c *Check) refuted(f Failure) bool {
	t, to := c.W.TaskFor(f.Job), c.Asset(f.To)
	undecided := func(x *job.Task) bool { return x.Part == "" && !x.Decided() }
	return t.Decided() && (to == nil || !slices.ContainsFunc(c.TasksOf(to, t.Platform), undecided))
}

// Standing returns those of the failures of the build before whose jobs have the same traces as then.
func Standing(s *results.Set, before []Failure) (list []Failure) {
	for _, f := range before {
		t := s.W.TaskFor(f.Job)
		if t == nil {
			continue
		}
		if id, held := s.Held.Held(t.Key); held && s.TraceOf(t) != nil && s.TraceOf(t).ID == id {
			list = append(list, f)
		}
	}
	return list
}

// Messages are the messages of failures by the subjects of their jobs.
func Messages(list []Failure) map[string]diag.List {
	all := make(map[string]diag.List, len(list))
	for i := range list {
		all[list[i].Job] = list[i].Messages
	}
	return all
}
