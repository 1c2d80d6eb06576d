package dds

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kiln-pipeline/kiln/internal/media/codec/dds/ddscheck"
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

// counting fills the levels of a texture with bytes that count up.
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
	return counting(&Texture{Format: f, Width: w, Height: h, Alpha: AlphaStraight}, levels)
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
	if err := ddscheck.Check(b); err != nil {
		t.Fatalf("%v %s, %d layers, cube %v: %v", in.Format, in.size(), in.Layers, in.Cube, err)
	}
	out, err := Decode(b)
	if err != nil {
		t.Fatalf("%v %s: %v", in.Format, in.size(), err)
	}
	want := *in
	if want.Layers == 1 {
		want.Layers = 0 // the file does not distinguish 0 from 1
	}
	if !reflect.DeepEqual(&want, out) {
		t.Fatalf("%v %s: %s", in.Format, in.size(), cmp.Diff(&want, out))
	}
}

func TestEncodeEverySize(t *testing.T) {
	if n := len(every()); n != 24 {
		t.Errorf("%d formats", n)
	}
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
			{Width: 3, Height: 5, Depth: 9},
		} {
			for alpha := range AlphaCustom + 1 {
				x := x
				x.Format, x.Alpha = f, alpha
				levels := full(x.Width, x.Height, x.Depth)
				if x.Width == 5 && !x.Cube {
					levels = 1
				}
				roundTrip(t, counting(&x, levels))
			}
		}
	}
}

// A file stores all levels of one image together; a texture stores all images of one level together.
func TestOrder(t *testing.T) {
	x := &Texture{Format: R8, Width: 2, Height: 2, Layers: 2, Levels: [][]byte{{1, 2, 3, 4, 5, 6, 7, 8}, {9, 10}}}
	b, err := Encode(x)
	if err != nil {
		t.Fatal(err)
	}
	if want := []byte{1, 2, 3, 4, 9, 5, 6, 7, 8, 10}; !bytes.Equal(b[148:], want) {
		t.Errorf("%v, want %v", b[148:], want)
	}
}

func TestFormats(t *testing.T) {
	for _, tt := range []struct {
		f    Format
		name string
		srgb bool
	}{{2, "RGBA32F", false}, {29, "RGBA8 sRGB", true}, {61, "R8", false}, {67, "RGB9E5", false}, {72, "BC1 sRGB", true}, {81, "BC4 signed", false},
		{95, "BC6H", false}, {99, "BC7 sRGB", true}, {100, "DXGI format 100", false}, {134, "DXGI format 134", false}} {
		if tt.f.String() != tt.name || tt.f.SRGB() != tt.srgb {
			t.Errorf("%d is %v, want %s", uint32(tt.f), tt.f, tt.name)
		}
	}
	for _, f := range every() {
		if strings.HasPrefix(f.String(), "DXGI") {
			t.Errorf("%v has no name", f)
		}
	}
}

