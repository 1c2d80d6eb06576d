package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
)

// The shared animation is a separate source file: both models have it as their second buffer. It has little-endian
// float32 numbers for all keys:
//
//	seconds                   1 number a key
//	hips translation          3 numbers a key
//	rotation of each joint    4 numbers a key, x y z w, from hips to cape_tip
const (
	keys       = 17 // the last is equal to the first
	runSeconds = 0.72
)

func runBuffer(stride float64) []byte {
	var poses [keys]pose
	var b []byte
	for k := range keys {
		phase := float64(k) / (keys - 1)
		poses[k] = run(math.Mod(phase, 1), stride)
		b = floats(b, phase*runSeconds)
	}
	for _, p := range poses {
		b = floats(b, p.hips.x, p.hips.y, p.hips.z)
	}
	for j := hips; j < joints; j++ {
		for _, p := range poses {
			q := p.turn[j]
			b = floats(b, q.x, q.y, q.z, q.w)
		}
	}
	return b
}

func floats(b []byte, values ...float64) []byte {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
	}
	return b
}

// The parts of glTF 2.0: https://registry.khronos.org/glTF/specs/2.0/glTF-2.0.html
type (
	document struct {
		Asset       map[string]string `json:"asset"`
		Scene       int               `json:"scene"`
		Scenes      []scene           `json:"scenes"`
		Nodes       []node            `json:"nodes"`
		Meshes      []gltfMesh        `json:"meshes"`
		Materials   []any             `json:"materials"`
		Textures    []any             `json:"textures"`
		Images      []any             `json:"images"`
		Samplers    []any             `json:"samplers"`
		Animations  []animation       `json:"animations"`
		Accessors   []accessor        `json:"accessors"`
		BufferViews []bufferView      `json:"bufferViews"`
		Buffers     []buffer          `json:"buffers"`
	}
	scene struct {
		Name  string `json:"name"`
		Nodes []int  `json:"nodes"`
	}
	node struct {
		Name        string      `json:"name"`
		Translation *[3]float32 `json:"translation,omitempty"`
		Mesh        *int        `json:"mesh,omitempty"`
		Children    []int       `json:"children,omitempty"`
	}
	gltfMesh struct {
		Name       string      `json:"name"`
		Primitives []primitive `json:"primitives"`
	}
	primitive struct {
		Attributes map[string]int `json:"attributes"`
		Indices    int            `json:"indices"`
		Material   int            `json:"material"`
	}
	animation struct {
		Name     string    `json:"name"`
		Channels []channel `json:"channels"`
		Samplers []sampler `json:"samplers"`
	}
	channel struct {
		Sampler int    `json:"sampler"`
		Target  target `json:"target"`
	}
	target struct {
		Node int    `json:"node"`
		Path string `json:"path"`
	}
	sampler struct {
		Input         int    `json:"input"`
		Interpolation string `json:"interpolation"`
		Output        int    `json:"output"`
	}
	accessor struct {
		BufferView    int       `json:"bufferView"`
		ByteOffset    int       `json:"byteOffset,omitempty"`
		ComponentType int       `json:"componentType"`
		Count         int       `json:"count"`
		Type          string    `json:"type"`
		Min           []float32 `json:"min,omitempty"`
		Max           []float32 `json:"max,omitempty"`
	}
	bufferView struct {
		Name       string `json:"name"`
		Buffer     int    `json:"buffer"`
		ByteOffset int    `json:"byteOffset"`
		ByteLength int    `json:"byteLength"`
		ByteStride int    `json:"byteStride,omitempty"` // required if several attributes share a view
		Target     int    `json:"target,omitempty"`
	}
	buffer struct {
		URI        string `json:"uri"`
		ByteLength int    `json:"byteLength"`
	}
)

const (
	typeUint16 = 5123
	typeFloat  = 5126

	arrayBuffer        = 34962
	elementArrayBuffer = 34963
)

// The buffer views, in this order.
const (
	viewPosition = iota
	viewNormal
	viewTexCoord
	viewIndices
	viewRunSeconds
	viewRunHips
	viewRunTurns
)

// writeModel returns a model as glTF text, and the buffer that belongs only to it.
func writeModel(m *model) (text, own []byte) {
	doc := &document{
		Asset:     map[string]string{"version": "2.0", "generator": "examples/knights/gen"},
		Scenes:    []scene{{Name: m.name, Nodes: []int{int(root)}}},
		Materials: []any{json.RawMessage(`{"name":"page","pbrMetallicRoughness":{"baseColorTexture":{"index":0},"metallicFactor":0.1,"roughnessFactor":0.7}}`)},
		Textures:  []any{json.RawMessage(`{"sampler":0,"source":0}`)},
		Images:    []any{json.RawMessage(`{"name":"page","uri":"../shared/page.png"}`)},
		Samplers:  []any{json.RawMessage(`{"magFilter":9728,"minFilter":9987,"wrapS":33071,"wrapT":33071}`)},
	}
	var data [4][]byte // by buffer view
	for j, bone := range skeleton {
		n := node{Name: bone.name}
		if bone.rest != (vec{}) {
			n.Translation = &[3]float32{float32(bone.rest.x), float32(bone.rest.y), float32(bone.rest.z)}
		}
		for k, other := range skeleton {
			if other.parent == joint(j) {
				n.Children = append(n.Children, k)
			}
		}
		if part := m.mesh[j]; part != nil {
			index := len(doc.Meshes)
			n.Mesh = &index
			doc.Meshes = append(doc.Meshes, gltfMesh{bone.name, []primitive{doc.primitive(part, &data)}})
		}
		doc.Nodes = append(doc.Nodes, n)
	}
	for i, view := range []bufferView{
		viewPosition: {Name: "position", ByteStride: 12, Target: arrayBuffer},
		viewNormal:   {Name: "normal", ByteStride: 12, Target: arrayBuffer},
		viewTexCoord: {Name: "texcoord", ByteStride: 8, Target: arrayBuffer},
		viewIndices:  {Name: "indices", Target: elementArrayBuffer},
	} {
		view.ByteOffset, view.ByteLength = len(own), len(data[i])
		doc.BufferViews = append(doc.BufferViews, view)
		own = append(own, data[i]...)
	}
	doc.Buffers = []buffer{{m.name + ".bin", len(own)}}
	doc.animate()
	return layOut(doc), own
}

