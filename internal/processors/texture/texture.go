// Package texture is the processor that turns one picture into one texture. It reads nothing but the
// picture; how the texture is made is package internal/texture's.
package texture

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/diag"
	"github.com/kiln-pipeline/kiln/internal/pixel"
	"github.com/kiln-pipeline/kiln/internal/texture"
	"github.com/kiln-pipeline/kiln/processor"
)

// New is the texture processor. Its settings are texture.Options.
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
			{Type: texture.Type, Extension: ".dds", Doc: "DirectDraw Surface texture with a DX10 header"},
		},
		Memory: 128 << 20, // enough for 2048 x 2048, until a job knows its picture's size
	}
}

// bytesAPixel is what a job allocates for each pixel of its picture; 22.5 were measured (go test -bench Job -benchmem).
const bytesAPixel = 23

// weighed is a Job that takes how much memory was needed, so that the next run is weighed by it.
type weighed interface{ UsedMemory(bytes int64) }

func (proc) Process(ctx context.Context, job processor.Job) error {
	name, o := job.Asset().Path, *processor.SettingsOf[texture.Options](job)
	data, err := job.ReadFile(name)
	if err != nil {
		return err
	}
	img, err := pixel.Decode(name, data, pixel.DefaultLimits())
	if err != nil {
		return texture.Problem("", "", err)
	}
	warn(job, name, pixel.Sniff(name, data), o)
	if w, ok := job.(weighed); ok {
		w.UsedMemory(bytesAPixel * int64(img.Width) * int64(img.Height))
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	out, err := texture.Encode(img, o)
	if err != nil {
		return err
	}
	return job.Write(processor.Output{Type: texture.Type, Extension: o.Extension()}, out)
}

// warn tells of what is odd but does no harm here.
func warn(job processor.Job, name, format string, o texture.Options) {
	if named := pixel.FormatOf(name); named != "" && named != format {
		job.Warn(processor.Problem{
			Code: string(diag.ImageMisnamed),
			Text: fmt.Sprintf("named %s, but it is a %s image", strings.ToLower(path.Ext(name)), pixel.FormatName(format)),
			Hint: "rename it: other programs may not read it",
		})
	}
	if o.Premultiply && (o.Format == "r8" || o.Format == "rg8") {
		job.Warn(processor.Problem{
			Code: string(diag.TextureSettings),
			Text: fmt.Sprintf("premultiply does nothing with format %q, which has no colour and no alpha", o.Format),
			Hint: `leave premultiply out, or use format = "rgba8"`,
		})
	}
}
