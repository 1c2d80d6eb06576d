package pixel

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"path"
	"slices"
	"strings"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"

	"github.com/kiln-pipeline/kiln/internal/codec/exr"
	"github.com/kiln-pipeline/kiln/internal/codec/hdr"
	"github.com/kiln-pipeline/kiln/internal/codec/tga"
)

// format is one kind of image file.
type format struct {
	id, name string // "png", "PNG"
	exts     string // " .png "
	magic    []string

	// pixelsPerByte is the most that a byte of the file can stand for, so that a file which claims more
	// than it can hold is refused before memory is taken; 0 is no bound.
	pixelsPerByte int64

	config func(data []byte) (Config, error)
	decode func(data []byte, maxPixels int) (decoded, error)
}

// decoded is what a decoder made of a file: either one of them.
type decoded struct {
	image image.Image
	light *Float
}

// config makes a reader of heads of one of the standard library.
func config(read func(io.Reader) (image.Config, error)) func([]byte) (Config, error) {
	return func(data []byte) (Config, error) {
		c, err := read(bytes.NewReader(data))
		deep := c.ColorModel == color.Gray16Model || c.ColorModel == color.RGBA64Model || c.ColorModel == color.NRGBA64Model
		return Config{Width: c.Width, Height: c.Height, Deep: deep}, err
	}
}

// decoder makes one of a decoder of the standard library.
func decoder(decode func(io.Reader) (image.Image, error)) func([]byte, int) (decoded, error) {
	return func(data []byte, _ int) (decoded, error) {
		m, err := decode(bytes.NewReader(data))
		return decoded{image: m}, err
	}
}

// formats is all that can be read. In magic, ? is any byte.
func formats() []format {
	return []format{
		// Deflate makes at most 1032 bytes of one, each at most 8 pixels.
		{"png", "PNG", " .png ", []string{"\x89PNG\r\n\x1a\n"}, 1032 * 8, config(png.DecodeConfig), decoder(png.Decode)},
		// However it is packed, each 8 x 8 block has a bit at least.
		{"jpeg", "JPEG", " .jpg .jpeg .jpe .jfif ", []string{"\xff\xd8\xff"}, 512, config(jpeg.DecodeConfig), decoder(jpeg.Decode)},
		{"gif", "GIF", " .gif ", []string{"GIF87a", "GIF89a"}, 0, config(gif.DecodeConfig), decodeGIF},
		{"bmp", "BMP", " .bmp .dib ", []string{"BM????\x00\x00\x00\x00"}, 8, config(bmp.DecodeConfig), decoder(bmp.Decode)},
		{"tiff", "TIFF", " .tif .tiff ", []string{"II*\x00", "MM\x00*"}, 0, config(tiff.DecodeConfig), decoder(tiff.Decode)},
		{"webp", "WebP", " .webp ", []string{"RIFF????WEBP"}, 0, config(webp.DecodeConfig), decoder(webp.Decode)},
		{"hdr", "Radiance HDR", " .hdr .pic ", []string{"#?RADIANCE", "#?RGBE"}, 0, configHDR, decodeHDR},
		{"exr", "OpenEXR", " .exr ", []string{"v/1\x01"}, 0, configEXR, decodeEXR},
		{"tga", "TGA", " .tga .icb .vda .vst ", nil, 128, configTGA, decodeTGA},
	}
}

// strangers are formats that people are likely to hand in and that cannot be read.
var strangers = [...]struct{ name, magic string }{
	{"a Photoshop document", "8BPS"},
	{"a QOI image", "qoif"},
	{"a DDS texture", "DDS "},
	{"a KTX texture", "\xabKTX 11\xbb"},
	{"a KTX 2.0 texture", "\xabKTX 20\xbb"},
	{"a JPEG 2000 image", "\x00\x00\x00\x0cjP  "},
	{"an AVIF, HEIF or MP4 file", "????ftyp"},
	{"a JPEG XL image", "\xff\x0a"},
	{"an icon", "\x00\x00\x01\x00"},
	{"an SVG drawing", "<svg"},
	{"text of XML or HTML", "<"},
	{"a Git LFS pointer", "version https://git-lfs"},
	{"a GIMP image", "gimp xcf"},
	{"a zip archive", "PK\x03\x04"},
}

