package build

import (
	"cmp"
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/make/explain"
	"github.com/kiln-pipeline/kiln/internal/make/task"

	"github.com/google/uuid"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/store/contentdb"
	"github.com/kiln-pipeline/kiln/internal/store/state"
	"github.com/kiln-pipeline/kiln/processor"
)

// mirror tells the content database what changed since the build it knows of. h.Mirrored is set if it now knows of this one; otherwise a
// warning says why not, and the next build hands in everything. It is false if it has to be told more than a build of few tasks knows.
func (s *session) mirror(r *Report, h *state.Head) bool {
	err := s.mirrorOnce(r, h)
	if s.few != nil {
		return err == nil || s.no("the content database is not as it was left")
	}
	if errors.Is(err, contentdb.ErrDamaged) { // it has been set aside
		h.Mirrored = 0
		err = s.mirrorOnce(r, h)
	}
	if err != nil {
		h.Mirrored = 0
		r.Messages = append(r.Messages, diag.Warningf(diag.StateDamaged, diag.Pos{File: ".kiln/content.db"}, "the content database cannot be written: %s",
			strings.ReplaceAll(err.Error(), s.p.Dir+string(filepath.Separator), "")).
			WithHint("products are not concerned; the next build tries again"))
	}
	return true
}

// errEverything says that the database has to be told everything.
var errEverything = errors.New("the database has to be told everything")

func (s *session) mirrorOnce(r *Report, h *state.Head) error {
	db, opened, err := contentdb.Open(s.p.DatabasePath())
	if err != nil {
		return err
	}
	defer db.Close()
	if opened.Reason != "" && s.few != nil {
		return errEverything
	}
	if opened.Reason != "" && !s.upgrade { // of which is told already
		r.Messages = append(r.Messages, diag.Warningf(diag.StateDamaged, diag.Pos{File: ".kiln/content.db"}, "%s", opened.Reason))
	}
	gone, err := s.goneAssets(db)
	if err != nil {
		return err
	}
	fewer, err := s.fewerJobs(db)
	if err != nil {
		return err
	}
	start := s.mirrorStart(h.Mirrored)
	start.Everything = s.mostlyOthers(len(gone))
	b, err := db.Begin(start)
	if err != nil {
		return err
	}
	if s.few != nil && b.Everything() {
		b.Cancel()
		return errEverything
	}
	b.PutFiles(s.changedFiles(b.Everything()))
	for _, id := range gone {
		b.Delete(id)
	}
	s.mirrorAssets(b, fewer)
	if s.few != nil {
		b.TouchParcels(parcelRecords(s.shipment.parcels))
	} else if s.shipment.looked {
		b.PutParcels(parcelRecords(s.shipment.parcels))
	}
	if err := b.Finish(s.mirrorSummary(r)); err != nil {
		return err
	}
	h.Mirrored = s.number
	if s.few != nil {
		h.Journal, err = db.Leave()
	}
	return err
}

// mostlyOthers tells whether so many assets came, went or were built that all records are written faster than those that differ. Of a
// folder of 100,000 files that got another name, to delete takes 30 µs an asset and to put 50 µs, to write one of all 20 µs.
func (s *session) mostlyOthers(gone int) bool {
	if s.few != nil {
		return false
	}
	const worth = 1000
	changes := gone + len(s.jobsRun())
	return changes > worth && changes > len(s.w.Assets.Assets)/2
}

// mirrorStart is what the database is told first; after is the build that it tells of as yet.
func (s *session) mirrorStart(after uint64) contentdb.Start {
	start := contentdb.Start{
		Number: int64(s.number), Started: s.start, After: int64(after), Project: s.p.Name, Output: s.p.Output,
		Kiln: s.p.cfg.Version, Platforms: s.p.PlatformNames(), Building: s.req.Platforms,
	}
	for i := range s.p.Roots {
		start.Roots = append(start.Roots, s.p.Roots[i].Path)
	}
	return start
}

