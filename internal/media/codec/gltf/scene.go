package gltf

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

func (c *checker) checkNodes() {
	nodes := c.tables["nodes"]
	c.parents = make([]int, len(nodes))
	for i := range c.parents {
		c.parents[i] = -1
	}
	for i, v := range nodes {
		c.checkNode(v)
		c.ref(v, "camera", "cameras")
		mesh := c.ref(v, "mesh", "meshes")
		if skin := v.Get("skin"); skin != nil {
			s := c.index(skin, "skins")
			if v.Get("mesh") == nil {
				c.loadable(skin, Property, "the node has a skin, but no mesh")
			} else if s >= 0 && mesh >= 0 {
				c.checkJoints(mesh, s)
			}
		}
		if w := v.Get("weights"); w != nil && mesh >= 0 {
			c.checkWeights(v, c.morphTargets(mesh))
		}
		for _, child := range c.indices(v, "children", "nodes") {
			switch p := c.parents[child.n]; {
			case p == i:
				c.broken(child.v, Hierarchy, "node %d is there twice", child.n)
			case p >= 0:
				c.broken(child.v, Hierarchy, "node %d has two parents, nodes %d and %d", child.n, p, i)
			default:
				c.parents[child.n] = i
			}
		}
	}
	c.checkCycles()
}

func (c *checker) checkNode(v *Value) {
	c.numbers(v, "matrix", 16)
	c.numbers(v, "translation", 3)
	c.numbers(v, "rotation", 4)
	c.numbers(v, "scale", 3)
	if v.Get("matrix") == nil {
		return
	}
	for _, name := range [...]string{"translation", "rotation", "scale"} {
		if m := v.Get(name); m != nil {
			c.loadable(m, Property, "the node has a matrix and a %s; it should have one or the other", name)
		}
	}
}

// checkCycles follows the parent of each node upwards. It visits each node once.
func (c *checker) checkCycles() {
	walked := make([]int, len(c.parents)) // by start; 0: not visited
	for start := range c.parents {
		n := start
		for n >= 0 && walked[n] == 0 {
			walked[n] = start + 1
			n = c.parents[n]
		}
		if n < 0 || walked[n] != start+1 {
			continue
		}
		ring := []int{n}
		for p := c.parents[n]; p != n; p = c.parents[p] {
			ring = append(ring, p)
		}
		parent := c.parents[n]
		for _, child := range c.tables["nodes"][parent].Array("children") {
			if i, ok := child.Int(); ok && i == int64(n) {
				c.broken(child, Hierarchy, "the nodes have a cycle: %s", ringText(ring))
				break
			}
		}
	}
}

// ringText lists a cycle of child, parent, ... starting with the parent.
func ringText(ring []int) string {
	slices.Reverse(ring[1:])
	var b strings.Builder
	for i, n := range ring {
		if i == 10 && len(ring) > 12 {
			fmt.Fprintf(&b, "… (%d more) > ", len(ring)-i)
			break
		}
		fmt.Fprintf(&b, "%d > ", n)
	}
	return b.String() + strconv.Itoa(ring[0])
}

// reference is an index and its value in the JSON.
type reference struct {
	n int
	v *Value
}

// indices returns the valid indices in an array of indices into a top-level array.
func (c *checker) indices(parent *Value, name, table string) []reference {
	a := c.optional(parent, name, Array)
	if a == nil {
		return nil
	}
	if len(a.Items) == 0 {
		c.loadable(a, Property, "%q is empty; leave it out instead", name)
	}
	var all []reference
	for _, v := range a.Items {
		if n := c.index(v, table); n >= 0 {
			all = append(all, reference{n, v})
		}
	}
	return all
}

func (c *checker) checkScenes() {
	c.ref(c.doc.Root, "scene", "scenes")
	for _, s := range c.tables["scenes"] {
		seen := map[int]bool{}
		for _, r := range c.indices(s, "nodes", "nodes") {
			if p := c.parents[r.n]; p >= 0 {
				c.loadable(r.v, Hierarchy, "node %d is not a root: it is a child of node %d", r.n, p)
			}
			if seen[r.n] {
				c.loadable(r.v, Hierarchy, "node %d is there twice", r.n)
			}
			seen[r.n] = true
		}
	}
}

