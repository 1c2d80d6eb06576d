package texture

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/internal/media/role"
	"github.com/kiln-pipeline/kiln/processor"
)

// Plan is the description of a texture to make. Everything that options leave open is decided in it.
type Plan struct {
	Use           string // never "auto"
	Format        string // never "auto"
	SRGB          bool
	Width, Height int // size of level 0

	o      Options
	images Images
	format format
	color  bool // red, green and blue are a colour or light, and the fourth channel is alpha
	spread bool // the only channel stands for red, green and blue
}

// NewPlan returns the plan for some images. Its errors are a [processor.Problem] if the options are not possible.
func NewPlan(im Images, o Options) (*Plan, error) {
	p := newPlan(im, o)
	if _, _, err := o.Key(); err != nil {
		return nil, &processor.Problem{Code: string(diag.TextureCombination), Text: err.Error(), Hint: `write it as color_key = "#ff00ff"`}
	}
	if err := p.checkImages(); err != nil {
		return nil, err
	}
	if err := p.chooseFormat(); err != nil {
		return nil, err
	}
	width, height := im.Pictures[0].Size()
	p.Width, p.Height = o.Size(width, height)
	return p, nil
}

// newPlan returns a plan without a format.
func newPlan(im Images, o Options) *Plan {
	p := &Plan{Use: o.Use, o: o, images: im}
	if p.Use == "auto" || p.Use == "" {
		p.Use = "color"
	}
	return p
}

// checkImages returns an error if the images cannot be a texture.
func (p *Plan) checkImages() error {
	pictures := p.images.Pictures
	if len(pictures) == 0 {
		return shapeProblem("name some", "there are no pictures")
	}
	width, height := pictures[0].Size()
	if width < 1 || height < 1 || max(width, height) > maxSide {
		return fmt.Errorf("an image of %d x %d pixels cannot be a texture: sides are 1 to %d", width, height, maxSide)
	}
	for i, pic := range pictures {
		w, h := pic.Size()
		if w != width || h != height {
			return shapeProblem("make them the same size", "picture %d has %d x %d pixels, the first %d x %d", i+1, w, h, width, height)
		}
		if m := pic.Eight; m != nil && len(m.Pix) != 4*w*h {
			return fmt.Errorf("%d bytes are not an image of %d x %d pixels", len(m.Pix), w, h)
		}
	}
	switch {
	case p.images.Shape == Flat && len(pictures) != 1:
		return fmt.Errorf("%d pictures are not a flat texture", len(pictures))
	case p.images.Shape == Cube && len(pictures) != 6:
		return shapeProblem("name six: +x, -x, +y, -y, +z, -z", "a cube has 6 faces, not %d", len(pictures))
	case p.images.Shape == Cube && width != height:
		return shapeProblem("make them square", "the faces of a cube are square, not %d x %d", width, height)
	case len(pictures) > maxLayers:
		return shapeProblem("make several textures of them", "%d pictures are more than the %d that a texture can have", len(pictures), maxLayers)
	}
	return nil
}

// maxLayers is the most layers of an array and slices of a volume, for current hardware.
const maxLayers = 2048

func shapeProblem(hint, text string, args ...any) error {
	return &processor.Problem{Code: string(diag.TextureShape), Text: fmt.Sprintf(text, args...), Hint: hint}
}

func (p *Plan) chooseFormat() error {
	o, name := p.o, p.o.Format
	auto := p.auto()
	switch {
	case auto:
		deep := p.Use == "data" && p.deep()
		some := o.Family != "" && o.Family != "none" || deep // otherwise the check does not matter
		name = choose(p.Use, o.Family, some && p.transparent(), some && p.grey(), p.images.Pictures[0].HDR, deep)
	case name == "bc1" && p.transparent():
		name = "bc1a"
	}
	if o.Container == "png" {
		if err := p.mayBePNG(auto); err != nil {
			return err
		}
		if auto {
			name = "rgba8"
		}
	}
	f, err := formatNamed(name)
	if err != nil {
		return err
	}
	p.setFormat(f)
	p.spread = auto && f.channels == 1
	switch o.Container {
	case "ktx2", "png":
	case "dds":
		if f.dds == 0 {
			return &processor.Problem{
				Code: string(diag.TextureCombination), Text: fmt.Sprintf("a DDS file cannot hold format %q", f.name),
				Hint: `use container = "ktx2", or a format of family "bc"`,
			}
		}
	default:
		return fmt.Errorf("texture container %q is unknown", o.Container)
	}
	return nil
}

