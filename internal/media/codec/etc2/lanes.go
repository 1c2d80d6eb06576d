package etc2

import "math/bits"

// halfLanes is a half of eight pixels in the layout of priceLanes: the sum of the channels of each pixel, twice the sum of
// all pixels, and the rest as in half.
type halfLanes struct {
	sums           [8]int16
	twice          [4]int16
	squares, greys int32
	low, high      int16
	_              int32
}

// halfPixels are eight pixels as 16-bit words: red and green, then blue and 0.
type halfPixels [2][8][2]int16

// blockLanes has the left, right, upper and lower half of a block.
type blockLanes struct {
	pixels [4]halfPixels
	halves [4]halfLanes
}

// pack fills packed.
func (s *search) pack(src *[64]byte) {
	if s.lanes = lanes; s.lanes {
		halvesLanes(src, &s.packed.pixels[0][0][0][0], &s.packed.halves[0].sums[0])
	}
}

// half returns a half.
func (b *blockLanes) half(i int) half {
	by := &b.halves[i&3]
	return half{
		n: 8, total: rgb{int32(by.twice[0]) / 2, int32(by.twice[1]) / 2, int32(by.twice[2]) / 2}, squares: by.squares, greys: by.greys,
		low: int32(by.low), high: int32(by.high), by: by, packed: &b.pixels[i&3],
	}
}

// keysLanes finds the keys and codes of n base colours, and returns a bit for each that has a modifier beyond 0 or 255. It also writes
// after the last one.
func (h *half) keysLanes(c rgb, steps [3]*[64]int16, n, bits int, keys *int32, codes *uint16) uint64 {
	start := [4]int16{int16(c[0]), int16(c[1]), int16(c[2])}
	var clamped [4]uint16
	priceLanes(&h.by.sums[0], &start, &steps[0][0], &steps[1][0], &steps[2][0], bits, (n+15)/16, keys, codes, &clamped)
	all := uint64(clamped[0]) | uint64(clamped[1])<<16 | uint64(clamped[2])<<32 | uint64(clamped[3])<<48
	all &= 1<<n - 1
	if all != 0 {
		clampLanes(&h.packed[0][0][0], keys, codes, all, bits)
	}
	return all
}

// pricesLanes is prices in vector code.
func (h *half) pricesLanes(out *bases, c rgb, steps [3]*[64]int16, n, bits int, leaveOut bool) (better bool) {
	from := out.n
	keys, codes := out.keys[from:][:n], out.codes[from:][:n]
	clamped := h.keysLanes(c, steps, n, bits, &keys[0], &codes[0])
	if !leaveOut {
		least := int32(never) // the cost, and below that 6 bits with the first base colour that has it
		for i, key := range keys {
			least = min(least, key&^7<<3|int32(i))
		}
		out.n += n
		return out.take(from+int(least&63), least>>6, clamped>>(least&63)&1 == 1)
	}
	top := int32(1)<<bits - 1
	for i, key := range keys {
		k := i >> 1
		if at := c[k] + int32(steps[k][i]); at < 0 || at > top || out.n == maxBases {
			continue
		}
		better = out.add(key, codes[i], clamped>>i&1 == 1) || better
	}
	return better
}

// priceLanes is price in vector code.
func (h *half) priceLanes(c rgb, bits int) (key int32, clamped bool) {
	var keys [16]int32
	var codes [16]uint16
	none := &turns[2] // begins with 0
	all := h.keysLanes(c, [3]*[64]int16{none, none, none}, 1, bits, &keys[0], &codes[0])
	return keys[0], all&1 == 1
}

// word returns a colour in the layout of the vector functions.
func (c rgb) word() uint64 { return uint64(c[0]) | uint64(c[1])<<16 | uint64(c[2])<<32 }

// clusterLanes is clusters in vector code.
func (l *cloud) clusterLanes(grey int32) (means [2]rgb) {
	var words [2]uint64
	if grey == 1 {
		clusterLanes(&l.packed[0][0][0][0], &words)
	} else {
		clusterHueLanes(&l.packed[0][0][0][0], &words)
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
	cost = polishLanes(&l.packed[0][0][0][0], &colours, mode, int(p.distance), cost)
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
	cost = paintSums(&l.packed[0][0][0][0], &words, &sums, &masks)
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
