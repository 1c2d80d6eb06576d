// Package hdrpack converts light, as floating-point values that may exceed 1, to and from the two uncompressed formats that
// graphics cards have for it. RGBA16F has four IEEE 754 half-precision numbers, 8 bytes per pixel. RGB9E5 has three
// mantissas of 9 bits with a shared exponent, 4 bytes per pixel, no alpha.
//
// Every float has a finite result. Values that are too large, also infinity, become the largest number; NaN becomes 0,
// because one NaN in a texture makes every filtered pixel around it a NaN.
package hdrpack

import (
	"encoding/binary"
	"math"
)

// Largest values of the formats.
const (
	MaxHalf   = 65504 // (2 - 2^-10) * 2^15
	MaxRGB9E5 = 65408 // 511/512 * 2^16
)

// EncodeRGBA16F packs pixels of four floats each, in the order of the file: 8 bytes per pixel, little-endian.
func EncodeRGBA16F(pix []float32) []byte {
	b := make([]byte, 2*len(pix))
	for i, f := range pix {
		binary.LittleEndian.PutUint16(b[2*i:], Half(f))
	}
	return b
}

// DecodeRGBA16F unpacks pixels of 8 bytes each; an incomplete pixel at the end is ignored.
func DecodeRGBA16F(b []byte) []float32 {
	pix := make([]float32, len(b)/8*4)
	for i := range pix {
		pix[i] = Float(binary.LittleEndian.Uint16(b[2*i:]))
	}
	return pix
}

// EncodeRGB9E5 packs pixels of four floats each, without the fourth: 4 bytes per pixel, little-endian.
func EncodeRGB9E5(pix []float32) []byte {
	b := make([]byte, len(pix)/4*4)
	for i := 0; i+4 <= len(pix); i += 4 {
		binary.LittleEndian.PutUint32(b[i:], SharedExponent(pix[i], pix[i+1], pix[i+2]))
	}
	return b
}

// DecodeRGB9E5 unpacks pixels of 4 bytes each to four floats each, with 1 as the fourth; an incomplete pixel at the end is
// ignored.
func DecodeRGB9E5(b []byte) []float32 {
	pix := make([]float32, len(b)/4*4)
	for i := 0; i < len(pix); i += 4 {
		pix[i], pix[i+1], pix[i+2] = FromSharedExponent(binary.LittleEndian.Uint32(b[i:]))
		pix[i+3] = 1
	}
	return pix
}

// Half returns the half-precision number (IEEE 754-2019, binary16) nearest to a float, ties to even. NaN becomes 0, infinity
// MaxHalf.
func Half(f float32) uint16 {
	const (
		maxHalf = 0x477fe000 // MaxHalf as a float32
		normal  = 0x38800000 // 2^-14, the smallest normal number
		smaller = 0x33000000 // 2^-25, half of the smallest number
	)
	b := math.Float32bits(f)
	sign := uint16(b >> 16 & 0x8000)
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000:
		return 0
	case b >= maxHalf:
		return sign | 0x7bff
	case b >= normal:
		// Remove 13 bits of the mantissa, and change the bias of the exponent from 127 to 15. A carry into the exponent
		// gives the right result.
		b += 0xfff + b>>13&1
		return sign | uint16(b>>13-(127-15)<<10)
	case b <= smaller:
		return sign // half of the smallest number is as near to 0, which is even
	}
	// Below 2^-14, half floats are multiples of 2^-24. With its leading bit, a float is mantissa * 2^(exponent-150).
	mantissa, shift := b&0x7fffff|0x800000, 126-b>>23 // shift is 14 to 24
	low := mantissa & (1<<shift - 1)
	n := mantissa >> shift
	if half := uint32(1) << (shift - 1); low > half || low == half && n&1 == 1 {
		n++
	}
	return sign | uint16(n)
}

// Float returns the value of a half-precision number; infinities and NaNs are preserved.
func Float(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exponent, mantissa := uint32(h>>10&31), uint32(h&0x3ff)
	switch exponent {
	case 0:
		f := float32(mantissa) * (1.0 / (1 << 24))
		return math.Float32frombits(math.Float32bits(f) | sign)
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | mantissa<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | mantissa<<13)
}

// Constants of RGB9E5: N, the bits of a mantissa, and B, the bias of the exponent.
const (
	mantissaBits = 9
	bias         = 15
)

// SharedExponent packs a colour as RGB9E5: bits 0 to 8 are red, 9 to 17 green, 18 to 26 blue, 27 to 31 the exponent. It uses
// the algorithm of EXT_texture_shared_exponent: the largest channel sets the exponent, and mantissas are rounded to nearest,
// ties up. Negative values and NaN become 0, infinity MaxRGB9E5.
func SharedExponent(r, g, b float32) uint32 {
	r, g, b = clamp(r), clamp(g), clamp(b)
	most := max(r, g, b)
	exponent := max(-bias-1, int(math.Float32bits(most)>>23)-127) + 1 + bias // floor(log2) is the float's exponent
	if mantissa(most, exponent) == 1<<mantissaBits {
		exponent++ // rounding reached the next power of two
	}
	return mantissa(r, exponent) | mantissa(g, exponent)<<9 | mantissa(b, exponent)<<18 | uint32(exponent)<<27
}

// clamp limits a channel to 0..MaxRGB9E5; NaN fails both comparisons and becomes 0.
func clamp(f float32) float32 {
	switch {
	case f >= MaxRGB9E5:
		return MaxRGB9E5
	case f > 0:
		return f
	}
	return 0
}

// mantissa returns floor(f / 2^(exponent-B-N) + 0.5). Scaling by a power of two is exact, and in float64 so is the sum
// wherever it matters: the result is the same on machines that fuse the two operations.
func mantissa(f float32, exponent int) uint32 {
	scale := math.Float64frombits(uint64(1023+bias+mantissaBits-exponent) << 52)
	return uint32(float64(f)*scale + 0.5)
}

// FromSharedExponent unpacks a colour of RGB9E5.
func FromSharedExponent(v uint32) (r, g, b float32) {
	scale := math.Float32frombits((v>>27 + 127 - bias - mantissaBits) << 23)
	return float32(v&511) * scale, float32(v>>9&511) * scale, float32(v>>18&511) * scale
}
