package hdr

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

const plain = "#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n"

// file returns a file with a header, a resolution and pixels.
func file(header, size string, pixels ...byte) []byte {
	return append([]byte(header+size+"\n"), pixels...)
}

func repeat(n int, b ...byte) []byte { return slices.Repeat(b, n) }

func TestDecode(t *testing.T) {
	one := []byte{128, 64, 32, 129} // 2^(129-136) is 1/128
	packed := slices.Concat([]byte{2, 2, 0, 8}, []byte{128 + 8, 128}, []byte{3, 1, 2, 3, 128 + 5, 64}, []byte{128 + 8, 0}, []byte{128 + 8, 129})
	var unpacked []float32
	for _, g := range []float32{1, 2, 3, 64, 64, 64, 64, 64} {
		unpacked = append(unpacked, 1, g/128, 0, 1)
	}
	long := slices.Concat(one, []byte{1, 1, 1, 43, 1, 1, 1, 1}) // 1 + 43 + 256 pixels
	tests := []struct {
		name string
		data []byte
		want []float32
	}{
		{"flat", file(plain, "-Y 1 +X 2", 128, 64, 32, 129, 128, 0, 255, 137), []float32{1, 0.5, 0.25, 1, 256, 0, 510, 1}},
		{"exponent 0 is black", file(plain, "-Y 1 +X 1", 9, 9, 9, 0), []float32{0, 0, 0, 1}},
		{"smallest and largest", file(plain, "-Y 1 +X 2", 128, 1, 0, 1, 255, 128, 0, 255), []float32{0x1p-128, 0x1p-135, 0, 1, 255 * 0x1p119, 0x1p126, 0, 1}},
		{"runs of release 2.0", file(plain, "-Y 1 +X 8", packed...), unpacked},
		{"runs of release 1.4", file(plain, "-Y 1 +X 300", long...), slices.Repeat([]float32{1, 0.5, 0.25, 1}, 300)},
		{"a run after a run", file(plain, "-Y 1 +X 4", 128, 0, 0, 129, 1, 1, 1, 1, 0, 128, 0, 129, 1, 1, 1, 1),
			[]float32{1, 0, 0, 1, 1, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1}},
		{"both packings, line by line", file(plain, "-Y 2 +X 8", slices.Concat(packed, one, []byte{1, 1, 1, 7})...),
			slices.Concat(unpacked, slices.Repeat([]float32{1, 0.5, 0.25, 1}, 8))},
		{"exposures are divided out", file("#?RGBE\nEXPOSURE=2\nFORMAT=32-bit_rle_rgbe\nEXPOSURE= 4.0\nCOLORCORR=1 2 0.5\n\n", "-Y 1 +X 1", one...),
			[]float32{0.125, 0.03125, 0.0625, 1}},
		{"lines end as on Windows", file("#?RADIANCE\r\n# by hand\r\nFORMAT=32-bit_rle_rgbe\r\n\r\n", "-Y 1 +X 1\r", one...), []float32{1, 0.5, 0.25, 1}},
		{"no format", file("#?RGBE\n\n", "-Y 1 +X 1", one...), []float32{1, 0.5, 0.25, 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, got, err := Decode(tt.data, 1000)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, tt.want) || len(got) != 4*h.Width*h.Height {
				t.Errorf("%d x %d: got %v, want %v", h.Width, h.Height, got, tt.want)
			}
		})
	}
}

// The file has the pixels 1 2 3, 4 5 6 in stored order.
func TestOrientations(t *testing.T) {
	var pixels []byte
	for v := byte(1); v <= 6; v++ {
		pixels = append(pixels, v, 0, 0, 136)
	}
	for size, want := range map[string][]float32{
		"-Y 2 +X 3": {1, 2, 3, 4, 5, 6},
		"-Y 2 -X 3": {3, 2, 1, 6, 5, 4},
		"+Y 2 +X 3": {4, 5, 6, 1, 2, 3},
		"+Y 2 -X 3": {6, 5, 4, 3, 2, 1},
		"+X 2 -Y 3": {1, 4, 2, 5, 3, 6},
		"-X 2 -Y 3": {4, 1, 5, 2, 6, 3},
		"+X 2 +Y 3": {3, 6, 2, 5, 1, 4},
		"-X 2 +Y 3": {6, 3, 5, 2, 4, 1},
	} {
		h, pix, err := Decode(file(plain, size, pixels...), 6)
		if err != nil {
			t.Fatal(err)
		}
		var red []float32
		for i := 0; i < len(pix); i += 4 {
			red = append(red, pix[i])
		}
		if wide := strings.HasSuffix(size, "3") && size[1] == 'Y'; !slices.Equal(red, want) || wide != (h.Width == 3) || h.Width*h.Height != 6 {
			t.Errorf("%s: %d x %d, %v, want %v", size, h.Width, h.Height, red, want)
		}
	}
}

