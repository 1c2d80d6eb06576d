package bptc

import (
	"encoding/binary"
	"math"

	"github.com/kiln-pipeline/kiln/internal/media/codec/block"
)

// effort6 sets the work for a quality.
//
// On photographs, a restart gains 0.05 to 0.12 dB, and sweeps 0.03 to 0.1 dB. Seven partitions instead of three gain 0.01 to 0.03 dB for
// a fifth more time. Finding the best endpoints again for the indices gained nothing beside sweeps.
type effort6 struct {
	rounds     int // of least squares for each line
	candidates int // partitions to fit, of those that are estimated
	restarts   int // best attempts that are fitted again from lines of other lengths
	sweeps     int // passes over the endpoints of the best attempt, moving each by the least step
}

var efforts6 = [...]effort6{
	block.Fast:   {rounds: 1, candidates: 3},
	block.Normal: {rounds: 2, candidates: 3, restarts: 1, sweeps: 3},
	block.Best:   {rounds: 4, candidates: 31, restarts: 3, sweeps: 12},
}

// encoder6 encodes blocks one after another. It uses the numbers that decoders interpolate: the bits of half floats times
// 64/31, or 32/31 if signed. Distances of such numbers are about those of logarithms, and so close to perceived differences
// of light.
type encoder6 struct {
	effort6
	signed     bool
	pix        [16][4]float32 // minus the least of each channel
	least      [3]int32
	span       [3]int32
	estimator  estimator
	estimates  estimates
	candidates candidates
	batch      batch6
	holds      [4]uint8    // for each two groups of the batch, the place of their subsets among pairs6, plus 1
	kept       [4]attempt6 // the best ones, best first
	n          int
}

// attempt6 is a block with its error.
type attempt6 struct {
	mode, partition uint8
	at              [4][3]int32 // endpoints in the bits of the mode, not as offsets
	index           [16]uint8
	errs            [2]float32 // of each subset
	err             float32
}

func newEncoder6(q block.Quality, signed bool) *encoder6 {
	e := &encoder6{effort6: efforts6[min(q, block.Best)], signed: signed, estimator: estimator{lanes: lanes}}
	e.batch.init(signed)
	return e
}

// scaledBits keeps sums of products of 16 pixels within 24 bits, which floats represent exactly.
const scaledBits = 10

func (e *encoder6) encode(pix *[96]byte, to *[16]byte) {
	b := block6{mode: solid6}
	if e.load(pix) {
		b.ends[0] = e.least
	} else {
		e.search()
		b = e.kept[0].block()
	}
	out := b.pack()
	out.store(to)
}

// solid6 is the mode that stores an endpoint exactly.
const solid6 = 13

