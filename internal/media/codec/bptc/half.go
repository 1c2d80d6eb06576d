package bptc

import "math"

// largest is the greatest finite half float: 65504.
const largest = 0x7bff

// toHalf rounds to the nearest half, ties to even. Values that BC6H cannot store become the nearest possible ones:
// infinities the greatest finite number, NaN 0, and negative numbers 0 if not signed.
func toHalf(f float32, signed bool) uint16 {
	b := math.Float32bits(f)
	sign, b := uint16(b>>16&0x8000), b&0x7fffffff
	if b > 0x7f800000 || sign != 0 && !signed {
		return 0
	}
	var h uint32
	switch {
	case b >= 0x477ff000: // rounds to 65536 or more
		h = largest
	case b >= 0x38800000: // 2^-14, the least normal half
		b -= (127 - 15) << 23
		h = (b + 0xfff + b>>13&1) >> 13
	case b >= 0x33000000: // 2^-25, half of the least half
		shift := 126 - b>>23
		b = b&0x7fffff | 0x800000
		h = (b + 1<<(shift-1) - 1 + b>>shift&1) >> shift
	}
	return sign | uint16(h)
}
