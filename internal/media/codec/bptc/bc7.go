package bptc

import mathbits "math/bits"

// mode7 has the properties of a BC7 mode.
type mode7 struct {
	subsets       uint8
	partitionBits uint8
	rotationBits  uint8
	selectorBits  uint8
	colourBits    uint8 // per channel of an endpoint
	alphaBits     uint8 // 0: alpha is 255
	p             parity
	indexBits     uint8
	index2Bits    uint8 // 0: one index per pixel
}

// parity says what has a parity bit, an additional lowest bit of every channel: nothing, each endpoint, or each subset.
type parity uint8

const (
	noParity parity = iota
	ofEndpoint
	ofSubset
)

var modes7 = [8]mode7{
	{3, 4, 0, 0, 4, 0, ofEndpoint, 3, 0},
	{2, 6, 0, 0, 6, 0, ofSubset, 3, 0},
	{3, 6, 0, 0, 5, 0, noParity, 2, 0},
	{2, 6, 0, 0, 7, 0, ofEndpoint, 2, 0},
	{1, 0, 2, 1, 5, 6, noParity, 2, 3},
	{1, 0, 2, 0, 7, 8, noParity, 2, 2},
	{1, 0, 0, 0, 7, 7, ofEndpoint, 4, 0},
	{2, 6, 0, 0, 5, 5, ofEndpoint, 2, 0},
}

// block7 has the fields of a BC7 block.
type block7 struct {
	mode      uint8
	partition uint8
	rotation  uint8       // 1, 2, 3: alpha is swapped with red, green, blue
	selector  uint8       // 1: colour uses the second index, alpha the first
	ends      [6][4]uint8 // endpoints 0 and 1 of subset 0, then of 1, of 2; without parity
	parity    [6]uint8    // of each endpoint
	index     [16]uint8
	index2    [16]uint8
}

// decode7 decodes the 16 pixels of a block.
func decode7(from *[16]byte, to *[64]byte) {
	var b block7
	if !b.unpack(loadBits(from)) {
		*to = [64]byte{}
		return
	}
	b.pixels(to)
}

// unpack reads a block. It returns false for a reserved mode.
func (b *block7) unpack(in bits) bool {
	n := mathbits.TrailingZeros8(uint8(in.lo))
	if n == 8 {
		return false
	}
	in.skip(uint(n) + 1)
	m := &modes7[n]
	*b = block7{mode: uint8(n)}
	b.partition = uint8(in.read(uint(m.partitionBits)))
	b.rotation = uint8(in.read(uint(m.rotationBits)))
	b.selector = uint8(in.read(uint(m.selectorBits)))
	ends := b.ends[:2*m.subsets]
	for c := range 4 {
		width := m.channelBits(c)
		for i := range ends {
			ends[i][c] = uint8(in.read(width))
		}
	}
	for i := range b.parity[:2*m.subsets] {
		switch {
		case m.p == ofEndpoint:
			b.parity[i] = uint8(in.read(1))
		case m.p == ofSubset && i&1 == 0:
			b.parity[i] = uint8(in.read(1))
			b.parity[i+1] = b.parity[i]
		}
	}
	in.readIndices(&b.index, uint(m.indexBits), anchorsOf(int(m.subsets), b.partition))
	if m.index2Bits > 0 {
		in.readIndices(&b.index2, uint(m.index2Bits), 1)
	}
	return true
}

func (m *mode7) channelBits(c int) uint {
	if c == 3 {
		return uint(m.alphaBits)
	}
	return uint(m.colourBits)
}

func (b *bits) readIndices(to *[16]uint8, width uint, anchors uint16) {
	for i := range to {
		to[i] = uint8(b.read(width - uint(anchors>>i&1)))
	}
}

