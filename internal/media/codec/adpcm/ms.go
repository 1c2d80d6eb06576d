package adpcm

import (
	"encoding/binary"
	"fmt"
)

// msSteps are the factors by which each code changes the step, in 256ths.
var msSteps = [16]int32{230, 230, 230, 230, 307, 409, 512, 614, 768, 614, 512, 409, 307, 230, 230, 230}

const (
	msLeast = 16                // the smallest step
	msMost  = (1<<31 - 1) / 768 // the largest step: products stay within 32 bits
)

// MSCoefficients returns the pairs that begin the list of every MS ADPCM file. A pair has the weights of the two previous
// samples in the prediction of the next one, in 256ths.
func MSCoefficients() [][2]int16 {
	return [][2]int16{{256, 0}, {512, -256}, {0, 0}, {192, 64}, {240, 0}, {460, -208}, {392, -232}}
}

// MSFrames returns the number of frames in an MS block of size bytes. It returns 0 if the block is shorter than its head.
func MSFrames(size, channels int) int {
	body := size - 7*channels
	if channels < 1 || body < 0 {
		return 0
	}
	return 2 + 2*body/channels
}

// DecodeMS decodes an MS block of one or two channels; it treats cut-off blocks and a short dst as [Decode] does. A pair of
// coefficients beyond the list is read as the first pair; DecodeMS then returns the frames together with [ErrDamaged].
func DecodeMS(dst []int16, block []byte, channels int, coefficients [][2]int16) (frames int, err error) {
	if channels < 1 || channels > 2 {
		return 0, fmt.Errorf("MS ADPCM of %d channels: %w", channels, ErrUnsupported)
	}
	if len(coefficients) == 0 {
		return 0, fmt.Errorf("MS ADPCM without coefficients: %w", ErrDamaged)
	}
	if len(block) < 7*channels {
		return 0, fmt.Errorf("MS ADPCM of %d bytes, %d channels: %w", len(block), channels, ErrTruncated)
	}
	frames = min(MSFrames(len(block), channels), len(dst)/channels)
	i16 := func(field, c int) int32 {
		return int32(int16(binary.LittleEndian.Uint16(block[channels*(1+2*field)+2*c:])))
	}
	for c := range channels {
		pair := int(block[c])
		if pair >= len(coefficients) {
			err = fmt.Errorf("MS ADPCM coefficients %d of %d: %w", pair, len(coefficients), ErrDamaged)
			pair = 0
		}
		c1, c2 := int64(coefficients[pair][0]), int64(coefficients[pair][1])
		step, last, before := i16(0, c), i16(1, c), i16(2, c)
		body := block[7*channels:]
		for f := range frames {
			switch f {
			case 0:
				dst[c] = int16(before)
			case 1:
				dst[channels+c] = int16(last)
			default:
				k := (f-2)*channels + c
				code := body[k>>1] >> (4 - k&1*4) & 15
				// The quotient is rounded towards 0.
				next := (int64(last)*c1+int64(before)*c2)/256 + int64(int8(code<<4)>>4)*int64(step)
				before, last = last, int32(min(max(next, -1<<15), 1<<15-1))
				step = min(max(msSteps[code]*step>>8, msLeast), msMost)
				dst[f*channels+c] = int16(last)
			}
		}
	}
	return frames, err
}
