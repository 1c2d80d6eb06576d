// Package etc2 encodes and decodes textures in the ETC2 and EAC formats, which every OpenGL ES 3 device supports.
//
// It follows the Khronos Data Format Specification 1.3, chapters "ETC2 Compressed Texture Image Formats" and "EAC". An image
// is divided into blocks of 4 by 4 pixels, in rows from the top, with padding beyond the edges. A block of colour has 64
// bits, and so has a block of one EAC channel. Formats with both store alpha first, those with two channels red first. The
// most significant byte of a word is stored first.
//
// All arithmetic is on integers, so every machine writes the same bytes. The error is the unweighted sum of squares over the
// channels, as in PSNR.
package etc2

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/kiln-pipeline/kiln/internal/media/codec/block"
)

// Format of a texture.
type Format uint8

const (
	RGB8   Format = iota // colour
	RGB8A1               // colour, and alpha that is 0 or 255 ("punch-through")
	RGBA8                // colour, and alpha in EAC
	R11                  // one channel of 11 bits
	RG11                 // two channels of 11 bits
	R11S                 // one channel from -1 to 1
	RG11S                // two channels from -1 to 1
	formats
)

var names = [formats]string{"RGB8", "RGB8A1", "RGBA8", "R11", "RG11", "R11S", "RG11S"}

func (f Format) String() string {
	if f < formats {
		return names[f]
	}
	return fmt.Sprintf("Format(%d)", f)
}

// BlockBytes is the size of a block of 4 by 4 pixels: 8 or 16 bytes.
func (f Format) BlockBytes() int {
	switch f {
	case RGBA8, RG11, RG11S:
		return 16
	}
	return 8
}

// channels returns the number of channels of a format with only EAC, or 0 for a format with colour.
func (f Format) channels() int {
	switch f {
	case R11, R11S:
		return 1
	case RG11, RG11S:
		return 2
	}
	return 0
}

func (f Format) signed() bool { return f == R11S || f == RG11S }

// ErrTruncated is the error of decoding fewer blocks than the image has.
var ErrTruncated = errors.New("etc2: data ends too early")

// maxSide is in pixels: twice the largest texture of current hardware. It keeps sizes in bytes within 64 bits.
const maxSide = 1 << 15

// check checks the arguments of all functions: a known format and a size from 1x1 to 32768x32768.
func (f Format) check(width, height int) error {
	if f >= formats {
		return fmt.Errorf("etc2: unknown format %d", f)
	}
	if width < 1 || height < 1 || width > maxSide || height > maxSide {
		return fmt.Errorf("etc2: size %dx%d is not within 1x1 to %dx%d", width, height, maxSide, maxSide)
	}
	return nil
}

// Encode encodes an image of RGBA values with straight alpha as blocks: 8 bits per channel, width*height*4 bytes, rows from
// the top. RGB8 ignores alpha; in RGB8A1, an alpha of at least 128 is opaque. R11 takes red, RG11 red and green. The signed
// formats map a byte b to (b-128)/127, so 128 is exactly 0.
func Encode(f Format, rgba []byte, width, height int, o block.Options) ([]byte, error) {
	if err := f.check(width, height); err != nil {
		return nil, err
	}
	if len(rgba) != 4*width*height {
		return nil, fmt.Errorf("etc2: %d bytes are not an image of %dx%d", len(rgba), width, height)
	}
	columns, rows := block.Size(width, height, 4, 4)
	size := f.BlockBytes()
	out := make([]byte, columns*rows*size)
	o.Rows(rows, func(next func() int) {
		e := encoder{format: f, effort: &efforts[min(o.Quality, block.Best)]}
		for row := next(); row >= 0; row = next() {
			for column := range columns {
				block.Gather(e.pixels[:], rgba, width, height, 4, 4, column, row)
				code, known := e.memo.Of(&e.pixels)
				if !known {
					e.block(code[:size], &e.pixels)
				}
				copy(out[(row*columns+column)*size:], code[:size])
			}
		}
	})
	return out, nil
}

