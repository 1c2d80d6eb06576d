// Package pixel holds images in memory. It decodes image files, and has the few operations that are needed to make
// textures.
//
// An [Image] is always RGBA, 8 bits a channel, straight alpha, rows top down; a [Float] is the same in floating point.
// The size that a file claims is checked before memory is allocated for it. Any content of a file gives at worst an
// [*Error]. The same bytes give the same pixels on every machine.
package pixel

import "fmt"

// Image is an RGBA image with 8 bits a channel and straight (unassociated) alpha. Rows go from the top down without
// padding, so len(Pix) is 4*Width*Height. Colours are encoded as in the file, which is sRGB for pictures that are meant
// to be seen.
type Image struct {
	Width, Height int
	Pix           []byte
}

// New returns a transparent black image.
func New(width, height int) *Image {
	return &Image{width, height, make([]byte, 4*width*height)}
}

// Picture has everything from an image file that a texture can use.
type Picture struct {
	Format string // as in [Sniff]

	// Eight has the numbers of the file; 16 bits are rounded to 8. It is nil if HDR is set: to get 8 bits, decide on a
	// brightness, or use [Float.Encoded].
	Eight *Image

	// Float is set if the file has more than 8 bits a channel. Integers become 0..1, in the file's own encoding, as in
	// Eight. If HDR is set, it is linear light, which may be over 1.
	Float *Float
	HDR   bool

	// Space is the name of the colour space that the file states, such as "Display P3". It is empty for sRGB, or if the
	// file states none. Colours are not converted: a caller that makes a colour texture should warn.
	Space string

	// Damage describes what was wrong with a file that could still be read, or is empty. The caller should report it.
	Damage string

	// Gamma is set for a PNG or QOI that is not encoded as sRGB: light is a number to this power, so that 1 means
	// linear. Otherwise it is 0. [Picture.Encode] converts colours to sRGB; data textures use the numbers as they are.
	Gamma float64
}

// Size returns the size in pixels.
func (p *Picture) Size() (width, height int) {
	if p.HDR {
		return p.Float.Width, p.Float.Height
	}
	return p.Eight.Width, p.Eight.Height
}

// Limits bounds the images that [Decode] and [DecodePicture] decode.
type Limits struct {
	MaxSide  int   // of width and height, in pixels
	MaxBytes int64 // 4*width*height, or 16*width*height if a [Float] is made
}

// DefaultLimits is 16384 x 16384, the largest texture of current graphics hardware, in 1 GiB; for a [Float] that is
// 8192 x 8192.
func DefaultLimits() Limits { return Limits{MaxSide: 16384, MaxBytes: 1 << 30} }

// under reports whether a header claims more than the limits. All formats are checked here, before anything is decoded.
func (l Limits) under(c Config, perPixel int64) bool {
	return max(c.Width, c.Height) > l.MaxSide || perPixel*int64(c.Width)*int64(c.Height) > l.MaxBytes
}

// Config is the information in the header of an image file.
type Config struct {
	Width, Height int
	Format        string // as in [Sniff]
	Deep          bool   // more than 8 bits a channel: [DecodePicture] makes a [Float]
	HDR           bool   // linear light, which may be over 1
}

// Fault is the kind of an error in an image file.
type Fault int

const (
	Empty       Fault = iota + 1 // the file has no bytes
	Unknown                      // not a known image format
	Truncated                    // the file ends too early
	Damaged                      // the file contradicts its format
	Unsupported                  // a valid file of an unsupported kind; Detail names it
	TooLarge                     // larger than the limits
)

// Error is the only error type of [Decode] and [DecodeConfig].
type Error struct {
	Fault         Fault
	Format        string // as in [Sniff]; empty if unknown
	Width, Height int    // as claimed, if known
	Limits        Limits // the exceeded limits, if TooLarge
	Detail        string // a text; may be empty
	Err           error  // the error of the decoder; may be nil
}

func (e *Error) Error() string {
	name := FormatName(e.Format)
	var s string
	switch e.Fault {
	case Empty:
		return "the file is empty"
	case Unknown:
		s = "not an image of a known format"
	case Truncated:
		s = name + " image ends too early"
	case Damaged:
		s = name + " image is damaged"
	case Unsupported:
		s = name + " image cannot be read"
	case TooLarge:
		if e.Detail != "" {
			s = name + " image is over the limits"
			break
		}
		return fmt.Sprintf("%s image claims %d x %d pixels, over the limit of %d a side and %d MiB in memory",
			name, e.Width, e.Height, e.Limits.MaxSide, e.Limits.MaxBytes>>20)
	}
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }
