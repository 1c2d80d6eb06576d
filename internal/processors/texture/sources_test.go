package texture

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/internal/media/texture"
	"github.com/kiln-pipeline/kiln/processor"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

// plain is a PNG of one colour.
func plain(t testing.TB, w, h int, c color.NRGBA) []byte {
	t.Helper()
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for i := 0; i < len(m.Pix); i += 4 {
		copy(m.Pix[i:], []byte{c.R, c.G, c.B, c.A})
	}
	return pngFile(t, m)
}

func grey(t testing.TB, side int, v byte) []byte {
	return plain(t, side, side, color.NRGBA{v, v, v, 255})
}

// opened is the main product.
func opened(t testing.TB, r processortest.Result) *texture.File {
	t.Helper()
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	f, err := texture.Open(r.Products[""].Data, pixel.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// first is the first pixel of an image.
func first(t testing.TB, f *texture.File, level, layer, face, slice int) [4]byte {
	t.Helper()
	p, err := f.Picture(level, layer, face, slice)
	if err != nil {
		t.Fatal(err)
	}
	return [4]byte(p.Bits(true).Pix)
}

func TestChannels(t *testing.T) {
	files := map[string][]byte{
		"rocks/stone_orm.png": plain(t, 4, 4, color.NRGBA{1, 2, 3, 255}),
		"rocks/rough.png":     grey(t, 4, 100),
		"shared/metal.png":    plain(t, 4, 4, color.NRGBA{5, 6, 7, 200}),
	}
	r := processortest.Run(t, New(), processortest.Case{Files: files, Asset: "rocks/stone_orm.png",
		Settings: settings(func(o *texture.Options) { o.G, o.B, o.A = "rough.png", "../shared/metal.png:a", "rough.png:g" })})
	f := opened(t, r)
	if got := first(t, f, 0, 0, 0, 0); got != [4]byte{1, 100, 200, 100} || f.Format != "RGBA8" {
		t.Errorf("%v of %s", got, f.Format)
	}
	want := []string{"file rocks/stone_orm.png", "file rocks/rough.png", "file shared/metal.png", "file rocks/rough.png"}
	if !slices.Equal(r.Observations, want) {
		t.Errorf("saw %q", r.Observations)
	}
}

func TestCubes(t *testing.T) {
	names := []string{"px", "nx", "py", "ny", "pz", "nz"}
	files := map[string][]byte{}
	for i, n := range names {
		files["sky/sky_"+n+".png"] = grey(t, 8, byte(10*i))
	}
	check := func(what string, r processortest.Result) {
		t.Helper()
		f := opened(t, r)
		if f.Shape != texture.Cube || f.Width != 8 || f.Levels != 4 {
			t.Fatalf("%s: %+v", what, f)
		}
		for i := range 6 {
			if got := first(t, f, 0, 0, i, 0)[0]; got != byte(10*i) {
				t.Errorf("%s: face %d is %d", what, i, got)
			}
		}
	}
	run := func(asset string, change func(*texture.Options)) processortest.Result {
		return processortest.Run(t, New(), processortest.Case{Files: files, Asset: asset, Settings: settings(change)})
	}
	r := run("sky/sky_px.png", func(o *texture.Options) { o.Cube = "faces" })
	check("by name", r)
	if len(r.Observations) != 6 || r.Observations[5] != "file sky/sky_nz.png" {
		t.Errorf("saw %q", r.Observations)
	}
	check("by another face's name", run("sky/sky_ny.png", func(o *texture.Options) { o.Cube = "faces" }))
	check("listed", run("sky/sky_px.png", func(o *texture.Options) {
		o.Cube = "faces"
		for _, n := range names {
			o.Faces = append(o.Faces, "sky_"+n+".png")
		}
	}))
	cross := image.NewNRGBA(image.Rect(0, 0, 32, 24))
	for i, at := range [][2]int{{2, 1}, {0, 1}, {1, 0}, {1, 2}, {1, 1}, {3, 1}} {
		for y := range 8 {
			for x := range 8 {
				cross.SetNRGBA(8*at[0]+x, 8*at[1]+y, color.NRGBA{byte(10 * i), 0, 0, 255})
			}
		}
	}
	files["sky/cross.png"] = pngFile(t, cross)
	check("cross", run("sky/cross.png", func(o *texture.Options) { o.Cube = "cross" }))
	files["sky/all.png"] = plain(t, 32, 16, color.NRGBA{100, 150, 200, 255})
	f := opened(t, run("sky/all.png", func(o *texture.Options) { o.Cube = "equirect" }))
	if got := first(t, f, 3, 0, 5, 0); f.Shape != texture.Cube || f.Width != 8 || got != [4]byte{100, 150, 200, 255} {
		t.Errorf("equirect: %+v, %v", f, got)
	}
}

func TestLayersAndSlices(t *testing.T) {
	files := map[string][]byte{
		"g[1]/grass.png": grey(t, 4, 10), "g[1]/rock_b.png": grey(t, 4, 30), "g[1]/rock_a.png": grey(t, 4, 20),
		"g[1]/strip.png": plain(t, 8, 2, color.NRGBA{50, 60, 70, 255}),
	}
	run := func(asset string, change func(*texture.Options)) *texture.File {
		t.Helper()
		return opened(t, processortest.Run(t, New(), processortest.Case{Files: files, Asset: asset, Settings: settings(change)}))
	}
	f := run("g[1]/grass.png", func(o *texture.Options) { o.Layers = []string{"grass.png", "rock_*.png"} })
	if f.Shape != texture.Array || f.Layers != 3 || f.Levels != 3 {
		t.Fatalf("%+v", f)
	}
	for i := range 3 {
		if got := first(t, f, 2, i, 0, 0)[1]; got != byte(10*i+10) {
			t.Errorf("layer %d is %d", i, got)
		}
	}
	f = run("g[1]/grass.png", func(o *texture.Options) { o.Slices, o.SRGB = []string{"grass.png", "rock_a.png"}, false })
	if f.Shape != texture.Volume || f.Depth != 2 || first(t, f, 0, 0, 0, 1)[0] != 20 || first(t, f, 1, 0, 0, 0)[0] != 15 {
		t.Errorf("%+v", f)
	}
	f = run("g[1]/strip.png", func(o *texture.Options) { o.SliceCount = 4 })
	if f.Shape != texture.Volume || f.Depth != 4 || f.Width != 2 || f.Height != 2 {
		t.Errorf("%+v", f)
	}
}

func TestFrames(t *testing.T) {
	g := gif.GIF{}
	for i := range 3 {
		c := color.NRGBA{byte(50 * i), 9, 9, 255}
		g.Image, g.Delay = append(g.Image, image.NewPaletted(image.Rect(0, 0, 8, 4), color.Palette{c})), append(g.Delay, 5)
	}
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, &g); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"walk.gif": b.Bytes(), "still.png": grey(t, 4, 7)}
	run := func(asset, frames string) *texture.File {
		t.Helper()
		return opened(t, processortest.Run(t, New(), processortest.Case{Files: files, Asset: asset,
			Settings: settings(func(o *texture.Options) { o.Frames = frames })}))
	}
	f := run("walk.gif", "array")
	if f.Shape != texture.Array || f.Layers != 3 || f.Width != 8 || f.Levels != 4 {
		t.Fatalf("%+v", f)
	}
	for i := range 3 {
		if got := first(t, f, 0, i, 0, 0); got != [4]byte{byte(50 * i), 9, 9, 255} {
			t.Errorf("layer %d is %v", i, got)
		}
	}
	if f = run("walk.gif", "first"); f.Shape != texture.Flat || first(t, f, 0, 0, 0, 0)[0] != 0 {
		t.Errorf("%+v", f)
	}
	if f = run("still.png", "array"); f.Shape != texture.Array || f.Layers != 1 {
		t.Errorf("%+v", f)
	}
}

