package treemap

// rect is a rectangle in pixels.
type rect struct{ x, y, w, h float64 }

// squarify divides a rectangle into one rectangle for each size. Sizes are positive and sorted, largest first. The
// algorithm is from Bruls, Huizing and van Wijk, "Squarified Treemaps", 2000: a row along the shorter side is extended
// as long as that brings its worst rectangle nearer to a square. The code adds nothing to a product, because some
// processors would fuse the two operations and give other results.
func squarify(sizes []int64, r rect) []rect {
	var total float64
	for _, s := range sizes {
		total += float64(s)
	}
	scale := r.w * r.h / total
	areas := make([]float64, len(sizes))
	for i, s := range sizes {
		areas[i] = float64(s) * scale
	}
	out := make([]rect, 0, len(sizes))
	for len(areas) > 0 {
		side := min(r.w, r.h)
		n, sum := 1, areas[0]
		for n < len(areas) {
			more := sum + areas[n]
			if worst(areas[0], areas[n], more, side) > worst(areas[0], areas[n-1], sum, side) {
				break
			}
			n, sum = n+1, more
		}
		out, r = row(out, areas[:n], sum, r)
		areas = areas[n:]
	}
	return out
}

// worst returns the worst ratio of sides in a row. largest and least are its largest and smallest area, sum is the sum
// of its areas, side is its length.
func worst(largest, least, sum, side float64) float64 {
	return max(side*side*largest/(sum*sum), sum*sum/(side*side*least))
}

// row places one row at the left or at the top, and returns the rest of the rectangle.
func row(out []rect, areas []float64, sum float64, r rect) ([]rect, rect) {
	if r.w >= r.h {
		w, y := min(r.w, sum/r.h), r.y
		for _, a := range areas {
			h := a / sum * r.h
			out = append(out, rect{r.x, y, w, h})
			y += h
		}
		return out, rect{r.x + w, r.y, r.w - w, r.h}
	}
	h, x := min(r.h, sum/r.w), r.x
	for _, a := range areas {
		w := a / sum * r.w
		out = append(out, rect{x, r.y, w, h})
		x += w
	}
	return out, rect{r.x, r.y + h, r.w, r.h - h}
}
