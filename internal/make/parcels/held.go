package parcels

import (
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/processor"
)

// Hold compares what parcels hold at the end of a build with what jobs saw of that while they ran, and records it for the next build. If
// the build was not one of all assets, that is not known.
func (s *Shipping) Hold(to *Shipment, all bool) {
	if to.Reheld = false; !all {
		return
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
			to.Reheld = to.Reheld || !slices.Equal(now[key], was[key])
		}
	}
	to.Again = to.Again || to.Reheld
	if to.Reheld || len(now) != len(was) {
		now.Save(s.P.HeldPath()) // if it cannot be written, nor can the state, which is an error
	}
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
