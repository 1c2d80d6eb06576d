package workspace

import (
	"github.com/kiln-pipeline/kiln/internal/make/sharing"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
)

// CachePlace is where this project's results are shared; nil: nowhere. The results of an audit are not shared, because
// it builds beside the project.
func (p *Workspace) CachePlace() *sharing.Place {
	if p.Config.State != "" {
		return nil
	}
	return p.place
}

// Promising makes promised blobs of a store count as present if they can be fetched.
func (p *Workspace) Promising(blobs *cas.Store) {
	if p.CachePlace() != nil {
		blobs.Fetch = sharing.Unasked
	}
}
