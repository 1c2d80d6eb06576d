package build

import (
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/make/task"

	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/store/state"
	"github.com/kiln-pipeline/kiln/processor"
)

// past is a task as the build before left it, of an asset that a build of few tasks concerns.
type past struct {
	state.TaskState
	number   int
	of       *asset.Asset // as it is now, or was
	platform string
	part     string
	failed   bool
	products []engine.Product // that stood for it
	lost     bool             // it failed, and nothing stood for it
}

// remember finds out which assets are concerned, and what there was of them, before anything runs: an older trace that holds again, or one
// more, changes which is the last good one. It is false if that is not known.
func (s *session) remember() bool {
	f := s.few
	for n := range f.dirty {
		if at := f.tasks.At(n); !at.Gone {
			if t := s.w.TaskFor(at.Subject); t != nil && t.Key == at.Key && !s.concern(t.Asset) {
				return false
			}
		}
	}
	for _, t := range f.fresh {
		if !s.concern(t.Asset) {
			return false
		}
	}
	for _, a := range f.gone {
		if !s.rememberAsset(a) {
			return false
		}
	}
	for _, n := range f.goneJobs {
		id := task.ParseSubject(f.tasks.At(n).Subject).Asset
		if a := s.w.Find(id); a != nil && a.ID == id && !s.concern(a) || !f.known[n] && !s.rememberGone(n) {
			return false
		}
	}
	for n := range f.dirty { // a part that nobody asks for, and that is there all the same
		if !f.known[n] && !f.tasks.At(n).Gone && !s.rememberGone(n) {
			return false
		}
	}
	slices.SortFunc(f.past, func(a, b past) int { return strings.Compare(a.Subject, b.Subject) })
	return true
}

// concern notes that tasks of an asset may change, come or go, and what there was of it.
func (s *session) concern(a *asset.Asset) bool {
	if s.few.concerned[a] {
		return true
	}
	s.few.concerned[a] = true
	return s.rememberAsset(a)
}

// concernLate is concern after jobs ran. Then it may not be known any more what stood for a job that had failed.
func (s *session) concernLate(a *asset.Asset) bool {
	n := len(s.few.past)
	if !s.concern(a) {
		return false
	}
	fails := slices.ContainsFunc(s.few.past[n:], func(x past) bool { return x.failed })
	return s.req.OnError == Fail || !fails || s.no("it is not known what stood for a job that failed")
}

