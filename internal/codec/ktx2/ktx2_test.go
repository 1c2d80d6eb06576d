package ktx2

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the goldens")

// sample is a texture whose bytes count up, with all its levels.
func sample(f Format, w, h, levels int) *Texture {
	t := &Texture{Format: f, Width: w, Height: h, Writer: "Kiln"}
	n := 0
	for l := range levels {
		b := make([]byte, t.levelSize(l))
		for i := range b {
			b[i] = byte(n)
			n++
		}
		t.Levels = append(t.Levels, b)
	}
	return t
}

// conforms checks a file against the text of the KTX 2.0 and Khronos Data Format specifications; numbers
// are written out here, so that a wrong constant in the package is not wrong here, too.
func conforms(t *testing.T, b []byte) {
	t.Helper()
	u32 := func(i int) int { return int(binary.LittleEndian.Uint32(b[i:])) }
	u64 := func(i int) int { return int(binary.LittleEndian.Uint64(b[i:])) }
	is := func(what string, got, want int) {
		t.Helper()
		if got != want {
			t.Errorf("%s is %d, want %d", what, got, want)
		}
	}
	if id := hex.EncodeToString(b[:12]); id != "ab4b5458203230bb0d0a1a0a" {
		t.Errorf("identifier %s", id)
	}
	// vkFormat: bytes a pixel, transfer function
	facts, ok := map[int][2]int{9: {1, 1}, 16: {2, 1}, 37: {4, 1}, 43: {4, 2}}[u32(12)]
	if !ok {
		t.Fatalf("vkFormat %d", u32(12))
	}
	channels, levels, w, h := facts[0], u32(40), u32(20), u32(24)
	is("typeSize", u32(16), 1)
	is("pixelDepth", u32(28), 0)
	is("layerCount", u32(32), 0)
	is("faceCount", u32(36), 1)
	is("supercompressionScheme", u32(44), 0)
	is("sgdByteOffset", u64(64), 0)
	is("sgdByteLength", u64(72), 0)
	dfd := 80 + 24*levels
	is("dfdByteOffset", u32(48), dfd)
	is("dfdByteLength", u32(52), 4+24+16*channels)
	is("dfdTotalSize", u32(dfd), u32(52))
	is("vendor and descriptor type", u32(dfd+4), 0)
	is("versionNumber", u32(dfd+8)&0xffff, 2)
	is("descriptorBlockSize", u32(dfd+8)>>16, 24+16*channels)
	is("colorModel", int(b[dfd+12]), 1)
	is("colorPrimaries", int(b[dfd+13]), 1)
	is("transferFunction", int(b[dfd+14]), facts[1])
	if b[dfd+15] > 1 {
		t.Errorf("flags %d", b[dfd+15])
	}
	is("texelBlockDimension", u32(dfd+16), 0)
	is("bytesPlane0..3", u32(dfd+20), channels)
	is("bytesPlane4..7", u32(dfd+24), 0)
	for c := range channels {
		s := dfd + 28 + 16*c
		is("bitOffset", u32(s)&0xffff, 8*c)
		is("bitLength", u32(s)>>16&0xff, 7)
		want := []int{0, 1, 2, 15}[c]
		if c == 3 && facts[1] == 2 {
			want = 0x1f // alpha is linear though the colours are sRGB
		}
		is("channelType", u32(s)>>24, want)
		is("samplePosition", u32(s+4), 0)
		is("sampleLower", u32(s+8), 0)
		is("sampleUpper", u32(s+12), 255)
	}
	kvd, end := u32(56), u32(56)+u32(60)
	is("kvdByteOffset", kvd, dfd+u32(52))
	last := ""
	for at := kvd; at < end; {
		size := u32(at)
		key, value, _ := strings.Cut(string(b[at+4:at+4+size]), "\x00")
		if key <= last || !strings.HasSuffix(value, "\x00") {
			t.Errorf("key %q after %q, value %q", key, last, value)
		}
		last = key
		at += 4 + size
		for ; at%4 != 0; at++ {
			is("valuePadding", int(b[at]), 0)
		}
		if at > end {
			t.Errorf("key %q ends at %d, the data at %d", key, at, end)
		}
	}
	next := end
	for l := levels - 1; l >= 0; l-- {
		for ; next%4 != 0; next++ {
			is("mipPadding", int(b[next]), 0)
		}
		size := max(1, w>>l) * max(1, h>>l) * channels
		is(fmt.Sprintf("offset of level %d", l), u64(80+24*l), next)
		is("byteLength", u64(88+24*l), size)
		is("uncompressedByteLength", u64(96+24*l), size)
		next += size
	}
	is("file size", len(b), next)
}

