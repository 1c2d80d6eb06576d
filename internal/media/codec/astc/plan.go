package astc

import "sync"

// plan has the tables of one footprint for the encoder.
type plan struct {
	*table
	across, down [12][12]float32 // cosines
	shapes       []shape
	patterns     [4]patterns     // by number of partitions
	sample       []int           // texels, at most 64
	columns      [12][12]float32 // across, by column and wave
	shares       []float32       // of each shape
	sizes        [][2]uint8      // of their grids
}

// maxShapes is the number of grid sizes from 2x2 to 12x12.
const maxShapes = 11 * 11

// shape is a grid by its places, with the modes that use it.
type shape struct {
	*grid
	whole bool  // each place is one texel
	first []int // for each place, the index of its first texel in reach; one more marks the end
	reach []reach
	modes [2][16]choice // for one plane, and for two, by range of weights
	share float32       // mean ratio of a texel's squared error to that of its places

	dense     *matrices
	infill16  []uint8 // for infillLanes
	registers int
}

// reach is a texel that a place of a grid affects, and the place's part of the texel's weight.
type reach struct {
	texel int
	part  float32
}

// choice is a mode of a shape; its size is 0 if there is none.
type choice struct {
	code    uint16 // its eleven bits
	weights uint8  // range
	size    int    // bits of all weights
}

var plans = func() (p [len(footprints)]func() *plan) {
	for i, f := range footprints {
		p[i] = sync.OnceValue(func() *plan { return newPlan(f.table()) })
	}
	return p
}()

func newPlan(t *table) *plan {
	p := &plan{table: t, across: waves(t.Width), down: waves(t.Height)}
	of := map[[2]int]int{}
	seen := map[mode]bool{}
	for code := range uint32(1 << 11) {
		m, ok := parseMode(code)
		if !ok || m.width > t.Width || m.height > t.Height || seen[m] || code&0x1FF == 0x1FC {
			continue
		}
		seen[m] = true
		key := [2]int{m.width, m.height}
		i, ok := of[key]
		if !ok {
			i = len(p.shapes)
			of[key] = i
			p.shapes = append(p.shapes, newShape(t, m.width, m.height))
		}
		s := &p.shapes[i]
		s.modes[m.planes-1][m.weights] = choice{uint16(code), m.weights, sequenceSize(m.count(), m.weights)}
	}
	for i := range p.shapes {
		s := &p.shapes[i]
		p.shares = append(p.shares, s.share)
		p.sizes = append(p.sizes, [2]uint8{uint8(s.width), uint8(s.height)})
	}
	for k := range p.across {
		for i := range p.across[k] {
			p.columns[i][k] = p.across[k][i]
		}
	}
	n := min(p.texels, 64)
	for i := range n {
		p.sample = append(p.sample, i*p.texels/n)
	}
	p.patterns = [4]patterns{2: p.newPatterns(2), 3: p.newPatterns(3)}
	return p
}

func newShape(t *table, width, height int) shape {
	s := shape{grid: t.grids[width][height], whole: width == t.Width && height == t.Height, dense: new(matrices)}
	for place := range width * height {
		s.first = append(s.first, len(s.reach))
		for i, sp := range s.spread {
			for k, part := range sp.part {
				if part != 0 && int(sp.place[k]) == place {
					share := float32(part) / 16
					s.reach = append(s.reach, reach{i, share})
					s.share += float32(share*share) / float32(t.texels)
				}
			}
		}
	}
	s.first = append(s.first, len(s.reach))
	s.infill16, s.registers = s.infillTable()
	return s
}

// patterns are the distinct patterns of two or three partitions.
type patterns struct {
	count int
	seeds []int
	flat  []int       // of the patterns of three, those without a sample in partition 2
	masks [][2]uint64 // by pattern: bit i of the first mask is set if sample i is in partition 1, of the second for partition 2
}

// parts fills out with the partition of each texel of a pattern.
func (list *patterns) parts(out []uint8, at, count, width int) {
	if len(out) > 64 {
		partitionOf(out, list.seeds[at], count, width)
		return
	}
	second, third := list.masks[at][0], list.masks[at][1]
	for i := range out {
		out[i] = uint8(second>>i&1) | uint8(third>>i&1)<<1
	}
}

// newPatterns lists each distinct pattern once. It skips seeds that repeat a pattern, repeat it with partitions exchanged,
// or leave a partition empty.
func (p *plan) newPatterns(count int) (list patterns) {
	list.count = count
	seen := map[[5]uint64]bool{}
	var part [maxTexels]uint8
	for seed := range 1024 {
		partitionOf(part[:p.texels], seed, count, p.Width)
		var key [5]uint64
		names, named := [4]uint8{9, 9, 9, 9}, uint8(0) // numbered in order of first appearance
		for i, q := range part[:p.texels] {
			if names[q] == 9 {
				names[q] = named
				named++
			}
			key[i/32] |= uint64(names[q]) << (i % 32 * 2)
		}
		var masks [2]uint64
		for k, i := range p.sample {
			if q := part[i]; q > 0 {
				masks[q-1] |= 1 << k
			}
		}
		if named == uint8(count) && !seen[key] {
			seen[key] = true
			if count == 3 && masks[1] == 0 {
				list.flat = append(list.flat, len(list.seeds))
			}
			list.seeds, list.masks = append(list.seeds, seed), append(list.masks, masks)
		}
	}
	for len(list.masks)%4 != 0 {
		list.masks = append(list.masks, [2]uint64{})
	}
	return list
}