func TestSourceProblems(t *testing.T) {
	files := map[string][]byte{"d/a.png": grey(t, 4, 1), "d/b.png": grey(t, 8, 1), "d/broken.png": []byte("x"), "d/a_px.png": grey(t, 4, 1), "d/wide.png": plain(t, 8, 6, color.NRGBA{})}
	for _, tt := range []struct {
		asset  string
		change func(*texture.Options)
		code   string
		text   string
	}{
		{"d/a.png", func(o *texture.Options) { o.R = "none.png" }, "K1209", `r: "d/none.png" does not exist`},
		{"d/a.png", func(o *texture.Options) { o.R = "../../none.png" }, "K1209", "leads out of the source roots"},
		{"d/a.png", func(o *texture.Options) { o.Layers = []string{"x*.png"} }, "K1209", `layers: no file matches "x*.png"`},
		{"d/a.png", func(o *texture.Options) { o.Layers = []string{"["} }, "K1209", "layers: "},
		{"d/a.png", func(o *texture.Options) { o.Cube = "faces" }, "K1209", `cube: "a.png" does not end in the name of a face`},
		{"d/a_px.png", func(o *texture.Options) { o.Cube = "faces" }, "K1209", `faces: "d/a_nx.png" does not exist`},
		{"d/a.png", func(o *texture.Options) { o.Cube, o.Faces = "faces", []string{"a.png"} }, "K1210", "faces names 1 pictures"},
		{"d/a.png", func(o *texture.Options) { o.Cube = "cross" }, "K1210", "4 x 4 pixels is not a cross"},
		{"d/a.png", func(o *texture.Options) { o.Cube = "equirect" }, "K1210", "4 x 4 pixels does not show all directions"},
		{"d/wide.png", func(o *texture.Options) { o.SliceCount = 3 }, "K1210", "8 x 6 pixels cannot be cut into 3 slices"},
		{"d/a.png", func(o *texture.Options) { o.G = "b.png" }, "K1210", `g: "d/b.png" has 8 x 8 pixels`},
		{"d/a.png", func(o *texture.Options) { o.Layers = []string{"a.png", "b.png"} }, "K1210", `layers: "d/b.png" has 8 x 8 pixels`},
		{"d/a.png", func(o *texture.Options) { o.Layers, o.R = []string{"a.png"}, "b.png" }, "K1211", "r, g, b, a and layers cannot be together"},
		{"d/a.png", func(o *texture.Options) { o.Layers, o.Frames = []string{"a.png"}, "array" }, "K1211", "layers and frames cannot be together"},
		{"d/broken.png", func(o *texture.Options) { o.Frames = "array" }, "K1202", "not an image"},
		{"d/a.png", func(o *texture.Options) { o.ColorKey = "red" }, "K1211", `color_key "red"`},
		{"d/a.png", func(o *texture.Options) { o.Layers = []string{"broken.png"} }, "K1202", "not an image"},
		{"d/b.png", func(o *texture.Options) { o.MaxPixels = 63 }, "K1206", "over the limit"},
	} {
		r := processortest.Run(t, New(), processortest.Case{Files: files, Asset: tt.asset, Settings: settings(tt.change)})
		ps := processortest.Problems(r.Err)
		if len(ps) != 1 || ps[0].Code != tt.code || !strings.Contains(ps[0].Text, tt.text) || ps[0].Hint == "" {
			t.Errorf("%s: %v", tt.text, r.Err)
		}
	}
}

