package gltf

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"slices"
	"strings"
	"testing"

	codec "github.com/kiln-pipeline/kiln/internal/media/codec/gltf"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/internal/media/texture"
	textures "github.com/kiln-pipeline/kiln/internal/processors/texture"
	"github.com/kiln-pipeline/kiln/processor"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

var update = flag.Bool("update", false, "write the golden files")

const triangle = `{
  "asset": {"version": "2.0", "generator": "by hand"},
  "scene": 0,
  "scenes": [{"nodes": [0]}],
  "nodes": [{"mesh": 0, "extras": {"hit points": 1.50}}],
  "meshes": [{"primitives": [{"attributes": {"POSITION": 1}, "indices": 0, "material": 0}]}],
  "materials": [{"pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}, "emissiveTexture": {"index": 1}}],
  "textures": [{"source": 0}, {"source": 1}],
  "images": [{"uri": "../textures/red%20cape.png", "mimeType": "image/png"}, {"uri": "glow.png", "extras": {"by": "Ada"}}],
  "accessors": [
    {"bufferView": 0, "componentType": 5123, "count": 3, "type": "SCALAR"},
    {"bufferView": 1, "componentType": 5126, "count": 3, "type": "VEC3", "min": [0, 0, 0], "max": [1, 1, 0]}
  ],
  "bufferViews": [
    {"buffer": 1, "byteOffset": 2, "byteLength": 6, "target": 34963},
    {"buffer": 0, "byteLength": 36, "target": 34962}
  ],
  "buffers": [{"uri": "triangle.bin", "byteLength": 36}, {"uri": "data:application/octet-stream;base64,//8AAAEAAgA=", "byteLength": 8}]
}`

