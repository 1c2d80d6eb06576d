package maxrects

import (
	"cmp"
	"iter"
	"math"
	"slices"
)

// multiple is what sides of pages that are no powers of two are rounded up to: the
// side of a block of the BCn and ETC2 formats.
const multiple = 4

// largest is the longest side that a page may have.
func (o Options) largest() int {
	if !o.PowerOfTwo {
		return max(o.Max, 0)
	}
	if o.Max < 1 {
		return 0
	}
	side := 1
	for side <= o.Max/2 {
		side *= 2
	}
	return side
}

// sizes yields pages to try, from those that would be full to the largest.
func (o Options) sizes(items []item) iter.Seq[Size] {
	var least Size // no page that is less wide or high can hold all
	area := 0
	for _, it := range items {
		least.W = max(least.W, it.W+2*o.Border)
		least.H = max(least.H, it.H+2*o.Border)
		area += it.W * it.H
	}
	if o.Square {
		least.W = max(least.W, least.H)
		least.H = least.W
	}
	area = max(area, least.W*least.H)
	if o.PowerOfTwo {
		return o.powersOfTwo(least, area)
	}
	return o.growing(least, area)
}

// powersOfTwo yields them by area, and those of the same area from square to narrow, wide before high.
func (o Options) powersOfTwo(least Size, area int) iter.Seq[Size] {
	var all []Size
	largest := o.largest()
	for w := 1; w <= largest; w *= 2 {
		for h := 1; h <= largest; h *= 2 {
			if w >= least.W && h >= least.H && w*h >= area && (w == h || !o.Square) {
				all = append(all, Size{w, h})
			}
		}
	}
	slices.SortFunc(all, func(a, b Size) int {
		return cmp.Or(
			cmp.Compare(a.W*a.H, b.W*b.H),
			cmp.Compare(max(a.W, a.H), max(b.W, b.H)),
			cmp.Compare(b.W, a.W),
		)
	})
	return slices.Values(all)
}

// growing yields nearly square pages, each a fiftieth larger than the one before.
func (o Options) growing(least Size, area int) iter.Seq[Size] {
	return func(yield func(Size) bool) {
		largest := o.largest()
		for a := area; ; a += max(a/50, 1) {
			side := int(math.Ceil(math.Sqrt(float64(a))))
			w := min(max(side, least.W), largest)
			h := w
			if !o.Square {
				h = min(max((a+w-1)/w, least.H), largest)
			}
			if !yield(Size{w, h}) || w == largest && h == largest {
				return
			}
		}
	}
}

// crop takes off what is empty at the right and the bottom, where pages may have any size.
func (o Options) crop(size Size, at []Rect) Size {
	if o.PowerOfTwo {
		return size
	}
	var used Size
	for _, r := range at {
		used.W = max(used.W, r.right()+o.Border)
		used.H = max(used.H, r.bottom()+o.Border)
	}
	if o.Square {
		used.W = max(used.W, used.H)
		used.H = used.W
	}
	round := func(n int) int { return min((n+multiple-1)/multiple*multiple, o.largest()) }
	return Size{round(used.W), round(used.H)}
}
