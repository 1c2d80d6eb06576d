package pixel

import (
	"math"

	"github.com/kiln-pipeline/kiln/internal/media/codec/block"
)

// Kernel is the method that computes a pixel of a smaller image from pixels of a larger one.
type Kernel uint8

const (
	Box    Kernel = iota // the mean of the covered area: each source pixel counts once
	Kaiser               // a windowed sinc, six new pixels wide: sharper, with faint rings around hard edges
)

// axis describes how a row of old pixels becomes a row of new ones: new pixel i is the sum of weights[i*taps+k] times
// old pixel first[i]+k. Weights are integers with the sum weightOne, and the same on every machine.
type axis struct {
	old, taps int
	first     []int
	weights   []int32
}

const (
	weightBits = 14 // keeps two passes over 32-bit values below 2^62, negative lobes included
	weightOne  = 1 << weightBits
)

// newAxis builds an axis from a function that returns the weights of the old pixels for new pixel i. Their sum may be
// any number. For positions beyond the edge, the edge pixel is used.
func newAxis(old, size, reach int, weigh func(i int) (first int, weights []float64)) axis {
	a := axis{old: old, taps: min(reach, old), first: make([]int, size), weights: make([]int32, size*min(reach, old))}
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

// boxAxis is the mean of the covered area, for images in floating point. [Filter.shrink] is the exact form for
// integers.
func boxAxis(old, size int) axis {
	if size >= old {
		return linearAxis(old, size)
	}
	return newAxis(old, size, (old+size-1)/size+1, func(i int) (int, []float64) {
		from, to := i*old, (i+1)*old
		first := from / size
		var ws []float64
		for j := first; j*size < to; j++ {
			ws = append(ws, float64(min(to, (j+1)*size)-max(from, j*size)))
		}
		return first, ws
	})
}

// band is the number of result rows that a worker makes at once. It needs the source rows below them, and a few more
// that its neighbours need too.
const band = 16

// resample applies an axis in each direction: columns first, then rows. It uses 64 bits and rounds once at the end.
func (f Filter) resample(src rows, across, down axis) plane {
	width, height := len(across.first), len(down.first)
	out := newPlane(width, height)
	block.Rows((height+band-1)/band, f.workers(width, height), func(next func() int) {
		row := src.reader()
		var lines []int64
		sum := make([]int64, 4*width)
		for b := next(); b >= 0; b = next() {
			from, to := b*band, min((b+1)*band, height)
			top, bottom := src.height, 0
			for _, first := range down.first[from:to] {
				top, bottom = min(top, first), max(bottom, first+down.taps)
			}
			if need := 4 * width * (bottom - top); len(lines) < need {
				lines = make([]int64, need)
			}
			for y := top; y < bottom; y++ {
				across.apply(lines[4*width*(y-top):][:4*width], row(y))
			}
			for y := from; y < to; y++ {
				clear(sum)
				for k, w := range down.weights[y*down.taps:][:down.taps] {
					if w == 0 {
						continue
					}
					line := lines[4*width*(down.first[y]+k-top):][:len(sum)]
					for i := range sum {
						sum[i] += int64(w) * line[i]
					}
				}
				dst := out.v[4*y*width:][:len(sum)]
				for i, v := range sum {
					dst[i] = uint32(max(0, min((v+1<<(2*weightBits-1))>>(2*weightBits), maxValue)))
				}
			}
		}
	})
	return out
}

// apply computes a row of four numbers a pixel, times weightOne.
func (a axis) apply(dst []int64, src []uint32) {
	for x, first := range a.first {
		var r, g, b, alpha int64
		from := src[4*first:][:4*a.taps]
		for k, w := range a.weights[x*a.taps:][:a.taps] {
			s, w := from[4*k:4*k+4:4*k+4], int64(w)
			r, g, b, alpha = r+w*int64(s[0]), g+w*int64(s[1]), b+w*int64(s[2]), alpha+w*int64(s[3])
		}
		d := dst[4*x : 4*x+4 : 4*x+4]
		d[0], d[1], d[2], d[3] = r, g, b, alpha
	}
}
