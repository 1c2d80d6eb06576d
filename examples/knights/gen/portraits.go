package main

import "math"

// portrait is a character's head and shoulders before the evening sky, in a frame.
func portrait(m *model, page *canvas, glow colours) *canvas {
	c := newCanvas(112, 128)
	c.each(func(x, y int) Colour {
		d := math.Hypot(float64(x)-44, (float64(y)-52)*0.9) / 84
		rays := 0.35 * math.Sin(12*math.Atan2(float64(y)-52, float64(x)-44))
		return glow.tone(float64(len(glow)-1)*(1-d)+rays*min(d*2, 1), x, y, 0.8)
	})
	p := rest()
	p.turn[head] = around(0.04, -0.10, 0)
	p.turn[armL], p.turn[armR] = around(0, 0, 0.3), around(0, 0, -0.3)
	v := view{w: c.w, h: c.h, yaw: -0.55, pitch: 0.10, scale: 118, footX: 58, footY: 228}
	c.draw(v.render(m, p, page), 0, 0, 1)
	edge := box(0, 0, 112, 128, 5)
	frame := subtract(edge, box(4, 4, 108, 124, 3))
	c.solid(frame, material{ramp: gold, base: 2.3, gain: 1.6, bevel: 2.5, edge: true})
	for i := range c.pix { // an inked line, and nothing outside of the round corners
		switch d := edge(float64(i%c.w)+0.5, float64(i/c.w)+0.5); {
		case d > 0.2:
			c.pix[i] = clear
		case d > -1:
			c.pix[i] = ink
		}
	}
	return c
}

// The skies behind the two characters.
var (
	dusky = colours{dusk.at(0), dusk.at(1), dusk.at(2), dusk.at(3), dusk.at(4), skin.at(3)}
	dawn  = colours{blue.at(0), blue.at(1), blue.at(2), blue.at(3), blue.at(4), ivory.at(4)}
)

// runFrames are the run as sprites, seen from the side with the face turned slightly towards the viewer.
func runFrames(m *model, page *canvas, n int) []*canvas {
	v := view{w: 64, h: 64, yaw: 1.05, pitch: 0.12, scale: 32, footX: 30, footY: 60}
	var out []*canvas
	for i := range n {
		out = append(out, v.render(m, run(float64(i)/float64(n), 1), page))
	}
	return out
}
