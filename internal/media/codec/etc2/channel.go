package etc2

// kind is a kind of EAC channel. A pixel is base*scale + offset + modifier*step within low..high; step is multiplier*scale,
// or 1 if that is 0.
type kind struct {
	scale, offset    int32
	low, high        int32
	lowBase, topBase int32
	least            int32 // multiplier
}

var (
	alpha8     = kind{1, 0, 0, 255, 0, 255, 1}
	unsigned11 = kind{8, 4, 0, 2047, 0, 255, 0}
	signed11   = kind{8, 0, -1023, 1023, -127, 127, 0}
)

// values are the values of a block: for vector code the pixels, otherwise the distinct values in ascending order, and the
// number of pixels of each.
type values struct {
	low, high int32

	n     int
	value [16]int32
	count [16]int32

	lanes         bool
	packed, index [16]int16
}

// level is a choice of base, multiplier and table for a channel of a block, with its cost.
type level struct{ base, multiplier, table, cost int32 }

// step returns the factor of the modifiers.
func (k *kind) step(multiplier int32) int32 { return max(multiplier*k.scale, 1) }

func (k *kind) paint(l *level) (paint [8]int32) {
	base, step := l.base*k.scale+k.offset, k.step(l.multiplier)
	for i, m := range &eacModifiers[l.table&15] {
		paint[i] = min(max(base+m*step, k.low), k.high)
	}
	return paint
}

// channel encodes a channel of a block of RGBA pixels.
func (e *effort) channel(src *[64]byte, channel int, k *kind) uint64 {
	if k == &alpha8 && flat(src, channel) {
		w := uint64(src[channel])<<56 | 1<<52 | 13<<48
		if src[channel] > 0 { // otherwise index 0 is below 0
			w |= 4 * 0o1_111_111_111_111_111 // modifier 0
		}
		return w
	}
	var px [16]int32 // in columns
	for i := range px {
		b := src[(4*(i&3<<2|i>>2)+channel)&63]
		if k == &alpha8 {
			px[i] = int32(b)
		} else {
			px[i] = to11(b, k == &signed11)
		}
	}
	v := distinct(&px)
	best := e.level(&v, k)
	w := uint64(uint8(best.base))<<56 | uint64(best.multiplier)<<52 | uint64(best.table)<<48
	paint := k.paint(&best)
	if v.lanes {
		k.assignLanes(&v, &best)
		for i, at := range v.index {
			w |= uint64(at) << (45 - 3*i)
		}
		return w
	}
	for i, x := range px {
		w |= index(&paint, x) << (45 - 3*i)
	}
	return w
}

// flat reports whether a channel has the same value in all pixels.
func flat(src *[64]byte, channel int) bool {
	for i := channel; i < len(src); i += 4 {
		if src[i] != src[channel] {
			return false
		}
	}
	return true
}

// index returns the index of the paint nearest to a value, the lowest of equally near ones.
func index(paint *[8]int32, x int32) uint64 {
	least := int32(never)
	for i, p := range paint {
		least = min(least, (x-p)*(x-p)<<3|int32(i))
	}
	return uint64(least & 7)
}

// distinct stores the values, and sorts the distinct ones by insertion.
func distinct(px *[16]int32) (v values) {
	v.low, v.high = px[0], px[0]
	for i, x := range px {
		v.packed[i] = int16(x)
		v.low, v.high = min(v.low, x), max(v.high, x)
	}
	if v.lanes = lanes; v.lanes {
		return v
	}
	for _, x := range px {
		at := v.n
		for at > 0 && v.value[at-1] >= x {
			at--
		}
		if at < v.n && v.value[at] == x {
			v.count[at]++
			continue
		}
		copy(v.value[at+1:v.n+1], v.value[at:v.n])
		copy(v.count[at+1:v.n+1], v.count[at:v.n])
		v.value[at], v.count[at] = x, 1
		v.n++
	}
	return v
}

// maxStarts is the number of levels to start from at a time, and maxTable that of a table.
const maxStarts, maxTable = 64, 16

