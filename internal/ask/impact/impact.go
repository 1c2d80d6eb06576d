// Package impact lists what would be built again if some source files changed.
//
// It uses the traces of the last run of each job: which jobs read these files, in which way, and which jobs read the
// products of those. The result is an upper bound: a job with unchanged products ends the chain (early cutoff). A job
// may also read other files when it runs.
package impact

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/explain"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/task"
	"github.com/kiln-pipeline/kiln/internal/make/view"
	"github.com/kiln-pipeline/kiln/processor"
)

// Change is a change of a source file.
type Change uint8

const (
	Edited  Change = iota // its content changes
	Added                 // it does not exist yet
	Removed               // it exists and is deleted
)

// File is a source file with its change.
type File struct {
	Path      string // path below its root, as jobs know it
	Change    Change
	Processor string // the file is part of this processor; "": of none
}

// Report is the effect of the changes.
type Report struct {
	Jobs     []Job    // sorted by Steps, asset and platform
	Seconds  float64  // duration of the last run of all these jobs
	Products []string // files in the output folder that may change, sorted
	Parcels  []string // names, in the order of the project file
}

// Job is a job that would run again.
type Job struct {
	Asset, Platform string
	Among           string          // the processor if the asset has several for the platform, else ""
	Steps           int             // 0: it reads a file itself; 1: it needs a job with 0, and so on
	Because         string          // the file, or the asset that it needs
	Kind            string          // kind of the observation: see explain.Kind
	Seconds         float64         // duration of its last run
	traces          []*engine.Trace // of the job and its parts
}

// at identifies a job, with the fields of Job.
type at struct{ asset, platform, among string }

// index has all jobs with their observations.
type index struct {
	table   *asset.Table
	jobs    []at                   // in the order of the assets
	traces  map[at][]*engine.Trace // of a job and its parts
	needers map[at][]at            // jobs that read the products of a job
	askers  map[string][]at        // jobs that asked what a parcel holds, by its name
	held    []holding              // what each parcel holds, in the order of the project file
	packers map[string]bool        // assets that have images packed, by path
	procs   map[at]string          // processors of jobs
}

// holding is what a parcel holds: the assets that its patterns name, and those that something in it requires.
type holding struct {
	parcel string
	ids    map[string]bool
	names  []func(id string) bool // its patterns
	leads  map[string]bool        // of ids, those whose products decide what else it holds
}

// Of returns the effect of changes of files on some platforms, or on all if platforms is empty. parcels are those of
// the project file.
func Of(v *view.View, files []File, platforms []string, parcels []project.Parcel) *Report {
	x := newIndex(v, platforms)
	x.hold(parcels, v.Named)
	r := &Report{}
	reached := map[at]bool{}
	var queue []Job
	for _, j := range x.jobs {
		if because, kind, ok := x.sees(j, files); ok {
			reached[j] = true
			queue = append(queue, x.job(j, 0, because, kind))
		}
	}
	for len(queue) > 0 {
		j := queue[0]
		queue = queue[1:]
		if task.IsRequest(j.Asset) {
			r.Seconds += j.Seconds // a job without an asset; the report has the assets that request it
		} else {
			r.Jobs = append(r.Jobs, j)
		}
		for _, n := range x.needers[at{j.Asset, j.Platform, j.Among}] {
			if !reached[n] {
				reached[n] = true
				queue = append(queue, x.job(n, j.Steps+1, task.AssetText(j.Asset), "products"))
			}
		}
		for _, n := range x.beside(j) {
			if !reached[n] {
				reached[n] = true
				queue = append(queue, x.job(n, j.Steps+1, task.AssetText(j.Asset), "assets"))
			}
		}
	}
	slices.SortStableFunc(r.Jobs, func(a, b Job) int {
		return cmp.Or(cmp.Compare(a.Steps, b.Steps), cmp.Compare(a.Asset, b.Asset), cmp.Compare(a.Among, b.Among))
	})
	changed := map[string]bool{}
	for _, j := range r.Jobs {
		r.Seconds += j.Seconds
		changed[j.Asset] = true
		for _, t := range j.traces {
			for i := range t.Products {
				if f := t.Products[i].File; f != "" {
					r.Products = append(r.Products, f)
				}
			}
		}
	}
	slices.Sort(r.Products)
	for _, h := range x.held {
		if slices.ContainsFunc(slices.Collect(maps.Keys(changed)), func(id string) bool { return h.ids[id] }) {
			r.Parcels = append(r.Parcels, h.parcel)
		}
	}
	return r
}

