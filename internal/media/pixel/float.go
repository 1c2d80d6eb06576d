package pixel

import (
	"image"
	"math"
)

// Float is RGBA in 32-bit floating point, straight alpha, rows from the top down without padding, so
// len(Pix) is 4*Width*Height. Where the file holds light (Radiance HDR, OpenEXR), values are linear and may be over 1.
type Float struct {
	Width, Height int
	Pix           []float32
}

// NewFloat is a transparent black image.
func NewFloat(width, height int) *Float {
	return &Float{width, height, make([]float32, 4*width*height)}
}

// Encoded is linear light as 8 bits a channel: clamped to 0..1, colours encoded as sRGB, alpha as it is.
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

// maxLight is the most that infinite light becomes: the largest number of 16-bit floating point.
const maxLight = 65504

// tame makes a number of what is none: files of light have 0/0 and 1/0 in them now and then, and one such pixel would spread over
// all smaller versions of the image.
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

// Encode gives a picture with a Gamma the sRGB encoding instead. Without one nothing changes.
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
		// 16 bits, as it was: so no last bit of a power is left that another machine may have otherwise.
		sixteen := make([]float32, 1<<16)
		for i := range sixteen {
			sixteen[i] = float32(math.Round(65535*toSRGB(math.Pow(float64(i)/65535, 1/p.Gamma)))) / 65535
		}
		for i := range p.Float.Pix {
			if i%4 != 3 {
				p.Float.Pix[i] = sixteen[unit(p.Float.Pix[i], 0xffff)]
				p.Eight.Pix[i] = byte(unit(p.Float.Pix[i], 255)) // nearer than what 8 bits gave
			}
		}
	}
	p.Gamma = 0
}

// toSRGB is the reverse of decodeSRGB.
func toSRGB(v float64) float64 {
	if v <= 0.0031308 {
		return 12.92 * v
	}
	return float64(1.055*math.Pow(v, 1/2.4)) - 0.055
}

// unit is v of 0..1, clamped, as 0..top, rounded; NaN is 0.
func unit(v, top float32) uint16 {
	if !(v > 0) {
		return 0
	}
	return uint16(float32(min(v, 1)*top) + 0.5)
}

// floatOf is an image with 16 bits a channel as 0..1.
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

// sixteen is 16 bits, big-endian, as 0..1.
func sixteen(b []byte) float32 { return float32(uint32(b[0])<<8|uint32(b[1])) / 0xffff }
