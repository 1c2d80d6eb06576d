package pixel

import "encoding/binary"

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
	if err != nil || lim.under(c, 4) {
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
	case c.Format == "jpeg" && progressiveJPEG(data): // four channels of coefficients of 32 bits, before they are four of 8
		return 16 + 4 + 4 + eight
	case c.Format == "bmp" || c.Format == "tga" || c.Format == "qoi":
		return eight
	}
	return 8 + eight // interlaced rows, planes of chroma
}

// progressiveJPEG tells whether a JPEG's frame is a progressive one. Before it are segments: 0xff, a mark, u16 size, bytes.
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
