package flac

import (
	"math"
)

// The functions in this file give the same bits on every machine: they add, multiply and divide, which IEEE 754 defines
// exactly, and each product is rounded before it is added.

const encodeOrder = 8 // the highest order that the encoder writes

// cosPi is cos(pi x) for 0 <= x <= 1.
func cosPi(x float64) float64 {
	if x > 0.5 {
		return -cosPi(1 - x)
	}
	r := float64(x * math.Pi)
	r2 := float64(r * r)
	sum, term := 1.0, 1.0
	for k := 1.0; k < 26; k += 2 {
		term = -float64(term*r2) / float64(k*(k+1))
		sum += term
	}
	return sum
}

// tukey returns a window of n samples: a quarter rises like a cosine, a half is 1, a quarter falls.
func tukey(n int) []float64 {
	w := make([]float64, n)
	slope := max(n/4-1, 1)
	for i := range w {
		w[i] = 1
		if edge := min(i, n-1-i); edge <= slope {
			w[i] = 0.5 - float64(0.5*cosPi(float64(edge)/float64(slope)))
		}
	}
	return w
}

// correlate returns the autocorrelation of the samples at lags 0 to encodeOrder.
func correlate(x []float64) (sums [encodeOrder + 1]float64) {
	// The first samples have no samples at some lags. For the others, three sums at a time are held in registers.
	for lag := range encodeOrder + 1 {
		for i := lag; i < min(encodeOrder, len(x)); i++ {
			sums[lag] += float64(x[i] * x[i-lag])
		}
	}
	if len(x) <= encodeOrder {
		return sums
	}
	var a, b, c float64
	for lag := 0; lag <= encodeOrder; lag += 3 {
		a, b, c = sums[lag], sums[lag+1], sums[lag+2]
		now := x[encodeOrder:]
		before := x[encodeOrder-lag-2:]
		before = before[:len(now)+2]
		p0, p1 := before[0], before[1]
		for i, v := range now {
			p2 := before[i+2]
			a += float64(v * p2)
			b += float64(v * p1)
			c += float64(v * p0)
			p0, p1 = p1, p2
		}
		sums[lag], sums[lag+1], sums[lag+2] = a, b, c
	}
	return sums
}

// solve returns the weights for each order, the weight of the previous sample first, and their remaining errors (Levinson
// and Durbin).
func solve(sums [encodeOrder + 1]float64, most int) (weights [encodeOrder][encodeOrder]float64, left [encodeOrder]float64, orders int) {
	var w [encodeOrder]float64
	e := sums[0]
	for i := range most {
		if !(e > 0) {
			return weights, left, i
		}
		r := -sums[i+1]
		for j := range i {
			r -= float64(w[j] * sums[i-j])
		}
		r /= e
		w[i] = r
		for j := range i / 2 {
			a, b := w[j], w[i-1-j]
			w[j] = a + float64(r*b)
			w[i-1-j] = b + float64(r*a)
		}
		if i&1 == 1 {
			w[i/2] += float64(w[i/2] * r)
		}
		e = float64(e * (1 - float64(r*r)))
		for j := range i + 1 {
			weights[i][j] = -w[j]
		}
		left[i] = e
	}
	return weights, left, most
}

// log2 returns the binary logarithm with an error of about a thousandth.
func log2(x float64) float64 {
	m, e := math.Frexp(x)
	z := (m - math.Sqrt2/2) / (m + math.Sqrt2/2)
	z2 := float64(z * z)
	sum := 1 + float64(z2*(1.0/3+float64(z2*(1.0/5+float64(z2*(1.0/7))))))
	return float64(float64(z*sum)*(2/math.Ln2)) + float64(e) - 0.5
}

// bestOrder estimates the size of each order in bits from its error: half of the binary logarithm of the error per sample,
// plus the weights.
func bestOrder(left []float64, samples, each int) int {
	best, least := 0, math.Inf(1)
	for i, e := range left {
		perSample := 0.0
		if e > 0 {
			perSample = max(float64(0.5*log2(float64(e*0.5)/float64(samples))), 0)
		}
		if b := float64(perSample*float64(samples-i-1)) + float64((i+1)*each); b < least {
			best, least = i+1, b
		}
	}
	return best
}

