package packing

// largest returns the largest page size that the options allow.
func (o Options) largest() Size {
	s := Size{max(o.Max.W, 0), max(o.Max.H, 0)}
	if o.PowerOfTwo {
		s = Size{powerBelow(s.W), powerBelow(s.H)}
	}
	if o.Square {
		s.W = min(s.W, s.H)
		s.H = s.W
	}
	return s
}

// powerBelow returns the largest power of two that is at most n, or 0 if there is none.
func powerBelow(n int) int {
	if n < 1 {
		return 0
	}
	side := 1
	for side <= n/2 {
		side *= 2
	}
	return side
}

// leastPage returns the least width and height of a page: enough for each single piece, and as the options require.
// Pieces include their padding.
func (o Options) leastPage(pieces []piece) Size {
	least := Size{1, 1}
	for _, it := range pieces {
		w, h := it.W-o.Padding.W, it.H-o.Padding.H
		if it.turns {
			w, h = min(w, h), min(w, h)
		}
		least.W, least.H = max(least.W, w+2*o.Border.W), max(least.H, h+2*o.Border.H)
	}
	least.W, least.H = max(least.W, o.Min.W), max(least.H, o.Min.H)
	if m := o.Multiple; m > 1 && m&(m-1) == 0 {
		least.W, least.H = max(least.W, m), max(least.H, m) // all larger powers of two are multiples of it
	}
	largest := o.largest()
	return Size{min(least.W, largest.W), min(least.H, largest.H)}
}

// round rounds a side up to a multiple, as far as the largest size allows.
func (o Options) round(n, largest int) int {
	if m := o.Multiple; m > 1 {
		n = (n + m - 1) / m * m
	}
	return min(n, largest)
}

// crop removes the empty columns at the right and the empty rows at the bottom, if pages may have any size.
func (o Options) crop(page Size, pieces *set, placed []placement) Size {
	if o.PowerOfTwo {
		return page
	}
	sizes := map[int]Size{}
	for _, it := range pieces.pieces {
		sizes[it.index] = it.Size
	}
	used := o.Min
	for _, d := range placed {
		s := sizes[d.index]
		if d.turned {
			s = o.turned(s)
		}
		used.W = max(used.W, d.x+s.W-o.Padding.W+2*o.Border.W)
		used.H = max(used.H, d.y+s.H-o.Padding.H+2*o.Border.H)
	}
	if o.Square {
		used.W = max(used.W, used.H)
		used.H = used.W
	}
	largest := o.largest()
	return Size{o.round(used.W, largest.W), o.round(used.H, largest.H)}
}
