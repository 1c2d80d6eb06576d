package bcn

import (
	"encoding/binary"
	"fmt"

	"github.com/kiln-pipeline/kiln/internal/media/codec/block"
)

// Decode decodes blocks to width x height straight RGBA values, rows top down.
//
// Channels that a format does not have are set as by a GPU's sampler: green and blue 0, alpha 255. Signed channels are
// mapped from -1..1 to 0..255. An error is ErrFormat, ErrSize or ErrLength.
func Decode(f Format, data []byte, width, height int) ([]byte, error) {
	if f >= formats {
		return nil, fmt.Errorf("decode %v: %w", f, ErrFormat)
	}
	if err := check(width, height); err != nil {
		return nil, fmt.Errorf("decode %v of %d x %d: %w", f, width, height, err)
	}
	columns, rows := block.Size(width, height, 4, 4)
	size := f.BlockBytes()
	if uint64(len(data)) != uint64(columns)*uint64(rows)*uint64(size) { // the image has at most 8 times this size, and a block
		return nil, fmt.Errorf("decode %v of %d x %d: %w: %d bytes", f, width, height, ErrLength, len(data))
	}
	out := make([]byte, 4*width*height)
	for row := range rows {
		for column := range columns {
			pixels := decodeBlock(f, data[(row*columns+column)*size:][:size])
			block.Scatter(out, pixels[:], width, height, 4, 4, column, row)
		}
	}
	return out, nil
}

// decodeBlock returns the 16 RGBA pixels of a block.
func decodeBlock(f Format, data []byte) (pixels [64]byte) {
	for i := 3; i < 64; i += 4 {
		pixels[i] = 255
	}
	first := binary.LittleEndian.Uint64(data)
	switch f {
	case BC1, BC1A:
		decodeColor(&pixels, first, f)
	case BC2:
		decodeColor(&pixels, binary.LittleEndian.Uint64(data[8:]), f)
		for i := range 16 {
			pixels[4*i+3] = byte(first>>(4*i)&15) * 17
		}
	case BC3:
		decodeColor(&pixels, binary.LittleEndian.Uint64(data[8:]), f)
		decodeChannel(&pixels, 3, first)
	case BC4:
		decodeChannel(&pixels, 0, first)
	case BC5:
		decodeChannel(&pixels, 0, first)
		decodeChannel(&pixels, 1, binary.LittleEndian.Uint64(data[8:]))
	case BC4S:
		decodeSigned(&pixels, 0, first)
	case BC5S:
		decodeSigned(&pixels, 0, first)
		decodeSigned(&pixels, 1, binary.LittleEndian.Uint64(data[8:]))
	}
	return pixels
}

// decodeColor sets red, green and blue, and for BC1A alpha. A block is
//
//	 0  u16 first endpoint: red 5 bits at 11, green 6 at 5, blue 5 at 0
//	16  u16 second endpoint
//	32  16 x 2 bits, the first pixel lowest
//
// If the first endpoint is not the greater number, BC1 has three places and black; BC2 and BC3 always have four places.
func decodeColor(pixels *[64]byte, b uint64, f Format) {
	var palette [4][4]byte // by index, RGBA
	e0, e1 := expand(uint16(b)), expand(uint16(b>>16))
	four := f > BC1A || uint16(b) > uint16(b>>16)
	for c := range 3 {
		palette[0][c], palette[1][c] = byte(e0[c]), byte(e1[c])
		if four {
			palette[2][c] = byte((2*e0[c] + e1[c]) / 3)
			palette[3][c] = byte((e0[c] + 2*e1[c]) / 3)
		} else {
			palette[2][c] = byte((e0[c] + e1[c]) / 2)
		}
	}
	for i := range palette {
		palette[i][3] = 255
	}
	if !four && f == BC1A {
		palette[3][3] = 0
	}
	for i := range 16 {
		p := &palette[b>>(32+2*i)&3]
		copy(pixels[4*i:4*i+3], p[:3])
		if f == BC1A {
			pixels[4*i+3] = p[3]
		}
	}
}

// decodeChannel sets one channel. A block is u8 first endpoint, u8 second endpoint, 16 x 3 bits with the first pixel lowest.
// If the first endpoint is not the greater one, there are six places and the values 0 and 255.
func decodeChannel(pixels *[64]byte, at int, b uint64) {
	e0, e1 := int(b&255), int(b>>8&255)
	palette := [8]byte{byte(e0), byte(e1), 6: 0, 7: 255}
	if e0 > e1 {
		for i := 1; i < 7; i++ {
			palette[i+1] = byte(((7-i)*e0 + i*e1) / 7)
		}
	} else {
		for i := 1; i < 5; i++ {
			palette[i+1] = byte(((5-i)*e0 + i*e1) / 5)
		}
	}
	for i := range 16 {
		pixels[4*i+at] = palette[b>>(16+3*i)&7]
	}
}

// decodeSigned is decodeChannel for endpoints from -127 to 127. An endpoint of -128 counts as -127, except in the comparison
// of the endpoints.
func decodeSigned(pixels *[64]byte, at int, b uint64) {
	s0, s1 := int8(b), int8(b>>8)
	e0, e1 := max(int(s0), -127), max(int(s1), -127)
	palette := [8]byte{unsign(e0), unsign(e1), 6: 0, 7: 255}
	if s0 > s1 {
		for i := 1; i < 7; i++ {
			palette[i+1] = unsign(((7-i)*e0 + i*e1) / 7)
		}
	} else {
		for i := 1; i < 5; i++ {
			palette[i+1] = unsign(((5-i)*e0 + i*e1) / 5)
		}
	}
	for i := range 16 {
		pixels[4*i+at] = palette[b>>(16+3*i)&7]
	}
}

// unsign maps -127..127 to the nearest of 0..255; the 127.5 of zero is rounded up.
func unsign(v int) byte {
	return byte(((v+127)*255 + 127) / 254)
}

// expand returns 5:6:5 bits as red, green and blue of 8 bits: the high bits are repeated below.
func expand(v uint16) [3]int32 {
	r, g, b := int32(v>>11), int32(v>>5&63), int32(v&31)
	return [3]int32{r<<3 | r>>2, g<<2 | g>>4, b<<3 | b>>2}
}
