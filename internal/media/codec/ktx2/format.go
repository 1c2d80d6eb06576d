package ktx2

import "fmt"

// Format is a pixel format, by its number in Vulkan.
type Format uint32

// Formats. SRGB means that colours are sRGB-encoded; alpha is always linear.
const (
	R8         Format = 9   // VK_FORMAT_R8_UNORM
	R8SRGB     Format = 15  // VK_FORMAT_R8_SRGB
	RG8        Format = 16  // VK_FORMAT_R8G8_UNORM
	RG8SRGB    Format = 22  // VK_FORMAT_R8G8_SRGB
	RGB8       Format = 23  // VK_FORMAT_R8G8B8_UNORM
	RGB8SRGB   Format = 29  // VK_FORMAT_R8G8B8_SRGB
	RGBA8      Format = 37  // VK_FORMAT_R8G8B8A8_UNORM
	RGBA8SRGB  Format = 43  // VK_FORMAT_R8G8B8A8_SRGB
	BGRA8      Format = 44  // VK_FORMAT_B8G8R8A8_UNORM
	BGRA8SRGB  Format = 50  // VK_FORMAT_B8G8R8A8_SRGB
	R16        Format = 70  // VK_FORMAT_R16_UNORM
	RG16       Format = 77  // VK_FORMAT_R16G16_UNORM
	RGBA16     Format = 91  // VK_FORMAT_R16G16B16A16_UNORM
	RGBA16F    Format = 97  // VK_FORMAT_R16G16B16A16_SFLOAT
	RGBA32F    Format = 109 // VK_FORMAT_R32G32B32A32_SFLOAT
	RGB9E5     Format = 123 // VK_FORMAT_E5B9G9R9_UFLOAT_PACK32
	BC1        Format = 131 // VK_FORMAT_BC1_RGB_UNORM_BLOCK: its fourth colour is black
	BC1SRGB    Format = 132 // VK_FORMAT_BC1_RGB_SRGB_BLOCK
	BC1A       Format = 133 // VK_FORMAT_BC1_RGBA_UNORM_BLOCK: its fourth colour is transparent
	BC1ASRGB   Format = 134 // VK_FORMAT_BC1_RGBA_SRGB_BLOCK
	BC2        Format = 135 // VK_FORMAT_BC2_UNORM_BLOCK
	BC2SRGB    Format = 136 // VK_FORMAT_BC2_SRGB_BLOCK
	BC3        Format = 137 // VK_FORMAT_BC3_UNORM_BLOCK
	BC3SRGB    Format = 138 // VK_FORMAT_BC3_SRGB_BLOCK
	BC4        Format = 139 // VK_FORMAT_BC4_UNORM_BLOCK
	BC4Signed  Format = 140 // VK_FORMAT_BC4_SNORM_BLOCK
	BC5        Format = 141 // VK_FORMAT_BC5_UNORM_BLOCK
	BC5Signed  Format = 142 // VK_FORMAT_BC5_SNORM_BLOCK
	BC6H       Format = 143 // VK_FORMAT_BC6H_UFLOAT_BLOCK
	BC6HSigned Format = 144 // VK_FORMAT_BC6H_SFLOAT_BLOCK
	BC7        Format = 145 // VK_FORMAT_BC7_UNORM_BLOCK
	BC7SRGB    Format = 146 // VK_FORMAT_BC7_SRGB_BLOCK

	ETC2RGB       Format = 147 // VK_FORMAT_ETC2_R8G8B8_UNORM_BLOCK
	ETC2RGBSRGB   Format = 148 // VK_FORMAT_ETC2_R8G8B8_SRGB_BLOCK
	ETC2RGBA1     Format = 149 // VK_FORMAT_ETC2_R8G8B8A1_UNORM_BLOCK
	ETC2RGBA1SRGB Format = 150 // VK_FORMAT_ETC2_R8G8B8A1_SRGB_BLOCK
	ETC2RGBA      Format = 151 // VK_FORMAT_ETC2_R8G8B8A8_UNORM_BLOCK
	ETC2RGBASRGB  Format = 152 // VK_FORMAT_ETC2_R8G8B8A8_SRGB_BLOCK
	EACR          Format = 153 // VK_FORMAT_EAC_R11_UNORM_BLOCK
	EACRSigned    Format = 154 // VK_FORMAT_EAC_R11_SNORM_BLOCK
	EACRG         Format = 155 // VK_FORMAT_EAC_R11G11_UNORM_BLOCK
	EACRGSigned   Format = 156 // VK_FORMAT_EAC_R11G11_SNORM_BLOCK

	firstASTC Format = 157 // VK_FORMAT_ASTC_4x4_UNORM_BLOCK; the sRGB variant is the next, then the next footprint
)

