package pixel

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFixPNG damages chunks. Damage is accepted only in chunks that the pixels do not need.
func TestFixPNG(t *testing.T) {
	one := encoded(t, image.NewNRGBA(image.Rect(0, 0, 3, 1)))
	spoil := func(data []byte, name string) []byte { // changes the last byte of the checksum of the first chunk with a name
		data = slices.Clone(data)
		at := bytes.Index(data, []byte(name)) - 4
		data[at+int(data[at+3])+11] ^= 1
		return data
	}
	text := chunk(chunk(one, "tEXt", []byte("by\x00Ada")...), "gAMA", be32(100000)...)
	palette := read(t, "palette.png")
	for _, tt := range []struct {
		name string
		data []byte
		want string // the text of Damage; an error if it begins with "!"
	}{
		{"whole", text, ""},
		{"text", spoil(text, "tEXt"), "the checksum of the part tEXt is wrong; it was left out"},
		{"two", spoil(spoil(text, "tEXt"), "gAMA"), "the checksum of the part gAMA, tEXt is wrong; it was left out"},
		{"pixels", spoil(text, "IDAT"), "!damaged"},
		{"head", spoil(text, "IHDR"), "!damaged"},
		{"palette", spoil(palette, "PLTE"), "!damaged"},
		{"pixels and text", spoil(spoil(text, "IDAT"), "tEXt"), "!damaged"},
	} {
		p, err := DecodePicture("a.png", tt.data, DefaultLimits())
		want, fails := strings.CutPrefix(tt.want, "!")
		if fails != (err != nil) || fails && !strings.Contains(err.Error(), want) || !fails && (p.Damage != want || p.Eight.Width != 3) {
			t.Errorf("%s: %v, %v", tt.name, p, err)
		}
		if _, fixed, _ := DecodeDamaged("a.png", tt.data, DefaultLimits()); !fails && fixed != want {
			t.Errorf("%s: %q", tt.name, fixed)
		}
	}
}

