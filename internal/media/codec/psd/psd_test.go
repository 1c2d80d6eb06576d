package psd

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

// file is a file that tests build.
type file struct {
	large          bool
	channels, w, h int
	depth          int
	mode           Mode
	palette        []byte
	resources      []byte
	layers         []byte // the section's body
	packing        uint16
	packed         [][]byte // rows, if packing is 1
	raw            []byte
}

func u16(b []byte, v ...int) []byte {
	for _, n := range v {
		b = binary.BigEndian.AppendUint16(b, uint16(n))
	}
	return b
}

func u32(b []byte, v ...int) []byte {
	for _, n := range v {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	return b
}

// sized returns a section; its length has 8 bytes if wide is set.
func sized(b []byte, wide bool) []byte {
	if wide {
		return append(binary.BigEndian.AppendUint64(nil, uint64(len(b))), b...)
	}
	return append(u32(nil, len(b)), b...)
}

func resource(id int, name string, body ...byte) []byte {
	b := u16([]byte("8BIM"), id)
	b = append(append(b, byte(len(name))), name...)
	if len(b)%2 != 0 {
		b = append(b, 0)
	}
	b = append(u32(b, len(body)), body...)
	if len(body)%2 != 0 {
		b = append(b, 0)
	}
	return b
}

func (f file) bytes() []byte {
	version := 1
	if f.large {
		version = 2
	}
	b := append(u16([]byte("8BPS"), version), make([]byte, 6)...)
	b = u32(u16(b, f.channels), f.h, f.w)
	b = u16(b, f.depth, int(f.mode))
	b = slices.Concat(b, sized(f.palette, false), sized(f.resources, false), sized(f.layers, f.large))
	b = u16(b, int(f.packing))
	for _, row := range f.packed {
		if f.large {
			b = u32(b, len(row))
		} else {
			b = u16(b, len(row))
		}
	}
	for _, row := range f.packed {
		b = append(b, row...)
	}
	return append(b, f.raw...)
}

// widen returns 8-bit values as 16-bit values.
func widen(v ...byte) (out []uint16) {
	for _, n := range v {
		out = append(out, uint16(n)<<8|uint16(n))
	}
	return out
}

// count returns a section of layers with their number; below 0, the image has transparency.
func count(n int, wide bool) []byte { return sized(u16(nil, n), wide) }

func TestDecode(t *testing.T) {
	palette := make([]byte, 768)
	for i := range 256 {
		palette[i], palette[256+i], palette[512+i] = byte(i), byte(255-i), 7
	}
	raw := func(v ...byte) []byte { return v }
	tests := []struct {
		name string
		file file
		want []uint16
	}{
		{"RGB", file{channels: 3, w: 2, h: 1, depth: 8, mode: rgb, raw: raw(1, 2, 3, 4, 5, 6)}, widen(1, 3, 5, 255, 2, 4, 6, 255)},
		{"rows go down", file{channels: 1, w: 1, h: 2, depth: 8, mode: grey, raw: raw(1, 2)}, widen(1, 1, 1, 255, 2, 2, 2, 255)},
		{"alpha that was saved", file{channels: 4, w: 1, h: 1, depth: 8, mode: rgb, raw: raw(250, 240, 230, 128)}, widen(250, 240, 230, 128)},
		{"more channels than are used", file{channels: 5, w: 1, h: 1, depth: 8, mode: rgb, raw: raw(1, 2, 3, 4, 5)}, widen(1, 2, 3, 4)},
		{"16 bits", file{channels: 4, w: 1, h: 1, depth: 16, mode: rgb, raw: raw(1, 2, 3, 4, 5, 6, 7, 8)}, []uint16{0x102, 0x304, 0x506, 0x708}},
		{"duotone", file{channels: 1, w: 1, h: 1, depth: 8, mode: duotone, palette: raw(1, 2, 3), raw: raw(9)}, widen(9, 9, 9, 255)},
		{"grey and alpha", file{channels: 2, w: 1, h: 1, depth: 8, mode: grey, raw: raw(9, 100)}, widen(9, 9, 9, 100)},
		{"bitmap", file{channels: 1, w: 9, h: 1, depth: 1, mode: bitmap, raw: raw(0b01111111, 0b10000000)},
			slices.Concat(widen(255, 255, 255, 255), slices.Repeat(widen(0, 0, 0, 255), 8))},
		{"indexed", file{channels: 1, w: 2, h: 1, depth: 8, mode: indexed, palette: palette, raw: raw(3, 4),
			resources: slices.Concat(resource(1000, "odd", 1, 2, 3), resource(resourceTransparent, "", 0, 4))}, widen(3, 252, 7, 255, 4, 251, 7, 0)},
		{"CMYK", file{channels: 4, w: 2, h: 1, depth: 8, mode: cmyk, raw: raw(255, 128, 0, 255, 255, 64, 255, 255)}, widen(255, 0, 255, 255, 128, 255, 64, 255)},
		{"CMYK and alpha", file{channels: 5, w: 1, h: 1, depth: 8, mode: cmyk, raw: raw(255, 0, 51, 51, 77)}, []uint16{51 * 257, 0, 2621, 77 * 257}}, // 51*51/255 is 10.2, and that times 257 is 2621.4
		{"RLE", file{channels: 3, w: 5, h: 1, depth: 8, mode: rgb, packing: 1,
			packed: [][]byte{{0xfc, 9}, {4, 1, 2, 3, 4, 5}, {0x80, 0xff, 7, 2, 1, 2, 3}}},
			widen(9, 1, 7, 255, 9, 2, 7, 255, 9, 3, 1, 255, 9, 4, 2, 255, 9, 5, 3, 255)},
		{"PSB with RLE", file{large: true, channels: 1, w: 2, h: 2, depth: 8, mode: grey, packing: 1, packed: [][]byte{{0xff, 9}, {1, 3, 4}}, layers: count(1, true)},
			widen(9, 9, 9, 255, 9, 9, 9, 255, 3, 3, 3, 255, 4, 4, 4, 255)},
		// Over white with alpha 1/3: 0 becomes 170, 255 remains, 51 becomes 187.
		{"white is taken away", file{channels: 4, w: 1, h: 1, depth: 8, mode: rgb, layers: count(-2, false), raw: raw(170, 255, 187, 85)}, widen(0, 255, 51, 85)},
		{"white is not there", file{channels: 4, w: 1, h: 1, depth: 8, mode: rgb, layers: count(-2, false), raw: raw(100, 255, 187, 85)}, widen(100, 255, 187, 85)},
		{"no transparency", file{channels: 4, w: 1, h: 1, depth: 8, mode: rgb, layers: count(2, false), raw: raw(170, 255, 187, 85)}, widen(170, 255, 187, 85)},
		{"white of 16 bits", file{channels: 2, w: 1, h: 1, depth: 16, mode: grey, raw: raw(170, 170, 85, 85),
			layers: slices.Concat(u32(nil, 0, 0), []byte("8BIMxxxx"), u32(nil, 3, 0), []byte("8BIMLr16"), sized(u16(nil, -1, 0), false))}, widen(0, 0, 0, 85)},
		{"nothing left of a colour", file{channels: 4, w: 1, h: 1, depth: 8, mode: rgb, layers: count(-1, false), raw: raw(254, 255, 255, 0)}, widen(254, 255, 255, 0)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Decode(tt.file.bytes(), 1000)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(m.Pix, tt.want) || m.Light != nil || len(m.Pix) != 4*m.Width*m.Height {
				t.Errorf("%d x %d: got %v, want %v", m.Width, m.Height, m.Pix, tt.want)
			}
		})
	}
}

