package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Instructions that move lanes: most say where each lane of the result comes from, and permute finds the fewest instructions.

// A source is a lane of a register; register -1 is zeros.
type source struct {
	reg  V
	lane int
}

func init() {
	vectors["VPSHUFD"], vectors["VPERMILPS"] = vector{do: shuffleLanes}, vector{do: permuteLanes}
	vectors["VSHUFPS"] = vector{do: shuffleTwo}
	vectors["VPALIGNR"] = vector{do: align}
	vectors["VPSHUFB"] = vector{do: shuffleBytes}
	vectors["VPERMPS"], vectors["VPERMD"] = vector{permuteAll, readsIndexed}, vector{permuteAll, readsIndexed}
	vectors["VPERMQ"], vectors["VPERMPD"] = vector{permuteQuads, everything}, vector{permuteQuads, everything}
	vectors["VPERM2I128"], vectors["VPERM2F128"] = vector{permuteHalves, readsHalves}, vector{permuteHalves, readsHalves}
	vectors["VBLENDPS"], vectors["VPBLENDD"] = vector{do: blendLanes}, vector{do: blendLanes}
}

// shuffleLanes moves lanes within halves.
func shuffleLanes(t *translator, o []operand.Op) { shuffleTwo(t, []operand.Op{o[0], o[1], o[1], o[2]}) }

// shuffleTwo takes two lanes of a and two of b.
func shuffleTwo(t *translator, o []operand.Op) {
	byHalves(func(t *translator, d, a, b V) {
		picks := make([]source, 4)
		for i := range picks {
			picks[i] = source{[2]V{a, b}[i/2], number(o[0]) >> (2 * i) & 3}
		}
		t.permute(2, d, picks)
	}).do(t, o[1:])
}

// whole are the picks of a register as it is.
func whole(size int, v V) []source {
	picks := make([]source, 16>>size)
	for i := range picks {
		picks[i] = source{v, i}
	}
	return picks
}

// A start is an instruction that moves lanes, and what it gives.
type start struct {
	do    func(to V)
	picks []source
}

// starts returns the instructions that move lanes of these picks, of 16 bytes.
func (t *translator) starts(size int, picks []source) (all []start) {
	n := len(picks)
	add := func(do func(to V), of func(i int) source) {
		s := start{do, make([]source, n)}
		for i := range picks {
			s.picks[i] = of(i)
		}
		all = append(all, s)
	}
	add(func(to V) { t.fill(to, 0) }, func(int) source { return source{-1, 0} })
	for _, x := range registersOf(picks) {
		add(func(to V) { t.move(to, x) }, func(i int) source { return source{x, i} })
		for k := range n {
			add(func(to V) { t.spread(size, to, x, k) }, func(int) source { return source{x, k} })
		}
		if size < 3 {
			last := 8>>size - 1
			add(func(to V) { t.op("REV64", size, to, x) }, func(i int) source { return source{x, i ^ last} })
		}
		for _, y := range registersOf(picks) {
			xy := [2]V{x, y}
			for k := 1; k < n; k++ {
				add(func(to V) { t.extract(to, x, y, k<<size) }, func(i int) source { return source{xy[(i+k)/n], (i + k) % n} })
			}
			for h := range 2 {
				part := fmt.Sprint(h + 1)
				add(func(to V) { t.op("ZIP"+part, size, to, x, y) }, func(i int) source { return source{xy[i%2], h*n/2 + i/2} })
				add(func(to V) { t.op("UZP"+part, size, to, x, y) }, func(i int) source { return source{xy[i/(n/2)], i%(n/2)*2 + h} })
				add(func(to V) { t.op("TRN"+part, size, to, x, y) }, func(i int) source { return source{xy[i%2], i&^1 + h} })
			}
		}
	}
	return all
}

// permute moves lanes to a register: by the instruction that has most of them right, and then lane by lane.
func (t *translator) permute(size int, d V, picks []source) {
	for size < 3 {
		wider, ok := widerPicks(picks)
		if !ok {
			break
		}
		size, picks = size+1, wider
	}
	var best start
	var rest []int // lanes that are wrong
	least := len(picks) + 2
	for _, s := range t.starts(size, picks) {
		var wrong []int
		for i, p := range picks {
			if s.picks[i] != p {
				wrong = append(wrong, i)
			}
		}
		cost := len(wrong) + 1
		if isWhole(s.picks, d) {
			cost-- // it is there already
		}
		if cost < least {
			best, rest, least = s, wrong, cost
		}
	}
	var later []V
	for _, i := range rest {
		later = append(later, picks[i].reg)
	}
	if len(rest) == 1 && isWhole(best.picks, d) {
		later = nil // nothing is read after it is written
	}
	t.into(d, func(to V) {
		best.do(to)
		for _, i := range rest {
			t.insert(size, to, i, picks[i].reg, picks[i].lane)
		}
	}, later...)
}

