package header

import (
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/atlas"
	"github.com/kiln-pipeline/kiln/internal/media/codec/dds"
	"github.com/kiln-pipeline/kiln/internal/media/codec/gltf"
	"github.com/kiln-pipeline/kiln/internal/media/codec/ktx2"
)

func must(t *testing.T) func([]byte, error) []byte {
	return func(b []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
}

func TestDescribe(t *testing.T) {
	ok := must(t)
	doc, err := gltf.Read([]byte(`{"asset":{"version":"2.0"},"meshes":[{"primitives":[]},{"primitives":[]}],"nodes":[{}]}`), gltf.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file string
		data []byte
		want string
	}{
		{"a.png.ktx2", ok(ktx2.Encode(&ktx2.Texture{Format: ktx2.RGBA8SRGB, Width: 2, Height: 1, Levels: [][]byte{make([]byte, 8), make([]byte, 4)}, Premultiplied: true})),
			"KTX2, 2 x 1, RGBA8 sRGB, 2 mip levels, premultiplied"},
		{"a.DDS", ok(dds.Encode(&dds.Texture{Format: dds.R8, Width: 1, Height: 1, Levels: [][]byte{{7}}})), "DDS, 1 x 1, R8, no mips"},
		{"sky.ktx2", ok(ktx2.Encode(&ktx2.Texture{Format: ktx2.BC7SRGB, Width: 4, Height: 4, Cube: true, Layers: 2, Zstd: true, Swizzle: "rgb1",
			Levels: [][]byte{make([]byte, 16*12)}})), "KTX2, 4 x 4, BC7 sRGB, cube, array of 2, no mips, Zstandard, sampled as rgb1"},
		{"fog.ktx2", ok(ktx2.Encode(&ktx2.Texture{Format: ktx2.ASTC(8, 5, false), Width: 8, Height: 5, Depth: 3, BottomUp: true,
			Levels: [][]byte{make([]byte, 16*3)}})), "KTX2, 8 x 5 x 3, ASTC 8x5, no mips, bottom row first"},
		{"fog.dds", ok(dds.Encode(&dds.Texture{Format: dds.BC6H, Width: 4, Height: 4, Depth: 2, Alpha: dds.AlphaPremultiplied,
			Levels: [][]byte{make([]byte, 32), make([]byte, 16)}})), "DDS, 4 x 4 x 2, BC6H, 2 mip levels, premultiplied"},
		{"tiles.dds", ok(dds.Encode(&dds.Texture{Format: dds.BC1, Width: 4, Height: 4, Layers: 3, Levels: [][]byte{make([]byte, 24)}})),
			"DDS, 4 x 4, BC1, array of 3, no mips"},
		{"ui.atlas", ok(atlas.Write(&atlas.Table{Pages: []atlas.Page{{File: "ui.0.ktx2", SubID: 9, Width: 16, Height: 8}},
			Frames: []atlas.Frame{{Name: "a", W: 4, H: 4, SourceW: 4, SourceH: 4}}})), "atlas, 1 frame, 1 page, ui.0.ktx2 16 x 8"},
		{"m.glb", ok(gltf.AppendGLB(nil, doc.Root, nil)), "glTF binary, 1 node, 2 meshes"},
		{"x.ogg", []byte("anything"), ""},
	} {
		got, err := Describe(c.file, c.data)
		if err != nil || got != c.want {
			t.Errorf("%s: got %q, %v; want %q", c.file, got, err, c.want)
		}
		if Known(c.file) != (c.want != "") {
			t.Errorf("Known(%q) is wrong", c.file)
		}
		if c.want == "" {
			continue
		}
		if _, err := Describe(c.file, c.data[:len(c.data)/2]); err == nil {
			t.Errorf("%s: half of it is taken for whole", c.file)
		}
	}
}

func FuzzDescribe(f *testing.F) {
	for _, name := range []string{"a.ktx2", "a.dds", "a.atlas", "a.glb"} {
		f.Add(name, []byte("glTF\x02\x00\x00\x00"))
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) { Describe(name, data) })
}
