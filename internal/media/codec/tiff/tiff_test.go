package tiff

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

// file returns a TIFF with tags, and with blocks after the directory.
func file(order binary.AppendByteOrder, tags map[int][]int, blocks ...[]byte) []byte {
	out := []byte("II*\x00")
	if order.String() == "BigEndian" {
		out = []byte("MM\x00*")
	}
	tags = mapsClone(tags)
	at, sizes := tagStrips, tagStripSizes
	if tags[tagTileWidth] != nil {
		at, sizes = tagTiles, tagTileSizes
	}
	for _, b := range blocks {
		tags[at], tags[sizes] = append(tags[at], 0), append(tags[sizes], len(b))
	}
	var keys []int
	for k := range tags {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	end := 8 + 2 + 12*len(keys) + 4 // of the directory; longer numbers follow
	long := 0
	for _, k := range keys {
		if n := 4 * len(tags[k]); n > 4 {
			long += n
		}
	}
	for i, n := 0, end+long; i < len(blocks); i++ {
		tags[at][i] = n
		n += len(blocks[i])
	}
	var extra []byte
	out = order.AppendUint32(out, 8)
	out = order.AppendUint16(out, uint16(len(keys)))
	for _, k := range keys {
		v := tags[k]
		out = order.AppendUint16(order.AppendUint16(out, uint16(k)), 4)
		out = order.AppendUint32(out, uint32(len(v)))
		if len(v) == 1 {
			out = order.AppendUint32(out, uint32(v[0]))
			continue
		}
		out = order.AppendUint32(out, uint32(end+len(extra)))
		for _, n := range v {
			extra = order.AppendUint32(extra, uint32(n))
		}
	}
	out = append(append(out, 0, 0, 0, 0), extra...)
	return append(out, bytes.Join(blocks, nil)...)
}

func mapsClone(m map[int][]int) map[int][]int {
	out := map[int][]int{}
	for k, v := range m {
		out[k] = slices.Clone(v)
	}
	return out
}

// tags returns the tags of an image; more has pairs of a tag and a number.
func tags(w, h, bits, photometric, channels int, more ...int) map[int][]int {
	t := map[int][]int{tagWidth: {w}, tagHeight: {h}, tagBits: {bits}, tagPhotometric: {photometric}, tagChannels: {channels}}
	for i := 0; i < len(more); i += 2 {
		t[more[i]] = []int{more[i+1]}
	}
	return t
}

func deflated(b []byte) []byte {
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}

func widen(v ...byte) (out []uint16) {
	for _, n := range v {
		out = append(out, uint16(n)*0x101)
	}
	return out
}

type decodeTest struct {
	name string
	data []byte
	want []uint16
}

// more has what writers leave out and libtiff completes, and numbers that are no bytes.
func more() []decodeTest {
	le, be := binary.LittleEndian, binary.BigEndian
	without := func(drop int, t map[int][]int, blocks ...[]byte) []byte {
		data := file(le, t, blocks...)
		for at := 10; ; at += 12 {
			if int(le.Uint16(data[at:])) == drop {
				le.PutUint16(data[at:], 65000) // a tag of nobody
				return data
			}
		}
	}
	palette := func(scale int) map[int][]int {
		t := tags(4, 1, 2, indexed, 1)
		t[tagPalette] = []int{0, 1 * scale, 2 * scale, 255 * scale, 9 * scale, 8 * scale, 7 * scale, 6 * scale, 0, 0, 0, 200 * scale}
		return t
	}
	mapped := widen(0, 9, 0, 255, 1, 8, 0, 255, 2, 7, 0, 255, 255, 6, 200, 255)
	two := [][]byte{{1, 2}, {3}}
	ones := greys(1, 2, 3)
	return []decodeTest{
		{"1 bit", file(le, tags(3, 2, 1, blackIsZero, 1), []byte{0xa0, 0x40}), greys(255, 0, 255, 0, 255, 0)},
		{"1 bit, white is 0, the lowest bit first", file(le, tags(3, 1, 1, whiteIsZero, 1, tagFillOrder, 2), []byte{0x01}), greys(0, 255, 255)},
		{"2 bits", file(le, tags(3, 1, 2, blackIsZero, 1), []byte{0x1b}), greys(0, 85, 170)},
		{"4 bits", file(le, tags(3, 1, 4, blackIsZero, 1), []byte{0x1f, 0x80}), greys(17, 255, 136)},
		{"12 bits", file(le, tags(2, 1, 12, blackIsZero, 1), []byte{0xff, 0xf8, 0x00}), []uint16{0xffff, 0xffff, 0xffff, 0xffff,
			0x8008, 0x8008, 0x8008, 0xffff}},
		{"24 bits", file(be, tags(1, 1, 24, blackIsZero, 1), []byte{0x80, 0, 0}), []uint16{0x8000, 0x8000, 0x8000, 0xffff}},
		{"a palette of 8 bits", file(le, palette(1), []byte{0x1b}), mapped},
		{"a palette of 8 bits times 256", file(le, palette(256), []byte{0x1b}), mapped},
		{"a palette of 16 bits", file(le, palette(257), []byte{0x1b}), mapped},
		{"CMYK", file(le, tags(2, 1, 8, cmyk, 4), []byte{255, 0, 0, 0, 0, 51, 102, 51}), append(widen(0, 255, 255, 255), 52428,
			41942, 31457, 0xffff)},
		{"CMYK with alpha", file(le, tags(1, 1, 8, cmyk, 5, tagExtra, 2), []byte{255, 0, 0, 0, 9}), widen(0, 255, 255, 9)},
		{"a fourth channel that no tag describes", file(le, tags(1, 1, 8, rgb, 4), []byte{1, 2, 3, 4}), widen(1, 2, 3, 4)},
		{"a fourth channel that means nothing", file(le, tags(1, 1, 8, rgb, 4, tagExtra, 0), []byte{1, 2, 3, 4}), widen(1, 2, 3, 255)},
		{"alpha of another program", file(le, tags(1, 1, 8, rgb, 4, tagExtra, 999), []byte{1, 2, 3, 4}), widen(1, 2, 3, 4)},
		{"a second channel of grey that no tag describes", file(le, tags(1, 1, 8, blackIsZero, 2), []byte{1, 2}), widen(1, 1, 1, 255)},
		{"untyped numbers", file(le, tags(1, 1, 8, rgb, 3, tagFormat, 4), []byte{1, 2, 3}), widen(1, 2, 3, 255)},
		{"no compression", file(le, tags(1, 1, 8, rgb, 3, tagCompression, 0), []byte{1, 2, 3}), widen(1, 2, 3, 255)},
		{"no kind of colours", without(tagPhotometric, tags(1, 1, 8, 7, 3), []byte{1, 2, 3}), widen(1, 2, 3, 255)},
		{"no sizes of strips", without(tagStripSizes, tags(1, 3, 8, blackIsZero, 1, tagStripRows, 2), two...), ones},
		{"no size of a packed strip", without(tagStripSizes, tags(2, 1, 8, blackIsZero, 1, tagCompression, deflate),
			deflated([]byte{1, 2})), greys(1, 2)},
		{"no rows of strips", without(tagStripRows, tags(1, 3, 8, blackIsZero, 1, tagStripRows, 1), []byte{1, 2, 3}), ones},
		{"0 rows of strips", file(le, tags(1, 3, 8, blackIsZero, 1, tagStripRows, 0), []byte{1, 2, 3}), ones},
		{"LZW of before 1992", file(le, tags(9, 1, 8, blackIsZero, 1, tagCompression, lzw), lowest(9, 256, 7, 258, 8, 8, 258, 6, 6,
			257)), greys(7, 7, 7, 8, 8, 7, 7, 6, 6)},
	}
}

// lowest returns codes whose first bit is the lowest.
func lowest(size int, v ...uint32) (out []byte) {
	acc, n := uint32(0), 0
	for _, c := range v {
		for acc, n = acc|c<<n, n+size; n >= 8; acc, n = acc>>8, n-8 {
			out = append(out, byte(acc))
		}
	}
	return append(out, byte(acc))
}

func TestDecode(t *testing.T) {
	le, be := binary.LittleEndian, binary.BigEndian
	tests := []decodeTest{
		{"planes", file(le, tags(2, 1, 8, rgb, 3, tagPlanes, 2), []byte{1, 2}, []byte{3, 4}, []byte{5, 6}), widen(1, 3, 5, 255, 2, 4, 6, 255)},
		{"planes in strips", file(le, tags(1, 2, 8, rgb, 3, tagPlanes, 2, tagStripRows, 1), []byte{1}, []byte{2}, []byte{3}, []byte{4}, []byte{5}, []byte{6}),
			widen(1, 3, 5, 255, 2, 4, 6, 255)},
		{"a plane of alpha, and one more", file(be, tags(1, 1, 8, rgb, 5, tagPlanes, 2, tagExtra, 2), []byte{1}, []byte{2}, []byte{3}, []byte{4}, []byte{9}), widen(1, 2, 3, 4)},
		{"a plane that is no alpha", file(be, tags(1, 1, 8, rgb, 4, tagPlanes, 2, tagExtra, 0), []byte{1}, []byte{2}, []byte{3}, []byte{4}), widen(1, 2, 3, 255)},
		{"16 bits", file(le, tags(1, 1, 16, rgb, 3), []byte{1, 2, 3, 4, 5, 6}), []uint16{0x201, 0x403, 0x605, 0xffff}},
		{"16 bits, big end first", file(be, tags(1, 1, 16, rgb, 3), []byte{1, 2, 3, 4, 5, 6}), []uint16{0x102, 0x304, 0x506, 0xffff}},
		{"32 bits are rounded", file(be, tags(2, 1, 32, blackIsZero, 1), []byte{0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}),
			[]uint16{0x8000, 0x8000, 0x8000, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff}},
		{"white is 0", file(le, tags(1, 1, 8, whiteIsZero, 1), []byte{9}), widen(246, 246, 246, 255)},
		{"alpha is divided out", file(le, tags(1, 1, 8, rgb, 4, tagExtra, 1), []byte{51, 102, 0, 102}), widen(128, 255, 0, 102)},
		{"strips, the last one short", file(le, tags(1, 3, 8, blackIsZero, 1, tagStripRows, 2), []byte{1, 2}, []byte{3}),
			widen(1, 1, 1, 255, 2, 2, 2, 255, 3, 3, 3, 255)},
		{"tiles", file(le, tags(3, 1, 8, blackIsZero, 1, tagTileWidth, 2, tagTileHeight, 2), []byte{1, 2, 0, 0}, []byte{3, 0, 0, 0}),
			widen(1, 1, 1, 255, 2, 2, 2, 255, 3, 3, 3, 255)},
		{"PackBits", file(le, tags(5, 1, 8, blackIsZero, 1, tagCompression, packBits), []byte{0x80, 0xfe, 7, 1, 8, 9}),
			widen(7, 7, 7, 255, 7, 7, 7, 255, 7, 7, 7, 255, 8, 8, 8, 255, 9, 9, 9, 255)},
		{"Deflate with differences", file(be, tags(2, 2, 16, blackIsZero, 1, tagCompression, deflate, tagPredictor, 2), deflated([]byte{1, 0, 0, 0xff, 2, 0, 0xff, 0xff})),
			[]uint16{0x100, 0x100, 0x100, 0xffff, 0x1ff, 0x1ff, 0x1ff, 0xffff, 0x200, 0x200, 0x200, 0xffff, 0x1ff, 0x1ff, 0x1ff, 0xffff}},
		{"differences of two channels", file(le, tags(2, 1, 8, blackIsZero, 2, tagPredictor, 2, tagExtra, 2, tagCompression,
			deflate), deflated([]byte{9, 3, 1, 2})),
			widen(9, 9, 9, 3, 10, 10, 10, 5)},
		{"differences, but not packed", file(le, tags(2, 1, 8, blackIsZero, 1, tagPredictor, 2), []byte{9, 3}), widen(9, 9, 9, 255,
			3, 3, 3, 255)},
		// TIFF 6.0, page 60: 7 7 7 8 8 7 7 6 6 as the codes 256 7 258 8 8 258 6 6 257 of 9 bits.
		{"LZW", file(le, tags(9, 1, 8, blackIsZero, 1, tagCompression, lzw), codes(256, 7, 258, 8, 8, 258, 6, 6, 257)), greys(7, 7, 7, 8, 8, 7, 7, 6, 6)},
	}
	for _, tt := range append(tests, more()...) {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Decode(tt.data, 100)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(m.Pix, tt.want) || m.Light != nil || m.Float {
				t.Errorf("%d x %d: got %v, want %v", m.Width, m.Height, m.Pix, tt.want)
			}
		})
	}
}