// Documents with 32 bits are linear light.
func TestLight(t *testing.T) {
	floats := func(v ...float32) (b []byte) {
		for _, n := range v {
			b = u32(b, int(math.Float32bits(n)))
		}
		return b
	}
	for _, tt := range []struct {
		file file
		want []float32
	}{
		{file{channels: 3, w: 1, h: 1, depth: 32, mode: rgb, raw: floats(4, 0.5, -1)}, []float32{4, 0.5, -1, 1}},
		{file{channels: 1, w: 1, h: 1, depth: 32, mode: grey, raw: floats(4)}, []float32{4, 4, 4, 1}},
		{file{channels: 4, w: 1, h: 1, depth: 32, mode: rgb, raw: floats(1, 0.75, 1.5, 0.5), layers: count(-1, false)}, []float32{1, 0.5, 2, 0.5}},
		{file{channels: 4, w: 1, h: 1, depth: 32, mode: rgb, raw: floats(0, 0.75, 1.5, 0.5), layers: count(-1, false)}, []float32{0, 0.75, 1.5, 0.5}},
	} {
		m, err := Decode(tt.file.bytes(), 1)
		if err != nil || !slices.Equal(m.Light, tt.want) || m.Pix != nil {
			t.Errorf("%+v, %v; want %v", m, err, tt.want)
		}
	}
}

