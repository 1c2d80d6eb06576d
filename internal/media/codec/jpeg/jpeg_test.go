package jpeg

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	std "image/jpeg"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

// segment returns a marker with its segment.
func segment(mark byte, body string) string {
	return string(binary.BigEndian.AppendUint16([]byte{0xff, mark}, uint16(2+len(body)))) + body
}

// with returns a golden file in which the first old is replaced.
func with(t testing.TB, name, old, by string) []byte {
	t.Helper()
	data := read(t, "golden/"+name+".jpg")
	if !bytes.Contains(data, []byte(old)) {
		t.Fatalf("%s has no %q", name, old)
	}
	return bytes.Replace(data, []byte(old), []byte(by), 1)
}

const frame420 = "\x08\x00\x13\x00\x17\x03\x01\x22\x00\x02\x11\x01\x03\x11\x01" // of golden file 420, 23 x 19

func TestErrors(t *testing.T) {
	frame := func(mark byte, body string) []byte {
		return with(t, "420", segment(markSOF0, frame420), segment(mark, body))
	}
	golden := read(t, "golden/420.jpg")
	const again = "; save it as baseline or progressive JPEG, or as PNG: not supported"
	for _, tt := range []struct {
		name string
		data []byte
		want string
		kind error
	}{
		{"lossless", frame(0xc3, frame420), "lossless JPEG" + again, input.ErrUnsupported},
		{"hierarchical", frame(0xc5, frame420), "hierarchical JPEG" + again, input.ErrUnsupported},
		{"hierarchical, arithmetic", frame(0xcf, frame420), "hierarchical JPEG" + again, input.ErrUnsupported},
		{"arithmetic", frame(0xc9, frame420), "arithmetic coding" + again, input.ErrUnsupported},
		{"arithmetic, progressive", frame(0xca, frame420), "arithmetic coding" + again, input.ErrUnsupported},
		{"lossless, arithmetic", frame(0xcb, frame420), "lossless JPEG with arithmetic coding" + again, input.ErrUnsupported},
		{"DHP", frame(0xde, frame420), "hierarchical JPEG" + again, input.ErrUnsupported},
		{"JPEG-LS", frame(0xf7, frame420), "JPEG-LS" + again, input.ErrUnsupported},
		{"12 bits", frame(0xc1, "\x0c"+frame420[1:]), "12 bits a channel; save it with 8 bits, or as PNG: not supported", input.ErrUnsupported},
		{"DNL", frame(0xc0, "\x08\x00\x00"+frame420[3:]), "a height that follows the picture" + again, input.ErrUnsupported},
		{"2 channels", frame(0xc0, "\x08\x00\x13\x00\x17\x02\x01\x11\x00\x02\x11\x00"),
			"2 channels; save it as grey or RGB: not supported", input.ErrUnsupported},
		{"7 bits", frame(0xc0, "\x07"+frame420[1:]), "a frame of 7 bits, 23 x 19 pixels, 3 parts", input.ErrDamaged},
		{"no width", frame(0xc0, "\x08\x00\x13\x00\x00"+frame420[5:]), "a frame of 8 bits, 0 x 19 pixels", input.ErrDamaged},
		{"size of the frame", frame(0xc0, frame420+"x"), "a frame of 8 bits", input.ErrDamaged},
		{"sampling", frame(0xc0, strings.Replace(frame420, "\x22", "\x52", 1)), "a sampling of 5 x 2", input.ErrDamaged},
		{"group", frame(0xc0, strings.Replace(frame420, "\x22", "\x44", 1)), "with 18 blocks a group", input.ErrDamaged},
		{"no quants", frame(0xc0, strings.Replace(frame420, "\x11\x01", "\x11\x02", 1)),
			"quantization table 2 of part 2 is missing", input.ErrDamaged},
		{"a second frame", with(t, "420", "\xff\xda", segment(0xc0, frame420)+"\xff\xda"), "a second frame", input.ErrDamaged},
		{"no frame", with(t, "420", segment(markSOF0, frame420), ""), "a scan of 3 parts", input.ErrDamaged},
		{"tables", with(t, "420", "\xff\xc4\x00\x1f\x00", "\xff\xc4\x00\x1f\x04"), "Huffman table 0x4 of 12 codes", input.ErrDamaged},
		{"no tables", with(t, "420", "\xff\xda\x00\x0c\x03\x01\x00", "\xff\xda\x00\x0c\x03\x01\x20"),
			"a Huffman table of the scan is missing", input.ErrDamaged},
		{"wrong part", with(t, "420", "\xff\xda\x00\x0c\x03\x01", "\xff\xda\x00\x0c\x03\x09"), "a scan of part 9", input.ErrDamaged},
		{"restarts", with(t, "420", "\xff\xda", segment(0xdd, "\x00\x01\x00")+"\xff\xda"), "a restart interval of 5 bytes", input.ErrDamaged},
		{"another scan", with(t, "grey", "\xff\xd9", segment(0xda, "\x01\x01\x00\x00\x3f\x00")),
			"another scan after all parts", input.ErrDamaged},
		{"unknown marker", with(t, "420", "\xff\xda", segment(0xf3, "")+"\xff\xda"), "unknown marker 0xf3", input.ErrDamaged},
		{"no scan", []byte("\xff\xd8" + segment(0xc0, frame420) + "\xff\xd9"), "no picture", input.ErrDamaged},
		{"nothing", []byte("\xff\xd8\xff\xd9"), "no picture", input.ErrDamaged},
		{"PNG", []byte("\x89PNG"), "not the start of a JPEG", input.ErrDamaged},
		{"head only", golden[:200], "", input.ErrTruncated},
		{"empty", nil, "", input.ErrTruncated},
	} {
		_, err := Decode(tt.data, 1<<20)
		if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		if _, head := ParseHeader(tt.data); tt.kind == input.ErrUnsupported && (head == nil || head.Error() != err.Error()) {
			t.Errorf("%s: the header says %v", tt.name, head)
		}
	}
	if _, err := Decode(golden, 23*19-1); !errors.Is(err, input.ErrTooLarge) {
		t.Errorf("over the limit: %v", err)
	}
}

