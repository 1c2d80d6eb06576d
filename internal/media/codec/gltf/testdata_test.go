package gltf

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"
)

// base is a file with an object of each kind, for tests to modify. Its buffer is baseBuffer.
const base = `{
  "asset": {"version": "2.0", "generator": "by hand"},
  "scene": 0,
  "scenes": [{"nodes": [0, 2]}],
  "nodes": [
    {"children": [1], "mesh": 0, "skin": 0},
    {"translation": [0, 1, 0]},
    {"camera": 0}
  ],
  "cameras": [{"type": "perspective", "perspective": {"yfov": 0.70, "znear": 1e-2}}],
  "meshes": [{
    "primitives": [{
      "attributes": {"POSITION": 0, "JOINTS_0": 4, "WEIGHTS_0": 5},
      "indices": 1, "material": 0,
      "targets": [{"POSITION": 7}]
    }],
    "weights": [0.5]
  }],
  "skins": [{"joints": [1], "inverseBindMatrices": 6}],
  "animations": [{
    "samplers": [{"input": 2, "output": 3}],
    "channels": [{"sampler": 0, "target": {"node": 0, "path": "weights"}}]
  }],
  "materials": [{"pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}, "normalTexture": {"index": 0}}],
  "textures": [{"source": 0, "sampler": 0}],
  "samplers": [{"magFilter": 9729}],
  "images": [{"uri": "cape.png"}],
  "accessors": [
    {"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3", "min": [0, 0, 0], "max": [1, 1, 0]},
    {"bufferView": 1, "componentType": 5123, "count": 3, "type": "SCALAR"},
    {"bufferView": 2, "componentType": 5126, "count": 2, "type": "SCALAR", "min": [0], "max": [1]},
    {"bufferView": 3, "componentType": 5126, "count": 2, "type": "SCALAR"},
    {"bufferView": 4, "componentType": 5121, "count": 3, "type": "VEC4"},
    {"bufferView": 5, "componentType": 5126, "count": 3, "type": "VEC4"},
    {"bufferView": 6, "componentType": 5126, "count": 1, "type": "MAT4"},
    {"componentType": 5126, "count": 3, "type": "VEC3", "max": [0, 0, 1], "min": [0, 0, 0.0], "sparse": {"count": 1,
      "indices": {"bufferView": 7, "componentType": 5121}, "values": {"bufferView": 8}}}
  ],
  "bufferViews": [
    {"buffer": 0, "byteLength": 36, "target": 34962},
    {"buffer": 0, "byteOffset": 36, "byteLength": 6},
    {"buffer": 0, "byteOffset": 44, "byteLength": 8},
    {"buffer": 0, "byteOffset": 52, "byteLength": 8},
    {"buffer": 0, "byteOffset": 60, "byteLength": 12},
    {"buffer": 0, "byteOffset": 72, "byteLength": 48},
    {"buffer": 0, "byteOffset": 120, "byteLength": 64},
    {"buffer": 0, "byteOffset": 184, "byteLength": 1},
    {"buffer": 0, "byteOffset": 188, "byteLength": 12}
  ],
  "buffers": [{"uri": "base.bin", "byteLength": 200}]
}`

func baseBuffer() []byte {
	b := make([]byte, 200)
	floats := func(at int, values ...float32) {
		for i, v := range values {
			binary.LittleEndian.PutUint32(b[at+4*i:], math.Float32bits(v))
		}
	}
	floats(0, 0, 0, 0, 1, 0, 0, 0, 1, 0)
	b[36], b[38], b[40] = 0, 1, 2
	floats(44, 0, 1)
	floats(52, 0, 1)
	floats(72, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0)
	floats(120, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1)
	b[184] = 2
	floats(188, 0, 0, 1)
	return b
}

// edit replaces old by new for each pair; each old must occur once.
func edit(t testing.TB, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if n := strings.Count(text, pairs[i]); n != 1 {
			t.Fatalf("%q is there %d times", pairs[i], n)
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return text
}

func read(t testing.TB, text string) *Document {
	t.Helper()
	d, err := Read([]byte(text), DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	return d
}
