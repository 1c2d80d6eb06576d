package packing

import (
	"cmp"
	"math"
	"slices"
)

// order is an order in which rectangles are placed. Large ones come first, so that small ones fill the gaps.
type order int

const (
	byLongSide order = iota
	byArea
	byShortSide
	byPerimeter
	byHeight
	byWidth

	orders // number of orders
)

// compare sorts the larger of two pieces first.
func (o order) compare(a, b piece) int {
	long, short := cmp.Compare(max(b.W, b.H), max(a.W, a.H)), cmp.Compare(min(b.W, b.H), min(a.W, a.H))
	height, width := cmp.Compare(b.H, a.H), cmp.Compare(b.W, a.W)
	switch o {
	case byArea:
		return cmp.Or(cmp.Compare(b.W*b.H, a.W*a.H), long, width)
	case byShortSide:
		return cmp.Or(short, long, width)
	case byPerimeter:
		return cmp.Or(cmp.Compare(b.W+b.H, a.W+a.H), long, width)
	case byHeight:
		return cmp.Or(height, width)
	case byWidth:
		return cmp.Or(width, height)
	}
	return cmp.Or(long, short, width)
}

// way is a method with an order. If global is set there is no order: each step places the rectangle with the best score
// of all that are left.
type way struct {
	method Method
	order  order
	global bool
}

// ways returns what to try for a page with n rectangles. The most promising comes first, by how often each was the best
// for sprites, glyphs and user interfaces of real games. A try with an order visits about n·(n/8+20) free rectangles at
// 2 ns each, a global one n/2 times as many; some twenty page sizes are tried. The list is cut so that a page takes
// about half a second, but it has at least four entries.
func ways(n int, allowed []Method) []way {
	may := func(m Method) bool { return len(allowed) == 0 || slices.Contains(allowed, m) }
	var all []way
	if n <= 64 {
		for m := range Skyline {
			if may(m) {
				all = append(all, way{method: m, global: true})
			}
		}
	}
	for _, o := range []order{byLongSide, byArea, byHeight, byWidth, byShortSide, byPerimeter} {
		for _, m := range []Method{ShortSide, BottomLeft, Area, Contact, LongSide, Skyline} {
			if may(m) {
				all = append(all, way{method: m, order: o})
			}
		}
	}
	const looks = 12_500_000
	return all[:max(min(len(all), looks/(n*(n/8+20)+1)), min(4, len(all)))]
}

// set is a list of pieces, sorted in each order when first used.
type set struct {
	pieces []piece
	sorted [orders][]piece
	least  [orders][]Size // for each piece, the least width and height of it and all later pieces
}

// in returns the pieces in an order.
func (p *packer) in(s *set, o order) (sorted []piece, least []Size) {
	if s.sorted[o] == nil {
		s.sorted[o] = slices.Clone(s.pieces)
		if !slices.IsSortedFunc(s.sorted[o], o.compare) {
			slices.SortStableFunc(s.sorted[o], o.compare)
		}
		s.least[o] = make([]Size, len(s.pieces))
		least := Size{math.MaxInt32, math.MaxInt32}
		for i, it := range slices.Backward(s.sorted[o]) {
			least = p.less(least, it)
			s.least[o][i] = least
		}
	}
	return s.sorted[o], s.least[o]
}

// less returns the smaller width and the smaller height of a size and a piece. If the piece may be rotated, both
// orientations count.
func (p *packer) less(a Size, it piece) Size {
	b := it.Size
	if it.turns {
		t := p.o.turned(b)
		b = Size{min(b.W, t.W), min(b.H, t.H)}
	}
	return Size{min(a.W, b.W), min(a.H, b.H)}
}

// bin is a page being filled.
type bin interface {
	find(w, h int32) (at box, best score, ok bool)
	take(box)
	full() bool // no further piece can be placed
}

// attempt is the result of filling a page.
type attempt struct {
	placed []placement
	musts  int // number of pieces of must that are placed
	area   int // covered area in pixels
	whole  bool
}

