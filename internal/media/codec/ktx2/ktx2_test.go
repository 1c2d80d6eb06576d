package ktx2

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/kiln-pipeline/kiln/internal/media/codec/ktx2/ktx2check"
)

var update = flag.Bool("update", false, "write the goldens")

// every returns all formats of the package, ordered by number.
func every() []Format {
	var all []Format
	for f := range Format(200) {
		if _, _, n := f.Block(); n > 0 {
			all = append(all, f)
		}
	}
	return all
}

// counting fills the levels of a texture with bytes that count up, and a little noise in the upper half.
func counting(t *Texture, levels int) *Texture {
	n := 0
	for l := range levels {
		b := make([]byte, t.levelSize(l))
		for i := range b {
			b[i] = byte(n) ^ byte(n>>8*37)
			n++
		}
		t.Levels = append(t.Levels, b)
	}
	return t
}

func plain(f Format, w, h, levels int) *Texture {
	return counting(&Texture{Format: f, Width: w, Height: h, Writer: "Kiln"}, levels)
}

// full returns the number of levels of a complete mip chain.
func full(sides ...int) int {
	n := 1
	for m := max(sides[0], sides[1], sides[2]); m > 1; m /= 2 {
		n++
	}
	return n
}

// roundTrip encodes a texture, checks the file, and decodes it.
func roundTrip(t *testing.T, in *Texture) {
	t.Helper()
	b, err := Encode(in)
	if err != nil {
		t.Fatalf("%v %s: %v", in.Format, in.size(), err)
	}
	if err := ktx2check.Check(b); err != nil {
		t.Fatalf("%v %s, %d layers, cube %v: %v", in.Format, in.size(), in.Layers, in.Cube, err)
	}
	out, err := Decode(b)
	if err != nil {
		t.Fatalf("%v %s: %v", in.Format, in.size(), err)
	}
	if !reflect.DeepEqual(in, out) {
		t.Fatalf("%v %s: %s", in.Format, in.size(), cmp.Diff(in, out))
	}
}

// The numbers of the specification, counted by hand.
func TestFormats(t *testing.T) {
	if n := len(every()); n != 16+26+28 {
		t.Errorf("%d formats", n)
	}
	for _, tt := range []struct {
		f    Format
		name string
		want [3]int
		srgb bool
	}{
		{9, "R8", [3]int{1, 1, 1}, false},
		{23, "RGB8", [3]int{1, 1, 3}, false},
		{43, "RGBA8 sRGB", [3]int{1, 1, 4}, true},
		{70, "R16", [3]int{1, 1, 2}, false},
		{77, "RG16", [3]int{1, 1, 4}, false},
		{91, "RGBA16", [3]int{1, 1, 8}, false},
		{97, "RGBA16F", [3]int{1, 1, 8}, false},
		{123, "RGB9E5", [3]int{1, 1, 4}, false},
		{131, "BC1", [3]int{4, 4, 8}, false},
		{146, "BC7 sRGB", [3]int{4, 4, 16}, true},
		{147, "ETC2 RGB", [3]int{4, 4, 8}, false},
		{156, "EAC RG11 signed", [3]int{4, 4, 16}, false},
		{157, "ASTC 4x4", [3]int{4, 4, 16}, false},
		{174, "ASTC 10x5 sRGB", [3]int{10, 5, 16}, true},
		{184, "ASTC 12x12 sRGB", [3]int{12, 12, 16}, true},
		{185, "vkFormat 185", [3]int{}, false},
		{1, "vkFormat 1", [3]int{}, false},
	} {
		w, h, n := tt.f.Block()
		if got := [3]int{w, h, n}; got != tt.want || tt.f.String() != tt.name || tt.f.SRGB() != tt.srgb {
			t.Errorf("%d is %v with blocks %v, want %s with %v", uint32(tt.f), tt.f, got, tt.name, tt.want)
		}
	}
	for _, tt := range []struct {
		w, h int
		srgb bool
		want Format
	}{{4, 4, false, 157}, {6, 6, true, 166}, {8, 8, false, 171}, {12, 12, true, 184}, {7, 7, false, 0}, {5, 6, true, 0}} {
		if got := ASTC(tt.w, tt.h, tt.srgb); got != tt.want {
			t.Errorf("ASTC(%d, %d, %v) is %d, want %d", tt.w, tt.h, tt.srgb, got, tt.want)
		}
	}
}

