package main

import "math"

const sceneW, sceneH = 480, 270

// The sun is low on the left, behind the hills.
const sunX, sunY = 128.0, 176.0

// sky is dusk: from night at the top to gold at the sun.
func sky() *canvas {
	c := newCanvas(sceneW, sceneH)
	air := colours{dusk.at(0), blue.at(0), dusk.at(1), dusk.at(2), dusk.at(3), dusk.at(4), skin.at(3), skin.at(4), gold.at(4)}
	c.each(func(x, y int) Colour {
		fx, fy := float64(x), float64(y)
		near := math.Exp(-math.Hypot((fx-sunX)*0.55, fy-sunY) / 70)
		t := 0.2 + 4.6*math.Pow(fy/200, 1.25) + 3.6*near
		return air.tone(t, x, y, 0.9)
	})
	stars(c)
	c.each(cloudPaint)
	c.flat(circle(sunX, sunY, 19), gold.at(4))
	c.flat(circle(sunX, sunY, 17), ivory.at(4))
	return c
}

func stars(c *canvas) {
	for i := range 90 {
		x := int(hash01(i, 1, 31) * sceneW)
		y := int(math.Pow(hash01(i, 2, 31), 1.6) * 100)
		bright := hash01(i, 3, 31)
		v := dusk.at(3)
		if bright > 0.5 {
			v = skin.at(4)
		}
		c.set(x, y, v)
		if bright > 0.93 {
			for _, d := range [4][2]int{{1, 0}, {-1, 0}, {0, 1}, {0, -1}} {
				c.set(x+d[0], y+d[1], dusk.at(3))
			}
		}
	}
}

// cloudPaint returns long banks that are lit from below on the side of the sun.
func cloudPaint(x, y int) Colour {
	fx, fy := float64(x), float64(y)
	if y < 40 || y > 190 {
		return clear
	}
	density := func(dx, dy float64) float64 {
		n := clouds((fx+dx)/64, (fy+dy)/13, 64, 41)
		band := math.Sin((fy - 40) / 150 * math.Pi)
		return n - 0.60 + 0.10*band
	}
	d := density(0, 0)
	if d < 0 {
		return clear
	}
	rim := density((sunX-fx)*0.03, (sunY-fy)*0.05)
	warm := math.Exp(-math.Hypot((fx-sunX)*0.5, fy-sunY) / 110)
	t := 1.2 + 2.6*warm + 2.2*(d-rim)*8*warm - 2.5*d
	bank := colours{dusk.at(1), dusk.at(2), dusk.at(3), dusk.at(4), skin.at(3), gold.at(4)}
	return bank.tone(t, x, y, 0.7)
}

// ridge is a line of hills. It returns the height of the ground at x.
func ridge(x, base, rough, wide float64, seed int) float64 {
	return base - rough*(clouds(x/wide, 0.5, 64, seed)-0.5)*2
}

// castle is the layer in front of the sky: far hills, the castle on its rock, woods.
func castle() *canvas {
	c := newCanvas(sceneW, sceneH)
	hills := func(base, rough, wide float64, seed int, paint func(x, y int, depth float64) Colour) {
		c.each(func(x, y int) Colour {
			if depth := float64(y) - ridge(float64(x), base, rough, wide, seed); depth >= 0 {
				return paint(x, y, depth)
			}
			return clear
		})
	}
	hills(186, 26, 90, 51, func(x, y int, depth float64) Colour {
		near := math.Exp(-math.Abs(float64(x)-sunX) / 150)
		return colours{dusk.at(2), dusk.at(3), dusk.at(4)}.tone(0.1+1.3*near+0.7*math.Exp(-depth/3)-depth/60, x, y, 0.8)
	})
	hills(206, 20, 70, 52, func(x, y int, depth float64) Colour {
		return colours{dusk.at(1), dusk.at(2), dusk.at(3)}.tone(0.9+0.9*math.Exp(-depth/2)-depth/50, x, y, 0.8)
	})
	keep(c)
	rock(c)
	hills(240, 14, 80, 53, func(x, y int, depth float64) Colour {
		blades := hash01(x, y/3, 54)
		return colours{green.at(0), green.at(1), green.at(2), green.at(3)}.tone(1.0+1.6*math.Exp(-depth/2.5)+0.5*blades-depth/22, x, y, 0.6)
	})
	woods(c)
	return c
}

