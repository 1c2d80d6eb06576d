package etc2

// The individual and the differential mode divide a block into halves. A pixel of a half is its base colour c plus one of
// four modifiers m, the same in all channels. Without clamping, the cost for a pixel p is
//
//	|p-c-m|² = |p-c|² - 2m(S-C) + 3m²
//
// where S and C are the sums of the channels of p and c. So the table and the indices depend on c only through C, and of all
// c with the same C, those nearest to the mean of the half are best. The search walks through the lattice of base colours
// along the grey diagonal through the mean: every point on the walk is the best one of its C, and there are three points for
// each step of a channel.

// half has the pixels of a half block, or its opaque ones.
type half struct {
	n         int32
	total     rgb   // sum of the pixels
	squares   int32 // of all channels of all pixels
	greys     int32 // sum of the squares of sums
	low, high int32 // the range of sums

	grey, rest int32 // see spread

	pixels [8]rgb
	sums   [8]int32 // of the channels of each pixel

	// For vector code, which has eight pixels and the modifiers of an opaque block, in place of pixels and sums:
	by     *halfLanes
	packed *halfPixels
}

// base is a base colour, with the least cost of the half.
type base struct {
	c     rgb // in 4 or 5 bits
	table int32
	cost  int32
}

// maxBases is enough for a half: a walk has at most 61 base colours, then the polish adds some.
const maxBases = 128

// bases are candidates for a half, and the index of the best. Costs are in keys: eight times the cost, plus the table. Codes
// have the channels, 5 bits each. Vector code computes 16 at a time, and also writes after the last one.
type bases struct {
	n, best int
	least   int32 // the cost of the best one
	clamped bool  // it has a modifier that goes beyond 0 or 255
	keys    [maxBases + 16]int32
	codes   [maxBases + 16]uint16
}

// at returns a candidate.
func (l *bases) at(i int) base {
	key, code := l.keys[i], int32(l.codes[i])
	return base{rgb{code & 31, code >> 5 & 31, code >> 10}, key & 7, key >> 3}
}

func (h *half) add(p rgb) {
	s := p[0] + p[1] + p[2]
	h.pixels[h.n&7], h.sums[h.n&7] = p, s
	h.n++
	h.total[0] += p[0]
	h.total[1] += p[1]
	h.total[2] += p[2]
	h.squares += p[0]*p[0] + p[1]*p[1] + p[2]*p[2]
	h.greys += s * s
	h.low, h.high = min(h.low, s), max(h.high, s)
}

// luma returns the table with the least cost for a sum of channels of the base colour, and the part of the cost that depends
// on the modifiers: the sum of 3m²-2m(S-C).
//
// With d=|S-C| the better of the modifiers a and b costs 3a²-2ad-(b-a)·max(0, 2d-3(a+b)).
func (h *half) luma(c int32, tables *[8][2]int32) (table, cost int32) {
	var d [8]int32
	sum := int32(0)
	for i := range d {
		if int32(i) == h.n {
			break
		}
		v := h.sums[i] - c
		v = max(v, -v)
		d[i] = 2 * v
		sum += v
	}
	cost = never
	for t := range tables {
		a, b := tables[t][0], tables[t][1]
		edge := 3 * (a + b)
		far := max(d[0]-edge, 0) + max(d[1]-edge, 0) + max(d[2]-edge, 0) + max(d[3]-edge, 0) +
			max(d[4]-edge, 0) + max(d[5]-edge, 0) + max(d[6]-edge, 0) + max(d[7]-edge, 0)
		e := 3*a*a*h.n - 2*a*sum - (b-a)*far
		if e < cost {
			table, cost = int32(t), e
		}
		// No pixel is far, and a is above the mean of the wanted modifiers: later tables only cost more.
		if far == 0 && 3*a*h.n >= sum {
			break
		}
	}
	return table, cost
}

// exact returns the exact cost of a base colour of 8 bits with a table.
func (h *half) exact(c rgb, m *[2]int32) int32 {
	paint := splitPaint(c, m)
	sum := int32(0)
	for i := range h.pixels {
		if int32(i) == h.n {
			break
		}
		p := &h.pixels[i]
		sum += min(distance(p, &paint[0]), distance(p, &paint[1]), distance(p, &paint[2]), distance(p, &paint[3]))
	}
	return sum
}

func distance(p, q *rgb) int32 {
	r, g, b := p[0]-q[0], p[1]-q[1], p[2]-q[2]
	return r*r + g*g + b*b
}

