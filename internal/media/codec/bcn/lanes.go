package bcn

import (
	"math"
	"sync"
)

// lineTable has the constants of lineErrors for lines of eight places, or of six and both ends of the range.
type lineTable struct {
	low, high, more, by [16]int16 // twice the eight places
	pick                [8][32]uint8
}

var lineTables = sync.OnceValue(func() *[2]lineTable {
	t := new([2]lineTable)
	for i := range 16 {
		eight, six, place := &t[0], &t[1], int16(i&7)
		eight.low[i], eight.high[i], eight.by[i] = 7-place, place, 65536/7+1
		six.by[i] = 65536/5 + 1
		switch place {
		case 0:
		case 7:
			six.more[i] = 5 * 255
		default:
			six.low[i], six.high[i] = 6-place, place-1
		}
	}
	for place := range t[0].pick {
		for i := range t[0].pick[place] {
			t[0].pick[place][i], t[1].pick[place][i] = uint8(place), uint8(place)
		}
	}
	return t
})

// gains returns the gains of the first n lines, all of eight places or all of six. The gain of an invalid line is
// meaningless.
func (c *channel) gains(lines *[8]line, n int) (gains [8]int32) {
	if !c.lanes {
		for i := range lines[:n] {
			gains[i] = c.gain(lines[i])
		}
		return gains
	}
	var low, high [8]int16
	for i, l := range lines {
		low[i], high[i] = int16(l.low), int16(l.high)
	}
	table := &lineTables()[0]
	if lines[0].six {
		table = &lineTables()[1]
	}
	lineErrors(&c.values, &low, &high, &table.low[0], &gains)
	for i := range gains {
		gains[i] = c.squares - gains[i]
	}
	return gains
}

// fill stores the values for lineErrors.
func (c *channel) fill(pixels *[64]byte, at int) {
	c.squares = 0
	for i := range c.values {
		v := pixels[(4*i+at)&63]
		c.values[i] = v
		c.squares += int32(v) * int32(v)
	}
}

// searchLanes is search with the gains of all moves computed at once; it tries them in the same order.
func (c *channel) searchLanes(s scored) scored {
	var lines [8]line
	for step := max(1, (s.high-s.low)>>4); step > 0; step >>= 1 {
		gains := c.around(s, step, &lines)
		for moved := true; moved; {
			moved = false
			for i := range lines {
				if l := lines[i]; gains[i] > s.gain && l.is() {
					s, moved = scored{l, gains[i]}, true
					gains = c.around(s, step, &lines)
				}
			}
		}
	}
	return s
}

// around returns the lines that a step leads to, and their gains.
func (c *channel) around(s scored, step int32, lines *[8]line) [8]int32 {
	for i, d := range moves {
		lines[i] = line{s.low + d[0]*step, s.high + d[1]*step, s.six}
	}
	return c.gains(lines, 8)
}

// colorLanes has the colours of a block of 16 pixels for vector code.
type colorLanes struct {
	rg, b   [16]uint32     // the pixels as words: red and green, blue and 0
	powers  [8]float32     // of colors.powers, and two numbers without a meaning
	tails   [3][16]int16   // sums of the colours from each place on, but the first
	sums    [3][16]float32 // 16 times their deviation from the mean
	spread  float32        // the sum of the colours' squared distances from their mean
	scratch [36 * 8]float32
	gains   [8 * shapeGroups]int32
	found   [8 * shapeGroups]uint16
	eight   eight
}

// eight are up to eight fits for solveEight, and its results.
type eight struct {
	n    int
	sums [6][8]int32 // last, t, tt and tx of each
	ends [6][8]int32 // q of each
	errs [8]int32
}

// loadLanes is load for 16 pixels with a colour. It also finds what axis needs.
func (c *colors) loadLanes(pixels *[64]byte) (same bool) {
	var sum [4]int32
	same = loadColors(pixels, &c.by.rg[0], &sum, &c.by.powers)
	c.n, c.sum = 16, rgb{sum[0], sum[1], sum[2]}
	c.x[0] = rgb{int32(pixels[0]), int32(pixels[1]), int32(pixels[2])}
	return same
}