// rock is the crag under the castle: facets, with the left ones lit, and turf on top.
func rock(c *canvas) {
	crag := func(x float64) float64 {
		d := math.Abs(x-328) / 112
		return 185 + 40*d*d*d*d + 16*d*(clouds(x/12, 1.5, 64, 61)-0.5)
	}
	c.each(func(x, y int) Colour {
		fx, fy := float64(x), float64(y)
		depth := fy - crag(fx)
		turf := 3 + 4*noise(fx/3, 2.5, 256, 64)
		switch {
		case depth < 0:
			return clear
		case depth < turf:
			return green.tone(3.0-1.9*depth/turf-(fx-328)/220, x, y, 0.4)
		case depth < turf+1:
			return stone.at(0)
		}
		lean := 6 * clouds(fx/30, fy/30, 64, 68)
		large, small := facet((fx+lean)/19, (fy-fx/4)/30), facet((fx+lean)/7, (fy-fx/4)/12)
		t := 1.5 + 1.6*(large-0.5) + 0.9*(small-0.5) - (fx-328)/130 - depth/75
		return evening.tone(t, x, y, 0.35)
	})
}

// facet returns the random number of the nearest of the random points in the grid (Worley's cells).
func facet(x, y float64) (tone float64) {
	nearest := math.Inf(1)
	for j := int(y) - 1; j <= int(y)+1; j++ {
		for i := int(x) - 1; i <= int(x)+1; i++ {
			d := math.Hypot(x-float64(i)-hash01(i, j, 65), y-float64(j)-hash01(i, j, 66))
			if d < nearest {
				nearest, tone = d, hash01(i, j, 67)
			}
		}
	}
	return tone
}

// evening is stone whose lit side has the colour of the sky.
var evening = colours{stone.at(0), stone.at(1), stone.at(2), stone.at(3), skin.at(3), skin.at(4)}

// tower is round, stands on base and has a roof or battlements.
type tower struct {
	x, wide, top, base float64
	roof               float64 // height of the cone; 0 for battlements
	flag               ramp    // 0 (stone) for none
}

func keep(c *canvas) {
	for _, t := range []tower{
		{x: 338, wide: 26, top: 66, base: 190, roof: 40, flag: blue},
		{x: 300, wide: 20, top: 92, base: 190, roof: 30},
		{x: 375, wide: 20, top: 100, base: 190, roof: 30},
	} {
		t.draw(c)
	}
	wall(c, 262, 392, 132, 186)
	for _, t := range []tower{
		{x: 262, wide: 24, top: 112, base: 196, roof: 34, flag: red},
		{x: 322, wide: 34, top: 118, base: 196},
		{x: 394, wide: 26, top: 116, base: 196, roof: 36, flag: red},
	} {
		t.draw(c)
	}
	gate(c)
}

// masonry is the tone of a wall's stones: rows of four pixels, some stones lighter.
func masonry(x, y int) float64 {
	row := y / 4
	col := (x + row%2*4) / 8
	t := 0.55 * (hash01(col, row, 71) - 0.5)
	if y%4 == 3 || (x+row%2*4)%8 == 7 {
		t -= 0.45
	}
	return t
}

func wall(c *canvas, x0, x1, top, base float64) {
	c.fill(box(x0, top, x1, base, 0), func(x, y int) Colour {
		t := 1.55 + masonry(x, y) - 0.8*(float64(y)-top)/(base-top)
		return stone.tone(t, x, y, 0.3)
	})
	battlements(c, x0, x1, top, func(x float64) float64 { return 2.2 })
}

// battlements stand on a ledge.
func battlements(c *canvas, x0, x1, top float64, light func(x float64) float64) {
	c.fill(box(x0, top-2, x1, top+2, 0), func(x, y int) Colour {
		return evening.tone(light(float64(x))+0.5-0.4*(float64(y)-top), x, y, 0.2)
	})
	for x := x0; x+4 <= x1; x += 7 {
		c.fill(box(x, top-7, x+4, top-2, 0), func(px, py int) Colour {
			return evening.tone(light(float64(px))+0.7*btof(float64(px)-x < 1), px, py, 0.2)
		})
	}
}

