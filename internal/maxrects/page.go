package maxrects

import "slices"

// page is one page being filled. Free rectangles and what is placed in them have the padding at
// their right and bottom, and the page is larger by as much.
type page struct {
	o    Options
	free []Rect // maximal: none lies inside another
	made []Rect // by the current insert; kept for its memory
}

func newPage(s Size, o Options) *page {
	return &page{o: o, free: []Rect{{o.Border, o.Border, s.W - 2*o.Border + o.Padding, s.H - 2*o.Border + o.Padding}}}
}

// insert finds a place for a rectangle and takes it. If there is none, the page stays as it is.
func (p *page) insert(s Size) (Rect, bool) {
	padded := Size{s.W + p.o.Padding, s.H + p.o.Padding}
	r, ok := p.find(padded)
	if !ok {
		return Rect{}, false
	}
	p.take(r)
	return Rect{r.X, r.Y, s.W, s.H}, true
}

func (p *page) find(s Size) (best Rect, ok bool) {
	var bestScore, bestTie int
	for _, f := range p.free {
		if f.W < s.W || f.H < s.H {
			continue
		}
		score, tie := p.o.Heuristic(f, s)
		if ok && !less([4]int{score, tie, f.Y, f.X}, [4]int{bestScore, bestTie, best.Y, best.X}) {
			continue
		}
		best, bestScore, bestTie, ok = Rect{f.X, f.Y, s.W, s.H}, score, tie, true
	}
	return best, ok
}

func less(a, b [4]int) bool { return slices.Compare(a[:], b[:]) < 0 }

// take makes r no longer free.
func (p *page) take(r Rect) {
	kept := p.free[:0]
	p.made = p.made[:0]
	for _, f := range p.free {
		if !f.intersects(r) {
			kept = append(kept, f)
			continue
		}
		p.split(f, r)
	}
	p.free = kept
	// A kept one is never inside a new one: it would have been inside the one that was
	// split. So only the new ones have to be looked at.
	for i, m := range p.made {
		if !p.covered(m, i, len(kept)) {
			p.free = append(p.free, m)
		}
	}
}

// split adds the up to four maximal rectangles of f around r.
func (p *page) split(f, r Rect) {
	if r.X > f.X {
		p.made = append(p.made, Rect{f.X, f.Y, r.X - f.X, f.H})
	}
	if r.right() < f.right() {
		p.made = append(p.made, Rect{r.right(), f.Y, f.right() - r.right(), f.H})
	}
	if r.Y > f.Y {
		p.made = append(p.made, Rect{f.X, f.Y, f.W, r.Y - f.Y})
	}
	if r.bottom() < f.bottom() {
		p.made = append(p.made, Rect{f.X, r.bottom(), f.W, f.bottom() - r.bottom()})
	}
}

// covered tells whether the i-th new rectangle lies inside one of the first `kept` free ones or
// another new one; of two equal ones the first stays.
func (p *page) covered(m Rect, i, kept int) bool {
	for _, f := range p.free[:kept] {
		if f.contains(m) {
			return true
		}
	}
	for j, n := range p.made {
		if j != i && n.contains(m) && (n != m || j < i) {
			return true
		}
	}
	return false
}