func TestEncodeEverySize(t *testing.T) {
	for _, f := range every() {
		for w := 1; w <= 17; w++ {
			for h := 1; h <= 17; h++ {
				roundTrip(t, plain(f, w, h, full(w, h, 0)))
			}
		}
	}
}

func TestEncodeEveryShape(t *testing.T) {
	for _, f := range every() {
		for _, x := range []Texture{
			{Width: 5, Height: 3}, // one level
			{Width: 8, Height: 8, Cube: true},
			{Width: 5, Height: 5, Cube: true, Layers: 2},
			{Width: 9, Height: 4, Layers: 1},
			{Width: 9, Height: 4, Layers: 3},
			{Width: 3, Height: 5, Depth: 1},
			{Width: 3, Height: 5, Depth: 9, BottomUp: true},
			{Width: 2, Height: 2, Depth: 3, Layers: 2},
			{Width: 7, Height: 7, BottomUp: true, Premultiplied: true, Swizzle: "rrr1"},
		} {
			for _, zstd := range []bool{false, true} {
				if zstd && f != R8 && f != RGB9E5 && f != BC7SRGB && f != ASTC(10, 6, false) {
					continue // creating an encoder takes 4 ms
				}
				x := x
				x.Format, x.Zstd = f, zstd
				levels := full(x.Width, x.Height, x.Depth)
				if x.Width == 5 && !x.Cube {
					levels = 1
				}
				roundTrip(t, counting(&x, levels))
			}
		}
	}
}

// The images of a level are in the order of the specification: layers, faces, slices.
func TestImage(t *testing.T) {
	x := counting(&Texture{Format: R8, Width: 2, Height: 2, Cube: true, Layers: 3}, 2)
	if got, want := x.Image(0, 2, 4, 0), x.Levels[0][4*(2*6+4):][:4]; !bytes.Equal(got, want) || cap(got) != 4 {
		t.Errorf("image of a cube: %v, want %v", got, want)
	}
	v := counting(&Texture{Format: BC1, Width: 8, Height: 4, Depth: 4, Layers: 2}, 3)
	if got, want := v.Image(1, 1, 0, 1), v.Levels[1][(1*2+1)*8:][:8]; !bytes.Equal(got, want) {
		t.Errorf("image of a volume: %v, want %v", got, want)
	}
}

// Supercompressed levels have the same bytes every time, and are smaller if possible.
func TestZstd(t *testing.T) {
	x := plain(RGBA8, 64, 64, 1)
	for i := range x.Levels[0] {
		x.Levels[0][i] = byte(i / 256)
	}
	x.Zstd = true
	a, err := Encode(x)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := Encode(x)
	if !bytes.Equal(a, b) {
		t.Error("two files of one texture differ")
	}
	if len(a) > len(x.Levels[0])/8 {
		t.Errorf("%d bytes of %d", len(a), len(x.Levels[0]))
	}
}

// Programs that follow revision 3 of the specification write bytesPlane0 as 0 in supercompressed files.
func TestDecodeUnsizedDescriptor(t *testing.T) {
	x := plain(BC7, 8, 8, 4)
	for _, zstd := range []bool{true, false} {
		x.Zstd = zstd
		b, err := Encode(x)
		if err != nil {
			t.Fatal(err)
		}
		b[80+24*4+20] = 0
		if _, err := Decode(b); (err == nil) != zstd {
			t.Errorf("supercompressed %v: %v", zstd, err)
		}
	}
}

// Files of other programs may have no mip levels or key/values, and an unspecified transfer function.
func TestDecodeForeign(t *testing.T) {
	b, err := Encode(&Texture{Format: RGBA8, Width: 2, Height: 1, Levels: [][]byte{{1, 2, 3, 4, 5, 6, 7, 8}}})
	if err != nil {
		t.Fatal(err)
	}
	binary.LittleEndian.PutUint32(b[40:], 0) // levelCount 0: the game generates the other levels
	b[80+24+14] = 0                          // transfer function: unspecified
	b[80+24+13] = 10                         // primaries: Display P3
	binary.LittleEndian.PutUint64(b[56:], 0) // no key/values
	got, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(&Texture{Format: RGBA8, Width: 2, Height: 1, Levels: [][]byte{{1, 2, 3, 4, 5, 6, 7, 8}}}, got); d != "" {
		t.Error(d)
	}
}

