package pixel

import (
	"bytes"
	"image"
	"image/color"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/media/codec/bmp"
	"github.com/kiln-pipeline/kiln/internal/media/codec/exr"
	"github.com/kiln-pipeline/kiln/internal/media/codec/gif"
	"github.com/kiln-pipeline/kiln/internal/media/codec/hdr"
	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
	"github.com/kiln-pipeline/kiln/internal/media/codec/jpeg"
	"github.com/kiln-pipeline/kiln/internal/media/codec/psd"
	"github.com/kiln-pipeline/kiln/internal/media/codec/qoi"
	"github.com/kiln-pipeline/kiln/internal/media/codec/tga"
	"github.com/kiln-pipeline/kiln/internal/media/codec/tiff"
	"github.com/kiln-pipeline/kiln/internal/media/codec/webp"
)

// format is an image file format.
type format struct {
	id, name string // "png", "PNG"
	exts     string // usual extensions: ".png"
	rare     string // extensions that are seldom used, or also used by other formats
	magic    []string

	config func(data []byte) (Config, error)

	// holds returns an error if the data cannot hold as many pixels as the header claims. It is called if the pixels
	// take more than dense times the size of the data. It is nil for decoders that check this before they allocate
	// memory.
	holds func(data []byte, c Config) error

	decode func(data []byte, maxPixels int) (decoded, error)
}

// decoded is the result of a decoder: either image or float is set.
type decoded struct {
	image   image.Image
	light   *Float
	profile []byte // ICC profile, if the decoder finds it
	space   string // colour space of light whose primaries are not those of Rec. 709
	damage  string // what was wrong with a file that could still be read
}

// config adapts a header reader of the standard library.
func config(read func(io.Reader) (image.Config, error)) func([]byte) (Config, error) {
	return func(data []byte) (Config, error) {
		c, err := read(bytes.NewReader(data))
		deep := c.ColorModel == color.Gray16Model || c.ColorModel == color.RGBA64Model || c.ColorModel == color.NRGBA64Model
		return Config{Width: c.Width, Height: c.Height, Deep: deep}, err
	}
}

// formats lists all formats that can be read. In magic, ? matches any byte.
func formats() []format {
	return []format{
		{"png", "PNG", ".png", "", []string{"\x89PNG\r\n\x1a\n"}, configPNG, holdsPNG, decodePNG},
		// Each block of 8 x 8 pixels takes at least one bit.
		{"jpeg", "JPEG", ".jpg .jpeg", ".jpe .jfif", []string{"\xff\xd8\xff"}, configJPEG, atMost(512), decodeJPEG},
		{"gif", "GIF", ".gif", "", []string{"GIF87a", "GIF89a"}, configGIF, holdsGIF, decodeGIF},
		{"bmp", "BMP", ".bmp", ".dib", []string{"BM????\x00\x00\x00\x00"}, configBMP, nil, decodeBMP},
		{"tiff", "TIFF", ".tif .tiff", "", []string{"II*\x00", "MM\x00*"}, configTIFF, nil, decodeTIFF},
		{"webp", "WebP", ".webp", "", []string{"RIFF????WEBP"}, configWebP, holdsWebP, decodeWebP},
		{"hdr", "Radiance HDR", ".hdr", ".pic", []string{"#?RADIANCE", "#?RGBE"}, configHDR, nil, decodeHDR},
		{"qoi", "QOI", ".qoi", "", []string{"qoif"}, configQOI, nil, decodeQOI},
		{"psd", "Photoshop", ".psd", ".psb", []string{"8BPS"}, configPSD, nil, decodePSD},
		{"exr", "OpenEXR", ".exr", "", []string{"v/1\x01"}, configEXR, nil, decodeEXR},
		{"tga", "TGA", ".tga", ".icb .vda .vst", nil, configTGA, nil, decodeTGA},
	}
}

func find(id string) (format, bool) {
	for _, f := range formats() {
		if f.id == id {
			return f, true
		}
	}
	return format{}, false
}

// FormatName returns the display name of a format of [Sniff], such as "PNG".
func FormatName(id string) string {
	if f, ok := find(id); ok {
		return f.name
	}
	return "unknown"
}

// FormatOf returns the format for a file name's extension, as in [Sniff], or "".
func FormatOf(name string) string {
	ext := strings.ToLower(path.Ext(name))
	for _, f := range formats() {
		if slices.Contains(strings.Fields(f.exts+" "+f.rare), ext) {
			return f.id
		}
	}
	return ""
}

// Extensions returns the usual file extensions of some formats, in lower case and with the dot. Without ids it returns
// those of all formats.
func Extensions(ids ...string) []string {
	var list []string
	for _, f := range formats() {
		if len(ids) == 0 || slices.Contains(ids, f.id) {
			list = append(list, strings.Fields(f.exts)...)
		}
	}
	return list
}

