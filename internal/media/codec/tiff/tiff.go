// Package tiff reads the kinds of TIFF that golang.org/x/image/tiff does not support and that programs for games write:
// floating point (height maps, environments), integers of 32 bits (height maps), and a plane for each channel (Photoshop's
// "per channel").
//
// It follows "TIFF Revision 6.0" (1992) and Adobe's "Photoshop TIFF Technical Notes" 1 to 3 (2002, 2005): the first page;
// grey and RGB with 8, 16 and 32 bits, or floating point of 16 and 32; raw, LZW, Deflate, PackBits, with predictors; strips
// and tiles. Forms that neither package reads give an error that names them and the form to save instead: colours for print
// (CMYK, Lab), of photographs (YCbCr, JPEG inside) and of cameras, floating point of 64 bits, and the packings of maps and
// scanners.
//
// Floating point is linear light, as in Photoshop. Memory is allocated for at most the caller's limit of pixels, and for a
// strip or tile only as much as its packed bytes can expand to.
package tiff

import (
	"encoding/binary"
	"fmt"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

const (
	maxChannels = 64
)

// Tags of a directory.
const (
	tagWidth       = 256
	tagHeight      = 257
	tagBits        = 258
	tagCompression = 259
	tagPhotometric = 262
	tagStrips      = 273
	tagChannels    = 277
	tagStripRows   = 278
	tagStripSizes  = 279
	tagPlanes      = 284
	tagPredictor   = 317
	tagTileWidth   = 322
	tagTileHeight  = 323
	tagTiles       = 324
	tagTileSizes   = 325
	tagExtra       = 338
	tagFormat      = 339
)

// Photometric interpretations.
const (
	whiteIsZero = 0
	blackIsZero = 1
	rgb         = 2
)

// Compressions.
const (
	plain      = 1
	lzw        = 5
	deflate    = 8
	packBits   = 32773
	oldDeflate = 32946
)

// Kinds of alpha.
const (
	noAlpha = iota
	multiplied
	straight
)

// Header is the first directory.
type Header struct {
	Width, Height int
	Bits          int  // per channel
	Float         bool // linear light

	order       binary.ByteOrder
	photometric int
	channels    int
	alpha       int
	planes      bool // each channel has its own plane
	compression int
	predictor   int

	blockWidth, blockHeight int // of tiles, or of strips
	tiled                   bool
	offsets, sizes          []int
}

// colours returns the number of channels of a colour.
func (h *Header) colours() int {
	if h.photometric == rgb {
		return 3
	}
	return 1
}

// ParseHeader reads the first directory. It returns an error for files that [Decode] cannot read.
//
//	0  "II" or "MM": the byte order, then u16 42
//	4  u32 offset of the directory: u16 entries, each of u16 tag, u16 type, u32 count, and 4 bytes of numbers, or
//	   the u32 offset of longer numbers
func ParseHeader(data []byte) (Header, error) {
	h := Header{order: binary.LittleEndian}
	if len(data) < 8 {
		return h, input.ErrTruncated
	}
	switch string(data[:4]) {
	case "II*\x00":
	case "MM\x00*":
		h.order = binary.BigEndian
	default:
		return h, fmt.Errorf("no signature: %w", input.ErrDamaged)
	}
	tags, err := h.directory(data)
	if err != nil {
		return h, err
	}
	one := func(tag, otherwise int) int {
		if v := tags[tag]; len(v) > 0 {
			return v[0]
		}
		return otherwise
	}
	h.Width, h.Height = one(tagWidth, 0), one(tagHeight, 0)
	if err := input.CheckSize(h.Width, h.Height); err != nil {
		return h, err
	}
	h.Bits, h.channels = one(tagBits, 1), one(tagChannels, 1)
	h.photometric, h.compression, h.predictor = one(tagPhotometric, -1), one(tagCompression, plain), one(tagPredictor, 1)
	h.planes = one(tagPlanes, 1) == 2 && h.channels > 1
	h.Float = one(tagFormat, 1) == 3
	if err := h.check(tags, one(tagFormat, 1)); err != nil {
		return h, err
	}
	if h.channels > h.colours() {
		h.alpha = min(one(tagExtra, 0), straight)
	}
	return h, h.blocks(tags, one)
}

// directory reads the numbers of all tags with integers.
func (h *Header) directory(data []byte) (map[int][]int, error) {
	at := int64(h.order.Uint32(data[4:]))
	if at+2 > int64(len(data)) {
		return nil, input.ErrTruncated
	}
	entries := data[at+2:]
	tags := map[int][]int{}
	for range h.order.Uint16(data[at:]) {
		if len(entries) < 12 {
			return nil, input.ErrTruncated
		}
		tag, kind, count := int(h.order.Uint16(entries)), h.order.Uint16(entries[2:]), int64(h.order.Uint32(entries[4:]))
		body := entries[8:12]
		entries = entries[12:]
		size := map[uint16]int64{1: 1, 3: 2, 4: 4}[kind]
		if size == 0 || tags[tag] != nil {
			continue
		}
		if count*size > 4 {
			from := int64(h.order.Uint32(body))
			if from+count*size > int64(len(data)) {
				return nil, input.ErrTruncated
			}
			body = data[from:]
		}
		// Only blocks are many: 16384 x 16384 pixels in tiles of 16 x 16 have 1 << 22 of them in four planes.
		most := int64(maxChannels)
		if tag == tagStrips || tag == tagStripSizes || tag == tagTiles || tag == tagTileSizes {
			most = 1 << 22
		}
		list := make([]int, min(count, most))
		for i := range list {
			switch kind {
			case 1:
				list[i] = int(body[i])
			case 3:
				list[i] = int(h.order.Uint16(body[2*i:]))
			case 4:
				list[i] = int(h.order.Uint32(body[4*i:]))
			}
		}
		tags[tag] = list
	}
	return tags, nil
}

// Forms that are not supported, with their names and what to do. Other forms are reported by number.
var (
	strangePackings = map[int]string{
		2: fax, 3: fax, 4: fax, 6: jpeg, 7: jpeg, 33003: jpeg2000, 33005: jpeg2000, 34712: jpeg2000,
		34887: "packed as LERC; save it" + packAnew, 34925: "packed as LZMA; save it" + packAnew, 50000: "packed as Zstandard; save it" + packAnew,
		50001: "WebP inside; save it as WebP, or as TIFF" + packAnew,
	}
	strangeColours = map[int]string{
		3: "a palette of this kind; save it as RGB", 4: "a mask; save it as grey", 5: "colours for print (CMYK); save it as RGB",
		6: "YCbCr; save it as RGB", 8: lab, 9: lab, 10: lab, 32803: raw, 34892: raw,
	}
)

const (
	fax      = "packed as a fax; save it with 8 bits"
	jpeg     = "JPEG inside; save it as JPEG, or as TIFF" + packAnew
	jpeg2000 = "JPEG 2000 inside; save it as PNG, or as TIFF" + packAnew
	lab      = "colours for print (Lab); save it as RGB"
	raw      = "a camera's own picture; develop it, and save it as RGB"
	packAnew = " with LZW or ZIP"
)

func (h *Header) check(tags map[int][]int, format int) error {
	for _, b := range tags[tagBits] {
		if b != h.Bits {
			return fmt.Errorf("channels of %d and of %d bits: %w", h.Bits, b, input.ErrUnsupported)
		}
	}
	switch h.compression {
	case plain, lzw, deflate, oldDeflate, packBits:
	default:
		return strange("compression", h.compression, strangePackings)
	}
	switch {
	case h.photometric != whiteIsZero && h.photometric != blackIsZero && h.photometric != rgb:
		return strange("colours of kind", h.photometric, strangeColours)
	case h.channels < h.colours() || h.channels > maxChannels:
		return fmt.Errorf("%d channels: %w", h.channels, input.ErrDamaged)
	case format == 2:
		return fmt.Errorf("numbers below 0; save it as floating point of 32 bits: %w", input.ErrUnsupported)
	case format != 1 && format != 3:
		return fmt.Errorf("numbers of kind %d: %w", format, input.ErrUnsupported)
	case h.Float && h.photometric == whiteIsZero:
		return fmt.Errorf("floating point with colours of kind %d: %w", h.photometric, input.ErrUnsupported)
	case h.Float && h.Bits != 16 && h.Bits != 32:
		return fmt.Errorf("floating point of %d bits; save it with 32: %w", h.Bits, input.ErrUnsupported)
	case h.Bits != 8 && h.Bits != 16 && h.Bits != 32:
		return fmt.Errorf("%d bits a channel; save it with 8 or 16: %w", h.Bits, input.ErrUnsupported)
	case h.predictor < 1 || h.predictor > 3, h.predictor == 2 && h.Float, h.predictor == 3 && !h.Float:
		return fmt.Errorf("predictor %d: %w", h.predictor, input.ErrUnsupported)
	}
	return nil
}

// strange returns the error for a form that is not supported.
func strange(what string, number int, known map[int]string) error {
	if text := known[number]; text != "" {
		return fmt.Errorf("%s: %w", text, input.ErrUnsupported)
	}
	return fmt.Errorf("%s %d: %w", what, number, input.ErrUnsupported)
}

// blocks finds the strips or tiles.
func (h *Header) blocks(tags map[int][]int, one func(tag, otherwise int) int) error {
	h.blockWidth, h.blockHeight = h.Width, min(one(tagStripRows, h.Height), h.Height)
	h.offsets, h.sizes = tags[tagStrips], tags[tagStripSizes]
	if h.tiled = tags[tagTiles] != nil; h.tiled {
		h.blockWidth, h.blockHeight = one(tagTileWidth, 0), one(tagTileHeight, 0)
		h.offsets, h.sizes = tags[tagTiles], tags[tagTileSizes]
	}
	if h.blockWidth < 1 || h.blockHeight < 1 || h.blockWidth > input.MaxSide || h.blockHeight > input.MaxSide {
		return fmt.Errorf("blocks of %d x %d: %w", h.blockWidth, h.blockHeight, input.ErrDamaged)
	}
	across, down := h.grid()
	n := across * down
	if h.planes {
		n *= h.channels
	}
	if len(h.offsets) < n || len(h.sizes) < n {
		return fmt.Errorf("%d blocks instead of %d: %w", min(len(h.offsets), len(h.sizes)), n, input.ErrDamaged)
	}
	return nil
}

// grid returns the number of blocks across and down.
func (h *Header) grid() (across, down int) {
	return (h.Width + h.blockWidth - 1) / h.blockWidth, (h.Height + h.blockHeight - 1) / h.blockHeight
}
