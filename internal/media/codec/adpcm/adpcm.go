// Package adpcm reads and writes blocks of ADPCM as WAV files hold them: four bits a sample, which say how far to go from the sample
// before, in steps that grow and shrink with the sound.
//
// IMA ADPCM, format 0x11, follows "Recommended Practices for Enhancing Digital Audio Compatibility in Multimedia Systems" of the
// Interactive Multimedia Association (1992), in the blocks of Microsoft's "New Multimedia Data Types and Data Techniques" (1994), where MS
// ADPCM, format 0x02, is from, too; that is only read. A block stands for itself:
//
//	IMA  for each channel: i16 the first sample, u8 place of the step in the table, u8 0
//	     then, as long as there are any, for each channel: 4 bytes, 8 samples, the lower four bits first
//	MS   u8 the pair of coefficients, of each channel; then i16 the step, of each; i16 the second sample, of each; i16 the first, of each
//	     then the samples, channel by channel, the upper four bits first
//
// Numbers are little-endian, samples are interleaved and signed. All of it is arithmetic of integers, so it is the same everywhere.
// Whatever is in a block, the worst that happens is an error.
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
	MaxBlockSize = 1<<16 - 1 // bytes: a WAV file has 16 bits for it

	lastStep = len(steps) - 1
)

// steps is the table of step sizes of IMA ADPCM.
var steps = [...]int32{
	7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 21, 23, 25, 28, 31, 34, 37, 41, 45, 50, 55, 60, 66, 73, 80, 88, 97, 107, 118, 130, 143, 157,
	173, 190, 209, 230, 253, 279, 307, 337, 371, 408, 449, 494, 544, 598, 658, 724, 796, 876, 963, 1060, 1166, 1282, 1411, 1552, 1707,
	1878, 2066, 2272, 2499, 2749, 3024, 3327, 3660, 4026, 4428, 4871, 5358, 5894, 6484, 7132, 7845, 8630, 9493, 10442, 11487, 12635, 13899,
	15289, 16818, 18500, 20350, 22385, 24623, 27086, 29794, 32767,
}

// moves is how far a code, its sign aside, moves on in the table of steps.
var moves = [8]int{-1, -1, -1, -1, 2, 4, 6, 8}

// jumps is how far each code, its sign aside, goes at each step: an eighth of the step, and a quarter, a half and a whole for its bits.
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

// channel is what is known of a channel between two samples.
type channel struct {
	sample int32
	index  int // in steps
}

// next takes a code of four bits.
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

// Frames is how many frames, samples of each channel, an IMA block of size bytes holds: 0, if it has not even the whole head.
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

// Decode reads an IMA block and gives the number of its frames, which are in dst, interleaved. A block may be cut off after its head: what
// is whole is read. If dst is too short, it is filled. A place in the table of steps that the table does not have is read as its last one,
// as other decoders do; then the frames come together with [ErrDamaged].
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

// place is the byte, after the head, that code k of a channel is in.
func place(k, c, channels int) int { return (k>>3*channels+c)*4 + k>>1&3 }

// Encoder writes IMA blocks, one after the other. Each code is that of the nearest sample in reach.
type Encoder struct {
	channels, size int
	index          []int // step at the end of the block before, of each channel
}

// NewEncoder is for blocks of size bytes, which is 4 for each channel, and at least once 4 more for each. At 44.1 kHz, 1024 for each
// channel is usual.
func NewEncoder(channels, size int) (*Encoder, error) {
	if channels < 1 || channels > MaxChannels {
		return nil, fmt.Errorf("IMA ADPCM of %d channels: %w", channels, ErrUnsupported)
	}
	if size < 8*channels || size > MaxBlockSize || size%(4*channels) != 0 {
		return nil, fmt.Errorf("IMA ADPCM blocks of %d bytes, %d channels: %w", size, channels, ErrUnsupported)
	}
	return &Encoder{channels, size, make([]int, channels)}, nil
}

// Frames is how many frames a block holds.
func (e *Encoder) Frames() int { return Frames(e.size, e.channels) }

// Encode appends a block to dst. It is of the frames in src, 1 to [Encoder.Frames] of them; what lacks is the last of them once more.
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

// nearest is the code that comes nearest to a sample; of equals that with the smallest step to follow.
func (c *channel) nearest(want int32) (code byte) {
	sign, bit := int32(1), byte(0)
	if want < c.sample {
		sign, bit = -1, 8
	}
	least := int32(1 << 30)
	for k, d := range &jumps[c.index] {
		off := abs(want - clamp(c.sample+sign*d))
		if off > least {
			break // they only get longer
		}
		if off < least {
			least, code = off, byte(k)|bit
		}
	}
	// Away from it there is the limit, which may be nearer than the shortest way towards it.
	if off := abs(want - clamp(c.sample-sign*jumps[c.index][0])); off < least {
		code = 8 - bit
	}
	return code
}

func abs(v int32) int32 { return max(v, -v) }

// look is how many frames of a block decide about its first step.
const look = 24

// start is the first step of a block: the one with the smallest squared error over the first frames. The step that the block before
// ended with is as good as any of the same error.
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
