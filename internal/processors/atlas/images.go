package atlas

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/kiln-pipeline/kiln/internal/diag"
	"github.com/kiln-pipeline/kiln/internal/packing"
	"github.com/kiln-pipeline/kiln/internal/pixel"
	"github.com/kiln-pipeline/kiln/internal/texture"
	"github.com/kiln-pipeline/kiln/processor"
)

// image is a source image.
type image struct {
	path, name       string
	width, height    int // as in the file
	offsetX, offsetY int // of the part in the image
	part             *part
}

// part is what of an image goes on a page. Images that look the same share one.
type part struct {
	pixels *pixel.Image
	place  packing.Place // of the part itself, inside of its extrusion
}

// sheet is all that goes on the pages.
type sheet struct {
	images []*image
	parts  []*part // without those that look the same
}

// load reads all images. Those that are broken or larger than a page are left out, and are problems.
func (p proc) load(ctx context.Context, job processor.Job, paths []string, s *Settings) (sh sheet, problems []error) {
	byHash := map[[sha256.Size]byte]*part{}
	kept := 0
	for _, file := range paths {
		if err := ctx.Err(); err != nil {
			return sh, []error{err}
		}
		m, pixels, err := read(job, file, s)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		key := hash(pixels)
		if m.part = byHash[key]; m.part == nil {
			if kept += pixels.Width * pixels.Height; kept > p.maxPixels {
				return sh, append(problems, tooMuch(job.Asset().Path, p.maxPixels))
			}
			m.part = &part{pixels: pixels}
			byHash[key] = m.part
			sh.parts = append(sh.parts, m.part)
		}
		sh.images = append(sh.images, m)
	}
	return sh, problems
}

// read makes an image of a file, and the pixels of it that go on a page.
func read(job processor.Job, file string, s *Settings) (*image, *pixel.Image, error) {
	data, err := job.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	pixels, err := pixel.Decode(file, data, pixel.DefaultLimits())
	if err != nil {
		return nil, nil, texture.Problem(file, "", err)
	}
	m := &image{path: file, name: frameName(job.Asset().Path, file), width: pixels.Width, height: pixels.Height}
	if s.Trim {
		m.offsetX, m.offsetY, pixels = trimmed(pixels)
	}
	if size := s.extruded(pixels); !s.packing().Fits(size) {
		return nil, nil, tooBig(m, pixels, s)
	}
	return m, pixels, nil
}

// trimmed cuts off the edges that are fully transparent. Of an image that has nothing else, one
// transparent pixel stays.
func trimmed(img *pixel.Image) (x, y int, part *pixel.Image) {
	row := 4 * img.Width
	left, top, right, bottom := img.Width, img.Height, 0, 0
	for i := 3; i < len(img.Pix); i += 4 {
		if img.Pix[i] == 0 {
			continue
		}
		x, y := i%row/4, i/row
		left, right = min(left, x), max(right, x+1)
		top, bottom = min(top, y), max(bottom, y+1)
	}
	if right == 0 {
		return 0, 0, pixel.New(1, 1)
	}
	if right-left == img.Width && bottom-top == img.Height {
		return 0, 0, img
	}
	part = pixel.New(right-left, bottom-top)
	for y := range part.Height {
		from := (top+y)*row + 4*left
		copy(part.Pix[y*4*part.Width:], img.Pix[from:from+4*part.Width])
	}
	return left, top, part
}

// hash is equal for equal pixels only.
func hash(img *pixel.Image) (sum [sha256.Size]byte) {
	h := sha256.New()
	var size [16]byte
	binary.LittleEndian.PutUint64(size[:], uint64(img.Width))
	binary.LittleEndian.PutUint64(size[8:], uint64(img.Height))
	h.Write(size[:])
	h.Write(img.Pix)
	h.Sum(sum[:0])
	return sum
}

// pack finds a place for every part.
func (sh sheet) pack(s *Settings) []packing.Size {
	items := make([]packing.Item, len(sh.parts))
	for i, p := range sh.parts {
		items[i].Size = s.extruded(p.pixels)
	}
	layout := packing.Pack(items, s.packing())
	for i, p := range sh.parts {
		p.place = layout.Places[i]
		p.place.X += s.Extrude
		p.place.Y += s.Extrude
	}
	return layout.Pages
}

func (s *Settings) packing() packing.Options {
	both := func(n int) packing.Size { return packing.Size{W: n, H: n} }
	return packing.Options{Max: both(s.MaxSize), Padding: both(s.Padding), Border: both(s.Border), PowerOfTwo: s.PowerOfTwo, Square: s.Square, Multiple: 4}
}

// extruded is the room that a part takes.
func (s *Settings) extruded(part *pixel.Image) packing.Size {
	return packing.Size{W: part.Width + 2*s.Extrude, H: part.Height + 2*s.Extrude}
}

// tooBig says how large a page would have to be.
func tooBig(m *image, part *pixel.Image, s *Settings) *processor.Problem {
	const largest = 16384 // bound of max_size
	trimmed := ""
	if part.Width != m.width || part.Height != m.height {
		trimmed = fmt.Sprintf(" (%d x %d once trimmed)", part.Width, part.Height)
	}
	side := max(part.Width, part.Height) + 2*(s.Border+s.Extrude)
	if s.PowerOfTwo {
		side = 1 << bits.Len(uint(side-1))
	}
	hint := fmt.Sprintf("set max_size = %d, make the image smaller, or move it to another folder, as a texture of its own", side)
	if side > largest {
		hint = "make the image smaller, or move it to another folder, as a texture of its own"
	}
	return &processor.Problem{
		Code: string(diag.AtlasImageTooBig), Path: m.path,
		Text: fmt.Sprintf("image of %d x %d pixels%s does not fit on a page: %s", m.width, m.height, trimmed, pageRoom(s)),
		Hint: hint,
	}
}

// tooMuch is for a folder that would take more memory than one job should.
func tooMuch(folder string, maxPixels int) *processor.Problem {
	return &processor.Problem{
		Code: string(diag.AtlasTooMuch),
		Text: fmt.Sprintf("the images in %q have more than %d pixels in all", folder, maxPixels),
		Hint: "make several atlases of it: one rule for each folder below",
	}
}

// pageRoom says what a page has room for, and why.
func pageRoom(s *Settings) string {
	room := fmt.Sprintf("max_size is %d", s.MaxSize)
	if s.PowerOfTwo && s.MaxSize&(s.MaxSize-1) != 0 {
		room += fmt.Sprintf(", which as a power of two is %d", 1<<(bits.Len(uint(s.MaxSize))-1))
	}
	if s.Border > 0 {
		room += fmt.Sprintf(", border is %d", s.Border)
	}
	if s.Extrude > 0 {
		room += fmt.Sprintf(", extrude is %d", s.Extrude)
	}
	return room
}
