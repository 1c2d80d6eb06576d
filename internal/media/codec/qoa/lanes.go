package qoa

// laneTable has the constants of the scales for tryAll: see asm/qoa.go.
var laneTable = func() (t [136]int32) {
	for scale := range 16 {
		r, at := &residuals[scale], scale/8*56+scale%8
		t[at] = r[0]
		for k := range 3 {
			t[at+8*(1+k)] = r[2*k+2] - r[2*k]
			t[at+8*(4+k)] = (r[2*k] + r[2*k+2]) >> 1
		}
	}
	for i := range 8 {
		t[112+i], t[120+i], t[128+i] = 0x8ff, -1<<15, 1<<15-1
	}
	return t
}()

// Offsets of the results of tryAll, in words of 32 bits.
const (
	laneStates = 320
	laneSums   = 384
	laneOver   = 416
	laneLeft   = 432
)

// halves combines two numbers of 16 bits.
func halves(low, high int32) uint32 { return uint32(low)&0xffff | uint32(high)<<16 }

func (p *predictor) fits() bool {
	return p.w0 == int32(int16(p.w0)) && p.w1 == int32(int16(p.w1)) && p.w2 == int32(int16(p.w2)) && p.w3 == int32(int16(p.w3))
}

// sliceLanes is slice with all scales computed at once. It returns false if a weight is or becomes too large for that.
func (p *predictor) sliceLanes(want []int32, first int, out *[440]uint32) (bits uint64, scale int, ok bool) {
	if !p.fits() {
		return 0, 0, false
	}
	state := [4]uint32{halves(p.h0, p.h1), halves(p.h2, p.h3), halves(p.w0, p.w1), halves(p.w2, p.w3)}
	tryAll(&want[0], len(want), &state, &laneTable, out)
	for _, left := range out[laneLeft:] {
		if left != 0 {
			return 0, 0, false
		}
	}
	rank := func(scale int) uint64 {
		at := laneSums + scale/8*16 + scale%2*8 + scale%8/2*2
		return uint64(out[at]) + uint64(out[at+1])<<32 + uint64(out[laneOver+scale])
	}
	scale = first
	least := rank(first)
	for d := 1; d <= 15; d++ {
		if up := first + d; up <= 15 {
			if r := rank(up); r < least {
				least, scale = r, up
			}
		}
		if down := first - d; down >= 0 {
			if r := rank(down); r < least {
				least, scale = r, down
			}
		}
	}
	half := func(k int) (low, high int32) {
		v := out[laneStates+16*k+scale]
		return int32(int16(v)), int32(v) >> 16
	}
	p.h0, p.h1 = half(0)
	p.h2, p.h3 = half(1)
	p.w0, p.w1 = half(2)
	p.w2, p.w3 = half(3)
	bits = uint64(scale)
	t := &residuals[scale]
	low, middle, high := t[0], t[2], t[4]
	for i := range want {
		r := int32(out[16*i+scale])
		sign := uint32(r) >> 31
		size := max(r, -r)
		k := uint32(low-size)>>31 + uint32(middle-size)>>31 + uint32(high-size)>>31
		bits = bits<<3 | uint64(k<<1|sign)
	}
	return bits << (3 * (sliceSamples - len(want))), scale, true
}