// level searches all tables. The multiplier follows from the range of a table's modifiers. From several bases around the
// middle, the search alternates: pixels take the nearest paint, and the base moves to the mean of the differences. Then it
// tries what is near the best level.
//
// If values are at an end of the range, as at the edges of cut-outs, clamping lets modifiers go beyond it, and the best base
// may be far from the middle: one more multiplier and one more start reduce the error there by 4 dB. The base of a wide range
// is uncertain, too.
func (e *effort) level(v *values, k *kind) level {
	low, high := v.low, v.high
	best := level{cost: never}
	multipliers, starts := e.multipliers, e.starts
	end := low == k.low || high == k.high
	if end {
		multipliers, starts = multipliers+1, starts+1
	}
	if e.bases > 0 && (end || high-low > 64*k.scale) {
		starts = min(starts+1, 4)
	}
	var all [maxStarts]level
	n := 0
	for t := range int32(16) {
		m := &eacModifiers[t]
		span := (m[7] - m[3]) * k.scale
		first := (high - low) / span
		if multipliers == 1 {
			first = (high - low + span/2) / span
		}
		first = min(max(first, k.least), 15)
		for mult := first; mult < min(first+multipliers, 16); mult++ {
			step := k.step(mult)
			// The bases for which the modifiers reach both ends.
			from, to := high-m[7]*step, low-m[3]*step
			for s := range starts {
				all[n&(maxStarts-1)] = level{k.base(2*starts*from+(2*s+1)*(to-from), 2*starts), mult, t, never}
				n++
			}
		}
		if n > maxStarts-maxTable || t == 15 {
			if e.descendAll(v, k, all[:n], &best); best.cost == 0 {
				return best
			}
			n = 0
		}
	}
	e.near(v, k, &best)
	return best
}

// near descends from the levels near the best one.
func (e *effort) near(v *values, k *kind, best *level) {
	var all [maxStarts]level
	n := 0
	for m := max(best.multiplier-1, k.least); m <= min(best.multiplier+1, 15); m++ {
		for b := max(best.base-e.bases, k.lowBase); b <= min(best.base+e.bases, k.topBase); b++ {
			if m != best.multiplier || b != best.base {
				all[n&(maxStarts-1)] = level{b, m, best.table, never}
				n++
			}
		}
	}
	if e.bases > 0 {
		e.descendAll(v, k, all[:n], best)
	}
}

// descendAll descends from the levels in order, and keeps the best.
func (e *effort) descendAll(v *values, k *kind, all []level, best *level) {
	var first [maxStarts]levelResult
	if v.lanes {
		k.assignAll(v, all, &first)
	}
	for i := range all {
		if e.descend(v, k, all[i], &first[i&(maxStarts-1)], best); best.cost == 0 {
			return
		}
	}
}

// descend alternates from a level on, and keeps the best. In vector code, the first turn is already in first.
func (e *effort) descend(v *values, k *kind, l level, first *levelResult, best *level) {
	for turn := range e.turns {
		var cost, rest, n int32
		if turn == 0 && v.lanes {
			cost, rest, n = first.within(best.cost)
		} else {
			cost, rest, n = k.assign(v, &l, best.cost)
		}
		if cost < best.cost {
			*best = l
			best.cost = cost
		}
		if n == 0 {
			return
		}
		b := k.base(rest, n)
		if b == l.base {
			return
		}
		l.base = b
	}
}

// base returns the base nearest to a sum of n values.
func (k *kind) base(sum, n int32) int32 {
	unit := n * k.scale
	b := (sum-n*k.offset+unit/2+1024*unit)/unit - 1024
	return min(max(b, k.lowBase), k.topBase)
}

// assign returns the cost of a choice, and the sum over n pixels of their values without their modifiers. Pixels with a
// clamped paint do not depend on the base and are left out. If a choice costs more than twice the limit, assign stops and
// returns the cost never.
func (k *kind) assign(v *values, l *level, limit int32) (cost, rest, n int32) {
	if v.lanes {
		r := k.assignLanes(v, l)
		return r.within(limit)
	}
	paint := k.paint(l)
	base, step := l.base*k.scale+k.offset, k.step(l.multiplier)
	m := &eacModifiers[l.table&15]
	for i := range v.value {
		if i == v.n {
			break
		}
		x, count := v.value[i], v.count[i]
		d0, d1, d2, d3 := x-paint[0], x-paint[1], x-paint[2], x-paint[3]
		d4, d5, d6, d7 := x-paint[4], x-paint[5], x-paint[6], x-paint[7]
		// The lowest bits have the index.
		least := min(d0*d0<<3, d1*d1<<3|1, d2*d2<<3|2, d3*d3<<3|3, d4*d4<<3|4, d5*d5<<3|5, d6*d6<<3|6, d7*d7<<3|7)
		cost += least >> 3 * count
		if cost/2 >= limit {
			return never, 0, 0
		}
		at := m[least&7] * step
		if base+at == paint[least&7] {
			rest += (x - at) * count
			n += count
		}
	}
	return cost, rest, n
}
