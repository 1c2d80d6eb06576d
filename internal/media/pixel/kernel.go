package pixel

import (
	"math"
	"math/bits"
)

// Kernel is the method that computes a pixel of a smaller image from pixels of a larger one.
type Kernel uint8

const (
	Box    Kernel = iota // the mean of the covered area: each source pixel counts once
	Kaiser               // a windowed sinc, six new pixels wide: sharper, with faint rings around hard edges
)

// axis describes how a row of old pixels becomes a row of new ones: new pixel i is the sum of weights[i*taps+k] times
// old pixel first[i]+k, divided by one. Weights are integers with the sum one, and the same on every machine.
type axis struct {
	taps, one int
	first     []int
	weights   []int32
}

const (
	weightBits = 14 // keeps two passes over 32-bit values below 2^62, negative lobes included
	weightOne  = 1 << weightBits
)

func emptyAxis(old, size, reach, one int) axis {
	taps := min(reach, old)
	return axis{taps: taps, one: one, first: make([]int, size), weights: make([]int32, size*taps)}
}

// newAxis builds an axis whose weights have the sum weightOne, from a function that returns the weights of the old pixels
// for new pixel i. Their sum may be any number. For positions beyond the edge, the edge pixel is used.
func newAxis(old, size, reach int, weigh func(i int) (first int, weights []float64)) axis {
	a := emptyAxis(old, size, reach, weightOne)
	for i := range size {
		first, ws := weigh(i)
		a.first[i] = max(0, min(first, old-a.taps))
		sum := 0.0
		for _, w := range ws {
			sum += w
		}
		row := a.weights[i*a.taps:][:a.taps]
		rest, largest := int32(weightOne), 0
		for k, w := range ws {
			q := int32(math.Floor(float64(w/sum*weightOne) + 0.5))
			at := max(0, min(first+k, old-1)) - a.first[i]
			row[at] += q
			rest -= q
			if row[at] > row[largest] {
				largest = at
			}
		}
		row[largest] += rest
	}
	return a
}

// Kaiser's window, with the usual width and steepness of texture tools: 3 new pixels to each side, alpha 4.
const (
	kaiserRadius = 3
	kaiserAlpha  = 4
)

// kaiserAxis samples sinc(t) times the Kaiser window. t is in new pixels, or in old ones if the axis grows. It uses
// only sums, products and square roots, because a sine may differ between machines.
func kaiserAxis(old, size int) axis {
	if old == size {
		return linearAxis(old, size)
	}
	ratio := float64(max(old, size)) / float64(size) // old pixels for each new one, at least 1
	step := float64(old) / float64(size)
	reach := int(math.Ceil(2*kaiserRadius*ratio)) + 1
	return newAxis(old, size, reach, func(i int) (int, []float64) {
		centre := float64((float64(i) + 0.5) * step)
		first := int(math.Floor(float64(centre - float64(kaiserRadius*ratio))))
		ws := make([]float64, reach)
		for k := range ws {
			t := float64(float64(first+k)+0.5-centre) / ratio
			ws[k] = kaiser(t)
		}
		return first, ws
	})
}

func kaiser(t float64) float64 {
	r := t / kaiserRadius
	rest := 1 - float64(r*r)
	if rest <= 0 {
		return 0
	}
	return sinc(t) * float64(bessel(kaiserAlpha*math.Sqrt(rest)))
}

// sinc returns sin(πt)/(πt). It uses the power series of the sine, after t is reduced to at most 1/2 from a whole
// number.
func sinc(t float64) float64 {
	if math.Abs(t) < 1e-9 {
		return 1
	}
	whole := math.Floor(t + 0.5)
	x := float64(math.Pi * (t - whole)) // between -π/2 and π/2
	term, sum := x, x
	for n := 1.0; n < 12; n++ {
		term = -float64(float64(term*x)*x) / (2 * n * (2*n + 1))
		sum += term
	}
	if int(whole)%2 != 0 {
		sum = -sum
	}
	return sum / (math.Pi * t)
}

// bessel is the modified Bessel function I0, by its power series. x is at most 4.
func bessel(x float64) float64 {
	q := float64(x*x) / 4
	term, sum := 1.0, 1.0
	for n := 1.0; n < 25; n++ {
		term = float64(term*q) / (n * n)
		sum += term
	}
	return sum
}

