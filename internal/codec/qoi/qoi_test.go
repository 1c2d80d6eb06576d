package qoi

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// file is a header and packets.
func file(w, h uint32, channels, space byte, packets ...byte) []byte {
	b := binary.BigEndian.AppendUint32([]byte("qoif"), w)
	b = append(binary.BigEndian.AppendUint32(b, h), channels, space)
	return append(append(b, packets...), 0, 0, 0, 0, 0, 0, 0, 1)
}

// The packets are those of the specification's pages, put down by hand.
func TestDecode(t *testing.T) {
	tests := []struct {
		name string
		data []byte
		want []byte
	}{
		{"RGB keeps alpha", file(2, 1, 4, 0, opRGBA, 1, 2, 3, 4, opRGB, 5, 6, 7), []byte{1, 2, 3, 4, 5, 6, 7, 4}},
		{"before the first is opaque black", file(2, 1, 4, 0, 0xc1), []byte{0, 0, 0, 255, 0, 0, 0, 255}},
		{"3 channels are opaque", file(1, 1, 3, 0, opRGBA, 1, 2, 3, 4), []byte{1, 2, 3, 255}},
		// (1*3 + 2*5 + 3*7 + 4*11) % 64 is 14.
		{"index", file(3, 1, 4, 1, opRGBA, 1, 2, 3, 4, opRGBA, 9, 9, 9, 9, 14), []byte{1, 2, 3, 4, 9, 9, 9, 9, 1, 2, 3, 4}},
		{"an index that was not set is clear", file(1, 1, 4, 0, 5), []byte{0, 0, 0, 0}},
		// 2 is none, 3 one more, 0 two less; numbers go round.
		{"difference", file(2, 1, 4, 0, opDiff|3<<4|2<<2|0, opDiff|0<<4|3<<2|1), []byte{1, 0, 254, 255, 255, 1, 253, 255}},
		// Green is 32+10: 10 more; red 8+3: 13 more; blue 8-8: 2 more.
		{"luma", file(1, 1, 4, 0, opLuma|42, 11<<4|0), []byte{13, 10, 2, 255}},
		{"luma, less", file(1, 1, 4, 0, opLuma|0, 0<<4|15), []byte{256 - 40, 256 - 32, 256 - 25, 255}},
		{"run across rows", file(2, 2, 4, 0, opRGB, 1, 2, 3, 0xc2), slices.Repeat([]byte{1, 2, 3, 255}, 4)},
		{"the longest run", file(62, 1, 4, 0, 0xfd), slices.Repeat([]byte{0, 0, 0, 255}, 62)},
		{"a run too long", file(1, 1, 4, 0, 0xc9), []byte{0, 0, 0, 255}},
		{"no mark at the end", file(1, 1, 4, 0, 0xc0)[:15], []byte{0, 0, 0, 255}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, w, h, err := Decode(tt.data, 100)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, tt.want) || len(got) != 4*w*h {
				t.Errorf("%d x %d: got %v, want %v", w, h, got, tt.want)
			}
		})
	}
}

func TestHeader(t *testing.T) {
	if h, err := ParseHeader(file(3, 2, 4, 1)); err != nil || h != (Header{3, 2, true, true}) {
		t.Errorf("%+v, %v", h, err)
	}
	if h, err := ParseHeader(file(3, 2, 3, 0)); err != nil || h != (Header{3, 2, false, false}) {
		t.Errorf("%+v, %v", h, err)
	}
}

func TestRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		data []byte
		want error
		text string
	}{
		"nothing":         {nil, ErrTruncated, ""},
		"half a header":   {[]byte("qoif\x00\x00"), ErrTruncated, ""},
		"something else":  {make([]byte, 20), ErrDamaged, "signature"},
		"no size":         {file(0, 1, 4, 0), ErrDamaged, "0 x 1"},
		"2 channels":      {file(1, 1, 2, 0), ErrDamaged, "2 channels"},
		"colour space 2":  {file(1, 1, 4, 2), ErrDamaged, "colour space 2"},
		"over the limit":  {file(101, 1, 4, 0), ErrTooLarge, "101 x 1"},
		"over any limit":  {file(math.MaxUint32, math.MaxUint32, 4, 0), ErrTooLarge, ""},
		"pixels cut off":  {file(2, 1, 4, 0, opRGB, 1, 2, 3), ErrTruncated, ""},
		"a packet is cut": {file(1, 1, 4, 0, opRGBA, 1, 2, 3, 4)[:17], ErrTruncated, ""},
	} {
		if _, _, _, err := Decode(tt.data, 100); !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: got %v, want %v with %q", name, err, tt.want, tt.text)
		}
	}
}

// A few bytes that claim a huge image must not cost memory.
func TestHugeClaim(t *testing.T) {
	data := file(30000, 30000, 4, 0)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, _, _, err := Decode(data, math.MaxInt); !errors.Is(err, ErrTruncated) {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<16 {
		t.Errorf("%d bytes allocated", n)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(file(2, 2, 4, 0, opRGBA, 1, 2, 3, 4, opDiff|7, opLuma|9, 0x77, 14))
	f.Add(file(62, 1, 3, 1, 0xfd))
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 1 << 14
		pix, w, h, err := Decode(data, limit)
		if err != nil {
			if !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrTooLarge) {
				t.Fatalf("error of no kind: %v", err)
			}
			return
		}
		if len(pix) != 4*w*h || len(pix) > 4*limit {
			t.Fatalf("%d bytes for %d x %d", len(pix), w, h)
		}
	})
}
