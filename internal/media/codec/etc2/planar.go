package etc2

// planar tries the planar mode: for each channel, the least-squares plane, then the best numbers near it.
func (s *search) planar(src *[64]byte) {
	sums := planeSums(src)
	var planes [3]fitted
	rest := int32(0)
	for c := range planes {
		planes[c] = fit(sums[0][c], sums[1][c], sums[2][c], sums[3][c])
		if rest += planes[c].rest; rest >= s.best.cost {
			return
		}
	}
	var o, h, v rgb
	for c := range planes {
		o[c], h[c], v[c] = planes[c].quantize(planarBits[c])
	}
	if cost := planeCost(src, o, h, v); cost < s.best.cost {
		s.best = found{cost: cost, word: packPlanar(o, h, v) | opaque}
	}
}

// planeCost returns the cost of numbers of 6 or 7 bits.
func planeCost(src *[64]byte, o, h, v rgb) (cost int32) {
	var planes [3]plane
	for c, bits := range planarBits {
		planes[c] = plane{widenPlanar(o[c], bits), widenPlanar(h[c], bits), widenPlanar(v[c], bits)}
	}
	if lanes {
		return planeCostLanes(src, &planes[0].o)
	}
	for i := range 16 {
		for c := range planes {
			d := planes[c].at(int32(i&3), int32(i>>2)) - int32(src[4*i+c])
			cost += d * d
		}
	}
	return cost
}

// fitted is the least-squares plane through 16 values of a channel: at the origin, 4 to the right and 4 down, each times 80;
// rest is the remaining sum of squares, rounded down.
type fitted struct{ o, h, v, rest int32 }

func fit(sum, x, y, squares int32) fitted {
	// The slopes are x/40 and y/40; sums of (2x-3)² and (2y-3)² are 80.
	o := 5*sum - 3*(x+y)
	return fitted{o, o + 8*x, o + 8*y, squares - (5*sum*sum+x*x+y*y+79)/80}
}

// planeSums returns the sums of the channels, of their products with -3, -1, 1 and 3 to the right and down, and of their squares.
func planeSums(src *[64]byte) (sums [4][4]int32) {
	if lanes {
		planesLanes(src, &sums)
		return sums
	}
	for i, b := range src {
		c, v, x, y := i&3, int32(b), int32(i>>2&3), int32(i>>4)
		sums[0][c] += v
		sums[1][c] += v * (2*x - 3)
		sums[2][c] += v * (2*y - 3)
		sums[3][c] += v * v
	}
	return sums
}

// quantize returns the numbers of 6 or 7 bits whose plane is nearest to f, of the eight around it. Rounding each number
// separately would cost 0.3 dB.
func (f fitted) quantize(bits int) (o, h, v int32) {
	top := int32(1)<<bits - 1
	var q [3][2]int32 // numbers
	var d [3][2]int64 // their differences from f, times 80
	for i, want := range [3]int32{f.o, f.h, f.v} {
		n := min(max(want, 0), 255*80) * top / (255 * 80)
		q[i] = [2]int32{n, min(n+1, top)}
		d[i] = [2]int64{int64(widenPlanar(q[i][0], bits)*80 - want), int64(widenPlanar(q[i][1], bits)*80 - want)}
	}
	// 16 times the sums of products of the contributions of o, h and v to the pixels: 56 for o with itself, 36 for h and v,
	// 4 for others. The lowest bits have the choice; without a branch, this takes half the time.
	least := int64(1) << 62
	for i, a := range d[0] {
		for j, b := range d[1] {
			ab, by, at := 56*(a*a+b*b)+8*a*b, 72*b+8*a, int64(4*i+2*j)
			c0, c1 := d[2][0], d[2][1]
			least = min(least, (ab+c0*(56*c0+by))<<3|at, (ab+c1*(56*c1+by))<<3|at|1)
		}
	}
	o, h, v = q[0][least>>2&1], q[1][least>>1&1], q[2][least&1]
	return o, h, v
}