// Sniff returns a file's format by its first bytes: "png", "jpeg", "gif", "bmp", "tiff", "webp", "qoi", "psd", "exr",
// "hdr", "tga", or "". TGA has no signature: the name must end in .tga, and the header must be plausible.
func Sniff(name string, data []byte) string {
	for _, f := range formats() {
		for _, m := range f.magic {
			if input.Matches(data, m) {
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

func configGIF(data []byte) (Config, error) {
	f, err := gif.Parse(data)
	if err != nil {
		return Config{}, err
	}
	return Config{Width: f.Width, Height: f.Height}, nil
}

func configJPEG(data []byte) (Config, error) {
	h, err := jpeg.ParseHeader(data)
	return Config{Width: h.Width, Height: h.Height}, err
}

func decodeJPEG(data []byte, maxPixels int) (decoded, error) {
	m, err := jpeg.Decode(data, maxPixels)
	if err != nil {
		return decoded{}, err
	}
	d := eightBits(m.Pix, m.Width, m.Height)
	d.damage = m.Damage
	return d, nil
}

// decodeGIF draws the first frame at its place on the GIF's screen. The frame may be smaller than the screen.
func decodeGIF(data []byte, _ int) (decoded, error) {
	f, err := gif.Parse(data)
	if err != nil {
		return decoded{}, err
	}
	f.Frames = f.Frames[:1]
	d := &Document{Width: f.Width, Height: f.Height}
	if err := d.drawGIF(f); err != nil {
		return decoded{}, err
	}
	p := d.Frames[0].Picture
	out := eightBits(p.Eight.Pix, f.Width, f.Height)
	out.damage = p.Damage
	return out, nil
}

func configTIFF(data []byte) (Config, error) {
	h, err := tiff.ParseHeader(data)
	return Config{Width: h.Width, Height: h.Height, Deep: h.Bits > 8, HDR: h.Float}, err
}

func decodeTIFF(data []byte, maxPixels int) (decoded, error) {
	m, err := tiff.Decode(data, maxPixels)
	if err != nil {
		return decoded{}, err
	}
	if m.Float {
		return decoded{light: &Float{m.Width, m.Height, m.Light}, damage: m.Damage}, nil
	}
	d := sixteenBits(m.Pix, m.Width, m.Height, m.Bits > 8)
	d.damage = m.Damage
	return d, nil
}

func configWebP(data []byte) (Config, error) {
	f, err := webp.Parse(data)
	if err != nil {
		return Config{}, err
	}
	return Config{Width: f.Width, Height: f.Height}, nil
}

// decodeWebP draws the first frame at its place. That of an image that is no animation fills it.
func decodeWebP(data []byte, _ int) (decoded, error) {
	f, err := webp.Parse(data)
	if err != nil {
		return decoded{}, err
	}
	if len(f.Frames) == 0 {
		return decoded{}, input.ErrTruncated
	}
	frame := &f.Frames[0]
	pix, err := frame.Decode()
	if err != nil || frame.Width == f.Width && frame.Height == f.Height {
		return eightBits(pix, f.Width, f.Height), err
	}
	canvas := New(f.Width, f.Height)
	canvas.draw(&Image{frame.Width, frame.Height, pix}, areaOf(frame), false)
	return eightBits(canvas.Pix, f.Width, f.Height), nil
}

func areaOf(f *webp.Frame) image.Rectangle { return image.Rect(f.X, f.Y, f.X+f.Width, f.Y+f.Height) }

func configBMP(data []byte) (Config, error) {
	h, err := bmp.ParseHeader(data)
	return Config{Width: h.Width, Height: h.Height}, err
}

func decodeBMP(data []byte, maxPixels int) (decoded, error) {
	h, pix, err := bmp.Decode(data, maxPixels)
	return eightBits(pix, h.Width, h.Height), err
}

func configTGA(data []byte) (Config, error) {
	h, err := tga.ParseHeader(data)
	return Config{Width: h.Width, Height: h.Height}, err
}

func decodeTGA(data []byte, maxPixels int) (decoded, error) {
	h, pix, err := tga.Decode(data, maxPixels)
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
	d := decoded{light: &Float{h.Width, h.Height, pix}}
	rec709 := [8]float32{0.64, 0.33, 0.30, 0.60, 0.15, 0.06, 0.3127, 0.3290}
	for i, v := range h.Chromaticity {
		if off := v - rec709[i]; h.Chromaticity != [8]float32{} && !(off > -0.01 && off < 0.01) {
			d.space = "primaries of its own"
		}
	}
	return d, err
}

func configQOI(data []byte) (Config, error) {
	h, err := qoi.Config(data)
	return Config{Width: h.Width, Height: h.Height}, err
}

func decodeQOI(data []byte, maxPixels int) (decoded, error) {
	pix, w, h, err := qoi.Decode(data, maxPixels)
	return eightBits(pix, w, h), err
}

func configPSD(data []byte) (Config, error) {
	h, err := psd.ParseHeader(data)
	return Config{Width: h.Width, Height: h.Height, Deep: h.Depth > 8, HDR: h.Depth == 32}, err
}

func decodePSD(data []byte, maxPixels int) (decoded, error) {
	m, err := psd.Decode(data, maxPixels)
	if err != nil {
		return decoded{}, err
	}
	if m.Light != nil {
		return decoded{light: &Float{m.Width, m.Height, m.Light}, profile: m.Profile}, nil
	}
	d := sixteenBits(m.Pix, m.Width, m.Height, m.Depth > 8)
	d.profile = m.Profile
	return d, nil
}

// sixteenBits returns straight RGBA of 16 bits as an image type of the standard library, or of 8 bits if the file has
// no more.
func sixteenBits(pix []uint16, width, height int, deep bool) decoded {
	if !deep {
		eights := make([]byte, len(pix))
		for i, v := range pix {
			eights[i] = eight(uint32(v))
		}
		return eightBits(eights, width, height)
	}
	m := image.NewNRGBA64(image.Rect(0, 0, width, height))
	for i, v := range pix {
		m.Pix[2*i], m.Pix[2*i+1] = byte(v>>8), byte(v)
	}
	return decoded{image: m}
}

// eightBits returns straight RGBA8 as an image type of the standard library.
func eightBits(pix []byte, width, height int) decoded {
	return decoded{image: &image.NRGBA{Pix: pix, Stride: 4 * width, Rect: image.Rect(0, 0, width, height)}}
}