// A texture file is kept as it is, put into another container, or coded anew.
func TestTextureFiles(t *testing.T) {
	m := picture()
	square := image.NewNRGBA(image.Rect(0, 0, 8, 8))
	for i := range square.Pix {
		square.Pix[i] = m.Pix[i%len(m.Pix)] | 0x0f
	}
	run := func(asset string, data []byte, change func(*texture.Options)) processortest.Result {
		return processortest.Run(t, New(), processortest.Case{Files: map[string][]byte{asset: data}, Asset: asset, Settings: settings(change)})
	}
	bc7 := run("a.png", pngFile(t, square), func(o *texture.Options) { o.Format = "bc7" }).Products[""].Data
	if r := run("a.ktx2", bc7, func(*texture.Options) {}); r.Err != nil || !bytes.Equal(r.Products[""].Data, bc7) || len(r.Warnings) > 0 {
		t.Errorf("kept: %v %v", r.Err, r.Warnings)
	}
	dds := run("a.ktx2", bc7, func(o *texture.Options) { o.Container = "dds" })
	if f := opened(t, dds); f.Container != "dds" || f.Format != "BC7 sRGB" || f.Levels != 4 || dds.Products[""].Extension != ".dds" {
		t.Errorf("repacked: %+v", f)
	}
	etc := run("a.dds", dds.Products[""].Data, func(o *texture.Options) { o.Family, o.MaxSize = "etc2", 4 })
	if f := opened(t, etc); f.Format != "ETC2 RGBA sRGB" || f.Width != 4 || f.Levels != 3 {
		t.Errorf("coded anew: %+v", f)
	}
	again := run("a.ktx2", bc7, func(o *texture.Options) { o.Format = "rgba8" })
	want, _ := opened(t, run("a.ktx2", bc7, func(*texture.Options) {})).Picture(0, 0, 0, 0)
	got, _ := opened(t, again).Picture(0, 0, 0, 0)
	if !bytes.Equal(got.Eight.Pix, want.Eight.Pix) {
		t.Error("decoded pixels differ")
	}
	// Every shape comes through.
	for _, tt := range []struct {
		change func(*texture.Options)
		want   texture.Shape
	}{
		{func(o *texture.Options) { o.Layers = []string{"a.png", "a.png"} }, texture.Array},
		{func(o *texture.Options) { o.SliceCount = 2 }, texture.Volume},
		{func(o *texture.Options) {
			o.Cube, o.Faces = "faces", []string{"a.png", "a.png", "a.png", "a.png", "a.png", "a.png"}
		}, texture.Cube},
	} {
		file := run("a.png", pngFile(t, square), tt.change).Products[""].Data
		old, f := opened(t, run("a.ktx2", file, func(*texture.Options) {})), opened(t, run("a.ktx2", file, func(o *texture.Options) { o.Format = "etc2a" }))
		if f.Shape != tt.want || f.Format != "ETC2 RGBA sRGB" || f.Layers != old.Layers || f.Depth != old.Depth || f.Faces != old.Faces || f.Levels != old.Levels {
			t.Errorf("%+v became %+v", old, f)
		}
	}
	for _, tt := range []struct {
		data []byte
		code string
	}{{bc7[:40], "K1203"}, {bc7[:len(bc7)-1], "K1203"}} {
		r := run("a.ktx2", tt.data, func(*texture.Options) {})
		if ps := processortest.Problems(r.Err); len(ps) != 1 || ps[0].Code != tt.code {
			t.Errorf("%d bytes: %v", len(tt.data), r.Err)
		}
	}
}