// isWhole reports whether the picks are a register as it is.
func isWhole(picks []source, v V) bool {
	for i, p := range picks {
		if p != (source{v, i}) {
			return false
		}
	}
	return true
}

// widerPicks returns the picks as pairs of lanes, if all are.
func widerPicks(picks []source) (wider []source, ok bool) {
	for i := 0; i < len(picks); i += 2 {
		a, b := picks[i], picks[i+1]
		if a.reg != b.reg || a.reg >= 0 && (a.lane%2 != 0 || b.lane != a.lane+1) {
			return nil, false
		}
		wider = append(wider, source{a.reg, a.lane / 2})
	}
	return wider, true
}

func registersOf(picks []source) (all []V) {
	for _, p := range picks {
		if p.reg >= 0 && !slices.Contains(all, p.reg) {
			all = append(all, p.reg)
		}
	}
	return all
}

// permuteBoth does both halves of a register, either of which may be what the other one is made of.
func (t *translator) permuteBoth(size int, d vec, halves [2][]source) {
	first := 0
	if slices.Contains(registersOf(halves[1]), d.half(0)) {
		first = 1 // the lower half may only be written afterwards
	}
	last := 1 - first
	switch {
	case !t.need(d, last):
		if t.need(d, first) {
			t.permute(size, d.half(first), halves[first])
		}
	case !t.need(d, first):
		t.permute(size, d.half(last), halves[last])
	default:
		t.into(d.half(first), func(to V) {
			t.permute(size, to, halves[first])
			t.permute(size, d.half(last), halves[last])
		}, registersOf(halves[last])...)
	}
}

func blendLanes(t *translator, o []operand.Op) {
	d, _ := vectorOf(o[3])
	b, a := t.pair(o[1], d, d.wide), t.pair(o[2], d, d.wide)
	t.eachHalf(func(half int) {
		picks := whole(2, a[half])
		for i := range picks {
			if number(o[0])>>(4*half+i)&1 != 0 {
				picks[i].reg = b[half]
			}
		}
		t.permute(2, d.half(half), picks)
	})
}

func permuteQuads(t *translator, o []operand.Op) {
	d, _ := vectorOf(o[2])
	after := t.after
	t.after |= d.all() // both halves are loaded
	from := t.pair(o[1], d, true)
	t.after = after
	var halves [2][]source
	for i := range 4 {
		k := number(o[0]) >> (2 * i) & 3
		halves[i/2] = append(halves[i/2], source{from[k/2], k % 2})
	}
	t.permuteBoth(3, d, halves)
}

func permuteHalves(t *translator, o []operand.Op) {
	d, _ := vectorOf(o[3])
	if _, ok := vectorOf(o[1]); !ok {
		panic("an operand is in memory")
	}
	b, a := t.pair(o[1], d, true), t.pair(o[2], d, true)
	var halves [2][]source
	for i := range 2 {
		k := number(o[0]) >> (4 * i)
		from := [4]V{a[0], a[1], b[0], b[1]}[k&3]
		if k&8 != 0 {
			from = -1
		}
		halves[i] = []source{{from, 0}, {from, 1}}
	}
	t.permuteBoth(3, d, halves)
}

func readsHalves(in *ir.Instruction, at int, wanted parts) (reads parts) {
	for i := range 2 {
		k := number(in.Operands[0]) >> (4 * i)
		if wanted&[2]parts{low | middle, upper}[i] != 0 && k&8 == 0 && 2-k>>1&1 == at {
			reads |= [2]parts{low | middle, upper}[k&1]
		}
	}
	return reads
}

// byteIndex returns a register with the indices of bytes for a register with those of double words, of which only the lowest bits count.
func (t *translator) byteIndex(index V, most int) V {
	return t.keep(fmt.Sprint("bytes", most), index, func(v V) {
		lowest := t.keep(fmt.Sprint("index", most), -1, func(v V) { t.fillLanes(v, most, 0) })
		t.op("AND", 0, v, index, lowest)
		t.op("MUL", 2, v, v, t.keep("4 bytes", -1, func(v V) { t.fill(v, 4) }))
		t.op("ADD", 2, v, v, t.keep("0 to 3", -1, func(v V) {
			t.print("MOVD $0x03020100, %s", value)
			t.wrote(v)
			t.print("VDUP %s, V%d.S4", value, v)
		}))
	})
}

