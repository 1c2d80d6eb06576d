// Package dds writes and reads DirectDraw Surface textures with the DX10 header.
//
// It follows Microsoft's "Programming Guide for DDS" and "DDS_HEADER_DXT10" for one two-dimensional image
// with its mip levels, of the formats below. All numbers in the file are little-endian u32.
//
//	  0  "DDS "
//	  4  size 124, flags, height, width, pitch (bytes of a row), depth, mip level count, 11 reserved
//	 76  pixel format: size 32, flags 4 (FourCC), "DX10", 5 x 0
//	108  caps, caps2, caps3, caps4, reserved
//	128  dxgiFormat, dimension 3 (2D), misc, array size 1, alpha mode
//	148  levels, largest first, without padding
package dds

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Format is a pixel format, by its number in DXGI.
type Format uint32

const (
	RGBA8     Format = 28 // DXGI_FORMAT_R8G8B8A8_UNORM
	RGBA8SRGB Format = 29 // DXGI_FORMAT_R8G8B8A8_UNORM_SRGB: colours are sRGB-encoded, alpha is not
	RG8       Format = 49 // DXGI_FORMAT_R8G8_UNORM
	R8        Format = 61 // DXGI_FORMAT_R8_UNORM
)

// PixelSize is the bytes of a pixel, or 0 for a format that this package does not know.
func (f Format) PixelSize() int {
	switch f {
	case R8:
		return 1
	case RG8:
		return 2
	case RGBA8, RGBA8SRGB:
		return 4
	}
	return 0
}

// AlphaMode says what the fourth channel is.
type AlphaMode uint32

const (
	AlphaUnknown       AlphaMode = 0
	AlphaStraight      AlphaMode = 1
	AlphaPremultiplied AlphaMode = 2
	AlphaOpaque        AlphaMode = 3
	AlphaCustom        AlphaMode = 4 // a channel of data
)

// Texture is the content of a file.
type Texture struct {
	Format        Format
	Width, Height int // of level 0, in pixels
	Alpha         AlphaMode

	// Levels are the mip levels, the full image first, each half the size of the one before, rounded down. Rows
	// have no padding, and the top one is first: DDS has no other orientation.
	Levels [][]byte
}

// maxSide of an image, in pixels: far above any hardware, and low enough for sizes to fit 64 bits.
const maxSide = 1 << 20

var (
	ErrTruncated   = errors.New("dds: data ends too early")
	ErrDamaged     = errors.New("dds: damaged")
	ErrUnsupported = errors.New("dds: not supported")
)

const (
	headSize = 148

	flagsBase = 0x1 | 0x2 | 0x4 | 0x8 | 0x1000 // caps, height, width, pitch, pixel format
	flagMips  = 0x20000
	capsBase  = 0x1000         // a texture
	capsMips  = 0x8 | 0x400000 // complex, with mip levels
	flagCode  = 0x4            // the pixel format is a FourCC
	twoD      = 3              // D3D10_RESOURCE_DIMENSION_TEXTURE2D
)

func (t *Texture) levelSize(n int) int {
	return max(1, t.Width>>n) * max(1, t.Height>>n) * t.Format.PixelSize()
}

// check refuses what a file cannot hold, levels aside.
func (t *Texture) check(levels int) error {
	if t.Format.PixelSize() == 0 {
		return fmt.Errorf("DXGI format %d: %w", t.Format, ErrUnsupported)
	}
	if t.Width < 1 || t.Height < 1 || t.Width > maxSide || t.Height > maxSide {
		return fmt.Errorf("size %d x %d: %w", t.Width, t.Height, ErrUnsupported)
	}
	if levels < 1 || levels > 32 || max(t.Width, t.Height)>>(levels-1) == 0 {
		return fmt.Errorf("%d levels of %d x %d: %w", levels, t.Width, t.Height, ErrDamaged)
	}
	if t.Alpha > AlphaCustom {
		return fmt.Errorf("alpha mode %d: %w", t.Alpha, ErrUnsupported)
	}
	return nil
}

// Encode makes a file.
func Encode(t *Texture) ([]byte, error) {
	if err := t.check(len(t.Levels)); err != nil {
		return nil, err
	}
	size := headSize
	for n, l := range t.Levels {
		if want := t.levelSize(n); len(l) != want {
			return nil, fmt.Errorf("level %d has %d bytes, not %d: %w", n, len(l), want, ErrDamaged)
		}
		size += len(l)
	}
	flags, caps := uint32(flagsBase), uint32(capsBase)
	if len(t.Levels) > 1 {
		flags |= flagMips
		caps |= capsMips
	}
	var head [headSize]byte
	put := func(at int, v uint32) { binary.LittleEndian.PutUint32(head[at:], v) }
	copy(head[0:], "DDS ")
	put(4, 124)
	put(8, flags)
	put(12, uint32(t.Height))
	put(16, uint32(t.Width))
	put(20, uint32(t.Width*t.Format.PixelSize()))
	put(28, uint32(len(t.Levels)))
	put(76, 32)
	put(80, flagCode)
	copy(head[84:], "DX10")
	put(108, caps)
	put(128, uint32(t.Format))
	put(132, twoD)
	put(140, 1)
	put(144, uint32(t.Alpha))
	b := append(make([]byte, 0, size), head[:]...)
	for _, l := range t.Levels {
		b = append(b, l...)
	}
	return b, nil
}

// Decode reads a file that has a DX10 header. Levels are slices of data: nothing is copied, and nothing of a size
// that the file claims is allocated.
func Decode(data []byte) (*Texture, error) {
	if len(data) < 4 || string(data[:4]) != "DDS " {
		return nil, fmt.Errorf("no signature: %w", ErrDamaged)
	}
	if len(data) < headSize {
		return nil, ErrTruncated
	}
	u32 := func(i int) uint32 { return binary.LittleEndian.Uint32(data[i:]) }
	if u32(4) != 124 || u32(76) != 32 {
		return nil, fmt.Errorf("header sizes %d and %d: %w", u32(4), u32(76), ErrDamaged)
	}
	if u32(80)&flagCode == 0 || string(data[84:88]) != "DX10" {
		return nil, fmt.Errorf("no DX10 header: %w", ErrUnsupported)
	}
	if u32(132) != twoD || u32(136) != 0 || u32(140) != 1 {
		return nil, fmt.Errorf("dimension %d, misc %d, array of %d: %w", u32(132), u32(136), u32(140), ErrUnsupported)
	}
	levels := uint32(1)
	if u32(8)&flagMips != 0 {
		levels = max(1, u32(28))
	}
	if u32(16) > maxSide || u32(12) > maxSide || levels > 32 {
		return nil, fmt.Errorf("%d levels of %d x %d: %w", levels, u32(16), u32(12), ErrUnsupported)
	}
	t := &Texture{Format: Format(u32(128)), Width: int(u32(16)), Height: int(u32(12)), Alpha: AlphaMode(u32(144) & 7)}
	if err := t.check(int(levels)); err != nil {
		return nil, err
	}
	rest := data[headSize:]
	for n := range int(levels) {
		size := t.levelSize(n)
		if len(rest) < size {
			return nil, fmt.Errorf("level %d: %w", n, ErrTruncated)
		}
		t.Levels = append(t.Levels, rest[:size:size])
		rest = rest[size:]
	}
	return t, nil
}