func newIndex(v *view.View, platforms []string) *index {
	x := &index{
		table: v.Table(), traces: map[at][]*engine.Trace{}, needers: map[at][]at{}, askers: map[string][]at{}, packers: map[string]bool{},
		procs: map[at]string{},
	}
	v.Traces(func(a *asset.Asset, platform, among, part string, t *engine.Trace) {
		j := at{a.ID, platform, among}
		if len(platforms) > 0 && !slices.Contains(platforms, platform) {
			return
		}
		if x.traces[j] == nil {
			x.jobs = append(x.jobs, j)
			if x.procs[j] = among; among == "" && len(a.On(platform)) > 0 {
				x.procs[j] = a.On(platform)[0].Processor
			}
		}
		x.traces[j] = append(x.traces[j], withoutHarmless(a, platform, among, t))
		if part == processor.PackPart {
			x.packers[a.Path] = true
		}
	})
	for _, j := range x.jobs {
		seen := map[at]bool{}
		for _, o := range x.observations(j) {
			if parcel, ok := strings.CutPrefix(explain.Subject(o), job.ParcelMark); ok && o.Kind == job.SawListed {
				x.askers[parcel] = append(x.askers[parcel], j)
			}
			if o.Kind >= engine.FirstLeaf {
				continue
			}
			if n, ok := x.needed(o, j.platform); ok && n != j && !seen[n] {
				seen[n] = true
				x.needers[n] = append(x.needers[n], j)
			}
		}
	}
	return x
}

// withoutHarmless returns a trace without the observations that can change without running the job again.
func withoutHarmless(a *asset.Asset, platform, among string, t *engine.Trace) *engine.Trace {
	for i, on := range a.On(platform) {
		if (on.Processor == among || among == "" && i == 0) && len(on.Ignore) > 0 && t.Outcome == engine.Succeeded {
			less := *t
			less.Observations = slices.DeleteFunc(slices.Clone(t.Observations), func(o engine.Observation) bool {
				return job.Ignored(a.Path, &on, &o) != nil
			})
			return &less
		}
	}
	return t
}

// needed returns the job whose products an observation is about.
func (x *index) needed(o engine.Observation, platform string) (at, bool) {
	name := explain.Asset(o)
	if task.IsRequest(name) {
		return at{name, platform, ""}, true
	}
	a := x.table.Find(name)
	if a == nil {
		return at{}, false
	}
	j := at{a.ID, platform, ""}
	if on := a.On(platform); len(on) > 1 {
		j.among = cmp.Or(explain.Processor(o), on[0].Processor)
	}
	return j, true
}

// observations returns the observations of a job and its parts.
func (x *index) observations(j at) []engine.Observation {
	var all []engine.Observation
	for _, t := range x.traces[j] {
		all = append(all, t.Observations...)
	}
	return all
}

func (x *index) job(j at, steps int, because, kind string) Job {
	job := Job{j.asset, j.platform, j.among, steps, because, kind, 0, x.traces[j]}
	for _, t := range job.traces {
		job.Seconds += t.Seconds
	}
	return job
}

// sees reports whether a job read one of the files in a way that the change affects, or its processor is made of one.
func (x *index) sees(j at, files []File) (because, kind string, ok bool) {
	for _, f := range files {
		if f.Processor != "" && f.Processor == x.procs[j] {
			return f.Path, "processor", true
		}
	}
	for _, o := range x.observations(j) {
		kind := explain.Kind(o)
		subject := explain.Subject(o)
		for _, f := range files {
			if kind == "tool" && subject == job.InProject+f.Path { // a traced program read it
				return f.Path, "file", true
			}
			if touches(kind, subject, f) || x.comesOrGoes(kind, cmp.Or(explain.Asset(o), subject), f) {
				return f.Path, kind, true
			}
		}
	}
	return "", "", false
}

