package results

import (
	"slices"

	"github.com/kiln-pipeline/kiln/internal/make/job"
)

// HeldByIgnore are the jobs that are up to date only because rules say under ignore that what differs is harmless: of the job itself, of a
// part of it, or of a request that it made. Nearly no project has any.
func (s *Set) HeldByIgnore() map[*job.Task]bool {
	jobs, requests := map[*job.Task]bool{}, map[*job.Task]bool{}
	add := func(t *job.Task) {
		main := s.W.Task(t.Asset, t.On, "")
		switch {
		case !s.IsLive(t) && (s.Scope == nil || s.Scope.Concerned[t.Asset]): // no task asks for it any more
		case t.Request():
			requests[main] = true
		default:
			jobs[main] = true
		}
	}
	for _, r := range s.Results {
		if len(r.Ignored) > 0 {
			add(job.TaskOf(r))
		}
	}
	for _, n := range s.Held.Ignoring() {
		at := s.Held.At(n)
		if t := s.W.TaskFor(at.Subject); t != nil && t.Key == at.Key && !t.Decided() && !t.Request() {
			add(t)
		}
	}
	if len(requests) == 0 {
		return jobs
	}
	for _, t := range s.Live {
		if t.Part == "" && !t.Request() && slices.ContainsFunc(s.RequestsOf(t), func(r *job.Task) bool { return requests[s.W.Task(r.Asset, r.On, "")] }) {
			jobs[t] = true
		}
	}
	return jobs
}

// Ignoring returns a function that reports whether a task holds in this way, or, if it is a job, is among HeldByIgnore.
func (s *Set) Ignoring() func(t *job.Task) bool {
	jobs := s.HeldByIgnore()
	return func(t *job.Task) bool {
		if t.Decided() {
			return jobs[t] || len(t.Result.Ignored) > 0
		}
		n, ok := -1, false
		if s.Held != nil {
			n, ok = s.Held.ByKey(t.Key)
		}
		return jobs[t] || ok && s.Held.At(n).Ignores
	}
}
