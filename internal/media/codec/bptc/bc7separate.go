package bptc

// trySeparate tries a mode with separate indices for one channel: alpha, or the channel swapped with it.
func (e *encoder7) trySeparate(mode, rotation, selector uint8) {
	pix := e.pix
	if rotation > 0 {
		for i := range pix {
			p := &pix[i]
			p[rotation-1], p[3] = p[3], p[rotation-1]
		}
	}
	m := &modes7[mode&7]
	colourBits, alphaBits := m.indexBits, m.index2Bits
	if selector == 1 {
		colourBits, alphaBits = alphaBits, colourBits
	}
	g := group{lanes: e.lanesOf(mode)}
	var c, a fitted
	g.gather(&pix, 0, 0, false)
	g.fit(m, colourBits, evenOnly, e.rounds, e.err, &c)
	if c.err >= e.err {
		return
	}
	g.sum = [4]int32{}
	for i := range pix {
		g.pix[i] = [4]int32{3: pix[i][3]}
		g.sum[3] += pix[i][3]
	}
	g.pack()
	g.fit(m, alphaBits, evenOnly, e.rounds, e.err-c.err, &a)
	if c.err+a.err >= e.err {
		return
	}
	e.err = c.err + a.err
	e.best = block7{mode: mode, rotation: rotation, selector: selector, index: c.index, index2: a.index}
	if selector == 1 {
		e.best.index, e.best.index2 = a.index, c.index
	}
	for i := range 2 {
		e.best.ends[i] = c.stored[i]
		e.best.ends[i][3] = a.stored[i][3]
	}
}

// solid encodes a block of one colour exactly: in mode 5 every value is a third of the way between two values of 7 bits.
func (e *encoder7) solid() {
	e.err = 0
	e.best = block7{mode: 5}
	p := &e.pix[0]
	for c := range 3 {
		e.best.ends[0][c], e.best.ends[1][c] = third(p[c])
	}
	e.best.ends[0][3], e.best.ends[1][3] = uint8(p[3]), uint8(p[3])
	for i := range e.best.index {
		e.best.index[i] = 1
	}
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
