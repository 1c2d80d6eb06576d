package pixel

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
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