func greys(v ...byte) (out []uint16) {
	for _, n := range v {
		out = append(out, widen(n, n, n, 255)...)
	}
	return out
}

// codes returns codes of 9 bits each.
func codes(v ...uint32) (out []byte) {
	acc, n := uint32(0), 0
	for _, c := range v {
		acc, n = acc<<9|c, n+9
		for n >= 8 {
			out, n = append(out, byte(acc>>(n-8))), n-8
		}
	}
	return append(out, byte(acc<<(8-n)))
}

func TestFloats(t *testing.T) {
	half, single := []byte{0x00, 0x3c, 0x00, 0xc0}, binary.BigEndian.AppendUint32(nil, math.Float32bits(1e9))
	const float = 3
	// 1 and 1.5 in big-endian order, 3f800000 3fc00000, have the bytes by rank 3f 3f, 80 c0, 00 00, 00 00; these are their
	// differences.
	planes := []byte{0x3f, 0, 0x41, 0x40, 0x40, 0, 0, 0}
	for _, tt := range []struct {
		name string
		data []byte
		want []float32
	}{
		{"16 bits", file(binary.LittleEndian, tags(2, 1, 16, blackIsZero, 1, tagFormat, float), half), []float32{1, 1, 1, 1, -2, -2, -2, 1}},
		{"32 bits", file(binary.BigEndian, tags(1, 1, 32, blackIsZero, 1, tagFormat, float), single), []float32{1e9, 1e9, 1e9, 1}},
		{"bytes by rank", file(binary.LittleEndian, tags(2, 1, 32, blackIsZero, 1, tagFormat, float, tagPredictor, 3,
			tagCompression, deflate), deflated(planes)), []float32{1, 1, 1, 1, 1.5, 1.5, 1.5, 1}},
		{"bytes by rank, big end first", file(binary.BigEndian, tags(2, 1, 32, blackIsZero, 1, tagFormat, float, tagPredictor, 3,
			tagCompression, deflate), deflated(planes)), []float32{1, 1, 1, 1, 1.5, 1.5, 1.5, 1}},
		{"alpha is divided out", file(binary.LittleEndian, tags(1, 1, 16, blackIsZero, 2, tagFormat, float, tagExtra, 1), []byte{0x00, 0x40, 0x00, 0x34}), []float32{8, 8, 8, 0.25}},
	} {
		m, err := Decode(tt.data, 10)
		if err != nil || !slices.Equal(m.Light, tt.want) || m.Pix != nil || !m.Float {
			t.Errorf("%s: %+v, %v; want %v", tt.name, m, err, tt.want)
		}
	}
}

