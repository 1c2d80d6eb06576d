// Package packing arranges rectangles on pages. It uses few pages and makes each page small.
//
// A rectangle is rotated only if that is allowed, and no two rectangles overlap. The same sizes in the same order give
// the same layout on every machine: the length of the search depends on the number of rectangles, not on a clock.
//
// A page is filled by one of six methods (maxrects.go, skyline.go) in one of several orders (try.go). No method is best
// for all inputs, so all are tried, and the result that holds most on the smallest page is kept (fill.go).
package packing

import "slices"

// Size is the size of a rectangle or a page, in pixels.
type Size struct{ W, H int }

// Item is a rectangle to place. A side below 1 counts as 1.
type Item struct {
	Size

	// Together, if not 0, is the number of a group: all items with the same number are placed on one page. The pages of
	// groups come first, in the order of the numbers. Other items fill the space that is left on them.
	Together int

	Upright bool // never rotated
}

// Options are the settings of a packing. Lengths are in pixels.
type Options struct {
	Max, Min   Size // size of a page
	Padding    Size // free pixels between neighbours
	Border     Size // free pixels along the edges of a page
	PowerOfTwo bool // sides of pages are powers of two
	Square     bool // pages are square
	Multiple   int  // sides of pages are multiples of this, where Max allows it; 0 and 1 have no effect
	Rotate     bool // rectangles may be rotated by 90 degrees

	// Methods are the methods to try. If it is empty, all are tried.
	Methods []Method
}

// Place is the position of a rectangle: its top left corner on a page. A rotated rectangle takes H x W pixels there.
type Place struct {
	Page, X, Y int
	Turned     bool
}

// Values of Place.Page for a rectangle without a position.
const (
	TooBig  = -1 // the rectangle does not fit on an empty page
	Crowded = -2 // the rectangle's group does not fit on one page
)

// Layout is the result of a packing.
type Layout struct {
	Pages  []Size
	Places []Place // one for each item, in the order of the items
}

// Fits reports whether the rectangle fits on an empty page of the largest size.
func (o Options) Fits(it Item) bool {
	room, s := o.room(o.largest()), o.padded(it.Size)
	t := o.turned(s)
	return s.W <= room.W && s.H <= room.H || o.Rotate && !it.Upright && t.W <= room.W && t.H <= room.H
}

// padded returns the space that a rectangle takes: its size, plus the padding at its right and bottom.
func (o Options) padded(s Size) Size {
	return Size{max(s.W, 1) + o.Padding.W, max(s.H, 1) + o.Padding.H}
}

// room returns the space that padded rectangles may fill on a page. The padding at the right and the bottom may lie
// outside of the page.
func (o Options) room(page Size) Size {
	return Size{page.W - 2*o.Border.W + o.Padding.W, page.H - 2*o.Border.H + o.Padding.H}
}

// turned returns a padded size rotated by 90 degrees. The padding stays at the right and bottom.
func (o Options) turned(s Size) Size {
	return Size{s.H - o.Padding.H + o.Padding.W, s.W - o.Padding.W + o.Padding.H}
}

// Pack places the items. It fills as many pages of the largest size as needed, then reduces each page to the smallest
// size found that holds its content.
func Pack(items []Item, o Options) Layout {
	l := pack(items, o)
	// The methods are greedy, so that with rotation the result can be worse than without. Pack therefore tries both,
	// but only up to a thousand items: beyond that rotation rarely hurts, and the second run takes too long.
	if o.Rotate && len(items) <= 1000 {
		o.Rotate = false
		if upright := pack(items, o); upright.better(l) {
			return upright
		}
	}
	return l
}

// better reports whether l is better: all items are placed, and it has fewer pages or less area.
func (l Layout) better(than Layout) bool {
	a, b := l.cost(), than.cost()
	return slices.Compare(a[:], b[:]) < 0
}

func (l Layout) cost() (cost [3]int) {
	for _, p := range l.Places {
		if p.Page < 0 {
			cost[0]++
		}
	}
	cost[1] = len(l.Pages)
	for _, p := range l.Pages {
		cost[2] += p.W * p.H
	}
	return cost
}

func pack(items []Item, o Options) Layout {
	l := Layout{Places: make([]Place, len(items))}
	var rest []piece
	for i, it := range items {
		if !o.Fits(it) {
			l.Places[i].Page = TooBig
			continue
		}
		rest = append(rest, piece{index: i, together: it.Together, turns: o.Rotate && !it.Upright && it.W != it.H, Size: o.padded(it.Size)})
	}
	slices.SortStableFunc(rest, byLongSide.compare) // sorted once for all pages; removing pieces keeps the order
	p := packer{o: o}
	for len(rest) > 0 {
		must, may, later := nextPage(rest)
		page, placed, left := p.fill(must, may)
		for _, d := range placed {
			l.Places[d.index] = Place{len(l.Pages), d.x + o.Border.W, d.y + o.Border.H, d.turned}
		}
		l.Pages = append(l.Pages, page)
		rest = later
		for _, it := range left {
			if it.together > 0 {
				l.Places[it.index].Page = Crowded
			} else {
				rest = append(rest, it)
			}
		}
	}
	return l
}

// piece is a rectangle to place, with its padding.
type piece struct {
	index, together int
	turns           bool // may be rotated, and is not a square
	Size
}

// placement is a piece with its position. The border is not included.
type placement struct {
	index, x, y int
	turned      bool
}

// nextPage returns the pieces that must be on the next page, those that may be on it, and those that must be on a later
// one.
func nextPage(rest []piece) (must, may, later []piece) {
	number := 0
	for _, it := range rest {
		if it.together > 0 && (number == 0 || it.together < number) {
			number = it.together
		}
	}
	for _, it := range rest {
		switch it.together {
		case 0:
			may = append(may, it)
		case number:
			must = append(must, it)
		default:
			later = append(later, it)
		}
	}
	return must, may, later
}
