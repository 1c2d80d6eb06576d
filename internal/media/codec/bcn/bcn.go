// Package bcn writes and reads the block-compressed formats of desktop GPUs that are based on lines: a block has two
// endpoints and, for each of its 4 x 4 pixels, a place on the line between them.
//
//	BC1   8 bytes   colour: two endpoints of 5:6:5 bits, 2 bits per pixel; 4 places, or 3 and a black that may be transparent
//	BC2  16 bytes   4 bits of alpha per pixel, then BC1's colour with 4 places
//	BC3  16 bytes   BC4's block for alpha, then BC1's colour with 4 places
//	BC4   8 bytes   one channel: two endpoints of 8 bits, 3 bits per pixel; 8 places, or 6 and both ends of the range
//	BC5  16 bytes   BC4's block for red, then for green
//
// It follows the Khronos Data Format Specification 1.3, sections 18 (S3TC) and 19 (RGTC), which agree with the text of
// Direct3D 10.
//
// Blocks are stored in rows from the top left, and each is independent of the others. Pixels of a partial block beyond the
// image are unspecified. Bits are decided by integers, or by floats that are never fused, so every machine writes the same
// bytes.
//
// The specification interpolates with real numbers and leaves the rounding to the decoder. This decoder rounds towards zero,
// as SwiftShader and libsquish do, and gives the same bytes. The encoder minimises the error with such decoders: on a GPU
// that rounds to the nearest, the result is 0.5 to 0.7 dB worse for BC4 and BC5, and 0.03 dB for BC1. Encoding for such a
// GPU would cost the other decoders more, 0.7 to 1 dB.
package bcn

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/kiln-pipeline/kiln/internal/media/codec/block"
)

// Format of a texture's blocks.
type Format uint8

const (
	BC1  Format = iota // red, green, blue; every pixel opaque
	BC1A               // with one bit of alpha: transparent pixels are black
	BC2                // with four bits of alpha; can only be read
	BC3                // with a separate block of alpha
	BC4                // one channel, 0 to 1
	BC5                // two channels, 0 to 1
	BC4S               // one channel, -1 to 1; can only be read
	BC5S               // two channels, -1 to 1; can only be read
	formats
)

var names = [formats]string{"BC1", "BC1A", "BC2", "BC3", "BC4", "BC5", "BC4S", "BC5S"}

func (f Format) String() string {
	if f < formats {
		return names[f]
	}
	return fmt.Sprintf("Format(%d)", uint8(f))
}

// BlockBytes returns the size of a block of 4 x 4 pixels in bytes, or 0 for an unknown format.
func (f Format) BlockBytes() int {
	switch f {
	case BC1, BC1A, BC4, BC4S:
		return 8
	case BC2, BC3, BC5, BC5S:
		return 16
	}
	return 0
}

// MaxSide is the longest side of an image in pixels: four times the limit of Direct3D 12 and of common Vulkan devices.
const MaxSide = 1 << 16

var (
	ErrFormat = errors.New("the format does not support this")
	ErrSize   = errors.New("the image is empty, or larger than 65536 pixels a side")
	ErrLength = errors.New("the data is not as long as its format and size say")
)

// Encode encodes an image of width x height straight RGBA values, rows top down, as blocks.
//
// BC1 takes red, green and blue; BC1A makes pixels with an alpha below 128 transparent; BC4 takes red, BC5 red and green.
// All channels have the same weight, and colours have the same weight for any alpha. An error is ErrFormat, ErrSize or
// ErrLength.
func Encode(f Format, rgba []byte, width, height int, o block.Options) ([]byte, error) {
	if f >= formats || f == BC2 || f == BC4S || f == BC5S {
		return nil, fmt.Errorf("encode %v: %w", f, ErrFormat)
	}
	if err := check(width, height); err != nil {
		return nil, fmt.Errorf("encode %v of %d x %d: %w", f, width, height, err)
	}
	if uint64(len(rgba)) != 4*uint64(width)*uint64(height) {
		return nil, fmt.Errorf("encode %v of %d x %d: %w: %d bytes", f, width, height, ErrLength, len(rgba))
	}
	columns, rows := block.Size(width, height, 4, 4)
	size := f.BlockBytes()
	out := make([]byte, columns*rows*size)
	o.Rows(rows, func(next func() int) {
		var e encoder
		e.quality = min(o.Quality, block.Best)
		if lanes {
			e.color.by, e.channel.starts = new(colorLanes), &channelTables()[e.quality]
		}
		if lanes && wider {
			e.values = new([3072]byte)
		}
		for row := next(); row >= 0; row = next() {
			for column := range columns {
				block.Gather(e.pixels[:], rgba, width, height, 4, 4, column, row)
				code, known := e.memo.Of(&e.pixels)
				if !known {
					e.block(f, code[:size])
				}
				copy(out[(row*columns+column)*size:], code[:size])
			}
		}
	})
	return out, nil
}

// encoder is the state of one worker.
type encoder struct {
	quality block.Quality
	pixels  [64]byte // of the current block, RGBA
	color   colors
	channel channel
	values  *[3072]byte // for channelsWide, or nil
	memo    block.Memo
}

// block encodes the current pixels.
func (e *encoder) block(f Format, dst []byte) {
	switch f {
	case BC1, BC1A:
		binary.LittleEndian.PutUint64(dst, e.color.encode(&e.pixels, f, e.quality))
	case BC3:
		binary.LittleEndian.PutUint64(dst, e.channel.encode(&e.pixels, 3, e.quality))
		binary.LittleEndian.PutUint64(dst[8:], e.color.encode(&e.pixels, f, e.quality))
	case BC4:
		binary.LittleEndian.PutUint64(dst, e.channel.encode(&e.pixels, 0, e.quality))
	case BC5:
		if e.values != nil {
			channelsWide(&e.pixels, &e.channel.starts.search[0], e.values, (*[16]byte)(dst))
			return
		}
		binary.LittleEndian.PutUint64(dst, e.channel.encode(&e.pixels, 0, e.quality))
		binary.LittleEndian.PutUint64(dst[8:], e.channel.encode(&e.pixels, 1, e.quality))
	}
}

func check(width, height int) error {
	if width < 1 || height < 1 || width > MaxSide || height > MaxSide {
		return ErrSize
	}
	return nil
}
