// Package maxrects packs rectangles into as few and as small pages as it can.
//
// It is the MaxRects algorithm of Jukka Jylänki, "A Thousand Ways to Pack the
// Bin: A Practical Approach to Two-Dimensional Rectangle Bin Packing", 2010. A page
// keeps the list of its maximal free rectangles, which may overlap each other.
// A rectangle goes into the top left corner of the free one that suits it best;
// then every free rectangle that it touches is replaced by the up to four
// maximal ones around it, and those that lie inside another are dropped.
//
// The same sizes in the same order always give the same layout. Nothing is rotated.
package maxrects

import (
	"cmp"
	"slices"
)

// Size of a rectangle or a page, in pixels.
type Size struct{ W, H int }

// Rect is a place on a page, in pixels, the origin at the top left.
type Rect struct{ X, Y, W, H int }

func (r Rect) right() int  { return r.X + r.W }
func (r Rect) bottom() int { return r.Y + r.H }

func (r Rect) intersects(o Rect) bool {
	return r.X < o.right() && o.X < r.right() && r.Y < o.bottom() && o.Y < r.bottom()
}

func (r Rect) contains(o Rect) bool {
	return r.X <= o.X && r.Y <= o.Y && o.right() <= r.right() && o.bottom() <= r.bottom()
}

// Heuristic rates a free rectangle for something of size s that fits into it: the lowest
// score wins, then the lowest tie, then the topmost and leftmost place.
type Heuristic func(free Rect, s Size) (score, tie int)

// BestShortSide leaves as little as possible along the side that fits tighter
// (BSSF in the paper, and the best there for pages that are known in advance).
func BestShortSide(free Rect, s Size) (score, tie int) {
	dx, dy := free.W-s.W, free.H-s.H
	return min(dx, dy), max(dx, dy)
}

// BestArea takes the smallest free rectangle (BAF in the paper).
func BestArea(free Rect, s Size) (score, tie int) {
	return free.W*free.H - s.W*s.H, min(free.W-s.W, free.H-s.H)
}

// Options of a packing. Lengths are in pixels.
type Options struct {
	Max        int       // largest side of a page
	Padding    int       // free pixels between neighbours
	Border     int       // free pixels along the edges of a page
	PowerOfTwo bool      // sides of pages are powers of two, else multiples of four where Max allows
	Square     bool      // pages are as wide as high
	Heuristic  Heuristic // nil is BestShortSide
}

// Place tells where a rectangle is: its top left corner on a page.
type Place struct{ Page, X, Y int }

// TooBig is the page of a rectangle that fits on no page, however empty.
const TooBig = -1

// Layout is where everything went.
type Layout struct {
	Pages  []Size
	Places []Place // one for each size, in their order
}

// Fits tells whether an empty page of the largest size has room for the rectangle.
func (o Options) Fits(s Size) bool { return max(s.W, s.H, 1)+2*o.Border <= o.largest() }

// Pack lays out the rectangles. As many pages as needed are filled at the largest size,
// then each becomes the smallest that holds what is on it. A side below 1 counts as 1.
func Pack(sizes []Size, o Options) Layout {
	if o.Heuristic == nil {
		o.Heuristic = BestShortSide
	}
	l := Layout{Places: make([]Place, len(sizes))}
	var rest []item
	for i, s := range sizes {
		if !o.Fits(s) {
			l.Places[i].Page = TooBig
			continue
		}
		rest = append(rest, item{index: i, Size: Size{max(s.W, 1), max(s.H, 1)}})
	}
	slices.SortStableFunc(rest, largeFirst)

	for len(rest) > 0 {
		// What does not fit leaves no mark on a page, so what does fit lies the same
		// without it, and the search for the smallest page ends at this one at the latest.
		full := newPage(Size{o.largest(), o.largest()}, o)
		var fit, left []item
		for _, it := range rest {
			if _, ok := full.insert(it.Size); ok {
				fit = append(fit, it)
			} else {
				left = append(left, it)
			}
		}
		size, at := o.smallest(fit)
		for i, it := range fit {
			l.Places[it.index] = Place{len(l.Pages), at[i].X, at[i].Y}
		}
		l.Pages = append(l.Pages, size)
		rest = left
	}
	return l
}

// item is a rectangle to place.
type item struct {
	index int
	Size
}

// largeFirst orders by the longer side, then the shorter, so that the small ones
// fill what the large ones leave.
func largeFirst(a, b item) int {
	return cmp.Or(
		cmp.Compare(max(b.W, b.H), max(a.W, a.H)),
		cmp.Compare(min(b.W, b.H), min(a.W, a.H)),
		cmp.Compare(b.W, a.W),
	)
}

// smallest finds the smallest page that holds all items, which the largest one does.
func (o Options) smallest(items []item) (Size, []Rect) {
	at := make([]Rect, len(items))
	for size := range o.sizes(items) {
		if packAll(newPage(size, o), items, at) {
			return o.crop(size, at), at
		}
	}
	panic("maxrects: items do not fit the largest page")
}

// packAll gives up at the first item that does not fit.
func packAll(p *page, items []item, at []Rect) bool {
	for i, it := range items {
		var ok bool
		if at[i], ok = p.insert(it.Size); !ok {
			return false
		}
	}
	return true
}
