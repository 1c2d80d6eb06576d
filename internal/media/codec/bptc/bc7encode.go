package bptc

import "github.com/kiln-pipeline/kiln/internal/media/codec/block"

// effort7 sets the work for a quality.
//
// Measured on three photographs of 1024x1024 with two workers, RGB in the mean: mode 6 alone takes 0.05 s and gives 40.9 dB;
// with the best two partitions by estimate in modes 1 and 3, 0.36 s and 43.8 dB; everything that Normal tries but restarts,
// 1.2 s and 44.2 dB. Fitting all 64 partitions of mode 1 took 4 s and gave 43.9 dB, so estimates are worthwhile.
//
// Fast takes a third of those 0.36 s and loses 0.3 dB. It fits one partition (0.1 dB), in two rounds instead of three
// (0.04), of the first 32 (0.03), and only if the error of mode 6 is large (0.1).
type effort7 struct {
	rounds     int     // of least squares for each line
	candidates int     // to fit, of those that are estimated
	slack      float32 // candidates with an estimate above the best error times this factor are not fitted
	good       int32   // squared error of a block in mode 6 up to which no other mode is tried
	partitions uint8   // number of partitions of two subsets to estimate: the first ones, which are used most
	three      bool    // also estimate partitions of three subsets
	rotations  bool    // also try separate indices for channels other than alpha
	restarts   int     // attempts, of the best ones, that are restarted
	again      int     // rounds of least squares for each line of a restart
	sweeps     int     // passes over the endpoints of the best block, moving each by the least step
}

var efforts7 = [...]effort7{
	block.Fast:   {rounds: 1, candidates: 1, slack: 2.5, good: 64, partitions: 32},
	block.Normal: {rounds: 2, candidates: 4, slack: 6, partitions: 64, sweeps: 1, three: true, rotations: true, restarts: 3, again: 1},
	block.Best: {rounds: 6, candidates: 48, slack: 20, partitions: 64, sweeps: 4, three: true, rotations: true,
		restarts: mostAttempts, again: 3},
	block.Draft: {rounds: 1}, // mode 6 alone
}

// encoder7 encodes blocks one after another; it has the state for one block.
type encoder7 struct {
	effort7
	pix        [16][4]int32
	whole      packed // the pixels for vector code, and without alpha
	colours    packed
	members    *[4][64][4]members
	opaque     bool
	alphas     uint8 // parities that fit the alpha of the block
	estimator  estimator
	estimates  estimates
	candidates candidates
	kept       [mostAttempts]attempt // the best ones, best first
	n          int                   // how many
	known      known
	batch      batch7
}

func newEncoder7(q block.Quality) *encoder7 {
	e := &encoder7{effort7: efforts7[min(q, block.Draft)], estimator: estimator{lanes: lanes}, members: allMembers()}
	e.batch.init()
	return e
}

// encode encodes a block.
func (e *encoder7) encode(pix *[64]byte, to *[16]byte) {
	var best block7
	if e.load(pix) {
		best = e.solid()
	} else {
		e.search()
		best = e.kept[0].block()
	}
	best.orient()
	out := best.pack()
	out.store(to)
}

// search finds the best attempt.
func (e *encoder7) search() {
	e.n = 0
	e.try(attempt{mode: 6})
	if !e.opaque && e.least() > e.good && e.effort7.candidates > 0 {
		e.try(attempt{mode: 5})
		e.try(attempt{mode: 4})
		e.try(attempt{mode: 4, selector: 1})
	}
	if e.least() > e.good && e.effort7.candidates > 0 {
		e.rank()
		e.tryCandidates()
	}
	e.restart()
	for range e.sweeps {
		if !e.sweep(&e.kept[0]) {
			break
		}
	}
}

