// Package atlasview draws a page of an atlas as a picture that shows how well the page is packed: its content, the
// border and name of each frame, and the unused area.
//
// It reads no files. The same table and pixels give the same picture.
package atlasview

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"

	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"

	"github.com/kiln-pipeline/kiln/internal/media/codec/atlas"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
)

// The colours are muted, as in tools with a dark theme. Only unused area stands out, because that is what users look
// for.
var (
	ground = color.NRGBA{27, 30, 36, 255}
	bar    = color.NRGBA{40, 44, 52, 255}
	ink    = color.NRGBA{222, 226, 234, 255}
	faint  = color.NRGBA{146, 154, 168, 255}
	light  = color.NRGBA{76, 80, 88, 255} // the two colours of the checkerboard behind transparent pixels
	dark   = color.NRGBA{62, 66, 73, 255}
	waste  = color.NRGBA{110, 36, 46, 255}
	stripe = color.NRGBA{136, 48, 56, 255}
	edge   = color.NRGBA{104, 200, 255, 255}
	turned = color.NRGBA{255, 196, 84, 255}
	split  = color.NRGBA{120, 230, 130, 255}
	plate  = color.NRGBA{16, 18, 22, 190} // background of names
)

const (
	margin    = 12
	barHeight = 40
	textWidth = 7 // width of a letter and height of a line of the font, in pixels
	lineTall  = 13
	wanted    = 1400 // smaller pages are enlarged towards this size in pixels, by a whole factor
	mostZoom  = 8
)

// Stats are the counts for one page.
type Stats struct {
	Frames  int // frames on the page
	Places  int // rectangles with content; fewer than Frames if frames share an image
	Covered int // pixels with content
	Area    int // pixels of the page
}

// Fill returns the share of the page that is covered, 0 to 1.
func (s Stats) Fill() float64 { return float64(s.Covered) / float64(max(s.Area, 1)) }

// Measure returns the counts for a page.
func Measure(t *atlas.Table, page int) Stats {
	s := Stats{Area: t.Pages[page].Width * t.Pages[page].Height}
	for _, p := range placesOf(t, page) {
		s.Frames += len(p.names)
		s.Places++
		s.Covered += p.at.Dx() * p.at.Dy()
	}
	return s
}

// place is a rectangle of the page with the frames that lie there.
type place struct {
	at     image.Rectangle
	names  []string
	turned bool
	frame  *atlas.Frame // the first of the frames
}

func placesOf(t *atlas.Table, page int) []*place {
	var all []*place
	byRect := map[image.Rectangle]*place{}
	for i := range t.Frames {
		f := &t.Frames[i]
		if f.Page != page {
			continue
		}
		w, h := f.OnPage()
		at := image.Rect(f.X, f.Y, f.X+w, f.Y+h)
		p := byRect[at]
		if p == nil {
			p = &place{at: at, turned: f.Turn != atlas.Upright, frame: f}
			byRect[at] = p
			all = append(all, p)
		}
		p.names = append(p.names, f.Name)
	}
	return all
}

// Draw draws a page. If pixels is nil, the frames are drawn empty.
func Draw(t *atlas.Table, page int, pixels *pixel.Image) *image.NRGBA {
	p := t.Pages[page]
	zoom := max(1, min(mostZoom, wanted/max(p.Width, p.Height, 1)))
	c := &canvas{zoom: zoom, origin: image.Pt(margin, barHeight+margin), page: image.Rect(0, 0, p.Width, p.Height)}
	title, detail := c.titles(t, page)
	width := max(p.Width*zoom, textWidth*max(len(title), len(detail))) + 2*margin
	c.img = image.NewNRGBA(image.Rect(0, 0, width, p.Height*zoom+barHeight+2*margin))
	draw.Draw(c.img, c.img.Rect, image.NewUniform(ground), image.Point{}, draw.Src)
	draw.Draw(c.img, image.Rect(0, 0, width, barHeight), image.NewUniform(bar), image.Point{}, draw.Src)
	c.text(margin, 5, title, ink)
	c.text(margin, 5+lineTall+2, detail, faint)
	places := placesOf(t, page)
	c.waste(p.Width, p.Height)
	for _, pl := range places {
		c.content(pl, pixels)
	}
	for _, pl := range places {
		c.outline(pl)
	}
	for _, pl := range places {
		c.name(pl)
	}
	return c.img
}

// canvas is a picture being drawn: the enlarged page below a bar with its title.
type canvas struct {
	img    *image.NRGBA
	zoom   int
	origin image.Point
	page   image.Rectangle
}

func (c *canvas) titles(t *atlas.Table, page int) (title, detail string) {
	p, s := t.Pages[page], Measure(t, page)
	title = fmt.Sprintf("%s   %d x %d   %.1f %% filled", p.File, p.Width, p.Height, 100*s.Fill())
	detail = fmt.Sprintf("page %d of %d   %d frames in %d places   %.1f %% wasted (red)", page+1, len(t.Pages), s.Frames, s.Places, 100*(1-s.Fill()))
	if c.zoom > 1 {
		detail += fmt.Sprintf("   drawn %d times as large", c.zoom)
	}
	return title, detail
}

