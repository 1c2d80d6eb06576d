package pixel

import "github.com/kiln-pipeline/kiln/internal/media/codec/jpeg"

// Cost is an upper bound for the memory that an image file takes, from its header alone.
type Cost struct {
	Config
	Pixels int64
	Decode int64 // most bytes that [DecodePicture] or [Decode] uses, including the result
}

// CostOf reads the header of an image file. It returns the zero Cost if the file cannot be decoded within the limits:
// such a file is refused before memory is allocated.
func CostOf(name string, data []byte, lim Limits) Cost {
	c, err := DecodeConfig(name, data)
	n := int64(c.Width) * int64(c.Height)
	if err != nil || lim.under(c, 4) {
		return Cost{}
	}
	if c.Format == "jpeg" {
		return Cost{Config: c, Pixels: n, Decode: memoryOfJPEG(data, n)}
	}
	return Cost{Config: c, Pixels: n, Decode: n * bytesAPixel(c)}
}

// bytesAPixel returns the bytes per pixel for the decoder's own picture, its working memory, and the Eight and the
// Float that are made from it.
func bytesAPixel(c Config) int64 {
	const eight, float = 4, 16
	switch {
	case c.HDR:
		return float
	case c.Format == "psd" || c.Format == "tiff": // 16-bit numbers; for deep files also 64 bits of them and the alpha of CMYK
		if c.Deep {
			return 8 + 2 + 8 + eight + float
		}
		return 8 + 2 + eight
	case c.Deep:
		return 8 + eight + float
	case c.Format == "bmp" || c.Format == "tga" || c.Format == "qoi":
		return eight
	}
	return 8 + eight // interlaced rows, chroma planes of WebP
}

// memoryOfJPEG returns what the decoder states, and the memory for turning the image.
func memoryOfJPEG(data []byte, pixels int64) int64 {
	h, _ := jpeg.ParseHeader(data)
	if m := metaOf("jpeg", data); m.orientation() > 1 {
		return h.Memory + 4*pixels
	}
	return h.Memory
}
