package serve

import (
	"github.com/kiln-pipeline/kiln/internal/make/control"
	"github.com/kiln-pipeline/kiln/internal/store/used"
)

// Used lists the assets that games on some platforms have used, each once, in the order of first use. An unreadable
// file is ignored, because the list only affects the order of jobs.
func Used(state string, platforms []string) []control.Asset {
	var all []control.Asset
	for _, platform := range platforms {
		seen := map[string]bool{}
		used.Each(used.File(state, platform), func(k used.Key, _ bool) {
			if !seen[k.UUID] {
				seen[k.UUID] = true
				all = append(all, control.Asset{Platform: platform, Name: k.UUID})
			}
		})
	}
	return all
}
