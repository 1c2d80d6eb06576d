package bptc

import (
	"math"
	mathbits "math/bits"
)

// moments are sums over some pixels: of their channels, the squares and the products.
type moments struct {
	r, g, b, rr, gg, bb, rg, rb, gb int32
	a, aa, ra, ga, ba               int32 // with alpha only
}

func (m *moments) add(o *moments, alpha bool) {
	m.r += o.r
	m.g += o.g
	m.b += o.b
	m.rr += o.rr
	m.gg += o.gg
	m.bb += o.bb
	m.rg += o.rg
	m.rb += o.rb
	m.gb += o.gb
	if alpha {
		m.a += o.a
		m.aa += o.aa
		m.ra += o.ra
		m.ga += o.ga
		m.ba += o.ba
	}
}

// less returns m minus o.
func (m moments) less(o *moments) moments {
	return moments{m.r - o.r, m.g - o.g, m.b - o.b, m.rr - o.rr, m.gg - o.gg, m.bb - o.bb, m.rg - o.rg, m.rb - o.rb, m.gb - o.gb,
		m.a - o.a, m.aa - o.aa, m.ra - o.ra, m.ga - o.ga, m.ba - o.ba}
}

// scatter estimates the squared distances of n pixels from a line, summed, and their spread along it. It is exact for pixels
// in a plane, where the eigenvalues of the covariance follow from its trace and its norm; for others it overestimates the
// distance. It takes a few nanoseconds.
func (m *moments) scatter(n int, alpha bool) (off, along float32) {
	inverse := inverses[n&31]
	rr := float32(m.rr) - float32(float32(m.r*m.r)*inverse)
	gg := float32(m.gg) - float32(float32(m.g*m.g)*inverse)
	bb := float32(m.bb) - float32(float32(m.b*m.b)*inverse)
	rg := float32(m.rg) - float32(float32(m.r*m.g)*inverse)
	rb := float32(m.rb) - float32(float32(m.r*m.b)*inverse)
	gb := float32(m.gb) - float32(float32(m.g*m.b)*inverse)
	trace := rr + gg + bb
	norm := float32(rr*rr) + float32(gg*gg) + float32(bb*bb) + 2*(float32(rg*rg)+float32(rb*rb)+float32(gb*gb))
	if alpha {
		aa := float32(m.aa) - float32(float32(m.a*m.a)*inverse)
		ra := float32(m.ra) - float32(float32(m.r*m.a)*inverse)
		ga := float32(m.ga) - float32(float32(m.g*m.a)*inverse)
		ba := float32(m.ba) - float32(float32(m.b*m.a)*inverse)
		trace += aa
		norm += float32(aa*aa) + 2*(float32(ra*ra)+float32(ga*ga)+float32(ba*ba))
	}
	root := float32(math.Sqrt(float64(max(0, norm+norm-float32(trace*trace)))))
	along = float32((trace + root) / 2)
	return trace - along, along
}

var inverses = [32]float32{1: 1, 1. / 2, 1. / 3, 1. / 4, 1. / 5, 1. / 6, 1. / 7, 1. / 8, 1. / 9, 1. / 10, 1. / 11, 1. / 12,
	1. / 13, 1. / 14, 1. / 15, 1. / 16}

// estimator estimates the error of the partitions of a block. It has the moments of each set of pixels of each row of the
// block, so the moments of any subset take four additions, instead of eight pixel by pixel.
type estimator struct {
	alpha bool // alpha is included
	rows  [4][16]moments
	all   moments

	lanes  bool // pixels is used instead of rows, and eight partitions are estimated at once
	pixels pixelMoments
}

// estimates has the results of scatter for partitions.
type estimates struct{ off, along [64]float32 }

// fill stores the pixels of a block. If alpha is not included, it must be the same for all.
func (e *estimator) fill(pix *[16][4]int32, alpha bool) {
	if e.lanes {
		e.alpha = alpha
		if alpha {
			e.all = e.pixels.fill(pix)
		} else {
			e.all = e.pixels.colours(pix)
		}
		return
	}
	for y := range e.rows {
		row := &e.rows[y]
		for x := range 4 {
			p := &pix[4*y+x]
			one := moments{p[0], p[1], p[2], p[0] * p[0], p[1] * p[1], p[2] * p[2], p[0] * p[1], p[0] * p[2], p[1] * p[2],
				p[3], p[3] * p[3], p[0] * p[3], p[1] * p[3], p[2] * p[3]}
			for set := range 1 << x {
				sum := row[set&15]
				sum.add(&one, true)
				row[(set|1<<x)&15] = sum
			}
		}
	}
	e.alpha = true
	e.all = e.of(0xffff)
	e.alpha = alpha
}

