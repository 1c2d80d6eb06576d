package gltf

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// pack packs JSON with buffers. It returns the JSON, a bar, and the binary chunk with dots for zeros.
func pack(t *testing.T, text string, drop map[int]bool, buffers ...string) string {
	t.Helper()
	var bytes [][]byte
	for _, b := range buffers {
		if b == "" {
			bytes = append(bytes, nil)
		} else {
			bytes = append(bytes, []byte(b))
		}
	}
	d := read(t, text)
	bin, err := Pack(d, bytes, drop)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s|%s", d.Root.AppendJSON(nil), strings.ReplaceAll(string(bin), "\x00", "."))
}

func TestPack(t *testing.T) {
	for _, c := range []struct {
		name, text string
		drop       map[int]bool
		buffers    []string
		want       string
	}{
		{"nothing", `{"asset":{}}`, nil, nil, `{"asset":{}}|`},
		{
			"two buffers",
			`{"bufferViews":[{"buffer":1,"byteLength":2},{"buffer":0,"byteOffset":1,"byteLength":3,"name":"n"}],
			  "buffers":[{"uri":"a.bin","byteLength":4,"name":"a"},{"uri":"b.bin","byteLength":2}]}`,
			nil, []string{"0123", "ab"},
			`{"bufferViews":[{"buffer":0,"byteLength":2,"byteOffset":16},{"buffer":0,"byteLength":3,"name":"n"}],` +
				`"buffers":[{"byteLength":18,"name":"a"}]}|123.............ab`,
		},
		{
			"views that overlap are copied once and keep their alignment",
			`{"bufferViews":[{"buffer":0,"byteOffset":6,"byteLength":4},{"buffer":0,"byteOffset":2,"byteLength":6},{"buffer":0,"byteOffset":2,"byteLength":1}],"buffers":[{"byteLength":10}]}`,
			nil, []string{"0123456789"},
			`{"bufferViews":[{"buffer":0,"byteOffset":6,"byteLength":4},{"buffer":0,"byteOffset":2,"byteLength":6},{"buffer":0,"byteOffset":2,"byteLength":1}],"buffers":[{"byteLength":10}]}|..23456789`,
		},
		{
			"dropped views are gone, all references renumbered, extras left alone",
			`{"extras":{"bufferView":2},"accessors":[{"bufferView":2,"sparse":{"indices":{"bufferView":1},"values":{"bufferView":2}}}],
			  "meshes":[{"extensions":{"KHR_draco_mesh_compression":{"bufferView":1}}}],
			  "bufferViews":[{"buffer":0,"byteLength":1},{"buffer":0,"byteOffset":1,"byteLength":1},{"buffer":0,"byteOffset":2,"byteLength":1}],"buffers":[{"byteLength":3}]}`,
			map[int]bool{0: true}, []string{"012"},
			`{"extras":{"bufferView":2},"accessors":[{"bufferView":1,"sparse":{"indices":{"bufferView":0},"values":{"bufferView":1}}}],` +
				`"meshes":[{"extensions":{"KHR_draco_mesh_compression":{"bufferView":0}}}],` +
				`"bufferViews":[{"buffer":0,"byteLength":1},{"buffer":0,"byteOffset":16,"byteLength":1}],"buffers":[{"byteLength":17}]}|1...............2`,
		},
		{
			"a view that is still in use stays",
			`{"accessors":[{"bufferView":0}],"bufferViews":[{"buffer":0,"byteLength":1}],"buffers":[{"byteLength":1}]}`,
			map[int]bool{0: true}, []string{"0"},
			`{"accessors":[{"bufferView":0}],"bufferViews":[{"buffer":0,"byteLength":1}],"buffers":[{"byteLength":1}]}|0`,
		},
		{
			"nothing is left",
			`{"bufferViews":[{"buffer":0,"byteLength":1}],"buffers":[{"byteLength":1}]}`,
			map[int]bool{0: true}, []string{"0"}, `{}|`,
		},
		{
			"no number changes beside an unknown extension",
			`{"extensions":{"ACME_fur":{"strands":1}},"bufferViews":[{"buffer":1,"byteOffset":1,"byteLength":2,"name":"n"},{"buffer":0,"byteLength":1}],"buffers":[{"byteLength":1},{"byteLength":3}]}`,
			map[int]bool{0: true}, []string{"a", "012"},
			`{"extensions":{"ACME_fur":{"strands":1}},"bufferViews":[{"buffer":0,"byteOffset":16,"byteLength":4},{"buffer":0,"byteLength":1}],"buffers":[{"byteLength":20}]}|a...................`,
		},
		{
			"meshopt: the compressed bytes are packed, the fallback stays without any",
			`{"bufferViews":[{"buffer":0,"byteOffset":8,"byteLength":8,"extensions":{"EXT_meshopt_compression":{"buffer":1,"byteOffset":1,"byteLength":2}}}],
			  "buffers":[{"byteLength":16,"extensions":{"EXT_meshopt_compression":{"fallback":true}}},{"uri":"c.bin","byteLength":3}]}`,
			nil, []string{"", "xyz"},
			`{"bufferViews":[{"buffer":1,"byteOffset":8,"byteLength":8,"extensions":{"EXT_meshopt_compression":{"buffer":0,"byteLength":2}}}],` +
				`"buffers":[{"byteLength":2},{"byteLength":16,"extensions":{"EXT_meshopt_compression":{"fallback":true}}}]}|yz`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := pack(t, c.text, c.drop, c.buffers...); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestPackRefusesMissingBytes(t *testing.T) {
	d := read(t, `{"bufferViews":[{"buffer":0,"byteLength":3}],"buffers":[{"byteLength":3}]}`)
	if _, err := Pack(d, [][]byte{[]byte("01")}, nil); err == nil || err.Error() != "buffer 0 has no byte 2" {
		t.Error(err)
	}
}

func TestImageUses(t *testing.T) {
	d := read(t, `{"images":[{},{},{},{}],
	  "textures":[{"source":0},{"source":1,"extensions":{"EXT_texture_webp":{"source":2}}}],
	  "materials":[{"pbrMetallicRoughness":{"baseColorTexture":{"index":0},"metallicRoughnessTexture":{"index":1}},
	    "extras":{"emissiveTexture":{"index":1}},
	    "extensions":{"KHR_materials_clearcoat":{"clearcoatNormalTexture":{"index":0}}}}]}`)
	want := "[baseColorTexture,clearcoatNormalTexture, ,,metallicRoughnessTexture ,,metallicRoughnessTexture ,,]"
	var uses []string
	for _, u := range d.ImageUses() {
		uses = append(uses, strings.Join([]string{u.Colours.Name, u.Directions.Name, u.Measures.Name}, ","))
	}
	if got := fmt.Sprint(uses); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// FuzzRead reads any data; see survive.
func FuzzRead(f *testing.F) {
	f.Add([]byte(base), baseBuffer(), uint8(0))
	glb, err := WriteGLB(read(f, base), [][]byte{baseBuffer()}, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(glb, []byte{}, uint8(3))
	f.Add([]byte(`{"asset":{"version":"2.0"},"extensions":{"ACME":{}},"images":[{"bufferView":0,"mimeType":""}],
	  "bufferViews":[{"buffer":0,"byteLength":1,"extensions":{"EXT_meshopt_compression":{"buffer":1,"byteLength":1}}}],
	  "buffers":[{"byteLength":9,"extensions":{"EXT_meshopt_compression":{"fallback":true}}},{"byteLength":1,"uri":"x"}]}`), []byte("0123"), uint8(1))
	lim := Limits{JSON: 1 << 20, Depth: 20, Values: 10_000, Data: 1 << 20}
	f.Fuzz(func(t *testing.T, data, buffer []byte, drop uint8) {
		survive(t, data, buffer, map[int]bool{int(drop & 15): true}, lim)
	})
}

// survive reads, validates, and packs files that are not broken; it reports whether it packed the file. The output is valid,
// and packing it again changes nothing.
func survive(t *testing.T, data, buffer []byte, drop map[int]bool, lim Limits) bool {
	t.Helper()
	doc, err := Read(data, lim)
	if err != nil {
		return false
	}
	list := doc.Root.Array("buffers")
	buffers := make([][]byte, len(list))
	for i, b := range list {
		switch {
		case b.Get("uri") == nil && i == 0:
			buffers[0] = doc.BIN
		case b.Get("uri") != nil:
			buffers[i] = buffer
		}
	}
	doc.ImageUses()
	if Validate(doc, buffers, lim).Broken {
		return false
	}
	out, err := WriteGLB(doc, buffers, drop)
	if err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	again, err := Read(out, DefaultLimits())
	if err != nil {
		t.Fatalf("%s becomes %q: %v", data, out, err)
	}
	buffers = make([][]byte, len(again.Root.Array("buffers")))
	if len(buffers) > 0 {
		buffers[0] = again.BIN
	}
	if r := Validate(again, buffers, DefaultLimits()); r.Broken {
		t.Fatalf("%s becomes %q: %q", data, out, texts(r))
	}
	second, err := WriteGLB(again, buffers, nil)
	if err != nil || string(second) != string(out) {
		t.Fatalf("%s becomes %q, then %q: %v", data, out, second, err)
	}
	return true
}

// TestMutations replaces each value of the base file, alone and in pairs, by invalid ones.
func TestMutations(t *testing.T) {
	wrong := []string{"null", "true", `"x"`, "[]", "{}", "[{}]", "[[0]]", "0", "1", "-1", "2", "3", "255", "5120", "0.5", "1e300",
		"2147483648", "4294967295", "9007199254740991", "9007199254740992", "18446744073709551616"}
	var values []*Value
	doc := read(t, base)
	doc.Root.Walk(func(v *Value) { values = append(values, v) })
	packed := 0
	// try replaces some values by others while it tests the file.
	try := func(at []*Value, with ...string) {
		var was []Value
		for i, v := range at {
			was = append(was, *v)
			*v = Value{Kind: Number, Text: with[i]} // written with its text unchanged
		}
		if survive(t, doc.Root.AppendJSON(nil), baseBuffer(), map[int]bool{8: true}, DefaultLimits()) {
			packed++
		}
		for i, v := range at {
			*v = was[i]
		}
	}
	for _, v := range values {
		for _, w := range wrong {
			try([]*Value{v}, w)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		a, b := values[r.IntN(len(values))], values[r.IntN(len(values))]
		if a.last >= b.first {
			continue // one is inside the other, or the pair was already tried
		}
		try([]*Value{a, b}, wrong[r.IntN(len(wrong))], wrong[r.IntN(len(wrong))])
	}
	if packed < 100 {
		t.Errorf("only %d files were good enough to be packed", packed)
	}
	t.Logf("%d files were packed", packed)
}