func (c *checker) checkSkins() {
	for _, s := range c.tables["skins"] {
		c.ref(s, "skeleton", "nodes")
		if c.member(s, "joints", Array) == nil {
			continue
		}
		seen := map[int]bool{}
		for _, r := range c.indices(s, "joints", "nodes") {
			if seen[r.n] {
				c.broken(r.v, Animation, "joint %d is there twice", r.n)
			}
			seen[r.n] = true
		}
		m := c.ref(s, "inverseBindMatrices", "accessors")
		if m < 0 || !c.accessors[m].ok {
			continue
		}
		a, joints := c.accessors[m], len(s.Array("joints"))
		if a.shape != "MAT4" || a.component != cFloat {
			c.broken(s.Get("inverseBindMatrices"), Animation, "inverse bind matrices should be MAT4 of float, not %s of %s", a.shape, componentNames[a.component])
		} else if a.count < int64(joints) {
			c.broken(s.Get("inverseBindMatrices"), Animation, "%s: there should be an inverse bind matrix for each, not %d", plural(int64(joints), "joint"), a.count)
		}
	}
}

func (c *checker) checkAnimations() {
	for _, a := range c.tables["animations"] {
		c.member(a, "channels", Array)
		c.member(a, "samplers", Array)
		samplers := c.objects(a, "samplers")
		for _, s := range samplers {
			c.checkSampler(s)
		}
		for _, ch := range c.objects(a, "channels") {
			c.checkChannel(ch, samplers)
		}
	}
}

// checkSampler checks that the times ascend: other times are meaningless.
func (c *checker) checkSampler(s *Value) {
	c.oneOf(s, "interpolation", "LINEAR", "STEP", "CUBICSPLINE")
	c.mustRef(s, "output", "accessors")
	in := c.mustRef(s, "input", "accessors")
	if in < 0 || !c.accessors[in].ok {
		return
	}
	a := &c.accessors[in]
	if a.shape != "SCALAR" || a.component != cFloat {
		c.broken(s.Get("input"), Animation, "times should be SCALAR of float, not %s of %s", a.shape, componentNames[a.component])
		return
	}
	accessor := c.tables["accessors"][in]
	if accessor.Get("min") == nil || accessor.Get("max") == nil {
		c.loadable(accessor, Animation, `the accessor is used for times, so it needs "min" and "max"`)
	}
	if a.sparse != nil {
		return
	}
	n, last := 0, float32(0)
	for e := range c.reader(a) {
		t := e.float()
		if !(t >= 0) || n > 0 && !(t > last) {
			c.loadable(s.Get("input"), Animation, "time %d is %g after %g; times should rise from 0 on", n, t, last)
			return
		}
		n, last = n+1, t
	}
}

// checkChannel checks a channel, and that its sampler has values of the target's type, as many as there are times.
func (c *checker) checkChannel(ch *Value, samplers []*Value) {
	target := c.member(ch, "target", Object)
	if ch.Get("sampler") == nil {
		c.broken(ch, Property, `"sampler" is missing`)
	}
	if target == nil || ch.Get("sampler") == nil {
		return
	}
	n := c.indexOf(ch.Get("sampler"), "the animation", "sampler", len(samplers))
	node := c.ref(target, "node", "nodes")
	path := c.member(target, "path", String)
	if path == nil || n < 0 {
		return
	}
	shape := map[string]string{"translation": "VEC3", "rotation": "VEC4", "scale": "VEC3", "weights": "SCALAR"}[path.Text]
	if shape == "" {
		if path.Text != "pointer" {
			c.loadable(path, Animation, "the path %s is not one of translation, rotation, scale, weights", c.shown(path))
		}
		return
	}
	s := samplers[n]
	in, out := c.quietRef(s, "input"), c.quietRef(s, "output")
	if in == nil || out == nil {
		return
	}
	if out.shape != shape {
		c.broken(ch.Get("sampler"), Animation, "%s needs values of %s, and its sampler has %s", path.Text, shape, out.shape)
		return
	}
	want := in.count
	if path.Text == "weights" {
		targets := c.nodeTargets(node)
		if targets < 0 {
			return
		}
		if targets == 0 {
			c.loadable(path, Animation, "weights are animated, but the node's mesh has no morph targets")
			return
		}
		want *= int64(targets)
	}
	if s.Str("interpolation") == "CUBICSPLINE" {
		want *= 3
	}
	if out.count != want {
		c.broken(ch.Get("sampler"), Animation, "the sampler has %d values for %d times; there should be %d", out.count, in.count, want)
	}
}

