package pixel

import (
	"image"
	"math"
	"strings"
)

// Float is an RGBA image in 32-bit floating point with straight alpha. Rows go from the top down without padding, so
// len(Pix) is 4*Width*Height. If the file holds light (Radiance HDR, OpenEXR), values are linear and may be over 1.
type Float struct {
	Width, Height int
	Pix           []float32
}

// NewFloat returns a transparent black image.
func NewFloat(width, height int) *Float {
	return &Float{width, height, make([]float32, 4*width*height)}
}

// Encoded converts linear light to 8 bits a channel: values are clamped to 0..1, colours are sRGB-encoded, alpha is
// linear.
func (f *Float) Encoded() *Image {
	out := New(f.Width, f.Height)
	code := &tables().code
	for i := 0; i < len(out.Pix); i += 4 {
		s, d := f.Pix[i:i+4:i+4], out.Pix[i:i+4:i+4]
		d[0], d[1], d[2] = code[unit(s[0], 0xffff)], code[unit(s[1], 0xffff)], code[unit(s[2], 0xffff)]
		d[3] = byte(unit(s[3], 255))
	}
	return out
}

// maxLight replaces infinite light. It is the largest 16-bit floating point number.
const maxLight = 65504

// tame replaces NaN and infinities by numbers. Files of light sometimes contain them, and one such pixel would spread
// over all smaller versions of the image.
func (f *Float) tame() {
	for i, v := range f.Pix {
		switch {
		case v != v:
			f.Pix[i] = 0
		case v > math.MaxFloat32:
			f.Pix[i] = maxLight
		case v < -math.MaxFloat32:
			f.Pix[i] = -maxLight
		}
	}
}

// Encode converts a picture with a Gamma to the sRGB encoding. It does nothing if Gamma is 0.
func (p *Picture) Encode() {
	if p.Gamma == 0 || p.HDR {
		return
	}
	var eight [256]byte
	for i := range eight {
		eight[i] = byte(math.Round(255 * toSRGB(math.Pow(float64(i)/255, 1/p.Gamma))))
	}
	for i, v := range p.Eight.Pix {
		if i%4 != 3 {
			p.Eight.Pix[i] = eight[v]
		}
	}
	if p.Float != nil {
		// Results are rounded to 16 bits, as in the file, which removes differences in the last bits of a power between
		// machines.
		sixteen := make([]float32, 1<<16)
		for i := range sixteen {
			sixteen[i] = float32(math.Round(65535*toSRGB(math.Pow(float64(i)/65535, 1/p.Gamma)))) / 65535
		}
		for i := range p.Float.Pix {
			if i%4 != 3 {
				p.Float.Pix[i] = sixteen[unit(p.Float.Pix[i], 0xffff)]
				p.Eight.Pix[i] = byte(unit(p.Float.Pix[i], 255)) // more exact than the conversion of the 8-bit value
			}
		}
	}
	p.Gamma = 0
}

// toSRGB is the inverse of decodeSRGB.
func toSRGB(v float64) float64 {
	if v <= 0.0031308 {
		return 12.92 * v
	}
	return float64(1.055*math.Pow(v, 1/2.4)) - 0.055
}

// unit maps v from 0..1 to 0..top. It clamps and rounds; NaN becomes 0.
func unit(v, top float32) uint16 {
	if !(v > 0) {
		return 0
	}
	return uint16(float32(min(v, 1)*top) + 0.5)
}

