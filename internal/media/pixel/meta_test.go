package pixel

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// chunk inserts a chunk after the header of a PNG.
func chunk(data []byte, kind string, body ...byte) []byte {
	c := append([]byte(kind), body...)
	c = binary.BigEndian.AppendUint32(c, crc32.ChecksumIEEE(c))
	c = append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), c...)
	return slices.Concat(data[:33], c, data[33:])
}

func be32(v ...uint32) (b []byte) {
	for _, n := range v {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return b
}

// profile builds an ICC profile from tags: name and data alternate.
func profile(tags ...string) []byte {
	list, body := be32(uint32(len(tags)/2)), ""
	for i := 0; i < len(tags); i += 2 {
		list = append(append(list, tags[i]...), be32(uint32(132+12*len(tags)/2+len(body)), uint32(len(tags[i+1])))...)
		body += tags[i+1]
	}
	return slices.Concat(make([]byte, 128), list, []byte(body))
}

func xyz(x, y, z float64) string {
	f := func(v float64) uint32 { return uint32(v * 65536) }
	return string(append([]byte("XYZ \x00\x00\x00\x00"), be32(f(x), f(y), f(z))...))
}

// Primaries of sRGB, from the ICC's profile, and of Display P3.
var (
	matrixSRGB = []string{"rXYZ", xyz(0.4361, 0.2225, 0.0139), "gXYZ", xyz(0.3851, 0.7169, 0.0971), "bXYZ", xyz(0.1431, 0.0606, 0.7141)}
	matrixP3   = []string{"rXYZ", xyz(0.5151, 0.2412, -0.0011), "gXYZ", xyz(0.2919, 0.6922, 0.0419), "bXYZ", xyz(0.1572, 0.0666, 0.7841)}
)

const (
	gamma22   = "curv\x00\x00\x00\x00\x00\x00\x00\x01\x02\x33" // 563/256
	straight0 = "curv\x00\x00\x00\x00\x00\x00\x00\x00"
	// g is 2.4, a 1/1.055, b 0.055/1.055, c 1/12.92, d 0.04045
	paraSRGB = "para\x00\x00\x00\x00\x00\x03\x00\x00\x00\x02\x66\x66\x00\x00\xf2\xa7\x00\x00\x0d\x59\x00\x00\x13\xd0\x00\x00\x0a\x5b"
)

func TestColours(t *testing.T) {
	one := encoded(t, image.NewNRGBA(image.Rect(0, 0, 1, 1)))
	gamma := func(data []byte, v uint32) []byte { return chunk(data, "gAMA", be32(v)...) }
	icc := func(p []byte) []byte {
		b := bytes.NewBufferString("any name\x00\x00")
		w := zlib.NewWriter(b)
		_, _ = w.Write(p)
		_ = w.Close()
		return chunk(one, "iCCP", b.Bytes()...)
	}
	with := func(matrix []string, tags ...string) []byte { return icc(profile(slices.Concat(matrix, tags)...)) }
	ascii := "desc\x00\x00\x00\x00\x00\x00\x00\x05Wide\x00"
	unicode := "mluc\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x0cenUS\x00\x00\x00\x08\x00\x00\x00\x1c\x00W\x00i\x00d\x00e"
	table := "curv\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x0d\x06\x36\xc9\x85\xc4\xff\xff" // 3334, 14025 and 34244 of 65535
	// ICC numbers have 16 bits after the point: 2.4, 1/1.055, 0.055/1.055, 1/12.92, 0.04045; 2.2.
	para := func(kind uint32, p ...uint32) string {
		return "para\x00\x00\x00\x00" + string(be32(kind<<16)) + string(be32(p...))
	}
	const g, a, b, c, d = 157286, 62119, 3417, 5072, 2651
	cut := with(matrixP3, "gTRC", gamma22, "desc", ascii)
	tests := []struct {
		name  string
		data  []byte
		space string
		gamma float64
	}{
		{"nothing said", one, "", 0},
		{"the gamma of sRGB", gamma(one, 45455), "", 0},
		{"5 per cent from it", gamma(one, 47000), "", 0},
		{"linear", gamma(one, 100000), "", 1},
		{"of an old Macintosh", gamma(one, 55556), "", 0.55556},
		{"linear, but sRGB", chunk(gamma(one, 100000), "sRGB", 0), "", 0},
		{"no gamma at all", gamma(one, 0), "", 0},
		{"primaries of sRGB", chunk(one, "cHRM", be32(31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000)...), "", 0},
		{"primaries of Rec. 2020", chunk(one, "cHRM", be32(31270, 32900, 70800, 29200, 17000, 79700, 13100, 4600)...), "primaries of its own", 0},
		{"cICP of sRGB", chunk(one, "cICP", 1, 13, 0, 1), "", 0},
		{"cICP of HDR", chunk(gamma(one, 100000), "cICP", 9, 16, 0, 1), "Rec. 2020 with PQ transfer", 0},
		{"cICP to come", chunk(one, "cICP", 12, 77, 0, 0), "Display P3 with number 77 transfer, narrow range", 0},
		{"profile of sRGB, gamma", with(matrixSRGB, "gTRC", gamma22), "", 0},
		{"profile of sRGB, formula", with(matrixSRGB, "gTRC", paraSRGB, "desc", ascii), "", 0},
		{"formula of kind 0", with(matrixSRGB, "gTRC", para(0, 144179)), "", 0},
		{"formula of kind 0, linear", with(matrixSRGB, "gTRC", para(0, 65536)), "a profile without a name", 0},
		{"formula of kind 1", with(matrixSRGB, "gTRC", para(1, g, a, b)), "", 0},
		{"formula of kind 2", with(matrixSRGB, "gTRC", para(2, g, a, b, 0)), "", 0},
		{"formula of kind 2, with an offset", with(matrixSRGB, "gTRC", para(2, g, a, b, 6554)), "a profile without a name", 0},
		{"formula of kind 4", with(matrixSRGB, "rTRC", para(4, g, a, b, c, d, 0, 0), "gTRC", para(4, g, a, b, c, d, 0, 0), "bTRC", paraSRGB), "", 0},
		{"formula of kind 4, with an offset", with(matrixSRGB, "gTRC", para(4, g, a, b, c, d, 6554, 0)), "a profile without a name", 0},
		{"formula of kind 4, too short", with(matrixSRGB, "gTRC", para(4, g, a, b, c, d, 0)), "a profile without a name", 0},
		{"formula of kind 5", with(matrixSRGB, "gTRC", para(5, g, a, b, c, d, 0, 0)), "a profile without a name", 0},
		{"another curve of blue", with(matrixSRGB, "gTRC", paraSRGB, "bTRC", straight0), "a profile without a name", 0},
		{"profile of sRGB, table", with(matrixSRGB, "gTRC", table), "", 0},
		{"profile of linear sRGB", with(matrixSRGB, "gTRC", straight0, "desc", ascii), "Wide", 0},
		{"profile of other primaries", cut, "Wide", 0},
		{"a name in Unicode", with(matrixP3, "gTRC", gamma22, "desc", unicode), "Wide", 0},
		{"no name", with(matrixP3, "gTRC", gamma22), "a profile without a name", 0},
		{"profile of grey", with(nil, "kTRC", gamma22), "", 0},
		{"profile of linear grey", with(nil, "kTRC", straight0), "a profile without a name", 0},
		{"profile of a press", with(nil, "A2B0", "mft2", "desc", ascii), "Wide", 0},
		{"profile that is none", icc([]byte("hello")), "a profile without a name", 0},
		{"QOI", []byte("qoif\x00\x00\x00\x01\x00\x00\x00\x01\x04\x00\xc0\x00\x00\x00\x00\x00\x00\x00\x01"), "", 0},
		{"linear QOI", []byte("qoif\x00\x00\x00\x01\x00\x00\x00\x01\x04\x01\xc0\x00\x00\x00\x00\x00\x00\x00\x01"), "", 1},
		{"profile in a JPEG, in two parts", jpegWith(t, append([]byte("\xe2ICC_PROFILE\x00\x01\x02"), profile(slices.Concat(matrixP3, []string{"desc", ascii})...)[:140]...),
			append([]byte("\xe2ICC_PROFILE\x00\x02\x02"), profile(slices.Concat(matrixP3, []string{"desc", ascii})...)[140:]...)), "Wide", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := DecodePicture("", tt.data, DefaultLimits())
			if err != nil {
				t.Fatal(err)
			}
			if p.Space != tt.space || p.Gamma != tt.gamma {
				t.Errorf("%q, %v; want %q, %v", p.Space, p.Gamma, tt.space, tt.gamma)
			}
		})
	}
}