func (s *session) mirrorSummary(r *Report) contentdb.Summary {
	sum := contentdb.Summary{
		Seconds: r.Summary.Seconds, Assets: r.Summary.Assets, Jobs: r.Summary.Jobs, Built: r.Summary.Built, Reused: r.Summary.Reused,
		Failed: r.Summary.Failed, Products: r.Summary.Products, Bytes: r.Summary.Bytes,
		Compared: r.Summary.LookedAt, Because: r.Summary.Because,
	}
	told := map[*diag.Message]bool{}
	for _, m := range r.Messages {
		told[m] = true
	}
	for _, m := range s.said() {
		if m.Code == diag.EmptyFile && !told[m] {
			continue
		}
		records := s.lackRecords(m)
		if records == nil {
			records = []contentdb.Diagnostic{{Message: *m}}
		}
		sum.Diagnostics = append(sum.Diagnostics, records...)
	}
	return sum
}

// tasksGone tells whether tasks that the database may know of are no more.
func (s *session) tasksGone() bool {
	return s.prev != nil && (!s.prev.Whole || slices.ContainsFunc(s.before.tasks, s.isGone))
}

// isGone tells whether a task of the build before is a job that is no more, or is not the same of its asset's jobs any more.
func (s *session) isGone(ts state.TaskState) bool {
	t := s.w.ByKey[ts.Key]
	of := task.ParseSubject(ts.Subject)
	return of.Part == "" && !task.IsRequest(of.Asset) && (t == nil || t.Subject() != ts.Subject)
}

// goneAssets are those that the database knows and the project no longer has.
func (s *session) goneAssets(db *contentdb.DB) (ids []string, err error) {
	if s.few != nil {
		for _, x := range s.leaving() {
			if id := x.of.ID; s.asset(id) == nil {
				ids = append(ids, id)
			}
		}
		slices.Sort(ids)
		return slices.Compact(ids), nil
	}
	if !s.tasksGone() {
		return nil, nil
	}
	ids, err = db.AssetIDs()
	return slices.DeleteFunc(ids, func(id string) bool { return s.w.Assets.ByID(id) != nil }), err
}

// fewerJobs are assets that may have jobs in the database which they have no more, by id. A build of one platform leaves those of the others
// where they are, and no snapshot tells of them afterwards.
func (s *session) fewerJobs(db *contentdb.DB) (map[string]bool, error) {
	fewer := map[string]bool{}
	if s.prev == nil {
		return fewer, nil
	}
	for _, x := range s.leaving() {
		if !task.IsRequest(x.of.ID) {
			fewer[x.of.ID] = true
		}
	}
	for _, ts := range s.before.tasks {
		if s.isGone(ts) {
			fewer[task.ParseSubject(ts.Subject).Asset] = true
		}
	}
	if s.few != nil || s.prev.Whole {
		return fewer, nil
	}
	several, err := db.Several()
	for _, id := range several {
		fewer[id] = true
	}
	for k := range s.w.Assets.Assets {
		if a := &s.w.Assets.Assets[k]; len(a.Resolved) < len(s.p.Platforms) {
			fewer[a.ID] = true
		}
	}
	return fewer, err
}

// changedFiles are the records of the source files that are not as they were, or of all. Of a path that several roots have, the last root's
// file counts.
func (s *session) changedFiles(everything bool) (files []contentdb.File) {
	if s.few != nil {
		return s.fewFiles()
	}
	var prev *source.Table
	if s.prev != nil && !everything {
		prev = s.prev.Sources
	}
	t := s.w.Table
	t.Each(func(root int, path string, f *source.File) {
		if len(t.Roots) > 1 {
			if _, winner, _ := t.Find(path); winner != root {
				return
			}
		}
		if prev != nil {
			if i, before, ok := prev.Find(path); ok && before == root {
				if s.hashes[i] == f.Hash && prev.At(i).Stat.Size == f.Stat.Size {
					return
				}
			}
		}
		files = append(files, contentdb.File{Path: path, Root: root, Size: f.Stat.Size, Hash: f.Hash})
	})
	if prev != nil {
		prev.Each(func(root int, path string, _ *source.File) {
			if _, _, ok := t.Find(path); !ok {
				files = append(files, contentdb.File{Path: path, Root: root, Missing: true})
			}
		})
	}
	return files
}