func btof(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (t tower) draw(c *canvas) {
	left := t.x - t.wide/2
	// Brightest slightly right of the left edge, dark at the right: a cylinder in light from the side.
	light := func(x float64) float64 {
		u := (x + 0.5 - left) / t.wide
		return 4.1 - 4.2*math.Abs(u-0.12)*(1.35-0.6*u)
	}
	c.flat(box(left-1, t.top, left+t.wide+1, t.base, 0), stone.at(0))
	c.fill(box(left, t.top, left+t.wide, t.base, 0), func(x, y int) Colour {
		fade := 0.7 * (float64(y) - t.top) / (t.base - t.top)
		return evening.tone(light(float64(x))+masonry(x, y)-fade, x, y, 0.4)
	})
	windowsUp := t.top + 16
	c.flat(box(t.x-2, windowsUp-1, t.x+2, windowsUp+7, 1.5), stone.at(0))
	c.flat(box(t.x-1, windowsUp, t.x+1, windowsUp+6, 0.5), gold.at(3))
	c.flat(box(t.x-1, windowsUp+3, t.x+1, windowsUp+6, 0), gold.at(4))
	if t.roof == 0 {
		battlements(c, left-2, left+t.wide+3, t.top, func(x float64) float64 { return light(min(max(x, left), left+t.wide-1)) })
		return
	}
	tip := t.top - t.roof
	cone := polygon(t.x, tip, left-4, t.top+2, left+t.wide+4, t.top+2)
	c.flat(cone.grow(0.8), red.at(0))
	c.fill(cone, func(x, y int) Colour {
		half := (float64(y) + 0.5 - tip) / (t.roof + 2) * (t.wide/2 + 4)
		u := (float64(x) + 0.5 - t.x + half) / (2 * half)
		tiles := 0.35 * (hash01(x/3, y/3, 72) - 0.5)
		if y%4 == 0 {
			tiles -= 0.5
		}
		return colours{red.at(0), red.at(1), red.at(2), red.at(3), dusk.at(4)}.tone(3.4-3.2*math.Abs(u-0.18)+tiles, x, y, 0.4)
	})
	if t.flag != stone {
		t.pennant(c, tip)
	}
}

// pennant flies to the right, away from the evening wind.
func (t tower) pennant(c *canvas, tip float64) {
	c.flat(box(t.x-0.5, tip-15, t.x+0.5, tip+1, 0), wood.at(1))
	c.each(func(x, y int) Colour {
		u := (float64(x) - t.x) / 16
		middle := tip - 11 + 1.4*math.Sin(u*6)
		if u < 0 || u > 1 || math.Abs(float64(y)-middle) > 4*(1-u)+0.3 {
			return clear
		}
		return t.flag.tone(2.6+0.9*math.Cos(u*6), x, y, 0.2)
	})
}

func gate(c *canvas) {
	arch := union(circle(322, 166, 8), box(314, 166, 330, 191, 0))
	c.flat(arch.grow(2), stone.at(3))
	c.flat(arch.grow(1), stone.at(1))
	c.fill(arch, func(x, y int) Colour {
		if x%4 == 2 || y%5 == 0 {
			return wood.at(0)
		}
		return colours{ink, gold.at(0), gold.at(1), gold.at(2), gold.at(3)}.tone(float64(y-160)/9, x, y, 0.8)
	})
	shield := box(317, 134, 327, 146, 3)
	c.flat(shield.grow(1), stone.at(0))
	c.solid(shield, material{ramp: gold, base: 2.6, gain: 1.2, bevel: 3})
	c.flat(shield.grow(-2), red.at(2))
	c.flat(box(321, 137, 323, 143, 0), gold.at(3))
	c.flat(box(320, 138, 324, 140, 0), gold.at(3))
}

// woods are firs on the near hill, dark against the castle.
func woods(c *canvas) {
	for i := range 46 {
		x := hash01(i, 1, 81) * sceneW
		if math.Abs(x-318) < 42 {
			continue // the path to the gate
		}
		y := ridge(x, 240, 14, 80, 53) + 4 + 14*hash01(i, 2, 81)
		tall := 20 + 18*hash01(i, 3, 81)
		for layer := range 4 {
			up := y - tall*float64(layer)/4.6
			wide := tall * 0.26 * (1 - float64(layer)*0.2)
			fir := polygon(x, up-tall*0.42, x-wide, up, x+wide, up)
			c.fill(fir, func(px, py int) Colour {
				side := (x - float64(px)) / wide
				t := 0.7 + 1.1*side + 0.3*float64(layer) + 0.8*(hash01(px, py, 82)-0.5)
				return colours{green.at(0), green.at(1), green.at(2), green.at(3)}.tone(t, px, py, 0.3)
			})
		}
	}
}

// banner is a special case in the project: it is large, and only on the title screen.
func banner() *canvas {
	c := newCanvas(160, 288)
	const top, bottom = 28.0, 252.0
	cloth := polygon(24, top, 136, top, 136, bottom, 80, bottom-34, 24, bottom)
	fold := func(x, y int) float64 {
		fx, fy := float64(x), float64(y)
		return 0.75*math.Sin(fx/9.5+1.4*math.Sin(fy/70)+0.6) + 0.25*math.Sin(fx/4+fy/33) - 0.5*math.Exp(-(fy-top)/14)
	}
	c.flat(cloth.grow(1.5), wood.at(0))
	c.fill(cloth, func(x, y int) Colour { return gold.tone(2.4+0.8*fold(x, y), x, y, 0.5) })
	field := cloth.grow(-7)
	c.fill(field.grow(1), func(x, y int) Colour { return gold.at(0) })
	c.fill(field, func(x, y int) Colour {
		side := red
		base := 2.0
		if x >= 80 {
			side, base = blue, 1.7
		}
		return side.tone(base+fold(x, y), x, y, 0.5)
	})
	emblem := sun(80, 122, 22, 46, 16)
	c.flat(emblem.grow(1.5), wood.at(0))
	c.fill(emblem, func(x, y int) Colour {
		nx, ny, nz := puff(emblem, float64(x)+0.5, float64(y)+0.5, 9)
		return gold.tone(2.2+1.3*(nx*lightX+ny*lightY+nz*lightZ)+0.45*fold(x, y), x, y, 0.4)
	})
	sword := union(polygon(76, 86, 80, 76, 84, 86, 84, 176, 76, 176), box(60, 174, 100, 181, 3), capsule(80, 181, 3, 80, 202, 3), circle(80, 207, 6))
	c.flat(sword.grow(2), wood.at(0))
	c.fill(sword, func(x, y int) Colour {
		t := 3.6 + 0.5*fold(x, y)
		if x >= 80 {
			t -= 1.2
		}
		if y >= 173 {
			return gold.tone(t-0.3, x, y, 0.3)
		}
		return steel.tone(t, x, y, 0.3)
	})
	pole := material{ramp: wood, base: 2.2, gain: 1.6, bevel: 4, dither: 0.3, edge: true}
	c.solid(box(10, 20, 150, 28, 2), pole)
	brass := material{ramp: gold, base: 2.5, gain: 1.5, shine: 1, bevel: 6, edge: true}
	for _, x := range []float64{9, 151} {
		c.solid(circle(x, 24, 6.5), brass)
	}
	for x := 34.0; x < 136; x += 23 {
		c.solid(box(x-4, 17, x+4, 34, 1.5), material{ramp: gold, base: 2.3, gain: 1.4, bevel: 3, edge: true})
	}
	c.outline(ink)
	return c
}

// moon is an unfinished night sky, which the project ignores.
func moon() *canvas {
	c := newCanvas(96, 96)
	c.each(func(x, y int) Colour {
		d := math.Hypot(float64(x)-48, float64(y)-48)
		return colours{ink, dusk.at(0), blue.at(0), blue.at(1)}.tone(3-d/18, x, y, 1)
	})
	c.solid(subtract(circle(48, 48, 22), circle(58, 42, 19)), material{ramp: ivory, base: 2.6, gain: 1.2, bevel: 8, dither: 0.5})
	return c
}
