package pixel

// Cost is what the head of an image file tells of the memory that it will take, without decoding it.
type Cost struct {
	Config
	Pixels int64
	Decode int64 // bytes: at most so many while [DecodePicture] or [Decode] is at work, with what it gives
}

// CostOf reads it. There is none for what cannot be decoded by these limits, which is refused before memory is taken.
func CostOf(name string, data []byte, lim Limits) Cost {
	c, err := DecodeConfig(name, data)
	n := int64(c.Width) * int64(c.Height)
	if err != nil || max(c.Width, c.Height) > lim.MaxSide || 4*n > lim.MaxBytes {
		return Cost{}
	}
	return Cost{Config: c, Pixels: n, Decode: n * bytesAPixel(c, data)}
}

// bytesAPixel of a decoder's own picture, of what it needs besides, and of the Eight and the Float that are made of it.
func bytesAPixel(c Config, data []byte) int64 {
	const eight, float = 4, 16
	switch {
	case c.HDR:
		return float
	case c.Format == "psd" || c.Format == "tiff": // numbers of 16 bits, 64 bits of them and the cover of CMYK, for all
		if c.Deep {
			return 8 + 2 + 8 + eight + float
		}
		return 8 + 2 + eight
	case c.Deep:
		return 8 + eight + float
	case c.Format == "jpeg" && headOfJPEG(data).progressive: // four channels of coefficients of 32 bits, before they are four of 8
		return 16 + 4 + 4 + eight
	case c.Format == "bmp" || c.Format == "tga" || c.Format == "qoi":
		return eight
	}
	return 8 + eight // interlaced rows, planes of chroma
}
