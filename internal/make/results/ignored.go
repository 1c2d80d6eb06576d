package results

import (
	"slices"

	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/task"
)

// HeldByIgnore are the jobs, by their subjects, that are up to date only because rules say under ignore that what differs is harmless: of
// the job itself, of a part of it, or of a request that it made. Nearly no project has any.
func (s *Set) HeldByIgnore() map[string]bool {
	jobs, requests := map[string]bool{}, map[*job.Task]bool{}
	for _, r := range s.Results {
		if len(r.Ignored) == 0 {
			continue
		}
		t := job.TaskOf(r)
		main := s.W.Task(t.Asset, t.On, "")
		switch {
		case !s.IsLive(t) && (s.Scope == nil || s.Scope.Concerned[t.Asset]): // no task asks for it any more
		case t.Request():
			requests[main] = true
		default:
			jobs[main.Subject()] = true
		}
	}
	for _, n := range s.Held.Ignoring() { // those that this build did not decide stay as they are
		at := s.Held.At(n)
		of, t := task.ParseSubject(at.Subject), s.W.ByKey(at.Key)
		switch {
		case !s.staysAs(n, t):
		case t != nil && t.Request():
			requests[s.W.Task(t.Asset, t.On, "")] = true
		case t != nil:
			jobs[s.W.Task(t.Asset, t.On, "").Subject()] = true
		case task.IsRequest(of.Asset):
		case of.Part == "":
			jobs[at.Subject] = true
		default: // a part for which its job did not ask in this build
			of.Part = ""
			if main := s.W.TaskFor(of.String()); main != nil {
				jobs[main.Subject()] = true
			}
		}
	}
	if len(requests) == 0 {
		return jobs
	}
	held := func(r *job.Task) bool { return requests[s.W.Task(r.Asset, r.On, "")] }
	for _, t := range s.Live {
		if t.Part == "" && !t.Request() && slices.ContainsFunc(s.RequestsOf(t), held) {
			jobs[t.Subject()] = true
		}
	}
	return jobs
}

// staysAs reports whether a job of the build before, by its number, is as it was because this build did not decide it. The task is nil
// if nothing has asked for it.
func (s *Set) staysAs(n int, t *job.Task) bool {
	if s.Scope != nil && (t == nil || !s.Scope.Concerned[t.Asset]) {
		return !s.Scope.Left[n] && (t == nil || !t.Decided())
	}
	return s.IsLive(t) && !t.Decided()
}

// Ignoring returns a function that reports whether a task holds in this way, or, if it is a job, is among HeldByIgnore.
func (s *Set) Ignoring() func(t *job.Task) bool {
	jobs := s.HeldByIgnore()
	return func(t *job.Task) bool {
		switch {
		case len(jobs) == 0:
			return false
		case t.Part == "" && !t.Request():
			return jobs[t.Subject()]
		case t.Decided():
			return len(t.Result.Ignored) > 0
		}
		return s.Held.Ignores(t.Key)
	}
}