// unpack stores the colours of all pixels.
func (c *colors) unpack() {
	for i := range c.x {
		rg, b := c.by.rg[i], c.by.b[i]
		c.x[i] = rgb{int32(rg & 0xffff), int32(rg >> 16), int32(b)}
	}
}

// words returns the endpoints in the layout of endErrors.
func (e *ends) words() [8]int16 {
	return [8]int16{int16(e.q[0][0]), int16(e.q[0][1]), int16(e.q[0][2]), 0, int16(e.q[1][0]), int16(e.q[1][1]), int16(e.q[1][2])}
}

// assignLanes is assign in vector code.
func (c *colors) assignLanes(e *ends) (fit, int32) {
	var s [12]int32
	words := e.words()
	endSums(&c.by.rg[0], &words, int(e.last), &s)
	return fit{last: e.last, n: 16, t: s[0], tt: s[1], tx: rgb{s[4], s[5], s[6]}, x: c.sum}, s[2]
}

// codesLanes returns the codes of the places nearest to the pixels.
func (c *colors) codesLanes(p *[4]rgb, last int32, codes *[4]uint64) uint64 {
	var places [4]uint64
	var by [4]uint32
	for i := range places {
		x := &p[min(int32(i), last)&3]
		places[i], by[i] = uint64(x[0])|uint64(x[1])<<16|uint64(x[2])<<32, uint32(codes[i])
	}
	return uint64(nearestLanes(&c.by.rg[0], &places, &by))
}

// solveLanes is the part of solve after the sums of squares of a and b and of their products.
func (f *fit) solveLanes(aa, ab, bb int32, det, half float32) (ends, int32) {
	sums := [8]int32{f.tx[0], f.tx[1], f.tx[2], 0, f.x[0], f.x[1], f.x[2]}
	var q [8]int32
	sum := solveLanes(&sums, f.last, aa, ab, bb, det, half, &q)
	return ends{f.last, [2]rgb{{q[0], q[1], q[2]}, {q[4], q[5], q[6]}}}, sum
}

// solveTop returns the best endpoints for the most promising shapes, solving eight uses of them at once.
func (c *colors) solveTop(f Format) (best ends) {
	least, by := worst, &c.by.eight
	by.n = 0
	for i := range c.top {
		runs, base := c.fit(&c.top[i])
		for _, u := range uses[runs] {
			if u.last == 2 && f == BC3 {
				continue
			}
			by.add(base.moved(u))
			if by.n == 8 {
				best, least = by.solve(&c.sum, best, least)
			}
		}
	}
	best, _ = by.solve(&c.sum, best, least)
	return best
}

func (e *eight) add(f fit) {
	i := e.n & 7
	e.sums[0][i], e.sums[1][i], e.sums[2][i] = f.last, f.t, f.tt
	e.sums[3][i], e.sums[4][i], e.sums[5][i] = f.tx[0], f.tx[1], f.tx[2]
	e.n++
}

// solve solves the fits, forgets them, and returns the first of the best results, unless none is better than the one given.
func (e *eight) solve(x *rgb, best ends, least int32) (ends, int32) {
	if e.n == 0 {
		return best, least
	}
	solveEight(&e.sums, &x[0], &e.ends, &e.errs)
	at := -1
	for i := range e.n & 15 {
		if e.errs[i&7] < least {
			at, least = i, e.errs[i&7]
		}
	}
	if i := at & 7; at >= 0 {
		q := &e.ends
		best = ends{e.sums[0][i], [2]rgb{{q[0][i], q[1][i], q[2][i]}, {q[3][i], q[4][i], q[5][i]}}}
	}
	e.n = 0
	return best, least
}

