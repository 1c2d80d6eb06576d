package build

import (
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/kiln-pipeline/kiln/internal/asset"
	"github.com/kiln-pipeline/kiln/internal/contentdb"
	"github.com/kiln-pipeline/kiln/internal/diag"
	"github.com/kiln-pipeline/kiln/internal/digest"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/settings"
	"github.com/kiln-pipeline/kiln/internal/source"
	"github.com/kiln-pipeline/kiln/internal/state"
	"github.com/kiln-pipeline/kiln/processor"
)

// mirror tells the content database what changed since the build it knows of. next.Mirrored is set if it now knows of this one.
func (s *session) mirror(r *Report, next *state.Snapshot) error {
	for range 2 { // a damaged database is set aside, and filled anew
		err := s.mirrorOnce(r, next)
		if !errors.Is(err, contentdb.ErrDamaged) {
			return err
		}
		next.Mirrored = 0
	}
	return nil
}

func (s *session) mirrorOnce(r *Report, next *state.Snapshot) error {
	db, opened, err := contentdb.Open(s.p.DatabasePath())
	if err != nil {
		return err
	}
	defer db.Close()
	if opened.Reason != "" {
		r.Messages = append(r.Messages, diag.Warningf(diag.StateDamaged, diag.Pos{File: ".kiln/content.db"}, "%s", opened.Reason))
	}
	ids, err := db.AssetIDs()
	if err != nil {
		return err
	}
	roots := make([]string, len(s.p.Roots))
	for i := range roots {
		roots[i] = s.p.Roots[i].Path
	}
	b, err := db.Begin(contentdb.Start{
		Number: int64(s.number), Started: s.start, After: int64(next.Mirrored), Project: s.p.Name, Output: s.p.Output,
		Kiln: s.p.cfg.Version, Roots: roots, Platforms: s.p.PlatformNames(),
	})
	if err != nil {
		return err
	}
	s.mirrorFiles(b)
	s.mirrorAssets(b, ids, next)
	sum := contentdb.Summary{
		Seconds: r.Summary.Seconds, Assets: r.Summary.Assets, Jobs: r.Summary.Jobs, Built: r.Summary.Built, Reused: r.Summary.Reused,
		Failed: r.Summary.Failed, Products: r.Summary.Products, Bytes: r.Summary.Bytes,
	}
	for _, m := range s.messages {
		sum.Diagnostics = append(sum.Diagnostics, contentdb.Diagnostic{Message: *m})
	}
	if err := b.Finish(sum); err != nil {
		return err
	}
	next.Mirrored = s.number
	return nil
}

// mirrorFiles hands in the source files that are not as they were.
func (s *session) mirrorFiles(b *contentdb.Build) {
	var prev *source.Table
	if s.prev != nil && !b.Everything() {
		prev = s.prev.Sources
	}
	t := s.w.table
	if prev == t {
		return
	}
	var files []contentdb.File
	t.Each(func(root int, path string, f *source.File) {
		if prev != nil {
			if i, ok := prev.FindIn(root, path); ok {
				if old := prev.At(i); old.Hash == f.Hash && old.Stat.Size == f.Stat.Size {
					return
				}
			}
		}
		files = append(files, contentdb.File{Path: path, Root: root, Size: f.Stat.Size, Hash: f.Hash})
	})
	if prev != nil {
		prev.Each(func(root int, path string, _ *source.File) {
			if _, ok := t.FindIn(root, path); !ok {
				files = append(files, contentdb.File{Path: path, Root: root, Missing: true})
			}
		})
	}
	b.PutFiles(files)
}

// mirrorAssets hands in the assets with a job whose trace is another than in the build that the database knows of.
func (s *session) mirrorAssets(b *contentdb.Build, ids []string, next *state.Snapshot) {
	known := map[state.TaskState]bool{}
	gone := map[engine.Key]bool{}
	if s.prev != nil && !b.Everything() {
		for _, ts := range s.prev.Tasks {
			known[ts], gone[ts.Key] = true, true
		}
	}
	held := make(map[engine.Key]uint64, len(next.Tasks))
	for _, ts := range next.Tasks {
		held[ts.Key] = ts.Trace
		delete(gone, ts.Key)
	}
	traces := make(map[engine.Key]*engine.Trace, len(s.results))
	for _, res := range s.results {
		traces[res.Task.Key] = res.Trace
	}
	for k := range s.w.assets.Assets {
		a := &s.w.assets.Assets[k]
		changed := false
		for i := range a.Platforms {
			t := s.w.tasks[taskID{a, a.Platforms[i].Platform}]
			id, ok := held[t.Key]
			changed = changed || ok && (id == 0 || !known[state.TaskState{Key: t.Key, Trace: id}])
		}
		if changed {
			b.Put(s.assetRecord(a, held, traces))
		}
	}
	if len(gone) > 0 {
		for _, id := range ids {
			if a := find(s.w.assets, id); a == nil || a.ID != id {
				b.Delete(id)
			}
		}
	}
}

func (s *session) assetRecord(a *asset.Asset, held map[engine.Key]uint64, traces map[engine.Key]*engine.Trace) contentdb.Asset {
	rec := contentdb.Asset{ID: a.ID, UUID: a.UUID, Path: a.Path, Folder: a.Folder, Processor: a.Platforms[0].Processor}
	for i := range a.Platforms {
		t := s.w.tasks[taskID{a, a.Platforms[i].Platform}]
		tr := traces[t.Key]
		if tr == nil {
			for _, old := range s.traces.Traces(t.Key) {
				if old.ID == held[t.Key] {
					tr = old
				}
			}
		}
		if tr != nil {
			rec.Jobs = append(rec.Jobs, s.jobRecord(t, tr))
		}
	}
	return rec
}

func (s *session) jobRecord(t *task, tr *engine.Trace) contentdb.Job {
	job := contentdb.Job{
		Platform: t.platform, Key: digest.Hash(t.Key), Settings: settings.JSON(t.settings), Fingerprint: tr.Fingerprint.String(),
		Failed: tr.Outcome != engine.Succeeded, Built: int64(tr.Build), Reason: Explain(tr.Why), Seconds: tr.Seconds, PeakMemory: tr.Memory,
	}
	group := 0
	for i := range tr.Observations {
		o := &tr.Observations[i]
		if !o.Joined {
			group++
		}
		job.Observations = append(job.Observations, contentdb.Observation{
			Group: group, Kind: contentdb.Kind(KindName(*o)), Subject: SubjectName(*o), Hash: o.Value,
		})
		if o.Kind == engine.Outline {
			if a := find(s.w.assets, SubjectName(*o)); a != nil && !slices.Contains(job.Needs, a.ID) {
				job.Needs = append(job.Needs, a.ID)
			}
		}
	}
	for i := range tr.Products {
		job.Products = append(job.Products, productRecord(t.platform, &tr.Products[i]))
	}
	for _, m := range decodeMessages(tr.Messages) {
		d := contentdb.Diagnostic{Message: *m}
		if m.Code == diag.NeedsFailed {
			d.Cause = taskAsset(tr.Root)
		}
		job.Diagnostics = append(job.Diagnostics, d)
	}
	return job
}

func productRecord(platform string, p *engine.Product) contentdb.Product {
	rec := contentdb.Product{SubID: p.SubID, Name: p.Name, Type: p.Type, File: p.File[len(platform)+1:], Size: p.Size, Hash: p.Hash}
	for _, r := range p.References {
		rec.References = append(rec.References, processor.Reference{UUID: uuid.UUID(r.UUID).String(), SubID: r.SubID, Required: r.Required})
	}
	return rec
}
