package astc

import "github.com/kiln-pipeline/kiln/internal/media/codec/block"

// effort is what a quality costs.
type effort struct {
	patterns int        // of two partitions whose lines are found
	kept     int        // of these, that are laid out
	tries    int        // candidates that are fitted
	rounds   int        // of fitting ends to weights and weights to ends
	relax    int        // rounds of relaxing
	enough   [4]float32 // squared error of a texel that needs no so many partitions
}

var efforts = [...]effort{
	block.Fast:   {3, 1, 2, 1, 1, [4]float32{2: 1, 3: 200}},
	block.Normal: {12, 2, 12, 3, 1, [4]float32{2: 0.5, 3: 30}},
	block.Best:   {64, 4, 32, 4, 2, [4]float32{2: 0.5, 3: 0.5}},
}

// encoder turns texels into blocks. Each worker has its own.
type encoder struct {
	*plan
	effort effort
	levels *[len(ranges)]levels

	texel  [maxTexels][4]int32
	value  [maxTexels][4]float32 // the same
	all    sums
	use    [4]bool // the channels that lines are for
	ways   []way   // for a single partition
	chroma float32 // squared distance of all colours from grey

	layouts [16]layout
	used    int // of layouts
	similar [64]int
	wrong   [1024]uint8 // samples, by pattern
	tries   [32]candidate
	tried   int

	best trial
}

// candidate is a layout with a mode and a way, and the error expected.
type candidate struct {
	layout *layout
	shape  *shape
	choice *choice
	way    *way
	colors uint8 // range
	err    float32
}

// trial is a candidate with values.
type trial struct {
	candidate
	weights [2]plane
	modes   [4]int // of endpoints, by partition
	ends    [4]ends
	err     float64
}

func newEncoder(f Footprint, q block.Quality) *encoder {
	return &encoder{plan: plans[f.index()](), effort: efforts[min(int(q), len(efforts)-1)], levels: levelsOf()}
}

// block encodes texels. What to try is chosen by what it should give: each layout with each mode has an error that is
// expected of its lines, of weights that are spread over several texels, and of the steps of weights and colours. The best few
// are then made.
func (e *encoder) block(out *[BlockSize]byte, texels *[4 * maxTexels]byte) {
	if e.load(texels) {
		*out = voidExtent([4]byte(texels[:4]))
		return
	}
	e.used, e.tried = 0, 0
	e.best.err = never
	single := e.add()
	single.partitions, single.planes = 1, 1
	clear(single.part[:])
	single.sums[0] = e.all
	e.layOut(single)
	e.rank(single)
	e.rankPlanes()
	for count := 2; count <= 3; count++ {
		if e.tries[0].err > e.effort.enough[count]*float32(e.texels) {
			e.rankPartitions(count)
		}
	}
	for i := range e.tried {
		e.try(&e.tries[i])
	}
	*out = e.best.pack()
}

// load takes the texels in, and says whether they are all the same.
func (e *encoder) load(texels *[4 * maxTexels]byte) bool {
	same, grey, opaque := true, true, true
	e.all = sums{}
	for i := range e.texels {
		px := (*[4]byte)(texels[4*i:])
		for c, v := range px {
			e.texel[i][c], e.value[i][c] = int32(v), float32(v)
		}
		same = same && *px == [4]byte(texels[:4])
		grey = grey && px[0] == px[1] && px[1] == px[2]
		opaque = opaque && px[3] == 255
		e.all.add(&e.texel[i])
	}
	e.use = [4]bool{true, true, true, !opaque}
	e.ways = waysFor(opaque, grey)
	e.chroma = e.all.chroma()
	return same
}

// add makes room for a layout.
func (e *encoder) add() *layout {
	e.used++
	return &e.layouts[e.used-1]
}

// rankPlanes ranks layouts in which one channel has weights of its own.
func (e *encoder) rankPlanes() {
	single := &e.layouts[0]
	for c := range 4 {
		if !e.use[c] || e.chroma == 0 && c < 3 {
			continue
		}
		l := e.add()
		l.partitions, l.planes, l.second = 1, 2, c
		l.part, l.sums[0] = single.part, e.all
		e.layOut(l)
		e.rank(l)
	}
}

