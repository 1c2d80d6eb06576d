package astc

import (
	"bytes"
	"errors"
	"fmt"
)

// magic begins an .astc file. The header has 16 bytes: the magic, width, height and depth of the footprint (a byte each),
// then those of the image (three bytes each, little-endian). The blocks follow.
var magic = [4]byte{0x13, 0xAB, 0xA1, 0x5C}

// Image is the content of an .astc file: one level of a texture. The file does not record whether it is sRGB.
type Image struct {
	Footprint
	Width, Height int
	Blocks        []byte // 16 bytes each, rows top down
}

// Write returns the .astc file of an image. Its sides must be below 1<<24.
func Write(m Image) []byte {
	out := append(magic[:len(magic):len(magic)], byte(m.Footprint.Width), byte(m.Footprint.Height), 1)
	for _, n := range [3]int{m.Width, m.Height, 1} {
		out = append(out, byte(n), byte(n>>8), byte(n>>16))
	}
	return append(out, m.Blocks...)
}

// Read parses an .astc file. Blocks is a slice of data. Data after the last block is an error, and so is a depth other than
// 1.
func Read(data []byte) (Image, error) {
	if !bytes.HasPrefix(data, magic[:]) {
		return Image{}, errors.New("astc: not an .astc file")
	}
	if len(data) < 16 {
		return Image{}, errors.New("astc: the header is cut off")
	}
	number := func(at int) int { return int(data[at]) | int(data[at+1])<<8 | int(data[at+2])<<16 }
	m := Image{Footprint{int(data[4]), int(data[5])}, number(7), number(10), data[16:]}
	if data[6] != 1 || number(13) != 1 {
		return Image{}, errors.New("astc: images with depth are not supported")
	}
	if err := m.check(m.Width, m.Height); err != nil {
		return Image{}, err
	}
	if want := m.Size(m.Width, m.Height); len(m.Blocks) != want {
		return Image{}, fmt.Errorf("astc: %d bytes of blocks, want %d", len(m.Blocks), want)
	}
	return m, nil
}
