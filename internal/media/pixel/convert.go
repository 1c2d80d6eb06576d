package pixel

import (
	"image"
	"image/color"
)

// fromImage converts the images that decoders return. Common types are converted row by row, without an interface call
// for each pixel.
func fromImage(m image.Image) *Image {
	b := m.Bounds()
	if n, ok := m.(*image.NRGBA); ok && n.Stride == 4*b.Dx() && len(n.Pix) == n.Stride*b.Dy() {
		return &Image{b.Dx(), b.Dy(), n.Pix}
	}
	out := New(b.Dx(), b.Dy())
	row := rowOf(m)
	for y := range out.Height {
		row(out.Pix[4*y*out.Width:][:4*out.Width], y)
	}
	return out
}

// rowOf returns a function that writes row y, counted from the top of the image, as straight RGBA8.
func rowOf(m image.Image) func(dst []byte, y int) {
	switch m := m.(type) {
	case *image.NRGBA:
		return func(dst []byte, y int) { copy(dst, m.Pix[y*m.Stride:]) }
	case *image.RGBA:
		return func(dst []byte, y int) {
			copy(dst, m.Pix[y*m.Stride:])
			straighten(dst)
		}
	case *image.NRGBA64:
		return func(dst []byte, y int) {
			src := m.Pix[y*m.Stride:]
			for i := range dst {
				dst[i] = eight(uint32(src[2*i])<<8 | uint32(src[2*i+1]))
			}
		}
	case *image.RGBA64:
		return func(dst []byte, y int) {
			src := m.Pix[y*m.Stride:]
			for i := 0; i < len(dst); i += 4 {
				s := src[2*i : 2*i+8 : 2*i+8]
				a := uint32(s[6])<<8 | uint32(s[7])
				for c := range 3 {
					dst[i+c] = straighten64(uint32(s[2*c])<<8|uint32(s[2*c+1]), a)
				}
				dst[i+3] = eight(a)
			}
		}
	case *image.Gray:
		return func(dst []byte, y int) {
			src := m.Pix[y*m.Stride:]
			for i := 0; i < len(dst); i += 4 {
				v := src[i/4]
				dst[i], dst[i+1], dst[i+2], dst[i+3] = v, v, v, 255
			}
		}
	case *image.Gray16:
		return func(dst []byte, y int) {
			src := m.Pix[y*m.Stride:]
			for i := 0; i < len(dst); i += 4 {
				v := eight(uint32(src[i/2])<<8 | uint32(src[i/2+1]))
				dst[i], dst[i+1], dst[i+2], dst[i+3] = v, v, v, 255
			}
		}
	case *image.Paletted:
		return palettedRow(m)
	case *image.YCbCr:
		return func(dst []byte, y int) { ycbcrRow(dst, m, y) }
	case *image.NYCbCrA:
		return func(dst []byte, y int) {
			ycbcrRow(dst, &m.YCbCr, y)
			for i := 3; i < len(dst); i += 4 {
				dst[i] = m.A[y*m.AStride+i/4]
			}
		}
	}
	return func(dst []byte, y int) { anyRow(dst, m, y) } // CMYK
}

// palettedRow looks up each colour in a table of straight RGBA8. An index outside of the palette is transparent, as in
// the standard library.
func palettedRow(m *image.Paletted) func(dst []byte, y int) {
	var table [256][4]byte
	for i, c := range m.Palette {
		table[i] = straight(c)
	}
	return func(dst []byte, y int) {
		src := m.Pix[y*m.Stride:]
		for i := 0; i < len(dst); i += 4 {
			copy(dst[i:i+4], table[src[i/4]][:])
		}
	}
}

func ycbcrRow(dst []byte, m *image.YCbCr, y int) {
	for i := 0; i < len(dst); i += 4 {
		x := m.Rect.Min.X + i/4
		yi, ci := m.YOffset(x, m.Rect.Min.Y+y), m.COffset(x, m.Rect.Min.Y+y)
		dst[i], dst[i+1], dst[i+2] = color.YCbCrToRGB(m.Y[yi], m.Cb[ci], m.Cr[ci])
		dst[i+3] = 255
	}
}

func anyRow(dst []byte, m image.Image, y int) {
	b := m.Bounds()
	for i := 0; i < len(dst); i += 4 {
		c := straight(m.At(b.Min.X+i/4, b.Min.Y+y))
		copy(dst[i:], c[:])
	}
}

// straight returns a colour as straight RGBA8.
func straight(c color.Color) [4]byte {
	switch c := c.(type) {
	case color.NRGBA: // the conversion through 16 premultiplied bits is inexact for low alpha
		return [4]byte{c.R, c.G, c.B, c.A}
	case color.NRGBA64:
		return [4]byte{eight(uint32(c.R)), eight(uint32(c.G)), eight(uint32(c.B)), eight(uint32(c.A))}
	}
	r, g, b, a := c.RGBA()
	return [4]byte{straighten64(r, a), straighten64(g, a), straighten64(b, a), eight(a)}
}

// straighten64 divides a 16-bit colour value by alpha.
func straighten64(v, a uint32) byte {
	switch a {
	case 0:
		return 0
	case 0xffff:
		return eight(v)
	}
	return eight((min(v, a)*0xffff + a/2) / a)
}

// straighten divides a row of premultiplied RGBA8 by alpha.
func straighten(row []byte) {
	for i := 0; i < len(row); i += 4 {
		a := uint32(row[i+3])
		if a == 255 {
			continue
		}
		for c := i; c < i+3; c++ {
			if a == 0 {
				row[c] = 0
			} else {
				row[c] = byte((min(uint32(row[c]), a)*255 + a/2) / a)
			}
		}
	}
}

// eight rounds 16 bits to 8.
func eight(v uint32) byte { return byte((v*255 + 0x7fff) / 0xffff) }
