package texture

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/media/codec/dds"
	"github.com/kiln-pipeline/kiln/internal/media/codec/ktx2"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/processor"
)

// File is a parsed texture file. It may be made by any program.
type File struct {
	Container string // "ktx2", "dds"
	Format    string // for display: "BC7 sRGB"
	Shape     Shape

	Width, Height int // of level 0, in pixels
	Depth         int // of level 0, in slices; at least 1
	Layers        int // at least 1
	Faces         int // 1 or 6
	Levels        int

	Premultiplied bool

	data   []byte
	t      *ktx2.Texture // used for both containers
	format format        // one of ours, or the zero format
	lim    pixel.Limits
}

// IsFile reports whether the bytes are those of a texture file, by the first bytes.
func IsFile(data []byte) bool { return containerOf(data) != "" }

func containerOf(data []byte) string {
	switch head := string(data[:min(len(data), 12)]); {
	case head == "\xabKTX 20\xbb\r\n\x1a\n":
		return "ktx2"
	case strings.HasPrefix(head, "DDS "):
		return "dds"
	}
	return ""
}

// Open reads the header of a texture file and decompresses its levels. [File.Picture] decodes pixels. An error is a
// [processor.Problem].
func Open(data []byte, lim pixel.Limits) (*File, error) {
	return take(data, lim, func() (*ktx2.Texture, int, error) {
		t, err := ktx2.DecodeLimit(data, int(min(lim.MaxBytes, ktx2.MaxInflated)))
		if err != nil {
			return nil, 0, err
		}
		return t, len(t.Levels), nil
	})
}

// peek is like Open, but does not decompress the levels of a KTX2 file.
func peek(data []byte, lim pixel.Limits) (*File, error) {
	return take(data, lim, func() (*ktx2.Texture, int, error) {
		t, levels, err := ktx2.DecodeConfig(data)
		if err == nil && t.Size(levels) > min(lim.MaxBytes, ktx2.MaxInflated) {
			err = ktx2.ErrTooLarge
		}
		return t, levels, err
	})
}

// take parses a file. It reads a KTX2 file with the given function.
func take(data []byte, lim pixel.Limits, ktx2File func() (*ktx2.Texture, int, error)) (*File, error) {
	f := &File{Container: containerOf(data), data: data, lim: lim}
	var err error
	switch f.Container {
	case "ktx2":
		f.t, f.Levels, err = ktx2File()
	case "dds":
		if f.t, err = fromDDS(data); err == nil {
			f.Levels = len(f.t.Levels)
		}
	default:
		return nil, fileProblem(diag.ImageUnknown, "give it another processor in a rule", errors.New("neither a KTX2 nor a DDS file"))
	}
	if err != nil {
		return nil, refused(err)
	}
	f.Width, f.Height, f.Depth, f.Layers, f.Faces = f.t.Width, f.t.Height, max(1, f.t.Depth), max(1, f.t.Layers), 1
	f.Premultiplied, f.Format = f.t.Premultiplied, f.t.Format.String()
	switch {
	case f.t.Cube:
		f.Shape, f.Faces = Cube, 6
	case f.t.Depth > 0:
		f.Shape = Volume
	case f.t.Layers > 0:
		f.Shape = Array
	}
	for _, known := range formats {
		if f.t.Format == known.ktx2 || f.t.Format == known.ktx2SRGB {
			f.format = known
		}
	}
	if max(f.Width, f.Height) > lim.MaxSide || 16*int64(f.Width)*int64(f.Height) > 4*lim.MaxBytes {
		return nil, fileProblem(diag.ImageTooLarge, "raise max_pixels, or make it smaller", fmt.Errorf("%s file of %d x %d pixels, over the limit of %d a side and %d in all",
			strings.ToUpper(f.Container), f.Width, f.Height, lim.MaxSide, lim.MaxBytes/4))
	}
	return f, nil
}

// refused converts an error of a container's codec to a message.
func refused(err error) error {
	switch {
	case errors.Is(err, ktx2.ErrTruncated), errors.Is(err, dds.ErrTruncated):
		return fileProblem(diag.ImageTruncated, "save or copy it again: it looks half-written", err)
	case errors.Is(err, ktx2.ErrUnsupported), errors.Is(err, dds.ErrUnsupported):
		return fileProblem(diag.ImageUnsupported, `make it of its original picture; or processor = "copy" takes it as it is`, err)
	case errors.Is(err, ktx2.ErrTooLarge):
		return fileProblem(diag.ImageTooLarge, "raise max_pixels, or make it smaller", err)
	}
	return fileProblem(diag.ImageDamaged, "export it again, or give its original picture (a PNG, say) in its place", err)
}

func fileProblem(code diag.Code, hint string, err error) error {
	return &processor.Problem{Code: string(code), Text: err.Error(), Hint: hint, Err: err}
}

