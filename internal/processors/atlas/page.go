package atlas

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"runtime"

	table "github.com/kiln-pipeline/kiln/internal/codec/atlas"
	"github.com/kiln-pipeline/kiln/internal/pixel"
	"github.com/kiln-pipeline/kiln/internal/texture"
	"github.com/kiln-pipeline/kiln/processor"
)

// bytesAPixel is what a page's part allocates for each pixel of it: what the texture processor measured, and the page itself.
const bytesAPixel = 37 + 4

// usedMemory tells how much a part took, so that its next runs are weighed by it.
func usedMemory(job processor.Job, bytes int64) {
	if w, ok := job.(interface{ UsedMemory(bytes int64) }); ok {
		w.UsedMemory(bytes)
	}
}

// page is the part that draws a page and encodes it.
func (p proc) page(job processor.Job, name string) error {
	plans, err := newPlans(job)
	if err != nil {
		return err
	}
	made, err := job.Parts("layout")
	if err != nil {
		return err
	}
	data, err := readHidden(job, made[0], "page-"+name)
	if err != nil {
		return err
	}
	var s sheet
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	usedMemory(job, bytesAPixel*int64(s.W)*int64(s.H))
	img, err := draw(job, s)
	if err != nil {
		return err
	}
	out, err := encode(job, img, plans.s)
	if err != nil {
		return fmt.Errorf("page %s: %w", name, err)
	}
	return job.Write(processor.Output{Name: name, Type: texture.Type, Extension: plans.s.extension()}, out)
}

// encode makes the file of a page.
func encode(job processor.Job, img *pixel.Image, s *Settings) ([]byte, error) {
	if s.Container == "png" {
		if s.Premultiply {
			img = img.Premultiplied(false) // engines that load PNG blend its numbers as they are
		}
		var b bytes.Buffer
		err := png.Encode(&b, &image.NRGBA{Pix: img.Pix, Stride: 4 * img.Width, Rect: image.Rect(0, 0, img.Width, img.Height)})
		return b.Bytes(), err
	}
	plan, err := texture.NewPlan(texture.Images{Pictures: []*pixel.Picture{{Eight: img}}}, s.options())
	if err != nil {
		return nil, err
	}
	for _, w := range plan.Warnings() {
		job.Warn(w)
	}
	return plan.Encode(texture.Tools{Workers: runtime.GOMAXPROCS(0)})
}

// draw paints what is on a page.
func draw(job processor.Job, s sheet) (*pixel.Image, error) {
	page := pixel.New(s.W, s.H)
	var parts []string
	index := map[string]int{}
	for _, at := range s.Images {
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
	for _, at := range s.Images {
		i := index[at.Part]
		if files[i] == nil {
			if files[i], err = openPixels(job, made[i], s.Scale); err != nil {
				return nil, err
			}
		}
		src := pixel.New(at.W, at.H)
		if _, err := files[i].ReadAt(src.Pix, int64(at.Start)); err != nil && err != io.EOF {
			return nil, err
		}
		drawPart(page, turned(src, table.Turn(at.Turn)), at)
	}
	return page, nil
}

func openPixels(job processor.Job, made []processor.Product, scale int) (processor.File, error) {
	for _, p := range made {
		if p.Name == at("pixels", scale) {
			return job.OpenProduct(p)
		}
	}
	return nil, fmt.Errorf("part has not made pixels of scale %d", scale)
}

// turned is an image by 90 degrees.
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

// drawPart copies an image to its place, and repeats its edge pixels around it.
func drawPart(page, src *pixel.Image, at placed) {
	e := at.Extrude
	for y := -e; y < src.Height+e; y++ {
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
