package gltf

import (
	"encoding/binary"
	"math"
)

// view is the valid part of a bufferView.
type view struct {
	buffer         int
	offset, length int64
	stride         int64 // 0: elements have no gaps
	ok             bool
	vertices       int  // the first accessor of a vertex attribute; -1 if the view has none
	shared         bool // it has several such accessors
}

// accessor is the valid part of an accessor.
type accessor struct {
	view          int // -1: all zeros, except for sparse values, or for data of an extension
	offset, count int64
	stride, size  int64 // bytes between elements, and of an element
	component     int64
	shape         string // "SCALAR", "VEC3"...
	ok            bool
	sparse        *sparse
	maxJoint      *int // computed on first use
}

type sparse struct {
	indices, values accessor
}

// Component types.
const (
	cByte   = 5120
	cUbyte  = 5121
	cShort  = 5122
	cUshort = 5123
	cUint   = 5125
	cFloat  = 5126
)

var componentNames = map[int64]string{
	cByte: "byte", cUbyte: "unsigned byte", cShort: "short", cUshort: "unsigned short", cUint: "unsigned int", cFloat: "float",
}

// componentSize returns the size of a component type in bytes, or 0 for an invalid type.
func componentSize(component int64) int64 {
	switch component {
	case cByte, cUbyte:
		return 1
	case cShort, cUshort:
		return 2
	case cUint, cFloat:
		return 4
	}
	return 0
}

// components returns the number of components of an element, or 0 for an invalid shape.
func components(shape string) int64 {
	switch shape {
	case "SCALAR":
		return 1
	case "VEC2":
		return 2
	case "VEC3":
		return 3
	case "VEC4", "MAT2":
		return 4
	case "MAT3":
		return 9
	case "MAT4":
		return 16
	}
	return 0
}

// elementSize returns the size of an element in bytes. Each column of a matrix begins at a multiple of 4.
func elementSize(shape string, component int64) int64 {
	size := componentSize(component)
	switch shape {
	case "MAT2":
		return 2 * ((2*size + 3) &^ 3)
	case "MAT3":
		return 3 * ((3*size + 3) &^ 3)
	}
	return components(shape) * size
}

func (c *checker) checkBuffers() {
	var total int64
	for i, b := range c.tables["buffers"] {
		length, ok := c.integer(b, "byteLength", 1, missing)
		uri := c.optional(b, "uri", String)
		if !ok || isFallback(b) && uri == nil {
			continue
		}
		if total += min(length, c.lim.Data+1); total > c.lim.Data {
			c.broken(b, TooBig, "the buffers have more than %d bytes together", c.lim.Data)
			return
		}
		if i < len(c.buffers) && c.buffers[i] != nil && int64(len(c.buffers[i])) < length {
			c.broken(b, Bounds, "the buffer says %d bytes, but its data have %d", length, len(c.buffers[i]))
			c.buffers[i] = nil
		}
	}
}

// checkEmpty reports the buffers without bytes that a view needs. Others are valid: their bytes come from an application.
func (c *checker) checkEmpty() {
	needed := map[int]bool{}
	for _, v := range c.views {
		needed[v.buffer] = true
	}
	for _, v := range c.tables["bufferViews"] {
		for _, ext := range meshopt {
			if m := v.Path("extensions", ext); m != nil {
				needed[int(m.int("buffer", -1))] = true
			}
		}
	}
	for i, b := range c.tables["buffers"] {
		switch {
		case b.Get("uri") != nil || isFallback(b) || i == 0 && c.doc.BIN != nil || !needed[i]:
		case i == 0 && c.doc.glb:
			c.broken(b, Property, `the buffer has no "uri", and the file has no binary chunk`)
		default:
			c.broken(b, Property, `the buffer has no "uri"`)
		}
	}
}

// isFallback reports whether a buffer is a placeholder for data that meshopt compression unpacks. It has no data of its own.
func isFallback(buffer *Value) bool {
	for _, ext := range meshopt {
		if f := buffer.Path("extensions", ext, "fallback"); f != nil && f.Text == "true" {
			return true
		}
	}
	return false
}

// meshopt has the names of meshopt compression, the only extension that adds a second byte range to a bufferView.
var meshopt = [...]string{"EXT_meshopt_compression", "KHR_meshopt_compression"}