// ASTC returns the format for blocks of a footprint, or 0 for an unknown one: 4x4 5x4 5x5 6x5 6x6 8x5 8x6 8x8 10x5 10x6 10x8
// 10x10 12x10 12x12.
func ASTC(width, height int, srgb bool) Format {
	for i, f := range footprints {
		if int(f[0]) == width && int(f[1]) == height {
			n := firstASTC + Format(2*i)
			if srgb {
				n++
			}
			return n
		}
	}
	return 0
}

// footprints are those of ASTC, in the order of Vulkan's numbers.
var footprints = [...][2]uint8{{4, 4}, {5, 4}, {5, 5}, {6, 5}, {6, 6}, {8, 5}, {8, 6}, {8, 8}, {10, 5}, {10, 6}, {10, 8}, {10, 10}, {12, 10}, {12, 12}}

// Block returns the size of a block in pixels and in bytes; a block of an uncompressed format is one pixel. All are 0 for a
// format that this package does not know.
func (f Format) Block() (width, height, bytes int) {
	i, _ := f.info()
	return int(i.width), int(i.height), int(i.bytes)
}

// SRGB reports whether colours are sRGB-encoded.
func (f Format) SRGB() bool {
	i, _ := f.info()
	return i.transfer == transferSRGB
}

// channels returns the letters of the channels that can be sampled.
func (f Format) channels() string {
	switch f {
	case R8, R8SRGB, R16, BC4, BC4Signed, EACR, EACRSigned:
		return "r"
	case RG8, RG8SRGB, RG16, BC5, BC5Signed, EACRG, EACRGSigned:
		return "rg"
	case RGB8, RGB8SRGB, RGB9E5, BC1, BC1SRGB, BC6H, BC6HSigned, ETC2RGB, ETC2RGBSRGB:
		return "rgb"
	}
	return "rgba"
}

// String returns the name of the format: "BC7 sRGB", "ASTC 6x6".
func (f Format) String() string {
	i, ok := f.info()
	switch {
	case !ok:
		return fmt.Sprintf("vkFormat %d", uint32(f))
	case f >= firstASTC:
		i.name = fmt.Sprintf("ASTC %dx%d", i.width, i.height)
	}
	if i.transfer == transferSRGB {
		return i.name + " sRGB"
	}
	return i.name
}

// info has the properties of a format in the specifications.
type info struct {
	name          string // without the sRGB
	width, height uint8  // of a block, in pixels
	bytes         uint8  // of a block
	typeSize      uint8  // size in bytes of the units that a big-endian machine has to swap
	model         uint8  // KHR_DF_MODEL
	transfer      uint8  // KHR_DF_TRANSFER
	samples       []sample
}

// sample is a channel in the data format descriptor.
type sample struct {
	offset, length uint8 // in bits
	channel        uint8 // KHR_DF_CHANNEL, and qualifiers
	lower, upper   uint32
}

// Names of the Khronos Data Format Specification, chapter 5.
const (
	modelRGBSDA = 1
	modelBC1A   = 128
	modelBC2    = 129
	modelBC3    = 130
	modelBC4    = 131
	modelBC5    = 132
	modelBC6H   = 133
	modelBC7    = 134
	modelETC2   = 161
	modelASTC   = 162

	transferUnspecified = 0
	transferLinear      = 1
	transferSRGB        = 2

	red, green, blue, alpha = 0, 1, 2, 15
	bc1Alpha                = 1 // for BC1A: the fourth colour is transparent
	etc2Colour              = 2 // for ETC2: red, green and blue together

	linear   = 0x10 // qualifier: not sRGB-encoded, unlike the other channels
	exponent = 0x20
	signed   = 0x40
	float    = 0x80

	all      = 0xffffffff // the value of 1 in compressed formats
	lowest   = 0x80000000 // the value of -1 in signed compressed formats
	highest  = 0x7fffffff // and the value of 1
	one      = 0x3f800000 // 1 as a float32
	minusOne = 0xbf800000
)

