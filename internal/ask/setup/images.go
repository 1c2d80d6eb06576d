package setup

import (
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/internal/media/preview"
	"github.com/kiln-pipeline/kiln/internal/processors"
	"github.com/kiln-pipeline/kiln/processor"
)

// isImage reports whether a file is a picture.
func isImage(file string) bool {
	_, f := processors.Of(file)
	return f != nil && f.View == preview.Picture
}

// A folder is suggested as an atlas if its name or a part of the name says so, and it holds a few small images; or if it holds many
// that are smaller still, and whose sizes are not those of textures for models and the ground.
const (
	atlasMinImages  = 4
	atlasMaxSide    = 512 // in pixels
	atlasManyImages = 20
	atlasSmallSide  = 256 // in pixels
)

var atlasName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(^|[^a-z])(ui|gui|hud|icons?|sprites?|atlas|emoji|cursors?|buttons?|tiles)($|[^a-z])`)
})

// atlases returns folders that could be an atlas. Only names and sizes were checked, so users have to decide.
func (b *branch) atlases() []string {
	images := map[string][]string{}
	for _, f := range b.files {
		if isImage(f) {
			images[path.Dir(f)] = append(images[path.Dir(f)], f)
		}
	}
	var list []string
	for dir, files := range images {
		if dir != "." && b.packable(dir, files) {
			list = append(list, processor.QuoteGlob(dir)+"/")
		}
	}
	slices.Sort(list)
	return list
}

// packable reports whether the images in a folder could be an atlas.
func (b *branch) packable(dir string, files []string) bool {
	named := atlasName().MatchString(path.Base(dir))
	side, least := atlasSmallSide, atlasManyImages
	if named {
		side, least = atlasMaxSide, atlasMinImages
	}
	if len(files) < least {
		return false
	}
	odd := named // or some size is not a power of two
	for _, f := range files {
		w, h := b.size(f)
		if w == 0 || max(w, h) > side {
			return false
		}
		odd = odd || w&(w-1) != 0 || h&(h-1) != 0
	}
	return odd
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
