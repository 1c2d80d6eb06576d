package build

import (
	"cmp"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// save writes down what the next build has to know, and tells the database. It is false if a build of few tasks cannot.
func (s *session) save(r *Report) (bool, error) {
	h := s.head(r)
	s.leave()
	if s.few != nil {
		return s.saveFew(r, h), nil
	}
	return true, s.saveAll(r, h)
}

// saveAll writes snapshot and database.
func (s *session) saveAll(r *Report, h state.Head) error {
	next := &state.Image{Head: h, Sources: s.w.Table}
	s.saveOutputs(next)
	s.saveTasks(next)
	compacted := s.traces.Compact() // before the snapshot notes where traces are
	s.saveHeads(next)
	encoded := make(chan state.Tables, 1)                  // while the database is written
	s.w.Outputs, s.known, s.before.outputs = nil, nil, nil // of a million assets, 300 MB
	go func() {
		t := state.EncodeTables(next)
		next.Outputs, next.Tasks, next.Edges = nil, nil, nil
		encoded <- t
	}()
	if r.Stopped {
		next.Mirrored = 0 // the database tells of a build before, and what it lacks is not kept track of
	} else {
		s.mirror(r, &next.Head)
	}
	tables, gone := <-encoded, s.p.stateGone()
	if gone != nil {
		return gone
	}
	if err := errors.Join(tables.Write(s.p.snapshotPath(), &next.Head), compacted); err != nil {
		return err
	}
	return s.end()
}

// saveFew appends what changed to the snapshot, and tells the database.
func (s *session) saveFew(r *Report, h state.Head) bool {
	folders, ok := folderChanges(s.prev.Sources, s.w.Table)
	d := &state.Delta{Head: h, Folders: folders}
	if !ok {
		d.Sources = s.w.Table
	}
	for _, f := range sortedKeys(s.w.Outputs) {
		d.Outputs = append(d.Outputs, s.w.Outputs[f])
	}
	for i := range s.before.outputs {
		if f := s.before.outputs[i].File; s.w.Edited[f] == source.Missing {
			d.Removed = append(d.Removed, f)
		}
	}
	slices.Sort(d.Removed)
	d.Removed = slices.Compact(d.Removed)
	s.changeTasks(d)
	if !s.mirror(r, &d.Head) {
		return false
	}
	d.Head.Log = s.traces.Mark()
	return s.append(d) == nil && s.end() == nil
}

// changeTasks notes the tasks that have another trace than before, those that are new, and those that are no more.
func (s *session) changeTasks(d *state.Delta) {
	tasks := s.few.tasks
	next := tasks.Len()
	noted, globs := map[int]bool{}, map[string]int{}
	note := func(n int, at state.TaskState) {
		at.Head = s.traces.Head(at.Key)
		d.Tasks = append(d.Tasks, state.TaskChange{Number: n, TaskState: at})
		noted[n] = true
	}
	for _, t := range s.live {
		tr := s.traceOf(t)
		n, known := tasks.ByKey(t.Key)
		if tr == nil || known && !tasks.At(n).Gone && tasks.At(n).Trace == tr.ID {
			continue
		}
		if !known {
			n = next
			next++
		}
		note(n, state.TaskState{Subject: t.Subject(), Key: t.Key, Trace: tr.ID, Speaks: speaks(tr)})
		d.Edges, d.Globs = addEdges(d.Edges, d.Globs, globs, tr, n)
	}
	for _, x := range s.leaving() {
		at := x.TaskState
		at.Gone, at.Speaks = true, false
		note(x.number, at)
	}
	for n := range s.few.dirty { // a trace that holds again may have been moved to the front of its key
		if at := tasks.At(n); !noted[n] && s.traces.Head(at.Key) != at.Head {
			note(n, at)
		}
	}
	slices.SortFunc(d.Tasks, func(a, b state.TaskChange) int { return cmp.Compare(a.Number, b.Number) })
}

// head is what the snapshot says of a build besides its tables.
func (s *session) head(r *Report) state.Head {
	h := state.Head{
		Signature: s.signature(s.req.OnError), Project: s.p.text, Build: s.number,
		Totals: state.Totals{
			Assets: r.Summary.Assets, Jobs: r.Summary.Jobs, Requests: r.Summary.Requests, Failed: r.Summary.Failed,
			Products: r.Summary.Products, Bytes: r.Summary.Bytes,
		},
		Whole: s.complete() && !r.Stopped && s.w.Changed == "" && len(s.unplaced) == 0 && !s.shipment.again && !s.passing() &&
			len(s.placeholders) == 0, // the next build looks whether they still have to stand
		Plain: s.plain(), Pinned: s.pinned(), Notices: s.notices.encode(), Shipped: s.shipment.files, Variables: s.variables(),
		Messages: diag.Encode(slices.DeleteFunc(slices.Clone(r.Messages), func(m *diag.Message) bool { return m.Code == diag.StateDamaged })),
	}
	if s.prev != nil {
		h.Mirrored = s.prev.Mirrored
	}
	for _, name := range sortedKeys(s.w.Tools) {
		t := s.w.Tools[name]
		if s.few == nil && s.complete() && !t.Found {
			continue // nobody looks for it any more
		}
		h.Tools = append(h.Tools, state.Tool{Name: name, Path: t.Path, Stat: t.Stat, Hash: t.Hash})
	}
	return h
}

// pinned tells whether a rule gave an asset its id or UUID, or had it follow another.
func (s *session) pinned() bool {
	if s.w.Assets != nil {
		return slices.ContainsFunc(s.w.Assets.Assets, func(a asset.Asset) bool { return a.Pinned() })
	}
	return s.prev.Pinned || slices.ContainsFunc(s.few.fresh, func(t *job.Task) bool { return t.Asset.Pinned() })
}

// variables are those that jobs looked at.
func (s *session) variables() (list []state.Variable) {
	if s.few != nil {
		list = slices.DeleteFunc(slices.Clone(s.prev.Variables), func(v state.Variable) bool { _, again := s.w.Vars[v.Name]; return again })
	}
	for _, name := range sortedKeys(s.w.Vars) {
		list = append(list, state.Variable{Name: name, Value: s.w.Vars[name]})
	}
	slices.SortFunc(list, func(a, b state.Variable) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// end takes away the mark that a build is under way.
func (s *session) end() error {
	if (s.w.Leftovers || s.leftBeside) && s.p.removeTemps() != nil || s.leftovers {
		return nil // the next build tries again
	}
	if s.p.booted() {
		if err := os.WriteFile(s.p.bootPath(), []byte(disk.BootID()), 0o666); err != nil {
			return err
		}
	}
	return removeAll(s.p.underWayPath())
}

// plain tells whether nothing is to be said but by jobs, kiln.toml and notices, and no two assets' ids collide.
func (s *session) plain() bool {
	collide := s.w.Assets != nil && slices.ContainsFunc(s.w.Assets.Assets, func(a asset.Asset) bool { return a.Collides != "" })
	return len(s.messages)+len(s.yielding) == 0 && !collide
}

// passing tells whether some job failed in a way that may pass, so that it must be tried again although nothing changes.
func (s *session) passing() bool {
	return slices.ContainsFunc(s.results, func(r *engine.Result) bool {
		return r.Trace != nil && r.Trace.ID == 0
	})
}

// saveOutputs notes all outputs as they are now. Those that are there although they should not be, or not as they should be, are
// noted without a stat, which none is equal to.
func (s *session) saveOutputs(next *state.Image) {
	next.Outputs = make([]state.Output, 0, len(s.w.Outputs))
	for _, o := range s.w.Outputs {
		next.Outputs = append(next.Outputs, o)
	}
	for f := range s.known {
		if _, ok := s.w.Outputs[f]; !ok {
			next.Outputs = append(next.Outputs, state.Output{File: f})
		}
	}
	slices.SortFunc(next.Outputs, state.CompareOutputs)
}

// saveTasks notes which trace of each task holds now, and what these looked at. Keys of tasks that are no more, but of which there are traces,
// come last.
func (s *session) saveTasks(next *state.Image) {
	next.Tasks = make([]state.TaskState, 0, len(s.live))
	globs := map[string]int{}
	for _, t := range s.live {
		tr := s.traceOf(t)
		id, ok := s.held.Held(t.Key)
		if t.Decided() {
			id, ok = tr.ID, true
		}
		if !ok {
			continue
		}
		t.Kept = true
		number := len(next.Tasks)
		next.Tasks = append(next.Tasks, state.TaskState{Subject: t.Subject(), Key: t.Key, Trace: id, Speaks: speaks(tr)})
		if tr != nil {
			next.Edges, next.Globs = addEdges(next.Edges, next.Globs, globs, tr, number)
		}
	}
	for _, k := range s.traces.Keys() {
		if t := s.w.ByKey[k]; t == nil || !t.Kept {
			next.Tasks = append(next.Tasks, state.TaskState{Key: k, Gone: true})
		}
	}
}

// saveHeads notes where in the log the traces are.
func (s *session) saveHeads(next *state.Image) {
	for i := range next.Tasks {
		next.Tasks[i].Head = s.traces.Head(next.Tasks[i].Key)
	}
	next.Log = s.traces.Mark()
}

// speaks tells whether a trace has something to say, or tells of a failure.
func speaks(tr *engine.Trace) bool {
	return tr != nil && (tr.Outcome != engine.Succeeded || len(tr.Messages) > 0)
}

// packersSubject stands for all assets that ask to have images packed: it is no name of any.
const packersSubject = "\x00packers"

// addEdges adds what a trace looked at.
func addEdges(edges []state.Edge, globs []state.Glob, known map[string]int, tr *engine.Trace, number int) ([]state.Edge, []state.Glob) {
	for i := range tr.Observations {
		o := &tr.Observations[i]
		switch o.Kind {
		case job.SawFile, job.SawExists:
			edges = append(edges, state.Edge{Subject: state.Subject(state.PathSubject, o.Subject), Task: number})
		case job.SawAsset:
			edges = append(edges, state.Edge{Subject: state.Subject(state.AssetSubject, o.Subject), Task: number})
		case job.SawPackers:
			edges = append(edges, state.Edge{Subject: state.Subject(state.AssetSubject, packersSubject), Task: number})
		case engine.Outline:
			edges = append(edges, state.Edge{Subject: state.Subject(state.TaskSubject, o.Subject), Task: number})
		case job.SawGlob:
			at, ok := known[o.Subject]
			if !ok {
				at = len(globs)
				known[o.Subject] = at
				globs = append(globs, state.Glob{Pattern: o.Subject})
			}
			globs[at].Tasks = append(globs[at].Tasks, number)
		}
	}
	return edges, globs
}

// leave notes that the traces of tasks which the project has no more were used until now.
func (s *session) leave() {
	for _, was := range s.before.tasks {
		if !s.isLive(s.w.ByKey[was.Key]) {
			if traces := s.traces.Traces(was.Key); len(traces) > 0 {
				s.traces.Use(was.Key, traces[0])
			}
		}
	}
}

// toolSame tells whether a program is where and what it was.
func toolSame(dir string, t state.Tool) bool {
	path := job.FindTool(dir, t.Name)
	if path != t.Path || path == "" {
		return path == t.Path
	}
	st, err := job.StatTool(path)
	return err == nil && st == t.Stat
}

// sortedKeys are a map's keys in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// append appends to the snapshot, or writes it anew when that is due.
func (s *session) append(d *state.Delta) error {
	if err := s.p.stateGone(); err != nil {
		return err
	}
	err := s.prev.Append(d)
	if !errors.Is(err, state.ErrWriteAnew) {
		s.resumed = err == nil
		return err
	}
	im, err := s.prev.With(d)
	if err != nil {
		return err
	}
	return state.WriteSnapshot(s.p.snapshotPath(), im)
}

// folderChanges is what differs between two tables, in the words of the snapshot. ok is false if these are not of the same folders.
func folderChanges(prev, t *source.Table) (list []state.FolderChange, ok bool) {
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
