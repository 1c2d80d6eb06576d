package bptc

import "github.com/kiln-pipeline/kiln/internal/codec/block"

// encoder7 codes blocks one after another; it holds what it needs for one.
type encoder7 struct {
	pix  [16][4]int32
	best block7
	err  int32 // of best
}

func newEncoder7(q block.Quality) *encoder7 { return &encoder7{} }

func (e *encoder7) encode(pix *[64]byte, to *[16]byte) {
	for i := range e.pix {
		for c := range 4 {
			e.pix[i][c] = int32(pix[4*i+c])
		}
	}
	e.err = far
	e.try(6, 0, oddOnly, 2)
	e.best.orient()
	out := e.best.pack()
	out.store(to)
}

// try fits the subsets of a partition and keeps the block if it is better than the best so far.
func (e *encoder7) try(mode, partition, parities uint8, rounds int) {
	m := &modes7[mode&7]
	subsets := subsetsOf(int(m.subsets), partition)
	var g group
	var f [3]fitted
	err := int32(0)
	for s := range uint32(m.subsets) {
		e.gather(&g, subsets, s, m.alphaBits > 0 && parities == anyParity)
		g.fit(m, parities, rounds, &f[s])
		if err += f[s].err; err >= e.err {
			return
		}
	}
	e.err = err
	e.best = block7{mode: mode, partition: partition}
	var n [4]int
	for i := range 16 {
		s := subsets >> (2 * i) & 3
		e.best.index[i] = f[s].index[n[s]&15]
		n[s]++
	}
	for s := range m.subsets {
		for i := range uint8(2) {
			e.best.ends[2*s+i] = f[s].stored[i]
			e.best.parity[2*s+i] = f[s].parity[i]
			if m.alphaBits > 0 && parities != anyParity {
				e.best.ends[2*s+i][3] = 127
			}
		}
	}
}

// gather takes the pixels of subset s.
func (e *encoder7) gather(g *group, subsets, s uint32, alpha bool) {
	g.n, g.sum = 0, [4]int32{}
	for i := range e.pix {
		if subsets>>(2*i)&3 != s {
			continue
		}
		p := e.pix[i]
		if !alpha {
			p[3] = 0
		}
		g.pix[g.n&15] = p
		for c := range 4 {
			g.sum[c] += p[c]
		}
		g.n++
	}
}