// solve fills out with base colours of 4 or 5 bits: those of a walk, and of a polish if the effort allows it.
func (s *search) solve(h *half, out *bases, bits int) {
	out.n, out.least = 0, never
	h.walk(out, bits, h.reach(bits, s.margin, s.reach), s.tables)
	if s.polish && out.clamped {
		h.polish(out, bits, s.tables)
	}
}

// over returns a sum divided by the number of pixels; units also divides by 255. Dividing by a constant takes less time.
func (h *half) over(sum int32) int32 {
	if h.n == 8 {
		return sum / 8
	}
	return sum / max(h.n, 1)
}

func (h *half) units(sum int32) int32 {
	if h.n == 8 {
		return sum / (255 * 8)
	}
	return sum / (255 * max(h.n, 1))
}

// walk visits the base colours from reach steps below the mean to reach steps above it.
func (h *half) walk(out *bases, bits int, reach int32, tables *[8][2]int32) {
	top := int32(1)<<bits - 1
	// c are the channels of the mean minus reach, rounded to steps; computed in 1/unit of a step. next is the distance from
	// the unrounded start to the next step of each channel. After that, each channel reaches a step once every unit, so the
	// channels take turns.
	unit := 255 * max(h.n, 1)
	var c, next rgb
	for i := range c {
		m := h.total[i]*top - reach*unit
		c[i] = h.units(m+unit/2+64*unit) - 64
		next[i] = c[i]*unit + unit/2 - m
	}
	after := func(i, j int) int32 { return int32(uint32(next[j]-next[i]) >> 31) } // 1 if i reaches its step after j
	rg, rb, gb := after(0, 1), after(0, 2), after(1, 2)
	h.prices(out, c, [3]*[64]int16{&turns[rg+rb], &turns[1-rg+gb], &turns[2-rb-gb]}, int(6*reach+1), bits, tables, false)
}

// reach returns the distance from the mean within which the base colour is searched, up to a limit: half of the spread of
// the pixels along grey, plus a margin. Smooth halves, the majority, need few steps; those with hard edges need all.
func (h *half) reach(bits int, margin, limit int32) int32 {
	return min(margin+max(h.high-h.low, 0)<<bits/(2*3*256), limit)
}

// spread finds the squares of the differences of pixels from their mean: along grey, which modifiers can reduce, and the rest.
func (h *half) spread() {
	t := &h.total
	s := t[0] + t[1] + t[2]
	h.grey = (h.greys - h.over(s*s)) / 3
	h.rest = h.squares - h.over(t[0]*t[0]+t[1]*t[1]+t[2]*t[2]) - h.grey
}

// bound returns a cost below which base colours of 4 or 5 bits do not get: what modifiers cannot remove, of the pixels and of
// the nearest base colours. It takes steps for even, so the least cost may be a little below. It is 0 if a modifier could go
// beyond 0 or 255, where modifiers also change the hue: near the ends of the range, or if large modifiers help.
//
// The differences of the base colours on the walk from the mean repeat off grey after three steps. The fractions of the
// channels of the mean, in steps, divide a circle of one step into three gaps, one for each difference. The largest gap has
// the smallest.
func (h *half) bound(bits int) int32 {
	room := (8 + (h.high-h.low)/5) * h.n // for the modifiers of any good table
	t := &h.total
	if h.n == 0 || h.rest > 1000*h.n || min(t[0], t[1], t[2]) < room || max(t[0], t[1], t[2]) > 255*h.n-room {
		return 0
	}
	top, unit := int32(1)<<bits-1, 255*h.n
	a, b, c := t[0]*top, t[1]*top, t[2]*top
	a, b, c = a-h.units(a)*unit, b-h.units(b)*unit, c-h.units(c)*unit
	low, high := min(a, b, c), max(a, b, c)
	between := a + b + c - low - high
	p, q, r := between-low, high-between, unit-high+low
	off := p*p + q*q + r*r + unit*(unit-2*max(p, q, r)) // in units, times 3
	if bits == 5 {
		off /= 3 * 31 * 31
	} else {
		off /= 3 * 15 * 15
	}
	return h.rest + h.over(off)
}

// polish moves single channels of the best base colour by a step while the cost decreases. It helps because of clamping,
// where the best colour may not be on the walk: 0.1 to 0.2 dB in drawn textures.
func (h *half) polish(out *bases, bits int, tables *[8][2]int32) {
	for h.prices(out, out.at(out.best).c, [3]*[64]int16{&single[0], &single[1], &single[2]}, 6, bits, tables, true) {
	}
}

// Steps of the channels for prices. turns has those of the channels that are first, second and third to reach their next
// step; single has one step down or up of each channel.
var (
	turns  = [3][64]int16{inTurn(2), inTurn(1), inTurn(0)}
	single = [3][64]int16{{-1, 1}, {2: -1, 3: 1}, {4: -1, 5: 1}}
)