// A writer's name that is not UTF-8 is converted to UTF-8, so that the texture can be written again.
func TestDecodeWriter(t *testing.T) {
	b, err := Encode(plain(R8, 1, 1, 1))
	if err != nil {
		t.Fatal(err)
	}
	b[bytes.Index(b, []byte("Kiln"))] = 0xa9
	if x, err := Decode(b); err != nil || x.Writer != "\ufffdiln" {
		t.Errorf("%+v, %v", x, err)
	}
}

// A channel that the format does not have is replaced by the value that sampling returns.
func TestDecodeSwizzle(t *testing.T) {
	for _, tt := range []struct {
		f          Format
		swizzle    string
		want, good string
	}{{R8, "rgba", "r001", "rrr1"}, {BC5, "gbra", "g0r1", "rg01"}, {ETC2RGB, "abgr", "1bgr", "rgb1"}, {ETC2RGBA, "abgr", "abgr", "rgb1"}, {RGB9E5, "aaaa", "1111", "bgr0"}} {
		b, err := Encode(counting(&Texture{Format: tt.f, Width: 4, Height: 4, Swizzle: tt.good}, 1))
		if err != nil {
			t.Fatal(err)
		}
		if err := ktx2check.Check(b); err != nil {
			t.Fatal(err)
		}
		copy(b[bytes.Index(b, []byte(tt.good)):], tt.swizzle)
		x, err := Decode(b)
		if err != nil || x.Swizzle != tt.want {
			t.Errorf("%v: %q is %q, want %q, %v", tt.f, tt.swizzle, x.Swizzle, tt.want, err)
		}
	}
}

func TestDecodeConfig(t *testing.T) {
	b, err := Encode(counting(&Texture{Format: BC6H, Width: 16, Height: 16, Cube: true, Zstd: true}, 5))
	if err != nil {
		t.Fatal(err)
	}
	x, levels, err := DecodeConfig(b)
	if err != nil || levels != 5 || x.Levels != nil || !x.Cube || x.Format != BC6H || x.Width != 16 {
		t.Errorf("%+v, %d levels, %v", x, levels, err)
	}
}

