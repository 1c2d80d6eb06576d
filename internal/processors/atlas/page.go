package atlas

import (
	"encoding/binary"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"

	table "github.com/kiln-pipeline/kiln/internal/media/codec/atlas"
	"github.com/kiln-pipeline/kiln/internal/media/codec/png"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/internal/media/texture"
	"github.com/kiln-pipeline/kiln/processor"
)

// bytesAPixel is what a page's part takes for each pixel: what its texture takes with all that can be done to it, the file, and the page.
const bytesAPixel = 37 + 4

// bandBytesAPixel is for a band, itself and as a product; blocksBytes is for each byte of an encoded one.
const (
	bandBytesAPixel = 8
	blocksBytes     = 16
)

// needMemory waits until this much memory is available for a part, and reports it as used, so that later runs are
// scheduled by it. A part that holds memory while it waits for other parts keeps it from them, so it should call
// needMemory after it has asked for them.
func needMemory(job processor.Job, bytes int64) error {
	job.UsedMemory(bytes)
	return job.NeedMemory(bytes)
}

// band is the product "band-NAME/N" of the layout: what is where in some rows of a page.
type band struct {
	Scale   int
	W, Rows int
	Images  []placed // Y counts from the first row of the band, and may be above it
}

// A band has about bandImages, so that an edit of one image draws only these again. If bands had few rows, most images
// would be in several bands, so the number is a compromise; and a band has at most bandPixels.
const (
	bandImages = 64
	bandRows   = 2 * texture.RowsOf
	bandPixels = 4 << 20
)

func bandName(page string, n int) string { return "band-" + page + "/" + strconv.Itoa(n) }

// bands returns the bands of a page, from the top.
func (s *sheet) bands(scale int) []band {
	rows := bandRows
	for rows < s.H && len(s.Images)*rows < bandImages/2*s.H && 2*rows*s.W <= bandPixels {
		rows *= 2
	}
	all := make([]band, (s.H+rows-1)/rows)
	for i := range all {
		all[i] = band{Scale: scale, W: s.W, Rows: min(rows, s.H-i*rows)}
	}
	for _, at := range s.Images {
		h := at.H
		if table.Turn(at.Turn) != table.Upright {
			h = at.W
		}
		y := at.Y
		for i := (y - at.Extrude) / rows; i*rows < y+h+at.Extrude; i++ {
			at.Y = y - i*rows
			all[i].Images = append(all[i].Images, at)
		}
	}
	return all
}

// band is the part that draws a band. It makes its pixels, in the form of a request.
func (p proc) band(job processor.Job, name string) error {
	made, err := job.Parts("layout")
	if err != nil {
		return err
	}
	img, err := drawBand(job, made[0], "band-"+name, bandBytesAPixel)
	if err != nil {
		return err
	}
	data := make([]byte, requestHeader, requestHeader+len(img.Pix))
	binary.LittleEndian.PutUint32(data, uint32(img.Width))
	binary.LittleEndian.PutUint32(data[4:], uint32(img.Height))
	return writeHidden(job, "pixels", append(data, img.Pix...))
}

// blocks is the part that encodes a band in a format that has blocks.
func (p proc) blocks(job processor.Job, name string) error {
	plans, err := newPlans(job)
	if err != nil {
		return err
	}
	format, band, _ := strings.Cut(name, "/")
	made, err := job.Parts("band:" + band)
	if err != nil {
		return err
	}
	img, err := readBand(job, made[0])
	if err != nil {
		return err
	}
	data, err := texture.EncodeRows(img, format, plans.s.options(), texture.Tools{Workers: runtime.GOMAXPROCS(0)})
	if err != nil {
		return err
	}
	return writeHidden(job, "blocks", data)
}

func readBand(job processor.Job, made []processor.Product) (*pixel.Image, error) {
	f, err := openHidden(job, made, "pixels")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := needMemory(job, blocksBytes*f.Size()); err != nil {
		return nil, err
	}
	return readPixels(f)
}

// page is the part that joins the bands of a page, and encodes it.
func (p proc) page(job processor.Job, name string) error {
	plans, err := newPlans(job)
	if err != nil {
		return err
	}
	var s sheet
	layout, err := readPart(job, "layout", "page-"+name, &s)
	if err != nil {
		return err
	}
	var img *pixel.Image
	if s.Bands == 1 {
		img, err = drawBand(job, layout, bandName(name, 0), bytesAPixel)
	} else {
		img, err = joinBands(job, name, s)
	}
	if err != nil {
		return err
	}
	out, err := encode(job, img, plans.s, name, s.Bands)
	if err != nil {
		return fmt.Errorf("page %s: %w", name, err)
	}
	facts := map[string]string{"page.name": name, "page.width": strconv.Itoa(s.W), "page.height": strconv.Itoa(s.H)}
	return job.Write(processor.Output{Name: name, Type: texture.Type, Extension: plans.s.extension(), Facts: facts}, out)
}

// askBands has a part done for each band.
func askBands(job processor.Job, part, name string, bands int) ([][]processor.Product, error) {
	parts := make([]string, bands)
	for i := range parts {
		parts[i] = fmt.Sprintf("%s%s/%d", part, name, i)
	}
	return job.Parts(parts...)
}

