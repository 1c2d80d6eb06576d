// Package sprite is the processor of images that are drawn from the atlas of a parcel: an atlas with the setting parcel has those that the
// parcel holds.
package sprite

import (
	"context"

	"github.com/kiln-pipeline/kiln/internal/media/codec/atlas"
	"github.com/kiln-pipeline/kiln/processor"
)

// Extension of the products.
const Extension = ".sprite"

// New makes the processor. Its product is the name of the image's frame in UTF-8. It does not depend on what the image shows.
func New() processor.Processor { return sprite{} }

type sprite struct{}

func (sprite) Info() processor.Info {
	return processor.Info{
		Name: "sprite", Version: 1, Summary: "an image that is drawn from the atlas of a parcel",
		Products: []processor.ProductType{{Type: atlas.Sprite, Extension: Extension, Doc: "name of a frame in the atlas of the parcel, UTF-8"}},
		Memory:   1 << 20,
	}
}

func (sprite) Process(_ context.Context, job processor.Job) error {
	name, _, _ := atlas.NameOf(atlas.Stem(job.Asset().Path), true)
	return job.Write(processor.Output{Type: atlas.Sprite, Extension: Extension}, []byte(name))
}
