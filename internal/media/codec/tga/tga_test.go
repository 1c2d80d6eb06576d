package tga

import (
	"bytes"
	"errors"
	"math"
	"runtime"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

// file returns a TGA with the given header fields.
func file(typ, depth, w, h int, descriptor byte, body ...byte) []byte {
	f := make([]byte, headerSize, headerSize+len(body))
	f[2], f[12], f[14], f[16], f[17] = byte(typ), byte(w), byte(h), byte(depth), descriptor
	return append(f, body...)
}

// mapped adds a colour map to the header; its entries begin the body.
func mapped(f []byte, first, size, depth int) []byte {
	f[1], f[3], f[5], f[7] = 1, byte(first), byte(size), byte(depth)
	return f
}

func TestDecode(t *testing.T) {
	const top = topToBottom
	withID := file(3, 8, 1, 1, top, 'h', 'i', 77)
	withID[0] = 2
	tests := []struct {
		name string
		data []byte
		want []byte // RGBA
	}{
		{"24 bits top down", file(2, 24, 2, 1, top, 1, 2, 3, 4, 5, 6), []byte{3, 2, 1, 255, 6, 5, 4, 255}},
		{"24 bits bottom up", file(2, 24, 1, 2, 0, 1, 2, 3, 4, 5, 6), []byte{6, 5, 4, 255, 3, 2, 1, 255}},
		{"24 bits right to left", file(2, 24, 2, 1, top|rightToLeft, 1, 2, 3, 4, 5, 6), []byte{6, 5, 4, 255, 3, 2, 1, 255}},
		{"32 bits", file(2, 32, 1, 1, top|8, 1, 2, 3, 4), []byte{3, 2, 1, 4}},
		{"32 bits, transparent and declared", file(2, 32, 1, 1, top|8, 1, 2, 3, 0), []byte{3, 2, 1, 0}},
		{"32 bits, alpha not declared but there", file(2, 32, 2, 1, top, 1, 2, 3, 4, 1, 2, 3, 0), []byte{3, 2, 1, 4, 3, 2, 1, 0}},
		{"32 bits, no alpha", file(2, 32, 1, 1, top, 1, 2, 3, 0), []byte{3, 2, 1, 255}},
		{"16 bits with alpha bit", file(2, 16, 2, 1, top|1, 0x1f, 0x00, 0x00, 0xfc), []byte{0, 0, 255, 0, 255, 0, 0, 255}},
		{"16 bits without alpha", file(2, 16, 1, 1, top, 0xe0, 0x03), []byte{0, 255, 0, 255}},
		{"15 bits", file(2, 15, 1, 1, top, 0x10, 0x42), []byte{132, 132, 132, 255}},
		{"grey", file(3, 8, 2, 1, top, 7, 200), []byte{7, 7, 7, 255, 200, 200, 200, 255}},
		{"grey with alpha", file(3, 16, 1, 1, top|8, 7, 9), []byte{7, 7, 7, 9}},
		{"image id is skipped", withID, []byte{77, 77, 77, 255}},
		{"colour map of 24 bits", mapped(file(1, 8, 2, 1, top, 1, 2, 3, 4, 5, 6, 1, 0), 0, 2, 24), []byte{6, 5, 4, 255, 3, 2, 1, 255}},
		{"colour map of 32 bits from 5 on", mapped(file(1, 8, 1, 1, top, 1, 2, 3, 4, 5), 5, 1, 32), []byte{3, 2, 1, 4}},
		{"colour map of 15 bits, index of 16", mapped(file(1, 16, 1, 1, top, 0x1f, 0, 0, 0), 0, 1, 15), []byte{0, 0, 255, 255}},
		{"true colour with an idle map", mapped(file(2, 24, 1, 1, top, 9, 9, 9, 1, 2, 3), 0, 1, 24), []byte{3, 2, 1, 255}},
		{"RLE grey", file(11, 8, 3, 1, top, 0x81, 5, 0x00, 6), []byte{5, 5, 5, 255, 5, 5, 5, 255, 6, 6, 6, 255}},
		{"RLE true colour", file(10, 24, 3, 1, top, 0x00, 1, 2, 3, 0x81, 4, 5, 6), []byte{3, 2, 1, 255, 6, 5, 4, 255, 6, 5, 4, 255}},
		{"RLE colour map", mapped(file(9, 8, 2, 1, top, 1, 2, 3, 0x81, 0), 0, 1, 24), []byte{3, 2, 1, 255, 3, 2, 1, 255}},
		{"RLE across rows, bottom up", file(11, 8, 2, 2, 0, 0x82, 5, 0x00, 6), []byte{5, 5, 5, 255, 6, 6, 6, 255, 5, 5, 5, 255, 5, 5, 5, 255}},
		{"RLE longer than the image", file(11, 8, 2, 1, top, 0xff, 5), []byte{5, 5, 5, 255, 5, 5, 5, 255}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, got, err := Decode(tt.data, 16)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			if len(got) != 4*h.Width*h.Height {
				t.Errorf("%d bytes for %d x %d", len(got), h.Width, h.Height)
			}
		})
	}
}

// second adds the extension area and the footer of version 2.
func second(f []byte, attributes byte) []byte {
	at := len(f)
	f = append(f, make([]byte, 495)...)
	f[at], f[at+1], f[at+494] = 495&0xff, 495>>8, attributes
	return append(append(f, byte(at), byte(at>>8), 0, 0, 0, 0, 0, 0), "TRUEVISION-XFILE.\x00"...)
}