func positions() []byte {
	var b []byte
	for _, f := range []float32{0, 0, 0, 1, 0, 0, 0, 1, 0} {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return b
}

// triangleCase is a model with everything that it names in place.
func triangleCase(text string) processortest.Case {
	return processortest.Case{
		Asset: "models/triangle.gltf",
		Files: map[string][]byte{
			"models/triangle.gltf": []byte(text), "models/triangle.bin": positions(),
			"textures/red cape.png": {1}, "models/glow.png": {2},
		},
		Others: map[string][]processortest.OtherProduct{
			"textures/red cape.png": {
				{Product: processor.Product{Name: "preview", Type: "thumbnail", File: "textures/red cape.png.preview.jpg"}},
				{Product: processor.Product{Name: "big", Type: "texture", File: "textures/red cape.png.big.ktx2"}},
			},
			"models/glow.png": {{Product: processor.Product{Type: "file", File: "models/glow.png"}}},
		},
	}
}

func picture(c color.NRGBA) []byte {
	img := image.NewNRGBA(image.Rect(0, 0, 2, 2))
	for i := range 4 {
		img.SetNRGBA(i%2, i/2, c)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// embedded is a .glb with a triangle and four images, two of them in the binary chunk between what is of the mesh.
func embedded(t testing.TB) []byte {
	red, blue := picture(color.NRGBA{255, 0, 0, 255}), picture(color.NRGBA{0, 0, 255, 255})
	pad := func(b []byte) []byte { return append(b, make([]byte, -len(b)&3)...) }
	bin := pad(slices.Clone(red))
	at := []int{0, len(bin)}
	bin = append(bin, positions()...)
	at = append(at, len(bin))
	bin = append(bin, blue...)
	bin = pad(bin)
	o := texture.Defaults()
	o.Mips = false
	ready, err := texture.Encode(pixel.New(1, 1), o)
	if err != nil {
		t.Fatal(err)
	}
	uri := "data:image/png;base64," + base64.StdEncoding.EncodeToString(red)
	text := fmt.Sprintf(`{
	  "asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}], "nodes": [{"mesh": 0}],
	  "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "material": 0}]}],
	  "materials": [{"pbrMetallicRoughness": {"baseColorTexture": {"index": 0}, "metallicRoughnessTexture": {"index": 2}},
	    "normalTexture": {"index": 1}, "emissiveTexture": {"index": 2}}],
	  "textures": [{"source": 0}, {"source": 1}, {"source": 2}],
	  "images": [
	    {"name": "Red Cape.png", "bufferView": 0, "mimeType": "image/png"},
	    {"bufferView": 2, "mimeType": "image/png"},
	    {"name": "red cape", "uri": %q, "extras": 7},
	    {"uri": "data:image/ktx2;base64,%s"}],
	  "accessors": [{"bufferView": 1, "componentType": 5126, "count": 3, "type": "VEC3", "min": [0, 0, 0], "max": [1, 1, 0]}],
	  "bufferViews": [
	    {"buffer": 0, "byteOffset": %d, "byteLength": %d},
	    {"buffer": 0, "byteOffset": %d, "byteLength": 36},
	    {"buffer": 0, "byteOffset": %d, "byteLength": %d}],
	  "buffers": [{"byteLength": %d}]}`,
		uri, base64.StdEncoding.EncodeToString(ready), at[0], len(red), at[1], at[2], len(blue), len(bin))
	d, err := codec.Read([]byte(text), codec.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	glb, err := codec.AppendGLB(nil, d.Root, bin)
	if err != nil {
		t.Fatal(err)
	}
	return glb
}

func embeddedCase(t testing.TB) processortest.Case {
	return processortest.Case{
		Asset: "models/knight.glb", Files: map[string][]byte{"models/knight.glb": embedded(t)},
		Processors: []processor.Processor{textures.New()},
	}
}

// describe puts all that a job did into text.
func describe(t testing.TB, r processortest.Result) []byte {
	t.Helper()
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	var b bytes.Buffer
	for _, o := range r.Observations {
		fmt.Fprintln(&b, "observed", o)
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "warning %s %v (%s)\n", w.Code, &w, w.Hint)
	}
	var names []string
	for name := range r.Products {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		p := r.Products[name]
		fmt.Fprintf(&b, "\nproduct %q %s %s\n", p.Name, p.Type, p.Extension)
		for _, ref := range p.References {
			fmt.Fprintf(&b, "  needs %s %d required=%t\n", ref.UUID, ref.SubID, ref.Required)
		}
		if p.Type != modelType {
			// Byte 12 of a KTX2 is Vulkan's format: 37 is linear, 43 sRGB. The last pixel stands at the end.
			fmt.Fprintf(&b, "  format %d, pixel %x\n", p.Data[12], p.Data[len(p.Data)-4:])
			continue
		}
		d, err := codec.Read(p.Data, codec.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range d.Root.Names {
			fmt.Fprintf(&b, "  %s: %s\n", name, d.Root.Items[i].AppendJSON(nil))
		}
		b.WriteString(hex.Dump(d.BIN))
	}
	return b.Bytes()
}

func TestGoldens(t *testing.T) {
	for name, c := range map[string]processortest.Case{"triangle": triangleCase(triangle), "embedded": embeddedCase(t)} {
		t.Run(name, func(t *testing.T) {
			r := processortest.Run(t, New(), c)
			processortest.Golden(t, "testdata/"+name+".txt", describe(t, r), *update)
			checkProduct(t, r)
		})
	}
}

func TestSettingsOfTextures(t *testing.T) {
	c := embeddedCase(t)
	c.Settings = &Settings{Validate: "strict", Textures: map[string]any{"max_size": 1, "container": "dds", "mips": false}}
	r := processortest.Run(t, New(), c)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	p := r.Products["red-cape"]
	// A DDS header with the DX10 part, and one pixel.
	if p.Extension != ".dds" || len(p.Data) != 148+4 {
		t.Errorf("%s of %d bytes", p.Extension, len(p.Data))
	}
	d, err := codec.Read(r.Products[""].Data, codec.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	img := d.Root.Array("images")[0]
	if img.Str("uri") != "knight.glb.red-cape.dds" || img.Str("mimeType") != "image/vnd-ms.dds" {
		t.Errorf("%s", img.AppendJSON(nil))
	}
}

// lines puts problems into text: code, place, length, text, hint.
func lines(problems []*processor.Problem) []string {
	var all []string
	for _, p := range problems {
		all = append(all, fmt.Sprintf("%s %d:%d+%d %s | %s", p.Code, p.Line, p.Column, p.Length, p.Text, p.Hint))
	}
	return all
}

const versionHint = "export the model as glTF 2.0; where only the file is left, `npx gltf-pipeline -i old.glb -o new.glb` converts glTF 1.0"

func TestErrors(t *testing.T) {
	const resolveHint = "name a file in the project by its path from the model, with forward slashes; write % as %25, # as %23 and ? as %3F"
	bin := `"uri": "triangle.bin"`
	hostile := func(uri, why string) (string, []string) {
		return strings.Replace(triangle, bin, `"uri": `+uri, 1),
			[]string{fmt.Sprintf("K1414 18:23+%d /buffers/0/uri: %s | %s", len(uri), why, resolveHint)}
	}
	type test struct {
		name, text string
		want       []string
	}
	cases := []test{
		{"empty", "", []string{`K1402 0:0+0 the file is empty | export the model again; the file was cut off or changed on its way`}},
		{"no JSON", "{\n \"asset\": }", []string{`K1401 2:11+1 "}" stands where a value should be | fix the JSON here, or export the model again`}},
		{"deep nesting", `{"extras":` + strings.Repeat("[", 5000), []string{`K1403 1:110+1 values are nested more than 100 levels deep | split the model`}},
		{"truncated container", "glTF\x02\x00\x00\x00\x00\x01\x00\x00\x04\x00\x00\x00JSON{}  ",
			[]string{`K1402 0:0+0 the file is cut off: its header says 256 bytes, there are 24 | export the model again; the file was cut off or changed on its way`}},
		{"version", `{"asset": {"version": "1.1"}}`, []string{`K1404 1:23+5 /asset/version: the file is glTF 1.1; only 2.x can be read | ` + versionHint}},
		{"property", strings.Replace(triangle, `"count": 3, "type": "SCALAR"`, `"type": "SCALAR"`, 1),
			[]string{`K1405 11:5+1 /accessors/0: "count" is missing | ` + exportHint}},
		{"index", strings.Replace(triangle, `"mesh": 0`, `"mesh": 1`, 1),
			[]string{`K1406 5:22+1 /nodes/0/mesh: mesh 1 does not exist; the file has 1 mesh | ` + exportHint}},
		{"bounds", strings.Replace(triangle, `"count": 3, "type": "VEC3"`, `"count": 4, "type": "VEC3"`, 1),
			[]string{`K1407 12:5+1 /accessors/1: bufferView 1 has 36 bytes, too few for 4 elements from byte 0 on | export the model again; the file and its buffers do not belong together, or a buffer was cut off`}},
		{"layout", strings.Replace(triangle, `"byteOffset": 2, "byteLength": 6`, `"byteOffset": 1, "byteLength": 6, "byteStride": 1.5`, 1),
			[]string{`K1408 15:67+3 /bufferViews/0/byteStride: "byteStride" should be a multiple of 4 from 4 to 252, not 1.5 | ` + exportHint}},
		{"cycle", strings.Replace(triangle, `{"mesh": 0,`, `{"children": [0], "mesh": 0,`, 1),
			[]string{`K1409 5:27+1 /nodes/0/children/0: the nodes have a cycle: 0 > 0 | ` + exportHint}},
		{"mesh", strings.Replace(triangle, `"indices": 0`, `"indices": 1`, 1),
			[]string{`K1410 6:73+1 /meshes/0/primitives/0/indices: indices should be SCALAR, not VEC3 | ` + exportHint}},
		{"skin", strings.Replace(triangle, `"scene": 0,`, `"skins": [{"joints": [0, 0]}], "scene": 0,`, 1),
			[]string{`K1411 3:28+1 /skins/0/joints/1: joint 0 is there twice | ` + exportHint}},
		{"data", strings.Replace(triangle, `//8AAAEAAgA=`, `//8*`, 1),
			[]string{`K1413 18:66+43 /buffers/1/uri: the data: URI is not decodable: illegal base64 data at input byte 3 | ` + exportHint}},
		{"case", strings.Replace(triangle, bin, `"uri": "../Models/Triangle.BIN"`, 1),
			[]string{`K1415 18:23+24 /buffers/0/uri: file "Models/Triangle.BIN" does not exist | there is "models/triangle.bin"; upper and lower case must be the same`}},
		{"slip", strings.Replace(triangle, `"uri": "glow.png"`, `"uri": "glwo.png"`, 1),
			[]string{`K1415 9:86+10 /images/1/uri: file "models/glwo.png" does not exist | did you mean "glow.png"?`}},
		{"nowhere", strings.Replace(triangle, bin, `"uri": "elsewhere%5b1%5d.data"`, 1),
			[]string{`K1415 18:23+23 /buffers/0/uri: file "models/elsewhere[1].data" does not exist | put the file there, or correct the path; it is taken from the model's folder, "models"`}},
		{"several", strings.NewReplacer(bin, `"uri": "a.bin"`, "glow.png", "http://x/y.png", `"scene": 0`, `"scene": 5`).Replace(triangle),
			[]string{`K1415 18:23+7 /buffers/0/uri: file "models/a.bin" does not exist | put the file there, or correct the path; it is taken from the model's folder, "models"`,
				`K1406 3:12+1 /scene: scene 5 does not exist; the file has 1 scene | ` + exportHint,
				`K1414 9:86+16 /images/1/uri: URI "http://x/y.png" is not relative | ` + resolveHint}},
		{"many", strings.Replace(triangle, `[{"nodes": [0]}]`, `[{"nodes": [`+strings.Repeat("7,", 21)+`0]}]`, 1),
			append(slices.Repeat([]string{"K1406"}, 20), "K1418 0:0+0 not shown: 1 more | they are often the same; fix those above first")},
	}
	for uri, why := range map[string]string{
		`"/etc/passwd"`:             `path "/etc/passwd" is absolute`,
		`"file:///etc/passwd"`:      `URI "file:///etc/passwd" is not relative`,
		`"https://evil.example/x"`:  `URI "https://evil.example/x" is not relative`,
		`"//evil.example/x"`:        `URI "//evil.example/x" is not relative`,
		`"../../../etc/passwd"`:     `path "../../../etc/passwd" leads out of the source roots`,
		`"%2e%2e/%2e%2e/x"`:         `path "../../x" leads out of the source roots`,
		`"C:/x"`:                    `URI "C:/x" is not relative`,
		`"x.bin?y"`:                 `URI "x.bin?y" has a query or a fragment`,
		`""`:                        `path "" is empty`,
		`"a%00.bin"`:                `path "a\x00.bin" has a control character`,
		`"sub%5Cx.bin"`:             `path "sub\\x.bin" has a backslash; use forward slashes`,
		`"..%5c..%5c..%5cx.bin"`:    `path "..\\..\\..\\x.bin" has a backslash; use forward slashes`,
		`"%zz"`:                     `"%zz" is not a URI: parse "%zz": invalid URL escape "%zz"`,
		`"javascript:alert(1)"`:     `URI "javascript:alert(1)" is not relative`,
		`"\\\\server\\share\\x"`:    `path "\\\\server\\share\\x" has a backslash; use forward slashes`,
		`"a/../../../textures/../"`: `path "a/../../../textures/../" leads out of the source roots`,
	} {
		text, want := hostile(uri, why)
		cases = append(cases, test{uri, text, want})
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := processortest.Run(t, New(), triangleCase(c.text))
			got := lines(processortest.Problems(r.Err))
			if c.name == "many" {
				for i := range got[:min(20, len(got))] {
					got[i] = got[i][:5]
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

func TestImageErrors(t *testing.T) {
	c := triangleCase(triangle)
	c.Others["models/glow.png"] = nil
	want := []string{`K1417 9:78+1 /images/1: image "models/glow.png" makes no product | give it a processor that makes a texture`}
	if got := lines(processortest.Problems(processortest.Run(t, New(), c).Err)); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	delete(c.Others, "models/glow.png")
	want = []string{`K1417 9:78+1 /images/1: image "models/glow.png" is not an asset | ` +
		`an image file that a model names must be an asset of its own: not ignored, and in no folder that is one asset`}
	if got := lines(processortest.Problems(processortest.Run(t, New(), c).Err)); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	// Both embedded images that cannot be read are told of.
	c = triangleCase(strings.NewReplacer("../textures/red%20cape.png", "data:,no", "glow.png", "data:,nay").Replace(triangle))
	got := lines(processortest.Problems(processortest.Run(t, New(), c).Err))
	if len(got) != 2 || !strings.HasPrefix(got[0], "K1202 9:14+") || !strings.Contains(got[1], " image 1: not an image of a known format | ") {
		t.Errorf("got %q", got)
	}
}

func TestWarnings(t *testing.T) {
	text := strings.NewReplacer(`"scene": 0,`, `"scene": 0, "extensionsUsed": ["ACME_fur"], "extensionsRequired": ["ACME_fur"],`,
		`, "min": [0, 0, 0]`, ``).Replace(triangle)
	extension := `K1412 3:70+10 /extensionsRequired/0: extension "ACME_fur" is required and not known here; it goes into the product unchecked | ` +
		`make sure that the game's loader knows this extension`
	bounds := `K1410 12:5+1 /accessors/1: the accessor is used for positions, so it needs "min" and "max" | `
	c := triangleCase(text)
	r := processortest.Run(t, New(), c)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	var warnings []*processor.Problem
	for _, w := range r.Warnings {
		warnings = append(warnings, &w)
	}
	if got, want := lines(warnings), []string{extension, bounds + exportHint}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	c.Settings = &Settings{Validate: "strict"}
	r = processortest.Run(t, New(), c)
	if got, want := lines(processortest.Problems(r.Err)), []string{bounds + warnHint}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLimits(t *testing.T) {
	p := proc{limits: codec.Limits{JSON: 4000, Depth: 20, Values: 1000, Data: 40}}
	for name, c := range map[string]struct{ text, want string }{
		"file":    {strings.Repeat(" ", 5000), "K1403 0:0+0 the file is over the limit of 4040 bytes | split the model"},
		"buffer":  {strings.Replace(triangle, "triangle.bin", "triangle.gltf", 1), "K1403 18:23+15 /buffers/0/uri: the buffers have more than 40 bytes together | split the model"},
		"buffers": {triangle, "K1413 18:66+51 /buffers/1/uri: the data: URI holds more than 4 bytes | " + exportHint},
	} {
		t.Run(name, func(t *testing.T) {
			got := lines(processortest.Problems(processortest.Run(t, p, triangleCase(c.text)).Err))
			if len(got) == 0 || got[0] != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestNames(t *testing.T) {
	m := &model{names: map[string]bool{}}
	for i, c := range [][2]string{
		{"Red Cape.PNG", "red-cape"}, {"red-cape", "red-cape-2"}, {"red-cape-2", "red-cape-2-2"}, {"", "image3"}, {"äöü", "image4"}, {"image3", "image3-2"},
		{"../../etc/passwd", "etc-passwd"}, {strings.Repeat("x", 100), strings.Repeat("x", 64)}, {"a_B9", "a_b9"},
	} {
		if got := m.productName(i, c[0]); got != c[1] {
			t.Errorf("%q becomes %q, want %q", c[0], got, c[1])
		}
	}
}

func TestRelative(t *testing.T) {
	for _, c := range [][3]string{
		{".", "a.ktx2", "a.ktx2"}, {".", "t/a b.ktx2", "t/a%20b.ktx2"}, {"m", "m/a.ktx2", "a.ktx2"}, {"m/n", "m/a.ktx2", "../a.ktx2"},
		{"m/n", "t/a.ktx2", "../../t/a.ktx2"}, {"m", "mm/a.ktx2", "../mm/a.ktx2"}, {".", "a:b#c%.ktx2", "./a:b%23c%25.ktx2"},
	} {
		if got := relative(c[0], c[1]); got != c[2] {
			t.Errorf("%s from %s: got %q, want %q", c[1], c[0], got, c[2])
		}
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if r := processortest.RunContext(t, ctx, New(), embeddedCase(t)); !errors.Is(r.Err, context.Canceled) {
		t.Error(r.Err)
	}
}

// grey16 is a picture of 16 bits a channel, whose lower bits count.
func grey16() []byte {
	m := image.NewGray16(image.Rect(0, 0, 8, 8))
	for i := range 64 {
		m.SetGray16(i%8, i/8, color.Gray16{uint16(0x8000 + i)})
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// TestInsideAsFiles: an image inside a model becomes what it would be as a file that is for the same, bit for bit.
func TestInsideAsFiles(t *testing.T) {
	for slot, use := range map[string]string{
		`"normalTexture": {"index": 0}`: "normal", `"occlusionTexture": {"index": 0}`: "mask", `"emissiveTexture": {"index": 0}`: "color",
		`"extensions": {"KHR_materials_clearcoat": {"clearcoatNormalTexture": {"index": 0}}}`: "normal",
		`"extensions": {"KHR_materials_sheen": {"sheenColorTexture": {"index": 0}}}`:          "color",
		`"extensions": {"KHR_materials_volume": {"thicknessTexture": {"index": 0}}}`:          "mask", `"name": "of none"`: "data",
	} {
		for name, picture := range map[string][]byte{"8 bits": picture(color.NRGBA{100, 200, 255, 90}), "16 bits": grey16()} {
			for _, family := range []string{"none", "bc", "etc2", "astc"} {
				text := fmt.Sprintf(`{"asset": {"version": "2.0"}, "materials": [{%s}], "textures": [{"source": 0}],
					"images": [{"name": "Tables_LUT", "uri": "data:image/png;base64,%s"}]}`, slot, base64.StdEncoding.EncodeToString(picture))
				model := processortest.Run(t, New(), processortest.Case{
					Asset: "a.gltf", Files: map[string][]byte{"a.gltf": []byte(text)}, Processors: []processor.Processor{textures.New()},
					Settings: &Settings{Validate: "warn", Images: "textures", Textures: map[string]any{"family": family}},
				})
				o := texture.Defaults()
				o.Use, o.Family = use, family
				file := processortest.Run(t, textures.New(), processortest.Case{Asset: "a.png", Files: map[string][]byte{"a.png": picture}, Settings: &o})
				if model.Err != nil || file.Err != nil {
					t.Fatal(model.Err, file.Err)
				}
				if !bytes.Equal(model.Products["tables_lut"].Data, file.Products[""].Data) {
					t.Errorf("%s of %s with family %s is not what a file for %q becomes", slot, name, family, use)
				}
			}
		}
	}
}

// TestKeep: images stay inside, and the model with all its views is as it was.
func TestKeep(t *testing.T) {
	c := embeddedCase(t)
	c.Processors = nil
	c.Settings = &Settings{Validate: "warn", Images: "keep"}
	r := processortest.Run(t, New(), c)
	if r.Err != nil || len(r.Products) != 1 || len(r.Warnings) > 0 {
		t.Fatalf("%v, %d products, %v", r.Err, len(r.Products), r.Warnings)
	}
	was, _ := codec.Read(embedded(t), codec.DefaultLimits())
	is, err := codec.Read(r.Products[""].Data, codec.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	for i, image := range is.Root.Array("images") {
		if got, want := image.AppendJSON(nil), was.Root.Array("images")[i].AppendJSON(nil); !bytes.Equal(got, want) {
			t.Errorf("image %d is %s, not %s", i, got, want)
		}
	}
	red := picture(color.NRGBA{255, 0, 0, 255})
	if !bytes.Contains(is.BIN, red) {
		t.Error("the picture is not in the buffer")
	}
}
