package main

import "math"

// icons are the pictures of the interface, with transparent borders that the atlas trims.
func icons() map[string]*canvas {
	return map[string]*canvas{
		"heart":          heart(1),
		"heart_half":     heart(0.5),
		"heart_empty":    heart(0),
		"coin":           coin(),
		"gem":            gem(),
		"key":            key(),
		"potion":         potion(),
		"scroll":         scroll(),
		"sword":          swordIcon(),
		"shield":         shieldIcon(),
		"button":         button(false),
		"button_pressed": button(true),
		"digits":         digits(),
	}
}

// heart is filled from the left.
func heart(filled float64) *canvas {
	c := newCanvas(32, 30)
	s := union(circle(10.5, 11, 6.8), circle(21.5, 11, 6.8), polygon(4.4, 14, 10, 10, 16, 8, 22, 10, 27.6, 14, 16, 26.5))
	c.solid(s, material{ramp: dusk, base: 0.6, gain: -0.9, bevel: 5, edge: true})
	half := box(-1, -1, 32*filled, 40, 0)
	if filled > 0 {
		c.solid(intersect(s, half), material{ramp: red, base: 2.3, gain: 1.5, bevel: 9})
		c.flat(intersect(ellipse(9.5, 8.7, 2.8, 1.7).turn(9.5, 8.7, -0.6), half), skin.at(4))
	}
	c.outline(ink)
	return c
}

func coin() *canvas {
	c := newCanvas(24, 24)
	c.solid(circle(12, 12, 9), material{ramp: gold, base: 2.2, gain: 1.5, bevel: 3, edge: true})
	c.flat(circle(12, 12, 6.2), gold.at(1))
	c.solid(circle(12, 12, 5.5), material{ramp: gold, base: 2.5, gain: -1.1, bevel: 3})
	c.solid(box(10.5, 8, 13.5, 16, 1), material{ramp: gold, base: 3.2, gain: 1.2, bevel: 1.5})
	c.outline(ink)
	return c
}

// gem is drawn by hand: each facet has one tone.
func gem() *canvas {
	c := newCanvas(28, 28)
	facet := func(level int, xy ...float64) { c.flat(polygon(xy...), blue.at(level)) }
	c.flat(polygon(8, 4, 20, 4, 26, 11, 14, 25, 2, 11).grow(0.7), blue.at(0))
	facet(4, 8, 4, 14, 4, 9, 11, 2, 11)
	facet(3, 14, 4, 20, 4, 26, 11, 19, 11)
	facet(4, 14, 4, 19, 11, 9, 11)
	facet(3, 2, 11, 9, 11, 14, 25)
	facet(2, 9, 11, 19, 11, 14, 25)
	facet(1, 19, 11, 26, 11, 14, 25)
	facet(3, 9.5, 11, 13, 11, 12, 17)
	c.outline(ink)
	return c
}

func key() *canvas {
	c := newCanvas(36, 20)
	brass := material{ramp: gold, base: 2.3, gain: 1.5, shine: 0.6, bevel: 3, edge: true}
	bit := union(box(24, 9, 27, 16, 0), box(29, 9, 32, 15, 0))
	bow := subtract(union(circle(9, 6.8, 4), circle(6.2, 11, 4), circle(11.8, 11, 4)), circle(9, 9.8, 2.3))
	c.solid(union(box(13, 7.5, 33, 11, 1), bit), brass)
	c.solid(bow, brass)
	c.outline(ink)
	return c
}

func potion() *canvas {
	c := newCanvas(28, 34)
	glass := union(circle(14, 21, 9.4), box(10.5, 6, 17.5, 16, 1))
	c.solid(glass, material{ramp: steel, base: 2.9, gain: 1.2, bevel: 4, edge: true})
	wine := intersect(circle(14, 21, 7.6), box(0, 18, 30, 34, 0))
	c.fill(wine, func(x, y int) Colour {
		d := math.Hypot(float64(x)-11, float64(y)-19) / 8
		return colours{red.at(3), red.at(2), dusk.at(2), dusk.at(1)}.tone(d*2.2, x, y, 0.5)
	})
	c.flat(intersect(ellipse(14, 18.4, 7.3, 1.2), circle(14, 21, 8)), red.at(4))
	for _, b := range [][3]float64{{16.5, 24.5, 1.1}, {12, 26, 0.8}, {18.5, 21.5, 0.8}} {
		c.flat(circle(b[0], b[1], b[2]), red.at(4))
	}
	c.flat(ellipse(8.8, 18, 1.2, 3.4).turn(8.8, 18, 0.45), steel.at(4))
	c.solid(box(9, 8.5, 19, 11, 1), material{ramp: gold, base: 2.5, gain: 1.2, bevel: 1.5, edge: true})
	c.solid(box(11, 3, 17, 8, 1), material{ramp: wood, base: 2.4, gain: 1.3, bevel: 2, edge: true})
	c.outline(ink)
	return c
}

