package bmp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

func u16(b []byte, v ...int) []byte {
	for _, n := range v {
		b = binary.LittleEndian.AppendUint16(b, uint16(n))
	}
	return b
}

func u32(b []byte, v ...int) []byte {
	for _, n := range v {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	return b
}

// file returns a file with a header of size bytes; between is the data between header and pixels.
func file(size, w, h, depth, compression, colours int, between []byte, pixels ...byte) []byte {
	info := u32(u16(u32(nil, size, w, h), 1, depth), compression, 0, 0, 0, colours, 0)
	if size == 12 {
		info = u16(u32(nil, size), w, h, 1, depth)
	}
	info = append(info, make([]byte, max(0, size-len(info)))...)
	b := append(u32([]byte("BM"), 0, 0, 14+size+len(between)), info[:size]...)
	return slices.Concat(b, between, pixels)
}

// withMasks writes masks into a header that has fields for them.
func withMasks(data []byte, m ...int) []byte {
	copy(data[54:], u32(nil, m...))
	return data
}

func TestDecode(t *testing.T) {
	two := []byte{1, 2, 3, 0, 4, 5, 6, 0}
	black, first, second := []byte{0, 0, 0, 255}, []byte{3, 2, 1, 255}, []byte{6, 5, 4, 255}
	sixteen := make([]byte, 64)
	for i := range 16 {
		sixteen[4*i] = byte(i)
	}
	blue := func(v ...byte) (out []byte) {
		for _, b := range v {
			out = append(out, 0, 0, b, 255)
		}
		return out
	}
	tests := []struct {
		name string
		data []byte
		want []byte
	}{
		{"24 bits, bottom up", file(40, 1, 2, 24, 0, 0, nil, 1, 2, 3, 0, 4, 5, 6, 0), slices.Concat(second, first)},
		{"24 bits, top down", file(40, 1, -2, 24, 0, 0, nil, 1, 2, 3, 0, 4, 5, 6, 0), slices.Concat(first, second)},
		{"the last padding missing", file(40, 1, 2, 24, 0, 0, nil, 1, 2, 3, 0, 4, 5, 6), slices.Concat(second, first)},
		{"OS/2", file(12, 2, 1, 1, 0, 0, []byte{1, 2, 3, 4, 5, 6}, 0x40, 0, 0, 0), slices.Concat(first, second)},
		{"OS/2, 24 bits", file(12, 1, 1, 24, 0, 0, nil, 1, 2, 3, 0), first},
		{"OS/2, header of 16 bytes", file(16, 2, 1, 1, 0, 0, two, 0x40, 0, 0, 0), slices.Concat(first, second)},
		{"1 bit", file(40, 9, 1, 1, 0, 0, two, 0x40, 0x80, 0, 0), slices.Concat(first, second, slices.Repeat(first, 6), second)},
		{"2 bits, a short map", file(40, 4, 1, 2, 0, 2, two, 0x1b, 0, 0, 0), slices.Concat(first, second, black, black)},
		{"4 bits", file(40, 3, 1, 4, 0, 0, sixteen, 0x12, 0xf0, 0, 0), blue(1, 2, 15)},
		{"8 bits, map shorter than it says", file(40, 2, 1, 8, 0, 0, two, 1, 0, 0, 0), slices.Concat(second, first)},
		{"16 bits", file(40, 2, 1, 16, 0, 0, nil, 0x1f, 0x00, 0x10, 0x42), []byte{0, 0, 255, 255, 132, 132, 132, 255}},
		{"16 bits as 565", file(40, 1, 1, 16, 3, 0, u32(nil, 0xf800, 0x7e0, 0x1f), 0xe0, 0x03, 0, 0), []byte{0, 125, 0, 255}}, // 31/63 of 255
		{"16 bits as 4444", withMasks(file(108, 1, 1, 16, 3, 0, nil, 0x21, 0x84, 0, 0), 0xf00, 0xf0, 0xf, 0xf000), []byte{4 * 17, 2 * 17, 17, 8 * 17}},
		{"32 bits", file(40, 1, 1, 32, 0, 0, nil, 1, 2, 3, 99), first},
		{"32 bits below a long header", file(124, 1, 1, 32, 0, 0, nil, 1, 2, 3, 99), []byte{3, 2, 1, 99}},
		{"32 bits, alpha forgotten", file(124, 1, 1, 32, 0, 0, nil, 1, 2, 3, 0), first},
		{"32 bits, 10 of each", file(40, 1, 1, 32, 3, 0, u32(nil, 0x3ff00000, 0xffc00, 0x3ff), 0xff, 0x03, 0x08, 0x00), []byte{0, 128, 255, 255}}, // 512/1023
		{"32 bits, masks for all", file(40, 1, 1, 32, 6, 0, u32(nil, 0xff, 0xff00, 0xff0000, 0xff000000), 1, 2, 3, 4), []byte{1, 2, 3, 4}},
		{"RLE8", file(40, 3, 3, 8, 1, 0, sixteen[:16], 3, 1, 0, 0, 0, 3, 1, 2, 3, 0, 0, 0, 0, 2, 1, 0, 1, 3, 0, 1),
			blue(0, 3, 0, 1, 2, 3, 1, 1, 1)},
		{"RLE4", file(40, 5, 2, 4, 2, 0, sixteen, 5, 0x12, 0, 0, 0, 5, 0x34, 0x56, 0x70, 0, 0, 1), blue(3, 4, 5, 6, 7, 1, 2, 1, 2, 1)},
		{"RLE8 with rows that are filled up", file(40, 1, 2, 8, 1, 2, two, 4, 0, 0, 0, 0, 3, 1, 0, 0, 0, 0, 1), slices.Concat(second, first)},
		{"RLE8 that jumps up", file(40, 1, 2, 8, 1, 2, two, 0, 2, 0, 1, 1, 1, 0, 1), slices.Concat(second, first)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, got, err := Decode(tt.data, 100)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, tt.want) || len(got) != 4*h.Width*h.Height {
				t.Errorf("%d x %d: got %v, want %v", h.Width, h.Height, got, tt.want)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	rle := func(b ...byte) []byte { return file(40, 3, 2, 8, 1, 1, []byte{1, 2, 3, 0}, b...) }
	tests := []struct {
		name string
		data []byte
		want error
		text string
	}{
		{"nothing", nil, input.ErrTruncated, ""},
		{"something else", make([]byte, 100), input.ErrDamaged, "signature"},
		{"a header to come", file(4000, 1, 1, 24, 0, 0, nil), input.ErrUnsupported, "header of 4000"},
		{"no size", file(40, 0, 1, 24, 0, 0, nil), input.ErrDamaged, "0 x 1"},
		{"a width below 0", file(40, -1, 1, 24, 0, 0, nil), input.ErrDamaged, "-1 x 1"},
		{"over the limit", file(40, 100, 100, 24, 0, 0, nil), input.ErrTooLarge, "100 x 100"},
		{"over any limit", file(40, 1, math.MinInt32, 24, 0, 0, nil), input.ErrTooLarge, ""},
		{"JPEG inside", file(40, 1, 1, 24, 4, 0, nil), input.ErrUnsupported, "compression 4"},
		{"3 bits", file(40, 1, 1, 3, 0, 0, nil), input.ErrUnsupported, "3 bits"},
		{"RLE8 of 4 bits", file(40, 1, 1, 4, 1, 0, nil), input.ErrUnsupported, "4 bits"},
		{"RLE8 top down", file(40, 1, -1, 8, 1, 0, nil), input.ErrDamaged, "top down"},
		{"a mask with holes", file(40, 1, 1, 16, 3, 0, u32(nil, 0xf0f, 0xf0, 0xf)), input.ErrDamaged, "mask 0xf0f"},
		{"no mask", file(40, 1, 1, 16, 3, 0, u32(nil, 0, 0xf0, 0xf)), input.ErrDamaged, "mask 0x0"},
		{"masks cut off", file(40, 1, 1, 16, 3, 0, u32(nil, 0xf00)), input.ErrTruncated, ""},
		{"map cut off", file(40, 1, 1, 8, 0, 0, []byte{1, 2, 3, 4})[:56], input.ErrTruncated, ""},
		{"pixels cut off", file(40, 1, 2, 24, 0, 0, nil, 1, 2, 3, 0, 4, 5), input.ErrTruncated, ""},
		{"RLE without an end", rle(3, 0), input.ErrTruncated, ""},
		{"RLE, jump cut off", rle(0, 2, 1), input.ErrTruncated, ""},
		{"RLE, pixels cut off", rle(0, 3, 1, 1), input.ErrTruncated, ""},
		{"RLE over the end", rle(0, 0, 0, 0, 1, 0), input.ErrDamaged, "run of 1 pixels at 0, 2"},
		{"RLE, a jump too far", rle(0, 2, 9, 0), input.ErrDamaged, "jump to 9, 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, _, err := Decode(tt.data, 100); !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %v, want %v with %q", err, tt.want, tt.text)
			}
		})
	}
}

