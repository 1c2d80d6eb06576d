// Package exr reads OpenEXR images: scan lines of half, float or uint channels in linear light.
//
// It follows "OpenEXR File Layout" and "Technical Introduction to OpenEXR" (openexr.com). It reads
//
//   - files with one part of scan lines, in any line order, uncompressed or packed with RLE, ZIPS, ZIP, PIZ, PXR24, B44 or
//     B44A
//   - the channels R, G, B and A, or Y for grey; other channels are ignored
//   - the display window: parts of it outside of the data window are transparent black, and parts of the data window outside
//     of it are cut off
//
// Tiles, several parts, deep data, DWAA, DWAB and channels of reduced resolution give an error that names them. Stored
// colours are multiplied by alpha; the package divides them by alpha, except for alpha 0: such colours are light without a
// surface, and remain unchanged.
//
// Memory is allocated for at most the caller's limit of pixels, and for a block of lines only as much as its packed bytes
// can expand to.
package exr

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

const (
	magic = "\x76\x2f\x31\x01"

	maxChannels = 1024
)

// Flags of the version field, above the version number 2.
const (
	flagTiled     = 0x200
	flagDeep      = 0x800
	flagMultipart = 0x1000
)

// Compression of the blocks of lines.
type compression byte

const (
	none compression = iota
	rle
	zips
	zip
	piz
	pxr24
	b44
	b44a // like B44, with flat blocks, too
)

func (c compression) String() string {
	names := [...]string{"none", "RLE", "ZIPS", "ZIP", "PIZ", "PXR24", "B44", "B44A", "DWAA", "DWAB"}
	if int(c) < len(names) {
		return names[c]
	}
	return fmt.Sprintf("number %d", byte(c))
}

// lines returns the number of lines in a block; the last block may have fewer.
func (c compression) lines() int {
	switch c {
	case zip, pxr24:
		return 16
	case piz, b44, b44a:
		return 32
	}
	return 1
}

// kind is the type of a channel's numbers.
type kind int32

const (
	kindUint kind = iota
	kindHalf
	kindFloat
)

// size returns the size of a number in bytes.
func (k kind) size() int {
	if k == kindHalf {
		return 2
	}
	return 4
}

type channel struct {
	name       string
	kind       kind
	perceptual bool // B44 stores logarithms
}

// box is a rectangle of pixels; both corners are inside.
type box struct{ minX, minY, maxX, maxY int }

func (b box) width() int  { return b.maxX - b.minX + 1 }
func (b box) height() int { return b.maxY - b.minY + 1 }

// Header is the content of a file's header.
type Header struct {
	Width, Height int        // of the display window
	Chromaticity  [8]float32 // x and y of red, green, blue and white; zero if unspecified, which means those of Rec. 709

	data, display box
	compression   compression
	channels      []channel // in their order in a line
	lineSize      int       // bytes of an unpacked line
	offsets       int       // where the table of blocks begins
}

// ParseHeader reads the header. It returns an error for files that [Decode] cannot read.
//
//	0  4 bytes  76 2f 31 01
//	4  u32      version 2 and flags
//	8  ...      attributes: name, 0, type, 0, i32 size, value; a 0 instead of a name ends them
//	   u64      offset in the file for each block of lines, from the top of the image down
//	   ...      blocks: i32 y of the first line, i32 size, bytes
func ParseHeader(data []byte) (Header, error) {
	h := Header{}
	if len(data) < 8 {
		return h, input.ErrTruncated
	}
	if string(data[:4]) != magic {
		return h, fmt.Errorf("no signature: %w", input.ErrDamaged)
	}
	version := binary.LittleEndian.Uint32(data[4:])
	switch {
	case version&0xff != 2:
		return h, fmt.Errorf("version %d: %w", version&0xff, input.ErrUnsupported)
	case version&flagMultipart != 0:
		return h, fmt.Errorf("several parts in a file: %w", input.ErrUnsupported)
	case version&flagDeep != 0:
		return h, fmt.Errorf("deep data: %w", input.ErrUnsupported)
	case version&flagTiled != 0:
		return h, fmt.Errorf("tiles: %w", input.ErrUnsupported)
	}
	seen := map[string]bool{}
	rest := data[8:]
	for {
		name, r, err := cutString(rest)
		if err != nil {
			return h, err
		}
		if rest = r; name == "" {
			break
		}
		kind, r, err := cutString(rest)
		if err != nil {
			return h, err
		}
		if len(r) < 4 {
			return h, input.ErrTruncated
		}
		size := int64(binary.LittleEndian.Uint32(r))
		if int64(len(r)-4) < size {
			return h, input.ErrTruncated
		}
		if err := h.attribute(name, kind, r[4:4+size]); err != nil {
			return h, err
		}
		seen[name] = true
		rest = r[4+size:]
	}
	for _, name := range []string{"channels", "compression", "dataWindow", "displayWindow"} {
		if !seen[name] {
			return h, fmt.Errorf("no attribute %s: %w", name, input.ErrDamaged)
		}
	}
	h.offsets = len(data) - len(rest)
	h.Width, h.Height = h.display.width(), h.display.height()
	for _, c := range h.channels {
		h.lineSize += c.kind.size() * h.data.width()
	}
	return h, nil
}

