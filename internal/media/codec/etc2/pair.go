package etc2

// The modes T and H have two base colours for pixels anywhere in the block, and four colours on two or three lines along
// grey: T has c1, c2+d, c2 and c2-d; H has c1+d, c1-d, c2+d and c2-d. They are for blocks where two hues meet.
//
// The search starts with two clusters of pixels. For each mode and distance it alternates: pixels take their nearest
// colours, and base colours move to the mean of their pixels without the distances.

// cloud has the opaque pixels of a block.
type cloud struct {
	n      int
	pixels [16]rgb

	packed *[2]halfPixels // for vector code, of 16 pixels, in place of pixels
}

// pairing is a choice in the mode T or H.
type pairing struct {
	h        bool
	c1, c2   rgb // of 4 bits
	distance int32
}

// nowhere is a colour so far away that no pixel takes it; its distance to a pixel still fits 32 bits.
var nowhere = rgb{-10000, -10000, -10000}

// paint returns the colours of a choice. If punch is set, index 2 is for transparent pixels.
func (p *pairing) paint(punch bool) (paint [4]rgb) {
	if p.h {
		paint = hPaint(p.c1.widen(4), p.c2.widen(4), distances[p.distance&7])
	} else {
		paint = tPaint(p.c1.widen(4), p.c2.widen(4), distances[p.distance&7])
	}
	if punch {
		paint[2] = nowhere
	}
	return paint
}

// word returns the word of a choice. It may swap the base colours: in the H mode, their order is a bit of the distance.
func (p *pairing) word() (w uint64, ok bool) {
	if !p.h {
		return packT(p.c1, p.c2, p.distance), true
	}
	if odd := p.distance&1 == 1; odd != (p.c1.value() >= p.c2.value()) {
		p.c1, p.c2 = p.c2, p.c1
		if p.c1 == p.c2 {
			return 0, false
		}
	}
	return packH(p.c1, p.c2, p.distance), true
}

// pair tries the modes T and H.
func (s *search) pair() {
	var all cloud
	if s.lanes {
		all.packed = (*[2]halfPixels)(s.packed.pixels[2:])
	} else {
		for i := range s.px { // in rows
			if k := i&3<<2 | i>>2; s.mask>>k&1 == 1 {
				all.pixels[all.n&15] = s.px[k]
				all.n++
			}
		}
	}
	var last [2]rgb
	for _, grey := range [2]int32{1, 0} {
		means := all.clusters(grey)
		if means == last {
			break
		}
		last = means
		s.pairFrom(&all, means[0].narrow(), means[1].narrow())
	}
}

// pairFrom tries the modes T and H from two base colours on, each with the best distances. In a block that already has a low
// cost, refining seldom makes up for a start with a much higher one.
func (s *search) pairFrom(l *cloud, c1, c2 rgb) {
	all := l.starts(c1, c2, s.bit == 0)
	for mode, p := range [3]pairing{{true, c1, c2, 0}, {false, c1, c2, 0}, {false, c2, c1, 0}} {
		for range s.pairStarts {
			p.distance = 0
			for d := range all {
				if all[d][mode] < all[p.distance&7][mode] {
					p.distance = int32(d)
				}
			}
			cost := &all[p.distance&7][mode]
			if *cost > 2*s.best.cost-min(s.best.cost, 600)/2 {
				break
			}
			*cost = never
			s.refine(l, p)
		}
	}
}

// starts returns the costs for all distances in three modes: H, T, and T with the base colours swapped.
func (l *cloud) starts(c1, c2 rgb, punch bool) (costs [8][4]int32) {
	if l.packed != nil {
		startLanes(&l.packed[0][0][0][0], &[2]uint64{c1.widen(4).word(), c2.widen(4).word()}, &costs)
		return costs
	}
	for d := range costs {
		for mode, p := range [3]pairing{{true, c1, c2, int32(d)}, {false, c1, c2, int32(d)}, {false, c2, c1, int32(d)}} {
			costs[d][mode] = l.cost(&p, punch)
		}
	}
	return costs
}

// narrow rounds a colour of 8 bits to 4.
func (c rgb) narrow() rgb {
	for i := range c {
		c[i] = (clamp8(c[i])*15 + 127) / 255
	}
	return c
}

// clusters divides the pixels into two clusters and returns the means. grey is the weight of distances along grey, 1 or 0.
func (l *cloud) clusters(grey int32) [2]rgb {
	if l.packed != nil {
		return l.clusterLanes(grey)
	}
	apart := func(p, q *rgb) int32 {
		r, g, b := p[0]-q[0], p[1]-q[1], p[2]-q[2]
		s := r + g + b
		return 3*(r*r+g*g+b*b) - (1-grey)*s*s
	}
	farthest := func(from rgb) rgb {
		at, most := from, int32(-1)
		for i := range l.pixels[:l.n] {
			if d := apart(&l.pixels[i], &from); d > most {
				at, most = l.pixels[i], d
			}
		}
		return at
	}
	var means [2]rgb
	means[0] = farthest(l.pixels[0])
	means[1] = farthest(means[0])
	for range 4 {
		var sum [2]rgb
		var n [2]int32
		for i := range l.pixels[:l.n] {
			p, k := &l.pixels[i], 0
			if apart(p, &means[1]) < apart(p, &means[0]) {
				k = 1
			}
			n[k]++
			for c := range p {
				sum[k][c] += p[c]
			}
		}
		before := means
		for k := range means {
			for c := range 3 {
				if n[k] > 0 {
					means[k][c] = (sum[k][c] + n[k]/2) / n[k]
				}
			}
		}
		if means == before {
			break
		}
	}
	return means
}

