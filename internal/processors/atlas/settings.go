package atlas

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	table "github.com/kiln-pipeline/kiln/internal/media/codec/atlas"
	"github.com/kiln-pipeline/kiln/internal/media/packing"
	"github.com/kiln-pipeline/kiln/internal/media/texture"
	"github.com/kiln-pipeline/kiln/processor"
)

// Settings of the processor. Those that are not about packing have the same meaning as for a
// texture.
type Settings struct {
	Include []string `toml:"include" doc:"Globs of the images, relative to the folder. None means every image in it and below."`
	Exclude []string `toml:"exclude" doc:"Globs of images to leave out, relative to the folder."`
	Parcel  string   `toml:"parcel" doc:"Of an atlas without a folder: the images are those that this parcel holds and that the processor sprite processes. Globs are relative to the source folder."`

	MaxSize    int    `toml:"max_size" min:"1" max:"16384" doc:"Largest side of a page, in pixels. Further images are put on further pages."`
	PowerOfTwo bool   `toml:"power_of_two" doc:"Sides of pages are powers of two."`
	MultipleOf int    `toml:"multiple_of" min:"1" max:"4096" doc:"Sides of pages are multiples of it, unless they are powers of two."`
	Square     bool   `toml:"square" doc:"Pages are as wide as high."`
	Padding    int    `toml:"padding" min:"0" max:"256" doc:"Transparent pixels between images. Each mip level that is used wants twice as many."`
	Border     int    `toml:"border" min:"0" max:"256" doc:"Transparent pixels along the edges of a page."`
	Extrude    int    `toml:"extrude" min:"0" max:"64" doc:"How often the edge pixels of an image are repeated around it, so that tiles show no seams."`
	Rotate     bool   `toml:"rotate" doc:"Images may lie on the page turned by 90 degrees. The game must know how to turn them back."`
	Layout     string `toml:"layout" values:"auto,maxrects,skyline" doc:"How images are laid out. auto tries all ways and keeps the best."`

	Trim      bool `toml:"trim" doc:"Leave out the transparent edges of images. The table keeps their original size."`
	TrimAlpha int  `toml:"trim_alpha" min:"0" max:"254" doc:"Pixels with no more alpha than this count as transparent when edges are left out."`
	DropBlank bool `toml:"drop_blank" doc:"Leave out images that are transparent all over."`
	Aliases   bool `toml:"aliases" doc:"Images that look the same share one place."`
	NinePatch bool `toml:"nine_patch" doc:"Read the guide lines of images named .9.png, and leave them out."`
	Numbers   bool `toml:"numbers" doc:"Images named run_00, run_01... are the animation run."`

	Scale  []float64         `toml:"scale" min:"0.001" max:"16" doc:"One atlas for each of these scales. An image named @2x is at scale 2 as it is."`
	Sheet  string            `toml:"sheet" doc:"Every image is a sheet of frames of this size: \"32x32\"."`
	Sheets map[string]string `toml:"sheets" doc:"The same for the images that match a glob: { \"tiles/*\" = \"16x16\" }."`
	Frames string            `toml:"frames" values:"first,all" doc:"Of an animated image: its first frame, or all of them, named and numbered as those of a sheet."`
	Pages  map[string]string `toml:"pages" doc:"Images that match a glob lie together on one page of this name: { \"hud/**\" = \"a\" }. Such pages come first, sorted by name."`

	PackJSON bool `toml:"pack_json" doc:"Settings of libGDX in a file pack.json hold for its folder and below."`

	Use         string  `toml:"use" values:"color,normal,mask,ui,data" doc:"What the images are for: it decides the format that auto takes, and how mips are made."`
	Format      string  `toml:"format" values:"auto,bc1,bc3,bc4,bc5,bc6h,bc7,etc2,etc2a,eacr11,eacrg11,astc4x4,astc6x6,astc8x8,rgba8,rg8,r8,rgba16,rg16,r16,rgba16f,rgb9e5" doc:"Pixel format of the pages. auto takes one of the family that fits the use."`
	Family      string  `toml:"family" values:"none,bc,etc2,astc" doc:"Formats that auto chooses from: bc for PCs and consoles, etc2 and astc for phones, none for pixels as they are."`
	Quality     string  `toml:"quality" values:"fast,normal,best" doc:"How long the encoder of a compressed format tries."`
	Container   string  `toml:"container" values:"ktx2,dds,png" doc:"File format of the pages. png is for engines that read nothing else: of what is said of textures, only premultiply holds."`
	Compress    string  `toml:"compress" values:"none,zstd" doc:"Pack the levels of a KTX2 file once more."`
	Mips        bool    `toml:"mips" doc:"Make mip levels of the pages."`
	Filter      string  `toml:"filter" values:"box,kaiser" doc:"How mip levels are made: box is the mean of what is covered, kaiser is sharper."`
	SRGB        bool    `toml:"srgb" doc:"Pixels are colours, sRGB-encoded. Turn it off for normal maps, masks and other data."`
	Premultiply bool    `toml:"premultiply" doc:"Multiply colours by alpha."`
	AlphaCutoff float64 `toml:"alpha_cutoff" min:"0" max:"1" doc:"The game draws what has at least this alpha, and nothing else: each mip level keeps as much of it. 0: it blends."`
	Bleed       int     `toml:"bleed" min:"0" max:"16384" doc:"Spread the colours of edges this number of pixels into what is transparent."`

	Table   string   `toml:"table" values:"binary,json" doc:"Form of the frame table: binary for games with a reader, json for everybody else."`
	Exports []string `toml:"exports" values:"libgdx,json-hash,json-array,bmfont" doc:"Further forms of the table: text of libGDX and Spine, JSON of texture packers, BMFont of glyphs."`
}

