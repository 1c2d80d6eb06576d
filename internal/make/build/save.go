package build

import (
	"errors"
	"maps"
	"os"
	"slices"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/mirror"
	"github.com/kiln-pipeline/kiln/internal/make/plan"
	"github.com/kiln-pipeline/kiln/internal/make/report"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/store/contentdb"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// save records what the next build needs, and updates the database. It returns false if a build of few tasks
// cannot.
func (s *session) save(r *report.Report) (bool, error) {
	h := s.head(r)
	s.Before.Leave(s.Set)
	if s.few != nil {
		return s.saveFew(r, h), nil
	}
	return true, s.saveAll(r, h)
}

// saveAll writes snapshot and database.
func (s *session) saveAll(r *report.Report, h state.Head) error {
	next := &state.Image{Head: h, Sources: s.W.Table}
	s.tree.Save(next)
	s.W.Outputs, s.tree.Known, s.Before.Outputs = nil, nil, nil // what is not needed any more is as much as what is added from here on
	if err := s.W.Blobs.Unload(); err != nil {
		return err
	}
	plan.SaveTasks(s.Set, next)
	compacted := s.Traces.Compact() // before the snapshot records the positions of traces
	s.saveHeads(next)
	encoded := make(chan state.Tables, 1) // while the database is written
	go func() {
		t := state.EncodeTables(next)
		next.Outputs, next.Tasks, next.Edges = nil, nil, nil
		encoded <- t
	}()
	if r.Stopped {
		next.Mirrored = 0 // the database is of an earlier build, and the snapshot does not record what it lacks
	} else {
		s.mirror(r, &next.Head)
	}
	tables, gone := <-encoded, s.P.StateGone()
	if gone != nil {
		return gone
	}
	if err := errors.Join(tables.Write(s.P.SnapshotPath(), &next.Head), compacted); err != nil {
		return err
	}
	return s.end()
}

// saveFew appends what changed to the snapshot, and updates the database.
func (s *session) saveFew(r *report.Report, h state.Head) bool {
	folders, ok := plan.FolderChanges(s.Prev.Sources, s.W.Table)
	d := &state.Delta{Head: h, Folders: folders}
	if !ok {
		d.Sources = s.W.Table
	}
	for _, f := range sortedKeys(s.W.Outputs) {
		d.Outputs = append(d.Outputs, s.W.Outputs[f])
	}
	for i := range s.Before.Outputs {
		if f := s.Before.Outputs[i].File; s.W.Edited[f] == source.Missing {
			d.Removed = append(d.Removed, f)
		}
	}
	slices.Sort(d.Removed)
	d.Removed = slices.Compact(d.Removed)
	plan.ChangeTasks(s.few, d)
	if !s.mirror(r, &d.Head) {
		return false
	}
	d.Head.Log = s.Traces.Mark()
	return s.append(d) == nil && s.end() == nil
}

// head is the part of the snapshot about the build itself.
func (s *session) head(r *report.Report) state.Head {
	h := state.Head{
		Signature: s.Signature(s.req.OnError), Project: s.P.Text, Build: s.number,
		Totals: state.Totals{
			Assets: r.Summary.Assets, Jobs: r.Summary.Jobs, Requests: r.Summary.Requests, Failed: r.Summary.Failed,
			Products: r.Summary.Products, Bytes: r.Summary.Bytes,
		},
		Whole: s.complete() && !r.Stopped && s.W.Changed == "" && len(s.tree.Unplaced) == 0 && !s.shipment.Again && !s.passing() &&
			len(s.Placeholders) == 0, // the next build checks whether they are still needed
		Plain: s.plain(), Pinned: s.pinned(), Notices: s.notices.Encode(), Shipped: s.shipment.Files, Variables: plan.Variables(s.W, s.few, s.Prev),
		Messages: diag.Encode(slices.DeleteFunc(slices.Clone(r.Messages), func(m *diag.Message) bool { return m.Code == diag.StateDamaged })),
	}
	if s.Prev != nil {
		h.Mirrored = s.Prev.Mirrored
	}
	for _, name := range sortedKeys(s.W.Tools) {
		t := s.W.Tools[name]
		if s.few == nil && s.complete() && !t.Found {
			continue // it is not looked up any more
		}
		h.Tools = append(h.Tools, state.Tool{Name: name, Path: t.Path, Stat: t.Stat, Hash: t.Hash})
	}
	return h
}

// pinned reports whether a rule sets the id or UUID of an asset, or makes it follow another asset.
func (s *session) pinned() bool {
	if s.W.Assets != nil {
		return slices.ContainsFunc(s.W.Assets.Assets, func(a asset.Asset) bool { return a.Pinned() })
	}
	return s.Prev.Pinned || slices.ContainsFunc(s.few.Fresh, func(t *job.Task) bool { return t.Asset.Pinned() })
}

// end removes the mark that a build is under way.
func (s *session) end() error {
	if (s.W.Leftovers || s.leftBeside) && s.P.RemoveTemps() != nil || s.Leftovers {
		return nil // the next build tries again
	}
	if s.P.Booted() {
		if err := os.WriteFile(s.P.BootPath(), []byte(disk.BootID()), 0o666); err != nil {
			return err
		}
	}
	return errors.Join(s.P.SaveVersion(), workspace.RemoveAll(s.P.UnderWayPath()))
}

// plain reports whether all messages come from jobs, kiln.toml and notices, and no ids of assets
// collide.
func (s *session) plain() bool {
	collide := s.W.Assets != nil && slices.ContainsFunc(s.W.Assets.Assets, func(a asset.Asset) bool { return a.Collides != "" })
	return len(s.messages)+len(s.Yielding) == 0 && !collide
}

// passing reports whether a job failed in a way that may pass, so that the next build must try again
// although nothing changes.
func (s *session) passing() bool {
	return slices.ContainsFunc(s.Results, func(r *engine.Result) bool {
		return r.Trace != nil && r.Trace.ID == 0
	})
}

// saveHeads stores the positions of the traces in the log.
func (s *session) saveHeads(next *state.Image) {
	for i := range next.Tasks {
		next.Tasks[i].Head = s.Traces.Head(next.Tasks[i].Key)
	}
	next.Log = s.Traces.Mark()
}

// sortedKeys are a map's keys in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// append appends to the snapshot, or rewrites it if much was appended.
func (s *session) append(d *state.Delta) error {
	if err := s.P.StateGone(); err != nil {
		return err
	}
	err := s.Prev.Append(d)
	if !errors.Is(err, state.ErrWriteAnew) {
		s.resumed = err == nil
		return err
	}
	im, err := s.Prev.With(d)
	if err != nil {
		return err
	}
	return state.WriteSnapshot(s.P.SnapshotPath(), im)
}

// mirror updates the content database. It returns false if a build of few tasks does not know enough for
// that.
func (s *session) mirror(r *report.Report, h *state.Head) bool {
	m := &mirror.Mirror{
		Set: s.Set, Few: s.few, Prev: s.Prev, Before: s.Before, Hashes: s.Hashes, Number: s.number, Started: s.start, Platforms: s.req.Platforms,
		Shipment: &s.shipment, Notices: &s.notices, Quiet: s.Upgrade,
		Summary: contentdb.Summary{
			Seconds: r.Summary.Seconds, Assets: r.Summary.Assets, Jobs: r.Summary.Jobs, Built: r.Summary.Built, Reused: r.Summary.Reused,
			Failed: r.Summary.Failed, Products: r.Summary.Products, Bytes: r.Summary.Bytes,
			Compared: r.Summary.LookedAt, Because: r.Summary.Because,
		},
	}
	told := map[*diag.Message]bool{}
	for _, x := range r.Messages {
		told[x] = true
	}
	for _, x := range s.said() {
		if x.Code != diag.EmptyFile || told[x] {
			m.Said = append(m.Said, x)
		}
	}
	warnings, ok := m.Tell(h)
	r.Messages = append(r.Messages, warnings...)
	return ok || s.no("the content database has changed")
}
