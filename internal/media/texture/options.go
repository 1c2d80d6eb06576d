package texture

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"

	"github.com/kiln-pipeline/kiln/internal/media/codec/block"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
)

// Options are the settings for making a texture. They are the settings of the texture processor, and other processors
// may have them as a field. The zero value is a texture of data without mips; see [Defaults].
//
// The last ones, from R on, name the sources of pixels. The caller that reads the files applies them; Encode ignores
// them.
type Options struct {
	Use       string `toml:"use" values:"auto,color,normal,mask,hdr,ui,data" doc:"What the picture is for: it decides colour space, format and how mips are made. auto goes by the end of the file's name."`
	Format    string `toml:"format" values:"auto,bc1,bc3,bc4,bc5,bc6h,bc7,etc2,etc2a,eacr11,eacrg11,astc4x4,astc6x6,astc8x8,rgba8,rg8,r8,rgba16,rg16,r16,rgba16f,rgb9e5" doc:"Pixel format. auto takes one of the family that fits the use."`
	Family    string `toml:"family" values:"none,bc,etc2,astc" doc:"Formats that auto chooses from: bc for PCs and consoles, etc2 and astc for phones, none for pixels as they are."`
	Quality   string `toml:"quality" values:"fast,normal,best,draft-then-final" doc:"How long the encoder of a compressed format tries; draft-then-final is normal, and running games get a quick one before."`
	Container string `toml:"container" values:"ktx2,dds,png" doc:"File format of the product; png has no mips, and 8 bits a channel."`
	Compress  string `toml:"compress" values:"none,zstd" doc:"Pack the levels of a KTX2 file once more."`

	Mips        bool    `toml:"mips" doc:"Make mip levels down to 1 x 1."`
	Filter      string  `toml:"filter" values:"box,kaiser" doc:"How smaller pictures are made: box is the mean of what is covered, kaiser is sharper."`
	SRGB        bool    `toml:"srgb" doc:"Pixels are colours, sRGB-encoded. Turn it off for normal maps, masks and other data."`
	Gamma       bool    `toml:"gamma" doc:"Colours of a PNG or QOI that states another gamma become sRGB. Turned off, its numbers are taken for sRGB, as glTF asks of the images of models."`
	MaxSize     int     `toml:"max_size" min:"0" max:"16384" doc:"Largest side, in pixels; larger images are scaled down, keeping their proportions. 0 keeps the size."`
	Scale       float64 `toml:"scale" min:"0" max:"16" doc:"Factor of both sides. 0 is 1."`
	PowerOfTwo  string  `toml:"power_of_two" values:"none,up,down,nearest" doc:"Make sides powers of two."`
	MultipleOf  int     `toml:"multiple_of" min:"0" max:"256" doc:"Make sides multiples of it, the nearest: 4 for bc formats in Direct3D and WebGL."`
	Premultiply bool    `toml:"premultiply" doc:"Multiply colours by alpha."`
	AlphaCutoff float64 `toml:"alpha_cutoff" min:"0" max:"1" doc:"The game draws what has at least this alpha, and nothing else: each mip level keeps as much of it. 0: it blends."`
	ColorKey    string  `toml:"color_key" doc:"A colour that becomes transparent: \"#ff00ff\"."`
	Bleed       int     `toml:"bleed" min:"0" max:"16384" doc:"Spread the colours of edges this number of pixels into what is transparent."`
	GreenUp     bool    `toml:"green_up" doc:"Turn the green of a normal map round: it points down in the picture, as in Direct3D, and is to point up, as in OpenGL, Vulkan and glTF."`
	Flip        bool    `toml:"flip" doc:"Store the bottom row first, as OpenGL counts."`
	MaxPixels   int     `toml:"max_pixels" min:"0" max:"268435456" doc:"A picture that claims more pixels is refused. 0 is 16384 x 16384."`

	R          string   `toml:"r" doc:"A picture whose red becomes red: \"rough.png\", or another channel of it: \"rough.png:a\". Relative to the asset's folder."`
	G          string   `toml:"g" doc:"The same for green."`
	B          string   `toml:"b" doc:"The same for blue."`
	A          string   `toml:"a" doc:"The same for alpha."`
	Cube       string   `toml:"cube" values:"none,faces,cross,equirect" doc:"A cube map: of six pictures, of one with the sides unfolded, of one with all directions."`
	Faces      []string `toml:"faces" doc:"The six pictures of a cube: +x, -x, +y, -y, +z, -z. None: by the end of the asset's name, as sky_px.png."`
	Layers     []string `toml:"layers" doc:"Pictures or globs that make an array of textures, in this order. Relative to the asset's folder."`
	Slices     []string `toml:"slices" doc:"Pictures or globs that make a 3-D texture, front to back. Relative to the asset's folder."`
	Frames     string   `toml:"frames" values:"first,array" doc:"Of an animation: its first frame, or an array of textures of all of them."`
	SliceCount int      `toml:"slice_count" min:"0" max:"2048" doc:"The picture is a strip of this number of slices of a 3-D texture."`
}

