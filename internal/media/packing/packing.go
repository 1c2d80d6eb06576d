// Package packing lays rectangles out on as few and as small pages as it can.
//
// Its rules: no rectangle is turned unless that is allowed, none overlaps another, and the same sizes
// in the same order give the same layout on every machine: there is no clock in it, how long is searched depends on the
// number of rectangles alone.
//
// A page is filled by one of six methods (maxrects.go, skyline.go) in one of several orders (try.go). No
// method is best for all, so all are tried, and what holds most on the smallest page is kept (fill.go).
package packing

import "slices"

// Size of a rectangle or a page, in pixels.
type Size struct{ W, H int }

// Item is a rectangle to lay out. A side below 1 counts as 1.
type Item struct {
	Size

	// Together is 0, or a number that all those have that must lie on one page. These pages come first,
	// in the order of their numbers; other items fill what they leave.
	Together int

	Upright bool // never turned
}

// Options of a packing. Lengths are in pixels.
type Options struct {
	Max, Min   Size // of a page
	Padding    Size // free pixels between neighbours
	Border     Size // free pixels along the edges of a page
	PowerOfTwo bool // sides of pages are powers of two
	Square     bool // pages are as wide as high
	Multiple   int  // sides of pages are multiples of this, where Max allows; 0 and 1 say nothing
	Rotate     bool // rectangles may be turned by 90 degrees

	// Methods to try; none means all.
	Methods []Method
}

// Place tells where a rectangle is: its top left corner on a page. One that is turned takes H x W pixels there.
type Place struct {
	Page, X, Y int
	Turned     bool
}

// What Place.Page is for a rectangle that has no place.
const (
	TooBig  = -1 // it fits on no page, however empty
	Crowded = -2 // what must lie together does not fit on one page
)

// Layout is where everything went.
type Layout struct {
	Pages  []Size
	Places []Place // one for each item, in their order
}

// Fits tells whether an empty page of the largest size has room for the rectangle.
func (o Options) Fits(it Item) bool {
	room, s := o.room(o.largest()), o.padded(it.Size)
	t := o.turned(s)
	return s.W <= room.W && s.H <= room.H || o.Rotate && !it.Upright && t.W <= room.W && t.H <= room.H
}

// padded is the room that a rectangle takes: itself and the padding at its right and bottom.
func (o Options) padded(s Size) Size {
	return Size{max(s.W, 1) + o.Padding.W, max(s.H, 1) + o.Padding.H}
}

// room is what padded rectangles may take of a page: the padding of the last ones may lie outside of it.
func (o Options) room(page Size) Size {
	return Size{page.W - 2*o.Border.W + o.Padding.W, page.H - 2*o.Border.H + o.Padding.H}
}

// turned is a padded size by 90 degrees; the padding stays where it is.
func (o Options) turned(s Size) Size {
	return Size{s.H - o.Padding.H + o.Padding.W, s.W - o.Padding.W + o.Padding.H}
}

// Pack lays out the items. As many pages as needed are filled at the largest size, then each becomes the
// smallest that was found to hold what is on it.
func Pack(items []Item, o Options) Layout {
	l := pack(items, o)
	// Greedy as all methods are, more freedom at each step can come to less in the end. Beyond a thousand it hardly does, and
	// the time counts.
	if o.Rotate && len(items) <= 1000 {
		o.Rotate = false
		if upright := pack(items, o); upright.better(l) {
			return upright
		}
	}
	return l
}

// better tells whether all has a place, on fewer pages or on less area.
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
	slices.SortStableFunc(rest, byLongSide.compare) // once for all pages; what is left of it stays sorted
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

// piece is a rectangle to place, its padding included.
type piece struct {
	index, together int
	turns           bool // may be turned, and is another then
	Size
}

// placement is a piece that has a place, without the border.
type placement struct {
	index, x, y int
	turned      bool
}

// nextPage tells what must lie on the next page, what may, and what must lie on a later one.
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