// load stores the pixels, and reports whether they are all the same.
func (e *encoder6) load(pix *[96]byte) (same bool) {
	var all [16][3]int32
	least, most := [3]int32{math.MaxInt32, math.MaxInt32, math.MaxInt32}, [3]int32{math.MinInt32, math.MinInt32, math.MinInt32}
	for i := range all {
		for c := range 3 {
			v := e.spread(binary.LittleEndian.Uint16(pix[6*i+2*c:]))
			all[i][c] = v
			least[c], most[c] = min(least[c], v), max(most[c], v)
		}
	}
	e.least = least
	for c := range 3 {
		span := most[c] - least[c]
		e.span[c] = span
		low := float32(max(-span/2, e.limit(math.MinInt16)-least[c]))
		high := float32(min(span+span/2, e.limit(math.MaxUint16)-least[c]))
		for i := range 8 {
			e.batch.low[c][i], e.batch.high[c][i], e.batch.least[c][i] = low, high, float32(least[c])
		}
	}
	for i := range all {
		e.pix[i] = [4]float32{float32(all[i][0] - least[0]), float32(all[i][1] - least[1]), float32(all[i][2] - least[2])}
	}
	return e.span == [3]int32{}
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

// limit clamps a value to the range that can be interpolated.
func (e *encoder6) limit(v int32) int32 {
	if e.signed {
		return min(max(v, -0x7fff), 0x7fff)
	}
	return min(max(v, 0), 0xffff)
}

// search finds the best attempt.
func (e *encoder6) search() {
	e.n = 0
	e.rank()
	e.hold(0, whole6)
	slots, list := 1, e.candidates.list[:e.candidates.n]
	for i := range list {
		e.hold(slots, list[i].partition)
		if slots++; slots == 4 || i == len(list)-1 {
			e.settle(slots, e.rounds)
			slots = 0
		}
	}
	if slots > 0 {
		e.settle(slots, e.rounds)
	}
	e.restart()
	t := e.kept[0]
	for range e.sweeps {
		if !e.sweep(&t) {
			break
		}
	}
	e.kept[0] = t
}

// rank estimates the partitions, and keeps the most promising ones.
func (e *encoder6) rank() {
	shift := 0
	for max(e.span[0], e.span[1], e.span[2])>>shift >= 1<<scaledBits {
		shift++
	}
	var scaled [16][4]int32
	for i := range scaled {
		p := &e.pix[i]
		scaled[i] = [4]int32{int32(p[0]) >> (shift & 31), int32(p[1]) >> (shift & 31), int32(p[2]) >> (shift & 31)}
	}
	e.estimator.fill(&scaled, false)
	e.estimator.twos(32, &e.estimates)
	c := &e.candidates
	c.reset(math.MaxFloat32)
	for p := range uint8(32) {
		cost := expect(e.estimates.off[p], 1, e.estimates.along[p], 0.015, 0)
		c.add(candidate{cost: cost, partition: p}, e.effort6.candidates)
	}
}

// hold makes two groups of the batch the subsets of a partition, or both the whole block.
func (e *encoder6) hold(slot int, partition uint8) {
	if e.holds[slot&3] != partition+1 {
		e.holds[slot&3] = partition + 1
		e.batch.put(slot, &pairs6()[partition])
	}
	pair := &pairs6()[partition]
	for i := range 2 {
		e.batch.by[(2*slot+i)&7] = 0.5
		p := &e.pix[pair.anchor[i]&15]
		for c := range 3 {
			e.batch.anchor[c][(2*slot+i)&7] = p[c]
		}
	}
}

// settle fits the groups of the first slots, and keeps the best blocks.
func (e *encoder6) settle(slots, rounds int) {
	e.batch.settle(&e.pix, 2*slots, rounds)
	for lane := 0; lane < 2*slots; lane += e.width(lane) {
		e.keep(lane)
	}
}

// width returns how many groups the attempt that begins with a group has.
func (e *encoder6) width(lane int) int {
	if e.holds[lane>>1&3]-1 == whole6 {
		return 1
	}
	return 2
}

// error returns the error of the lines of the attempt that begins with a group.
func (e *encoder6) error(lane int) float32 {
	if e.width(lane) == 1 {
		return e.batch.err[lane&7]
	}
	return e.batch.err[lane&7] + e.batch.err[(lane+1)&7]
}

// keep keeps the attempt that begins with a group, if it is among the best.
func (e *encoder6) keep(lane int) {
	err := e.error(lane)
	if e.n < max(1, e.restarts) {
		e.n++
	} else if err >= e.kept[(e.n-1)&3].err {
		return
	}
	i := e.n - 1
	for ; i > 0 && e.kept[(i-1)&3].err > err; i-- {
		e.kept[i&3] = e.kept[(i-1)&3]
	}
	t := &e.kept[i&3]
	t.mode, t.partition = uint8(e.batch.info[lane&7]), (e.holds[lane>>1&3]-1)&31
	for end := range 2 * e.width(lane) {
		for c := range 3 {
			t.at[end&3][c] = e.batch.stored[end&1][c][(lane+end>>1)&7]
		}
	}
	e.result(t, lane)
}

// restart fits the best attempts again from lines of other lengths.
func (e *encoder6) restart() {
	var list [4]attempt6
	n := copy(list[:], e.kept[:min(e.n, e.restarts)])
	for _, t := range list[:n] {
		partition := t.partition
		one := modes6[t.mode].subsets == 1
		if one {
			partition = whole6
		}
		for slot := range 4 {
			e.hold(slot, partition)
			for i := range 2 {
				by := lengths6[slot]
				if one {
					by = lengths6[2*slot+i]
				}
				e.batch.by[(2*slot+i)&7] = by
			}
		}
		e.settle(4, e.rounds)
	}
}

// lengths6 are half of those of the lines that a restart begins with, as those of BC7.
var lengths6 = [8]float32{0.4, 0.45, 0.575, 0.7, 0.35, 0.65, 0.85, 1.2}

// place stores the lines of an attempt in a batch.
func (e *encoder6) place(t *attempt6, lane int) {
	m := &modes6[t.mode]
	for i := range 2 * int(m.subsets) {
		for c := range 3 {
			e.batch.ends[i&1][c][(lane+i>>1)&7] = e.shown(t.at[i&3][c], c, m.bits)
		}
	}
}

// shown returns a channel of an endpoint of a mode as the batch has it.
func (e *encoder6) shown(v int32, c int, bits uint8) float32 {
	return float32(widen(v, bits, e.signed) - e.least[c])
}

// result reads what judge found for an attempt.
func (e *encoder6) result(t *attempt6, lane int) {
	t.err = 0
	of, subsets := uint32(0), int(modes6[t.mode].subsets)
	if subsets == 2 {
		of = subsetsOf(2, t.partition)
	}
	for s := range subsets {
		t.errs[s&1] = e.batch.err[(lane+s)&7]
		t.err += t.errs[s&1]
	}
	for i := range t.index {
		t.index[i] = uint8(math.Float32bits(e.batch.index[i][(lane+int(of>>(2*i)&1))&7])) & 15
	}
}

// holdAll makes all groups of the batch those of an attempt.
func (e *encoder6) holdAll(t *attempt6) {
	partition := t.partition
	if modes6[t.mode].subsets == 1 {
		partition = whole6
	}
	for slot := range 4 {
		e.hold(slot, partition)
	}
}

// move6 is a step of a channel of an endpoint that makes the error of a subset less by gain.
type move6 struct {
	end  int
	step int32
	gain float32
}

// sweep moves each channel of each endpoint of an attempt by one step, in both directions, and keeps those moves that together make
// the error less. It reports whether any do.
func (e *encoder6) sweep(t *attempt6) bool {
	var moves [2][3]move6
	if !e.moves(t, &moves) {
		return false
	}
	m := &modes6[t.mode]
	subsets := int(m.subsets)
	all, single := *t, *t
	for s := range subsets {
		best := &moves[s][0]
		channel := 0
		for c := range 3 {
			if v := &moves[s][c]; v.gain > 0 {
				if to := all.at[v.end&3][c] + v.step; all.movable(m, v.end, c, to) {
					all.at[v.end&3][c] = to
				}
				if v.gain > best.gain {
					best, channel = v, c
				}
			}
		}
		if best.gain > 0 {
			if to := single.at[best.end&3][channel] + best.step; single.movable(m, best.end, channel, to) {
				single.at[best.end&3][channel] = to
			}
		}
	}
	e.place(&all, 0)
	e.place(&single, 2)
	e.batch.judge(&e.pix, 4)
	e.result(&all, 0)
	e.result(&single, 2)
	if single.err < all.err {
		all = single
	}
	if all.err >= t.err {
		return false
	}
	*t = all
	return true
}

// moves finds the best move of each channel of each subset.
func (e *encoder6) moves(t *attempt6, best *[2][3]move6) (any bool) {
	m := &modes6[t.mode]
	subsets := int(m.subsets)
	e.holdAll(t)
	var start [4][3]float32
	for i := range 2 * subsets {
		for c := range 3 {
			v := e.shown(t.at[i&3][c], c, m.bits)
			start[i&3][c] = v
			for lane := i >> 1; lane < 8; lane += subsets {
				e.batch.ends[i&1][c][lane] = v
			}
		}
	}
	for first := 0; first < 12; first += 8 / subsets {
		var tried [8]struct {
			c int
			move6
		}
		n := min(8, (12-first)*subsets)
		for lane := range n {
			move := first + lane/subsets
			end, c, step := 2*(lane&(subsets-1))+move/6, move%6/2, int32(move&1)*2-1
			if v := t.at[end&3][c] + step; e.within(v, m.bits) && t.movable(m, end, c, v) {
				tried[lane].c, tried[lane].move6 = c, move6{end: end, step: step}
				e.batch.ends[end&1][c][lane] = e.shown(v, c, m.bits)
			}
		}
		e.batch.judge(&e.pix, n)
		for lane := range n {
			v := &tried[lane]
			if v.step == 0 {
				continue
			}
			s := lane & (subsets - 1)
			e.batch.ends[v.end&1][v.c][lane] = start[v.end&3][v.c]
			v.gain = t.errs[s] - e.batch.err[lane]
			if v.gain > best[s][v.c].gain {
				best[s][v.c] = v.move6
				any = true
			}
		}
	}
	return any
}

// movable reports whether an attempt that can be stored still can be with another value of a channel of an endpoint.
func (t *attempt6) movable(m *mode6, end, c int, v int32) bool {
	if !m.transformed {
		return true
	}
	most := int32(1) << ((m.deltaBits[c] - 1) & 31)
	if end > 0 {
		v -= t.at[0][c]
		return v < most && v >= -most
	}
	for i := 1; i < 2*int(m.subsets); i++ {
		if d := t.at[i&3][c] - v; d >= most || d < -most {
			return false
		}
	}
	return true
}

// within reports whether a mode has an endpoint.
func (e *encoder6) within(v int32, bits uint8) bool {
	if e.signed {
		return v > -1<<(bits-1) && v < 1<<(bits-1)
	}
	return v >= 0 && v < 1<<bits
}

// block returns the block of an attempt.
func (t *attempt6) block() block6 {
	m := &modes6[t.mode]
	b := block6{mode: t.mode, partition: t.partition, ends: t.at, index: t.index}
	if m.transformed {
		for i := 1; i < 2*int(m.subsets); i++ {
			for c := range 3 {
				b.ends[i&3][c] -= t.at[0][c]
			}
		}
	}
	return b
}
