// Package impact tells what would be built again if some source files changed.
//
// It goes by the traces of the jobs as they last ran: which of them looked at these files, in which way, and
// which look at the products of those. What it tells is the most that can happen: a
// job whose products come out the same ends the chain (early cutoff), and a job may look elsewhere when it runs.
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

// Change is what happens to a source file.
type Change uint8

const (
	Edited  Change = iota // its content becomes another
	Added                 // it is not there yet
	Removed               // it is there and goes
)

// File is a source file that changes.
type File struct {
	Path   string // as jobs know it, below its root
	Change Change
}

// Report is what would happen.
type Report struct {
	Jobs     []Job    // those that look at the files first, then by how far they are from them, asset and platform
	Seconds  float64  // that all these jobs took when they last ran
	Products []string // files below the output folder that may change, sorted
	Parcels  []string // names, in the order of the project file
}

// Job would run again.
type Job struct {
	Asset, Platform string
	Among           string          // the processor, where the asset has several on the platform; else ""
	Steps           int             // 0: looks at a file itself; 1: needs such a job, and so on
	Because         string          // the file, or the asset that it needs
	Kind            string          // of what it saw of it: see explain.Kind
	Seconds         float64         // that it took when it last ran
	traces          []*engine.Trace // of the job and its parts
}

// at names a job, as Job does.
type at struct{ asset, platform, among string }

// index is all jobs with what they looked at.
type index struct {
	table   *asset.Table
	jobs    []at                   // in the order of the assets
	traces  map[at][]*engine.Trace // of the job, and of its parts
	needers map[at][]at            // who looked at the products of a job
	packers map[string]bool        // assets that have images packed, by path
}

// Of finds out what changes of files would bring on some platforms; none are all. Parcels are those of the project file.
func Of(v *view.View, files []File, platforms []string, parcels []project.Parcel) *Report {
	x := newIndex(v, platforms)
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
			r.Seconds += j.Seconds // no asset's job: the report has those of the assets that ask for it
		} else {
			r.Jobs = append(r.Jobs, j)
		}
		for _, n := range x.needers[at{j.Asset, j.Platform, j.Among}] {
			if !reached[n] {
				reached[n] = true
				queue = append(queue, x.job(n, j.Steps+1, task.AssetText(j.Asset), "products"))
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
	r.Parcels = x.parcels(parcels, changed, v.Named)
	return r
}

func newIndex(v *view.View, platforms []string) *index {
	x := &index{table: v.Table(), traces: map[at][]*engine.Trace{}, needers: map[at][]at{}, packers: map[string]bool{}}
	v.Traces(func(a *asset.Asset, platform, among, part string, t *engine.Trace) {
		j := at{a.ID, platform, among}
		if len(platforms) > 0 && !slices.Contains(platforms, platform) {
			return
		}
		if x.traces[j] == nil {
			x.jobs = append(x.jobs, j)
		}
		x.traces[j] = append(x.traces[j], withoutHarmless(a, platform, among, t))
		if part == processor.PackPart {
			x.packers[a.Path] = true
		}
	})
	for _, j := range x.jobs {
		seen := map[at]bool{}
		for _, o := range x.observations(j) {
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

// withoutHarmless is a trace without what may change and not make its job run.
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

// needed is the job whose products an observation is of.
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

// observations of a job and its parts.
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

// sees reports whether a job looked at one of the files in a way that the change touches.
func (x *index) sees(j at, files []File) (because, kind string, ok bool) {
	for _, o := range x.observations(j) {
		kind := explain.Kind(o)
		subject := explain.Subject(o)
		for _, f := range files {
			if touches(kind, subject, f) || x.comesOrGoes(kind, cmp.Or(explain.Asset(o), subject), f) {
				return f.Path, kind, true
			}
		}
	}
	return "", "", false
}

// comesOrGoes tells whether a job looked for the asset that a file which comes or goes is the source of.
func (x *index) comesOrGoes(kind, name string, f File) bool {
	switch {
	case f.Change == Edited:
	case kind == "packers":
		return x.packers[f.Path] || f.Change == Added && slices.ContainsFunc(slices.Collect(maps.Keys(x.packers)), func(p string) bool { return path.Ext(p) == path.Ext(f.Path) })
	case kind == "assets":
		return asset.Matches(name, f.Path)
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
		return strings.TrimPrefix(subject, job.InProject) == f.Path
	case "missing":
		return subject == f.Path && f.Change != Removed
	case "exists":
		return subject == f.Path && f.Change == Removed
	case "glob":
		return f.Change != Edited && asset.MatchesFile(subject, f.Path)
	}
	return false
}

// parcels names those that hold an asset that changes: by a pattern, or because something in them requires it.
func (x *index) parcels(all []project.Parcel, changed map[string]bool, named func(string) func(string) bool) []string {
	byUUID := map[string]string{}
	for i := range x.table.Assets {
		byUUID[x.table.Assets[i].UUID] = x.table.Assets[i].ID
	}
	var names []string
	for i := range all {
		if x.holds(&all[i], changed, byUUID, named) {
			names = append(names, all[i].Name)
		}
	}
	return names
}

func (x *index) holds(p *project.Parcel, changed map[string]bool, byUUID map[string]string, named func(string) func(string) bool) bool {
	var has []func(string) bool
	for _, pattern := range p.Assets {
		has = append(has, named(pattern.Text))
	}
	var todo []string
	in := map[string]bool{}
	add := func(id string) {
		if id != "" && !in[id] {
			in[id] = true
			todo = append(todo, id)
		}
	}
	for i := range x.table.Assets {
		id := x.table.Assets[i].ID
		if slices.ContainsFunc(has, func(names func(string) bool) bool { return names(id) }) {
			add(id)
		}
	}
	required := x.required(byUUID)
	for len(todo) > 0 {
		id := todo[0]
		todo = todo[1:]
		if changed[id] {
			return true
		}
		for _, need := range required[id] {
			add(need)
		}
	}
	return false
}

// required lists, for each asset, the assets whose products its own cannot do without.
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

// products of a job and its parts.
func (x *index) products(j at) []engine.Product {
	var all []engine.Product
	for _, t := range x.traces[j] {
		all = append(all, t.Products...)
	}
	return all
}
