package etc2

import "math/bits"

// halfLanes is a half of eight pixels in the layout of priceLanes: the sum of the channels of each pixel, twice the sum of
// all pixels, and the sum of the squares of all channels.
type halfLanes struct {
	sums    [8]int16
	twice   [4]int16
	squares int32
	_       int32
}

// halfPixels are eight pixels as 16-bit words: red and green, then blue and 0.
type halfPixels struct{ rg, b [8][2]int16 }

// cloudPixels are 16 pixels as 16-bit words.
type cloudPixels struct{ rg, b [16][2]int16 }

// pack stores the pixels of a half for priceLanes and exactLanes.
func (h *half) pack() {
	h.lanes = true
	for i := range h.pixels {
		p := &h.pixels[i]
		h.by.sums[i] = int16(h.sums[i])
		h.packed.rg[i] = [2]int16{int16(p[0]), int16(p[1])}
		h.packed.b[i][0] = int16(p[2])
	}
	h.by.twice = [4]int16{int16(2 * h.total[0]), int16(2 * h.total[1]), int16(2 * h.total[2])}
	h.by.squares = h.squares
}

// pricesLanes is prices in vector code.
func (h *half) pricesLanes(out *bases, c rgb, steps [3]*[64]int16, n, bits int, leaveOut bool) (better bool) {
	var rooms [64]int16
	from := out.n
	keys, codes := out.keys[from:][:n], out.codes[from:][:n]
	start := [4]int16{int16(c[0]), int16(c[1]), int16(c[2])}
	priceLanes(&h.by.sums[0], &start, &steps[0][0], &steps[1][0], &steps[2][0], bits, (n+15)/16, &keys[0], &codes[0], &rooms[0])
	clampLanes(&h.packed.rg[0][0], &keys[0], &codes[0], &rooms[0], n, bits)
	top := int32(1)<<bits - 1
	for i, key := range keys {
		if leaveOut {
			k := i >> 1
			if at := c[k] + int32(steps[k][i]); at < 0 || at > top || out.n == maxBases {
				continue
			}
		}
		better = out.add(key, codes[i], rooms[i&63] < 0) || better
	}
	return better
}

// word returns a colour in the layout of the vector functions.
func (c rgb) word() uint64 { return uint64(c[0]) | uint64(c[1])<<16 | uint64(c[2])<<32 }

// pack stores the pixels of a block for paintCost and paintSums.
func (l *cloud) pack() {
	l.lanes = true
	for i := range l.pixels {
		p := &l.pixels[i]
		l.packed.rg[i] = [2]int16{int16(p[0]), int16(p[1])}
		l.packed.b[i][0] = int16(p[2])
	}
}

// clusterLanes is clusters in vector code.
func (l *cloud) clusterLanes(grey int32) (means [2]rgb) {
	var words [2]uint64
	if grey == 1 {
		clusterLanes(&l.packed.rg[0][0], &words)
	} else {
		clusterHueLanes(&l.packed.rg[0][0], &words)
	}
	for k, w := range words {
		means[k] = rgb{int32(uint16(w)), int32(uint16(w >> 16)), int32(uint16(w >> 32))}
	}
	return means
}

// polishLanes is polish in vector code.
func (l *cloud) polishLanes(p *pairing, cost int32) int32 {
	colours := [2][4]int16{
		{int16(p.c1[0]), int16(p.c1[1]), int16(p.c1[2])},
		{int16(p.c2[0]), int16(p.c2[1]), int16(p.c2[2])},
	}
	mode := 0
	if p.h {
		mode = 1
	}
	cost = polishLanes(&l.packed.rg[0][0], &colours, mode, int(p.distance), cost)
	for k := range 3 {
		p.c1[k], p.c2[k] = int32(colours[0][k]), int32(colours[1][k])
	}
	return cost
}

// words returns paints in the layout of the vector functions.
func words(paint *[4]rgb) [4]uint64 {
	return [4]uint64{paint[0].word(), paint[1].word(), paint[2].word(), paint[3].word()}
}

// assignLanes is assign in vector code: it returns the cost, and for each paint the sum of its pixels and their number.
func (l *cloud) assignLanes(paint *[4]rgb) (cost int32, sum [4]rgb, n [4]int32) {
	words := words(paint)
	var sums [4][8]int16
	var masks [4]uint32
	cost = paintSums(&l.packed.rg[0][0], &words, &sums, &masks)
	for i := range sum {
		s := &sums[i]
		sum[i], n[i] = rgb{int32(s[0]), int32(s[1]), int32(s[2])}, int32(bits.OnesCount32(masks[i]))
	}
	return cost, sum, n
}

// choice is a level in the layout of levelLanes.
type choice struct{ center, step, table int16 }

// levelResult is the result of levelLanes for a choice: its cost, the sum of the differences of the pixels with a paint that
// is not clamped, and the negative number of those pixels.
type levelResult struct{ cost, rest, less, _ int32 }

func (k *kind) choice(l *level) choice {
	return choice{int16(l.base*k.scale + k.offset), int16(k.step(l.multiplier)), int16(l.table)}
}

// assignAll is assign for several levels, without a limit.
func (k *kind) assignAll(v *values, all []level, results *[maxStarts]levelResult) {
	var choices [maxStarts]choice
	for i := range all {
		choices[i&(maxStarts-1)] = k.choice(&all[i])
	}
	var index [16]int16
	bounds := [2]int16{int16(k.low), int16(k.high)}
	levelLanes(&v.packed, &bounds, &choices[0].center, len(all), &results[0].cost, &index)
}

// assignLanes is assign in vector code.
func (k *kind) assignLanes(v *values, l *level) levelResult {
	var r levelResult
	c := k.choice(l)
	bounds := [2]int16{int16(k.low), int16(k.high)}
	levelLanes(&v.packed, &bounds, &c.center, 1, &r.cost, &v.index)
	return r
}

// within returns the result that assign would return with this limit.
func (r *levelResult) within(limit int32) (cost, rest, n int32) {
	if r.cost/2 >= limit {
		return never, 0, 0
	}
	return r.cost, r.rest, -r.less
}
