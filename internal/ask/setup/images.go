package setup

import (
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/internal/media/preview"
	"github.com/kiln-pipeline/kiln/internal/media/role"
	"github.com/kiln-pipeline/kiln/internal/processors"
	"github.com/kiln-pipeline/kiln/processor"
)

// isImage reports whether a file is a picture.
func isImage(file string) bool {
	_, f := processors.Of(file)
	return f != nil && f.View == preview.Picture
}

// A folder is suggested as an atlas if its name, a part of it, or the folder around it says so, and it holds a few small images; or if it
// holds many that are smaller still, and are cut out or have sizes that textures for models and the ground do not have. Nearly all have to be
// small, and all have to fit a page: a menu may have one large background.
const (
	atlasMinImages  = 4
	atlasMaxSide    = 512 // in pixels
	atlasManyImages = 20
	atlasSomeImages = 8   // that are cut out
	atlasSmallSide  = 256 // in pixels
	atlasPageSide   = 2048
)

var atlasName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(^|[^a-z])(ui|gui|hud|icons?|sprites?|atlas|emoji|cursors?|buttons?|tiles)($|[^a-z])`)
})

// atlases returns folders that could be an atlas. Only names and images were checked, so users have to decide.
func (b *branch) atlases(c *union) []string {
	images := map[string][]string{}
	for _, f := range b.files {
		if isImage(f) {
			images[path.Dir(f)] = append(images[path.Dir(f)], f)
		}
	}
	var list []string
	for dir, files := range images {
		if dir != "." && b.packable(dir, files, c) {
			list = append(list, dir+"/")
		}
	}
	slices.Sort(list)
	list = outermost(list)
	for i := range list {
		list[i] = processor.QuoteGlob(list[i])
	}
	return list
}

// outermost leaves out folders in others of the list: an atlas contains the folders in it.
func outermost(sorted []string) []string {
	var list []string
	for _, dir := range sorted {
		if len(list) == 0 || !strings.HasPrefix(dir, list[len(list)-1]) {
			list = append(list, dir)
		}
	}
	return list
}

// packable reports whether the images in a folder could be an atlas.
func (b *branch) packable(dir string, files []string, c *union) bool {
	named := atlasName().MatchString(path.Base(dir)) || atlasName().MatchString(path.Base(path.Dir(dir)))
	side, least := atlasSmallSide, atlasSomeImages
	if named {
		side, least = atlasMaxSide, atlasMinImages
	}
	if len(files) < least {
		return false
	}
	small, odd := 0, false // odd: some size is not a power of two
	for _, f := range files {
		w, h := b.size(f)
		if w == 0 || max(w, h) > atlasPageSide || c.surface(f) {
			return false
		}
		if max(w, h) <= side {
			small++
		}
		odd = odd || w&(w-1) != 0 || h&(h-1) != 0
	}
	return 8*small >= 7*len(files) && (named || odd && len(files) >= atlasManyImages || b.cutOut(files))
}

// surface reports whether an image is a texture of a surface: a model uses it, or its name says that it has directions or measures.
func (c *union) surface(file string) bool {
	use := role.Of(file, c.folders[path.Dir(file)]).Use
	return c.used[file].For != [role.Purposes]bool{} || use == role.Normal || use == role.Mask
}

// cutOut reports whether most of the images are transparent somewhere. It checks some of them.
func (b *branch) cutOut(files []string) bool {
	files = files[:min(len(files), atlasManyImages)]
	n := 0
	for _, f := range files {
		data, err := os.ReadFile(b.abs(f))
		if err != nil {
			return false
		}
		m, err := pixel.Decode(f, data, pixel.Limits{MaxSide: atlasPageSide, MaxBytes: 4 * atlasPageSide * atlasPageSide})
		if err == nil && !opaque(m) {
			n++
		}
	}
	return 4*n > 3*len(files)
}

func opaque(m *pixel.Image) bool {
	for i := 3; i < len(m.Pix); i += 4 {
		if m.Pix[i] != 255 {
			return false
		}
	}
	return true
}

// headSize is the number of bytes in which the size of an image is searched. Photographs may have a preview in front of it.
const headSize = 1 << 20

// size is the width and height of an image; 0 if they cannot be read.
func (b *branch) size(file string) (w, h int) {
	f, err := os.Open(b.abs(file))
	if err != nil {
		return 0, 0
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, headSize))
	if err != nil {
		return 0, 0
	}
	c, err := pixel.DecodeConfig(file, head)
	if err != nil {
		return 0, 0
	}
	return c.Width, c.Height
}
