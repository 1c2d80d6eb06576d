package atlas

import (
	"context"

	"github.com/kiln-pipeline/kiln/processor"
)

const (
	spriteName      = "sprite"
	spriteType      = "sprite"
	SpriteExtension = ".sprite"
)

// NewSprite makes the processor of images that are drawn from the atlas of a parcel: see the setting parcel. Its product is the name of
// the image's frame in that atlas, in UTF-8. It does not depend on what the image shows.
func NewSprite() processor.Processor { return sprite{} }

type sprite struct{}

func (sprite) Info() processor.Info {
	return processor.Info{
		Name: spriteName, Version: 1, Summary: "an image that is drawn from the atlas of a parcel",
		Products: []processor.ProductType{{Type: spriteType, Extension: SpriteExtension, Doc: "name of a frame in the atlas of the parcel, UTF-8"}},
		Memory:   1 << 20,
	}
}

func (sprite) Process(_ context.Context, job processor.Job) error {
	src := sourceOf("", job.Asset().Path, &Settings{NinePatch: true}, plan{})
	return job.Write(processor.Output{Type: spriteType, Extension: SpriteExtension}, []byte(src.name))
}
