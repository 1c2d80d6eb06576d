// Package ddscheck checks a DDS file with a DX10 header against Microsoft's pages "DDS_HEADER", "DDS_PIXELFORMAT",
// "DDS_HEADER_DXT10" and "DDS File Layout". It is for tests, and shares no code with the writer that it checks: it has its
// own table of formats.
//
// It is as strict as the pages require of a writer, also for fields that readers must not trust.
package ddscheck

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// formats are the numbers of DXGI_FORMAT with the bytes of a pixel, or, negative, of a block of 4 x 4 pixels.
var formats = map[uint32]int{
	2:  16,       // R32G32B32A32_FLOAT
	10: 8,        // R16G16B16A16_FLOAT
	11: 8,        // R16G16B16A16_UNORM
	28: 4, 29: 4, // R8G8B8A8_UNORM, _SRGB
	35: 4,          // R16G16_UNORM
	49: 2,          // R8G8_UNORM
	56: 2,          // R16_UNORM
	61: 1,          // R8_UNORM
	67: 4,          // R9G9B9E5_SHAREDEXP
	71: -8, 72: -8, // BC1_UNORM, _SRGB
	74: -16, 75: -16, // BC2_UNORM, _SRGB
	77: -16, 78: -16, // BC3_UNORM, _SRGB
	80: -8, 81: -8, // BC4_UNORM, _SNORM
	83: -16, 84: -16, // BC5_UNORM, _SNORM
	95: -16, 96: -16, // BC6H_UF16, _SF16
	98: -16, 99: -16, // BC7_UNORM, _SRGB
}

type file struct {
	data   []byte
	faults []error
}

func (f *file) u32(at int) uint32 { return binary.LittleEndian.Uint32(f.data[at:]) }

func (f *file) fault(text string, args ...any) {
	f.faults = append(f.faults, fmt.Errorf(text, args...))
}

func (f *file) is(field string, at int, want uint32) {
	if got := f.u32(at); got != want {
		f.fault("%s at %d is %d (%#x), want %d (%#x)", field, at, got, got, want, want)
	}
}

// Check returns an error that lists all faults of a file, or nil.
func Check(data []byte) error {
	f := &file{data: data}
	if len(data) < 4+124+20 {
		f.fault("%d bytes cannot hold the headers", len(data))
	} else {
		f.constants()
		f.rest()
	}
	return errors.Join(f.faults...)
}

// constants checks the fields with a fixed value, and those that are reserved or unused.
func (f *file) constants() {
	f.is("dwMagic", 0, 0x20534444)
	f.is("dwSize", 4, 124)
	for at := 32; at < 76; at += 4 {
		f.is("dwReserved1", at, 0)
	}
	f.is("ddspf.dwSize", 76, 32)
	f.is("ddspf.dwFlags", 80, 0x4)
	f.is("ddspf.dwFourCC", 84, 0x30315844)
	for at := 88; at < 108; at += 4 {
		f.is("ddspf bit count and masks", at, 0)
	}
	for at := 116; at < 128; at += 4 {
		f.is("dwCaps3, dwCaps4, dwReserved2", at, 0)
	}
}

// rest checks the fields that depend on the texture.
func (f *file) rest() {
	height, width, depth, mips := f.u32(12), f.u32(16), f.u32(24), f.u32(28)
	size, known := formats[f.u32(128)]
	if !known {
		f.fault("dxgiFormat %d is not known here", f.u32(128))
		return
	}
	dimension, misc, array := f.u32(132), f.u32(136), f.u32(140)
	if width == 0 || height == 0 || array == 0 || mips == 0 {
		f.fault("%d x %d pixels, array of %d, %d mip levels", width, height, array, mips)
		return
	}
	if most := uint32(bits.Len32(max(width, height, depth))); mips > most {
		f.fault("%d mip levels, where there can be %d", mips, most)
		return
	}
	flags, caps, caps2, faces := uint32(0x1|0x2|0x4|0x1000), uint32(0x1000), uint32(0), uint32(1)
	switch {
	case dimension == 3 && misc == 0:
	case dimension == 3 && misc == 4:
		caps2, faces = 0x200|0x400|0x800|0x1000|0x2000|0x4000|0x8000, 6
		if width != height {
			f.fault("a cube of %d x %d", width, height)
		}
	case dimension == 4 && misc == 0:
		flags |= 0x800000
		caps2 = 0x200000
		if array != 1 || depth == 0 {
			f.fault("a volume with an array of %d and a depth of %d", array, depth)
		}
	default:
		f.fault("resourceDimension %d with miscFlag %#x", dimension, misc)
		return
	}
	if dimension != 4 && depth != 0 {
		f.fault("dwDepth is %d", depth)
	}
	if mips > 1 {
		flags |= 0x20000
		caps |= 0x400000
	}
	if mips > 1 || array*faces > 1 {
		caps |= 0x8
	}
	if size > 0 {
		flags |= 0x8
		f.is("dwPitchOrLinearSize, a pitch,", 20, (width*uint32(size)*8+7)/8)
	} else {
		flags |= 0x80000
		f.is("dwPitchOrLinearSize, a linear size,", 20, max(1, (width+3)/4)*max(1, (height+3)/4)*uint32(-size))
	}
	f.is("dwFlags", 8, flags)
	f.is("dwCaps", 108, caps)
	f.is("dwCaps2", 112, caps2)
	if mode := f.u32(144); mode > 4 {
		f.fault("miscFlags2 is %d", mode)
	}
	if got, want := uint64(len(f.data)), 148+uint64(array)*uint64(faces)*chain(width, height, depth, mips, size); got != want {
		f.fault("%d bytes, want %d", got, want)
	}
}

// chain returns the size of all mip levels of one image in bytes.
func chain(width, height, depth, mips uint32, size int) (n uint64) {
	for range mips {
		w, h, d := uint64(max(1, width)), uint64(max(1, height)), uint64(max(1, depth))
		if size > 0 {
			n += w * h * d * uint64(size)
		} else {
			n += (w + 3) / 4 * ((h + 3) / 4) * d * uint64(-size)
		}
		width, height, depth = width/2, height/2, depth/2
	}
	return n
}