func inTurn(ahead int) (steps [64]int16) {
	for i := range steps {
		steps[i] = int16((i + ahead) / 3)
	}
	return steps
}

// prices adds n base colours to the list: c plus steps for each channel. Colours out of the range are skipped if leaveOut,
// otherwise clamped. It reports whether one of them is the best so far.
func (h *half) prices(out *bases, c rgb, steps [3]*[64]int16, n, bits int, tables *[8][2]int32, leaveOut bool) (better bool) {
	if h.by != nil {
		return h.pricesLanes(out, c, steps, n, bits, leaveOut)
	}
	top := int32(1)<<bits - 1
	for i := range n {
		at := rgb{c[0] + int32(steps[0][i&63]), c[1] + int32(steps[1][i&63]), c[2] + int32(steps[2][i&63])}
		in := rgb{min(max(at[0], 0), top), min(max(at[1], 0), top), min(max(at[2], 0), top)}
		if leaveOut && (in != at || out.n == maxBases) {
			continue
		}
		key, clamped := h.price(in, bits, tables)
		better = out.add(key, in.code(), clamped) || better
	}
	return better
}

// add reports whether a candidate is the best so far.
func (l *bases) add(key int32, code uint16, clamped bool) (better bool) {
	l.keys[l.n], l.codes[l.n] = key, code
	l.n++
	return l.take(l.n-1, key>>3, clamped)
}

// take keeps a candidate if it is the best so far.
func (l *bases) take(i int, cost int32, clamped bool) (better bool) {
	if better = cost < l.least; better {
		l.least, l.best, l.clamped = cost, i, clamped
	}
	return better
}

// code returns a colour of 4 or 5 bits as a word.
func (c rgb) code() uint16 { return uint16(c[0] | c[1]<<5 | c[2]<<10) }

// price returns the key of a base colour of 4 or 5 bits with its best table, and reports whether a modifier goes beyond 0 or
// 255.
func (h *half) price(c rgb, bits int, tables *[8][2]int32) (key int32, clamped bool) {
	if h.by != nil {
		return h.priceLanes(c, bits)
	}
	w := c.widen(bits)
	table, cost := h.luma(w[0]+w[1]+w[2], tables)
	for i := range w {
		cost += w[i] * (w[i]*h.n - 2*h.total[i])
	}
	m := tables[table&7][1]
	if min(w[0], w[1], w[2]) < m || max(w[0], w[1], w[2]) > 255-m {
		return h.clamped(w, table, tables), true
	}
	return (cost+h.squares)<<3 | table, false
}

// clamped returns the exact key of a base colour of 8 bits with clamping. Clamping makes later tables cheaper than in luma,
// so it tries them while the cost decreases: within 0.02 dB of trying all tables, in a third of the time.
func (h *half) clamped(c rgb, table int32, tables *[8][2]int32) (key int32) {
	best, cost := table, h.exact(c, &tables[table&7])
	for t := table + 1; t < 8; t++ {
		e := h.exact(c, &tables[t])
		if e >= cost {
			break
		}
		best, cost = t, e
	}
	return cost<<3 | best
}

// split tries the individual and the differential mode, first with the flip whose halves have the smaller error that modifiers
// cannot remove: all of the error off grey, and, as an empirical factor, an eighth of the error along grey.
func (s *search) split() {
	flips := [2]*[16]uint8{&leftHalf, &topHalf}
	var h [2][2]half
	var rest [2]int32
	for flip, halves := range flips {
		h[flip] = s.halves(flip, halves)
		for k := range h[flip] {
			half := &h[flip][k]
			half.spread()
			rest[flip] += half.grey - half.grey*7/8 + half.rest
		}
	}
	first := 0
	if rest[0] > rest[1] {
		first = 1
	}
	var lists [2]bases
	s.splitHalves(&h[first], &lists, first, flips[first])
	if s.bothFlips {
		s.splitHalves(&h[1-first], &lists, 1-first, flips[1-first])
	}
}

// splitHalves tries both modes for the halves of a flip bit.
func (s *search) splitHalves(h *[2]half, lists *[2]bases, flip int, halves *[16]uint8) {
	free := true
	if s.solveBoth(h, lists, 5) {
		var b1, b2 base
		b1, b2, free = neighbours(h, lists, s.tables)
		if b1.cost+b2.cost < s.best.cost {
			s.takeHalves(&b1, &b2, 5, packDifferential(b1.c, b2.c, b1.table, b2.table, flip)|s.bit, halves)
		}
	}
	if s.punch || free && !s.individual || !s.solveBoth(h, lists, 4) {
		return
	}
	b1, b2 := lists[0].at(lists[0].best), lists[1].at(lists[1].best)
	if b1.cost+b2.cost < s.best.cost {
		s.takeHalves(&b1, &b2, 4, packIndividual(b1.c, b2.c, b1.table, b2.table, flip), halves)
	}
}

