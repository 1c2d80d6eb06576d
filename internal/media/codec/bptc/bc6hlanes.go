package bptc

import (
	"math"
	mathbits "math/bits"
	"sync"
)

// lanes8 has a number for each of eight groups of pixels.
type lanes8 = [8]float32

// batch6 has eight groups of pixels of a block with a line for each, which settle finds and judge measures, both in Go and for
// AVX2 with the same results. Two groups next to each other are the subsets of a block. The rows are of 32 bytes, in the order
// that the generator in asm expects.
type batch6 struct {
	masks          [16][8]uint32 // all ones for the pixels of a group
	tops           [16]lanes8    // the greatest index that a pixel may have
	count, inverse lanes8        // of pixels, and 1 divided by it
	levels, step   lanes8        // the greatest index, and 1 divided by it
	by             lanes8        // half of the length of the line to start with, in lengths of the line through all pixels
	low, high      [3]lanes8     // limits of endpoints
	ends           [2][3]lanes8  // endpoints by channel
	err            lanes8
	sums           sums6
	index          [16]lanes8 // plus 1.5 * 2^23, so that the lowest bits are the index

	one, half, round, round64, tiny, most lanes8 // constants

	least  [3]lanes8      // what the channels of the pixels were reduced by
	anchor [3]lanes8      // the pixel of each group whose index has no highest bit
	paired [8]uint32      // all ones for the groups of a block with two
	top    [8]int32       // the greatest number that can be interpolated
	at     [2][3][8]int32 // endpoints of 16 bits
	stored [2][3][8]int32 // endpoints in the bits of the mode, not as offsets
	info   [8]int32       // of the mode, see modeInfo6
	modes  [14][4]int32   // distances that a mode cannot store, by channel, and its info; for two subsets, then for one, see order6
}

// order6 are the modes for two subsets and for one, from the coarsest on.
var order6 = [14]uint8{9, 1, 8, 7, 6, 5, 0, 4, 3, 2, 10, 11, 12, 13}

// modeInfo6 returns a mode's number, the number of bits that it drops from 16, and of each channel the bits of offsets without sign.
func modeInfo6(mode uint8) int32 {
	m := &modes6[mode]
	info := int32(mode) | int32(16-m.bits)<<8
	for c := range 3 {
		bits := int32(15) // any difference
		if m.transformed {
			bits = int32(m.deltaBits[c]) - 1
		}
		info |= bits << (16 + 4*c)
	}
	return info
}

// sums6 are over a group's pixels: of the weight of the second endpoint, of its square, and of its products with the distances of
// the channels from the first endpoint.
type sums6 [5]lanes8

// pair6 has what a batch needs to know about the two subsets of a partition.
type pair6 struct {
	masks                        [16][2]uint32
	tops                         [16][2]float32
	count, inverse, levels, step [2]float32
	anchor                       [2]uint8
	paired                       uint32
}

// whole6 is the place among pairs6 of two groups of all pixels.
const whole6 = 32

var pairs6 = sync.OnceValue(func() *[whole6 + 1]pair6 {
	t := new([whole6 + 1]pair6)
	for p := range t {
		pair, subsets, partition := &t[p], 2, uint8(p)
		second, levels := partitions2[p], float32(7)
		if p == whole6 {
			subsets, partition, second, levels = 1, 0, 0xffff, 15
		}
		pair.paired = math.MaxUint32
		if p == whole6 {
			pair.paired = 0
		}
		anchors := anchorsOf(subsets, partition)
		of := [2]uint16{^second, second}
		if p == whole6 {
			of[0] = second
		}
		for s := range 2 {
			for i := range 16 {
				pair.masks[i][s] = -uint32(of[s] >> i & 1)
				pair.tops[i][s] = levels
				if anchors>>i&1 == 1 {
					pair.tops[i][s] = (levels - 1) / 2
					if of[s]>>i&1 == 1 {
						pair.anchor[s] = uint8(i)
					}
				}
			}
			n := mathbits.OnesCount16(of[s])
			pair.count[s], pair.inverse[s] = float32(n), inverses[n]
			pair.levels[s], pair.step[s] = levels, 1/levels
		}
	}
	return t
})

// init sets the constants.
func (b *batch6) init(signed bool) {
	for i, mode := range order6 {
		for c := range 3 {
			b.modes[i][c] = reaches6()[mode][c]
		}
		b.modes[i][3] = modeInfo6(mode)
	}
	for i := range 8 {
		b.top[i] = math.MaxUint16
		if signed {
			b.top[i] = math.MaxInt16
		}
		b.one[i], b.half[i], b.tiny[i], b.most[i] = 1, 0.5, 1e-30, math.MaxFloat32
		b.round[i], b.round64[i] = 3<<22, 3<<16 // adding and subtracting these rounds to whole numbers, and to 64ths
	}
}

