package gltf

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Pack merges all buffers of a document into one binary chunk, which it returns. The document then has one buffer without a
// uri, and its bufferViews refer to that. Only bytes in a view are kept.
//
// drop has the indices of unused bufferViews, such as those of images that were moved to other files. They are removed, and
// all references renumbered, unless another object still refers to them. If the file has an extension whose references to
// views are unknown, numbers must not change: a dropped view then remains with 4 zero bytes.
//
// The document must not be Broken. buffers is as for Validate; only those of fallback buffers may be nil.
func Pack(doc *Document, buffers [][]byte, drop map[int]bool) ([]byte, error) {
	p := packer{root: doc.Root, buffers: buffers, drop: maps.Clone(drop), placed: map[*Value]bool{}}
	views := doc.Root.Array("bufferViews")
	maps.DeleteFunc(p.drop, func(i int, drop bool) bool { return !drop || i >= len(views) })
	p.eachObject(func(v *Value) {
		if n, ok := v.Get("bufferView").Int(); ok {
			delete(p.drop, int(n))
		}
	})
	for i, v := range views {
		if p.drop[i] {
			continue
		}
		p.add(v)
		for _, ext := range meshopt {
			if m := v.Path("extensions", ext); m != nil {
				p.add(m)
			}
		}
	}
	if err := p.place(); err != nil {
		return nil, err
	}
	p.dropViews()
	p.rewriteBuffers()
	return p.bin, nil
}

type packer struct {
	root    *Value
	buffers [][]byte
	drop    map[int]bool
	ranges  []*byteRange
	placed  map[*Value]bool // objects that refer to bin
	bin     []byte
}

// byteRange is an object with buffer, byteOffset and byteLength.
type byteRange struct {
	object         *Value
	buffer         int
	offset, length int64
}

// add records a range that has bytes.
func (p *packer) add(v *Value) {
	r := &byteRange{object: v, buffer: int(v.int("buffer", -1)), offset: v.int("byteOffset", 0), length: v.int("byteLength", 0)}
	if !p.isFallback(r.buffer) {
		p.ranges = append(p.ranges, r)
	}
}

func (p *packer) isFallback(buffer int) bool {
	b := p.root.Array("buffers")[buffer]
	return b.Get("uri") == nil && isFallback(b)
}

// place copies the ranges in the order of their first bytes. Overlapping ranges, such as interleaved data, are copied
// together once, so a file never grows by more than the alignment.
func (p *packer) place() error {
	slices.SortStableFunc(p.ranges, func(a, b *byteRange) int {
		return cmp.Or(cmp.Compare(a.buffer, b.buffer), cmp.Compare(a.offset, b.offset))
	})
	for i := 0; i < len(p.ranges); {
		first := p.ranges[i]
		end, n := first.offset+first.length, i+1
		same := true
		for n < len(p.ranges) && p.ranges[n].buffer == first.buffer && p.ranges[n].offset < end {
			same = same && p.ranges[n].offset == first.offset
			end = max(end, p.ranges[n].offset+p.ranges[n].length)
			n++
		}
		if first.buffer < 0 || first.buffer >= len(p.buffers) || end > int64(len(p.buffers[first.buffer])) {
			return fmt.Errorf("buffer %d has no byte %d", first.buffer, end-1)
		}
		p.pad()
		if !same {
			// Each view keeps its alignment, regardless of that of the first view.
			p.bin = append(p.bin, make([]byte, first.offset%Alignment)...)
		}
		base := int64(len(p.bin))
		p.bin = append(p.bin, p.buffers[first.buffer][first.offset:end]...)
		for _, r := range p.ranges[i:n] {
			p.put(r.object, base+r.offset-first.offset)
		}
		i = n
	}
	return nil
}

func (p *packer) pad() {
	for len(p.bin)%Alignment != 0 {
		p.bin = append(p.bin, 0)
	}
}

// put makes a view refer to an offset in bin. It omits an offset of 0, the default.
func (p *packer) put(v *Value, offset int64) {
	p.placed[v] = true
	v.Set("buffer", NewInt(0))
	if offset == 0 {
		v.Delete("byteOffset")
	} else {
		v.Set("byteOffset", NewInt(offset))
	}
}

// dropViews removes the dropped views, or reduces them to 4 bytes.
func (p *packer) dropViews() {
	views := p.root.Get("bufferViews")
	if len(p.drop) == 0 || views == nil {
		return
	}
	if !p.understandsAll() {
		p.pad()
		for i, v := range views.Items {
			if p.drop[i] {
				v.Names, v.Items = nil, nil
				p.put(v, int64(len(p.bin)))
				v.Set("byteLength", NewInt(4))
			}
		}
		p.bin = append(p.bin, 0, 0, 0, 0)
		return
	}
	to := make([]int64, len(views.Items))
	var kept []*Value
	for i, v := range views.Items {
		to[i] = int64(len(kept))
		if !p.drop[i] {
			kept = append(kept, v)
		}
	}
	views.Items = kept
	if len(kept) == 0 {
		p.root.Delete("bufferViews")
	}
	p.eachObject(func(v *Value) {
		n, ok := v.Get("bufferView").Int()
		if ok && n >= 0 && n < int64(len(to)) && !p.drop[int(n)] {
			v.Set("bufferView", NewInt(to[n]))
		}
	})
}

// eachObject visits all objects except those in extras, whose content is up to applications.
func (p *packer) eachObject(visit func(*Value)) {
	var walk func(*Value)
	walk = func(v *Value) {
		if v.Kind == Object {
			visit(v)
		}
		for i, item := range v.Items {
			if v.Kind != Object || v.Names[i] != "extras" {
				walk(item)
			}
		}
	}
	walk(p.root)
}

// understandsAll reports whether all extensions in use are understood. It ignores the file's own list of extensions.
func (p *packer) understandsAll() bool {
	all := true
	p.eachObject(func(v *Value) {
		if ext := v.Get("extensions"); ext != nil && ext.Kind == Object {
			for _, name := range ext.Names {
				all = all && isUnderstood(name)
			}
		}
	})
	return all
}

// rewriteBuffers leaves one buffer with bytes, followed by the fallback buffers. The first buffer keeps other properties,
// such as a name or extras; those of the other buffers are lost.
func (p *packer) rewriteBuffers() {
	list := p.root.Get("buffers")
	if list == nil {
		return
	}
	var merged *Value
	var fallbacks []*Value
	to := make([]int64, len(list.Items))
	for i, b := range list.Items {
		if p.isFallback(i) {
			to[i] = int64(len(fallbacks))
			fallbacks = append(fallbacks, b)
		} else if merged == nil {
			merged = b
		}
	}
	first := int64(0)
	list.Items = fallbacks
	if len(p.bin) > 0 {
		if merged == nil {
			merged = NewObject()
		}
		merged.Delete("uri")
		merged.Set("byteLength", NewInt(int64(len(p.bin))))
		list.Items = append([]*Value{merged}, fallbacks...)
		first = 1
	}
	for _, v := range p.root.Array("bufferViews") {
		if !p.placed[v] {
			v.Set("buffer", NewInt(first+to[v.int("buffer", 0)]))
		}
	}
	if len(list.Items) == 0 {
		p.root.Delete("buffers")
	}
}

// WriteGLB packs a document and writes it as a .glb.
func WriteGLB(doc *Document, buffers [][]byte, drop map[int]bool) ([]byte, error) {
	if doc.Root.Kind != Object {
		return nil, errors.New("the document is not an object")
	}
	bin, err := Pack(doc, buffers, drop)
	if err != nil {
		return nil, err
	}
	return AppendGLB(nil, doc.Root, bin)
}
