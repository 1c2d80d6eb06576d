package bcn

import (
	"math"
	"sync"
)

// Most of the work for a good colour block is to find which pixels share a place. In the order along the line of their
// greatest spread, each place has a run of pixels. So there are few ways to divide the pixels into runs, and least squares
// give the error of the best endpoints for each. That is Simon Brown's cluster fit (libsquish, 2006).
//
// It is fast when treated as a regression. Let t = 0, 1, 2, 3 be the place of a pixel of colour x. Compared with a single
// colour for all pixels, the best endpoints reduce the sum of squared errors by
//
//	|n*sum(t*x) - sum(t)*sum(x)|^2 / n(n*sum(t*t) - sum(t)^2)
//
// The divisor depends only on the cuts and is in a table. The vector is the sum of three vectors, one for each cut: the
// deviation from the mean of all pixels after it. So its square is a sum of dot products, of which there are only 136.

// shape is a way to divide n pixels into runs: in order, the first cut[0] pixels are at place 0, those up to cut[1] at 1,
// those up to cut[2] at 2, and the rest at 3. Divisions that differ only by a shift of places are one shape: two runs have
// cut[0] = cut[2], or cut[0] = cut[1] if four places are not possible; three runs have cut[2] = n.
//
// Its gain is the reduction of the sum of squared errors by the best endpoints, as the bits of a float32: a greater float
// has greater bits, and the greatest integer can be found without branches.
type shape struct {
	cut  [3]uint8
	gain int32
}

// shapes are all shapes of n pixels in the order of three nested loops. For each, inverse is 1/n(n*sum(t*t) - sum(t)^2), or
// 0 for entries that only keep the loops simple.
type shapes struct {
	cuts    [][3]uint8
	inverse []float32
}

// maxShapes is at least the number of shapes of 16 pixels: 680 of four runs or two, 105 of three, and 15 unused entries.
const maxShapes = 800

// allShapes has the shapes by the number of pixels; the second array is limited to three runs.
var allShapes = sync.OnceValue(func() *[2][17]shapes {
	all := new([2][17]shapes)
	for n := 2; n <= 16; n++ {
		four, three := &all[0][n], &all[1][n]
		for i := 1; i < n; i++ {
			for j := i; j < n; j++ {
				for k := j; k <= n; k++ {
					t, tt := (n-i)+(n-j)+(n-k), (n-i)+3*(n-j)+5*(n-k)
					cut, inverse := [3]uint8{uint8(i), uint8(j), uint8(k)}, 1/float32(n*(n*tt-t*t))
					if k == n {
						three.cuts, three.inverse = append(three.cuts, cut), append(three.inverse, inverse)
						if i == j {
							inverse = 0 // two runs are already at i = j = k
						}
					}
					four.cuts, four.inverse = append(four.cuts, cut), append(four.inverse, inverse)
				}
			}
		}
	}
	return all
})

// sort sorts the pixels along an axis.
func (c *colors) sort(axis rgb) {
	if c.by != nil && c.n == 16 {
		c.sortLanes(axis)
		return
	}
	var keys [16]int32
	for i := range keys {
		keys[i] = worst
		if i < c.n {
			p := &c.x[i]
			keys[i] = (p[0]*axis[0]+p[1]*axis[1]+p[2]*axis[2])<<4 | int32(i) // 255*1024*3*16 is less than 2^24
		}
	}
	for _, ij := range network {
		a, b := &keys[ij[0]&15], &keys[ij[1]&15]
		*a, *b = min(*a, *b), max(*a, *b)
	}
	for i, k := range keys {
		c.order[i] = uint8(k & 15)
	}
	var s rgb
	c.tail[c.n] = s
	for i := c.n - 1; i >= 0; i-- {
		p := &c.x[c.order[i]&15]
		s[0] += p[0]
		s[1] += p[1]
		s[2] += p[2]
		c.tail[i] = s
	}
}

// network sorts 16 numbers with 60 comparisons (Green 1969; Knuth, The Art of Computer Programming 3, section 5.3.4).
var network = [60][2]uint8{
	{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15},
	{0, 2}, {4, 6}, {8, 10}, {12, 14}, {1, 3}, {5, 7}, {9, 11}, {13, 15},
	{0, 4}, {8, 12}, {1, 5}, {9, 13}, {2, 6}, {10, 14}, {3, 7}, {11, 15},
	{0, 8}, {1, 9}, {2, 10}, {3, 11}, {4, 12}, {5, 13}, {6, 14}, {7, 15},
	{5, 10}, {6, 9}, {3, 12}, {13, 14}, {4, 8}, {7, 11}, {1, 2},
	{1, 4}, {7, 13}, {2, 8}, {11, 14}, {5, 6}, {9, 10},
	{2, 4}, {11, 13}, {3, 8}, {7, 12},
	{6, 8}, {10, 12}, {3, 5}, {7, 9},
	{3, 4}, {5, 6}, {7, 8}, {9, 10}, {11, 12},
	{6, 7}, {8, 9},
}

// cluster returns the best endpoints for the most promising shapes.
func (c *colors) cluster(f Format, most int) (best ends) {
	s, three := &allShapes()[0][c.n], !c.may(3, f)
	if three {
		s = &allShapes()[1][c.n]
	}
	if c.by != nil && c.n == 16 {
		c.clusterLanes(most)
		return c.solveTop(f)
	}
	gain, spread := c.measure(s, three)
	c.pick(s, most, gain, spread)
	least := worst
	for i := range c.top {
		runs, base := c.fit(&c.top[i])
		for _, u := range uses[runs] {
			if !c.may(u.last, f) {
				continue
			}
			at := base.moved(u)
			if e, err := at.solve(); err < least {
				best, least = e, err
			}
		}
	}
	return best
}