// fewFiles are the records of the source files that are not as they were, those included that a job found to be so by chance.
func (s *session) fewFiles() []contentdb.File {
	t := s.w.Table
	paths := s.few.paths()
	entries, _ := t.Differences(s.prev.Sources)
	for _, e := range entries {
		paths = append(paths, path.Join(e.Folder, cmp.Or(e.Now, e.Was).Name))
	}
	slices.Sort(paths)
	var files []contentdb.File
	for _, p := range slices.Compact(paths) {
		if i, root, ok := t.Find(p); ok {
			f := t.At(i)
			files = append(files, contentdb.File{Path: p, Root: root, Size: f.Stat.Size, Hash: f.Hash})
		} else if slices.Contains(s.few.removed, p) {
			files = append(files, contentdb.File{Path: p, Missing: true})
		}
	}
	return files
}

// asset is the asset with an id, or nil.
func (s *session) asset(id string) *asset.Asset {
	if a := s.w.Find(id); a != nil && a.ID == id {
		return a
	}
	return nil
}

// mirrorAssets hands in the assets with a job whose trace is another than in the build that the database knows of.
func (s *session) mirrorAssets(b *contentdb.Build, fewer map[string]bool) {
	before := s.tasksBefore()
	other := func(t *job.Task) bool {
		tr := s.traceOf(t)
		if t.Decided() && speaks(tr) {
			return true // its messages may be others although the trace is the same
		}
		was, known := before.Held(t.Key)
		return tr != nil && (tr.ID == 0 || !known || was != tr.ID)
	}
	put := func(a *asset.Asset, changed bool) {
		for i := range a.Resolved {
			t := s.w.Task(a, &a.Resolved[i], "")
			changed = changed || other(t) || slices.ContainsFunc(s.parts[t], other) || slices.ContainsFunc(s.requestsOf(t), other)
		}
		if changed {
			b.Put(s.assetRecord(a, b.Everything()))
		}
	}
	if s.few == nil {
		for k := range s.w.Assets.Assets {
			a := &s.w.Assets.Assets[k]
			put(a, b.Everything() || fewer[a.ID])
		}
		return
	}
	spoke := s.spokeBefore()
	for _, a := range spoke {
		for _, platform := range s.p.PlatformNames() {
			s.tasksOf(a, platform)
		}
		put(a, true)
	}
	for _, a := range s.assetsOnly() {
		if !slices.Contains(spoke, a) {
			put(a, fewer[a.ID])
		}
	}
}

// spokeBefore are the assets that had something to say before a build of few tasks, if that may be something else now: what a name that nobody
// has was meant for depends on the names that there are, and a file may be in another root.
func (s *session) spokeBefore() (list []*asset.Asset) {
	if len(s.few.added)+len(s.few.removed) == 0 && len(s.p.Roots) < 2 && !s.few.byKeys {
		return nil
	}
	seen := map[*asset.Asset]bool{}
	for _, n := range s.few.tasks.Speaking() {
		if t := s.w.TaskFor(s.few.tasks.At(n).Subject); t != nil && !seen[t.Asset] && !t.Request() {
			seen[t.Asset] = true
			list = append(list, t.Asset)
		}
	}
	return list
}

// assetRecord is an asset with its jobs, and what their parts made in theirs.
func (s *session) assetRecord(a *asset.Asset, everything bool) contentdb.Asset {
	rec := contentdb.Asset{ID: a.ID, UUID: a.UUID, Path: a.Path, Folder: a.Folder, Processor: a.Processor}
	for i := range a.Resolved {
		if !everything && len(s.req.Platforms) > 0 && !slices.Contains(s.req.Platforms, a.Resolved[i].Platform) {
			continue // its records stay as they are
		}
		t := s.w.Task(a, &a.Resolved[i], "")
		tr := s.traceOf(t)
		if tr == nil {
			continue
		}
		j := s.jobRecord(t, tr)
		j.Settings = settings.JSON(t.Settings) // once, not for each of its parts: 20 µs
		for _, p := range append(s.parts[t][:len(s.parts[t]):len(s.parts[t])], s.requestsOf(t)...) {
			s.addPart(&j, p, s.traceOf(p))
		}
		rec.Jobs = append(rec.Jobs, j)
	}
	return rec
}

