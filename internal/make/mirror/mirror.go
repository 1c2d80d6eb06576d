package mirror

import (
	"cmp"
	"errors"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/delivery/ship"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/explain"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/notices"
	"github.com/kiln-pipeline/kiln/internal/make/parcels"
	"github.com/kiln-pipeline/kiln/internal/make/plan"
	"github.com/kiln-pipeline/kiln/internal/make/references"
	"github.com/kiln-pipeline/kiln/internal/make/results"
	"github.com/kiln-pipeline/kiln/internal/make/task"
	"github.com/kiln-pipeline/kiln/internal/store/contentdb"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// errEverything means that the database needs all records.
var errEverything = errors.New("the database needs all records")

// Mirror writes the changes since the build that the content database describes.
type Mirror struct {
	*results.Set
	Few       *plan.Few       // nil: the build checked everything
	Prev      *state.Snapshot // nil: there was no build before
	Before    *plan.Before
	Hashes    []digest.Hash // of Prev's source files
	Number    uint64        // number of this build
	Started   time.Time
	Platforms []string // requested ones; none: all
	Shipment  *parcels.Shipment
	Notices   *notices.Notices
	Said      diag.List         // messages to record that are not from jobs
	Summary   contentdb.Summary // without counts of messages
	Quiet     bool              // the reason why the database starts again was reported already

	failing, failed map[string]diag.List             // jobs that failed although their runs succeeded, now and in the build before, by subject
	outputs         map[*diag.Message][]task.Subject // jobs whose outputs are not in place, by the messages about that
}

// Tell writes the changes. It sets h.Mirrored if the database now describes this build. Otherwise it
// returns a warning with the reason, and the next build writes everything. ok is false if the database
// needs more than a build of few tasks knows.
func (s *Mirror) Tell(h *state.Head) (warnings diag.List, ok bool) {
	diagnostics := s.Summary.Diagnostics
	warnings, err := s.update(h)
	if s.Few != nil {
		return warnings, err == nil
	}
	if errors.Is(err, contentdb.ErrDamaged) { // it has been renamed
		h.Mirrored, s.Summary.Diagnostics = 0, diagnostics
		var more diag.List
		more, err = s.update(h)
		warnings = append(warnings, more...)
	}
	if err != nil {
		h.Mirrored = 0
		warnings = append(warnings, diag.Warningf(diag.StateDamaged, diag.Pos{File: ".kiln/content.db"}, "the content database cannot be written: %s",
			strings.ReplaceAll(err.Error(), s.P.Dir+string(filepath.Separator), "")).
			WithHint("products are not affected; the next build tries again"))
	}
	return warnings, true
}

// update writes the build to the database.
func (s *Mirror) update(h *state.Head) (warnings diag.List, err error) {
	db, opened, err := s.Database.Open()
	if err != nil {
		return nil, err
	}
	defer s.Database.Close()
	if opened.Reason != "" && s.Few != nil {
		return nil, errEverything
	}
	if opened.Reason != "" && !s.Quiet { // it was reported already
		warnings = append(warnings, diag.Warningf(diag.StateDamaged, diag.Pos{File: ".kiln/content.db"}, "%s", opened.Reason))
	}
	s.findFailures()
	gone, err := s.goneAssets(db)
	if err != nil {
		return warnings, err
	}
	fewer, err := s.fewerJobs(db)
	if err != nil {
		return warnings, err
	}
	start := s.mirrorStart(h.Mirrored)
	start.Everything = s.mostlyOthers(len(gone))
	b, err := db.Begin(start)
	if err != nil {
		return warnings, err
	}
	if s.Few != nil && b.Everything() {
		b.Cancel()
		return nil, errEverything
	}
	b.PutFiles(s.changedFiles(b.Everything()))
	for _, id := range gone {
		b.Delete(id)
	}
	s.mirrorAssets(b, fewer)
	s.mirrorMeta(b)
	if s.Few != nil {
		b.TouchParcels(parcelRecords(s.Shipment.Parcels))
	} else if s.Shipment.Looked {
		b.PutParcels(parcelRecords(s.Shipment.Parcels))
	}
	for _, m := range s.Said {
		s.Summary.Diagnostics = append(s.Summary.Diagnostics, s.records(m)...)
	}
	if err := b.Finish(s.Summary); err != nil {
		return warnings, err
	}
	h.Mirrored = s.Number
	if s.Few != nil {
		h.Journal, err = s.Database.Leave()
	}
	return warnings, err
}

// mostlyOthers reports whether so many assets were added, removed or built that writing all records is
// faster than writing those that differ. When a folder of 100,000 files was renamed, deleting took 30 µs an
// asset and adding 50 µs; writing one of all records takes 20 µs.
func (s *Mirror) mostlyOthers(gone int) bool {
	if s.Few != nil {
		return false
	}
	const worth = 1000
	changes := gone + len(s.JobsRun())
	return changes > worth && changes > len(s.W.Assets.Assets)/2
}

// mirrorStart is the first record for the database; after is the number of the build that it
// describes.
func (s *Mirror) mirrorStart(after uint64) contentdb.Start {
	start := contentdb.Start{
		Number: int64(s.Number), Started: s.Started, After: int64(after), Project: s.P.Name, Output: s.P.Output,
		Kiln: s.P.Config.Version, Platforms: s.P.PlatformNames(), Building: s.Platforms,
	}
	for i := range s.P.Roots {
		start.Roots = append(start.Roots, s.P.Roots[i].Path)
	}
	return start
}

// tasksGone reports whether the database may have tasks that no longer exist.
func (s *Mirror) tasksGone() bool {
	return s.Prev != nil && (!s.Prev.Whole || slices.ContainsFunc(s.Before.Tasks, s.isGone))
}

// isGone reports whether a task of the build before is a job that no longer exists, or has another
// position among the jobs of its asset.
func (s *Mirror) isGone(ts state.TaskState) bool {
	t := s.W.ByKey(ts.Key)
	of := task.ParseSubject(ts.Subject)
	return of.Part == "" && !task.IsRequest(of.Asset) && (t == nil || t.Subject() != ts.Subject)
}

// goneAssets returns the assets in the database that the project no longer has.
func (s *Mirror) goneAssets(db *contentdb.DB) (ids []string, err error) {
	if s.Few != nil {
		for _, x := range s.Few.Leaving() {
			if id := x.Of.ID; s.Asset(id) == nil {
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
	return slices.DeleteFunc(ids, func(id string) bool { return s.W.Assets.ByID(id) != nil }), err
}

// fewerJobs returns the assets, by id, that may still have removed jobs in the database. A build of one
// platform does not delete those of other platforms, and later snapshots do not list them.
func (s *Mirror) fewerJobs(db *contentdb.DB) (map[string]bool, error) {
	fewer := map[string]bool{}
	if s.Prev == nil {
		return fewer, nil
	}
	for _, x := range s.Few.Leaving() {
		if !task.IsRequest(x.Of.ID) {
			fewer[x.Of.ID] = true
		}
	}
	for _, ts := range s.Before.Tasks {
		if s.isGone(ts) {
			fewer[task.ParseSubject(ts.Subject).Asset] = true
		}
	}
	if s.Few != nil || s.Prev.Whole {
		return fewer, nil
	}
	several, err := db.Several()
	for _, id := range several {
		fewer[id] = true
	}
	for k := range s.W.Assets.Assets {
		if a := &s.W.Assets.Assets[k]; len(a.Resolved) < len(s.P.Platforms) {
			fewer[a.ID] = true
		}
	}
	return fewer, err
}

// changedFiles returns the records of changed source files, or of all. If several roots have a path, the file of the
// last root counts.
func (s *Mirror) changedFiles(everything bool) (files []contentdb.File) {
	if s.Few != nil {
		return s.fewFiles()
	}
	var prev *source.Table
	if s.Prev != nil && !everything {
		prev = s.Prev.Sources
	}
	t := s.W.Table
	if prev == nil {
		files = make([]contentdb.File, 0, len(t.Files))
	}
	t.Each(func(root int, path string, f *source.File) {
		if len(t.Roots) > 1 {
			if _, winner, _ := t.Find(path); winner != root {
				return
			}
		}
		if prev != nil {
			if i, before, ok := prev.Find(path); ok && before == root {
				if s.Hashes[i] == f.Hash && prev.At(i).Stat.Size == f.Stat.Size {
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

// fewFiles returns the records of changed source files, including changes that jobs noticed.
func (s *Mirror) fewFiles() []contentdb.File {
	t := s.W.Table
	paths := s.Few.Paths()
	entries, _ := t.Differences(s.Prev.Sources)
	for _, e := range entries {
		paths = append(paths, path.Join(e.Folder, cmp.Or(e.Now, e.Was).Name))
	}
	slices.Sort(paths)
	var files []contentdb.File
	for _, p := range slices.Compact(paths) {
		if i, root, ok := t.Find(p); ok {
			f := t.At(i)
			files = append(files, contentdb.File{Path: p, Root: root, Size: f.Stat.Size, Hash: f.Hash})
		} else if slices.Contains(s.Few.Removed, p) {
			files = append(files, contentdb.File{Path: p, Missing: true})
		}
	}
	return files
}

// mirrorAssets writes the assets with a job whose trace has changed since the build that the database describes.
func (s *Mirror) mirrorAssets(b *contentdb.Build, fewer map[string]bool) {
	before, held := plan.TasksOf(s.Prev), s.HeldByIgnore()
	other := func(t *job.Task) bool {
		tr := s.TraceOf(t)
		if t.Decided() && results.Speaks(tr) {
			return true // its messages may differ although the trace is the same
		}
		was, known := before.Held(t.Key)
		return tr != nil && (tr.ID == 0 || !known || was != tr.ID || t.Decided() && t.Part == "" && held[t.Subject()] != before.Ignores(t.Key))
	}
	put := func(a *asset.Asset, changed bool) {
		for i := range a.Resolved {
			t := s.W.Task(a, &a.Resolved[i], "")
			changed = changed || s.turns(t) || other(t) ||
				slices.ContainsFunc(s.Parts[t], other) || slices.ContainsFunc(s.RequestsOf(t), other)
		}
		if changed {
			b.Put(s.assetRecord(a, held, b.Everything()))
		}
	}
	if s.Few == nil {
		for k := range s.W.Assets.Assets {
			a := &s.W.Assets.Assets[k]
			put(a, b.Everything() || fewer[a.ID])
		}
		return
	}
	spoke := s.spokeBefore()
	for _, subject := range slices.Sorted(maps.Keys(s.failing)) {
		spoke = s.addTurned(spoke, subject)
	}
	for _, subject := range slices.Sorted(maps.Keys(s.failed)) {
		spoke = s.addTurned(spoke, subject)
	}
	for _, a := range spoke {
		for _, platform := range s.P.PlatformNames() {
			s.TasksOf(a, platform)
		}
		put(a, true)
	}
	for _, a := range s.AssetsOnly() {
		if !slices.Contains(spoke, a) {
			put(a, fewer[a.ID])
		}
	}
}

// findFailures finds the jobs that failed although their runs succeeded.
func (s *Mirror) findFailures() {
	s.failing, s.failed = s.Notices.Failing(), references.Messages(notices.Failures(s.Prev))
	s.outputs = map[*diag.Message][]task.Subject{}
	for i := range s.Notices.Failures {
		if f := &s.Notices.Failures[i]; f.To == "" {
			for _, m := range f.Messages {
				s.outputs[m] = append(s.outputs[m], task.ParseSubject(f.Job))
			}
		}
	}
}

// turns is turned for a job. Most projects have no such failures, and many jobs.
func (s *Mirror) turns(t *job.Task) bool {
	return len(s.failing)+len(s.failed) > 0 && s.turned(t.Subject())
}

// turned reports whether a job began or ceased to fail for a reason other than its run.
func (s *Mirror) turned(subject string) bool {
	_, now := s.failing[subject]
	_, before := s.failed[subject]
	return now != before
}

// addTurned adds the asset of a job that turned, unless it is in the list.
func (s *Mirror) addTurned(list []*asset.Asset, subject string) []*asset.Asset {
	if !s.turned(subject) {
		return list
	}
	if a := s.Asset(task.ParseSubject(subject).Asset); a != nil && !slices.Contains(list, a) {
		list = append(list, a)
	}
	return list
}

// mirrorMeta writes the metadata of assets if rules may have changed it: everything else about an asset may be
// unchanged.
func (s *Mirror) mirrorMeta(b *contentdb.Build) {
	if b.Everything() || s.Few != nil && !s.Few.ByKeys {
		return // changed assets were written with it
	}
	all := map[string][]contentdb.Meta{}
	for i := range s.W.Assets.Assets {
		if a := &s.W.Assets.Assets[i]; len(a.Meta) > 0 {
			all[a.ID] = metaRecords(a)
		}
	}
	b.PutMeta(all)
}

func metaRecords(a *asset.Asset) (list []contentdb.Meta) {
	for i := range a.Meta {
		for _, text := range a.Meta[i].Texts() {
			list = append(list, contentdb.Meta{Key: a.Meta[i].Key, Value: text})
		}
	}
	return list
}

// spokeBefore returns the assets that had messages before a build of few tasks, if the messages may differ now: the
// suggestion for an unknown name depends on existing names, and a file may have moved to another root.
func (s *Mirror) spokeBefore() (list []*asset.Asset) {
	if len(s.Few.Added)+len(s.Few.Removed) == 0 && len(s.P.Roots) < 2 && !s.Few.ByKeys {
		return nil
	}
	seen := map[*asset.Asset]bool{}
	for _, n := range s.Scope.Tasks.Speaking() {
		if t := s.W.TaskFor(s.Scope.Tasks.At(n).Subject); t != nil && !seen[t.Asset] && !t.Request() {
			seen[t.Asset] = true
			list = append(list, t.Asset)
		}
	}
	return list
}

// assetRecord is an asset with its jobs, and what their parts made in theirs.
func (s *Mirror) assetRecord(a *asset.Asset, held map[string]bool, everything bool) contentdb.Asset {
	rec := contentdb.Asset{ID: a.ID, UUID: a.UUID, Path: a.Path, Folder: a.Folder, Processor: a.Processor, Meta: metaRecords(a)}
	for i := range a.Resolved {
		t := s.W.Task(a, &a.Resolved[i], "")
		parts := append(s.Parts[t][:len(s.Parts[t]):len(s.Parts[t])], s.RequestsOf(t)...)
		asked := everything || len(s.Platforms) == 0 || slices.Contains(s.Platforms, t.Platform)
		if !asked && !t.Decided() && !slices.ContainsFunc(parts, (*job.Task).Decided) {
			continue // its records do not change
		}
		tr := s.TraceOf(t)
		if tr == nil {
			continue
		}
		j := s.jobRecord(t, tr)
		j.Held = len(held) > 0 && held[t.Subject()]
		j.Failed = j.Failed || len(s.failing) > 0 && s.failing[t.Subject()] != nil
		j.Settings = settings.JSON(t.On.Settings) // once, not for each of its parts: 20 µs
		for _, p := range parts {
			s.addPart(&j, p, s.TraceOf(p))
		}
		rec.Jobs = append(rec.Jobs, j)
	}
	return rec
}

// addPart adds observations and products of a part to the record of its job. The part has no trace if only
// the last good products of the job have it.
func (s *Mirror) addPart(j *contentdb.Job, p *job.Task, tr *engine.Trace) {
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

func (s *Mirror) jobRecord(t *job.Task, tr *engine.Trace) contentdb.Job {
	rec := contentdb.Job{
		Platform: t.Platform, Processor: t.Proc.Info.Name, Key: digest.Hash(t.Key), Fingerprint: tr.Fingerprint.String(),
		Failed: tr.Outcome != engine.Succeeded, Built: int64(tr.Build), Reason: explain.Reason(tr.Why),
		Seconds: tr.Seconds, PeakMemory: tr.Memory,
	}
	if tr.Adopted {
		rec.Built, rec.Cache = 0, tr.Origin // it ran elsewhere
	}
	group := 0
	for i := range tr.Observations {
		o := &tr.Observations[i]
		if !o.Joined {
			group++
		}
		if of := task.ParseSubject(o.Subject); o.Kind < engine.FirstLeaf && (t.OfSameJob(of) || task.IsRequest(of.Asset)) {
			continue // its observations are listed here as well
		}
		rec.Observations = append(rec.Observations, contentdb.Observation{
			Group: group, Kind: contentdb.Kind(explain.Kind(*o)), Subject: explain.Subject(*o), Hash: o.Value,
		})
		if name := explain.Asset(*o); name != "" {
			if a := s.W.Find(name); a != nil && a != t.Asset && !slices.Contains(rec.Needs, a.ID) {
				rec.Needs = append(rec.Needs, a.ID)
			}
		}
	}
	rec.Products = s.productRecords(t, tr)
	for _, m := range append(s.W.MessagesFor(t, tr), s.PlaceholderMessage(t)...) {
		d := contentdb.Diagnostic{Message: *m}
		if m.Code == diag.NeedsFailed {
			d.Cause = task.AssetOf(tr.Root)
		}
		rec.Diagnostics = append(rec.Diagnostics, d)
	}
	return rec
}

// productRecords returns the current products of a task with this trace, which may be nil.
func (s *Mirror) productRecords(t *job.Task, tr *engine.Trace) []contentdb.Product {
	products := s.ProductsFor(t, tr)
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
	for name, value := range job.Facts(p.Facts) {
		rec.Facts = append(rec.Facts, contentdb.Fact{Name: name, Value: value})
	}
	for _, r := range p.References {
		rec.References = append(rec.References, results.ReferenceTo(r))
	}
	return rec
}

// records are what a message says, for the database. One of parcels that lack something, or of a product that is missing, is a record for
// each platform; one of outputs that are not in place is one of their assets.
func (s *Mirror) records(m *diag.Message) (list []contentdb.Diagnostic) {
	for i := range s.Notices.Lacks {
		if l := &s.Notices.Lacks[i]; l.Message == m {
			d := contentdb.Diagnostic{Message: *l.Alone, Asset: l.Assets[0], Platform: l.Platform}
			if last := l.Assets[len(l.Assets)-1]; s.W.Find(last) != nil {
				d.Cause = last
			}
			list = append(list, d)
		}
	}
	for i := range s.Notices.Missing {
		if x := &s.Notices.Missing[i]; x.Message == m {
			for _, platform := range x.Platforms {
				list = append(list, contentdb.Diagnostic{Message: *m, Asset: x.Asset, Platform: platform})
			}
		}
	}
	for _, of := range s.outputs[m] {
		list = append(list, contentdb.Diagnostic{Message: *m, Asset: of.Asset, Platform: of.Platform})
	}
	if list == nil {
		list = append(list, contentdb.Diagnostic{Message: *m})
	}
	return list
}

// parcelRecords returns the parcels as records for the database.
func parcelRecords(parcels []ship.Parcel) []contentdb.Parcel {
	var list []contentdb.Parcel
	for i := range parcels {
		p := &parcels[i]
		rec := contentdb.Parcel{Name: p.Name, Platform: p.Platform, File: p.File, Size: p.Size, Hash: p.Digest}
		rec.Products, rec.Added, rec.Removed = placeRecords(p.Products), placeRecords(p.Added), placeRecords(p.Removed)
		list = append(list, rec)
	}
	return list
}

func placeRecords(places []ship.Place) (list []contentdb.ParcelProduct) {
	for _, x := range places {
		list = append(list, contentdb.ParcelProduct{AssetID: x.Asset, SubID: x.SubID})
	}
	return list
}