// Foreign reports whether a file whose format [Open] does not know may be used unchanged: a KTX2 with a valid
// structure, for which the options ask nothing that needs its pixels. If there is a doubt, it returns a warning.
func Foreign(data []byte, o Options) (ok bool, warning processor.Problem) {
	if containerOf(data) != "ktx2" || o.Container != "ktx2" {
		return false, warning
	}
	lim := o.Limits()
	s, err := ktx2.ReadShell(data, lim.MaxSide, lim.MaxBytes)
	if err != nil {
		return false, warning
	}
	width, height := o.Size(s.Width, max(1, s.Height))
	if width != s.Width || height != max(1, s.Height) || o.Format != "auto" || o.ColorKey != "" || o.Bleed > 0 || o.GreenUp || o.Premultiply || o.Flip || o.AlphaCutoff > 0 {
		return false, warning
	}
	if o.Family != "none" {
		warning = processor.Problem{Code: string(diag.TextureForeign), Text: fmt.Sprintf("goes out as it is: it has %v, which Kiln does not read, and which may not be of family %q", s, o.Family),
			Hint: `make sure that the platform's graphics cards take it; processor = "copy" in a rule says that they do`}
	}
	return true, warning
}

// pairs are the formats that both containers have. Direct3D's BC1 may be transparent.
var pairs = []struct {
	dds  dds.Format
	ktx2 ktx2.Format
}{
	{dds.R8, ktx2.R8}, {dds.RG8, ktx2.RG8}, {dds.RGBA8, ktx2.RGBA8}, {dds.RGBA8SRGB, ktx2.RGBA8SRGB},
	{dds.R16, ktx2.R16}, {dds.RG16, ktx2.RG16}, {dds.RGBA16, ktx2.RGBA16},
	{dds.RGBA16F, ktx2.RGBA16F}, {dds.RGBA32F, ktx2.RGBA32F}, {dds.RGB9E5, ktx2.RGB9E5},
	{dds.BC1, ktx2.BC1A}, {dds.BC1SRGB, ktx2.BC1ASRGB}, {dds.BC1, ktx2.BC1}, {dds.BC1SRGB, ktx2.BC1SRGB},
	{dds.BC2, ktx2.BC2}, {dds.BC2SRGB, ktx2.BC2SRGB}, {dds.BC3, ktx2.BC3}, {dds.BC3SRGB, ktx2.BC3SRGB},
	{dds.BC4, ktx2.BC4}, {dds.BC4Signed, ktx2.BC4Signed}, {dds.BC5, ktx2.BC5}, {dds.BC5Signed, ktx2.BC5Signed},
	{dds.BC6H, ktx2.BC6H}, {dds.BC6HSigned, ktx2.BC6HSigned}, {dds.BC7, ktx2.BC7}, {dds.BC7SRGB, ktx2.BC7SRGB},
}

func fromDDS(data []byte) (*ktx2.Texture, error) {
	d, err := dds.Decode(data)
	if err != nil {
		return nil, err
	}
	for _, p := range pairs {
		if p.dds == d.Format {
			return &ktx2.Texture{Format: p.ktx2, Width: d.Width, Height: d.Height, Depth: d.Depth, Layers: d.Layers, Cube: d.Cube,
				Levels: d.Levels, Premultiplied: d.Alpha == dds.AlphaPremultiplied, Writer: writer}, nil
		}
	}
	return nil, fmt.Errorf("%v: %w", d.Format, dds.ErrUnsupported)
}

// Keeps reports whether the file already is what the options ask for, so that it need not be encoded again. Options
// that leave something open accept what the file has.
func (f *File) Keeps(o Options) bool {
	width, height := o.Size(f.Width, f.Height)
	switch {
	case width != f.Width || height != f.Height, o.ColorKey != "", o.Bleed > 0, o.GreenUp:
		return false
	case o.Premultiply && !f.Premultiplied, o.Flip && !f.t.BottomUp && !f.t.Cube:
		return false
	case o.Container == "png":
		return false
	case o.Container == "dds" && (f.t.BottomUp || f.t.Swizzle != "" || !f.inDDS()):
		return false
	case o.Format == "auto" && (o.Family == "none" || o.Family == f.format.family):
		return true
	}
	return o.Format == f.format.name || o.Format == "bc1" && f.format.name == "bc1a"
}

func (f *File) inDDS() bool {
	for _, p := range pairs {
		if p.ktx2 == f.t.Format {
			return true
		}
	}
	return false
}