// put makes groups 2*slot and 2*slot+1 the subsets of a partition, or both the whole block.
func (b *batch6) put(slot int, p *pair6) {
	s := 2 * slot & 6
	for i := range b.masks {
		b.masks[i][s], b.masks[i][s+1] = p.masks[i][0], p.masks[i][1]
		b.tops[i][s], b.tops[i][s+1] = p.tops[i][0], p.tops[i][1]
	}
	for i := range 2 {
		b.count[s+i], b.inverse[s+i] = p.count[i], p.inverse[i]
		b.levels[s+i], b.step[s+i] = p.levels[i], p.step[i]
		b.paired[s+i] = p.paired
	}
}

// settle finds a line for each of the first n groups: the line through the mean along the principal axis, from the first to the last
// pixel, times by; then by least squares over the indices of each line, the given number of rounds. The best line is stored in the
// finest mode whose offsets reach far enough, and judged.
func (b *batch6) settle(pix *[16][4]float32, n, rounds int) {
	if lanes {
		settle6(b, &pix[0][0], rounds)
		return
	}
	for lane := range n {
		var sum [3]float32
		b.span(pix, lane&7, &sum)
		b.descend(pix, lane&7, rounds, &sum)
		b.orient(lane & 7)
	}
	for lane := range n {
		b.store(lane & 7)
	}
	b.judge(pix, n)
}

// judge finds the error of the line of each of the first n groups, with the indices and the sums.
func (b *batch6) judge(pix *[16][4]float32, n int) {
	if lanes {
		judge6(b, &pix[0][0])
		return
	}
	for lane := range n {
		b.pass(pix, lane&7, true)
	}
}

// masked returns v if the mask is set, else 0.
func masked(v float32, mask uint32) float32 { return math.Float32frombits(math.Float32bits(v) & mask) }

// span stores the line through the pixels of a group, and returns their sum.
func (b *batch6) span(pix *[16][4]float32, lane int, sum *[3]float32) {
	for i := range pix {
		for c := range 3 {
			sum[c] += masked(pix[i][c], b.masks[i][lane])
		}
	}
	var mean [3]float32
	for c := range 3 {
		mean[c] = float32(sum[c] * b.inverse[lane])
	}
	var rr, rg, rb, gg, gb, bb float32
	for i := range pix {
		m := b.masks[i][lane]
		r, g, b := masked(pix[i][0]-mean[0], m), masked(pix[i][1]-mean[1], m), masked(pix[i][2]-mean[2], m)
		rr += float32(r * r)
		rg += float32(r * g)
		rb += float32(r * b)
		gg += float32(g * g)
		gb += float32(g * b)
		bb += float32(b * b)
	}
	v, most := [3]float32{rr, rg, rb}, rr
	if most < gg {
		v, most = [3]float32{rg, gg, gb}, gg
	}
	if most < bb {
		v = [3]float32{rb, gb, bb}
	}
	for range 4 {
		r := float32(rr*v[0]) + float32(rg*v[1]) + float32(rb*v[2])
		g := float32(rg*v[0]) + float32(gg*v[1]) + float32(gb*v[2])
		bl := float32(rb*v[0]) + float32(gb*v[1]) + float32(bb*v[2])
		scale := 1 / max(max(r, -r), max(g, -g), max(bl, -bl), b.tiny[lane])
		v = [3]float32{r * scale, g * scale, bl * scale}
	}
	length := float32(v[0]*v[0]) + float32(v[1]*v[1]) + float32(v[2]*v[2])
	scale := 1 / float32(math.Sqrt(float64(max(length, b.tiny[lane]))))
	for c := range v {
		v[c] *= scale
	}
	low, high := float32(0), float32(0)
	for i := range pix {
		t := float32((pix[i][0]-mean[0])*v[0]) + float32((pix[i][1]-mean[1])*v[1]) + float32((pix[i][2]-mean[2])*v[2])
		t = masked(t, b.masks[i][lane])
		low, high = min(low, t), max(high, t)
	}
	for c := range 3 {
		first, last := mean[c]+float32(low*v[c]), mean[c]+float32(high*v[c])
		middle, half := float32((first+last)*b.half[lane]), float32((last-first)*b.by[lane])
		b.ends[0][c][lane], b.ends[1][c][lane] = middle-half, middle+half
	}
}

// descend improves the line of a group by least squares.
func (b *batch6) descend(pix *[16][4]float32, lane, rounds int, sum *[3]float32) {
	least := b.most[lane]
	var best [2][3]float32
	for ; ; rounds-- {
		for end := range 2 {
			for c := range 3 {
				b.ends[end][c][lane] = min(max(b.ends[end][c][lane], b.low[c][lane]), b.high[c][lane])
			}
		}
		b.pass(pix, lane, false)
		if b.err[lane] < least {
			least = b.err[lane]
			for c := range 3 {
				best[0][c], best[1][c] = b.ends[0][c][lane], b.ends[1][c][lane]
			}
		}
		if rounds <= 0 {
			break
		}
		n, w, ww := b.count[lane], b.sums[0][lane], b.sums[1][lane]
		det := float32(n*ww) - float32(w*w) // exact: multiples of 2^-12 below 2^8
		inverse := 1 / max(det, b.tiny[lane])
		for c := range 3 {
			q := sum[c] - float32(n*b.ends[0][c][lane])
			slope := float32((float32(n*b.sums[2+c][lane]) - float32(w*q)) * inverse)
			if !(0 < det) {
				slope = 0
			}
			b.ends[0][c][lane] += float32((q - float32(w*slope)) * b.inverse[lane])
			b.ends[1][c][lane] = b.ends[0][c][lane] + slope
		}
	}
	b.err[lane] = least
	for c := range 3 {
		b.ends[0][c][lane], b.ends[1][c][lane] = best[0][c], best[1][c]
	}
}

