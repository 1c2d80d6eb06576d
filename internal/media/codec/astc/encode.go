package astc

import (
	"encoding/binary"
	"math"

	"github.com/kiln-pipeline/kiln/internal/media/codec/block"
)

// effort sets the work for a quality.
type effort struct {
	patterns int        // patterns of two partitions to find lines for
	kept     int        // of these, how many become layouts
	tries    int        // candidates to fit
	rounds   int        // of fitting ends to weights and weights to ends
	hopeless float64    // a trial is abandoned if its error exceeds the least error times this
	enough   [4]float32 // by number of partitions: squared error per texel below which that many are not tried
	good     float64    // squared error per texel at or below which no more candidates are tried
	fair     float64    // the same for the second half of the candidates
	hope     float32    // see hopeFor; 1 if all candidates are tried
	poor     float64    // squared error, by the cube of the texels, above which poorEffort follows; 0 if it never does
}

// enoughAt returns the squared error per texel at or below which candidate i is not tried.
func (f *effort) enoughAt(i int) float64 {
	if 2*i < f.tries {
		return f.good
	}
	return f.fair
}

// hopeFor returns the part of a candidate's expected error, beyond that of its lines, that a trial may save. It is larger for
// blocks whose error is harder to predict: small ones, those of drawings, where texels repeat the ones before, and grey ones.
func (f *effort) hopeFor(texels, repeats int, grey bool) float32 {
	hope := f.hope + (1.6+float32(3*repeats))/float32(texels)
	if grey {
		hope += 0.3
	}
	return max(f.hope, min(hope, 0.85))
}

var efforts = [...]effort{
	block.Fast:   {3, 1, 3, 1, 1.15, [4]float32{2: 1, 3: 200}, 0.1, 0.1, 0.2, 1.6},
	block.Normal: {12, 2, 14, 1, 1.06, [4]float32{2: 1, 3: 30}, 0.12, 12, 0.2, 0.4},
	block.Best:   {128, 7, 40, 4, 1.25, [4]float32{2: 0.5, 3: 0.5}, 0.1, 0.1, 1, 0},
}

// poorEffort is for blocks with much error. In drawings, a few blocks with hard edges make up most of the error of the picture. In
// photographs there are hardly any of these.
var poorEffort = effort{128, 7, 40, 2, 1.06, [4]float32{2: 0.5, 3: 0.5}, 0.1, 0.1, 1, 0}

// encoder encodes texels to blocks. Each worker has its own.
type encoder struct {
	*plan
	effort effort
	levels *[len(ranges)]levels

	texel  [maxTexels][4]int32
	value  [maxTexels][4]float32 // texel as floats
	all    sums
	use    [4]bool // the channels that lines are found for
	ways   []way   // for a single partition
	chroma float32 // squared distance of all colours from grey

	layouts    [24]layout
	used       int           // of layouts, the number in use
	single     int           // of these, the number without partitions; they come first
	similar    [128]int      // indices of patterns
	parts      [128 * 3]sums // padded by 8 after the ones in use
	directions [128 * 3]direction
	moments    [maxTexels]sums // of each texel
	wrong      [1024]uint8     // number of wrong samples, by pattern
	keys       [41]key         // of the best candidates, in order
	tried      int             // the number in use
	most       int             // keys in the list at most
	found      [maxShapes * 16]key

	best trial
	hope float32 // see effort.hopeFor

	lanes  bool
	soa    soa
	noises [2][4][19][2]noiseTable // by planes, partitions, values, and whether partitions have separate modes
}

// key is a candidate: a layout with a mode and a way. Its upper half has the bits of the expected error, a float32 that is not
// negative, so that keys are in the order of errors. The lower half has the indices of the layout, the shape (from bit 8), the
// range of weights (from bit 4) and the way.
type key uint64

const layoutAt, shapeAt, weightsAt = 15, 8, 4 // bits of a key

func (k key) err() float32 { return math.Float32frombits(uint32(k >> 32)) }

// candidate is a key's layout, mode and way.
type candidate struct {
	layout *layout
	shape  *shape
	choice *choice
	way    *way
	colors uint8 // range
}

func (e *encoder) candidate(k key) candidate {
	l, s := e.layoutOf(k), &e.shapes[k>>shapeAt&127]
	m, w := &s.modes[l.planes-1][k>>weightsAt&15], &l.ways[k&15]
	return candidate{l, s, m, w, colorRanges()[w.values][l.size()-m.size-w.extra]}
}

func (e *encoder) layoutOf(k key) *layout { return &e.layouts[k>>layoutAt&31] }