func TestProfile(t *testing.T) {
	f := file{channels: 1, w: 1, h: 1, depth: 8, mode: grey, raw: []byte{1},
		resources: slices.Concat(resource(1005, "x", 1), resource(resourceProfile, "", 5, 6, 7), resource(resourceVersion, "", 0, 0, 0, 1, 1))}
	m, err := Decode(f.bytes(), 1)
	if err != nil || !bytes.Equal(m.Profile, []byte{5, 6, 7}) {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestRefused(t *testing.T) {
	good := file{channels: 3, w: 1, h: 1, depth: 8, mode: rgb, raw: []byte{1, 2, 3}}
	with := func(change func(f *file)) []byte {
		f := good
		change(&f)
		return f.bytes()
	}
	packed := func(rows ...[]byte) []byte {
		return file{channels: 1, w: 5, h: len(rows), depth: 8, mode: grey, packing: 1, packed: rows}.bytes()
	}
	version3 := good.bytes()
	version3[5] = 3
	tests := []struct {
		name string
		data []byte
		want error
		text string
	}{
		{"nothing", nil, input.ErrTruncated, ""},
		{"something else", []byte(strings.Repeat("hello ", 9)), input.ErrDamaged, "signature"},
		{"version 3", version3, input.ErrUnsupported, "version 3"},
		{"no size", with(func(f *file) { f.w = 0 }), input.ErrDamaged, "0 x 1"},
		{"over any limit", with(func(f *file) { f.w = 300001 }), input.ErrTooLarge, ""},
		{"over the limit", with(func(f *file) { f.w = 2000 }), input.ErrTooLarge, "2000 x 1"},
		{"Lab", with(func(f *file) { f.mode = 9 }), input.ErrUnsupported, "Lab"},
		{"multichannel", with(func(f *file) { f.mode = 7 }), input.ErrUnsupported, "multichannel"},
		{"a mode to come", with(func(f *file) { f.mode = 77 }), input.ErrUnsupported, "mode 77"},
		{"12 bits", with(func(f *file) { f.depth = 12 }), input.ErrUnsupported, "12 bits a channel of RGB"},
		{"CMYK of 32 bits", with(func(f *file) { f.mode, f.depth = cmyk, 32 }), input.ErrUnsupported, "32 bits a channel of CMYK"},
		{"too few channels", with(func(f *file) { f.mode = cmyk }), input.ErrDamaged, "3 channels of CMYK"},
		{"too many channels", with(func(f *file) { f.channels = 57 }), input.ErrDamaged, "57 channels"},
		{"no colour map", with(func(f *file) { f.mode = indexed }), input.ErrDamaged, "colour map"},
		{"no picture", with(func(f *file) { f.resources = resource(resourceVersion, "", 0, 0, 0, 1, 0) }), input.ErrUnsupported,
			"maximise compatibility"},
		{"ZIP", with(func(f *file) { f.packing = 3 }), input.ErrUnsupported, "ZIP"},
		{"another packing", with(func(f *file) { f.packing = 4 }), input.ErrDamaged, "packing 4"},
		{"a run too long", packed([]byte{0xfb, 9}), input.ErrDamaged, "run of 6"},
		{"a packet too long", packed([]byte{5, 9, 9, 9, 9, 9, 9}), input.ErrDamaged, "packet of 6"},
		{"a packet cut off", packed([]byte{4, 9, 9}, []byte{4, 9, 9, 9, 9, 9}), input.ErrDamaged, "packet of 5"},
		{"packets end", packed([]byte{0xfd, 9}), input.ErrDamaged, "end too early"},
		{"rows cut off", packed([]byte{0xfc, 9})[:len(packed([]byte{0xfc, 9}))-1], input.ErrTruncated, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Decode(tt.data, 1000); !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %v, want %v with %q", err, tt.want, tt.text)
			}
		})
	}
}

