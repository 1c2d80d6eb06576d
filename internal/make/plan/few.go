package plan

import (
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/results"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// Few describes the tasks that a build checks, if these are not all.
type Few struct {
	*results.Set
	prev    *state.Snapshot
	Before  *Before
	Because string      // why they are not enough
	Wanted  []*job.Task // requested from the engine
	Edited  []string    // source paths with changed content
	Added   []string
	Removed []string
	Dirty   map[int]bool            // by number: tasks that may be concerned
	Gone    map[string]*asset.Asset // assets that were removed from the project, by id, as far as they are known

	ByKeys   bool        // the change concerns more than the assets of single files: jobs are compared by their keys
	Fresh    []*job.Task // new jobs of the project
	goneJobs []int       // by number: removed jobs; with ByKeys, also their parts

	Past  []Past       // their tasks in the build before
	known map[int]bool // by number: tasks in Past
}

func NewFew(set *results.Set, prev *state.Snapshot) *Few {
	return &Few{Set: set, prev: prev, Before: &Before{}, Dirty: map[int]bool{}, Gone: map[string]*asset.Asset{}, known: map[int]bool{}}
}

// Find finds out which tasks are concerned, and what there was of them. It is false if that is not known, or if they are very many.
func (s *Few) Find() bool {
	if !s.compare() || !s.dependents() || !s.ask() || !s.remember() {
		return false
	}
	s.Scope.Left = map[int]bool{}
	for _, n := range s.goneJobs {
		s.Scope.Left[n] = true
	}
	for i := range s.Past {
		if x := &s.Past[i]; !x.Gone && s.Gone[x.Of.ID] == x.Of {
			s.Scope.Left[x.Number] = true
		}
	}
	return true
}

// no records why all tasks must be checked. It returns false.
func (s *Few) no(because string) bool {
	s.Because = because
	return false
}

// Before is what the assets of this build had before.
type Before struct {
	Outputs []state.Output // in a build of few tasks without stats
	Tasks   []state.TaskState
}

// Leave records that the traces of tasks that the project has no more were used until now.
func (b *Before) Leave(s *results.Set) {
	for _, was := range b.Tasks {
		if !s.IsLive(s.W.ByKey(was.Key)) {
			if traces := s.Traces.Traces(was.Key); len(traces) > 0 {
				s.Traces.Use(was.Key, traces[0])
			}
		}
	}
}

// Untouched reports whether a trace is the one that held before, and no change reaches its task. For an atlas
// of 2,000 images this applies to 31 of 32 groups, so their images are not checked. If its products are lost
// (700 lstats would show that in 12 ms), a job that needs them fails in a way that may pass, and a build of
// all tasks makes them again.
func (s *Few) Untouched(t *engine.Task, tr *engine.Trace) bool {
	n, ok := s.Scope.Tasks.ByKey(t.Key)
	if !ok || s.Dirty[n] {
		return false
	}
	at := s.Scope.Tasks.At(n)
	return !at.Gone && !at.Ignores && at.Trace == tr.ID // what it ignores is known once it is compared
}

// PackersSubject stands for all assets that ask to have images packed. No asset has this name.
const PackersSubject = "\x00packers"

// NamedSubject stands for all settings that rules give to requests by name.
const NamedSubject = "\x00named"

// ListedSubject stands for all that rules say of assets beside their jobs.
const ListedSubject = "\x00listed"

// OfAssets begins what the snapshot has of a pattern of assets among globs of source files.
const OfAssets = "\x00"

// TasksOf returns the tasks of the build before; nil if they are not known. It ignores a damaged
// snapshot.
func TasksOf(prev *state.Snapshot) *state.Tasks {
	if prev == nil {
		return nil
	}
	tasks, _ := prev.Tasks()
	return tasks
}