// trial is a candidate with its values.
type trial struct {
	candidate
	weights [2]plane
	modes   [4]int // of endpoints, by partition
	ends    [4]ends
	err     float64
}

func newEncoder(f Footprint, q block.Quality) *encoder {
	e := &encoder{plan: plans[f.index()](), effort: efforts[min(int(q), len(efforts)-1)], levels: levelsOf(), lanes: lanes}
	for i := range e.layouts {
		l := &e.layouts[i]
		for j := e.texels; j < maxTexels; j++ {
			l.part[j] = none
		}
	}
	return e
}

// block encodes texels. It ranks each layout with each mode by an expected error: the error of the layout's lines, of
// spreading weights over several texels, and of the steps of weights and colours. It then encodes the best few candidates.
func (e *encoder) block(out *[BlockSize]byte, texels *[4 * maxTexels]byte) {
	if e.load(texels) {
		*out = voidExtent([4]byte(texels[:4]))
		return
	}
	e.best.err = never
	e.layOutSingle()
	e.search()
	if poor := e.effort.poor; poor > 0 && e.best.err > poor*float64(e.texels*e.texels*e.texels) {
		e.searchPoor()
	}
	*out = e.best.pack()
}

// search ranks the candidates, and tries the best few. If there are many, the best one of the first layout is tried before all
// others are ranked, because its error limits what is worth ranking.
func (e *encoder) search() {
	e.tried, e.most = 0, e.effort.tries
	e.rank(0)
	var first key
	if e.hope < 1 && e.effort.tries > 3 {
		first = e.keys[0]
		e.try(first)
		if e.best.err < 1e-3 {
			return
		}
	}
	for i := 1; i < e.single; i++ {
		e.rank(i)
	}
	e.rankPartitions(2)
	e.rankPartitions(3)
	e.tryAll(first)
}

// searchPoor searches once more for a block with much error, among partitions alone: they win nearly always then.
func (e *encoder) searchPoor() {
	usual := e.effort
	e.effort, e.hope = poorEffort, 1
	e.tried, e.most = 0, e.effort.tries
	e.rankPartitions(2)
	e.rankPartitions(3)
	e.tryAll(0)
	e.effort = usual
}

// tryAll tries the candidates of the list, except for first.
func (e *encoder) tryAll(first key) {
	for i, k := range e.keys[:e.tried] {
		if i > 0 && e.best.err <= e.effort.enoughAt(i)*float64(e.texels) {
			return
		}
		if k != first && k.err() < e.hopeful(e.layoutOf(k)) {
			e.try(k)
		}
	}
}

// least returns the least error known or expected.
func (e *encoder) least() float32 {
	if e.tried == 0 {
		return float32(e.best.err)
	}
	return min(e.keys[0].err(), float32(e.best.err))
}

// hopeful returns the expected error that a candidate of a layout must be below to be tried.
func (e *encoder) hopeful(l *layout) float32 {
	if e.hope >= 1 || e.best.err >= never {
		return never
	}
	return (float32(e.best.err) - float32(e.hope*l.residual)) / (1 - e.hope)
}

// load stores the texels, and reports whether they are all the same.
func (e *encoder) load(texels *[4 * maxTexels]byte) bool {
	repeats := -1
	first := binary.LittleEndian.Uint32(texels[:4])
	last, differ, colors, all := first, uint32(0), uint32(0), uint32(math.MaxUint32)
	for i := range e.texels {
		px := binary.LittleEndian.Uint32(texels[4*i:])
		if px == last {
			repeats++
		}
		differ |= px ^ first
		colors |= (px ^ px>>8) & 0xFFFF
		all &= px
		last = px
	}
	if differ == 0 {
		return true
	}
	grey, opaque := colors == 0, all>>24 == 255
	e.hope = e.effort.hopeFor(e.texels, repeats, grey)
	e.use = [4]bool{true, true, true, !opaque}
	e.ways = waysFor(opaque, grey)
	if e.lanes {
		e.loadLanes(texels)
	} else {
		e.loadTexels(texels)
	}
	e.chroma = e.all.chroma()
	return false
}

func (e *encoder) loadTexels(texels *[4 * maxTexels]byte) {
	e.all = sums{}
	for i := range e.texels {
		px := (*[4]byte)(texels[4*i:])
		for c, v := range px {
			e.texel[i][c], e.value[i][c] = int32(v), float32(v)
		}
		e.moments[i] = sumsOf(int32(px[0]), int32(px[1]), int32(px[2]), int32(px[3]))
		e.all.add(&e.moments[i])
	}
}

