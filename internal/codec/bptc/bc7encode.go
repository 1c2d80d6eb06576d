package bptc

import (
	"os"
	"strconv"

	"github.com/kiln-pipeline/kiln/internal/codec/block"
)

func knob(n string, d int) int {
	if s := os.Getenv(n); s != "" {
		d, _ = strconv.Atoi(s)
	}
	return d
}

var NN, T3, RR, SL, RT = knob("NN", -1), knob("T3", -1), knob("RR", -1), knob("SL", -1), knob("RT", -1)

// effort7 says what a quality tries.
type effort7 struct {
	rounds     int     // of least squares for each line
	candidates int     // partitions that are fitted, of those that are estimated
	three      bool    // partitions of three subsets, too
	slack      float32 // of estimates: a candidate is fitted if this part of its estimate is below the best error
	separate   int     // rotations tried in the modes with two indices a pixel: of opaque blocks none below 4
}

var efforts7 = [...]effort7{
	block.Fast:   {2, 2, false, 0.6, 1},
	block.Normal: {3, 10, true, 0.5, 4},
	block.Best:   {6, 48, true, 0.3, 4},
}

// encoder7 codes blocks one after another; it holds what it needs for one.
type encoder7 struct {
	effort7
	pix        [16][4]int32
	opaque     bool
	alphas     uint8 // parities that the alpha of the block allows
	estimator  estimator
	candidates candidates
	best       block7
	err        int32 // of best
}

func newEncoder7(q block.Quality) *encoder7 {
	e := &encoder7{effort7: efforts7[min(q, block.Best)]}
	if NN >= 0 {
		e.effort7.candidates = NN
	}
	if T3 >= 0 {
		e.effort7.three = T3 > 0
	}
	if RR >= 0 {
		e.effort7.rounds = RR
	}
	if SL >= 0 {
		e.slack = float32(SL) / 100
	}
	if RT >= 0 {
		e.separate = RT
	}
	return e
}

// encode codes a block.
func (e *encoder7) encode(pix *[64]byte, to *[16]byte) {
	if e.load(pix) {
		e.solid()
	} else {
		e.err = far
		e.trySubsets(6, 0)
		if e.err > 0 {
			e.rank()
			e.tryCandidates()
		}
	}
	e.best.orient()
	out := e.best.pack()
	out.store(to)
}

// load takes the pixels in and tells whether they are all the same.
func (e *encoder7) load(pix *[64]byte) (same bool) {
	any, all := uint8(0), uint8(255)
	same = true
	for i := range e.pix {
		p := pix[4*i : 4*i+4 : 4*i+4]
		e.pix[i] = [4]int32{int32(p[0]), int32(p[1]), int32(p[2]), int32(p[3])}
		any |= p[3]
		all &= p[3]
		same = same && e.pix[i] == e.pix[0]
	}
	e.opaque = all == 255
	switch {
	case e.opaque:
		e.alphas = oddOnly // 127 and parity 1 is 255; parity 0 would show 254
	case any == 0:
		e.alphas = evenOnly
	default:
		e.alphas = anyParity
	}
	return same
}

// parities that a mode may take for this block.
func (e *encoder7) parities(m *mode7) uint8 {
	switch {
	case m.p == noParity:
		return evenOnly
	case m.p == ofSubset:
		return equalParity
	case m.alphaBits > 0:
		return e.alphas
	}
	return anyParity
}

// rank estimates all that the effort allows but mode 6, and keeps the most promising.
func (e *encoder7) rank() {
	e.estimator.fill(&e.pix, !e.opaque)
	c, most := &e.candidates, e.effort7.candidates
	c.n = 0
	for p := range uint8(64) {
		off, along := e.estimator.two(p)
		if !e.opaque {
			c.add(candidate{cost: off + along*0.05 + 50, mode: 7, partition: p}, most)
			continue
		}
		c.add(candidate{cost: off*1.05 + along*0.0104 + 21, mode: 1, partition: p}, most)
		c.add(candidate{cost: off*1.16 + along*0.036 + 5, mode: 3, partition: p}, most)
	}
	if e.opaque && e.three {
		for p := range uint8(64) {
			off, along := e.estimator.three(p)
			if p < 16 {
				c.add(candidate{cost: off*2 + along*0.025 + 50, mode: 0, partition: p}, most)
			}
			c.add(candidate{cost: off*2 + along*0.041 + 50, mode: 2, partition: p}, most)
		}
	}
	for r := range uint8(e.separate) {
		if r == 0 && e.opaque {
			continue
		}
		off, along, apart := e.estimator.apart(r)
		c.add(candidate{cost: off + along*0.07 + apart*0.07 + 10, mode: 5, rotation: r}, most)
		c.add(candidate{cost: off + along*0.07 + apart*0.02 + 20, mode: 4, rotation: r}, most)
		c.add(candidate{cost: off + along*0.02 + apart*0.07 + 20, mode: 4, rotation: r, selector: 1}, most)
	}
}

// tryCandidates fits them until their estimates are far above the best error.
func (e *encoder7) tryCandidates() {
	for _, try := range e.candidates.list[:e.candidates.n] {
		if try.cost*e.slack > float32(e.err) {
			return
		}
		if try.mode == 4 || try.mode == 5 {
			e.trySeparate(try.mode, try.rotation, try.selector)
		} else {
			e.trySubsets(try.mode, try.partition)
		}
	}
}

// trySubsets fits the subsets of a partition and keeps the block if it is better than the best so far.
func (e *encoder7) trySubsets(mode, partition uint8) {
	m := &modes7[mode&7]
	subsets := subsetsOf(int(m.subsets), partition)
	var g group
	var f [3]fitted
	err := int32(0)
	for s := range uint32(m.subsets) {
		g.gather(&e.pix, subsets, s, m.alphaBits > 0)
		g.fit(m, m.indexBits, e.parities(m), e.rounds, &f[s])
		if err += f[s].err; err >= e.err {
			return
		}
	}
	e.err = err
	e.best = block7{mode: mode, partition: partition}
	var n [4]int
	for i := range 16 {
		s := subsets >> (2 * i) & 3
		e.best.index[i] = f[s&3].index[n[s]&15]
		n[s]++
	}
	for s := range m.subsets {
		for i := range uint8(2) {
			e.best.ends[2*s+i] = f[s].stored[i]
			e.best.parity[2*s+i] = f[s].parity[i]
		}
	}
}
