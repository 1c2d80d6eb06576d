package gltf

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestBaseIsValid(t *testing.T) {
	r := Validate(read(t, base), [][]byte{baseBuffer()}, DefaultLimits())
	if r.Broken || r.More > 0 || len(r.Findings) > 0 {
		t.Fatal(r.Findings)
	}
}

func texts(r Report) []string {
	var all []string
	for _, f := range r.Findings {
		all = append(all, f.Error())
	}
	return all
}

func TestFindings(t *testing.T) {
	ramp := func(n int) string { return strings.TrimSuffix(strings.Repeat("1,", n), ",") }
	cases := []struct {
		name  string
		level Level
		edits []string
		want  []string
	}{
		{"version 1", Broken, []string{`"version": "2.0"`, `"version": "1.0"`},
			[]string{"/asset/version: the file is glTF 1.0; only 2.x can be read"}},
		{"no version", Broken, []string{`"version": "2.0", `, ``},
			[]string{`/asset: "version" is missing, so this is not glTF 2.0`}},
		{"no asset", Broken, []string{`"asset": {"version": "2.0", "generator": "by hand"},`, ``},
			[]string{`"asset" is missing, so this is not glTF 2.0`}},
		{"minVersion", Broken, []string{`"version": "2.0",`, `"version": "2.1", "minVersion": "2.1",`},
			[]string{"/asset/minVersion: the file requires a reader of glTF 2.1; Kiln reads 2.0"}},
		{"nodes are no array", Broken, []string{`"cameras": [{"type": "perspective", "perspective": {"yfov": 0.70, "znear": 1e-2}}]`, `"cameras": {}`},
			[]string{`/cameras: "cameras" should be an array, not an object`, "/nodes/2/camera: camera 0 does not exist; the file has 0 cameras"}},
		{"sampler is not an object", Broken, []string{`[{"magFilter": 9729}]`, `[7]`},
			[]string{`/samplers/0: an item of "samplers" should be an object, not a number`}},
		{"sampler value", Loadable, []string{`9729`, `1`},
			[]string{`/samplers/0/magFilter: "magFilter" should be one of 9728, 9729, not 1`}},
		{"empty array", Loadable, []string{`"samplers": [{"magFilter": 9729}]`, `"samplers": []`, `, "sampler": 0}]`, `}]`},
			[]string{`/samplers: "samplers" is empty; leave it out instead`}},

		{"scene", Broken, []string{`"scene": 0`, `"scene": 1`}, []string{"/scene: scene 1 does not exist; the file has 1 scene"}},
		{"scene node", Broken, []string{`[0, 2]`, `[0, 3]`}, []string{"/scenes/0/nodes/1: node 3 does not exist; the file has 3 nodes"}},
		{"scene no root", Loadable, []string{`[0, 2]`, `[0, 1]`}, []string{"/scenes/0/nodes/1: node 1 is not a root: it is a child of node 0"}},
		{"scene node twice", Loadable, []string{`[0, 2]`, `[0, 0]`}, []string{"/scenes/0/nodes/1: node 0 is there twice"}},
		{"child", Broken, []string{`"children": [1]`, `"children": [1, -1]`},
			[]string{"/nodes/0/children/1: the index of a node should be an integer from 0, not -1"}},
		{"no children", Loadable, []string{`"camera": 0}`, `"camera": 0, "children": []}`},
			[]string{`/nodes/2/children: "children" is empty; leave it out instead`}},
		{"child twice", Broken, []string{`"children": [1]`, `"children": [1, 1]`}, []string{"/nodes/0/children/1: node 1 is there twice"}},
		{"two parents", Broken, []string{`"camera": 0}`, `"camera": 0, "children": [1]}`},
			[]string{"/nodes/2/children/0: node 1 has two parents, nodes 0 and 2"}},
		{"cycle", Broken, []string{`[0, 2]`, `[2]`, `"translation": [0, 1, 0]`, `"children": [0]`},
			[]string{"/nodes/1/children/0: the nodes have a cycle: 0 > 1 > 0"}},
		{"own child", Broken, []string{`[0, 2]`, `[0]`, `"camera": 0}`, `"camera": 0, "children": [2]}`},
			[]string{"/nodes/2/children/0: the nodes have a cycle: 2 > 2"}},
		{"mesh", Broken, []string{`"mesh": 0`, `"mesh": 4`}, []string{"/nodes/0/mesh: mesh 4 does not exist; the file has 1 mesh"}},
		{"camera", Broken, []string{`"camera": 0`, `"camera": "a"`},
			[]string{`/nodes/2/camera: the index of a camera should be an integer from 0, not "a"`}},
		{"camera without projection", Broken, []string{`"perspective": {"yfov": 0.70, "znear": 1e-2}`, `"name": "c"`},
			[]string{`/cameras/0: "perspective" is missing`}},
		{"camera type", Loadable, []string{`"type": "perspective"`, `"type": "fisheye"`},
			[]string{`/cameras/0/type: "type" should be one of perspective, orthographic, not "fisheye"`}},
		{"skin", Broken, []string{`"skin": 0`, `"skin": 1`}, []string{"/nodes/0/skin: skin 1 does not exist; the file has 1 skin"}},
		{"skin without mesh", Loadable, []string{`"camera": 0}`, `"camera": 0, "skin": 0}`},
			[]string{"/nodes/2/skin: the node has a skin, but no mesh"}},
		{"translation", Broken, []string{`[0, 1, 0]`, `[0, 1]`}, []string{`/nodes/1/translation: "translation" should have 3 numbers, not 2`}},
		{"translation too large", Broken, []string{`[0, 1, 0]`, `[0, 1e39, 0]`},
			[]string{`/nodes/1/translation/1: "translation" has the number 1e39, which is too large for a float`}},
		{"translation of strings", Broken, []string{`[0, 1, 0]`, `[0, "x", 0]`}, []string{`/nodes/1/translation/1: "translation" should have numbers, not a string`}},
		{"matrix and translation", Loadable, []string{`[0, 1, 0]`, `[0, 1, 0], "matrix": [` + ramp(16) + `]`},
			[]string{"/nodes/1/translation: the node has a matrix and a translation; it should have one or the other"}},
		{"node weights", Broken, []string{`"mesh": 0`, `"mesh": 0, "weights": [0, 1]`}, []string{"/nodes/0/weights: there should be 1 weight as there are morph targets, not 2"}},
	}
	run := func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				r := Validate(read(t, edit(t, base, c.edits...)), [][]byte{baseBuffer()}, DefaultLimits())
				if got := texts(r); !slices.Equal(got, c.want) {
					t.Errorf("got  %q\nwant %q", got, c.want)
				}
				if len(r.Findings) > 0 && r.Findings[len(r.Findings)-1].Level != c.level {
					t.Errorf("level %d, want %d", r.Findings[len(r.Findings)-1].Level, c.level)
				}
				if r.Broken != (c.level == Broken) {
					t.Errorf("broken is %t", r.Broken)
				}
			})
		}
	}
	t.Run("scene", run)

	cases = cases[:0]
	add := func(name string, level Level, want string, edits ...string) {
		cases = append(cases, struct {
			name  string
			level Level
			edits []string
			want  []string
		}{name, level, edits, strings.Split(want, "\n")})
	}
	add("material", Broken, "/meshes/0/primitives/0/material: material 3 does not exist; the file has 1 material", `"material": 0`, `"material": 3`)
	add("mode", Broken, "/meshes/0/primitives/0/mode: the mode should be an integer from 0 to 6, not 7", `"material": 0`, `"mode": 7`)
	add("no attributes", Broken, `/meshes/0/primitives/0: "attributes" is missing`, `"attributes": {"POSITION": 0, "JOINTS_0": 4, "WEIGHTS_0": 5},`, ``)
	add("attribute", Broken, "/meshes/0/primitives/0/attributes/JOINTS_0: accessor 9 does not exist; the file has 8 accessors", `"JOINTS_0": 4`, `"JOINTS_0": 9`)
	add("joints only", Broken, "/meshes/0/primitives/0/attributes: there is JOINTS_0 without WEIGHTS_0", `, "WEIGHTS_0": 5`, ``)
	add("attribute shape", Broken, "/meshes/0/primitives/0/attributes/NORMAL: NORMAL should be VEC3, not VEC4", `"POSITION": 0, `, `"POSITION": 0, "NORMAL": 5, `)
	add("attribute component", Loadable, "/meshes/0/primitives/0/attributes/JOINTS_0: JOINTS_0 should not have the component type float", `"JOINTS_0": 4`, `"JOINTS_0": 5`)
	add("attribute name", Loadable, "/meshes/0/primitives/0/attributes/SPARKLE: attribute SPARKLE is not known; names of your own begin with an underscore", `"POSITION": 0, `, `"POSITION": 0, "SPARKLE": 0, `)
	add("attribute count", Broken, "/meshes/0/primitives/0/attributes/_OWN: _OWN has 2 elements, but POSITION has 3", `"POSITION": 0, `, `"POSITION": 0, "_OWN": 2, `)
	add("target count", Broken, "/meshes/0/primitives/0/targets/0/_OWN: _OWN has 2 elements, but the primitive has 3 vertices", `{"POSITION": 7}`, `{"_OWN": 2}`)
	add("targets differ", Broken, "/meshes/0/primitives/1: the primitive has 0 morph targets, the one before it 1\n/meshes/0/weights: there should be 0 weights as there are morph targets, not 1",
		"    }],\n    \"weights\"", "    }, {\"attributes\": {\"POSITION\": 0}}],\n    \"weights\"")
	add("mesh weights", Broken, "/meshes/0/weights: there should be 1 weight as there are morph targets, not 2", `[0.5]`, `[0.5, 1]`)
	add("position bounds", Loadable, `/accessors/0: the accessor is used for positions, so it needs "min" and "max"`, `, "min": [0, 0, 0]`, ``)
	add("min", Loadable, `/accessors/0/min: "min" should have 3 numbers as VEC3 has, not 2`, `"min": [0, 0, 0]`, `"min": [0, 0]`)
	add("indices shape", Broken, "/meshes/0/primitives/0/indices: indices should be SCALAR, not VEC4", `"indices": 1`, `"indices": 4`)
	add("indices type", Broken, "/meshes/0/primitives/0/indices: indices should be of an unsigned type, not float", `"indices": 1`, `"indices": 2`)
	add("shared view", Loadable, `/bufferViews/0: several vertex attributes are in this view, so it needs a "byteStride"`,
		`"POSITION": 0, `, `"POSITION": 0, "_OWN": 8, `, `    {"componentType": 5126, "count": 3`, `    {"componentType": 5126, "count": 3`,
		`"values": {"bufferView": 8}}}`, `"values": {"bufferView": 8}}}, {"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC2"}`)

	add("texture", Broken, "/materials/0/normalTexture/index: texture 1 does not exist; the file has 1 texture", `"normalTexture": {"index": 0}`, `"normalTexture": {"index": 1}`)
	add("texture of an extension", Broken, "/materials/0/extensions/KHR_materials_sheen/sheenColorTexture/index: texture 8 does not exist; the file has 1 texture",
		`"normalTexture": {"index": 0}`, `"extensions": {"KHR_materials_sheen": {"sheenColorTexture": {"index": 8}}}`)
	add("source", Broken, "/textures/0/source: image 1 does not exist; the file has 1 image", `"source": 0`, `"source": 1`)
	add("sampler", Broken, "/textures/0/sampler: sampler 1 does not exist; the file has 1 sampler", `, "sampler": 0}]`, `, "sampler": 1}]`)
	add("image twice", Broken, "/images/0: the image has a \"uri\" and a \"bufferView\"; it must have one of them", `"uri": "cape.png"`, `"uri": "cape.png", "bufferView": 0`)
	add("image nowhere", Broken, "/images/0: the image has neither a \"uri\" nor a \"bufferView\"", `"uri": "cape.png"`, `"name": "cape"`)
	add("image view", Broken, "/images/0/bufferView: bufferView 20 does not exist; the file has 9 bufferViews", `"uri": "cape.png"`, `"bufferView": 20, "mimeType": "image/png"`)
	add("image type", Loadable, "/images/0: the image has a \"bufferView\", so it needs a \"mimeType\"", `"uri": "cape.png"`, `"bufferView": 0`)

	add("joint", Broken, "/skins/0/joints/0: node 7 does not exist; the file has 3 nodes", `"joints": [1]`, `"joints": [7]`)
	add("joint twice", Broken, "/skins/0/joints/1: joint 1 is there twice\n/skins/0/inverseBindMatrices: 2 joints: there should be an inverse bind matrix for each, not 1", `"joints": [1]`, `"joints": [1, 1]`)
	add("skeleton", Broken, "/skins/0/skeleton: node 7 does not exist; the file has 3 nodes", `"joints": [1]`, `"joints": [1], "skeleton": 7`)
	add("bind matrices", Broken, "/skins/0/inverseBindMatrices: inverse bind matrices should be MAT4 of float, not VEC3 of float", `"inverseBindMatrices": 6`, `"inverseBindMatrices": 0`)

	add("animation sampler", Broken, "/animations/0/channels/0/sampler: sampler 1 does not exist; the animation has 1 sampler", `{"sampler": 0, "target"`, `{"sampler": 1, "target"`)
	add("animation output", Broken, "/animations/0/samplers/0/output: accessor 33 does not exist; the file has 8 accessors", `"output": 3`, `"output": 33`)
	add("animation node", Broken, "/animations/0/channels/0/target/node: node 33 does not exist; the file has 3 nodes", `{"node": 0, "path"`, `{"node": 33, "path"`)
	add("animation times", Broken, "/animations/0/samplers/0/input: times should be SCALAR of float, not VEC3 of float\n"+
		"/animations/0/channels/0/sampler: the sampler has 2 values for 3 times; there should be 3", `"input": 2`, `"input": 0`)
	add("animation shape", Broken, "/animations/0/channels/0/sampler: scale needs values of VEC3, and its sampler has SCALAR", `"path": "weights"`, `"path": "scale"`)
	add("animation count", Broken, "/animations/0/channels/0/sampler: the sampler has 2 values for 2 times; there should be 6", `"output": 3`, `"output": 3, "interpolation": "CUBICSPLINE"`)
	add("animation path", Loadable, "/animations/0/channels/0/target/path: the path \"colour\" is not one of translation, rotation, scale, weights", `"path": "weights"`, `"path": "colour"`)
	add("interpolation", Loadable, "/animations/0/samplers/0/interpolation: \"interpolation\" should be one of LINEAR, STEP, CUBICSPLINE, not \"BEZIER\"", `"output": 3`, `"output": 3, "interpolation": "BEZIER"`)
	add("name", Broken, "/nodes/2/name: \"name\" should be a string, not a number", `"camera": 0}`, `"camera": 0, "name": 5}`)
	add("generator", Broken, "/asset/generator: \"generator\" should be a string, not null", `"by hand"`, `null`)
	add("field of view", Loadable, "/cameras/0/perspective/yfov: \"yfov\" should be above 0, not 0.00", `0.70`, `0.00`)
	add("near plane", Broken, "/cameras/0/perspective: \"znear\" is missing", `, "znear": 1e-2`, ``)
	add("texture info", Broken, "/materials/0/normalTexture: \"normalTexture\" should be an object, not a number", `"normalTexture": {"index": 0}`, `"normalTexture": 0`)
	add("view target", Loadable, "/bufferViews/0/target: \"target\" should be one of 34962, 34963, not 7", `"target": 34962`, `"target": 7`)
	add("bounds of strings", Broken, "/accessors/0/min/1: \"min\" should have numbers, not a string", `"min": [0, 0, 0]`, `"min": [0, "0", 0]`)
	add("times' bounds", Loadable, `/accessors/2: the accessor is used for times, so it needs "min" and "max"`, `, "min": [0], "max": [1]`, ``)
	add("weights without targets", Loadable, "/animations/0/channels/0/target/path: weights are animated, but the node's mesh has no morph targets",
		`"target": {"node": 0`, `"target": {"node": 1`)
	t.Run("content", run)

	cases = cases[:0]
	add("component", Broken, "/accessors/1/componentType: component type 5124 is not one of 5120, 5121, 5122, 5123, 5125, 5126", `5123`, `5124`)
	add("type", Broken, "/accessors/6/type: type \"MAT5\" is not one of SCALAR, VEC2, VEC3, VEC4, MAT2, MAT3, MAT4", `MAT4`, `MAT5`)
	add("count", Broken, "/accessors/6/count: \"count\" should be an integer from 1, not 0", `"count": 1, "type": "MAT4"`, `"count": 0, "type": "MAT4"`)
	add("half a count", Broken, "/accessors/6/count: \"count\" should be an integer from 1, not 1.5", `"count": 1, "type": "MAT4"`, `"count": 1.5, "type": "MAT4"`)
	add("no count", Broken, "/accessors/6: \"count\" is missing", `"count": 1, "type": "MAT4"`, `"type": "MAT4"`)
	add("accessor's view", Broken, "/accessors/6/bufferView: bufferView 9 does not exist; the file has 9 bufferViews", `"bufferView": 6`, `"bufferView": 9`)
	add("out of the view", Broken, "/accessors/6: bufferView 6 has 64 bytes, too few for 2 elements from byte 0 on", `"count": 1, "type": "MAT4"`, `"count": 2, "type": "MAT4"`)
	add("huge count", Broken, "/accessors/6: bufferView 6 has 64 bytes, too few for 9007199254740991 elements from byte 0 on", `"count": 1, "type": "MAT4"`, `"count": 9007199254740991, "type": "MAT4"`)
	add("huger count", Broken, "/accessors/6/count: \"count\" should be an integer from 1, not 18446744073709551617", `"count": 1, "type": "MAT4"`, `"count": 18446744073709551617, "type": "MAT4"`)
	add("huge stride", Broken, "/bufferViews/6/byteStride: \"byteStride\" should be a multiple of 4 from 4 to 252, not 4611686018427387904", `"byteLength": 64`, `"byteLength": 64, "byteStride": 4611686018427387904`)
	add("zeros", Broken, "/accessors/6/count: 99999999999 elements without data are over the limit of 67108864", `"bufferView": 6, "componentType": 5126, "count": 1`, `"componentType": 5126, "count": 99999999999`)
	add("offset", Broken, "/accessors/6: bufferView 6 has 64 bytes, too few for 1 element from byte 4 on", `"bufferView": 6`, `"byteOffset": 4, "bufferView": 6`)
	add("alignment", Loadable, "/accessors/3: the accessor begins at byte 50 of its buffer, which is not a multiple of 4 as a component of type 5126 needs", `"byteOffset": 52`, `"byteOffset": 50`)
	add("stride", Loadable, "/bufferViews/6/byteStride: \"byteStride\" should be a multiple of 4 from 4 to 252, not 66\n"+
		"/accessors/6: the stride of 66 is not a multiple of 4 as a component of type 5126 needs", `"byteLength": 64`, `"byteLength": 64, "byteStride": 66`)
	add("small stride", Broken, "/accessors/6: an element has 64 bytes, more than the stride of 32 in bufferView 6", `"byteLength": 64`, `"byteLength": 64, "byteStride": 32`)
	add("vertex alignment", Loadable, "/meshes/0/primitives/0/attributes/JOINTS_0: accessor 4 holds vertices, so its offset of 2 and its stride of 4 should be multiples of 4",
		`"bufferView": 4,`, `"bufferView": 4, "byteOffset": 2,`, `"byteOffset": 60, "byteLength": 12`, `"byteOffset": 60, "byteLength": 14`)
	add("index stride", Loadable, "/meshes/0/primitives/0/indices: bufferView 1 holds indices, so it should have no \"byteStride\"",
		`"byteOffset": 36, "byteLength": 6`, `"byteOffset": 36, "byteLength": 16, "byteStride": 4`, `"count": 3, "type": "SCALAR"`, `"count": 2, "type": "SCALAR"`)
	add("view's buffer", Broken, "/bufferViews/8/buffer: buffer 1 does not exist; the file has 1 buffer", `{"buffer": 0, "byteOffset": 188`, `{"buffer": 1, "byteOffset": 188`)
	add("out of the buffer", Broken, "/bufferViews/8: the view ends at byte 201, but buffer 0 has only 200", `"byteOffset": 188`, `"byteOffset": 189`)
	add("huge view", Broken, "/bufferViews/8: the view ends at byte 18014398509481984, but buffer 0 has only 200", `"byteOffset": 188, "byteLength": 12`, `"byteOffset": 9007199254740992, "byteLength": 9007199254740992`)
	add("sparse count", Broken, "/accessors/7/sparse/count: 4 sparse elements are more than the accessor's 3", `"sparse": {"count": 1`, `"sparse": {"count": 4`)
	add("sparse out", Broken, "/accessors/7/sparse/indices: bufferView 7 has 1 byte, too few for 2 elements from byte 0 on", `"sparse": {"count": 1`, `"sparse": {"count": 2`)
	add("sparse type", Broken, "/accessors/7/sparse/indices/componentType: sparse indices should have the component type 5121, 5123 or 5125, not 5120", `"bufferView": 7, "componentType": 5121`, `"bufferView": 7, "componentType": 5120`)
	add("sparse values", Broken, "/accessors/7/sparse: \"values\" is missing", `, "values": {"bufferView": 8}`, ``)
	add("buffer too short", Broken, "/buffers/0: the buffer says 201 bytes, but its data have 200", `"byteLength": 200`, `"byteLength": 201`)
	add("buffers too large", Broken, "/buffers/0: the buffers have more than 1073741824 bytes together", `"byteLength": 200`, `"byteLength": 2000000000`)
	add("buffer without uri", Broken, "/buffers/0: the buffer has no \"uri\"", `"uri": "base.bin", `, ``)
	add("required extension", Advice, "/extensionsRequired/0: extension \"ACME_fur\" is required and not known here; it goes into the product unchecked",
		`"scene": 0,`, `"scene": 0, "extensionsUsed": ["ACME_fur"], "extensionsRequired": ["ACME_fur"],`)
	add("undeclared extension", Loadable, "/extensionsRequired/0: extension \"KHR_texture_transform\" is required, but not in \"extensionsUsed\"",
		`"scene": 0,`, `"scene": 0, "extensionsRequired": ["KHR_texture_transform"],`)
	t.Run("data", run)
}