// addPart adds what a part of a job looked at and made to the job's record. It has no trace if only the last good products of the job have that part.
func (s *session) addPart(j *contentdb.Job, p *job.Task, tr *engine.Trace) {
	part := contentdb.Job{Products: s.productRecords(p, tr)}
	if tr != nil {
		part = s.jobRecord(p, tr)
	}
	after := 0
	if n := len(j.Observations); n > 0 {
		after = j.Observations[n-1].Group
	}
	for _, o := range part.Observations {
		o.Group += after
		j.Observations = append(j.Observations, o)
	}
	for _, n := range part.Needs {
		if !slices.Contains(j.Needs, n) {
			j.Needs = append(j.Needs, n)
		}
	}
	for _, x := range part.Products {
		if !slices.ContainsFunc(j.Products, func(o contentdb.Product) bool { return o.SubID == x.SubID }) {
			j.Products = append(j.Products, x)
		}
	}
	j.Diagnostics = append(j.Diagnostics, part.Diagnostics...)
	j.Seconds += part.Seconds
	j.PeakMemory = max(j.PeakMemory, part.PeakMemory)
}

func (s *session) jobRecord(t *job.Task, tr *engine.Trace) contentdb.Job {
	rec := contentdb.Job{
		Platform: t.Platform, Processor: t.Proc.Info.Name, Key: digest.Hash(t.Key), Fingerprint: tr.Fingerprint.String(),
		Failed: tr.Outcome != engine.Succeeded, Built: int64(tr.Build), Reason: explain.Reason(tr.Why),
		Seconds: tr.Seconds, PeakMemory: tr.Memory,
	}
	group := 0
	for i := range tr.Observations {
		o := &tr.Observations[i]
		if !o.Joined {
			group++
		}
		if of := task.ParseSubject(o.Subject); o.Kind < engine.FirstLeaf && (t.OfSameJob(of) || task.IsRequest(of.Asset)) {
			continue // what it looked at stands here as well
		}
		rec.Observations = append(rec.Observations, contentdb.Observation{
			Group: group, Kind: contentdb.Kind(explain.Kind(*o)), Subject: explain.Subject(*o), Hash: o.Value,
		})
		if name := explain.Asset(*o); name != "" {
			if a := s.w.Find(name); a != nil && a != t.Asset && !slices.Contains(rec.Needs, a.ID) {
				rec.Needs = append(rec.Needs, a.ID)
			}
		}
	}
	rec.Products = s.productRecords(t, tr)
	for _, m := range append(s.w.MessagesOf(tr), s.placeholderMessage(t)...) {
		d := contentdb.Diagnostic{Message: *m}
		if m.Code == diag.NeedsFailed {
			d.Cause = task.AssetOf(tr.Root)
		}
		rec.Diagnostics = append(rec.Diagnostics, d)
	}
	return rec
}

// productRecords are the products that stand for a task with this trace, which may be nil.
func (s *session) productRecords(t *job.Task, tr *engine.Trace) []contentdb.Product {
	products := s.productsFor(t, tr)
	var all []contentdb.Product
	for i := range products {
		if products[i].File != "" {
			all = append(all, productRecord(t.Platform, &products[i]))
		}
	}
	return all
}

func productRecord(platform string, p *engine.Product) contentdb.Product {
	rec := contentdb.Product{SubID: p.SubID, Name: p.Name, Type: p.Type, File: p.File[len(platform)+1:], Size: p.Size, Hash: p.Hash}
	for _, r := range p.References {
		rec.References = append(rec.References, referenceRecord(r))
	}
	return rec
}

func referenceRecord(r engine.Reference) processor.Reference {
	return processor.Reference{UUID: uuid.UUID(r.UUID).String(), SubID: r.SubID, Required: r.Required}
}
