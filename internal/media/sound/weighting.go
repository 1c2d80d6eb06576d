package sound

import "math"

// biquad is a filter of second order, in the transposed direct form II.
type biquad struct {
	b0, b1, b2, a1, a2 float64
}

// weighting is the K-weighting of BS.1770-4 for one sample rate: a shelf that models the head, then a high pass.
type weighting struct{ shelf, pass biquad }

// newWeighting derives the filters from their analogue prototypes by the bilinear transform. BS.1770-4 gives
// coefficients only for 48 kHz; the prototypes that result in these were found by the authors of libebur128. Above its
// corner, the high pass has the gain of the standard's at 48 kHz at every rate (that of libebur128 is louder, by 0.2 dB
// at 8 kHz). At rates below 3.4 kHz the corner is above half of the rate. It is then moved to half of the rate, which
// leaves the shelf flat.
func newWeighting(rate int) weighting {
	var w weighting

	const (
		high = 1.5848647011308556 // 3.999843853973347 dB
		band = 1.2587209302325617 // high to the power of 0.4996667741545416
	)
	corner := func(hz float64) float64 { return tanPi(min(hz/float64(rate), 0.49)) }
	k := corner(1681.974450955533)
	kq, k2 := k/0.7071752369554196, float64(k*k)
	bq := float64(band * kq)
	a0 := 1 + kq + k2
	w.shelf = biquad{(high + bq + k2) / a0, 2 * (k2 - high) / a0, (high - bq + k2) / a0, 2 * (k2 - 1) / a0, (1 - kq + k2) / a0}
	if rate >= matchedFrom && rate < matchedTo {
		w.shelf = matchedShelf(rate)
	}

	k = corner(38.13547087602444)
	kq, k2 = k/0.5003270373238773, float64(k*k)
	a0 = 1 + kq + k2
	gain := passGain / a0
	w.pass = biquad{gain, -2 * gain, gain, 2 * (k2 - 1) / a0, (1 - kq + k2) / a0}
	return w
}

// The bilinear transform compresses everything above half of the rate into the range below it. The shelf is then too
// loud, by up to 0.01 dB at 32 kHz and 0.28 dB at 8 kHz, in a range where sounds of low rates are loud. Between these
// two rates the matched shelf is used.
const matchedFrom, matchedTo = 6000, 32000

// matchedShelf is a filter with the poles of the standard's shelf at 48 kHz, moved to another rate. It has the same
// gain at 0, at half of the rate, and at the shelf's corner. The method is from M. Vicanek, Matched Second Order
// Digital Filters (2016). It is off by at most 0.04 dB at 8 kHz, 0.013 at 11,025 Hz and 0.001 at 22,050 Hz.
func matchedShelf(rate int) biquad {
	const (
		b0, b1, b2 = 1.53512485958697, -2.69169618940638, 1.19839281085285 // BS.1770-4, table 1
		a1, a2     = -1.69065929318241, 0.73248077421585
		angle      = 0.04996269538445092 // angle of the poles, in multiples of pi
		radius     = -0.3113181852396684 // twice the logarithm of the poles' radius
		corner     = 1681.974450955533
	)
	square := func(b0, b1, b2, sine2 float64) float64 { // square of the gain where sin(w/2)^2 is sine2
		rest := 1 - sine2
		sum, difference := b0+b1+b2, b0-b1+b2
		return float64(float64(sum*sum)*rest) + float64(float64(difference*difference)*sine2) - float64(float64(16*b0*b2)*float64(rest*sine2))
	}
	ratio := 48000 / float64(rate)
	p := exp(float64(radius * ratio))
	f := biquad{a1: -2 * float64(math.Sqrt(p)*sinPi(0.5-float64(angle*ratio))), a2: p}
	want := func(hz float64) float64 {
		here, there := sinPi(hz/float64(rate)), sinPi(hz/48000)
		here, there = float64(here*here), float64(there*there)
		return float64(square(b0, b1, b2, there)/square(1, a1, a2, there)) * square(1, f.a1, f.a2, here)
	}
	s := sinPi(corner / float64(rate))
	s = float64(s * s)
	low, high := want(0), want(float64(rate)/2)
	middle := (want(corner) - float64(low*(1-s)) - float64(high*s)) / float64(4*float64(s*(1-s)))
	l, h := math.Sqrt(low), math.Sqrt(high)
	w := (l + h) / 2
	f.b0 = (w + math.Sqrt(float64(w*w)+middle)) / 2
	f.b1 = (l - h) / 2
	f.b2 = -middle / float64(4*f.b0)
	return f
}

