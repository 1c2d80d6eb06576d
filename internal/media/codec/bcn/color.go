package bcn

import "github.com/kiln-pipeline/kiln/internal/media/codec/block"

// colors is the colour of a block during the search for its endpoints.
type colors struct {
	n     int       // pixels with a colour: all except the transparent ones of BC1A
	x     [16]rgb   // their colours; in vector code only the first
	who   [16]uint8 // their numbers in the block
	sum   rgb       // the sum of their colours
	order [16]uint8 // the pixels in order along an axis; in vector code, the place of each in that order
	tail  [17]rgb   // the sums of the colours from each pixel to the last, in that order; not in vector code

	gains [maxShapes]int32 // of all shapes, see shape
	top   []shape          // the most promising ones, best first

	by *colorLanes // or nil: only for blocks of 16 pixels with a colour
}

// rgb is a colour, a sum of colours or a direction.
type rgb [3]int32

// ends are two endpoints and the places between them.
type ends struct {
	last int32  // the place of the second endpoint, with the first at 0: 3 in a block of four places, 2 in one of three
	q    [2]rgb // 5, 6 and 5 bits
}

// fit has the sums that determine the best endpoints for a choice of places.
type fit struct {
	last  int32 // as in ends
	n     int32 // pixels
	t, tt int32 // sum of the places, and of their squares
	tx, x rgb   // sum of the colours times places, and of the colours
}

// effort sets the work for a quality.
type effort struct {
	rounds int   // passes that choose places for the endpoints, and endpoints for the places
	axes   int   // times that pixels are sorted along an axis and divided into runs; with 0, there is nothing after the rounds
	hard   int32 // the error above which they are
	shapes int   // divisions for which endpoints are computed
}

var efforts = [...]effort{
	block.Fast:   {rounds: 4},
	block.Normal: {rounds: 1, axes: 1, hard: 1500, shapes: 2},
	block.Best:   {rounds: 4, axes: 3, shapes: 16},
}

const worst = int32(1<<31 - 1)

// encode returns the block for some RGBA pixels.
func (c *colors) encode(pixels *[64]byte, f Format, q block.Quality) uint64 {
	same := c.load(pixels, f)
	if c.n == 0 {
		return 0xffffffff_00000000 // all transparent
	}
	if same {
		return c.write(c.solid(c.x[0], f))
	}
	by := &efforts[q]
	axis := c.axis()
	best, least := c.refine(c.extremes(axis, f), by.rounds)
	if by.axes == 0 {
		return c.write(best)
	}
	if least <= by.hard {
		best, least = c.again(best, least, f)
	}
	polished := false
	for i := 0; i < by.axes && least > by.hard; i++ {
		before := c.order
		c.sort(axis)
		if i > 0 && before == c.order {
			break
		}
		e, err := c.refine(c.cluster(f, by.shapes), by.rounds)
		e, _ = c.again(e, err, f)
		e, err = c.polish(e)
		if err >= least {
			break
		}
		best, least, polished = e, err, true
		p := best.palette()
		for k := range axis {
			axis[k] = p[best.last][k] - p[0][k]
		}
	}
	if !polished {
		best, _ = c.polish(best)
	}
	return c.write(best)
}

// load stores the pixels that have a colour, and reports whether they all have the same.
func (c *colors) load(pixels *[64]byte, f Format) (same bool) {
	if c.by != nil && (f != BC1A || opaque(pixels)) {
		return c.loadLanes(pixels)
	}
	c.n, c.sum, same = 0, rgb{}, true
	for i := range 16 {
		if f == BC1A && pixels[4*i+3] < 128 {
			continue
		}
		p := rgb{int32(pixels[4*i]), int32(pixels[4*i+1]), int32(pixels[4*i+2])}
		c.x[c.n], c.who[c.n] = p, uint8(i)
		same = same && p == c.x[0]
		c.n++
		for k := range p {
			c.sum[k] += p[k]
		}
	}
	return same
}

