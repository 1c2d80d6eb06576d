// Package dds writes and reads DirectDraw Surface textures, as docs/formats/dds.md describes them.
//
// It follows Microsoft's "Programming Guide for DDS", "DDS_HEADER", "DDS_PIXELFORMAT" and "DDS_HEADER_DXT10":
// two-dimensional images, volumes, cube maps and arrays, with mip levels. It writes files with the DX10 header, and also
// reads older files. All numbers in the file are little-endian u32.
//
//	  0  "DDS "
//	  4  size 124, flags, height, width, pitch or linear size, depth, mip level count, 11 reserved
//	 76  pixel format: size 32, flags, FourCC, bits per pixel, masks of red, green, blue and alpha
//	108  caps, caps2, caps3, caps4, reserved
//	128  if the FourCC is "DX10": dxgiFormat, dimension, misc, array size, alpha mode
//	148  for each element of the array, for each face: the levels, largest first, without padding
//
// Memory is allocated for a number in the file only after that number was compared with the length of the data.
package dds

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// AlphaMode is the meaning of the fourth channel.
type AlphaMode uint32

const (
	AlphaUnknown       AlphaMode = 0
	AlphaStraight      AlphaMode = 1
	AlphaPremultiplied AlphaMode = 2
	AlphaOpaque        AlphaMode = 3
	AlphaCustom        AlphaMode = 4 // a channel of data
)

// Extension is the file name extension.
const Extension = ".dds"

// Texture is the content of a file.
type Texture struct {
	Format        Format
	Width, Height int  // of level 0, in pixels
	Depth         int  // of level 0, in slices; 0: two dimensions
	Layers        int  // elements of an array; 0: no array. The file does not distinguish 0 from 1: both are read as 0
	Cube          bool // six square faces: +X, -X, +Y, -Y, +Z, -Z
	Alpha         AlphaMode

	// Levels are the mip levels, the full image first, each half the size of the previous one in all dimensions, rounded
	// down. A level has the images of all layers; a layer has those of all faces; a face has those of all slices. (This is
	// the order of KTX 2.0; the file has another order.) Rows have no padding, and the top row is first: DDS has no other
	// orientation.
	Levels [][]byte
}

// Limits of an image, far above those of any hardware.
const (
	maxSide   = 1 << 20
	maxLayers = 1 << 20
)

var (
	ErrTruncated   = errors.New("the DDS file ends too early")
	ErrDamaged     = errors.New("the DDS file is damaged")
	ErrUnsupported = errors.New("this kind of DDS file is not supported")
)

const (
	oldHeadSize = 128
	headSize    = 148

	flagsBase      = 0x1 | 0x2 | 0x4 | 0x1000 // DDSD: caps, height, width, pixel format
	flagPitch      = 0x8
	flagMips       = 0x20000
	flagLinearSize = 0x80000
	flagDepth      = 0x800000

	capsTexture = 0x1000   // DDSCAPS
	capsComplex = 0x8      // more than one image
	capsMips    = 0x400000 // mip levels
	caps2Cube   = 0x200    // DDSCAPS2
	caps2Faces  = 0xfc00   // all six
	caps2Volume = 0x200000

	oneD     = 2 // D3D10_RESOURCE_DIMENSION
	twoD     = 3
	threeD   = 4
	miscCube = 0x4 // D3D10_RESOURCE_MISC_TEXTURECUBE
)

// images is the number of chains of mip levels.
func (t *Texture) images() int {
	if t.Cube {
		return 6 * max(1, t.Layers)
	}
	return max(1, t.Layers)
}

// imageSize returns the size of level n of one layer and face, with all slices, in bytes, or math.MaxInt if it is larger.
func (t *Texture) imageSize(n int) int { return t.sizeIn(n, t.Format.Block) }

// sizeIn is imageSize with another block size than that of the format.
func (t *Texture) sizeIn(n int, block func() (width, height, bytes int)) int {
	w, h, size := block()
	slice := times(times((max(1, t.Width>>n)+w-1)/w, (max(1, t.Height>>n)+h-1)/h), size)
	return times(slice, max(1, t.Depth>>n))
}

// levelSize returns the size of level n in bytes.
func (t *Texture) levelSize(n int) int { return times(t.imageSize(n), t.images()) }

// times multiplies numbers that are not negative. The result is at most math.MaxInt.
func times(a, b int) int {
	if hi, lo := bits.Mul64(uint64(a), uint64(b)); hi == 0 && lo < math.MaxInt {
		return int(lo)
	}
	return math.MaxInt
}

// check returns an error if a file cannot store the texture. It does not check the content of the levels.
func (t *Texture) check(levels int) error {
	if _, _, size := t.Format.Block(); size == 0 {
		return fmt.Errorf("DXGI format %d: %w", uint32(t.Format), ErrUnsupported)
	}
	if t.Width < 1 || t.Height < 1 || t.Depth < 0 || max(t.Width, t.Height, t.Depth) > maxSide {
		return fmt.Errorf("size %s: %w", t.size(), ErrUnsupported)
	}
	if t.Layers < 0 || t.Layers > maxLayers || t.Layers > 0 && t.Depth > 0 {
		return fmt.Errorf("%d layers of %s: %w", t.Layers, t.size(), ErrUnsupported)
	}
	if t.Cube && (t.Width != t.Height || t.Depth > 0) {
		return fmt.Errorf("a cube of %s: %w", t.size(), ErrDamaged)
	}
	if levels < 1 || levels > 32 || max(t.Width, t.Height, t.Depth)>>(levels-1) == 0 {
		return fmt.Errorf("%d levels of %s: %w", levels, t.size(), ErrDamaged)
	}
	if t.Alpha > AlphaCustom {
		return fmt.Errorf("alpha mode %d: %w", t.Alpha, ErrUnsupported)
	}
	return nil
}

func (t *Texture) size() string {
	if t.Depth == 0 {
		return fmt.Sprintf("%d x %d", t.Width, t.Height)
	}
	return fmt.Sprintf("%d x %d x %d", t.Width, t.Height, t.Depth)
}
