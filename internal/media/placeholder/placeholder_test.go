package placeholder

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"image/png"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/media/codec/gltf"
)

// TestFor: every kind is one that its reader takes.
func TestFor(t *testing.T) {
	for _, name := range []string{"a.json", "a", "a.ogg", "png"} {
		if _, ok := For(name); ok {
			t.Errorf("%s has a placeholder", name)
		}
	}
	picture, ok := For("sprites/Tank.PNG")
	im, err := png.Decode(bytes.NewReader(picture))
	if !ok || err != nil || im.Bounds().Dx() != side || im.Bounds().Dy() != side {
		t.Fatalf("%v", err)
	}
	if a, b := im.At(0, 0), im.At(field, 0); a == b || im.At(field, field) != a {
		t.Errorf("%v beside %v", a, b)
	}
	sound, _ := For("a.wav")
	if string(sound[:4]) != "RIFF" || binary.LittleEndian.Uint32(sound[4:]) != uint32(len(sound)-8) || binary.LittleEndian.Uint32(sound[40:]) != uint32(len(sound)-44) {
		t.Errorf("the sizes in % x are wrong", sound[:44])
	}
	for _, name := range []string{"a.gltf", "a.glb"} {
		model, _ := For(name)
		text := model
		if name == "a.glb" {
			text = model[20 : 20+binary.LittleEndian.Uint32(model[12:])]
			if binary.LittleEndian.Uint32(model[8:]) != uint32(len(model)) {
				t.Errorf("%s has %d bytes", name, len(model))
			}
		}
		if _, err := gltf.Read(model, gltf.DefaultLimits()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !json.Valid(text) || !strings.Contains(string(text), `"POSITION"`) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// TestCube: each triangle looks outward, by its normal and by the order of its corners.
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
		if out != 1 { // twice its area, of half a side of 1 by 1
			t.Errorf("triangle %d looks inward: %v", i, out)
		}
	}
}

// TestSame: the bytes are the same everywhere, and from version to version: products of them would be others.
func TestSame(t *testing.T) {
	for name, want := range map[string]string{
		"a.png":  "d10cec3c1f1f5b66",
		"a.wav":  "7926abc9563afb15",
		"a.gltf": "8d838f4e025d9c4c",
		"a.glb":  "d8a65122622ee16c",
	} {
		b, _ := For(name)
		if got := digest.Of(b).String()[:16]; got != want {
			t.Errorf("%q: %q", name, got)
		}
	}
}