func (c *checker) checkViews() {
	c.views = make([]view, len(c.tables["bufferViews"]))
	for i, v := range c.tables["bufferViews"] {
		c.views[i] = c.checkRange(v)
		c.views[i].vertices = -1
		c.oneOf(v, "target", "34962", "34963")
		if s := v.Get("byteStride"); s != nil {
			n, ok := s.Int()
			if !ok || n < 4 || n > 252 || n%4 != 0 {
				level := Loadable
				if !ok || n < 1 || n > math.MaxInt32 {
					level, c.views[i].ok = Broken, false
				}
				c.report(level, s, Layout, `"byteStride" should be a multiple of 4 from 4 to 252, not %s`, c.shown(s))
			}
			c.views[i].stride = n
		}
		for _, ext := range meshopt {
			if m := v.Path("extensions", ext); m != nil {
				c.checkRange(m)
			}
		}
	}
	c.checkEmpty()
}

// checkRange checks an object that refers to bytes of a buffer.
func (c *checker) checkRange(v *Value) (r view) {
	var ok1, ok2 bool
	r.buffer = c.mustRef(v, "buffer", "buffers")
	r.offset, ok1 = c.integer(v, "byteOffset", 0, 0)
	r.length, ok2 = c.integer(v, "byteLength", 1, missing)
	if r.buffer < 0 || !ok1 || !ok2 {
		return r
	}
	size := c.tables["buffers"][r.buffer].int("byteLength", 0)
	if r.offset+r.length > size {
		c.broken(v, Bounds, "the view ends at byte %d, but buffer %d has only %d", r.offset+r.length, r.buffer, size)
		return r
	}
	r.ok = true
	return r
}

// bytes returns the bytes of a view, or nil if they are not available, as in a compressed view.
func (c *checker) bytes(v int) []byte {
	if v < 0 || !c.views[v].ok {
		return nil
	}
	w := c.views[v]
	if w.buffer >= len(c.buffers) || int64(len(c.buffers[w.buffer])) < w.offset+w.length {
		return nil
	}
	for _, ext := range meshopt {
		if c.tables["bufferViews"][v].Path("extensions", ext) != nil {
			return nil
		}
	}
	return c.buffers[w.buffer][w.offset : w.offset+w.length]
}

func (c *checker) checkAccessors() {
	c.accessors = make([]accessor, len(c.tables["accessors"]))
	for i, v := range c.tables["accessors"] {
		c.accessors[i] = c.checkAccessor(v)
	}
}

// maxZeros limits the count of an accessor without data.
const maxZeros = 1 << 26

func (c *checker) checkAccessor(v *Value) accessor {
	a := accessor{view: c.ref(v, "bufferView", "bufferViews")}
	var ok1, ok2, ok3 bool
	a.component, ok1 = c.integer(v, "componentType", 0, missing)
	a.count, ok2 = c.integer(v, "count", 1, missing)
	a.offset, ok3 = c.integer(v, "byteOffset", 0, 0)
	shape := c.member(v, "type", String)
	if !ok1 || !ok2 || !ok3 || shape == nil {
		return a
	}
	a.shape = shape.Text
	if componentSize(a.component) == 0 {
		c.broken(v.Get("componentType"), Property, "component type %d is not one of 5120, 5121, 5122, 5123, 5125, 5126", a.component)
		return a
	}
	if components(a.shape) == 0 {
		c.broken(shape, Property, "type %s is not one of SCALAR, VEC2, VEC3, VEC4, MAT2, MAT3, MAT4", c.shown(shape))
		return a
	}
	a.ok = c.fits(v, &a)
	for _, name := range [...]string{"min", "max"} {
		c.numbers(v, name, -1)
		if m := v.Array(name); m != nil && int64(len(m)) != components(a.shape) {
			c.loadable(v.Get(name), Property, "%q should have %d numbers as %s has, not %d", name, components(a.shape), a.shape, len(m))
		}
	}
	if s := c.optional(v, "sparse", Object); s != nil && a.ok {
		a.sparse = c.checkSparse(s, a)
	}
	return a
}

// fits sets size and stride of an accessor, and checks that its view has enough bytes.
func (c *checker) fits(v *Value, a *accessor) bool {
	a.size = elementSize(a.shape, a.component)
	a.stride = a.size
	if a.view < 0 {
		if v.Get("bufferView") != nil {
			return false
		}
		if a.count > maxZeros {
			c.broken(v.Get("count"), TooBig, "%d elements without data are over the limit of %d", a.count, maxZeros)
		}
		return a.count <= maxZeros
	}
	w := c.views[a.view]
	if !w.ok {
		return false
	}
	if w.stride > 0 {
		a.stride = w.stride
	}
	if a.stride < a.size {
		c.broken(v, Layout, "an element has %d bytes, more than the stride of %d in bufferView %d", a.size, a.stride, a.view)
		return false
	}
	// Division first, so that a huge count does not overflow.
	if a.count-1 > w.length/a.stride || a.offset+a.stride*(a.count-1)+a.size > w.length {
		c.broken(v, Bounds, "bufferView %d has %s, too few for %s from byte %d on", a.view, plural(w.length, "byte"), plural(a.count, "element"), a.offset)
		return false
	}
	if n := componentSize(a.component); a.offset%n != 0 || (w.offset+a.offset)%n != 0 {
		c.loadable(v, Layout, "the accessor begins at byte %d of its buffer, which is not a multiple of %d as a component of type %d needs", w.offset+a.offset, n, a.component)
	} else if a.stride%n != 0 {
		c.loadable(v, Layout, "the stride of %d is not a multiple of %d as a component of type %d needs", a.stride, n, a.component)
	}
	return true
}