// quietRef returns the accessor of a member that was already checked, or nil if it is invalid.
func (c *checker) quietRef(v *Value, name string) *accessor {
	n := v.int(name, -1)
	if n < 0 || n >= int64(len(c.accessors)) || !c.accessors[n].ok {
		return nil
	}
	return &c.accessors[n]
}

// nodeTargets returns the number of morph targets of a node's mesh, or -1 if node or mesh is invalid.
func (c *checker) nodeTargets(node int) int {
	if node < 0 {
		return -1
	}
	v := c.tables["nodes"][node]
	if v.Get("mesh") == nil {
		return 0
	}
	mesh := v.int("mesh", -1)
	if mesh < 0 || mesh >= int64(len(c.tables["meshes"])) {
		return -1
	}
	return c.morphTargets(int(mesh))
}

func (c *checker) checkCameras() {
	for _, v := range c.tables["cameras"] {
		t := c.member(v, "type", String)
		if t == nil {
			continue
		}
		c.oneOf(v, "type", "perspective", "orthographic")
		switch t.Text {
		case "perspective":
			c.checkProjection(c.member(v, t.Text, Object), "yfov", "znear")
		case "orthographic":
			c.checkProjection(c.member(v, t.Text, Object), "xmag", "ymag", "zfar", "znear")
		}
	}
}

func (c *checker) checkProjection(v *Value, needs ...string) {
	if v == nil {
		return
	}
	for _, name := range needs {
		n := c.member(v, name, Number)
		// The near plane of an orthographic camera may be 0, and a mirrored image may be intended.
		if n != nil && (name == "yfov" || name == "zfar") && (strings.HasPrefix(n.Text, "-") || strings.Trim(n.Text, "0.") == "") {
			c.loadable(n, Property, "%q should be above 0, not %s", name, n.Text)
		}
	}
}

// checkJoints checks that a mesh refers only to joints of its skin: on the graphics card, other joints would be undefined
// matrices.
func (c *checker) checkJoints(mesh, skin int) {
	joints := len(c.tables["skins"][skin].Array("joints"))
	for _, p := range c.tables["meshes"][mesh].Array("primitives") {
		attributes := p.Get("attributes")
		for i, v := range members(attributes) {
			if !strings.HasPrefix(attributes.Names[i], "JOINTS_") {
				continue
			}
			if a := c.quietRef(attributes, attributes.Names[i]); a != nil {
				if m := c.maxJoint(a); m >= joints && joints > 0 {
					c.loadable(v, Animation, "a vertex uses joint %d, but skin %d has only %s", m, skin, plural(int64(joints), "joint"))
				}
			}
		}
	}
}

// maxJoint returns the largest component of an accessor. It is stored, since many nodes may share a mesh.
func (c *checker) maxJoint(a *accessor) int {
	if a.component != cUbyte && a.component != cUshort || a.shape != "VEC4" {
		return 0
	}
	if a.maxJoint == nil {
		largest, size := 0, int(componentSize(a.component))
		for e := range c.reader(a) {
			for at := 0; at < len(e.data); at += size {
				largest = max(largest, int(element{e.data[at:], a.component}.uint()))
			}
		}
		a.maxJoint = &largest
	}
	return *a.maxJoint
}