func TestGuess(t *testing.T) {
	p := New().(processor.Guesser)
	for _, tt := range []struct {
		file   string
		change func(*texture.Options)
		want   string
	}{
		{"a/stone_n.png", func(*texture.Options) {}, "use normal _n"},
		{"a/alone_n.png", func(*texture.Options) {}, "use color "},
		{"a/stone.png", func(*texture.Options) {}, "use color "},
		{"a/stone.png", func(o *texture.Options) { o.R = "x.png" }, "use mask "},
		{"a/stone_n.png", func(o *texture.Options) { o.Use = "color" }, "  "},
	} {
		g := p.Guess(tt.file, []string{"a/stone.png", "a/stone_n.png", "a/alone_n.png"}, settings(tt.change))
		if got := g.Setting + " " + g.Value + " " + g.Because; got != tt.want {
			t.Errorf("%s: %q, want %q", tt.file, got, tt.want)
		}
	}
}

// What a name says decides; a picture that contradicts it is reported, unless a model uses it.
func TestUseByName(t *testing.T) {
	normal, orm := plain(t, 8, 8, color.NRGBA{128, 128, 255, 255}), plain(t, 8, 8, color.NRGBA{90, 140, 60, 255})
	model := func(slot, uri string) string {
		return `{"asset":{"version":"2.0"},"images":[{"uri":"` + uri + `"}],"textures":[{"source":0}],"materials":[{` + slot + `{"index":0}}]}`
	}
	unused := strings.ReplaceAll(model(`"normalTexture":`, "a_normal.png"), `"materials"`, `"extras"`)
	for _, tt := range []struct {
		name, beside, model string // names of other files; where the model is, and its text
		format              string
		data                []byte
		warning             string
	}{
		{"a_n.png", "a.png", "", "BC5", normal, ""},
		{"a_n.png", "a.png", "", "BC5", orm, `named "_n" like a normal map`},
		{"a_n.png", "b/a.png", "", "BC7 sRGB", orm, ""},
		{"a_n.png", "", "", "BC7 sRGB", normal, `named "_n" like a normal map, which its pixels confirm`},
		{"a_normal.png", "", "", "BC5", orm, `named "_normal" like a normal map`},
		{"a_normal.png", "a_hover.png", "", "BC7 sRGB", orm, ""},
		{"a_orm.png", "", "", "BC7", orm, ""},
		{"a_roughnessMetallic.png", "", "", "BC7", orm, ""},
		{"a_rough.png", "", "", "BC4", grey(t, 8, 90), ""},
		{"a_rough.png", "", "", "BC7", orm, `named "_rough" like a mask`},
		{"a_lut.png", "", "", "RGBA8", orm, ""},
		{"a.png", "", "", "BC7 sRGB", orm, ""},
		{"m/t/a_rough.png", "", "m/m.gltf " + model(`"occlusionTexture":`, "t/a_rough.png"), "BC7", orm, ""},
		{"m/t/a_rough.png", "", "n/m.gltf " + model(`"emissiveTexture":`, "../m/t/a_rough.png"), "BC7", orm, ""},
		{"m/t/a_rough.png", "", "n/m.gltf " + model(`"emissiveTexture":`, "../m/u/a_rough.png"), "BC7", orm, `named "_rough" like a mask`},
		{"m/t/a b_rough.png", "", "m/m.glb " + model(`"occlusionTexture":`, "t/a%20b_rough.png"), "BC7", orm, ""},
		{"a_normal.png", "", "m.gltf " + unused, "BC5", orm, `named "_normal" like a normal map`},
		{"a_normal.png", "", "m.gltf {", "BC5", orm, `named "_normal" like a normal map`},
	} {
		files := map[string][]byte{tt.name: tt.data}
		for _, name := range strings.Fields(tt.beside) {
			files[name] = tt.data
		}
		if name, text, ok := strings.Cut(tt.model, " "); ok {
			files[name] = []byte(text)
		}
		r := processortest.Run(t, New(), processortest.Case{Files: files, Asset: tt.name,
			Settings: settings(func(o *texture.Options) { o.Family = "bc" })})
		said := ""
		for _, w := range r.Warnings {
			said += w.Text
		}
		if f := opened(t, r); f.Format != tt.format || !strings.HasPrefix(said, tt.warning) || tt.warning == "" && said != "" {
			t.Errorf("%s beside %q and %q: %s, %q", tt.name, tt.beside, tt.model, f.Format, said)
		}
	}
}

