package astc

// cost is the squared error of a channel as a function of its two ends, for given weights:
//
//	a*e0*e0 + 2*b*e0*e1 + c*e1*e1 - 2*d0*e0 - 2*d1*e1 + square
//
// It allows ends to be compared without access to the texels. All terms are exact.
type cost struct {
	a, b, c, d0, d1, square float64
	e0, e1                  float64 // the best ends in 0..255
}

// form is the part of a cost that does not depend on the channel. inverse is 1/(a*c-b*b), or 0 if all weights are the same.
type form struct{ a, b, c, inverse float64 }

func (f *form) set(n int32, s *weighted) {
	*f = form{a: float64(4096*n-128*s.w+s.ww) / 4096, b: float64(64*s.w-s.ww) / 4096, c: float64(s.ww) / 4096}
	if det := float64(f.a*f.c) - float64(f.b*f.b); det >= 1e-2 {
		f.inverse = 1 / det
	}
}

// set computes the cost of channel c of a partition. It returns a lower bound of the error over all ends.
func (q *cost) set(s *sums, c int, w *weighted, f *form) float64 {
	*q = cost{
		a: f.a, b: f.b, c: f.c,
		d0: float64(64*s.x[c]-w.wx[c]) / 64, d1: float64(w.wx[c]) / 64, square: float64(s.xx[productOf[c][c]]),
	}
	return q.least(f.inverse)
}

func (q *cost) at(e0, e1 int) float64 {
	x, y := float64(e0), float64(e1)
	return float64(x*(float64(q.a*x)+float64(2*q.b*y)-2*q.d0)) + float64(y*(float64(q.c*y)-2*q.d1)) + q.square
}

// other returns the best second end for a first end. For a cost with its ends swapped, it returns the best first end.
func (q *cost) other(e0 int) float64 {
	if q.c < 1e-3 {
		return float64(e0)
	}
	return min(max((q.d1-float64(q.b*float64(e0)))/q.c, 0), 255)
}

// least finds the best ends in 0..255, and returns the error of the best ends without that limit.
func (q *cost) least(inverse float64) float64 {
	if inverse == 0 {
		e := min(max((q.d0+q.d1)/(q.a+2*q.b+q.c), 0), 255)
		q.e0, q.e1 = e, e
		return 0
	}
	e0 := (float64(q.d0*q.c) - float64(q.d1*q.b)) * inverse
	e1 := (float64(q.d1*q.a) - float64(q.d0*q.b)) * inverse
	q.e0, q.e1 = e0, e1
	if e0 < 0 || e0 > 255 {
		q.e0 = min(max(e0, 0), 255)
		q.e1 = q.other(int(q.e0))
	} else if e1 < 0 || e1 > 255 {
		q.e1 = min(max(e1, 0), 255)
		turned := cost{a: q.c, b: q.b, c: q.a, d0: q.d1, d1: q.d0}
		q.e0 = turned.other(int(q.e1))
	}
	return q.square - float64(q.d0*e0) - float64(q.d1*e1)
}

// ends are the values of a partition in an endpoint mode, as numbers 0..255 that the range of colours has, with their
// colours and the squared error.
type ends struct {
	values [8]uint8
	colors [2]color
	err    float64
}

const never = 1e30

// pair is the two values of a channel.
type pair struct {
	v0, v1 uint8
	err    float64
}

// fitDirect finds the values for the modes that store them directly, in the first channels. The order of the two colours is
// fixed: one order without blue contraction, the other with it.
func fitDirect(q *[4]cost, channels int, l *levels, pairs *[4]pair) ends {
	f := ends{colors: [2]color{{3: 255}, {3: 255}}}
	for c := range channels {
		e0, e1, err := fitChannel(&q[c], l)
		pairs[c] = pair{e0, e1, err}
		f.err += err
		f.values[2*c], f.values[2*c+1] = e0, e1
		f.colors[0][c], f.colors[1][c] = int(e0), int(e1)
	}
	if channels >= 3 {
		f.order(q, channels, l)
	}
	return f
}

// fitChannel finds two values of a range: the first one just above or below the best value, and the second one to suit it.
func fitChannel(q *cost, l *levels) (v0, v1 uint8, err float64) {
	e0 := q.e0
	v0 = l.below[int(e0)]
	v1 = l.near[int(q.other(int(v0))+0.5)]
	err = q.at(int(v0), int(v1))
	u0 := l.above[min(int(e0)+1, 255)]
	u1 := l.near[int(q.other(int(u0))+0.5)]
	if other := q.at(int(u0), int(u1)); other < err {
		return u0, u1, other
	}
	return v0, v1, err
}

// order moves the ends apart until the second one is the brighter one, as the mode requires.
func (f *ends) order(q *[4]cost, channels int, l *levels) {
	moved := false
	for c := 0; f.colors[1][0]+f.colors[1][1]+f.colors[1][2] < f.colors[0][0]+f.colors[0][1]+f.colors[0][2]; c = (c + 1) % 3 {
		v := l.above[min(f.colors[1][c]+1, 255)]
		u := l.below[max(f.colors[0][c]-1, 0)]
		f.values[2*c], f.values[2*c+1] = u, v
		f.colors[0][c], f.colors[1][c] = int(u), int(v)
		moved = true
	}
	if moved {
		f.err = 0
		for c := range channels {
			f.err += q[c].at(f.colors[0][c], f.colors[1][c])
		}
	}
}

