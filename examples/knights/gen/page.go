package main

import "math"

// region is one of the 16 squares of the texture page that knight and paladin share.
type region int

const (
	plateSteel region = iota
	plateIvory
	trimGold
	leather
	clothRed
	clothBlue
	mail
	timber
	helmKnight // wraps around the head, its front in the middle
	helmPaladin
	shieldKnight
	shieldPaladin
	chestKnight // wraps around the chest
	chestPaladin
	blade
	plume
)

const (
	cell     = 64
	pageSize = 4 * cell
)

// texturePage paints the page. Tones stay near the middle of each ramp, so that light can change them in both
// directions.
func texturePage() *canvas {
	page := newCanvas(pageSize, pageSize)
	for r, paint := range map[region]func(*canvas){
		plateSteel:    func(c *canvas) { paintPlate(c, steel) },
		plateIvory:    func(c *canvas) { paintPlate(c, ivory) },
		trimGold:      func(c *canvas) { paintPlain(c, gold, 2.4, 0.5) },
		leather:       func(c *canvas) { paintPlain(c, wood, 1.6, 0.8) },
		clothRed:      func(c *canvas) { paintCloth(c, red) },
		clothBlue:     func(c *canvas) { paintCloth(c, blue) },
		mail:          paintMail,
		timber:        paintTimber,
		helmKnight:    paintKnightHelm,
		helmPaladin:   paintPaladinHelm,
		shieldKnight:  paintKnightShield,
		shieldPaladin: paintPaladinShield,
		chestKnight:   func(c *canvas) { paintChest(c, steel, red) },
		chestPaladin:  func(c *canvas) { paintChest(c, ivory, blue) },
		blade:         paintBlade,
		plume:         paintPlume,
	} {
		square := newCanvas(cell, cell)
		paint(square)
		page.draw(square, int(r)%4*cell, int(r)/4*cell, 1)
	}
	return page
}

func paintPlain(c *canvas, r ramp, base, rough float64) {
	c.each(func(x, y int) Colour {
		n := clouds(float64(x)/16, float64(y)/16, 4, int(r))
		return r.tone(base+rough*(n-0.5)*2, x, y, 0.4)
	})
}

// paintPlate is a riveted metal plate with a bright upper and a dark lower rim.
func paintPlate(c *canvas, r ramp) {
	c.each(func(x, y int) Colour {
		brushed := noise(float64(x)/3, float64(y)/24, 64, 7) - 0.5
		t := 2.55 - 0.5*float64(y)/cell + 0.35*brushed
		switch {
		case y < 4:
			t = 3.6
		case y == 4 || y >= 60:
			t = 1.1
		}
		return r.tone(t, x, y, 0.25)
	})
	for x := 8; x < cell; x += 16 {
		c.flat(circle(float64(x), 10, 2.2), r.at(1))
		c.flat(circle(float64(x)-0.5, 9.5, 1.4), r.at(4))
	}
}

// paintCloth hangs in folds and ends in a golden hem.
func paintCloth(c *canvas, r ramp) {
	c.each(func(x, y int) Colour {
		sway := 3 * math.Sin(float64(y)/14)
		t := 2 + 0.75*math.Sin((float64(x)+sway)*2*math.Pi/16)
		if y >= 54 && y < 60 {
			return gold.tone(t+0.5, x, y, 0.4)
		}
		if y == 53 || y == 60 {
			return r.at(0)
		}
		return r.tone(t, x, y, 0.3)
	})
}

func paintMail(c *canvas) {
	c.each(func(x, y int) Colour {
		u, v := float64(x%4)-1.5, float64((y+x/4%2*2)%4)-1.5
		return steel.tone(1.9-0.45*u*v-0.2*v, x, y, 0)
	})
}

func paintTimber(c *canvas) {
	c.each(func(x, y int) Colour {
		grain := clouds(float64(x)/3, float64(y)/32, 32, 3)
		return wood.tone(1.2+2*grain, x, y, 0.3)
	})
}

// paintKnightHelm is a great helm: eye slit, breaths on the right side, brass cross.
func paintKnightHelm(c *canvas) {
	paintPlate(c, steel)
	brass := material{ramp: gold, base: 2.6, gain: 1.2, bevel: 2}
	c.solid(union(box(29.5, 14, 34.5, 60, 0), box(14, 24, 50, 33, 1)), brass)
	c.flat(box(16, 26, 48, 31, 0), ink)
	c.solid(box(30.5, 24, 33.5, 33, 0), brass)
	for y := 38; y <= 56; y += 6 {
		for x := 38; x <= 46; x += 4 {
			c.flat(box(float64(x), float64(y), float64(x)+2, float64(y)+3, 0), ink)
		}
	}
}