func TestGolden(t *testing.T) {
	for name, x := range map[string]*Texture{
		"rgba8srgb-2x2": plain(RGBA8SRGB, 2, 2, 2),
		"bc7-5x3":       plain(BC7SRGB, 5, 3, 3),
		"rgba16f-cube":  counting(&Texture{Format: RGBA16F, Width: 1, Height: 1, Cube: true, Alpha: AlphaOpaque}, 1),
		"bc4-array":     counting(&Texture{Format: BC4, Width: 4, Height: 2, Layers: 2}, 2),
		"rgb9e5-2x1x3":  counting(&Texture{Format: RGB9E5, Width: 2, Height: 1, Depth: 3}, 2),
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

// annotated lists the bytes of a file with the names of its fields.
func annotated(b []byte) string {
	var out strings.Builder
	at := 0
	line := func(n int, what string) {
		fmt.Fprintf(&out, "%04x  %-47s  %s\n", at, spaced(b[at:at+n]), what)
		at += n
	}
	field := func(names ...string) {
		for _, name := range names {
			v := binary.LittleEndian.Uint32(b[at:])
			line(4, fmt.Sprintf("%s %d (%#x)", name, v, v))
		}
	}
	line(4, "dwMagic \"DDS \"")
	field("dwSize", "dwFlags", "dwHeight", "dwWidth", "dwPitchOrLinearSize", "dwDepth", "dwMipMapCount")
	for range 11 {
		field("dwReserved1")
	}
	field("ddspf.dwSize", "ddspf.dwFlags")
	line(4, "ddspf.dwFourCC \"DX10\"")
	field("ddspf.dwRGBBitCount", "ddspf.dwRBitMask", "ddspf.dwGBitMask", "ddspf.dwBBitMask", "ddspf.dwABitMask",
		"dwCaps", "dwCaps2", "dwCaps3", "dwCaps4", "dwReserved2", "dxgiFormat", "resourceDimension", "miscFlag", "arraySize", "miscFlags2")
	for at < len(b) {
		line(min(16, len(b)-at), "data")
	}
	return out.String()
}

func spaced(b []byte) string {
	return fmt.Sprintf("% x", b)
}

func TestEncodeRefuses(t *testing.T) {
	for name, change := range map[string]func(*Texture){
		"format":           func(x *Texture) { x.Format = 1 },
		"a format to read": func(x *Texture) { x.Format = 87 },
		"no width":         func(x *Texture) { x.Width = 0 },
		"no levels":        func(x *Texture) { x.Levels = nil },
		"a short level":    func(x *Texture) { x.Levels[1] = x.Levels[1][1:] },
		"many levels":      func(x *Texture) { x.Levels = append(x.Levels, x.Levels[2], x.Levels[2]) },
		"alpha mode":       func(x *Texture) { x.Alpha = 5 },
		"cube of one":      func(x *Texture) { x.Cube = true },
		"layers of one":    func(x *Texture) { x.Layers = 2 },
		"array of volumes": func(x *Texture) {
			*x = Texture{Format: R8, Width: 1, Height: 1, Depth: 1, Layers: 2, Levels: [][]byte{{1, 2}}}
		},
		"oblong cube": func(x *Texture) { *x = *counting(&Texture{Format: R8, Width: 2, Height: 1, Cube: true}, 1) },
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
	both := func(a, b func([]byte) []byte) func([]byte) []byte { return func(x []byte) []byte { return b(a(x)) } }
	tests := []struct {
		name   string
		change func([]byte) []byte
		want   error
		text   string
	}{
		{"nothing", cut(0), ErrDamaged, ""},
		{"signature", put(0, 0), ErrDamaged, ""},
		{"half a header", cut(127), ErrTruncated, ""},
		{"half a DX10 header", cut(147), ErrTruncated, ""},
		{"half the levels", cut(len(good) - 1), ErrTruncated, ""},
		{"header size", put(4, 100), ErrDamaged, ""},
		{"pixel format size", put(76, 0), ErrDamaged, ""},
		{"YUY2", put(84, 0x32595559), ErrUnsupported, `"YUY2"`},
		{"ASTC by another program", put(128, 134), ErrUnsupported, "DXGI format 134"},
		{"no format", put(128, 0), ErrUnsupported, "DXGI format 0"},
		{"1D", put(132, 2), ErrUnsupported, ""},
		{"dimension", put(132, 5), ErrDamaged, ""},
		{"oblong cube", put(136, 4), ErrDamaged, ""},
		{"array", put(140, 2), ErrTruncated, ""},
		{"array of 2^32", put(140, 1<<32-1), ErrUnsupported, ""},
		{"array of 2^20 of 2^20", both(put(140, 1<<20), put(16, 1<<20)), ErrTruncated, ""},
		{"array of volumes", both(put(132, 4), put(140, 2)), ErrDamaged, ""},
		{"alpha mode", put(144, 7), ErrUnsupported, ""},
		{"width of 2^32", put(16, 1<<32-1), ErrUnsupported, ""},
		{"depth of 2^32", both(put(132, 4), put(24, 1<<32-1)), ErrUnsupported, ""},
		{"height of nothing", put(12, 0), ErrUnsupported, ""},
		{"larger", put(16, 1<<19), ErrTruncated, ""},
		{"levels below 1 x 1", put(28, 4), ErrDamaged, ""},
		{"2^32 levels", put(28, 1<<32-1), ErrUnsupported, ""},
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

func FuzzDecode(f *testing.F) {
	for _, x := range []*Texture{plain(R8, 3, 3, 2), plain(RGBA8SRGB, 2, 1, 1), plain(BC3, 5, 5, 3),
		counting(&Texture{Format: BC1, Width: 4, Height: 4, Cube: true, Layers: 2}, 3), counting(&Texture{Format: RGB9E5, Width: 2, Height: 1, Depth: 5}, 2)} {
		b, err := Encode(x)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for _, o := range oldFiles() {
		f.Add(o.data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		x, err := Decode(data)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > uint64(1<<20+16*len(data)) {
			t.Fatalf("%d bytes allocated for %d", n, len(data))
		}
		ddscheck.Check(data) // must not panic
		if err != nil {
			return
		}
		b, err := Encode(x)
		if err != nil {
			t.Fatal(err)
		}
		if err := ddscheck.Check(b); err != nil {
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
