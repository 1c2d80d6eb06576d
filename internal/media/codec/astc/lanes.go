package astc

import (
	"math"
	"math/bits"
)

// soa has the texels of a block by channel, for vector code. Values after the last texel are 0.
type soa struct {
	words    [4][maxTexels]int16
	channels [4][maxTexels]float32
	use      [4][8]uint32 // all ones for the channels of use
	alone    [4][8]uint32 // use for all channels, then use without each of the channels
}

// loadLanes is loadTexels in vector code. Bytes after the last texel are 0.
func (e *encoder) loadLanes(texels *[4 * maxTexels]byte) {
	loadLanes(&texels[0], e.texels, &e.texel[0][0], &e.value[0][0], &e.moments[0].x[0], &e.all.x[0])
	splitLanes(&texels[0], (e.texels+7)/8, &e.soa.words[0][0], &e.soa.channels[0][0])
	for c, use := range e.use {
		for i := range 8 {
			e.soa.use[c][i], e.soa.alone[c][i] = 0, 0
			if use {
				e.soa.use[c][i] = math.MaxUint32
				if i != 1+c {
					e.soa.alone[c][i] = math.MaxUint32
				}
			}
		}
	}
}

// directAll finds the direction of all texels, and after it the directions without each of the channels.
func (e *encoder) directAll() {
	if e.lanes {
		for i := range 5 {
			e.parts[i] = e.all
		}
		directLanes(&e.parts[0].x[0], &e.soa.alone, 1, &e.directions[0].axis[0])
		return
	}
	e.directions[0] = e.all.direction(&e.use)
	for c := range 4 {
		use := e.use
		use[c] = false
		e.directions[1+c] = e.all.direction(&use)
	}
}

// direct finds the directions of the first n of e.parts.
func (e *encoder) direct(n int) {
	if e.lanes {
		directLanes(&e.parts[0].x[0], &e.soa.use, (n+7)/8, &e.directions[0].axis[0])
		return
	}
	for i := range n {
		e.directions[i] = e.parts[i].direction(&e.use)
	}
}

// infillTable returns the table of a grid for infillLanes, and the number of registers of weights.
func (g *grid) infillTable() (table []uint8, registers int) {
	registers = (g.width*g.height + 15) / 16
	for first := 0; first < len(g.spread); first += 16 {
		for half := 0; half < 4; half += 2 {
			places, parts := make([]uint8, 32*registers), make([]uint8, 32)
			for i := range 32 {
				for t := range registers {
					places[32*t+i] = 0x80
				}
				if at := first + i/2; at < len(g.spread) {
					sp := &g.spread[at]
					place := int(sp.place[half+i%2])
					places[place/16*32+i] = uint8(place % 16)
					parts[i] = sp.part[half+i%2]
				}
			}
			table = append(append(table, places...), parts...)
		}
	}
	return table, registers
}

// resembleLanes is resemble in vector code.
func (e *encoder) resembleLanes(out []int, list *patterns, clusters *[2]uint64) {
	n := len(list.seeds)
	groups := (n + 31) / 32
	if list.count == 2 {
		resemble2Lanes(&list.masks[0], clusters, len(e.sample), (n+3)/4, &e.wrong[0])
	} else {
		resemble3Lanes(&list.masks[0], clusters, len(e.sample), (n+3)/4, &e.wrong[0])
		for _, i := range list.flat {
			e.wrong[i] = wrongOf(&list.masks[i], clusters, len(e.sample))
		}
	}
	for i := n; i < 32*groups; i++ {
		e.wrong[i] = math.MaxUint8
	}
	var below, same [32]uint32
	low, high := 0, len(e.sample) // the least limit with enough patterns at or below it
	for low < high {
		middle := (low + high) / 2
		if pickLanes(&e.wrong[0], middle, groups, &below[0], &same[0]) >= len(out) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	pickLanes(&e.wrong[0], low, groups, &below[0], &same[0])
	last := len(out) // how many of the patterns at the limit still fit
	for _, b := range below[:groups] {
		last -= bits.OnesCount32(b)
	}
	k := 0
	for i, b := range below[:groups] {
		for m := b | same[i]; m != 0; m &= m - 1 {
			if bit := m & -m; bit&b == 0 {
				if last == 0 {
					continue
				}
				last--
			}
			out[k] = 32*i + bits.TrailingZeros32(m)
			k++
		}
	}
}

// projectLanes projects the texels on axes, and finds the ends of each partition.
func (e *encoder) projectLanes(l *layout, plane int, low, high *[4]float32) {
	var axes [4][8]float32
	for p := range l.partitions {
		for c, v := range &l.lines[plane][p].axis {
			axes[c][p] = v
		}
	}
	groups, ideal := (e.texels+7)/8, &l.ideal[plane][0]
	projectLanes(&e.soa.channels[0][0], &l.part[0], &axes, groups, ideal)
	for p := range l.partitions {
		extremeLanes(ideal, &l.part[0], p, groups, &low[p&3], &high[p&3])
	}
}

// clusterLanes is cluster without the choice of centers, for at most 64 texels.
func (e *encoder) clusterLanes(centers *[3][4]float32, count int) [2]uint64 {
	all := uint64(math.MaxUint64) >> (64 - e.texels)
	for round := 0; ; round++ {
		var masks [2]uint64
		nearLanes(&e.soa.channels[0][0], centers, count, (e.texels+7)/8, &masks)
		masks[0] &= all
		masks[1] &= all
		if round == 2 {
			return masks
		}
		s := [3]sums{e.all}
		for p := 1; p < count; p++ {
			sumLanes(&e.moments[0].x[0], masks[p-1], &s[p].x[0])
			s[0] = s[0].minus(&s[p])
		}
		for p := range count {
			for c := range 4 {
				centers[p][c] = float32(s[p].x[c]) / float32(max(s[p].n, 1))
			}
		}
	}
}
