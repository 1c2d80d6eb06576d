package gltf

import (
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/internal/media/texture"
	"github.com/kiln-pipeline/kiln/processor"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

// spaced is a texture as the texture processor makes it.
func spaced(t *testing.T, change func(*texture.Options)) []processortest.OtherProduct {
	t.Helper()
	o := texture.Defaults()
	change(&o)
	data, err := texture.Encode(pixel.New(1024, 4), o)
	if err != nil {
		t.Fatal(err)
	}
	return []processortest.OtherProduct{{Product: processor.Product{Type: "texture", File: "x" + o.Extension()}, Data: data}}
}

// Materials take an image file for colours or for measures; its texture is what its name and its rules say.
func TestSpaces(t *testing.T) {
	srgb := func(o *texture.Options) {}
	linear := func(o *texture.Options) { o.SRGB = false }
	dds := func(o *texture.Options) { o.Container = "dds" }
	bc7 := func(o *texture.Options) { o.Use, o.Format = "mask", "bc7" }
	etc := func(o *texture.Options) { o.Format, o.Compress = "etc2a", "zstd" }
	half := func(o *texture.Options) { o.Format, o.SRGB = "rgba16f", false }
	normal := `K1430 normalTexture takes "models/wall[1].png" for directions, which are linear, but its texture is sRGB | ` +
		`write a rule: match = "models/wall\\[1\\].png", settings = { use = "normal" }`
	mask := `K1430 occlusionTexture takes "models/wall[1].png" for measures, which are linear, but its texture is sRGB | ` +
		`write a rule: match = "models/wall\\[1\\].png", settings = { use = "mask" }`
	colour := `K1430 baseColorTexture takes "models/wall[1].png" for colours, which are sRGB, but its texture is linear | ` +
		`write a rule: match = "models/wall\\[1\\].png", settings = { use = "color", srgb = true }`
	both := `K1416 image "models/wall[1].png" is taken by baseColorTexture for colours, which are sRGB, and by normalTexture for directions, ` +
		`which are linear; its texture is linear | use two images`
	for _, tt := range []struct {
		material string
		o        func(*texture.Options)
		want     string
	}{
		{`"normalTexture": {"index": 0}`, srgb, normal}, {`"normalTexture": {"index": 0}`, linear, ""},
		{`"occlusionTexture": {"index": 0}`, srgb, mask}, {`"occlusionTexture": {"index": 0}`, bc7, ""},
		{`"occlusionTexture": {"index": 0}`, dds, mask}, {`"occlusionTexture": {"index": 0}`, etc, mask},
		{`"pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}`, srgb, ""}, {`"pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}`, linear, colour},
		{`"pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}`, half, ""}, {`"pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}`, dds, ""},
		{`"pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}, "normalTexture": {"index": 1}`, bc7, both}, // two images, one file
		{`"name": "of none"`, srgb, ""},
	} {
		text := `{"asset": {"version": "2.0"},
			"materials": [{` + tt.material + `}],
			"textures": [{"source": 0}, {"source": 1}], "images": [{"uri": "wall%5B1%5D.png"}, {"uri": "wall%5B1%5D.png"}]}`
		r := processortest.Run(t, New(), processortest.Case{
			Asset: "models/a.gltf", Files: map[string][]byte{"models/a.gltf": []byte(text), "models/wall[1].png": {1}},
			Others: map[string][]processortest.OtherProduct{"models/wall[1].png": spaced(t, tt.o)},
		})
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		var got []string
		for _, w := range r.Warnings {
			if w.Line < 2 {
				t.Errorf("%s: warned of line %d", tt.material, w.Line)
			}
			_, said, _ := strings.Cut(w.Text, " ")
			got = append(got, w.Code+" "+said+" | "+w.Hint)
		}
		want := []string{tt.want}
		if tt.want == "" {
			want = nil
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\ngot  %q\nwant %q", tt.material, got, want)
		}
		if slices.ContainsFunc(r.Observations, func(o string) bool { return strings.HasPrefix(o, "product models/") }) {
			t.Errorf("the model itself saw the texture's bytes: %q", r.Observations)
		}
	}
}
