package plan

import (
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/results"
	"github.com/kiln-pipeline/kiln/internal/make/task"
	"github.com/kiln-pipeline/kiln/internal/store/state"
	"github.com/kiln-pipeline/kiln/processor"
)

// Past is a task in the build before, of an asset that a build of few tasks concerns.
type Past struct {
	state.TaskState
	Number   int
	Of       *asset.Asset // current or former asset
	Platform string
	part     string
	Failed   bool
	Products []engine.Product // that stood for it
	Lost     bool             // it failed, and nothing stood for it
}

// remember finds the concerned assets and records what they had, before anything runs: a run, or an older trace that
// holds again, changes which trace is the last good one. It returns false if that is not known.
func (s *Few) remember() bool {
	for n := range s.Dirty {
		if at := s.Scope.Tasks.At(n); !at.Gone {
			if t := s.W.TaskFor(at.Subject); t != nil && t.Key == at.Key && !s.concern(t.Asset) {
				return false
			}
		}
	}
	for _, t := range s.Fresh {
		if !s.concern(t.Asset) {
			return false
		}
	}
	for _, a := range s.Gone {
		if !s.rememberAsset(a) {
			return false
		}
	}
	for _, n := range s.goneJobs {
		id := task.ParseSubject(s.Scope.Tasks.At(n).Subject).Asset
		if a := s.W.Find(id); a != nil && a.ID == id && !s.concern(a) || !s.known[n] && !s.rememberGone(n) {
			return false
		}
	}
	for n := range s.Dirty { // a part that exists although no task asks for it
		if !s.known[n] && !s.Scope.Tasks.At(n).Gone && !s.rememberGone(n) {
			return false
		}
	}
	slices.SortFunc(s.Past, func(a, b Past) int { return strings.Compare(a.Subject, b.Subject) })
	return true
}

// concern records that tasks of an asset may change or be added or removed, and what the asset had
// before.
func (s *Few) concern(a *asset.Asset) bool {
	if s.Scope.Concerned[a] {
		return true
	}
	s.Scope.Concerned[a] = true
	return s.rememberAsset(a)
}

// ConcernLate is concern after jobs ran. By then the last good products of a failed job may not be known any
// more.
func (s *Few) ConcernLate(a *asset.Asset) bool {
	n := len(s.Past)
	if !s.concern(a) {
		return false
	}
	fails := slices.ContainsFunc(s.Past[n:], func(x Past) bool { return x.Failed })
	return s.OnError == results.Fail || !fails || s.no("it is not known what stood for a job that failed")
}

// rememberAsset records what an asset had.
func (s *Few) rememberAsset(a *asset.Asset) bool {
	parts, good := s.Parts, s.Good
	defer func() { s.Parts, s.Good = parts, good }()
	s.Parts, s.Good = map[*job.Task][]*job.Task{}, map[*job.Task]*engine.Trace{}
	seen := map[*job.Task]bool{}
	was := results.Lookup{
		Trace: s.HeldTrace,
		Asked: func(t *job.Task) bool { return s.HeldTrace(t) != nil },
		Fails: func(t *job.Task) bool {
			tr := s.HeldTrace(t)
			return tr != nil && tr.Outcome != engine.Succeeded && !t.Request()
		},
		Visit: func(t *job.Task) bool { first := !seen[t]; seen[t] = true; return first },
	}
	for i := range a.Resolved {
		main := s.W.Task(a, &a.Resolved[i], "")
		s.FindParts(main, was)
		for _, t := range append([]*job.Task{main}, s.Parts[main]...) {
			good, stands := s.Good[t]
			n, ok := s.Scope.Tasks.ByKey(t.Key)
			if !ok || s.Scope.Tasks.At(n).Gone {
				if good != nil { // no task asked for it, but its products were kept
					x := Past{TaskState: state.TaskState{Subject: t.Subject(), Key: t.Key, Gone: true}, Of: a, Platform: t.Platform, part: t.Part}
					s.keepProducts(&x, good)
					s.Past = append(s.Past, x)
				}
				continue
			}
			tr := s.HeldTrace(t)
			if tr == nil {
				return s.no("the trace of a job is not there")
			}
			if !s.keepPast(a, n, tr, good, stands) {
				return false
			}
		}
	}
	return true
}

