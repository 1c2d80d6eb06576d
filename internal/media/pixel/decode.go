package pixel

import (
	"errors"
	"fmt"
	"image/png"
	"io"
	"math"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
	"github.com/kiln-pipeline/kiln/internal/media/codec/tga"
)

// DecodeConfig reads the header of an image. The name is used only to recognize a TGA. Errors are an [*Error].
func DecodeConfig(name string, data []byte) (Config, error) {
	f, err := open(name, data)
	if err != nil {
		return Config{}, err
	}
	c, err := f.size(data)
	if err == nil {
		m := metaOf(f.id, data)
		c.Width, c.Height = upright(c.Width, c.Height, m.orientation())
	}
	return c, err
}

func open(name string, data []byte) (format, error) {
	if len(data) == 0 {
		return format{}, &Error{Fault: Empty}
	}
	if f, ok := find(Sniff(name, data)); ok {
		return f, nil
	}
	e := &Error{Fault: Unknown}
	if kind := input.Kind(data); kind != "" {
		e.Detail = "it looks like " + kind
		return format{}, e
	}
	if f, _ := find("tga"); FormatOf(name) == "tga" {
		// The format has no signature, so the error of the header is the best message.
		_, err := tga.ParseHeader(data)
		return format{}, f.fault(err)
	}
	return format{}, e
}

func (f format) size(data []byte) (c Config, err error) {
	defer f.recovered(&err)
	c, err = f.config(data)
	if err != nil {
		return Config{}, f.fault(err)
	}
	if c.Width <= 0 || c.Height <= 0 {
		return Config{}, &Error{Fault: Damaged, Format: f.id, Detail: fmt.Sprintf("it claims %d x %d pixels", c.Width, c.Height)}
	}
	c.Format = f.id
	return c, nil
}

// Decode reads an image with 8 bits a channel. If the file has several frames, it reads the first. The name is used
// only to recognize a TGA. Errors are an [*Error].
//
// 16-bit channels are rounded to 8. Linear light is clamped to 0..1 and encoded as sRGB. The image is rotated by its
// Exif orientation. Colour profiles and gamma are ignored: the numbers in the file are the numbers in the image.
func Decode(name string, data []byte, lim Limits) (*Image, error) {
	m, _, err := DecodeDamaged(name, data, lim)
	return m, err
}

// DecodeDamaged is like [Decode], and also returns the text of [Picture.Damage].
func DecodeDamaged(name string, data []byte, lim Limits) (*Image, string, error) {
	c, d, err := decode(name, data, lim, false)
	if err != nil {
		return nil, "", err
	}
	m := metaOf(c.Format, data)
	if d.light != nil {
		return d.light.Encoded().oriented(m.orientation()), "", nil
	}
	return fromImage(d.image).oriented(m.orientation()), d.damage, nil
}

// DecodePicture is like [Decode], but without loss: see [Picture].
func DecodePicture(name string, data []byte, lim Limits) (*Picture, error) {
	c, d, err := decode(name, data, lim, true)
	if err != nil {
		return nil, err
	}
	m := metaOf(c.Format, data)
	if m.icc == nil {
		m.icc = d.profile
	}
	p := &Picture{Format: c.Format, HDR: c.HDR, Damage: d.damage}
	if c.HDR {
		p.Float, p.Space = d.light.oriented(m.orientation()), d.space
		return p, nil
	}
	p.Space, p.Gamma = m.colours()
	p.Eight = fromImage(d.image).oriented(m.orientation())
	if c.Deep {
		p.Float = floatOf(d.image).oriented(m.orientation())
	}
	return p, nil
}

// decode checks the claims of a file against the limits, then reads it. If deep is set, a Float will be made of a file
// with more than 8 bits a channel.
func decode(name string, data []byte, lim Limits, deep bool) (c Config, d decoded, err error) {
	f, err := open(name, data)
	if err != nil {
		return c, d, err
	}
	if c, err = f.size(data); err != nil {
		return c, d, err
	}
	perPixel := int64(4)
	if c.HDR || deep && c.Deep {
		perPixel = 16
	}
	n := int64(c.Width) * int64(c.Height)
	if lim.under(c, perPixel) {
		return c, d, &Error{Fault: TooLarge, Format: f.id, Width: c.Width, Height: c.Height, Limits: lim}
	}
	defer f.recovered(&err)
	if f.holds != nil && perPixel*n > dense*int64(len(data)) {
		if err := f.holds(data, c); err != nil {
			var e *Error
			if !errors.As(err, &e) {
				e = f.fault(err)
			}
			e.Width, e.Height = c.Width, c.Height
			return c, d, e
		}
	}
	if d, err = f.decode(data, int(min(lim.MaxBytes/perPixel, math.MaxInt))); err != nil {
		return c, d, f.fault(err)
	}
	if d.light != nil {
		d.light.tame()
	}
	w, h := d.size()
	if w != c.Width || h != c.Height {
		return c, d, &Error{Fault: Damaged, Format: f.id, Detail: fmt.Sprintf("the head says %d x %d pixels, the data %d x %d",
			c.Width, c.Height, w, h)}
	}
	return c, d, nil
}

func (d decoded) size() (w, h int) {
	if d.light != nil {
		return d.light.Width, d.light.Height
	}
	return d.image.Bounds().Dx(), d.image.Bounds().Dy()
}

// recovered turns a panic of a decoder into an error. Many decoders are third-party code, and their input is untrusted.
func (f format) recovered(err *error) {
	if r := recover(); r != nil {
		*err = &Error{Fault: Damaged, Format: f.id, Detail: fmt.Sprint(r)}
	}
}

// fault converts a decoder's error to an [*Error].
func (f format) fault(err error) *Error {
	e := &Error{Fault: Damaged, Format: f.id, Err: err}
	var unsupportedPNG png.UnsupportedError
	text := err.Error()
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, input.ErrTruncated):
		e.Fault = Truncated
		return e
	// Some decoders, and the riff reader that webp uses, return plain text errors.
	case strings.Contains(text, "unexpected EOF"), strings.Contains(text, "riff: short"), strings.Contains(text, "not enough"):
		e.Fault = Truncated
		return e
	case errors.As(err, &unsupportedPNG), errors.Is(err, input.ErrUnsupported):
		e.Fault = Unsupported
	case errors.Is(err, input.ErrTooLarge):
		e.Fault = TooLarge
	}
	e.Detail = plain(text)
	return e
}

// plain removes from a decoder's text what the fault already says, and the names of Go packages.
func plain(text string) string {
	for _, prefix := range []string{"png: ", "gif: ", "webp: ", "vp8l: ", "vp8: ", "riff: ",
		"invalid format: ", "unsupported feature: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	for _, fault := range []string{"damaged", "not supported", "too large"} {
		if text == fault {
			return ""
		}
		text = strings.TrimSuffix(text, ": "+fault)
	}
	return text
}