// opaque reports whether all pixels have a colour in BC1A.
func opaque(pixels *[64]byte) bool {
	for i := range 16 {
		if pixels[4*i+3] < 128 {
			return false
		}
	}
	return true
}

// may reports whether a block can have its second endpoint at place last.
func (c *colors) may(last int32, f Format) bool {
	if last == 2 {
		return f != BC3
	}
	return c.n == 16 // transparent pixels need the fourth index
}

// axis returns the direction of the greatest spread of the colours, scaled so that its largest component is about 1024. It
// is the first eigenvector of their covariance; the eighth power of the matrix maps almost every vector to it.
func (c *colors) axis() rgb {
	m := c.powers()
	v, d := [3]float32{m[0], m[1], m[2]}, m[0]
	if m[3] > d {
		v, d = [3]float32{m[1], m[3], m[4]}, m[3]
	}
	if m[5] > d {
		v, d = [3]float32{m[2], m[4], m[5]}, m[5]
	}
	s := 1024 / d
	return rgb{int32(v[0] * s), int32(v[1] * s), int32(v[2] * s)}
}

// powers returns the eighth power of the covariance, up to a factor: rr rg rb gg gb bb.
func (c *colors) powers() (m [6]float32) {
	if c.by != nil && c.n == 16 {
		return [6]float32(c.by.powers[:6])
	}
	n := int32(c.n)
	for _, p := range c.x[:c.n] {
		r, g, b := float32(n*p[0]-c.sum[0]), float32(n*p[1]-c.sum[1]), float32(n*p[2]-c.sum[2])
		m[0] += float32(r * r)
		m[1] += float32(r * g)
		m[2] += float32(r * b)
		m[3] += float32(g * g)
		m[4] += float32(g * b)
		m[5] += float32(b * b)
	}
	for range 3 {
		s := 1 / (m[0] + m[3] + m[5])
		for i := range m {
			m[i] *= s
		}
		m = [6]float32{
			float32(m[0]*m[0]) + float32(m[1]*m[1]) + float32(m[2]*m[2]),
			float32(m[0]*m[1]) + float32(m[1]*m[3]) + float32(m[2]*m[4]),
			float32(m[0]*m[2]) + float32(m[1]*m[4]) + float32(m[2]*m[5]),
			float32(m[1]*m[1]) + float32(m[3]*m[3]) + float32(m[4]*m[4]),
			float32(m[1]*m[2]) + float32(m[3]*m[4]) + float32(m[4]*m[5]),
			float32(m[2]*m[2]) + float32(m[4]*m[4]) + float32(m[5]*m[5]),
		}
	}
	return m
}

// extremes returns endpoints on the line through the mean of the colours along an axis, at 7/8 of the distance to the
// extreme colours. An extreme colour is often a single pixel: 7/8 gains 0.1 dB. They are rounded up and down instead of to
// nearest, so that they do not coincide for similar colours: 2 dB in a clear sky.
func (c *colors) extremes(axis rgb, f Format) ends {
	least, most := c.reach(axis)
	n := float32(c.n)
	mean := float32(c.sum[0]*axis[0]+c.sum[1]*axis[1]+c.sum[2]*axis[2]) / n
	length := float32(axis[0]*axis[0] + axis[1]*axis[1] + axis[2]*axis[2])
	low, high := 0.875*(float32(least)-mean)/length, 0.875*(float32(most)-mean)/length
	e := ends{last: 3}
	if !c.may(3, f) {
		e.last = 2
	}
	for k, by := range axis {
		center, scale := float32(c.sum[k])/n, float32(levels[k])/255
		a, b := center+float32(low*float32(by)), center+float32(high*float32(by))
		e.q[0][k] = int32(float32(min(max(a, 0), 255)*scale) + 0.3)
		e.q[1][k] = int32(float32(min(max(b, 0), 255)*scale) + 0.7)
	}
	return e
}

