package packing

import (
	"math"
	"slices"
)

// packer fills pages. It reuses its memory for each attempt.
type packer struct {
	o      Options
	rects  maxRects
	line   skyline
	now    attempt
	failed []piece
}

// fill fills the next page with as many of must as fit, then with as many of may as still fit.
func (p *packer) fill(must, may []piece) (page Size, placed []placement, left []piece) {
	musts, mays := &set{pieces: must}, &set{pieces: may}
	all := slices.Concat(must, may)
	best := attempt{musts: -1}
	for _, w := range ways(len(all), p.o.Methods) {
		a := p.try(p.o.room(p.o.largest()), w, musts, mays, false)
		if a.better(best) {
			best = a
			best.placed = slices.Clone(a.placed)
		}
		if a.whole {
			break
		}
	}
	on := map[int]bool{}
	for _, d := range best.placed {
		on[d.index] = true
	}
	var pieces []piece
	for _, it := range all {
		if on[it.index] {
			pieces = append(pieces, it)
		} else {
			left = append(left, it)
		}
	}
	page, placed = p.shrink(pieces, best.placed)
	return page, placed, left
}

// shrink finds a smaller page for pieces that were placed on a page of the largest size.
func (p *packer) shrink(pieces []piece, placed []placement) (Size, []placement) {
	s := &search{p: p, pieces: &set{pieces: pieces}, none: &set{}, ways: ways(len(pieces), p.o.Methods)}
	s.keep(p.o.largest(), placed)
	for _, it := range pieces {
		s.area += it.W * it.H
	}
	s.least = p.o.leastPage(pieces)
	if p.o.PowerOfTwo {
		s.powersOfTwo()
	} else {
		s.anySize()
	}
	return s.page, s.placed
}

// search looks for the smallest page that holds all pieces.
type search struct {
	p            *packer
	pieces, none *set
	ways         []way
	area         int  // of all pieces, with padding, in pixels
	least        Size // no page with a smaller width or height can hold all pieces

	page   Size // the best page so far, and the placements on it
	placed []placement
}

// keep records a page if it is smaller than the best so far.
func (s *search) keep(page Size, placed []placement) {
	page = s.p.o.crop(page, s.pieces, placed)
	if s.placed != nil && !smaller(page, s.page) {
		return
	}
	s.page, s.placed = page, slices.Clone(placed)
}

// smaller compares by area. Of two pages with the same area, the one nearer to a square is smaller.
func smaller(a, b Size) bool {
	if a.W*a.H != b.W*b.H {
		return a.W*a.H < b.W*b.H
	}
	return max(a.W, a.H) < max(b.W, b.H)
}

// fits reports whether all pieces can be placed on a page of this size, and keeps the page if so.
func (s *search) fits(page Size) bool {
	room := s.p.o.room(page)
	if room.W*room.H < s.area {
		return false
	}
	found := false
	for _, w := range s.ways {
		if a := s.p.try(room, w, s.pieces, s.none, true); a.whole {
			s.keep(page, a.placed)
			found = true
			if s.p.o.PowerOfTwo || len(s.pieces.pieces) > 200 {
				break // in other cases, another way may leave more empty space at the right or the bottom, which crop removes
			}
		}
	}
	return found
}

// powersOfTwo tries pages whose sides are powers of two, by area. Of pages with the same area, squares come first, then
// narrower ones; wide ones come before high ones.
func (s *search) powersOfTwo() {
	o, largest := s.p.o, s.p.o.largest()
	var sizes []Size
	for w := 1; w <= largest.W; w *= 2 {
		for h := 1; h <= largest.H; h *= 2 {
			if w >= s.least.W && h >= s.least.H && (w == h || !o.Square) {
				sizes = append(sizes, Size{w, h})
			}
		}
	}
	slices.SortStableFunc(sizes, func(a, b Size) int {
		switch {
		case smaller(a, b):
			return -1
		case smaller(b, a):
			return 1
		}
		return b.W - a.W
	})
	for _, size := range sizes {
		if !smaller(size, s.page) || s.fits(size) {
			return
		}
	}
}

// anySize searches by bisection between the area of the pieces and the best page so far. It tries square pages, then
// wide, then high ones.
func (s *search) anySize() {
	shapes := []float64{1}
	if !s.p.o.Square {
		shapes = []float64{1, 4. / 3, 3. / 4, 2, 1. / 2}
	}
	for _, shape := range shapes {
		const steps = 100 // a step is a hundredth of the area
		lo, hi := -1, 1   // lo does not fit; hi is the next to try
		for hi < steps && !s.fitsShape(shape, hi) {
			lo, hi = hi, 2*hi
		}
		for lo+1 < hi {
			mid := (lo + hi) / 2
			if s.fitsShape(shape, mid) {
				hi = mid
			} else {
				lo = mid
			}
		}
	}
}

// fitsShape reports whether all pieces fit on a page with about the given ratio of width to height, whose area is
// larger than the area of the pieces by the given number of hundredths. A page that is not smaller than the best so far
// counts as fitting, without a try.
func (s *search) fitsShape(shape float64, hundredths int) bool {
	o := s.p.o
	area := float64(s.area) * (1 + float64(hundredths)/100)
	edge := Size{2*o.Border.W - o.Padding.W, 2*o.Border.H - o.Padding.H}
	largest := o.largest()
	page := Size{W: max(s.least.W, int(math.Sqrt(area*shape))+edge.W)}
	page.W = o.round(page.W, largest.W)
	page.H = max(s.least.H, int(math.Ceil(area/float64(page.W-edge.W)))+edge.H)
	if o.Square {
		page.W = max(page.W, s.least.H)
		page.H = page.W
	}
	page.H = o.round(page.H, largest.H)
	if !smaller(page, s.page) {
		return true
	}
	return s.fits(page)
}
