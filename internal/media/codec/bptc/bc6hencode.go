package bptc

import (
	"math"

	"github.com/kiln-pipeline/kiln/internal/media/codec/block"
)

// effort6 sets the work for a quality.
type effort6 struct {
	rounds     int  // of least squares for each line
	candidates int  // partitions to fit, of those that are estimated
	sweeps     int  // passes over the endpoints of the best block, moving each by the least step
	clamp      bool // clip offsets that a mode cannot store, instead of skipping the mode
}

var efforts6 = [...]effort6{
	block.Fast:   {rounds: 1, candidates: 1},
	block.Normal: {rounds: 3, candidates: 4, sweeps: 1},
	block.Best:   {rounds: 4, candidates: 32, sweeps: 3, clamp: true},
}

// encoder6 encodes blocks one after another. It uses the numbers that decoders interpolate: the bits of half floats times
// 64/31, or 32/31 if signed. Distances of such numbers are about those of logarithms, and so close to perceived differences
// of light.
type encoder6 struct {
	effort6
	signed     bool
	pix        [16][3]int32
	scaled     [16][4]int32 // minus the least of each channel, and shifted to 11 bits, for estimates and lines
	least      [3]int32
	shift      uint
	estimator  estimator
	candidates candidates
	best       block6
	ends       [4][3]int32 // the exact endpoints of best
	err        int64       // of best
}

func newEncoder6(q block.Quality, signed bool) *encoder6 {
	return &encoder6{effort6: efforts6[min(q, block.Best)], signed: signed}
}

// scaledBits keeps sums of squares of 16 pixels within 31 bits.
const scaledBits = 11

func (e *encoder6) encode(pix *[64]float32, to *[16]byte) {
	e.load(pix)
	e.err = math.MaxInt64
	e.try(1, 0)
	if e.err > 0 {
		e.estimator.fill(&e.scaled, false)
		c := &e.candidates
		c.reset(math.MaxFloat32)
		for p := range uint8(32) {
			off, along := e.estimator.two(p)
			c.add(candidate{cost: expect(off, 1, along, 0.015, 0), partition: p}, e.effort6.candidates)
		}
		for _, try := range c.list[:c.n] {
			e.try(2, try.partition)
		}
	}
	for range e.sweeps {
		if !e.sweep() {
			break
		}
	}
	out := e.best.pack()
	out.store(to)
}

func (e *encoder6) load(pix *[64]float32) {
	var most [3]int32
	for c := range 3 {
		e.least[c], most[c] = math.MaxInt32, math.MinInt32
		for i := range e.pix {
			v := e.spread(toHalf(pix[4*i+c], e.signed))
			e.pix[i][c] = v
			e.least[c], most[c] = min(e.least[c], v), max(most[c], v)
		}
	}
	span := max(most[0]-e.least[0], most[1]-e.least[1], most[2]-e.least[2])
	e.shift = 0
	for span>>e.shift >= 1<<scaledBits {
		e.shift++
	}
	for i := range e.pix {
		for c := range 3 {
			e.scaled[i][c] = (e.pix[i][c] - e.least[c]) >> e.shift
		}
	}
}

// spread is the reverse of half: it returns one of the numbers that half maps to h.
func (e *encoder6) spread(h uint16) int32 {
	v := int32(h & 0x7fff)
	switch {
	case v == 0:
		return 0
	case !e.signed:
		return (v<<6 + 32) / 31
	case h&0x8000 != 0:
		return -(v<<5 + 30) / 31
	}
	return (v<<5 + 30) / 31
}

// try fits the subsets of a partition, and keeps the best block of all modes with that number of subsets.
func (e *encoder6) try(subsets int, partition uint8) {
	of := subsetsOf(subsets, partition)
	anchors := anchorsOf(subsets, partition)
	indexBits := uint8(5 - subsets)
	var ends [4][3]int32
	for s := range subsets {
		var g group
		g.gather(&e.scaled, of, uint32(s), false)
		line := g.settle(indexBits, e.rounds)
		for i := range 16 {
			if anchors>>i&1 == 1 && of>>(2*i)&3 == uint32(s) && nearSecond(&e.scaled[i], &line) {
				line[0], line[1] = line[1], line[0]
			}
		}
		for i := range 2 {
			for c := range 3 {
				ends[2*s+i][c] = e.limit(e.least[c] + nearest(line[i][c])<<e.shift)
			}
		}
	}
	for mode := range modes6 {
		if int(modes6[mode].subsets) == subsets {
			try := block6{mode: uint8(mode), partition: partition}
			if e.quantise(&try, &ends) && e.judge(&try, of, anchors) {
				e.ends = ends
			}
		}
	}
}

