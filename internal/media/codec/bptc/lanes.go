package bptc

import (
	"math"
	mathbits "math/bits"
	"sync"
)

// fill stores the moments of each pixel of a block for estimateTwo and estimateThree, followed by those of all pixels.
func (p *pixelMoments) fill(pix *[16][4]int32) (all moments) {
	for i := range pix {
		r, g, b, a := pix[i][0], pix[i][1], pix[i][2], pix[i][3]
		one := moments{r, g, b, r * r, g * g, b * b, r * g, r * b, g * b, a, a * a, r * a, g * a, b * a}
		p[i] = one.floats()
		all.add(&one, true)
	}
	p[16] = all.floats()
	return all
}

// colours is fill for pixels that all have the same alpha, which estimates leave out.
func (p *pixelMoments) colours(pix *[16][4]int32) moments {
	var all [9]float32
	for i := range pix {
		r, g, b := float32(pix[i][0]), float32(pix[i][1]), float32(pix[i][2])
		one := [9]float32{r, g, b, r * r, g * g, b * b, r * g, r * b, g * b}
		*(*[9]float32)(p[i][:]) = one
		for j := range all {
			all[j] += one[j]
		}
	}
	*(*[9]float32)(p[16][:]) = all
	a := pix[0][3]
	m := moments{r: int32(all[0]), g: int32(all[1]), b: int32(all[2]), rr: int32(all[3]), gg: int32(all[4]), bb: int32(all[5]),
		rg: int32(all[6]), rb: int32(all[7]), gb: int32(all[8]), a: 16 * a, aa: 16 * a * a}
	m.ra, m.ga, m.ba = a*m.r, a*m.g, a*m.b
	return m
}

// pixelMoments are the moments of 16 pixels and of all of them, in the order of the struct. Sums of 8-bit products are
// integers below 1<<24, so floats represent them exactly in any order of summation.
type pixelMoments [17][16]float32

func (m *moments) floats() [16]float32 {
	return [16]float32{float32(m.r), float32(m.g), float32(m.b), float32(m.rr), float32(m.gg), float32(m.bb),
		float32(m.rg), float32(m.rb), float32(m.gb), float32(m.a), float32(m.aa), float32(m.ra), float32(m.ga), float32(m.ba)}
}

// group2 and group3 have the constants of eight partitions for estimateTwo and estimateThree.
type (
	group2 struct {
		second [16][8]uint32
		parts  [2][8]uint32 // 1 divided by the number of pixels of each subset, as the bits of a float32
	}
	group3 struct {
		second, third [16][8]uint32
		parts         [3][8]uint32
	}
)

var groupTables = sync.OnceValue(func() *struct {
	two   [8]group2
	three [8]group3
} {
	t := new(struct {
		two   [8]group2
		three [8]group3
	})
	all := func(mask uint16, to *[16][8]uint32, at int) {
		for i := range to {
			to[i][at] = -uint32(mask >> i & 1)
		}
	}
	part := func(n int) uint32 { return math.Float32bits(inverses[n]) }
	for p := range 64 {
		two, three, at := &t.two[p/8], &t.three[p/8], p%8
		n := mathbits.OnesCount16(partitions2[p])
		all(partitions2[p], &two.second, at)
		two.parts[0][at], two.parts[1][at] = part(16-n), part(n)
		second, third := squeeze(partitions3[p]), squeeze(partitions3[p]>>1)
		n2, n3 := mathbits.OnesCount16(second), mathbits.OnesCount16(third)
		all(second, &three.second, at)
		all(third, &three.third, at)
		three.parts[0][at], three.parts[1][at], three.parts[2][at] = part(16-n2-n3), part(n2), part(n3)
	}
	return t
})

// packed has pixels as 16-bit words.
type packed [16][4]int16

// members are the pixels of a subset.
type members struct {
	n  int
	at [16]uint8
}

// allMembers has the members of each subset of each partition of one, two and three subsets.
var allMembers = sync.OnceValue(func() *[4][64][4]members {
	t := new([4][64][4]members)
	for subsets := 1; subsets <= 3; subsets++ {
		for p := range uint8(64) {
			of := subsetsOf(subsets, p)
			for i := range uint8(16) {
				m := &t[subsets][p][of>>(2*i)&3]
				m.at[m.n] = i
				m.n++
			}
		}
	}
	return t
})

// fill packs the pixels of a block, with their alpha or without.
func (p *packed) fill(pix *[16][4]int32, alpha int32) {
	for i := range pix {
		p[i] = [4]int16{int16(pix[i][0]), int16(pix[i][1]), int16(pix[i][2]), int16(pix[i][3] * alpha)}
	}
}

// take is gather for packed pixels. It leaves their sum to spanLanes.
func (g *group) take(from *packed, m *members) {
	g.n = m.n
	for i := range m.n & 31 {
		g.packed[i&15] = from[m.at[i&15]&15]
	}
}

// pack stores the pixels for assignLanes.
func (g *group) pack() {
	if g.lanes == nil {
		return
	}
	for i := range g.n & 31 {
		p, to := &g.pix[i&15], &g.packed[i&15]
		to[0], to[1], to[2], to[3] = int16(p[0]), int16(p[1]), int16(p[2]), int16(p[3])
	}
}

// assignMasks has the constants of assignLanes by number of pixels: all ones for existing pixels, as 16 double words and as
// 16 times four words, then the weights of four pixels, of eight.
var assignMasks = sync.OnceValue(func() *[32][8][8]uint32 {
	t := new([32][8][8]uint32)
	for n := range 17 {
		m := &t[n]
		for i := range n {
			m[i/8][i%8] = math.MaxUint32
			m[2+i/4][i%4*2], m[2+i/4][i%4*2+1] = math.MaxUint32, math.MaxUint32
		}
		for i := range uint32(8) {
			m[6][i], m[7][i] = i/2, 4+i/2
		}
	}
	return t
})

// modeLanes has the constants of a mode for roundLanes, for the four channels of both endpoints: the scale from 8 bits to
// the mode's bits, whether there is a parity, the greatest value without it, the shifts that widen a value to 8 bits, the
// shift back to the stored value, and all ones if the channel exists.
type modeLanes [7][8]uint32

var allModeLanes = sync.OnceValue(func() *[8]modeLanes {
	t := new([8]modeLanes)
	for i := range t {
		m := &modes7[i]
		for j := range 8 {
			bits := m.channelBits(j & 3)
			if bits == 0 {
				continue
			}
			width, step := bits, uint(0)
			if m.p != noParity {
				width, step = width+1, 1
			}
			t[i][0][j] = math.Float32bits(scales[width])
			t[i][1][j] = uint32(step)
			t[i][2][j] = (1<<width - 1) >> step
			t[i][3][j], t[i][4][j] = uint32(8-width), uint32(2*width-8)
			t[i][5][j] = uint32(8 - bits)
			t[i][6][j] = math.MaxUint32
		}
	}
	return t
})

// parityLanes are all ones for the channels of endpoints with parity 1, by the parities of both.
var parityLanes = [4][8]uint32{
	1: {math.MaxUint32, math.MaxUint32, math.MaxUint32, math.MaxUint32},
	2: {4: math.MaxUint32, math.MaxUint32, math.MaxUint32, math.MaxUint32},
	3: {
		math.MaxUint32, math.MaxUint32, math.MaxUint32, math.MaxUint32,
		math.MaxUint32, math.MaxUint32, math.MaxUint32, math.MaxUint32,
	},
}
