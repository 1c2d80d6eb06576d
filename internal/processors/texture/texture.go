// Package texture is the processor that turns pictures into one texture: its asset's own, and those that its settings
// name as channels, faces, layers or slices. Package internal/media/texture makes the texture.
//
// sources.go finds and reads the pictures.
package texture

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/internal/media/role"
	"github.com/kiln-pipeline/kiln/internal/media/texture"
	"github.com/kiln-pipeline/kiln/processor"
)

// New returns the texture processor. Its settings are texture.Options.
func New() processor.Processor { return proc{} }

type proc struct{}

func (proc) Info() processor.Info {
	defaults := texture.Defaults()
	return processor.Info{
		Name:       "texture",
		Version:    16,
		Summary:    "pictures to textures with mip levels (KTX2, DDS), or to PNG",
		Extensions: texture.Extensions(),
		Settings:   &defaults,
		Products: []processor.ProductType{
			{Type: texture.Type, Extension: ".ktx2", Doc: "KTX 2.0 texture"},
			{Type: texture.Type, Extension: ".dds", Doc: "DirectDraw Surface texture with a DX10 header"},
			{Type: texture.Type, Extension: ".png", Doc: "PNG picture, for engines that read no textures"},
		},
		Memory: 128 << 20, // enough for 2048 x 2048, until a job knows its picture's size
	}
}

// Guess returns the use of a picture by its file's name, if the settings do not set it.
func (proc) Guess(file string, beside []string, settings any) processor.Guess {
	o := *settings.(*texture.Options)
	if o.Use != "auto" {
		return processor.Guess{}
	}
	named := role.Of(file, beside)
	return processor.Guess{Setting: "use", Value: o.For(named).Use, Because: named.Because}
}

// Limits of pictures whose pixels [Guess] decodes; for larger ones it uses only the name.
const (
	guessBytes  = 64 << 20 // of the file
	guessPixels = 16 << 20
)

// Guess finds pictures that no model uses and whose names say something else than their pixels: button_normal.png may be a button in its
// normal state.
func Guess(file string, beside []string, size int64, read func() []byte) processor.Guess {
	named := role.Of(file, beside)
	g := processor.Guess{Because: cmp.Or(named.Because, named.Alone)}
	if size > guessBytes || named.Use != role.Normal && named.Use != role.Mask && named.Like != role.Normal {
		return g
	}
	m, err := pixel.Decode(file, read(), pixel.Limits{MaxSide: pixel.DefaultLimits().MaxSide, MaxBytes: 4 * guessPixels})
	if err != nil {
		return g
	}
	switch _, use := texture.Doubt(named, m); use {
	case role.Color:
		g.Setting, g.Value, g.Why = "use", use, "colours, whatever the name says"
	case role.Normal:
		g.Setting, g.Value, g.Why = "use", use, "directions, by name and pixels"
	}
	return g
}

// need waits for the memory that the job needs.
func (s *sources) need(bytes int64) error {
	s.job.UsedMemory(bytes)
	return s.job.NeedMemory(bytes)
}

func (proc) Process(ctx context.Context, job processor.Job) error {
	s := &sources{ctx: ctx, job: job, o: *processor.SettingsOf[texture.Options](job)}
	if err := s.use(); err != nil {
		return err
	}
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
	if err := s.doubt(plan); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	tools := texture.Tools{Stop: ctx.Done()}
	drafted, err := draft(job, out, s.o, plan)
	if err != nil {
		return err
	}
	if drafted { // one core is left for sending it to the game, which would otherwise wait for a time slice at each step
		tools.Workers = max(1, texture.Workers(1<<20)-1)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	pieces, err := plan.Encode(tools)
	if err == nil {
		err = ctx.Err() // it was cancelled: the picture has changed again
	}
	if err != nil {
		return err
	}
	w, err := job.Create(out)
	if err != nil {
		return err
	}
	for _, piece := range pieces {
		if _, err := w.Write(piece); err != nil {
			return err
		}
	}
	return w.Close()
}

// draft sends a quick first version to running games, if there are any that want it.
func draft(job processor.Job, out processor.Output, o texture.Options, plan *texture.Plan) (done bool, err error) {
	if o.Quality != texture.DraftThenFinal || !job.Drafts() {
		return false, nil
	}
	pieces, err := plan.Encode(texture.Tools{Draft: true})
	if err != nil {
		return false, err
	}
	return true, job.Draft(out, slices.Concat(pieces...))
}

// misnamed warns about a file whose extension does not match its content.
func misnamed(job processor.Job, name, format string) {
	if named := pixel.FormatOf(name); named != "" && named != format {
		job.Warn(processor.Problem{
			Code: string(diag.ImageMisnamed),
			Text: fmt.Sprintf("named %s, but it is a %s image", strings.ToLower(path.Ext(name)), pixel.FormatName(format)),
			Hint: "rename it: other programs may not read it",
		})
	}
}
