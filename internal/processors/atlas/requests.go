package atlas

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/internal/media/texture"
	"github.com/kiln-pipeline/kiln/processor"
)

// Other assets may request that images are packed: glyphs of a font, the pictures of a map. They do so in a part of
// their own named "pack", as hidden products named ATLAS:FRAME, before they read the atlas; so there is no dependency
// cycle.
//
// A request's bytes are its width and height as 32-bit numbers, little-endian, then RGBA, 8 bits a channel, straight alpha, rows top down.
const (
	packPart      = "pack"
	requestHeader = 8
)

// requests returns the images that other assets request, sorted by asset and name.
func (p *plans) requests() ([]source, error) {
	products, err := p.job.ToPack()
	if err != nil {
		return nil, err
	}
	plan := p.known[rootOf(p.job)]
	var all []source
	for _, product := range products {
		frame, ok := strings.CutPrefix(product.Name, p.job.Asset().ID+":")
		if !ok || frame == "" {
			return nil, fmt.Errorf("asset %q asks for %q, which is not a frame of this atlas", product.AssetID, product.Name)
		}
		all = append(all, source{
			part: "request:" + product.AssetID + "|" + frame,
			path: product.AssetID, within: frame, name: frame, density: 1000, plan: plan,
		})
	}
	return all, nil
}

// request is the part that reads one requested image. It makes the same products as the part of an image file.
func (p proc) request(job processor.Job, rest string) error {
	asset, frame, ok := strings.Cut(rest, "|")
	if !ok {
		return fmt.Errorf("%q is not a request", rest)
	}
	plans, err := newPlans(job)
	if err != nil {
		return err
	}
	name := job.Asset().ID + ":" + frame
	f, err := job.OpenProduct(processor.Product{AssetID: asset, Part: packPart, Name: name, SubID: processor.SubID(name)})
	if err != nil {
		return err
	}
	defer f.Close()
	if err := needMemory(job, 3*f.Size()); err != nil {
		return err
	}
	img, err := readPixels(f)
	if err != nil {
		return texture.Problem(asset, fmt.Sprintf("image %q for the atlas", frame), err)
	}
	return writeCuts(job, plans, source{part: "request:" + rest, path: asset, within: frame, name: frame, density: 1000, plan: plans.known[rootOf(job)]}, img)
}

// readPixels decodes pixels in the form of a request.
func readPixels(f processor.File) (*pixel.Image, error) {
	var head [requestHeader]byte
	if _, err := f.ReadAt(head[:], 0); err != nil {
		return nil, fmt.Errorf("it has no size: %w", err)
	}
	w, h := int64(binary.LittleEndian.Uint32(head[:])), int64(binary.LittleEndian.Uint32(head[4:]))
	if limit := int64(pixel.DefaultLimits().MaxSide); w < 1 || h < 1 || w > limit || h > limit || f.Size() != requestHeader+4*w*h {
		return nil, fmt.Errorf("%d x %d pixels are not %d bytes", w, h, f.Size()-requestHeader)
	}
	img := pixel.New(int(w), int(h))
	_, err := f.ReadAt(img.Pix, requestHeader)
	return img, err
}
