package placeholder

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"image/png"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/media/codec/dds"
	"github.com/kiln-pipeline/kiln/internal/media/codec/gltf"
	"github.com/kiln-pipeline/kiln/internal/media/codec/ktx2"
	"github.com/kiln-pipeline/kiln/internal/media/soundfile"
)

// TestReaders checks that the reader of each format accepts its placeholder.
func TestReaders(t *testing.T) {
	im, err := png.Decode(bytes.NewReader(Picture()))
	if err != nil || im.Bounds().Dx() != side || im.Bounds().Dy() != side {
		t.Fatalf("%v", err)
	}
	if a, b := im.At(0, 0), im.At(field, 0); a == b || im.At(field, field) != a {
		t.Errorf("%v beside %v", a, b)
	}
	k, err := ktx2.Decode(KTX2())
	if err != nil || k.Width != side {
		t.Errorf("KTX2: %v", err)
	}
	d, err := dds.Decode(DDS())
	if err != nil || d.Width != side || !bytes.Equal(d.Levels[0], k.Levels[0]) {
		t.Errorf("DDS: %v", err)
	}
	sound := WAV()
	if string(sound[:4]) != "RIFF" || binary.LittleEndian.Uint32(sound[4:]) != uint32(len(sound)-8) || binary.LittleEndian.Uint32(sound[40:]) != uint32(len(sound)-44) {
		t.Errorf("the sizes in % x are wrong", sound[:44])
	}
	for name, data := range map[string][]byte{"WAV": WAV(), "Vorbis": Vorbis(), "Opus": Opus(), "MP3": MP3()} {
		f, err := soundfile.Open(bytes.NewReader(data), int64(len(data)))
		if err != nil || f.Frames != 4800 || f.Format.Rate != 48000 || f.Format.Channels != 1 {
			t.Errorf("%s: %v, %+v", name, err, f)
		}
	}
	binaryText := GLB()
	if binary.LittleEndian.Uint32(binaryText[8:]) != uint32(len(binaryText)) {
		t.Errorf("the GLB has %d bytes", len(binaryText))
	}
	binaryText = binaryText[20 : 20+binary.LittleEndian.Uint32(binaryText[12:])]
	for name, text := range map[string][]byte{"GLTF": GLTF(), "GLB": binaryText} {
		if !json.Valid(text) || !strings.Contains(string(text), `"POSITION"`) {
			t.Errorf("%s: %s", name, text)
		}
	}
	for _, model := range [][]byte{GLTF(), GLB()} {
		if _, err := gltf.Read(model, gltf.DefaultLimits()); err != nil {
			t.Error(err)
		}
	}
}

// TestCube checks that each triangle faces outward, by its normal and by the order of its corners.
func TestCube(t *testing.T) {
	m := mesh()
	number := func(i int) (v [3]float32) {
		for k := range v {
			binary.Decode(m[12*i+4*k:], binary.LittleEndian, &v[k])
		}
		return v
	}
	for i := range indices / 3 {
		var p [3][3]float32
		var n [3]float32
		for k := range 3 {
			at := int(binary.LittleEndian.Uint16(m[2*12*corners+2*(3*i+k):]))
			p[k], n = number(at), number(corners+at)
		}
		var out float32
		for k := range 3 {
			a, b := (k+1)%3, (k+2)%3
			cross := (p[1][a]-p[0][a])*(p[2][b]-p[0][b]) - (p[1][b]-p[0][b])*(p[2][a]-p[0][a])
			if out += cross * n[k]; n[k] != 0 && n[k] != 2*p[0][k] {
				t.Errorf("triangle %d: normal %v at %v", i, n, p[0])
			}
		}
		if out != 1 { // twice the area of a triangle that is half of a side of 1 by 1
			t.Errorf("triangle %d looks inward: %v", i, out)
		}
	}
}

// TestSame checks that the bytes do not change between machines and versions, because the products would change with
// them.
func TestSame(t *testing.T) {
	for want, make := range map[string]func() []byte{
		"d10cec3c1f1f5b66": Picture,
		"7926abc9563afb15": WAV,
		"8d838f4e025d9c4c": GLTF,
		"d8a65122622ee16c": GLB,
		"6bace9fb27b67b12": KTX2,
		"6eec6393a355bff8": DDS,
	} {
		if got := digest.Of(make()).String()[:16]; got != want {
			t.Errorf("%q in place of %q", got, want)
		}
	}
}
