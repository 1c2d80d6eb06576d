package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/results"
	"github.com/kiln-pipeline/kiln/internal/make/task"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// Records about tasks in the snapshot, by which the next build finds the few that a change reaches.

// ChangeTasks notes the tasks that have another trace than before, or hold in another way, those that are new, and those that were
// removed.
func ChangeTasks(s *Few, d *state.Delta) {
	tasks := s.Scope.Tasks
	next := tasks.Len()
	noted, globs := map[int]bool{}, map[string]int{}
	note := func(n int, at state.TaskState) {
		at.Head = s.Traces.Head(at.Key)
		d.Tasks = append(d.Tasks, state.TaskChange{Number: n, TaskState: at})
		noted[n] = true
	}
	ignoring := s.Ignoring()
	for _, t := range s.Live {
		tr := s.TraceOf(t)
		n, known := tasks.ByKey(t.Key)
		same := tr != nil && known && !tasks.At(n).Gone && tasks.At(n).Trace == tr.ID
		if tr == nil || same && tasks.At(n).Ignores == ignoring(t) {
			continue
		}
		if !known {
			n = next
			next++
		}
		note(n, state.TaskState{Subject: t.Subject(), Key: t.Key, Trace: tr.ID, Speaks: results.Speaks(tr), Ignores: ignoring(t)})
		if !same {
			d.Edges, d.Globs = addEdges(d.Edges, d.Globs, globs, tr, n)
		}
	}
	for _, x := range s.Leaving() {
		at := x.TaskState
		at.Gone, at.Speaks, at.Ignores = true, false, false
		note(x.Number, at)
	}
	for n := range s.Dirty { // a trace that holds again may have become the first of its key
		if at := tasks.At(n); !noted[n] && s.Traces.Head(at.Key) != at.Head {
			note(n, at)
		}
	}
	slices.SortFunc(d.Tasks, func(a, b state.TaskChange) int { return cmp.Compare(a.Number, b.Number) })
}

// SaveTasks records the current trace of each task, and its observations. Keys of removed tasks that still
// have traces come last.
func SaveTasks(s *results.Set, next *state.Image) {
	next.Tasks = make([]state.TaskState, 0, len(s.Live))
	edges := 0 // at most
	for _, t := range s.Live {
		if tr := s.TraceOf(t); tr != nil {
			edges += len(tr.Observations)
		}
	}
	next.Edges = make([]state.Edge, 0, edges)
	globs, ignoring := map[string]int{}, s.Ignoring()
	for _, t := range s.Live {
		tr := s.TraceOf(t)
		id, ok := s.Held.Held(t.Key)
		if t.Decided() {
			id, ok = tr.ID, true
		}
		if !ok {
			continue
		}
		t.Kept = true
		number := len(next.Tasks)
		next.Tasks = append(next.Tasks, state.TaskState{
			Subject: t.Subject(), Key: t.Key, Trace: id, Speaks: results.Speaks(tr), Ignores: ignoring(t),
		})
		if tr != nil {
			next.Edges, next.Globs = addEdges(next.Edges, next.Globs, globs, tr, number)
		}
	}
	gone := func(k engine.Key) bool { t := s.W.ByKey(k); return t == nil || !t.Kept }
	for _, k := range s.Traces.KeysOf(gone) {
		next.Tasks = append(next.Tasks, state.TaskState{Key: k, Gone: true, Subject: s.Held.Subject(k)})
	}
}

// addEdges adds the observations of a trace.
func addEdges(edges []state.Edge, globs []state.Glob, known map[string]int, tr *engine.Trace, number int) ([]state.Edge, []state.Glob) {
	for i := range tr.Observations {
		o := &tr.Observations[i]
		switch o.Kind {
		case job.SawFile, job.SawExists:
			edges = append(edges, state.Edge{Subject: state.Subject(state.PathSubject, o.Subject), Task: number})
		case job.SawAsset:
			edges = append(edges, state.Edge{Subject: state.Subject(state.AssetSubject, o.Subject), Task: number})
		case job.SawSettings:
			asset := task.ParseSubject(o.Subject).Asset
			edges = append(edges, state.Edge{Subject: state.Subject(state.AssetSubject, asset), Task: number})
		case job.SawPackers:
			edges = append(edges, state.Edge{Subject: state.Subject(state.AssetSubject, PackersSubject), Task: number})
		case job.SawNamed:
			edges = append(edges, state.Edge{Subject: state.Subject(state.AssetSubject, NamedSubject), Task: number})
		case engine.Outline:
			edges = append(edges, state.Edge{Subject: state.Subject(state.TaskSubject, o.Subject), Task: number})
		case job.SawGlob, job.SawAssets, job.SawCatalogue, job.SawListed:
			if o.Kind == job.SawListed {
				edges = append(edges, state.Edge{Subject: state.Subject(state.AssetSubject, ListedSubject), Task: number})
			}
			pattern := o.Subject
			if o.Kind != job.SawGlob {
				_, pattern = job.Meant(pattern)
				pattern = OfAssets + pattern
			}
			at, ok := known[pattern]
			if !ok {
				at = len(globs)
				known[pattern] = at
				globs = append(globs, state.Glob{Pattern: pattern})
			}
			globs[at].Tasks = append(globs[at].Tasks, number)
		}
	}
	return edges, globs
}

// FolderChanges returns the differences between two tables for the snapshot. ok is false if they have different
// folders.
func FolderChanges(prev, t *source.Table) (list []state.FolderChange, ok bool) {
	folders, ok := t.Since(prev)
	for _, i := range folders {
		was, now := prev.Entries(i), t.Entries(i)
		c := state.FolderChange{Number: i, Folder: t.Folders[i]}
		if len(was) == len(now) && slices.EqualFunc(was, now, func(a, b source.File) bool { return a.Name == b.Name }) {
			for k := range now {
				if was[k] != now[k] {
					c.At, c.Files = append(c.At, k), append(c.Files, now[k])
				}
			}
		} else {
			c.All, c.Files = true, slices.Clone(now)
		}
		list = append(list, c)
	}
	return list, ok
}

// Variables returns the environment variables that jobs observed. few is nil in a build of all tasks.
func Variables(w *job.World, few *Few, prev *state.Snapshot) (list []state.Variable) {
	if few != nil {
		list = slices.DeleteFunc(slices.Clone(prev.Variables), func(v state.Variable) bool { _, again := w.Vars[v.Name]; return again })
	}
	for _, name := range slices.Sorted(maps.Keys(w.Vars)) {
		list = append(list, state.Variable{Name: name, Value: w.Vars[name]})
	}
	slices.SortFunc(list, func(a, b state.Variable) int { return strings.Compare(a.Name, b.Name) })
	return list
}
