package pixel

import (
	"sync"

	"github.com/kiln-pipeline/kiln/internal/media/codec/block"
)

// Light returns the image in floating point, 0..1. If srgb is set, its colours are sRGB-encoded and are decoded to
// linear light.
func (m *Image) Light(srgb bool) *Float {
	out := NewFloat(m.Width, m.Height)
	var color, alpha [256]float32
	for i := range alpha {
		alpha[i] = float32(i) / 255
		color[i] = alpha[i]
		if srgb {
			color[i] = lightOf()[i*0x101]
		}
	}
	for i := 0; i < len(m.Pix); i += 4 {
		s, d := m.Pix[i:i+4:i+4], out.Pix[i:i+4:i+4]
		d[0], d[1], d[2], d[3] = color[s[0]], color[s[1]], color[s[2]], alpha[s[3]]
	}
	return out
}

// Light returns the picture in floating point, as linear light. If srgb is set, colours are sRGB-encoded, unless the
// picture already holds light.
func (p *Picture) Light(srgb bool) *Float {
	switch {
	case p.HDR:
		return p.Float
	case p.Float == nil:
		return p.Eight.Light(srgb)
	case !srgb:
		return p.Float
	}
	out, table := NewFloat(p.Float.Width, p.Float.Height), lightOf()
	for i := 0; i < len(out.Pix); i += 4 {
		s, d := p.Float.Pix[i:i+4:i+4], out.Pix[i:i+4:i+4]
		d[0], d[1], d[2], d[3] = table[unit(s[0], 0xffff)], table[unit(s[1], 0xffff)], table[unit(s[2], 0xffff)], s[3]
	}
	return out
}

// Bits returns the picture with 8 bits a channel. If a picture in floating point is light, its colours become
// sRGB-encoded, and values over 1 become 1. Other floating point values are not encoded.
func (p *Picture) Bits(light bool) *Image {
	switch {
	case p.Eight != nil:
		return p.Eight
	case light:
		return p.Float.Encoded()
	}
	out := New(p.Float.Width, p.Float.Height)
	for i, v := range p.Float.Pix {
		out.Pix[i] = byte(unit(v, 255))
	}
	return out
}

// lightOf has the light for each 16-bit sRGB code.
var lightOf = sync.OnceValue(func() *[65536]float32 {
	t := &[65536]float32{}
	for i := range t {
		t[i] = float32(decodeSRGB(float64(i) / 65535))
	}
	return t
})

// ResizeFloat is like Resize for an image of light. It ignores SRGB and Normal.
func (f Filter) ResizeFloat(m *Float, width, height int) *Float {
	if width == m.Width && height == m.Height {
		return m
	}
	axisOf := boxAxis
	if f.Kernel == Kaiser {
		axisOf = kaiserAxis
	}
	src := m
	if f.Weighted {
		src = m.weighted()
	}
	out := f.columns(f.lines(src, axisOf(m.Width, width)), axisOf(m.Height, height))
	if f.Weighted {
		out.unweight()
	}
	return out
}

// MipsFloat is like Mips for an image of light. Each level is made from the one before.
func (f Filter) MipsFloat(m *Float) []*Float {
	levels := []*Float{m}
	for m.Width > 1 || m.Height > 1 {
		m = f.ResizeFloat(m, max(1, m.Width/2), max(1, m.Height/2))
		levels = append(levels, m)
	}
	return levels
}

// VolumeMipsFloat is like VolumeMips for slices of light.
func (f Filter) VolumeMipsFloat(slices []*Float) [][]*Float {
	levels := [][]*Float{slices}
	for len(slices) > 1 || slices[0].Width > 1 || slices[0].Height > 1 {
		width, height := max(1, slices[0].Width/2), max(1, slices[0].Height/2)
		smaller := make([]*Float, len(slices))
		for i, m := range slices {
			smaller[i] = f.ResizeFloat(m, width, height)
		}
		depth := boxAxis(len(slices), max(1, len(slices)/2))
		slices = make([]*Float, len(depth.first))
		for z := range slices {
			slices[z] = NewFloat(width, height)
			for k, w := range depth.weights[z*depth.taps:][:depth.taps] {
				add(slices[z].Pix, smaller[depth.first[z]+k].Pix, w)
			}
		}
		levels = append(levels, slices)
	}
	return levels
}

// add adds src times weight/weightOne. The weight is exact in a float32. The conversion prevents fusing the product
// with the sum.
func add(dst, src []float32, weight int32) {
	if weight == 0 {
		return
	}
	w := float32(weight) / weightOne
	for i, v := range src[:len(dst)] {
		dst[i] += float32(w * v)
	}
}

// lines resamples every row.
func (f Filter) lines(m *Float, a axis) *Float {
	out := NewFloat(len(a.first), m.Height)
	block.Rows(m.Height, f.workers(out.Width, out.Height), func(next func() int) {
		for y := next(); y >= 0; y = next() {
			src, dst := m.Pix[4*m.Width*y:][:4*m.Width], out.Pix[4*out.Width*y:][:4*out.Width]
			for x, first := range a.first {
				d := dst[4*x : 4*x+4]
				for k, w := range a.weights[x*a.taps:][:a.taps] {
					add(d, src[4*(first+k):], w)
				}
			}
		}
	})
	return out
}

// columns resamples every column.
func (f Filter) columns(m *Float, a axis) *Float {
	out := NewFloat(m.Width, len(a.first))
	block.Rows(out.Height, f.workers(out.Width, out.Height), func(next func() int) {
		for y := next(); y >= 0; y = next() {
			dst := out.Pix[4*m.Width*y:][:4*m.Width]
			for k, w := range a.weights[y*a.taps:][:a.taps] {
				add(dst, m.Pix[4*m.Width*(a.first[y]+k):], w)
			}
		}
	})
	return out
}

// weighted multiplies colours by alpha plus a small constant for transparent pixels: see alphaWeight.
func (m *Float) weighted() *Float {
	out := NewFloat(m.Width, m.Height)
	for i := 0; i < len(m.Pix); i += 4 {
		s, d := m.Pix[i:i+4:i+4], out.Pix[i:i+4:i+4]
		a := max(s[3], 0) + unseen
		d[0], d[1], d[2], d[3] = float32(s[0]*a), float32(s[1]*a), float32(s[2]*a), a
	}
	return out
}

const unseen = 1.0 / maxWeight

func (m *Float) unweight() {
	for i := 0; i < len(m.Pix); i += 4 {
		p := m.Pix[i : i+4 : i+4]
		a := max(p[3], unseen/2)
		p[0], p[1], p[2], p[3] = p[0]/a, p[1]/a, p[2]/a, max(0, p[3]-unseen)
	}
}

// Premultiplied returns the image with its colours multiplied by alpha.
func (m *Float) Premultiplied() *Float {
	out := NewFloat(m.Width, m.Height)
	for i := 0; i < len(m.Pix); i += 4 {
		s, d := m.Pix[i:i+4:i+4], out.Pix[i:i+4:i+4]
		d[0], d[1], d[2], d[3] = float32(s[0]*s[3]), float32(s[1]*s[3]), float32(s[2]*s[3]), s[3]
	}
	return out
}
