package dds

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// old returns a file in the form before Direct3D 10: a pixel format (flags, FourCC, bits, masks of red, green, blue, alpha),
// a size, a level count, caps2, and pixels.
func old(pf [7]uint32, w, h, d, levels int, caps2 uint32, data ...byte) []byte {
	b := make([]byte, 128, 128+len(data))
	put := func(at int, v ...uint32) {
		for i, v := range v {
			binary.LittleEndian.PutUint32(b[at+4*i:], v)
		}
	}
	copy(b, "DDS ")
	put(4, 124, 0x1007, uint32(h), uint32(w), 0, uint32(d), uint32(levels))
	put(76, 32)
	put(80, pf[:]...)
	put(108, 0x1000, caps2)
	return append(b, data...)
}

func fourCC(s string) [7]uint32 {
	return [7]uint32{4, binary.LittleEndian.Uint32([]byte(s))}
}

type oldFile struct {
	name string
	data []byte
	want Texture
}

func oldFiles() []oldFile {
	block := make([]byte, 16)
	for i := range block {
		block[i] = byte(i)
	}
	compressed := func(f Format, alpha AlphaMode, size int) Texture {
		return Texture{Format: f, Width: 3, Height: 2, Alpha: alpha, Levels: [][]byte{block[:size]}}
	}
	of := func(alpha AlphaMode, pix ...byte) Texture {
		return Texture{Format: RGBA8, Width: len(pix) / 4, Height: 1, Alpha: alpha, Levels: [][]byte{pix}}
	}
	return []oldFile{
		{"DXT1", old(fourCC("DXT1"), 3, 2, 0, 1, 0, block[:8]...), compressed(BC1, 0, 8)},
		{"DXT2", old(fourCC("DXT2"), 3, 2, 0, 1, 0, block...), compressed(BC2, AlphaPremultiplied, 16)},
		{"DXT3", old(fourCC("DXT3"), 3, 2, 0, 1, 0, block...), compressed(BC2, 0, 16)},
		{"DXT4", old(fourCC("DXT4"), 3, 2, 0, 1, 0, block...), compressed(BC3, AlphaPremultiplied, 16)},
		{"DXT5, no level count", old(fourCC("DXT5"), 3, 2, 0, 0, 0, block...), compressed(BC3, 0, 16)},
		{"ATI1", old(fourCC("ATI1"), 3, 2, 0, 1, 0, block[:8]...), compressed(BC4, 0, 8)},
		{"BC4U", old(fourCC("BC4U"), 3, 2, 0, 1, 0, block[:8]...), compressed(BC4, 0, 8)},
		{"BC4S", old(fourCC("BC4S"), 3, 2, 0, 1, 0, block[:8]...), compressed(BC4Signed, 0, 8)},
		{"ATI2", old(fourCC("ATI2"), 3, 2, 0, 1, 0, block...), compressed(BC5, 0, 16)},
		{"BC5U", old(fourCC("BC5U"), 3, 2, 0, 1, 0, block...), compressed(BC5, 0, 16)},
		{"BC5S", old(fourCC("BC5S"), 3, 2, 0, 1, 0, block...), compressed(BC5Signed, 0, 16)},
		{"D3DFMT 36", old(fourCC("\x24\x00\x00\x00"), 1, 2, 0, 1, 0, block...), Texture{Format: RGBA16, Width: 1, Height: 2,
			Levels: [][]byte{block}}},
		{"D3DFMT 113", old(fourCC("\x71\x00\x00\x00"), 1, 2, 0, 1, 0, block...), Texture{Format: RGBA16F, Width: 1, Height: 2, Levels: [][]byte{block}}},
		{"D3DFMT 116", old(fourCC("\x74\x00\x00\x00"), 1, 1, 0, 1, 0, block...), Texture{Format: RGBA32F, Width: 1, Height: 1, Levels: [][]byte{block}}},

		{"RGB24: blue, green, red", old([7]uint32{0x40, 0, 24, 0xff0000, 0xff00, 0xff, 0}, 2, 1, 0, 1, 0, 1, 2, 3, 4, 5, 6),
			of(AlphaOpaque, 3, 2, 1, 255, 6, 5, 4, 255)},
		{"BGRA32", old([7]uint32{0x41, 0, 32, 0xff0000, 0xff00, 0xff, 0xff000000}, 1, 1, 0, 1, 0, 1, 2, 3, 4), of(0, 3, 2, 1, 4)},
		{"BGRX32", old([7]uint32{0x40, 0, 32, 0xff0000, 0xff00, 0xff, 0xff000000}, 1, 1, 0, 1, 0, 1, 2, 3, 4), of(AlphaOpaque, 3, 2, 1, 255)},
		{"RGBA32", old([7]uint32{0x41, 0, 32, 0xff, 0xff00, 0xff0000, 0xff000000}, 1, 1, 0, 1, 0, 1, 2, 3, 4), of(0, 1, 2, 3, 4)},
		{"L8", old([7]uint32{0x20000, 0, 8, 0xff, 0, 0, 0}, 2, 1, 0, 1, 0, 7, 9), of(AlphaOpaque, 7, 7, 7, 255, 9, 9, 9, 255)},
		{"L8A8", old([7]uint32{0x20001, 0, 16, 0xff, 0, 0, 0xff00}, 1, 1, 0, 1, 0, 7, 9), of(0, 7, 7, 7, 9)},
		{"L16", old([7]uint32{0x20000, 0, 16, 0xffff, 0, 0, 0}, 1, 1, 0, 1, 0, 0xff, 0x7f),
			Texture{Format: RGBA16, Width: 1, Height: 1, Alpha: AlphaOpaque, Levels: [][]byte{{0xff, 0x7f, 0xff, 0x7f, 0xff, 0x7f, 0xff, 0xff}}}},
		{"G16R16", old([7]uint32{0x40, 0, 32, 0xffff, 0xffff0000, 0, 0}, 1, 1, 0, 1, 0, 1, 2, 3, 4),
			Texture{Format: RGBA16, Width: 1, Height: 1, Alpha: AlphaOpaque, Levels: [][]byte{{1, 2, 3, 4, 0, 0, 0xff, 0xff}}}},
		{"A8", old([7]uint32{0x2, 0, 8, 0, 0, 0, 0xff}, 1, 1, 0, 1, 0, 7), of(0, 0, 0, 0, 7)},
		// 16/31 and 33/63 of 255 are 131.6 and 133.6; 8/15 of 255 is 136.
		{"565", old([7]uint32{0x40, 0, 16, 0xf800, 0x7e0, 0x1f, 0}, 2, 1, 0, 1, 0, 0x30, 0x84, 0xff, 0xff),
			of(AlphaOpaque, 132, 134, 132, 255, 255, 255, 255, 255)},
		{"1555", old([7]uint32{0x41, 0, 16, 0x7c00, 0x3e0, 0x1f, 0x8000}, 2, 1, 0, 1, 0, 0x1f, 0x40, 0x00, 0x80), of(0, 132, 0, 255, 0, 0, 0, 0, 255)},
		{"4444", old([7]uint32{0x41, 0, 16, 0xf00, 0xf0, 0xf, 0xf000}, 1, 1, 0, 1, 0, 0x48, 0xf0), of(0, 0, 68, 136, 255)},
		{"levels", old([7]uint32{0x20000, 0, 8, 0xff, 0, 0, 0}, 2, 1, 0, 2, 0, 1, 2, 3),
			Texture{Format: RGBA8, Width: 2, Height: 1, Alpha: AlphaOpaque, Levels: [][]byte{{1, 1, 1, 255, 2, 2, 2, 255}, {3, 3, 3, 255}}}},
		{"a cube", old([7]uint32{0x2, 0, 8, 0, 0, 0, 0xff}, 1, 1, 0, 1, 0xfe00, 1, 2, 3, 4, 5, 6),
			Texture{Format: RGBA8, Width: 1, Height: 1, Cube: true, Levels: [][]byte{{0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 6}}}},
		{"a volume", old([7]uint32{0x2, 0, 8, 0, 0, 0, 0xff}, 1, 1, 2, 2, 0x200000, 1, 2, 3),
			Texture{Format: RGBA8, Width: 1, Height: 1, Depth: 2, Levels: [][]byte{{0, 0, 0, 1, 0, 0, 0, 2}, {0, 0, 0, 3}}}},
	}
}