func TestEncode(t *testing.T) {
	for _, f := range []Format{R8, RG8, RGBA8, RGBA8SRGB} {
		for _, s := range [][3]int{{1, 1, 1}, {5, 3, 3}, {5, 3, 1}, {8, 8, 4}, {1, 9, 4}, {17, 17, 2}} {
			for _, flags := range [][2]bool{{false, false}, {true, true}} {
				in := sample(f, s[0], s[1], s[2])
				in.Premultiplied, in.BottomUp = flags[0], flags[1]
				b, err := Encode(in)
				if err != nil {
					t.Fatal(err)
				}
				conforms(t, b)
				out, err := Decode(b)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(in, out); d != "" {
					t.Errorf("vkFormat %d %v: %s", f, s, d)
				}
			}
		}
	}
}

func TestGolden(t *testing.T) {
	b, err := Encode(sample(RGBA8SRGB, 2, 2, 2))
	if err != nil {
		t.Fatal(err)
	}
	const file = "testdata/rgba8srgb-2x2.hex"
	if *update {
		if err := os.WriteFile(file, []byte(hex.Dump(b)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), hex.Dump(b)); d != "" {
		t.Error(d)
	}
}

func TestEncodeRefuses(t *testing.T) {
	for name, change := range map[string]func(*Texture){
		"format":        func(x *Texture) { x.Format = 1 },
		"no width":      func(x *Texture) { x.Width = 0 },
		"no levels":     func(x *Texture) { x.Levels = nil },
		"a short level": func(x *Texture) { x.Levels[1] = x.Levels[1][1:] },
		"many levels":   func(x *Texture) { x.Levels = append(x.Levels, x.Levels[2], x.Levels[2]) },
		"writer":        func(x *Texture) { x.Writer = "a\x00b" },
	} {
		x := sample(RGBA8, 4, 4, 3)
		change(x)
		if _, err := Encode(x); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	good, err := Encode(sample(RGBA8SRGB, 5, 3, 3))
	if err != nil {
		t.Fatal(err)
	}
	put := func(at int, v uint32) func([]byte) []byte {
		return func(b []byte) []byte { binary.LittleEndian.PutUint32(b[at:], v); return b }
	}
	cut := func(n int) func([]byte) []byte { return func(b []byte) []byte { return b[:n] } }
	const dfd = 80 + 24*3
	kvd := dfd + 4 + 24 + 16*4
	tests := []struct {
		name   string
		change func([]byte) []byte
		want   error
	}{
		{"nothing", cut(0), ErrDamaged},
		{"identifier", put(0, 0), ErrDamaged},
		{"half a header", cut(50), ErrTruncated},
		{"half a level index", cut(100), ErrTruncated},
		{"half the levels", cut(len(good) - 1), ErrTruncated},
		{"vkFormat", put(12, 131), ErrUnsupported},
		{"typeSize", put(16, 2), ErrUnsupported},
		{"width of 2^31", put(20, 1<<31), ErrUnsupported},
		{"width of nothing", put(20, 0), ErrUnsupported},
		{"another width", put(20, 6), ErrDamaged},
		{"depth", put(28, 1), ErrUnsupported},
		{"layers", put(32, 1), ErrUnsupported},
		{"cube", put(36, 6), ErrUnsupported},
		{"no levels", put(40, 0), ErrUnsupported},
		{"2^32 levels", put(40, 1<<32-1), ErrUnsupported},
		{"levels below 1 x 1", put(40, 32), ErrTruncated},
		{"Zstandard", put(44, 2), ErrUnsupported},
		{"descriptor outside", put(48, 1<<30), ErrTruncated},
		{"descriptor of nothing", put(52, 0), ErrTruncated},
		{"descriptor of another format", put(dfd+12, 0), ErrUnsupported},
		{"key/values outside", put(60, 1<<31), ErrTruncated},
		{"key/values cut off", put(60, 3), ErrTruncated},
		{"key/values of 2^32", put(kvd, 1<<32-1), ErrTruncated},
		{"empty key", put(kvd+4, 0), ErrDamaged},
		{"orientation", put(kvd+4+15, 'l'|'u'<<8), ErrUnsupported},
		{"level outside", put(84, 1), ErrTruncated},
		{"level of 2^63", put(92, 1<<31), ErrTruncated},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Decode(tt.change(bytes.Clone(good))); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	for _, x := range []*Texture{sample(R8, 3, 3, 2), sample(RGBA8SRGB, 2, 1, 1)} {
		b, err := Encode(x)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		x, err := Decode(data)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > uint64(1<<20+16*len(data)) {
			t.Fatalf("%d bytes allocated for %d", n, len(data))
		}
		if err != nil {
			return
		}
		b, err := Encode(x)
		if err != nil {
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
