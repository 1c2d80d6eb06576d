package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"image/png"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// drawn is all files, drawn once for all tests.
var drawn = sync.OnceValue(func() map[string][]byte {
	files := drawings()
	files["assets/characters/shared/run.bin"] = runBuffer(1)
	return files
})

// TestCommitted draws everything again and compares it with the files in the example. After a change of the drawings:
// go run ./examples/knights/gen -contact
func TestCommitted(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("other processors fuse multiplications and additions, so the last bit of a formula may differ")
	}
	files := maps.Clone(drawn())
	files["docs/contact.png"] = encode(contactSheet())
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(name)))
		if err != nil {
			t.Error(err)
		} else if !same(name, got, want) {
			t.Errorf("%s differs from what the generator draws", name)
		}
	}
}

// TestNothingStray finds files in the example that are not drawn any more, and limits its size.
func TestNothingStray(t *testing.T) {
	files := drawn()
	total := int64(0)
	err := fs.WalkDir(os.DirFS(".."), "assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		total += info.Size()
		made := slices.Contains([]string{".png", ".gltf", ".bin", ".wav"}, path.Ext(name))
		if _, ok := files[name]; made != ok {
			t.Errorf("%s: a drawn kind of file: %v, drawn: %v", name, made, ok)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if total == 0 || total > 1<<20 {
		t.Errorf("the example has %d bytes of source files; it should stay below one megabyte", total)
	}
}

func TestStride(t *testing.T) {
	short, long := runBuffer(1), runBuffer(1.3)
	if bytes.Equal(short, long) || len(short) != len(long) {
		t.Error("another stride should give other numbers, and as many")
	}
}

func TestWriteLeavesAloneWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	files := map[string][]byte{"a/one.bin": {1}, "a/two.png": encode(coin().image())}
	if err := write(dir, files); err != nil {
		t.Fatal(err)
	}
	// The same pixels with other compression: the committed bytes must stay.
	var packed bytes.Buffer
	e := png.Encoder{CompressionLevel: png.NoCompression}
	if err := e.Encode(&packed, coin().image()); err != nil {
		t.Fatal(err)
	}
	two := filepath.Join(dir, "a", "two.png")
	if err := os.WriteFile(two, packed.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	files["a/one.bin"] = []byte{2}
	if err := write(dir, files); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(two); err != nil || !bytes.Equal(got, packed.Bytes()) {
		t.Errorf("a picture with the same pixels was written again (%v)", err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "a", "one.bin")); err != nil || !bytes.Equal(got, []byte{2}) {
		t.Errorf("one.bin is %v (%v)", got, err)
	}
}

// TestModels reads the models like a game and checks the requirements of glTF 2.0.
func TestModels(t *testing.T) {
	shared := runBuffer(1)
	for _, m := range []*model{knight(), paladin()} {
		t.Run(m.name, func(t *testing.T) {
			text, own := writeModel(m)
			var doc document
			if err := json.Unmarshal(text, &doc); err != nil {
				t.Fatal(err)
			}
			checkBuffers(t, &doc, map[string][]byte{m.name + ".bin": own, "../shared/run.bin": shared})
			checkNodes(t, &doc)
			buffers := [][]byte{own, shared}
			for _, mesh := range doc.Meshes {
				checkPrimitive(t, &doc, mesh, buffers)
			}
			checkAnimation(t, &doc, buffers)
		})
	}
}

func checkBuffers(t *testing.T, doc *document, files map[string][]byte) {
	t.Helper()
	if len(doc.Buffers) != 2 || doc.Buffers[1].URI != "../shared/run.bin" {
		t.Fatalf("buffers are %v", doc.Buffers)
	}
	for _, b := range doc.Buffers {
		if data, ok := files[b.URI]; !ok || len(data) != b.ByteLength {
			t.Errorf("buffer %s says %d bytes and has %d", b.URI, b.ByteLength, len(data))
		}
	}
	for _, v := range doc.BufferViews {
		if v.ByteOffset%4 != 0 || v.ByteOffset+v.ByteLength > doc.Buffers[v.Buffer].ByteLength {
			t.Errorf("buffer view %s: offset %d, length %d", v.Name, v.ByteOffset, v.ByteLength)
		}
		if attribute := v.Target == arrayBuffer; attribute != (v.ByteStride != 0) {
			t.Errorf("buffer view %s has stride %d", v.Name, v.ByteStride)
		}
		if vertices := v.Buffer == 0; vertices != (v.Target != 0) {
			t.Errorf("buffer view %s has target %d", v.Name, v.Target)
		}
	}
	for i, a := range doc.Accessors {
		size := map[int]int{typeUint16: 2, typeFloat: 4}[a.ComponentType]
		bytes := a.Count * size * components(a)
		if size == 0 || a.Count == 0 || a.ByteOffset%size != 0 || a.ByteOffset+bytes > doc.BufferViews[a.BufferView].ByteLength {
			t.Errorf("accessor %d does not fit its buffer view: %+v", i, a)
		}
		if stride := doc.BufferViews[a.BufferView].ByteStride; stride != 0 && stride != size*components(a) {
			t.Errorf("accessor %d has elements of %d bytes in a view of stride %d", i, size*components(a), stride)
		}
	}
}

func components(a accessor) int {
	return map[string]int{"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4}[a.Type]
}

// numbers reads an accessor, and checks its bounds if it has any.
func numbers(t *testing.T, doc *document, index int, buffers [][]byte) [][]float32 {
	t.Helper()
	a := doc.Accessors[index]
	v := doc.BufferViews[a.BufferView]
	data := buffers[v.Buffer][v.ByteOffset+a.ByteOffset:]
	out := make([][]float32, a.Count)
	var low, high []float32
	for i := range out {
		for range components(a) {
			if a.ComponentType == typeUint16 {
				out[i] = append(out[i], float32(binary.LittleEndian.Uint16(data)))
				data = data[2:]
			} else {
				out[i] = append(out[i], math.Float32frombits(binary.LittleEndian.Uint32(data)))
				data = data[4:]
			}
		}
		if i == 0 {
			low, high = slices.Clone(out[0]), slices.Clone(out[0])
		}
		for k, n := range out[i] {
			low[k], high[k] = min(low[k], n), max(high[k], n)
		}
	}
	if a.Min != nil && (!slices.Equal(a.Min, low) || !slices.Equal(a.Max, high)) {
		t.Errorf("accessor %d says %v to %v and is %v to %v", index, a.Min, a.Max, low, high)
	}
	return out
}

func checkNodes(t *testing.T, doc *document) {
	t.Helper()
	parents := make([]int, len(doc.Nodes))
	for i, n := range doc.Nodes {
		for _, child := range n.Children {
			if child <= i { // a parent comes first, so there is no cycle
				t.Errorf("node %s has the child %d before it", n.Name, child)
			}
			parents[child]++
		}
	}
	for i, n := range parents {
		if want := min(i, 1); n != want {
			t.Errorf("node %s has %d parents", doc.Nodes[i].Name, n)
		}
	}
}

// checkPrimitive requires unit normals, triangles that face outwards, and texture coordinates on the page.
func checkPrimitive(t *testing.T, doc *document, mesh gltfMesh, buffers [][]byte) {
	t.Helper()
	p := mesh.Primitives[0]
	read := func(name string) (out []vec) {
		for _, n := range numbers(t, doc, p.Attributes[name], buffers) {
			v := vec{float64(n[0]), float64(n[1]), 0}
			if len(n) > 2 {
				v.z = float64(n[2])
			}
			out = append(out, v)
		}
		return out
	}
	pos, normal, texcoord := read("POSITION"), read("NORMAL"), read("TEXCOORD_0")
	if doc.Accessors[p.Attributes["POSITION"]].Min == nil {
		t.Errorf("%s: positions have no bounds", mesh.Name)
	}
	for i, n := range normal {
		if l := n.dot(n); math.Abs(l-1) > 1e-3 {
			t.Errorf("%s: normal %d is %v", mesh.Name, i, n)
		}
		if uv := texcoord[i]; uv.x <= 0 || uv.x >= 1 || uv.y <= 0 || uv.y >= 1 {
			t.Errorf("%s: texture coordinate %d is %v", mesh.Name, i, uv)
		}
	}
	indices := numbers(t, doc, p.Indices, buffers)
	if len(indices)%3 != 0 {
		t.Fatalf("%s: %d indices", mesh.Name, len(indices))
	}
	for i := 0; i < len(indices); i += 3 {
		a, b, c := int(indices[i][0]), int(indices[i+1][0]), int(indices[i+2][0])
		if max(a, b, c) >= len(pos) {
			t.Fatalf("%s: index out of %d vertices", mesh.Name, len(pos))
		}
		face := pos[b].sub(pos[a]).cross(pos[c].sub(pos[a]))
		if face.dot(normal[a].add(normal[b]).add(normal[c])) <= 0 {
			t.Errorf("%s: triangle %d faces inwards", mesh.Name, i/3)
		}
	}
}

// checkAnimation requires increasing times from 0, unit rotations, and an end that is equal to the begin.
func checkAnimation(t *testing.T, doc *document, buffers [][]byte) {
	t.Helper()
	clip := doc.Animations[0]
	for i, s := range clip.Samplers {
		times, values := numbers(t, doc, s.Input, buffers), numbers(t, doc, s.Output, buffers)
		if times[0][0] != 0 || doc.Accessors[s.Input].Min == nil || len(times) != len(values) {
			t.Errorf("sampler %d: %d times from %v, %d values", i, len(times), times[0], len(values))
		}
		for k := 1; k < len(times); k++ {
			if times[k][0] <= times[k-1][0] {
				t.Errorf("sampler %d: time %d does not rise", i, k)
			}
		}
		if !slices.Equal(values[0], values[len(values)-1]) {
			t.Errorf("sampler %d: the loop jumps", i)
		}
		if clip.Channels[i].Target.Path != "rotation" {
			continue
		}
		for _, q := range values {
			if l := float64(q[0]*q[0] + q[1]*q[1] + q[2]*q[2] + q[3]*q[3]); math.Abs(l-1) > 1e-5 {
				t.Errorf("sampler %d: rotation %v", i, q)
			}
		}
	}
}

// TestFeetReachTheGround checks that in each half of the run a foot touches the ground, and no foot goes far below it.
func TestFeetReachTheGround(t *testing.T) {
	m := knight()
	for _, half := range []float64{0, 0.5} {
		lowest := math.Inf(1)
		for i := range 16 {
			places := run(half+float64(i)/32, 1).places()
			for _, shin := range []joint{shinL, shinR} {
				for _, v := range m.mesh[shin].vertices {
					lowest = min(lowest, places[shin].point(v.pos).y)
				}
			}
		}
		if lowest < -0.08 || lowest > 0.08 {
			t.Errorf("half from %v: the lowest point is at %.3f m", half, lowest)
		}
	}
}

// TestPalette checks that the pictures use only the palette, and that all its entries are different.
func TestPalette(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range palette() {
		r, g, b, a := c.RGBA()
		key := string([]byte{byte(r), byte(g), byte(b), byte(a)})
		if seen[key] {
			t.Errorf("colour %v is there twice", c)
		}
		seen[key] = true
	}
	if n := len(palette()); n != 2+int(ramps)*levels {
		t.Errorf("the palette has %d colours", n)
	}
}

func TestTilesRepeat(t *testing.T) {
	for x := range 2 * tileSize {
		for _, y := range []float64{0.5, 20.5, 63.5} {
			if a, b := flagstones(float64(x)+0.5, y), flagstones(float64(x)+0.5+tileSize, y-tileSize); a != b {
				t.Fatalf("height at %d, %v is %v and a tile further %v", x, y, a, b)
			}
		}
	}
}
