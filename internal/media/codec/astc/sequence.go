package astc

import "math/bits"

// word is a block, or a part of one, as a number of 128 bits.
type word struct{ low, high uint64 }

// field returns n bits, at most 32, from bit at on. Bits above 127 are zero.
func (w word) field(at, n int) uint32 { return uint32(w.shift(at).low & (1<<n - 1)) }

// shift returns w shifted down by n bits.
func (w word) shift(n int) word {
	if n >= 64 {
		return word{w.high >> (n - 64), 0}
	}
	return word{w.low>>n | w.high<<(64-n), w.high >> n}
}

// keep returns the lowest n bits.
func (w word) keep(n int) word {
	if n >= 64 {
		return word{w.low, w.high & (1<<(n-64) - 1)}
	}
	return word{w.low & (1<<n - 1), 0}
}

// put sets n bits from bit at on. They must be zero before.
func (w *word) put(at, n int, value uint32) {
	v := uint64(value) & (1<<n - 1)
	if at >= 64 {
		w.high |= v << (at - 64)
		return
	}
	w.low |= v << at
	w.high |= v >> (64 - at)
}

// reverse returns w with its bits in reverse order, which is the order of weights.
func (w word) reverse() word { return word{bits.Reverse64(w.high), bits.Reverse64(w.low)} }

// sequenceSize returns the size of count integers in bits ("Data Size Determination").
func sequenceSize(count int, r uint8) int {
	v := &ranges[r]
	return (8*count*int(v.trits)+4)/5 + (7*count*int(v.quints)+2)/3 + count*int(v.bits)
}

// tritPieces are the numbers of bits of packed trits that follow each of five lower parts; quintPieces the same for quints
// and three lower parts ("Integer Sequence Encoding").
var (
	tritPieces  = [5]int{2, 2, 1, 2, 1}
	quintPieces = [3]int{3, 2, 2}
)

// getSequence reads len(out) integers from the bottom of w.
func getSequence(out []uint8, w word, r uint8) {
	w = w.keep(sequenceSize(len(out), r))
	n := int(ranges[r].bits)
	at := 0
	switch {
	case ranges[r].trits == 1:
		for i := 0; i < len(out); i += 5 {
			packed, shift := uint32(0), 0
			for j, piece := range tritPieces {
				if i+j < len(out) {
					out[i+j] = uint8(w.field(at, n))
				}
				packed |= w.field(at+n, piece) << shift
				at += n + piece
				shift += piece
			}
			for j := range min(5, len(out)-i) {
				out[i+j] |= tritsOf[packed][j] << n
			}
		}
	case ranges[r].quints == 1:
		for i := 0; i < len(out); i += 3 {
			packed, shift := uint32(0), 0
			for j, piece := range quintPieces {
				if i+j < len(out) {
					out[i+j] = uint8(w.field(at, n))
				}
				packed |= w.field(at+n, piece) << shift
				at += n + piece
				shift += piece
			}
			for j := range min(3, len(out)-i) {
				out[i+j] |= quintsOf[packed][j] << n
			}
		}
	default:
		for i := range out {
			out[i] = uint8(w.field(at, n))
			at += n
		}
	}
}

// putSequence is the reverse of getSequence. It cuts off the bits after the last integer. No information is lost: packings
// are chosen so that the upper bits of zeros are zero.
func putSequence(in []uint8, r uint8) word {
	var w word
	n := int(ranges[r].bits)
	at := 0
	put := func(value uint32, size int) {
		if at < 128 {
			w.put(at, size, value)
		}
		at += size
	}
	switch {
	case ranges[r].trits == 1:
		for i := 0; i < len(in); i += 5 {
			var v [5]uint8
			copy(v[:], in[i:])
			packed := uint32(packedTrits[v[0]>>n+3*(v[1]>>n)+9*(v[2]>>n)+27*(v[3]>>n)+81*(v[4]>>n)])
			for j, piece := range tritPieces {
				put(uint32(v[j])&(1<<n-1), n)
				put(packed, piece)
				packed >>= piece
			}
		}
	case ranges[r].quints == 1:
		for i := 0; i < len(in); i += 3 {
			var v [3]uint8
			copy(v[:], in[i:])
			packed := uint32(packedQuints[v[0]>>n+5*(v[1]>>n)+25*(v[2]>>n)])
			for j, piece := range quintPieces {
				put(uint32(v[j])&(1<<n-1), n)
				put(packed, piece)
				packed >>= piece
			}
		}
	default:
		for _, v := range in {
			put(uint32(v), n)
		}
	}
	return w.keep(sequenceSize(len(in), r))
}

// tritsOf has the five trits of each packing of 8 bits.
var tritsOf = func() (t [256][5]uint8) {
	for packed := range t {
		field := func(at, n int) int { return packed >> at & (1<<n - 1) }
		var c, t3, t4 int
		if field(2, 3) == 7 {
			c, t4, t3 = field(5, 3)<<2|field(0, 2), 2, 2
		} else if c = field(0, 5); field(5, 2) == 3 {
			t4, t3 = 2, field(7, 1)
		} else {
			t4, t3 = field(7, 1), field(5, 2)
		}
		var t0, t1, t2 int
		switch {
		case c&3 == 3:
			t2, t1, t0 = 2, c>>4, c>>2&2|c>>2&1&^(c>>3)
		case c>>2&3 == 3:
			t2, t1, t0 = 2, 2, c&3
		default:
			t2, t1, t0 = c>>4, c>>2&3, c&2|c&1&^(c>>1)
		}
		t[packed] = [5]uint8{uint8(t0), uint8(t1), uint8(t2), uint8(t3), uint8(t4)}
	}
	return t
}()

// quintsOf has the three quints of each packing of 7 bits.
var quintsOf = func() (t [128][3]uint8) {
	for packed := range t {
		field := func(at, n int) int { return packed >> at & (1<<n - 1) }
		var q0, q1, q2 int
		if field(1, 2) == 3 && field(5, 2) == 0 {
			low := field(0, 1)
			q2, q1, q0 = low<<2|(field(4, 1)&^low)<<1|field(3, 1)&^low, 4, 4
		} else {
			var c int
			if field(1, 2) == 3 {
				q2, c = 4, field(3, 2)<<3|(field(5, 2)^3)<<1|field(0, 1)
			} else {
				q2, c = field(5, 2), field(0, 5)
			}
			if c&7 == 5 {
				q1, q0 = 4, c>>3
			} else {
				q1, q0 = c>>3, c&7
			}
		}
		t[packed] = [3]uint8{uint8(q0), uint8(q1), uint8(q2)}
	}
	return t
}()

// packedTrits and packedQuints have the least packing of each group, by its digits, the first one lowest.
var packedTrits = func() (t [243]uint8) {
	for packed := 255; packed >= 0; packed-- {
		v := tritsOf[packed]
		t[v[0]+3*v[1]+9*v[2]+27*v[3]+81*v[4]] = uint8(packed)
	}
	return t
}()

var packedQuints = func() (t [125]uint8) {
	for packed := 127; packed >= 0; packed-- {
		v := quintsOf[packed]
		t[v[0]+5*v[1]+25*v[2]] = uint8(packed)
	}
	return t
}()
