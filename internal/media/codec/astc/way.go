package astc

// way is a choice of endpoint modes with the same number of values.
type way struct {
	values int  // of all partitions
	extra  int  // bits needed for separate modes of partitions
	scaled bool // the darker end is a fraction of the other
	grey   bool // red, green and blue are stored as one value
	modes  [4][]int
	added  float32 // by separate modes: squared error
}

// Endpoint modes by the colours that they can store. grey, greyAlpha, rgb and rgba have no further restriction, and are of
// the classes 0 to 3.
var (
	grey      = []int{lumDirect}
	greyAlpha = []int{lumAlphaDirect}
	rgb       = []int{rgbDirect, rgbOffset}
	rgba      = []int{rgbaDirect, rgbaOffset}
	scale     = []int{rgbScale}
	scaled    = []int{rgbScaleAlpha}
)

// Ways for a single partition.
var (
	greyWays      = []way{{values: 2, modes: [4][]int{grey}}}
	greyAlphaWays = []way{{values: 4, modes: [4][]int{greyAlpha}}}
	rgbWays       = []way{
		{values: 6, modes: [4][]int{rgb}},
		{values: 4, modes: [4][]int{scale}, scaled: true},
		{values: 2, modes: [4][]int{grey}, grey: true},
	}
	rgbaWays = []way{
		{values: 8, modes: [4][]int{rgba}},
		{values: 6, modes: [4][]int{scaled}, scaled: true},
		{values: 4, modes: [4][]int{greyAlpha}, grey: true},
	}
)

func waysFor(opaque, grey bool) []way {
	switch {
	case grey && opaque:
		return greyWays
	case grey:
		return greyAlphaWays
	case opaque:
		return rgbWays
	}
	return rgbaWays
}

// waysOf finds the ways of a layout: those of its block, with one mode for all partitions, and those with a mode for each
// partition.
func (e *encoder) waysOf(l *layout) {
	l.ways = l.room[:0]
	for _, w := range e.ways {
		if w.grey && l.planes == 2 && l.second < 3 {
			continue
		}
		if w.values *= l.partitions; w.values <= 18 {
			l.ways = append(l.ways, w)
		}
	}
	if l.partitions == 1 {
		return
	}
	for high := 1; high <= 3; high++ {
		e.mix(l, high)
	}
}

// mix adds the ways with separate modes of the classes high-1 and high: classes of a block differ by at most one. The first way
// has as many partitions as possible in the lower class; each further one moves the partition that loses most to the higher class.
func (e *encoder) mix(l *layout, high int) {
	w := way{extra: 3*l.partitions - 4, values: 2 * l.partitions * high}
	var loss [4]float32 // in the lower class
	lower := 0          // partitions in it
	for p := range l.partitions {
		above, least := e.modesOf(l, p, high)
		if least >= never {
			return
		}
		if below, added := e.modesOf(l, p, high-1); added < never {
			w.modes[p], loss[p] = below, added-least
			w.added += added
			lower++
		} else {
			w.modes[p] = above
			w.added += least
			w.values += 2
		}
	}
	for ; lower > 0 && w.values <= 18; lower-- {
		if lower < l.partitions || !w.uniform(l.partitions) {
			l.ways = append(l.ways, w)
		}
		most := 0
		for p := range l.partitions {
			if loss[p] > loss[most] {
				most = p
			}
		}
		if loss[most] <= 0 {
			return
		}
		w.modes[most], _ = e.modesOf(l, most, high)
		w.values += 2
		w.added -= loss[most]
		loss[most] = 0
	}
}

// uniform reports whether the first count partitions have the same modes.
func (w *way) uniform(count int) bool {
	for _, m := range w.modes[1:count] {
		if m[0] != w.modes[0][0] {
			return false
		}
	}
	return true
}

// modesOf returns the modes of a class for a partition, and the error that they add. The error is never if the class cannot
// store the colours.
func (e *encoder) modesOf(l *layout, p, class int) ([]int, float32) {
	opaque := l.sums[p].opaque()
	switch {
	case class == 0 && opaque:
		return grey, l.greys[p]
	case class == 0:
		return nil, never
	case class == 1 && opaque && (!e.use[3] || l.scales[p] < l.greys[p]):
		return scale, l.scales[p]
	case class == 1:
		return greyAlpha, l.greys[p]
	case class == 2 && opaque:
		return rgb, 0
	case class == 2:
		return scaled, l.scales[p]
	}
	return rgba, 0
}

func (s *sums) opaque() bool { return s.x[3] == 255*s.n }

// chroma returns the sum of the squared distances of the colours from grey.
func (s *sums) chroma() float32 {
	xx := &s.xx
	return float32(xx[0]+xx[4]+xx[7]-xx[1]-xx[2]-xx[5]) * 2 / 3
}
