package build

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// Which tasks a build looks at. If a few source files are not as they were and all else is, it follows the edges that the snapshot keeps from
// these files backwards: to the tasks that looked at them, to the tasks that looked at these, and so on. Only these are asked for, so that the
// build costs what the change reaches, not what the project has. All others hold, because nothing that they looked at differs.
//
// What follows is the same for a few tasks and for all of them. If it turns out that these were too few, the build is begun once more, with
// all: that is always right.

// few is what is known of the tasks that a build looks at, if these are not all.
type few struct {
	tasks   *state.Tasks // of the build before
	edited  []string     // source paths with other content
	added   []string
	removed []string
	dirty   map[int]bool            // by number: tasks that may be concerned
	gone    map[string]*asset.Asset // assets that the project has no more, by id, as far as they are known

	byKeys   bool        // what changed concerns more than the assets of single files: jobs are compared by their keys
	fresh    []*job.Task // jobs that the project had not
	goneJobs []int       // by number: jobs that it has no more; if byKeys, with their parts

	concerned map[*asset.Asset]bool // assets of which tasks may change, come or go; the build looks at all their tasks
	past      []past                // their tasks as the build before left them
	known     map[int]bool          // by number: tasks in past
	unasked   map[*job.Task]bool    // parts in past for which nobody asks any more, even if their last good products stand
}

// planFew finds out which few tasks the build has to look at, and makes the world for them. It is false if these are all; s.because says why.
func (s *session) planFew(t *source.Table) bool {
	f := &few{dirty: map[int]bool{}, gone: map[string]*asset.Asset{}, concerned: map[*asset.Asset]bool{}, known: map[int]bool{}, unasked: map[*job.Task]bool{}}
	s.few = f
	if s.because = s.whyAll(t); s.because != "" {
		s.few = nil
		return false
	}
	s.because = "what changed concerns more than the jobs that looked at it" // unless it turns out otherwise
	var err error
	if f.tasks, err = s.prev.Tasks(); err == nil {
		s.held, s.holds = f.tasks, s.untouched
		if s.open(t) && s.compare() && s.dependents() && s.ask() && s.remember() {
			return true
		}
	}
	s.undo()
	return false
}

// whyAll says why all tasks are to be looked at; "" if those will do that looked at what changed.
func (s *session) whyAll(t *source.Table) string {
	prev := s.prev
	switch {
	case prev == nil:
		return "nothing is known of a build before"
	case s.killed:
		return "the build before did not come to its end"
	case s.blobsGone:
		return "the blobs in .kiln are gone"
	case s.req.Force || s.req.Compact || s.req.Outcomes == AllOutcomes || s.req.FailFast || s.req.Shuffle != 0 || !s.whole():
		return "it was asked for"
	case !s.sameRules():
		return "kiln.toml, a processor or Kiln itself changed"
	case !s.resumable():
		return "the build before left something to be done"
	case !prev.Plain || len(s.messages) > 0:
		return "there is something to be said of the project, its rules or its files"
	case prev.Log.Wasteful():
		return "the log of traces is to be written again"
	case !s.findChanges(t):
		return "the source roots are others, or very many files changed"
	case !s.outputsSame():
		return "outputs are not as they were"
	case !s.worldSame():
		return "a program, a variable, a parcel or state of Kiln's own is not what it was"
	}
	return ""
}

// no says why all tasks are to be looked at after all.
func (s *session) no(because string) bool {
	s.because = because
	return false
}

// undo takes back what a build of few tasks did that one of all does itself. What jobs made stays.
func (s *session) undo() {
	if s.ran == nil {
		s.ran = map[engine.Key]*engine.Result{}
	}
	for _, r := range s.results {
		if r.State == engine.Ran && r.Trace != nil && r.Trace.ID != 0 {
			s.ran[r.Task.Key] = r
		}
	}
	if len(s.results) > 0 {
		s.pres = nil // outputs are not as they were
	}
	if s.w != nil {
		s.spoilt, s.leftBeside = s.w.Spoilt, s.leftBeside || s.w.Leftovers
		s.w.Blobs.Flush() // what is not written down is looked into again
	}
	s.closeTraces()
	s.few, s.w, s.wanted, s.results, s.messages, s.holds, s.before = nil, nil, nil, nil, nil, nil, before{}
	s.live, s.parts, s.good, s.shipment, s.held, s.resumed = nil, nil, nil, shipment{}, nil, false
}

// order is that in which assets and their tasks are told of.
func (s *session) order(a, b *job.Task) int {
	if c := cmp.Or(strings.Compare(a.Asset.ID, b.Asset.ID), strings.Compare(a.Asset.Path, b.Asset.Path)); c != 0 || a.Platform == b.Platform {
		return cmp.Or(c, strings.Compare(a.Part, b.Part))
	}
	platforms := s.p.PlatformNames()
	return cmp.Compare(slices.Index(platforms, a.Platform), slices.Index(platforms, b.Platform))
}

// untouched tells whether a trace is that which held before, of a task that nothing reaches: of an atlas of 2,000 images, those of 31 of 32 groups,
// and nothing is asked then of the images in them. If its products are lost, which 700 lstats would tell, 12 ms, a job that wants them finds out:
// it fails in a way that may pass, and a build of all makes them again.
func (s *session) untouched(t *engine.Task, tr *engine.Trace) bool {
	n, ok := s.few.tasks.ByKey(t.Key)
	return ok && !s.few.dirty[n] && !s.few.tasks.At(n).Gone && s.few.tasks.At(n).Trace == tr.ID
}

// enough tells whether the few tasks that the engine was asked for were enough. If one was stopped, or failed in a way that may pass, or
// contents turned out to be damaged or lost, all are to be looked at.
func (s *session) enough() bool {
	switch {
	case s.few == nil:
		return true
	case s.damaged():
		return false
	case s.w.Leftovers || s.traces.Damaged() || s.req.OnError >= Placeholders && slices.ContainsFunc(s.results, failed):
		return s.no("placeholders are to be made, or something could not be written")
	}
	for _, r := range s.results {
		if r.Trace == nil || r.Trace.ID == 0 {
			return s.no("a job was stopped, or failed in a way that may pass")
		}
		t := job.TaskOf(r)
		n, ok := s.few.tasks.ByKey(t.Key)
		was := ok && !s.few.tasks.At(n).Gone
		if was && !s.few.dirty[n] && s.few.tasks.At(n).Trace != r.Trace.ID {
			return s.no("contents of products were lost")
		}
		if !was && !s.few.concerned[t.Asset] && !s.concernLate(t.Asset) { // a part that an atlas asked for, for the first time
			return false
		}
	}
	return true
}

// damaged tells whether a blob was found damaged: outputs that this build does not look at may be the same file.
func (s *session) damaged() bool {
	return len(s.w.Spoilt) > 0 && !s.no("contents of products were damaged")
}

func failed(r *engine.Result) bool {
	return r != nil && r.Trace != nil && r.Trace.Outcome != engine.Succeeded
}
