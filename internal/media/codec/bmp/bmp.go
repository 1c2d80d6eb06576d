// Package bmp reads Windows and OS/2 bitmaps.
//
// Package golang.org/x/image/bmp reads only uncompressed files with headers of 40, 108 and 124 bytes. It does not read RLE,
// 16 bits per pixel, other masks, OS/2 headers, or files whose padding or colour map is cut short. This package does.
//
// It follows "Bitmap Storage" of the Windows documentation: headers of 12 to 124 bytes; 1, 2, 4, 8, 16, 24 and 32 bits per
// pixel; RLE4 and RLE8; masks of any contiguous bits. Where the documentation leaves a choice:
//
//   - Alpha is read through a mask, or from the fourth byte of plain 32-bit pixels if the header has 108 bytes or more. With
//     a shorter header that byte is ignored. If alpha is 0 in the whole image, the image is opaque.
//   - Pixels that RLE skips have colour 0. Pixels beyond the end of a row, which some programs write as filling, are
//     ignored.
//   - A colour that is missing in the map is black.
//
// Memory is allocated only after the number of pixels was compared with the caller's limit and, except for RLE, with the
// length of the data.
package bmp

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

// Compression of the pixels.
const (
	plain      = 0
	rle8       = 1
	rle4       = 2
	masked     = 3  // masks for red, green and blue
	alphaMask  = 6  // a mask for alpha, too
	fileHeader = 14 // bytes
)

// Header is the start of a file. All numbers are little-endian.
//
//	 0  2 bytes  "BM", then u32 size of the file and u32 reserved: ignored
//	10  u32      offset of the pixels
//	14  u32      size of the header from here on: 12 for OS/2, or 16 to 124
//	18  i32      width, i32 height: below 0 if rows run top down; both u16 if the size is 12
//	26  u16      1, u16 bits per pixel
//	30  u32      compression
//	46  u32      colours of the map; 0 is all
//	54  u32      masks of red, green, blue, alpha
//	             the map: blue, green, red, 0; without the 0 if the size is 12, or if there is only space for that
//	             behind another header of OS/2
type Header struct {
	Width, Height int
	Depth         int // bits per pixel

	topDown     bool
	compression uint32
	masks       [4]uint32 // of red, green, blue, alpha
	palette     []byte
	entry       int // bytes per colour in the palette
	pixels      int // offset
}

// ParseHeader reads the header. It returns an error for files that [Decode] cannot read.
func ParseHeader(data []byte) (Header, error) {
	if len(data) < fileHeader+12 {
		return Header{}, input.ErrTruncated
	}
	if string(data[:2]) != "BM" {
		return Header{}, fmt.Errorf("no signature: %w", input.ErrDamaged)
	}
	u16 := func(i int) int { return int(binary.LittleEndian.Uint16(data[i:])) }
	u32 := func(i int) uint32 { return binary.LittleEndian.Uint32(data[i:]) }
	size := u32(14)
	if size != 12 && (size < 16 || size > 1<<10) {
		return Header{}, fmt.Errorf("header of %d bytes: %w", size, input.ErrUnsupported)
	}
	if len(data) < fileHeader+int(size) {
		return Header{}, input.ErrTruncated
	}
	h := Header{entry: 4, pixels: int(u32(10))}
	width, height, colours := int(int32(u32(18))), 0, uint32(0)
	if size == 12 {
		width, height, h.Depth, h.entry = u16(18), u16(20), u16(24), 3
	} else {
		height, h.Depth = int(int32(u32(22))), u16(28)
	}
	if size >= 40 {
		h.compression, colours = u32(30), u32(46)
	}
	if h.topDown = height < 0; h.topDown {
		height = -height
	}
	if err := input.CheckSize(width, height); err != nil {
		return h, err
	}
	h.Width, h.Height = width, height
	after, err := h.readMasks(data, size)
	if err != nil {
		return h, err
	}
	if err := h.check(); err != nil {
		return h, err
	}
	if h.Depth <= 8 {
		if colours == 0 || colours > 256 {
			colours = 1 << h.Depth
		}
		if size != 40 && size <= 64 && h.pixels-after == 3*int(colours) { // OS/2 2 has 4 bytes, some programs wrote 3
			h.entry = 3
		}
		end := after + int(colours)*h.entry
		if h.pixels >= after { // some maps are shorter than the header says
			end = min(end, h.pixels)
		}
		if end > len(data) {
			return h, input.ErrTruncated
		}
		h.palette = data[after:end]
	}
	return h, nil
}