// Repack returns the file in another container, with other mips or other compression, as the options ask. It returns
// the file itself if nothing changes.
func (f *File) Repack(o Options) ([]byte, error) {
	t := *f.t
	if !o.Mips {
		t.Levels = t.Levels[:1]
	}
	zstd := o.Compress == "zstd" && o.Container == "ktx2"
	if f.Container == o.Container && len(t.Levels) == f.Levels && (!zstd || t.Zstd) {
		return f.data, nil
	}
	if o.Container == "ktx2" {
		t.Zstd = zstd || t.Zstd
		return ktx2.Encode(&t)
	}
	d := &dds.Texture{Width: t.Width, Height: t.Height, Depth: t.Depth, Layers: t.Layers, Cube: t.Cube, Levels: t.Levels}
	for _, p := range pairs {
		if p.ktx2 == t.Format {
			d.Format = p.dds
		}
	}
	if t.Premultiplied {
		d.Alpha = dds.AlphaPremultiplied
	}
	return dds.Encode(d)
}

// Options returns o with what the file itself states: whether it is premultiplied, and, in a KTX2 file, whether its
// colours are sRGB-encoded. (Many DDS files of colours state that they are not.)
func (f *File) Options(o Options) Options {
	o.Premultiply = o.Premultiply || f.Premultiplied
	if f.Container == "ktx2" && !f.t.Format.SRGB() {
		o.SRGB = false
	}
	if f.float() && o.Use == "color" {
		o.Use = "hdr"
	}
	return o
}

func (f *File) float() bool {
	switch f.t.Format {
	case ktx2.RGBA16F, ktx2.RGBA32F, ktx2.RGB9E5, ktx2.BC6H, ktx2.BC6HSigned:
		return true
	}
	return false
}

// perPixel is the bytes of a decoded pixel: of 8 bits a channel, or of floating point as well.
func (f *File) perPixel() int64 {
	switch f.t.Format {
	case ktx2.R16, ktx2.RG16, ktx2.RGBA16:
		return 4 + 16
	}
	if f.float() {
		return 16
	}
	return 4
}

// Images decodes the largest level of all images. An array of cubes has no [Shape] and is an error. Exceeding the
// limits of Open is an error too: a block of 16 bytes may expand to 144 pixels, so that 30 KB of Zstandard become 36
// GB.
func (f *File) Images() (Images, error) {
	im := Images{Shape: f.Shape}
	if f.Shape == Cube && f.Layers > 1 {
		return im, fileProblem(diag.ImageUnsupported, "make it of its original pictures", errors.New("an array of cubes cannot be made into another format"))
	}
	if err := f.affordable(f.Layers * f.Faces * f.Depth); err != nil {
		return im, err
	}
	for layer := range f.Layers {
		for face := range f.Faces {
			for slice := range f.Depth {
				p, err := f.Picture(0, layer, face, slice)
				if err != nil {
					return im, err
				}
				im.Pictures = append(im.Pictures, p)
			}
		}
	}
	return im, nil
}

// affordable returns an error if decoding that many pictures of the largest level would exceed the limits.
func (f *File) affordable(pictures int) error {
	if most := f.lim.MaxBytes / f.perPixel(); int64(f.Width)*int64(f.Height) > most/int64(pictures) {
		return fileProblem(diag.ImageTooLarge, "raise max_pixels, or make it smaller", fmt.Errorf("%d of %d x %d pixels are over the limit of %d in all",
			pictures, f.Width, f.Height, most))
	}
	return nil
}

// Picture decodes one image: rows top down, straight alpha, channels as a game samples them. Level 0 is the largest.
// layer, face and slice begin at 0. It is an error if the image does not exist or its format is unknown.
func (f *File) Picture(level, layer, face, slice int) (*pixel.Picture, error) {
	if level < 0 || level >= f.Levels || layer < 0 || layer >= f.Layers || face < 0 || face >= f.Faces || slice < 0 || slice >= max(1, f.Depth>>level) {
		return nil, fmt.Errorf("there is no level %d, layer %d, face %d, slice %d in this file", level, layer, face, slice)
	}
	if err := f.affordable(1); err != nil {
		return nil, err
	}
	width, height := max(1, f.Width>>level), max(1, f.Height>>level)
	p, err := unpack(f.t.Format, f.t.Image(level, layer, face, slice), width, height)
	if err != nil {
		return nil, refused(err)
	}
	p.Format = f.Container
	if p.Eight != nil {
		p.Eight.Swizzle(f.t.Swizzle)
		if f.Premultiplied {
			p.Eight.Straighten(f.t.Format.SRGB())
		}
		if f.t.BottomUp {
			p.Eight = p.Eight.Flipped()
		}
	}
	if p.Float != nil {
		if !p.HDR {
			p.Float.Swizzle(f.t.Swizzle)
			if f.Premultiplied {
				p.Float.Straighten()
			}
		}
		if f.t.BottomUp {
			p.Float = p.Float.Flipped()
		}
	}
	return p, nil
}

// FileExtensions returns the extensions of texture files.
func FileExtensions() []string { return []string{dds.Extension, ktx2.Extension} }

// Extensions returns the extensions of all files from which a texture can be made.
func Extensions() []string { return append(pixel.Extensions(), FileExtensions()...) }