func scroll() *canvas {
	c := newCanvas(32, 32)
	c.flat(box(7, 6, 25, 27, 0).grow(1), skin.at(0))
	c.fill(box(7, 6, 25, 27, 0), func(x, y int) Colour {
		return skin.tone(3.6-0.8*math.Abs(float64(y)-15)/10-0.5*float64(x-7)/18, x, y, 0.4)
	})
	for i, long := range []float64{13, 11, 13, 8} {
		y := 11.0 + 3*float64(i)
		c.flat(box(9.5, y, 9.5+long, y+1, 0), skin.at(1))
	}
	roll := material{ramp: skin, base: 2.8, gain: 1.4, bevel: 2.5, edge: true}
	c.solid(box(4, 3, 28, 8, 2.4), roll)
	c.solid(box(4, 24, 28, 29, 2.4), roll)
	c.solid(circle(21, 22.5, 3.2), material{ramp: red, base: 2.2, gain: 1.4, bevel: 3, edge: true})
	c.outline(ink)
	return c
}

func swordIcon() *canvas {
	c := newCanvas(34, 34)
	tilt := func(s shape) shape { return s.turn(17, 17, math.Pi/4) }
	left := tilt(polygon(17, -3, 17, 24, 14, 24, 14, 1))
	right := tilt(polygon(17, -3, 20, 1, 20, 24, 17, 24))
	c.flat(union(left, right).grow(1), steel.at(0))
	c.flat(left, steel.at(4))
	c.flat(right, steel.at(2))
	c.flat(tilt(box(16.6, 4, 17.4, 24, 0)), steel.at(3))
	c.solid(tilt(capsule(17, 26, 1.8, 17, 33, 1.6)), material{ramp: wood, base: 2, gain: 1.4, bevel: 2, edge: true})
	brass := material{ramp: gold, base: 2.5, gain: 1.5, bevel: 2, edge: true}
	c.solid(tilt(box(9.5, 23, 24.5, 26, 1.4)), brass)
	c.solid(tilt(circle(17, 35.5, 2.5)), brass)
	c.outline(ink)
	return c
}

func shieldIcon() *canvas {
	c := newCanvas(32, 34)
	s := union(box(4.5, 4, 27.5, 14, 2), polygon(4.5, 12, 27.5, 12, 26, 20, 22, 26, 16, 31, 10, 26, 6, 20))
	c.solid(s, material{ramp: gold, base: 2.4, gain: 1.5, bevel: 3, edge: true})
	field := s.grow(-2.6)
	c.flat(field.grow(0.8), gold.at(0))
	c.solid(intersect(field, box(0, 0, 16, 40, 0)), material{ramp: red, base: 2.4, gain: 1, bevel: 8, dither: 0.2})
	c.solid(intersect(field, box(16, 0, 40, 40, 0)), material{ramp: blue, base: 2, gain: 1, bevel: 8, dither: 0.2})
	c.solid(sun(16, 15.5, 3.4, 8.5, 8), material{ramp: gold, base: 3.1, gain: 1.2, bevel: 3})
	c.outline(ink)
	return c
}

// button has corners of eight pixels that do not change when a game stretches it.
func button(pressed bool) *canvas {
	c := newCanvas(64, 26)
	down := 0.0
	if pressed {
		down = 2
	} else {
		c.flat(box(2, 8, 62, 24, 4), wood.at(0))
	}
	plank := box(2, 2+down, 62, 22+down, 4)
	c.solid(plank, material{ramp: gold, base: 2.3, gain: 1.5, bevel: 3})
	inner := plank.grow(-2.4)
	c.flat(inner.grow(0.6), wood.at(0))
	c.fill(inner, func(x, y int) Colour {
		t := 2.6 - 1.2*(float64(y)-down)/22
		if pressed {
			t = 1.9 - 0.5*(float64(y)-down)/22
		}
		t += 0.8 * (clouds(float64(x)/20, float64(y)/2.5, 16, 21) - 0.5)
		return wood.tone(t, x, y, 0.3)
	})
	for _, x := range []float64{7.5, 56.5} {
		c.flat(circle(x, 12+down, 1.5), gold.at(3))
	}
	c.outline(ink)
	return c
}

// numerals are five by seven pixels. A row is five bits; the left pixel is the highest bit.
var numerals = [10][7]uint8{
	{0x0E, 0x11, 0x13, 0x15, 0x19, 0x11, 0x0E},
	{0x04, 0x0C, 0x04, 0x04, 0x04, 0x04, 0x0E},
	{0x0E, 0x11, 0x01, 0x02, 0x04, 0x08, 0x1F},
	{0x1F, 0x02, 0x04, 0x02, 0x01, 0x11, 0x0E},
	{0x02, 0x06, 0x0A, 0x12, 0x1F, 0x02, 0x02},
	{0x1F, 0x10, 0x1E, 0x01, 0x01, 0x11, 0x0E},
	{0x06, 0x08, 0x10, 0x1E, 0x11, 0x11, 0x0E},
	{0x1F, 0x01, 0x02, 0x04, 0x08, 0x08, 0x08},
	{0x0E, 0x11, 0x11, 0x0E, 0x11, 0x11, 0x0E},
	{0x0E, 0x11, 0x11, 0x0F, 0x01, 0x02, 0x0C},
}

// digits is a strip of ten digits for the score, 12 by 18 pixels each, drawn with double pixels.
func digits() *canvas {
	c := newCanvas(120, 18)
	c.each(func(x, y int) Colour {
		column, row := (x%12-1)/2, (y-2)/2
		if x%12 < 1 || x%12 > 10 || y < 2 || row > 6 || numerals[x/12][row]>>(4-column)&1 == 0 {
			return clear
		}
		return gold.at(4 - (row+1)/3)
	})
	c.outline(ink)
	return c
}