// pack is the reverse of unpack. The anchors' highest bits must be zero: see [block7.orient].
func (b *block7) pack() bits {
	m := &modes7[b.mode&7]
	var out bits
	out.write(1<<b.mode, uint(b.mode)+1)
	out.write(uint32(b.partition), uint(m.partitionBits))
	out.write(uint32(b.rotation), uint(m.rotationBits))
	out.write(uint32(b.selector), uint(m.selectorBits))
	ends := b.ends[:2*m.subsets]
	for c := range 4 {
		if width := m.channelBits(c); width > 0 {
			for i := range ends {
				out.write(uint32(ends[i][c]), width)
			}
		}
	}
	for i, p := range b.parity[:2*m.subsets] {
		if m.p == ofEndpoint || m.p == ofSubset && i&1 == 0 {
			out.write(uint32(p), 1)
		}
	}
	out.writeIndices(&b.index, uint(m.indexBits), anchorsOf(int(m.subsets), b.partition))
	if m.index2Bits > 0 {
		out.writeIndices(&b.index2, uint(m.index2Bits), 1)
	}
	return out
}

func (b *bits) writeIndices(from *[16]uint8, width uint, anchors uint16) {
	for i, v := range from {
		b.write(uint32(v), width-uint(anchors>>i&1))
	}
}

// pixels computes the pixels of a block.
func (b *block7) pixels(to *[64]byte) {
	m := &modes7[b.mode&7]
	var ends [8][4]int32 // two more than needed, for the mask below
	for i := range ends[:2*m.subsets] {
		for c := range 4 {
			ends[i][c] = m.expand(c, int32(b.ends[i][c]), int32(b.parity[i]))
		}
	}
	colour, alpha := &b.index, &b.index
	colourBits, alphaBits := m.indexBits, m.indexBits
	if m.index2Bits > 0 {
		alpha, alphaBits = &b.index2, m.index2Bits
		if b.selector == 1 {
			colour, colourBits, alpha, alphaBits = alpha, alphaBits, colour, colourBits
		}
	}
	colourWeights, alphaWeights := &weights[colourBits], &weights[alphaBits]
	subsets := subsetsOf(int(m.subsets), b.partition)
	for i := range 16 {
		s := subsets >> (2 * i) & 3
		e0, e1 := &ends[2*s], &ends[2*s+1]
		w, p := colourWeights[colour[i]&15], to[4*i:4*i+4:4*i+4]
		p[0] = lerp(e0[0], e1[0], w)
		p[1] = lerp(e0[1], e1[1], w)
		p[2] = lerp(e0[2], e1[2], w)
		p[3] = lerp(e0[3], e1[3], alphaWeights[alpha[i]&15])
		if b.rotation > 0 {
			p[b.rotation-1], p[3] = p[3], p[b.rotation-1]
		}
	}
}

func lerp(a, b, weight int32) byte { return byte((a<<6 + (b-a)*weight + 32) >> 6) }

// expand widens a channel of an endpoint, with its parity if the mode has one, to 8 bits by repeating its highest bits.
func (m *mode7) expand(c int, v, parity int32) int32 {
	width := m.channelBits(c)
	if width == 0 {
		return 255
	}
	if m.p != noParity {
		v = v<<1 | parity
		width++
	}
	v <<= 8 - width
	return v | v>>width
}

// orient swaps endpoints if an anchor's index has its highest bit set, so that the block can be packed.
func (b *block7) orient() {
	m := &modes7[b.mode&7]
	subsets := subsetsOf(int(m.subsets), b.partition)
	anchors := anchorsOf(int(m.subsets), b.partition)
	top := uint8(1) << m.indexBits
	for i := range 16 {
		if anchors>>i&1 == 0 || b.index[i] < top/2 {
			continue
		}
		s := subsets >> (2 * i) & 3
		for j := range b.index {
			if subsets>>(2*j)&3 == s {
				b.index[j] = top - 1 - b.index[j]
			}
		}
		b.turn(s, m.index2Bits == 0 || b.selector == 0, m.index2Bits == 0 || b.selector == 1)
	}
	if top := uint8(1) << m.index2Bits; m.index2Bits > 0 && b.index2[0] >= top/2 {
		for j := range b.index2 {
			b.index2[j] = top - 1 - b.index2[j]
		}
		b.turn(0, b.selector == 1, b.selector == 0)
	}
}

// turn swaps the endpoints of a subset.
func (b *block7) turn(s uint32, colour, alpha bool) {
	e0, e1 := &b.ends[2*s], &b.ends[2*s+1]
	for c := range 4 {
		if c < 3 && colour || c == 3 && alpha {
			e0[c], e1[c] = e1[c], e0[c]
		}
	}
	b.parity[2*s], b.parity[2*s+1] = b.parity[2*s+1], b.parity[2*s]
}