// packLZW is the encoder of TIFF 6.0, page 58.
func packLZW(src []byte) (out []byte) {
	var acc uint64
	var n, width int
	table := map[string]int{}
	put := func(code int) {
		acc, n = acc<<width|uint64(code), n+width
		for n >= 8 {
			out, n = append(out, byte(acc>>(n-8))), n-8
		}
	}
	text := func(code int) string { return string([]byte{byte(code)}) }
	reset := func() {
		table, width = map[string]int{}, 9
		for i := range 256 {
			table[text(i)] = i
		}
	}
	width = 9
	put(256)
	reset()
	next, omega := 258, ""
	for _, b := range src {
		if _, ok := table[omega+string([]byte{b})]; ok {
			omega += string([]byte{b})
			continue
		}
		put(table[omega])
		table[omega+string([]byte{b})] = next
		if next++; next == 1<<width && width < 12 {
			width++
		}
		omega = string([]byte{b})
		if next == 4095 {
			put(256)
			reset()
			next = 258
		}
	}
	put(table[omega])
	if next++; next == 1<<width && width < 12 {
		width++
	}
	put(257)
	return append(out, byte(acc<<(8-n)))
}

// Long texts fill the whole table and restart it.
func TestLZW(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, letters := range []int{1, 2, 5, 256} {
		for _, size := range []int{1, 2, 3, 300, 5000, 100000} {
			src := make([]byte, size)
			for i := range src {
				src[i] = byte(r.IntN(letters))
			}
			got := make([]byte, size)
			if err := unpack(got, packLZW(src), lzw); err != nil || !bytes.Equal(got, src) {
				t.Errorf("%d of %d letters: %v", size, letters, err)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	le := binary.LittleEndian
	grey := func(more ...int) []byte { return file(le, tags(4, 1, 8, blackIsZero, 1, more...), []byte{1, 2, 3, 4}) }
	packed := func(compression int, b ...byte) []byte {
		return file(le, tags(4, 1, 8, blackIsZero, 1, tagCompression, compression), b)
	}
	tests := []struct {
		name string
		data []byte
		want error
		text string
	}{
		{"nothing", nil, input.ErrTruncated, ""},
		{"something else", []byte("hello, world"), input.ErrDamaged, "signature"},
		{"no size", file(le, tags(0, 1, 8, rgb, 3)), input.ErrDamaged, "0 x 1"},
		{"over any limit", file(le, tags(1<<30, 1, 8, rgb, 3)), input.ErrTooLarge, ""},
		{"a tile far larger than its picture", file(le, tags(8, 8, 8, blackIsZero, 1, tagTileWidth, 1<<16, tagTileHeight, 1<<16, tagCompression, deflate), make([]byte, 5<<20)),
			input.ErrTooLarge, "blocks of 65536 x 65536 in a picture of 8 x 8"},
		{"over the limit", file(le, tags(200, 1, 8, blackIsZero, 1), make([]byte, 200)), input.ErrTooLarge, "200 x 1"},
		{"Lab", grey(tagPhotometric, 8), input.ErrUnsupported, "colours for print (Lab); save it as RGB"},
		{"other inks", file(le, tags(1, 1, 8, cmyk, 4, tagInks, 2), []byte{1, 2, 3, 4}), input.ErrUnsupported,
			"inks other than CMYK; save it as RGB"},
		{"YCbCr", file(le, tags(1, 1, 8, 6, 3), []byte{1, 2, 3}), input.ErrUnsupported, "YCbCr; save it as RGB"},
		{"other colours", grey(tagPhotometric, 77), input.ErrUnsupported, "colours of kind 77"},
		{"JPEG", grey(tagCompression, 7), input.ErrUnsupported, "JPEG inside; save it as JPEG"},
		{"fax of 8 bits", grey(tagCompression, 4), input.ErrDamaged, "a fax of 1 channels of 8 bits"},
		{"no palette", grey(tagPhotometric, indexed), input.ErrDamaged, "a palette of 0 numbers"},
		{"Zstandard", grey(tagCompression, 50000), input.ErrUnsupported, "packed as Zstandard; save it with LZW or ZIP"},
		{"another packing", grey(tagCompression, 77), input.ErrUnsupported, "compression 77"},
		{"floating point of 24 bits", file(le, tags(1, 1, 24, blackIsZero, 1, tagFormat, 3), make([]byte, 8)),
			input.ErrUnsupported, "floating point of 24 bits; save it with 32"},
		{"17 bits", grey(tagBits, 17), input.ErrUnsupported, "17 bits"},
		{"floating point of 8 bits", grey(tagFormat, 3), input.ErrUnsupported, "8 bits"},
		{"numbers below 0", grey(tagFormat, 2), input.ErrUnsupported, "numbers below 0; save it as floating point"},
		{"predictor of floating point for whole numbers", grey(tagPredictor, 3, tagCompression, lzw), input.ErrUnsupported, "predictor 3"},
		{"predictor of 4 bits", grey(tagPredictor, 2, tagCompression, lzw, tagBits, 4), input.ErrUnsupported, "predictor 2 for 4 bits"},
		{"too few channels", grey(tagPhotometric, rgb), input.ErrDamaged, "1 channels"},
		{"too many channels", grey(tagChannels, 1000), input.ErrDamaged, "1000 channels"},
		{"no tiles", grey(tagTileWidth, 16, tagTileHeight, 0), input.ErrDamaged, "blocks of 16 x 0"},
		{"too few strips", grey(tagHeight, 9, tagStripRows, 1), input.ErrDamaged, "1 blocks instead of 9"},
		{"a strip cut off", file(le, tags(5, 1, 8, blackIsZero, 1), []byte{1, 2, 3, 4}), input.ErrTruncated, ""},
		{"PackBits that end", packed(packBits, 0xfe, 7), input.ErrDamaged, "end too early"},
		{"PackBits cut off", packed(packBits, 3, 7, 7), input.ErrDamaged, "packet of 4"},
		{"not deflated", packed(deflate, 1, 2, 3, 4), input.ErrDamaged, ""},
		{"LZW that ends", packed(lzw, codes(256, 7, 257)...), input.ErrDamaged, "ends too early"},
		{"LZW cut off", packed(lzw, codes(256)...), input.ErrDamaged, "ends too early"},
		{"LZW of a code to come", packed(lzw, codes(256, 7, 260)...), input.ErrDamaged, "code 260 of 259"},
		{"LZW without a start", packed(lzw, codes(256, 258)...), input.ErrDamaged, "code 258 of 258"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Decode(tt.data, 100); !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %v, want %v with %q", err, tt.want, tt.text)
			}
		})
	}
}

// A few bytes that claim a huge image must not allocate memory.
func TestHugeClaim(t *testing.T) {
	for _, c := range []int{plain, lzw, deflate, packBits} {
		data := file(binary.LittleEndian, tags(30000, 30000, 32, rgb, 3, tagCompression, c), make([]byte, 1000))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := Decode(data, math.MaxInt); err == nil {
			t.Errorf("compression %d: no error", c)
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<16 {
			t.Errorf("compression %d: %d bytes allocated", c, n)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(file(binary.LittleEndian, tags(2, 1, 8, rgb, 3, tagPlanes, 2), []byte{1, 2}, []byte{3, 4}, []byte{5, 6}))
	f.Add(file(binary.BigEndian, tags(2, 1, 32, blackIsZero, 1, tagFormat, 3, tagPredictor, 3), make([]byte, 8)))
	f.Add(file(binary.BigEndian, tags(9, 1, 8, blackIsZero, 1, tagCompression, lzw), codes(256, 7, 258, 8, 8, 258, 6, 6, 257)))
	f.Add(file(binary.LittleEndian, tags(3, 1, 16, rgb, 5, tagTileWidth, 2, tagTileHeight, 2, tagExtra, 1, tagCompression, deflate, tagPredictor, 2), deflated(make([]byte, 40)), deflated(make([]byte, 40))))
	f.Add(file(binary.LittleEndian, tags(5, 1, 8, whiteIsZero, 1, tagCompression, packBits), []byte{0x80, 0xfe, 7, 1, 8, 9}))
	f.Add(file(binary.LittleEndian, tags(8, 3, 1, whiteIsZero, 1, tagCompression, group4),
		bitsOf(horizontal+w3+b2+v0+vl1+v0+v0+pass+v0+eol+eol)))
	f.Add(file(binary.LittleEndian, tags(8, 3, 1, whiteIsZero, 1, tagCompression, group3, tagFaxOptions, 1),
		bitsOf(eol+"1"+w3+b2+w3+eol+"0"+vr1+v0+v0+eol+"1"+w8)))
	f.Add(file(binary.LittleEndian, tags(8, 2, 1, blackIsZero, 1, tagCompression, fax2, tagFillOrder, 2), bitsOf(w3+b2+w3+"|"+w0+b4+w4+"|")))
	for _, t := range more() {
		f.Add(t.data)
	}
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
		if n := len(m.Pix) + len(m.Light); n != 4*m.Width*m.Height || n > 4*limit {
			t.Fatalf("%d numbers for %d x %d", n, m.Width, m.Height)
		}
	})
}