// orient swaps the endpoints of a group if its anchor is nearer to the second, and stores them as integers.
func (b *batch6) orient(lane int) {
	t := float32(0)
	for c := range 3 {
		first, last := b.ends[0][c][lane], b.ends[1][c][lane]
		t += float32((b.anchor[c][lane] - float32((first+last)*b.half[lane])) * (last - first))
	}
	for c := range 3 {
		first, last := b.ends[0][c][lane], b.ends[1][c][lane]
		if 0 < t {
			first, last = last, first
		}
		b.at[0][c][lane] = int32(math.Float32bits(float32(first+b.least[c][lane])+b.round[lane]) - math.Float32bits(b.round[lane]))
		b.at[1][c][lane] = int32(math.Float32bits(float32(last+b.least[c][lane])+b.round[lane]) - math.Float32bits(b.round[lane]))
	}
}

// store stores the endpoints of a group in the finest mode that can store them; offsets that are just outside are clipped.
func (b *batch6) store(lane int) {
	base, other, list := lane, lane, b.modes[10:14]
	if b.paired[lane] != 0 {
		base, other, list = lane&^1, lane|1, b.modes[:10]
	}
	var apart [3]int32
	first := [3]int32{b.at[0][0][base], b.at[0][1][base], b.at[0][2][base]}
	for c := range 3 {
		for _, v := range [3]int32{b.at[1][c][base], b.at[0][c][other], b.at[1][c][other]} {
			apart[c] = max(apart[c], v-first[c], first[c]-v)
		}
	}
	b.info[lane] = list[0][3]
	for i := range list {
		if m := &list[i]; m[0] > apart[0] && m[1] > apart[1] && m[2] > apart[2] {
			b.info[lane] = m[3]
		}
	}
	drop := b.info[lane] >> 8 & 31
	for c := range 3 {
		most := int32(1) << (b.info[lane] >> (16 + 4*c) & 15)
		from := towards0(first[c], drop)
		for end := range 2 {
			v := from + min(max(towards0(b.at[end][c][lane], drop)-from, -most), most-1)
			b.stored[end][c][lane] = v
			b.ends[end][c][lane] = float32(b.widen(v, drop, lane)) - b.least[c][lane]
		}
	}
}

// towards0 drops the lowest bits of a number, whatever its sign: -5 without one bit is -2.
func towards0(v, drop int32) int32 {
	sign := v >> 31
	return (max(v, -v)>>drop ^ sign) - sign
}

// widen is what the function widen does, if drop bits of 16 were dropped.
func (b *batch6) widen(v, drop int32, lane int) int32 {
	size, sign := max(v, -v), v>>31
	wide := size<<drop + 1<<drop>>1
	switch size {
	case 0:
		wide = 0
	case b.top[lane] >> drop:
		wide = b.top[lane]
	}
	return (wide ^ sign) - sign
}

// pass gives the pixels of a group the nearest places on its line, and computes the error and the sums. If they are final, indices
// are limited by tops, and stored.
func (b *batch6) pass(pix *[16][4]float32, lane int, final bool) {
	var e, d [3]float32
	for c := range 3 {
		e[c] = b.ends[0][c][lane]
		d[c] = b.ends[1][c][lane] - e[c]
	}
	length := float32(d[0]*d[0]) + float32(d[1]*d[1]) + float32(d[2]*d[2])
	scale := b.levels[lane] / max(length, b.tiny[lane])
	err, w, ww := float32(0), float32(0), float32(0)
	var wq [3]float32
	for i := range pix {
		r, g, bl := pix[i][0]-e[0], pix[i][1]-e[1], pix[i][2]-e[2]
		t := float32((float32(r*d[0]) + float32(g*d[1]) + float32(bl*d[2])) * scale)
		t = max(t, 0)
		if final {
			t = float32(min(t, b.tops[i][lane]) + b.round[lane])
			b.index[i][lane] = t
		} else {
			t = float32(min(t, b.levels[lane]) + b.round[lane])
		}
		t = float32(float32(t-b.round[lane])*b.step[lane]) + b.round64[lane]
		u := masked(float32(t-b.round64[lane]), b.masks[i][lane])
		w += u
		ww += float32(u * u)
		wq[0] += float32(u * r)
		wq[1] += float32(u * g)
		wq[2] += float32(u * bl)
		r -= float32(u * d[0])
		g -= float32(u * d[1])
		bl -= float32(u * d[2])
		err += masked(float32(r*r)+float32(g*g)+float32(bl*bl), b.masks[i][lane])
	}
	b.err[lane] = err
	b.sums[0][lane], b.sums[1][lane] = w, ww
	b.sums[2][lane], b.sums[3][lane], b.sums[4][lane] = wq[0], wq[1], wq[2]
}
