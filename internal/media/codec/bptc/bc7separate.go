package bptc

// separate stores the pixels of a part of an attempt in a mode with separate indices for one channel: the colours, or that
// channel, which is alpha or swapped with it. It returns the bits of their indices.
func (e *encoder7) separate(g *group, a *attempt, part int) (bits uint8) {
	pix := e.pix
	for i := range pix {
		p := &pix[i]
		if a.rotation > 0 {
			p[a.rotation-1], p[3] = p[3], p[a.rotation-1]
		}
		if part == 1 {
			p[0], p[1], p[2] = 0, 0, 0
		}
	}
	g.gather(&pix, 0, 0, part == 1)
	m := &modes7[a.mode&7]
	if part == int(a.selector) {
		return m.indexBits
	}
	return m.index2Bits
}

// solid returns a block of one colour, which is exact: in mode 5 every value is a third of the way between two values of 7
// bits.
func (e *encoder7) solid() block7 {
	b := block7{mode: 5}
	p := &e.pix[0]
	for c := range 3 {
		b.ends[0][c], b.ends[1][c] = third(p[c])
	}
	b.ends[0][3], b.ends[1][3] = uint8(p[3]), uint8(p[3])
	for i := range b.index {
		b.index[i] = 1
	}
	return b
}

// third returns two values of 7 bits for which v is a third of the way between them.
func third(v int32) (low, high uint8) {
	m := &modes7[5]
	for from := max(v>>1-1, 0); ; from++ {
		for to := from; to <= min(from+2, 127); to++ {
			if int32(lerp(m.expand(0, from, 0), m.expand(0, to, 0), weights[2][1])) == v {
				return uint8(from), uint8(to)
			}
		}
	}
}
