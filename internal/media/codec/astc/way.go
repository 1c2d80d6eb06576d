package astc

// way is a choice of endpoint modes with the same number of values.
type way struct {
	values int  // of all partitions
	extra  int  // bits needed for separate modes of partitions
	scaled bool // the darker end is a fraction of the other
	grey   bool // red, green and blue are stored as one value
	modes  [4][]int
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

// waysOf finds the ways of a layout: those of its block, with one mode for all partitions, and one with a mode for each
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
	var class [4]int
	low, high := 3, 0
	for p := range l.partitions {
		class[p] = l.sums[p].class()
		low, high = min(low, class[p]), max(high, class[p])
	}
	if low == high {
		return
	}
	w := way{extra: 3*l.partitions - 4}
	for p := range l.partitions {
		w.modes[p] = [...][]int{grey, greyAlpha, rgb, rgba}[class[p]]
		if class[p] < high-1 { // the classes of a block differ by at most one
			switch class[p] = high - 1; {
			case high == 2:
				w.modes[p] = scale
			case l.sums[p].opaque():
				w.modes[p] = rgb
			default:
				w.modes[p] = scaled
			}
		}
		w.values += 2 * (class[p] + 1)
	}
	if w.values <= 18 {
		l.ways = append(l.ways, w)
	}
}

func (s *sums) opaque() bool { return s.x[3] == 255*s.n }

// class returns the lowest class of endpoint modes that can store the texels without restrictions.
func (s *sums) class() int {
	c := 3
	if s.opaque() {
		c = 2
	}
	if s.chroma() == 0 {
		c -= 2
	}
	return c
}

// chroma returns the sum of the squared distances of the colours from grey.
func (s *sums) chroma() float32 {
	xx := &s.xx
	return float32(xx[0]+xx[4]+xx[7]-xx[1]-xx[2]-xx[5]) * 2 / 3
}