// cutString splits off a text that ends with a 0, of at most 255 bytes.
func cutString(b []byte) (s string, rest []byte, err error) {
	before, _, ok := bytes.Cut(b[:min(len(b), 256)], []byte{0})
	if !ok && len(b) < 256 {
		return "", nil, input.ErrTruncated
	}
	if !ok {
		return "", nil, fmt.Errorf("a name of more than 255 bytes: %w", input.ErrDamaged)
	}
	return string(before), b[len(before)+1:], nil
}

// attribute reads an attribute that affects the pixels; it ignores others.
func (h *Header) attribute(name, kind string, value []byte) (err error) {
	kinds := map[string]string{"channels": "chlist", "compression": "compression", "dataWindow": "box2i", "displayWindow": "box2i", "chromaticities": "chromaticities"}
	if want := kinds[name]; want == "" {
		return nil
	} else if want != kind {
		return fmt.Errorf("attribute %s of type %.40q: %w", name, kind, input.ErrDamaged)
	}
	switch name {
	case "channels":
		h.channels, err = parseChannels(value)
	case "compression":
		if len(value) != 1 {
			return fmt.Errorf("compression of %d bytes: %w", len(value), input.ErrDamaged)
		}
		if h.compression = compression(value[0]); h.compression > b44a {
			return fmt.Errorf("compression %v: %w", h.compression, input.ErrUnsupported)
		}
	case "dataWindow":
		h.data, err = parseBox(value)
	case "displayWindow":
		h.display, err = parseBox(value)
	case "chromaticities":
		if len(value) != 32 {
			return fmt.Errorf("chromaticities of %d bytes: %w", len(value), input.ErrDamaged)
		}
		for i := range h.Chromaticity {
			h.Chromaticity[i] = math.Float32frombits(binary.LittleEndian.Uint32(value[4*i:]))
		}
	}
	return err
}

func parseBox(v []byte) (b box, err error) {
	if len(v) != 16 {
		return b, fmt.Errorf("window of %d bytes: %w", len(v), input.ErrDamaged)
	}
	i := func(at int) int { return int(int32(binary.LittleEndian.Uint32(v[at:]))) }
	b = box{i(0), i(4), i(8), i(12)}
	for _, n := range []int{b.minX, b.minY, b.maxX, b.maxY} {
		if n < -input.MaxSide || n > input.MaxSide { // checked first, so that no sum overflows
			return b, fmt.Errorf("window from %d, %d to %d, %d: %w", b.minX, b.minY, b.maxX, b.maxY, input.ErrTooLarge)
		}
	}
	if b.width() < 1 || b.height() < 1 {
		return b, fmt.Errorf("window of %d x %d: %w", b.width(), b.height(), input.ErrDamaged)
	}
	return b, nil
}

// parseChannels reads a list of channels: name, 0, i32 kind, u8 perceptual, 3 ignored bytes, i32 steps in x and in y. An
// empty name ends the list.
func parseChannels(v []byte) (list []channel, err error) {
	colour := false
	for {
		name, rest, err := cutString(v)
		if err != nil {
			return nil, fmt.Errorf("list of channels without an end: %w", input.ErrDamaged)
		}
		if name == "" {
			break
		}
		if len(rest) < 16 || len(list) == maxChannels {
			return nil, fmt.Errorf("list of channels: %w", input.ErrDamaged)
		}
		c := channel{name, kind(binary.LittleEndian.Uint32(rest)), rest[4] != 0}
		if c.kind < kindUint || c.kind > kindFloat {
			return nil, fmt.Errorf("channel %.40q of kind %d: %w", name, c.kind, input.ErrDamaged)
		}
		if x, y := binary.LittleEndian.Uint32(rest[8:]), binary.LittleEndian.Uint32(rest[12:]); x != 1 || y != 1 {
			return nil, fmt.Errorf("channel %.40q at a resolution of 1/%d x 1/%d: %w", name, x, y, input.ErrUnsupported)
		}
		list, v = append(list, c), rest[16:]
		colour = colour || name == "R" || name == "G" || name == "B" || name == "Y"
	}
	if !colour {
		return nil, fmt.Errorf("no channel R, G, B or Y among %s: %w", names(list), input.ErrUnsupported)
	}
	return list, nil
}

// names returns the first few names for a message.
func names(list []channel) string {
	var out []string
	for _, c := range list {
		if len(out) == 8 {
			out = append(out, "...")
			break
		}
		out = append(out, fmt.Sprintf("%.40q", c.name))
	}
	if out == nil {
		return "none"
	}
	return strings.Join(out, ", ")
}
