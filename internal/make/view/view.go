package view

import (
	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/results"
	"github.com/kiln-pipeline/kiln/internal/make/task"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// KeyBefore finds the key that a subject had in the last build, if it is not the one that it has now; else nil.
type KeyBefore func(subject string, now engine.Key) *engine.Key

// View is a project with the state of its jobs. Nothing was run or written for it.
type View struct {
	Assets   []AssetView // sorted by id
	Messages diag.List   // about the project file, rules and source files

	set       *results.Set
	prev      *state.Snapshot // nil: nothing was built yet
	strangers func() diag.List
}

// Of returns a view of the requested tasks. Failing has the messages of jobs that failed although their runs succeeded, by
// subject. Strangers returns messages about unknown files in the output folder.
func Of(
	set *results.Set, wanted []*job.Task, prev *state.Snapshot, before KeyBefore, failing map[string]diag.List, messages diag.List,
	strangers func() diag.List,
) *View {
	v := &View{Messages: messages, set: set, prev: prev, strangers: strangers}
	at := map[*asset.Asset]int{}
	for _, t := range wanted {
		i, ok := at[t.Asset]
		if !ok {
			i = len(v.Assets)
			at[t.Asset] = i
			v.Assets = append(v.Assets, AssetView{Asset: t.Asset})
		}
		j := jobView(set, t)
		j.addBefore(before)
		if len(failing) > 0 && j.State.Holds() {
			if said := failing[t.Subject()]; said != nil {
				j.State, j.Failure = Failed, said
			}
		}
		v.Assets[i].Jobs = append(v.Assets[i].Jobs, j)
	}
	return v
}

// OfStages returns the assets, by UUID, that may have other products in other stages, or that are only in these.
func (v *View) OfStages() map[string]bool {
	all, elsewhere := map[string]bool{}, v.set.Elsewhere()
	for _, platform := range v.set.P.PlatformNames() {
		for _, a := range elsewhere.On(platform) {
			all[a.UUID] = true
		}
	}
	for i := range v.Assets {
		for _, x := range v.Assets[i].Jobs {
			all[v.Assets[i].UUID] = all[v.Assets[i].UUID] || elsewhere.MayMake(v.set, x.task)
		}
	}
	return all
}

// Task is the task with a key, or nil.
func (v *View) Task(k engine.Key) *job.Task { return v.set.W.ByKey(k) }

// AssetView is an asset with its jobs: on each platform of the view, one for each of its processors.
type AssetView struct {
	*asset.Asset
	Jobs []JobView
}

// JobState is the state of a job if it were built now.
type JobState string

const (
	UpToDate JobState = "up to date"     // a trace holds, the products are good
	Held     JobState = "held by ignore" // a trace holds only because rules say that what differs is harmless
	Failed   JobState = "failed"         // a trace holds, and it is of a failure, or what it made failed in the last build: see Failure
	Stale    JobState = "stale"          // it would run
	Maybe    JobState = "maybe"          // it would run if something stale that it needs comes out differently
	NotBuilt JobState = "not built"      // it was never built
)

// States are all states, in the order in which one of them stands for several.
var States = []JobState{Failed, Stale, Maybe, NotBuilt, Held, UpToDate}

// Holds reports whether there are products, and nothing to be done.
func (s JobState) Holds() bool { return s == UpToDate || s == Held }

// JobView is what is known of a job.
type JobView struct {
	task *job.Task

	Platform, Processor string
	On                  *asset.Resolved // its settings
	Key                 digest.Hash
	Preimage            []digest.Part // the inputs of its key
	Fingerprint         digest.Hash   // of the processor's current code
	State               JobState
	Why                 *engine.Reason   // Stale, Maybe, NotBuilt: why it would run
	Ignored             []engine.Reason  // Held: what differs
	Last                *engine.Trace    // the trace that holds, or the newest; nil: never built
	LastRun             *engine.Trace    // of the job or the part of it that ran last; nil: never built
	Among               string           // Processor, if the asset has several on the platform; else ""
	Part                string           // name of the part, if this is one; "" for the job itself
	Request             string           // the request for display, if this is a request that the job made; else ""
	Parts               []JobView        // of the job, and its requests with their parts, as far as they are known
	Traces              []*engine.Trace  // all kept traces, the last used first
	LastGood            []engine.Product // of a failed job: its last good products that are still in the output folder
	Failure             diag.List        // Failed, although its run succeeded: its outputs clash, or require what no asset makes

	set *results.Set
}

// Name returns the display name of the job of an asset, without its platform.
func (j *JobView) Name(asset string) string {
	if j.Request != "" {
		asset = j.Request
	}
	return task.Name(asset, j.Among, j.Part)
}

// Products returns the current products of a job and its parts, without hidden ones; those of a failed job
// are LastGood.
func (j *JobView) Products() []engine.Product {
	if j.failed() {
		return j.LastGood
	}
	var all []engine.Product
	for _, x := range append([]JobView{*j}, j.Parts...) {
		if x.Last == nil {
			continue
		}
		for _, p := range x.Last.Products {
			if p.File != "" {
				all = append(all, p)
			}
		}
	}
	return all
}

// failed reports whether the last run of the job failed.
func (j *JobView) failed() bool { return j.Last != nil && j.Last.Outcome != engine.Succeeded }

// Fails reports whether the job failed: its last run, or what was done with its products.
func (j *JobView) Fails() bool { return j.failed() || j.Failure != nil }

// Messages returns the messages of a job's last run, and those about its products.
func (j *JobView) Messages() diag.List {
	if j.Last == nil {
		return nil
	}
	return append(j.set.W.MessagesFor(j.task, j.Last), j.Failure...)
}

func jobView(s *results.Set, t *job.Task) JobView {
	r := t.Result
	j := JobView{
		task: t, Among: t.Among(), Part: t.Part, On: t.On, Platform: t.Platform, Processor: t.Proc.Info.Name, Key: digest.Hash(t.Key), Preimage: t.Preimage().Preimage(),
		Fingerprint: t.Fingerprint, Why: r.Why, Traces: s.Traces.Traces(t.Key), set: s,
	}
	if t.Request() {
		j.Request = task.AssetText(t.Asset.ID)
	}
	if len(j.Traces) > 0 {
		j.Last = j.Traces[0]
	}
	switch {
	case r.State == engine.Held:
		j.State, j.Last = UpToDate, r.Trace
		if r.Trace.Outcome != engine.Succeeded {
			j.State = Failed
		} else if j.Ignored = r.Ignored; len(j.Ignored) > 0 {
			j.State = Held
		}
	case r.State == engine.Undecided:
		j.State = Maybe
	case r.Why != nil && r.Why.Cause == engine.NeverBuilt:
		j.State = NotBuilt
	default:
		j.State = Stale
	}
	if j.LastRun = j.Last; j.failed() && t.Part == "" {
		j.LastGood = s.Standing(t)
	}
	others := s.Parts[t][:len(s.Parts[t]):len(s.Parts[t])]
	if t.Part == "" && !t.Request() {
		others = append(others, s.RequestsOf(t)...)
	}
	for _, p := range others {
		if p.Result == nil {
			continue
		}
		part := jobView(s, p)
		j.Parts = append(j.Parts, part)
		switch {
		case (j.State.Holds() || j.State == Maybe) && (part.State == Stale || part.State == NotBuilt):
			j.State, j.Why = Stale, part.Why
		case j.State == UpToDate && part.State == Held:
			j.State = Held
		}
		j.Ignored = append(j.Ignored[:len(j.Ignored):len(j.Ignored)], part.Ignored...)
		if part.Last != nil && (j.LastRun == nil || part.Last.Build > j.LastRun.Build) {
			j.LastRun = part.Last
		}
	}
	return j
}

// addBefore adds what the last build had of a job and its parts, if the job has other settings now.
func (j *JobView) addBefore(before KeyBefore) {
	if j.Why == nil || j.Why.Cause != engine.SettingsChanged || j.Last != nil {
		return
	}
	had := func(subject string, now engine.Key) *engine.Trace {
		if k := before(subject, now); k != nil {
			if traces := j.set.Traces.Traces(*k); len(traces) > 0 {
				return traces[0]
			}
		}
		return nil
	}
	if j.Last = had(j.task.Subject(), j.task.Key); j.Last == nil {
		return
	}
	j.LastRun = j.Last
	for i := range j.Last.Observations {
		o := &j.Last.Observations[i]
		if o.Kind != engine.Outline {
			continue
		}
		s := task.ParseSubject(o.Subject)
		if s.Part == "" || s.Asset != j.task.Asset.ID {
			continue
		}
		if tr := had(o.Subject, engine.Key{}); tr != nil {
			part := JobView{
				task: j.task, Part: s.Part, Platform: j.Platform, Processor: j.Processor, State: Stale, Why: j.Why, Last: tr, LastRun: tr, set: j.set,
			}
			if j.Parts = append(j.Parts, part); tr.Build > j.LastRun.Build {
				j.LastRun = tr
			}
		}
	}
}

// Asset finds an asset by id or path, or by a path relative to the project folder.
func (v *View) Asset(name string) *asset.Asset {
	found, err := v.set.P.Match(v.set.W.Assets, name)
	if err != nil || len(found) != 1 {
		return nil
	}
	return found[0]
}

// Table has all assets, also those that were not requested.
func (v *View) Table() *asset.Table { return v.set.W.Assets }

// Sources is the table of source files.
func (v *View) Sources() *source.Table { return v.set.W.Table }

// Strangers returns messages about unknown files in the output folder. During a build, and before the
// first one, it returns none.
func (v *View) Strangers() diag.List {
	if v.prev == nil || v.set.P.UnderWay() {
		return nil
	}
	return v.strangers()
}

// Display returns a source path as it is displayed, relative to the project folder.
func (v *View) Display(path string) string { return v.set.W.Display(path) }

// SourcePath converts a path from a user, absolute or relative to the project folder or to a root, to a
// source path.
func (v *View) SourcePath(name string) (string, bool) {
	name = v.set.P.InProject(name)
	if _, _, ok := v.set.W.Table.Find(name); ok {
		return name, true
	}
	for _, pre := range v.set.P.Prefixes() {
		if pre != "" && len(name) > len(pre) && name[:len(pre)] == pre {
			if _, _, ok := v.set.W.Table.Find(name[len(pre):]); ok {
				return name[len(pre):], true
			}
		}
	}
	return "", false
}

// Traces calls f with the last used trace of each job of the project, and of their parts. among is the processor, if
// the asset has several on the platform, else "".
func (v *View) Traces(f func(a *asset.Asset, platform, among, part string, t *engine.Trace)) {
	for _, t := range v.set.Live {
		if traces := v.set.Traces.Traces(t.Key); len(traces) > 0 {
			f(t.Asset, t.Platform, t.Among(), t.Part, traces[0])
		}
	}
}

// Named returns a function that reports whether a pattern of a parcel matches an id.
func (v *View) Named(pattern string) func(id string) bool { return v.set.Named(pattern) }
