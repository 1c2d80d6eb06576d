package atlas

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path"
	"strconv"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	table "github.com/kiln-pipeline/kiln/internal/media/codec/atlas"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/internal/media/texture"
	"github.com/kiln-pipeline/kiln/processor"
)

// cut describes one image, or one frame of a sheet, without its pixels.
type cut struct {
	Cell             int `json:",omitempty"` // in a sheet, from 0
	W, H             int // trimmed
	OffsetX, OffsetY int `json:",omitempty"`
	SourceW, SourceH int
	Patch            *table.Patch `json:",omitempty"`
	Hash             []byte       `json:",omitempty"` // of the pixels; not in the input of the layout
}

// sizes is the product "cuts" of an image.
type sizes struct {
	Cells int // of a sheet; 0: it is not a sheet
	Cuts  []cut
}

// hash of the pixels of a cut, including its size.
type hash = [sha256.Size]byte

// at is the name of a hidden product of one scale.
func at(what string, scale int) string { return what + "@" + strconv.Itoa(scale) }

// image is the part that reads one image. For each scale it makes
//
//	cuts    sizes and hashes
//	pixels  of each cut: RGBA, 8 bits a channel, one cut after the other
func (p proc) image(job processor.Job, file string) error {
	plans, err := newPlans(job)
	if err != nil {
		return err
	}
	plan, err := plans.of(path.Dir(file))
	if err != nil {
		return err
	}
	data, err := job.ReadFile(file)
	if err != nil {
		return err
	}
	src := sourceOf(folderIn(job), file, plans.s, plan)
	frames := int64(1)
	if plans.s.animated(src) {
		frames = int64(pixel.Frames(file, data))
	}
	cost := pixel.CostOf(file, data, pixel.DefaultLimits())
	// The pixels are in memory twice: as an image and as a product.
	if err := needMemory(job, int64(len(data))+frames*(cost.Decode+8*cost.Pixels)); err != nil {
		return err
	}
	if frames > 1 {
		d, err := pixel.DecodeDocument(file, data, pixel.DefaultLimits())
		if err != nil {
			return texture.Problem(file, "", err)
		}
		if damage := d.Frames[0].Picture.Damage; damage != "" {
			job.Warn(texture.DamagedImage(file, "", damage))
		}
		images := make([]*pixel.Image, len(d.Frames))
		for i := range images {
			images[i] = d.Frames[i].Picture.Eight
		}
		return writeCuts(job, plans, src, images...)
	}
	img, fixed, err := pixel.DecodeDamaged(file, data, pixel.DefaultLimits())
	if err != nil {
		return texture.Problem(file, "", err)
	}
	if fixed != "" {
		job.Warn(texture.DamagedImage(file, "", fixed))
	}
	return writeCuts(job, plans, src, img)
}

// animated reports whether all frames of an image are packed. A sheet is cut by its size, and a nine-patch is one image.
func (s *Settings) animated(src source) bool {
	w, _ := s.sheet(src.within)
	return s.Frames == "all" && w == 0 && !src.patch
}

// writeCuts makes the products of an image's part; several images are the frames of one.
func writeCuts(job processor.Job, plans *plans, src source, images ...*pixel.Image) error {
	for _, scale := range plans.s.scales() {
		c := cutter{s: plans.s, plan: src.plan, src: src, factor: float64(scale) / float64(src.density)}
		if err := c.cut(images); err != nil {
			return err
		}
		if err := c.write(job, scale); err != nil {
			return err
		}
	}
	return nil
}

// cutter makes the cuts of one image at one scale.
type cutter struct {
	s      *Settings
	plan   plan
	src    source
	factor float64

	sizes  sizes
	pixels bytes.Buffer
}

func (c *cutter) cut(images []*pixel.Image) error {
	if len(images) > 1 {
		return c.animation(images)
	}
	img := images[0]
	w, h := c.s.sheet(c.src.within)
	if w > 0 && !c.src.patch {
		return c.sheet(img, w*c.src.density/1000, h*c.src.density/1000)
	}
	var patch *table.Patch
	if c.src.patch {
		var err error
		if patch, img, err = readPatch(c.src.path, img); err != nil {
			return err
		}
	}
	return c.add(0, img, scaledPatch(patch, c.factor))
}

// animation uses each frame as a cell of a sheet. Completely transparent frames are kept, because they have a
// duration.
func (c *cutter) animation(images []*pixel.Image) error {
	if len(images) > maxCells {
		return &processor.Problem{
			Code: string(diag.AtlasSheet), Path: c.src.path,
			Text: fmt.Sprintf("the animation has %d frames, more than %d", len(images), maxCells),
			Hint: `leave the image out, or take its first frame: frames = "first"`,
		}
	}
	c.sizes.Cells = len(images)
	for i, img := range images {
		if err := c.add(i, img, nil); err != nil {
			return err
		}
	}
	return nil
}

// maxCells of a sheet: the numbers of frames have 16 bits.
const maxCells = math.MaxUint16

