package main

import "math"

// shape is a signed distance field: the distance of a point from the edge in pixels, negative inside. The formulas are
// the exact ones collected by Inigo Quilez ("2D distance functions").
type shape func(x, y float64) float64

func circle(cx, cy, r float64) shape {
	return func(x, y float64) float64 { return math.Hypot(x-cx, y-cy) - r }
}

// ellipse is exact only on its axes, which is enough for shading.
func ellipse(cx, cy, rx, ry float64) shape {
	return func(x, y float64) float64 {
		px, py := (x-cx)/rx, (y-cy)/ry
		k := math.Hypot(px, py)
		g := math.Hypot(px/rx, py/ry)
		if g == 0 {
			return -min(rx, ry)
		}
		return k * (k - 1) / g
	}
}

// box is a rectangle given by two corners, with rounded corners.
func box(x0, y0, x1, y1, round float64) shape {
	cx, cy, hx, hy := (x0+x1)/2, (y0+y1)/2, (x1-x0)/2-round, (y1-y0)/2-round
	return func(x, y float64) float64 {
		dx, dy := math.Abs(x-cx)-hx, math.Abs(y-cy)-hy
		return math.Hypot(max(dx, 0), max(dy, 0)) + min(max(dx, dy), 0) - round
	}
}

// capsule is a line from a to b, with the radius ra at one end and rb at the other.
func capsule(ax, ay, ra, bx, by, rb float64) shape {
	return func(x, y float64) float64 {
		dx, dy := bx-ax, by-ay
		t := min(max(((x-ax)*dx+(y-ay)*dy)/(dx*dx+dy*dy), 0), 1)
		return math.Hypot(x-ax-t*dx, y-ay-t*dy) - ra - t*(rb-ra)
	}
}

// polygon takes x, y pairs in either direction.
func polygon(xy ...float64) shape {
	n := len(xy) / 2
	return func(x, y float64) float64 {
		best, inside := math.Inf(1), false
		for i := range n {
			j := (i + 1) % n
			ax, ay, bx, by := xy[2*i], xy[2*i+1], xy[2*j], xy[2*j+1]
			dx, dy := bx-ax, by-ay
			t := min(max(((x-ax)*dx+(y-ay)*dy)/(dx*dx+dy*dy), 0), 1)
			best = min(best, math.Hypot(x-ax-t*dx, y-ay-t*dy))
			if (ay > y) != (by > y) && x < (y-ay)/dy*dx+ax {
				inside = !inside
			}
		}
		if inside {
			return -best
		}
		return best
	}
}

func union(s ...shape) shape {
	return func(x, y float64) float64 {
		d := math.Inf(1)
		for _, f := range s {
			d = min(d, f(x, y))
		}
		return d
	}
}

func intersect(a, b shape) shape {
	return func(x, y float64) float64 { return max(a(x, y), b(x, y)) }
}

func subtract(a, b shape) shape {
	return func(x, y float64) float64 { return max(a(x, y), -b(x, y)) }
}

// grow moves the edge outwards.
func (s shape) grow(by float64) shape {
	return func(x, y float64) float64 { return s(x, y) - by }
}

// turn rotates a shape clockwise around a point.
func (s shape) turn(cx, cy, radians float64) shape {
	sin, cos := math.Sincos(radians)
	return func(x, y float64) float64 {
		x, y = x-cx, y-cy
		return s(cx+x*cos+y*sin, cy-x*sin+y*cos)
	}
}

// fill fills a shape with the result of paint for each pixel. It uses the distance to skip empty pixels; only a third
// of it, because it is too large for stretched shapes.
func (c *canvas) fill(s shape, paint func(x, y int) Colour) {
	for y := range c.h {
		for x := 0; x < c.w; {
			d := s(float64(x)+0.5, float64(y)+0.5)
			if d >= 0 {
				x += max(int(d/3), 1)
				continue
			}
			if v := paint(x, y); v != clear {
				c.pix[y*c.w+x] = v
			}
			x++
		}
	}
}

func (c *canvas) flat(s shape, v Colour) {
	c.fill(s, func(int, int) Colour { return v })
}

// The light of all pictures comes from the upper left, a little from the front.
const lightX, lightY, lightZ = -0.50, -0.66, 0.56

// material is the reaction of a shape to light.
type material struct {
	ramp   ramp
	base   float64 // tone at half light
	gain   float64 // tones between full and half light
	shine  float64 // tones added by the highlight
	bevel  float64 // pixels from the edge to the flat top
	dither float64
	edge   bool // draws a dark line around it
}

// solid shades a shape as if it were inflated: round near the edge, flat where it is deeper than the bevel.
func (c *canvas) solid(s shape, m material) {
	if m.edge {
		c.flat(s.grow(1), m.ramp.at(0))
	}
	c.fill(s, func(x, y int) Colour {
		nx, ny, nz := puff(s, float64(x)+0.5, float64(y)+0.5, m.bevel)
		lit := nx*lightX + ny*lightY + nz*lightZ
		// The highlight is Blinn's, seen from the front.
		hx, hy, hz := lightX, lightY, lightZ+1
		h := (nx*hx + ny*hy + nz*hz) / math.Sqrt(hx*hx+hy*hy+hz*hz)
		t := m.base + m.gain*(lit-0.45) + m.shine*math.Pow(max(h, 0), 24)
		return m.ramp.tone(t, x, y, m.dither)
	})
}

// puff returns the normal of an inflated shape at a point inside it.
func puff(s shape, x, y, bevel float64) (nx, ny, nz float64) {
	const e = 0.5
	gx, gy := s(x+e, y)-s(x-e, y), s(x, y+e)-s(x, y-e)
	if l := math.Hypot(gx, gy); l > 0 {
		gx, gy = gx/l, gy/l
	}
	out := 1 - min(max(-s(x, y)/bevel, 0), 1)
	return gx * out, gy * out, math.Sqrt(1 - out*out)
}

// hash01 returns a fixed pseudo-random number from 0 to 1 for a grid point.
func hash01(x, y, seed int) float64 {
	h := uint32(x)*0x9E3779B1 ^ uint32(y)*0x85EBCA77 ^ uint32(seed)*0xC2B2AE3D
	h ^= h >> 15
	h *= 0x2C1B3C6D
	h ^= h >> 12
	h *= 0x297A2D39
	h ^= h >> 15
	return float64(h>>8) / (1 << 24)
}

// noise is value noise that repeats every period grid points.
func noise(x, y float64, period, seed int) float64 {
	x0, y0 := math.Floor(x), math.Floor(y)
	fx, fy := x-x0, y-y0
	fx, fy = fx*fx*(3-2*fx), fy*fy*(3-2*fy)
	at := func(dx, dy int) float64 {
		i, j := int(x0)+dx, int(y0)+dy
		return hash01(((i%period)+period)%period, ((j%period)+period)%period, seed)
	}
	top := at(0, 0) + (at(1, 0)-at(0, 0))*fx
	bottom := at(0, 1) + (at(1, 1)-at(0, 1))*fx
	return top + (bottom-top)*fy
}

// clouds is four octaves of noise, 0 to 1.
func clouds(x, y float64, period, seed int) float64 {
	sum, weight := 0.0, 0.5
	for o := range 4 {
		sum += weight * noise(x, y, period<<o, seed+o)
		x, y, weight = 2*x, 2*y, weight/2
	}
	return sum / (1 - 1.0/16)
}
