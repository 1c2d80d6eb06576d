// Package atlas is the processor that turns a folder of images into pages, which are textures, and a frame table, which
// has the place of each image.
//
// The work is divided into parts, so that an edit causes as little work as possible:
//
//	list         finds the images (groups.go)                            -> their names, in groups
//	image:PATH   reads one image, cuts and trims it (images.go)          -> cuts: sizes and hashes; pixels
//	request:...  the same for an image that another asset requests (requests.go)
//	group:N      collects the cuts of some images (groups.go)            -> sizes, hashes
//	aliases      finds images that look the same, by the hashes          -> aliases
//	layout       finds a place for every image, by the sizes (layout.go) -> what is where on each page, in bands; frames
//	band:NAME/N  draws some rows of a page, from the pixels (page.go)    -> pixels
//	blocks:FORMAT/NAME/N  encodes a band, if the format has blocks       -> blocks
//	page:NAME    joins bands and makes a file of them (page.go)          -> a texture
//	the job      writes the frame table in all forms, from the frames (tables.go)
//
// After an edit of an image that does not change its trimmed size, these run: its own part, its group, aliases, one or
// two bands and one page. The number of images and parts that they read is about the square root of all. All problems
// of all images are reported at once.
package atlas

import (
	"context"
	"fmt"
	"slices"
	"strings"

	table "github.com/kiln-pipeline/kiln/internal/media/codec/atlas"
	"github.com/kiln-pipeline/kiln/internal/media/texture"
	"github.com/kiln-pipeline/kiln/processor"
)

// New makes the processor.
func New() processor.Processor { return proc{maxPixels: 1 << 28} }

type proc struct {
	maxPixels int // limit for all images of an atlas together; 1 GiB in memory, 64 pages of 2048 x 2048
}

// The types of products.
const (
	typeExport = "atlas-export"
	typeHidden = "atlas-part"
)

func (proc) Info() processor.Info {
	defaults := Defaults()
	return processor.Info{
		Name:       "atlas",
		Version:    18,
		Summary:    "a folder of images to texture pages and a frame table",
		Extensions: slices.Clone(extensions),
		Folder:     true,
		NoFile:     true,
		Settings:   &defaults,
		Products: []processor.ProductType{
			{Type: table.Type, Extension: table.Extension, Doc: "frame table: where each image is on which page"},
			{Type: texture.Type, Extension: ".ktx2", Doc: "page, KTX 2.0 texture"},
			{Type: texture.Type, Extension: ".dds", Doc: "page, DirectDraw Surface with a DX10 header"},
			{Type: texture.Type, Extension: ".png", Doc: "page, PNG"},
			{Type: typeExport, Extension: ".atlas", Doc: "frame table as text of libGDX and Spine"},
			{Type: typeExport, Extension: ".json", Doc: "frame table as JSON of texture packers"},
			{Type: typeExport, Extension: ".fnt", Doc: "frame table as BMFont, of glyphs"},
			{Type: typeHidden, Doc: "what one part of the work hands to the next"},
		},
		Memory: 128 << 20, // a page of 2048 x 2048 takes 170 MB, and requests it; an image, of which there are thousands, nearly nothing
	}
}

// Part does one part of the work.
func (p proc) Part(ctx context.Context, job processor.Job, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	kind, rest, _ := strings.Cut(name, ":")
	switch kind {
	case "list":
		return p.list(job)
	case "image":
		return p.image(job, rest)
	case "request":
		return p.request(job, rest)
	case "group":
		return p.group(job, rest)
	case "aliases":
		return p.aliases(job)
	case "layout":
		return p.layout(job)
	case "band":
		return p.band(job, rest)
	case "blocks":
		return p.blocks(job, rest)
	case "page":
		return p.page(job, rest)
	}
	return fmt.Errorf("atlas has no part %q", name)
}

func (p proc) Process(ctx context.Context, job processor.Job) error {
	made, err := job.Parts("layout")
	if err != nil {
		return err
	}
	var pages []string
	for _, product := range made[0] {
		if name, ok := strings.CutPrefix(product.Name, "page-"); ok {
			pages = append(pages, "page:"+name)
		}
	}
	if _, err := job.Parts(pages...); err != nil {
		return err
	}
	return p.tables(job, made[0])
}
