package results

import (
	"iter"
	"slices"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/task"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// Which requests the project has: those in the traces of its tasks, and those in the traces of these
// requests. They belong to no asset, so they exist as long as a task makes them.

// findRequests adds the live requests to s.Live. A build of few tasks adds the concerned ones: all that a concerned
// task makes, or made before. Those that it no longer makes stay if another task makes them.
func (s *Set) findRequests(is Lookup) {
	s.followRequests(0, is)
	if s.Scope == nil {
		return
	}
	for _, a := range s.Assets() {
		for i := range a.Resolved {
			if r := s.W.Task(a, &a.Resolved[i], ""); task.IsRequest(a.ID) && !s.IsLive(r) && s.othersAsk(r) {
				at := len(s.Live)
				s.takeRequest(r, is)
				s.followRequests(at, is)
			}
		}
	}
}

// followRequests takes the requests of the live tasks from an index on.
func (s *Set) followRequests(at int, is Lookup) {
	for ; at < len(s.Live); at++ {
		if tr := s.TraceOf(s.Live[at]); tr != nil {
			for _, r := range s.W.RequestsIn(tr) {
				s.takeRequest(r, is)
			}
		}
	}
}

// takeRequest marks a request as live. Nothing changes if it is not concerned.
func (s *Set) takeRequest(r *job.Task, is Lookup) {
	if s.IsLive(r) || s.Scope != nil && !s.Scope.Concerned[r.Asset] {
		return
	}
	s.FindParts(r, is)
	s.Live = append(append(s.Live, r), s.Parts[r]...)
}

// othersAsk reports whether a task that is not concerned makes a request.
func (s *Set) othersAsk(r *job.Task) bool {
	for range s.others(r) {
		return true
	}
	return false
}

// others returns the tasks that are not concerned and make a request.
func (s *Set) others(r *job.Task) iter.Seq[*job.Task] {
	return func(yield func(*job.Task) bool) {
		for _, n := range s.Scope.Tasks.Looked(state.Subject(state.TaskSubject, r.Subject())) {
			at := s.Scope.Tasks.At(n)
			if at.Gone {
				continue
			}
			t := s.W.TaskFor(at.Subject)
			if t == nil || t.Key != at.Key || s.Scope.Concerned[t.Asset] {
				continue
			}
			if tr := s.HeldTrace(t); tr != nil && slices.Contains(s.W.RequestsIn(tr), r) && !yield(t) {
				return
			}
		}
	}
}

// Askers returns a function for the sorted names of the tasks that make a request. Its first call goes
// through all live tasks.
func (s *Set) Askers() func(r *job.Task) []string {
	live := sync.OnceValue(func() map[*job.Task][]*job.Task {
		asked := map[*job.Task][]*job.Task{}
		for _, t := range s.Live {
			if tr := s.TraceOf(t); tr != nil {
				for _, r := range s.W.RequestsIn(tr) {
					asked[r] = append(asked[r], t)
				}
			}
		}
		return asked
	})
	return func(r *job.Task) (names []string) {
		askers := live()[r]
		if s.Scope != nil {
			askers = slices.AppendSeq(slices.Clone(askers), s.others(r))
		}
		for _, t := range askers {
			names = append(names, task.AssetText(t.Asset.ID))
		}
		slices.Sort(names)
		return slices.Compact(names)
	}
}

// RequestsOf returns the requests, with their parts, that a job and its parts made, and that those made. Few jobs have
// any.
func (s *Set) RequestsOf(main *job.Task) (list []*job.Task) {
	take := func(more []*job.Task) {
		for _, r := range more {
			if !slices.Contains(list, r) {
				list = append(list, r)
			}
		}
	}
	visit := func(t *job.Task) {
		if tr := s.TraceOf(t); tr != nil {
			if take(s.W.RequestsIn(tr)); t.Request() {
				take(s.W.PartsIn(t, tr))
			}
		}
	}
	visit(main)
	for _, p := range s.Parts[main] {
		visit(p)
	}
	for at := 0; at < len(list); at++ {
		visit(list[at])
	}
	return list
}

// CountRequests removes requests from the jobs that ran, and counts them. The job that made a request counts
// as built if no other job made it.
func (s *Set) CountRequests(ran map[job.ID]bool) int {
	askers := map[job.ID][]job.ID{}
	for id := range ran {
		if id.Request() {
			delete(ran, id)
			askers[id] = nil
		}
	}
	if len(askers) == 0 {
		return 0
	}
	tasks := map[job.ID]*job.Task{}
	for _, t := range s.Live {
		if t.Part != "" || t.Request() {
			continue
		}
		for _, r := range s.RequestsOf(t) {
			if who, is := askers[r.ID()]; is && r.Part == "" {
				askers[r.ID()], tasks[r.ID()] = append(who, t.ID()), r
			}
		}
	}
	for id, who := range askers {
		if len(who) == 1 && (s.Scope == nil || !s.othersAsk(tasks[id])) {
			ran[who[0]] = true
		}
	}
	return len(askers)
}

// AssetsOnly returns the concerned assets of a build of few tasks, without those that stand for
// requests.
func (s *Set) AssetsOnly() []*asset.Asset {
	return slices.DeleteFunc(s.Assets(), func(a *asset.Asset) bool { return task.IsRequest(a.ID) })
}