// Samples of uncompressed formats, and samples that several formats share. For RGB9E5, the editions of the specification and
// their examples have different upper bounds. These are the bounds that Khronos's tools write and their validator requires.
var (
	oneByte    = []sample{{0, 8, red, 0, 255}}
	twoBytes   = []sample{{0, 8, red, 0, 255}, {8, 8, green, 0, 255}}
	threeBytes = []sample{{0, 8, red, 0, 255}, {8, 8, green, 0, 255}, {16, 8, blue, 0, 255}}
	fourBytes  = []sample{{0, 8, red, 0, 255}, {8, 8, green, 0, 255}, {16, 8, blue, 0, 255}, {24, 8, alpha, 0, 255}}
	fourBytesS = []sample{{0, 8, red, 0, 255}, {8, 8, green, 0, 255}, {16, 8, blue, 0, 255}, {24, 8, alpha | linear, 0, 255}}
	blueFirst  = []sample{{0, 8, blue, 0, 255}, {8, 8, green, 0, 255}, {16, 8, red, 0, 255}, {24, 8, alpha, 0, 255}}
	blueFirstS = []sample{{0, 8, blue, 0, 255}, {8, 8, green, 0, 255}, {16, 8, red, 0, 255}, {24, 8, alpha | linear, 0, 255}}

	sixteens = []sample{{0, 16, red, 0, 65535}, {16, 16, green, 0, 65535}, {32, 16, blue, 0, 65535}, {48, 16, alpha, 0, 65535}}

	halves = []sample{{0, 16, red | signed | float, minusOne, one}, {16, 16, green | signed | float, minusOne, one},
		{32, 16, blue | signed | float, minusOne, one}, {48, 16, alpha | signed | float, minusOne, one}}
	floats = []sample{{0, 32, red | signed | float, minusOne, one}, {32, 32, green | signed | float, minusOne, one},
		{64, 32, blue | signed | float, minusOne, one}, {96, 32, alpha | signed | float, minusOne, one}}
	sharedExponent = []sample{{0, 9, red, 0, 8448}, {27, 5, red | exponent, 15, 31},
		{9, 9, green, 0, 8448}, {27, 5, green | exponent, 15, 31},
		{18, 9, blue, 0, 8448}, {27, 5, blue | exponent, 15, 31}}

	block64    = []sample{{0, 64, 0, 0, all}}
	block128   = []sample{{0, 128, 0, 0, all}}
	redGreen   = []sample{{0, 64, red, 0, all}, {64, 64, green, 0, all}}
	redGreenS  = []sample{{0, 64, red | signed, lowest, highest}, {64, 64, green | signed, lowest, highest}}
	alphaFirst = []sample{{0, 64, alpha, 0, all}, {64, 64, 0, 0, all}}
)

// info returns the properties of a format.
func (f Format) info() (info, bool) {
	switch f {
	case R8:
		return info{"R8", 1, 1, 1, 1, modelRGBSDA, transferLinear, oneByte}, true
	case R8SRGB:
		return info{"R8", 1, 1, 1, 1, modelRGBSDA, transferSRGB, oneByte}, true
	case RG8:
		return info{"RG8", 1, 1, 2, 1, modelRGBSDA, transferLinear, twoBytes}, true
	case RG8SRGB:
		return info{"RG8", 1, 1, 2, 1, modelRGBSDA, transferSRGB, twoBytes}, true
	case RGB8:
		return info{"RGB8", 1, 1, 3, 1, modelRGBSDA, transferLinear, threeBytes}, true
	case RGB8SRGB:
		return info{"RGB8", 1, 1, 3, 1, modelRGBSDA, transferSRGB, threeBytes}, true
	case RGBA8:
		return info{"RGBA8", 1, 1, 4, 1, modelRGBSDA, transferLinear, fourBytes}, true
	case RGBA8SRGB:
		return info{"RGBA8", 1, 1, 4, 1, modelRGBSDA, transferSRGB, fourBytesS}, true
	case BGRA8:
		return info{"BGRA8", 1, 1, 4, 1, modelRGBSDA, transferLinear, blueFirst}, true
	case BGRA8SRGB:
		return info{"BGRA8", 1, 1, 4, 1, modelRGBSDA, transferSRGB, blueFirstS}, true
	case R16:
		return info{"R16", 1, 1, 2, 2, modelRGBSDA, transferLinear, sixteens[:1]}, true
	case RG16:
		return info{"RG16", 1, 1, 4, 2, modelRGBSDA, transferLinear, sixteens[:2]}, true
	case RGBA16:
		return info{"RGBA16", 1, 1, 8, 2, modelRGBSDA, transferLinear, sixteens}, true
	case RGBA16F:
		return info{"RGBA16F", 1, 1, 8, 2, modelRGBSDA, transferLinear, halves}, true
	case RGBA32F:
		return info{"RGBA32F", 1, 1, 16, 4, modelRGBSDA, transferLinear, floats}, true
	case RGB9E5:
		return info{"RGB9E5", 1, 1, 4, 4, modelRGBSDA, transferLinear, sharedExponent}, true
	}
	if f >= BC1 && f < firstASTC {
		return blocks[f-BC1], true
	}
	if f >= firstASTC && f < firstASTC+2*Format(len(footprints)) {
		size := footprints[(f-firstASTC)/2]
		return info{"", size[0], size[1], 16, 1, modelASTC, transferLinear + uint8((f-firstASTC)%2), block128}, true
	}
	return info{}, false
}

