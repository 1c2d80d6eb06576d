package processors

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/image/font/gofont/goregular"

	"github.com/kiln-pipeline/kiln/internal/media/codec/atlas"
	"github.com/kiln-pipeline/kiln/internal/media/codec/dds"
	"github.com/kiln-pipeline/kiln/internal/media/codec/gltf"
	"github.com/kiln-pipeline/kiln/internal/media/codec/ktx2"
	"github.com/kiln-pipeline/kiln/internal/media/placeholder"
	"github.com/kiln-pipeline/kiln/internal/media/sound"
	"github.com/kiln-pipeline/kiln/internal/media/soundfile"
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
	doc, err := gltf.Read([]byte(`{"asset":{"version":"2.0"},"meshes":[{"primitives":[]},{"primitives":[]}],"nodes":[{}]}`),
		gltf.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file string
		data []byte
		want string
	}{
		{"a.png.ktx2", ok(ktx2.Encode(&ktx2.Texture{Format: ktx2.RGBA8SRGB, Width: 2, Height: 1,
			Levels: [][]byte{make([]byte, 8), make([]byte, 4)}, Premultiplied: true})),
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
		{"a.png", placeholder.Picture(), "PNG, 64 x 64"},
		{"a.wav", placeholder.WAV(), "PCM of 16 bits, 1 channel, 48000 Hz, 0.100 s"},
		{"a.gltf", placeholder.GLTF(), "glTF text, 1 scene, 1 node, 1 mesh, 1 material"},
		{"a.json", []byte(`{"a": 1, "b": [2]}`), "JSON, an object of 2 members"},
		{"a.csv", []byte("a,b\n1,\"2\"\n"), "CSV, a list of 1 value"},
		{"a.ogg", placeholder.Vorbis(), "Vorbis, 1 channel, 48000 Hz, 0.100 s"},
		{"a.opus", placeholder.Opus(), "Opus, 1 channel, 48000 Hz, 0.100 s"},
		{"a.mp3", placeholder.MP3(), "MP3, 1 channel, 48000 Hz, 0.100 s"},
		{"a.ttf", goregular.TTF, "font, Go Regular, 712 glyphs"},
		{"spine.atlas", []byte("page.png\nsize: 4,4\nhead\n"), "text, 3 lines"},
		{"a.wav.qoa", sounds(t), "QOA, 2 channels, 48000 Hz, 0.021 s, loop 10 to 900, 1 marker, gain -3.25 dB"},
		{"x.mid", []byte("anything"), ""},
	} {
		got, err := Describe(c.file, c.data)
		if err != nil || got != c.want {
			t.Errorf("%s: got %q, %v; want %q", c.file, got, err, c.want)
		}
		if CanDescribe(c.file) != (c.want != "") {
			t.Errorf("CanDescribe(%q) is wrong", c.file)
		}
		if c.want == "" || strings.HasPrefix(c.want, "text") {
			continue
		}
		if _, err := Describe(c.file, c.data[:min(len(c.data)/2, 20)]); err == nil {
			t.Errorf("%s: half of it is taken for whole", c.file)
		}
	}
}

// sounds is a QOA file.
func sounds(t *testing.T) []byte {
	o := soundfile.Output{Frames: 1000, Notes: &soundfile.Notes{Gain: -3.25, Loops: []soundfile.Loop{{Begin: 10, End: 900}}, Markers: []soundfile.Marker{{Name: "a"}}}}
	var b bytes.Buffer
	if err := o.QOA(&b, sound.Samples(sound.Format{Rate: 48000, Channels: 2}, make([]float32, 2000))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func FuzzDescribe(f *testing.F) {
	f.Add("a.ogg", placeholder.Vorbis()[:300])
	f.Add("a.opus", placeholder.Opus())
	f.Add("a.mp3", placeholder.MP3())
	f.Add("a.ttf", goregular.TTF[:4000])
	f.Add("a.flac", []byte("fLaC\x00\x00\x00\x22"))
	f.Add("a.png", placeholder.Picture()[:200])
	for _, name := range []string{"a.ktx2", "a.dds", "a.atlas", "a.glb", "a.wav", "a.ogg", "a.mp3", "a.qoa", "a.flac"} {
		f.Add(name, []byte("glTF\x02\x00\x00\x00"))
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) { Describe(name, data) })
}
