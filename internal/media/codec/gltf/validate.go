package gltf

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// maxFindings is the number of findings kept for a file; more are only counted. One error of an exporter may occur in every
// node.
const maxFindings = 20

// Report is the result of Validate.
type Report struct {
	Findings []*Finding // at most 20, in the order of the checks
	More     int        // number of further findings

	// Broken reports whether any finding, kept or not, has the level Broken.
	Broken bool
}

// checker validates one document. Its methods report errors and continue. Each check uses only what earlier checks found
// valid, so that an error is reported once.
type checker struct {
	Report
	doc       *Document
	buffers   [][]byte
	lim       Limits
	tables    map[string][]*Value // the top-level arrays that are indexed
	views     []view
	accessors []accessor
	parents   []int // of each node; -1 if it has none
	quantised bool  // KHR_mesh_quantization allows small component types
}

// tables are the top-level arrays and the names of their items.
var tables = [...][2]string{
	{"buffers", "buffer"}, {"bufferViews", "bufferView"}, {"accessors", "accessor"}, {"images", "image"},
	{"samplers", "sampler"}, {"textures", "texture"}, {"materials", "material"}, {"meshes", "mesh"},
	{"cameras", "camera"}, {"nodes", "node"}, {"skins", "skin"}, {"animations", "animation"}, {"scenes", "scene"},
}

// Validate checks a document against the specification. buffers has the bytes of each of its buffers; if one is nil, its
// bytes are not checked.
func Validate(doc *Document, buffers [][]byte, lim Limits) Report {
	c := &checker{doc: doc, buffers: slices.Clone(buffers), lim: lim, tables: map[string][]*Value{}}
	if doc.Root.Kind != Object {
		c.broken(doc.Root, Property, "the JSON should be an object, not %s", doc.Root.Kind)
		return c.Report
	}
	if !c.asset() {
		return c.Report
	}
	for _, text := range doc.wrong {
		c.loadable(nil, Container, "%s", text)
	}
	for _, t := range tables {
		c.tables[t[0]] = c.objects(doc.Root, t[0])
		for _, v := range c.tables[t[0]] {
			c.optional(v, "name", String)
		}
	}
	c.extensions()
	c.checkBuffers()
	c.checkViews()
	c.checkAccessors()
	c.checkFloats()
	c.checkImages()
	c.checkMaterials()
	c.checkMeshes()
	c.checkNodes()
	c.checkScenes()
	c.checkSkins()
	c.checkAnimations()
	c.checkCameras()
	return c.Report
}

func (c *checker) report(l Level, v *Value, p Problem, format string, args ...any) {
	c.Broken = c.Broken || l == Broken
	if len(c.Findings) == maxFindings {
		c.More++
		return
	}
	c.Findings = append(c.Findings, c.doc.Find(v, p, l, format, args...))
}

func (c *checker) broken(v *Value, p Problem, format string, args ...any) {
	c.report(Broken, v, p, format, args...)
}

func (c *checker) loadable(v *Value, p Problem, format string, args ...any) {
	c.report(Loadable, v, p, format, args...)
}

// asset checks the version. Other checks are useless for glTF 1.0.
func (c *checker) asset() bool {
	asset := c.doc.Root.Get("asset")
	if asset == nil {
		c.broken(c.doc.Root, Version, `"asset" is missing, so this is not glTF 2.0`)
		return false
	}
	c.optional(asset, "generator", String)
	c.optional(asset, "copyright", String)
	v := asset.Get("version")
	if v == nil || v.Kind != String {
		c.broken(asset, Version, `"version" is missing, so this is not glTF 2.0`)
		return false
	}
	if !strings.HasPrefix(v.Text, "2.") {
		c.broken(v, Version, "the file is glTF %s; only 2.x can be read", v.Text)
		return false
	}
	if m := asset.Get("minVersion"); m != nil && m.Text != "2.0" {
		c.broken(m, Version, "the file requires a reader of glTF %s; Kiln reads 2.0", m.Text)
		return false
	}
	return true
}

// objects returns an array member of objects. It reports other items, and returns them as empty objects.
func (c *checker) objects(parent *Value, name string) []*Value {
	a := parent.Get(name)
	if a == nil {
		return nil
	}
	if a.Kind != Array {
		c.broken(a, Property, "%q should be an array, not %s", name, a.Kind)
		return nil
	}
	if len(a.Items) == 0 {
		c.loadable(a, Property, "%q is empty; leave it out instead", name)
	}
	for _, item := range a.Items {
		if item.Kind != Object {
			c.broken(item, Property, "an item of %q should be an object, not %s", name, item.Kind)
		}
	}
	return a.Items
}

// member returns a required member of a kind, or nil.
func (c *checker) member(parent *Value, name string, kind Kind) *Value {
	v := parent.Get(name)
	if v == nil {
		c.broken(parent, Property, "%q is missing", name)
		return nil
	}
	return c.kind(v, name, kind)
}

// optional returns an optional member of a kind, or nil.
func (c *checker) optional(parent *Value, name string, kind Kind) *Value {
	if v := parent.Get(name); v != nil {
		return c.kind(v, name, kind)
	}
	return nil
}

func (c *checker) kind(v *Value, name string, kind Kind) *Value {
	if v.Kind != kind {
		c.broken(v, Property, "%q should be %s, not %s", name, kind, v.Kind)
		return nil
	}
	return v
}

