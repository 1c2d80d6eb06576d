package processors

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"slices"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/ktx2"
	"github.com/kiln-pipeline/kiln/internal/media/whole"
)

func encoded(t *testing.T, f func(*bytes.Buffer, image.Image) error) []byte {
	t.Helper()
	img := image.NewNRGBA(image.Rect(0, 0, 90, 90))
	for i := range img.Pix {
		img.Pix[i] = byte(i*i>>3) | 1
	}
	var b bytes.Buffer
	if err := f(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// wholeFiles are one of each format whose end is looked at.
func wholeFiles(t *testing.T) map[string][]byte {
	le := binary.LittleEndian
	data := bytes.Repeat([]byte{1, 2, 3}, 100)
	wav := append([]byte("RIFF\x00\x00\x00\x00WAVEfmt \x02\x00\x00\x00ab"), le.AppendUint32([]byte("data"), uint32(len(data)))...)
	le.PutUint32(wav[4:], uint32(len(data))+999) // counted wrongly, as some writers do
	page := append([]byte("OggS\x00\x04"), make([]byte, 20)...)
	page = append(append(page, 2, 255, 45), data...)
	bmp := append(le.AppendUint32([]byte("BM"), uint32(10+len(data))), 0, 0, 0, 0)
	glb := le.AppendUint32([]byte("glTF\x02\x00\x00\x00"), uint32(12+len(data)))
	texture, err := ktx2.Encode(&ktx2.Texture{Format: ktx2.RGBA8, Width: 16, Height: 16, Levels: [][]byte{make([]byte, 1024)}})
	if err != nil {
		t.Fatal(err)
	}
	quiet := append([]byte("qoaf\x00\x00\x00\x15\x01\x00\xac\x44\x00\x15\x00\x28"), make([]byte, 16+2*8)...) // 21 samples
	return map[string][]byte{
		"a.qoa": quiet,
		"a.png": encoded(t, func(b *bytes.Buffer, i image.Image) error { return png.Encode(b, i) }),
		"a.jpg": encoded(t, func(b *bytes.Buffer, i image.Image) error { return jpeg.Encode(b, i, nil) }),
		"a.gif": encoded(t, func(b *bytes.Buffer, i image.Image) error { return gif.Encode(b, i, nil) }),
		"a.wav": append(wav, data...), "a.ogg": page, "a.bmp": append(bmp, data...), "a.glb": append(glb, data...), "a.ktx2": texture,
		"a.zip": append(append([]byte("PK\x03\x04"), data...), "PK\x05\x06"...),
	}
}

func TestCutShort(t *testing.T) {
	cut := func(name string, data []byte) bool {
		return Check(name, bytes.NewReader(data), int64(len(data))) == whole.Cut
	}
	for name, data := range wholeFiles(t) {
		if cut(name, data) {
			t.Errorf("%s: whole, but said to be cut", name)
		}
		if cut(name, append(slices.Clone(data), "something behind it"...)) {
			t.Errorf("%s: something behind the end makes it cut", name)
		}
		if !cut(name, data[:len(data)*3/4]) {
			t.Errorf("%s: cut, but said to be whole", name)
		}
	}
	if cut("a.jpg", wholeFiles(t)["a.png"][:100]) != true {
		t.Error("a PNG with another name is not looked at")
	}
	if cut("a.txt", []byte("BMW is a text")) {
		t.Error("a text is taken for an image")
	}
}

func FuzzCutShort(f *testing.F) {
	f.Add([]byte("\x89PNG\r\n\x1a\n\xff\xff\xff\xffIDAT"), ".png")
	f.Add([]byte("RIFF\x00\x00\x00\x00WAVE"), ".wav")
	f.Add([]byte("OggS\x00\x04"), ".ogg")
	f.Add([]byte("\xabKTX 20\xbb\r\n\x1a\n"), ".ktx2")
	f.Fuzz(func(t *testing.T, data []byte, ext string) { Check("a"+ext, bytes.NewReader(data), int64(len(data))) })
}