// reach returns the least and the greatest product of a colour and an axis.
func (c *colors) reach(axis rgb) (least, most int32) {
	if c.by != nil && c.n == 16 {
		var ends [2]int32
		words := axis.words()
		reachLanes(&c.by.pixels[0][0], &words, &ends)
		return ends[0], ends[1]
	}
	least, most = worst, -worst
	for _, p := range c.x[:c.n] {
		d := p[0]*axis[0] + p[1]*axis[1] + p[2]*axis[2]
		least, most = min(least, d), max(most, d)
	}
	return least, most
}

// refine alternately chooses places for the endpoints and endpoints for the places, while the error decreases.
func (c *colors) refine(e ends, rounds int) (ends, int32) {
	if c.by != nil && c.n == 16 {
		err := refineEnds(&c.by.pixels[0][0], &c.sum[0], int(e.last), rounds, &e.q[0][0])
		return e, err
	}
	f, err := c.assign(&e)
	for range rounds {
		if f.n*f.tt == f.t*f.t {
			break // with one place, the endpoints are undetermined
		}
		e1, _ := f.solve()
		if e1 == e {
			break
		}
		f1, err1 := c.assign(&e1)
		if err1 >= err {
			break
		}
		e, f, err = e1, f1, err1
	}
	return e, err
}

// lines are multiples of a line, with the last places of their endpoints.
type lines struct {
	scale [8]float32
	last  [8]int32
}

var (
	fourPlaces   = lines{[8]float32{0.4, 0.6, 0.8, 1.25, 1.5, 2.2, 3, 4}, [8]int32{3, 3, 3, 3, 3, 3, 3, 3}}
	threePlaces  = lines{fourPlaces.scale, [8]int32{2, 2, 2, 2, 2, 2, 2, 2}}
	eitherPlaces = lines{[8]float32{0.6, 0.6, 1.5, 1.5, 2.2, 2.2, 3, 3}, [8]int32{2, 3, 2, 3, 2, 3, 2, 3}}
)

func (c *colors) lines(f Format) *lines {
	switch {
	case !c.may(3, f):
		return &threePlaces
	case !c.may(2, f):
		return &fourPlaces
	}
	return &eitherPlaces
}

// again fits endpoints to the places on lines through the mean of the colours, which are multiples of the line between the
// endpoints so far. Endpoints of 5 and 6 bits have many good solutions, and least squares end at the nearest one; for similar
// colours, another is often better. It returns the best endpoints, if they are better.
func (c *colors) again(e ends, err int32, f Format) (ends, int32) {
	var line [2][4]float32 // the mean, and half the line
	for k := range 3 {
		line[0][k] = float32(c.sum[k]) / float32(c.n)
		line[1][k] = float32(widen(e.q[1][k], k)-widen(e.q[0][k], k)) / 2
	}
	best, least := e, worst
	if by := c.lines(f); c.by != nil && c.n == 16 {
		best, least = c.againLanes(&line, by, best, least)
	} else {
		for i, last := range by.last {
			at := ends{last: last}
			for k := range 3 {
				half, scale := float32(line[1][k]*by.scale[i]), float32(levels[k])/255
				at.q[0][k] = int32(float32(min(max(line[0][k]-half, 0), 255)*scale) + 0.5)
				at.q[1][k] = int32(float32(min(max(line[0][k]+half, 0), 255)*scale) + 0.5)
			}
			s, _ := c.assign(&at)
			if s.n*s.tt == s.t*s.t {
				continue // as in refine
			}
			if to, score := s.solve(); score < least {
				best, least = to, score
			}
		}
	}
	if least < worst && best != e {
		if _, now := c.refine(best, 0); now < err {
			return best, now
		}
	}
	return e, err
}

