package bptc

import (
	"encoding/binary"
	"math"
)

// group has the pixels of one subset. Channels that a fit must ignore are zero.
type group struct {
	n   int
	pix [16][4]int32
	sum [4]int32

	lanes  *modeLanes // if not nil, pixels are of 8 bits, are also in packed, and fits use vector code
	packed packed
}

// line has the two endpoints of a subset, as stored, without parity, and as decoded.
type line struct {
	stored [2][4]uint8
	parity [2]uint8
	shown  [2][4]int32
}

// fitted is the result of a fit for a group: a line, an index for each pixel, and the squared error.
type fitted struct {
	line
	index [16]uint8
	err   int32
}

// far is above any real error: 16 pixels of four channels give at most 4,161,600.
const far = 1 << 30

// sums are over a group's pixels, with w the weight of the second endpoint by the pixel's index.
type sums struct {
	w, ww int32
	wp    [4]int32
}

// quadric is the increase of a group's error when the endpoints move away from the optimum by d0 and d1, with fixed indices:
// a*d0*d0 + 2*b*d0*d1 + c*d1*d1 for each channel, up to a factor.
type quadric struct{ a, b, c float32 }

// Sets of parities of two endpoints: bit i stands for parities i&1 and i>>1.
const (
	evenOnly    = 0b0001
	oddOnly     = 0b1000
	equalParity = 0b1001
	anyParity   = 0b1111
)

// gather stores the pixels of subset s.
func (g *group) gather(pix *[16][4]int32, subsets, s uint32, alpha bool) {
	n := 0
	g.sum = [4]int32{}
	for i := range pix {
		if subsets>>(2*i)&3 != s {
			continue
		}
		p := pix[i]
		if !alpha {
			p[3] = 0
		}
		g.pix[n&15] = p
		for c := range 4 {
			g.sum[c] += p[c]
		}
		n++
	}
	g.n = n
	g.pack()
}

// descend finds a line from a given one by least squares over the indices of each line, while the error decreases, at most
// rounds times. It stops if the error is above twice the useful error, because least squares rarely halve it. The endpoints are
// rounded together to values that mode m can store, so that the error, a quadric, grows least. It also stops at indices that are
// known. It overwrites ends. The group has the sums of span.
func (g *group) descend(m *mode7, indexBits, parities uint8, rounds int, use int32, ends *[2][4]float32, best *fitted, known *known) {
	var try fitted
	var s sums
	q := quadric{1, 0, 1}
	best.err = far
	for {
		if g.lanes != nil {
			roundLanes(&g.lanes[0][0], &parityLanes[0][0], &ends[0][0], &q.a, uint32(parities), &try.stored[0][0], &try.shown[0][0])
		} else {
			m.round(ends, q, parities, &try.line)
		}
		g.assign(&try, &weights[indexBits], 1<<indexBits-1, &s)
		if try.err >= best.err {
			return
		}
		*best = try
		if rounds--; rounds < 0 || best.err == 0 || best.err/2 > use || known.has(&try.index, g.n) || !g.solve(&s, ends, &q) {
			return
		}
	}
}

// known has indices of a group for which least squares have been solved.
type known struct {
	list [32][16]uint8
	n    int
}

// has reports whether the indices of n pixels are known, and adds them.
func (k *known) has(index *[16]uint8, n int) bool {
	if k == nil {
		return false
	}
	low, high := ^uint64(0), ^uint64(0) // the bytes of n pixels; others have no meaning
	if n < 8 {
		low, high = 1<<(8*n)-1, 0
	} else {
		high >>= 8 * (16 - n)
	}
	a, b := binary.LittleEndian.Uint64(index[:8])&low, binary.LittleEndian.Uint64(index[8:])&high
	for i := range k.list[:k.n] {
		other := &k.list[i]
		if binary.LittleEndian.Uint64(other[:8])&low == a && binary.LittleEndian.Uint64(other[8:])&high == b {
			return true
		}
	}
	if k.n < len(k.list) {
		k.list[k.n] = *index
		k.n++
	}
	return false
}

