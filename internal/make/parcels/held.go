package parcels

import (
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/results"
	"github.com/kiln-pipeline/kiln/processor"
)

// hold reports whether parcels hold other assets at the end of a build than jobs saw while they ran, and records what they
// hold for the next build. If the build was not one of all assets, that is not known.
func (s *Shipping) hold(all bool) (differs bool) {
	if !all {
		return false
	}
	was, now := s.W.Held(), job.Held{}
	asked := s.W.AskedHeld
	for key, ids := range was {
		platform, _, _ := strings.Cut(key, "/")
		switch {
		case s.Few == nil && len(s.Platforms) > 0 && !slices.Contains(s.Platforms, platform):
			now[key] = ids // of jobs that this build did not check
		case s.Few != nil:
			asked[key] = true // of jobs at which this build did not look
		}
	}
	for key := range asked {
		platform, name, _ := strings.Cut(key, "/")
		if p := s.P.Parcel(name); p != nil && p.On(platform) && slices.Contains(s.P.PlatformNames(), platform) {
			now[key] = s.holds(p, platform)
			differs = differs || !slices.Equal(now[key], was[key])
		}
	}
	if differs || len(now) != len(was) {
		now.Save(s.P.HeldPath()) // if it cannot be written, nor can the state, which is an error
	}
	return differs
}

// holds returns the ids of what a parcel holds on a platform: the assets that it names, and all that their products require.
func (s *Shipping) holds(p *project.Parcel, platform string) []string {
	seen := map[*asset.Asset]bool{}
	var todo []*asset.Asset
	add := func(a *asset.Asset) {
		if a != nil && !seen[a] && len(a.On(platform)) > 0 {
			seen[a] = true
			todo = append(todo, a)
		}
	}
	for i := range p.Assets {
		for _, a := range s.W.Means(platform, p.Assets[i].Text) {
			add(a)
		}
	}
	for len(todo) > 0 {
		a := s.assetOn(todo[len(todo)-1], platform)
		todo = todo[:len(todo)-1]
		for i := range a.Products {
			for _, r := range a.Products[i].References {
				if r.Required {
					add(s.W.Find(processor.ByUUID(r.UUID)))
				}
			}
		}
	}
	ids := make([]string, 0, len(seen))
	for a := range seen {
		ids = append(ids, a.ID)
	}
	slices.Sort(ids)
	return ids
}

// Foresee follows a dry run: jobs that asked what a parcel holds are undecided if what would run may change it. run repeats the dry run.
func Foresee(s *results.Set, run func() error) error {
	for known := 0; ; {
		open := opened(s)
		if len(open) == known {
			return nil
		}
		known = len(open)
		s.Unsure = func(o *engine.Observation) bool {
			platform, pattern := job.Meant(o.Subject)
			parcel, ok := strings.CutPrefix(pattern, job.ParcelMark)
			return ok && o.Kind == job.SawListed && open[platform+"/"+parcel]
		}
		if err := run(); err != nil {
			return err
		}
	}
}

// opened returns those parcels that jobs asked for, by platform and name as in job.Held, that may hold other assets after the build: an
// asset that decides what else they hold would be built, or they name one that they did not hold.
func opened(s *results.Set) map[string]bool {
	leads := map[string]bool{} // by platform and id
	for _, r := range s.Results {
		if t := job.TaskOf(r); (r.State == engine.WouldRun || r.State == engine.Undecided) && mayLead(s, t) {
			leads[t.Platform+"/"+t.Asset.ID] = true
		}
	}
	open := map[string]bool{}
	for key := range s.W.AskedHeld {
		platform, name, _ := strings.Cut(key, "/")
		ids := s.W.Held()[key]
		if slices.ContainsFunc(ids, func(id string) bool { return leads[platform+"/"+id] }) {
			open[key] = true
		}
		for _, pattern := range s.P.Parcel(name).Assets {
			more := func(a *asset.Asset) bool { return !slices.Contains(ids, a.ID) }
			open[key] = open[key] || slices.ContainsFunc(s.W.Means(platform, pattern.Text), more)
		}
		if !open[key] {
			delete(open, key)
		}
	}
	return open
}

// mayLead reports whether products of a task may require those of other assets: they did when it ran last, it failed, or that is not known.
func mayLead(s *results.Set, t *job.Task) bool {
	traces := s.Traces.Traces(t.Key)
	if len(traces) == 0 || traces[0].Outcome != engine.Succeeded {
		return true
	}
	others := func(r engine.Reference) bool { return r.Required && uuid.UUID(r.UUID).String() != t.Asset.UUID }
	return slices.ContainsFunc(traces[0].Products, func(p engine.Product) bool { return slices.ContainsFunc(p.References, others) })
}