// joinBands joins the pixels of a page.
func joinBands(job processor.Job, name string, s sheet) (*pixel.Image, error) {
	made, err := askBands(job, "band:", name, s.Bands)
	if err != nil {
		return nil, err
	}
	if err := needMemory(job, bytesAPixel*int64(s.W)*int64(s.H)); err != nil {
		return nil, err
	}
	img := pixel.New(s.W, s.H)
	rest := img.Pix
	for i := range made {
		f, err := openHidden(job, made[i], "pixels")
		if err != nil {
			return nil, err
		}
		n, err := f.ReadAt(rest[:min(int64(len(rest)), f.Size()-requestHeader)], requestHeader) // no copy of its own: a page may have 64 MB
		f.Close()
		if err != nil && err != io.EOF {
			return nil, err
		}
		rest = rest[n:]
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("the bands of page %s are %d bytes short", name, len(rest))
	}
	return img, nil
}

// joinBlocks joins the blocks of a page.
func joinBlocks(job processor.Job, name, format string, bands int) ([]byte, error) {
	made, err := askBands(job, "blocks:"+format+"/", name, bands)
	if err != nil {
		return nil, err
	}
	var all []byte
	for i := range made {
		data, err := readHidden(job, made[i], "blocks")
		if err != nil {
			return nil, err
		}
		all = append(all, data...)
	}
	return all, nil
}

// encode makes the file of a page. If it has several bands, their parts encode them if the options allow that.
func encode(job processor.Job, img *pixel.Image, s *Settings, name string, bands int) ([]byte, error) {
	if s.Container == "png" {
		if s.Premultiply {
			img = img.Premultiplied(false) // engines that load PNG use its values unchanged
		}
		return png.Encode(img.Pix, img.Width, img.Height)
	}
	plan, err := texture.NewPlan(texture.Images{Pictures: []*pixel.Picture{{Eight: img}}}, s.options())
	if err != nil {
		return nil, err
	}
	for _, w := range plan.Warnings() {
		job.Warn(w)
	}
	tools := texture.Tools{Workers: runtime.GOMAXPROCS(0)}
	if bands > 1 && plan.ByRows() {
		if tools.First, err = joinBlocks(job, name, plan.Format, bands); err != nil {
			return nil, err
		}
	}
	pieces, err := plan.Encode(tools)
	return slices.Concat(pieces...), err
}

// drawBand draws a band of the layout. It reserves this much memory for each of its pixels until the part ends.
func drawBand(job processor.Job, layout []processor.Product, name string, bytesAPixel int64) (*pixel.Image, error) {
	var b band
	if err := readJSON(job, layout, name, &b); err != nil {
		return nil, err
	}
	var parts []string
	index := map[string]int{}
	for _, at := range b.Images {
		if _, ok := index[at.Part]; !ok {
			index[at.Part] = len(parts)
			parts = append(parts, at.Part)
		}
	}
	made, err := job.Parts(parts...)
	if err != nil {
		return nil, err
	}
	files := make([]processor.File, len(parts))
	defer func() {
		for _, f := range files {
			if f != nil {
				f.Close()
			}
		}
	}()
	if err := needMemory(job, bytesAPixel*int64(b.W)*int64(b.Rows)); err != nil {
		return nil, err
	}
	img := pixel.New(b.W, b.Rows)
	for _, image := range b.Images {
		i := index[image.Part]
		if files[i] == nil {
			if files[i], err = openHidden(job, made[i], at("pixels", b.Scale)); err != nil {
				return nil, err
			}
		}
		src := pixel.New(image.W, image.H)
		if _, err := files[i].ReadAt(src.Pix, int64(image.Start)); err != nil && err != io.EOF {
			return nil, err
		}
		drawPart(img, turned(src, table.Turn(image.Turn)), image)
	}
	return img, nil
}

// turned rotates an image by 90 degrees.
func turned(src *pixel.Image, turn table.Turn) *pixel.Image {
	if turn == table.Upright {
		return src
	}
	out := pixel.New(src.Height, src.Width)
	for y := range src.Height {
		for x := range src.Width {
			toX, toY := src.Height-1-y, x // right: the top becomes the right side
			if turn == table.Left {
				toX, toY = y, src.Width-1-x
			}
			copy(out.Pix[4*(toY*out.Width+toX):][:4], src.Pix[4*(y*src.Width+x):])
		}
	}
	return out
}

// drawPart copies the part of an image that is in the band to its place, and repeats its edge pixels around
// it.
func drawPart(page, src *pixel.Image, at placed) {
	e := at.Extrude
	for y := max(-e, -at.Y); y < min(src.Height+e, page.Height-at.Y); y++ {
		row := src.Pix[clamp(y, src.Height)*4*src.Width:][:4*src.Width]
		to := page.Pix[4*((at.Y+y)*page.Width+at.X-e):]
		for x := range e {
			copy(to[4*x:], row[:4])
			copy(to[4*(e+src.Width+x):], row[len(row)-4:])
		}
		copy(to[4*e:], row)
	}
}

// clamp moves i into [0, n).
func clamp(i, n int) int { return max(0, min(i, n-1)) }