// rememberAsset notes what there was of an asset.
func (s *session) rememberAsset(a *asset.Asset) bool {
	parts, good := s.parts, s.good
	defer func() { s.parts, s.good = parts, good }()
	s.parts, s.good = map[*job.Task][]*job.Task{}, map[*job.Task]*engine.Trace{}
	seen := map[*job.Task]bool{}
	was := lookup{
		trace: s.heldTrace,
		asked: func(t *job.Task) bool { return s.heldTrace(t) != nil },
		fails: func(t *job.Task) bool {
			tr := s.heldTrace(t)
			return tr != nil && tr.Outcome != engine.Succeeded && !t.Request()
		},
		visit: func(t *job.Task) bool { first := !seen[t]; seen[t] = true; return first },
	}
	for i := range a.Resolved {
		main := s.w.Task(a, &a.Resolved[i], "")
		s.findParts(main, was)
		for _, t := range append([]*job.Task{main}, s.parts[main]...) {
			good, stands := s.good[t]
			n, ok := s.few.tasks.ByKey(t.Key)
			if !ok || s.few.tasks.At(n).Gone {
				if good != nil { // nobody asked for it, and what it made stood all the same
					x := past{TaskState: state.TaskState{Subject: t.Subject(), Key: t.Key, Gone: true}, of: a, platform: t.Platform, part: t.Part}
					s.keepProducts(&x, good)
					s.few.past = append(s.few.past, x)
				}
				continue
			}
			tr := s.heldTrace(t)
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

// rememberGone notes what there was of a task by its number: that of an asset which is another one now, or is no more.
func (s *session) rememberGone(n int) bool {
	at := s.few.tasks.At(n)
	of := task.ParseSubject(at.Subject)
	a := s.few.gone[of.Asset]
	if a == nil {
		a = s.w.Find(of.Asset)
	}
	if s.few.byKeys && (a == nil || a.ID != of.Asset || a.UUID != asset.UUID(a.ID)) { // no rule had given it another UUID
		a = &asset.Asset{ID: of.Asset, UUID: asset.UUID(of.Asset)}
		s.few.gone[a.ID] = a
	}
	tr := s.traceByID(at.Key, at.Trace)
	if a == nil || tr == nil {
		return s.no("of what is gone it is not known what it made")
	}
	if tr.Outcome == engine.Succeeded || s.req.OnError == Fail {
		return s.keepPast(a, n, tr, nil, false)
	}
	traces := s.traces.Traces(at.Key)
	i := slices.IndexFunc(traces, func(t *engine.Trace) bool { return t.Outcome == engine.Succeeded })
	if i < 0 {
		return s.keepPast(a, n, tr, nil, false) && !asksForParts(at.Subject, tr) || s.no("last good products of several parts stood for a job")
	}
	_, ok := s.w.Available(traces[i])
	if !ok || asksForParts(at.Subject, tr) || asksForParts(at.Subject, traces[i]) {
		return s.no("last good products of several parts stood for a job")
	}
	return s.keepPast(a, n, tr, traces[i], true)
}

// keepPast notes a task of the build before, with its trace and what stood for that. The requests that it made are concerned: nobody else
// may ask for them.
func (s *session) keepPast(a *asset.Asset, n int, tr, good *engine.Trace, stands bool) bool {
	at := s.few.tasks.At(n)
	of := task.ParseSubject(at.Subject)
	x := past{TaskState: at, number: n, of: a, platform: of.Platform, part: of.Part, failed: tr.Outcome != engine.Succeeded}
	switch {
	case good != nil:
		s.keepProducts(&x, good)
	case !stands:
		s.keepProducts(&x, tr)
		x.lost = x.failed
	}
	s.few.past, s.few.known[n] = append(s.few.past, x), true
	s.before.tasks = append(s.before.tasks, at)
	for _, r := range s.w.RequestsIn(tr) {
		if !s.concern(r.Asset) {
			return false
		}
	}
	return true
}

// keepProducts notes the products that stood for a task.
func (s *session) keepProducts(x *past, tr *engine.Trace) {
	x.products = tr.Products
	for i := range x.products {
		if f := x.products[i].File; f != "" {
			s.before.outputs = append(s.before.outputs, state.Output{File: f})
		}
	}
}

// asksForParts tells whether a task of this subject asked for parts of its own job.
func asksForParts(of string, tr *engine.Trace) bool {
	me := task.ParseSubject(of)
	return slices.ContainsFunc(tr.Observations, func(o engine.Observation) bool {
		s := task.ParseSubject(o.Subject)
		return o.Kind == engine.Outline && s.Part != "" && s.Asset == me.Asset
	})
}

// findUnasked finds the parts that jobs of an asset asked for before and, by the traces that they have now, do not.
func (s *session) findUnasked() {
	asked := map[*job.Task]bool{}
	var visit func(t *job.Task)
	visit = func(t *job.Task) {
		if tr := s.traceOf(t); tr != nil && !asked[t] {
			asked[t] = true
			for _, p := range s.w.PartsIn(t, tr) {
				visit(p)
			}
		}
	}
	for _, a := range s.assets() {
		for i := range a.Resolved {
			t := s.w.Task(a, &a.Resolved[i], "")
			visit(t)
			if t.Proc.Info.Packs { // asked for by others
				if p := s.w.Task(a, t.On, processor.PackPart); p != nil {
					visit(p)
				}
			}
		}
	}
	for _, x := range s.few.past {
		if t := s.w.ByKey[x.Key]; t != nil && x.part != "" && !asked[t] {
			s.few.unasked[t] = true
		}
	}
}

// leaving are the tasks of the build before that are no more, among those that this build looks at.
func (s *session) leaving() (list []past) {
	if s.few != nil {
		for _, x := range s.few.past {
			if x.Gone {
				continue // it was before
			}
			if t := s.w.ByKey[x.Key]; !s.isLive(t) || s.traceOf(t) == nil {
				list = append(list, x)
			}
		}
	}
	return list
}

// paths are the source paths that are not as they were.
func (f *few) paths() []string { return slices.Concat(f.edited, f.added, f.removed) }

// totals are those of the build before without what there was of the assets that are concerned.
func (f *few) totals(t state.Totals) state.Totals {
	for i := range f.past {
		x := &f.past[i]
		if x.part == "" && task.IsRequest(x.of.ID) {
			t.Requests--
		} else if x.part == "" {
			t.Jobs--
			if x.failed {
				t.Failed--
			}
		}
		products, bytes := countProducts(x.products)
		t.Products -= products
		t.Bytes -= bytes
	}
	return t
}
