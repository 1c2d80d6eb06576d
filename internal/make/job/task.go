package job

import (
	"cmp"
	"iter"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/fingerprint"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/extend/command"
	"github.com/kiln-pipeline/kiln/internal/make/task"
	"github.com/kiln-pipeline/kiln/processor"
)

// The tasks of a build, and the subjects that mean them.

// Task is one job (an asset, a platform, a processor with settings), or a part of one.
type Task struct {
	engine.Task
	Asset    *asset.Asset
	On       *asset.Resolved
	Platform string
	Part     string // "" for the job itself
	Proc     *Installed
	Lives    int32          // session.lives when it was found to be live
	Kept     bool           // the snapshot has it as one that the project has
	Result   *engine.Result // of this build, once that is done with it; nil: it was not asked for
}

func TaskOf(r *engine.Result) *Task { return r.Task.World.(*Task) }

// Decided reports whether this build knows the result of a task: something asked for it, and it was not stopped.
func (t *Task) Decided() bool { return t.Result != nil && t.Result.Trace != nil }

// ID identifies a job with all its parts.
type ID struct {
	asset *asset.Asset
	on    *asset.Resolved // may be shared by assets
}

type partID struct {
	of   ID
	part string
}

// Request reports whether this is a request.
func (id ID) Request() bool { return id.asset != nil && task.IsRequest(id.asset.ID) }

// Asset is the asset of the job.
func (id ID) Asset() *asset.Asset { return id.asset }

func (t *Task) ID() ID { return ID{t.Asset, t.On} }

// Find returns the asset that a name means, like Find of asset.Table.
func (w *World) Find(name string) *asset.Asset {
	if task.IsRequest(name) {
		return w.requested(name)
	}
	if w.Finder == nil {
		return w.Assets.Find(name)
	}
	a := w.Finder.Find(name)
	if uuid, ok := processor.UUIDOf(name); ok && a == nil {
		if a = w.Names().ByUUID(uuid); a != nil {
			a = w.Finder.Find(a.ID)
		}
	}
	return a
}

// Resolve finds the task for a subject. The engine calls it for one subject at a time. A request whose bytes
// are lost is not found, so that the task that asks for it runs and stores them again.
func (w *World) Resolve(s string) *engine.Task {
	if t := w.TaskFor(s); t != nil && w.bytesThere(t) {
		return &t.Task
	}
	return nil
}

func (w *World) TaskFor(text string) *Task {
	s := task.ParseSubject(text)
	a := w.Find(s.Asset)
	if a == nil {
		return nil
	}
	all := a.On(s.Platform)
	for i := range all {
		if s.Processor == "" || s.Processor == all[i].Processor {
			return w.Task(a, &all[i], s.Part)
		}
	}
	return nil
}

// Task returns an asset's job, or a part of it; nil if its processor makes no parts.
func (w *World) Task(a *asset.Asset, on *asset.Resolved, part string) *Task {
	id := partID{ID{a, on}, part}
	t := w.jobs[id.of]
	if part != "" {
		t = w.parts[id]
	}
	if t != nil {
		return t
	}
	pr := w.procs[on.Processor]
	if _, parts := pr.Processor.(processor.Parter); part != "" && !parts {
		return nil
	}
	t = &Task{Asset: a, On: on, Platform: on.Platform, Part: part, Proc: pr}
	t.Key = engine.Key(t.Preimage().Sum())
	t.Name = task.FullName(task.Name(task.AssetText(a.ID), t.Among(), part), on.Platform)
	t.Work, t.World = w.work(pr, on.Platform), t
	if w.byKey.Put(t); part == "" {
		w.jobs[id.of] = t
	} else {
		w.parts[id] = t
	}
	return t
}

// work is what all tasks of a processor on a platform share.
func (w *World) work(pr *Installed, platform string) *engine.Work {
	of := workOf{pr, platform}
	k := w.works[of]
	if k == nil {
		k = &engine.Work{
			Fingerprint: pr.Fingerprint, Outside: command.Runs(pr.Processor), Folder: platform + "/",
			Memory: cmp.Or(pr.Info.Memory, defaultJobMemory), Run: w.run,
		}
		w.works[of] = k
	}
	return k
}

type workOf struct {
	processor *Installed
	platform  string
}

