// Package pack lets a processor add images to an atlas that is another asset: the glyphs of a font, the images of a
// map. It works in three steps:
//
//   - The processor sets Info.Packs. Kiln then calls its Part for the part "pack" of each of its assets, which adds
//     images with [Image] and must not need the atlas.
//   - The atlas is laid out when all assets have added their images.
//   - The processor's Process gets the places of its images with [Frame].
//
// An unchanged image causes no new layout.
package pack

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/media/codec/atlas"
	"github.com/kiln-pipeline/kiln/processor"
)

// Part is the name of the part in which an asset adds images.
const Part = processor.PackPart

// requestType is the product type of a request.
const requestType = "pack"

// Image adds an image to an atlas, as the frame of that name. If another asset adds a frame of the same name, building
// the atlas fails. rgba is 4*width*height bytes: 8 bits a channel, straight alpha, rows top down.
func Image(job processor.Job, atlasID, frame string, width, height int, rgba []byte) error {
	if width < 1 || height < 1 || len(rgba) != 4*width*height {
		return fmt.Errorf("frame %q for %q: %d bytes are not an image of %d x %d pixels", frame, atlasID, len(rgba), width, height)
	}
	data := binary.LittleEndian.AppendUint32(nil, uint32(width))
	data = binary.LittleEndian.AppendUint32(data, uint32(height))
	return job.Write(processor.Output{Name: atlasID + ":" + frame, Type: requestType, Hidden: true}, append(data, rgba...))
}

// Placed is the place of a frame. Lengths are in pixels, the origin is at the top left.
type Placed struct {
	Page    int // the number of the atlas' page
	X, Y    int // position on the page
	W, H    int // size on the page, upright
	Turned  int // quarter turns clockwise on the page: 0, 1 or 3
	OffsetX int // offset in the image after its transparent edges were removed
	OffsetY int
	SourceW int // the size of the whole image
	SourceH int
	PageW   int // the size of the page
	PageH   int
}

// Frames has the places of all frames of an atlas.
type Frames struct{ table *atlas.Table }

// Open builds an atlas and opens its frames. Their places are recorded.
func Open(job processor.Job, atlasID string) (*Frames, error) {
	all, err := job.Products(atlasID)
	if err != nil {
		return nil, err
	}
	for _, p := range all[0] {
		if p.AssetID != atlasID { // its images were added under its id and would not be found
			return nil, &NotAtlasError{atlasID, p.AssetID}
		}
		if p.Name != "" || p.Type != atlas.Type {
			continue
		}
		f, err := job.OpenProduct(p)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		data, err := io.ReadAll(f)
		if err != nil {
			return nil, err
		}
		read := atlas.Read
		if strings.HasSuffix(p.File, atlas.JSONExtension) {
			read = atlas.ReadJSON
		}
		t, err := read(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", atlasID, err)
		}
		return &Frames{t}, nil
	}
	return nil, &NotAtlasError{atlasID, ""}
}

// NotAtlasError reports that the asset is not an atlas, or was called by another name than its id.
type NotAtlasError struct {
	Asset  string // the name that was passed
	Called string // its id, if the name is another one
}

func (e *NotAtlasError) Error() string {
	if e.Called != "" {
		return fmt.Sprintf("the atlas %q is called %q: ask for it by that", e.Asset, e.Called)
	}
	return fmt.Sprintf("%q is not an atlas", e.Asset)
}

// Find returns a frame.
func (f *Frames) Find(name string) (Placed, bool) {
	x, ok := f.table.Find(name)
	if !ok {
		return Placed{}, false
	}
	turns := map[atlas.Turn]int{atlas.Right: 1, atlas.Left: 3}
	page := f.table.Pages[x.Page] // both readers of tables have checked that the page exists
	return Placed{
		Page: x.Page, X: x.X, Y: x.Y, W: x.W, H: x.H, Turned: turns[x.Turn],
		OffsetX: x.OffsetX, OffsetY: x.OffsetY, SourceW: x.SourceW, SourceH: x.SourceH,
		PageW: page.Width, PageH: page.Height,
	}, true
}