// fitContracted is fitDirect with blue contraction: red and green are stored so that their means with blue give the wanted
// values. It is for colours near grey. If they are not near enough to grey, or the error is not below limit, it returns the
// error never. pairs are those of fitDirect.
func fitContracted(q *[4]cost, channels int, l *levels, pairs *[4]pair, limit float64) ends {
	f := ends{colors: [2]color{{3: 255}, {3: 255}}}
	b0, b1 := pairs[2].v0, pairs[2].v1
	f.err = pairs[2].err
	if channels == 4 {
		a := &pairs[3]
		f.err += a.err
		f.values[6], f.values[7] = a.v1, a.v0
		f.colors[0][3], f.colors[1][3] = int(a.v0), int(a.v1)
	}
	f.values[4], f.values[5] = b1, b0
	f.colors[0][2], f.colors[1][2] = int(b0), int(b1)
	for c := range 2 {
		best := float64(never)
		want := int(2*q[c].e0+0.5) - int(b0)
		for _, v := range [2]uint8{l.below[min(max(want, 0), 255)], l.above[min(max(want+1, 0), 255)]} {
			e0 := (int(v) + int(b0)) >> 1
			w := l.near[min(max(int(2*q[c].other(e0)+1)-int(b1), 0), 255)]
			e1 := (int(w) + int(b1)) >> 1
			if err := q[c].at(e0, e1); err < best {
				best = err
				f.values[2*c], f.values[2*c+1] = w, v
				f.colors[0][c], f.colors[1][c] = e0, e1
			}
		}
		if f.err += best; f.err >= limit {
			return ends{err: never}
		}
	}
	if int(f.values[1])+int(f.values[3])+int(f.values[5]) >= int(f.values[0])+int(f.values[2])+int(f.values[4]) {
		f.err = never
	}
	return f
}

// fitOffset finds the values for the modes with base and offset, which are twice as fine if the ends are near each other.
// If the error is not below limit, it returns the error never.
func fitOffset(q *[4]cost, channels int, l *levels, limit float64) ends {
	f := ends{colors: [2]color{{3: 255}, {3: 255}}}
	sum := 0
	for c := range channels {
		i := int(q[c].e0)
		top := i >> 7
		best := float64(never)
		for _, v := range [2]uint8{l.baseLow[i&127], l.baseHigh[min(i&127+1, 127)]} {
			base := int(v)>>1 | top<<7
			w := l.offset[top][min(max(int(q[c].other(base)+0.5)-base, -32), 31)+32]
			_, offset := signedOffset(0, int(w))
			e1 := min(max(base+offset, 0), 255)
			if err := q[c].at(base, e1); err < best {
				best = err
				f.values[2*c], f.values[2*c+1] = v, w
				f.colors[0][c], f.colors[1][c] = base, e1
			}
		}
		if f.err += best; f.err >= limit {
			return ends{err: never}
		}
		if c < 3 {
			_, offset := signedOffset(0, int(f.values[2*c+1]))
			sum += offset
		}
	}
	if sum < 0 {
		f.err = never
	}
	return f
}

// fitScale finds the values for the modes whose darker end is a fraction of the brighter one.
func fitScale(q *[4]cost, channels int, l *levels) ends {
	var dot, square float64
	for c := range 3 {
		e0, e1 := q[c].e0, q[c].e1
		dot += float64(e0 * e1)
		square += float64(e1 * e1)
	}
	want := int(min(max(dot/max(square, 1)*256, 0), 255))
	best := ends{err: never}
	for _, s := range [2]uint8{l.below[want], l.above[min(want+1, 255)]} {
		f := ends{colors: [2]color{{3: 255}, {3: 255}}}
		f.values[3] = s
		k := float64(s) / 256
		for c := range 3 {
			ch := &q[c]
			e1 := (float64(ch.d0*k) + ch.d1) / (float64(ch.a*float64(k*k)) + float64(2*ch.b*k) + ch.c + 1e-3)
			v := l.near[int(min(max(e1, 0), 255)+0.5)]
			f.values[c] = v
			f.colors[0][c], f.colors[1][c] = int(v)*int(s)>>8, int(v)
			f.err += ch.at(f.colors[0][c], int(v))
		}
		if f.err < best.err {
			best = f
		}
	}
	if channels == 4 {
		a0, a1, err := fitChannel(&q[3], l)
		best.values[4], best.values[5] = a0, a1
		best.colors[0][3], best.colors[1][3] = int(a0), int(a1)
		best.err += err
	}
	return best
}

// fitGrey finds the values for the luminance modes, with alpha or without.
func fitGrey(q *[4]cost, channels int, l *levels) ends {
	all := cost{a: 3 * q[0].a, b: 3 * q[0].b, c: 3 * q[0].c}
	inverse := 0.0
	if det := float64(all.a*all.c) - float64(all.b*all.b); det >= 1e-2 {
		inverse = 1 / det
	}
	for c := range 3 {
		all.d0 += q[c].d0
		all.d1 += q[c].d1
		all.square += q[c].square
	}
	all.least(inverse)
	e0, e1, err := fitChannel(&all, l)
	f := ends{values: [8]uint8{e0, e1}, err: err}
	f.colors[0] = color{int(e0), int(e0), int(e0), 255}
	f.colors[1] = color{int(e1), int(e1), int(e1), 255}
	if channels == 4 {
		a0, a1, err := fitChannel(&q[3], l)
		f.values[2], f.values[3] = a0, a1
		f.colors[0][3], f.colors[1][3] = int(a0), int(a1)
		f.err += err
	}
	return f
}
