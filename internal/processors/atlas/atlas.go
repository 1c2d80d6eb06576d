// Package atlas is the processor that turns a folder of images into pages, which are
// textures, and a frame table, which tells where each image is.
//
// The way of an image: listed by a glob (files.go), decoded and trimmed (images.go), packed
// (internal/packing), drawn on a page and encoded (pages.go), named in the table
// (internal/codec/atlas). Everything that is wrong with any image is reported at once.
package atlas

import (
	"context"
	"errors"
	"fmt"
	"slices"

	table "github.com/kiln-pipeline/kiln/internal/codec/atlas"
	"github.com/kiln-pipeline/kiln/internal/diag"
	"github.com/kiln-pipeline/kiln/internal/texture"
	"github.com/kiln-pipeline/kiln/processor"
)

// New makes the processor.
func New() processor.Processor { return proc{maxPixels: 1 << 28} }

type proc struct {
	maxPixels int // of all images of an atlas together; 1 GiB in memory, 64 pages of 2048 x 2048
}

// Settings of the processor. What is not about packing means what it means for a texture.
type Settings struct {
	Include []string `toml:"include" doc:"Globs of the images, relative to the folder. None means every image in it and below."`
	Exclude []string `toml:"exclude" doc:"Globs of images to leave out, relative to the folder."`

	MaxSize    int  `toml:"max_size" min:"1" max:"16384" doc:"Largest side of a page, in pixels. What does not fit on one page goes on further ones."`
	PowerOfTwo bool `toml:"power_of_two" doc:"Sides of pages are powers of two; otherwise they are multiples of four."`
	Square     bool `toml:"square" doc:"Pages are as wide as high."`
	Padding    int  `toml:"padding" min:"0" max:"256" doc:"Transparent pixels between images. Each mip level that is used wants twice as many."`
	Border     int  `toml:"border" min:"0" max:"256" doc:"Transparent pixels along the edges of a page."`
	Extrude    int  `toml:"extrude" min:"0" max:"64" doc:"How often the edge pixels of an image are repeated around it, so that tiles show no seams."`
	Trim       bool `toml:"trim" doc:"Leave out the transparent edges of images. The table keeps their original size."`

	Format      string `toml:"format" values:"auto,rgba8,r8,rg8" doc:"Pixel format of the pages. auto is rgba8; r8 and rg8 keep red, or red and green, as data."`
	Container   string `toml:"container" values:"ktx2,dds" doc:"File format of the pages."`
	Mips        bool   `toml:"mips" doc:"Make mip levels of the pages."`
	SRGB        bool   `toml:"srgb" doc:"Pixels are colours, sRGB-encoded. Turn it off for normal maps, masks and other data."`
	Premultiply bool   `toml:"premultiply" doc:"Multiply colours by alpha."`

	Table string `toml:"table" values:"binary,json" doc:"Form of the frame table: binary for games with a reader, json for everybody else."`
}

// Defaults is the settings of an atlas that nothing was said about.
func Defaults() Settings {
	t := texture.Defaults()
	return Settings{
		MaxSize: 2048, PowerOfTwo: true, Padding: 2, Trim: true,
		Format: t.Format, Container: t.Container, SRGB: t.SRGB, Premultiply: t.Premultiply,
		Table: "binary",
	}
}

func (proc) Info() processor.Info {
	defaults := Defaults()
	return processor.Info{
		Name:       "atlas",
		Version:    2,
		Summary:    "a folder of images to texture pages and a frame table",
		Extensions: slices.Clone(extensions),
		Folder:     true,
		Settings:   &defaults,
		Products: []processor.ProductType{
			{Type: table.Type, Extension: table.Extension, Doc: "frame table: where each image is on which page"},
			{Type: texture.Type, Extension: ".ktx2", Doc: "page, KTX 2.0 texture"},
			{Type: texture.Type, Extension: ".dds", Doc: "page, DirectDraw Surface with a DX10 header"},
		},
		Memory: 256 << 20,
	}
}

func (p proc) Process(ctx context.Context, job processor.Job) error {
	s := processor.SettingsOf[Settings](job)
	paths, err := list(job, s)
	if err != nil {
		return err
	}
	sh, problems := p.load(ctx, job, paths, s)
	if problems = append(problems, clashes(job.Asset().Path, paths)...); len(problems) > 0 {
		return errors.Join(problems...)
	}
	pages := sh.pack(s)
	// The table first: it is cheap to find out that it cannot be, and pages are not.
	encoded, extension, err := encode(sh.table(job.Asset(), s, pages), s)
	if err != nil {
		return err
	}
	out := processor.Output{Type: table.Type, Extension: extension}
	for i, size := range pages {
		if err := ctx.Err(); err != nil {
			return err
		}
		page, err := texture.Encode(sh.draw(size, i, s.Extrude), s.options())
		if err != nil {
			return fmt.Errorf("page %d: %w", i, err)
		}
		if err := job.Write(processor.Output{Name: pageName(i), Type: texture.Type, Extension: s.options().Extension()}, page); err != nil {
			return err
		}
		out.References = append(out.References, processor.Own(job, pageName(i), true))
	}
	return job.Write(out, encoded)
}

// options of the pages.
func (s *Settings) options() texture.Options {
	return texture.Options{Format: s.Format, Container: s.Container, Mips: s.Mips, SRGB: s.SRGB, Premultiply: s.Premultiply}
}

// encode writes the table in the form that is wanted, with the extension that goes with it.
func encode(t *table.Table, s *Settings) (data []byte, extension string, err error) {
	if s.Table == "json" {
		data, err = table.WriteJSON(t)
		extension = table.JSONExtension
	} else {
		data, err = table.Write(t)
		extension = table.Extension
	}
	if err != nil {
		return nil, "", &processor.Problem{
			Code: string(diag.AtlasTable), Text: "the frame table cannot be written: " + err.Error(),
			Hint: "split the folder into several atlases, or raise max_size", Err: err,
		}
	}
	return data, extension, nil
}