func matches(data []byte, magic string) bool {
	if len(data) < len(magic) {
		return false
	}
	for i := range len(magic) {
		if magic[i] != '?' && magic[i] != data[i] {
			return false
		}
	}
	return true
}

func find(id string) (format, bool) {
	for _, f := range formats() {
		if f.id == id {
			return f, true
		}
	}
	return format{}, false
}

// FormatName is a format of [Sniff] as people write it: "PNG".
func FormatName(id string) string {
	if f, ok := find(id); ok {
		return f.name
	}
	return "unknown"
}

// FormatOf tells the format that a file's name promises, as of [Sniff], or "".
func FormatOf(name string) string {
	ext := " " + strings.ToLower(path.Ext(name)) + " "
	for _, f := range formats() {
		if strings.Contains(f.exts, ext) {
			return f.id
		}
	}
	return ""
}

// Sniff tells a file's format by its first bytes: "png", "jpeg", "gif", "bmp", "tiff", "webp", "tga", or "". TGA has no
// signature: the name must say .tga, and the header must make sense.
func Sniff(name string, data []byte) string {
	for _, f := range formats() {
		for _, m := range f.magic {
			if matches(data, m) {
				return f.id
			}
		}
	}
	if FormatOf(name) == "tga" {
		if _, err := tga.ParseHeader(data); err == nil {
			return "tga"
		}
	}
	return ""
}

// DecodeConfig reads the size of an image. The name serves only to know a TGA. Errors are an [*Error].
func DecodeConfig(name string, data []byte) (Config, error) {
	f, err := open(name, data)
	if err != nil {
		return Config{}, err
	}
	return f.size(data)
}

