// Package psd reads Photoshop documents, PSD, and PSB for large ones: the flattened image, and the separate layers.
//
// It follows "Adobe Photoshop File Formats Specification" (2016). It does not compose layers: a document contains the
// composed image if it was saved with "maximise compatibility"; other documents give an error that names this setting. It
// reads
//
//   - bitmap, grey, duotone (as grey), indexed, RGB and CMYK, with 1, 8, 16 and 32 bits per channel, raw or RLE
//   - the first channel after those of colour as alpha
//   - the colour profile, unchanged
//
// Lab, multichannel and ZIP are not supported. CMYK is converted to RGB without a profile, (1-C)(1-K) and so on, as browsers
// do for JPEG.
//
// Photoshop blends transparent pixels with white. This is reversed for RGB and grey (c' = 1 - (1-c)/a) if the document
// declares its alpha as transparency and no pixel is darker than blending allows: other programs do not blend.
package psd

import (
	"encoding/binary"
	"fmt"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

// Mode is the colour mode of the channels.
type Mode int

const (
	bitmap  Mode = 0
	grey    Mode = 1
	indexed Mode = 2
	rgb     Mode = 3
	cmyk    Mode = 4
	duotone Mode = 8
)

func (m Mode) String() string {
	names := map[Mode]string{bitmap: "bitmap", grey: "grey", indexed: "indexed", rgb: "RGB", cmyk: "CMYK", 7: "multichannel", duotone: "duotone", 9: "Lab"}
	if s := names[m]; s != "" {
		return s
	}
	return fmt.Sprintf("mode %d", int(m))
}

// colours returns the number of channels of a colour.
func (m Mode) colours() int {
	switch m {
	case rgb:
		return 3
	case cmyk:
		return 4
	}
	return 1
}

// headerSize is the size of the file header in bytes.
const headerSize = 26

// Header is the start of a document. All numbers are big-endian.
//
//	 0  4 bytes  "8BPS"
//	 4  u16      1 for PSD, 2 for PSB
//	 6  6 bytes  0
//	12  u16      channels, 1 to 56
//	14  u32      height, u32 width, in pixels
//	22  u16      bits per channel: 1, 8, 16 or 32
//	24  u16      mode
//	26           sections, each preceded by its length: colour map, resources, layers; then the image
type Header struct {
	Width, Height   int
	Depth, Channels int
	Mode            Mode

	large bool // PSB
}

// ParseHeader reads the header. It returns an error for files that [Decode] cannot read.
func ParseHeader(data []byte) (Header, error) {
	h := Header{}
	if len(data) < headerSize {
		return h, input.ErrTruncated
	}
	if string(data[:4]) != "8BPS" {
		return h, fmt.Errorf("no signature: %w", input.ErrDamaged)
	}
	u16 := func(i int) int { return int(binary.BigEndian.Uint16(data[i:])) }
	u32 := func(i int) int { return int(binary.BigEndian.Uint32(data[i:])) }
	h = Header{Width: u32(18), Height: u32(14), Depth: u16(22), Channels: u16(12), Mode: Mode(u16(24)), large: u16(4) == 2}
	if v := u16(4); v != 1 && v != 2 {
		return h, fmt.Errorf("version %d: %w", v, input.ErrUnsupported)
	}
	if h.Width < 1 || h.Height < 1 {
		return h, fmt.Errorf("size %d x %d: %w", h.Width, h.Height, input.ErrDamaged)
	}
	if h.Width > 300000 || h.Height > 300000 { // the limit of a PSB
		return h, fmt.Errorf("%d x %d pixels: %w", h.Width, h.Height, input.ErrTooLarge)
	}
	depths := map[Mode][]int{bitmap: {1}, grey: {8, 16, 32}, indexed: {8}, rgb: {8, 16, 32}, cmyk: {8, 16}, duotone: {8, 16}}
	if depths[h.Mode] == nil {
		return h, fmt.Errorf("%v colours: %w", h.Mode, input.ErrUnsupported)
	}
	for _, d := range depths[h.Mode] {
		if d == h.Depth {
			if h.Channels < h.Mode.colours() || h.Channels > 56 {
				return h, fmt.Errorf("%d channels of %v: %w", h.Channels, h.Mode, input.ErrDamaged)
			}
			return h, nil
		}
	}
	return h, fmt.Errorf("%d bits a channel of %v: %w", h.Depth, h.Mode, input.ErrUnsupported)
}

// Image is an image of RGBA, straight alpha, rows top down: 4*Width*Height numbers, in one of the slices.
type Image struct {
	Header
	Pix     []uint16  // for 1, 8 and 16 bits per channel, scaled to 0..65535
	Light   []float32 // for 32 bits: linear light
	Profile []byte    // ICC; may be nil
}

// Decode reads a document. It returns [input.ErrTooLarge] for more than maxPixels pixels.
func Decode(data []byte, maxPixels int) (*Image, error) {
	h, err := ParseHeader(data)
	if err != nil {
		return nil, err
	}
	if err := input.CheckPixels(h.Width, h.Height, maxPixels); err != nil {
		return nil, err
	}
	d := decoder{Image: &Image{Header: h}, transparent: -1}
	colours, rest, err := section(data[headerSize:], false)
	if err != nil {
		return nil, err
	}
	if d.palette = colours; h.Mode == indexed && len(colours) < 768 {
		return nil, fmt.Errorf("colour map of %d bytes: %w", len(colours), input.ErrDamaged)
	}
	resources, rest, err := section(rest, false)
	if err != nil {
		return nil, err
	}
	if err := d.resources(resources); err != nil {
		return nil, err
	}
	layers, rest, err := section(rest, h.large)
	if err != nil {
		return nil, err
	}
	d.blended = d.alpha() && h.Mode != cmyk && transparency(layers, h.large)
	if err := d.rows(rest); err != nil {
		return nil, err
	}
	d.finish()
	return d.Image, nil
}

type decoder struct {
	*Image
	palette     []byte   // 256 reds, greens, blues
	transparent int      // index in the palette, or -1
	blended     bool     // alpha is transparency, and pixels may be blended with white
	cover       []uint16 // alpha of CMYK, whose four inks are in Pix
}

func (h *Header) alpha() bool { return h.Channels > h.Mode.colours() }

// section splits off a section that begins with its length, which has 8 bytes in a PSB if wide is set.
func section(b []byte, wide bool) (body, rest []byte, err error) {
	size := 4
	if wide {
		size = 8
	}
	if len(b) < size {
		return nil, nil, input.ErrTruncated
	}
	n := uint64(binary.BigEndian.Uint32(b))
	if wide {
		n = binary.BigEndian.Uint64(b)
	}
	if b = b[size:]; uint64(len(b)) < n {
		return nil, nil, input.ErrTruncated
	}
	return b[:n], b[n:], nil
}

// Numbers of the resources that are read.
const (
	resourceProfile     = 1039
	resourceTransparent = 1047
	resourceVersion     = 1057
)

// resources reads resources: "8BIM", u16 number, name with its length in a byte, u32 size, bytes; name and bytes are padded
// to an even length. It stops at other data, which does not affect the pixels.
func (d *decoder) resources(b []byte) error {
	for len(b) >= 12 && string(b[:4]) == "8BIM" {
		id := binary.BigEndian.Uint16(b[4:])
		name := (1 + int(b[6]) + 1) &^ 1
		if len(b) < 6+name {
			break
		}
		body, rest, err := section(b[6+name:], false)
		if err != nil {
			break
		}
		switch {
		case id == resourceProfile:
			d.Profile = body
		case id == resourceTransparent && len(body) >= 2:
			d.transparent = int(binary.BigEndian.Uint16(body))
		case id == resourceVersion && len(body) >= 5 && body[4] == 0:
			return fmt.Errorf("no flattened picture, as it was saved without \"maximise compatibility\": %w", input.ErrUnsupported)
		}
		b = rest[min(len(body)%2, len(rest)):]
	}
	return nil
}

// transparency reports whether the first alpha channel of the image is transparency: the section of layers then has a
// negative number of layers. With 16 and 32 bits, the number is in a separate block, and another block may have just this
// flag.
func transparency(b []byte, large bool) bool {
	layers, rest, err := section(b, large)
	if err != nil {
		return false
	}
	if len(layers) >= 2 {
		return layers[0]&0x80 != 0
	}
	if _, rest, err = section(rest, false); err != nil { // the mask
		return false
	}
	for len(rest) >= 12 && (string(rest[:4]) == "8BIM" || string(rest[:4]) == "8B64") {
		key := string(rest[4:8])
		body, after, err := section(rest[8:], large && (key == "Lr16" || key == "Lr32" || key == "Mt16" || key == "Mt32" || key == "Mtrn"))
		if err != nil {
			return false
		}
		switch key {
		case "Mt16", "Mt32", "Mtrn":
			return true
		case "Lr16", "Lr32":
			return len(body) >= 2 && body[0]&0x80 != 0
		}
		rest = after[min(-len(body)&3, len(after)):]
	}
	return false
}