// passGain makes the gain 1 at 48 kHz, where the standard's coefficients are 1, -2 and 1.
const passGain = 1.0049948987146884

// weightState is the state of the filters for one channel, and the sum of the squares of their output.
type weightState struct{ s1, s2, p1, p2, sum float64 }

// add filters samples.
func (w *weighting) add(st *weightState, samples []float32) {
	s, p := w.shelf, w.pass
	s1, s2, p1, p2, sum := st.s1, st.s2, st.p1, st.p2, st.sum
	for _, v := range samples {
		x := float64(v)
		y := float64(s.b0*x) + s1
		s1 = float64(s.b1*x) - float64(s.a1*y) + s2
		s2 = float64(s.b2*x) - float64(s.a2*y)
		y = float64(y * p.b0)
		z := y + p1
		p1 = p2 - float64(2*y) - float64(p.a1*z)
		p2 = y - float64(p.a2*z)
		sum += float64(z * z)
	}
	*st = weightState{s1, s2, p1, p2, sum}
}

// addPair filters samples of two channels, as many of each. Every sample waits for the result of the one before; the
// processor computes those of another channel meanwhile.
func (w *weighting) addPair(a, b *weightState, left, right []float32) {
	s, p := w.shelf, w.pass
	s1, s2, p1, p2, sum := a.s1, a.s2, a.p1, a.p2, a.sum
	t1, t2, q1, q2, sum2 := b.s1, b.s2, b.p1, b.p2, b.sum
	right = right[:len(left)]
	for i, v := range left {
		x, u := float64(v), float64(right[i])
		y, o := float64(s.b0*x)+s1, float64(s.b0*u)+t1
		s1, t1 = float64(s.b1*x)-float64(s.a1*y)+s2, float64(s.b1*u)-float64(s.a1*o)+t2
		s2, t2 = float64(s.b2*x)-float64(s.a2*y), float64(s.b2*u)-float64(s.a2*o)
		y, o = float64(y*p.b0), float64(o*p.b0)
		z, r := y+p1, o+q1
		p1, q1 = p2-float64(2*y)-float64(p.a1*z), q2-float64(2*o)-float64(p.a1*r)
		p2, q2 = y-float64(p.a2*z), o-float64(p.a2*r)
		sum += float64(z * z)
		sum2 += float64(r * r)
	}
	*a = weightState{s1, s2, p1, p2, sum}
	*b = weightState{t1, t2, q1, q2, sum2}
}

// take returns the sum and resets it. Values far below any sound become 0, because the decay after a sound would
// otherwise reach denormal numbers, which are slow.
func (st *weightState) take() float64 {
	sum := st.sum
	st.sum = 0
	for _, v := range []*float64{&st.s1, &st.s2, &st.p1, &st.p2} {
		if math.Abs(*v) < 1e-30 {
			*v = 0
		}
	}
	return sum
}

// channelWeights returns the weights of channels by BS.1770-4, table 4: a speaker at the side has a larger weight, one
// for low frequencies has 0. Speakers called "back" are at the side (110 degrees) if there are no side speakers, as in
// 5.1, and behind (135 degrees) if there are, as in 7.1.
func channelWeights(f Format, dualMono bool) []float64 {
	speakers := f.Speakers()
	var all ChannelMask
	for _, s := range speakers {
		all |= s
	}
	side := SideLeft | SideRight
	if all&side == 0 {
		side = BackLeft | BackRight
	}
	out := make([]float64, len(speakers))
	for i, s := range speakers {
		switch {
		case s&side != 0:
			out[i] = 1.41
		case s == LowFrequency:
		default:
			out[i] = 1
		}
	}
	if dualMono && len(out) == 1 && out[0] != 0 {
		out[0] = 2
	}
	return out
}
