package build

import (
	"iter"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/digest"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/state"
)

// lastGood is what can stand for a task that failed: the trace used last of those that succeeded and whose products can be had; and for each part that it
// asked for by that trace, and for theirs, the one used last of those that are as the others saw them. It is empty if there is none.
func (s *session) lastGood(t *task, traces *state.Traces) map[*task]*engine.Trace {
	type seen struct {
		of  engine.Key
		sub uint32
	}
	good, saw := map[*task]*engine.Trace{}, map[seen]digest.Hash{}
	asSeen := func(t *task, tr *engine.Trace) bool {
		for i := range tr.Products {
			if h, ok := saw[seen{t.Key, tr.Products[i].SubID}]; ok && h != tr.Products[i].Hash {
				return false
			}
		}
		for o, p := range s.w.contentsSeen(t, tr) {
			if h, ok := saw[seen{p.Key, o.SubID}]; ok && h != o.Value {
				return false
			}
		}
		return true
	}
	var visit func(t *task)
	visit = func(t *task) {
		if good[t] != nil {
			return
		}
		all := slices.DeleteFunc(slices.Clone(traces.Traces(t.Key)), func(tr *engine.Trace) bool {
			_, ok := s.w.Available(tr)
			return tr.Outcome != engine.Succeeded || !ok
		})
		if len(all) == 0 {
			return
		}
		tr := all[max(0, slices.IndexFunc(all, func(tr *engine.Trace) bool { return asSeen(t, tr) }))]
		good[t] = tr
		for o, p := range s.w.contentsSeen(t, tr) {
			saw[seen{p.Key, o.SubID}] = o.Value
		}
		for _, p := range s.w.partsIn(t, tr) {
			visit(p)
		}
	}
	visit(t)
	return good
}

// standing are the last good products of a job that are in place, by file.
func (s *session) standing(t *task) []engine.Product {
	var there []engine.Product
	for _, tr := range s.lastGood(t, s.traces) {
		for _, p := range tr.Products {
			if o, ok := s.w.outputs[p.File]; ok && o.Hash == p.Hash {
				there = append(there, p)
			}
		}
	}
	slices.SortFunc(there, func(a, b engine.Product) int { return strings.Compare(a.File, b.File) })
	return there
}

// contentsSeen are the contents of parts of its own job that a task looked at.
func (w *world) contentsSeen(t *task, tr *engine.Trace) iter.Seq2[*engine.Observation, *task] {
	return func(yield func(*engine.Observation, *task) bool) {
		for i := range tr.Observations {
			o := &tr.Observations[i]
			if s := parseSubject(o.Subject); o.Kind == engine.Content && t.ofSameJob(s) {
				if p := w.task(t.asset, t.on, s.part); p != nil && !yield(o, p) {
					return
				}
			}
		}
	}
}
