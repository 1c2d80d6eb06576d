package texture

import (
	"bytes"
	"encoding/binary"
	"image/color"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/ktx2"
	"github.com/kiln-pipeline/kiln/internal/media/texture"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

// Finished textures of formats that Kiln does not decode go out as they are, if their structure is right and nothing is asked of them.
func TestForeign(t *testing.T) {
	own := processortest.Run(t, New(), processortest.Case{Files: map[string][]byte{"a.png": plain(t, 8, 8, color.NRGBA{200, 100, 50, 255})}, Asset: "a.png"}).Products[""].Data
	set := func(data []byte, more ...uint32) []byte {
		data = slices.Clone(data)
		for i := 0; i+1 < len(more); i += 2 {
			binary.LittleEndian.PutUint32(data[more[i]:], more[i+1])
		}
		return data
	}
	put := func(at, v uint32, more ...uint32) []byte { return set(set(own, at, v), more...) }
	const format, width, height, layers, faces, levels, scheme, descriptor, level0, unpacked0 = 12, 20, 24, 32, 36, 40, 44, 52, 88, 96
	basis := put(format, 0, scheme, 1, 64, 80, 72, 16) // the 16 bytes that all levels share may lie anywhere
	uastc := func(more ...uint32) []byte {             // blocks of 4 x 4 in 16 bytes, of the colour model 166, without a number in Vulkan
		data := put(format, 0, more...)
		at := binary.LittleEndian.Uint32(data[48:])
		copy(data[at+12:], []byte{166, 1, 2, 0, 3, 3, 0, 0, 16})
		return data
	}
	two := &ktx2.Texture{Format: ktx2.RGBA8SRGB, Width: 8, Height: 8, Layers: 2, Cube: true}
	for n := range 4 {
		two.Levels = append(two.Levels, bytes.Repeat([]byte{1, 2, 3, 255}, 2*6*(8>>n)*(8>>n)))
	}
	cubes, err := ktx2.Encode(two)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		data   []byte
		change func(*texture.Options)
		want   string // code of a warning; with "!" of an error
	}{
		{"ASTC HDR", put(format, 1000066000), nil, ""},
		{"PVRTC", put(format, 1000054000), nil, ""},
		{"signed numbers", put(format, 92), nil, ""},
		{"ZLIB", put(scheme, 3), nil, ""},
		{"BasisLZ", basis, nil, ""},
		{"BasisLZ cubes", set(basis, faces, 6, layers, 3), nil, ""},
		{"UASTC", uastc(), nil, ""},
		{"UASTC packed by Zstandard", uastc(scheme, 2), nil, ""},
		{"UASTC cube", uastc(faces, 6), nil, ""},
		{"UASTC cubes", uastc(faces, 6, layers, 2), nil, ""},
		{"UASTC cubes on a platform of a family", uastc(faces, 6, layers, 2), func(o *texture.Options) { o.Family = "astc" }, "K1231"},
		{"UASTC cubes to be flipped", uastc(faces, 6, layers, 2), func(o *texture.Options) { o.Flip = true }, "!K1205"},
		{"UASTC cut off", uastc()[:len(own)-1], nil, "!K1205"},
		{"signed numbers, cubes", put(format, 92, faces, 6, layers, 2), nil, ""},
		{"cubes that are not square", put(format, 92, faces, 6, height, 4), nil, "!K1205"},
		{"cubes with depth", put(format, 92, faces, 6, 28, 8), nil, "!K1205"},
		{"cubes", cubes, nil, ""}, // Kiln knows the format, but draws no arrays of cubes
		{"cubes to be made smaller", cubes, func(o *texture.Options) { o.MaxSize = 4 }, "!K1205"},
		{"cubes to be coded", cubes, func(o *texture.Options) { o.Format = "bc7" }, "!K1205"},
		{"BasisLZ without what it needs", put(format, 0, scheme, 1), nil, "!K1205"},
		{"on a platform of a family", put(format, 92), func(o *texture.Options) { o.Family = "bc" }, "K1231"},
		{"to be made smaller", put(format, 92), func(o *texture.Options) { o.MaxSize = 4 }, "!K1205"},
		{"to be coded", put(format, 92), func(o *texture.Options) { o.Format = "bc7" }, "!K1205"},
		{"as DDS", put(format, 92), func(o *texture.Options) { o.Container = "dds" }, "!K1205"},
		{"cut off", put(format, 92)[:len(own)-1], nil, "!K1205"},
		{"a level out of the file", put(format, 92, level0, 1<<30), nil, "!K1205"},
		{"a level that is none", put(format, 92, level0, 0), nil, "!K1205"},
		{"a level that claims too much", put(format, 0, scheme, 3, unpacked0+4, 1), nil, "!K1205"},
		{"two faces", put(format, 92, faces, 2), nil, "!K1204"},
		{"too many levels", put(format, 92, levels, 30), nil, "!K1205"},
		{"no descriptor", put(format, 92, descriptor, 4), nil, "!K1205"},
		{"too large", put(format, 92, width, 1<<20), nil, "!K1205"},
	} {
		c := processortest.Case{Files: map[string][]byte{"a.ktx2": tt.data}, Asset: "a.ktx2"}
		if tt.change != nil {
			c.Settings = settings(tt.change)
		}
		r := processortest.Run(t, New(), c)
		code, fails := strings.CutPrefix(tt.want, "!")
		switch ps := processortest.Problems(r.Err); {
		case fails && (len(ps) != 1 || ps[0].Code != code):
			t.Errorf("%s: %v", tt.name, r.Err)
		case !fails && (r.Err != nil || !bytes.Equal(r.Products[""].Data, tt.data)):
			t.Errorf("%s: %v, or other bytes", tt.name, r.Err)
		case !fails && (len(r.Warnings) > 0) != (code != "") || len(r.Warnings) > 0 && r.Warnings[0].Code != code:
			t.Errorf("%s: %v", tt.name, r.Warnings)
		}
	}
}
