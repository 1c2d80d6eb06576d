// Package gltf is the processor of models: a .gltf or .glb is validated and becomes one .glb whose
// images are textures beside it.
//
// The steps: the model and its buffers are read (load.go) and validated, and all problems are reported at once
// (report.go); images are replaced by textures, those of their own assets (images.go) or ones requested from the
// processor of textures (textures.go), which are compared with their use (space.go); the codec packs the file.
package gltf

import (
	"context"
	"errors"

	codec "github.com/kiln-pipeline/kiln/internal/media/codec/gltf"
	"github.com/kiln-pipeline/kiln/processor"
)

// New makes the processor.
func New() processor.Processor { return proc{limits: codec.DefaultLimits()} }

type proc struct{ limits codec.Limits }

// Settings of the processor. The default of Validate is warn because widely used exporters violate details of the
// specification (UniGLTF has scenes that name nodes which are not roots), and artists cannot fix an exporter. Textures
// are for images inside the model; an image file is an asset with settings of its own.
type Settings struct {
	Validate string         `toml:"validate" values:"warn,strict" doc:"What is against the glTF specification is an error; with warn, only a warning where a careful loader can load it."`
	Images   string         `toml:"images" values:"textures,keep" doc:"What happens to images inside the model: they become textures beside it, or stay in it as they are, for loaders that know PNG and JPEG only."`
	Textures map[string]any `toml:"textures" of:"texture" doc:"Settings of the processor texture for images inside the model, over those of the platform."`
}

const (
	modelType = "model"
	modelExt  = codec.BinaryExtension
	spaceType = "space" // hidden
)

func (proc) Info() processor.Info {
	return processor.Info{
		Name:       "gltf",
		Version:    20,
		Summary:    "glTF models, validated, as one .glb with textures beside it",
		Extensions: []string{codec.TextExtension, codec.BinaryExtension},
		Settings:   &Settings{Validate: "warn", Images: "textures"},
		Products: []processor.ProductType{
			{Type: modelType, Extension: modelExt, Doc: "The model with all its buffers. Its images are files beside it."},
			{Type: textureType, Extension: ".ktx2", Doc: "An image that was inside the model, named after it."},
			{Type: spaceType, Doc: "what one part of the work hands to the next"},
		},
		Memory: 256 << 20,
	}
}

// model is one job.
type model struct {
	ctx      context.Context
	job      processor.Job
	settings *Settings
	limits   codec.Limits

	doc        *codec.Document
	buffers    [][]byte
	problems   []error // errors that fail the job
	references []processor.Reference
	referred   map[processor.Reference]bool
	wanted     []wanted        // textures to request for images inside the model
	variants   []variant       // textures to request for image files
	names      map[string]bool // of products
	drop       map[int]bool    // bufferViews of images that were replaced by textures
}

func (p proc) Process(ctx context.Context, job processor.Job) error {
	m := &model{
		ctx: ctx, job: job, settings: processor.SettingsOf[Settings](job), limits: p.limits,
		referred: map[processor.Reference]bool{}, names: map[string]bool{}, drop: map[int]bool{},
	}
	if err := m.load(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	report := codec.Validate(m.doc, m.buffers, m.limits)
	m.judge(report)
	files := m.imageFiles()
	if len(m.problems) > 0 || report.Broken {
		return errors.Join(m.problems...)
	}
	if err := m.replaceImages(files); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := m.needMemory(); err != nil {
		return err
	}
	glb, err := codec.WriteGLB(m.doc, m.buffers, m.drop)
	if err != nil {
		return err
	}
	return job.Write(processor.Output{Type: modelType, Extension: modelExt, References: m.references}, glb)
}
