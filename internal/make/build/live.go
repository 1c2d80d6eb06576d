package build

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/processor"
)

// findLive finds the tasks that the project has: those of its assets, and the parts that these, or other parts, asked for when they ran. Results of
// parts that nobody asks for any more are dropped. A build of few tasks looks at the assets that are concerned.
func (s *session) findLive() {
	s.held = s.heldBefore()
	s.parts, s.good = map[*job.Task][]*job.Task{}, map[*job.Task]*engine.Trace{}
	s.live = make([]*job.Task, 0, len(s.w.All))
	s.lives++
	if s.few != nil {
		s.findUnasked()
	}
	is := s.tasksNow()
	for t := range s.jobs() {
		s.findParts(t, is)
		s.live = append(append(s.live, t), s.parts[t]...)
	}
	s.findRequests(is)
	s.results = slices.DeleteFunc(s.results, func(r *engine.Result) bool {
		t := job.TaskOf(r)
		return !s.isLive(t) && (s.few == nil || s.few.concerned[t.Asset])
	})
}

// jobs are those of the assets that the build looks at.
func (s *session) jobs() iter.Seq[*job.Task] {
	if s.few == nil {
		return slices.Values(s.w.All)
	}
	return func(yield func(*job.Task) bool) {
		for _, a := range s.assetsOnly() {
			for i := range a.Resolved {
				if !yield(s.w.Task(a, &a.Resolved[i], "")) {
					return
				}
			}
		}
	}
}

// assets are those that a build of few tasks concerns, in the order of their ids, and what stands for requests.
func (s *session) assets() []*asset.Asset {
	return slices.SortedFunc(maps.Keys(s.few.concerned), func(a, b *asset.Asset) int { return strings.Compare(a.ID, b.ID) })
}

// tasksNow tells findParts of the tasks as they are after this build.
func (s *session) tasksNow() lookup {
	return lookup{
		trace: s.traceOf,
		asked: func(t *job.Task) bool { return t.Result != nil || s.traceOf(t) != nil },
		fails: func(t *job.Task) bool {
			tr := s.traceOf(t)
			return tr != nil && tr.Outcome != engine.Succeeded && !s.yielding[t.ID()] && !t.Request()
		},
		visit: func(t *job.Task) bool {
			first := !s.isLive(t)
			t.Lives = s.lives
			return first
		},
	}
}

// tasksOf are an asset's tasks on a platform, of one at which this build did not look as well.
func (s *session) tasksOf(a *asset.Asset, platform string) (list []*job.Task) {
	all := a.On(platform)
	for i := range all {
		main := s.w.Task(a, &all[i], "")
		if !s.isLive(main) {
			s.findParts(main, s.tasksNow())
		}
		list = append(append(list, main), s.parts[main]...)
	}
	return list
}

// isLive tells whether a task, which may be nil, is among those that findLive found last.
func (s *session) isLive(t *job.Task) bool { return t != nil && t.Lives == s.lives }

// traceOf is the trace that a task has: of this build, or, if that did not decide it, of the one before; nil: it has none.
func (s *session) traceOf(t *job.Task) *engine.Trace {
	if t.Decided() {
		return t.Result.Trace
	}
	if s.few != nil && s.few.unasked[t] {
		return nil
	}
	return s.heldTrace(t)
}

// heldTrace is the trace that a task had in the build before, or nil.
func (s *session) heldTrace(t *job.Task) *engine.Trace {
	if id, ok := s.held.Held(t.Key); ok {
		return s.traceByID(t.Key, id)
	}
	return nil
}

// lookup tells what findParts has to know of tasks.
type lookup struct {
	trace func(*job.Task) *engine.Trace
	asked func(*job.Task) bool // whether anybody asked for it
	fails func(*job.Task) bool
	visit func(*job.Task) bool // is called for each that is found; false: it was before
}

// findParts finds the parts that a job asked for, and that these did, and what stands for those that failed: s.parts and s.good.
func (s *session) findParts(main *job.Task, of lookup) {
	var visit func(t *job.Task)
	visit = func(t *job.Task) {
		if !of.visit(t) {
			return
		}
		if t != main {
			s.parts[main] = append(s.parts[main], t)
		}
		_, stands := s.good[t]
		if !stands && s.req.OnError != Fail && of.fails(t) {
			for p, good := range s.lastGood(t, s.traces) {
				if t == main || t == p || !of.asked(p) { // a job that went well may do without a part that failed, but not without this one's
					s.good[p], stands = good, true
				}
			}
		}
		if _, ok := t.Proc.Processor.(processor.Parter); !ok {
			return
		}
		for _, tr := range []*engine.Trace{of.trace(t), s.good[t]} {
			if tr == nil {
				continue
			}
			for _, p := range s.w.PartsIn(t, tr) {
				if _, ok := s.good[p]; stands && !ok {
					s.good[p] = nil // it came later than what stands for t
				}
				visit(p)
			}
		}
	}
	visit(main)
	if main.Proc.Info.Packs { // asked for by atlases, not by itself
		if p := s.w.Task(main.Asset, main.On, processor.PackPart); p != nil && of.asked(p) {
			visit(p)
		}
	}
}

// traceByID finds a kept trace, or gives nil.
func (s *session) traceByID(k engine.Key, id uint64) *engine.Trace {
	for _, tr := range s.traces.Traces(k) {
		if tr.ID == id {
			return tr
		}
	}
	return nil
}

// fallback is the products that stand for those of a task's own trace, if some do: placeholders, or the last good ones.
func (s *session) fallback(t *job.Task) (ps []engine.Product, ok bool) {
	if made := s.placeholders[t]; made != nil {
		return made, true
	}
	good, ok := s.good[t]
	if good == nil {
		return nil, ok
	}
	return good.Products, true
}

// productsFor are the products that stand for a task with this trace, which may be nil.
func (s *session) productsFor(t *job.Task, tr *engine.Trace) []engine.Product {
	ps, ok := s.fallback(t)
	if !ok && tr != nil {
		ps = tr.Products
	}
	return ps
}
