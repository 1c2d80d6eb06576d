// Package ktx2 writes and reads KTX 2.0 texture files, as docs/formats/ktx2.md describes them.
//
// It follows the "KTX File Format Specification, Version 2.0", document revision 4, and the "Khronos Data Format
// Specification 1.3": two-dimensional images, volumes, cube maps and arrays of these, with mip levels, in the formats of
// format.go, plain or with Zstandard supercompression. All numbers in the file are little-endian.
//
//	 0  identifier                   12 bytes
//	12  vkFormat, typeSize, pixelWidth, pixelHeight, pixelDepth, layerCount, faceCount, levelCount,
//	    supercompressionScheme       9 x u32
//	48  dfdByteOffset, dfdByteLength, kvdByteOffset, kvdByteLength   4 x u32
//	64  sgdByteOffset, sgdByteLength                                 2 x u64
//	80  for each level, largest first: byteOffset, byteLength, uncompressedByteLength   3 x u64
//	 …  data format descriptor
//	 …  key/value data
//	 …  levels, smallest first, aligned to a multiple of 4 and of the block size, or not aligned if compressed
//
// Memory is allocated for a number in the file only after that number was compared with the length of the data.
package ktx2

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strings"
)

// Extension is the file name extension.
const Extension = ".ktx2"

// Texture is the content of a file.
type Texture struct {
	Format        Format
	Width, Height int  // of level 0, in pixels
	Depth         int  // of level 0, in slices; 0: two dimensions
	Layers        int  // elements of an array; 0: no array
	Cube          bool // six square faces: +X, -X, +Y, -Y, +Z, -Z

	// Levels are the mip levels, the full image first, each half the size of the previous one in all dimensions, rounded
	// down. A level has the images of all layers; a layer has those of all faces; a face has those of all slices. Rows of
	// pixels, or of blocks, have no padding; a block at the edge is complete.
	Levels [][]byte

	Premultiplied bool // colours are multiplied by alpha
	BottomUp      bool // the first row in the data is the bottom one; not for a cube

	Zstd bool // levels are compressed in the file, each one separately

	// Swizzle is KTXswizzle: the channels that a game should sample as red, green, blue and alpha. It is four letters of 0,
	// 1 and those of "rgba" that the format has, or empty.
	Swizzle string
	Writer  string // KTXwriter: the program that wrote the file; may be empty
}

// Limits of an image, far above those of any hardware.
const (
	maxSide   = 1 << 20
	maxLayers = 1 << 20
)

var (
	ErrTruncated   = errors.New("the KTX2 file ends too early")
	ErrDamaged     = errors.New("the KTX2 file is damaged")
	ErrUnsupported = errors.New("this kind of KTX2 file is not supported")
	ErrTooLarge    = errors.New("the KTX2 file is too large")
)

const (
	identifier = "\xabKTX 20\xbb\r\n\x1a\n"
	indexAt    = 48
	levelsAt   = 80
	levelEntry = 24

	schemeNone      = 0
	schemeZstandard = 2
)

// faces returns the number of images in a layer.
func (t *Texture) faces() int {
	if t.Cube {
		return 6
	}
	return 1
}

// sliceSize returns the size of one two-dimensional image of level n in bytes, or math.MaxInt if it is larger.
func (t *Texture) sliceSize(n int) int {
	w, h, size := t.Format.Block()
	return times(times((max(1, t.Width>>n)+w-1)/w, (max(1, t.Height>>n)+h-1)/h), size)
}

// levelSize returns the size of level n in bytes, or math.MaxInt if it is larger.
func (t *Texture) levelSize(n int) int {
	return times(times(t.sliceSize(n), max(1, t.Depth>>n)), times(t.faces(), max(1, t.Layers)))
}

// times multiplies numbers that are not negative. The result is at most math.MaxInt.
func times(a, b int) int {
	if hi, lo := bits.Mul64(uint64(a), uint64(b)); hi == 0 && lo < math.MaxInt {
		return int(lo)
	}
	return math.MaxInt
}

// Image returns one two-dimensional image, as a slice of Levels[level]. Layers, faces and slices count from 0.
func (t *Texture) Image(level, layer, face, slice int) []byte {
	size := t.sliceSize(level)
	at := ((layer*t.faces()+face)*max(1, t.Depth>>level) + slice) * size
	return t.Levels[level][at : at+size : at+size]
}

// check returns an error if a file cannot store the texture. It does not check the content of the levels.
func (t *Texture) check(levels int) error {
	if _, ok := t.Format.info(); !ok {
		return fmt.Errorf("vkFormat %d: %w", uint32(t.Format), ErrUnsupported)
	}
	if t.Width < 1 || t.Height < 1 || t.Depth < 0 || max(t.Width, t.Height, t.Depth) > maxSide {
		return fmt.Errorf("size %s: %w", t.size(), ErrUnsupported)
	}
	if t.Layers < 0 || t.Layers > maxLayers {
		return fmt.Errorf("%d layers: %w", t.Layers, ErrUnsupported)
	}
	if t.Cube && (t.Width != t.Height || t.Depth != 0) {
		return fmt.Errorf("a cube of %s: %w", t.size(), ErrDamaged)
	}
	if t.Cube && t.BottomUp {
		return fmt.Errorf("a cube with the bottom row first: %w", ErrDamaged)
	}
	if levels < 1 || levels > 32 || max(t.Width, t.Height, t.Depth)>>(levels-1) == 0 {
		return fmt.Errorf("%d levels of %s: %w", levels, t.size(), ErrDamaged)
	}
	if t.Swizzle != "" && (len(t.Swizzle) != 4 || strings.Trim(t.Swizzle, "01"+t.Format.channels()) != "") {
		return fmt.Errorf("swizzle %q: %w", t.Swizzle, ErrDamaged)
	}
	return nil
}

func (t *Texture) size() string {
	if t.Depth == 0 {
		return fmt.Sprintf("%d x %d", t.Width, t.Height)
	}
	return fmt.Sprintf("%d x %d x %d", t.Width, t.Height, t.Depth)
}
