package dds

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the goldens")

// sample is a texture whose bytes count up, with all its levels.
func sample(f Format, w, h, levels int) *Texture {
	t := &Texture{Format: f, Width: w, Height: h, Alpha: AlphaStraight}
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

// conforms checks a file against Microsoft's text; numbers are written out here, so that a
// wrong constant in the package is not wrong here, too.
func conforms(t *testing.T, b []byte, x *Texture) {
	t.Helper()
	size := map[Format]int{28: 4, 29: 4, 49: 2, 61: 1}[x.Format]
	flags, caps, body := 0x100f, 0x1000, 0
	if len(x.Levels) > 1 {
		flags, caps = 0x2100f, 0x401008
	}
	for l := range x.Levels {
		body += max(1, x.Width>>l) * max(1, x.Height>>l) * size
	}
	fields := make([]int, 37) // all zero but for these
	for i, v := range map[int]int{0: 0x20534444, 1: 124, 2: flags, 3: x.Height, 4: x.Width, 5: x.Width * size, 7: len(x.Levels),
		19: 32, 20: 4, 21: 0x30315844, 27: caps, 32: int(x.Format), 33: 3, 35: 1, 36: int(x.Alpha)} {
		fields[i] = v
	}
	for i, want := range fields {
		if got := int(binary.LittleEndian.Uint32(b[4*i:])); got != want {
			t.Errorf("field at %d is %#x, want %#x", 4*i, got, want)
		}
	}
	if len(b) != 148+body || !bytes.Equal(b[148:], bytes.Join(x.Levels, nil)) {
		t.Errorf("%d bytes, want %d", len(b), 148+body)
	}
}

func TestEncode(t *testing.T) {
	for _, f := range []Format{R8, RG8, RGBA8, RGBA8SRGB} {
		for _, s := range [][3]int{{1, 1, 1}, {5, 3, 3}, {5, 3, 1}, {8, 8, 4}, {1, 9, 4}} {
			for _, alpha := range []AlphaMode{AlphaUnknown, AlphaStraight, AlphaPremultiplied, AlphaOpaque, AlphaCustom} {
				in := sample(f, s[0], s[1], s[2])
				in.Alpha = alpha
				b, err := Encode(in)
				if err != nil {
					t.Fatal(err)
				}
				conforms(t, b, in)
				out, err := Decode(b)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(in, out); d != "" {
					t.Errorf("format %d %v: %s", f, s, d)
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
		"alpha mode":    func(x *Texture) { x.Alpha = 5 },
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
	tests := []struct {
		name   string
		change func([]byte) []byte
		want   error
	}{
		{"nothing", cut(0), ErrDamaged},
		{"signature", put(0, 0), ErrDamaged},
		{"half a header", cut(147), ErrTruncated},
		{"half the levels", cut(len(good) - 1), ErrTruncated},
		{"header size", put(4, 100), ErrDamaged},
		{"pixel format size", put(76, 0), ErrDamaged},
		{"DXT1", put(84, 0x31545844), ErrUnsupported},
		{"no FourCC", put(80, 0x41), ErrUnsupported},
		{"BC7", put(128, 98), ErrUnsupported},
		{"3D", put(132, 4), ErrUnsupported},
		{"cube", put(136, 4), ErrUnsupported},
		{"array", put(140, 2), ErrUnsupported},
		{"alpha mode", put(144, 7), ErrUnsupported},
		{"width of 2^32", put(16, 1<<32-1), ErrUnsupported},
		{"height of nothing", put(12, 0), ErrUnsupported},
		{"larger", put(16, 1<<19), ErrTruncated},
		{"levels below 1 x 1", put(28, 4), ErrDamaged},
		{"2^32 levels", put(28, 1<<32-1), ErrUnsupported},
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
		x, err := Decode(data)
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