// sheet cuts an image into frames, row by row. Incomplete frames at the right and the bottom are left out, and so are
// completely transparent frames.
func (c *cutter) sheet(img *pixel.Image, w, h int) error {
	columns, rows := img.Width/max(w, 1), img.Height/max(h, 1)
	if columns*rows == 0 || w == 0 || h == 0 {
		return &processor.Problem{
			Code: string(diag.AtlasSheet), Path: c.src.path,
			Text: fmt.Sprintf("sheet of %d x %d pixels is smaller than one of its frames of %d x %d", img.Width, img.Height, w, h),
			Hint: `correct "sheet" or "sheets", or leave the image out of it`,
		}
	}
	if columns*rows > maxCells {
		return &processor.Problem{
			Code: string(diag.AtlasSheet), Path: c.src.path,
			Text: fmt.Sprintf("sheet of %d x %d pixels has %d frames of %d x %d, more than %d", img.Width, img.Height, columns*rows, w, h, maxCells),
			Hint: `correct "sheet" or "sheets", or leave the image out of it`,
		}
	}
	c.sizes.Cells = columns * rows
	for i := range columns * rows {
		cell := crop(img, i%columns*w, i/columns*h, w, h)
		if blank(cell, 0) {
			continue
		}
		if err := c.add(i, cell, nil); err != nil {
			return err
		}
	}
	return nil
}

func (c *cutter) scaled(img *pixel.Image) (*pixel.Image, error) {
	if c.factor == 1 {
		return img, nil
	}
	w, h := scaleSide(img.Width, c.factor), scaleSide(img.Height, c.factor)
	if max(w, h) > table.MaxSide || int64(w)*int64(h) > pixel.DefaultLimits().MaxBytes/4 {
		return nil, &processor.Problem{
			Code: string(diag.AtlasImageTooBig), Path: c.src.path,
			Text: fmt.Sprintf("image of %d x %d pixels would have %d x %d at this scale", img.Width, img.Height, w, h),
			Hint: "use a smaller scale, or make the image smaller",
		}
	}
	f := pixel.Filter{SRGB: c.s.SRGB, Weighted: true}
	return f.Resize(img, w, h), nil
}

func scaleSide(n int, factor float64) int { return max(1, int(math.Round(float64(n)*factor))) }

// add scales, trims and stores a cut. A nine-patch is not trimmed, because its corners are counted from its
// edges.
func (c *cutter) add(cell int, img *pixel.Image, patch *table.Patch) error {
	img, err := c.scaled(img)
	if err != nil {
		return err
	}
	k := cut{Cell: cell, SourceW: img.Width, SourceH: img.Height, Patch: patch}
	empty := blank(img, c.plan.trimAlpha)
	if empty && c.plan.dropBlank {
		return nil
	}
	if !c.src.patch {
		k.OffsetX, k.OffsetY, img = trimmed(img, c.plan, empty)
	}
	k.W, k.H = img.Width, img.Height
	sum := hashOf(img)
	k.Hash = sum[:]
	c.sizes.Cuts = append(c.sizes.Cuts, k)
	c.pixels.Write(img.Pix)
	return nil
}

func (c *cutter) write(job processor.Job, scale int) error {
	return errors.Join(writeJSON(job, at("cuts", scale), c.sizes), writeHidden(job, at("pixels", scale), c.pixels.Bytes()))
}

func crop(img *pixel.Image, left, top, w, h int) *pixel.Image {
	part := pixel.New(w, h)
	for y := range h {
		from := 4 * ((top+y)*img.Width + left)
		copy(part.Pix[4*y*w:], img.Pix[from:from+4*w])
	}
	return part
}

// blank reports whether no pixel has more alpha than this.
func blank(img *pixel.Image, alpha int) bool {
	for i := 3; i < len(img.Pix); i += 4 {
		if int(img.Pix[i]) > alpha {
			return false
		}
	}
	return true
}

// trimmed cuts off transparent edges. Of a completely transparent image, one pixel stays.
func trimmed(img *pixel.Image, p plan, empty bool) (x, y int, part *pixel.Image) {
	if !p.trimX && !p.trimY {
		return 0, 0, img
	}
	if empty {
		return 0, 0, pixel.New(1, 1)
	}
	left, top, right, bottom := img.Width, img.Height, 0, 0
	for y := range img.Height {
		row := img.Pix[4*y*img.Width:][:4*img.Width]
		first := 0
		for first < img.Width && int(row[4*first+3]) <= p.trimAlpha {
			first++
		}
		if first == img.Width {
			continue
		}
		last := img.Width - 1
		for int(row[4*last+3]) <= p.trimAlpha {
			last--
		}
		left, right = min(left, first), max(right, last+1)
		top, bottom = min(top, y), y+1
	}
	if !p.trimX {
		left, right = 0, img.Width
	}
	if !p.trimY {
		top, bottom = 0, img.Height
	}
	if right-left == img.Width && bottom-top == img.Height {
		return 0, 0, img
	}
	return left, top, crop(img, left, top, right-left, bottom-top)
}

// hashOf is equal only for equal pixels.
func hashOf(img *pixel.Image) (sum hash) {
	h := sha256.New()
	var size [16]byte
	binary.LittleEndian.PutUint64(size[:], uint64(img.Width))
	binary.LittleEndian.PutUint64(size[8:], uint64(img.Height))
	h.Write(size[:])
	h.Write(img.Pix)
	h.Sum(sum[:0])
	return sum
}
