package bptc

// attempt is a mode with its partition, or with its rotation and selector, and a fit for each part of the block: a subset, or
// the colours and the channel with separate indices.
type attempt struct {
	mode, partition    uint8
	rotation, selector uint8
	fits               [3]fitted
	spans              [3]spanned
	err                int32 // the sum of their errors
}

// spanned is what span finds.
type spanned struct {
	ends [2][4]float32
	sum  [4]int32
}

// mostAttempts is the largest number of attempts that are kept.
const mostAttempts = 8

func (a *attempt) parts() int {
	m := &modes7[a.mode&7]
	if m.index2Bits > 0 {
		return 2
	}
	return int(m.subsets)
}

// gather stores the pixels of a part of an attempt in a group. It returns the bits of their indices, and the parities that
// endpoints may have.
func (e *encoder7) gather(g *group, a *attempt, part int) (bits, parities uint8) {
	m := &modes7[a.mode&7]
	g.lanes = e.lanesOf(a.mode)
	alpha := m.alphaBits > 0
	switch {
	case m.index2Bits > 0:
		return e.separate(g, a, part), evenOnly
	case g.lanes == nil:
		g.gather(&e.pix, subsetsOf(int(m.subsets), a.partition), uint32(part), alpha)
	case alpha:
		g.take(&e.whole, &e.members[m.subsets&3][a.partition&63][part&3])
	default:
		g.take(&e.colours, &e.members[m.subsets&3][a.partition&63][part&3])
	}
	return m.indexBits, e.parities(m)
}

// least returns the least error so far.
func (e *encoder7) least() int32 {
	if e.n == 0 {
		return far
	}
	return e.kept[0].err
}

// limit returns the error from which on an attempt is not kept.
func (e *encoder7) limit() int32 {
	if e.n == 0 {
		return far
	}
	limit := worth(e.kept[0].err)
	if e.n == max(1, e.restarts) {
		limit = min(limit, e.kept[e.n-1].err)
	}
	return limit
}

// worth returns the error up to which an attempt is restarted, for the least error: few of those above become the best.
func worth(least int32) int32 { return least + least/4 }

// try fits the parts of an attempt, and keeps it if it is among the best.
func (e *encoder7) try(a attempt) {
	m, limit := &modes7[a.mode&7], e.limit()
	var g group
	for part := range a.parts() {
		bits, parities := e.gather(&g, &a, part)
		f := &a.fits[part]
		span := &a.spans[part]
		g.span(&span.ends)
		span.sum = g.sum
		ends := span.ends
		g.descend(m, bits, parities, e.rounds, limit-a.err, &ends, f, nil)
		if a.err += f.err; a.err >= limit {
			return
		}
	}
	if e.n < max(1, e.restarts) {
		e.n++
	}
	i := e.n - 1
	for ; i > 0 && e.kept[i-1].err > a.err; i-- {
		e.kept[i] = e.kept[i-1]
	}
	e.kept[i] = a
}

// lengths are half of those of the lines that a restart begins with, in lengths of the line through all pixels. Least squares
// end at the nearest minimum, and there are many: with indices of two bits, it matters which pixels share one; for similar
// colours, it matters how the endpoints are rounded. On photographs, restarts gain 0.16 to 0.34 dB.
// Blocks with alpha take the first six.
var lengths = [...]float32{0.35, 0.425, 0.575, 0.675, 0.85, 1.2, 0.625, 0.3}

// restart fits the kept attempts again from lines of other lengths, and moves the best one to the front.
func (e *encoder7) restart() {
	if e.restarts == 0 {
		return
	}
	best := e.kept[0]
	for i := range e.kept[:e.n] {
		a := &e.kept[i]
		if a.err > worth(best.err) {
			break
		}
		for part := range a.parts() {
			e.refit(a, part)
		}
		if a.err < best.err {
			best = *a
		}
	}
	e.kept[0] = best
}

// refit fits a part of an attempt from lines of other lengths.
func (e *encoder7) refit(a *attempt, part int) {
	f := &a.fits[part]
	if f.err == 0 {
		return
	}
	var g group
	bits, parities := e.gather(&g, a, part)
	if e.opaque && modes7[a.mode&7].index2Bits == 0 {
		e.refitLanes(&g, a, part, bits, parities)
		return
	}
	var ends [2][4]float32
	span := &a.spans[part].ends
	g.sum = a.spans[part].sum
	e.known.n = 0
	e.known.has(&f.index, g.n)
	for _, by := range lengths[:6] {
		for c := range span[0] {
			middle, half := float32((span[0][c]+span[1][c])*0.5), float32((span[1][c]-span[0][c])*by)
			ends[0][c], ends[1][c] = middle-half, middle+half
		}
		var try fitted
		g.descend(&modes7[a.mode&7], bits, parities, e.again, f.err, &ends, &try, &e.known)
		a.replace(f, &try)
	}
}

