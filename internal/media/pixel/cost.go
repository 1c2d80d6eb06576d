package pixel

import "encoding/binary"

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
	return Cost{Config: c, Pixels: n, Decode: n * bytesAPixel(c, data)}
}

// bytesAPixel returns the bytes per pixel for the decoder's own picture, its working memory, and the Eight and the
// Float that are made from it.
func bytesAPixel(c Config, data []byte) int64 {
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
	case c.Format == "jpeg" && progressiveJPEG(data): // four channels of 32-bit coefficients, then four of 8 bits
		return 16 + 4 + 4 + eight
	case c.Format == "bmp" || c.Format == "tga" || c.Format == "qoi":
		return eight
	}
	return 8 + eight // interlaced rows, chroma planes
}

// progressiveJPEG reports whether the frame of a JPEG is progressive. The segments before the frame are 0xff, a marker,
// u16 size, bytes.
func progressiveJPEG(data []byte) bool {
	for at := 2; at+4 <= len(data); {
		switch mark := data[at+1]; {
		case data[at] != 0xff || mark == 0xff:
			at++
		case mark == 0xc0, mark == 0xc1, mark == 0xda:
			return false
		case mark == 0xc2:
			return true
		default:
			at += 2 + int(binary.BigEndian.Uint16(data[at+2:]))
		}
	}
	return false
}
