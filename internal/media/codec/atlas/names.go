package atlas

import (
	"math"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// Sprite is the type of a product that names a frame of the atlas of its parcel: the name in UTF-8.
const Sprite = "sprite"

// density matches the name of an image that has more or fewer pixels than its size in the game.
var density = regexp.MustCompile(`^(.*[^/])@([0-9]{1,2}(?:\.[0-9]{1,3})?)x$`)

// Stem is the path of an image without its extension.
func Stem(file string) string {
	if stem := strings.TrimSuffix(file, path.Ext(file)); stem != "" && !strings.HasSuffix(stem, "/") {
		return stem
	}
	return file
}

// NameOf returns what the stem of an image means: the name of its frame, the number of its pixels for each pixel in the
// game, in thousandths, and whether it is a nine-patch, if such names mean that.
func NameOf(stem string, ninePatch bool) (name string, thousandths int, patch bool) {
	name, thousandths = stem, 1000
	if s, ok := strings.CutSuffix(name, ".9"); ok && ninePatch && s != "" && !strings.HasSuffix(s, "/") {
		name, patch = s, true
	}
	if m := density.FindStringSubmatch(name); m != nil {
		// Three digits after the point are whole thousandths.
		if d, err := strconv.ParseFloat(m[2], 64); err == nil && d > 0 {
			name, thousandths = m[1], int(math.Round(d*1000))
		}
	}
	return name, thousandths, patch
}