// TestFixJPEG checks that a JPEG without its end shows what is there, and grey below.
func TestFixJPEG(t *testing.T) {
	const side = 64
	m := image.NewRGBA(image.Rect(0, 0, side, side))
	for i := range side * side {
		m.SetRGBA(i%side, i/side, color.RGBA{byte(i * 7), byte(i / 13), byte(i / side * 4), 255})
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, nil); err != nil {
		t.Fatal(err)
	}
	data := b.Bytes()
	whole, err := Decode("a.jpg", data, DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	p, err := DecodePicture("a.jpg", data[:len(data)-2], DefaultLimits())
	if err != nil || p.Damage != "the mark of its end is missing" || !bytes.Equal(p.Eight.Pix, whole.Pix) {
		t.Errorf("without the mark of the end: %v", err)
	}
	cut := len(data) * 3 / 4
	for name, data := range map[string][]byte{"cut": data[:cut], "cut and ended": append(slices.Clone(data[:cut]), 0xff, 0xd9)} {
		p, err := DecodePicture("a.jpg", data, DefaultLimits())
		if err != nil || !strings.HasPrefix(p.Damage, "it ends too early: from line ") || p.Eight.Height != side {
			t.Errorf("%s: %v", name, err)
			continue
		}
		same := 0
		for same < side*side*4 && p.Eight.Pix[same] == whole.Pix[same] {
			same++
		}
		if lines := same / side / 4; lines < 24 || lines > 56 {
			t.Errorf("%s: %d lines are right", name, lines)
		}
		if last := p.Eight.Pix[len(p.Eight.Pix)-4:]; !bytes.Equal(last, []byte{128, 128, 128, 255}) {
			t.Errorf("%s: the last pixel is %v", name, last)
		}
	}
	var e *Error
	if _, err := Decode("a.jpg", data[:300], DefaultLimits()); !errors.As(err, &e) || e.Fault != Truncated {
		t.Errorf("nothing but a head: %v", err)
	}
	// A progressive JPEG loses its finest scans first.
	slow := read(t, "progressive.jpg")
	p, err = DecodePicture("a.jpg", slow[:len(slow)-20], DefaultLimits())
	if err != nil || !strings.Contains(p.Damage, "finest detail") {
		t.Errorf("progressive: %v, %v", p, err)
	}
}

// TestBrokenJPEG checks that broken JPEGs are read as libjpeg reads them: NAME.libjpeg.jpg is the output of its
// jpegtran, which copies the coefficients, for NAME.jpg.
func TestBrokenJPEG(t *testing.T) {
	damaged := func(line string) string {
		return "from line " + line + " of 37 on, what could not be read is wrong or grey"
	}
	const coarse = "it ends too early; the finest detail is missing"
	for _, tt := range []struct{ name, want string }{
		{"411-opt-cut", "it ends too early: from line 16 of 37 on it is grey"},
		{"411-progrst-flip", damaged("24")},
		{"411-rst1-flip", damaged("0")},
		{"411-rst4-bytes", "it ends too early: from line 32 of 37 on it is grey"},
		{"411-scansrst-drop", ""}, // no warning, as in libjpeg: restarts in a scan of one component, which the standard library cannot read
		{"420-prog-ff", damaged("32")},
		{"420-progrst-ff", damaged("0")},
		{"420-rstrow-dup", damaged("32")},
		{"422-base-ff", damaged("32")},
		{"422-prog-cut", coarse},
		{"422-prog-flip", damaged("32")},
		{"422-rst1-dup", damaged("24")},
		{"440-scans-drop", "it ends too early; some of its colours are missing"},
		{"444-rstrow-rstswap", damaged("16")},
		{"grey-prog-dup", "there are bytes in it that belong to nothing"},
		{"grey-rst4-drop", damaged("16")},
		{"420-progrst-cut", coarse}, // cut in the header of a scan, where libjpeg stops
		{"440-rst4-head", "!bad Tq value"},
		{"444-base-ff", "!missing 0xff00"},
		{"444-prog-ff", "!Huffman table"},
	} {
		p, err := DecodePicture("a.jpg", read(t, "broken/"+tt.name+".jpg"), DefaultLimits())
		if want, fails := strings.CutPrefix(tt.want, "!"); fails {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", tt.name, err, want)
			}
			continue
		}
		if err != nil || p.Damage != tt.want {
			t.Errorf("%s: %v, %q, want %q", tt.name, err, p.Damage, tt.want)
			continue
		}
		data, err := os.ReadFile(filepath.Join("testdata/broken", tt.name+".libjpeg.jpg"))
		if tt.name == "420-progrst-cut" && err != nil {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if want, err := Decode("a.jpg", data, DefaultLimits()); err != nil || !bytes.Equal(p.Eight.Pix, want.Pix) {
			t.Errorf("%s: other pixels than libjpeg's, %v", tt.name, err)
		}
	}
}

// TestFixWholeJPEG checks that a file which the standard library reads has the same pixels after rewriting, and no
// fault.
func TestFixWholeJPEG(t *testing.T) {
	files, err := filepath.Glob("testdata/broken/*.libjpeg.jpg")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, name := range append(files, "testdata/rgb.jpg", "testdata/grey.jpg", "testdata/cmyk.jpg", "testdata/progressive.jpg") {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want, err := jpeg.Decode(bytes.NewReader(data))
		if err != nil {
			t.Error(name, err)
			continue
		}
		fixed, what, err := fixJPEG(data)
		if err != nil || what != "" {
			t.Errorf("%s: %q, %v", name, what, err)
			continue
		}
		if got, err := jpeg.Decode(bytes.NewReader(fixed)); err != nil || !bytes.Equal(fromImage(got).Pix, fromImage(want).Pix) {
			t.Errorf("%s: other pixels, %v", name, err)
		}
	}
}

// FuzzMendJPEG checks that the standard library can read every rewritten file, or refuses it as an unsupported kind.
func FuzzMendJPEG(f *testing.F) {
	files, err := filepath.Glob("testdata/broken/*.jpg")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		f.Add(read(f, "broken/"+filepath.Base(name)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, err := jpeg.DecodeConfig(bytes.NewReader(data)); err != nil || c.Width*c.Height > 1<<16 {
			return
		}
		fixed, _, err := fixJPEG(data)
		if err != nil {
			return
		}
		var unsupported jpeg.UnsupportedError
		_, err = jpeg.Decode(bytes.NewReader(fixed))
		if err != nil && !errors.As(err, &unsupported) && !strings.Contains(err.Error(), "total sampling") {
			t.Fatal(err)
		}
	})
}