func TestAttributes(t *testing.T) {
	const top = topToBottom
	deep := file(2, 32, 2, 1, top|8, 25, 50, 100, 128, 1, 2, 3, 0)
	bits := file(2, 16, 2, 1, top|1, 0x00, 0x7c, 0x00, 0xfc)
	for _, tt := range []struct {
		name string
		data []byte
		want []byte
	}{
		{"none", second(deep, 0), []byte{100, 50, 25, 255, 3, 2, 1, 255}},
		{"undefined", second(deep, 1), []byte{100, 50, 25, 255, 3, 2, 1, 255}},
		{"undefined, but to be kept", second(deep, 2), []byte{100, 50, 25, 255, 3, 2, 1, 255}},
		{"alpha", second(deep, 3), []byte{100, 50, 25, 128, 3, 2, 1, 0}},
		{"premultiplied", second(deep, 4), []byte{199, 100, 50, 128, 0, 0, 0, 0}},
		{"16 bits, undefined", second(bits, 2), []byte{255, 0, 0, 255, 255, 0, 0, 255}},
		{"16 bits, alpha", second(bits, 3), []byte{255, 0, 0, 0, 255, 0, 0, 255}},
		{"grey", second(file(3, 16, 1, 1, top|8, 7, 9), 1), []byte{7, 7, 7, 255}},
		{"a colour map", second(mapped(file(1, 8, 1, 1, top|8, 1, 2, 3, 4, 0), 0, 1, 32), 0), []byte{3, 2, 1, 255}},
		{"alpha that is not declared", second(file(2, 32, 1, 1, top, 1, 2, 3, 0), 3), []byte{3, 2, 1, 0}},
		{"a footer without an extension area", append(deep, "\x00\x00\x00\x00\x00\x00\x00\x00TRUEVISION-XFILE.\x00"...),
			[]byte{100, 50, 25, 128, 3, 2, 1, 0}},
	} {
		if _, got, err := Decode(tt.data, 16); err != nil || !bytes.Equal(got, tt.want) {
			t.Errorf("%s: %v, %v; want %v", tt.name, got, err, tt.want)
		}
	}
}

func TestRefused(t *testing.T) {
	mapType2 := file(2, 24, 1, 1, 0, 1, 2, 3)
	mapType2[1] = 2
	tests := []struct {
		name string
		data []byte
		want error
	}{
		{"nothing", nil, input.ErrTruncated},
		{"half a header", make([]byte, 17), input.ErrTruncated},
		{"no image", file(0, 24, 1, 1, 0), input.ErrUnsupported},
		{"Huffman", file(32, 24, 1, 1, 0), input.ErrUnsupported},
		{"zero width", file(2, 24, 0, 1, 0), input.ErrDamaged},
		{"zero height", file(2, 24, 1, 0, 0), input.ErrDamaged},
		{"17 bits", file(2, 17, 1, 1, 0), input.ErrUnsupported},
		{"interleaved", file(2, 24, 1, 1, 0x40), input.ErrUnsupported},
		{"colour map type", mapType2, input.ErrUnsupported},
		{"colour map missing", file(1, 8, 1, 1, 0, 0), input.ErrDamaged},
		{"colour map depth", mapped(file(1, 8, 1, 1, 0, 0), 0, 1, 8), input.ErrUnsupported},
		{"colour map cut off", mapped(file(1, 8, 1, 1, 0, 0), 0, 200, 24), input.ErrTruncated},
		{"index above the map", mapped(file(1, 8, 1, 1, 0, 1, 2, 3, 1), 0, 1, 24), input.ErrDamaged},
		{"index below the map", mapped(file(1, 8, 1, 1, 0, 1, 2, 3, 4), 5, 1, 24), input.ErrDamaged},
		{"pixels cut off", file(2, 24, 1, 1, 0, 1, 2), input.ErrTruncated},
		{"raw packet cut off", file(10, 24, 2, 1, 0, 0x01, 1, 2, 3, 4, 5), input.ErrTruncated},
		{"run packet cut off", file(10, 24, 2, 1, 0, 0x81, 1, 2), input.ErrTruncated},
		{"packets cut off", file(11, 8, 3, 1, 0, 0x81, 1), input.ErrTruncated},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, _, err := Decode(tt.data, 16); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

// A few bytes that claim a huge image must not allocate memory.
func TestHugeClaim(t *testing.T) {
	for _, typ := range []int{2, 10} {
		data := file(typ, 24, 0, 0, 0, 0xff, 1, 2, 3)
		for i := 12; i < 16; i++ {
			data[i] = 0xff
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, _, err := Decode(data, math.MaxInt); !errors.Is(err, input.ErrTruncated) {
			t.Errorf("type %d: %v", typ, err)
		}
		if _, _, err := Decode(data, 65535*65535-1); !errors.Is(err, input.ErrTooLarge) {
			t.Errorf("type %d over the limit: %v", typ, err)
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<16 {
			t.Errorf("type %d: %d bytes allocated", typ, n)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(file(2, 24, 1, 1, 0, 1, 2, 3))
	f.Add(file(10, 32, 2, 1, 0x28, 0x81, 1, 2, 3, 4))
	f.Add(second(file(2, 32, 1, 1, 8, 1, 2, 3, 4), 4))
	f.Add(mapped(file(9, 8, 2, 2, 0, 1, 2, 0x83, 0), 0, 1, 16))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, pix, err := Decode(data, 1<<20)
		if err != nil {
			if !errors.Is(err, input.ErrTruncated) && !errors.Is(err, input.ErrDamaged) &&
				!errors.Is(err, input.ErrUnsupported) && !errors.Is(err, input.ErrTooLarge) {
				t.Fatalf("error of no kind: %v", err)
			}
			return
		}
		if len(pix) != 4*h.Width*h.Height {
			t.Fatalf("%d bytes for %d x %d", len(pix), h.Width, h.Height)
		}
		if len(pix) > 512*(len(data)+1) {
			t.Fatalf("%d bytes of pixels from %d", len(pix), len(data))
		}
	})
}