// readMasks reads the masks of the colours, or sets the default masks of the format. It returns the end of a header of this
// size together with its masks.
func (h *Header) readMasks(data []byte, size uint32) (after int, err error) {
	after = fileHeader + int(size)
	if h.compression == masked || h.compression == alphaMask {
		n := 3
		if h.compression == alphaMask || size >= 56 {
			n = 4
		}
		if size < 52 { // the masks follow the header
			after += 4 * n
		}
		if len(data) < 54+4*n {
			return after, input.ErrTruncated
		}
		for i := range n {
			h.masks[i] = binary.LittleEndian.Uint32(data[54+4*i:])
		}
	} else if h.Depth == 16 {
		h.masks = [4]uint32{0x7c00, 0x3e0, 0x1f, 0}
	} else if h.masks = [4]uint32{0xff0000, 0xff00, 0xff, 0}; h.Depth == 32 && size >= 108 {
		h.masks[3] = 0xff000000
	}
	return after, nil
}

func (h *Header) check() error {
	depths := map[uint32][]int{plain: {1, 2, 4, 8, 16, 24, 32}, rle8: {8}, rle4: {4}, masked: {16, 32}, alphaMask: {16, 32}}
	if depths[h.compression] == nil {
		return fmt.Errorf("compression %d: %w", h.compression, input.ErrUnsupported)
	}
	if h.topDown && (h.compression == rle4 || h.compression == rle8) {
		return fmt.Errorf("RLE top down: %w", input.ErrDamaged)
	}
	for i, m := range h.masks {
		run := m >> bits.TrailingZeros32(m)
		if run&(run+1) != 0 || i < 3 && m == 0 {
			return fmt.Errorf("mask %#x: %w", m, input.ErrDamaged)
		}
	}
	for _, d := range depths[h.compression] {
		if d == h.Depth {
			return nil
		}
	}
	return fmt.Errorf("%d bits a pixel with compression %d: %w", h.Depth, h.compression, input.ErrUnsupported)
}

// Decode decodes an image as RGBA, 8 bits per channel, straight alpha, rows top down, 4*Width*Height bytes. It returns
// [input.ErrTooLarge] for more than maxPixels pixels.
func Decode(data []byte, maxPixels int) (Header, []byte, error) {
	h, err := ParseHeader(data)
	if err != nil {
		return h, nil, err
	}
	if err := input.CheckPixels(h.Width, h.Height, maxPixels); err != nil {
		return h, nil, err
	}
	if h.pixels > len(data) {
		return h, nil, input.ErrTruncated
	}
	data = data[h.pixels:]
	if h.compression == rle4 || h.compression == rle8 {
		if err := h.runs(nil, data); err != nil { // before memory is allocated for the pixels
			return h, nil, err
		}
		pix := make([]byte, 4*h.Width*h.Height)
		return h, pix, h.runs(pix, data)
	}
	stride := (h.Width*h.Depth + 31) / 32 * 4
	// The padding of the last row is sometimes missing.
	if len(data) < stride*(h.Height-1)+(h.Width*h.Depth+7)/8 {
		return h, nil, input.ErrTruncated
	}
	pix := make([]byte, 4*h.Width*h.Height)
	for i := range h.Height {
		row := data[i*stride:]
		dst := pix[4*h.Width*h.row(i):][:4*h.Width]
		switch {
		case h.Depth <= 8:
			h.indices(dst, row)
		case h.Depth == 24:
			for x := 0; x < len(dst); x += 4 {
				s := row[x/4*3:][:3]
				dst[x], dst[x+1], dst[x+2], dst[x+3] = s[2], s[1], s[0], 255
			}
		default:
			h.fields(dst, row)
		}
	}
	if h.masks[3] != 0 && h.Depth > 8 {
		opaqueIfForgotten(pix)
	}
	return h, pix, nil
}