// floatOf converts an image with 16 bits a channel to 0..1.
func floatOf(m image.Image) *Float {
	b := m.Bounds()
	out := NewFloat(b.Dx(), b.Dy())
	for y := range out.Height {
		row := out.Pix[4*y*out.Width:][:4*out.Width]
		switch m := m.(type) {
		case *image.NRGBA64:
			src := m.Pix[y*m.Stride:]
			for i := range row {
				row[i] = sixteen(src[2*i : 2*i+2])
			}
		case *image.Gray16:
			src := m.Pix[y*m.Stride:]
			for i := 0; i < len(row); i += 4 {
				v := sixteen(src[i/2 : i/2+2])
				row[i], row[i+1], row[i+2], row[i+3] = v, v, v, 1
			}
		case *image.RGBA64: // premultiplied, but mostly opaque
			src := m.Pix[y*m.Stride:]
			for i := 0; i < len(row); i += 4 {
				s := src[2*i : 2*i+8 : 2*i+8]
				a := sixteen(s[6:])
				row[i], row[i+1], row[i+2], row[i+3] = sixteen(s), sixteen(s[2:]), sixteen(s[4:]), a
				for c := i; a < 1 && c < i+3; c++ {
					row[c] = min(row[c], a) / max(a, 1.0/0xffff)
				}
			}
		case image.RGBA64Image:
			for i := 0; i < len(row); i += 4 {
				c := m.RGBA64At(b.Min.X+i/4, b.Min.Y+y)
				d := float32(max(c.A, 1))
				row[i], row[i+1], row[i+2], row[i+3] = float32(min(c.R, c.A))/d, float32(min(c.G, c.A))/d, float32(min(c.B, c.A))/d, float32(c.A)/0xffff
			}
		}
	}
	return out
}

// sixteen converts a big-endian 16-bit number to 0..1.
func sixteen(b []byte) float32 { return float32(uint32(b[0])<<8|uint32(b[1])) / 0xffff }

// Grey reports whether red, green and blue are equal in all pixels.
func (m *Float) Grey() bool {
	for i := 0; i < len(m.Pix); i += 4 {
		if m.Pix[i] != m.Pix[i+1] || m.Pix[i] != m.Pix[i+2] {
			return false
		}
	}
	return true
}

// Sixteens returns the first n channels as whole numbers of 16 bits, little-endian. 1 becomes 65535.
func (m *Float) Sixteens(n int) []byte {
	out := make([]byte, 0, 2*n*m.Width*m.Height)
	for i := 0; i < len(m.Pix); i += 4 {
		for _, v := range m.Pix[i : i+n] {
			u := unit(v, 0xffff)
			out = append(out, byte(u), byte(u>>8))
		}
	}
	return out
}

// OfSixteens is the inverse of Sixteens: a picture with these numbers, and with the same rounded to 8 bits. Other channels
// are 0, alpha 1.
func OfSixteens(data []byte, n, width, height int) *Picture {
	p := &Picture{Eight: New(width, height), Float: NewFloat(width, height)}
	for i := range width * height {
		p.Eight.Pix[4*i+3], p.Float.Pix[4*i+3] = 255, 1
		for c := range n {
			v := uint32(data[2*(n*i+c)]) | uint32(data[2*(n*i+c)+1])<<8
			p.Eight.Pix[4*i+c], p.Float.Pix[4*i+c] = eight(v), float32(v)/0xffff
		}
	}
	return p
}

// Swizzle is like that of an Image.
func (m *Float) Swizzle(order string) {
	if order == "" || order == "rgba" {
		return
	}
	for i := 0; i < len(m.Pix); i += 4 {
		p := m.Pix[i : i+4 : i+4]
		from := [6]float32{p[0], p[1], p[2], p[3], 0, 1}
		for c := range p {
			p[c] = from[strings.IndexByte("rgba01", order[c])]
		}
	}
}

// Straighten divides colours of whole numbers by alpha, up to 1. Pixels without alpha stay as they are.
func (m *Float) Straighten() {
	for i := 0; i < len(m.Pix); i += 4 {
		p := m.Pix[i : i+4 : i+4]
		if p[3] <= 0 || p[3] >= 1 {
			continue
		}
		for c := range 3 {
			p[c] = min(1, p[c]/p[3])
		}
	}
}

// Pick is like that of an Image.
func (m *Float) Pick(to int, from *Float, channel int) {
	for i := 0; i < len(m.Pix); i += 4 {
		m.Pix[i+to] = from.Pix[i+channel]
	}
}