func TestContentOfBuffers(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(b []byte)
		want   string
	}{
		{"index", func(b []byte) { b[40] = 3 }, "/meshes/0/primitives/0/indices: index 2 is 3, but there are only 3 vertices"},
		{"sparse index", func(b []byte) { b[184] = 3 }, "/accessors/7/sparse/indices: sparse index 3 after -1: they should rise, and stay below the count of 3"},
		{"joint", func(b []byte) { b[60] = 1 }, "/meshes/0/primitives/0/attributes/JOINTS_0: a vertex uses joint 1, but skin 0 has only 1 joint"},
		{"times", func(b []byte) { b[47] = 0x40 }, "/animations/0/samplers/0/input: time 1 is 1 after 2; times should rise from 0 on"},
		{"time that is not a number", func(b []byte) { copy(b[44:], []byte{1, 0, 0xc0, 0x7f}) },
			"/accessors/2: element 0 has the number NaN"},
		{"position", func(b []byte) { copy(b[16:], []byte{0, 0, 0x80, 0xff}) }, "/accessors/0: element 1 has the number -Inf"},
		{"matrix", func(b []byte) { copy(b[120+60:], []byte{1, 0, 0x80, 0x7f}) }, "/accessors/6: element 0 has the number NaN"},
		{"sparse position", func(b []byte) { copy(b[188+8:], []byte{0, 0, 0x80, 0x7f}) },
			"/accessors/7/sparse/values: sparse value 0 has the number +Inf"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := baseBuffer()
			c.change(b)
			if got := texts(Validate(read(t, base), [][]byte{b}, DefaultLimits())); len(got) != 1 || got[0] != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestManyFindings(t *testing.T) {
	text := edit(t, base, `[0, 2]`, `[`+strings.Repeat("9,", 49)+`9]`)
	r := Validate(read(t, text), [][]byte{baseBuffer()}, DefaultLimits())
	if len(r.Findings) != 20 || r.More != 30 {
		t.Errorf("%d findings and %d more", len(r.Findings), r.More)
	}
}

func TestPositions(t *testing.T) {
	d := read(t, edit(t, base, `"mesh": 0`, `"mesh": 4`, `"by hand"`, `"von Händen", "x/~": [[7]]`))
	f := Validate(d, nil, DefaultLimits()).Findings[0]
	if got := fmt.Sprint(f.Pointer, " ", f.Line, ":", f.Column, " ", f.Length); got != "/nodes/0/mesh 6:31 1" {
		t.Error(got)
	}
	f = d.Find(d.Root.Path("asset", "x/~").Items[0], Property, Broken, "x")
	if got := fmt.Sprint(f.Pointer, " ", f.Line, ":", f.Column, " ", f.Length); got != "/asset/x~1~0/0 2:66 1" {
		t.Error(got)
	}
	// A missing value is reported at the start of the object that lacks it.
	if f = d.Find(d.Root, Property, Broken, "x"); f.Line != 1 || f.Column != 1 || f.Length != 1 {
		t.Errorf("%+v", f)
	}
	_, err := Read([]byte("{\n  \"ä\": nul"), DefaultLimits())
	if f := err.(*Finding); f.Line != 2 || f.Column != 8 || f.Length != 3 || f.Text != `"nul" is not a JSON value` {
		t.Errorf("%+v", f)
	}
}

func TestDeepNodes(t *testing.T) {
	const n = 200_000
	var b strings.Builder
	b.WriteString(`{"asset":{"version":"2.0"},"nodes":[`)
	for i := range n - 1 {
		fmt.Fprintf(&b, `{"children":[%d]},`, i+1)
	}
	b.WriteString(`{}]}`)
	if r := Validate(read(t, b.String()), nil, DefaultLimits()); len(r.Findings) > 0 {
		t.Error(texts(r))
	}
}

func TestDataURI(t *testing.T) {
	for _, c := range []struct{ uri, media, data, err string }{
		{"data:application/octet-stream;base64,AAEC", "application/octet-stream", "\x00\x01\x02", ""},
		{"data:;base64,AA", "", "\x00", ""},
		{"DATA:,a%20b", "", "a b", ""},
		{"data:;base64", "", "", `the data: URI has no ","`},
		{"data:;base64,A?==", "", "", "the data: URI is not decodable: illegal base64 data at input byte 1"},
		{"data:,%zz", "", "", `the data: URI is not decodable: invalid URL escape "%zz"`},
		{"data:;base64," + strings.Repeat("A", 500), "", "", "the data: URI holds more than 100 bytes"},
	} {
		media, data, err := DecodeDataURI(c.uri, 100)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if media != c.media || string(data) != c.data || text != c.err {
			t.Errorf("%s: %q %q %q", c.uri, media, data, text)
		}
	}
}
