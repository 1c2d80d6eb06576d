package parcels

import (
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/make/job"
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
