package pixel

import "image"

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
		default: // RGBA64: premultiplied
			for i := 0; i < len(row); i += 4 {
				r, g, b, a := m.At(b.Min.X+i/4, b.Min.Y+y).RGBA()
				d := float32(max(a, 1))
				row[i], row[i+1], row[i+2], row[i+3] = float32(min(r, a))/d, float32(min(g, a))/d, float32(min(b, a))/d, float32(a)/0xffff
			}
		}
	}
	return out
}

// sixteen is 16 bits, big-endian, as 0..1.
func sixteen(b []byte) float32 { return float32(uint32(b[0])<<8|uint32(b[1])) / 0xffff }
