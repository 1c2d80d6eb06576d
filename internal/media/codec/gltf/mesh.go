package gltf

import (
	"math"
	"slices"
	"strings"
)

func (c *checker) checkMeshes() {
	for _, m := range c.tables["meshes"] {
		if c.member(m, "primitives", Array) == nil {
			continue
		}
		targets := -1
		for _, p := range c.objects(m, "primitives") {
			n := c.checkPrimitive(p)
			if targets >= 0 && n != targets {
				c.broken(p, Mesh, "the primitive has %d morph targets, the one before it %d", n, targets)
			}
			targets = n
		}
		c.checkWeights(m, max(targets, 0))
	}
	for i, v := range c.views {
		if v.shared && v.stride == 0 && v.ok {
			c.loadable(c.tables["bufferViews"][i], Layout, `several vertex attributes are in this view, so it needs a "byteStride"`)
		}
	}
}

// morphTargets returns the number of morph targets of a mesh.
func (c *checker) morphTargets(mesh int) int {
	p := c.tables["meshes"][mesh].Array("primitives")
	if len(p) == 0 {
		return 0
	}
	return len(p[0].Array("targets"))
}

func (c *checker) checkWeights(v *Value, targets int) {
	c.numbers(v, "weights", -1)
	if w := v.Array("weights"); len(w) > 0 && len(w) != targets {
		c.broken(v.Get("weights"), Mesh, "there should be %s as there are morph targets, not %d", plural(int64(targets), "weight"), len(w))
	}
}

// checkPrimitive returns the number of morph targets.
func (c *checker) checkPrimitive(p *Value) int {
	c.ref(p, "material", "materials")
	if mode := p.Get("mode"); mode != nil {
		if n, ok := mode.Int(); !ok || n < 0 || n > 6 {
			c.broken(mode, Property, "the mode should be an integer from 0 to 6, not %s", c.shown(mode))
		}
	}
	attributes := c.member(p, "attributes", Object)
	if attributes == nil {
		return len(p.Array("targets"))
	}
	if len(attributes.Names) == 0 {
		c.loadable(attributes, Mesh, "the primitive has no attributes, so there is nothing to draw")
	}
	count := c.checkAttributes(attributes, -1, false)
	for _, set := range [...]string{"JOINTS_0", "WEIGHTS_0"} {
		other := map[string]string{"JOINTS_0": "WEIGHTS_0", "WEIGHTS_0": "JOINTS_0"}[set]
		if attributes.Get(set) != nil && attributes.Get(other) == nil {
			c.broken(attributes, Mesh, "there is %s without %s", set, other)
		}
	}
	if a := c.ref(p, "indices", "accessors"); a >= 0 && c.accessors[a].ok {
		c.checkIndices(p.Get("indices"), &c.accessors[a], count)
	}
	targets := c.objects(p, "targets")
	for _, t := range targets {
		c.checkAttributes(t, count, true)
	}
	return len(targets)
}

// checkAttributes returns the number of vertices, or -1 if it is unknown. A morph target must have the number of its
// primitive.
func (c *checker) checkAttributes(attributes *Value, count int64, morph bool) int64 {
	first := ""
	for i, name := range attributes.Names {
		v := attributes.Items[i]
		n := c.index(v, "accessors")
		if n < 0 || !c.accessors[n].ok {
			continue
		}
		a := &c.accessors[n]
		c.checkSemantic(v, name, a, morph)
		if a.view >= 0 {
			c.checkVertexLayout(v, n, a)
		}
		if name == "POSITION" {
			accessor := c.tables["accessors"][n]
			if accessor.Get("min") == nil || accessor.Get("max") == nil {
				c.loadable(accessor, Mesh, `the accessor is used for positions, so it needs "min" and "max"`)
			}
		}
		switch {
		case count < 0:
			count, first = a.count, name
		case a.count != count && first == "":
			c.broken(v, Mesh, "%s has %d elements, but the primitive has %d vertices", name, a.count, count)
		case a.count != count:
			c.broken(v, Mesh, "%s has %d elements, but %s has %d", name, a.count, first, count)
		}
	}
	return count
}

