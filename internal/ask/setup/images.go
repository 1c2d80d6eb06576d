package setup

import (
	"image"
	_ "image/gif" // for reading sizes
	_ "image/jpeg"
	_ "image/png"
	"os"
	"path"
	"regexp"
	"slices"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/media/preview"
	"github.com/kiln-pipeline/kiln/internal/processors"
	"github.com/kiln-pipeline/kiln/processor"
)

// isImage reports whether a file is a picture.
func isImage(file string) bool {
	_, f := processors.Of(file)
	return f != nil && f.View == preview.Picture
}

// A folder is suggested as an atlas if its name or a part of the name says so, and it holds a few small images.
const (
	atlasMinImages = 4
	atlasMaxSide   = 512 // in pixels
)

var atlasName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(ui|gui|hud|icons?|sprites?|atlas|emoji|cursors?|buttons?|tiles)$`)
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