// paintPaladinHelm is an open helm with a golden brow and a face that has seen a few dragons.
func paintPaladinHelm(c *canvas) {
	paintPlate(c, ivory)
	brow := material{ramp: gold, base: 2.7, gain: 1.2, bevel: 2}
	opening := box(18, 20, 46, 70, 8)
	c.solid(opening.grow(3), brow)
	c.fill(opening, func(x, y int) Colour {
		side := math.Abs(float64(x)-31.5) / 14
		return skin.tone(2.9-1.3*side*side-1.2*max(0, float64(27-y)/7), x, y, 0.4)
	})
	for _, x := range []float64{24, 36} {
		c.flat(box(x-1, 27, x+5, 29, 0), gold.at(1))
		c.flat(box(x, 30, x+4, 35, 0), ivory.at(3))
		c.flat(box(x+1, 30, x+3, 35, 0), blue.at(1))
	}
	beard := union(box(19, 46, 45, 72, 7), box(24, 42, 40, 48, 2))
	c.solid(beard, material{ramp: gold, base: 2.2, gain: 1.2, bevel: 5, dither: 0.5})
	c.flat(box(28, 46, 36, 48, 0), red.at(0))
	c.solid(box(30, 14, 34, 42, 1), brow)
}

func paintKnightShield(c *canvas) {
	c.each(func(x, y int) Colour {
		field := red
		if (x < 32) != (y < 30) {
			field = steel
		}
		return field.tone(2.1+0.6*clouds(float64(x)/16, float64(y)/16, 4, 5), x, y, 0.3)
	})
	sword := union(box(30, 8, 34, 50, 0), box(22, 40, 42, 44, 1), circle(32, 54, 3.5))
	c.solid(sword, material{ramp: gold, base: 2.8, gain: 1.3, bevel: 2, edge: true})
}

func paintPaladinShield(c *canvas) {
	c.each(func(x, y int) Colour {
		d := math.Hypot(float64(x)-31.5, float64(y)-31.5)
		if d > 26 {
			return gold.tone(2.6-0.8*math.Abs(d-29)/3, x, y, 0.4)
		}
		return blue.tone(1.9-0.4*d/26, x, y, 0.3)
	})
	c.solid(sun(32, 32, 9, 23, 8), material{ramp: gold, base: 2.9, gain: 1.1, bevel: 4, dither: 0.4, edge: true})
}

// sun is a disc with pointed rays.
func sun(cx, cy, inner, outer float64, rays int) shape {
	parts := []shape{circle(cx, cy, inner)}
	for i := range rays {
		long := outer
		if i%2 == 1 {
			long = inner + (outer-inner)*0.6
		}
		ray := polygon(cx-inner*0.4, cy-inner*0.7, cx, cy-long, cx+inner*0.4, cy-inner*0.7)
		parts = append(parts, ray.turn(cx, cy, 2*math.Pi*float64(i)/float64(rays)))
	}
	return union(parts...)
}

// paintChest is a breastplate under a tabard that shows front and back.
func paintChest(c *canvas, plate, cloth ramp) {
	paintPlate(c, plate)
	tabard := union(box(21, -4, 43, 70, 0), box(-10, -4, 10, 70, 0), box(54, -4, 74, 70, 0))
	c.flat(tabard.grow(1.5), gold.at(2))
	c.fill(tabard, func(x, y int) Colour {
		return cloth.tone(2.1+0.5*math.Sin(float64(x)*0.8), x, y, 0.3)
	})
	// The square is stretched to three times its width around the chest.
	star := sun(0, 0, 4.5, 11, 8)
	emblem := shape(func(x, y float64) float64 { return star((x-32)*2.4, y-27) })
	if cloth == red {
		emblem = union(box(31, 15, 33, 40, 0), box(28, 21, 36, 25, 0))
	}
	c.flat(emblem, gold.at(3))
	c.each(func(x, y int) Colour {
		switch {
		case y >= 50 && y < 58:
			return wood.tone(2.2-0.4*math.Abs(float64(y)-53), x, y, 0.3)
		case y == 49 || y == 58:
			return wood.at(0)
		}
		return clear
	})
	c.solid(box(27, 49, 37, 59, 1), material{ramp: gold, base: 2.7, gain: 1.2, bevel: 2})
	c.flat(box(30, 52, 34, 56, 0), wood.at(1))
}

func paintBlade(c *canvas) {
	c.each(func(x, y int) Colour {
		t := 3.3
		switch {
		case x >= 26 && x < 38:
			t = 1.9 // the fuller
		case x >= 32:
			t = 2.6
		}
		return steel.tone(t+0.3*noise(float64(x)/8, float64(y)/4, 16, 9), x, y, 0.4)
	})
}

func paintPlume(c *canvas) {
	c.each(func(x, y int) Colour {
		strands := noise(float64(x)/2+float64(y)/6, float64(y)/12, 64, 11)
		return red.tone(1.3+2.2*strands, x, y, 0.3)
	})
}