// polish moves the endpoints of a channel by single steps while the error decreases: it makes the best move of a channel, then that of
// the next, until none has helped in the two others. It returns the error, with each pixel at its nearest place.
func (c *colors) polish(e ends) (ends, int32) {
	if c.by != nil && c.n == 16 {
		err := polishEnds(&c.by.pixels[0][0], int(e.last), &e.q[0][0])
		return e, err
	}
	var all [3]distances
	for k := range all {
		c.measureTo(&all[k], k, e.places(k))
	}
	others := all[1].plus(&all[2])
	err := c.error(&others, 0, e.places(0), worst)
	for k, left := 0, 3; left > 0; k = (k + 1) % 3 {
		left--
		from := e
		others := all[(k+1)%3].plus(&all[(k+2)%3])
		for _, d := range moves {
			to := from
			to.q[0][k] = min(max(to.q[0][k]+d[0], 0), levels[k])
			to.q[1][k] = min(max(to.q[1][k]+d[1], 0), levels[k])
			if moved := c.error(&others, k, to.places(k), err); moved < err {
				e, err, left = to, moved, 2
			}
		}
		if e != from {
			c.measureTo(&all[k], k, e.places(k))
		}
	}
	return e, err
}

// distances are the squares of the distances of pixels from places, in a channel or in two.
type distances [16][4]int32

// measureTo finds the distances from the places of a channel.
func (c *colors) measureTo(to *distances, k int, places [4]int32) {
	for i := range c.x[:c.n] {
		for t, p := range places {
			d := c.x[i][k] - p
			to[i][t] = d * d
		}
	}
}

// plus returns the sums.
func (d *distances) plus(other *distances) (sum distances) {
	for i := range d {
		for t, a := range d[i] {
			sum[i][t] = a + other[i][t]
		}
	}
	return sum
}

// error returns the sum of the distances from the nearest places, with those of channel k added; or the limit or more, if it has reached
// that. Distances above 65535 are 65535.
func (c *colors) error(others *distances, k int, places [4]int32, limit int32) (err int32) {
	for i := range c.x[:c.n] {
		x, o := c.x[i][k], &others[i]
		r, s, t, u := x-places[0], x-places[1], x-places[2], x-places[3]
		err += min(o[0]+r*r, o[1]+s*s, o[2]+t*t, o[3]+u*u, 65535)
		if err >= limit {
			break
		}
	}
	return err
}

// levels are the greatest endpoint values.
var levels = rgb{31, 63, 31}

// widen returns channel k of an endpoint in 8 bits.
func widen(q int32, k int) int32 {
	if k == 1 {
		return q<<2 | q>>4
	}
	return q<<3 | q>>2
}

// between returns the value at a place between a, at 0, and b, at last (2 or 3). It rounds as decoders do.
func between(a, b, place, last int32) int32 {
	if last == 2 {
		return (a*(2-place) + b*place) / 2
	}
	return (a*(3-place) + b*place) / 3
}

// places returns the places of a channel. If there are three, the fourth is the third.
func (e *ends) places(k int) [4]int32 {
	a, b := widen(e.q[0][k], k), widen(e.q[1][k], k)
	return [4]int32{a, between(a, b, 1, e.last), between(a, b, 2, e.last), b}
}

// palette returns the colours of the places.
func (e *ends) palette() (p [4]rgb) {
	for k := range 3 {
		v := e.places(k)
		p[0][k], p[1][k], p[2][k], p[3][k] = v[0], v[1], v[2], v[3]
	}
	return p
}

