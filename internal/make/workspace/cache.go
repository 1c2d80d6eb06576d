package workspace

import (
	"github.com/kiln-pipeline/kiln/internal/make/sharing"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
)

// CachePlace is where this project's results are shared; nil: nowhere. Of an audit, which builds beside the project, they never are.
func (p *Workspace) CachePlace() *sharing.Place {
	if p.Config.State != "" {
		return nil
	}
	return p.place
}

// Promising has a store's promised blobs count as there, if they can be had.
func (p *Workspace) Promising(blobs *cas.Store) {
	if p.CachePlace() != nil {
		blobs.Fetch = sharing.Unasked
	}
}
