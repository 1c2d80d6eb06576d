// Package tiff reads TIFF images.
//
// It follows "TIFF Revision 6.0" (1992) and Adobe's "Photoshop TIFF Technical Notes" 1 to 3 (2002, 2005): the first page;
// grey, RGB, CMYK and palettes of whole numbers with 1 to 16, 24 and 32 bits; grey and RGB in floating point of 16, 32 and 64;
// raw, LZW (of before 1992, too), Deflate, PackBits, with predictors, and all packings of faxes; strips, tiles and planes.
// Other forms give an error that names them and the form to save instead: Lab and YCbCr, pictures of cameras, JPEG inside, and
// the packings of maps and scanners.
//
// Like libtiff, it completes what writers leave out: the sizes of strips, the colours, the bits of each channel but the first.
// A fourth channel of RGB that no tag describes is straight alpha, as in Pillow; one that a tag calls unspecified is none.
//
// Floating point is linear light, as in Photoshop. CMYK is converted without a profile, (1-C)(1-K) and so on. Memory is
// allocated for at most the caller's limit of pixels, and for a strip or tile only as much as its packed bytes can expand to.
package tiff

import (
	"encoding/binary"
	"fmt"
	"slices"

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
	tagFillOrder   = 266
	tagStrips      = 273
	tagChannels    = 277
	tagStripRows   = 278
	tagStripSizes  = 279
	tagPlanes      = 284
	tagFaxOptions  = 292
	tagPredictor   = 317
	tagPalette     = 320
	tagTileWidth   = 322
	tagTileHeight  = 323
	tagTiles       = 324
	tagTileSizes   = 325
	tagInks        = 332
	tagExtra       = 338
	tagFormat      = 339
)

// Photometric interpretations.
const (
	whiteIsZero = 0
	blackIsZero = 1
	rgb         = 2
	indexed     = 3
	cmyk        = 5
)

// Compressions.
const (
	plain      = 1
	fax2       = 2 // rows of runs, each from a byte on
	group3     = 3
	group4     = 4
	fax2Word   = 32771 // rows of runs, each from a word on
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
	faxOptions  int
	reversed    bool  // the first pixel is in the lowest bit of a byte
	palette     []int // all reds, then all greens, then all blues

	blockWidth, blockHeight int // of tiles, or of strips
	tiled                   bool
	offsets, sizes          []int
}

// colours returns the number of channels of a colour.
func (h *Header) colours() int {
	switch h.photometric {
	case rgb:
		return 3
	case cmyk:
		return 4
	}
	return 1
}

func (h *Header) isFax() bool {
	return h.compression == fax2 || h.compression == fax2Word || h.compression == group3 || h.compression == group4
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
	h.Bits, h.channels = one(tagBits, 1), one(tagChannels, max(1, len(tags[tagBits])))
	h.compression = max(plain, one(tagCompression, plain))
	h.photometric = one(tagPhotometric, h.likely())
	h.planes = one(tagPlanes, 1) == 2 && h.channels > 1
	h.faxOptions, h.reversed, h.palette = one(tagFaxOptions, 0), one(tagFillOrder, 1) == 2, tags[tagPalette]
	kind := one(tagFormat, 1)
	h.Float = kind == 3
	if h.compression == lzw || h.compression == deflate || h.compression == oldDeflate { // the others have none
		h.predictor = one(tagPredictor, 1)
	}
	if err := h.check(tags, kind, one(tagInks, 1)); err != nil {
		return h, err
	}
	if h.channels > h.colours() {
		otherwise := noAlpha
		if h.photometric == rgb && h.channels == 4 {
			otherwise = straight
		}
		h.alpha = min(one(tagExtra, otherwise), straight)
	}
	return h, h.blocks(tags, one, len(data))
}