// load stores the pixels, and reports whether they are all the same.
func (e *encoder7) load(pix *[64]byte) (same bool) {
	some, all := uint8(0), uint8(255)
	same = true
	for i := range e.pix {
		p := pix[4*i : 4*i+4 : 4*i+4]
		e.pix[i] = [4]int32{int32(p[0]), int32(p[1]), int32(p[2]), int32(p[3])}
		some |= p[3]
		all &= p[3]
		same = same && e.pix[i] == e.pix[0]
	}
	if e.estimator.lanes && !same {
		e.whole.fill(&e.pix, 1)
		e.colours.fill(&e.pix, 0)
	}
	e.opaque = all == 255
	switch {
	case e.opaque:
		e.alphas = oddOnly // 127 with parity 1 is 255; parity 0 would give 254
	case some == 0:
		e.alphas = evenOnly
	default:
		e.alphas = anyParity
	}
	return same
}

// parities returns the parities that a mode may use for this block.
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

// rank estimates everything that the effort allows except mode 6, and keeps the most promising candidates.
//
// The factors are a regression of errors by estimates over 10,000 blocks of five photographs. The error off the line
// remains; the error along it is reduced by the bits of the indices; the rounding of endpoints adds a constant.
func (e *encoder7) rank() {
	e.estimator.fill(&e.pix, !e.opaque)
	c, most := &e.candidates, e.effort7.candidates
	c.reset(e.slack * float32(e.least()))
	e.estimator.twos(e.partitions, &e.estimates)
	for p := range e.partitions {
		off, along := e.estimates.off[p&63], e.estimates.along[p&63]
		if e.opaque {
			c.add(candidate{cost: expect(off, 1.05, along, 0.0104, 21), mode: 1, partition: p}, most)
			c.add(candidate{cost: expect(off, 1.16, along, 0.036, 5), mode: 3, partition: p}, most)
		} else {
			c.add(candidate{cost: expect(off, 1, along, 0.02, 50), mode: 7, partition: p}, most)
		}
	}
	if e.opaque && e.three && c.may(50) {
		e.estimator.threes(&e.estimates)
		for p := range uint8(64) {
			off, along := e.estimates.off[p], e.estimates.along[p]
			if p < 16 {
				c.add(candidate{cost: expect(off, 2, along, 0.025, 50), mode: 0, partition: p}, most)
			}
			c.add(candidate{cost: expect(off, 2, along, 0.041, 50), mode: 2, partition: p}, most)
		}
	}
	if e.rotations && c.may(10) {
		for r := uint8(1); r < 4; r++ {
			off, along, apart := e.estimator.apart(r)
			c.add(candidate{cost: expect(off, 1, along+apart, 0.07, 10), mode: 5, rotation: r}, most)
			c.add(candidate{cost: expect(off+float32(along*0.07), 1, apart, 0.02, 20), mode: 4, rotation: r}, most)
			c.add(candidate{cost: expect(off+float32(along*0.02), 1, apart, 0.07, 20), mode: 4, rotation: r, selector: 1}, most)
		}
	}
}

func expect(off, a, along, b, c float32) float32 { return float32(off*a) + float32(along*b) + c }

// tryCandidates fits the candidates until their estimates are far above the best error.
func (e *encoder7) tryCandidates() {
	for _, c := range e.candidates.list[:e.candidates.n] {
		if c.cost > e.slack*float32(e.least()) || e.least() == 0 {
			return
		}
		e.try(attempt{mode: c.mode, partition: c.partition, rotation: c.rotation, selector: c.selector})
	}
}

// lanesOf returns the constants of a mode for vector code, or nil if vector code is not available.
func (e *encoder7) lanesOf(mode uint8) *modeLanes {
	if !e.estimator.lanes {
		return nil
	}
	return &allModeLanes()[mode&7]
}

// set stores a line and indices for subset s.
func (b *block7) set(s, subsets uint32, f *fitted) {
	for i := range f.stored {
		b.ends[2*s+uint32(i)], b.parity[2*s+uint32(i)] = f.stored[i], f.parity[i]
	}
	n := 0
	for i := range b.index {
		if subsets>>(2*i)&3 == s {
			b.index[i] = f.index[n&15]
			n++
		}
	}
}