// rankPartitions ranks layouts in two or three parts.
func (e *encoder) rankPartitions(count int) {
	var room [8]int
	for _, at := range e.split(room[:0:e.effort.kept], count) {
		l := e.add()
		l.partitions, l.planes, l.seed = count, 1, e.patterns[count].seeds[at]
		partitionOf(l.part[:e.texels], l.seed, count, e.Width)
		l.sums = e.parts(&e.patterns[count], at, count)
		e.layOut(l)
		e.rank(l)
	}
}

// rank puts the modes that a layout can have among the candidates, by the error expected of them: what no weights mend, what is lost by
// spreading weights, and what the steps of weights and of colours should add.
func (e *encoder) rank(l *layout) {
	if l.residual >= e.limit() {
		return
	}
	size := 128 - 17
	if l.partitions > 1 {
		size = 128 - 29
	}
	if l.planes == 2 {
		size -= 2
	}
	e.waysOf(l)
	values := e.values(l)
	var rough [13][13]float32
	e.roughness(&rough, l)
	var steps [weightRanges]float32
	e.steps(&steps, l)
	noises, ranges := colorNoise(), colorRanges()
	limit := e.limit()
	for i := range e.shapes {
		s := &e.shapes[i]
		spread := l.residual + rough[s.width][s.height]
		if spread >= limit {
			continue
		}
		modes := s.modes[l.planes-1]
		for k := range modes {
			m := &modes[k]
			weighted := spread + float32(steps[m.weights]*s.share)
			if weighted >= limit {
				continue
			}
			for w := range l.ways {
				way := &l.ways[w]
				room := size - m.size - way.extra
				if room < 0 {
					continue
				}
				err := weighted + float32(values*noises[way.values][room])
				if way.scaled {
					err += l.scaled
				}
				if way.grey {
					err += max(e.chroma-l.residual, 0)
				}
				if err < limit {
					e.insert(candidate{l, s, m, way, ranges[way.values][room], err})
					limit = e.limit()
				}
			}
		}
	}
}

// values is how often the error of an endpoint's value counts. The two ends' shares of a texel would be 2/3 on average, but one end and
// the weights make up for what the other lacks: 0.25 to 0.35 gave the best blocks.
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

