package dds

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Flags of a pixel format, DDPF.
const (
	pixelAlpha     = 0x1 | 0x2 // alpha with colours; alpha alone
	pixelFourCC    = 0x4
	pixelRGB       = 0x40
	pixelLuminance = 0x20000
)

// masks are the bits of the channels in an uncompressed pixel: red, green, blue and alpha. A channel without bits reads as
// 0, alpha as 255.
type masks struct {
	bytes int // per pixel: 1 to 4
	mask  [4]uint32
}

// newMasks returns the masks of a DXGI format that the package does not have, or nil. It sets the format that the pixels are
// converted to.
func (t *Texture) newMasks() *masks {
	const (
		b5g6r5        = 85  // DXGI_FORMAT_B5G6R5_UNORM
		b5g5r5a1      = 86  // DXGI_FORMAT_B5G5R5A1_UNORM
		b8g8r8a8      = 87  // DXGI_FORMAT_B8G8R8A8_UNORM
		b8g8r8x8      = 88  // DXGI_FORMAT_B8G8R8X8_UNORM
		b8g8r8a8SRGB  = 91  // DXGI_FORMAT_B8G8R8A8_UNORM_SRGB
		b8g8r8x8SRGB  = 93  // DXGI_FORMAT_B8G8R8X8_UNORM_SRGB
		b4g4r4a4      = 115 // DXGI_FORMAT_B4G4R4A4_UNORM
		r10g10b10a2   = 24  // DXGI_FORMAT_R10G10B10A2_UNORM
		alphaOnly     = 65  // DXGI_FORMAT_A8_UNORM
		redMask8888   = 0xff0000
		alphaMask8888 = 0xff000000
	)
	f := t.Format
	t.Format = RGBA8
	switch f {
	case b5g6r5:
		return &masks{2, [4]uint32{0xf800, 0x7e0, 0x1f, 0}}
	case b5g5r5a1:
		return &masks{2, [4]uint32{0x7c00, 0x3e0, 0x1f, 0x8000}}
	case b4g4r4a4:
		return &masks{2, [4]uint32{0xf00, 0xf0, 0xf, 0xf000}}
	case r10g10b10a2:
		t.Format = RGBA16
		return &masks{4, [4]uint32{0x3ff, 0xffc00, 0x3ff00000, 0xc0000000}}
	case alphaOnly:
		return &masks{1, [4]uint32{0, 0, 0, 0xff}}
	case b8g8r8a8SRGB, b8g8r8x8SRGB:
		t.Format = RGBA8SRGB
	case b8g8r8a8, b8g8r8x8:
	default:
		t.Format = f
		return nil
	}
	m := &masks{4, [4]uint32{redMask8888, 0xff00, 0xff, alphaMask8888}}
	if f == b8g8r8x8 || f == b8g8r8x8SRGB {
		m.mask[3] = 0
	}
	return m
}

// oldFormat reads a DDS_PIXELFORMAT: size, flags, FourCC, bits, four masks. It sets the format, and returns masks if the
// pixels have to be converted to it. Microsoft's names for "ATI1" and "ATI2" are BC4 and BC5.
func (t *Texture) oldFormat(pf []byte) (*masks, error) {
	u32 := func(i int) uint32 { return binary.LittleEndian.Uint32(pf[i:]) }
	flags, code, size := u32(4), string(pf[8:12]), u32(12)
	if flags&pixelFourCC != 0 {
		switch code {
		case "DXT1":
			t.Format = BC1
		case "DXT2":
			t.Format, t.Alpha = BC2, AlphaPremultiplied
		case "DXT3":
			t.Format = BC2
		case "DXT4":
			t.Format, t.Alpha = BC3, AlphaPremultiplied
		case "DXT5":
			t.Format = BC3
		case "ATI1", "BC4U":
			t.Format = BC4
		case "BC4S":
			t.Format = BC4Signed
		case "ATI2", "BC5U":
			t.Format = BC5
		case "BC5S":
			t.Format = BC5Signed
		case "\x24\x00\x00\x00": // D3DFMT_A16B16G16R16
			t.Format = RGBA16
		case "\x71\x00\x00\x00": // D3DFMT_A16B16G16R16F
			t.Format = RGBA16F
		case "\x74\x00\x00\x00": // D3DFMT_A32B32G32R32F
			t.Format = RGBA32F
		default:
			return nil, fmt.Errorf("FourCC %q: %w", code, ErrUnsupported)
		}
		return nil, nil
	}
	m := &masks{int(size / 8), [4]uint32{u32(16), u32(20), u32(24), u32(28)}}
	if size != 8 && size != 16 && size != 24 && size != 32 {
		return nil, fmt.Errorf("pixels of %d bits: %w", size, ErrUnsupported)
	}
	switch {
	case flags&pixelRGB != 0:
	case flags&pixelLuminance != 0:
		m.mask[1], m.mask[2] = m.mask[0], m.mask[0]
	case flags&pixelAlpha != 0:
		m.mask[0], m.mask[1], m.mask[2] = 0, 0, 0
	default:
		return nil, fmt.Errorf("pixel format with flags %#x: %w", flags, ErrUnsupported)
	}
	if flags&pixelAlpha == 0 {
		m.mask[3] = 0 // some programs set a mask here
		t.Alpha = AlphaOpaque
	}
	for _, mask := range m.mask {
		if run := mask >> (bits.TrailingZeros32(mask) & 31); run&(run+1) != 0 || uint64(mask)>>size != 0 {
			return nil, fmt.Errorf("mask %#x in pixels of %d bits: %w", mask, size, ErrUnsupported)
		}
	}
	t.Format = RGBA8
	for _, mask := range m.mask {
		if bits.OnesCount32(mask) > 8 {
			t.Format = RGBA16
		}
	}
	return m, nil
}

// expand reads levels of pixels with masks and converts them to RGBA8 or RGBA16. Channels are scaled so that the greatest
// value becomes 255 or 65535, and rounded to nearest.
func (t *Texture) expand(data []byte, levels int, m *masks) ([][]byte, error) {
	all, err := t.cut(data, levels, func() (width, height, bytes int) { return 1, 1, m.bytes })
	if err != nil {
		return nil, err
	}
	for n, l := range all {
		_, _, size := t.Format.Block()
		out := make([]byte, 0, len(l)/m.bytes*size)
		for ; len(l) > 0; l = l[m.bytes:] {
			var p uint32
			for i := range m.bytes {
				p |= uint32(l[i]) << (8 * i)
			}
			for c := range 4 {
				if size == 8 {
					out = binary.LittleEndian.AppendUint16(out, uint16(m.channel(p, c, 0xffff)))
				} else {
					out = append(out, byte(m.channel(p, c, 0xff)))
				}
			}
		}
		all[n] = out
	}
	return all, nil
}

// channel extracts a channel from a pixel, scaled to 0..top.
func (m *masks) channel(p uint32, i int, top uint64) uint64 {
	mask := m.mask[i]
	if mask == 0 {
		if i == 3 {
			return top
		}
		return 0
	}
	shift := bits.TrailingZeros32(mask)
	most := uint64(mask >> shift)
	return (uint64(p&mask>>shift)*top + most/2) / most
}
