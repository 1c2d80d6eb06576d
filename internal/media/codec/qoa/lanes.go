package qoa

import "math/bits"

// laneTable has the constants of the scales for tryAll: see asm/qoa.go.
var laneTable = func() (t [160]int16) {
	for scale := range 16 {
		r := &residuals[scale]
		t[scale] = int16(r[0])
		for k := range 3 {
			t[16*(1+k)+scale] = int16(r[2*k+2] - r[2*k])
			t[16*(4+k)+scale] = int16((r[2*k] + r[2*k+2]) >> 1)
		}
		t[16*7+scale], t[16*8+scale], t[16*9+scale] = 1, -1, -laneMost
	}
	for i := range 8 {
		t[16*8+2*i+1] = laneMost // of 32 bits, with the -1 before it
	}
	return t
}()

// Rows in the results of tryAll.
const (
	laneSamples = 24 * 16 // after the history
	laneWeights = 68 * 16
	laneLeast   = 72 * 16
)

// laneOrder has, for the scale of the previous slice, the order in which slice tries each scale.
var laneOrder = func() (order [16][16]uint8) {
	for first := range order {
		n := uint8(0)
		for k := range 32 {
			try := first + (k+1)/2
			if k%2 == 0 {
				try = first - k/2
			}
			if try >= 0 && try <= 15 {
				order[first][try] = n
				n++
			}
		}
	}
	return order
}()

// laneCodes has the codes of the residuals of a scale, each at the upper four bits of its product with factor.
var laneCodes = func() (all [16]struct {
	factor uint32
	codes  [16]uint8
}) {
	for scale := range all {
		t, used := &all[scale], uint32(0)
		for bits.OnesCount32(used) < 8 { // until no two are at the same place
			t.factor, used = t.factor+0x9e3779b2, 0
			for code, r := range residuals[scale] {
				at := uint32(r) * t.factor >> 28
				t.codes[at] = uint8(code)
				used |= 1 << at
			}
		}
	}
	return all
}()

const (
	laneMost  = 1<<15 - 1
	laneNear  = (laneMost - 7<<11) * (laneMost - 7<<11) // a smaller sum of squares of tryAll is exact
	laneFar   = laneMost * laneMost                     // the same of tryWide
	laneLight = 1793 * 1793                             // the least penalty for a weight that exceeds 16 bits
	penalized = 0x900 << 18                             // the least sum of squares of weights with a penalty
)

func (p *predictor) fits() bool {
	return p.w0 == int32(int16(p.w0)) && p.w1 == int32(int16(p.w1)) && p.w2 == int32(int16(p.w2)) && p.w3 == int32(int16(p.w3))
}

// grown returns the largest weight and the sum of the squares of all, each increased.
func (p *predictor) grown(by int32) (largest, square int64) {
	for _, w := range [4]int32{p.w0, p.w1, p.w2, p.w3} {
		size := int64(max(w, -w) + by)
		largest, square = max(largest, size), square+size*size
	}
	return largest, square
}

// most returns how much a slice adds to a weight at most.
func most(scale int) int32 { return sliceSamples * (residuals[scale][6]>>4 + 1) }

// sliceLanes is slice with all scales computed at once. want has the 20 samples of a slice, each step after the one before.
// It returns false if what tryAll does not compute would matter.
//
// What that computes is never more than the real error of a scale, with two exceptions. If a prediction is off by more than
// 16 bits, and the sample that results from it in tryAll is not the real one, the error of both is at least the difference
// of 16 bits and the largest residual: laneNear. That of a scale whose weights exceed 16 bits before the last sample can be
// anything, but the real one is then at least laneLight. So if the error of the best scale is exact, and there is no penalty
// in it, no other scale is better.
func (p *predictor) sliceLanes(want []int16, step, first int, out *[1188]int16) (code uint64, scale int, ok bool) {
	if !p.fits() {
		return 0, 0, false
	}
	_ = want[(sliceSamples-1)*step]
	state := [8]int16{int16(p.h1), int16(p.h0), int16(p.h3), int16(p.h2), int16(p.w0), int16(p.w1), int16(p.w2), int16(p.w3)}
	tryAll(&want[0], 2*step, &state, &laneTable, out)
	rank := least(out)
	if rank >= laneNear {
		tryWide(&want[0], 2*step, &state, &laneTable, out)
		if rank = least(out); rank >= laneFar {
			return 0, 0, false
		}
	}
	if rank >= laneLight {
		if largest, _ := p.grown(most(15)); largest > laneMost {
			return 0, 0, false
		}
	}
	order := uint8(255)
	for best := uint32(uint8(out[laneLeast+2])) | uint32(uint8(out[laneLeast+3]))<<8; best != 0; best &= best - 1 {
		if try := bits.TrailingZeros32(best); laneOrder[first][try] < order {
			order, scale = laneOrder[first][try], try
		}
	}
	t := &laneCodes[scale]
	code = uint64(scale)
	for i := range sliceSamples {
		code = code<<3 | uint64(t.codes[uint32(out[16*i+scale])*t.factor>>28])
	}
	if _, square := p.grown(most(scale)); square >= penalized {
		learned := int32(0)
		for i := range sliceSamples {
			r := int32(out[16*i+scale])
			learned += max(r, -r)>>4 + 1
		}
		if _, square := p.grown(learned); square >= penalized { // perhaps there is a penalty, or a weight that was limited
			end, code, whole := p.try(gather(want, step, sliceSamples), scale, 1<<64-1)
			if whole != rank {
				return 0, 0, false
			}
			*p = end
			return code, scale, true
		}
	}
	at := func(k int) int32 { return int32(out[k+scale]) }
	*p = predictor{at(laneSamples + 16*16), at(laneSamples + 17*16), at(laneSamples + 18*16), at(laneSamples + 19*16),
		at(laneWeights), at(laneWeights + 16), at(laneWeights + 2*16), at(laneWeights + 3*16)}
	return code, scale, true
}

// least returns the least sum of squares.
func least(out *[1188]int16) uint64 {
	return uint64(uint16(out[laneLeast])) | uint64(uint16(out[laneLeast+1]))<<16
}

// gather returns n samples, each step after the one before.
func gather(src []int16, step, n int) []int32 {
	var slice [sliceSamples]int32
	for i := range n {
		slice[i] = int32(src[i*step])
	}
	return slice[:n]
}