// jpegWith inserts segments, each with its marker first, after the start of a JPEG.
func jpegWith(t testing.TB, segments ...[]byte) []byte {
	data := read(t, "rgb.jpg")
	out := bytes.Clone(data[:2])
	for _, s := range segments {
		out = append(append(out, 0xff, s[0]), byte((len(s)+1)>>8), byte(len(s)+1))
		out = append(out, s[1:]...)
	}
	return append(out, data[2:]...)
}

// TestEncode uses that half of the light is 188 in sRGB, and 0.735357 of 1.
func TestEncode(t *testing.T) {
	m := image.NewNRGBA64(image.Rect(0, 0, 1, 1))
	m.SetNRGBA64(0, 0, color.NRGBA64{0x8000, 0, 0xffff, 0x8000})
	p, err := DecodePicture("", chunk(encoded(t, m), "gAMA", be32(100000)...), DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	p.Encode()
	if want := []byte{188, 0, 255, 128}; !bytes.Equal(p.Eight.Pix, want) || p.Gamma != 0 {
		t.Errorf("%v, gamma %v; want %v", p.Eight.Pix, p.Gamma, want)
	}
	if v := p.Float.Pix[0]; v < 0.73534 || v > 0.73537 || p.Float.Pix[3] != 0x8000/65535.0 {
		t.Errorf("%v", p.Float.Pix)
	}
	n := image.NewNRGBA(image.Rect(0, 0, 1, 1))
	n.Pix = []byte{128, 55, 255, 128}
	if p, err = DecodePicture("", chunk(encoded(t, n), "gAMA", be32(100000)...), DefaultLimits()); err != nil {
		t.Fatal(err)
	}
	p.Encode()
	p.Encode() // a second call has no effect
	if want := []byte{188, 128, 255, 128}; !bytes.Equal(p.Eight.Pix, want) {
		t.Errorf("%v, want %v", p.Eight.Pix, want)
	}
}

// exif returns a directory of two entries. The second is the orientation.
func exif(order binary.AppendByteOrder, orientation uint16) []byte {
	b := []byte("II*\x00")
	if order.String() == "BigEndian" {
		b = []byte("MM\x00*")
	}
	b = order.AppendUint32(b, 8)
	b = order.AppendUint16(b, 2)
	for _, e := range [][3]uint16{{256, 4, 0}, {274, 3, orientation}} {
		b = order.AppendUint16(order.AppendUint16(b, e[0]), e[1])
		b = order.AppendUint16(order.AppendUint32(b, 1), e[2])
		b = append(b, 0, 0)
	}
	return append(b, 0, 0, 0, 0)
}

// The file is a b c above d e f.
func TestOrientation(t *testing.T) {
	m := image.NewGray16(image.Rect(0, 0, 3, 2))
	for i, c := range "abcdef" {
		m.SetGray16(i%3, i/3, color.Gray16{uint16(c) * 257})
	}
	data := encoded(t, m)
	for o, want := range []string{1: "abc def", 2: "cba fed", 3: "fed cba", 4: "def abc", 5: "ad be cf", 6: "da eb fc", 7: "fc eb da", 8: "cf be ad"} {
		if want == "" {
			continue
		}
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			file := chunk(data, "eXIf", exif(order, uint16(o))...)
			p, err := DecodePicture("", file, DefaultLimits())
			if err != nil {
				t.Fatal(err)
			}
			var eight, float strings.Builder
			for i := 0; i < len(p.Eight.Pix); i += 4 {
				if i > 0 && i/4%p.Eight.Width == 0 {
					eight.WriteByte(' ')
					float.WriteByte(' ')
				}
				eight.WriteByte(p.Eight.Pix[i])
				float.WriteByte(byte(unit(p.Float.Pix[i], 255)))
			}
			if eight.String() != want || float.String() != want {
				t.Errorf("%d: %q, %q, want %q", o, eight.String(), float.String(), want)
			}
			c, err := DecodeConfig("", file)
			only, err2 := Decode("", file, DefaultLimits())
			if err != nil || err2 != nil || c.Width != p.Eight.Width || c.Height != p.Eight.Height || !bytes.Equal(only.Pix, p.Eight.Pix) {
				t.Errorf("%d: %+v, %v, %v", o, c, err, err2)
			}
		}
	}
}

