// Package texture is the processor that turns one picture into one texture.
package texture

import (
	"context"
	"errors"

	"github.com/kiln-pipeline/kiln/internal/texture"
	"github.com/kiln-pipeline/kiln/processor"
)

// New is the texture processor.
func New() processor.Processor { return proc{} }

type proc struct{}

func (proc) Info() processor.Info {
	defaults := texture.Defaults()
	return processor.Info{
		Name:       "texture",
		Version:    1,
		Summary:    "pictures to textures with mip levels (KTX2, DDS)",
		Extensions: []string{".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".tga"},
		Settings:   &defaults,
		Products: []processor.ProductType{
			{Type: texture.Type, Extension: ".ktx2", Doc: "KTX 2.0 texture"},
			{Type: texture.Type, Extension: ".dds", Doc: "DirectDraw Surface with a DX10 header"},
		},
		Memory: 256 << 20,
	}
}

func (proc) Process(ctx context.Context, job processor.Job) error {
	return errors.New("not yet")
}