func open(name string, data []byte) (format, error) {
	if len(data) == 0 {
		return format{}, &Error{Fault: Empty}
	}
	if f, ok := find(Sniff(name, data)); ok {
		return f, nil
	}
	e := &Error{Fault: Unknown}
	for _, s := range strangers {
		if matches(data, s.magic) {
			e.Detail = "it looks like " + s.name
			return format{}, e
		}
	}
	if f, _ := find("tga"); FormatOf(name) == "tga" {
		// Nothing else is known of it: what the header contradicts is the best there is to say.
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

// Decode reads an image as 8 bits a channel: the first frame, if there are several. The name serves only to know a
// TGA. Errors are an [*Error].
//
// 16-bit channels are rounded to 8. Linear light is clamped to 0..1 and encoded as sRGB.
func Decode(name string, data []byte, lim Limits) (*Image, error) {
	_, d, err := decode(name, data, lim, false)
	if err != nil {
		return nil, err
	}
	if d.light != nil {
		return d.light.Encoded(), nil
	}
	return fromImage(d.image), nil
}

// DecodePicture is [Decode] with nothing lost: see [Picture].
func DecodePicture(name string, data []byte, lim Limits) (*Picture, error) {
	c, d, err := decode(name, data, lim, true)
	if err != nil {
		return nil, err
	}
	p := &Picture{Format: c.Format, HDR: c.HDR}
	if c.HDR {
		p.Float = d.light
		return p, nil
	}
	p.Eight = fromImage(d.image)
	if c.Deep {
		p.Float = floatOf(d.image)
	}
	return p, nil
}

// decode checks what a file claims against the limits, then reads it. Deep says that a Float will be made of
// more than 8 bits a channel.
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
	if c.Width > lim.MaxSide || c.Height > lim.MaxSide || perPixel*n > lim.MaxBytes {
		return c, d, &Error{Fault: TooLarge, Format: f.id, Width: c.Width, Height: c.Height, Limits: lim}
	}
	if f.pixelsPerByte > 0 && n/f.pixelsPerByte > int64(len(data)) {
		return c, d, &Error{Fault: Truncated, Format: f.id, Width: c.Width, Height: c.Height,
			Detail: fmt.Sprintf("%d bytes cannot hold %d x %d pixels", len(data), c.Width, c.Height)}
	}
	defer f.recovered(&err)
	if d, err = f.decode(data, int(min(lim.MaxBytes/perPixel, math.MaxInt))); err != nil {
		return c, d, f.fault(err)
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

// recovered turns a panic of a decoder into an error: they are the work of others, and are fed by anybody.
func (f format) recovered(err *error) {
	if r := recover(); r != nil {
		*err = &Error{Fault: Damaged, Format: f.id, Detail: fmt.Sprint(r)}
	}
}

// fault puts a decoder's error in its place.
func (f format) fault(err error) *Error {
	e := &Error{Fault: Damaged, Format: f.id, Err: err}
	var (
		unsupportedPNG  png.UnsupportedError
		unsupportedJPEG jpeg.UnsupportedError
		unsupportedTIFF tiff.UnsupportedError
	)
	is := func(of ...error) bool {
		return slices.ContainsFunc(of, func(target error) bool { return errors.Is(err, target) })
	}
	text := err.Error()
	switch {
	case is(io.ErrUnexpectedEOF, io.EOF, exr.ErrTruncated, hdr.ErrTruncated, tga.ErrTruncated):
		e.Fault = Truncated
		return e
	// These decoders and the riff reader below webp make plain texts of it.
	case strings.Contains(text, "unexpected EOF"), strings.Contains(text, "riff: short"), strings.Contains(text, "not enough"):
		e.Fault = Truncated
		return e
	case errors.As(err, &unsupportedPNG), errors.As(err, &unsupportedJPEG), errors.As(err, &unsupportedTIFF),
		is(bmp.ErrUnsupported, exr.ErrUnsupported, hdr.ErrUnsupported, tga.ErrUnsupported):
		e.Fault = Unsupported
	case is(exr.ErrTooLarge, hdr.ErrTooLarge):
		e.Fault = TooLarge
	}
	e.Detail = text
	return e
}

// decodeGIF puts the first frame, which may be smaller, where it belongs on the GIF's screen.
func decodeGIF(data []byte, _ int) (decoded, error) {
	c, err := gif.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return decoded{}, err
	}
	m, err := gif.Decode(bytes.NewReader(data))
	if err != nil || m.Bounds() == image.Rect(0, 0, c.Width, c.Height) {
		return decoded{image: m}, err
	}
	frame := fromImage(m)
	screen := image.NewNRGBA(image.Rect(0, 0, c.Width, c.Height))
	at := m.Bounds().Intersect(screen.Rect)
	for y := at.Min.Y; y < at.Max.Y; y++ {
		from := 4 * ((y-m.Bounds().Min.Y)*frame.Width + at.Min.X - m.Bounds().Min.X)
		copy(screen.Pix[screen.PixOffset(at.Min.X, y):], frame.Pix[from:from+4*at.Dx()])
	}
	return decoded{image: screen}, nil
}

func configTGA(data []byte) (Config, error) {
	h, err := tga.ParseHeader(data)
	return Config{Width: h.Width, Height: h.Height}, err
}

func decodeTGA(data []byte, _ int) (decoded, error) {
	h, pix, err := tga.Decode(data)
	return eightBits(pix, h.Width, h.Height), err
}

func configHDR(data []byte) (Config, error) {
	h, err := hdr.ParseHeader(data)
	return Config{Width: h.Width, Height: h.Height, Deep: true, HDR: true}, err
}

func decodeHDR(data []byte, maxPixels int) (decoded, error) {
	h, pix, err := hdr.Decode(data, maxPixels)
	return decoded{light: &Float{h.Width, h.Height, pix}}, err
}

func configEXR(data []byte) (Config, error) {
	h, err := exr.ParseHeader(data)
	return Config{Width: h.Width, Height: h.Height, Deep: true, HDR: true}, err
}

func decodeEXR(data []byte, maxPixels int) (decoded, error) {
	h, pix, err := exr.Decode(data, maxPixels)
	return decoded{light: &Float{h.Width, h.Height, pix}}, err
}

// eightBits is straight RGBA8 as the standard library has it.
func eightBits(pix []byte, width, height int) decoded {
	return decoded{image: &image.NRGBA{Pix: pix, Stride: 4 * width, Rect: image.Rect(0, 0, width, height)}}
}