// Defaults are the default settings of an atlas.
func Defaults() Settings {
	t := texture.Defaults()
	return Settings{
		MaxSize: 2048, PowerOfTwo: true, MultipleOf: 4, Padding: 2, Layout: "auto", Trim: true, Aliases: true, NinePatch: true, Numbers: true,
		Scale: []float64{1}, Frames: "first", PackJSON: true,
		Use: "color", Format: t.Format, Family: t.Family, Quality: t.Quality, Container: t.Container, Compress: t.Compress,
		Filter: t.Filter, SRGB: t.SRGB, Premultiply: t.Premultiply,
		Table: "binary",
	}
}

// options of the pages.
func (s *Settings) options() texture.Options {
	o := texture.Defaults()
	o.Use, o.Format, o.Family, o.Quality, o.Container, o.Compress = s.Use, s.Format, s.Family, s.Quality, s.Container, s.Compress
	o.Mips, o.Filter, o.SRGB, o.Premultiply, o.AlphaCutoff, o.Bleed = s.Mips, s.Filter, s.SRGB, s.Premultiply, s.AlphaCutoff, s.Bleed
	return o
}

// extension of the pages.
func (s *Settings) extension() string { return "." + s.Container }

// check finds invalid settings, and settings that exclude each other.
func (s *Settings) check() error {
	left, right := slices.Contains(s.Exports, "libgdx"), slices.ContainsFunc(s.Exports, func(e string) bool { return strings.HasPrefix(e, "json-") })
	if s.Rotate && left && right {
		return wrongSetting("libGDX turns images counter-clockwise, and the JSON of texture packers clockwise: rotate cannot be for both",
			"turn rotate off, or export only one of the two")
	}
	if s.Rotate && slices.Contains(s.Exports, "bmfont") {
		return wrongSetting("BMFont has no word for turned glyphs", "turn rotate off")
	}
	scales := s.scales()
	for i, scale := range scales {
		if slices.Contains(scales[:i], scale) {
			return wrongSetting(fmt.Sprintf("scale %g is there twice", float64(scale)/1000), "name each scale once; there are three digits after the point")
		}
	}
	for _, text := range append(sortedValues(s.Sheets), s.Sheet) {
		if _, _, ok := cellOf(text); !ok {
			return wrongSetting(fmt.Sprintf("sheet %q is not a size", text), `write the size of one frame in pixels: "32x32"`)
		}
	}
	for _, patterns := range []map[string]string{s.Sheets, s.Pages} {
		for _, pattern := range sortedKeys(patterns) {
			if err := checkPattern(pattern); err != nil {
				return err
			}
		}
	}
	return nil
}

func wrongSetting(text, hint string) error {
	return &processor.Problem{Code: string(diag.AtlasSetting), Text: text, Hint: hint}
}

func sortedKeys(m map[string]string) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func sortedValues(m map[string]string) []string {
	var values []string
	for _, k := range sortedKeys(m) {
		values = append(values, m[k])
	}
	return values
}

// forFile looks up the setting for a file: the longest matching glob wins, of two equally long ones the later by bytes.
func forFile(m map[string]string, file string) string {
	best, value := "", ""
	for _, pattern := range sortedKeys(m) {
		if doublestar.MatchUnvalidated(pattern, file) && len(pattern) >= len(best) {
			best, value = pattern, m[pattern]
		}
	}
	return value
}

// cellOf reads the size of a frame of a sheet; "" means that it is not a sheet.
func cellOf(text string) (w, h int, ok bool) {
	if text == "" {
		return 0, 0, true
	}
	a, b, _ := strings.Cut(text, "x")
	w, errW := strconv.Atoi(a)
	h, errH := strconv.Atoi(b)
	return w, h, errW == nil && errH == nil && w > 0 && h > 0 && max(w, h) <= table.MaxSide
}