// sweep moves each channel of each endpoint of the best block by one step of its mode, in both directions, and keeps
// improvements. It reports whether there were any.
func (e *encoder6) sweep() (better bool) {
	m := &modes6[e.best.mode]
	of, anchors := subsetsOf(int(m.subsets), e.best.partition), anchorsOf(int(m.subsets), e.best.partition)
	for i := range 2 * m.subsets {
		for c := range 3 {
			for _, step := range [2]int32{1 << (16 - m.bits), -1 << (16 - m.bits)} {
				ends := e.ends
				ends[i][c] = e.limit(ends[i][c] + step)
				try := block6{mode: e.best.mode, partition: e.best.partition}
				if e.quantise(&try, &ends) && e.judge(&try, of, anchors) {
					e.ends = ends
					better = true
				}
			}
		}
	}
	return better
}

// nearSecond reports whether a pixel is nearer to the second end of a line than to the first.
func nearSecond(p *[4]int32, line *[2][4]float32) bool {
	var t float32
	for c := range 3 {
		t += float32((float32(p[c]) - float32((line[0][c]+line[1][c])/2)) * (line[1][c] - line[0][c]))
	}
	return t > 0
}

// limit clamps a value to the range that can be interpolated.
func (e *encoder6) limit(v int32) int32 {
	if e.signed {
		return min(max(v, -0x7fff), 0x7fff)
	}
	return min(max(v, 0), 0xffff)
}

// quantise stores endpoints in the block's mode. It returns false if offsets do not fit and must not be clipped.
func (e *encoder6) quantise(b *block6, ends *[4][3]int32) bool {
	m := &modes6[b.mode]
	for i := range 2 * m.subsets {
		for c := range 3 {
			v := narrow(ends[i][c], m.bits)
			if i > 0 && m.transformed {
				v -= b.ends[0][c]
				most := int32(1)<<(m.deltaBits[c]-1) - 1
				if v > most || v < -most-1 {
					if !e.clamp {
						return false
					}
					v = min(max(v, -most-1), most)
				}
			}
			b.ends[i][c] = v
		}
	}
	return true
}

// narrow is the reverse of widen.
func narrow(v int32, bits uint8) int32 {
	if v < 0 {
		return -(-v >> (16 - bits))
	}
	return v >> (16 - bits)
}

// judge gives each pixel the nearest index, and keeps the block if it is better than the best so far. Endpoints cannot be
// swapped at this point, because the range of offsets is not symmetric: an anchor gets the nearest index that it can have.
func (e *encoder6) judge(b *block6, of uint32, anchors uint16) bool {
	m := &modes6[b.mode]
	var ends [4][3]int32
	b.shown(e.signed, &ends)
	bits := m.indexBits()
	weights := &weights[bits]
	var scale [2]float32
	for s := range m.subsets {
		e0, e1 := &ends[2*s], &ends[2*s+1]
		d0, d1, d2 := int64(e1[0]-e0[0]), int64(e1[1]-e0[1]), int64(e1[2]-e0[2])
		if length := d0*d0 + d1*d1 + d2*d2; length > 0 {
			scale[s] = float32(int32(1)<<bits-1) / float32(length)
		}
	}
	err := int64(0)
	for i := range e.pix {
		s := of >> (2 * i) & 1
		e0, e1, p := &ends[2*s], &ends[2*s+1], &e.pix[i]
		along := int64(p[0]-e0[0])*int64(e1[0]-e0[0]) + int64(p[1]-e0[1])*int64(e1[1]-e0[1]) + int64(p[2]-e0[2])*int64(e1[2]-e0[2])
		at := int32(float32(float32(along)*scale[s]) + 0.5)
		at = min(max(at, 0), int32(1)<<(uint16(bits)-anchors>>i&1)-1)
		b.index[i] = uint8(at)
		w := weights[at&15]
		for c := range 3 {
			d := int64((e0[c]*(64-w)+e1[c]*w+32)>>6 - p[c])
			err += d * d
		}
		if err >= e.err {
			return false
		}
	}
	e.err, e.best = err, *b
	return true
}