// precision returns the number of bits of a weight.
func precision(sampleBits int) int {
	switch {
	case sampleBits > 16:
		return 15
	case sampleBits < 16:
		return max(5, 2+sampleBits/2)
	}
	return 14
}

// quantize rounds weights to shifted integers of the given bits. The rounding error of a weight is carried to the next.
func quantize(weights []float64, precision int) (q [encodeOrder]int32, shift int, ok bool) {
	most := 0.0
	for _, w := range weights {
		most = max(most, math.Abs(w))
	}
	if !(most > 0) || math.IsInf(most, 0) {
		return q, 0, false
	}
	_, exponent := math.Frexp(most)
	if shift = min(precision-1-exponent, 15); shift < 0 {
		return q, 0, false
	}
	limit := float64(int(1)<<(precision-1) - 1)
	scale, carry := float64(int(1)<<shift), 0.0
	for i, w := range weights {
		v := float64(w*scale) + carry
		r := math.RoundToEven(min(max(v, -limit-1), limit))
		carry = v - r
		q[i] = int32(r)
	}
	return q, shift, true
}

// fixedSums returns the sums of the absolute errors of the fixed predictors of order 0 to 4.
func fixedSums(x []int32) (sums [5]uint64) {
	if len(x) < 5 {
		return [5]uint64{1: 1 << 62, 2: 1 << 62, 3: 1 << 62, 4: 1 << 62}
	}
	abs := func(v int64) uint64 { return uint64((v ^ v>>63) - v>>63) }
	d0 := int64(x[3])
	d1 := d0 - int64(x[2])
	e1 := int64(x[2]) - int64(x[1])
	d2 := d1 - e1
	d3 := d2 - (e1 - (int64(x[1]) - int64(x[0])))
	var s0, s1, s2, s3, s4 uint64
	for _, v := range x[4:] {
		e := int64(v)
		n1 := e - d0
		n2 := n1 - d1
		n3 := n2 - d2
		n4 := n3 - d3
		s0 += abs(e)
		s1 += abs(n1)
		s2 += abs(n2)
		s3 += abs(n3)
		s4 += abs(n4)
		d0, d1, d2, d3 = e, n1, n2, n3
	}
	return [5]uint64{s0, s1, s2, s3, s4}
}

// fixedWeights are the weights of the fixed predictors in the RFC.
var fixedWeights = [5][encodeOrder]int32{{}, {1}, {2, -1}, {3, -3, 1}, {4, -6, 4, -1}}

// predict writes the errors of the prediction from sample order on, each error v as 2v, or -2v-1 if below 0. It returns
// false if one has more than 31 bits, because some decoders do not support more.
func predict(dst []uint32, x []int32, q *[encodeOrder]int32, order, shift int) bool {
	w0, w1, w2, w3 := int64(q[0]), int64(q[1]), int64(q[2]), int64(q[3])
	w4, w5, w6, w7 := int64(q[4]), int64(q[5]), int64(q[6]), int64(q[7])
	s := uint(shift) & 31
	over := int64(0)
	put := func(i int, r int64) {
		over |= r>>30 ^ r>>63
		dst[i] = uint32(r<<1 ^ r>>63)
	}
	for i := order; i < min(encodeOrder, len(x)); i++ {
		sum := int64(0)
		for j := range order {
			sum += int64(q[j]) * int64(x[i-1-j])
		}
		put(i, int64(x[i])-sum>>s)
	}
	dst = dst[:len(x)]
	for i := encodeOrder; i < len(x); i++ {
		b := x[i-8 : i+1]
		_ = b[8]
		sum := w0*int64(b[7]) + w1*int64(b[6]) + w2*int64(b[5]) + w3*int64(b[4])
		if order > 4 {
			sum += w4*int64(b[3]) + w5*int64(b[2]) + w6*int64(b[1]) + w7*int64(b[0])
		}
		r := int64(b[8]) - sum>>s
		over |= r>>30 ^ r>>63
		dst[i] = uint32(r<<1 ^ r>>63)
	}
	return over == 0
}
