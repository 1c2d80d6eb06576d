package build

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/kiln-pipeline/kiln/internal/make/task"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
)

// View is a project as it is now, with what is known of its jobs. Nothing was run for it and nothing written.
type View struct {
	Assets   []AssetView // sorted by id
	Messages diag.List   // about the project file, rules and source files

	s *session
}

// AssetView is an asset with its jobs: on each platform looked at one for each of its processors.
type AssetView struct {
	*asset.Asset
	Jobs []JobView
}

// JobState is what a job would come to if it were built now.
type JobState string

const (
	Fresh  JobState = "fresh"  // a trace holds, the products are good
	Failed JobState = "failed" // a trace holds, and tells of a failure
	Stale  JobState = "stale"  // it would run
	Maybe  JobState = "maybe"  // it would run if something stale that it needs comes out differently
	New    JobState = "new"    // it was never built
)

// JobView is what is known of a job.
type JobView struct {
	Platform, Processor string
	On                  *asset.Resolved // with which settings
	Key                 digest.Hash
	Preimage            []digest.Part // what the key is made of
	Fingerprint         digest.Hash   // of the processor's code as it is now
	State               JobState
	Why                 *engine.Reason   // Stale, Maybe, New: why it would run
	Last                *engine.Trace    // the trace that holds, or the newest; nil: never built
	LastRun             *engine.Trace    // that of the job or of the part of it that ran last; nil: never built
	Among               string           // Processor, where the asset has several on the platform; else ""
	Part                string           // what this is a part of a job; "" for the job itself
	Request             string           // what this asks for, for people, if it is no job but a request that the job made; else ""
	Parts               []JobView        // of the job, and its requests with theirs, as far as they are known
	Traces              []*engine.Trace  // all that are kept, the one used last first
	LastGood            []engine.Product // of a job that failed: what it made before, as far as that still stands in the output folder

	s *session
}

// Name is the job of an asset for people, without its platform.
func (j *JobView) Name(asset string) string {
	if j.Request != "" {
		asset = j.Request
	}
	return task.Name(asset, j.Among, j.Part)
}

// Products of a job and its parts as they are, hidden ones left out; those of a job that failed are LastGood.
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

// failed tells whether the job failed when it ran last.
func (j *JobView) failed() bool { return j.Last != nil && j.Last.Outcome != engine.Succeeded }

// Messages of a job's last run.
func (j *JobView) Messages() diag.List {
	if j.Last == nil {
		return nil
	}
	return j.s.w.MessagesOf(j.Last)
}

// Look looks at the project without building. Patterns and platforms as in Request.
func (p *Project) Look(ctx context.Context, patterns, platforms []string) (*View, error) {
	return p.LookAt(ctx, Request{Patterns: patterns, Platforms: platforms})
}

// LookAt looks at the project as a build of a request would.
func (p *Project) LookAt(ctx context.Context, req Request) (*View, error) {
	req.Reporter = job.Silent{}
	s := &session{p: p, start: time.Now(), req: req}
	if err := s.look(ctx); err != nil {
		return nil, p.ownFiles(err)
	}
	v := &View{Messages: s.said(), s: s}
	s.findLive()
	at := map[*asset.Asset]int{}
	for _, t := range s.wanted {
		i, ok := at[t.Asset]
		if !ok {
			i = len(v.Assets)
			at[t.Asset] = i
			v.Assets = append(v.Assets, AssetView{Asset: t.Asset})
		}
		v.Assets[i].Jobs = append(v.Assets[i].Jobs, s.jobView(t))
	}
	return v, nil
}

func (s *session) jobView(t *job.Task) JobView {
	r := t.Result
	j := JobView{
		Among: t.Among(), Part: t.Part, On: t.On, Platform: t.Platform, Processor: t.Proc.Info.Name, Key: digest.Hash(t.Key), Preimage: t.Preimage().Preimage(),
		Fingerprint: t.Fingerprint, Why: r.Why, Traces: s.traces.Traces(t.Key), s: s,
	}
	if t.Request() {
		j.Request = task.AssetText(t.Asset.ID)
	}
	if len(j.Traces) > 0 {
		j.Last = j.Traces[0]
	}
	switch {
	case r.State == engine.Held:
		j.State, j.Last = Fresh, r.Trace
		if r.Trace.Outcome != engine.Succeeded {
			j.State = Failed
		}
	case r.State == engine.Undecided:
		j.State = Maybe
	case r.Why != nil && r.Why.Cause == engine.NeverBuilt:
		j.State = New
	default:
		j.State = Stale
	}
	if j.LastRun = j.Last; j.failed() && t.Part == "" {
		j.LastGood = s.standing(t)
	}
	others := s.parts[t][:len(s.parts[t]):len(s.parts[t])]
	if t.Part == "" && !t.Request() {
		others = append(others, s.requestsOf(t)...)
	}
	for _, p := range others {
		if p.Result == nil {
			continue
		}
		part := s.jobView(p)
		j.Parts = append(j.Parts, part)
		if (j.State == Fresh || j.State == Maybe) && (part.State == Stale || part.State == New) {
			j.State, j.Why = Stale, part.Why
		}
		if part.Last != nil && (j.LastRun == nil || part.Last.Build > j.LastRun.Build) {
			j.LastRun = part.Last
		}
	}
	return j
}