// chunk adds a chunk to a PNG, behind its head.
func chunk(file []byte, name string, data []byte) []byte {
	var b bytes.Buffer
	b.Write(file[:33]) // signature and head
	binary.Write(&b, binary.BigEndian, uint32(len(data)))
	body := append([]byte(name), data...)
	b.Write(body)
	binary.Write(&b, binary.BigEndian, crc32.ChecksumIEEE(body))
	b.Write(file[33:])
	return b.Bytes()
}

// Colours of another space are told of, where they are colours; light that a gamma tells is encoded.
func TestColourSpaces(t *testing.T) {
	p3 := chunk(grey(t, 4, 90), "cICP", []byte{12, 13, 0, 1})
	linear := chunk(grey(t, 4, 128), "gAMA", []byte{0, 1, 0x86, 0xa0}) // 100000: the numbers are light
	for _, tt := range []struct {
		name    string
		data    []byte
		warning string
		want    byte
	}{
		{"a.png", p3, "K1216 its colours are of Display P3", 90}, {"a_rough.png", p3, "", 90},
		{"a.png", linear, "", 188}, {"a_rough.png", linear, "", 128},
	} {
		r := processortest.Run(t, New(), processortest.Case{Files: map[string][]byte{tt.name: tt.data}, Asset: tt.name})
		said := ""
		for _, w := range r.Warnings {
			said += w.Code + " " + w.Text
		}
		if got := first(t, opened(t, r), 0, 0, 0, 0)[0]; got != tt.want || !strings.HasPrefix(said, tt.warning) || tt.warning == "" && said != "" {
			t.Errorf("%s: %d, %q", tt.name, got, said)
		}
	}
}

// What is damaged and can be read all the same is built, with a warning.
func TestFixed(t *testing.T) {
	data := plain(t, 8, 8, color.NRGBA{200, 100, 50, 255})
	text := append([]byte{0, 0, 0, 1}, "tEXtx\x00\x00\x00\x00"...) // a checksum of zeros
	data = slices.Concat(data[:33], text, data[33:])
	r := processortest.Run(t, New(), processortest.Case{Files: map[string][]byte{"a.png": data}, Asset: "a.png"})
	opened(t, r)
	if len(r.Warnings) != 1 || r.Warnings[0].Code != "K1230" || !strings.Contains(r.Warnings[0].Text, "tEXt") || r.Warnings[0].Hint == "" {
		t.Errorf("%+v", r.Warnings)
	}
}

// The best quality is Kiln's own encoder: no program that happens to be installed has a say in the bytes.
func TestNoTools(t *testing.T) {
	c := processortest.Case{Files: map[string][]byte{"a.png": plain(t, 13, 9, color.NRGBA{200, 100, 50, 255})}, Asset: "a.png",
		Tools: map[string]string{"astcenc": "/bin/false"}}
	for _, format := range []string{"astc6x6", "bc7", "etc2a"} {
		c.Settings = settings(func(o *texture.Options) { o.Format, o.Quality = format, "best" })
		r := processortest.Run(t, New(), c)
		opened(t, r)
		for _, o := range r.Observations {
			if strings.HasPrefix(o, "tool ") {
				t.Errorf("%s: saw %q", format, o)
			}
		}
	}
}

var _ processor.Processor = proc{}