// span finds the line through the mean of the pixels along their principal axis, from the first to the last pixel.
func (g *group) span(ends *[2][4]float32) {
	if g.lanes != nil {
		spanLanes(&g.packed[0][0], &assignMasks()[g.n&31][0][0], int32(g.n), inverses[g.n&31], &g.sum[0], &ends[0][0])
		return
	}
	var cov [4][4]int32 // n times the covariance
	for _, p := range g.pix[:g.n] {
		cov[0][0] += p[0] * p[0]
		cov[0][1] += p[0] * p[1]
		cov[0][2] += p[0] * p[2]
		cov[0][3] += p[0] * p[3]
		cov[1][1] += p[1] * p[1]
		cov[1][2] += p[1] * p[2]
		cov[1][3] += p[1] * p[3]
		cov[2][2] += p[2] * p[2]
		cov[2][3] += p[2] * p[3]
		cov[3][3] += p[3] * p[3]
	}
	n := int32(g.n)
	var m [4][4]float32
	top := 0
	for i := range 4 {
		for j := i; j < 4; j++ {
			v := float32(n*cov[i][j] - g.sum[i]*g.sum[j])
			m[i][j], m[j][i] = v, v
		}
		if m[i][i] > m[top][top] {
			top = i
		}
	}
	axis := principal(&m, top)
	inverse := 1 / float32(n)
	var mean [4]float32
	for c := range 4 {
		mean[c] = float32(g.sum[c]) * inverse
	}
	low, high := float32(0), float32(0)
	for _, p := range g.pix[:g.n] {
		t := float32((float32(p[0])-mean[0])*axis[0]) + float32((float32(p[1])-mean[1])*axis[1]) +
			float32((float32(p[2])-mean[2])*axis[2]) + float32((float32(p[3])-mean[3])*axis[3])
		low, high = min(low, t), max(high, t)
	}
	for c := range 4 {
		ends[0][c] = mean[c] + float32(low*axis[c])
		ends[1][c] = mean[c] + float32(high*axis[c])
	}
}

// principal returns the unit vector along the largest eigenvector of a covariance, by power iteration from its row of the
// largest variance. It returns zero if there is no variance.
func principal(m *[4][4]float32, top int) [4]float32 {
	v := m[top]
	for range 4 {
		var most float32
		var u [4]float32
		for i := range 4 {
			u[i] = dot(&m[i], &v)
			most = max(most, u[i], -u[i])
		}
		if most == 0 {
			return v
		}
		scale := 1 / most
		for i := range 4 {
			v[i] = u[i] * scale
		}
	}
	scale := 1 / float32(math.Sqrt(float64(dot(&v, &v))))
	for i := range 4 {
		v[i] *= scale
	}
	return v
}

func dot(a, b *[4]float32) float32 {
	return float32(a[0]*b[0]) + float32(a[1]*b[1]) + float32(a[2]*b[2]) + float32(a[3]*b[3])
}

// assign gives each pixel the index of the nearest value along the line, and computes the sums.
func (g *group) assign(f *fitted, weights *[16]int32, levels int32, s *sums) {
	if g.lanes != nil {
		f.err = assignLanes(&g.packed[0][0], &f.shown[0][0], weights, &assignMasks()[g.n&31][0][0], levels, &f.index[0], &s.w)
		return
	}
	e0, e1 := f.shown[0], f.shown[1]
	d0, d1, d2, d3 := e1[0]-e0[0], e1[1]-e0[1], e1[2]-e0[2], e1[3]-e0[3]
	scale := float32(0)
	if length := d0*d0 + d1*d1 + d2*d2 + d3*d3; length > 0 {
		scale = float32(levels) / float32(length)
	}
	*s = sums{}
	err := int32(0)
	for i := range g.n & 31 {
		p := &g.pix[i&15]
		p0, p1, p2, p3 := p[0]-e0[0], p[1]-e0[1], p[2]-e0[2], p[3]-e0[3]
		at := int32(float32(float32(p0*d0+p1*d1+p2*d2+p3*d3)*scale) + 0.5)
		at = min(max(at, 0), levels)
		f.index[i&15] = uint8(at)
		w := weights[at&15]
		p0 -= (d0*w + 32) >> 6
		p1 -= (d1*w + 32) >> 6
		p2 -= (d2*w + 32) >> 6
		p3 -= (d3*w + 32) >> 6
		err += p0*p0 + p1*p1 + p2*p2 + p3*p3
		s.w += w
		s.ww += w * w
		s.wp[0] += w * p[0]
		s.wp[1] += w * p[1]
		s.wp[2] += w * p[2]
		s.wp[3] += w * p[3]
	}
	f.err = err
}