// mayBePNG returns an error for options that a PNG file cannot have, and turns mips off.
func (p *Plan) mayBePNG(auto bool) error {
	refuse := func(hint, text string, args ...any) error {
		return &processor.Problem{Code: string(diag.TextureCombination), Text: fmt.Sprintf(text, args...), Hint: hint}
	}
	p.o.Mips = false
	switch {
	case p.images.Shape != Flat:
		return refuse(`use container = "ktx2"`, "a PNG file holds one picture, and not a cube, an array or a 3-D texture")
	case p.images.Pictures[0].HDR:
		return refuse(`use container = "ktx2"`, "a PNG file cannot hold light that is brighter than white")
	case !auto && p.o.Format != "rgba8" && p.o.Format != "r8":
		return refuse(`leave format out, or use "rgba8" or "r8"`, "a PNG file cannot hold format %q", p.o.Format)
	}
	return nil
}

// setFormat sets the format and the fields that depend on it.
func (p *Plan) setFormat(f format) {
	p.format, p.Format = f, f.name
	pictures := p.Use == "color" || p.Use == "ui"
	// Numbers that are not sRGB are data, with alpha as a fourth number. If premultiply is set, the fourth channel is
	// alpha.
	p.color = f.channels >= 3 && (pictures && (p.o.SRGB || p.o.Premultiply || f.linear()) || p.Use == "hdr")
	p.SRGB = p.color && p.o.SRGB && !f.linear()
}

// auto reports whether the format is left open.
func (p *Plan) auto() bool { return p.o.Format == "auto" || p.o.Format == "" }

// transparent reports whether any pixel is not opaque.
func (p *Plan) transparent() bool {
	if p.o.ColorKey != "" {
		return true
	}
	for _, pic := range p.images.Pictures {
		if pic.Eight == nil {
			for i := 3; i < len(pic.Float.Pix); i += 4 {
				if pic.Float.Pix[i] < 1 {
					return true
				}
			}
		} else if !pic.Eight.Opaque() {
			return true
		}
	}
	return false
}

// grey reports whether the image is a mask or data with equal channels.
func (p *Plan) grey() bool {
	if p.Use != "mask" && p.Use != "data" {
		return false
	}
	for _, pic := range p.images.Pictures {
		if pic.Eight == nil || !pic.Eight.Grey() || p.Use == "data" && pic.Float != nil && !pic.Float.Grey() {
			return false
		}
	}
	return true
}

// deep reports whether any image has whole numbers of more than 8 bits.
func (p *Plan) deep() bool {
	return slices.ContainsFunc(p.images.Pictures, func(pic *pixel.Picture) bool { return pic.Float != nil && !pic.HDR })
}

// premultiplies reports whether colours are multiplied by alpha.
func (p *Plan) premultiplies() bool { return p.o.Premultiply && p.color && p.format.channels == 4 }

// filter returns the filter for smaller levels.
func (p *Plan) filter(workers int) pixel.Filter {
	return pixel.Filter{
		SRGB: p.SRGB, Weighted: p.color, Normal: p.Use == "normal",
		Kernel: p.o.kernel(), Workers: workers,
	}
}