// primitive appends a mesh to the data and describes it.
func (doc *document) primitive(m *mesh, data *[4][]byte) primitive {
	add := func(a accessor) int {
		doc.Accessors = append(doc.Accessors, a)
		return len(doc.Accessors) - 1
	}
	low, high := bounds(m.vertices)
	n := len(m.vertices)
	p := primitive{Attributes: map[string]int{
		"POSITION":   add(accessor{viewPosition, len(data[viewPosition]), typeFloat, n, "VEC3", low, high}),
		"NORMAL":     add(accessor{viewNormal, len(data[viewNormal]), typeFloat, n, "VEC3", nil, nil}),
		"TEXCOORD_0": add(accessor{viewTexCoord, len(data[viewTexCoord]), typeFloat, n, "VEC2", nil, nil}),
	}}
	p.Indices = add(accessor{viewIndices, len(data[viewIndices]), typeUint16, len(m.indices), "SCALAR", nil, nil})
	for _, v := range m.vertices {
		data[viewPosition] = floats(data[viewPosition], v.pos.x, v.pos.y, v.pos.z)
		data[viewNormal] = floats(data[viewNormal], v.normal.x, v.normal.y, v.normal.z)
		data[viewTexCoord] = floats(data[viewTexCoord], v.u, v.v)
	}
	for _, i := range m.indices {
		data[viewIndices] = binary.LittleEndian.AppendUint16(data[viewIndices], i)
	}
	return p
}

func bounds(vertices []vertex) (low, high []float32) {
	for i, v := range vertices {
		for axis, value := range []float64{v.pos.x, v.pos.y, v.pos.z} {
			f := float32(value)
			if i == 0 {
				low, high = append(low, f), append(high, f)
			}
			low[axis], high[axis] = min(low[axis], f), max(high[axis], f)
		}
	}
	return low, high
}

// animate describes the shared buffer.
func (doc *document) animate() {
	const shared = 1
	turned := int(joints - hips)
	sizes := []int{keys * 4, keys * 12, turned * keys * 16}
	total := 0
	for i, name := range []string{"run.seconds", "run.hips", "run.turns"} {
		doc.BufferViews = append(doc.BufferViews, bufferView{Name: name, Buffer: shared, ByteOffset: total, ByteLength: sizes[i]})
		total += sizes[i]
	}
	doc.Buffers = append(doc.Buffers, buffer{"../shared/run.bin", total})

	seconds := len(doc.Accessors)
	end := float32(runSeconds)
	doc.Accessors = append(doc.Accessors,
		accessor{viewRunSeconds, 0, typeFloat, keys, "SCALAR", []float32{0}, []float32{end}},
		accessor{viewRunHips, 0, typeFloat, keys, "VEC3", nil, nil})
	clip := animation{
		Name:     "run",
		Channels: []channel{{0, target{int(hips), "translation"}}},
		Samplers: []sampler{{seconds, "LINEAR", seconds + 1}},
	}
	for i := range turned {
		doc.Accessors = append(doc.Accessors, accessor{viewRunTurns, i * keys * 16, typeFloat, keys, "VEC4", nil, nil})
		clip.Channels = append(clip.Channels, channel{len(clip.Samplers), target{int(hips) + i, "rotation"}})
		clip.Samplers = append(clip.Samplers, sampler{seconds, "LINEAR", seconds + 2 + i})
	}
	doc.Animations = []animation{clip}
}

// layOut writes one line for each entry of each list of the document, so that it can be read, and a change in a diff is
// one line.
func layOut(doc *document) []byte {
	whole, err := json.Marshal(doc)
	if err != nil {
		panic(err) // there are only numbers and strings
	}
	var out bytes.Buffer
	depth, quoted := 0, false
	line := func() { out.WriteByte('\n'); out.Write(bytes.Repeat([]byte("  "), depth)) }
	for i, c := range whole {
		if c == '"' {
			quoted = !quoted // there are no escaped quotes
		}
		if quoted {
			out.WriteByte(c)
			continue
		}
		opens, closes := c == '{' || c == '[', c == '}' || c == ']'
		if closes {
			depth--
			if depth == 0 || depth == 1 && whole[i-1] == '}' {
				line()
			}
		}
		out.WriteByte(c)
		if opens {
			depth++
			if depth == 1 || depth == 2 && whole[i+1] == '{' {
				line()
			}
		}
		if c == ',' && (depth == 1 || depth == 2 && whole[i-1] == '}') {
			line()
		}
	}
	out.WriteByte('\n')
	return out.Bytes()
}
