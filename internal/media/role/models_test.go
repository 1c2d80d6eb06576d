package role

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/processor"
)

// model is a glTF with materials that use images: "slot=uri", where the slot may be in an object: "pbrMetallicRoughness.baseColorTexture".
func model(uses ...string) []byte {
	var images, textures, materials []string
	for i, use := range uses {
		slot, uri, _ := strings.Cut(use, "=")
		images = append(images, fmt.Sprintf(`{"uri":%q}`, uri))
		textures = append(textures, fmt.Sprintf(`{"source":%d}`, i))
		info := fmt.Sprintf(`{"index":%d}`, i)
		for _, name := range slices.Backward(strings.Split(slot, ".")) {
			info = fmt.Sprintf(`{%q:%s}`, name, info)
		}
		if slot != "" {
			materials = append(materials, info)
		}
	}
	return fmt.Appendf(nil, `{"asset":{"version":"2.0"},"buffers":[{"uri":"mesh%%201.bin","byteLength":4},{"byteLength":4}],`+
		`"images":[%s],"textures":[%s],"materials":[%s]}`, strings.Join(images, ","), strings.Join(textures, ","), strings.Join(materials, ","))
}

// binaryOf puts JSON into a .glb, with a binary part that is cut off.
func binaryOf(text []byte) []byte {
	text = append(text, bytes.Repeat([]byte(" "), -len(text)&3)...)
	b := binary.LittleEndian.AppendUint32([]byte("glTF"), 2)
	b = binary.LittleEndian.AppendUint32(b, uint32(12+8+len(text)+8+4))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(text)))
	b = append(append(b, "JSON"...), text...)
	return append(binary.LittleEndian.AppendUint32(b, 4), "BIN\x00"...)
}

// slots are the places of materials in which images have one purpose, by the specification and its extensions.
var slots = map[Purpose][]string{
	Colours: {"pbrMetallicRoughness.baseColorTexture", "emissiveTexture", "extensions.KHR_materials_pbrSpecularGlossiness.diffuseTexture",
		"extensions.KHR_materials_pbrSpecularGlossiness.specularGlossinessTexture", "extensions.KHR_materials_sheen.sheenColorTexture",
		"extensions.KHR_materials_specular.specularColorTexture"},
	Directions: {"normalTexture", "extensions.KHR_materials_clearcoat.clearcoatNormalTexture"},
	Measures: {"pbrMetallicRoughness.metallicRoughnessTexture", "occlusionTexture", "extensions.KHR_materials_clearcoat.clearcoatTexture",
		"extensions.KHR_materials_transmission.transmissionTexture", "extensions.KHR_materials_sheen.sheenRoughnessTexture",
		"extensions.KHR_materials_specular.specularTexture"},
}

// TestUsedBy: what the slot of a material is for decides, whatever the image is named, as text and as a .glb.
func TestUsedBy(t *testing.T) {
	names := []string{"Avocado_baseColor.png", "Avocado_normal.png", "Avocado_roughnessMetallic.png", "Default_AO.jpg", "image%200.png",
		"wall_n.png"}
	for purpose, list := range slots {
		for _, slot := range list {
			for _, name := range names {
				text := model(slot + "=../textures/" + name)
				for _, data := range [][]byte{text, binaryOf(text)} {
					used := UsedBy("a/models/x.gltf", bytes.NewReader(data), int64(len(data)))
					want := Used{File: "a/textures/" + strings.ReplaceAll(name, "%20", " "), Image: true}
					want.For[purpose] = true
					if len(used) != 2 || used[0] != (Used{File: "a/models/mesh 1.bin", Buffer: true}) || used[1] != want {
						t.Errorf("%s of %s: %+v", slot, name, used)
					}
					if p, ok := used[1].Purpose(); !ok || p != purpose {
						t.Errorf("%s is for %v, %v", slot, p, ok)
					}
					if !Uses("a/models/x.glb", bytes.NewReader(data), int64(len(data)), want.File, "") {
						t.Errorf("%s is not used", want.File)
					}
				}
			}
		}
	}
}

func TestUsedByMany(t *testing.T) {
	uuid := "01234567-89ab-cdef-0123-456789abcdef"
	data := model("normalTexture=a.png", "emissiveTexture=a.png", "=b.png", "occlusionTexture=uuid:"+uuid,
		"occlusionTexture=data:image/png;base64,AA", "occlusionTexture=http://a/b.png", "occlusionTexture=../../c.png",
		"normalTexture=d.png", "normalTexture=d.png")
	got := map[string]string{}
	for _, u := range UsedBy("m/x.gltf", bytes.NewReader(data), int64(len(data))) {
		p, ok := u.Purpose()
		got[u.File] = fmt.Sprint(u.For, p.Use(), ok)
	}
	want := map[string]string{
		"m/mesh 1.bin": "[false false false]colorfalse", "m/a.png": "[true true false]colorfalse", "m/b.png": "[false false false]colorfalse",
		processor.ByUUID(uuid): "[false false true]masktrue", "m/d.png": "[false true false]normaltrue",
	}
	if !maps.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for file, want := range map[string]bool{"m/a.png": true, "m/b.png": false, "m/e.png": false, "a.png": false} {
		if got := Uses("m/x.gltf", bytes.NewReader(data), int64(len(data)), file, ""); got != want {
			t.Errorf("%s: %v", file, got)
		}
	}
	if !Uses("m/x.gltf", bytes.NewReader(data), int64(len(data)), "elsewhere.png", uuid) {
		t.Error("the UUID is not found")
	}
}

func TestServedBy(t *testing.T) {
	for p, want := range map[Purpose]string{Colours: "color ui hdr", Directions: "normal", Measures: "mask data"} {
		var serve []string
		for _, use := range All {
			if p.ServedBy(use) {
				serve = append(serve, use)
			}
		}
		if got := strings.Fields(want); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(serve))) || !p.ServedBy(p.Use()) {
			t.Errorf("%v is served by %q", p, serve)
		}
	}
}

// FuzzUsedBy: no file is a reason to panic, and the short way agrees with the long one.
func FuzzUsedBy(f *testing.F) {
	f.Add(model("normalTexture=a.png"))
	f.Add(binaryOf(model("normalTexture=a.png")))
	f.Add([]byte("glTF"))
	f.Add([]byte(`{"images":[0,{"uri":1}],"buffers":{},"textures":[[]],"materials":[{"normalTexture":{"index":0}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, u := range UsedBy("a/b.gltf", bytes.NewReader(data), int64(len(data))) {
			used := u.For != [Purposes]bool{}
			if got := Uses("a/b.gltf", bytes.NewReader(data), int64(len(data)), u.File, ""); got != used && !bytes.Contains(data, []byte("\\")) &&
				!bytes.Contains(data, []byte("%")) {
				t.Errorf("%+v, but Uses is %v", u, got)
			}
		}
	})
}