func (e *estimator) of(mask uint16) moments {
	m := e.rows[0][mask&15]
	m.add(&e.rows[1][mask>>4&15], e.alpha)
	m.add(&e.rows[2][mask>>8&15], e.alpha)
	m.add(&e.rows[3][mask>>12], e.alpha)
	return m
}

// two estimates a partition of two subsets.
func (e *estimator) two(partition uint8) (off, along float32) {
	mask := partitions2[partition&63]
	n := mathbits.OnesCount16(mask)
	second := e.of(mask)
	first := e.all.less(&second)
	off0, along0 := first.scatter(16-n, e.alpha)
	off1, along1 := second.scatter(n, e.alpha)
	return off0 + off1, along0 + along1
}

// three estimates a partition of three subsets.
func (e *estimator) three(partition uint8) (off, along float32) {
	subsets := partitions3[partition&63]
	mask1, mask2 := squeeze(subsets), squeeze(subsets>>1)
	n1, n2 := mathbits.OnesCount16(mask1), mathbits.OnesCount16(mask2)
	second, third := e.of(mask1), e.of(mask2)
	first := e.all.less(&second)
	first = first.less(&third)
	off0, along0 := first.scatter(16-n1-n2, e.alpha)
	off1, along1 := second.scatter(n1, e.alpha)
	off2, along2 := third.scatter(n2, e.alpha)
	return off0 + off1 + off2, along0 + along1 + along2
}

// twos estimates the first n partitions of two subsets; n is a multiple of 8.
func (e *estimator) twos(n uint8, to *estimates) {
	switch table := groupTables(); {
	case !e.lanes:
		for p := range n {
			to.off[p&63], to.along[p&63] = e.two(p)
		}
	case e.alpha:
		estimateTwoAlpha(&e.pixels[0][0], &table.two[0].second[0][0], &to.off[0], &to.along[0], int(n)/8)
	default:
		estimateTwo(&e.pixels[0][0], &table.two[0].second[0][0], &to.off[0], &to.along[0], int(n)/8)
	}
}

// threes estimates all partitions of three subsets of an opaque block.
func (e *estimator) threes(to *estimates) {
	if e.lanes {
		estimateThree(&e.pixels[0][0], &groupTables().three[0].second[0][0], &to.off[0], &to.along[0], 8)
		return
	}
	for p := range uint8(64) {
		to.off[p], to.along[p] = e.three(p)
	}
}

// apart estimates a rotation: the error of the block off the line of the colours, and the variation of the channel with
// separate indices.
func (e *estimator) apart(rotation uint8) (off, along, apart float32) {
	m := e.all
	switch rotation {
	case 1:
		m = moments{r: m.a, g: m.g, b: m.b, rr: m.aa, gg: m.gg, bb: m.bb, rg: m.ga, rb: m.ba, gb: m.gb, a: m.r, aa: m.rr}
	case 2:
		m = moments{r: m.r, g: m.a, b: m.b, rr: m.rr, gg: m.aa, bb: m.bb, rg: m.ra, rb: m.rb, gb: m.ba, a: m.g, aa: m.gg}
	case 3:
		m = moments{r: m.r, g: m.g, b: m.a, rr: m.rr, gg: m.gg, bb: m.aa, rg: m.rg, rb: m.ra, gb: m.ga, a: m.b, aa: m.bb}
	}
	off, along = m.scatter(16, false)
	return off, along, float32(m.aa) - float32(float32(m.a*m.a)/16)
}

// candidate is a mode with its partition, or with its rotation and selector, and its expected error.
type candidate struct {
	cost               float32
	mode, partition    uint8
	rotation, selector uint8
}

// candidates are the best candidates so far, best first.
type candidates struct {
	list  [64]candidate
	n     int
	limit float32 // candidates with a higher cost are not kept
}

func (c *candidates) reset(limit float32) { c.n, c.limit = 0, limit }

// may reports whether a candidate of this cost would be kept, ignoring ties.
func (c *candidates) may(cost float32) bool { return cost <= c.limit }

// add keeps a candidate if it is among the best most ones. Of equal candidates the earlier one is ranked first.
func (c *candidates) add(other candidate, most int) {
	if other.cost <= c.limit {
		c.insert(other, most)
	}
}

func (c *candidates) insert(other candidate, most int) {
	if c.n < most {
		c.n++
	} else if other.cost >= c.list[(c.n-1)&63].cost {
		return
	}
	i := c.n - 1
	for ; i > 0 && c.list[(i-1)&63].cost > other.cost; i-- {
		c.list[i&63] = c.list[(i-1)&63]
	}
	c.list[i&63] = other
	if c.n == most {
		c.limit = min(c.limit, c.list[(c.n-1)&63].cost)
	}
}