// better reports whether the page holds more.
func (a attempt) better(b attempt) bool {
	return cmp.Or(cmp.Compare(a.musts, b.musts), cmp.Compare(a.area, b.area)) > 0
}

// try fills one page, first with must, then with may. If all is set, it stops when a piece does not fit. The next call
// overwrites the placements.
func (p *packer) try(room Size, w way, must, may *set, all bool) attempt {
	var b bin = &p.rects
	if w.method == Skyline {
		b = &p.line
		p.line.reset(room)
	} else {
		p.rects.reset(room, w.method)
	}
	p.now = attempt{placed: p.now.placed[:0], whole: true}
	for _, s := range []*set{must, may} {
		last := s == may || len(may.pieces) == 0 // pieces of may come after those of must, and can have any size
		if len(s.pieces) == 0 || all && !p.now.whole {
			continue
		}
		ok := false
		if w.global {
			ok = p.global(b, s, last, all)
		} else {
			ok = p.inOrder(b, s, w.order, last, all)
		}
		p.now.whole = p.now.whole && ok
		if s == must {
			p.now.musts = len(p.now.placed)
		}
	}
	return p.now
}

// inOrder places the pieces that fit, one after the other.
func (p *packer) inOrder(b bin, s *set, o order, last, all bool) bool {
	p.failed = p.failed[:0]
	sorted, least := p.in(s, o)
	for i, it := range sorted {
		if last {
			p.rects.least(least[i])
		}
		if b.full() {
			return false
		}
		if p.hopeless(it) {
			continue
		}
		at, turned, _, ok := p.best(b, it)
		if !ok {
			if all {
				return false
			}
			p.fail(it)
			continue
		}
		p.put(b, it, at, turned)
	}
	return len(p.failed) == 0
}

// fail records that a piece did not fit. A larger one will not fit later, because free space only shrinks.
func (p *packer) fail(it piece) {
	p.failed = slices.DeleteFunc(p.failed, func(f piece) bool { return f.W >= it.W && f.H >= it.H && f.turns == it.turns })
	p.failed = append(p.failed, it)
}

func (p *packer) hopeless(it piece) bool {
	for _, f := range p.failed {
		// A piece that may be rotated can fit where the same piece did not fit upright.
		if f.W <= it.W && f.H <= it.H && (f.turns || !it.turns) {
			return true
		}
	}
	return false
}

// global repeatedly places the piece with the best score of all that are left.
func (p *packer) global(b bin, s *set, last, all bool) bool {
	sorted, _ := p.in(s, byLongSide)
	left := slices.Clone(sorted)
	for len(left) > 0 {
		if last {
			p.rects.least(p.leastOf(left))
		}
		found, turned := -1, false
		var at box
		var best score
		for i, it := range left {
			if i > 0 && it.Size == left[i-1].Size && it.turns == left[i-1].turns {
				continue
			}
			a, t, c, ok := p.best(b, it)
			if !ok && all {
				return false
			}
			if ok && (found < 0 || c.less(best)) {
				found, at, turned, best = i, a, t, c
			}
		}
		if found < 0 {
			return false
		}
		p.put(b, left[found], at, turned)
		left = slices.Delete(left, found, found+1)
	}
	return true
}

func (p *packer) leastOf(pieces []piece) Size {
	least := pieces[0].Size
	for _, it := range pieces {
		least = p.less(least, it)
	}
	return least
}

// best finds the best position for a piece, rotated or not.
func (p *packer) best(b bin, it piece) (at box, turned bool, c score, ok bool) {
	at, c, ok = b.find(int32(it.W), int32(it.H))
	if it.turns {
		t := p.o.turned(it.Size)
		a, d, fits := b.find(int32(t.W), int32(t.H))
		if fits && (!ok || d.less(c)) {
			return a, true, d, true
		}
	}
	return at, false, c, ok
}

func (p *packer) put(b bin, it piece, at box, turned bool) {
	b.take(at)
	p.now.placed = append(p.now.placed, placement{it.index, int(at.x0), int(at.y0), turned})
	p.now.area += it.W * it.H
}
