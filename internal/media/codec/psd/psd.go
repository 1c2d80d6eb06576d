// Package psd reads Photoshop documents, PSD, and PSB for large ones: the flattened picture, and the layers by themselves.
//
// It follows "Adobe Photoshop File Formats Specification" (2016). Layers are not composed: a document holds the picture that
// they make together, if it was saved with "maximise compatibility"; one that was not is refused by name. What
// is read:
//
//   - bitmap, grey, duotone (as grey), indexed, RGB and CMYK, of 1, 8, 16 and 32 bits a channel, raw or RLE
//   - the first channel after those of colour as alpha
//   - the colour profile, as it is
//
// Lab, multichannel and ZIP are refused. CMYK becomes RGB without regard to a profile, (1-C)(1-K) and so on, as browsers do for JPEG.
//
// Photoshop blends what is transparent with white. That is undone for RGB and grey (c' = 1 - (1-c)/a) if the document says that its alpha
// is transparency and no pixel is darker than white would have left it: other programs do not blend.
package psd

import (
	"encoding/binary"
	"fmt"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

// Mode is how channels make colours.
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

// colours is the number of channels that make a colour.
func (m Mode) colours() int {
	switch m {
	case rgb:
		return 3
	case cmyk:
		return 4
	}
	return 1
}

// headerSize of the file, in bytes.
const headerSize = 26

// Header is the start of a document. All numbers are big-endian.
//
//	 0  4 bytes  "8BPS"
//	 4  u16      1 for PSD, 2 for PSB
//	 6  6 bytes  0
//	12  u16      channels, 1 to 56
//	14  u32      height, u32 width, in pixels
//	22  u16      bits of a channel: 1, 8, 16 or 32
//	24  u16      mode
//	26           sections, each with its length first: colour map, resources, layers; then the picture
type Header struct {
	Width, Height   int
	Depth, Channels int
	Mode            Mode

	large bool // PSB
}

// ParseHeader reads the header and refuses what [Decode] cannot read.
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
	if h.Width > 300000 || h.Height > 300000 { // the most of a PSB
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

// Image is a picture of RGBA, straight alpha, rows top down: 4*Width*Height numbers, in one of the slices.
type Image struct {
	Header
	Pix     []uint16  // of 1, 8 and 16 bits a channel, widened so that 65535 is the most
	Light   []float32 // of 32 bits: linear light
	Profile []byte    // ICC; may be nil
}

// Decode reads a document. More than maxPixels is [input.ErrTooLarge].
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
	transparent int      // colour of the palette, or -1
	blended     bool     // alpha is transparency, before which white may lie
	cover       []uint16 // alpha of CMYK, whose four inks fill Pix
}

func (h *Header) alpha() bool { return h.Channels > h.Mode.colours() }

// section cuts off what begins with its length, of 8 bytes in a PSB if wide.
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

// Resources that matter: their numbers.
const (
	resourceProfile     = 1039
	resourceTransparent = 1047
	resourceVersion     = 1057
)

// resources are: "8BIM", u16 number, name with its length in a byte, u32 size, bytes; name and bytes padded to be
// even. What is not so ends them: the pixels do not hang on it.
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

// transparency tells whether the section of layers says that the first alpha of the picture is transparency: their number is
// negative. That of 16 and 32 bits is in a block of its own, and there may be one that says just this.
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