// checkVertexLayout checks the requirements of GPUs for vertex data, and records shared views.
func (c *checker) checkVertexLayout(v *Value, n int, a *accessor) {
	w := &c.views[a.view]
	if w.vertices < 0 {
		w.vertices = n
	}
	w.shared = w.shared || w.vertices != n
	if a.offset%4 != 0 || a.stride%4 != 0 {
		c.loadable(v, Layout, "accessor %d holds vertices, so its offset of %d and its stride of %d should be multiples of 4", n, a.offset, a.stride)
	}
}

// semantic has the shapes and component types that the specification allows for a vertex attribute.
type semantic struct {
	shapes     []string
	components []int64
}

// semanticOf returns the semantic of an attribute of the specification, by its name without the set: "TEXCOORD" of
// "TEXCOORD_0".
func semanticOf(name string) (s semantic, known bool) {
	unsigned := []int64{cFloat, cUbyte, cUshort}
	switch name {
	case "POSITION", "NORMAL":
		return semantic{[]string{"VEC3"}, []int64{cFloat}}, true
	case "TANGENT":
		return semantic{[]string{"VEC4"}, []int64{cFloat}}, true
	case "TEXCOORD":
		return semantic{[]string{"VEC2"}, unsigned}, true
	case "COLOR":
		return semantic{[]string{"VEC3", "VEC4"}, unsigned}, true
	case "JOINTS":
		return semantic{[]string{"VEC4"}, []int64{cUbyte, cUshort}}, true
	case "WEIGHTS":
		return semantic{[]string{"VEC4"}, unsigned}, true
	}
	return semantic{}, false
}

func (c *checker) checkSemantic(v *Value, name string, a *accessor, morph bool) {
	if strings.HasPrefix(name, "_") {
		return // specific to an application
	}
	base := strings.TrimRight(name, "0123456789")
	base = strings.TrimSuffix(base, "_")
	s, known := semanticOf(base)
	if !known {
		c.loadable(v, Mesh, "attribute %s is not known; names of your own begin with an underscore", name)
		return
	}
	if morph && base == "TANGENT" {
		s.shapes = []string{"VEC3"} // deltas have no handedness
	}
	if !slices.Contains(s.shapes, a.shape) {
		c.broken(v, Mesh, "%s should be %s, not %s", name, strings.Join(s.shapes, " or "), a.shape)
		return
	}
	// Deltas may be smaller than the base, or have another sign.
	if !slices.Contains(s.components, a.component) && !c.quantised && !morph {
		c.loadable(v, Mesh, "%s should not have the component type %s", name, componentNames[a.component])
	}
}

// checkIndices checks each index against the number of vertices. If that is unknown, it checks only the type.
func (c *checker) checkIndices(v *Value, a *accessor, vertices int64) {
	switch {
	case a.shape != "SCALAR":
		c.broken(v, Mesh, "indices should be SCALAR, not %s", a.shape)
		return
	case a.component != cUbyte && a.component != cUshort && a.component != cUint:
		c.broken(v, Mesh, "indices should be of an unsigned type, not %s", componentNames[a.component])
		return
	}
	if a.view >= 0 && c.views[a.view].stride > 0 {
		c.loadable(v, Layout, `bufferView %d holds indices, so it should have no "byteStride"`, a.view)
	}
	limit := uint32(min(max(vertices, 0), math.MaxUint32))
	if vertices < 0 {
		limit = math.MaxUint32
	}
	replaced := map[int64]bool{}
	if a.sparse != nil {
		n := int64(0)
		for e := range c.reader(&a.sparse.indices) {
			replaced[int64(e.uint())] = true
		}
		for e := range c.reader(&a.sparse.values) {
			if e.uint() >= limit {
				c.broken(v, Mesh, "sparse index %d is %d, but there are only %d vertices", n, e.uint(), vertices)
				return
			}
			n++
		}
	}
	n := int64(0)
	for e := range c.reader(a) {
		if e.uint() >= limit && !replaced[n] {
			c.broken(v, Mesh, "index %d is %d, but there are only %d vertices", n, e.uint(), vertices)
			return
		}
		n++
	}
}
