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
	cost := int32(0)
	for c, bits := range planarBits {
		p := plane{widenPlanar(o[c], bits), widenPlanar(h[c], bits), widenPlanar(v[c], bits)}
		for i := range int32(16) {
			d := p.at(i>>2, i&3) - s.px[i][c]
			cost += d * d
		}
	}
	s.take(found{cost: cost, word: packPlanar(o, h, v) | opaque})
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

// quantize returns the numbers of 6 or 7 bits whose plane is nearest to f, of the 27 around it. Rounding each number
// separately would cost 0.3 dB.
func (f fitted) quantize(bits int) (o, h, v int32) {
	top := int32(1)<<bits - 1
	var q, d [3][3]int32 // numbers, and their differences from f, times 80
	for i, want := range [3]int32{f.o, f.h, f.v} {
		want = min(max(want, 0), 255*80)
		n := (want*top + 255*40) / (255 * 80)
		for k := range int32(3) {
			q[i][k] = min(max(n+k-1, 0), top)
			d[i][k] = widenPlanar(q[i][k], bits)*80 - [3]int32{f.o, f.h, f.v}[i]
		}
	}
	// 16 times the sums of products of the contributions of o, h and v to the pixels: 56 for o with itself, 36 for h and v,
	// 4 for others.
	least := int64(1) << 62
	for i := range 3 {
		a := int64(d[0][i])
		for j := range 3 {
			b := int64(d[1][j])
			ab, by := 56*(a*a+b*b)+8*a*b, 72*b+8*a
			for k := range 3 {
				c := int64(d[2][k])
				if e := ab + c*(56*c+by); e < least {
					least, o, h, v = e, q[0][i], q[1][j], q[2][k]
				}
			}
		}
	}
	return o, h, v
}