// sheet is the size of the frames into which a file is cut at density 1; 0 if it is one image.
func (s *Settings) sheet(file string) (w, h int) {
	w, h, _ = cellOf(cmp.Or(forFile(s.Sheets, file), s.Sheet))
	return w, h
}

// scales are the scales of the atlas, in thousandths.
func (s *Settings) scales() []int {
	var all []int
	for _, scale := range s.Scale {
		all = append(all, max(1, int(math.Round(scale*1000))))
	}
	if len(all) == 0 {
		all = []int{1000}
	}
	return all
}

// tag is the prefix of the products of a scale, except the first: "0.5x".
func (s *Settings) tag(scale int) string {
	if scale == s.scales()[0] {
		return ""
	}
	return strconv.FormatFloat(float64(scale)/1000, 'f', -1, 64) + "x"
}

// plan is the settings, including those of pack.json files, for the images in one folder.
type plan struct {
	trimX, trimY, dropBlank, numbers, flatten, ignore bool
	trimAlpha                                         int

	max, min, padding, border packing.Size
	extrude, multiple         int
	powerOfTwo, square        bool
	rotate, aliases           bool

	// only for the text form of libGDX, and only from the folder of the atlas
	minFilter, magFilter, repeat string
}

func (s *Settings) plan() plan {
	both := func(n int) packing.Size { return packing.Size{W: n, H: n} }
	filter := "Linear"
	if s.Mips {
		filter = "MipMapLinearLinear"
	}
	return plan{
		trimX: s.Trim, trimY: s.Trim, dropBlank: s.DropBlank, numbers: s.Numbers, trimAlpha: s.TrimAlpha,
		max: both(s.MaxSize), padding: both(s.Padding), border: both(s.Border), extrude: s.Extrude, multiple: s.MultipleOf,
		powerOfTwo: s.PowerOfTwo, square: s.Square, rotate: s.Rotate, aliases: s.Aliases,
		minFilter: filter, magFilter: "Linear", repeat: "none",
	}
}

func (s *Settings) packing(p plan) packing.Options {
	o := packing.Options{
		Max: p.max, Min: p.min, Padding: p.padding, Border: p.border, PowerOfTwo: p.powerOfTwo, Square: p.square, Multiple: p.multiple, Rotate: p.rotate,
	}
	switch s.Layout {
	case "maxrects":
		o.Methods = []packing.Method{packing.ShortSide, packing.LongSide, packing.Area, packing.BottomLeft, packing.Contact}
	case "skyline":
		o.Methods = []packing.Method{packing.Skyline}
	}
	return o
}

// turn is how images are turned: as the export requires, if there is one.
func (s *Settings) turn() table.Turn {
	if slices.Contains(s.Exports, "libgdx") {
		return table.Left
	}
	return table.Right
}

// plans finds the plans of folders, and caches them.
type plans struct {
	job    processor.Job
	s      *Settings // including those that the pack.json in the folder of the atlas sets for all of it
	known  map[string]plan
	images []source
	errors []error // of pack.json files
	warned []processor.Problem
}

func newPlans(job processor.Job) (*plans, error) {
	s := *processor.SettingsOf[Settings](job)
	p := &plans{job: job, s: &s, known: map[string]plan{}}
	if s.Parcel != "" && job.Asset().Folder {
		return nil, wrongSetting("a folder of images is not an atlas for a parcel",
			`write parcel = "..." in the settings of an asset without a folder, under [[assets]]`)
	}
	if s.Parcel == "" && !job.Asset().Folder {
		return nil, wrongSetting("an atlas without a folder has no images", `name the parcel whose images it has: settings = { parcel = "..." }`)
	}
	if s.Parcel != "" { // images of several folders
		p.s.PackJSON = false
	}
	_, err := p.of(rootOf(job))
	return p, err
}

// rootOf is the folder of the atlas.
func rootOf(job processor.Job) string { return path.Clean(folderIn(job)) }

// folderIn is the folder that images are in; "" for those of a parcel, which may be anywhere.
func folderIn(job processor.Job) string {
	if processor.SettingsOf[Settings](job).Parcel != "" {
		return ""
	}
	return job.Asset().Path
}

// of returns the plan of a folder, which is the atlas' or below it.
func (p *plans) of(folder string) (plan, error) {
	if known, ok := p.known[folder]; ok {
		return known, nil
	}
	base := p.s.plan()
	if folder != rootOf(p.job) && folder != "." {
		var err error
		if base, err = p.of(path.Dir(folder)); err != nil {
			return plan{}, err
		}
	}
	if p.s.PackJSON {
		var err error
		if base, err = p.read(path.Join(folder, "pack.json"), base); err != nil {
			return plan{}, err
		}
	}
	p.known[folder] = base
	return base, nil
}
