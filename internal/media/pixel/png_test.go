package pixel

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// pngFile builds a file from its parts (PNG, third edition, 11.2): depth, colour type, interlace, and rows, each with
// its filter byte first.
func pngFile(w, h uint32, depth, kind, interlace byte, extra func([]byte) []byte, rows ...byte) []byte {
	head := append(be32(w, h), depth, kind, 0, 0, interlace)
	part := func(kind string, body []byte) []byte {
		c := append([]byte(kind), body...)
		return append(append(be32(uint32(len(body))), c...), be32(crc32.ChecksumIEEE(c))...)
	}
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	_, _ = z.Write(rows)
	_ = z.Close()
	data := append([]byte("\x89PNG\r\n\x1a\n"), part("IHDR", head)...)
	data = append(append(data, part("IDAT", packed.Bytes())...), part("IEND", nil)...)
	if extra != nil {
		data = extra(data)
	}
	return data
}

// TestPNGKinds reads each depth with each colour type.
func TestPNGKinds(t *testing.T) {
	palette := func(alpha ...byte) func([]byte) []byte {
		return func(data []byte) []byte {
			if alpha != nil {
				data = chunk(data, "tRNS", alpha...)
			}
			return chunk(data, "PLTE", 1, 2, 3, 40, 50, 60, 70, 80, 90, 255, 0, 128)
		}
	}
	two := func(data []byte) []byte { return chunk(data, "PLTE", 1, 2, 3, 40, 50, 60) }
	clear := func(v ...byte) func([]byte) []byte {
		return func(data []byte) []byte { return chunk(data, "tRNS", v...) }
	}
	const grey, rgb, indexed, greyAlpha, rgba = 0, 2, 3, 4, 6
	tests := []struct {
		name string
		data []byte
		want []byte
		deep bool
	}{
		{"grey 1", pngFile(2, 1, 1, grey, 0, nil, 0, 0x40), []byte{0, 0, 0, 255, 255, 255, 255, 255}, false},
		{"grey 2", pngFile(2, 1, 2, grey, 0, nil, 0, 0x60), []byte{85, 85, 85, 255, 170, 170, 170, 255}, false},
		{"grey 4", pngFile(2, 1, 4, grey, 0, nil, 0, 0x1e), []byte{17, 17, 17, 255, 238, 238, 238, 255}, false},
		{"grey 8", pngFile(2, 1, 8, grey, 0, nil, 0, 9, 200), []byte{9, 9, 9, 255, 200, 200, 200, 255}, false},
		{"grey 16", pngFile(1, 1, 16, grey, 0, nil, 0, 0x80, 0x00), []byte{128, 128, 128, 255}, true},
		{"rgb 8", pngFile(1, 1, 8, rgb, 0, nil, 0, 1, 2, 3), []byte{1, 2, 3, 255}, false},
		{"rgb 16", pngFile(1, 1, 16, rgb, 0, nil, 0, 1, 1, 2, 2, 3, 200), []byte{1, 2, 4, 255}, true},
		{"indexed 1", pngFile(2, 1, 1, indexed, 0, two, 0, 0x40), []byte{1, 2, 3, 255, 40, 50, 60, 255}, false},
		{"indexed 2", pngFile(2, 1, 2, indexed, 0, palette(9, 8, 7), 0, 0xb0), []byte{70, 80, 90, 7, 255, 0, 128, 255}, false},
		{"indexed 4", pngFile(2, 1, 4, indexed, 0, palette(0), 0, 0x01), []byte{1, 2, 3, 0, 40, 50, 60, 255}, false},
		{"indexed 8", pngFile(2, 1, 8, indexed, 0, palette(), 0, 2, 3), []byte{70, 80, 90, 255, 255, 0, 128, 255}, false},
		{"grey and alpha 8", pngFile(1, 1, 8, greyAlpha, 0, nil, 0, 9, 3), []byte{9, 9, 9, 3}, false},
		{"grey and alpha 16", pngFile(1, 1, 16, greyAlpha, 0, nil, 0, 9, 9, 3, 3), []byte{9, 9, 9, 3}, true},
		{"rgba 8", pngFile(1, 1, 8, rgba, 0, nil, 0, 1, 2, 3, 4), []byte{1, 2, 3, 4}, false},
		{"rgba 16", pngFile(1, 1, 16, rgba, 0, nil, 0, 1, 1, 2, 2, 3, 3, 4, 4), []byte{1, 2, 3, 4}, true},
		{"a grey that is clear", pngFile(2, 1, 8, grey, 0, clear(0, 9), 0, 9, 10), []byte{9, 9, 9, 0, 10, 10, 10, 255}, false},
		{"a grey of 2 bits that is clear", pngFile(2, 1, 2, grey, 0, clear(0, 1), 0, 0x60), []byte{85, 85, 85, 0, 170, 170, 170, 255}, false},
		{"a grey of 16 bits that is clear", pngFile(2, 1, 16, grey, 0, clear(9, 9), 0, 9, 9, 9, 10), []byte{9, 9, 9, 0, 9, 9, 9, 255}, true},
		{"a colour that is clear", pngFile(2, 1, 8, rgb, 0, clear(0, 1, 0, 2, 0, 3), 0, 1, 2, 3, 1, 2, 4), []byte{1, 2, 3, 0, 1, 2, 4, 255}, false},
		{"a colour of 16 bits that is clear", pngFile(1, 1, 16, rgb, 0, clear(1, 1, 2, 2, 3, 3), 0, 1, 1, 2, 2, 3, 3), []byte{1, 2, 3, 0}, true},
		// Adam7 of 2 x 2 pixels: the first pass has the upper left pixel, the sixth the upper right one, the seventh
		// the lower row.
		{"interlaced", pngFile(2, 2, 8, grey, 1, nil, 0, 1, 0, 2, 0, 3, 4), []byte{1, 1, 1, 255, 2, 2, 2, 255, 3, 3, 3, 255, 4, 4, 4, 255}, false},
		// The filters sub, up, average and Paeth of 10 20 above 30 40.
		{"filters", pngFile(2, 4, 8, grey, 0, nil, 1, 10, 10, 2, 20, 20, 3, 0, 0, 4, 5, 6),
			[]byte{10, 10, 10, 255, 20, 20, 20, 255, 30, 30, 30, 255, 40, 40, 40, 255, 15, 15, 15, 255, 27, 27, 27, 255, 20, 20, 20, 255, 33, 33, 33, 255}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := DecodePicture("", tt.data, DefaultLimits())
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(p.Eight.Pix, tt.want) || (p.Float != nil) != tt.deep {
				t.Errorf("got %v, float %v; want %v, %v", p.Eight.Pix, p.Float != nil, tt.want, tt.deep)
			}
		})
	}
}

