package build

import (
	"slices"

	"github.com/kiln-pipeline/kiln/internal/make/task"

	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// Which requests the project has: those that the traces of its tasks ask for, and those that these ask for. They belong to no asset, so
// they are there as long as somebody asks.

// findRequests adds the live requests to s.live. A build of few tasks adds those that are concerned: all for which a concerned task asks,
// or asked before. Of these such stay for which another one asks.
func (s *session) findRequests(is lookup) {
	s.followRequests(0, is)
	if s.few == nil {
		return
	}
	for _, a := range s.assets() {
		for i := range a.Resolved {
			if r := s.w.Task(a, &a.Resolved[i], ""); task.IsRequest(a.ID) && !s.isLive(r) && s.othersAsk(r) {
				at := len(s.live)
				s.takeRequest(r, is)
				s.followRequests(at, is)
			}
		}
	}
}

// followRequests takes what the live tasks from a number on ask for.
func (s *session) followRequests(at int, is lookup) {
	for ; at < len(s.live); at++ {
		if tr := s.traceOf(s.live[at]); tr != nil {
			for _, r := range s.w.RequestsIn(tr) {
				s.takeRequest(r, is)
			}
		}
	}
}

// takeRequest notes that a request is live. Of one that is not concerned nothing changes.
func (s *session) takeRequest(r *job.Task, is lookup) {
	if s.isLive(r) || s.few != nil && !s.few.concerned[r.Asset] {
		return
	}
	s.findParts(r, is)
	s.live = append(append(s.live, r), s.parts[r]...)
}

// othersAsk tells whether a task that is not concerned asks for a request.
func (s *session) othersAsk(r *job.Task) bool {
	return slices.ContainsFunc(s.few.tasks.Looked(state.Subject(state.TaskSubject, r.Subject())), func(n int) bool {
		at := s.few.tasks.At(n)
		if at.Gone {
			return false
		}
		t := s.w.TaskFor(at.Subject)
		if t == nil || t.Key != at.Key || s.few.concerned[t.Asset] {
			return false
		}
		tr := s.heldTrace(t)
		return tr != nil && slices.Contains(s.w.RequestsIn(tr), r)
	})
}

// requestsOf are the requests, with their parts, that a job and its parts made, and that those made. Nearly all jobs have none.
func (s *session) requestsOf(main *job.Task) (list []*job.Task) {
	take := func(more []*job.Task) {
		for _, r := range more {
			if !slices.Contains(list, r) {
				list = append(list, r)
			}
		}
	}
	visit := func(t *job.Task) {
		if tr := s.traceOf(t); tr != nil {
			if take(s.w.RequestsIn(tr)); t.Request() {
				take(s.w.PartsIn(t, tr))
			}
		}
	}
	visit(main)
	for _, p := range s.parts[main] {
		visit(p)
	}
	for at := 0; at < len(list); at++ {
		visit(list[at])
	}
	return list
}

// countRequests takes the requests out of what ran, and counts them. A job that alone asked for one was built.
func (s *session) countRequests(ran map[job.ID]bool) int {
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
	for _, t := range s.live {
		if t.Part != "" || t.Request() {
			continue
		}
		for _, r := range s.requestsOf(t) {
			if who, is := askers[r.ID()]; is && r.Part == "" {
				askers[r.ID()], tasks[r.ID()] = append(who, t.ID()), r
			}
		}
	}
	for id, who := range askers {
		if len(who) == 1 && (s.few == nil || !s.othersAsk(tasks[id])) {
			ran[who[0]] = true
		}
	}
	return len(askers)
}

// assetsOnly are those that a build of few tasks concerns, without what stands for requests.
func (s *session) assetsOnly() []*asset.Asset {
	return slices.DeleteFunc(s.assets(), func(a *asset.Asset) bool { return task.IsRequest(a.ID) })
}
