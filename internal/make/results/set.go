package results

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/store/state"
	"github.com/kiln-pipeline/kiln/processor"
)

// Scope is what a build checks, if it is not everything.
type Scope struct {
	Tasks     *state.Tasks          // in the build before
	Concerned map[*asset.Asset]bool // assets with tasks that may change, be added or be removed: all their tasks are checked
	Left      map[int]bool          // by number: jobs that the project has no more, and their parts
	Unasked   map[*job.Task]bool    // parts of theirs that no task asks for any more, even if their last good products are kept
}

// Set is the state of a project's tasks, after the engine is done or before it starts.
type Set struct {
	P        *workspace.Workspace
	W        *job.World
	Traces   *state.Traces
	Database *Database
	OnError  OnError
	Held     *state.Tasks // the tasks of the build before, if some have no result in this one
	Scope    *Scope       // nil: all tasks are checked, or those that were requested
	Results  []*engine.Result
	Unsure   func(*engine.Observation) bool // of a dry run: what the build may change; nil: nothing

	Live         []*job.Task                    // that the project has: those of the world, and the parts that their traces ask for
	lives        int32                          // how often find looked
	Parts        map[*job.Task][]*job.Task      // by the asset's own job
	Yielding     map[job.ID]bool                // jobs that failed and whose last good products are in the way of others'
	Good         map[*job.Task]*engine.Trace    // what stands for tasks that failed and their parts; nil: nothing, for a part that is newer than the others
	Placeholders map[*job.Task][]engine.Product // that stand for failed jobs
}

func NewSet(p *workspace.Workspace, onError OnError) *Set {
	return &Set{P: p, OnError: onError, Database: &Database{path: p.DatabasePath()}}
}

// Empty returns a set without results, of the same build.
func (s *Set) Empty() *Set { return &Set{P: s.P, OnError: s.OnError, Database: s.Database} }

// Close ends what the build had open.
func (s *Set) Close() error {
	s.Database.Close() // if it is open still, it was only read
	if s.W == nil {
		return nil
	}
	return s.W.Blobs.Flush()
}

// JobsRun returns the jobs that ran, or would run, completely or in part.
func (s *Set) JobsRun() map[job.ID]bool {
	ran := map[job.ID]bool{}
	for _, res := range s.Results {
		if res.State == engine.Ran || res.State == engine.WouldRun {
			t := job.TaskOf(res)
			ran[t.ID()] = true
		}
	}
	return ran
}

// CountProducts counts products that are not hidden, and their bytes.
func CountProducts(ps []engine.Product) (products int, bytes int64) {
	for i := range ps {
		if ps[i].File != "" {
			products++
			bytes += ps[i].Size
		}
	}
	return products, bytes
}

// ProductsOf returns a task's products in the output tree. settled means that the job has no result in this build,
// so they are not changed.
func (s *Set) ProductsOf(t *job.Task) (ps []engine.Product, settled bool) {
	settled = !t.Decided() && !s.W.Task(t.Asset, t.On, "").Decided()
	return s.ProductsFor(t, s.TraceOf(t)), settled
}

func Failed(r *engine.Result) bool {
	return r != nil && r.Trace != nil && r.Trace.Outcome != engine.Succeeded
}

// Order compares two tasks in the order of reports.
func (s *Set) Order(a, b *job.Task) int {
	if c := cmp.Or(strings.Compare(a.Asset.ID, b.Asset.ID), strings.Compare(a.Asset.Path, b.Asset.Path)); c != 0 || a.Platform == b.Platform {
		return cmp.Or(c, strings.Compare(a.Part, b.Part))
	}
	platforms := s.P.PlatformNames()
	return cmp.Compare(slices.Index(platforms, a.Platform), slices.Index(platforms, b.Platform))
}

// Named returns a function that reports which ids a pattern of a parcel means.
func (s *Set) Named(pattern string) func(id string) bool {
	glob, without := project.SplitPattern(pattern)
	out := make([]func(string) bool, len(without))
	for i, x := range without {
		out[i] = s.Named(x)
	}
	in := s.named(glob)
	return func(id string) bool {
		return in(id) && !slices.ContainsFunc(out, func(has func(string) bool) bool { return has(id) })
	}
}

// named is Named for a single glob.
func (s *Set) named(pattern string) func(id string) bool {
	if a := s.W.Find(pattern); a != nil {
		return func(id string) bool { return id == a.ID }
	}
	byPath := map[string]bool{} // ids for which the id does not decide
	for _, a := range s.W.Renamed() {
		if a.MeantBy(pattern) {
			byPath[a.ID] = true
		}
	}
	return func(id string) bool { return asset.Matches(pattern, id) || byPath[id] }
}

// Asset is the asset with an id, or nil.
func (s *Set) Asset(id string) *asset.Asset {
	if a := s.W.Find(id); a != nil && a.ID == id {
		return a
	}
	return nil
}

// ReferenceTo converts an engine's reference to a processor's.
func ReferenceTo(r engine.Reference) processor.Reference {
	return processor.Reference{UUID: uuid.UUID(r.UUID).String(), SubID: r.SubID, Required: r.Required}
}

// Speaks reports whether a trace has messages or a failure.
func Speaks(tr *engine.Trace) bool {
	return tr != nil && (tr.Outcome != engine.Succeeded || len(tr.Messages) > 0)
}

// LookAhead hashes what the traces of the requested tasks observed, as far as its content is not known: files in parallel, and
// programs. The engine would hash them one after the other, and no other task could begin meanwhile. After switching a branch
// these are the files of the new branch.
func (s *Set) LookAhead(wanted []*job.Task, workers int) {
	unknown, tools := map[source.Index]bool{}, map[string]bool{}
	news := slices.ContainsFunc(s.W.Table.Files, func(f source.File) bool { return f.Hash.IsZero() })
	for _, t := range wanted {
		for n, tr := range s.Traces.Traces(t.Key) {
			for k := range tr.Observations {
				switch o := &tr.Observations[k]; {
				case o.Kind == job.SawFile && news:
					if i, _, ok := s.W.Table.Find(o.Subject); ok && s.W.Table.At(i).Hash.IsZero() {
						unknown[i] = true
					}
				case o.Kind == job.SawTool && n == 0:
					tools[o.Subject] = true
				}
			}
		}
	}
	s.W.Table.HashAll(slices.Sorted(maps.Keys(unknown)), workers)
	for name := range tools {
		s.W.Observe(job.SawTool, name)
	}
}
