package pixel

// oriented returns an image turned upright by its orientation, 2 to 8. From 5 on, rows become columns.
func oriented[T byte | float32](pix []T, width, height, orientation int) []T {
	out := make([]T, len(pix))
	w, h := width, height
	if orientation >= 5 {
		w, h = height, width
	}
	for y := range h {
		for x := range w {
			i, j := x, y // its position in the file
			switch orientation {
			case 2:
				i = width - 1 - x
			case 3:
				i, j = width-1-x, height-1-y
			case 4:
				j = height - 1 - y
			case 5:
				i, j = y, x
			case 6:
				i, j = y, height-1-x
			case 7:
				i, j = width-1-y, height-1-x
			case 8:
				i, j = width-1-y, x
			}
			copy(out[4*(y*w+x):][:4], pix[4*(j*width+i):])
		}
	}
	return out
}

func (m *Image) oriented(orientation int) *Image {
	if orientation < 2 {
		return m
	}
	w, h := upright(m.Width, m.Height, orientation)
	return &Image{w, h, oriented(m.Pix, m.Width, m.Height, orientation)}
}

func (f *Float) oriented(orientation int) *Float {
	if orientation < 2 {
		return f
	}
	w, h := upright(f.Width, f.Height, orientation)
	return &Float{w, h, oriented(f.Pix, f.Width, f.Height, orientation)}
}

// upright returns the size after turning.
func upright(width, height, orientation int) (int, int) {
	if orientation >= 5 {
		return height, width
	}
	return width, height
}
