// Package qoi reads and writes QOI, the Quite OK Image format.
//
// It follows "The Quite OK Image Format, Specification Version 1.0" (2022, qoiformat.org):
//
//	 0  "qoif"
//	 4  u32  width, then u32 height, big-endian, in pixels
//	12  u8   channels: 3 or 4; only a hint
//	13  u8   colour space: 0 sRGB with linear alpha, 1 all linear; only a hint
//	14  chunks for all pixels, rows from the top
//	    seven bytes 0 and a 1
//
// A chunk is for one pixel, or a run of them. It refers to the previous pixel, at first opaque black, and to a table of 64
// recent pixels, at first all 0. [place] returns the index of a pixel in the table:
//
//	0xfe r g b         red, green, blue
//	0xff r g b a       and alpha
//	00 index:6         a pixel of the table
//	01 r:2 g:2 b:2     differences, plus 2
//	10 g:6  r:4 b:4    difference of green, plus 32; those of red and blue minus that of green, plus 8
//	11 n:6             the previous pixel, n+1 times, 1 to 62
//
// Pixels are RGBA, 8 bits per channel, straight alpha. Memory is allocated only for as many pixels as the data can contain
// and the caller allows. Invalid data gives an error, never a panic.
package qoi

import (
	"encoding/binary"
	"fmt"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

const (
	magic      = "qoif"
	headerSize = 14
	end        = "\x00\x00\x00\x00\x00\x00\x00\x01"
	maxRun     = 62 // 63 and 64 would be the codes of rgb and rgba
)

// Chunks: two are identified by a whole byte, four by the upper two bits.
const (
	chunkRGB   = 0xfe
	chunkRGBA  = 0xff
	chunkIndex = 0x00
	chunkDiff  = 0x40
	chunkLuma  = 0x80
	chunkRun   = 0xc0
)

// Header is the start of a file.
type Header struct {
	Width, Height int
	Channels      int  // 3 or 4, as the file says
	Linear        bool // all channels; otherwise colours are sRGB
}

// Config reads the header. The size is at least 1x1. An error is [input.ErrTruncated] or [input.ErrDamaged].
func Config(data []byte) (Header, error) {
	if len(data) < headerSize {
		return Header{}, input.ErrTruncated
	}
	width, height := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	h := Header{int(width), int(height), int(data[12]), data[13] == 1}
	switch {
	case string(data[:4]) != magic:
		return h, fmt.Errorf("no QOI header: %w", input.ErrDamaged)
	case width == 0 || height == 0 || width > 1<<31-1 || height > 1<<31-1:
		return h, fmt.Errorf("size %dx%d: %w", width, height, input.ErrDamaged)
	case h.Channels != 3 && h.Channels != 4:
		return h, fmt.Errorf("%d channels: %w", h.Channels, input.ErrDamaged)
	case data[13] > 1:
		return h, fmt.Errorf("colour space %d: %w", data[13], input.ErrDamaged)
	}
	return h, nil
}

type pixel [4]byte

// place returns the index of a pixel in the table.
func place(p pixel) uint8 { return (p[0]*3 + p[1]*5 + p[2]*7 + p[3]*11) & 63 }

// Decode decodes an image of at most maxPixels as width*height*4 bytes. Data after the end is ignored. Errors are
// [input.ErrTruncated], [input.ErrDamaged] and [input.ErrTooLarge], possibly wrapped.
func Decode(data []byte, maxPixels int) (pix []byte, width, height int, err error) {
	h, err := Config(data)
	if err != nil {
		return nil, 0, 0, err
	}
	if err := input.CheckPixels(h.Width, h.Height, maxPixels); err != nil {
		return nil, 0, 0, err
	}
	pixels := int64(h.Width) * int64(h.Height)
	if body := len(data) - headerSize - len(end); body < 1 || pixels > maxRun*int64(body) {
		return nil, 0, 0, input.ErrTruncated
	}
	pix = make([]byte, 4*pixels)
	rest, err := decode(pix, data[headerSize:])
	switch {
	case err != nil:
		return nil, 0, 0, err
	case len(rest) < len(end):
		return nil, 0, 0, input.ErrTruncated
	case string(rest[:len(end)]) != end:
		return nil, 0, 0, fmt.Errorf("no end after the last pixel: %w", input.ErrDamaged)
	}
	return pix, h.Width, h.Height, nil
}

// decode decodes chunks into pix, and returns the remaining data.
func decode(pix, in []byte) (rest []byte, err error) {
	var table [64]pixel
	p := pixel{3: 255}
	for len(pix) > 0 {
		// The longest chunk has 5 bytes, and the end has 8, so complete data has at least 5.
		if len(in) < 5 {
			return nil, input.ErrTruncated
		}
		b := in[0]
		switch {
		case b == chunkRGB:
			p[0], p[1], p[2] = in[1], in[2], in[3]
			in = in[4:]
		case b == chunkRGBA:
			p = pixel(in[1:5])
			in = in[5:]
		case b < chunkDiff:
			p = table[b]
			in = in[1:]
		case b < chunkLuma:
			p[0] += b>>4&3 - 2
			p[1] += b>>2&3 - 2
			p[2] += b&3 - 2
			in = in[1:]
		case b < chunkRun:
			g := b&63 - 32
			p[0] += g + in[1]>>4 - 8
			p[1] += g
			p[2] += g + in[1]&15 - 8
			in = in[2:]
		default:
			in = in[1:]
			n := int(b&63) + 1
			if 4*n > len(pix) {
				return nil, fmt.Errorf("a run beyond the last pixel: %w", input.ErrDamaged)
			}
			for range n - 1 {
				*(*pixel)(pix) = p
				pix = pix[4:]
			}
		}
		table[place(p)] = p
		*(*pixel)(pix) = p
		pix = pix[4:]
	}
	return in, nil
}

// Encode encodes an image of RGBA values, width*height*4 bytes, as sRGB. The header has 3 channels if all alpha is 255.
func Encode(pix []byte, width, height int) ([]byte, error) {
	if width < 1 || height < 1 || width > 1<<31-1 || height > 1<<31-1 || len(pix)%4 != 0 || len(pix)/4/width != height || len(pix)/4%width != 0 {
		return nil, fmt.Errorf("qoi: %d bytes are not an image of %dx%d", len(pix), width, height)
	}
	channels := byte(3)
	for i := 3; i < len(pix); i += 4 {
		if pix[i] != 255 {
			channels = 4
			break
		}
	}
	// One byte per pixel is typical; the slice grows for noise.
	out := make([]byte, headerSize, headerSize+len(pix)/4+len(end))
	copy(out, magic)
	binary.BigEndian.PutUint32(out[4:], uint32(width))
	binary.BigEndian.PutUint32(out[8:], uint32(height))
	out[12] = channels
	return append(encode(out, pix), end...), nil
}

// encode appends chunks, always the shortest possible.
func encode(out, pix []byte) []byte {
	var table [64]pixel
	last, run := pixel{3: 255}, byte(0)
	for ; len(pix) >= 4; pix = pix[4:] {
		p := pixel(pix[:4])
		if p == last {
			if run++; run == maxRun {
				out = append(out, chunkRun|(run-1))
				run = 0
			}
			continue
		}
		if run > 0 {
			out = append(out, chunkRun|(run-1))
			run = 0
		}
		at := place(p)
		// Differences wrap around.
		r, g, b := p[0]-last[0], p[1]-last[1], p[2]-last[2]
		rg, bg := r-g+8, b-g+8
		switch {
		case table[at] == p:
			out = append(out, chunkIndex|at)
		case p[3] != last[3]:
			out = append(out, chunkRGBA, p[0], p[1], p[2], p[3])
		case r+2 < 4 && g+2 < 4 && b+2 < 4:
			out = append(out, chunkDiff|(r+2)<<4|(g+2)<<2|(b+2))
		case g+32 < 64 && rg < 16 && bg < 16:
			out = append(out, chunkLuma|(g+32), rg<<4|bg)
		default:
			out = append(out, chunkRGB, p[0], p[1], p[2])
		}
		table[at] = p
		last = p
	}
	if run > 0 {
		out = append(out, chunkRun|(run-1))
	}
	return out
}