// row returns the row of the image for row i of the file.
func (h *Header) row(i int) int {
	if h.topDown {
		return i
	}
	return h.Height - 1 - i
}

func (h *Header) colour(dst []byte, index int) {
	dst[3] = 255
	if at := index * h.entry; at+2 < len(h.palette) {
		dst[0], dst[1], dst[2] = h.palette[at+2], h.palette[at+1], h.palette[at]
	}
}

// indices reads a row with 1, 2, 4 or 8 bits per pixel, the leftmost pixel in the highest bits.
func (h *Header) indices(dst, row []byte) {
	perByte := 8 / h.Depth
	for x := range h.Width {
		shift := 8 - h.Depth*(x%perByte+1)
		h.colour(dst[4*x:4*x+4], int(row[x/perByte]>>shift)&(1<<h.Depth-1))
	}
}

// fields reads a row with 16 or 32 bits per pixel through the masks.
func (h *Header) fields(dst, row []byte) {
	for x := range h.Width {
		var v uint32
		if h.Depth == 16 {
			v = uint32(binary.LittleEndian.Uint16(row[2*x:]))
		} else {
			v = binary.LittleEndian.Uint32(row[4*x:])
		}
		p := dst[4*x : 4*x+4 : 4*x+4]
		p[3] = 255
		for c, m := range h.masks {
			if m != 0 {
				shift := bits.TrailingZeros32(m)
				most := uint64(m >> shift)
				p[c] = byte((uint64(v&m>>shift)*255 + most/2) / most)
			}
		}
	}
}

func opaqueIfForgotten(pix []byte) {
	for i := 3; i < len(pix); i += 4 {
		if pix[i] != 0 {
			return
		}
	}
	for i := 3; i < len(pix); i += 4 {
		pix[i] = 255
	}
}

// runs reads RLE. A count above 0 repeats the byte that follows: one pixel of 8 bits, or two alternating pixels of 4 bits.
// After a 0 follows: 0, the end of the row; 1, the end of the image; 2, two bytes with the distance to skip to the right and
// up; or another count, of literal pixels, padded to an even number of bytes. If pix is nil, runs only checks the data.
func (h *Header) runs(pix, data []byte) error {
	for i := 0; i < len(pix); i += 4 {
		h.colour(pix[i:i+4], 0)
	}
	x, y := 0, 0
	put := func(n int, at func(i int) byte) error {
		if y >= h.Height {
			return fmt.Errorf("run of %d pixels at %d, %d: %w", n, x, y, input.ErrDamaged)
		}
		n = min(n, h.Width-x)
		if pix == nil {
			x += n
			return nil
		}
		dst := pix[4*(h.Width*h.row(y)+x):]
		for i := range n {
			v := at(i)
			if h.compression == rle4 {
				v = at(i/2) >> (4 * (1 - i%2)) & 15
			}
			dst[4*i], dst[4*i+1], dst[4*i+2] = 0, 0, 0
			h.colour(dst[4*i:4*i+4], int(v))
		}
		x += n
		return nil
	}
	for {
		if len(data) < 2 {
			return input.ErrTruncated
		}
		n, v := int(data[0]), data[1]
		data = data[2:]
		var err error
		switch {
		case n > 0:
			err = put(n, func(int) byte { return v })
		case v == 0:
			x, y = 0, y+1
		case v == 1:
			return nil
		case v == 2:
			if len(data) < 2 {
				return input.ErrTruncated
			}
			if x, y = x+int(data[0]), y+int(data[1]); x > h.Width || y > h.Height {
				return fmt.Errorf("jump to %d, %d: %w", x, y, input.ErrDamaged)
			}
			data = data[2:]
		default:
			size := int(v)
			if h.compression == rle4 {
				size = (size + 1) / 2
			}
			if len(data) < size {
				return input.ErrTruncated
			}
			body := data
			err = put(int(v), func(i int) byte { return body[min(i, size-1)] })
			data = data[min((size+1)&^1, len(data)):]
		}
		if err != nil {
			return err
		}
	}
}
