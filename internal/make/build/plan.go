package build

import (
	"cmp"
	"slices"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/delivery/ship"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/notices"
	"github.com/kiln-pipeline/kiln/internal/make/parcels"
	"github.com/kiln-pipeline/kiln/internal/make/plan"
	"github.com/kiln-pipeline/kiln/internal/make/report"
	"github.com/kiln-pipeline/kiln/internal/make/results"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// Which tasks a build checks. If only few source files changed, it follows the edges in the snapshot
// backwards from these files: to the tasks that observed them, to the tasks that observed these, and so on.
// Only these tasks are requested, so the cost of the build depends on what the change reaches, not on the
// size of the project. All other traces hold, because nothing that they observed differs.
//
// The steps after that are the same for few tasks and for all. If the few turn out not to be enough, the
// build starts again with all tasks, which is always right.

// planFew finds the few tasks that the build must check, and makes the world for them. It returns false if
// all must be checked; s.because then has the reason.
func (s *session) planFew(t *source.Table) bool {
	s.Scope = &results.Scope{Concerned: map[*asset.Asset]bool{}, Unasked: map[*job.Task]bool{}}
	f := plan.NewFew(s.Set, s.Prev)
	s.few, s.Before = f, f.Before
	if s.because = s.whyAll(t); s.because != "" {
		s.few, s.Scope = nil, nil
		return false
	}
	s.because = "what changed concerns more than the jobs that looked at it" // the reason, unless another one is found
	var err error
	if s.Scope.Tasks, err = s.Prev.Tasks(); err == nil {
		s.Held, s.holds = s.Scope.Tasks, f.Untouched
		if s.open(t) {
			if f.Find() {
				s.wanted = f.Wanted
				return true
			}
			s.because = cmp.Or(f.Because, s.because)
		}
	}
	s.undo()
	return false
}

// whyAll returns why all tasks must be checked, or "" if it is enough to check those that observed
// what changed.
func (s *session) whyAll(t *source.Table) string {
	prev := s.Prev
	switch {
	case prev == nil:
		return "nothing is known of a build before"
	case s.Killed:
		return "the build before did not come to its end"
	case s.BlobsGone:
		return "the blobs in .kiln are missing"
	case s.req.Force || s.req.Strict || s.req.Compact || s.req.FailFast || s.req.Shuffle != 0 || !s.whole(),
		s.req.Outcomes == report.AllOutcomes:
		return "it was asked for"
	case !s.SameRules():
		return "kiln.toml, a processor or Kiln itself changed"
	case s.req.done&otherIDs != 0:
		return otherIDsBecause
	case !s.resumable():
		return "the build before left something to be done"
	case !prev.Plain || len(s.messages) > 0:
		return "there is something to be said of the project, its rules or its files"
	case prev.Log.Wasteful():
		return "the log of traces must be written again"
	case !s.few.FindChanges(t):
		return "the source roots are others, or very many files changed"
	case !s.OutputsSame():
		return "outputs have changed"
	case !s.P.WorldSame(s.Prev):
		return "a program, a variable, a parcel or state of Kiln's own is not what it was"
	}
	return ""
}

// no records why all tasks must be checked. It returns false.
func (s *session) no(because string) bool {
	s.because = because
	return false
}

// noteRan remembers which jobs ran, for another run of the engine.
func (s *session) noteRan() {
	if s.ran == nil {
		s.ran = map[engine.Key]*engine.Result{}
	}
	for _, r := range s.Results {
		if (r.State == engine.Ran || r.State == engine.Adopted) && r.Trace != nil && r.Trace.ID != 0 {
			s.ran[r.Task.Key] = r
		}
	}
}

// undo reverts what a build of few tasks did and a full build does itself. Results of jobs stay.
func (s *session) undo() {
	s.noteRan()
	if len(s.Results) > 0 {
		s.Pres = nil // outputs have changed
	}
	if s.W != nil {
		s.spoilt, s.leftBeside = s.W.Spoilt, s.leftBeside || s.W.Leftovers
		s.W.Blobs.Flush() // what is not recorded is checked again
	}
	s.closeTraces()
	s.Set = s.Set.Empty()
	s.few, s.wanted, s.messages, s.holds, s.Before = nil, nil, nil, nil, &plan.Before{}
	s.tree, s.shipment, s.resumed = nil, parcels.Shipment{}, false
}

// enough reports whether the few requested tasks were enough. If one was stopped, or failed in a way
// that may pass, or contents turned out to be damaged or lost, all must be checked.
func (s *session) enough() bool {
	switch {
	case s.few == nil:
		return true
	case s.damaged():
		return false
	case s.W.Leftovers || s.Traces.Damaged() || s.req.OnError >= results.Placeholders && slices.ContainsFunc(s.Results, results.Failed):
		return s.no("placeholders must be made, or something could not be written")
	}
	for _, r := range s.Results {
		if r.Trace == nil || r.Trace.ID == 0 {
			return s.no("a job was stopped, or failed in a way that may pass")
		}
		t := job.TaskOf(r)
		n, ok := s.Scope.Tasks.ByKey(t.Key)
		was := ok && !s.Scope.Tasks.At(n).Gone
		if was && !s.few.Dirty[n] && s.Scope.Tasks.At(n).Trace != r.Trace.ID {
			return s.no("contents of products were lost")
		}
		if !was && !s.Scope.Concerned[t.Asset] && !s.few.ConcernLate(t.Asset) { // for example a part that an atlas requested for the first time
			return s.no(cmp.Or(s.few.Because, s.because))
		}
	}
	return true
}

// damaged reports whether a blob was found damaged: outputs that this build does not check may be hard
// links to it.
func (s *session) damaged() bool {
	return len(s.W.Spoilt) > 0 && !s.no("contents of products were damaged")
}

// open makes the world. In it, assets are looked up one by one; if the change concerns more than the assets of single
// files, it has all assets.
func (s *session) open(t *source.Table) bool {
	blobs, err := cas.Open(s.P.CasDir())
	if err != nil {
		return false
	}
	w := s.P.World(t, blobs)
	w.Before, w.Reporter = s.Prev.Outputs, s.req.Reporter
	finder, ok := s.P.Finder(t)
	kept := ok && !s.few.ByKeys
	if kept {
		s.notices, kept = notices.Keep(s.P, s.Prev, t, s.few.Paths(), finder.Would)
	}
	if !kept || !s.few.OthersAlike(t, finder, s.notices.Rules) {
		s.few.ByKeys = true
		set, paths, l := s.P.Evaluate(t)
		if l.Err() != nil {
			return s.no("the rules have mistakes")
		}
		before, ok := notices.Decode(s.Prev.Notices)
		if !ok {
			return false
		}
		s.notices = notices.Of(s.P, t, set, l, before)
		collide := slices.ContainsFunc(set.Assets, func(a asset.Asset) bool { return a.Collides != "" })
		if collide || s.notices.Unread() && ship.Wanted(s.P.Project) {
			return s.no("source files cannot be read, or their names collide")
		}
		w.AddAll(set)
		w.Paths = func() []string { return paths }
	} else {
		w.Finder, w.Named = finder, finder.Named()
		w.Names = sync.OnceValue(func() *asset.Table { all, _, _ := s.P.Evaluate(t); return all })
		w.Paths = sync.OnceValue(func() []string { paths, _ := workspace.SourcePaths(t); return paths })
	}
	find := func(k engine.Key) int64 {
		if i, ok := s.Scope.Tasks.ByKey(k); ok {
			return s.Scope.Tasks.At(i).Head
		}
		return 0
	}
	s.number = s.Prev.Build + 1
	if s.Traces, ok, err = state.OpenTracesAt(s.P.TracesPath(), s.Prev.Log, s.Prev.Build, find); err != nil || !ok {
		return false
	}
	s.W = w
	s.W.KnowTools(s.Prev.Tools)
	return true
}