// solve finds the best endpoints for the indices in the sums, and the increase of the error around them. It returns false if
// all indices are the same.
func (g *group) solve(s *sums, ends *[2][4]float32, q *quadric) bool {
	a, b, c := int64(4096*int32(g.n)-128*s.w+s.ww), int64(64*s.w-s.ww), int64(s.ww)
	det := a*c - b*b
	if det == 0 {
		return false
	}
	scale := 64 / float64(det)
	for i := range 4 {
		x1 := int64(s.wp[i])
		x0 := int64(64*g.sum[i]) - x1
		ends[0][i] = float32(float64(c*x0-b*x1) * scale)
		ends[1][i] = float32(float64(a*x1-b*x0) * scale)
	}
	*q = quadric{float32(a), float32(2 * b), float32(c)}
	return true
}

// round finds the stored endpoints near ends with the least quadric, among all allowed parities.
func (m *mode7) round(ends *[2][4]float32, q quadric, parities uint8, to *line) {
	var near [4][2][2][2]uint8 // decoded values: by channel, endpoint, parity; below and above
	var costs [4]float32       // by parities
	var choice [4][4]uint8     // by parities, channel
	channels := 3
	if m.alphaBits > 0 {
		channels = 4
	}
	for c := range channels {
		var off [2][2][2]float32 // difference of near from the wanted value
		for end := range 2 {
			for p := range int32(2) {
				if parities&having[end][p] != 0 {
					near[c][end][p], off[end][p] = m.neighbours(c, ends[end][c], p)
				}
			}
		}
		for p := range uint8(4) {
			if parities>>p&1 == 1 {
				cost, best := q.least(&off[0][p&1], &off[1][p>>1])
				costs[p] += cost
				choice[p][c] = best
			}
		}
	}
	best := uint8(0)
	least := float32(math.MaxFloat32)
	for p := range uint8(4) {
		if parities>>p&1 == 1 && costs[p] < least {
			best, least = p, costs[p]
		}
	}
	*to = line{parity: [2]uint8{best & 1, best >> 1}}
	for c := range channels {
		drop := 8 - m.channelBits(c)
		for end := range uint8(2) {
			v := near[c][end][to.parity[end]&1][choice[best][c]>>end&1]
			to.stored[end][c], to.shown[end][c] = v>>(drop&7), int32(v)
		}
	}
}

// having are the sets of parities in which the first or second endpoint has parity 0 or 1.
var having = [2][2]uint8{{0b0101, 0b1010}, {0b0011, 0b1100}}

// neighbours returns the decodable values of channel c below and above x, among those of a parity, and their distances above
// x. Since the expansion to 8 bits rounds, they may be off by one.
func (m *mode7) neighbours(c int, x float32, parity int32) (shown [2]uint8, off [2]float32) {
	width, step := m.channelBits(c), uint(0)
	if m.p != noParity {
		width, step = width+1, 1
	}
	top := int32(1)<<(width&15) - 1
	v := (int32(x*scales[width&15]) - parity) >> step
	v = min(max(v, 0), top>>step)
	w := min(v+1, top>>step)
	v, w = v<<step|parity, w<<step|parity
	up, down := (8-width)&15, (2*width-8)&15
	v, w = v<<up|v>>down, w<<up|w>>down
	return [2]uint8{uint8(v), uint8(w)}, [2]float32{float32(v) - x, float32(w) - x}
}

// scales are the factors from 8 bits to a number of bits.
var scales = [16]float32{4: 15. / 255, 5: 31. / 255, 6: 63. / 255, 7: 127. / 255, 8: 1}

// least tries both values of d0 with both of d1. In best, bit 0 is the choice of d0, bit 1 that of d1.
func (q quadric) least(d0, d1 *[2]float32) (cost float32, best uint8) {
	a0, a1 := float32(float32(q.a*d0[0])*d0[0]), float32(float32(q.a*d0[1])*d0[1])
	c0, c1 := float32(float32(q.c*d1[0])*d1[0]), float32(float32(q.c*d1[1])*d1[1])
	b0, b1 := float32(q.b*d0[0]), float32(q.b*d0[1])
	cost = a0 + c0 + float32(b0*d1[0])
	if v := a1 + c0 + float32(b1*d1[0]); v < cost {
		cost, best = v, 1
	}
	if v := a0 + c1 + float32(b0*d1[1]); v < cost {
		cost, best = v, 2
	}
	if v := a1 + c1 + float32(b1*d1[1]); v < cost {
		cost, best = v, 3
	}
	return cost, best
}