// assign gives each pixel the nearest place along the line, and returns the sum of squared errors.
func (c *colors) assign(e *ends) (fit, int32) {
	p := e.palette()
	d := rgb{p[e.last&3][0] - p[0][0], p[e.last&3][1] - p[0][1], p[e.last&3][2] - p[0][2]}
	middle := rgb{2: 1 << 30} // unreachable with three places, but small enough that differences do not overflow
	for i := range e.last {
		a, b := &p[i&3], &p[(i+1)&3]
		middle[i] = (a[0]+b[0])*d[0] + (a[1]+b[1])*d[1] + (a[2]+b[2])*d[2]
	}
	f := fit{last: e.last, n: int32(c.n), x: c.sum}
	var err int32
	for i := range c.x[:c.n] {
		x := &c.x[i]
		at := 2 * (x[0]*d[0] + x[1]*d[1] + x[2]*d[2])
		t := int32(uint32(middle[0]-at)>>31 + uint32(middle[1]-at)>>31 + uint32(middle[2]-at)>>31)
		y := &p[t&3]
		r, g, b := x[0]-y[0], x[1]-y[1], x[2]-y[2]
		err += r*r + g*g + b*b
		f.t += t
		f.tt += t * t
		f.tx[0] += t * x[0]
		f.tx[1] += t * x[1]
		f.tx[2] += t * x[2]
	}
	return f, err
}

// solve returns the least-squares endpoints in 5, 6 and 5 bits, and their score: 36 times the sum of squared errors, without
// the part that does not depend on the endpoints.
//
// With u = t/last the error is the sum of |(1-u)*a + u*b - x|^2 for endpoints a and b, a separate quadratic form for each
// channel. solve tries the first endpoint on both sides of its real optimum, each with the best second endpoint for it.
func (f *fit) solve() (ends, int32) {
	l := f.last
	aa, ab, bb := f.n*l*l-2*l*f.t+f.tt, l*f.t-f.tt, f.tt // of a*a, a*b, b*b, times l*l
	det, half := 1/float32(aa*bb-ab*ab), 1/float32(bb)
	e := ends{last: l}
	var sum int32
	for k := range 3 {
		xb := l * f.tx[k]
		xa := l*l*f.x[k] - xb
		scale := float32(levels[k]) / 255
		from := int32(min(max(float32(xa*bb-xb*ab)*det, 0), 255) * scale)
		least := worst
		for q0 := from; q0 <= min(from+1, levels[k]); q0++ {
			a := widen(q0, k)
			q1 := int32(float32(min(max(float32(xb-ab*a)*half, 0), 255)*scale) + 0.5)
			b := widen(q1, k)
			if err := a*(aa*a+2*ab*b-2*xa) + b*(bb*b-2*xb); err < least {
				least, e.q[0][k], e.q[1][k] = err, q0, q1
			}
		}
		sum += least
	}
	return e, sum * (36 / (l * l))
}

// colorCodes are the indices of the places, by last and by whether the endpoints are swapped.
var colorCodes = [4][2][4]uint64{2: {{0, 2, 1}, {1, 2, 0}}, 3: {{0, 2, 3, 1}, {1, 3, 2, 0}}}

// write returns the block for some endpoints, with each pixel at its nearest place. The order of the endpoints encodes the
// number of places.
func (c *colors) write(e ends) uint64 {
	p := e.palette()
	q0 := uint64(e.q[0][0]<<11 | e.q[0][1]<<5 | e.q[0][2])
	q1 := uint64(e.q[1][0]<<11 | e.q[1][1]<<5 | e.q[1][2])
	codes := &colorCodes[e.last&3][0]
	if (q0 < q1) == (e.last == 3) {
		q0, q1 = q1, q0
		codes = &colorCodes[e.last&3][1]
	}
	if q0 == q1 {
		codes = &[4]uint64{} // equal endpoints always mean three places
	}
	if c.by != nil && c.n == 16 {
		return q0 | q1<<16 | c.codesLanes(&p, e.last, codes)<<32
	}
	bits := uint64(0xffffffff) // transparent
	for i := range c.x[:c.n] {
		x := &c.x[i]
		least := worst
		for t := range e.last + 1 {
			y := &p[t&3]
			r, g, b := x[0]-y[0], x[1]-y[1], x[2]-y[2]
			least = min(least, (r*r+g*g+b*b)<<2|t)
		}
		bits ^= (codes[least&3] ^ 3) << (2 * c.who[i])
	}
	return q0 | q1<<16 | bits<<32
}
