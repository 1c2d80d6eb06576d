package exr

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

// file is a file that tests build; zero values are omitted.
type file struct {
	version     uint32
	compression compression
	channels    []channel
	steps       uint32 // between pixels of a channel; 0 is 1
	data        box
	display     box // zero: same as data
	more        []byte
	blocks      [][]byte // of all lines, unpacked
	decreasing  bool
}

func le(b []byte, v ...int) []byte {
	for _, n := range v {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	return b
}

func attribute(name, kind string, value []byte) []byte {
	return append(le([]byte(name+"\x00"+kind+"\x00"), len(value)), value...)
}

func window(b box) []byte { return le(nil, b.minX, b.minY, b.maxX, b.maxY) }

func (f file) bytes() []byte {
	if f.display == (box{}) {
		f.display = f.data
	}
	var list []byte
	for _, c := range f.channels {
		list = le(append(list, c.name+"\x00"...), int(c.kind), 0, int(max(1, f.steps)), int(max(1, f.steps)))
	}
	order := byte(0)
	if f.decreasing {
		order = 1
	}
	out := slices.Concat(le([]byte(magic), int(f.version|2)), f.more,
		attribute("channels", "chlist", append(list, 0)), attribute("compression", "compression", []byte{byte(f.compression)}),
		attribute("dataWindow", "box2i", window(f.data)), attribute("displayWindow", "box2i", window(f.display)),
		attribute("lineOrder", "lineOrder", []byte{order}), []byte{0})
	table := len(out)
	out = append(out, make([]byte, 8*len(f.blocks))...)
	for n := range f.blocks {
		i := n
		if f.decreasing {
			i = len(f.blocks) - 1 - n
		}
		binary.LittleEndian.PutUint64(out[table+8*i:], uint64(len(out)))
		packed := f.pack(f.blocks[i])
		out = append(le(out, f.data.minY+i*f.compression.lines(), len(packed)), packed...)
	}
	return out
}

// deflater is reused: a new one takes longer than all packing in the tests.
var deflater = zlib.NewWriter(nil)

// pack is the reverse of unpack, written from the description of the format.
func (f file) pack(b []byte) []byte {
	packed := b
	switch f.compression {
	case rle:
		packed = packRuns(mix(b))
	case zips, zip:
		packed = deflate(mix(b))
	case piz:
		packed = f.packPIZ(b)
	case pxr24:
		packed = f.packPXR24(b)
	}
	if len(packed) >= len(b) {
		return b
	}
	return packed
}

// mix moves the even bytes before the odd ones, and replaces bytes by differences.
func mix(b []byte) []byte {
	var mixed []byte
	for start := range 2 {
		for i := start; i < len(b); i += 2 {
			mixed = append(mixed, b[i])
		}
	}
	diff := bytes.Clone(mixed)
	for i := 1; i < len(mixed); i++ {
		diff[i] = mixed[i] - mixed[i-1] + 128
	}
	return diff
}

func packRuns(b []byte) (out []byte) {
	for i := 0; i < len(b); {
		n := 1
		for i+n < len(b) && b[i+n] == b[i] && n < 128 {
			n++
		}
		if n > 1 {
			out = append(out, byte(n-1), b[i])
		} else {
			out = append(out, 0xff, b[i]) // -1: one byte follows
		}
		i += n
	}
	return out
}

func deflate(b []byte) []byte {
	var out bytes.Buffer
	deflater.Reset(&out)
	_, _ = deflater.Write(b)
	_ = deflater.Close()
	return out.Bytes()
}

var (
	red      = []channel{{name: "R", kind: kindHalf}}
	redAlpha = []channel{{name: "A", kind: kindHalf}, {name: "R", kind: kindHalf}}
)

func halves(v ...uint16) (b []byte) {
	for _, n := range v {
		b = binary.LittleEndian.AppendUint16(b, n)
	}
	return b
}

func floats(v ...float32) (b []byte) {
	for _, n := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(n))
	}
	return b
}

const one, two, quarter = 0x3c00, 0x4000, 0x3400 // as half

