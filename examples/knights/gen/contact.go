package main

import "image"

// contactSheet shows the contents of the project in one picture, at twice the size.
func contactSheet() image.Image {
	const panel = 340
	c := newCanvas(sceneW, sceneH+panel)
	page, ui := texturePage(), icons()
	heroes := []*model{knight(), paladin()}

	c.draw(sky(), 0, 0, 1)
	c.draw(castle(), 0, 0, 1)
	for i, m := range heroes {
		x := 66.0 + 124*float64(i)
		c.flat(ellipse(x, 262, 26, 3.5), green.at(0))
		v := view{w: 200, h: 160, yaw: 0.85, pitch: 0.10, scale: 62, footX: 100, footY: 148}
		c.draw(v.render(m, run(0.24+0.06*float64(i), 1), page), int(x)-100, 260-146, 1)
	}
	for i, name := range []string{"heart", "heart", "heart_half", "heart_empty"} {
		c.draw(ui[name], 6+i*30, 6, 1)
	}
	c.draw(ui["coin"], 388, 8, 1)
	for i, digit := range []int{1, 2, 4, 0} {
		for y := range 18 {
			for x := range 12 {
				if v := ui["digits"].get(digit*12+x, y); v != clear {
					c.set(418+i*13+x, 11+y, v)
				}
			}
		}
	}

	top := sceneH
	c.flat(box(0, float64(top), sceneW, float64(top+panel), 0), ink)
	c.flat(box(0, float64(top), sceneW, float64(top+3), 0), gold.at(2))
	c.draw(banner(), 4, top+8, 1)
	c.draw(portrait(heroes[0], page, dusky), 172, top+12, 1)
	c.draw(portrait(heroes[1], page, dawn), 290, top+12, 1)
	for i, tile := range []*canvas{stoneTile(), grassTile(), planksTile()} {
		c.draw(tile, 408, top+12+i*70, 1)
	}
	c.draw(page.quarter(), 408, top+222, 1)
	for i, frame := range runFrames(heroes[0], page, 8) {
		c.draw(frame, 168+i%4*58, top+146+i/4*70, 1)
	}
	x := 10
	for _, name := range []string{"sword", "shield", "potion", "scroll", "key", "gem", "button", "button_pressed"} {
		c.draw(ui[name], x, top+315-ui[name].h/2, 1)
		x += ui[name].w + 12
	}

	twice := newCanvas(2*c.w, 2*c.h)
	twice.draw(c, 0, 0, 2)
	return twice.image()
}

// quarter keeps every fourth pixel of every fourth row, for a thumbnail.
func (c *canvas) quarter() *canvas {
	out := newCanvas(c.w/4, c.h/4)
	out.each(func(x, y int) Colour { return c.get(4*x+1, 4*y+1) })
	return out
}