// comesOrGoes reports whether a job asked for the asset whose source file is added or removed.
func (x *index) comesOrGoes(kind, name string, f File) bool {
	switch {
	case f.Change == Edited:
	case kind == "packers":
		return x.packers[f.Path] || f.Change == Added && slices.ContainsFunc(slices.Collect(maps.Keys(x.packers)), func(p string) bool { return path.Ext(p) == path.Ext(f.Path) })
	case kind == "assets":
		return asset.Matches(name, f.Path) || x.fills(name, f)
	case kind == "asset" || kind == "products":
		a := x.table.Find(name)
		return a == nil && (name == f.Path || name == processor.ByUUID(asset.UUID(f.Path))) || a != nil && a.Path == f.Path
	}
	return false
}

func touches(kind, subject string, f File) bool {
	switch kind {
	case "file":
		return subject == f.Path
	case "tool":
		return subject == f.Path
	case "missing":
		return subject == f.Path && f.Change != Removed
	case "exists":
		return subject == f.Path && f.Change == Removed
	case "glob":
		return f.Change != Edited && asset.MatchesFile(subject, f.Path)
	}
	return false
}

// fills reports whether a file that is added or removed changes what a parcel holds that a job asked for.
func (x *index) fills(pattern string, f File) bool {
	parcel, ok := strings.CutPrefix(pattern, job.ParcelMark)
	return ok && slices.ContainsFunc(x.held, func(h holding) bool {
		return h.parcel == parcel && (h.ids[f.Path] || slices.ContainsFunc(h.names, func(names func(string) bool) bool { return names(f.Path) }))
	})
}

// beside returns the jobs that asked what a parcel holds, if that can change with the products of a job.
func (x *index) beside(j Job) (askers []at) {
	for _, h := range x.held {
		if h.leads[j.Asset] {
			for _, n := range x.askers[h.parcel] {
				if n.platform == j.Platform {
					askers = append(askers, n)
				}
			}
		}
	}
	return askers
}

// hold finds what parcels hold.
func (x *index) hold(parcels []project.Parcel, named func(pattern string) func(id string) bool) {
	byUUID := map[string]string{}
	for i := range x.table.Assets {
		byUUID[x.table.Assets[i].UUID] = x.table.Assets[i].ID
	}
	required := x.required(byUUID)
	failed := map[string]bool{}
	for _, j := range x.jobs {
		failed[j.asset] = failed[j.asset] || slices.ContainsFunc(x.traces[j], func(t *engine.Trace) bool { return t.Outcome != engine.Succeeded })
	}
	for i := range parcels {
		h := holding{parcel: parcels[i].Name, ids: map[string]bool{}, leads: map[string]bool{}}
		for _, pattern := range parcels[i].Assets {
			h.names = append(h.names, named(pattern.Text))
		}
		var todo []string
		for i := range x.table.Assets {
			id := x.table.Assets[i].ID
			if slices.ContainsFunc(h.names, func(names func(string) bool) bool { return names(id) }) {
				todo = append(todo, id)
			}
		}
		for len(todo) > 0 {
			id := todo[0]
			if todo = todo[1:]; id != "" && !h.ids[id] {
				h.ids[id], h.leads[id] = true, len(required[id]) > 0 || failed[id]
				todo = append(todo, required[id]...)
			}
		}
		x.held = append(x.held, h)
	}
}

// required returns for each asset the assets that its products require.
func (x *index) required(byUUID map[string]string) map[string][]string {
	needs := map[string][]string{}
	for _, j := range x.jobs {
		for _, p := range x.products(j) {
			for _, r := range p.References {
				if id := byUUID[uuid.UUID(r.UUID).String()]; r.Required && id != j.asset {
					needs[j.asset] = append(needs[j.asset], id)
				}
			}
		}
	}
	return needs
}

// products returns the products of a job and its parts.
func (x *index) products(j at) []engine.Product {
	var all []engine.Product
	for _, t := range x.traces[j] {
		all = append(all, t.Products...)
	}
	return all
}
