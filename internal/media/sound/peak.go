package sound

import (
	"math"
	"slices"
)

// peakTaps is the number of samples from which a value between two samples is computed.
const peakTaps = 16

// peakFilter computes values between samples, as BS.1770-4, annex 2, requires: at four times the sample rate for rates
// below 96 kHz, at twice the rate below 192 kHz, and not at all above. Its filter is flatter than the example in the
// annex: within 0.05 dB up to 0.4 of the sample rate, instead of 0.22 dB. The prototype is a sinc under a Kaiser window
// with a tap on every sample, so that the samples themselves are values too.
//
// The filter is symmetric. Half way between samples, samples at equal distances have equal weights. The taps at a
// quarter are the mirrored taps at three quarters. Therefore sums and differences of such pairs are multiplied, which
// halves the number of products.
type peakFilter struct {
	// Taps for the pairs, outermost first: half for half way, sums and differences for a quarter and three quarters.
	half, sums, differences [peakTaps / 2]float32
	taps                    [3 * peakTaps / 2]float32 // all of these
	halfOnly                bool
	bound                   float32 // no value exceeds the largest of its samples times this; 0 if no values are computed
}

func newPeakFilter(rate int) peakFilter {
	if rate >= 192000 {
		return peakFilter{}
	}
	window := newKaiser(5)
	taps := func(at float64) (row [peakTaps]float64) {
		sum := 0.0
		for k := range row {
			t := float64(k-peakTaps/2+1) - at
			row[k] = float64(sinc(t) * window.at(t/(peakTaps/2)))
			sum += row[k]
		}
		for k := range row {
			row[k] /= sum
		}
		return row
	}
	p := peakFilter{halfOnly: rate >= 96000}
	half, quarter := taps(0.5), taps(0.25)
	var boundHalf, boundQuarter float64
	for k := range peakTaps / 2 {
		a, b := quarter[k], quarter[peakTaps-1-k]
		p.half[k], p.sums[k], p.differences[k] = float32(half[k]), float32((a+b)/2), float32((a-b)/2)
		boundHalf += 2 * math.Abs(half[k])
		boundQuarter += math.Abs(a) + math.Abs(b)
	}
	copy(p.taps[:], slices.Concat(p.half[:], p.sums[:], p.differences[:]))
	p.bound = float32(max(boundHalf, boundQuarter) * 1.0001) // more than rounding errors
	return p
}

// peakStretch is the number of values that are checked together.
const peakStretch = 32

// peakState is the state of the filter for one channel: the last samples, and the largest value so far.
type peakState struct {
	samples []float32 // peakTaps-1 from before, then those of the current piece
	peak    float32
}

// between raises the peak to the largest value between the samples of the piece, which are in st.samples. It keeps the
// last samples for the next piece. It skips a stretch that is too quiet for a new peak; this does not change the
// result.
func (p *peakFilter) between(st *peakState) {
	s := st.samples
	for at := 0; at+peakTaps <= len(s); at += peakStretch {
		part := s[at:min(len(s), at+peakStretch+peakTaps-1)]
		if float32(loudest(part)*p.bound) > st.peak {
			st.peak = max(st.peak, p.highest(part))
		}
	}
	keep := copy(s, s[len(s)-peakTaps+1:])
	st.samples = s[:keep]
}

// loudest returns the largest absolute sample. Finite numbers without a sign are in the order of their bits. There are
// four maxima, because each waits for the one before.
func loudest(s []float32) float32 {
	if lanes && len(s) >= 8 {
		return math.Float32frombits(largest(&s[0], len(s)))
	}
	var a, b, c, d uint32
	const sign = 1 << 31
	for ; len(s) >= 4; s = s[4:] {
		a, b = max(a, math.Float32bits(s[0])&^sign), max(b, math.Float32bits(s[1])&^sign)
		c, d = max(c, math.Float32bits(s[2])&^sign), max(d, math.Float32bits(s[3])&^sign)
	}
	for _, v := range s {
		a = max(a, math.Float32bits(v)&^sign)
	}
	return math.Float32frombits(max(a, b, c, d))
}

// highest returns the largest absolute value between the samples.
func (p *peakFilter) highest(s []float32) (peak float32) {
	if n := (len(s) - peakTaps + 1) / 8 * 8; lanes && n > 0 && !p.halfOnly {
		peak = highestBetween(&s[0], n, &p.taps)
		s = s[n:]
	}
	h, u, d := &p.half, &p.sums, &p.differences
	for ; len(s) >= peakTaps; s = s[1:] {
		x := (*[peakTaps]float32)(s)
		a0, a1, a2, a3 := x[0]+x[15], x[1]+x[14], x[2]+x[13], x[3]+x[12]
		a4, a5, a6, a7 := x[4]+x[11], x[5]+x[10], x[6]+x[9], x[7]+x[8]
		y := float32(a0*h[0]) + float32(a1*h[1]) + float32(a2*h[2]) + float32(a3*h[3])
		y += float32(a4*h[4]) + float32(a5*h[5]) + float32(a6*h[6]) + float32(a7*h[7])
		if y = magnitude(y); y > peak { // false if y is not a number
			peak = y
		}
		if p.halfOnly {
			continue
		}
		y = float32(a0*u[0]) + float32(a1*u[1]) + float32(a2*u[2]) + float32(a3*u[3])
		y += float32(a4*u[4]) + float32(a5*u[5]) + float32(a6*u[6]) + float32(a7*u[7])
		z := float32((x[0]-x[15])*d[0]) + float32((x[1]-x[14])*d[1]) + float32((x[2]-x[13])*d[2]) + float32((x[3]-x[12])*d[3])
		z += float32((x[4]-x[11])*d[4]) + float32((x[5]-x[10])*d[5]) + float32((x[6]-x[9])*d[6]) + float32((x[7]-x[8])*d[7])
		if y = magnitude(y) + magnitude(z); y > peak { // the larger of |y+z| and |y-z|
			peak = y
		}
	}
	return peak
}

func magnitude(v float32) float32 { return math.Float32frombits(math.Float32bits(v) &^ (1 << 31)) }