// ByKey is the task with a key, or nil.
func (w *World) ByKey(k engine.Key) *Task { return w.byKey.Get(digest.Hash(k)) }

// Subject is what a task is asked for by.
func (t *Task) Subject() string { return t.subjectOf(t.Part) }

// subjectOf is the subject of a part of the same job.
func (t *Task) subjectOf(part string) string {
	s := task.Subject{Platform: t.Platform, Asset: t.Asset.ID, Part: part, Processor: t.On.Processor}
	if part == "" && t.On == &t.Asset.On(t.Platform)[0] {
		s.Processor = ""
	}
	return s.String()
}

// Among is the processor's name if the asset has several processors on the platform, else "".
func (t *Task) Among() string {
	if len(t.Asset.On(t.Platform)) > 1 {
		return t.On.Processor
	}
	return ""
}

// OfSameJob reports whether a subject means a part of the task's job.
func (t *Task) OfSameJob(s task.Subject) bool {
	return s.Part != "" && s.Asset == t.Asset.ID && (s.Processor == t.On.Processor || s.Processor == "")
}

// Installed is a processor of this project.
type Installed struct {
	processor.Processor
	Info        processor.Info
	Fingerprint digest.Hash
	Code        fingerprint.Way // of a team's processor: how its code is fingerprinted
}

// defaultJobMemory is the expected memory of a job if nothing else is known, in bytes; the contract of a processor documents it.
const defaultJobMemory = 64 << 20

// Preimage contains everything that a job's key is made of.
func (t *Task) Preimage() *digest.Builder { return t.preimageOn(t.Platform) }

// preimageOn is the preimage with another platform's name.
func (t *Task) preimageOn(platform string) *digest.Builder {
	b := digest.Build("job")
	if t.Asset.Collides != "" {
		b.Str("collides", t.Asset.Collides)
	}
	if t.Part != "" {
		b.Str("part", t.Part)
	}
	for _, in := range t.On.Import {
		b.Str("import", in.Processor).Str("import settings", in.Settings)
		if in.ByHand != "" {
			b.Str("import by hand", in.ByHand)
		}
	}
	for _, p := range t.On.Inputs {
		b.Str("input", p.Text)
	}
	for _, p := range t.On.Needs {
		b.Str("need", p.Text)
	}
	for _, p := range t.On.Ignore {
		b.Str("ignore", p.Text)
	}
	return b.Str("processor", t.Proc.Info.Name).Str("asset", t.Asset.ID).Str("uuid", t.Asset.UUID).
		Str("path", t.Asset.Path).Str("platform", platform).Str("settings", string(t.On.Canonical))
}

// RequestsIn are the requests that a task made in a trace.
func (w *World) RequestsIn(tr *engine.Trace) []*Task {
	var list []*Task
	for i := range tr.Observations {
		if o := &tr.Observations[i]; o.Kind == engine.Outline {
			if !task.AsksFor(o.Subject) {
				continue
			}
			if s := task.ParseSubject(o.Subject); task.IsRequest(s.Asset) && s.Part == "" {
				if t := w.TaskFor(o.Subject); t != nil {
					list = append(list, t)
				}
			}
		}
	}
	return list
}

// PartsIn are the parts of its own job that a task asked for in a trace.
func (w *World) PartsIn(t *Task, tr *engine.Trace) []*Task {
	var parts []*Task
	for i := range tr.Observations {
		if o := &tr.Observations[i]; o.Kind == engine.Outline {
			// Parts of other assets, asked for by id, are not among them.
			if s := task.ParseSubject(o.Subject); t.OfSameJob(s) {
				if p := w.Task(t.Asset, t.On, s.Part); p != nil {
					parts = append(parts, p)
				}
			}
		}
	}
	return parts
}

// ContentsSeen are the contents of parts of its own job that a task read.
func (w *World) ContentsSeen(t *Task, tr *engine.Trace) iter.Seq2[*engine.Observation, *Task] {
	return func(yield func(*engine.Observation, *Task) bool) {
		for i := range tr.Observations {
			o := &tr.Observations[i]
			if s := task.ParseSubject(o.Subject); o.Kind == engine.Content && t.OfSameJob(s) {
				if p := w.Task(t.Asset, t.On, s.Part); p != nil && !yield(o, p) {
					return
				}
			}
		}
	}
}