// rect converts a rectangle of the page to canvas coordinates.
func (c *canvas) rect(r image.Rectangle) image.Rectangle {
	return image.Rectangle{r.Min.Mul(c.zoom), r.Max.Mul(c.zoom)}.Add(c.origin)
}

// waste fills the page with slanted stripes. Frames are drawn over them.
func (c *canvas) waste(w, h int) {
	r := c.rect(image.Rect(0, 0, w, h))
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			if (x+y)%12 < 5 {
				c.img.SetNRGBA(x, y, stripe)
			} else {
				c.img.SetNRGBA(x, y, waste)
			}
		}
	}
}

// content draws the pixels of a frame, over a checkerboard where they are transparent.
func (c *canvas) content(p *place, pixels *pixel.Image) {
	r := c.rect(p.at)
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			back := light
			if (x/8+y/8)%2 == 0 {
				back = dark
			}
			if pixels != nil {
				px, py := (x-c.origin.X)/c.zoom, (y-c.origin.Y)/c.zoom
				back = over([4]byte(pixels.Pix[4*(py*pixels.Width+px):]), back)
			}
			c.img.SetNRGBA(x, y, back)
		}
	}
}

// over blends a colour with straight alpha over an opaque colour.
func over(top [4]byte, back color.NRGBA) color.NRGBA {
	a := int(top[3])
	mix := func(t, b uint8) uint8 { return uint8((int(t)*a + int(b)*(255-a) + 127) / 255) }
	return color.NRGBA{mix(top[0], back.R), mix(top[1], back.G), mix(top[2], back.B), 255}
}

// outline draws the border of a frame, and the split lines of a nine-patch.
func (c *canvas) outline(p *place) {
	r, line := c.rect(p.at), edge
	if p.turned {
		line = turned
	}
	// Without enlargement the line covers the edge pixels of the frame. It is then one pixel wide and half transparent.
	if c.zoom == 1 {
		line.A = 150
	}
	c.box(r, line)
	if patch := p.frame.Patch; patch != nil && !p.turned {
		s := patch.Split
		for _, x := range []int{s[0], p.frame.W - s[1]} {
			if x > 0 && x < p.frame.W {
				c.dashes(image.Rect(p.at.Min.X+x, p.at.Min.Y, p.at.Min.X+x, p.at.Max.Y))
			}
		}
		for _, y := range []int{s[2], p.frame.H - s[3]} {
			if y > 0 && y < p.frame.H {
				c.dashes(image.Rect(p.at.Min.X, p.at.Min.Y+y, p.at.Max.X, p.at.Min.Y+y))
			}
		}
	}
}

func (c *canvas) box(r image.Rectangle, line color.NRGBA) {
	for x := r.Min.X; x < r.Max.X; x++ {
		c.dot(x, r.Min.Y, line)
		c.dot(x, r.Max.Y-1, line)
	}
	for y := r.Min.Y + 1; y < r.Max.Y-1; y++ {
		c.dot(r.Min.X, y, line)
		c.dot(r.Max.X-1, y, line)
	}
}

// dashes draws a dashed line. r is the line in page coordinates; its width or height is 0.
func (c *canvas) dashes(r image.Rectangle) {
	r = c.rect(r)
	for x := r.Min.X; x < max(r.Max.X, r.Min.X+1); x++ {
		for y := r.Min.Y; y < max(r.Max.Y, r.Min.Y+1); y++ {
			if (x+y)%6 < 3 {
				c.dot(x, y, split)
			}
		}
	}
}

func (c *canvas) dot(x, y int, line color.NRGBA) {
	c.img.SetNRGBA(x, y, over([4]byte{line.R, line.G, line.B, line.A}, c.img.NRGBAAt(x, y)))
}

// name writes the name of a frame into the frame. It cuts the name to fit, and writes nothing if fewer than three
// letters fit.
func (c *canvas) name(p *place) {
	r := c.rect(p.at)
	text := p.names[0]
	if n := len(p.names) - 1; n > 0 {
		text += fmt.Sprintf(" +%d", n)
	}
	room := (r.Dx() - 6) / textWidth
	if r.Dy() < lineTall+4 || room < 3 {
		return
	}
	if letters := []rune(text); len(letters) > room {
		text = string(letters[:room-1]) + "~"
	}
	back := image.Rect(r.Min.X+1, r.Min.Y+1, r.Min.X+5+textWidth*len([]rune(text)), r.Min.Y+2+lineTall)
	for y := back.Min.Y; y < back.Max.Y; y++ {
		for x := back.Min.X; x < back.Max.X; x++ {
			c.dot(x, y, plate)
		}
	}
	c.text(r.Min.X+3, r.Min.Y+1, text, ink)
}

// text writes a line of text with its top left corner at x, y.
func (c *canvas) text(x, y int, s string, ink color.NRGBA) {
	d := font.Drawer{Dst: c.img, Src: image.NewUniform(ink), Face: basicfont.Face7x13, Dot: fixed.P(x, y+basicfont.Face7x13.Ascent)}
	d.DrawString(s)
}