// add returns the next unused layout.
func (e *encoder) add() *layout {
	e.used++
	return &e.layouts[e.used-1]
}

// layOutSingle makes the layouts without partitions: one with the same weights for all channels, and those with separate
// weights for one of them.
func (e *encoder) layOutSingle() {
	e.used = 0
	single := e.add()
	single.partitions, single.planes = 1, 1
	clear(single.part[:e.texels])
	single.sums[0] = e.all
	e.directAll()
	e.layOut(single, e.directions[:1])
	for c := range 4 {
		if !e.use[c] || e.chroma == 0 && c < 3 {
			continue
		}
		l := e.add()
		l.partitions, l.planes, l.second = 1, 2, c
		l.part, l.sums[0] = single.part, e.all
		e.layOut(l, e.directions[1+c:][:1])
	}
	e.single = e.used
}

// rankPartitions ranks layouts of two or three partitions, unless the least error is small.
func (e *encoder) rankPartitions(count int) {
	if e.least() <= e.effort.enough[count]*float32(e.texels) {
		return
	}
	var room [8]int
	for _, at := range e.split(room[:0:e.effort.kept], count) {
		l := e.add()
		l.partitions, l.planes, l.seed = count, 1, e.patterns[count].seeds[e.similar[at]]
		e.patterns[count].parts(l.part[:e.texels], e.similar[at], count, e.Width)
		copy(l.sums[:], e.parts[at*count:][:count])
		e.layOut(l, e.directions[at*count:][:count])
		e.rank(e.used - 1)
	}
}

// rank adds the modes that layout i can have to the candidates. Their expected error is the sum of the layout's residual,
// the loss of spreading weights, and the expected error of the steps of weights and of colours.
func (e *encoder) rank(i int) {
	l := &e.layouts[i]
	limit := e.hopeful(l)
	if l.residual >= e.limit(limit) {
		return
	}
	e.waysOf(l)
	var rough [13][13]float32
	e.roughness(&rough, l)
	var steps [16]float32
	e.steps(&steps, l)
	var spreads [maxShapes]float32
	for i, size := range e.sizes {
		spreads[i] = l.residual + rough[size[0]][size[1]]
	}
	if e.limit(limit) < never {
		e.rankWays(i, &spreads, &steps, limit)
		return
	}
	before, tried := e.keys, e.tried
	for limit := l.residual * 1.1; ; { // a guess, which rises until there are enough candidates below it
		e.rankWays(i, &spreads, &steps, limit)
		if e.tried == e.most || limit >= never {
			return
		}
		e.keys, e.tried = before, tried
		if limit = limit*4 + 16; limit > 1e7 {
			limit = never
		}
	}
}

// rankWays adds the candidates of layout i whose expected errors are below limit. It has the errors of the grids' spreading,
// and of the steps of weights by their range.
func (e *encoder) rankWays(i int, spreads *[maxShapes]float32, steps *[16]float32, limit float32) {
	l := &e.layouts[i]
	values := e.values(l)
	for w := range l.ways {
		way := &l.ways[w]
		noise, added, id := e.noiseOf(l, way), e.added(l, way), key(i<<layoutAt|w)
		limit := e.limit(limit)
		if l.residual+added >= limit { // the sums of rankWay are not less
			continue
		}
		found := 0
		if e.lanes {
			found = rankLanes(&spreads[0], &e.shares[0], &steps[0], &noise[0][0], len(e.shapes), values, added, limit, id, &e.found[0])
		} else {
			found = e.rankWay(spreads, steps, noise, values, added, limit, id)
		}
		for _, k := range e.found[:found] {
			if e.tried < e.most || k < e.keys[e.tried-1] {
				e.insert(k)
			}
		}
	}
}

// rankWay fills e.found with the keys of a way's candidates, and returns their number. id is the lower half of the first key.
func (e *encoder) rankWay(spreads *[maxShapes]float32, steps *[16]float32, noise noiseTable, values, added, limit float32, id key) int {
	found := 0
	for i, spread := range spreads[:len(e.shapes)] {
		if spread >= limit {
			continue
		}
		for weights, noise := range noise[i] {
			err := spread + float32(steps[weights]*e.shares[i]) + float32(values*noise) + added
			if err < limit {
				e.found[found] = key(math.Float32bits(err))<<32 | key(i<<shapeAt|weights<<weightsAt) | id
				found++
			}
		}
	}
	return found
}

// added returns the error that a way adds to a layout for any values.
func (e *encoder) added(l *layout, w *way) float32 {
	switch {
	case w.scaled:
		return l.scaled
	case w.grey:
		return max(e.chroma-l.residual, 0)
	}
	return w.added
}

