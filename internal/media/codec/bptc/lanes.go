package bptc

import (
	"math"
	mathbits "math/bits"
	"sync"
)

// fill takes the pixels of a block in for estimateTwo and estimateThree: the moments of each, and behind them those of all.
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

// pixelMoments are those of 16 pixels and of all of them, in the order of the struct. Sums of 8-bit products are whole numbers below
// 1<<24, so that floats hold them exactly, in whatever order they are summed.
type pixelMoments [17][16]float32

func (m *moments) floats() [16]float32 {
	return [16]float32{float32(m.r), float32(m.g), float32(m.b), float32(m.rr), float32(m.gg), float32(m.bb),
		float32(m.rg), float32(m.rb), float32(m.gb), float32(m.a), float32(m.aa), float32(m.ra), float32(m.ga), float32(m.ba)}
}

// groups2 and groups3 are what estimateTwo and estimateThree know of eight partitions each.
type (
	group2 struct {
		second [16][8]uint32
		parts  [2][8]uint32 // 1 over the pixels of each subset, the bits of a float32
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