// checkFloats reports the first number of each accessor of floats that is NaN or infinite: a vertex there is drawn anywhere.
// Such an accessor is not checked further.
func (c *checker) checkFloats() {
	for i, v := range c.tables["accessors"] {
		a := &c.accessors[i]
		if !a.ok || a.component != cFloat {
			continue
		}
		if at, f := c.notFinite(a); at >= 0 {
			c.broken(v, NotFinite, "element %d has the number %v", at, f)
			a.ok = false
		} else if a.sparse != nil {
			if at, f := c.notFinite(&a.sparse.values); at >= 0 {
				c.broken(v.Path("sparse", "values"), NotFinite, "sparse value %d has the number %v", at, f)
				a.ok = false
			}
		}
	}
}

// notFinite returns the first element with a number that is NaN or infinite, and the number; -1 if there is none.
func (c *checker) notFinite(a *accessor) (int, float32) {
	const exponent = 0x7f800000
	at := 0
	for e := range c.reader(a) {
		for b := e.data; len(b) >= 4; b = b[4:] {
			if bits := binary.LittleEndian.Uint32(b); bits&exponent == exponent {
				return at, math.Float32frombits(bits)
			}
		}
		at++
	}
	return -1, 0
}

func (c *checker) checkSparse(v *Value, base accessor) *sparse {
	count, ok := c.integer(v, "count", 1, missing)
	indices, values := c.member(v, "indices", Object), c.member(v, "values", Object)
	if !ok || indices == nil || values == nil {
		return nil
	}
	if count > base.count {
		c.broken(v.Get("count"), Bounds, "%d sparse elements are more than the accessor's %d", count, base.count)
		return nil
	}
	component, ok := c.integer(indices, "componentType", 0, missing)
	if !ok {
		return nil
	}
	if component != cUbyte && component != cUshort && component != cUint {
		c.broken(indices.Get("componentType"), Property, "sparse indices should have the component type 5121, 5123 or 5125, not %d", component)
		return nil
	}
	s := &sparse{accessor{shape: "SCALAR", component: component, count: count}, accessor{shape: base.shape, component: base.component, count: count}}
	if !c.checkPart(indices, &s.indices) || !c.checkPart(values, &s.values) {
		return nil
	}
	last := int64(-1)
	for i := range c.reader(&s.indices) {
		n := int64(i.uint())
		if n <= last || n >= base.count {
			c.broken(indices, Index, "sparse index %d after %d: they should rise, and stay below the count of %d", n, last, base.count)
			return nil
		}
		last = n
	}
	return s
}

func (c *checker) checkPart(v *Value, a *accessor) bool {
	var ok bool
	a.view = c.mustRef(v, "bufferView", "bufferViews")
	a.offset, ok = c.integer(v, "byteOffset", 0, 0)
	a.ok = ok && a.view >= 0 && c.fits(v, a)
	return a.ok
}

// element has the bytes of one element.
type element struct {
	data      []byte
	component int64
}

// uint returns the first component of an unsigned type.
func (e element) uint() uint32 {
	switch e.component {
	case cUbyte:
		return uint32(e.data[0])
	case cUshort:
		return uint32(binary.LittleEndian.Uint16(e.data))
	}
	return binary.LittleEndian.Uint32(e.data)
}

// float returns the first component of type float.
func (e element) float() float32 { return math.Float32frombits(binary.LittleEndian.Uint32(e.data)) }

// reader iterates over the elements in a view, without sparse ones. It is empty if the bytes are not available.
func (c *checker) reader(a *accessor) func(yield func(element) bool) {
	return func(yield func(element) bool) {
		data := c.bytes(a.view)
		if data == nil || !a.ok {
			return
		}
		for i := int64(0); i < a.count; i++ {
			at := a.offset + i*a.stride
			if !yield(element{data[at : at+a.size], a.component}) {
				return
			}
		}
	}
}