// blocks are BC1 and the following formats, by number. BC6H has a lower bound of 0, where the example in the specification
// has -1: an unsigned format has no -1, and Khronos's tools also write 0.
var blocks = [firstASTC - BC1]info{
	{"BC1", 4, 4, 8, 1, modelBC1A, transferLinear, block64},
	{"BC1", 4, 4, 8, 1, modelBC1A, transferSRGB, block64},
	{"BC1A", 4, 4, 8, 1, modelBC1A, transferLinear, []sample{{0, 64, bc1Alpha, 0, all}}},
	{"BC1A", 4, 4, 8, 1, modelBC1A, transferSRGB, []sample{{0, 64, bc1Alpha, 0, all}}},
	{"BC2", 4, 4, 16, 1, modelBC2, transferLinear, alphaFirst},
	{"BC2", 4, 4, 16, 1, modelBC2, transferSRGB, []sample{{0, 64, alpha | linear, 0, all}, {64, 64, 0, 0, all}}},
	{"BC3", 4, 4, 16, 1, modelBC3, transferLinear, alphaFirst},
	{"BC3", 4, 4, 16, 1, modelBC3, transferSRGB, []sample{{0, 64, alpha | linear, 0, all}, {64, 64, 0, 0, all}}},
	{"BC4", 4, 4, 8, 1, modelBC4, transferLinear, block64},
	{"BC4 signed", 4, 4, 8, 1, modelBC4, transferLinear, []sample{{0, 64, signed, lowest, highest}}},
	{"BC5", 4, 4, 16, 1, modelBC5, transferLinear, redGreen},
	{"BC5 signed", 4, 4, 16, 1, modelBC5, transferLinear, redGreenS},
	{"BC6H", 4, 4, 16, 1, modelBC6H, transferLinear, []sample{{0, 128, float, 0, one}}},
	{"BC6H signed", 4, 4, 16, 1, modelBC6H, transferLinear, []sample{{0, 128, float | signed, minusOne, one}}},
	{"BC7", 4, 4, 16, 1, modelBC7, transferLinear, block128},
	{"BC7", 4, 4, 16, 1, modelBC7, transferSRGB, block128},
	{"ETC2 RGB", 4, 4, 8, 1, modelETC2, transferLinear, []sample{{0, 64, etc2Colour, 0, all}}},
	{"ETC2 RGB", 4, 4, 8, 1, modelETC2, transferSRGB, []sample{{0, 64, etc2Colour, 0, all}}},
	{"ETC2 RGBA1", 4, 4, 8, 1, modelETC2, transferLinear, []sample{{0, 64, etc2Colour, 0, all}, {0, 64, alpha, 0, all}}},
	{"ETC2 RGBA1", 4, 4, 8, 1, modelETC2, transferSRGB, []sample{{0, 64, etc2Colour, 0, all}, {0, 64, alpha | linear, 0, all}}},
	{"ETC2 RGBA", 4, 4, 16, 1, modelETC2, transferLinear, []sample{{0, 64, alpha, 0, all}, {64, 64, etc2Colour, 0, all}}},
	{"ETC2 RGBA", 4, 4, 16, 1, modelETC2, transferSRGB, []sample{{0, 64, alpha | linear, 0, all}, {64, 64, etc2Colour, 0, all}}},
	{"EAC R11", 4, 4, 8, 1, modelETC2, transferLinear, []sample{{0, 64, red, 0, all}}},
	{"EAC R11 signed", 4, 4, 8, 1, modelETC2, transferLinear, []sample{{0, 64, red | signed, lowest, highest}}},
	{"EAC RG11", 4, 4, 16, 1, modelETC2, transferLinear, redGreen},
	{"EAC RG11 signed", 4, 4, 16, 1, modelETC2, transferLinear, redGreenS},
}
