package bptc

// block6 has the fields of a BC6H block.
type block6 struct {
	mode      uint8 // index into modes6
	partition uint8
	ends      [4][3]int32 // as stored: offsets if the mode is transformed; negative ones are sign-extended
	index     [16]uint8
}

// decode6 decodes the 16 pixels of a block as half floats.
func decode6(from *[16]byte, signed bool, to *[16][3]uint16) {
	var b block6
	if !b.unpack(loadBits(from), signed) {
		*to = [16][3]uint16{}
		return
	}
	b.pixels(signed, to)
}

// unpack reads a block. It returns false for a reserved mode.
func (b *block6) unpack(in bits, signed bool) bool {
	place := numbered()[in.lo&31]
	if place == 255 {
		return false
	}
	m := &modes6[place]
	*b = block6{mode: place}
	in.skip(m.modeBits())
	for _, r := range runs6()[place] {
		v := int32(in.read(uint(r.count)))
		to := &b.ends[r.end&3][r.channel]
		if !r.down {
			*to |= v << r.from
			continue
		}
		for i := range r.count {
			*to |= v >> i & 1 << (r.from - i)
		}
	}
	b.partition = uint8(in.read(m.partitionBits()))
	for i := range b.ends {
		for c := range 3 {
			if signed || i > 0 && m.transformed {
				b.ends[i][c] = signExtend(b.ends[i][c], m.channelBits(i, c))
			}
		}
	}
	in.readIndices(&b.index, uint(m.indexBits()), anchorsOf(int(m.subsets), b.partition))
	return true
}

func signExtend(v int32, width uint) int32 {
	return v << (32 - width) >> (32 - width)
}

// pack is the reverse of unpack.
func (b *block6) pack() bits {
	m := &modes6[b.mode]
	var out bits
	out.write(uint32(m.number), m.modeBits())
	for _, r := range runs6()[b.mode] {
		v := uint32(b.ends[r.end&3][r.channel])
		if !r.down {
			out.write(v>>r.from&(1<<r.count-1), uint(r.count))
			continue
		}
		for i := range r.count {
			out.write(v>>(r.from-i)&1, 1)
		}
	}
	out.write(uint32(b.partition), m.partitionBits())
	out.writeIndices(&b.index, uint(m.indexBits()), anchorsOf(int(m.subsets), b.partition))
	return out
}

// shown computes the endpoints, widened to 16 bits.
func (b *block6) shown(signed bool, ends *[4][3]int32) {
	m := &modes6[b.mode]
	for i := range 2 * m.subsets {
		for c := range 3 {
			v := b.ends[i][c]
			if i > 0 && m.transformed {
				v = (v + b.ends[0][c]) & (1<<m.bits - 1)
				if signed {
					v = signExtend(v, uint(m.bits))
				}
			}
			ends[i][c] = widen(v, m.bits, signed)
		}
	}
}

// pixels computes the pixels of a block, as half floats.
func (b *block6) pixels(signed bool, to *[16][3]uint16) {
	m := &modes6[b.mode]
	var ends [4][3]int32
	b.shown(signed, &ends)
	weights := &weights[m.indexBits()]
	subsets := subsetsOf(int(m.subsets), b.partition)
	for i := range to {
		s := subsets >> (2 * i) & 1
		w := weights[b.index[i]&15]
		for c := range 3 {
			to[i][c] = half((ends[2*s][c]*(64-w)+ends[2*s+1][c]*w+32)>>6, signed)
		}
	}
}

// widen converts a channel of an endpoint from the given number of bits to 16.
func widen(v int32, bits uint8, signed bool) int32 {
	switch {
	case !signed && bits >= 15, signed && bits >= 16, v == 0:
		return v
	case !signed && v == 1<<bits-1:
		return 0xffff
	case !signed:
		return (v<<15 + 0x4000) >> (bits - 1)
	case v < 0:
		return -widen(-v, bits, true)
	case v >= 1<<(bits-1)-1:
		return 0x7fff
	}
	return (v<<15 + 0x4000) >> (bits - 1)
}

// half converts an interpolated value to a half float: 31/64 of it, or 31/32 if signed, are the bits of the half. So
// infinity cannot occur.
func half(v int32, signed bool) uint16 {
	switch {
	case !signed:
		return uint16(v * 31 >> 6)
	case v < 0:
		return uint16(-v*31>>5) | 0x8000
	}
	return uint16(v * 31 >> 5)
}