// steps fills out with the squared error of taking the texels' places on their lines to the nearest that each range of weights has. At
// edges it is far below a twelfth of a step's square, and 8x8 blocks of sprites gained 2 dB when it was no longer taken for that.
func (e *encoder) steps(out *[weightRanges]float32, l *layout) {
	squares := stepSquares()
	for plane := range l.planes {
		var sums [weightRanges]float32
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

// limit is the expected error that a candidate must be below.
func (e *encoder) limit() float32 {
	if e.tried < e.effort.tries {
		return never
	}
	return e.tries[e.tried-1].err
}

// insert puts a candidate in its place, and the last one out if there are enough.
func (e *encoder) insert(c candidate) {
	if e.tried < e.effort.tries {
		e.tried++
	}
	i := e.tried - 1
	for ; i > 0 && e.tries[i-1].err > c.err; i-- {
		e.tries[i] = e.tries[i-1]
	}
	e.tries[i] = c
}

// try makes a candidate, and keeps it if it is better than what there was.
func (e *encoder) try(c *candidate) {
	t := trial{candidate: *c}
	l, s := c.layout, c.shape
	for plane := range l.planes {
		var power [4]float32
		for p := range l.partitions {
			power[p] = float32(l.lines[plane][p].span * l.lines[plane][p].span)
		}
		var g [maxWeights]float32
		s.relax(&g, &l.ideal[plane], &l.part, &power, e.effort.relax)
		s.quantize(&t.weights[plane], &g, c.choice.weights)
	}
	for round := 0; ; round++ {
		var spread [2][maxTexels]int32
		for plane := range l.planes {
			s.infill(&spread[plane], &t.weights[plane])
		}
		e.fit(&t, &spread)
		if t.err < e.best.err {
			e.best = t
		} else if t.err > 1.25*e.best.err {
			return
		}
		if round == e.effort.rounds || !e.settle(&t, &spread) {
			return
		}
	}
}

// fit finds the ends that suit a trial's weights, which spread has for each texel.
func (e *encoder) fit(t *trial, spread *[2][maxTexels]int32) {
	l := t.layout
	var w, ww [2][4]int32
	var wx [2][4][4]int32
	for plane := range l.planes {
		for i := range e.texels {
			p := l.part[i] & 3
			v := spread[plane][i]
			w[plane][p] += v
			ww[plane][p] += v * v
			x, sum := &e.texel[i], &wx[plane][p]
			sum[0] += v * x[0]
			sum[1] += v * x[1]
			sum[2] += v * x[2]
			sum[3] += v * x[3]
		}
	}
	var q [4][4]cost
	for p := range l.partitions {
		for c := range 4 {
			plane := 0
			if l.planes == 2 && c == l.second {
				plane = 1
			}
			n, w, ww, wx := l.sums[p].n, w[plane][p], ww[plane][p], wx[plane][p][c]
			x, xx := l.sums[p].x[c], l.sums[p].xx[c][c]
			q[p][c] = cost{
				a: float64(4096*n-128*w+ww) / 4096, b: float64(64*w-ww) / 4096, c: float64(ww) / 4096,
				d0: float64(64*x-wx) / 64, d1: float64(wx) / 64, square: float64(xx),
			}
		}
	}
	e.fitWay(t, &q)
}

// fitWay finds the ends of all partitions. They have one mode together, or each the one that suits it.
func (e *encoder) fitWay(t *trial, q *[4][4]cost) {
	l := t.layout
	if t.way.extra > 0 {
		t.err = 0
		for p := range l.partitions {
			t.ends[p].err = never
			for _, mode := range t.way.modes[p] {
				if f := fitMode(mode, &q[p], &e.levels[t.colors]); f.err < t.ends[p].err {
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
			f[p] = fitMode(mode, &q[p], &e.levels[t.colors])
			sum += f[p].err
		}
		if sum < t.err {
			t.err, t.ends = sum, f
			for p := range l.partitions {
				t.modes[p] = mode
			}
		}
	}
}

// fitMode finds the ends of a partition for an endpoint mode.
func fitMode(mode int, q *[4]cost, l *levels) ends {
	switch mode {
	case lumDirect:
		return fitGrey(q, 3, l)
	case lumAlphaDirect:
		return fitGrey(q, 4, l)
	case rgbScale:
		return fitScale(q, 3, l)
	case rgbScaleAlpha:
		return fitScale(q, 4, l)
	case rgbOffset:
		return fitOffset(q, 3, l)
	case rgbaOffset:
		return fitOffset(q, 4, l)
	}
	channels := 3
	if mode == rgbaDirect {
		channels = 4
	}
	f := fitDirect(q, channels, l)
	if g := fitContracted(q, channels, l); g.err < f.err {
		return g
	}
	return f
}

// settle moves a trial's weights to suit its ends, and says whether any moved.
func (e *encoder) settle(t *trial, spread *[2][maxTexels]int32) bool {
	l := t.layout
	moved := false
	for plane := range l.planes {
		var delta, start [4][4]float32
		var hold [4]float32
		for p := range l.partitions {
			for c := range 4 {
				second := l.planes == 2 && c == l.second
				if e.use[c] && second == (plane == 1) {
					e0, e1 := t.ends[p].colors[0][c], t.ends[p].colors[1][c]
					delta[p][c], start[p][c] = float32(e1-e0)/64, float32(e0)
					hold[p] += float32(delta[p][c] * delta[p][c])
				}
			}
		}
		var rest [maxTexels]float32
		for i := range e.texels {
			p := l.part[i] & 3
			d, s, x, w := &delta[p], &start[p], &e.value[i], float32(spread[plane][i])
			rest[i] = float32((x[0]-s[0])*d[0]) + float32((x[1]-s[1])*d[1]) + float32((x[2]-s[2])*d[2]) + float32((x[3]-s[3])*d[3]) - float32(w*hold[p])
		}
		if t.shape.settle(&t.weights[plane], &rest, &l.part, &hold, t.choice.weights) {
			moved = true
		}
	}
	return moved
}