func TestGolden(t *testing.T) {
	for name, x := range map[string]*Texture{
		"rgba8srgb-2x2":     plain(RGBA8SRGB, 2, 2, 2),
		"rgb8-3x1":          plain(RGB8, 3, 1, 2),
		"bc5-5x5-zstd":      counting(&Texture{Format: BC5, Width: 5, Height: 5, Zstd: true, Swizzle: "rg01", Writer: "Kiln"}, 3),
		"rgb9e5-cube":       counting(&Texture{Format: RGB9E5, Width: 1, Height: 1, Cube: true, Writer: "Kiln"}, 1),
		"astc6x6-array-3d":  counting(&Texture{Format: ASTC(6, 6, true), Width: 7, Height: 6, Depth: 2, Layers: 2, Writer: "Kiln"}, 2),
		"etc2rgba-srgb-4x4": plain(ETC2RGBASRGB, 4, 4, 3),
	} {
		b, err := Encode(x)
		if err != nil {
			t.Fatal(err)
		}
		file := "testdata/" + name + ".txt"
		if *update {
			if err := os.WriteFile(file, []byte(annotated(b)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), annotated(b)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// annotated lists the bytes of a file with the names of its fields. It follows the file's own offsets.
func annotated(b []byte) string {
	var out strings.Builder
	at := 0
	line := func(n int, text string, args ...any) {
		fmt.Fprintf(&out, "%04x  %-47s  %s\n", at, fmt.Sprintf("% x", b[at:at+n]), fmt.Sprintf(text, args...))
		at += n
	}
	u32 := func(name string) { line(4, "%s %d", name, binary.LittleEndian.Uint32(b[at:])) }
	u64 := func(name string) { line(8, "%s %d", name, binary.LittleEndian.Uint64(b[at:])) }
	line(12, "identifier")
	for _, name := range strings.Fields("vkFormat typeSize pixelWidth pixelHeight pixelDepth layerCount faceCount levelCount " +
		"supercompressionScheme dfdByteOffset dfdByteLength kvdByteOffset kvdByteLength") {
		u32(name)
	}
	u64("sgdByteOffset")
	u64("sgdByteLength")
	levels := int(binary.LittleEndian.Uint32(b[40:]))
	for n := range levels {
		u64(fmt.Sprintf("levels[%d].byteOffset", n))
		u64("  byteLength")
		u64("  uncompressedByteLength")
	}
	end := at + int(binary.LittleEndian.Uint32(b[52:]))
	u32("dfdTotalSize")
	line(4, "vendorId, descriptorType")
	line(4, "versionNumber %d, descriptorBlockSize %d", b[at], binary.LittleEndian.Uint16(b[at+2:]))
	line(4, "colorModel %d, colorPrimaries %d, transferFunction %d, flags %d", b[at], b[at+1], b[at+2], b[at+3])
	line(4, "texelBlockDimension %d x %d", b[at]+1, b[at+1]+1)
	line(8, "bytesPlane0 %d", b[at])
	for at < end {
		line(4, "bitOffset %d, bitLength %d, channel %d, qualifiers %#x", binary.LittleEndian.Uint16(b[at:]), b[at+2]+1, b[at+3]&15, b[at+3]&0xf0)
		line(4, "  samplePosition")
		line(8, "  sampleLower %#x, sampleUpper %#x", binary.LittleEndian.Uint32(b[at:]), binary.LittleEndian.Uint32(b[at+4:]))
	}
	end += int(binary.LittleEndian.Uint32(b[60:]))
	for at < end {
		n := int(binary.LittleEndian.Uint32(b[at:]))
		u32("keyAndValueByteLength")
		line(n, "  %q", b[at:at+n])
		if pad := -n & 3; pad > 0 {
			line(pad, "  valuePadding")
		}
	}
	for n := levels - 1; n >= 0; n-- {
		offset, size := int(binary.LittleEndian.Uint64(b[80+24*n:])), int(binary.LittleEndian.Uint64(b[88+24*n:]))
		if offset > at {
			line(offset-at, "mipPadding")
		}
		for end := at + size; at < end; {
			line(min(16, end-at), "level %d", n)
		}
	}
	return out.String()
}

func TestEncodeRefuses(t *testing.T) {
	for name, change := range map[string]func(*Texture){
		"format":                      func(x *Texture) { x.Format = 1 },
		"no width":                    func(x *Texture) { x.Width = 0 },
		"no levels":                   func(x *Texture) { x.Levels = nil },
		"a short level":               func(x *Texture) { x.Levels[1] = x.Levels[1][1:] },
		"many levels":                 func(x *Texture) { x.Levels = append(x.Levels, x.Levels[2], x.Levels[2]) },
		"writer":                      func(x *Texture) { x.Writer = "a\x00b" },
		"writer in Latin 1":           func(x *Texture) { x.Writer = "\xa9" },
		"swizzle":                     func(x *Texture) { x.Swizzle = "rgbx" },
		"short swizzle":               func(x *Texture) { x.Swizzle = "rgb" },
		"a channel that is not there": func(x *Texture) { *x = *counting(&Texture{Format: BC5, Width: 4, Height: 4, Swizzle: "rgb1"}, 1) },
		"negative depth":              func(x *Texture) { x.Depth = -1 },
		"negative layers":             func(x *Texture) { x.Layers = -1 },
		"cube of one":                 func(x *Texture) { x.Cube = true },
		"layers of one":               func(x *Texture) { x.Layers = 2 },
		"a cube upside down": func(x *Texture) {
			*x = *counting(&Texture{Format: R8, Width: 1, Height: 1, Cube: true, BottomUp: true}, 1)
		},
		"a cube that is none": func(x *Texture) { *x = *counting(&Texture{Format: R8, Width: 2, Height: 1, Cube: true}, 1) },
	} {
		x := plain(RGBA8, 4, 4, 3)
		change(x)
		if _, err := Encode(x); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// put returns a function that writes a number at an offset of a file.
func put(at int, v uint32) func([]byte) []byte {
	return func(b []byte) []byte { binary.LittleEndian.PutUint32(b[at:], v); return b }
}

func TestDecodeRefuses(t *testing.T) {
	good, err := Encode(plain(RGBA8SRGB, 5, 3, 3))
	if err != nil {
		t.Fatal(err)
	}
	cut := func(n int) func([]byte) []byte { return func(b []byte) []byte { return b[:n] } }
	const dfd = 80 + 24*3
	kvd := dfd + 4 + 24 + 16*4
	tests := []struct {
		name   string
		change func([]byte) []byte
		want   error
		text   string
	}{
		{"nothing", cut(0), ErrDamaged, ""},
		{"identifier", put(0, 0), ErrDamaged, ""},
		{"half a header", cut(50), ErrTruncated, ""},
		{"half a level index", cut(100), ErrTruncated, ""},
		{"half the levels", cut(len(good) - 1), ErrTruncated, ""},
		{"unknown format", put(12, 1000066000), ErrUnsupported, "vkFormat 1000066000"},
		{"no format", put(12, 0), ErrUnsupported, "vkFormat 0"},
		{"another format", put(12, 131), ErrDamaged, ""},
		{"typeSize", put(16, 2), ErrDamaged, ""},
		{"width of 2^31", put(20, 1<<31), ErrUnsupported, ""},
		{"width of nothing", put(20, 0), ErrUnsupported, ""},
		{"one dimension", put(24, 0), ErrUnsupported, ""},
		{"another width", put(20, 6), ErrDamaged, ""},
		{"depth", put(28, 2), ErrDamaged, ""},
		{"depth of 2^31", put(28, 1<<31), ErrUnsupported, ""},
		{"layers", put(32, 2), ErrDamaged, ""},
		{"layers of 2^31", put(32, 1<<31), ErrUnsupported, ""},
		{"an oblong cube", put(36, 6), ErrDamaged, ""},
		{"two faces", put(36, 2), ErrDamaged, ""},
		{"2^32 levels", put(40, 1<<32-1), ErrUnsupported, ""},
		{"levels below 1 x 1", put(40, 32), ErrDamaged, ""},
		{"BasisLZ", put(44, 1), ErrUnsupported, "BasisLZ"},
		{"ZLIB", put(44, 3), ErrUnsupported, "ZLIB"},
		{"scheme", put(44, 0x10000), ErrUnsupported, "65536"},
		{"Zstandard", put(44, 2), ErrDamaged, ""},
		{"descriptor outside", put(48, 1<<30), ErrTruncated, ""},
		{"descriptor of nothing", put(52, 0), ErrTruncated, ""},
		{"descriptor of another size", put(dfd, 44), ErrDamaged, ""},
		{"descriptor of a vendor", put(dfd+4, 7), ErrDamaged, ""},
		{"descriptor of another model", put(dfd+12, 0), ErrDamaged, "colour model 0"},
		{"linear colours", put(dfd+12, 1|1<<8|1<<16), ErrUnsupported, "transfer function 1"},
		{"descriptor of larger blocks", put(dfd+16, 3), ErrDamaged, ""},
		{"descriptor of other bytes", put(dfd+20, 3), ErrDamaged, ""},
		{"key/values outside", put(60, 1<<31), ErrTruncated, ""},
		{"key/values cut off", put(60, 3), ErrTruncated, ""},
		{"key/values of 2^32", put(kvd, 1<<32-1), ErrTruncated, ""},
		{"empty key", put(kvd+4, 0), ErrDamaged, ""},
		{"orientation", put(kvd+4+15, 'l'|'u'<<8), ErrUnsupported, ""},
		{"level outside", put(84, 1), ErrTruncated, ""},
		{"level of 2^63", put(92, 1<<31), ErrTruncated, ""},
		{"level that inflates to more", put(96, 61), ErrDamaged, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Decode(tt.change(bytes.Clone(good)))
			if !errors.Is(err, tt.want) || !strings.Contains(fmt.Sprint(err), tt.text) {
				t.Errorf("got %v, want %v %s", err, tt.want, tt.text)
			}
		})
	}
}

// compressed returns a file with one level of R8 and the given compressed bytes.
func compressed(t *testing.T, w, h int, level []byte) []byte {
	t.Helper()
	b, err := Encode(&Texture{Format: R8, Width: 1, Height: 1, Zstd: true, Levels: [][]byte{{7}}})
	if err != nil {
		t.Fatal(err)
	}
	at := binary.LittleEndian.Uint64(b[80:])
	b = append(b[:at:at], level...)
	put(20, uint32(w))(b)
	put(24, uint32(h))(b)
	binary.LittleEndian.PutUint64(b[88:], uint64(len(level)))
	binary.LittleEndian.PutUint64(b[96:], uint64(w*h))
	return b
}

func TestDecodeBombs(t *testing.T) {
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	zeros := func(n int) []byte { return enc.EncodeAll(make([]byte, n), nil) }
	// A frame without a content size, with blocks of one repeated byte, by RFC 8878: magic, descriptor 0, window 128 KiB,
	// and for each block 3 bytes (last, type 1, size) and the byte.
	repeated := func(blocks int) []byte {
		b := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 7 << 3}
		for i := range blocks {
			head := 128<<10<<3 | 1<<1
			if i == blocks-1 {
				head |= 1
			}
			b = append(b, byte(head), byte(head>>8), byte(head>>16), 0)
		}
		return b
	}
	for _, tt := range []struct {
		name string
		data []byte
		max  int
		want error
	}{
		{"as large as it says", compressed(t, 1024, 512, repeated(4)), MaxInflated, nil},
		{"right at the limit", compressed(t, 1024, 1024, zeros(1<<20)), 1 << 20, nil},
		{"over the limit", compressed(t, 1024, 1024, zeros(1<<20)), 1<<20 - 1, ErrTooLarge},
		{"over the limit of all", compressed(t, 1<<20, 1<<20, zeros(1<<20)), MaxInflated, ErrTooLarge},
		{"more than Zstandard can hold", compressed(t, 1<<15, 1<<15, repeated(4)), MaxInflated, ErrTruncated},
		{"a frame that says more", compressed(t, 1024, 512, zeros(1<<20)), MaxInflated, ErrDamaged},
		{"a frame that says less", compressed(t, 1024, 1024, zeros(1<<19)), MaxInflated, ErrDamaged},
		{"a frame that is more", compressed(t, 1024, 512, repeated(400)), MaxInflated, ErrDamaged},
		{"two frames", compressed(t, 1024, 1024, append(zeros(1<<19), zeros(1<<19)...)), MaxInflated, nil},
		{"no frame", compressed(t, 1, 1, nil), MaxInflated, ErrDamaged},
		{"half a frame", compressed(t, 1024, 512, zeros(1 << 19)[:20]), MaxInflated, ErrDamaged},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := DecodeLimit(tt.data, tt.max)
			runtime.ReadMemStats(&after)
			if !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 24<<20 {
				t.Errorf("%d bytes allocated", n)
			}
		})
	}
}

// levelSize returns math.MaxInt for a size that does not fit an int.
func TestLevelSizeSaturates(t *testing.T) {
	x := &Texture{Format: RGBA32F, Width: maxSide, Height: maxSide, Depth: maxSide, Layers: maxLayers, Cube: true}
	if n := x.levelSize(0); n != math.MaxInt {
		t.Errorf("%d", n)
	}
}

func FuzzDecode(f *testing.F) {
	for _, x := range []*Texture{plain(R8, 3, 3, 2), plain(RGBA8SRGB, 2, 1, 1), plain(BC7, 5, 5, 3), plain(ASTC(12, 10, false), 13, 3, 1),
		counting(&Texture{Format: RGB9E5, Width: 2, Height: 2, Cube: true, Layers: 2, Swizzle: "rgb1"}, 2),
		counting(&Texture{Format: BC4, Width: 8, Height: 4, Depth: 3, Zstd: true}, 3)} {
		b, err := Encode(x)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		ReadShell(data, 1<<14, 1<<30)
		const limit = 1 << 20
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		x, err := DecodeLimit(data, limit)
		runtime.ReadMemStats(&after)
		// The decompressor allocates 8 MiB for itself.
		if n := after.TotalAlloc - before.TotalAlloc; n > uint64(2*limit+8<<20+16*len(data)) {
			t.Fatalf("%d bytes allocated for %d", n, len(data))
		}
		ktx2check.Check(data) // must not panic
		if err != nil {
			return
		}
		b, err := Encode(x)
		if err != nil {
			t.Fatal(err)
		}
		if err := ktx2check.Check(b); err != nil {
			t.Fatal(err)
		}
		again, err := Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(x, again); d != "" {
			t.Fatal(d)
		}
	})
}

func BenchmarkZstd(b *testing.B) {
	x := plain(BC7, 1024, 1024, 1)
	x.Zstd = true
	b.SetBytes(int64(len(x.Levels[0])))
	for b.Loop() {
		if _, err := Encode(x); err != nil {
			b.Fatal(err)
		}
	}
}