// values returns the weight of an endpoint value's squared error in the error of a block. In theory, the weight per texel is
// the squared shares of both ends, 2/3 on average. In practice, the other end and the weights compensate: 0.25 to 0.35 gave
// the best blocks.
func (e *encoder) values(l *layout) float32 {
	count := 0
	for _, used := range e.use {
		if used {
			count += e.texels
		}
	}
	if l.near {
		return float32(count) * (0.3 / 4) // offsets halve the steps
	}
	return float32(count) * 0.3
}

// steps fills out with the squared error of moving the texels to the nearest values on their lines, for each range of
// weights. At edges this error is far below a twelfth of a step's square; blocks of 8x8 in sprites gained 2 dB when it
// replaced that estimate.
func (e *encoder) steps(out *[16]float32, l *layout) {
	squares := stepSquares()
	for plane := range l.planes {
		var sums [16]float32
		if e.lanes {
			stepLanes(&l.ideal[plane][0], e.texels, &squares[0][0], &sums[0])
			for r := range sums {
				out[r] += float32(sums[r] * l.power[plane])
			}
			continue
		}
		for _, v := range l.ideal[plane][:e.texels] {
			for r, square := range &squares[int(128*v+0.5)&255] { // 128*v is exact, so this may be fused
				sums[r] += square
			}
		}
		for r := range sums {
			out[r] += float32(sums[r] * l.power[plane])
		}
	}
}

// limit returns the expected error that a new candidate must be below; hopeful is that of its layout.
func (e *encoder) limit(hopeful float32) float32 {
	if e.tried == e.most {
		return min(hopeful, e.keys[e.tried-1].err())
	}
	return hopeful
}

// insert adds a candidate in order, and removes the last one if the list is full.
func (e *encoder) insert(k key) {
	if e.tried < e.most {
		e.tried++
	}
	i := e.tried - 1
	for ; i > 0 && e.keys[i-1] > k; i-- {
		e.keys[i] = e.keys[i-1]
	}
	e.keys[i] = k
}

// try encodes a candidate, and keeps it if it is better than the best so far.
func (e *encoder) try(k key) {
	t := trial{candidate: e.candidate(k)}
	l, s := t.layout, t.shape
	for plane := range l.planes {
		var g [maxWeights]float32
		s.relax(&g, &l.ideal[plane], e.lanes)
		s.quantize(&t.weights[plane], &g, t.choice.weights, e.lanes)
	}
	for round := 0; ; round++ {
		var spread [2][maxTexels]int16
		for plane := range l.planes {
			s.infill(&spread[plane], &t.weights[plane], e.lanes)
		}
		last := round == e.effort.rounds
		if !e.fit(&t, &spread, last) {
			return
		}
		if t.err < e.best.err {
			e.best = t
		} else if t.err > e.effort.hopeless*e.best.err {
			return
		}
		if last || !e.settle(&t, &spread) {
			return
		}
	}
}

// weighted has sums over the texels of a partition for given weights.
type weighted struct {
	wx    [4]int32 // each channel times the weight
	w, ww int32
	_     [2]int32 // pads to 32 bytes, the layout in lanes_amd64.s
}

// weigh computes the sums of the texels of each partition for a plane's weights.
func (e *encoder) weigh(out *[4]weighted, l *layout, spread *[maxTexels]int16) {
	if e.lanes {
		for p := range l.partitions {
			weighLanes(&spread[0], &e.soa.words[0][0], &l.part[0], p, (e.texels+15)/16, &out[p].wx[0])
		}
		return
	}
	for i := range e.texels {
		s, x, v := &out[l.part[i]&3], &e.texel[i], int32(spread[i])
		s.w += v
		s.ww += v * v
		s.wx[0] += v * x[0]
		s.wx[1] += v * x[1]
		s.wx[2] += v * x[2]
		s.wx[3] += v * x[3]
	}
}

// fit finds the ends that suit a trial's weights; spread has the weight of each texel. It returns false if no ends can make
// the trial worth continuing. In the last round it does so if no ends can make it the best.
func (e *encoder) fit(t *trial, spread *[2][maxTexels]int16, last bool) bool {
	l := t.layout
	var sums [2][4]weighted
	for plane := range l.planes {
		e.weigh(&sums[plane], l, &spread[plane])
	}
	enough := e.best.err
	if !last {
		enough *= e.effort.hopeless
	}
	var q [4][4]cost
	floor := 0.0
	for p := range l.partitions {
		var forms [2]form
		for plane := range l.planes {
			forms[plane].set(l.sums[p].n, &sums[plane][p])
		}
		for c := range 4 {
			if !e.use[c] {
				continue
			}
			plane := 0
			if l.planes == 2 && c == l.second {
				plane = 1
			}
			floor += q[p][c].set(&l.sums[p], c, &sums[plane][p], &forms[plane])
			if floor > enough+1e-2 { // allows for the rounding of floor
				return false
			}
		}
	}
	e.fitWay(t, &q)
	return true
}

