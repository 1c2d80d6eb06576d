package bcn

import (
	"math"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/media/codec/block"
)

// channelStarts are starts in the layout of channelLanes, which searches from the best of each eight.
type channelStarts struct {
	search     [16]uint16 // all bits are set if there is a search
	repeat     [16]uint16 // of repeatOf
	eight, six uint64     // how many tables there are of each
	tables     [5][2][16]uint16
}

// channelTables has the starts of each quality.
var channelTables = sync.OnceValue(func() *[block.Best + 1]channelStarts {
	all := new([block.Best + 1]channelStarts)
	for q := range all {
		t, k := &all[q], kindsOf(block.Quality(q))
		for i := range t.search {
			t.search[i], t.repeat[i] = uint16(-min(q, 1)), uint16(repeatOf(block.Quality(q)))
		}
		t.eight, t.six = uint64(len(k.eight)+1)/2, uint64(len(k.six)+1)/2
		for i := range 16 * t.eight {
			s, table := startOf(k.eight, int(i)), &t.tables[i/16]
			step := s.last - s.first // fractions of the range are rounded up, products with it down
			table[0][i%16] = uint16((s.first<<16 + step - 1) / step)
			table[1][i%16] = uint16(((7-s.last)<<16 + step - 1) / step)
		}
		for i := range 16 * t.six {
			s, table := startOf(k.six, int(i)), &t.tables[t.eight+i/16]
			table[0][i%16], table[1][i%16] = uint16(s.apart), uint16(255-s.apart)
		}
	}
	return all
})

// startOf returns what is at a place of eight for each kind. The last start of a kind, and the last kind, are repeated.
func startOf(kinds [][]start, at int) start {
	kind := kinds[min(at/8, len(kinds)-1)]
	return kind[min(at%8, len(kind)-1)]
}

// colorLanes has the colours of a block of 16 pixels for vector code.
type colorLanes struct {
	pixels  [2][16]uint32  // as words: red and green; blue and 0
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
	same = loadColors(pixels, &c.by.pixels[0][0], &sum, &c.by.powers)
	c.n, c.sum = 16, rgb{sum[0], sum[1], sum[2]}
	c.x[0] = rgb{int32(pixels[0]), int32(pixels[1]), int32(pixels[2])}
	return same
}

// codesLanes returns the codes of the places nearest to the pixels.
func (c *colors) codesLanes(p *[4]rgb, last int32, codes *[4]uint64) uint64 {
	var places [4]uint64
	var by [4]uint32
	for i := range places {
		x := &p[min(int32(i), last)&3]
		places[i], by[i] = uint64(x[0])|uint64(x[1])<<16|uint64(x[2])<<32, uint32(codes[i])
	}
	return uint64(nearestLanes(&c.by.pixels[0][0], &places, &by))
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

// againLanes is the search of again in vector code.
func (c *colors) againLanes(line *[2][4]float32, by *lines, best ends, least int32) (ends, int32) {
	e := &c.by.eight
	lineSums(&c.by.pixels[0][0], line, &by.scale[0], &by.last[0], &e.sums)
	e.n = 8
	return e.solve(&c.sum, best, least)
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
		t, tt := e.sums[1][i&7], e.sums[2][i&7]
		if e.errs[i&7] < least && 16*tt != t*t { // if all have one place, as in refine
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

// words returns a direction in the layout of orderLanes.
func (v *rgb) words() [2]uint32 {
	return [2]uint32{uint32(v[0]&0xffff | v[1]<<16), uint32(v[2] & 0xffff)}
}

// sortLanes is sort for 16 pixels, and the part of measure that does not depend on shapes.
func (c *colors) sortLanes(axis rgb) {
	l := c.by
	words := axis.words()
	l.spread = orderLanes(&l.pixels[0][0], &words, &c.sum[0], &c.order, &l.tails, &l.sums) / 256
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