// polishLanes is polish with the errors of many moves computed at once; it tries them in the same order.
func (c *colors) polishLanes(e ends, err int32, ways int) (ends, int32) {
	n := 3 * ways
	var errs [24]int32
	for at, left := 0, n; left > 0 && err > 0; {
		some := min(left, n-at)
		words := e.words()
		endErrors(&c.by.rg[0], &words, &laneMoves()[ways>>3&1][at%24], int(e.last), some, &errs[0])
		left -= some
		next := at + some
		for i := range some {
			if errs[i%24] >= err {
				continue
			}
			if t, ok := e.moved(at+i, ways); ok { // the errors of others are meaningless
				e, err, left, next = t, errs[i%24], n, at+i+1
				break
			}
		}
		if at = next; at == n {
			at = 0
		}
	}
	return e, err
}

// laneMoves has the moves of endpoints in the layout of endErrors, for 4 and 8 ways.
var laneMoves = sync.OnceValue(func() *[2][24][8]int16 {
	t := new([2][24][8]int16)
	for i := range t {
		ways := 4 + 4*i
		for j := range 3 * ways {
			k, d := j/ways, moves[j%ways]
			t[i][j][k], t[i][j][k+4] = int16(d[0]), int16(d[1])
		}
	}
	return t
})

// shapeGroups is the number of vectors of shapes of 16 pixels, in the order of shapeGains.
const shapeGroups = 156

// laneShapes has the shapes of 16 pixels in the layout of shapeGains; inverse is NaN for unused entries.
var laneShapes = sync.OnceValue(func() *struct {
	cuts    [8 * shapeGroups][3]uint8
	inverse [8 * shapeGroups]float32
} {
	t := new(struct {
		cuts    [8 * shapeGroups][3]uint8
		inverse [8 * shapeGroups]float32
	})
	from, at := &allShapes()[0][16], 0
	next := 0
	for i := 1; i < 16; i++ {
		for j := i; j < 16; j++ {
			for k := (j-1)&^7 + 1; k <= 16; k++ {
				t.inverse[at] = math.Float32frombits(0xffc00000)
				if k >= j {
					t.cuts[at], t.inverse[at] = from.cuts[next], from.inverse[next]
					next++
				}
				at++
			}
		}
	}
	return t
})

// sortLanes is sort for 16 pixels, and the part of measure that does not depend on shapes.
func (c *colors) sortLanes(axis rgb) {
	l := c.by
	words := [2]uint32{uint32(axis[0]&0xffff | axis[1]<<16), uint32(axis[2] & 0xffff)}
	l.spread = orderLanes(&l.rg[0], &words, &c.sum[0], &c.order, &l.tails, &l.sums) / 256
}

// clusterLanes is measure and pick for 16 pixels.
func (c *colors) clusterLanes(most int) {
	l, s := c.by, laneShapes()
	var all [24]int32
	shapeGains(&l.sums, &s.inverse[0], &l.scratch[0], &l.gains[0], &all)
	// Gains below the least of the most promising ones would not be kept. It is at least the same of the greatest gains of parts.
	best := greatest(&all, most)
	limit := max(limitOf(math.Float32frombits(uint32(best[0])), l.spread), best[(most-1)&15])
	c.top = c.top[:0]
	for _, at := range l.found[:shapesAbove(&l.gains[0], shapeGroups, limit, &l.found[0])] {
		limit = c.offer(s.cuts[at], l.gains[at], most, limit)
	}
}

// greatest returns the n greatest gains, up to 16 and none below 0, in order.
func greatest(all *[24]int32, n int) (best [16]int32) {
	if n <= 3 { // without branches
		var first, second, third int32
		for _, g := range all {
			a := min(first, g)
			first = max(first, g)
			b := min(second, a)
			second, third = max(second, a), max(third, b)
		}
		return [16]int32{first, second, third}
	}
	for _, g := range all {
		k := n - 1
		if g <= best[k&15] {
			continue
		}
		for ; k > 0 && best[(k-1)&15] < g; k-- {
			best[k&15] = best[(k-1)&15]
		}
		best[k&15] = g
	}
	return best
}
