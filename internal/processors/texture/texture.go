// Package texture is the processor that turns pictures into one texture: its asset's own, and those that its settings name as channels,
// faces, layers or slices. How the texture is made is package internal/media/texture's.
//
// sources.go finds and reads the pictures.
package texture

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/internal/media/texture"
	"github.com/kiln-pipeline/kiln/processor"
)

// New is the texture processor. Its settings are texture.Options.
func New() processor.Processor { return proc{} }

type proc struct{}

func (proc) Info() processor.Info {
	defaults := texture.Defaults()
	return processor.Info{
		Name:    "texture",
		Version: 5,
		Summary: "pictures to textures with mip levels (KTX2, DDS)",
		Extensions: []string{".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".tga", ".qoi", ".psd", ".hdr", ".exr",
			".dds", ".ktx2"},
		Settings: &defaults,
		Products: []processor.ProductType{
			{Type: texture.Type, Extension: ".ktx2", Doc: "KTX 2.0 texture"},
			{Type: texture.Type, Extension: ".dds", Doc: "DirectDraw Surface texture with a DX10 header"},
		},
		Memory: 128 << 20, // enough for 2048 x 2048, until a job knows its picture's size
	}
}

// Guess tells what the settings leave open for a source file: the setting, its value, and the part of the name that says so, which
// is empty if nothing does. `kiln settings` shows it.
func (proc) Guess(file string, settings any) (setting, value, because string) {
	o := *settings.(*texture.Options)
	if o.Use != "auto" {
		return "", "", ""
	}
	_, because = texture.UseOf(file)
	return "use", o.For(file).Use, because
}

// measuring is a Job that waits until there is memory for it, and takes how much that was, so that the next run is weighed by it.
type measuring interface {
	NeedMemory(bytes int64) error
	UsedMemory(bytes int64)
}

// need waits for the memory that the job takes.
func (s *sources) need(bytes int64) error {
	m, ok := s.job.(measuring)
	if !ok {
		return nil
	}
	m.UsedMemory(bytes)
	return m.NeedMemory(bytes)
}

func (proc) Process(ctx context.Context, job processor.Job) error {
	s := &sources{ctx: ctx, job: job, o: processor.SettingsOf[texture.Options](job).For(job.Asset().Path)}
	im, err := s.images()
	if err != nil {
		return err
	}
	out := processor.Output{Type: texture.Type, Extension: s.o.Extension()}
	if s.ready != nil {
		return job.Write(out, s.ready)
	}
	plan, err := texture.NewPlan(im, s.o)
	if err != nil {
		return err
	}
	for _, w := range plan.Warnings() {
		job.Warn(w)
	}
	s.doubt(plan)
	if err := ctx.Err(); err != nil {
		return err
	}
	tools := texture.Tools{Stop: ctx.Done()}
	drafted, err := draft(job, out, s.o, plan)
	if err != nil {
		return err
	}
	if drafted { // a core is left for bringing it to the game: it would wait for a time slice at each step of the way
		tools.Workers = max(1, texture.Workers(1<<20)-1)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	data, err := plan.Encode(tools)
	if err == nil {
		err = ctx.Err() // it was told to stop: the picture has changed again
	}
	if err != nil {
		return err
	}
	return job.Write(out, data)
}

// draft hands a quick first version to running games, if that is wanted and there are any.
func draft(job processor.Job, out processor.Output, o texture.Options, plan *texture.Plan) (done bool, err error) {
	d, ok := job.(processor.Drafter)
	if !ok || o.Quality != texture.DraftThenFinal || !d.Drafts() {
		return false, nil
	}
	data, err := plan.Encode(texture.Tools{Draft: true})
	if err != nil {
		return false, err
	}
	return true, d.Draft(out, data)
}

// misnamed tells of a file whose name says another format than its content.
func misnamed(job processor.Job, name, format string) {
	if named := pixel.FormatOf(name); named != "" && named != format {
		job.Warn(processor.Problem{
			Code: string(diag.ImageMisnamed),
			Text: fmt.Sprintf("named %s, but it is a %s image", strings.ToLower(path.Ext(name)), pixel.FormatName(format)),
			Hint: "rename it: other programs may not read it",
		})
	}
}

// doubt tells of a picture that is not what its name says.
func (s *sources) doubt(plan *texture.Plan) {
	if processor.SettingsOf[texture.Options](s.job).Use != "auto" {
		return
	}
	if why := plan.Doubt(s.job.Asset().Path); why != "" {
		s.job.Warn(processor.Problem{
			Code: string(diag.TextureGuess), Text: why,
			Hint: fmt.Sprintf(`say what it is: use = "color", or use = %q if the name is right`, plan.Use),
		})
	}
}
