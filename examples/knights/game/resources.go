package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image"

	"github.com/hajimehoshi/ebiten/v2"

	"github.com/kiln-pipeline/kiln/kilnrt"
	"github.com/kiln-pipeline/kiln/kilnrt/live"
)

// resources is a source of resources: parcels, or a watcher (`kiln serve`). Both have the same methods.
type resources interface {
	byName(name string) (id uint32, err error)
	byUUID(uuid [16]byte, sub uint32) (id uint32, err error)
}

// thing is a resource with what it needs, which is loaded before it.
type thing struct {
	content interface{ Bytes() ([]byte, error) }
	uuid    [16]byte
	needs   map[uint32]any // by id
}

// loaders load the products of Kiln, by type.
var loaders = map[string]func(resources, *thing) (any, error){
	"texture": loadTexture, "atlas": loadAtlas, "data": loadScene, "sound": loadSound, "sounds": loadVariations,
}

// parcels are resources from parcels.
type parcels struct{ *kilnrt.Library }

func openParcels(all ...*kilnrt.Parcel) parcels {
	lib := parcels{kilnrt.NewLibrary()}
	for _, p := range all {
		lib.Mount(p)
	}
	for kind, load := range loaders {
		lib.Register(kind, func(in *kilnrt.Loading) (any, error) {
			return load(lib, &thing{&in.Resource, in.Resource.UUID, byID(in.Needs)})
		})
	}
	return lib
}

func (p parcels) byName(name string) (uint32, error) {
	r, err := p.FindName(name)
	return r.ID, err
}

func (p parcels) byUUID(uuid [16]byte, sub uint32) (uint32, error) {
	r, err := p.FindUUID(uuid, sub)
	return r.ID, err
}

func (p parcels) load(id uint32) (handle, error) { return p.Load(id) }

// watched are resources of the watcher. They change while the game runs.
type watched struct{ *live.Library }

func (w watched) load(id uint32) (handle, error) { return w.Load(id) }

func connect(ctx context.Context, address string) (watched, error) {
	l, err := live.Connect(ctx, live.Options{Address: address, Game: "knights", Platform: "web"})
	lib := watched{l}
	if err == nil {
		for kind, load := range loaders {
			lib.Register(kind, func(in *live.Loading) (any, error) {
				return load(lib, &thing{&in.Resource, in.Resource.UUID, byID(in.Needs)})
			})
		}
	}
	return lib, err
}

func (w watched) byName(name string) (uint32, error) {
	r, err := w.FindName(name)
	return r.ID, err
}

func (w watched) byUUID(uuid [16]byte, sub uint32) (uint32, error) {
	r, err := w.FindUUID(uuid, sub)
	return r.ID, err
}

func byID(needs []kilnrt.Need) map[uint32]any {
	all := map[uint32]any{}
	for _, n := range needs {
		all[n.ID] = n.Value
	}
	return all
}

// texture is a picture on the graphics card.
type texture struct{ *ebiten.Image }

// Unload is called when the texture has no handles any more.
func (t *texture) Unload() { t.Deallocate() }

// loadTexture reads level 0 of a KTX 2.0 file with 8 bits a channel; docs/formats/ktx2.md has the layout.
func loadTexture(_ resources, in *thing) (any, error) {
	b, err := in.content.Bytes()
	if err != nil {
		return nil, err
	}
	if len(b) < 104 || string(b[1:7]) != "KTX 20" {
		return nil, errors.New("no KTX 2.0 file")
	}
	u32 := func(at int) int { return int(binary.LittleEndian.Uint32(b[at:])) }
	const rgba8, rgba8srgb = 37, 43 // VkFormat
	if format := u32(12); format != rgba8 && format != rgba8srgb || u32(44) != 0 {
		return nil, fmt.Errorf("this game shows RGBA8 alone, not format %d", format)
	}
	w, h := u32(20), max(u32(24), 1)
	at, size := binary.LittleEndian.Uint64(b[80:]), binary.LittleEndian.Uint64(b[88:])
	if w > 1<<14 || h > 1<<14 || size != uint64(4*w*h) || at > uint64(len(b)) || size > uint64(len(b))-at {
		return nil, errors.New("its level 0 is cut short")
	}
	img := ebiten.NewImage(w, h)
	img.WritePixels(b[at : at+size]) // colours are premultiplied: kiln.toml sets premultiply
	return &texture{img}, nil
}

// atlas has frames by name, and animations.
type atlas struct {
	frames     map[string]frame
	animations map[string][]string
}

// frame is a part of a page. offset is the size of the trimmed edges at the left and top.
type frame struct {
	image  *ebiten.Image
	offset image.Point
}

func loadAtlas(all resources, in *thing) (any, error) {
	var table struct {
		Pages []struct {
			SubID uint32 `json:"sub_id"`
		} `json:"pages"`
		Frames map[string]struct {
			Page    int `json:"page"`
			X       int `json:"x"`
			Y       int `json:"y"`
			W       int `json:"w"`
			H       int `json:"h"`
			OffsetX int `json:"offset_x"`
			OffsetY int `json:"offset_y"`
		} `json:"frames"`
		Animations map[string][]string `json:"animations"`
	}
	if err := decode(in, &table); err != nil {
		return nil, err
	}
	a := &atlas{frames: map[string]frame{}, animations: table.Animations}
	for name, f := range table.Frames {
		if f.Page < 0 || f.Page >= len(table.Pages) {
			return nil, fmt.Errorf("frame %s is on page %d of %d", name, f.Page, len(table.Pages))
		}
		id, err := all.byUUID(in.uuid, table.Pages[f.Page].SubID)
		if err != nil {
			return nil, err
		}
		page, ok := in.needs[id].(*texture)
		if !ok {
			return nil, fmt.Errorf("page %d is not a texture", f.Page)
		}
		part := page.SubImage(image.Rect(f.X, f.Y, f.X+f.W, f.Y+f.H)).(*ebiten.Image)
		a.frames[name] = frame{part, image.Pt(f.OffsetX, f.OffsetY)}
	}
	return a, nil
}

func decode(in *thing, v any) error {
	b, err := in.content.Bytes()
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

// cut returns a column of an image.
func cut(img *ebiten.Image, left, width int) *ebiten.Image {
	b := img.Bounds()
	return img.SubImage(image.Rect(left, b.Min.Y, left+width, b.Max.Y)).(*ebiten.Image)
}