func TestDecodeOld(t *testing.T) {
	for _, tt := range oldFiles() {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Decode(tt.data)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(&tt.want, got); d != "" {
				t.Error(d)
			}
			if _, err := Decode(tt.data[:len(tt.data)-1]); !errors.Is(err, ErrTruncated) {
				t.Errorf("a byte less: %v", err)
			}
		})
	}
}

// DXGI formats that are converted to RGBA8 or RGBA16, or that have no type.
func TestDecodeExpands(t *testing.T) {
	for _, tt := range []struct {
		dxgi   uint32
		pixel  []byte
		format Format
		want   []byte
	}{
		{87, []byte{1, 2, 3, 4}, RGBA8, []byte{3, 2, 1, 4}},
		{88, []byte{1, 2, 3, 4}, RGBA8, []byte{3, 2, 1, 255}},
		{91, []byte{1, 2, 3, 4}, RGBA8SRGB, []byte{3, 2, 1, 4}},
		{93, []byte{1, 2, 3, 4}, RGBA8SRGB, []byte{3, 2, 1, 255}},
		{85, []byte{0x1f, 0}, RGBA8, []byte{0, 0, 255, 255}},
		{86, []byte{0, 0x7c}, RGBA8, []byte{255, 0, 0, 0}},
		{115, []byte{0xf0, 0xf0}, RGBA8, []byte{0, 255, 0, 255}},
		{24, []byte{0xff, 0x03, 0, 0xc0}, RGBA16, []byte{255, 255, 0, 0, 0, 0, 255, 255}}, // ten bits of red, two of alpha
		{65, []byte{9}, RGBA8, []byte{0, 0, 0, 9}},
		{23, []byte{0, 0, 0, 0x40}, RGBA16, []byte{0, 0, 0, 0, 0, 0, 0x55, 0x55}},
		{27, []byte{1, 2, 3, 4}, RGBA8, []byte{1, 2, 3, 4}},
		{48, []byte{1, 2}, RG8, []byte{1, 2}},
		{60, []byte{1}, R8, []byte{1}},
		{70, []byte{1, 2, 3, 4, 5, 6, 7, 8}, BC1, []byte{1, 2, 3, 4, 5, 6, 7, 8}},
		{79, []byte{1, 2, 3, 4, 5, 6, 7, 8}, BC4, []byte{1, 2, 3, 4, 5, 6, 7, 8}},
		{90, []byte{1, 2, 3, 4}, RGBA8, []byte{3, 2, 1, 4}},
		{92, []byte{1, 2, 3, 4}, RGBA8, []byte{3, 2, 1, 255}},
	} {
		b, err := Encode(&Texture{Format: R8, Width: 1, Height: 1, Levels: [][]byte{{0}}})
		if err != nil {
			t.Fatal(err)
		}
		put(128, tt.dxgi)(b)
		got, err := Decode(append(b[:148], tt.pixel...))
		if err != nil {
			t.Errorf("%d: %v", tt.dxgi, err)
			continue
		}
		put(140, 0)(b) // 0 is taken for 1
		if again, err := Decode(append(b[:148], tt.pixel...)); err != nil || cmp.Diff(got, again) != "" {
			t.Errorf("%d in an array of 0: %v", tt.dxgi, err)
		}
		if d := cmp.Diff(&Texture{Format: tt.format, Width: 1, Height: 1, Levels: [][]byte{tt.want}}, got); d != "" {
			t.Errorf("%d: %s", tt.dxgi, d)
		}
	}
}

