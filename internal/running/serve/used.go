package serve

import (
	"github.com/kiln-pipeline/kiln/internal/make/control"
	"github.com/kiln-pipeline/kiln/internal/store/used"
)

// Used lists the assets that games of some platforms have used, each once, in the order in which they first did. What cannot be read is
// left out: it only decides what is built sooner.
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
