package mp3

import (
	"math"
	"sync"
)

// synthesis are the filters of a channel: from a spectrum to samples.
type synthesis struct {
	overlap [granule]float32 // the second halves of the windows before
	v       [1024]float32    // what the last 16 sets of subbands were transformed to, in a ring
	at      int
}

// sine is sin(pi n/d). It is the same on every machine: each product is rounded.
func sine(n, d int) float64 {
	n %= 2 * d
	switch {
	case n < 0:
		return -sine(-n, d)
	case n > d:
		return -sine(n-d, d)
	case 2*n > d:
		n = d - n
	}
	x := float64(math.Pi*float64(n)) / float64(d)
	square := float64(x * x)
	sum, term := x, x
	for k := 2.0; k < 30; k += 2 {
		term = -float64(term*square) / float64(k*(k+1))
		sum += term
	}
	return sum
}

// cosine is cos(pi n/d).
func cosine(n, d int) float64 { return sine(2*n+d, 2*d) }

var (
	long36  [36][18]float32 // the transform of a long window
	short12 [12][6]float32
	windows [4][36]float32 // by kind
	edges   [8][2]float32  // of neighbouring subbands
	dct     [32][16]float32
	taps    [512]float32 // the window of the last step
)

// prepare computes the tables, when the first decoder is made.
var prepare = sync.OnceFunc(func() {
	powers, codes = newPowers(), newCodes()
	for i := range long36 {
		for k := range long36[i] {
			long36[i][k] = float32(cosine((2*i+1+18)*(2*k+1), 72))
		}
	}
	for i := range short12 {
		for k := range short12[i] {
			short12[i][k] = float32(cosine((2*i+1+6)*(2*k+1), 24))
		}
	}
	for i := range 36 {
		full := float32(sine(2*i+1, 72))
		windows[0][i], windows[1][i], windows[3][i] = full, full, full
		switch {
		case i >= 30:
			windows[1][i] = 0
		case i >= 24:
			windows[1][i] = float32(sine(2*(i-18)+1, 24))
		case i >= 18:
			windows[1][i] = 1
		}
		switch {
		case i < 6:
			windows[3][i] = 0
		case i < 12:
			windows[3][i] = float32(sine(2*(i-6)+1, 24))
		case i < 18:
			windows[3][i] = 1
		}
		if i < 12 {
			windows[2][i] = float32(sine(2*i+1, 24))
		}
	}
	for i, c := range [8]float64{-0.6, -0.535, -0.33, -0.185, -0.095, -0.041, -0.0142, -0.0037} {
		root := math.Sqrt(1 + float64(c*c))
		edges[i] = [2]float32{float32(1 / root), float32(c / root)}
	}
	for i := range dct {
		for k := range dct[i] {
			dct[i][k] = float32(cosine(i*(2*k+1), 64))
		}
	}
	for i := range taps {
		n, sign := i, float32(1)
		if i > 256 {
			n = 512 - i
			if i%64 != 0 {
				sign = -1
			}
		}
		taps[i] = sign * float32(taperTable[n]) / (1 << 16)
	}
})

// granule makes 576 samples, step apart. The spectrum has used values up to the last that is not 0.
func (s *synthesis) granule(dst []float32, step int, x *[granule]float32, p section, used int) {
	last := 31 // of the edges between subbands
	switch {
	case p.kind == 2 && p.mixed:
		last = 1
	case p.kind == 2:
		last = 0
	}
	for b := 1; b <= last; b++ {
		if used <= 18*b-8 {
			break
		}
		for i, e := range edges {
			up, down := x[18*b-1-i], x[18*b+i]
			x[18*b-1-i] = float32(up*e[0]) - float32(down*e[1])
			x[18*b+i] = float32(down*e[0]) + float32(up*e[1])
		}
		used = max(used, 18*b+8)
	}
	if p.kind == 2 {
		used = granule
	}
	var out [granule]float32
	for b := range 32 {
		kind := p.kind
		if p.mixed && b < 2 {
			kind = 0
		}
		in, half := x[18*b:18*b+18], s.overlap[18*b:18*b+18]
		if 18*b >= used {
			copy(out[18*b:], half)
			clear(half)
		} else if kind == 2 {
			transformShort(out[18*b:18*b+18], half, in)
		} else {
			transform(out[18*b:18*b+18], half, in, &windows[kind])
		}
		if b&1 == 1 {
			for i := 1; i < 18; i += 2 {
				out[18*b+i] = -out[18*b+i]
			}
		}
	}
	for t := range 18 {
		var set [32]float32
		for b := range set {
			set[b] = out[18*b+t]
		}
		s.slot(dst[32*t*step:], step, &set)
	}
}

// transform transforms 18 values to 36, of which the first half completes the window before.
func transform(out, half, in []float32, w *[36]float32) {
	for i := range 36 {
		sum, row := float32(0), &long36[i]
		for k, c := range row {
			sum += float32(c * in[k])
		}
		v := float32(sum * w[i])
		if i < 18 {
			out[i] = half[i] + v
		} else {
			half[i-18] = v
		}
	}
}

// transformShort is transform for three windows, whose values are beside one another.
func transformShort(out, half, in []float32) {
	var all [36]float32
	for w := range 3 {
		for i := range 12 {
			sum := float32(0)
			for k, c := range short12[i] {
				sum += float32(c * in[3*k+w])
			}
			all[6+6*w+i] += float32(sum * windows[2][i])
		}
	}
	for i := range 18 {
		out[i] = half[i] + all[i]
		half[i] = all[18+i]
	}
}

// slot makes 32 samples of one value of each subband.
func (s *synthesis) slot(dst []float32, step int, set *[32]float32) {
	s.at = (s.at - 64) & 1023
	v := s.v[s.at : s.at+64]
	var fold [2][16]float32
	for k := range 16 {
		fold[0][k], fold[1][k] = set[k]+set[31-k], set[k]-set[31-k]
	}
	var c [32]float32
	for i := range c {
		sum, in := float32(0), &fold[i&1]
		for k, f := range &dct[i] {
			sum += float32(f * in[k])
		}
		c[i] = sum
	}
	copy(v, c[16:])
	v[16] = 0
	for i := 17; i < 48; i++ {
		v[i] = -c[48-i]
	}
	for i := 48; i < 64; i++ {
		v[i] = -c[i-48]
	}
	for j := range 32 {
		sum := float32(0)
		for i := range 8 {
			sum += float32(s.v[(s.at+128*i+j)&1023] * taps[64*i+j])
			sum += float32(s.v[(s.at+128*i+96+j)&1023] * taps[64*i+32+j])
		}
		dst[j*step] = sum
	}
}
