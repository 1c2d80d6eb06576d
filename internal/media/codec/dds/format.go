package dds

import "fmt"

// Format is a pixel format, by its number in DXGI. DXGI has no numbers for ETC2 and ASTC.
type Format uint32

// Formats. SRGB means that colours are sRGB-encoded; alpha is always linear.
const (
	RGBA32F    Format = 2  // DXGI_FORMAT_R32G32B32A32_FLOAT
	RGBA16F    Format = 10 // DXGI_FORMAT_R16G16B16A16_FLOAT
	RGBA16     Format = 11 // DXGI_FORMAT_R16G16B16A16_UNORM
	RGBA8      Format = 28 // DXGI_FORMAT_R8G8B8A8_UNORM
	RGBA8SRGB  Format = 29 // DXGI_FORMAT_R8G8B8A8_UNORM_SRGB
	RG16       Format = 35 // DXGI_FORMAT_R16G16_UNORM
	RG8        Format = 49 // DXGI_FORMAT_R8G8_UNORM
	R16        Format = 56 // DXGI_FORMAT_R16_UNORM
	R8         Format = 61 // DXGI_FORMAT_R8_UNORM
	RGB9E5     Format = 67 // DXGI_FORMAT_R9G9B9E5_SHAREDEXP
	BC1        Format = 71 // DXGI_FORMAT_BC1_UNORM: its fourth colour is transparent
	BC1SRGB    Format = 72 // DXGI_FORMAT_BC1_UNORM_SRGB
	BC2        Format = 74 // DXGI_FORMAT_BC2_UNORM
	BC2SRGB    Format = 75 // DXGI_FORMAT_BC2_UNORM_SRGB
	BC3        Format = 77 // DXGI_FORMAT_BC3_UNORM
	BC3SRGB    Format = 78 // DXGI_FORMAT_BC3_UNORM_SRGB
	BC4        Format = 80 // DXGI_FORMAT_BC4_UNORM
	BC4Signed  Format = 81 // DXGI_FORMAT_BC4_SNORM
	BC5        Format = 83 // DXGI_FORMAT_BC5_UNORM
	BC5Signed  Format = 84 // DXGI_FORMAT_BC5_SNORM
	BC6H       Format = 95 // DXGI_FORMAT_BC6H_UF16
	BC6HSigned Format = 96 // DXGI_FORMAT_BC6H_SF16
	BC7        Format = 98 // DXGI_FORMAT_BC7_UNORM
	BC7SRGB    Format = 99 // DXGI_FORMAT_BC7_UNORM_SRGB
)

// Block returns the size of a block in pixels and in bytes; a block of an uncompressed format is one pixel. All are 0 for a
// format that this package does not know.
func (f Format) Block() (width, height, bytes int) {
	switch f {
	case R8:
		return 1, 1, 1
	case RG8, R16:
		return 1, 1, 2
	case RGBA8, RGBA8SRGB, RG16, RGB9E5:
		return 1, 1, 4
	case RGBA16, RGBA16F:
		return 1, 1, 8
	case RGBA32F:
		return 1, 1, 16
	case BC1, BC1SRGB, BC4, BC4Signed:
		return 4, 4, 8
	case BC2, BC2SRGB, BC3, BC3SRGB, BC5, BC5Signed, BC6H, BC6HSigned, BC7, BC7SRGB:
		return 4, 4, 16
	}
	return 0, 0, 0
}

// typed returns the format that a typeless one is taken for, as in other programs. All others are returned as they
// are. A format is also returned as it is if it may be floating point or not.
func (f Format) typed() Format {
	const (
		r10g10b10a2 = 23 // all typeless
		b8g8r8a8    = 90
		b8g8r8x8    = 92
	)
	switch f {
	case RGBA8 - 1, RG8 - 1, R8 - 1, BC1 - 1, BC2 - 1, BC3 - 1, BC4 - 1, BC5 - 1, BC6H - 1, BC7 - 1, r10g10b10a2:
		return f + 1
	case b8g8r8a8:
		return 87
	case b8g8r8x8:
		return 88
	}
	return f
}

// compressed reports whether a block has more than one pixel.
func (f Format) compressed() bool {
	w, _, _ := f.Block()
	return w > 1
}

// SRGB reports whether colours are sRGB-encoded.
func (f Format) SRGB() bool {
	switch f {
	case RGBA8SRGB, BC1SRGB, BC2SRGB, BC3SRGB, BC7SRGB:
		return true
	}
	return false
}

// String returns the name of the format: "BC7 sRGB".
func (f Format) String() string {
	switch f {
	case R8:
		return "R8"
	case RG8:
		return "RG8"
	case RGBA8:
		return "RGBA8"
	case RGBA8SRGB:
		return "RGBA8 sRGB"
	case R16:
		return "R16"
	case RG16:
		return "RG16"
	case RGBA16:
		return "RGBA16"
	case RGBA16F:
		return "RGBA16F"
	case RGBA32F:
		return "RGBA32F"
	case RGB9E5:
		return "RGB9E5"
	case BC1:
		return "BC1"
	case BC1SRGB:
		return "BC1 sRGB"
	case BC2:
		return "BC2"
	case BC2SRGB:
		return "BC2 sRGB"
	case BC3:
		return "BC3"
	case BC3SRGB:
		return "BC3 sRGB"
	case BC4:
		return "BC4"
	case BC4Signed:
		return "BC4 signed"
	case BC5:
		return "BC5"
	case BC5Signed:
		return "BC5 signed"
	case BC6H:
		return "BC6H"
	case BC6HSigned:
		return "BC6H signed"
	case BC7:
		return "BC7"
	case BC7SRGB:
		return "BC7 sRGB"
	}
	return fmt.Sprintf("DXGI format %d", uint32(f))
}
