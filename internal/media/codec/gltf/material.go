package gltf

import "strings"

func (c *checker) checkImages() {
	for _, v := range c.tables["images"] {
		uri, inView := c.optional(v, "uri", String), v.Get("bufferView")
		c.ref(v, "bufferView", "bufferViews")
		switch {
		case v.Get("uri") != nil && inView != nil:
			c.broken(v, Property, `the image has a "uri" and a "bufferView"; it must have one of them`)
		case uri == nil && v.Get("uri") == nil && inView == nil && v.Get("extensions") == nil:
			c.broken(v, Property, `the image has neither a "uri" nor a "bufferView"`)
		case inView != nil && v.Get("mimeType") == nil:
			c.loadable(v, Property, `the image has a "bufferView", so it needs a "mimeType"`)
		}
		c.optional(v, "mimeType", String)
		c.optional(v, "name", String)
	}
}

func (c *checker) checkMaterials() {
	for _, v := range c.tables["samplers"] {
		c.oneOf(v, "magFilter", "9728", "9729")
		c.oneOf(v, "minFilter", "9728", "9729", "9984", "9985", "9986", "9987")
		c.oneOf(v, "wrapS", "33071", "33648", "10497")
		c.oneOf(v, "wrapT", "33071", "33648", "10497")
	}
	for _, v := range c.tables["textures"] {
		c.ref(v, "source", "images")
		c.ref(v, "sampler", "samplers")
		for _, ext := range members(v.Get("extensions")) {
			c.ref(ext, "source", "images")
		}
	}
	for _, v := range c.tables["materials"] {
		c.oneOf(v, "alphaMode", "OPAQUE", "MASK", "BLEND")
		c.optional(v, "pbrMetallicRoughness", Object)
		v.eachTexture(func(name string, info *Value) {
			if c.kind(info, name, Object) != nil {
				c.mustRef(info, "index", "textures")
			}
		})
	}
}

// members returns the values of an object.
func members(v *Value) []*Value {
	if v == nil || v.Kind != Object {
		return nil
	}
	return v.Items
}

// eachTexture visits the texture infos in a material, including those of extensions: members with names such as
// "normalTexture". It skips extras, whose content is up to applications.
func (v *Value) eachTexture(visit func(name string, info *Value)) {
	for i, name := range v.Names {
		item := v.Items[i]
		switch {
		case name == "extras":
		case strings.HasSuffix(name, "Texture"):
			visit(name, item)
		case item.Kind != Object:
		default:
			item.eachTexture(visit)
		}
	}
}

// Slot is a place where a material refers to an image.
type Slot struct {
	At   *Value // the texture info; nil: no material uses the image in such a slot
	Name string // "normalTexture"
}

// Use has the first slot of each kind in which materials use an image.
type Use struct {
	Colours    Slot // sRGB
	Directions Slot // a normal map, linear
	Measures   Slot // roughness, metalness, occlusion and others: linear
}

// ImageUses returns the uses of each image. The file must not be Broken.
func (d *Document) ImageUses() []Use {
	uses := make([]Use, len(d.Root.Array("images")))
	textures := d.Root.Array("textures")
	for _, m := range d.Root.Array("materials") {
		m.eachTexture(func(name string, info *Value) {
			t := info.int("index", -1)
			if t < 0 || t >= int64(len(textures)) {
				return
			}
			for _, source := range append(members(textures[t].Get("extensions")), textures[t]) {
				image := source.int("source", -1)
				if image < 0 || image >= int64(len(uses)) {
					continue
				}
				if slot := uses[image].slot(name); slot.At == nil {
					slot.At, slot.Name = info, name
				}
			}
		})
	}
	return uses
}

// slot returns the slot for a texture info of this name, by the specification and its extensions.
func (u *Use) slot(info string) *Slot {
	switch {
	case isColour(info):
		return &u.Colours
	case strings.HasSuffix(info, "normalTexture") || strings.HasSuffix(info, "NormalTexture"):
		return &u.Directions
	}
	return &u.Measures
}

// isColour reports whether the specification and its extensions define a texture info as sRGB.
func isColour(info string) bool {
	switch info {
	case "baseColorTexture", "emissiveTexture", "diffuseTexture", "specularGlossinessTexture", "matcapTexture":
		return true
	}
	return strings.HasSuffix(info, "ColorTexture") || strings.HasSuffix(info, "MultiplyTexture")
}
