package webp

import "image"

// rgba converts luma and chroma of half the size to opaque RGBA. Each pixel's chroma is that of the four nearest samples, by
// their distances: nine, three, three and one sixteenth. Beyond the edges the samples at the edge count.
func rgba(m *image.YCbCr) []byte {
	width, height := m.Rect.Dx(), m.Rect.Dy()
	pix := make([]byte, 4*width*height)
	half, rows := (width+1)/2, (height+1)/2
	// Chroma of a row, interpolated between rows, in quarters, with one sample more at each end.
	cb, cr := make([]int32, half+2), make([]int32, half+2)
	for y := range height {
		near := y / 2
		far := min(max(0, near-1+y%2*2), rows-1)
		between(cb, m.Cb[near*m.CStride:][:half], m.Cb[far*m.CStride:][:half])
		between(cr, m.Cr[near*m.CStride:][:half], m.Cr[far*m.CStride:][:half])
		luma, out := m.Y[y*m.YStride:][:width], pix[4*y*width:][:4*width]
		for x, v := range luma {
			at := x/2 + 1
			beside := at - 1 + x%2*2
			u, w := (3*cb[at]+cb[beside]+8)>>4, (3*cr[at]+cr[beside]+8)>>4
			d := out[4*x : 4*x+4 : 4*x+4]
			d[0], d[1], d[2] = colour(int32(v), u, w)
			d[3] = 255
		}
	}
	return pix
}

// between interpolates two rows of samples.
func between(dst []int32, near, far []byte) {
	for i, v := range near {
		dst[i+1] = 3*int32(v) + int32(far[i])
	}
	dst[0], dst[len(dst)-1] = dst[1], dst[len(dst)-2]
}

// colour converts by BT.601 in fixed point, with 14 bits after the point of which 8 are dropped after each product, as libwebp
// does: 255/219 for luma, 255/224 times 1.402, 0.344, 0.714 and 1.772 for chroma. The constants at the end subtract 16 from
// luma and 128 from chroma, and round.
func colour(y, u, v int32) (r, g, b byte) {
	y = y * 19077 >> 8
	return clip(y + v*26149>>8 - 14234), clip(y - u*6419>>8 - v*13320>>8 + 8708), clip(y + u*33050>>8 - 17685)
}

// clip drops the last 6 bits after the point.
func clip(v int32) byte { return byte(min(max(0, v>>6), 255)) }