// encoder is the state of one worker.
type encoder struct {
	format Format
	effort *effort
	pixels [64]byte // of the current block
	memo   block.Memo
}

// block encodes 16 pixels.
func (e *encoder) block(dst []byte, src *[64]byte) {
	switch e.format {
	case RGB8:
		binary.BigEndian.PutUint64(dst, e.effort.colour(src, false))
	case RGB8A1:
		binary.BigEndian.PutUint64(dst, e.effort.colour(src, true))
	case RGBA8:
		binary.BigEndian.PutUint64(dst, e.effort.channel(src, 3, &alpha8))
		binary.BigEndian.PutUint64(dst[8:], e.effort.colour(src, false))
	default:
		for c := range e.format.channels() {
			kind := &unsigned11
			if e.format.signed() {
				kind = &signed11
			}
			binary.BigEndian.PutUint64(dst[8*c:], e.effort.channel(src, c, kind))
		}
	}
}

// blocks checks the arguments of a decoder and calls decode for each block.
func (f Format) blocks(data []byte, width, height int, decode func(column, row int, block []byte)) error {
	columns, rows := block.Size(width, height, 4, 4)
	size := f.BlockBytes()
	if len(data) < columns*rows*size {
		return ErrTruncated
	}
	for row := range rows {
		for column := range columns {
			decode(column, row, data[(row*columns+column)*size:][:size])
		}
	}
	return nil
}

// Decode is the reverse of [Encode]: it returns RGBA values, width*height*4 bytes. Channels that the format does not have
// are 0, and alpha is 255. Channels with 11 bits are rounded to the nearest byte. Data may be longer than the image. Memory
// is allocated only if data has all blocks.
func Decode(f Format, data []byte, width, height int) ([]byte, error) {
	if err := f.check(width, height); err != nil {
		return nil, err
	}
	var out []byte
	var dst [64]byte
	err := f.blocks(data, width, height, func(column, row int, src []byte) {
		if out == nil {
			out = make([]byte, 4*width*height)
		}
		word := binary.BigEndian.Uint64(src)
		switch f {
		case RGB8, RGB8A1:
			decodeColour(&dst, word, f == RGB8A1)
		case RGBA8:
			decodeColour(&dst, binary.BigEndian.Uint64(src[8:]), false)
			decodeAlpha(&dst, word)
		default:
			for i := range 16 {
				dst[4*i+3] = 255
			}
			for c := range f.channels() {
				for i, v := range decode11(binary.BigEndian.Uint64(src[8*c:]), f.signed()) {
					dst[4*i+c] = to8(v, f.signed())
				}
			}
		}
		block.Scatter(out, dst[:], width, height, 4, 4, column, row)
	})
	return out, err
}

// Decode16 decodes R11, RG11, R11S and RG11S to 16 bits per channel, widened as the specification defines: 1 or 2 values per
// pixel, width*height*channels in total. Values of the signed formats are the bits of an int16, from -32767 to 32767.
func Decode16(f Format, data []byte, width, height int) ([]uint16, error) {
	if err := f.check(width, height); err != nil {
		return nil, err
	}
	n := f.channels()
	if n == 0 {
		return nil, fmt.Errorf("etc2: %v has 8 bits a channel", f)
	}
	var out []uint16
	err := f.blocks(data, width, height, func(column, row int, src []byte) {
		if out == nil {
			out = make([]uint16, n*width*height)
		}
		for c := range n {
			values := decode11(binary.BigEndian.Uint64(src[8*c:]), f.signed())
			for y := range min(4, height-4*row) {
				for x := range min(4, width-4*column) {
					out[((4*row+y)*width+4*column+x)*n+c] = to16(values[4*y+x], f.signed())
				}
			}
		}
	})
	return out, err
}
