package bcn

import "github.com/kiln-pipeline/kiln/internal/media/codec/block"

// channel is one channel of a block during the search for its endpoints.
//
// Its 16 values fall into eight runs, one for each place. So the error of any two endpoints can be computed from eight
// differences: below[v] has the sum of the values less than v, times 256, plus their number. (It has 257 elements; the array
// is longer so that the compiler can omit bounds checks.)
type channel struct {
	below [512]uint32

	lanes   bool // if set, values is used instead of below, and the errors of eight lines are computed at once
	values  [16]uint8
	squares int32 // the sum of the squares of values
}

// line is a pair of endpoints and the values between them: 8 places, or 6 and the values 0 and 255.
type line struct {
	low, high int32 // low <= high, and low < high if there are 8 places
	six       bool
}

// scored is a line and its gain, as gain returns it. The gain of none, -1, is below that of the first start: that is never
// negative, because no value is further from its place than from 0.
type scored struct {
	line
	gain int32
}

var none = scored{gain: -1}

// start is the start of a search: the least and the greatest value are at two of the places 0 to 7. With apart greater than
// 0, a start has six places for the values that are at least that far from 0 and from 255.
type start struct {
	first, last int32
	apart       int32
}

// starts are of three kinds. Most blocks are best with endpoints at the least and the greatest value. Values that are not
// evenly spread are often nearer to a longer line with some unused places, which small steps cannot reach: trying it gains
// 0.1 dB. Six places suit blocks with hard edges: 5 dB in drawn interfaces.
var starts = [...][]start{
	{{0, 7, 0}},
	{{1, 7, 0}, {0, 6, 0}, {1, 6, 0}, {2, 7, 0}, {0, 5, 0}},
	{{apart: 1}, {apart: 8}, {apart: 32}},
}

// encode returns the block for channel at of some RGBA pixels.
//
// Fast takes the best start unchanged, Normal searches from the best start of each kind, Best from all starts.
func (c *channel) encode(pixels *[64]byte, at int, q block.Quality) uint64 {
	low, high := int32(255), int32(0)
	for i := at; i < 64; i += 4 {
		low, high = min(low, int32(pixels[i])), max(high, int32(pixels[i]))
	}
	if high-low <= 7 {
		low = min(low, 248)
		return writeChannel(pixels, at, line{low, low + 7, false}) // steps of 1 represent every value
	}
	if c.lanes {
		c.fill(pixels, at)
	} else {
		c.count(pixels, at)
	}
	best := none
	for _, kind := range starts {
		top, n := none, 0
		var lines [8]line
		for _, s := range kind {
			if l, ok := s.line(pixels, at, low, high); ok {
				lines[n] = l
				n++
			}
		}
		if n == 0 {
			continue
		}
		gains := c.gains(&lines, n)
		for i, l := range lines[:n] {
			found := scored{l, gains[i]}
			if q == block.Best {
				found = c.search(found)
			}
			if found.gain > top.gain {
				top = found
			}
		}
		if q == block.Normal && top != none {
			top = c.search(top)
		}
		if top.gain > best.gain {
			best = top
		}
	}
	return writeChannel(pixels, at, best.line)
}

// line returns the line on which a search among values from low to high begins, or false if the start does not apply.
func (s start) line(pixels *[64]byte, at int, low, high int32) (line, bool) {
	if s.apart == 0 {
		step := s.last - s.first
		return line{max(low-(high-low)*s.first/step, 0), min(high+(high-low)*(7-s.last)/step, 255), false}, true
	}
	if low >= s.apart && high <= 255-s.apart {
		return line{}, false // it would only lose two places
	}
	low, high = 255, 0
	for i := at; i < 64; i += 4 {
		if v := int32(pixels[i]); v >= s.apart && v <= 255-s.apart {
			low, high = min(low, v), max(high, v)
		}
	}
	return line{low, high, true}, low <= high
}

func (c *channel) count(pixels *[64]byte, at int) {
	c.below = [512]uint32{}
	for i := at; i < 64; i += 4 {
		v := uint32(pixels[i])
		c.below[v+1] += v<<8 + 1
	}
	sum := uint32(0)
	for i := range 257 {
		sum += c.below[i]
		c.below[i] = sum
	}
}

// search moves the endpoints in smaller and smaller steps while the error decreases.
func (c *channel) search(s scored) scored {
	if c.lanes {
		return c.searchLanes(s)
	}
	for step := max(1, (s.high-s.low)>>4); step > 0; step >>= 1 {
		for moved := true; moved; {
			moved = false
			for _, d := range moves {
				l := line{s.low + d[0]*step, s.high + d[1]*step, s.six}
				if !l.is() {
					continue
				}
				if g := c.gain(l); g > s.gain {
					s, moved = scored{l, g}, true
				}
			}
		}
	}
	return s
}

// is reports whether the line is valid.
func (l line) is() bool {
	return l.low >= 0 && l.high <= 255 && l.low <= l.high && (l.low < l.high || l.six)
}

// moves are the steps for a pair of endpoints: first of one, then of both.
var moves = [8][2]int32{{1, 0}, {0, -1}, {-1, 0}, {0, 1}, {1, 1}, {-1, -1}, {1, -1}, {-1, 1}}

// values returns the values of the eight places, ascending.
func (l line) values() [8]int32 {
	a, b := l.low, l.high
	if l.six {
		return [8]int32{0, a, (4*a + b) / 5, (3*a + 2*b) / 5, (2*a + 3*b) / 5, (a + 4*b) / 5, b, 255}
	}
	return [8]int32{a, (6*a + b) / 7, (5*a + 2*b) / 7, (4*a + 3*b) / 7, (3*a + 4*b) / 7, (2*a + 5*b) / 7, (a + 6*b) / 7, b}
}

// gain returns the sum of the squared values minus the sum of squared errors, with each value at the place nearest to it. n
// values of sum s at a place of value v add v(2s - nv).
func (c *channel) gain(l line) int32 {
	v := l.values()
	gain, from := int32(0), uint32(0)
	for i := range 8 {
		to := c.below[256]
		if i < 7 {
			to = c.below[((v[i]+v[i+1])>>1+1)&511]
		}
		n, s := int32((to-from)&255), int32((to-from)>>8)
		gain += v[i] * (2*s - n*v[i])
		from = to
	}
	return gain
}

// channelCodes are the indices of the eight places in ascending order; the second row is for six places and 0 and 255.
var channelCodes = [2][8]uint64{{1, 7, 6, 5, 4, 3, 2, 0}, {6, 0, 2, 3, 4, 5, 1, 7}}

// writeChannel returns the block for a line, with each pixel at the place nearest to it. The order of the endpoints encodes
// the number of places.
func writeChannel(pixels *[64]byte, at int, l line) uint64 {
	v := l.values()
	var middle [7]int32
	for i := range middle {
		middle[i] = (v[i] + v[i+1]) >> 1
	}
	codes, b := &channelCodes[0], uint64(l.high)|uint64(l.low)<<8
	if l.six {
		codes, b = &channelCodes[1], uint64(l.low)|uint64(l.high)<<8
	}
	for i := range 16 {
		x, place := int32(pixels[4*i+at]), uint32(0)
		for _, m := range middle {
			place += uint32(m-x) >> 31
		}
		b |= codes[place&7] << (16 + 3*i)
	}
	return b
}