// A few bytes that claim a huge image must not allocate memory.
func TestHugeClaim(t *testing.T) {
	data := file(40, 30000, 30000, 24, 0, 0, nil, 1, 2, 3)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, _, err := Decode(data, math.MaxInt); !errors.Is(err, input.ErrTruncated) {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<16 {
		t.Errorf("%d bytes allocated", n)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(file(40, 1, 2, 24, 0, 0, nil, 1, 2, 3, 0, 4, 5, 6, 0))
	f.Add(file(12, 2, 1, 1, 0, 0, []byte{1, 2, 3, 4, 5, 6}, 0x40, 0, 0, 0))
	f.Add(file(40, 3, 3, 8, 1, 0, make([]byte, 1024), 3, 1, 0, 0, 0, 3, 1, 2, 3, 0, 0, 0, 0, 2, 1, 0, 1, 3, 0, 1))
	f.Add(file(40, 5, 2, 4, 2, 0, make([]byte, 64), 5, 0x12, 0, 0, 0, 5, 0x34, 0x56, 0x70, 0, 0, 1))
	f.Add(withMasks(file(108, 1, 1, 16, 3, 0, nil, 0x21, 0x84, 0, 0), 0xf00, 0xf0, 0xf, 0xf000))
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 1 << 14
		h, pix, err := Decode(data, limit)
		if err != nil {
			if !errors.Is(err, input.ErrTruncated) && !errors.Is(err, input.ErrDamaged) &&
				!errors.Is(err, input.ErrUnsupported) && !errors.Is(err, input.ErrTooLarge) {
				t.Fatalf("error of no kind: %v", err)
			}
			return
		}
		if len(pix) != 4*h.Width*h.Height || len(pix) > 4*limit {
			t.Fatalf("%d bytes for %d x %d", len(pix), h.Width, h.Height)
		}
	})
}