// rememberGone records what a task had, by its number. Its asset was replaced or removed.
func (s *Few) rememberGone(n int) bool {
	at := s.Scope.Tasks.At(n)
	of := task.ParseSubject(at.Subject)
	a := s.Gone[of.Asset]
	if a == nil {
		a = s.W.Find(of.Asset)
	}
	if s.ByKeys && (a == nil || a.ID != of.Asset || a.UUID != asset.UUID(a.ID)) { // no rule had changed its UUID
		a = &asset.Asset{ID: of.Asset, UUID: asset.UUID(of.Asset)}
		s.Gone[a.ID] = a
	}
	tr := s.TraceByID(at.Key, at.Trace)
	if a == nil || tr == nil {
		return s.no("what a removed asset had made is not known")
	}
	if tr.Outcome == engine.Succeeded || s.OnError == results.Fail {
		return s.keepPast(a, n, tr, nil, false)
	}
	traces := s.Traces.Traces(at.Key)
	i := slices.IndexFunc(traces, func(t *engine.Trace) bool { return t.Outcome == engine.Succeeded })
	if i < 0 {
		return s.keepPast(a, n, tr, nil, false) && !asksForParts(at.Subject, tr) || s.no("last good products of several parts stood for a job")
	}
	_, ok := s.W.Available(traces[i])
	if !ok || asksForParts(at.Subject, tr) || asksForParts(at.Subject, traces[i]) {
		return s.no("last good products of several parts stood for a job")
	}
	return s.keepPast(a, n, tr, traces[i], true)
}

// keepPast records a task of the build before, with its trace and the trace of its products. The requests that it made
// are concerned, because no other task may ask for them.
func (s *Few) keepPast(a *asset.Asset, n int, tr, good *engine.Trace, stands bool) bool {
	at := s.Scope.Tasks.At(n)
	of := task.ParseSubject(at.Subject)
	x := Past{TaskState: at, Number: n, Of: a, Platform: of.Platform, part: of.Part, Failed: tr.Outcome != engine.Succeeded}
	switch {
	case good != nil:
		s.keepProducts(&x, good)
	case !stands:
		s.keepProducts(&x, tr)
		x.Lost = x.Failed
	}
	s.Past, s.known[n] = append(s.Past, x), true
	s.Before.Tasks = append(s.Before.Tasks, at)
	for _, r := range s.W.RequestsIn(tr) {
		if !s.concern(r.Asset) {
			return false
		}
	}
	return true
}

// keepProducts records the products that a task had.
func (s *Few) keepProducts(x *Past, tr *engine.Trace) {
	x.Products = tr.Products
	for i := range x.Products {
		if f := x.Products[i].File; f != "" {
			s.Before.Outputs = append(s.Before.Outputs, state.Output{File: f})
		}
	}
}

// asksForParts reports whether the task with this subject asked for parts of its own job.
func asksForParts(of string, tr *engine.Trace) bool {
	me := task.ParseSubject(of)
	return slices.ContainsFunc(tr.Observations, func(o engine.Observation) bool {
		s := task.ParseSubject(o.Subject)
		return o.Kind == engine.Outline && s.Part != "" && s.Asset == me.Asset
	})
}

// FindUnasked finds the parts that jobs of an asset asked for before and, by their current traces, no longer do.
func (s *Few) FindUnasked() {
	asked := map[*job.Task]bool{}
	var visit func(t *job.Task)
	visit = func(t *job.Task) {
		if tr := s.TraceOf(t); tr != nil && !asked[t] {
			asked[t] = true
			for _, p := range s.W.PartsIn(t, tr) {
				visit(p)
			}
		}
	}
	for _, a := range s.Assets() {
		for i := range a.Resolved {
			t := s.W.Task(a, &a.Resolved[i], "")
			visit(t)
			if t.Proc.Info.Packs { // atlases ask for them
				if p := s.W.Task(a, t.On, processor.PackPart); p != nil {
					visit(p)
				}
			}
		}
	}
	for _, x := range s.Past {
		if t := s.W.ByKey(x.Key); t != nil && x.part != "" && !asked[t] {
			s.Scope.Unasked[t] = true
		}
	}
}

// Leaving returns the removed tasks of the build before, among those that this build checks.
func (s *Few) Leaving() (list []Past) {
	if s != nil {
		for _, x := range s.Past {
			if x.Gone {
				continue // it was removed earlier
			}
			if t := s.W.ByKey(x.Key); !s.IsLive(t) || s.TraceOf(t) == nil {
				list = append(list, x)
			}
		}
	}
	return list
}

// Paths returns the changed source paths.
func (s *Few) Paths() []string { return slices.Concat(s.Edited, s.Added, s.Removed) }

// Totals returns the totals of the build before without the concerned assets.
func (s *Few) Totals(t state.Totals) state.Totals {
	for i := range s.Past {
		x := &s.Past[i]
		if x.part == "" && task.IsRequest(x.Of.ID) {
			t.Requests--
		} else if x.part == "" {
			t.Jobs--
			if x.Failed {
				t.Failed--
			}
		}
		products, bytes := results.CountProducts(x.Products)
		t.Products -= products
		t.Bytes -= bytes
	}
	return t
}