// levels map wanted endpoint values to the values of a range.
type levels struct {
	below, above, near [256]uint8   // the nearest value at most, at least, and anywhere
	baseLow, baseHigh  [128]uint8   // the nearest value whose upper seven bits are at most, at least the index
	offset             [2][64]uint8 // by upper bit of the value: the value whose offset is nearest to the index less 32
	code               [256]uint8   // the stored form of a value
}

// levelsOf has the levels of each range of colours.
var levelsOf = sync.OnceValue(func() *[len(ranges)]levels {
	t := new([len(ranges)]levels)
	for r := minColor; r < len(ranges); r++ {
		l := &t[r]
		values := colorValues[r][:ranges[r].levels]
		for code, v := range values {
			l.code[v] = uint8(code)
		}
		nearest := func(want, from, to int, is func(v int) (int, bool)) uint8 {
			best, distance := -1, 1<<10
			for _, v := range values {
				got, ok := is(int(v))
				if d := max(got-want, want-got); ok && got >= from && got <= to && d < distance {
					best, distance = int(v), d
				}
			}
			return uint8(best)
		}
		value := func(v int) (int, bool) { return v, true }
		half := func(v int) (int, bool) { return v >> 1, true }
		for i := range 256 {
			l.below[i], l.above[i], l.near[i] = nearest(i, 0, i, value), nearest(i, i, 255, value), nearest(i, 0, 255, value)
		}
		for i := range 128 {
			l.baseLow[i], l.baseHigh[i] = nearest(i, 0, i, half), nearest(i, i, 127, half)
		}
		for i := range 64 {
			for top := range 2 {
				l.offset[top][i] = nearest(i-32, -32, 31, func(v int) (int, bool) {
					_, offset := signedOffset(0, v)
					return offset, v>>7 == top
				})
			}
		}
	}
	return t
})

// weightLevels has, for each range of weights, the value nearest to each of 0..64 and its stored form.
var weightLevels = sync.OnceValue(func() *[weightRanges]struct{ near, code [65]uint8 } {
	t := new([weightRanges]struct{ near, code [65]uint8 })
	for r := range t {
		values := weightValues[r][:ranges[r].levels]
		for code, v := range values {
			t[r].code[v] = uint8(code)
		}
		for i := range t[r].near {
			distance := 1 << 10
			for _, v := range values {
				if d := max(int(v)-i, i-int(v)); d < distance {
					t[r].near[i], distance = v, d
				}
			}
		}
	}
	return t
})

// stepSquares has the squared distance of 0..128 from the nearest value of each range of weights, in units where 128 is 1.
var stepSquares = sync.OnceValue(func() *[256][16]float32 {
	t := new([256][16]float32)
	for i := range 129 {
		for r := range weightRanges {
			t[i][r] = 1
			for _, v := range weightValues[r][:ranges[r].levels] {
				d := float32(i-2*int(v)) / 128
				t[i][r] = min(t[i][r], d*d)
			}
		}
	}
	return t
})

// colorNoise has the squared error that the steps of colour ranges add to a value: a twelfth of a step's square.
var colorNoise = sync.OnceValue(func() *[19][112]float32 {
	t := new([19][112]float32)
	for count := range t {
		for size, r := range colorRanges()[count] {
			step := 255 / float32(ranges[r].levels-1)
			if t[count][size] = step * step / 12; r == 0 {
				t[count][size] = never
			}
		}
	}
	return t
})

// colorRanges is a table of colorRange, by count of values and number of bits.
var colorRanges = sync.OnceValue(func() *[19][112]uint8 {
	t := new([19][112]uint8)
	for count := range t {
		for size := range t[count] {
			if count > 0 {
				t[count][size] = colorRange(count, size)
			}
		}
	}
	return t
})

// noiseTable has, for each shape and each range of weights, the squared error that colour steps add to a value. It is never
// where there is no such mode, or no room for the colours.
type noiseTable [][16]float32

// noiseOf returns the table for a layout and a way.
func (e *encoder) noiseOf(l *layout, w *way) noiseTable {
	own := 0
	if w.extra > 0 {
		own = 1
	}
	t := &e.noises[l.planes-1][l.partitions&3][w.values][own]
	if *t != nil {
		return *t
	}
	*t = make(noiseTable, len(e.shapes))
	for i := range e.shapes {
		for k, m := range &e.shapes[i].modes[l.planes-1] {
			(*t)[i][k] = never
			if room := l.size() - m.size - w.extra; m.size > 0 && room >= 0 {
				(*t)[i][k] = colorNoise()[w.values][room]
			}
		}
	}
	return *t
}
