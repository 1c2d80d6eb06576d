// Package pixel is images in memory: decoding what artists save, and the few operations that make a
// texture of it.
//
// Its rules: an [Image] is always RGBA, 8 bits a channel, straight alpha, rows top down; a [Float] is the same in
// floating point. A size that a file
// claims is checked before memory is taken for it. Whatever is in a file, the worst that
// happens is an [*Error]. The same bytes give the same pixels on every machine.
package pixel

import "fmt"

// Image is RGBA with 8 bits a channel, straight (unassociated) alpha and rows from the top down
// without padding, so len(Pix) is 4*Width*Height. Colours are as the file stores them, which is sRGB
// for all that is meant to be looked at.
type Image struct {
	Width, Height int
	Pix           []byte
}

// New is a transparent black image.
func New(width, height int) *Image {
	return &Image{width, height, make([]byte, 4*width*height)}
}

// Picture is all of an image file that a texture can use.
type Picture struct {
	Format string // as of [Sniff]

	// Eight has the numbers of the file, 16 bits rounded to 8. It is nil if HDR: whoever wants 8 bits then decides
	// how bright they are, or takes [Float.Encoded].
	Eight *Image

	// Float is there if the file has more than 8 bits a channel. Integers become 0..1, in the file's own
	// encoding, as in Eight. If HDR, it is linear light, which may be over 1.
	Float *Float
	HDR   bool

	// Space names the colour space that the file says its numbers are of, such as "Display P3"; empty if that is sRGB, or
	// nothing is said. Nothing is converted: who makes a texture of colours should say so.
	Space string

	// Mended says what was wrong with the file, where it could be read all the same; empty if nothing was. Whoever asked for it should
	// say so.
	Mended string

	// Gamma is what a PNG or QOI says of its numbers if they are not encoded as sRGB: a number is light to this power, so 1 is linear;
	// 0 otherwise. [Picture.Encode] makes sRGB of them, for colours; in a picture of data the numbers are what counts.
	Gamma float64
}

// Size in pixels.
func (p *Picture) Size() (width, height int) {
	if p.HDR {
		return p.Float.Width, p.Float.Height
	}
	return p.Eight.Width, p.Eight.Height
}

// Limits is what [Decode] and [DecodePicture] will take memory for.
type Limits struct {
	MaxSide  int   // width and height, in pixels
	MaxBytes int64 // 4*width*height, or 16*width*height where a [Float] is made
}

// DefaultLimits is 16384 x 16384, the largest texture of today's graphics hardware, in 1 GiB; as [Float] 8192 x 8192.
func DefaultLimits() Limits { return Limits{MaxSide: 16384, MaxBytes: 1 << 30} }

// under tells whether the limits are under what a head claims. All formats are asked here, before anything is decoded.
func (l Limits) under(c Config, perPixel int64) bool {
	return max(c.Width, c.Height) > l.MaxSide || perPixel*int64(c.Width)*int64(c.Height) > l.MaxBytes
}

// Config is what the head of an image file says.
type Config struct {
	Width, Height int
	Format        string // as of [Sniff]
	Deep          bool   // more than 8 bits a channel: [DecodePicture] makes a [Float]
	HDR           bool   // linear light, which may be over 1
}

// Fault is what is wrong with an image file.
type Fault int

const (
	Empty       Fault = iota + 1 // no bytes at all
	Unknown                      // not an image, as far as we know
	Truncated                    // ends too early
	Damaged                      // contradicts its own format
	Unsupported                  // right, but of a kind that we cannot read; Detail names it
	TooLarge                     // more than the limits allow
)

// Error is all that [Decode] and [DecodeConfig] return.
type Error struct {
	Fault         Fault
	Format        string // as of [Sniff]; empty if unknown
	Width, Height int    // as claimed, where known
	Limits        Limits // that were exceeded, if TooLarge
	Detail        string // in words; may be empty
	Err           error  // of the decoder; may be nil
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
