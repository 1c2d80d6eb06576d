// Package input has what decoders of images share: kinds of errors, the limit on pixels, and small packings and number
// formats that several file formats use.
package input

import (
	"errors"
	"fmt"
	"math"
)

// Errors of decoders wrap one of these, after a text that says what is wrong and where: "block 3: line 5 instead of 4:
// damaged".
var (
	ErrTruncated   = errors.New("data ends too early")
	ErrDamaged     = errors.New("damaged")
	ErrUnsupported = errors.New("not supported")
	ErrTooLarge    = errors.New("too large")
)

// MaxSide is the limit for formats without their own. Products of sides, channels and bytes stay within 64 bits.
const MaxSide = 1 << 20

// CheckSize returns an error if a side is below 1 or above [MaxSide].
func CheckSize(width, height int) error {
	if width < 1 || height < 1 {
		return fmt.Errorf("size %d x %d: %w", width, height, ErrDamaged)
	}
	if width > MaxSide || height > MaxSide {
		return fmt.Errorf("%d x %d pixels: %w", width, height, ErrTooLarge)
	}
	return nil
}

// CheckPixels returns an error if there are more than maxPixels pixels.
func CheckPixels(width, height, maxPixels int) error {
	if int64(width)*int64(height) > int64(maxPixels) {
		return fmt.Errorf("%d x %d pixels: %w", width, height, ErrTooLarge)
	}
	return nil
}

// PackBits unpacks src into dst. A count n below 0 repeats a byte 1-n times; any other is followed by n+1 bytes; -128 does
// nothing. A packet that goes beyond the end of dst is cut there if loose, since some programs write such packets; otherwise
// it is an error.
func PackBits(dst, src []byte, loose bool) error {
	for len(dst) > 0 {
		if len(src) < 2 {
			return fmt.Errorf("packets end too early: %w", ErrDamaged)
		}
		n := int(int8(src[0]))
		if n == -128 {
			src = src[1:]
			continue
		}
		count, what := n+1, "packet"
		if n < 0 {
			count, what = 1-n, "run"
		}
		if loose {
			count = min(count, len(dst))
		}
		if count > len(dst) || n >= 0 && count > len(src)-1 {
			return fmt.Errorf("%s of %d bytes: %w", what, count, ErrDamaged)
		}
		if n >= 0 {
			copy(dst, src[1:1+count])
			src = src[1+count:]
		} else {
			for i := range dst[:count] {
				dst[i] = src[1]
			}
			src = src[2:]
		}
		dst = dst[count:]
	}
	return nil
}

// Half converts IEEE 754 binary16 exactly: sign, 5 bits of exponent, 10 of mantissa.
func Half(v uint16) float32 {
	sign, exp, mantissa := uint32(v>>15)<<31, uint32(v>>10)&31, uint32(v)&1023
	switch exp {
	case 0: // subnormal: mantissa * 2^-24
		return math.Float32frombits(sign | math.Float32bits(float32(mantissa)*0x1p-24))
	case 31:
		exp = 255 - 112
	}
	return math.Float32frombits(sign | (exp+112)<<23 | mantissa<<13)
}