// TestFloatOfPNG checks that all 16 bits are kept.
func TestFloatOfPNG(t *testing.T) {
	p, err := DecodePicture("", pngFile(2, 1, 16, 6, 0, nil, 0, 0x12, 0x34, 0, 0, 0xff, 0xff, 0x80, 0, 0, 1, 0, 2, 0, 3, 0, 0), DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{0x1234, 0, 0xffff, 0x8000, 1, 2, 3, 0} {
		if got := p.Float.Pix[i]; got != float32(want)/65535 {
			t.Errorf("%d is %v, want %d/65535", i, got, want)
		}
	}
}

// TestBombs reads files that expand to far more than they claim, or claim far more than they have.
func TestBombs(t *testing.T) {
	exr := read(t, "rgb.exr")
	window := bytes.Index(exr, []byte("dataWindow"))
	wide := bytes.Clone(exr)
	binary.LittleEndian.PutUint32(wide[window+len("dataWindow\x00box2i\x00")+4+8:], 100000)
	for name, tt := range map[string]struct {
		data []byte
		lim  Limits
		want Fault
		text string
	}{
		"OpenEXR with more data than is seen": {wide, Limits{MaxSide: 100, MaxBytes: 16 * 8 * 6}, TooLarge, "OpenEXR image is over the limits: 100001 x 6 pixels"},
		"OpenEXR as floating point":           {exr, Limits{MaxSide: 100, MaxBytes: 16*8*6 - 1}, TooLarge, "OpenEXR image claims 8 x 6 pixels"},
		"16 bits as floating point":           {read(t, "deep.png"), Limits{MaxSide: 100, MaxBytes: 16*8*6 - 1}, TooLarge, "PNG image claims 8 x 6 pixels"},
		"Photoshop of 20000 x 20000":          {append([]byte("8BPS\x00\x01\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x4e\x20\x00\x00\x4e\x20\x00\x08\x00\x03"), make([]byte, 14)...), DefaultLimits(), TooLarge, "Photoshop image claims 20000 x 20000"},
		"Radiance of 16000 x 16000":           {[]byte("#?RGBE\n\n-Y 16000 +X 16000\n"), DefaultLimits(), TooLarge, "Radiance HDR image claims 16000 x 16000"},
		"Radiance of 8000 x 8000":             {[]byte("#?RGBE\n\n-Y 8000 +X 8000\n"), DefaultLimits(), Truncated, "Radiance HDR image ends too early"},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := DecodePicture("", tt.data, tt.lim)
			runtime.ReadMemStats(&after)
			var e *Error
			if !errors.As(err, &e) || e.Fault != tt.want || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %+v: %v; want fault %d with %q", e, err, tt.want, tt.text)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
				t.Errorf("%d bytes allocated", n)
			}
		})
	}
	more := pngFile(1, 1, 8, 6, 0, nil, make([]byte, 64<<20)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p, err := DecodePicture("", more, DefaultLimits())
	runtime.ReadMemStats(&after)
	if err != nil || p.Damage != "it has more pixels than its head says; they were left out" || after.TotalAlloc-before.TotalAlloc > 4<<20 {
		t.Errorf("PNG of 1 x 1 with 64 MiB in it: %v, %+v, %d bytes allocated", err, p, after.TotalAlloc-before.TotalAlloc)
	}
	// 8 of 16 bits take less memory.
	if _, err := Decode("", read(t, "deep.png"), Limits{MaxSide: 100, MaxBytes: 4 * 8 * 6}); err != nil {
		t.Error(err)
	}
}

// TestTame checks that NaN and infinities are replaced before they are used.
func TestTame(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	f := &Float{2, 1, []float32{nan, inf, -inf, 1, 2, -1, 0.5, 0.25}}
	f.tame()
	if want := []float32{0, 65504, -65504, 1, 2, -1, 0.5, 0.25}; !slices.Equal(f.Pix, want) {
		t.Errorf("%v, want %v", f.Pix, want)
	}
	// 0.5 of the light is 188 in sRGB; alpha is linear.
	if got, want := f.Encoded().Pix, []byte{0, 255, 0, 255, 255, 0, 188, 64}; !bytes.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