// Warnings returns warnings about options without effect, and about textures that some hardware refuses. Options that
// do not apply to the use of the picture give no warning, because a rule may be for a whole folder.
func (p *Plan) Warnings() []processor.Problem {
	var list []processor.Problem
	add := func(code diag.Code, hint, text string, args ...any) {
		list = append(list, processor.Problem{Code: string(code), Text: fmt.Sprintf(text, args...), Hint: hint})
	}
	o := p.o
	if (p.Use == "color" || p.Use == "ui") && !p.auto() && p.format.channels < 4 { // auto chooses a format without alpha if there is none
		lacks := "alpha"
		if p.format.channels < 3 {
			lacks = "colour and no alpha"
		}
		if o.Premultiply {
			add(diag.TextureSettings, `leave premultiply out, or use format = "rgba8"`, "premultiply does nothing with format %q, which has no %s", p.Format, lacks)
		}
		if o.AlphaCutoff > 0 {
			add(diag.TextureSettings, `leave alpha_cutoff out, or use format = "rgba8"`, "alpha_cutoff does nothing with format %q, which has no %s", p.Format, lacks)
		}
	}
	if o.Compress == "zstd" && o.Container != "ktx2" {
		add(diag.TextureSettings, `leave compress out, or use container = "ktx2"`, "compress does nothing in a %s file", strings.ToUpper(o.Container))
	}
	if p.color && p.format.channels == 3 && p.transparent() {
		add(diag.TextureAlpha, `use "bc7", "bc3", "etc2a" or "astc6x6", or a picture without alpha`, "format %q drops the picture's alpha", p.Format)
	}
	if p.coarser() {
		add(diag.TexturePrecision, `use format = "r16", "rg16" or "rgba16", which hold numbers of 16 bits from 0 to 1; or allow = ["K1217"] in a rule, if fewer bits are enough`,
			"numbers of the picture lose precision in format %q", p.Format)
	}
	if p.format.family == "bc" && (p.Width%4 != 0 || p.Height%4 != 0) {
		add(diag.TextureOddSize, "set multiple_of = 4, or leave it if the game uses Vulkan or Metal alone",
			"%d x %d is not a multiple of 4, and Direct3D and WebGL refuse such textures of format %q", p.Width, p.Height, p.Format)
	}
	return list
}

// Doubt is [Doubt] of the first picture, if the plan's use was guessed from a file's name.
func (p *Plan) Doubt(named role.Named) (why, use string) {
	if named.Use != p.Use || named.Because == "" && named.Alone == "" {
		return "", ""
	}
	return Doubt(named, p.images.Pictures[0].Bits(false))
}

// directions reports whether at least half of the pixels could be a direction, with a length of about 1.
func directions(m *pixel.Image) bool {
	good := 0
	for i := 0; i < len(m.Pix); i += 4 {
		x, y, z := 2*int(m.Pix[i])-255, 2*int(m.Pix[i+1])-255, 2*int(m.Pix[i+2])-255
		flat := x*x + y*y
		// A file without blue is accepted if red and green stay within the circle.
		if (z == -255 || z == 255) && flat <= 72000 || abs(flat+z*z-255*255) < 255*255*2/5 {
			good++
		}
	}
	return 8*good >= len(m.Pix) // half of the pixels
}

// surface reports whether nearly all pixels are directions that point out of a surface, as in normal maps, and hardly in any other picture.
func surface(m *pixel.Image) bool {
	good, sum := 0, 0
	for i := 0; i < len(m.Pix); i += 4 {
		x, y, z := 2*int(m.Pix[i])-255, 2*int(m.Pix[i+1])-255, 2*int(m.Pix[i+2])-255
		if z >= 0 && abs(x*x+y*y+z*z-255*255) < 255*255/5 {
			good++
		}
		sum += z
	}
	n := len(m.Pix) / 4
	return n > 0 && 10*good >= 9*n && sum >= n*200 // on average within 38 degrees of the surface's own
}

// coloured reports whether red, green and blue differ by a tenth on average. JPEG changes grey by less.
func coloured(m *pixel.Image) bool {
	sum := 0
	for i := 0; i < len(m.Pix); i += 4 {
		r, g, b := m.Pix[i], m.Pix[i+1], m.Pix[i+2]
		sum += int(max(r, g, b)) - int(min(r, g, b))
	}
	return sum > len(m.Pix)/4*25
}

func abs(n int) int { return max(n, -n) }
