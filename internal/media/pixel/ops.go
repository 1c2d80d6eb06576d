package pixel

import (
	"strings"
	"sync"
)

// Flipped returns the image upside down.
func (m *Image) Flipped() *Image {
	out := New(m.Width, m.Height)
	stride := 4 * m.Width
	for y := range m.Height {
		copy(out.Pix[y*stride:(y+1)*stride], m.Pix[(m.Height-1-y)*stride:])
	}
	return out
}

// Premultiplied returns the image with its colours multiplied by alpha. sRGB-encoded colours are multiplied as light,
// because hardware decodes a texture before it blends. The result is no longer an Image as this package defines it: it
// can only be stored.
func (m *Image) Premultiplied(srgb bool) *Image {
	out := New(m.Width, m.Height)
	copy(out.Pix, m.Pix)
	t := premultiplied(srgb)
	for i := 0; i < len(out.Pix); i += 4 {
		p := out.Pix[i : i+4 : i+4]
		if a := p[3]; a != 255 {
			row := &t[a]
			p[0], p[1], p[2] = row[p[0]], row[p[1]], row[p[2]]
		}
	}
	return out
}

func premultiplied(srgb bool) *[256][256]byte {
	if srgb {
		return premultipliedSRGB()
	}
	return premultipliedLinear()
}

// Indexed by alpha, then by colour.
var (
	premultipliedSRGB = sync.OnceValue(func() *[256][256]byte {
		t, s := &[256][256]byte{}, tables()
		for a := range t {
			for c := range t[a] {
				t[a][c] = s.code[(int(s.light[c])*a+127)/255]
			}
		}
		return t
	})
	premultipliedLinear = sync.OnceValue(func() *[256][256]byte {
		t := &[256][256]byte{}
		for a := range t {
			for c := range t[a] {
				t[a][c] = byte((c*a + 127) / 255)
			}
		}
		return t
	})
)

// Straighten divides the colours of a premultiplied image by alpha, as light if they are sRGB-encoded. It is the
// inverse of Premultiplied, except for rounding.
func (m *Image) Straighten(srgb bool) {
	t := tables()
	for i := 0; i < len(m.Pix); i += 4 {
		p := m.Pix[i : i+4 : i+4]
		a := int(p[3])
		if a == 255 || a == 0 {
			continue
		}
		for c, v := range p[:3] {
			if srgb {
				p[c] = t.code[min(0xffff, (int(t.light[v])*255+a/2)/a)]
			} else {
				p[c] = byte(min(255, (int(v)*255+a/2)/a))
			}
		}
	}
}

// Swizzle reorders channels. order is four of "rgba01", the sources of red, green, blue and alpha. Empty means "rgba".
func (m *Image) Swizzle(order string) {
	if order == "" || order == "rgba" {
		return
	}
	for i := 0; i < len(m.Pix); i += 4 {
		p := m.Pix[i : i+4 : i+4]
		from := [6]byte{p[0], p[1], p[2], p[3], 0, 255}
		for c := range p {
			p[c] = from[strings.IndexByte("rgba01", order[c])]
		}
	}
}

// Channels returns the first n channels, 1 to 4, without padding: n*Width*Height bytes.
func (m *Image) Channels(n int) []byte {
	if n == 4 {
		return m.Pix
	}
	out := make([]byte, n*m.Width*m.Height)
	for i := range m.Width * m.Height {
		copy(out[n*i:n*i+n], m.Pix[4*i:])
	}
	return out
}