// Asset finds an asset by id or path, or by a path relative to the project folder.
func (v *View) Asset(name string) *asset.Asset {
	found, err := v.s.p.match(v.s.w.Assets, name)
	if err != nil || len(found) != 1 {
		return nil
	}
	return found[0]
}

// Table is all assets, those that were not asked for too.
func (v *View) Table() *asset.Table { return v.s.w.Assets }

// Sources is the table of source files.
func (v *View) Sources() *source.Table { return v.s.w.Table }

// Strangers tells of files in the output folder of which nothing is known. While a build is under way, and where there never was one,
// nothing is said.
func (v *View) Strangers() diag.List {
	if v.s.prev == nil || v.s.p.underWay() {
		return nil
	}
	return v.s.strangers().messages(v.s.p.Output)
}

// Display is a source path as people see it, relative to the project folder.
func (v *View) Display(path string) string { return v.s.w.Display(path) }

// SourcePath turns a path that people gave, absolute or relative to the project folder or to a root, into a source path.
func (v *View) SourcePath(name string) (string, bool) {
	name = v.s.p.InProject(name)
	if _, _, ok := v.s.w.Table.Find(name); ok {
		return name, true
	}
	for _, pre := range v.s.p.prefixes() {
		if pre != "" && len(name) > len(pre) && name[:len(pre)] == pre {
			if _, _, ok := v.s.w.Table.Find(name[len(pre):]); ok {
				return name[len(pre):], true
			}
		}
	}
	return "", false
}

// Traces gives the trace used last of each of today's jobs, and of the parts that they have; among is the processor, where the asset has
// several on the platform, else "".
func (v *View) Traces(f func(a *asset.Asset, platform, among, part string, t *engine.Trace)) {
	for _, t := range v.s.live {
		if traces := v.s.traces.Traces(t.Key); len(traces) > 0 {
			f(t.Asset, t.Platform, t.Among(), t.Part, traces[0])
		}
	}
}

// Clean removes the outputs that Kiln made, and with state also all that it remembers. The caller holds the lock.
// It tells how many files it removed, and of what stays although it looks like Kiln's.
func (p *Project) Clean(state bool) (int, diag.List, error) {
	s := &session{p: p, start: time.Now(), req: Request{Reporter: job.Silent{}}}
	n, err := s.clean(state)
	if err != nil {
		return n, nil, err
	}
	found := s.strangers().products
	if len(found) == 0 {
		return n, nil, nil
	}
	m := diag.Warningf(diag.OutputStranger, diag.Pos{File: p.Output + "/" + found[0]}, "Kiln does not know this file%s, and leaves what it does not know", more(len(found)-1))
	return n, diag.List{m.WithHint("what was in .kiln is lost; remove %s/ if nothing in it is your own", p.Output)}, nil
}

func (s *session) clean(state bool) (int, error) {
	p := s.p
	s.tidy()
	if err := s.readSnapshot(); err != nil {
		return 0, err
	}
	if err := s.openTraces(true); err != nil {
		return 0, err
	}
	s.readBefore()
	n, err := s.removeOutputs()
	more, serr := s.removeShipped()
	n, err = n+more, errors.Join(err, serr)
	if err != nil || !state {
		return n, errors.Join(err, removeAll(p.snapshotPath()))
	}
	entries, err := os.ReadDir(p.stateDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return n, err
	}
	for _, e := range entries {
		if e.Name() != "lock" { // held by the caller
			err = errors.Join(err, removeAll(p.stateDir()+string(os.PathSeparator)+e.Name()))
		}
	}
	return n, err
}

func removeAll(path string) error {
	err := os.RemoveAll(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// JobNames are "asset [platform]" of all results, for tests and dry runs.
func (r *Report) JobNames() []string {
	names := make([]string, len(r.Jobs))
	for i, j := range r.Jobs {
		names[i] = task.FullName(j.Name(), j.Platform)
	}
	slices.Sort(names)
	return names
}

// Workers is how many jobs run at once if so many are wanted; 0 leaves it to the project.
func (p *Project) Workers(wanted int) int { return p.workers(wanted) }
