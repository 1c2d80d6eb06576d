// Package sound is the processor of sounds: it measures them, changes what the settings require, and writes them in a
// platform's format.
//
// Its rules: the sound is never completely in memory; nothing is cut or made louder unless a setting says so, and then
// the gain is stored for the game, not applied; loops and markers keep their place exact to the frame; measured values
// are facts of the product.
//
//	settings.go    the settings
//	chain.go       from the source's samples to the product's
//	product.go     the product and its facts
//	encoder.go     Opus and Vorbis, by programs
//	module.go      tracker modules, which are copied
//	variations.go  step_01, step_02... as one list
package sound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/media/codec/tracker"
	"github.com/kiln-pipeline/kiln/internal/media/soundfile"
	"github.com/kiln-pipeline/kiln/processor"
)

// Type is the type of products that are sounds, and ListType that of lists of variations.
const (
	Type     = "sound"
	ListType = "sounds"
)

// New is the sound processor.
func New() processor.Processor { return proc{} }

type proc struct{}

func (proc) Info() processor.Info {
	defaults := Defaults()
	return processor.Info{
		Name:       "sound",
		Version:    5,
		Summary:    "sounds measured, looped to the frame, as QOA, WAV, FLAC, or as they are",
		Extensions: append(soundfile.Extensions(), tracker.Extensions()...),
		Settings:   &defaults,
		Products: []processor.ProductType{
			{Type: Type, Extension: ".qoa", Doc: "QOA: a fifth of PCM, and quick to decode."},
			{Type: Type, Extension: ".wav", Doc: "WAV of PCM, floats or IMA ADPCM."},
			{Type: Type, Extension: ".flac", Doc: "FLAC: nothing lost."},
			{Type: Type, Extension: ".opus", Doc: "Opus, by opusenc or ffmpeg."},
			{Type: Type, Extension: ".ogg", Doc: "Ogg Vorbis, by oggenc or ffmpeg."},
			{Type: Type, Doc: "The source's own bytes, or with other tags: Ogg, Opus, MP3, tracker modules."},
			{Type: ListType, Extension: ".json", Doc: "Variations of one sound, named variations."},
		},
		Memory: 16 << 20,
	}
}

// Limits of what is read.
const (
	maxSeconds = 24 * 3600
	maxShown   = 5 // number of warnings about damage
)

func (proc) Process(ctx context.Context, job processor.Job) error {
	in, err := job.Source()
	if err != nil {
		return err
	}
	defer in.Close()
	if isModule, err := module(ctx, job, in); err != nil || isModule {
		return err
	}
	f, err := open(in)
	if err != nil {
		return err
	}
	misnamed(job, f)
	t := &task{job: job, ctx: ctx, f: f, s: processor.SettingsOf[Settings](job)}
	err = t.run()
	warnings := f.AllWarnings()
	for i, w := range warnings {
		if i == maxShown {
			w = fmt.Sprintf("%d more like these", len(warnings)-maxShown)
		}
		job.Warn(processor.Problem{Code: string(diag.SoundDamaged), Text: w, Hint: "export it again"})
		if i == maxShown {
			break
		}
	}
	if err != nil {
		return wrapped(err)
	}
	if t.s.Variations {
		return variations(job)
	}
	return nil
}

// open opens the source.
func open(in processor.File) (*soundfile.File, error) {
	if in.Size() == 0 {
		return nil, &processor.Problem{Code: string(diag.SoundUnreadable), Text: "the file is empty", Hint: "save or copy it again"}
	}
	f, err := soundfile.Open(in, in.Size())
	if err != nil {
		return nil, wrapped(err)
	}
	switch {
	case f.Frames == 0:
		return nil, &processor.Problem{Code: string(diag.SoundUnreadable), Text: "there is no sound in it",
			Hint: "export it again, or remove it"}
	case f.Seconds() > maxSeconds || f.Frames > 1<<32-1:
		return nil, &processor.Problem{Code: string(diag.SoundLimit),
			Text: fmt.Sprintf("it says that it has %d frames, %.0f hours", f.Frames,
				f.Seconds()/3600), Hint: "sounds have 24 hours at most"}
	}
	return f, nil
}

// wrapped turns an error of the file into a problem.
func wrapped(err error) error {
	var p *processor.Problem
	switch {
	case errors.As(err, &p) || errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, soundfile.ErrFormat):
		return &processor.Problem{Code: string(diag.SoundUnreadable), Text: err.Error(), Err: err,
			Hint: "WAV, FLAC, Ogg Vorbis, Opus, MP3 and QOA are read; give other files another processor, such as copy"}
	case soundfile.Unsupported(err):
		return &processor.Problem{Code: string(diag.SoundUnreadable), Text: err.Error(), Err: err,
			Hint: "export it as WAV of PCM, FLAC, Ogg Vorbis, Opus or MP3"}
	case soundfile.Truncated(err):
		return &processor.Problem{Code: string(diag.SoundUnreadable), Text: err.Error(), Err: err,
			Hint: "the file is cut off: export or download it again"}
	case soundfile.Bad(err):
		return &processor.Problem{Code: string(diag.SoundUnreadable), Text: err.Error(), Err: err, Hint: "export it again"}
	}
	return err
}

// misnamed warns about a file whose extension does not match its content.
func misnamed(job processor.Job, f *soundfile.File) {
	ext := strings.ToLower(path.Ext(job.Asset().Path))
	if named := soundfile.Named(ext); named != "" && named != f.Container {
		job.Warn(processor.Problem{Code: string(diag.SoundMisnamed), Text: fmt.Sprintf("named %s, but it is %s", ext, f.Container),
			Hint: "rename it: a game that goes by the name cannot play it"})
	}
}

// stopping is a source or a writer that ends with a context.
type stopping struct {
	io.Writer
	ctx context.Context
}

func (s stopping) Write(p []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	return s.Writer.Write(p)
}
