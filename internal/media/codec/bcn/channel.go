package bcn

import "github.com/kiln-pipeline/kiln/internal/media/codec/block"

// channel is one channel of a block during the search for its endpoints.
//
// Its 16 values fall into eight runs, one for each place. So the error of any two endpoints can be computed from eight
// differences: below[v] has the sum of the values less than v, times 256, plus their number. (It has 257 elements; the array
// is longer so that the compiler can omit bounds checks.)
type channel struct {
	below  [512]uint32
	starts *channelStarts // for channelLanes, which does all, or nil
}

// line is a pair of endpoints and the values between them: 8 places, or 6 and the values 0 and 255. The endpoints are at
// least as far apart as there are steps between them: a shorter line represents no more values.
type line struct {
	low, high int32
	six       bool
}

// scored is a line and its gain, as gain returns it. The gain of none, -1, is below that of the first start: that is never
// negative, because no value is further from its place than from 0.
type scored struct {
	line
	gain int32
}

var none = scored{gain: -1}

// better reports whether a line has a higher gain, or the same gain and higher endpoints.
func (s scored) better(than scored) bool {
	if s.gain != than.gain {
		return s.gain > than.gain
	}
	return s.low > than.low || s.low == than.low && s.high > than.high
}

// start is the start of a search: the least and the greatest value are at two of the places 0 to 7. With apart greater than
// 0, a start has six places for the values that are at least that far from 0 and from 255.
type start struct {
	first, last int32
	apart       int32
}

// kinds are starts; a search begins at the best of each kind.
type kinds struct{ eight, six [][]start }

// Most blocks are best with endpoints at the least and the greatest value. Values that are not evenly spread are often
// nearer to a longer line with some unused places, which small steps cannot reach: trying it gains 0.1 dB. Six places suit
// blocks with hard edges: 5 dB in drawn interfaces. They are tried if some value is near 0 or 255.
var (
	fewKinds = kinds{
		eight: [][]start{{{0, 7, 0}}, {{1, 7, 0}, {0, 6, 0}, {1, 6, 0}, {2, 7, 0}, {0, 5, 0}}},
		six:   [][]start{{{apart: 1}}, {{apart: 8}, {apart: near}}},
	}
	allKinds = kinds{
		eight: [][]start{{{0, 7, 0}}, {{1, 7, 0}}, {{0, 6, 0}}, {{1, 6, 0}}, {{2, 7, 0}}, {{0, 5, 0}}},
		six:   [][]start{{{apart: 1}}, {{apart: 8}}, {{apart: near}}},
	}
)

const near = 32 // how far from 0 or 255 a value is the reason to try six places

// kindsOf returns the starts for a quality. Fast takes the best of them unchanged.
func kindsOf(q block.Quality) *kinds {
	if q == block.Best {
		return &allKinds
	}
	return &fewKinds
}

// repeatOf returns the bits of a step that remain after a move that was better; at least half of the step does. Normal repeats
// moves of 1, and of 8 and more: to repeat the others, too, gains 0.005 dB on photographs and takes an eighth longer.
func repeatOf(q block.Quality) int32 {
	if q == block.Best {
		return 255
	}
	return 255 &^ 6
}

// encode returns the block for channel at of some RGBA pixels.
func (c *channel) encode(pixels *[64]byte, at int, q block.Quality) uint64 {
	if c.starts != nil {
		return channelLanes(pixels, at, &c.starts.search[0])
	}
	low, high := int32(255), int32(0)
	for i := at; i < 64; i += 4 {
		low, high = min(low, int32(pixels[i])), max(high, int32(pixels[i]))
	}
	if high-low <= 7 {
		low = min(low, 248)
		return writeChannel(pixels, at, line{low, low + 7, false}) // steps of 1 represent every value
	}
	c.count(pixels, at)
	k := kindsOf(q)
	best := c.best(k.eight, q, func(s start) (line, bool) { return s.line(low, high), true })
	if low < near || high > 255-near {
		six := c.best(k.six, q, func(s start) (line, bool) { return s.between(pixels, at) })
		if six.gain > best.gain {
			best = six
		}
	}
	return writeChannel(pixels, at, best.line)
}

