package report

import (
	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/results"
	"github.com/kiln-pipeline/kiln/internal/make/task"
)

// Outcomes is which outcomes a report contains.
type Outcomes uint8

const (
	NoOutcomes      Outcomes = iota
	ChangedOutcomes          // outcomes of jobs that this build changed
	AllOutcomes              // of all tasks, which takes time for each
)

// Outcome is the outcome of a job or a part. For a request, Asset is a display name.
type Outcome struct {
	Asset, UUID, Platform, Part string
	Processor                   string // of an asset's other jobs, or of a part; "" for the first job
	Gone                        bool   // it was removed from the project
	Failed                      bool
	Messages                    diag.List        // of its last run
	Products                    []engine.Product // current ones, without hidden ones; of a failed job the last good ones, if they are kept
}

// OutcomeOf returns the outcome of a task.
func OutcomeOf(s *results.Set, t *job.Task, tr *engine.Trace, products []engine.Product) Outcome {
	o := Outcome{
		Asset: task.AssetText(t.Asset.ID), UUID: t.Asset.UUID, Platform: t.Platform, Part: t.Part,
		Processor: task.ParseSubject(t.Subject()).Processor, Messages: append(s.W.MessagesFor(t, tr), s.PlaceholderMessage(t)...),
	}
	o.Failed = tr != nil && tr.Outcome != engine.Succeeded
	for i := range products {
		if products[i].File != "" {
			o.Products = append(o.Products, products[i])
		}
	}
	return o
}

// goneOutcome is the outcome of a removed task.
func goneOutcome(subject string) Outcome {
	s := task.ParseSubject(subject)
	return Outcome{Asset: task.AssetText(s.Asset), Platform: s.Platform, Part: s.Part, Processor: s.Processor, Gone: true}
}

// Outcomes returns the outcomes that were requested.
func (s *Source) Outcomes(which Outcomes) (list []Outcome) {
	if which == NoOutcomes {
		return nil
	}
	was := make(map[string]uint64, len(s.Before.Tasks)) // trace by subject
	for _, ts := range s.Before.Tasks {
		was[ts.Subject] = ts.Trace
	}
	live := make(map[string]bool, len(s.Live))
	for _, t := range s.Live {
		subject := t.Subject()
		live[subject] = true
		products, settled := s.ProductsOf(t)
		tr := s.TraceOf(t)
		if !t.Decided() && !settled {
			tr = s.Good[t]
		}
		if tr == nil {
			continue // not built yet
		}
		if before, ok := was[subject]; which == AllOutcomes || !ok || before != tr.ID || tr.Outcome != engine.Succeeded {
			list = append(list, OutcomeOf(s.Set, t, tr, products))
		}
	}
	for _, ts := range s.Before.Tasks {
		if !live[ts.Subject] {
			list = append(list, goneOutcome(ts.Subject))
		}
	}
	return list
}

// OutcomeOfRun returns the outcome of a job that has just run, without products of its parts.
func OutcomeOfRun(s *results.Set, r *engine.Result) Outcome {
	return OutcomeOf(s, job.TaskOf(r), r.Trace, r.Trace.Products)
}