// linearAxis interpolates between neighbours. An axis of unchanged size has one weight a pixel.
func linearAxis(old, size int) axis {
	if old == size {
		return newAxis(old, size, 1, func(i int) (int, []float64) { return i, []float64{1} })
	}
	return newAxis(old, size, 2, func(i int) (int, []float64) {
		// The centre of the new pixel is at position at/(2*size) in the old row, counted from the centre of its first
		// pixel.
		at := (2*i+1)*old - size
		first := at / (2 * size)
		if at < 0 {
			first = -1
		}
		part := float64(at-first*2*size) / float64(2*size)
		return first, []float64{1 - part, part}
	})
}

// areaAxis is the mean of the covered area: on a common scale, old pixel j covers [j*size, (j+1)*size), and new pixel i covers
// [i*old, (i+1)*old). The weights are exact.
func areaAxis(old, size int) axis {
	a := emptyAxis(old, size, old/size+2*min(old%size, 1), old)
	for i := range size {
		from, to := i*old, (i+1)*old
		a.first[i] = min(from/size, old-a.taps)
		for j := from / size; j*size < to; j++ {
			a.weights[i*a.taps+j-a.first[i]] = int32(min(to, (j+1)*size) - max(from, j*size))
		}
	}
	return a
}

// boxAxis is areaAxis with weights that have the sum weightOne, for images in floating point. It can grow.
func boxAxis(old, size int) axis {
	if size >= old {
		return linearAxis(old, size)
	}
	a, ws := areaAxis(old, size), make([]float64, old/size+2)
	return newAxis(old, size, a.taps, func(i int) (int, []float64) {
		for k, w := range a.weights[i*a.taps:][:a.taps] {
			ws[k] = float64(w)
		}
		return a.first[i], ws[:a.taps]
	})
}

// resampled applies an axis in each direction while it is read: to rows first, then to columns. Sums have 64 bits, and are
// rounded once at the end.
func resampled(src rows, across, down axis) rows {
	size, taps, keep := 4*len(across.first), down.taps, 1
	for i, first := range down.first[1:] {
		keep = max(keep, down.first[i]+taps-first) // lines that the next result needs again
	}
	area := uint64(across.one) * uint64(down.one)
	return rows{len(across.first), len(down.first), func() func(int) []uint32 {
		row, dst, sum := src.reader(), make([]uint32, size), make([]uint64, size)
		lines, next := make([]uint64, size*keep), make([]int, keep) // next is the row after that of a line
		return func(y int) []uint32 {
			clear(sum)
			for k, w := range down.weights[y*taps:][:taps] {
				if w == 0 {
					continue
				}
				at := down.first[y] + k
				line := lines[size*(at%keep):][:size]
				if next[at%keep] != at+1 {
					across.apply(line, row(at))
					next[at%keep] = at + 1
				}
				addLine(sum, line, w)
			}
			divide(dst, sum, area)
			return dst
		}
	}}
}

// apply computes a row of four numbers a pixel, times one. With negative weights, numbers are in two's complement.
func (a axis) apply(dst []uint64, src []uint32) {
	if lanes {
		applyLanes(&dst[0], &src[0], &a.first[0], &a.weights[0], a.taps, a.one, len(a.first))
		return
	}
	for x, first := range a.first {
		var r, g, b, alpha uint64
		from := src[4*first:][:4*a.taps]
		for k, w := range a.weights[x*a.taps:][:a.taps] {
			s, w := from[4*k:4*k+4:4*k+4], uint64(w)
			r, g, b, alpha = r+w*uint64(s[0]), g+w*uint64(s[1]), b+w*uint64(s[2]), alpha+w*uint64(s[3])
		}
		d := dst[4*x : 4*x+4 : 4*x+4]
		d[0], d[1], d[2], d[3] = r, g, b, alpha
	}
}

// addLine adds a line of apply, times a weight, to sums.
func addLine(sum, line []uint64, weight int32) {
	sum = sum[:len(line)]
	if lanes {
		addLineLanes(&sum[0], &line[0], weight, len(line)/4)
		return
	}
	for i, v := range line {
		sum[i] += uint64(weight) * v
	}
}

// divide divides sums by an area, and rounds. With negative weights, there are sums below 0 and above the largest.
func divide(dst []uint32, sum []uint64, area uint64) {
	most, inverse := maxValue*area, math.MaxUint64/area // area is at most maxFilterSide squared: maxValue times that has 64 bits
	if lanes {
		divideLanes(&dst[0], &sum[0], area, inverse, most, len(sum)/4)
		return
	}
	for i, v := range sum {
		if v > most {
			v = most &^ uint64(int64(v)>>63)
		}
		v += area / 2
		q, _ := bits.Mul64(v, inverse) // the quotient, or one less
		if v-q*area >= area {
			q++
		}
		dst[i] = uint32(q)
	}
}
