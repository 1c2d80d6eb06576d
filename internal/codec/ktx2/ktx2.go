// Package ktx2 writes and reads KTX 2.0 texture files, as docs/formats/ktx2.md describes them.
//
// It follows the "KTX File Format Specification, Version 2.0" and the "Khronos Data Format Specification 1.3" for
// one two-dimensional image with its mip levels, of the formats below, without supercompression. All numbers in the file
// are little-endian.
//
//	 0  identifier                   12 bytes
//	12  vkFormat, typeSize, pixelWidth, pixelHeight, pixelDepth, layerCount, faceCount, levelCount,
//	    supercompressionScheme       9 x u32
//	48  dfdByteOffset, dfdByteLength, kvdByteOffset, kvdByteLength   4 x u32
//	64  sgdByteOffset, sgdByteLength                                 2 x u64
//	80  for each level, largest first: byteOffset, byteLength, uncompressedByteLength   3 x u64
//	 …  data format descriptor
//	 …  key/value data
//	 …  levels, smallest first, each at a multiple of 4
package ktx2

import (
	"errors"
	"fmt"
)

// Format is a pixel format, by its number in Vulkan.
type Format uint32

const (
	R8        Format = 9  // VK_FORMAT_R8_UNORM
	RG8       Format = 16 // VK_FORMAT_R8G8_UNORM
	RGBA8     Format = 37 // VK_FORMAT_R8G8B8A8_UNORM
	RGBA8SRGB Format = 43 // VK_FORMAT_R8G8B8A8_SRGB: colours are sRGB-encoded, alpha is not
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

// Texture is the content of a file.
type Texture struct {
	Format        Format
	Width, Height int // of level 0, in pixels

	// Levels are the mip levels, the full image first, each half the size of the one before, rounded down. Rows have no padding.
	Levels [][]byte

	Premultiplied bool // colours are multiplied by alpha
	BottomUp      bool // the first row in the data is the bottom one

	Writer string // KTXwriter: the program that made the file; may be empty
}

// maxSide of an image, in pixels: far above any hardware, and low enough for sizes to fit 64 bits.
const maxSide = 1 << 20

var (
	ErrTruncated   = errors.New("ktx2: data ends too early")
	ErrDamaged     = errors.New("ktx2: damaged")
	ErrUnsupported = errors.New("ktx2: not supported")
)

const (
	identifier = "\xabKTX 20\xbb\r\n\x1a\n"
	indexAt    = 48
	levelsAt   = 80
	levelEntry = 24
)

// levelSize is the bytes of level n.
func (t *Texture) levelSize(n int) int {
	return max(1, t.Width>>n) * max(1, t.Height>>n) * t.Format.PixelSize()
}

// check refuses what a file cannot hold.
func (t *Texture) check() error {
	if t.Format.PixelSize() == 0 {
		return fmt.Errorf("vkFormat %d: %w", t.Format, ErrUnsupported)
	}
	if t.Width < 1 || t.Height < 1 || t.Width > maxSide || t.Height > maxSide {
		return fmt.Errorf("size %d x %d: %w", t.Width, t.Height, ErrUnsupported)
	}
	if n := len(t.Levels); n < 1 || max(t.Width, t.Height)>>(n-1) == 0 {
		return fmt.Errorf("%d levels of %d x %d: %w", n, t.Width, t.Height, ErrDamaged)
	}
	for n, l := range t.Levels {
		if want := t.levelSize(n); len(l) != want {
			return fmt.Errorf("level %d has %d bytes, not %d: %w", n, len(l), want, ErrDamaged)
		}
	}
	return nil
}