// TestFindOrientation finds the orientation in every container, and ignores invalid ones.
func TestFindOrientation(t *testing.T) {
	e := exif(binary.LittleEndian, 6)
	webp := read(t, "lossless.webp")
	webp = append(webp, append([]byte("EXIF"), binary.LittleEndian.AppendUint32(nil, uint32(len(e)))...)...)
	webp = append(webp, e...)
	for _, tt := range []struct {
		name, format string
		data         []byte
		want         int
	}{
		{"JPEG", "jpeg", jpegWith(t, append([]byte("\xe1Exif\x00\x00"), e...)), 6},
		{"JPEG with XMP before", "jpeg", jpegWith(t, []byte("\xe1http://ns.adobe.com"), append([]byte("\xe1Exif\x00\x00"), e...)), 6},
		{"WebP", "webp", webp, 6},
		{"TIFF", "tiff", e, 6},
		{"9", "tiff", exif(binary.LittleEndian, 9), 1},
		{"0", "tiff", exif(binary.LittleEndian, 0), 1},
		{"cut off", "tiff", e[:20], 1},
		{"nothing", "tiff", nil, 1},
		{"offset beyond the end", "tiff", []byte("II*\x00\xff\xff\xff\xff"), 1},
	} {
		m := metaOf(tt.format, tt.data)
		if got := m.orientation(); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// TestOrientationAgainstImageMagick compares the eight orientations with ImageMagick.
func TestOrientationAgainstImageMagick(t *testing.T) {
	magick := tool(t, "magick", "convert-im6.q16")
	for _, o := range []string{"TopLeft", "TopRight", "BottomRight", "BottomLeft", "LeftTop", "RightTop", "RightBottom", "LeftBottom"} {
		dir := t.TempDir()
		scene(t, dir)
		run(t, dir, magick, "scene.png", "-alpha", "off", "-depth", "8", "-orient", o, "x.tif")
		run(t, dir, magick, "x.tif", "-auto-orient", "-depth", "8", "rgba:reference")
		data, err := os.ReadFile(filepath.Join(dir, "x.tif"))
		if err != nil {
			t.Fatal(err)
		}
		m, err := Decode("x.tif", data, DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		if want, err := os.ReadFile(filepath.Join(dir, "reference")); err != nil || !bytes.Equal(m.Pix, want) {
			t.Errorf("%s: another picture of %d x %d, %v", o, m.Width, m.Height, err)
		}
	}
}

// TestProfileBomb checks that a truncated iCCP chunk and a deflate bomb in one do not affect the pixels.
func TestProfileBomb(t *testing.T) {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	for range 64 {
		_, _ = w.Write(make([]byte, 1<<20))
	}
	_ = w.Close()
	if n := len(inflate(b.Bytes())); n != maxProfile {
		t.Errorf("%d bytes", n)
	}
	if inflate(b.Bytes()[:100]) != nil || inflate([]byte("x")) != nil {
		t.Error("half a profile")
	}
}

func FuzzMeta(f *testing.F) {
	one := encoded(f, image.NewNRGBA(image.Rect(0, 0, 1, 1)))
	p := profile(slices.Concat(matrixP3, []string{"desc", "desc\x00\x00\x00\x00\x00\x00\x00\x05Wide\x00", "gTRC", paraSRGB})...)
	f.Add("png", chunk(chunk(one, "gAMA", be32(100000)...), "eXIf", exif(binary.BigEndian, 3)...))
	f.Add("png", chunk(one, "cICP", 9, 16, 0, 1))
	f.Add("jpeg", jpegWith(f, append([]byte("\xe2ICC_PROFILE\x00\x01\x01"), p...)))
	f.Add("webp", read(f, "lossless.webp"))
	f.Add("tiff", exif(binary.LittleEndian, 6))
	f.Add("icc", p)
	f.Fuzz(func(t *testing.T, format string, data []byte) {
		m := metaOf(format, data)
		if format == "icc" {
			m.icc = data
		}
		if o := m.orientation(); o < 1 || o > 8 {
			t.Fatal(o)
		}
		if space, gamma := m.colours(); gamma < 0 || gamma > 10 || len(space) > 100 {
			t.Fatalf("%q, %v", space, gamma)
		}
	})
}
