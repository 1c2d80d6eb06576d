package qoa

// laneTable has the constants of the scales for tryAll: see asm/qoa.go.
var laneTable = func() (t [152]int32) {
	for scale := range 16 {
		r, at := &residuals[scale], scale/8*56+scale%8
		t[at] = r[0]
		for k := range 3 {
			t[at+8*(1+k)] = r[2*k+2] - r[2*k]
			t[at+8*(4+k)] = (r[2*k] + r[2*k+2]) >> 1
		}
	}
	for i := range int32(8) {
		t[112+i], t[120+i] = 1<<16|1, 1<<31-1
		four, two := i%4*0x04040404, i%4*0x02020202
		t[128+i], t[136+i], t[144+i] = 0x01000100+four, 0x01000302+four, 0x01000100+two
	}
	return t
}()

// Offsets of the results of tryAll, in words of 32 bits.
const (
	laneStates = 320
	laneSums   = 384
)

// laneOrder has, for the scale of the previous slice, the order in which slice tries each scale.
var laneOrder = func() (order [16][16]uint64) {
	for first := range order {
		n := uint64(0)
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

const (
	laneNear  = (1<<15 - 1) * (1<<15 - 1) // a smaller sum of squares is exact
	laneLight = 1793 * 1793               // the least penalty for a weight that exceeds 16 bits
)

// halves combines two numbers of 16 bits.
func halves(low, high int32) uint32 { return uint32(low)&0xffff | uint32(high)<<16 }

func (p *predictor) fits() bool {
	return p.w0 == int32(int16(p.w0)) && p.w1 == int32(int16(p.w1)) && p.w2 == int32(int16(p.w2)) && p.w3 == int32(int16(p.w3))
}

// grown returns the sizes of the weights, each increased.
func (p *predictor) grown(by int32) (sizes [4]int64) {
	for i, w := range [4]int32{p.w0, p.w1, p.w2, p.w3} {
		sizes[i] = int64(max(w, -w) + by)
	}
	return sizes
}

// sliceLanes is slice with all scales computed at once. It returns false if what tryAll does not compute would matter.
//
// What it computes is never more than the real error of a scale, with one exception: that of a scale whose weights exceed
// 16 bits before the last sample can be anything, but the real one is then at least laneLight. So if the error of the best
// scale is exact, and there is no penalty in it, no other scale is better.
func (p *predictor) sliceLanes(want []int32, first int, out *[400]uint32) (bits uint64, scale int, ok bool) {
	if !p.fits() {
		return 0, 0, false
	}
	state := [4]uint32{halves(p.h0, p.h1), halves(p.h2, p.h3), halves(p.w0, p.w1), halves(p.w2, p.w3)}
	tryAll(&want[0], len(want), &state, &laneTable, out)
	best := uint64(1<<64 - 1)
	for scale, n := range &laneOrder[first] {
		best = min(best, uint64(out[laneSums+scale])<<8|n<<4|uint64(scale))
	}
	scale = int(best & 15)
	rank := best >> 9
	if rank >= laneNear || rank >= laneLight && p.heavy() {
		return 0, 0, false
	}
	bits = uint64(scale)
	t := &residuals[scale]
	low, middle, high := t[0], t[2], t[4]
	learned := int32(0)
	for i := range want {
		r := int32(out[16*i+scale])
		sign := uint32(r) >> 31
		size := max(r, -r)
		learned += size>>4 + 1
		k := uint32(low-size)>>31 + uint32(middle-size)>>31 + uint32(high-size)>>31
		bits = bits<<3 | uint64(k<<1|sign)
	}
	square := int64(0)
	for _, w := range p.grown(learned) {
		square += w * w
	}
	if square >= 0x900<<18 { // perhaps there is a penalty, or a weight that was limited
		end, bits, whole := p.try(want, scale, 1<<64-1)
		if whole != rank {
			return 0, 0, false
		}
		*p = end
		return bits << (3 * (sliceSamples - len(want))), scale, true
	}
	half := func(k int) (low, high int32) {
		v := out[laneStates+16*k+scale]
		return int32(int16(v)), int32(v) >> 16
	}
	p.h0, p.h1 = half(0)
	p.h2, p.h3 = half(1)
	p.w0, p.w1 = half(2)
	p.w2, p.w3 = half(3)
	return bits << (3 * (sliceSamples - len(want))), scale, true
}

// heavy reports whether a weight can exceed 16 bits within a slice.
func (p *predictor) heavy() bool {
	for _, w := range p.grown(sliceSamples * (residuals[15][6]>>4 + 1)) {
		if w > 1<<15-1 {
			return true
		}
	}
	return false
}