func permuteLanes(t *translator, o []operand.Op) {
	if _, ok := o[0].(operand.Constant); ok {
		shuffleLanes(t, o)
		return
	}
	byHalves(func(t *translator, d, a, b V) { t.lookup(d, t.byteIndex(b, 3), a, 1) }).do(t, o)
}

func permuteAll(t *translator, o []operand.Op) {
	from, ok := vectorOf(o[0])
	index, _ := vectorOf(o[1])
	d, _ := vectorOf(o[2])
	if !ok {
		panic("the lanes are in memory")
	}
	var at [2]V
	t.eachHalf(func(i int) { at[i] = t.byteIndex(index.half(i), 7) })
	switch {
	case !t.need(d, 1):
		t.eachHalf(func(i int) { t.lookup(d.half(i), at[i], from.half(0), 2) })
	case !t.need(d, 0):
		t.lookup(d.half(1), at[1], from.half(0), 2)
	default:
		t.into(d.half(0), func(to V) {
			t.lookup(to, at[0], from.half(0), 2)
			t.lookup(d.half(1), at[1], from.half(0), 2)
		}, from.half(0))
	}
}

func readsIndexed(in *ir.Instruction, i int, wanted parts) parts {
	if i == 0 {
		return everything(in, i, wanted)
	}
	return halves(in, i, wanted)
}

func align(t *translator, o []operand.Op) {
	by := number(o[0])
	if by > 15 {
		panic("zeros are shifted in")
	}
	byHalves(func(t *translator, d, a, b V) { t.extract(d, b, a, by) }).do(t, o[1:])
}

// shuffleBytes clears the bits of indices that AVX ignores, unless a table in memory is known to have none: beyond 15, NEON gives 0.
func shuffleBytes(t *translator, o []operand.Op) {
	clean := false
	if m, ok := o[0].(operand.Mem); ok && m.Index == nil {
		bytes := t.data[m.Symbol.String()]
		clean = bytes != nil && !slices.ContainsFunc(bytes[m.Disp:min(m.Disp+lane, len(bytes))], func(b byte) bool { return b > 15 && b < 128 })
	}
	byHalves(func(t *translator, d, a, b V) {
		if clean {
			t.lookup(d, b, a, 1)
			return
		}
		index := d
		if d == a {
			index = t.temp()
		}
		if t.full("8f") {
			t.move(index, b)
			t.clear(index, 0x70)
		} else {
			t.op("AND", 0, index, b, t.keep("8f", -1, func(v V) { t.fill(v, 0x8f) }))
		}
		t.lookup(d, index, a, 1)
	}).do(t, o)
}

func halfOf(imm operand.Op) (int, parts) {
	if number(imm)&1 == 0 {
		return 0, low | middle
	}
	return 1, upper
}

func extractHalf(t *translator, o []operand.Op) {
	from, _ := vectorOf(o[1])
	i, _ := halfOf(o[0])
	if m, ok := o[2].(operand.Mem); ok {
		t.print("FMOVQ F%d, %s", from.half(i), t.memory(m))
		return
	}
	d, _ := vectorOf(o[2])
	t.eachHalf(func(int) { t.move(d.half(0), from.half(i)) })
}

func readsHalf(in *ir.Instruction, _ int, wanted parts) parts {
	_, p := halfOf(in.Operands[0])
	if wanted&(low|middle) == 0 {
		return 0
	}
	return p
}

func insertHalf(t *translator, o []operand.Op) {
	i, _ := halfOf(o[0])
	a, _ := vectorOf(o[2])
	d, _ := vectorOf(o[3])
	put := func() {
		to := d.half(i)
		switch from := o[1].(type) {
		case operand.Mem:
			t.load(from, []V{to})
		default:
			v, _ := vectorOf(from)
			t.move(to, v.half(0))
		}
	}
	if x, ok := vectorOf(o[1]); ok && x.n == d.n && i == 1 { // the lower half of a takes the place of what is inserted
		put()
		t.move(d.half(0), a.half(0))
		return
	}
	t.move(d.half(1-i), a.half(1-i))
	put()
}

func readsInsert(in *ir.Instruction, i int, wanted parts) parts {
	_, p := halfOf(in.Operands[0])
	if i == 1 {
		if wanted&p == 0 {
			return 0
		}
		return low | middle
	}
	return halves(in, i, wanted) &^ p
}

func broadcastHalf(t *translator, o []operand.Op) {
	d, _ := vectorOf(o[1])
	if !t.need(d, 0) && !t.need(d, 1) {
		return
	}
	t.load(o[0].(operand.Mem), []V{d.half(0)})
	if t.need(d, 1) {
		t.move(d.half(1), d.half(0))
	}
}