func TestDecode(t *testing.T) {
	rgb := []channel{{"B", kindHalf, false}, {"G", kindHalf, false}, {"R", kindHalf, false}}
	inf := float32(math.Inf(1))
	tests := []struct {
		name string
		file file
		want []float32
	}{
		{"half", file{channels: rgb, data: box{0, 0, 1, 0}, blocks: [][]byte{halves(one, two, 0, quarter, 0xc000, 0x7bff)}},
			[]float32{-2, 0, 1, 1, 65504, 0.25, 2, 1}},
		{"float", file{channels: []channel{{"R", kindFloat, false}}, data: box{0, 0, 0, 1}, blocks: [][]byte{floats(1e30), floats(-0.5)}},
			[]float32{1e30, 0, 0, 1, -0.5, 0, 0, 1}},
		{"uint", file{channels: []channel{{"G", kindUint, false}}, data: box{0, 0, 0, 0}, blocks: [][]byte{le(nil, 4000000000)}},
			[]float32{0, 4e9, 0, 1}},
		{"grey, with others that do not matter", file{data: box{0, 0, 0, 0},
			channels: []channel{{"A", kindHalf, false}, {"X", kindUint, false}, {"Y", kindHalf, false}, {"Z", kindFloat, false}},
			blocks:   [][]byte{slices.Concat(halves(one), le(nil, 7), halves(two), floats(9))}}, []float32{2, 2, 2, 1}},
		{"colours count more than Y", file{data: box{0, 0, 0, 0},
			channels: []channel{{"R", kindHalf, false}, {"Y", kindHalf, false}}, blocks: [][]byte{halves(one, two)}},
			[]float32{1, 0, 0, 1}},
		{"alpha is divided out", file{channels: redAlpha, data: box{0, 0, 2, 0},
			blocks: [][]byte{halves(quarter, 0, two, one, one, one)}}, []float32{4, 0, 0, 0.25, 1, 0, 0, 0, 0.5, 0, 0, 2}},
		{"rare numbers", file{channels: red, data: box{0, 0, 3, 0}, blocks: [][]byte{halves(1, 0x83ff, 0x7c00, 0x0400)}},
			[]float32{0x1p-24, 0, 0, 1, -1023 * 0x1p-24, 0, 0, 1, inf, 0, 0, 1, 0x1p-14, 0, 0, 1}},
		{"bottom line first", file{channels: red, data: box{5, -3, 5, -2}, blocks: [][]byte{halves(one), halves(two)}, decreasing: true},
			[]float32{1, 0, 0, 1, 2, 0, 0, 1}},
		{"less than is shown", file{channels: red, data: box{1, 1, 1, 1}, display: box{0, 0, 1, 1}, blocks: [][]byte{halves(one)}},
			[]float32{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1}},
		{"more than is shown", file{channels: red, data: box{0, -1, 2, 0}, display: box{1, 0, 1, 0},
			blocks: [][]byte{halves(0, 0, 0), halves(one, two, one)}}, []float32{2, 0, 0, 1}},
		{"beside what is shown", file{channels: red, data: box{4, 0, 5, 0}, display: box{0, 0, 1, 0}, blocks: [][]byte{halves(one, two)}},
			make([]float32, 8)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, got, err := Decode(tt.file.bytes(), 1000)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, tt.want) || len(got) != 4*h.Width*h.Height {
				t.Errorf("%d x %d: got %v, want %v", h.Width, h.Height, got, tt.want)
			}
		})
	}
}

// Images of any size, packed with any compression, are restored.
func TestPackings(t *testing.T) {
	for _, c := range []compression{none, rle, zips, zip, piz, pxr24} {
		for w := 1; w <= 17; w++ {
			for h := 1; h <= 35; h += 1 + h/2 {
				f := file{compression: c, data: box{-2, 7, w - 3, h + 6}}
				f.channels = []channel{{"A", kindFloat, false}, {"G", kindUint, false}, {"R", kindHalf, false}}
				var want []float32
				for y := range h {
					if y%c.lines() == 0 {
						f.blocks = append(f.blocks, nil)
					}
					line := &f.blocks[len(f.blocks)-1]
					var red []byte
					green := []byte{}
					for x := range w {
						*line = append(*line, floats(1)...)
						green = le(green, y/5)
						red = append(red, halves(one+uint16(x*y)%3<<10)...)
						want = append(want, float32(int(1)<<(x*y%3)), float32(y/5), 0, 1)
					}
					*line = append(append(*line, green...), red...)
				}
				_, got, err := Decode(f.bytes(), w*h)
				if err != nil || !slices.Equal(got, want) {
					t.Fatalf("%v, %d x %d: %v, %v; want %v", c, w, h, err, got, want)
				}
			}
		}
	}
}