// integer returns an integer member from least up to 2^53, or the default if it is missing; with missing as the default, the
// member is required. It returns false for an unusable member, which it has reported.
func (c *checker) integer(parent *Value, name string, least, otherwise int64) (int64, bool) {
	v := parent.Get(name)
	if v == nil {
		if otherwise == missing {
			c.broken(parent, Property, "%q is missing", name)
		}
		return otherwise, otherwise != missing
	}
	n, ok := v.Int()
	if !ok || n < least {
		c.broken(v, Property, "%q should be an integer from %d, not %s", name, least, c.shown(v))
		return 0, false
	}
	return n, true
}

const missing = math.MinInt64

// shown returns a value as it appears in a message.
func (c *checker) shown(v *Value) string {
	if v.Kind == Array || v.Kind == Object {
		return v.Kind.String()
	}
	s := string(v.AppendJSON(nil))
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}

// ref returns a member that is an index into a top-level array. It returns -1 if the member is missing, or unusable, which
// it has reported.
func (c *checker) ref(parent *Value, name, table string) int {
	if v := parent.Get(name); v != nil {
		return c.index(v, table)
	}
	return -1
}

// mustRef is ref for a required member.
func (c *checker) mustRef(parent *Value, name, table string) int {
	if parent.Get(name) == nil {
		c.broken(parent, Property, "%q is missing", name)
	}
	return c.ref(parent, name, table)
}

func (c *checker) index(v *Value, table string) int {
	return c.indexOf(v, "the file", singular(table), len(c.tables[table]))
}

// indexOf is index for a list of owner.
func (c *checker) indexOf(v *Value, owner, what string, count int) int {
	n, ok := v.Int()
	if !ok || n < 0 {
		c.broken(v, Property, "the index of a %s should be an integer from 0, not %s", what, c.shown(v))
		return -1
	}
	if n >= int64(count) {
		c.broken(v, Index, "%s %d does not exist; %s has %s", what, n, owner, plural(int64(count), what))
		return -1
	}
	return int(n)
}

func singular(table string) string {
	for _, t := range tables {
		if t[0] == table {
			return t[1]
		}
	}
	return table
}

func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if what == "mesh" {
		return fmt.Sprintf("%d meshes", n)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// oneOf checks a string or number member with a list of allowed values. A loader can ignore other values.
func (c *checker) oneOf(parent *Value, name string, values ...string) {
	v := parent.Get(name)
	if v != nil && !slices.Contains(values, v.Text) {
		c.loadable(v, Property, "%q should be one of %s, not %s", name, strings.Join(values, ", "), c.shown(v))
	}
}

// numbers checks that an optional member is an array of n numbers; n < 0 allows any number of them.
func (c *checker) numbers(parent *Value, name string, n int) {
	a := c.optional(parent, name, Array)
	if a == nil {
		return
	}
	if n >= 0 && len(a.Items) != n {
		c.broken(a, Property, "%q should have %d numbers, not %d", name, n, len(a.Items))
	}
	for _, item := range a.Items {
		if item.Kind != Number {
			c.broken(item, Property, "%q should have numbers, not %s", name, item.Kind)
			return
		}
		if _, err := strconv.ParseFloat(item.Text, 32); err != nil {
			c.broken(item, NotFinite, "%q has the number %s, which is too large for a float", name, c.shown(item))
			return
		}
	}
}

// understood are the extensions of which Pack knows all references to bufferViews and buffers. Most have none; others call
// them "bufferView", or have code for their names.
var understood = map[string]bool{
	"KHR_animation_pointer": true, "KHR_draco_mesh_compression": true, "KHR_lights_punctual": true,
	"KHR_mesh_quantization": true, "KHR_meshopt_compression": true, "KHR_node_visibility": true, "KHR_texture_basisu": true,
	"KHR_texture_transform": true, "KHR_xmp_json_ld": true,
	"EXT_lights_image_based": true, "EXT_mesh_gpu_instancing": true, "EXT_meshopt_compression": true,
	"EXT_texture_webp": true, "EXT_texture_avif": true, "MSFT_lod": true, "MSFT_texture_dds": true, "VRM": true,
}

func isUnderstood(extension string) bool {
	return understood[extension] || strings.HasPrefix(extension, "KHR_materials_") || strings.HasPrefix(extension, "VRMC_")
}

func (c *checker) extensions() {
	var used []string
	if a := c.optional(c.doc.Root, "extensionsUsed", Array); a != nil {
		for _, v := range a.Items {
			if c.kind(v, "extensionsUsed", String) != nil {
				used = append(used, v.Text)
			}
		}
	}
	c.quantised = slices.Contains(used, "KHR_mesh_quantization")
	a := c.optional(c.doc.Root, "extensionsRequired", Array)
	if a == nil {
		return
	}
	for _, v := range a.Items {
		if c.kind(v, "extensionsRequired", String) == nil {
			continue
		}
		if !slices.Contains(used, v.Text) {
			c.loadable(v, Extension, `extension %q is required, but not in "extensionsUsed"`, v.Text)
		}
		if !isUnderstood(v.Text) {
			c.report(Advice, v, Extension, "extension %q is required and not known here; it goes into the product unchecked", v.Text)
		}
	}
}
