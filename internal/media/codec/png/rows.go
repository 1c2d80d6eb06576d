package png

import "encoding/binary"

// Filters of rows (PNG, 9.2).
const (
	none = iota
	sub
	up
	average
	paeth
)

// rows converts filtered rows to pixels.
type rows struct {
	*reader
	pix []byte // RGBA, up to the current row
	y   int

	// For kinds without three colours, the current row and the one before as bytes.
	row, above []byte
}

func (r *reader) rows(stride int) *rows {
	out := &rows{reader: r, pix: make([]byte, 4*r.width*r.height)}
	if r.kind != rgb && r.kind != rgba {
		out.row, out.above = make([]byte, stride-1), make([]byte, stride-1)
	}
	return out
}

// add converts the next row, whose first byte is its filter.
func (r *rows) add(src []byte) bool {
	filter, src := src[0], src[1:]
	size := 4 * r.width
	dst := r.pix[r.y*size:][:size]
	var above []byte
	if r.y > 0 {
		above = r.pix[(r.y-1)*size:][:size]
	}
	r.y++
	switch {
	case filter > paeth:
		return false
	case r.kind == rgba:
		colours(filter, dst, src, above, 0)
	case r.kind == rgb:
		widen(dst, src)
		colours(filter, dst, dst, above, 0xff000000)
	default:
		r.row, r.above = r.above, r.row
		unfilter(filter, r.row, src, r.above, r.channels())
		r.expand(dst, r.row)
	}
	return true
}

// widen makes pixels of four bytes of those of three.
func widen(dst, src []byte) {
	last := len(src) - 3
	for i, o := 0, 0; i < last; i, o = i+3, o+4 {
		binary.LittleEndian.PutUint32(dst[o:], binary.LittleEndian.Uint32(src[i:])&0xffffff)
	}
	copy(dst[len(dst)-4:], src[last:])
}

// colours reverses the filter of a row of pixels of four bytes, each of which is a word here. above is nil for the first
// row. opaque is added to each pixel. dst may be src.
func colours(filter byte, dst, src, above []byte, opaque uint32) {
	le := binary.LittleEndian
	src = src[:len(dst)]
	if above == nil { // it counts as zeros
		switch filter {
		case up:
			filter = none
		case paeth:
			filter = sub
		case average:
			above = make([]byte, len(dst))
		}
	}
	left := uint32(0)
	switch filter {
	case none:
		if opaque == 0 {
			copy(dst, src)
			return
		}
		for i := 0; i+4 <= len(dst); i += 4 {
			le.PutUint32(dst[i:], le.Uint32(src[i:])|opaque)
		}
	case sub:
		for i := 0; i+4 <= len(dst); i += 4 {
			left = add4(le.Uint32(src[i:]), left)
			le.PutUint32(dst[i:], left|opaque)
		}
	case up:
		above = above[:len(dst)]
		i := 0
		for ; i+8 <= len(dst); i += 8 {
			v := add8(le.Uint64(src[i:]), le.Uint64(above[i:]))
			le.PutUint64(dst[i:], v|uint64(opaque)<<32|uint64(opaque))
		}
		for ; i+4 <= len(dst); i += 4 {
			le.PutUint32(dst[i:], add4(le.Uint32(src[i:]), le.Uint32(above[i:]))|opaque)
		}
	case average:
		above = above[:len(dst)]
		if lanes {
			averageLanes(&dst[0], &src[0], &above[0], len(dst)/4, opaque)
			return
		}
		for i := 0; i+4 <= len(dst); i += 4 {
			b := le.Uint32(above[i:])
			left = add4(le.Uint32(src[i:]), left&b+(left^b)&0xfefefefe>>1)
			le.PutUint32(dst[i:], left|opaque)
		}
	case paeth:
		paethRow(dst, src, above, opaque)
	}
}

// add4 adds the four bytes of two words, and add8 eight.
func add4(a, b uint32) uint32 { return (a&0x7f7f7f7f + b&0x7f7f7f7f) ^ (a^b)&0x80808080 }

func add8(a, b uint64) uint64 {
	return (a&0x7f7f7f7f7f7f7f7f + b&0x7f7f7f7f7f7f7f7f) ^ (a^b)&0x8080808080808080
}

// paethRow reverses the filter of Paeth for pixels of four bytes.
func paethRow(dst, src, above []byte, opaque uint32) {
	var r, g, b, a, cr, cg, cb, ca byte // of the pixel to the left, and of the one above it
	above, src = above[:len(dst)], src[:len(dst)]
	if lanes {
		paethLanes(&dst[0], &src[0], &above[0], len(dst)/4, opaque)
		return
	}
	for i := 0; i+4 <= len(dst); i += 4 {
		s, u, d := src[i:i+4:i+4], above[i:i+4:i+4], dst[i:i+4:i+4]
		r, g, b, a = s[0]+predict(r, u[0], cr), s[1]+predict(g, u[1], cg), s[2]+predict(b, u[2], cb), s[3]+predict(a, u[3], ca)
		cr, cg, cb, ca = u[0], u[1], u[2], u[3]
		d[0], d[1], d[2], d[3] = r, g, b, a|byte(opaque>>24)
	}
}

// expand converts a row of bytes to RGBA.
func (r *rows) expand(dst, src []byte) {
	switch {
	case r.kind == greyAlpha:
		for i := 0; i < len(dst); i += 4 {
			v := src[i/2]
			dst[i], dst[i+1], dst[i+2], dst[i+3] = v, v, v, src[i/2+1]
		}
	case r.kind == grey && r.depth == 8:
		for i := range src {
			binary.LittleEndian.PutUint32(dst[4*i:], uint32(src[i])*0x010101|0xff000000)
		}
	case r.kind == indexed && r.depth == 8:
		for i, v := range src {
			*(*[4]byte)(dst[4*i:]) = r.palette[v]
		}
	default:
		mask := byte(1<<r.depth - 1)
		for x := range r.width {
			at := x * r.depth
			v := src[at/8] >> (8 - r.depth - at%8) & mask
			if r.kind == indexed {
				*(*[4]byte)(dst[4*x:]) = r.palette[v]
			} else {
				binary.LittleEndian.PutUint32(dst[4*x:], uint32(v)*(255/uint32(mask))*0x010101|0xff000000)
			}
		}
	}
}

// unfilter reverses the filter of a row of bytes. size is that of a pixel, at least 1.
func unfilter(filter byte, dst, src, above []byte, size int) {
	copy(dst, src)
	switch filter {
	case sub:
		for i := size; i < len(dst); i++ {
			dst[i] += dst[i-size]
		}
	case up:
		for i, v := range above {
			dst[i] += v
		}
	case average:
		for i, v := range above {
			left := 0
			if i >= size {
				left = int(dst[i-size])
			}
			dst[i] += byte((left + int(v)) / 2)
		}
	case paeth:
		for i, v := range above {
			var left, corner byte
			if i >= size {
				left, corner = dst[i-size], above[i-size]
			}
			dst[i] += predict(left, v, corner)
		}
	}
}

// predict returns the one of three neighbours that is nearest to left + above - corner.
func predict(left, above, corner byte) byte {
	a, b := int(above)-int(corner), int(left)-int(corner) // distances from left and from above
	c := abs(a + b)
	a, b = abs(a), abs(b)
	if b < a {
		a, left = b, above
	}
	if c < a {
		left = corner
	}
	return left
}

func abs(v int) int {
	s := v >> 63
	return (v ^ s) - s
}