// Every half has the value defined by IEEE 754.
func TestHalf(t *testing.T) {
	for i := range 1 << 16 {
		v := uint16(i)
		exp, mantissa := int(v>>10&31), float64(v&1023)
		want := math.Ldexp(1024+mantissa, exp-25)
		if exp == 0 {
			want = math.Ldexp(mantissa, -24)
		}
		if exp == 31 && mantissa == 0 {
			want = math.Inf(1)
		}
		want = math.Copysign(want, 1-2*float64(v>>15))
		if got := input.Half(v); exp == 31 && mantissa != 0 {
			if got == got {
				t.Fatalf("%#x: %v, want NaN", v, got)
			}
		} else if float64(got) != want || math.Signbit(float64(got)) != math.Signbit(want) {
			t.Fatalf("%#x: %v, want %v", v, got, want)
		}
	}
}

func TestRefused(t *testing.T) {
	good := file{channels: red, data: box{0, 0, 0, 0}, blocks: [][]byte{halves(one)}}
	with := func(change func(f *file)) []byte {
		f := good
		change(&f)
		return f.bytes()
	}
	// 64 times the half 0: in RLE, these are the packets ff 00, 7e 80.
	packed := func(c compression, change func(b []byte)) []byte {
		f := file{compression: c, channels: red, data: box{0, 0, 63, 0}, blocks: [][]byte{make([]byte, 128)}}
		b := f.bytes()
		change(b)
		return b
	}
	tests := []struct {
		name string
		data []byte
		want error
		text string
	}{
		{"nothing", nil, input.ErrTruncated, ""},
		{"something else", []byte("hello, world"), input.ErrDamaged, "signature"},
		{"version 3", with(func(f *file) { f.version = 1 }), input.ErrUnsupported, "version 3"},
		{"tiles", with(func(f *file) { f.version = flagTiled }), input.ErrUnsupported, "tiles"},
		{"deep", with(func(f *file) { f.version = flagDeep }), input.ErrUnsupported, "deep data"},
		{"parts", with(func(f *file) { f.version = flagMultipart }), input.ErrUnsupported, "several parts"},
		{"DWAA", with(func(f *file) { f.compression = 8 }), input.ErrUnsupported, "compression DWAA"},
		{"DWAB", with(func(f *file) { f.compression = 9 }), input.ErrUnsupported, "compression DWAB"},
		{"compression to come", with(func(f *file) { f.compression = 77 }), input.ErrUnsupported, "compression number 77"},
		{"half resolution", with(func(f *file) { f.steps = 2 }), input.ErrUnsupported, `channel "R" at a resolution of 1/2 x 1/2`},
		{"no colours", with(func(f *file) { f.channels = []channel{{"Z", kindHalf, false}} }), input.ErrUnsupported,
			`no channel R, G, B or Y among "Z"`},
		{"no channels", with(func(f *file) { f.channels = nil }), input.ErrUnsupported, "none"},
		{"another kind", with(func(f *file) { f.channels = []channel{{"R", 3, false}} }), input.ErrDamaged, "kind 3"},
		{"no size", with(func(f *file) { f.data = box{0, 0, -1, 0} }), input.ErrDamaged, "0 x 1"},
		{"over the limit", with(func(f *file) { f.display = box{0, 0, 999, 999} }), input.ErrTooLarge, "1000 x 1000"},
		{"data over the limit", with(func(f *file) { f.data, f.display = box{0, 0, 999, 999}, good.data }), input.ErrTooLarge, "1000 x 1000"},
		{"over any limit", with(func(f *file) { f.data = box{math.MinInt32, 0, math.MaxInt32, 0} }), input.ErrTooLarge, ""},
		{"attribute of another type", with(func(f *file) { f.more = attribute("compression", "string", []byte{0}) }), input.ErrDamaged,
			`type "string"`},
		{"endless name", with(func(f *file) { f.more = bytes.Repeat([]byte("x"), 300) }), input.ErrDamaged, "255 bytes"},
		{"no windows", slices.Concat(le([]byte(magic), 2), attribute("compression", "compression", []byte{0}), []byte{0}), input.ErrDamaged,
			"no attribute channels"},
		{"wrong line", with(func(f *file) { f.data = box{0, 0, 0, 1}; f.blocks = [][]byte{halves(one), {}} }), input.ErrDamaged,
			"0 bytes instead of 2"},
		{"lines cut off", with(func(f *file) { f.data = box{0, 0, 0, 9} }), input.ErrTruncated, ""},
		{"a run too long", packed(rle, func(b []byte) { b[len(b)-2] = 127 }), input.ErrDamaged, "run of 128 bytes"},
		{"runs cut off", packed(rle, func(b []byte) { b[len(b)-2] = 2 }), input.ErrDamaged, "end too early"},
		{"a packet too long", packed(rle, func(b []byte) { b[len(b)-2] = 0x80 }), input.ErrDamaged, "packet of 128 bytes"},
		{"a wrong checksum", packed(zip, func(b []byte) { b[len(b)-1]++ }), input.ErrDamaged, "checksum"},
		{"not deflated", packed(zips, func(b []byte) { copy(b[len(b)-12:], "hello, world") }), input.ErrDamaged, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, _, err := Decode(tt.data, 1000); !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %v, want %v with %q", err, tt.want, tt.text)
			}
		})
	}
	if _, _, err := Decode(good.bytes(), 1000); err != nil {
		t.Error(err)
	}
}

