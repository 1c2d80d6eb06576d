package main

import (
	"image"
	"image/color"
	"math"
)

// Colour is an index into the palette of all pictures: 0 is transparent, 1 is ink; then come the ramps, five colours
// each from dark to light.
type Colour uint8

const (
	clear Colour = 0
	ink   Colour = 1
)

// ramp is a material under different light. Shadows are more violet and lights more yellow, which gives the pictures a
// common style.
type ramp uint8

const (
	stone ramp = iota
	steel
	ivory
	gold
	red
	blue
	green
	wood
	skin
	dusk
	ramps
)

const levels = 5

var hues = [ramps][levels]uint32{
	stone: {0x2a2438, 0x463f58, 0x6d6478, 0x9b919b, 0xcdc4bd},
	steel: {0x272a48, 0x43507d, 0x6c87aa, 0xa2bfcd, 0xe6f1ea},
	ivory: {0x50456a, 0x857b9c, 0xb9b0ba, 0xe3d9cd, 0xfffaea},
	gold:  {0x5b2c35, 0x96512f, 0xd18a36, 0xf4c255, 0xfff0a8},
	red:   {0x41162f, 0x7d1c3c, 0xb8323f, 0xe35a48, 0xf7936c},
	blue:  {0x211f4f, 0x2d3f8a, 0x3e6aba, 0x61a3dd, 0xa9dff2},
	green: {0x1a2c38, 0x265049, 0x447f4d, 0x87b153, 0xd3dc70},
	wood:  {0x2f1b2c, 0x573139, 0x86513f, 0xb67c51, 0xdeb07c},
	skin:  {0x5c2d3e, 0x995551, 0xd18b69, 0xf1bb90, 0xfde2be},
	dusk:  {0x2b1d47, 0x4d2f6d, 0x824686, 0xc0658c, 0xf09a8c},
}

// at returns the ramp's colour at a level, clamped to 0..4.
func (r ramp) at(level int) Colour {
	return Colour(2 + int(r)*levels + min(max(level, 0), levels-1))
}

// split is the inverse of at. ok is false for transparent and ink.
func (c Colour) split() (r ramp, level int, ok bool) {
	if c < 2 {
		return 0, 0, false
	}
	return ramp((c - 2) / levels), int(c-2) % levels, true
}

// colours is a sequence of palette entries for tones.
type colours []Colour

func (r ramp) colours() colours {
	return colours{r.at(0), r.at(1), r.at(2), r.at(3), r.at(4)}
}

// bayer is the 4x4 ordered dither matrix, as thresholds between 0 and 1.
var bayer = [4][4]float64{
	{0.5 / 16, 8.5 / 16, 2.5 / 16, 10.5 / 16},
	{12.5 / 16, 4.5 / 16, 14.5 / 16, 6.5 / 16},
	{3.5 / 16, 11.5 / 16, 1.5 / 16, 9.5 / 16},
	{15.5 / 16, 7.5 / 16, 13.5 / 16, 5.5 / 16},
}

// tone returns the colour for a tone from 0 (darkest) to len-1. dither is the share of each step that is dithered: 0
// gives flat bands, 1 a pattern everywhere.
func (c colours) tone(t float64, x, y int, dither float64) Colour {
	threshold := 0.5 + (bayer[y&3][x&3]-0.5)*dither
	i := int(math.Floor(t + threshold))
	return c[min(max(i, 0), len(c)-1)]
}

func (r ramp) tone(t float64, x, y int, dither float64) Colour {
	return r.colours().tone(t, x, y, dither)
}

// palette is the palette of the PNG files.
func palette() color.Palette {
	p := color.Palette{color.NRGBA{}, color.NRGBA{0x17, 0x12, 0x24, 0xff}}
	for _, five := range hues {
		for _, h := range five {
			p = append(p, color.NRGBA{uint8(h >> 16), uint8(h >> 8), uint8(h), 0xff})
		}
	}
	return p
}

// canvas is a picture in palette colours, rows from the top.
type canvas struct {
	w, h int
	pix  []Colour
}

func newCanvas(w, h int) *canvas { return &canvas{w, h, make([]Colour, w*h)} }

func (c *canvas) get(x, y int) Colour {
	if x < 0 || y < 0 || x >= c.w || y >= c.h {
		return clear
	}
	return c.pix[y*c.w+x]
}

func (c *canvas) set(x, y int, v Colour) {
	if x >= 0 && y >= 0 && x < c.w && y < c.h {
		c.pix[y*c.w+x] = v
	}
}

// each sets every pixel to the result of paint. A transparent result does not change the pixel.
func (c *canvas) each(paint func(x, y int) Colour) {
	for y := range c.h {
		for x := range c.w {
			if v := paint(x, y); v != clear {
				c.pix[y*c.w+x] = v
			}
		}
	}
}

// draw draws src on top, each pixel as a square of the given size.
func (c *canvas) draw(src *canvas, x0, y0, size int) {
	for y := range src.h * size {
		for x := range src.w * size {
			if v := src.pix[y/size*src.w+x/size]; v != clear {
				c.set(x0+x, y0+y, v)
			}
		}
	}
}

// outline inks every transparent pixel next to a painted one.
func (c *canvas) outline(with Colour) {
	before := &canvas{c.w, c.h, append([]Colour(nil), c.pix...)}
	c.each(func(x, y int) Colour {
		if before.get(x, y) != clear {
			return clear
		}
		if before.get(x-1, y) != clear || before.get(x+1, y) != clear ||
			before.get(x, y-1) != clear || before.get(x, y+1) != clear {
			return with
		}
		return clear
	})
}

func (c *canvas) image() *image.Paletted {
	m := image.NewPaletted(image.Rect(0, 0, c.w, c.h), palette())
	for i, v := range c.pix {
		m.Pix[i] = uint8(v)
	}
	return m
}
