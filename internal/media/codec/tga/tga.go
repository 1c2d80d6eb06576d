// Package tga reads Truevision TGA images.
//
// It follows "Truevision TGA File Format Specification, Version 2.0" (1991). Of the extension area of version 2 it reads the
// attributes type, which says what the alpha of the pixels is. Like many existing files, this package differs from the
// specification:
//
//   - RLE packets may cross the end of a row.
//   - 32-bit pixels of an image that declares no alpha bits, and has no attributes type, do have alpha, unless all of it is
//     zero: many programs do not declare the bits.
//
// Memory is allocated only for as many pixels as the data can contain.
package tga

import (
	"encoding/binary"
	"fmt"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

// headerSize is the size of the file header in bytes; the image id follows.
const headerSize = 18

// Image types in the specification; the other types are these plus rle.
const (
	colorMapped = 1
	trueColor   = 2
	grey        = 3
	rle         = 8
)

// Bits of the image descriptor.
const (
	alphaBits   = 0x0f
	rightToLeft = 0x10
	topToBottom = 0x20
)

// Attributes types. Below 3 there is no alpha, whatever the fourth channel has: 0 says that it is not there, 1 and 2 that it
// is undefined.
const (
	notStated     = -1
	straight      = 3
	premultiplied = 4
)

// Header is the start of a file.
//
//	 0  u8   length of the image id
//	 1  u8   1 if the file has a colour map
//	 2  u8   image type: 1 colour-mapped, 2 true colour, 3 grey; 9, 10, 11 the same with RLE
//	 3  u16  first entry of the colour map
//	 5  u16  entries of the colour map
//	 7  u8   bits per entry: 15, 16, 24 or 32
//	 8  u16  x of the origin, u16 y of the origin: ignored
//	12  u16  width, u16 height, in pixels
//	16  u8   bits per pixel
//	17  u8   descriptor: bits 0-3 alpha bits of a pixel, bit 4 right to left, bit 5 top to bottom
type Header struct {
	Width, Height int
	Depth         int // bits per pixel
	Type          int

	idSize, mapFirst, mapSize, mapDepth int
	hasMap                              bool
	descriptor                          byte
	attributes                          int
}

// ParseHeader reads the header. It returns an error for files that [Decode] cannot read. TGA has no signature, so a header
// that passes is also the best indication of a TGA file.
func ParseHeader(data []byte) (Header, error) {
	if len(data) < headerSize {
		return Header{}, input.ErrTruncated
	}
	u16 := func(i int) int { return int(binary.LittleEndian.Uint16(data[i:])) }
	h := Header{
		Width: u16(12), Height: u16(14), Depth: int(data[16]), Type: int(data[2]),
		idSize: int(data[0]), mapFirst: u16(3), mapSize: u16(5), mapDepth: int(data[7]),
		hasMap: data[1] == 1, descriptor: data[17], attributes: attributesOf(data),
	}
	return h, h.check(data[1])
}

// attributesOf returns the attributes type. It is the last byte of the extension area, which begins with its size, u16 495. A
// file of version 2 ends with u32 offset of that area, 0 if there is none, u32 offset of another one, and the signature.
func attributesOf(data []byte) int {
	const footer, area, signature = 26, 495, "TRUEVISION-XFILE.\x00"
	if len(data) < headerSize+footer || string(data[len(data)-len(signature):]) != signature {
		return notStated
	}
	at := int64(binary.LittleEndian.Uint32(data[len(data)-footer:]))
	if at < headerSize || at+area > int64(len(data)) || binary.LittleEndian.Uint16(data[at:]) < area {
		return notStated
	}
	return int(data[at+area-1])
}

func (h *Header) check(mapType byte) error {
	if mapType > 1 {
		return fmt.Errorf("colour map type %d: %w", mapType, input.ErrUnsupported)
	}
	if h.Width == 0 || h.Height == 0 {
		return fmt.Errorf("size %d x %d: %w", h.Width, h.Height, input.ErrDamaged)
	}
	if h.descriptor&0xc0 != 0 {
		return fmt.Errorf("interleaved rows: %w", input.ErrUnsupported)
	}
	if h.hasMap && !oneOf(h.mapDepth, 15, 16, 24, 32) {
		return fmt.Errorf("%d bits per colour map entry: %w", h.mapDepth, input.ErrUnsupported)
	}
	ok := false
	switch h.Type &^ rle {
	case colorMapped:
		if !h.hasMap {
			return fmt.Errorf("no colour map: %w", input.ErrDamaged)
		}
		ok = oneOf(h.Depth, 8, 15, 16)
	case trueColor:
		ok = oneOf(h.Depth, 15, 16, 24, 32)
	case grey:
		ok = oneOf(h.Depth, 8, 16)
	}
	if !ok {
		return fmt.Errorf("image type %d with %d bits per pixel: %w", h.Type, h.Depth, input.ErrUnsupported)
	}
	return nil
}

func oneOf(n int, list ...int) bool {
	for _, x := range list {
		if n == x {
			return true
		}
	}
	return false
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
	rest := data[headerSize:]
	if len(rest) < h.idSize {
		return h, nil, input.ErrTruncated
	}
	d := decoder{Header: h, pixelSize: (h.Depth + 7) / 8}
	if d.data, err = d.readMap(rest[h.idSize:]); err != nil {
		return h, nil, err
	}
	if !d.enough() {
		return h, nil, input.ErrTruncated
	}
	d.pix = make([]byte, 4*h.Width*h.Height)
	if h.Type&rle != 0 {
		err = d.packets()
	} else {
		err = d.run(d.data, h.Width*h.Height, d.pixelSize)
	}
	if err != nil {
		return h, nil, err
	}
	d.finish()
	return h, d.pix, nil
}

// finish makes alpha what the file says that it is.
func (d *decoder) finish() {
	switch {
	case d.attributes == premultiplied:
		for i := 0; i < len(d.pix); i += 4 {
			divide(d.pix[i : i+4 : i+4])
		}
	case d.attributes == notStated && !(d.Depth == 32 && d.descriptor&alphaBits == 0 && !d.anyAlpha), d.attributes == straight:
	default: // types above 4 are reserved
		for i := 3; i < len(d.pix); i += 4 {
			d.pix[i] = 255
		}
	}
}

// divide divides colours by alpha.
func divide(p []byte) {
	a := uint(p[3])
	for c := range 3 {
		v := min(uint(p[c]), a)
		if a > 0 {
			v = (v*255 + a/2) / a
		}
		p[c] = byte(v)
	}
}

// alphaBit reports whether the highest of 16 bits is alpha.
func (h *Header) alphaBit() bool { return h.descriptor&alphaBits != 0 || h.attributes >= straight }

type decoder struct {
	Header
	pixelSize int // bytes
	palette   []byte
	data      []byte // of the pixels
	pix       []byte
	n         int // number of pixels written, in file order
	anyAlpha  bool
}

// readMap reads the colour map as RGBA and returns the data after it. A map of an image that is not colour-mapped is
// skipped.
func (d *decoder) readMap(data []byte) ([]byte, error) {
	if !d.hasMap {
		return data, nil
	}
	size := (d.mapDepth + 7) / 8
	if len(data) < size*d.mapSize {
		return nil, input.ErrTruncated
	}
	if d.Type&^rle == colorMapped {
		d.palette = make([]byte, 4*d.mapSize)
		for i := range d.mapSize {
			rgba(d.palette[4*i:], data[size*i:], d.mapDepth, d.mapDepth == 16 && d.alphaBit())
		}
	}
	return data[size*d.mapSize:], nil
}

// enough reports whether the data can contain all pixels: an RLE packet expands one to at most 128.
func (d *decoder) enough() bool {
	need := d.Width * d.Height
	if d.Type&rle == 0 {
		return len(d.data) >= need*d.pixelSize
	}
	return len(d.data)/(1+d.pixelSize)*128+128 >= need
}

func (d *decoder) packets() error {
	for left := d.Width * d.Height; left > 0; {
		if len(d.data) < 1 {
			return input.ErrTruncated
		}
		n, step := min(int(d.data[0]&0x7f)+1, left), d.pixelSize
		size := n * d.pixelSize
		if d.data[0]&0x80 != 0 {
			size, step = d.pixelSize, 0
		}
		d.data = d.data[1:]
		if len(d.data) < size {
			return input.ErrTruncated
		}
		if err := d.run(d.data, n, step); err != nil {
			return err
		}
		d.data = d.data[size:]
		left -= n
	}
	return nil
}

// run writes n pixels from data, step bytes apart; with step 0 it repeats one pixel.
func (d *decoder) run(data []byte, n, step int) error {
	x, y := d.n%d.Width, d.n/d.Width
	for i := range n {
		px, py := x, y
		if d.descriptor&rightToLeft != 0 {
			px = d.Width - 1 - x
		}
		if d.descriptor&topToBottom == 0 {
			py = d.Height - 1 - y
		}
		dst := d.pix[4*(py*d.Width+px):][:4]
		if err := d.pixel(dst, data[i*step:]); err != nil {
			return err
		}
		if x++; x == d.Width {
			x, y = 0, y+1
		}
	}
	d.n += n
	return nil
}

func (d *decoder) pixel(dst, src []byte) error {
	switch d.Type &^ rle {
	case colorMapped:
		i := int(src[0])
		if d.pixelSize == 2 {
			i |= int(src[1]) << 8
		}
		i -= d.mapFirst
		if i < 0 || i >= d.mapSize {
			return fmt.Errorf("colour %d is not in the colour map of %d: %w", i+d.mapFirst, d.mapSize, input.ErrDamaged)
		}
		copy(dst, d.palette[4*i:4*i+4])
	case grey:
		dst[0], dst[1], dst[2], dst[3] = src[0], src[0], src[0], 255
		if d.pixelSize == 2 {
			dst[3] = src[1]
		}
	default:
		rgba(dst, src, d.Depth, d.Depth == 16 && d.alphaBit())
		d.anyAlpha = d.anyAlpha || dst[3] != 0
	}
	return nil
}

// rgba converts a colour of 15, 16 (A1R5G5B5), 24 (BGR) or 32 bits (BGRA).
func rgba(dst, src []byte, depth int, alphaBit bool) {
	switch depth {
	case 32:
		dst[0], dst[1], dst[2], dst[3] = src[2], src[1], src[0], src[3]
	case 24:
		dst[0], dst[1], dst[2], dst[3] = src[2], src[1], src[0], 255
	default:
		v := int(src[0]) | int(src[1])<<8
		dst[0], dst[1], dst[2], dst[3] = five(v>>10), five(v>>5), five(v), 255
		if alphaBit && v&0x8000 == 0 {
			dst[3] = 0
		}
	}
}

// five widens 5 bits to 8, so that 31 becomes 255.
func five(v int) byte {
	v &= 31
	return byte(v<<3 | v>>2)
}