// A very large number of channels in a small image must not allocate memory, although the file could contain them.
func TestChannelsWithoutEnd(t *testing.T) {
	f := file{compression: zip, data: box{0, 0, 499, 15}, display: box{0, 0, 1, 1}, blocks: [][]byte{make([]byte, 500*16*4*maxChannels)}}
	for range maxChannels {
		f.channels = append(f.channels, channel{"R", kindFloat, false})
	}
	if _, _, err := Decode(f.bytes(), 1<<20); !errors.Is(err, input.ErrTooLarge) ||
		!strings.Contains(err.Error(), "blocks of 32768000 bytes") {
		t.Error(err)
	}
}

// TestFlat checks blocks of one colour, which have the highest compression; PXR24 exceeds that of Deflate alone.
func TestFlat(t *testing.T) {
	for _, c := range []compression{zip, pxr24} {
		const width, lines = 4096, 16
		f := file{compression: c, channels: []channel{{"R", kindFloat, false}}, data: box{0, 0, width - 1, lines - 1}, display: box{0, 0, width - 1, lines - 1},
			blocks: [][]byte{make([]byte, width*lines*4)}}
		_, pix, err := Decode(f.bytes(), 1<<24)
		if err != nil || len(pix) != 4*width*lines || pix[0] != 0 || pix[3] != 1 {
			t.Errorf("%v: %v", c, err)
		}
	}
}

// A block that expands to more than its lines must not allocate memory.
func TestBomb(t *testing.T) {
	f := file{compression: zip, channels: red, data: box{0, 0, 63, 0}, blocks: [][]byte{make([]byte, 1<<24)}}
	data := f.bytes()
	claim := file{compression: zip, channels: []channel{{"R", kindFloat, false}}, data: box{0, 0, 1 << 19, 15}, display: box{0, 0, 1, 1},
		blocks: [][]byte{make([]byte, 1<<10)}}.bytes()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, _, err := Decode(data, 1000); !errors.Is(err, input.ErrDamaged) {
		t.Error(err)
	}
	if _, _, err := Decode(claim, 1<<24); !errors.Is(err, input.ErrDamaged) || !strings.Contains(err.Error(), "claim to hold") {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<18 {
		t.Errorf("%d bytes allocated", n)
	}
}

// Every proper prefix of a file is too short.
func TestPrefixes(t *testing.T) {
	data := file{channels: red, data: box{0, 0, 1, 1}, blocks: [][]byte{halves(one, two), halves(two, one)}}.bytes()
	for n := range data {
		if _, _, err := Decode(data[:n], 4); !errors.Is(err, input.ErrTruncated) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, c := range []compression{none, rle, zips, zip, piz, pxr24, b44, b44a} {
		f.Add(file{compression: c, data: box{0, 0, 31, 0},
			channels: []channel{{"A", kindHalf, false}, {"G", kindUint, false}, {"R", kindFloat, false}}, display: box{1, 0, 9, 3}, blocks: [][]byte{make([]byte, 320)}}.bytes())
	}
	for _, name := range []string{"piz", "piz16", "pxr24", "b44", "b44a"} {
		data, err := os.ReadFile(filepath.Join("testdata", name+".exr"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 1 << 15
		h, pix, err := Decode(data, limit)
		if err != nil {
			if !errors.Is(err, input.ErrTruncated) && !errors.Is(err, input.ErrDamaged) &&
				!errors.Is(err, input.ErrUnsupported) && !errors.Is(err, input.ErrTooLarge) {
				t.Fatalf("error of no kind: %v", err)
			}
			return
		}
		if len(pix) != 4*h.Width*h.Height || len(pix) > 4*limit {
			t.Fatal(fmt.Sprint(len(pix), " numbers for ", h.Width, " x ", h.Height))
		}
	})
}
