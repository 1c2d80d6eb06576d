package pixel

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"io"
)

// The decoders of others take memory for a picture before they look at what follows its head. So a file that claims far more than it has is
// held against its data first, and what cannot be there is refused before it costs anything. Ours do that by themselves.

// dense is how many bytes of memory a byte of a file may become without a question: more of them are looked at first, in files that are
// flat, and in those that lie.
const dense = 64

// flat is how many pixels of one colour are taken for what they are, where a format has no bytes for them: memory of at most 64 MiB.
const flat = 1 << 24

// atMost is a bound that a format sets: so many pixels for a byte.
func atMost(pixelsPerByte int64) func([]byte, Config) error {
	return func(data []byte, c Config) error {
		return fits(c, int64(c.Width)*int64(c.Height)/pixelsPerByte, int64(len(data)))
	}
}

// fits says that there are fewer bytes than there must be.
func fits(c Config, needed, there int64) error {
	if needed <= there {
		return nil
	}
	return &Error{Fault: Truncated, Format: c.Format, Detail: fmt.Sprintf("%d bytes cannot hold %d x %d pixels", there, c.Width, c.Height)}
}

// holdsPNG inflates the pixels, as far as they must go, without keeping them: there are depths of 1 to 16 bits, and 1 to 4 channels.
func holdsPNG(data []byte, c Config) error {
	// Deflate makes at most 1032 bytes of one, each at most 8 pixels.
	if err := atMost(1032*8)(data, c); err != nil {
		return err
	}
	channels := map[byte]int64{0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[data[25]]
	var parts []io.Reader
	for b := data[8:]; len(b) >= 12; {
		size := min(uint64(binary.BigEndian.Uint32(b)), uint64(len(b)-12))
		if string(b[4:8]) == "IDAT" {
			parts = append(parts, bytes.NewReader(b[8:8+size]))
		}
		b = b[12+size:]
	}
	r, err := zlib.NewReader(io.MultiReader(parts...))
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.CopyN(io.Discard, r, int64(c.Width)*int64(c.Height)*channels*int64(data[24])/8)
	return err
}

// holdsGIF looks at the first frame, which may be smaller than the screen: LZW has codes of 12 bits for at most 4096 pixels. A screen that
// is not flat is bound by the same, as nothing else fills it.
func holdsGIF(data []byte, c Config) error {
	const pixels, bits = 4096, 12
	if n := int64(c.Width) * int64(c.Height); n > flat {
		if err := fits(c, n*bits/8/pixels, int64(len(data))); err != nil {
			return err
		}
	}
	at := 13
	if flags := data[10]; flags&0x80 != 0 {
		at += 3 << (flags&7 + 1)
	}
	for at+10 <= len(data) && data[at] == '!' { // an extension: its kind, and blocks with their length before them, up to an empty one
		for at += 2; at < len(data) && data[at] != 0; {
			at += 1 + int(data[at])
		}
		at++
	}
	if at+10 > len(data) || data[at] != ',' {
		return nil // it has no frame, as its decoder will say
	}
	u16 := func(i int) int64 { return int64(binary.LittleEndian.Uint16(data[at+i:])) }
	return fits(c, u16(5)*u16(7)*bits/8/pixels, int64(len(data)))
}

// holdsTIFF is for those kinds that golang.org/x/image reads.
func holdsTIFF(data []byte, c Config) error {
	if _, yes, _ := rareTIFF(data); yes {
		return nil
	}
	number := func(tag uint16, otherwise int64) int64 {
		if v := tiffTag(data, tag); len(v) >= 2 {
			return int64(tiffOrder(data).Uint16(v))
		}
		return otherwise
	}
	// Most bytes that one can make: PackBits, LZW with codes of 9 to 12 bits, Deflate.
	most := map[int64]int64{1: 1, 32773: 64, 5: 2731, 8: 1032, 32946: 1032}[number(259, 1)]
	if most == 0 {
		most = max(1, int64(c.Width)) // fax: a white line is a bit
	}
	return fits(c, int64(c.Width)*int64(c.Height)*number(258, 1)*number(277, 1)/8/most, int64(len(data)))
}

// holdsWebP knows of lossy pictures that the modes of 16 x 16 pixels, which have fixed probabilities, take two bits at least (RFC 6386,
// section 11.2). In those without loss a copy takes 11 bits at least for 4096 places (RFC 9649, section 5.2.2), each of at most 8 pixels,
// and only areas of one colour take none: 65536 pixels for a byte is more than any picture has that is not flat. Alpha comes before a lossy
// picture: without one it is nothing.
func holdsWebP(data []byte, c Config) error {
	n := int64(c.Width) * int64(c.Height)
	for b := data[min(12, len(data)):]; len(b) >= 8; {
		size := min(uint64(binary.LittleEndian.Uint32(b[4:])), uint64(len(b)-8))
		switch string(b[:4]) {
		case "VP8 ":
			return atMost(4*16*16)(data, c)
		case "VP8L":
			if n <= flat {
				return nil
			}
			return fits(c, n>>16, int64(size))
		}
		b = b[8+min(size+size&1, uint64(len(b)-8)):]
	}
	return fits(c, n, 0)
}