// broadcastLane fills a register with the lowest lane of another, or with what is in memory.
func broadcastLane(size int) translation {
	return func(t *translator, o []operand.Op) {
		d, _ := vectorOf(o[1])
		if !t.need(d, 0) && !t.need(d, 1) {
			return
		}
		to := d.half(0)
		from, ok := vectorOf(o[0])
		switch {
		case ok:
			if d.wide && t.need(d, 1) { // the upper one first: the lower one may be the source
				t.spread(size, d.half(1), from.half(0), 0)
			}
			if t.need(d, 0) {
				t.spread(size, to, from.half(0), 0)
			}
			return
		case size < 2:
			m := o[0].(operand.Mem)
			at := strings.Trim(t.memory(m), "()")
			if m.Disp != 0 || m.Base == reg.StackPointer {
				at = address
				t.addressOf(m, at)
			}
			t.wrote(to)
			t.print("VLD1R (%s), [V%d.%s]", at, to, goNames[size])
		default:
			t.wrote(to)
			t.print("%s %s, F%d", [4]string{2: "FMOVS", 3: "FMOVD"}[size], t.memory(o[0].(operand.Mem)), to)
			if d.wide && t.need(d, 1) {
				t.spread(size, d.half(1), to, 0)
			}
			t.spread(size, to, to, 0)
			return
		}
		if d.wide && t.need(d, 1) {
			t.move(d.half(1), to)
		}
	}
}

func broadcasts(_ *ir.Instruction, _ int, wanted parts) parts {
	if wanted == 0 {
		return 0
	}
	return low
}

// widen makes lanes of a size twice as wide, once or twice.
func widen(name string, size, steps int) vector {
	return vector{
		do: func(t *translator, o []operand.Op) {
			d, _ := vectorOf(o[1])
			if !t.need(d, 0) && !t.need(d, 1) {
				return
			}
			from := d.half(0)
			if m, ok := o[0].(operand.Mem); ok {
				bytes := 16 >> steps
				if d.wide {
					bytes *= 2
				}
				t.wrote(from)
				t.print("%s %s, F%d", map[int]string{4: "FMOVS", 8: "FMOVD", 16: "FMOVQ"}[bytes], t.memory(m), from)
			} else {
				v, _ := vectorOf(o[0])
				from = v.half(0)
			}
			if steps == 2 {
				t.shift(name, size, d.half(0), from, 0)
				from = d.half(0)
			}
			if d.wide && t.need(d, 1) {
				t.shift(name+"2", size+steps-1, d.half(1), from, 0)
			}
			t.shift(name, size+steps-1, d.half(0), from, 0)
		},
		reads: func(_ *ir.Instruction, _ int, wanted parts) parts {
			if wanted == 0 {
				return 0
			}
			return low | middle
		},
	}
}

// bitOfByte keeps a bit for each byte of eight, twice.
func (t *translator) bitOfByte() V {
	return t.keep("bits", -1, func(v V) {
		t.print("MOVD $0x8040201008040201, %s", value)
		t.wrote(v)
		t.print("VDUP %s, V%d.D2", value, v)
	})
}

func byteSigns(t *translator, o []operand.Op) {
	from, _ := vectorOf(o[0])
	bits, v := t.bitOfByte(), [2]V{t.temp(), 0}
	v[1] = v[0]
	if from.wide {
		v[1] = t.temp()
	}
	for i := range 2 {
		if i == 0 || from.wide {
			t.op("CMLT", 0, v[i], from.half(i))
			t.op("AND", 0, v[i], v[i], bits)
		}
	}
	t.op("ADDP", 0, v[0], v[0], v[1])
	t.op("ADDP", 0, v[0], v[0], v[0])
	t.op("ADDP", 0, v[0], v[0], v[0])
	if from.wide {
		t.print("FMOVS F%d, %s", v[0], general(o[1]))
		return
	}
	t.print("VMOV V%d.H[0], %s", v[0], general(o[1]))
}

func floatSigns(t *translator, o []operand.Op) {
	from, _ := vectorOf(o[0])
	bits, v, next := t.bitOfByte(), t.temp(), from.half(0)
	if from.wide {
		next = from.half(1)
	}
	t.op("UZP2", 1, v, from.half(0), next)
	t.op("UZP2", 0, v, v, v)
	t.op("CMLT", 0, v, v)
	t.op("AND", 0, v, v, bits)
	t.word(0x0e31b800|uint32(v)<<5|uint32(v), fmt.Sprintf("ADDV B%d, V%d.8B", v, v))
	t.print("VMOV V%d.B[0], %s", v, general(o[1]))
	if !from.wide {
		t.print("AND $15, %s, %s", general(o[1]), general(o[1]))
	}
}