func TestDecodeOldRefuses(t *testing.T) {
	for name, b := range map[string][]byte{
		"palette":         old([7]uint32{0x20, 0, 8, 0, 0, 0, 0}, 1, 1, 0, 1, 0, make([]byte, 2000)...),
		"bump map":        old([7]uint32{0x80000, 0, 16, 0xff, 0xff00, 0, 0}, 1, 1, 0, 1, 0, 1, 2),
		"64 bits":         old([7]uint32{0x40, 0, 64, 0xff, 0xff00, 0, 0}, 1, 1, 0, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8),
		"no bits":         old([7]uint32{0x40, 0, 0, 0xff, 0xff00, 0, 0}, 1, 1, 0, 1, 0, 1, 2, 3, 4),
		"a torn mask":     old([7]uint32{0x40, 0, 16, 0xf0f, 0, 0, 0}, 1, 1, 0, 1, 0, 1, 2),
		"a wide mask":     old([7]uint32{0x40, 0, 16, 0xff0000, 0, 0, 0}, 1, 1, 0, 1, 0, 1, 2),
		"half a cube":     old([7]uint32{0x2, 0, 8, 0, 0, 0, 0xff}, 1, 1, 0, 1, 0x600, 1, 2, 3, 4, 5, 6),
		"D3DFMT 110":      old(fourCC("\x6e\x00\x00\x00"), 1, 1, 0, 1, 0, make([]byte, 8)...),
		"no pixel format": old([7]uint32{}, 1, 1, 0, 1, 0, 1, 2, 3, 4),
	} {
		if _, err := Decode(b); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
