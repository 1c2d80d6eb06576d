package build

import (
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/fingerprint"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/extend/command"
	"github.com/kiln-pipeline/kiln/processor"
)

// What jobs are asked for by.

// task is one job: an asset, a platform, a processor with settings; or a part of it.
type task struct {
	engine.Task
	asset    *asset.Asset
	on       *asset.Resolved
	platform string
	part     string // "" for the job itself
	settings any
	proc     *installed
	lives    int            // session.lives when it was found to be live
	kept     bool           // the snapshot has it as one that the project has
	result   *engine.Result // of this build, once that is done with it; nil: it was not asked for
}

func taskOf(r *engine.Result) *task { return r.Task.World.(*task) }

// decided tells whether this build knows what became of a task: it was asked for, and not stopped.
func (t *task) decided() bool { return t.result != nil && t.result.Trace != nil }

// jobID is a job with all its parts.
type jobID struct {
	asset *asset.Asset
	on    *asset.Resolved // which assets may share
}

type partID struct {
	of   jobID
	part string
}

func (t *task) job() jobID { return jobID{t.asset, t.on} }

// subject names a job, or a part of one. String is how the engine hands it around, and how it stands in traces.
type subject struct {
	platform  string
	asset     string // by id or path
	part      string // "" for the job itself
	processor string // of a part, always, whose trace may outlive its job's place; of a job unless it is the asset's first on the platform
}

func (s subject) String() string {
	text := s.platform + "\x00" + s.asset
	if s.part != "" || s.processor != "" {
		text += "\x00" + s.part
	}
	if s.processor != "" {
		text += "\x00" + s.processor
	}
	return text
}

func parseSubject(text string) (s subject) {
	s.platform, text, _ = strings.Cut(text, "\x00")
	s.asset, text, _ = strings.Cut(text, "\x00")
	s.part, s.processor, _ = strings.Cut(text, "\x00")
	return s
}

// find finds the asset that a name means, as asset.Table's Find.
func (w *world) find(name string) *asset.Asset {
	if w.finder == nil {
		return w.assets.Find(name)
	}
	a := w.finder.Find(name)
	if uuid, ok := processor.UUIDOf(name); ok && a == nil {
		if a = w.names().ByUUID(uuid); a != nil {
			a = w.finder.Find(a.ID)
		}
	}
	return a
}

// Resolve finds the task for a subject. The engine calls it for one subject at a time.
func (w *world) Resolve(s string) *engine.Task {
	if t := w.taskFor(s); t != nil {
		return &t.Task
	}
	return nil
}

func (w *world) taskFor(text string) *task {
	s := parseSubject(text)
	a := w.find(s.asset)
	if a == nil {
		return nil
	}
	all := a.On(s.platform)
	for i := range all {
		if s.processor == "" || s.processor == all[i].Processor {
			return w.task(a, &all[i], s.part)
		}
	}
	return nil
}

// task is an asset's job, or a part of it; nil if its processor makes no parts.
func (w *world) task(a *asset.Asset, on *asset.Resolved, part string) *task {
	id := partID{jobID{a, on}, part}
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
	t = &task{asset: a, on: on, platform: on.Platform, part: part, settings: on.Settings, proc: pr}
	t.Key = engine.Key(t.preimage().Sum())
	t.Name = taskName(JobName(a.ID, t.among(), part), on.Platform)
	t.Fingerprint = pr.fingerprint
	t.Outside = command.Runs(pr.Processor)
	if t.Memory = pr.info.Memory; t.Memory == 0 {
		t.Memory = defaultJobMemory
	}
	t.Run = func(r *engine.Run) (engine.Output, error) { return w.run(t, r) }
	t.World = t
	if w.byKey[t.Key] = t; part == "" {
		w.jobs[id.of] = t
	} else {
		w.parts[id] = t
	}
	return t
}

// subject is what a task is asked for by.
func (t *task) subject() string { return t.subjectOf(t.part) }

// subjectOf is what a part of the same job is asked for by.
func (t *task) subjectOf(part string) string {
	s := subject{t.platform, t.asset.ID, part, t.on.Processor}
	if part == "" && t.on == &t.asset.On(t.platform)[0] {
		s.processor = ""
	}
	return s.String()
}

// among is the processor's name if the asset has several on the platform, else "".
func (t *task) among() string {
	if len(t.asset.On(t.platform)) > 1 {
		return t.on.Processor
	}
	return ""
}

// ofSameJob tells whether a subject is a part of the job that a task is of.
func (t *task) ofSameJob(s subject) bool {
	return s.part != "" && s.asset == t.asset.ID && (s.processor == t.on.Processor || s.processor == "")
}

// installed is a processor as this project has it.
type installed struct {
	processor.Processor
	info        processor.Info
	fingerprint digest.Hash
	code        fingerprint.Way // of a team's: what stands for its code
}

// defaultJobMemory is what a job is expected to need if nobody knows better, in bytes; the contract of a processor says so.
const defaultJobMemory = 64 << 20

// preimage is what a job's key is made of.
func (t *task) preimage() *digest.Builder {
	b := digest.Build("job")
	if t.asset.Collides != "" {
		b.Str("collides", t.asset.Collides)
	}
	if t.part != "" {
		b.Str("part", t.part)
	}
	return b.Str("processor", t.proc.info.Name).Str("asset", t.asset.ID).Str("uuid", t.asset.UUID).
		Str("path", t.asset.Path).Str("platform", t.platform).Str("settings", string(t.on.Canonical))
}
