// Package input is what decoders of pictures share: the kinds of their errors, the bound on pixels, and the small packings and numbers that
// several formats have.
package input

import (
	"errors"
	"fmt"
	"math"
)

// An error of a decoder wraps one of these, after words of what is wrong and where: "block 3: line 5 instead of 4: damaged".
var (
	ErrTruncated   = errors.New("data ends too early")
	ErrDamaged     = errors.New("damaged")
	ErrUnsupported = errors.New("not supported")
	ErrTooLarge    = errors.New("too large")
)

// MaxSide keeps products of sides, channels and bytes in 64 bits, where a format has no limit of its own.
const MaxSide = 1 << 20

// CheckSize refuses sides that are none, or over [MaxSide].
func CheckSize(width, height int) error {
	if width < 1 || height < 1 {
		return fmt.Errorf("size %d x %d: %w", width, height, ErrDamaged)
	}
	if width > MaxSide || height > MaxSide {
		return fmt.Errorf("%d x %d pixels: %w", width, height, ErrTooLarge)
	}
	return nil
}

// CheckPixels refuses more pixels than a caller wants.
func CheckPixels(width, height, maxPixels int) error {
	if int64(width)*int64(height) > int64(maxPixels) {
		return fmt.Errorf("%d x %d pixels: %w", width, height, ErrTooLarge)
	}
	return nil
}

// PackBits fills dst: a count n below 0 repeats a byte 1-n times, another is followed by n+1 bytes; -128 is nothing. One that would go
// beyond the end of dst is cut there if loose, as some programs let it run on; else it is damage.
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

// Half widens IEEE 754 binary16, exactly: sign, 5 bits of exponent, 10 of mantissa.
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
