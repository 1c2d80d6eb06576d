package main

import "math"

// view is an orthographic camera that sees the model from the front, after the model was turned by yaw around Y and
// then by pitch.
type view struct {
	w, h       int
	yaw, pitch float64
	scale      float64 // pixels per metre
	footX      float64 // position of the model's origin in the picture
	footY      float64
}

// depthStep is the distance in depth between two neighbouring pixels from which a line is drawn between them, in
// metres.
const depthStep = 0.05

// render draws a model in a pose: palette texels, moved along their ramps by the light, with lines where one part is in
// front of another.
func (v view) render(m *model, p pose, page *canvas) *canvas {
	out := newCanvas(v.w, v.h)
	depth := make([]float64, v.w*v.h)
	part := make([]int, v.w*v.h)
	for i := range depth {
		depth[i] = math.Inf(-1)
	}
	camera := place{turn: around(v.pitch, 0, 0).mul(around(0, v.yaw, 0))}
	for j, where := range p.places() {
		if m.mesh[j] == nil {
			continue
		}
		v.drawMesh(m.mesh[j], where.then(camera), page, j<<8, out, depth, part)
	}
	lines := make([]Colour, len(out.pix))
	for y := range v.h {
		for x := range v.w {
			i := y*v.w + x
			r, level, ok := out.pix[i].split()
			if !ok {
				continue
			}
			for _, d := range [4][2]int{{1, 0}, {-1, 0}, {0, 1}, {0, -1}} {
				nx, ny := x+d[0], y+d[1]
				if nx < 0 || ny < 0 || nx >= v.w || ny >= v.h {
					continue
				}
				n := ny*v.w + nx
				if part[n] != part[i] && depth[n]-depth[i] > depthStep && !math.IsInf(depth[n], 0) {
					lines[i] = r.at(min(level-1, 0))
				}
			}
		}
	}
	out.each(func(x, y int) Colour { return lines[y*v.w+x] })
	out.outline(ink)
	return out
}

// drawMesh draws triangles into the picture, with a depth buffer.
func (v view) drawMesh(m *mesh, where place, page *canvas, id int, out *canvas, depth []float64, part []int) {
	pos := make([]vec, len(m.vertices))
	normal := make([]vec, len(m.vertices))
	for i, vx := range m.vertices {
		q := where.point(vx.pos)
		pos[i] = vec{v.footX + q.x*v.scale, v.footY - q.y*v.scale, q.z}
		normal[i] = where.turn.rotate(vx.normal)
	}
	for t := 0; t < len(m.indices); t += 3 {
		ia, ib, ic := m.indices[t], m.indices[t+1], m.indices[t+2]
		a, b, c := pos[ia], pos[ib], pos[ic]
		area := (b.x-a.x)*(c.y-a.y) - (c.x-a.x)*(b.y-a.y)
		if area >= 0 {
			continue // a back face: the picture's Y points down
		}
		x0, x1 := int(max(0, min(a.x, b.x, c.x))), int(min(float64(v.w-1), max(a.x, b.x, c.x)))
		y0, y1 := int(max(0, min(a.y, b.y, c.y))), int(min(float64(v.h-1), max(a.y, b.y, c.y)))
		for y := y0; y <= y1; y++ {
			for x := x0; x <= x1; x++ {
				px, py := float64(x)+0.5, float64(y)+0.5
				wb := ((px-a.x)*(c.y-a.y) - (c.x-a.x)*(py-a.y)) / area
				wc := ((b.x-a.x)*(py-a.y) - (px-a.x)*(b.y-a.y)) / area
				wa := 1 - wb - wc
				if wa < 0 || wb < 0 || wc < 0 {
					continue
				}
				z := wa*a.z + wb*b.z + wc*c.z
				i := y*v.w + x
				if z <= depth[i] {
					continue
				}
				depth[i], part[i] = z, id|m.part[t/3]
				n := normal[ia].scale(wa).add(normal[ib].scale(wb)).add(normal[ic].scale(wc)).unit()
				va, vb, vc := m.vertices[ia], m.vertices[ib], m.vertices[ic]
				texel := page.get(
					int((wa*va.u+wb*vb.u+wc*vc.u)*pageSize),
					int((wa*va.v+wb*vb.v+wc*vc.v)*pageSize))
				out.pix[i] = lit(texel, n, x, y)
			}
		}
	}
}

// lit moves a texel along its ramp: up towards the light, down away from it.
func lit(texel Colour, n vec, x, y int) Colour {
	r, level, ok := texel.split()
	if !ok {
		return texel
	}
	half := 0.5 + 0.5*(n.x*lightX-n.y*lightY+n.z*lightZ)
	t := float64(level) - 1.35 + 2.3*half
	h := vec{lightX, -lightY, lightZ + 1}.unit().dot(n)
	if r == steel || r == ivory || r == gold {
		t += 0.9 * math.Pow(max(h, 0), 20)
	}
	return r.tone(t, x, y, 0.2)
}
