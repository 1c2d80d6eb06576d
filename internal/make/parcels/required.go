package parcels

import (
	"slices"

	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/results"
)

// Required returns the tasks, besides the known ones, of the contents of some parcels on some platforms (none: all), as
// far as existing products show: the assets that the parcels name, those that their products require, and those that
// follow an asset that refers to them.
func Required(s *results.Set, parcels []*project.Parcel, platforms []string, known []*job.Task) (list []*job.Task) {
	if len(platforms) == 0 {
		platforms = s.P.PlatformNames()
	}
	have := map[*job.Task]bool{}
	for _, t := range known {
		have[t] = true
	}
	for _, platform := range platforms {
		for _, a := range requiredOn(s, parcels, platform) {
			all := a.On(platform)
			for i := range all {
				if t := s.W.Task(a, &all[i], ""); !have[t] {
					list = append(list, t)
				}
			}
		}
	}
	return list
}

func requiredOn(s *results.Set, parcels []*project.Parcel, platform string) (list []*asset.Asset) {
	var has []func(string) bool
	for _, x := range parcels {
		if x.On(platform) {
			for _, pat := range x.Assets {
				has = append(has, s.Named(pat.Text))
			}
		}
	}
	seen := map[*asset.Asset]bool{}
	add := func(a *asset.Asset) {
		if a != nil && !seen[a] {
			seen[a] = true
			list = append(list, a)
		}
	}
	for i := range s.W.Assets.Assets {
		if a := &s.W.Assets.Assets[i]; slices.ContainsFunc(has, func(names func(string) bool) bool { return names(a.ID) }) {
			add(a)
		}
	}
	for i := 0; i < len(list); i++ { // list grows in the loop
		for _, t := range s.TasksOf(list[i], platform) {
			products, _ := s.ProductsOf(t)
			for k := range products {
				for _, r := range products[k].References {
					if to := s.W.Assets.ByUUID(results.ReferenceTo(r).UUID); to != nil && (r.Required || to.Follows) {
						add(to)
					}
				}
			}
		}
	}
	return list
}