// fitWay finds the ends of all partitions, with one mode for all of them or the best mode for each.
func (e *encoder) fitWay(t *trial, q *[4][4]cost) {
	l := t.layout
	if t.way.extra > 0 {
		t.err = 0
		for p := range l.partitions {
			t.ends[p].err = never
			for _, mode := range t.way.modes[p] {
				if f := fitMode(mode, &q[p], &e.levels[t.colors], t.ends[p].err); f.err < t.ends[p].err {
					t.ends[p], t.modes[p] = f, mode
				}
			}
			t.err += t.ends[p].err
		}
		return
	}
	t.err = never
	for _, mode := range t.way.modes[0] {
		var f [4]ends
		sum := 0.0
		for p := range l.partitions {
			f[p] = fitMode(mode, &q[p], &e.levels[t.colors], t.err-sum)
			if sum += f[p].err; sum >= t.err {
				break
			}
		}
		if sum < t.err {
			t.err, t.ends = sum, f
			for p := range l.partitions {
				t.modes[p] = mode
			}
		}
	}
}

// fitMode finds the ends of a partition for an endpoint mode. An error at or above limit only means that they are no better.
func fitMode(mode int, q *[4]cost, l *levels, limit float64) ends {
	switch mode {
	case lumDirect:
		return fitGrey(q, 3, l)
	case lumAlphaDirect:
		return fitGrey(q, 4, l)
	case rgbScale:
		return fitScale(q, 3, l)
	case rgbScaleAlpha:
		return fitScale(q, 4, l)
	}
	channels := 3
	if mode == rgbaDirect || mode == rgbaOffset {
		channels = 4
	}
	if mode == rgbOffset || mode == rgbaOffset {
		for c := range channels {
			if d := q[c].e1 - q[c].e0; d < -40 || d > 40 { // offsets are -32 to 31
				return ends{err: never}
			}
		}
		return fitOffset(q, channels, l, limit)
	}
	var pairs [4]pair
	f := fitDirect(q, channels, l, &pairs)
	if g := fitContracted(q, channels, l, &pairs, f.err); g.err < f.err {
		return g
	}
	return f
}

// settle adjusts a trial's weights to its ends, and reports whether any changed.
func (e *encoder) settle(t *trial, spread *[2][maxTexels]int16) bool {
	l := t.layout
	moved := false
	for plane := range l.planes {
		var table slopes
		var hold [4]float32
		for p := range l.partitions {
			for c := range 4 {
				second := l.planes == 2 && c == l.second
				if e.use[c] && second == (plane == 1) {
					e0, e1 := t.ends[p].colors[0][c], t.ends[p].colors[1][c]
					delta := float32(e1-e0) / 64
					table[c][p], table[4+c][p] = float32(e0), delta
					hold[p] += float32(delta * delta)
				}
			}
			table[8][p] = hold[p]
		}
		var rest [maxTexels]float32
		e.rest(&rest, l, &spread[plane], &table)
		if t.shape.settle(&t.weights[plane], &rest, l, &hold, t.choice.weights, e.lanes) {
			moved = true
		}
	}
	return moved
}

// slopes has the start and the length of each partition's line, one row for each channel; the last row has the squared
// lengths.
type slopes [9][8]float32

// rest computes for each texel the distance, along its line, from the position of its weight, times the line's length.
func (e *encoder) rest(out *[maxTexels]float32, l *layout, spread *[maxTexels]int16, t *slopes) {
	if e.lanes {
		restLanes(&e.soa.channels[0][0], &spread[0], &l.part[0], (*[9][8]float32)(t), (e.texels+7)/8, &out[0])
		return
	}
	for i := range e.texels {
		p, x, w := l.part[i]&3, &e.value[i], float32(spread[i])
		out[i] = float32((x[0]-t[0][p])*t[4][p]) + float32((x[1]-t[1][p])*t[5][p]) +
			float32((x[2]-t[2][p])*t[6][p]) + float32((x[3]-t[3][p])*t[7][p]) - float32(w*t[8][p])
	}
}
