package results

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

// Find finds the project's tasks: those of its assets, and the parts that these, or other parts, asked for
// when they ran. Results of parts that no task asks for any more are removed. In a build of few tasks, it
// covers the concerned assets.
func (s *Set) Find() {
	s.Parts, s.Good = map[*job.Task][]*job.Task{}, map[*job.Task]*engine.Trace{}
	s.Live = make([]*job.Task, 0, len(s.W.All))
	s.lives++
	is := s.tasksNow()
	for t := range s.jobs() {
		s.FindParts(t, is)
		s.Live = append(append(s.Live, t), s.Parts[t]...)
	}
	s.findRequests(is)
	s.Results = slices.DeleteFunc(s.Results, func(r *engine.Result) bool {
		t := job.TaskOf(r)
		return !s.IsLive(t) && (s.Scope == nil || s.Scope.Concerned[t.Asset])
	})
}

// jobs iterates over the jobs of the assets that the build checks.
func (s *Set) jobs() iter.Seq[*job.Task] {
	if s.Scope == nil {
		return slices.Values(s.W.All)
	}
	return func(yield func(*job.Task) bool) {
		for _, a := range s.AssetsOnly() {
			for i := range a.Resolved {
				if !yield(s.W.Task(a, &a.Resolved[i], "")) {
					return
				}
			}
		}
	}
}

// Assets returns the concerned assets of a build of few tasks, in the order of their ids, and the assets that
// stand for requests.
func (s *Set) Assets() []*asset.Asset {
	return slices.SortedFunc(maps.Keys(s.Scope.Concerned), func(a, b *asset.Asset) int { return strings.Compare(a.ID, b.ID) })
}

// tasksNow is the lookup of findParts for the tasks after this build.
func (s *Set) tasksNow() Lookup {
	return Lookup{
		Trace: s.TraceOf,
		Asked: func(t *job.Task) bool { return t.Result != nil || s.TraceOf(t) != nil },
		Fails: func(t *job.Task) bool {
			tr := s.TraceOf(t)
			return tr != nil && tr.Outcome != engine.Succeeded && !s.Yielding[t.ID()] && !t.Request()
		},
		Visit: func(t *job.Task) bool {
			first := !s.IsLive(t)
			t.Lives = s.lives
			return first
		},
	}
}

// TasksOf returns an asset's tasks on a platform, even if this build did not check the asset.
func (s *Set) TasksOf(a *asset.Asset, platform string) (list []*job.Task) {
	all := a.On(platform)
	for i := range all {
		main := s.W.Task(a, &all[i], "")
		if !s.IsLive(main) {
			s.FindParts(main, s.tasksNow())
		}
		list = append(append(list, main), s.Parts[main]...)
	}
	return list
}

// IsLive reports whether a task, which may be nil, is among those that Find found last.
func (s *Set) IsLive(t *job.Task) bool { return t != nil && t.Lives == s.lives }

// TraceOf returns the current trace of a task: of this build or, if it has no result there, of the one before; nil if
// there is none.
func (s *Set) TraceOf(t *job.Task) *engine.Trace {
	if t.Decided() {
		return t.Result.Trace
	}
	if s.Scope != nil && s.Scope.Unasked[t] {
		return nil
	}
	return s.HeldTrace(t)
}

// HeldTrace returns the trace that a task had in the build before, or nil.
func (s *Set) HeldTrace(t *job.Task) *engine.Trace {
	if id, ok := s.Held.Held(t.Key); ok {
		return s.TraceByID(t.Key, id)
	}
	return nil
}

// Lookup is what FindParts needs to know about tasks.
type Lookup struct {
	Trace func(*job.Task) *engine.Trace
	Asked func(*job.Task) bool // whether something asked for it
	Fails func(*job.Task) bool
	Visit func(*job.Task) bool // called for each part that is found; false: it was found earlier
}

// FindParts finds the parts that a job asked for, and that these asked for, and what replaces those that failed:
// s.Parts and s.Good.
func (s *Set) FindParts(main *job.Task, of Lookup) {
	var visit func(t *job.Task)
	visit = func(t *job.Task) {
		if !of.Visit(t) {
			return
		}
		if t != main {
			s.Parts[main] = append(s.Parts[main], t)
		}
		_, stands := s.Good[t]
		if !stands && s.OnError != Fail && of.Fails(t) {
			for p, good := range s.LastGood(t, s.Traces) {
				if t == main || t == p || !of.Asked(p) { // a successful job may not need a part that failed, but it needs that of this one
					s.Good[p], stands = good, true
				}
			}
		}
		if _, ok := t.Proc.Processor.(processor.Parter); !ok {
			return
		}
		for _, tr := range []*engine.Trace{of.Trace(t), s.Good[t]} {
			if tr == nil {
				continue
			}
			for _, p := range s.W.PartsIn(t, tr) {
				if _, ok := s.Good[p]; stands && !ok {
					s.Good[p] = nil // it is newer than what replaces t
				}
				visit(p)
			}
		}
	}
	visit(main)
	if main.Proc.Info.Packs { // atlases ask for them, not the job itself
		if p := s.W.Task(main.Asset, main.On, processor.PackPart); p != nil && of.Asked(p) {
			visit(p)
		}
	}
}

// TraceByID returns a kept trace, or nil.
func (s *Set) TraceByID(k engine.Key, id uint64) *engine.Trace {
	for _, tr := range s.Traces.Traces(k) {
		if tr.ID == id {
			return tr
		}
	}
	return nil
}

// fallback returns the products that replace those of a task's own trace, if there are any: placeholders, or the last
// good ones.
func (s *Set) fallback(t *job.Task) (ps []engine.Product, ok bool) {
	if made := s.Placeholders[t]; made != nil {
		return made, true
	}
	good, ok := s.Good[t]
	if good == nil {
		return nil, ok
	}
	return good.Products, true
}

// ProductsFor returns the current products of a task with this trace, which may be nil.
func (s *Set) ProductsFor(t *job.Task, tr *engine.Trace) []engine.Product {
	ps, ok := s.fallback(t)
	if !ok && tr != nil {
		ps = tr.Products
	}
	return ps
}
