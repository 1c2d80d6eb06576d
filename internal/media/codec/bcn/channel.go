package bcn

import "github.com/kiln-pipeline/kiln/internal/media/codec/block"

// channel is one channel of a block while endpoints for it are sought.
//
// Its 16 values fall into eight runs, one for each place. So the error of any two endpoints is a matter of
// eight differences: below[v] holds the sum of the values less than v, times 256, plus their number. (There are 257; the rest
// of the array is there for the compiler to see that no index is out of it.)
type channel struct {
	below [512]uint32

	lanes   bool // instead, the values stand for themselves, and the errors of eight lines are found at once
	values  [16]uint8
	squares int32 // the sum of theirs
}

// line is a pair of endpoints and what lies between them: 8 places, or 6 and the values 0 and 255.
type line struct {
	low, high int32 // low <= high, and less where there are 8 places
	six       bool
}

// scored is a line and how good it is, see gain. None is worse than the first start, which has no value further away than 0 is.
type scored struct {
	line
	gain int32
}

var none = scored{gain: -1}

// start says where a search begins: with the least and the greatest value at some of the places 0 to 7, or, with apart
// greater than 0, with six places for the values that are so far from 0 and from 255.
type start struct {
	first, last int32
	apart       int32
}

// starts are in three kinds. Endpoints at the least and greatest value are what most blocks want. But values that are not spread
// evenly are often met better by a longer line some of whose places stay empty, and no small steps lead there: trying that
// is worth 0.1 dB. Six places save blocks with hard edges: 5 dB in drawn interfaces.
var starts = [...][]start{
	{{0, 7, 0}},
	{{1, 7, 0}, {0, 6, 0}, {1, 6, 0}, {2, 7, 0}, {0, 5, 0}},
	{{apart: 1}, {apart: 8}, {apart: 32}},
}

// encode gives the block of channel at of some RGBA pixels.
//
// Fast takes the best start as it is, Normal searches from the best of each kind, Best from all.
func (c *channel) encode(pixels *[64]byte, at int, q block.Quality) uint64 {
	low, high := int32(255), int32(0)
	for i := at; i < 64; i += 4 {
		low, high = min(low, int32(pixels[i])), max(high, int32(pixels[i]))
	}
	if high-low <= 7 {
		low = min(low, 248)
		return writeChannel(pixels, at, line{low, low + 7, false}) // steps of 1 miss nothing
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

// line is where a search begins among values from low to high, or false where there is no sense in it.
func (s start) line(pixels *[64]byte, at int, low, high int32) (line, bool) {
	if s.apart == 0 {
		step := s.last - s.first
		return line{max(low-(high-low)*s.first/step, 0), min(high+(high-low)*(7-s.last)/step, 255), false}, true
	}
	if low >= s.apart && high <= 255-s.apart {
		return line{}, false // it would lose two places for nothing
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

// search moves the endpoints, by less and less, as long as that makes the error smaller.
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

// is tells whether there is such a line.
func (l line) is() bool {
	return l.low >= 0 && l.high <= 255 && l.low <= l.high && (l.low < l.high || l.six)
}

// moves of a pair of endpoints: one of them, then both.
var moves = [8][2]int32{{1, 0}, {0, -1}, {-1, 0}, {0, 1}, {1, 1}, {-1, -1}, {1, -1}, {-1, 1}}

// values are the values of the eight places, ascending.
func (l line) values() [8]int32 {
	a, b := l.low, l.high
	if l.six {
		return [8]int32{0, a, (4*a + b) / 5, (3*a + 2*b) / 5, (2*a + 3*b) / 5, (a + 4*b) / 5, b, 255}
	}
	return [8]int32{a, (6*a + b) / 7, (5*a + 2*b) / 7, (4*a + 3*b) / 7, (3*a + 4*b) / 7, (2*a + 5*b) / 7, (a + 6*b) / 7, b}
}

// gain tells how good a line is when each value takes the place nearest to it: the sum of the values' squares less that of the errors'.
// Where n values of sum s take a place of value v, that is v(2s - nv).
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

// channelCodes are the indices of the eight places in ascending order; the second of six and 0 and 255.
var channelCodes = [2][8]uint64{{1, 7, 6, 5, 4, 3, 2, 0}, {6, 0, 2, 3, 4, 5, 1, 7}}

// writeChannel gives the block of a line, each pixel at the place nearest to it. The endpoints' order says how many places there are.
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