// Defaults returns the default options.
func Defaults() Options {
	return Options{
		Use: "auto", Format: "auto", Family: "none", Quality: "normal", Container: "ktx2", Compress: "none",
		Mips: true, Filter: "box", SRGB: true, Gamma: true, Scale: 1, PowerOfTwo: "none", Cube: "none", Frames: "first",
	}
}

// Extension returns the extension of the container, with the dot.
func (o Options) Extension() string { return "." + o.Container }

// Limits returns the limits for reading pictures.
func (o Options) Limits() pixel.Limits {
	l := pixel.DefaultLimits()
	if o.MaxPixels > 0 {
		l.MaxBytes = 4 * int64(o.MaxPixels)
	}
	return l
}

// Key returns ColorKey as red, green and blue. ok is false if it is empty.
func (o Options) Key() (rgb [3]byte, ok bool, err error) {
	if o.ColorKey == "" {
		return rgb, false, nil
	}
	if v, err := strconv.ParseUint(o.ColorKey[1:], 16, 24); o.ColorKey[0] == '#' && len(o.ColorKey) == 7 && err == nil {
		return [3]byte{byte(v >> 16), byte(v >> 8), byte(v)}, true, nil
	}
	return rgb, false, fmt.Errorf("color_key %q is not a colour", o.ColorKey)
}

// Size returns the size of the texture for a picture of width x height: scaled, then limited, then rounded.
func (o Options) Size(width, height int) (int, int) {
	if o.Scale > 0 && o.Scale != 1 {
		scale := func(n int) int { return max(1, min(int(math.Round(float64(n)*o.Scale)), maxSide)) }
		width, height = scale(width), scale(height)
	}
	width, height = pixel.Fit(width, height, o.MaxSize)
	limit := maxSide
	if o.MaxSize > 0 {
		limit = o.MaxSize
	}
	return o.round(width, limit), o.round(height, limit)
}

// maxSide is the largest side of a texture in pixels, for current hardware.
const maxSide = 16384

// round rounds a side as the options ask, up to a limit.
func (o Options) round(n, limit int) int {
	floor := 1 << (bits.Len(uint(n)) - 1)
	switch o.PowerOfTwo {
	case "down":
		n = floor
	case "up", "nearest": // nearest in proportion: 181 is the limit between 128 and 256
		if floor < n && 2*floor <= limit && (o.PowerOfTwo == "up" || n*n >= 2*floor*floor) {
			floor *= 2
		}
		n = floor
	}
	if m := o.MultipleOf; m > 1 {
		near := (n + m/2) / m * m
		if near > limit {
			near = limit / m * m
		}
		n = max(m, near)
	}
	return n
}

// DraftThenFinal is the quality where running games first get a draft, and later the normal version.
const DraftThenFinal = "draft-then-final"

func (o Options) quality() block.Quality {
	switch o.Quality {
	case "fast":
		return block.Fast
	case "best":
		return block.Best
	}
	return block.Normal
}

func (o Options) kernel() pixel.Kernel {
	if o.Filter == "kaiser" {
		return pixel.Kaiser
	}
	return pixel.Box
}

// cutoff returns the alpha that passes the game's alpha test, or 0.
func (o Options) cutoff() byte {
	if o.AlphaCutoff <= 0 {
		return 0
	}
	return byte(max(1, math.Round(min(1, o.AlphaCutoff)*255)))
}
