package flac

import (
	"math"
	"math/bits"
)

const mostParts = 6 // the binary logarithm of the number of parts of a frame with separate parameters

// parameters are the parameters of Rice codes.
type parameters struct {
	parts uint // binary logarithm of the number of parts
	wide  bool // parameters have 5 bits, not 4
	k     [1 << mostParts]uint8
	bits  int // estimated size of all numbers
}

// cost returns the best parameter for n numbers with the given sum, and their estimated size in bits.
func cost(sum uint64, n int, most uint) (k uint, size int) {
	if n == 0 {
		return 0, 0
	}
	// Subtract the bits that are shifted out: on average half of 2^k-1 for each number.
	at := func(k uint) int {
		out := uint64(n) * (1<<k - 1) / 2
		return n*int(k+1) + int((sum-min(out, sum))>>k)
	}
	if mean := sum / uint64(n); mean > 1 {
		k = min(uint(bits.Len64(mean)-1), most)
	}
	size = at(k)
	if k > 0 {
		if s := at(k - 1); s < size {
			return k - 1, s
		}
	}
	if k < most {
		if s := at(k + 1); s < size {
			return k + 1, s
		}
	}
	return k, size
}

// choose finds the parameters for the numbers from order on.
func (p *parameters) choose(u []uint32, order, sampleBits int) {
	parts := uint(mostParts)
	for parts > 0 && (len(u)&(1<<parts-1) != 0 || len(u)>>parts <= order) {
		parts--
	}
	var sums [1 << mostParts]uint64
	size := len(u) >> parts
	for i := range 1 << parts {
		sum := uint64(0)
		for _, v := range u[max(i*size, order) : (i+1)*size] {
			sum += uint64(v)
		}
		sums[i] = sum
	}
	most := uint(14)
	if sampleBits > 16 {
		most = 30
	}
	p.bits = math.MaxInt
	for ; ; parts-- {
		var k [1 << mostParts]uint8
		all, wide := 6, false
		for i := range 1 << parts {
			n := len(u) >> parts
			if i == 0 {
				n -= order
			}
			best, size := cost(sums[i], n, most)
			k[i] = uint8(best)
			wide = wide || best > 14
			all += 4 + size
		}
		if wide {
			all += 1 << parts
		}
		if all < p.bits {
			p.parts, p.wide, p.k, p.bits = parts, wide, k, all
		}
		if parts == 0 {
			return
		}
		for i := range 1 << (parts - 1) {
			sums[i] = sums[2*i] + sums[2*i+1]
		}
	}
}

// write is the reverse of [Decoder.residual].
func (p *parameters) write(w *bitWriter, u []uint32, order int) {
	width := uint(4)
	if p.wide {
		width = 5
	}
	w.write(uint64(width-4), 2)
	w.write(uint64(p.parts), 4)
	size := len(u) >> p.parts
	for i := range 1 << p.parts {
		k := uint(p.k[i])
		w.write(uint64(k), width)
		for _, v := range u[max(i*size, order) : (i+1)*size] {
			if q := uint(v >> k); q+1+k <= 32 {
				w.write(1<<k|uint64(v)&(1<<k-1), q+1+k)
			} else {
				w.unary(uint64(q))
				w.write(uint64(v), k)
			}
		}
	}
}
