// Package bptc encodes and decodes BPTC textures: BC7 (RGBA of 8 bits) and BC6H (RGB of half floats). Both store 4x4 pixels
// in 16 bytes.
//
// It follows the chapter on BPTC of the Khronos Data Format Specification and Microsoft's "BC7 Format" and "BC6H Format".
//
//   - A decoder accepts any bytes: blocks of reserved modes decode to zeros, as the specification says. Only a wrong length
//     is an error.
//   - An encoder computes with integers and with float32 without fused multiply-add, so it gives the same bytes on every
//     machine.
//   - A block of one colour is exact; so is alpha that is 0, or 255, in a whole block.
package bptc

import (
	"encoding/binary"
	"fmt"

	"github.com/kiln-pipeline/kiln/internal/media/codec/block"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

// maxSide keeps image sizes in memory far from overflow; the largest texture of current hardware is 32768.
const maxSide = 1 << 16

// EncodeBC7 encodes an image of straight RGBA, width x height pixels without padding, as BC7: 16 bytes for each 4x4 pixels,
// rows of blocks top down. It returns an error if the size is invalid or does not match rgba.
func EncodeBC7(rgba []byte, width, height int, o block.Options) ([]byte, error) {
	if err := checkImage(len(rgba), width, height); err != nil {
		return nil, err
	}
	columns, rows := block.Size(width, height, 4, 4)
	out := make([]byte, 16*columns*rows)
	o.Rows(rows, func(next func() int) {
		e := newEncoder7(o.Quality)
		var pix [64]byte
		var memo block.Memo
		for row := next(); row >= 0; row = next() {
			for column := range columns {
				block.Gather(pix[:], rgba, width, height, 4, 4, column, row)
				code, known := memo.Of(&pix)
				if !known {
					e.encode(&pix, code)
				}
				copy(out[16*(row*columns+column):], code[:])
			}
		}
	})
	return out, nil
}

// DecodeBC7 is the reverse of [EncodeBC7]: it returns width x height pixels of RGBA. It returns an error if the size is
// invalid or does not match data.
func DecodeBC7(data []byte, width, height int) ([]byte, error) {
	if err := checkData(len(data), width, height); err != nil {
		return nil, err
	}
	columns, rows := block.Size(width, height, 4, 4)
	rgba := make([]byte, 4*width*height)
	var pix [64]byte
	for row := range rows {
		for column := range columns {
			decode7((*[16]byte)(data[16*(row*columns+column):]), &pix)
			block.Scatter(rgba, pix[:], width, height, 4, 4, column, row)
		}
	}
	return rgba, nil
}

// EncodeBC6H encodes the red, green and blue of an image of RGBA values, width x height pixels without padding, as BC6H: 16
// bytes for each 4x4 pixels, rows of blocks top down. Values are linear light up to 65504; if not signed, negative values
// become 0. It returns an error if the size is invalid or does not match rgba.
func EncodeBC6H(rgba []float32, width, height int, signed bool, o block.Options) ([]byte, error) {
	if err := checkImage(len(rgba), width, height); err != nil {
		return nil, err
	}
	columns, rows := block.Size(width, height, 4, 4)
	out := make([]byte, 16*columns*rows)
	o.Rows(rows, func(next func() int) {
		e := newEncoder6(o.Quality, signed)
		var pix [64]float32
		var halfs [96]byte
		var memo block.Memo
		for row := next(); row >= 0; row = next() {
			for column := range columns {
				block.Gather(pix[:], rgba, width, height, 4, 4, column, row)
				for i := range 16 {
					for c := range 3 {
						binary.LittleEndian.PutUint16(halfs[6*i+2*c:], toHalf(pix[4*i+c], signed))
					}
				}
				code, known := memo.OfAny(halfs[:])
				if !known {
					e.encode(&halfs, code)
				}
				copy(out[16*(row*columns+column):], code[:])
			}
		}
	})
	return out, nil
}

// DecodeBC6H is the reverse of [EncodeBC6H]: it returns width x height pixels of RGBA, with alpha 1. It returns an error if
// the size is invalid or does not match data.
func DecodeBC6H(data []byte, width, height int, signed bool) ([]float32, error) {
	if err := checkData(len(data), width, height); err != nil {
		return nil, err
	}
	columns, rows := block.Size(width, height, 4, 4)
	rgba := make([]float32, 4*width*height)
	var halfs [16][3]uint16
	var pix [64]float32
	for row := range rows {
		for column := range columns {
			decode6((*[16]byte)(data[16*(row*columns+column):]), signed, &halfs)
			for i, h := range halfs {
				pix[4*i], pix[4*i+1], pix[4*i+2], pix[4*i+3] = input.Half(h[0]), input.Half(h[1]), input.Half(h[2]), 1
			}
			block.Scatter(rgba, pix[:], width, height, 4, 4, column, row)
		}
	}
	return rgba, nil
}

func checkSize(width, height int) error {
	if width < 1 || height < 1 || width > maxSide || height > maxSide {
		return fmt.Errorf("bptc: %d x %d pixels are not a valid size", width, height)
	}
	return nil
}

// checkImage checks the size of an image of n values.
func checkImage(n, width, height int) error {
	if err := checkSize(width, height); err != nil {
		return err
	}
	if int64(n) != 4*int64(width)*int64(height) {
		return fmt.Errorf("bptc: %d values are not an image of %d x %d pixels", n, width, height)
	}
	return nil
}

// checkData checks the size of an image in n bytes, before any memory is allocated.
func checkData(n, width, height int) error {
	if err := checkSize(width, height); err != nil {
		return err
	}
	columns, rows := block.Size(width, height, 4, 4)
	if want := 16 * int64(columns) * int64(rows); int64(n) != want {
		return fmt.Errorf("bptc: %d bytes for an image of %d x %d pixels, which takes %d", n, width, height, want)
	}
	return nil
}