// solveBoth solves both halves, and reports whether they could become better than the best so far.
func (s *search) solveBoth(h *[2]half, lists *[2]bases, bits int) bool {
	other := h[1].bound(bits)
	if h[0].bound(bits)+other >= s.best.cost {
		return false
	}
	s.solve(&h[0], &lists[0], bits)
	if lists[0].least+other >= s.best.cost {
		return false
	}
	s.solve(&h[1], &lists[1], bits)
	return true
}

// takeHalves keeps a word of two halves.
func (s *search) takeHalves(b1, b2 *base, bits int, word uint64, halves *[16]uint8) {
	s.best = found{
		cost:  b1.cost + b2.cost,
		word:  word,
		paint: [2][4]rgb{splitPaint(b1.c.widen(bits), &s.tables[b1.table]), splitPaint(b2.c.widen(bits), &s.tables[b2.table])},
		half:  halves,
	}
}

// halves returns the halves of a block for a flip bit.
func (s *search) halves(flip int, of *[16]uint8) (h [2]half) {
	if s.lanes {
		return [2]half{s.packed.half(2 * flip), s.packed.half(2*flip + 1)}
	}
	h[0].low, h[1].low = never, never
	for i := range s.px {
		if s.mask>>i&1 == 1 {
			h[of[i]&1].add(s.px[i])
		}
	}
	return h
}

// neighbours returns the cheapest pair of base colours that the differential mode can store. free reports whether that is
// the best pair of all.
func neighbours(h *[2]half, l *[2]bases, tables *[8][2]int32) (b1, b2 base, free bool) {
	b1, b2 = l[0].at(l[0].best), l[1].at(l[1].best)
	if near(&b1.c, &b2.c) {
		return b1, b2, true
	}
	// Each half's best with the nearest storable colour for the other half, so that there is always a pair.
	c1, c2 := b1, b2
	for i := range 3 {
		c1.c[i] = min(max(b1.c[i], b2.c[i]-3), b2.c[i]+4)
		c2.c[i] = min(max(b2.c[i], b1.c[i]-4), b1.c[i]+3)
	}
	for i, b := range [2]*base{&c1, &c2} {
		key, _ := h[i].price(b.c, 5, tables)
		b.table, b.cost = key&7, key>>3
	}
	lowest := b2.cost
	least := c1.cost + b2.cost
	if b1.cost+c2.cost < least {
		least, b2 = b1.cost+c2.cost, c2
	} else {
		b1 = c1
	}
	for i := range l[0].n {
		if l[0].keys[i]>>3+lowest >= least {
			continue
		}
		x := l[0].at(i)
		for j, key := range l[1].keys[:l[1].n] {
			if x.cost+key>>3 >= least {
				continue
			}
			if y := l[1].at(j); near(&x.c, &y.c) {
				least, b1, b2 = x.cost+y.cost, x, y
			}
		}
	}
	return b1, b2, false
}

// near reports whether the channels of c2-c1 are within -4..3.
func near(c1, c2 *rgb) bool {
	return uint32(c2[0]-c1[0]+4) < 8 && uint32(c2[1]-c1[1]+4) < 8 && uint32(c2[2]-c1[2]+4) < 8
}

// solid encodes a block of one colour, and reports whether it is one: of all sums of a base colour of 5 bits and a modifier,
// it takes the nearest, for both halves.
func (s *search) solid() bool {
	p := s.px[0]
	for i := range s.px {
		if s.px[i] != p {
			return false
		}
	}
	for t := range s.tables {
		m := &s.tables[t]
		for _, v := range [4]int32{m[0], m[1], -m[0], -m[1]} {
			var c rgb
			for i := range c {
				c[i] = (clamp8(p[i]-v)*31 + 127) / 255
			}
			paint := splitPaint(c.widen(5), m)
			s.take(found{
				cost:  16 * min(distance(&p, &paint[0]), distance(&p, &paint[1]), distance(&p, &paint[2]), distance(&p, &paint[3])),
				word:  packDifferential(c, c, int32(t), int32(t), 0) | s.bit,
				paint: [2][4]rgb{paint, paint},
				half:  &leftHalf,
			})
		}
	}
	return true
}
