// Package adpcm reads and writes the ADPCM blocks of WAV files. A code of four bits gives the difference from the previous
// sample, in steps that adapt to the signal.
//
// IMA ADPCM, format 0x11, follows "Recommended Practices for Enhancing Digital Audio Compatibility in Multimedia Systems" of
// the Interactive Multimedia Association (1992), in the block layout of Microsoft's "New Multimedia Data Types and Data
// Techniques" (1994). The latter also defines MS ADPCM, format 0x02, which this package only reads. Each block can be
// decoded on its own:
//
//	IMA  for each channel: i16 the first sample, u8 index of the step in the table, u8 0
//	     then, repeated to the end, for each channel: 4 bytes, 8 samples, the lower four bits first
//	MS   u8 the pair of coefficients, of each channel; then i16 the step, of each; i16 the second sample, of each; i16 the first, of each
//	     then the samples, channel by channel, the upper four bits first
//
// Numbers are little-endian; samples are interleaved and signed. All arithmetic is on integers, so results are the same on
// every machine. Invalid data gives an error, never a panic.
package adpcm

import (
	"encoding/binary"
	"errors"
	"fmt"
)

var (
	ErrTruncated   = errors.New("block ends too early")
	ErrDamaged     = errors.New("damaged")
	ErrUnsupported = errors.New("not supported")
)

const (
	MaxChannels  = 64
	MaxBlockSize = 1<<16 - 1 // bytes: a WAV file stores it in 16 bits

	lastStep = len(steps) - 1
)

// steps are the step sizes of IMA ADPCM.
var steps = [...]int32{
	7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 21, 23, 25, 28, 31, 34, 37, 41, 45, 50, 55, 60, 66, 73, 80, 88, 97, 107, 118, 130, 143, 157,
	173, 190, 209, 230, 253, 279, 307, 337, 371, 408, 449, 494, 544, 598, 658, 724, 796, 876, 963, 1060, 1166, 1282, 1411, 1552, 1707,
	1878, 2066, 2272, 2499, 2749, 3024, 3327, 3660, 4026, 4428, 4871, 5358, 5894, 6484, 7132, 7845, 8630, 9493, 10442, 11487, 12635, 13899,
	15289, 16818, 18500, 20350, 22385, 24623, 27086, 29794, 32767,
}

// moves gives the change of the index into steps for a code without its sign bit.
var moves = [8]int{-1, -1, -1, -1, 2, 4, 6, 8}

// jumps is the size of the difference from the previous sample for each step and each code without its sign bit: an eighth of the
// step, plus a quarter, a half and a whole step for the code's three bits.
var jumps = func() (t [len(steps)][8]int32) {
	for i, step := range steps {
		for code := range t[i] {
			d := step >> 3
			for bit := range 3 {
				if code>>bit&1 != 0 {
					d += step >> (2 - bit)
				}
			}
			t[i][code] = d
		}
	}
	return t
}()

// channel is the state of a channel between two samples.
type channel struct {
	sample int32
	index  int // in steps
}

// next decodes a code of four bits.
func (c *channel) next(code byte) int16 {
	d := jumps[c.index][code&7]
	if code&8 != 0 {
		d = -d
	}
	c.sample = clamp(c.sample + d)
	c.index = min(max(c.index+moves[code&7], 0), lastStep)
	return int16(c.sample)
}

func clamp(v int32) int32 { return min(max(v, -1<<15), 1<<15-1) }

// Frames returns the number of frames in an IMA block of size bytes; a frame is one sample of each channel. It returns 0 if
// the block is shorter than its head.
func Frames(size, channels int) int {
	body := size - 4*channels
	switch {
	case channels < 1 || body < 0:
		return 0
	case channels == 1:
		return 1 + 2*body
	}
	return 1 + body/(4*channels)*8
}

// Decode decodes an IMA block into dst, interleaved, and returns the number of frames. A block may be cut off after its
// head: Decode reads its complete frames. If dst is too short, Decode fills it and stops. An index beyond the table of steps
// is read as the last one, as in other decoders; Decode then returns the frames together with [ErrDamaged].
func Decode(dst []int16, block []byte, channels int) (frames int, err error) {
	if channels < 1 || channels > MaxChannels {
		return 0, fmt.Errorf("IMA ADPCM of %d channels: %w", channels, ErrUnsupported)
	}
	frames = min(Frames(len(block), channels), len(dst)/channels)
	if len(block) < 4*channels {
		return 0, fmt.Errorf("IMA ADPCM of %d bytes, %d channels: %w", len(block), channels, ErrTruncated)
	}
	for c := range min(channels, frames*channels) {
		head := block[4*c:]
		s := channel{int32(int16(binary.LittleEndian.Uint16(head))), int(head[2])}
		if s.index > lastStep {
			err = fmt.Errorf("IMA ADPCM step %d: %w", s.index, ErrDamaged)
			s.index = lastStep
		}
		dst[c] = int16(s.sample)
		out := dst[c:]
		for k := range frames - 1 {
			code := block[4*channels+place(k, c, channels)] >> (k & 1 * 4)
			out[(k+1)*channels] = s.next(code)
		}
	}
	return frames, err
}