// Every proper prefix of a file is too short.
func TestPrefixes(t *testing.T) {
	data := file{channels: 3, w: 2, h: 2, depth: 16, mode: rgb, resources: resource(1005, "x", 1), layers: count(1, false), raw: make([]byte, 24)}.bytes()
	if _, err := Decode(data, 4); err != nil {
		t.Fatal(err)
	}
	for n := range data {
		if _, err := Decode(data[:n], 4); !errors.Is(err, input.ErrTruncated) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// A few bytes that claim a huge image must not allocate memory.
func TestHugeClaim(t *testing.T) {
	raw := file{channels: 3, w: 30000, h: 30000, depth: 32, mode: rgb}.bytes()
	rle := file{channels: 1, w: 300000, h: 20, depth: 32, mode: grey, packing: 1, packed: slices.Repeat([][]byte{{1}}, 20)}.bytes()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := Decode(raw, math.MaxInt); !errors.Is(err, input.ErrTruncated) {
		t.Error(err)
	}
	if _, err := Decode(rle, math.MaxInt); !errors.Is(err, input.ErrDamaged) || !strings.Contains(err.Error(), "claim to hold") {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<16 {
		t.Errorf("%d bytes allocated", n)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(file{channels: 4, w: 2, h: 1, depth: 8, mode: rgb, raw: make([]byte, 8), layers: count(-1, false)}.bytes())
	f.Add(file{channels: 2, w: 5, h: 1, depth: 8, mode: grey, packing: 1, packed: [][]byte{{0xfc, 9}, {0xfc, 9}}}.bytes())
	f.Add(file{large: true, channels: 5, w: 1, h: 1, depth: 16, mode: cmyk, raw: make([]byte, 10), resources: resource(resourceProfile, "name", 1, 2, 3)}.bytes())
	f.Add(file{channels: 3, w: 1, h: 1, depth: 32, mode: rgb, raw: make([]byte, 12),
		layers: slices.Concat(u32(nil, 0, 0), []byte("8BIMLr32"), sized(u16(nil, -1), false))}.bytes())
	f.Add(file{channels: 1, w: 1, h: 1, depth: 8, mode: indexed, palette: make([]byte, 768), resources: resource(resourceTransparent, "", 0, 0), raw: []byte{0}}.bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 1 << 14
		m, err := Decode(data, limit)
		if err != nil {
			if !errors.Is(err, input.ErrTruncated) && !errors.Is(err, input.ErrDamaged) &&
				!errors.Is(err, input.ErrUnsupported) && !errors.Is(err, input.ErrTooLarge) {
				t.Fatalf("error of no kind: %v", err)
			}
			return
		}
		if n := len(m.Pix) + len(m.Light); n != 4*m.Width*m.Height || n > 4*limit || n > 2048*len(data) {
			t.Fatalf("%d numbers for %d x %d from %d bytes", n, m.Width, m.Height, len(data))
		}
	})
}