func TestRefused(t *testing.T) {
	one := []byte{128, 64, 32, 129}
	tests := []struct {
		name string
		data []byte
		want error
		text string
	}{
		{"nothing", nil, input.ErrTruncated, ""},
		{"half a header", []byte("#?RADIANCE\nFORM"), input.ErrTruncated, ""},
		{"something else", []byte("hello\n"), input.ErrDamaged, "no header"},
		{"endless header", []byte("#?RADIANCE\n" + strings.Repeat("x\n", maxHeader)), input.ErrDamaged, "no header"},
		{"no resolution", []byte(plain), input.ErrTruncated, ""},
		{"XYZ", file("#?RADIANCE\nFORMAT=32-bit_rle_xyze\n\n", "-Y 1 +X 1", one...), input.ErrUnsupported, "32-bit_rle_xyze"},
		{"exposure of nothing", file("#?RADIANCE\nEXPOSURE=0\n\n", "-Y 1 +X 1", one...), input.ErrDamaged, "exposure"},
		{"exposure in words", file("#?RADIANCE\nEXPOSURE=auto\n\n", "-Y 1 +X 1", one...), input.ErrDamaged, "auto"},
		{"exposure below nothing", file("#?RADIANCE\nEXPOSURE=-1\n\n", "-Y 1 +X 1", one...), input.ErrDamaged, "exposure"},
		{"two colour corrections", file("#?RADIANCE\nCOLORCORR=1 2\n\n", "-Y 1 +X 1", one...), input.ErrDamaged, "colour correction"},
		{"one axis twice", file(plain, "-Y 1 +Y 1", one...), input.ErrDamaged, "resolution"},
		{"no size", file(plain, "-Y 0 +X 1", one...), input.ErrDamaged, "resolution"},
		{"words for a size", file(plain, "-Y a +X 1", one...), input.ErrDamaged, "resolution"},
		{"over the limit", file(plain, "-Y 1000 +X 1000", one...), input.ErrTooLarge, "1000 x 1000"},
		{"over any limit", file(plain, "-Y 1 +X 4000000000", one...), input.ErrTooLarge, ""},
		{"pixels cut off", file(plain, "-Y 1 +X 2", one...), input.ErrTruncated, ""},
		{"lines cut off", file(plain, "-Y 2 +X 1", one...), input.ErrTruncated, ""},
		{"a run of nothing", file(plain, "-Y 1 +X 2", 1, 1, 1, 1), input.ErrDamaged, "run"},
		{"a run too long", file(plain, "-Y 1 +X 2", 128, 64, 32, 129, 1, 1, 1, 2), input.ErrDamaged, "run"},
		{"too many runs", file(plain, "-Y 1 +X 2", slices.Concat(one, repeat(4, 1, 1, 1, 0))...), input.ErrDamaged, "run"},
		{"another length", file(plain, "-Y 1 +X 9", 2, 2, 0, 8, 0), input.ErrDamaged, "8 pixels instead of 9"},
		{"a packet too long", file(plain, "-Y 1 +X 8", 2, 2, 0, 8, 9, 1, 1, 1, 1, 1, 1, 1, 1, 1), input.ErrDamaged, "packet"},
		{"an empty packet", file(plain, "-Y 1 +X 8", 2, 2, 0, 8, 0, 0), input.ErrDamaged, "packet"},
		{"a packed run too long", file(plain, "-Y 1 +X 8", 2, 2, 0, 8, 128+9, 0), input.ErrDamaged, "run"},
		{"a packet cut off", file(plain, "-Y 1 +X 8", 2, 2, 0, 8, 8, 1, 2), input.ErrTruncated, ""},
		{"packets cut off", file(plain, "-Y 1 +X 8", 2, 2, 0, 8, 128+8, 1), input.ErrTruncated, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, _, err := Decode(tt.data, 1000); !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %v, want %v with %q", err, tt.want, tt.text)
			}
		})
	}
}

// Every proper prefix of a file is too short.
func TestPrefixes(t *testing.T) {
	data := file(plain, "-Y 1 +X 8", 2, 2, 0, 8, 128+8, 1, 2, 1, 2, 128+6, 3, 128+8, 0, 128+8, 129)
	if _, _, err := Decode(data, 8); err != nil {
		t.Fatal(err)
	}
	for n := range data {
		if _, _, err := Decode(data[:n], 8); !errors.Is(err, input.ErrTruncated) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// A few bytes that claim a huge image must not allocate memory.
func TestHugeClaim(t *testing.T) {
	data := file(plain, "-Y 30000 +X 30000", 1, 2, 3, 4)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, _, err := Decode(data, math.MaxInt); !errors.Is(err, input.ErrTruncated) {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<17 {
		t.Errorf("%d bytes allocated", n)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(file(plain, "-Y 1 +X 2", 128, 64, 32, 129, 1, 1, 1, 1))
	f.Add(file("#?RGBE\nEXPOSURE=2\nCOLORCORR=1 2 3\n\n", "+X 1 -Y 8", 2, 2, 0, 8, 128+8, 1, 2, 1, 2, 128+6, 3, 128+8, 0, 128+8, 129))
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 1 << 16
		h, pix, err := Decode(data, limit)
		if err != nil {
			if !errors.Is(err, input.ErrTruncated) && !errors.Is(err, input.ErrDamaged) &&
				!errors.Is(err, input.ErrUnsupported) && !errors.Is(err, input.ErrTooLarge) {
				t.Fatalf("error of no kind: %v", err)
			}
			return
		}
		if len(pix) != 4*h.Width*h.Height || len(pix) > 4*limit {
			t.Fatalf("%d numbers for %d x %d", len(pix), h.Width, h.Height)
		}
		for i, v := range pix {
			if !(v >= 0) || i%4 == 3 && v != 1 {
				t.Fatal(fmt.Sprint(i, " is ", v))
			}
		}
	})
}
