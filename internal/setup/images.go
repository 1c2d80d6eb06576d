package setup

import (
	"image"
	_ "image/gif" // sizes and pixels of what is found
	_ "image/jpeg"
	_ "image/png"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

var imageExtensions = strings.Fields(`.png .jpg .jpeg .tga .webp .bmp .tif .tiff .gif`)

func isImage(file string) bool {
	return slices.Contains(imageExtensions, strings.ToLower(path.Ext(file)))
}

// normalName and linearName tell by its name, without extension, that an image holds directions or measures and not colours.
var (
	normalName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)[_.-](n|nrm|norm|normal|normals|normalmap)$`) })
	linearName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)([_.-](orm|ao|height|displacement)|[_.-]?(occlusionroughnessmetallic|metallicroughness|roughness|metallic|metalness|occlusion))$`)
	})
)

const (
	normalWhy = "normal maps hold directions, not colours"
	linearWhy = "measures, not colours"
)

// imageRules are the rules for images that hold no colours: a glob by the end of the name where all such files are that,
// else the files one by one.
func (b *branch) imageRules() []Rule {
	type class struct {
		why  string
		exts []string
		yes  []string
		no   int
	}
	classes := map[string]*class{}
	var order []string
	for _, f := range b.files {
		stem := strings.TrimSuffix(path.Base(f), path.Ext(f))
		why, suffix := normalWhy, normalName().FindString(stem)
		if suffix == "" {
			why, suffix = linearWhy, linearName().FindString(stem)
		}
		if suffix == "" || !isImage(f) {
			continue
		}
		c := classes[suffix]
		if c == nil {
			c = &class{why: why}
			classes[suffix] = c
			order = append(order, suffix)
		}
		if why == normalWhy && !looksNormal(b.abs(f)) {
			c.no++
			continue
		}
		c.yes = append(c.yes, f)
		if !slices.Contains(c.exts, path.Ext(f)) {
			c.exts = append(c.exts, path.Ext(f))
		}
	}
	slices.Sort(order)
	var rules []Rule
	for _, suffix := range order {
		c := classes[suffix]
		if c.no == 0 && len(c.yes) > 0 {
			rules = append(rules, Rule{"**/*" + escape(suffix) + extensions(c.exts), "settings = { srgb = false }", c.why})
			continue
		}
		for _, f := range c.yes {
			rules = append(rules, Rule{escape(f), "settings = { srgb = false }", c.why})
		}
	}
	return rules
}

func extensions(exts []string) string {
	slices.Sort(exts)
	if len(exts) == 1 {
		return exts[0]
	}
	return "{" + strings.Join(exts, ",") + "}"
}

// maxPixels is the largest image that is decoded to look at its colours; larger ones are believed by their name.
const maxPixels = 64 << 20

// looksNormal tells whether an image could be a normal map: on average its vectors point out of the surface. A name like
// button_n.png may also be a button in its normal state.
func looksNormal(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	c, _, err := image.DecodeConfig(f)
	if err != nil || c.Width*c.Height > maxPixels {
		return strings.Contains(strings.ToLower(path.Base(file)), "norm")
	}
	f.Seek(0, 0)
	img, _, err := image.Decode(f)
	if err != nil {
		return false
	}
	var r, g, b, n uint64
	box := img.Bounds()
	step := max(1, max(box.Dx(), box.Dy())/64)
	for y := box.Min.Y; y < box.Max.Y; y += step {
		for x := box.Min.X; x < box.Max.X; x += step {
			cr, cg, cb, _ := img.At(x, y).RGBA()
			r, g, b, n = r+uint64(cr>>8), g+uint64(cg>>8), b+uint64(cb>>8), n+1
		}
	}
	near := func(sum uint64) bool { v := sum / max(n, 1); return 100 <= v && v <= 156 }
	return near(r) && near(g) && b/max(n, 1) >= 180
}

// A folder is suggested as an atlas if its name says so, or a part of it, and it holds a few small images.
const (
	atlasMinImages = 4
	atlasMaxSide   = 512 // pixels
)

var atlasName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(ui|gui|hud|icons?|sprites?|atlas|emoji|cursors?|buttons?|tiles)$`)
})

// atlases are folders that could be an atlas each: only names and sizes were looked at, so it is for people to decide.
func (b *branch) atlases() []string {
	images := map[string][]string{}
	for _, f := range b.files {
		if isImage(f) {
			images[path.Dir(f)] = append(images[path.Dir(f)], f)
		}
	}
	var list []string
	for dir, files := range images {
		if dir != "." && len(files) >= atlasMinImages && atlasName().MatchString(path.Base(dir)) && !slices.ContainsFunc(files, b.large) {
			list = append(list, escape(dir)+"/")
		}
	}
	slices.Sort(list)
	return list
}

func (b *branch) large(file string) bool {
	f, err := os.Open(b.abs(file))
	if err != nil {
		return true
	}
	defer f.Close()
	c, _, err := image.DecodeConfig(f)
	return err != nil || max(c.Width, c.Height) > atlasMaxSide
}
