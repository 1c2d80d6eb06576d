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

	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/internal/media/texture"
	"github.com/kiln-pipeline/kiln/processor"
)

var imageExtensions = strings.Fields(`.png .jpg .jpeg .tga .webp .bmp .tif .tiff .gif`)

func isImage(file string) bool {
	return slices.Contains(imageExtensions, strings.ToLower(path.Ext(file)))
}

// imageRules are the rules for images whose names say something else than their pixels: button_n.png may be a button in its normal state.
// It is a glob by the end of the name where all such files are that, else the files one by one.
func (b *branch) imageRules() []Rule {
	type class struct {
		exts  []string
		wrong []string
		right int
	}
	classes := map[string]*class{}
	var order []string
	for _, f := range b.files {
		use, because := texture.UseOf(f)
		if use != "normal" && use != "mask" || !isImage(f) {
			continue
		}
		c := classes[because]
		if c == nil {
			c = &class{}
			classes[because] = c
			order = append(order, because)
		}
		if !b.doubtful(f) {
			c.right++
			continue
		}
		c.wrong = append(c.wrong, f)
		if !slices.Contains(c.exts, path.Ext(f)) {
			c.exts = append(c.exts, path.Ext(f))
		}
	}
	const does, why = `settings = { use = "color" }`, "colours, whatever the name says"
	slices.Sort(order)
	var rules []Rule
	for _, because := range order {
		c := classes[because]
		if c.right == 0 && len(c.wrong) > 1 {
			rules = append(rules, Rule{"**/*" + processor.QuoteGlob(because) + extensions(c.exts), does, why})
			continue
		}
		for _, f := range c.wrong {
			rules = append(rules, Rule{processor.QuoteGlob(f), does, why})
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

// maxBytes and maxPixels are of the largest image that is decoded to look at its colours; larger ones are believed by their name.
const (
	maxBytes  = 64 << 20
	maxPixels = 16 << 20
)

// doubtful tells whether an image's pixels speak against its name.
func (b *branch) doubtful(file string) bool {
	info, err := os.Stat(b.abs(file))
	if err != nil || info.Size() > maxBytes {
		return false
	}
	data, err := os.ReadFile(b.abs(file))
	if err != nil {
		return false
	}
	m, err := pixel.Decode(file, data, pixel.Limits{MaxSide: pixel.DefaultLimits().MaxSide, MaxBytes: 4 * maxPixels})
	return err == nil && texture.Doubt(file, m) != ""
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
			list = append(list, processor.QuoteGlob(dir)+"/")
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