// refine alternates from a choice on, and keeps the best.
func (s *search) refine(l *cloud, p pairing) {
	cost := int32(never)
	next := p
	for range s.pairTurns {
		at, c1, c2 := l.assign(&next, s.bit == 0)
		if at >= cost {
			break
		}
		cost, p = at, next
		s.keep(l, p, cost)
		if cost > 2*s.best.cost || c1 == p.c1 && c2 == p.c2 {
			break
		}
		next.c1, next.c2 = c1, c2
	}
	if s.polish && cost < s.best.cost*3/2 {
		cost = l.polish(&p, cost, s.bit == 0)
		s.keep(l, p, cost)
	}
}

// polish moves single channels of the base colours by a step while the cost decreases, always the one with the least cost.
func (l *cloud) polish(p *pairing, cost int32, punch bool) int32 {
	if l.packed != nil {
		return l.polishLanes(p, cost)
	}
	for {
		best, least := *p, cost
		for i := range 12 {
			q := *p
			c := &q.c1
			if i >= 6 {
				c = &q.c2
			}
			v := &c[i%6>>1]
			*v = min(max(*v+int32(i&1)*2-1, 0), 15)
			if at := l.cost(&q, punch); at < least {
				best, least = q, at
			}
		}
		if least == cost {
			return cost
		}
		*p, cost = best, least
	}
}

// keep keeps a choice if it is better than the best so far.
func (s *search) keep(l *cloud, p pairing, cost int32) {
	if cost >= s.best.cost {
		return
	}
	w, ok := p.word()
	if !ok {
		return
	}
	punch := s.bit == 0
	if punch {
		cost = l.cost(&p, punch) // after swapping, another colour is missing
	}
	paint := p.paint(punch)
	s.take(found{cost: cost, word: w | s.bit, paint: [2][4]rgb{paint, paint}, half: &leftHalf})
}

// cost returns the cost of a choice.
func (l *cloud) cost(p *pairing, punch bool) int32 {
	paint := p.paint(punch)
	if l.packed != nil {
		words := words(&paint)
		return paintCost(&l.packed[0][0][0][0], &words)
	}
	cost := int32(0)
	for i := range l.pixels[:l.n] {
		x := &l.pixels[i]
		cost += min(distance(x, &paint[0]), distance(x, &paint[1]), distance(x, &paint[2]), distance(x, &paint[3]))
	}
	return cost
}

// nearest returns the cost of paints, and for each paint the sum and the number of the pixels nearest to it.
func (l *cloud) nearest(paint *[4]rgb) (cost int32, sum [4]rgb, n [4]int32) {
	if l.packed != nil {
		return l.assignLanes(paint)
	}
	for i := range l.pixels[:l.n] {
		x := &l.pixels[i]
		d0, d1, d2, d3 := distance(x, &paint[0]), distance(x, &paint[1]), distance(x, &paint[2]), distance(x, &paint[3])
		least := min(d0, d1, d2, d3)
		k := 3
		switch least {
		case d0:
			k = 0
		case d1:
			k = 1
		case d2:
			k = 2
		}
		cost += least
		n[k]++
		s := &sum[k]
		s[0] += x[0]
		s[1] += x[1]
		s[2] += x[2]
	}
	return cost, sum, n
}

// assign returns the cost of a choice, and the best base colours for the current pixels of each.
func (l *cloud) assign(p *pairing, punch bool) (cost int32, c1, c2 rgb) {
	paint := p.paint(punch)
	cost, sum, n := l.nearest(&paint)
	d := distances[p.distance&7]
	if p.h {
		c1 = p.c1.mean(sum[0].plus(sum[1]), n[0]+n[1], d*(n[1]-n[0]))
		c2 = p.c2.mean(sum[2].plus(sum[3]), n[2]+n[3], d*(n[3]-n[2]))
	} else {
		c1 = p.c1.mean(sum[0], n[0], 0)
		c2 = p.c2.mean(sum[1].plus(sum[2]).plus(sum[3]), n[1]+n[2]+n[3], d*(n[3]-n[1]))
	}
	return cost, c1, c2
}

func (c rgb) plus(d rgb) rgb { return rgb{c[0] + d[0], c[1] + d[1], c[2] + d[2]} }

// mean returns the mean of n pixels in 4 bits, from their sum and the total of their distances. Without pixels it returns c.
func (c rgb) mean(sum rgb, n, offset int32) rgb {
	if n == 0 {
		return c
	}
	for i := range c {
		c[i] = (sum[i] + offset + n/2) / n
	}
	return c.narrow()
}