// place returns the offset, after the head, of the byte that has code k of channel c.
func place(k, c, channels int) int { return (k>>3*channels+c)*4 + k>>1&3 }

// Encoder writes IMA blocks in sequence. It takes for each sample the code that comes nearest to it.
type Encoder struct {
	channels, size int
	index          []int // index of the step at the end of the previous block, for each channel
}

// NewEncoder returns an encoder for blocks of size bytes. The size is 4 bytes for each channel, and a multiple of that, at
// least one, for the samples. At 44.1 kHz, 1024 bytes for each channel are usual.
func NewEncoder(channels, size int) (*Encoder, error) {
	if channels < 1 || channels > MaxChannels {
		return nil, fmt.Errorf("IMA ADPCM of %d channels: %w", channels, ErrUnsupported)
	}
	if size < 8*channels || size > MaxBlockSize || size%(4*channels) != 0 {
		return nil, fmt.Errorf("IMA ADPCM blocks of %d bytes, %d channels: %w", size, channels, ErrUnsupported)
	}
	return &Encoder{channels, size, make([]int, channels)}, nil
}

// Frames returns the number of frames in a block.
func (e *Encoder) Frames() int { return Frames(e.size, e.channels) }

// Encode appends a block of the frames in src to dst. If src has fewer frames than [Encoder.Frames], the last one is
// repeated; it must have at least one.
func (e *Encoder) Encode(dst []byte, src []int16) ([]byte, error) {
	frames := len(src) / e.channels
	if frames < 1 || frames > e.Frames() || len(src)%e.channels != 0 {
		return dst, fmt.Errorf("IMA ADPCM: %d samples are not a block of 1 to %d frames of %d channels", len(src), e.Frames(), e.channels)
	}
	at := len(dst)
	dst = append(dst, make([]byte, e.size)...)
	block := dst[at:]
	for c := range e.channels {
		s := channel{int32(src[c]), e.start(c, src)}
		binary.LittleEndian.PutUint16(block[4*c:], uint16(s.sample))
		block[4*c+2] = byte(s.index)
		for k := range e.Frames() - 1 {
			want := int32(src[min(k+1, frames-1)*e.channels+c])
			code := s.nearest(want)
			s.next(code)
			block[4*e.channels+place(k, c, e.channels)] |= code << (k & 1 * 4)
		}
		e.index[c] = s.index
	}
	return dst, nil
}

// nearest returns the code that comes nearest to a sample; of equally near codes, the one with the smallest next step.
func (c *channel) nearest(want int32) (code byte) {
	sign, bit := int32(1), byte(0)
	if want < c.sample {
		sign, bit = -1, 8
	}
	least := int32(1 << 30)
	for k, d := range &jumps[c.index] {
		off := abs(want - clamp(c.sample+sign*d))
		if off > least {
			break // later codes only go further
		}
		if off < least {
			least, code = off, byte(k)|bit
		}
	}
	// At the limits of 16 bits, the shortest jump in the other direction is cut off, and may come nearer.
	if off := abs(want - clamp(c.sample-sign*jumps[c.index][0])); off < least {
		code = 8 - bit
	}
	return code
}

func abs(v int32) int32 { return max(v, -v) }

// look is the number of frames that decide about the first step of a block.
const look = 24

// start returns the index of the first step of a block: the one with the smallest squared error over the first frames. Of
// steps with the same error it prefers the step at the end of the previous block.
func (e *Encoder) start(c int, src []int16) int {
	best, least := e.index[c], int64(-1)
	for i := range len(steps) + 1 {
		index := i - 1
		if i == 0 {
			index = e.index[c]
		}
		s, sum := channel{int32(src[c]), index}, int64(0)
		for f := e.channels + c; f < len(src) && f < look*e.channels && (least < 0 || sum < least); f += e.channels {
			off := int64(int32(src[f]) - int32(s.next(s.nearest(int32(src[f])))))
			sum += off * off
		}
		if least < 0 || sum < least {
			best, least = index, sum
		}
	}
	return best
}
