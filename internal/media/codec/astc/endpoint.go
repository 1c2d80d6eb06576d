package astc

// color is red, green, blue and alpha, 0..255.
type color [4]int

// Endpoint modes of low dynamic range, by their numbers ("Color Endpoint Mode"). A mode's class is its number divided by 4,
// rounded down; it has 2*class+2 values.
const (
	lumDirect      = 0
	lumOffset      = 1
	lumAlphaDirect = 4
	lumAlphaOffset = 5
	rgbScale       = 6
	rgbDirect      = 8
	rgbOffset      = 9
	rgbScaleAlpha  = 10
	rgbaDirect     = 12
	rgbaOffset     = 13
)

// endpointValues returns the number of values of an endpoint mode.
func endpointValues(mode int) int { return 2 * (mode>>2 + 1) }

// endpoints decodes the values of a mode to two colours ("LDR Endpoint Decoding"). It returns false for modes of high
// dynamic range.
func endpoints(mode int, v *[8]int) (e0, e1 color, ok bool) {
	switch mode {
	case lumDirect:
		return color{v[0], v[0], v[0], 255}, color{v[1], v[1], v[1], 255}, true
	case lumOffset:
		l0 := v[0]>>2 | v[1]&0xC0
		l1 := min(l0+v[1]&0x3F, 255)
		return color{l0, l0, l0, 255}, color{l1, l1, l1, 255}, true
	case lumAlphaDirect:
		return color{v[0], v[0], v[0], v[2]}, color{v[1], v[1], v[1], v[3]}, true
	case lumAlphaOffset:
		l, dl := signedOffset(v[0], v[1])
		a, da := signedOffset(v[2], v[3])
		return color{l, l, l, a}, color{l + dl, l + dl, l + dl, a + da}.clamp(), true
	case rgbScale:
		return color{v[0] * v[3] >> 8, v[1] * v[3] >> 8, v[2] * v[3] >> 8, 255}, color{v[0], v[1], v[2], 255}, true
	case rgbScaleAlpha:
		return color{v[0] * v[3] >> 8, v[1] * v[3] >> 8, v[2] * v[3] >> 8, v[4]}, color{v[0], v[1], v[2], v[5]}, true
	case rgbDirect, rgbaDirect:
		e0, e1 = color{v[0], v[2], v[4], 255}, color{v[1], v[3], v[5], 255}
		if mode == rgbaDirect {
			e0[3], e1[3] = v[6], v[7]
		}
		if e1[0]+e1[1]+e1[2] < e0[0]+e0[1]+e0[2] {
			e0, e1 = e1.contract(), e0.contract()
		}
		return e0, e1, true
	case rgbOffset, rgbaOffset:
		sum := 0
		for c := range endpointValues(mode) / 2 {
			base, offset := signedOffset(v[2*c], v[2*c+1])
			e0[c], e1[c] = base, base+offset
			if c < 3 {
				sum += offset
			}
		}
		if mode == rgbOffset {
			e0[3], e1[3] = 255, 255
		}
		if sum < 0 {
			e0, e1 = e1.contract(), e0.contract()
		}
		return e0.clamp(), e1.clamp(), true
	}
	return e0, e1, false
}

// signedOffset is the specification's bit_transfer_signed: it returns a base of 8 bits and an offset of -32..31.
func signedOffset(low, high int) (base, offset int) {
	offset = high >> 1 & 0x3F
	if offset >= 32 {
		offset -= 64
	}
	return low>>1 | high&0x80, offset
}

// contract is blue_contract, which gives colours near grey one more bit of precision.
func (c color) contract() color { return color{(c[0] + c[2]) >> 1, (c[1] + c[2]) >> 1, c[2], c[3]} }

func (c color) clamp() color {
	for i := range c {
		c[i] = min(max(c[i], 0), 255)
	}
	return c
}
