package main

import "math"

// vertex is a corner of a glTF primitive.
type vertex struct {
	pos, normal vec
	u, v        float64
}

// mesh is triangles, counter-clockwise from outside. part is the number of a triangle's piece; the renderer draws lines
// between pieces.
type mesh struct {
	vertices []vertex
	indices  []uint16
	part     []int
	parts    int
}

// uv maps a point of the unit square to a region of the page, half a texel inside it.
func (r region) uv(u, v float64) (float64, float64) {
	in := func(t float64) float64 { return 0.5 + min(max(t, 0), 1)*(cell-1) }
	return (float64(int(r)%4*cell) + in(u)) / pageSize, (float64(int(r)/4*cell) + in(v)) / pageSize
}

func (m *mesh) add(p place, pos, normal vec, r region, u, v float64) uint16 {
	u, v = r.uv(u, v)
	m.vertices = append(m.vertices, vertex{p.point(pos), p.turn.rotate(normal.unit()), u, v})
	return uint16(len(m.vertices) - 1)
}

// triangle adds a triangle, with the order of corners that matches its normals.
func (m *mesh) triangle(a, b, c uint16) {
	va, vb, vc := m.vertices[a], m.vertices[b], m.vertices[c]
	face := vb.pos.sub(va.pos).cross(vc.pos.sub(va.pos))
	if face.dot(face) < 1e-14 {
		return // at the tip of a cone
	}
	if face.dot(va.normal.add(vb.normal).add(vc.normal)) < 0 {
		b, c = c, b
	}
	m.indices = append(m.indices, a, b, c)
	m.part = append(m.part, m.parts)
}

// ring is one step of a lathe's profile. A ring given twice makes a sharp edge.
type ring struct{ y, r float64 }

// lathe rotates a profile, given from the top down, around the Y axis. depth scales it along Z. The region wraps around
// it with its middle at the front.
func (m *mesh) lathe(p place, r region, sides int, depth float64, profile ...ring) {
	top, bottom := profile[0].y, profile[len(profile)-1].y
	start := len(m.vertices)
	for i, now := range profile {
		var slope vec // normal of the outline: x points outwards
		for k := max(i-1, 0); k < min(i+1, len(profile)-1); k++ {
			if a, b := profile[k], profile[k+1]; a != b {
				slope = slope.add(vec{a.y - b.y, b.r - a.r, 0}.unit())
			}
		}
		for s := range sides + 1 {
			u := float64(s) / float64(sides)
			sin, cos := math.Sincos(2 * math.Pi * (u - 0.5))
			normal := vec{sin * slope.x, slope.y, cos * slope.x / depth}
			m.add(p, vec{sin * now.r, now.y, cos * now.r * depth}, normal, r, u, (top-now.y)/(top-bottom))
		}
	}
	for i := range len(profile) - 1 {
		if profile[i] == profile[i+1] {
			continue
		}
		for s := range sides {
			a := uint16(start + i*(sides+1) + s)
			b := a + uint16(sides) + 1
			m.triangle(a, a+1, b)
			m.triangle(a+1, b+1, b)
		}
	}
	m.parts++
}

// ball is an ellipsoid, or the part of it above cut times its height; cut is -1 to 1.
func (m *mesh) ball(p place, r region, radius, height, depth, cut float64) {
	const rings = 6
	profile := make([]ring, 0, rings+1)
	end := math.Acos(cut)
	for i := range rings + 1 {
		sin, cos := math.Sincos(end * float64(i) / rings)
		profile = append(profile, ring{height * cos, radius * sin})
	}
	m.lathe(p, r, 10, depth, profile...)
}

// slab is a box whose top and bottom differ: half sizes x and z at each end, and a height. Its top is at the origin of
// its place.
func (m *mesh) slab(p place, r region, topX, topZ, bottomX, bottomZ, height float64) {
	corner := func(i int) vec {
		sx, sz := float64(i&1*2-1), float64(i>>1&1*2-1)
		if i&4 == 0 {
			return vec{sx * topX, 0, sz * topZ}
		}
		return vec{sx * bottomX, -height, sz * bottomZ}
	}
	for _, face := range [6][4]int{{2, 3, 6, 7}, {1, 0, 5, 4}, {3, 1, 7, 5}, {0, 2, 4, 6}, {0, 1, 2, 3}, {6, 7, 4, 5}} {
		a, b, c, d := corner(face[0]), corner(face[1]), corner(face[2]), corner(face[3])
		normal := d.sub(a).cross(b.sub(c))
		if middle := a.add(b).add(c).add(d).scale(0.25); normal.dot(middle.sub(vec{0, -height / 2, 0})) < 0 {
			normal = normal.scale(-1)
		}
		i := m.add(p, a, normal, r, 0, 0)
		j := m.add(p, b, normal, r, 1, 0)
		k := m.add(p, c, normal, r, 0, 1)
		l := m.add(p, d, normal, r, 1, 1)
		m.triangle(i, j, k)
		m.triangle(j, l, k)
	}
	m.parts++
}

// plate is a convex outline of x, y pairs with a thickness along Z, curved towards the front. The region covers the
// outline's bounds.
func (m *mesh) plate(p place, front, back region, thick, bulge float64, xy ...float64) {
	lo, hi := vec{xy[0], xy[1], 0}, vec{xy[0], xy[1], 0}
	for i := 0; i < len(xy); i += 2 {
		lo = vec{min(lo.x, xy[i]), min(lo.y, xy[i+1]), 0}
		hi = vec{max(hi.x, xy[i]), max(hi.y, xy[i+1]), 0}
	}
	middle := lo.add(hi).scale(0.5)
	n := len(xy) / 2
	for _, side := range []float64{1, -1} {
		r := front
		if side < 0 {
			r = back
		}
		corner := func(i int, z float64, normal vec) uint16 {
			x, y := xy[2*i], xy[2*i+1]
			return m.add(p, vec{x, y, z}, normal, r, (x-lo.x)/(hi.x-lo.x), (hi.y-y)/(hi.y-lo.y))
		}
		hub := m.add(p, vec{middle.x, middle.y, side*thick/2 + bulge}, vec{0, 0, side}, r, 0.5, 0.5)
		for i := range n {
			j := (i + 1) % n
			tilt := func(k int) vec {
				return vec{(xy[2*k] - middle.x) * bulge * 6, (xy[2*k+1] - middle.y) * bulge * 6, 0}.scale(side).add(vec{0, 0, side})
			}
			m.triangle(hub, corner(i, side*thick/2, tilt(i)), corner(j, side*thick/2, tilt(j)))
		}
	}
	for i := range n {
		j := (i + 1) % n
		a, b := vec{xy[2*i], xy[2*i+1], 0}, vec{xy[2*j], xy[2*j+1], 0}
		out := a.add(b).scale(0.5).sub(middle)
		rim := func(v vec, z float64) uint16 { v.z = z; return m.add(p, v, out, trimGold, 0.5, 0.5) }
		i0, j0, i1, j1 := rim(a, thick/2), rim(b, thick/2), rim(a, -thick/2), rim(b, -thick/2)
		m.triangle(i0, j0, i1)
		m.triangle(j0, j1, i1)
	}
	m.parts++
}