// measure computes the gain of each shape. It returns the greatest gain, and an upper limit of any gain: the sum of the
// colours' squared distances from their mean.
func (c *colors) measure(s *shapes, three bool) (best, spread float32) {
	n := c.n
	var v [17][3]float32 // n times the deviation from the mean of the pixels from i on
	for i := 1; i < n; i++ {
		for k := range 3 {
			v[i][k] = float32(int32(n)*c.tail[i][k] - int32(n-i)*c.sum[k])
		}
	}
	var square [17]float32
	var twice [17][17]float32 // the dot products, times 2
	for i := 1; i < n; i++ {
		for j := 1; j <= i; j++ {
			square[i] = float32(v[i][0]*v[j][0]) + float32(v[i][1]*v[j][1]) + float32(v[i][2]*v[j][2])
			twice[j][i] = 2 * square[i]
		}
	}
	inverse, gains := s.inverse, c.gains[:len(s.inverse)]
	var both [17]float32
	top := int32(0)
	for i := 1; i < n; i++ {
		for k := i; k <= n; k++ {
			both[k] = square[k] + twice[i][k]
		}
		for j := i; j < n; j++ {
			from := j
			if three {
				from = n
			}
			base := square[i] + both[j]
			row := both[from : n+1]
			other, by, out := twice[j][from:][:len(row)], inverse[:len(row)], gains[:len(row)]
			for k, x := range row {
				g := int32(math.Float32bits((base + x + other[k]) * by[k]))
				top = max(top, g)
				out[k] = g
			}
			inverse, gains = inverse[len(row):], gains[len(row):]
		}
	}
	return math.Float32frombits(uint32(top)), spreadOf(&v, n)
}

// spreadOf returns the sum of the colours' squared distances from their mean.
func spreadOf(v *[17][3]float32, n int) (spread float32) {
	for i := range n {
		r, g, b := v[i][0]-v[i+1][0], v[i][1]-v[i+1][1], v[i][2]-v[i+1][2]
		spread += float32(r*r) + float32(g*g) + float32(b*b)
	}
	return spread / float32(n*n)
}

// limitOf returns the least gain, as bits, that is not much worse than the best.
func limitOf(best, spread float32) int32 {
	slack := max(float32(0.5*(spread-best)), 32)
	return int32(math.Float32bits(max(0, best-slack)))
}

// pick keeps the shapes with the greatest gains, except those that are much worse than the best.
func (c *colors) pick(s *shapes, most int, best, spread float32) {
	gains := c.gains[:len(s.cuts)]
	limit := limitOf(best, spread)
	c.top = c.top[:0]
	for i, g := range gains {
		limit = c.offer(s.cuts[i], g, most, limit)
	}
}

// offer keeps a shape if it is among the most promising ones, and returns the limit for the next.
func (c *colors) offer(cut [3]uint8, gain int32, most int, limit int32) int32 {
	if gain < limit {
		return limit
	}
	if len(c.top) < most {
		c.top = append(c.top, shape{})
	}
	k := len(c.top) - 1
	for ; k > 0 && c.top[k-1].gain < gain; k-- {
		c.top[k] = c.top[k-1]
	}
	c.top[k] = shape{cut, gain}
	if len(c.top) == most {
		limit = max(limit, c.top[most-1].gain)
	}
	return limit
}

// use maps the runs of a shape to places: the run times step, plus first.
type use struct{ last, step, first int32 }

// uses are those of two, three and four runs. For similar colours, a longer line without pixels at its ends is often better,
// since its places are closer to each other than colours of 5 and 6 bits.
var uses = [5][]use{
	2: {{3, 3, 0}, {3, 2, 0}, {3, 2, 1}, {3, 1, 0}, {3, 1, 1}, {3, 1, 2}, {2, 2, 0}, {2, 1, 0}, {2, 1, 1}},
	3: {{3, 1, 0}, {3, 1, 1}, {2, 1, 0}},
	4: {{3, 1, 0}},
}

// fit returns the number of runs of a shape, and the sums with the numbers of the runs as places.
func (c *colors) fit(s *shape) (runs int, f fit) {
	cuts := s.cut[:]
	if int(s.cut[2]) == c.n {
		cuts = cuts[:2]
	}
	if s.cut[0] == cuts[len(cuts)-1] {
		cuts = cuts[:1]
	}
	f = fit{n: int32(c.n), x: c.sum}
	for i, cut := range cuts {
		after := f.n - int32(cut)
		f.t += after
		f.tt += int32(2*i+1) * after // (i+1)^2 - i^2
		tail := c.from(cut)
		for k := range f.tx {
			f.tx[k] += tail[k]
		}
	}
	return len(cuts) + 1, f
}

// from returns the sum of the colours from a place on.
func (c *colors) from(cut uint8) rgb {
	if c.by == nil || c.n < 16 {
		return c.tail[cut]
	}
	t, i := &c.by.tails, (cut-1)&15
	return rgb{int32(t[0][i]), int32(t[1][i]), int32(t[2][i])}
}

// moved returns the sums for the places t*step + first.
func (f fit) moved(u use) fit {
	f.last = u.last
	f.tt = u.step*u.step*f.tt + 2*u.step*u.first*f.t + u.first*u.first*f.n
	f.t = u.step*f.t + u.first*f.n
	for k := range f.tx {
		f.tx[k] = u.step*f.tx[k] + u.first*f.x[k]
	}
	return f
}
