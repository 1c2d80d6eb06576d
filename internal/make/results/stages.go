package results

import (
	"maps"
	"slices"

	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
)

// Elsewhere is what the assets of a project are in builds with other stages. What these make is not known here: of it there are only the
// lines in kiln.ids.
type Elsewhere struct {
	on map[string]map[string]*asset.Asset // those that differ, by platform and UUID
}

// Elsewhere compares the assets with those in builds with other stages. It evaluates all rules once for each stage, if there are any.
func (s *Set) Elsewhere() *Elsewhere {
	e := &Elsewhere{on: map[string]map[string]*asset.Asset{}}
	for _, table := range s.P.OtherStages(s.W.Table) {
		for i := range table.Assets {
			a := &table.Assets[i]
			now := s.W.Assets.ByUUID(a.UUID)
			for _, platform := range s.P.PlatformNames() {
				if there := a.On(platform); len(there) > 0 && (now == nil || !slices.EqualFunc(there, now.On(platform), sameJob)) {
					e.add(platform, a)
				}
			}
		}
	}
	return e
}

func (e *Elsewhere) add(platform string, a *asset.Asset) {
	if e.on[platform] == nil {
		e.on[platform] = map[string]*asset.Asset{}
	}
	if e.on[platform][a.UUID] == nil {
		e.on[platform][a.UUID] = a
	}
}

// sameJob reports whether a processor does the same for two assets with one UUID, as far as rules decide.
func sameJob(a, b asset.Resolved) bool {
	return a.Processor == b.Processor && a.Key == b.Key && slices.Equal(a.Import, b.Import) && a.ByHand.Text() == b.ByHand.Text()
}

// Differs reports whether an asset has other jobs on a platform in another stage.
func (e *Elsewhere) Differs(platform, uuid string) bool { return e.on[platform][uuid] != nil }

// On returns the assets that differ on a platform, in the order of their UUIDs.
func (e *Elsewhere) On(platform string) (list []*asset.Asset) {
	for _, uuid := range slices.Sorted(maps.Keys(e.on[platform])) {
		list = append(list, e.on[platform][uuid])
	}
	return list
}

// MayMake reports whether a job of the project may make other products in another stage: because it is another one there, or because it
// asked for other assets, of which some are others there.
func (e *Elsewhere) MayMake(s *Set, t *job.Task) bool {
	if len(e.on[t.Platform]) == 0 {
		return false
	}
	return e.Differs(t.Platform, t.Asset.UUID) || asksAssets(s.TraceOf(t))
}

func asksAssets(tr *engine.Trace) bool {
	return tr != nil && slices.ContainsFunc(tr.Observations, func(o engine.Observation) bool {
		switch o.Kind {
		case job.SawAsset, job.SawAssets, job.SawPackers, job.SawSettings, job.SawCatalogue, job.SawListed:
			return true
		}
		return o.Kind < engine.FirstLeaf
	})
}