// likely is the photometric interpretation of a file that states none, by libtiff.
func (h *Header) likely() int {
	switch {
	case h.channels > 2:
		return rgb
	case h.isFax():
		return whiteIsZero
	}
	return blackIsZero
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
		if size == 0 || tags[tag] != nil || !needed(tag) {
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
		switch tag {
		case tagStrips, tagStripSizes, tagTiles, tagTileSizes:
			most = 1 << 22
		case tagPalette:
			most = 3 << 8
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

// needed reports whether a tag says something about the pixels. The others may be damaged.
func needed(tag int) bool {
	switch tag {
	case tagWidth, tagHeight, tagBits, tagCompression, tagPhotometric, tagFillOrder, tagStrips, tagChannels, tagStripRows, tagStripSizes,
		tagPlanes, tagFaxOptions, tagPredictor, tagPalette, tagTileWidth, tagTileHeight, tagTiles, tagTileSizes, tagInks, tagExtra, tagFormat:
		return true
	}
	return false
}

// Forms that are not supported, with their names and what to do. Other forms are reported by number.
var (
	strangePackings = map[int]string{
		6: jpeg, 7: jpeg, 33003: jpeg2000, 33005: jpeg2000, 34712: jpeg2000,
		34887: "packed as LERC; save it" + packAnew, 34925: "packed as LZMA; save it" + packAnew, 50000: "packed as Zstandard; save it" + packAnew,
		50001: "WebP inside; save it as WebP, or as TIFF" + packAnew,
	}
	strangeColours = map[int]string{
		4: "a mask; save it as grey", 6: "YCbCr; save it as RGB", 8: lab, 9: lab, 10: lab, 32803: raw, 34892: raw,
	}
)

const (
	jpeg     = "JPEG inside; save it as JPEG, or as TIFF" + packAnew
	jpeg2000 = "JPEG 2000 inside; save it as PNG, or as TIFF" + packAnew
	lab      = "colours for print (Lab); save it as RGB"
	raw      = "a camera's own picture; develop it, and save it as RGB"
	packAnew = " with LZW or ZIP"
)

// check returns an error for a form that is not read. kind is that of the numbers: 1 and 4 whole, 2 below 0, too, 3 floating.
func (h *Header) check(tags map[int][]int, kind, inks int) error {
	for _, b := range tags[tagBits] {
		if b != h.Bits {
			return fmt.Errorf("channels of %d and of %d bits: %w", h.Bits, b, input.ErrUnsupported)
		}
	}
	switch h.compression {
	case plain, fax2, fax2Word, group3, group4, lzw, deflate, oldDeflate, packBits:
	default:
		return strange("compression", h.compression, strangePackings)
	}
	switch h.photometric {
	case whiteIsZero, blackIsZero, rgb, indexed, cmyk:
	default:
		return strange("colours of kind", h.photometric, strangeColours)
	}
	most := 1<<min(h.Bits, 8) - 1
	switch {
	case h.channels < h.colours() || h.channels > maxChannels:
		return fmt.Errorf("%d channels: %w", h.channels, input.ErrDamaged)
	case kind == 2:
		return fmt.Errorf("numbers below 0; save it as floating point of 32 bits: %w", input.ErrUnsupported)
	case kind != 1 && kind != 3 && kind != 4:
		return fmt.Errorf("numbers of kind %d: %w", kind, input.ErrUnsupported)
	case h.Float && h.photometric != blackIsZero && h.photometric != rgb:
		return fmt.Errorf("floating point with colours of kind %d: %w", h.photometric, input.ErrUnsupported)
	case h.Float && h.Bits != 16 && h.Bits != 32 && h.Bits != 64:
		return fmt.Errorf("floating point of %d bits; save it with 32: %w", h.Bits, input.ErrUnsupported)
	case !h.Float && (h.Bits < 1 || h.Bits > 16 && h.Bits != 24 && h.Bits != 32):
		return fmt.Errorf("%d bits a channel; save it with 8 or 16: %w", h.Bits, input.ErrUnsupported)
	case h.photometric == cmyk && inks != 1:
		return fmt.Errorf("inks other than CMYK; save it as RGB: %w", input.ErrUnsupported)
	case h.photometric == indexed && h.Bits > 8:
		return fmt.Errorf("a palette of more than 8 bits; save it as RGB: %w", input.ErrUnsupported)
	case h.photometric == indexed && len(h.palette) < 3*(most+1):
		return fmt.Errorf("a palette of %d numbers: %w", len(h.palette), input.ErrDamaged)
	case h.isFax() && (h.Bits != 1 || h.channels != 1):
		return fmt.Errorf("a fax of %d channels of %d bits: %w", h.channels, h.Bits, input.ErrDamaged)
	}
	return h.checkPredictor()
}

func (h *Header) checkPredictor() error {
	ok := h.predictor <= 1
	switch h.predictor {
	case 2:
		ok = h.Bits == 8 || h.Bits == 16 || h.Bits == 32 || h.Bits == 64
	case 3:
		ok = h.Float
	}
	if !ok {
		return fmt.Errorf("predictor %d for %d bits: %w", h.predictor, h.Bits, input.ErrUnsupported)
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
func (h *Header) blocks(tags map[int][]int, one func(tag, otherwise int) int, end int) error {
	h.blockWidth, h.blockHeight = h.Width, min(one(tagStripRows, h.Height), h.Height)
	if h.blockHeight == 0 {
		h.blockHeight = h.Height
	}
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
	if len(h.offsets) < n {
		return fmt.Errorf("%d blocks instead of %d: %w", len(h.offsets), n, input.ErrDamaged)
	}
	h.offsets = h.offsets[:n]
	h.completeSizes(end)
	return nil
}

// completeSizes finds the sizes of blocks that have none, or 0: up to the next block, or to the end of the file. The size of
// the only block is not needed if it is not packed: scanners write wrong ones.
func (h *Header) completeSizes(end int) {
	if len(h.sizes) > len(h.offsets) {
		h.sizes = h.sizes[:len(h.offsets)]
	}
	if len(h.sizes) == len(h.offsets) && !slices.Contains(h.sizes, 0) && (len(h.sizes) > 1 || h.compression != plain) {
		return
	}
	sorted := slices.Sorted(slices.Values(h.offsets))
	sizes := make([]int, len(h.offsets))
	for i, from := range h.offsets {
		if i < len(h.sizes) {
			sizes[i] = h.sizes[i]
		}
		next, _ := slices.BinarySearch(sorted, from+1)
		there := max(0, end-from)
		if next < len(sorted) {
			there = min(there, sorted[next]-from)
		}
		if sizes[i] == 0 || h.compression == plain && len(sizes) == 1 {
			sizes[i] = there
		}
	}
	h.sizes = sizes
}

// grid returns the number of blocks across and down.
func (h *Header) grid() (across, down int) {
	return (h.Width + h.blockWidth - 1) / h.blockWidth, (h.Height + h.blockHeight - 1) / h.blockHeight
}
