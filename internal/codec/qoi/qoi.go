// Package qoi reads images of the Quite OK Image Format.
//
// It follows "The Quite OK Image Format, Specification Version 1.0" (D. Szablewski, 2022; qoiformat.org). An image that says it
// has 3 channels is opaque, whatever its pixels say. The 8 bytes that mark the end may be missing, the pixels may not.
//
// Memory is taken only after the number of pixels was compared with the caller's limit and with the length of the
// data: a byte makes 62 pixels at most.
package qoi

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

var (
	ErrTruncated = errors.New("data ends too early")
	ErrDamaged   = errors.New("damaged")
	ErrTooLarge  = errors.New("too large")
)

// headerSize of the file, in bytes.
const headerSize = 14

// maxSide keeps Width*Height far from overflowing. The specification has no limit.
const maxSide = 1 << 20

// Header is the start of a file.
//
//	 0  4 bytes  "qoif"
//	 4  u32      width, u32 height, in pixels, big-endian
//	12  u8       channels: 3 or 4
//	13  u8       0 if colours are sRGB, 1 if they are linear; alpha is linear
type Header struct {
	Width, Height int
	Alpha         bool
	Linear        bool
}

// ParseHeader reads the header.
func ParseHeader(data []byte) (Header, error) {
	if len(data) < headerSize {
		return Header{}, ErrTruncated
	}
	if string(data[:4]) != "qoif" {
		return Header{}, fmt.Errorf("no signature: %w", ErrDamaged)
	}
	w, h := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if w == 0 || h == 0 {
		return Header{}, fmt.Errorf("size %d x %d: %w", w, h, ErrDamaged)
	}
	if w > maxSide || h > maxSide {
		return Header{}, fmt.Errorf("%d x %d pixels: %w", w, h, ErrTooLarge)
	}
	if data[12] != 3 && data[12] != 4 {
		return Header{}, fmt.Errorf("%d channels: %w", data[12], ErrDamaged)
	}
	if data[13] > 1 {
		return Header{}, fmt.Errorf("colour space %d: %w", data[13], ErrDamaged)
	}
	return Header{Width: int(w), Height: int(h), Alpha: data[12] == 4, Linear: data[13] == 1}, nil
}

// The kinds of packets: two of a byte, four of its upper two bits.
const (
	opRGB   = 0xfe
	opRGBA  = 0xff
	opIndex = 0x00
	opDiff  = 0x40
	opLuma  = 0x80
)

// Decode reads an image as RGBA, 8 bits a channel, straight alpha, rows top down, 4*width*height bytes. More than maxPixels is
// ErrTooLarge.
func Decode(data []byte, maxPixels int) (pix []byte, width, height int, err error) {
	h, err := ParseHeader(data)
	if err != nil {
		return nil, 0, 0, err
	}
	if h.Width*h.Height > maxPixels {
		return nil, 0, 0, fmt.Errorf("%d x %d pixels: %w", h.Width, h.Height, ErrTooLarge)
	}
	data = bytes.TrimSuffix(data[headerSize:], []byte{7: 1}) // no pixels end so: an index is never repeated
	if h.Width*h.Height/62 > len(data) {
		return nil, 0, 0, ErrTruncated
	}
	pix = make([]byte, 4*h.Width*h.Height)
	var seen [64][4]byte
	p := [4]byte{3: 255}
	for i := 0; i < len(pix); {
		size := 1
		if len(data) > 0 {
			size = sizeOf(data[0])
		}
		if len(data) < size {
			return nil, 0, 0, ErrTruncated
		}
		n := 1
		switch b := data[0]; {
		case b == opRGB:
			copy(p[:3], data[1:4])
		case b == opRGBA:
			copy(p[:], data[1:5])
		case b < opDiff:
			p = seen[b]
		case b < opLuma: // each channel by -2 to 1
			p[0], p[1], p[2] = p[0]+b>>4&3-2, p[1]+b>>2&3-2, p[2]+b&3-2
		case b < 0xc0: // green by -32 to 31, red and blue by -8 to 7 beside it
			green := b&63 - 32
			p[0], p[1], p[2] = p[0]+green+data[1]>>4-8, p[1]+green, p[2]+green+data[1]&15-8
		default:
			n = int(b&63) + 1
		}
		data = data[size:]
		seen[(int(p[0])*3+int(p[1])*5+int(p[2])*7+int(p[3])*11)%64] = p
		q := p
		if !h.Alpha {
			q[3] = 255
		}
		for ; n > 0 && i < len(pix); n-- {
			i += copy(pix[i:], q[:])
		}
	}
	return pix, h.Width, h.Height, nil
}

// sizeOf a packet, in bytes, by its first one.
func sizeOf(b byte) int {
	switch {
	case b == opRGB:
		return 4
	case b == opRGBA:
		return 5
	case b >= opLuma && b < 0xc0:
		return 2
	}
	return 1
}