// TestHeader compares the memory that a header states with what is allocated.
func TestHeader(t *testing.T) {
	for _, r := range []random{
		{width: 900, height: 700, sampling: [][2]int{{2, 2}, {1, 1}, {1, 1}}, adobe: -1},
		{width: 900, height: 700, sampling: [][2]int{{1, 1}, {1, 1}, {1, 1}}, adobe: -1, apart: true},
		{width: 700, height: 900, sampling: [][2]int{{1, 1}, {1, 1}, {1, 1}, {1, 1}}, adobe: 2},
		{width: 1, height: 3000, sampling: [][2]int{{4, 1}, {1, 2}, {1, 1}}, adobe: -1},
		{width: 3000, height: 1, sampling: [][2]int{{1, 4}}, adobe: -1},
	} {
		data := r.file(rand.New(rand.NewPCG(4, 5)))
		h, err := ParseHeader(data)
		if err != nil || h.Width != r.width || h.Height != r.height || h.Progressive {
			t.Errorf("%v: %+v, %v", r, h, err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := Decode(data, 1<<20); err != nil {
			t.Errorf("%v: %v", r, err)
		}
		runtime.ReadMemStats(&after)
		if n := int64(after.TotalAlloc - before.TotalAlloc); n > h.Memory || n < h.Memory/3 && h.Memory > 1<<20 {
			t.Errorf("%v: %d bytes allocated, %d stated", r, n, h.Memory)
		}
	}
	if h, err := ParseHeader(read(t, "golden/progressive.jpg")); err != nil || !h.Progressive {
		t.Errorf("%+v, %v", h, err)
	}
}

// TestRatios checks ratios that libjpeg refuses: samples are repeated, so a picture of one colour keeps it, and one of three
// columns for two has its middle column from the left one.
func TestRatios(t *testing.T) {
	line := make([]byte, 7)
	repeat(line, []byte{1, 2, 3, 4, 5}, 2, 3)
	if want := []byte{1, 1, 2, 3, 3, 4, 5}; !bytes.Equal(line, want) {
		t.Errorf("%v, want %v", line, want)
	}
	r := random{width: 50, height: 40, sampling: [][2]int{{3, 1}, {2, 1}, {1, 1}}, adobe: -1}
	if p, err := Decode(r.file(rand.New(rand.NewPCG(6, 7))), 1<<20); err != nil || p.Damage != "" || len(p.Pix) != 4*50*40 {
		t.Errorf("%v", err)
	}
}

// TestScans makes a progressive file whose scans have no data, of which each may pass all blocks.
func TestScans(t *testing.T) {
	data := []byte("\xff\xd8" + segment(markSOF2, "\x08\x08\x00\x08\x00\x01\x01\x11\x00") +
		segment(markDQT, "\x00"+strings.Repeat("\x01", 64)) +
		segment(markDHT, "\x10\x01"+strings.Repeat("\x00", 15)+"\xe0"))
	scan := segment(markSOS, "\x01\x01\x00\x01\x3f\x00") + "\x00\x00\x00\x00\x00\x00"
	if _, err := Decode([]byte(string(data)+strings.Repeat(scan, 90)+"\xff\xd9"), 1<<30); err != nil {
		t.Errorf("90 scans: %v", err)
	}
	_, err := Decode([]byte(string(data)+strings.Repeat(scan, 10000)+"\xff\xd9"), 1<<30)
	if !errors.Is(err, input.ErrTooLarge) || !strings.Contains(err.Error(), "scans pass its 2048 x 2048 pixels more than 100 times") {
		t.Errorf("10000 scans: %v", err)
	}
}

// TestExtra reads files with bytes that need not be there.
func TestExtra(t *testing.T) {
	plain, err := Decode(read(t, "golden/420.jpg"), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	data := read(t, "golden/420.jpg")
	for _, tt := range []struct {
		name, want string
		data       []byte
	}{
		{"after the end", "", append(slices.Clone(data), "MPO or a film"...)},
		{"fill bytes", "", with(t, "420", "\xff\xda", "\xff\xff\xff\xff\xda")},
		{"a marker without data", "", with(t, "420", "\xff\xda", "\xff\x01\xff\xda")},
		{"DNL", "", with(t, "420", "\xff\xd9", segment(markDNL, "\x00\x13")+"\xff\xd9")},
		{"DAC", "", with(t, "420", "\xff\xda", segment(markDAC, "\x00\x10")+"\xff\xda")},
		{"between segments", extraBytes, with(t, "420", "\xff\xda", "abc\xff\xda")},
		{"before the end", extraBytes, with(t, "420", "\xff\xd9", strings.Repeat("x", 20)+"\xff\xd9")},
		{"no end", "the mark of its end is missing", data[:len(data)-2]},
		{"half an end", "the mark of its end is missing", data[:len(data)-1]},
	} {
		p, err := Decode(tt.data, 1<<20)
		if err != nil || p.Damage != tt.want || !bytes.Equal(p.Pix, plain.Pix) {
			t.Errorf("%s: %v, %v", tt.name, p, err)
		}
	}
}

// TestStandard compares with the standard library, whose transform is another, and whose chroma is not interpolated: with full
// chroma, numbers differ by up to 3.
func TestStandard(t *testing.T) {
	for _, name := range []string{"444", "grey", "rgb"} {
		data := read(t, "golden/"+name+".jpg")
		m, err := std.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		p, err := Decode(data, 1<<20)
		if err != nil || m.Bounds() != image.Rect(0, 0, p.Width, p.Height) {
			t.Fatal(err)
		}
		for i := range p.Width * p.Height {
			r, g, b, _ := m.At(i%p.Width, i/p.Width).RGBA()
			for c, v := range []uint32{r, g, b} {
				if d := int(v>>8) - int(p.Pix[4*i+c]); d < -3 || d > 3 {
					t.Errorf("%s: pixel %d is %v", name, i, p.Pix[4*i:4*i+4])
				}
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, pattern := range []string{"testdata/broken/*.jpg", "testdata/golden/*.jpg"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatal(pattern, err)
		}
		for _, name := range files {
			f.Add(read(f, strings.TrimPrefix(filepath.ToSlash(name), "testdata/")))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		h, headErr := ParseHeader(data)
		p, err := Decode(data, 1<<16)
		if err != nil {
			kinds := []error{input.ErrTruncated, input.ErrDamaged, input.ErrUnsupported, input.ErrTooLarge}
			if !slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) }) {
				t.Fatal(err)
			}
			return
		}
		if headErr != nil || h.Width != p.Width || h.Height != p.Height || len(p.Pix) != 4*p.Width*p.Height {
			t.Fatalf("%+v, %v, but %d x %d, %d bytes", h, headErr, p.Width, p.Height, len(p.Pix))
		}
		for i := 3; i < len(p.Pix); i += 4 {
			if p.Pix[i] != 255 {
				t.Fatalf("alpha of pixel %d is %d", i/4, p.Pix[i])
			}
		}
	})
}