// best returns the best line of some kinds.
func (c *channel) best(all [][]start, q block.Quality, of func(s start) (line, bool)) scored {
	best := none
	for _, kind := range all {
		top := none
		for _, s := range kind {
			if l, ok := of(s); ok {
				if found := (scored{l, c.gain(l)}); found.better(top) {
					top = found
				}
			}
		}
		if q != block.Fast && top != none {
			top = c.search(top, repeatOf(q))
		}
		if top.better(best) {
			best = top
		}
	}
	return best
}

// line returns the line of eight places on which a search among values from low to high begins.
func (s start) line(low, high int32) line {
	step := s.last - s.first
	return line{max(low-(high-low)*s.first/step, 0), min(high+(high-low)*(7-s.last)/step, 255), false}
}

// between returns the line of six places on which a search begins, or false if no value is far enough from 0 and 255.
func (s start) between(pixels *[64]byte, at int) (line, bool) {
	low, high := int32(255), int32(0)
	for i := at; i < 64; i += 4 {
		if v := int32(pixels[i]); v >= s.apart && v <= 255-s.apart {
			low, high = min(low, v), max(high, v)
		}
	}
	if low > high {
		return line{}, false
	}
	low = min(low, 250)
	return line{low, max(high, low+5), true}, true
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

// search makes the best move of the endpoints, and then smaller ones, while the error decreases.
func (c *channel) search(s scored, repeat int32) scored {
	for step := max(1, (s.high-s.low)>>4); step > 0; {
		top := s
		for _, d := range moves {
			l := line{s.low + d[0]*step, s.high + d[1]*step, s.six}
			if !l.is() {
				continue
			}
			if t := (scored{l, c.gain(l)}); t.gain > s.gain && t.better(top) {
				top = t
			}
		}
		if top == s {
			step >>= 1
		} else {
			step = max(step>>1, step&repeat)
		}
		s = top
	}
	return s
}

// is reports whether the line is valid.
func (l line) is() bool { return l.low >= 0 && l.high <= 255 && l.high-l.low >= l.steps() }

// steps returns the number of steps between the endpoints.
func (l line) steps() int32 {
	if l.six {
		return 5
	}
	return 7
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

// nearest finds the place between the endpoints that is nearest to a value, in whole numbers: the first is place 0.
//
// Places are rounded towards zero, so limits between them are not exactly in steps. In 1/64, they are from 25 to 32 beyond
// those of a line of real numbers, for any endpoints (TestChannelNearest).
type nearest struct{ low, by, add, most int32 }

func (l line) nearest() nearest {
	steps, apart, by := l.steps(), l.high-l.low, int32(37450) // 1<<18 by 7 or 5
	if l.six {
		by = 52429
	}
	return nearest{l.low, min(steps<<16/apart, 1<<16-1), (apart*by>>8+1)>>5 + 28, steps<<6 + 63}
}

func (n *nearest) place(v int32) int32 { return min(max((v-n.low)<<6+n.add, 0)*n.by>>16, n.most) >> 6 }

// channelCodes are the indices of the eight places in ascending order. The second row is for six places and then 0 and 255.
var channelCodes = [2][8]uint64{{1, 7, 6, 5, 4, 3, 2, 0}, {0, 2, 3, 4, 5, 1, 6, 7}}

// writeChannel returns the block for a line, with each pixel at the place nearest to it. The order of the endpoints encodes
// the number of places.
func writeChannel(pixels *[64]byte, at int, l line) uint64 {
	n, v := l.nearest(), l.values()
	if !l.six {
		b := uint64(l.high) | uint64(l.low)<<8
		for i := range 16 {
			b |= channelCodes[0][n.place(int32(pixels[4*i+at]))&7] << (16 + 3*i)
		}
		return b
	}
	b := uint64(l.low) | uint64(l.high)<<8
	for i := range 16 {
		x := int32(pixels[4*i+at])
		place := n.place(x)
		if d := x - v[(place+1)&7]; max(d, -d) > min(x, 255-x) {
			place = 6 + x>>7
		}
		b |= channelCodes[1][place&7] << (16 + 3*i)
	}
	return b
}
