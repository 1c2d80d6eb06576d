package sound

import "math"

// Int16 converts samples to 16 bits. Full scale, 1, is 32768, which is limited to 32767. The zero Int16 rounds to
// nearest, halves away from zero.
type Int16 struct {
	// Dither adds noise with a triangular density of up to one step before rounding (TPDF). The noise is always the
	// same. It replaces the distortion of very soft sounds by a faint hiss. It is useless before an encoder that is
	// less exact than 16 bits.
	Dither bool

	Clipped int64 // samples beyond full scale, which were limited to it
	Invalid int64 // samples that were not numbers, which became 0

	state uint64
}

// Convert converts as many samples as fit into dst, and returns their number.
func (c *Int16) Convert(dst []int16, src []float32) int {
	n := min(len(dst), len(src))
	dst, src = dst[:n], src[:n]
	const inner = 65534.0 / 65536 // beyond this, a result has to be limited
	for i := 0; i < n; i++ {
		if lanes && !c.Dither && n-i >= 16 && i%16 == 0 {
			if i += toInt16(&dst[i], &src[i], (n-i)/16*16, inner); i == n {
				break
			}
		}
		v := src[i]
		if c.Dither || !(v > -inner && v < inner) {
			dst[i] = c.convert(v)
			continue
		}
		half := int32(v * 65536) // half steps: the product is exact, and the conversion removes its fraction
		dst[i] = int16((half + 1 + half>>31) >> 1)
	}
	return n
}

func (c *Int16) convert(v float32) int16 {
	if !(v >= -1 && v <= 1) {
		v = c.beyond(v)
	}
	x := float64(float64(v) * 32768)
	if c.Dither {
		x += c.triangle()
	}
	return int16(min(max(int32(x+math.Copysign(0.5, x)), -32768), 32767))
}

// beyond counts a sample beyond full scale, or one that is not a number. It returns a value that is converted to the same
// 16 bits, dithered or not.
func (c *Int16) beyond(v float32) float32 {
	if v != v {
		c.Invalid++
		return 0
	}
	c.Clipped++
	return min(max(v, -2), 2)
}

// triangle returns the sum of two evenly distributed random numbers of up to half a step, from SplitMix64.
func (c *Int16) triangle() float64 {
	c.state += 0x9e3779b97f4a7c15
	z := c.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	return float64(int64(z>>32)-int64(z&0xffffffff)) / (1 << 32)
}
