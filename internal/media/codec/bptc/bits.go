package bptc

import "encoding/binary"

// bits is a block of 128 bits that is read or written from the lowest bit up.
type bits struct {
	lo, hi uint64
	at     uint // bits written so far
}

func loadBits(b *[16]byte) bits {
	return bits{lo: binary.LittleEndian.Uint64(b[:8]), hi: binary.LittleEndian.Uint64(b[8:])}
}

func (b *bits) store(to *[16]byte) {
	binary.LittleEndian.PutUint64(to[:8], b.lo)
	binary.LittleEndian.PutUint64(to[8:], b.hi)
}

// read returns and removes the lowest n bits, n at most 16. Bits after the end are zero.
func (b *bits) read(n uint) uint32 {
	v := uint32(b.lo) & (1<<(n&31) - 1)
	b.skip(n)
	return v
}

func (b *bits) skip(n uint) {
	b.lo = b.lo>>(n&63) | b.hi<<1<<(63-n&63)
	b.hi >>= n & 63
}

// write appends n bits of v, n at most 16; higher bits of v must be zero.
func (b *bits) write(v uint32, n uint) {
	if b.at < 64 {
		b.lo |= uint64(v) << (b.at & 63)
		b.hi |= uint64(v) >> 1 >> (63 - b.at&63)
	} else {
		b.hi |= uint64(v) << (b.at & 63)
	}
	b.at += n
}