// refitLanes is refit for opaque pixels, from all lines at once.
func (e *encoder7) refitLanes(g *group, a *attempt, part int, bits, parities uint8) {
	m, f, b := &modes7[a.mode&7], &a.fits[part], &e.batch
	g.sum = a.spans[part].sum
	levels := float32(int(1)<<(bits&7) - 1)
	b.args = lanes8{levels, 1 / levels, float32(g.n), inverses[g.n&31], float32(g.sum[0]), float32(g.sum[1]), float32(g.sum[2])}
	for end := range 2 {
		copy(b.span[end][:], a.spans[part].ends[end][:3])
	}
	var pix [16][4]float32
	g.floats(&pix)
	b.restart(&pix, g.n, &allModeLanes()[a.mode&7], parities, e.again)
	best := 0
	for lane := range b.err {
		if b.err[lane] < b.err[best&7] {
			best = lane
		}
	}
	if b.err[best&7] >= float32(f.err) {
		return
	}
	var try fitted
	for end := range 2 {
		for c := range 4 {
			v, width := int32(255), m.channelBits(c)
			switch {
			case c < 3:
				v = int32(b.ends[end][c][best&7])
			case width == 0:
				v = 0
			}
			try.shown[end][c], try.stored[end][c] = v, uint8(v>>((8-width)&15))
			if c == 0 && m.p != noParity {
				try.parity[end] = uint8(v >> ((7 - width) & 15) & 1)
			}
		}
	}
	var s sums
	g.assign(&try, &weights[bits], 1<<bits-1, &s)
	a.replace(f, &try)
}

// floats returns the pixels of a group as floats.
func (g *group) floats(to *[16][4]float32) {
	for i := range g.n & 31 {
		if g.lanes != nil {
			p := &g.packed[i&15]
			to[i&15] = [4]float32{float32(p[0]), float32(p[1]), float32(p[2])}
		} else {
			p := &g.pix[i&15]
			to[i&15] = [4]float32{float32(p[0]), float32(p[1]), float32(p[2])}
		}
	}
}

// replace replaces a fit of the attempt if another one is better, and reports whether it is.
func (a *attempt) replace(f, other *fitted) bool {
	if other.err >= f.err {
		return false
	}
	a.err += other.err - f.err
	*f = *other
	return true
}

// sweep moves each channel of each endpoint of an attempt by one, in both directions, and keeps improvements. It reports
// whether there were any. One sweep gains 0.06 dB on photographs, for a tenth of the time of Normal.
func (e *encoder7) sweep(a *attempt) (better bool) {
	m := &modes7[a.mode&7]
	var g group
	var sum sums
	for part := range a.parts() {
		f := &a.fits[part]
		if f.err == 0 {
			continue
		}
		bits, _ := e.gather(&g, a, part)
		for move := range 16 {
			end, c, step := move>>1&1, move>>2, 2*(move&1)-1
			if !e.free(a, part, c) {
				continue
			}
			v := int(f.stored[end][c]) + step
			if v < 0 || v >= 1<<m.channelBits(c) {
				continue
			}
			try := *f
			try.stored[end][c] = uint8(v)
			try.shown[end][c] = m.expand(c, int32(v), int32(f.parity[end]))
			g.assign(&try, &weights[bits], 1<<bits-1, &sum)
			better = a.replace(f, &try) || better
		}
	}
	return better
}

// free reports whether a sweep may move a channel of a part. It may not move alpha that is the same in the whole block, 0 or
// 255, which is exact.
func (e *encoder7) free(a *attempt, part, c int) bool {
	m, alpha := &modes7[a.mode&7], c == 3
	if m.index2Bits > 0 {
		if (part == 1) != (c == 3) {
			return false
		}
		if a.rotation > 0 {
			alpha = c == int(a.rotation)-1
		}
	}
	return m.channelBits(c) > 0 && (!alpha || e.alphas == anyParity)
}

// block returns the block of an attempt.
func (a *attempt) block() block7 {
	m := &modes7[a.mode&7]
	b := block7{mode: a.mode, partition: a.partition, rotation: a.rotation, selector: a.selector}
	if m.index2Bits == 0 {
		for s := range uint32(m.subsets) {
			b.set(s, subsetsOf(int(m.subsets), a.partition), &a.fits[s])
		}
		return b
	}
	colours, apart := &a.fits[0], &a.fits[1]
	b.index, b.index2 = colours.index, apart.index
	if a.selector == 1 {
		b.index, b.index2 = apart.index, colours.index
	}
	for i := range 2 {
		b.ends[i] = colours.stored[i]
		b.ends[i][3] = apart.stored[i][3]
	}
	return b
}
