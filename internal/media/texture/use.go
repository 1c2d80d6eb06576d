package texture

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/media/pixel"
)

// suffixes have the use of a picture by the last word of its name. docs/textures.md has the same table; a test compares
// them.
var suffixes = []struct {
	use   string
	words []string
}{
	{"normal", []string{"n", "nrm", "nor", "norm", "normal", "normals"}},
	{"mask", []string{
		"rough", "roughness", "gloss", "glossiness", "smoothness", "metal", "metallic", "metalness", "ao", "occlusion", "cavity", "curvature",
		"mask", "orm", "arm", "rma", "mra", "mrao", "metallicroughness", "roughnessmetallic", "occlusionroughnessmetallic", "metallicsmoothness", "metallicgloss",
		"ambientocclusion", "h", "height", "disp", "displacement", "parallax", "bump", "opacity", "thickness",
	}},
	{"hdr", []string{"hdr", "hdri"}},
	{"ui", []string{"ui", "icon", "hud"}},
	{"data", []string{"data", "lut", "noise", "flow"}},
}

// severalChannels are words for masks that may have another number in each channel.
var severalChannels = []string{"mask", "orm", "arm", "rma", "mra", "mrao", "metallicroughness", "roughnessmetallic", "occlusionroughnessmetallic",
	"metallicsmoothness", "metallicgloss"}

// qualifier matches a word that may follow the one that names the use: the size of the picture (2k, 1024, 1024x512),
// the direction of green, a level of detail, a tile (1001), the file format of a download.
var qualifier = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\d{1,2}k|128|256|512|1024|2048|4096|8192|\d{2,5}x\d{2,5}|(open|o)?gl|open|(direct|d)x|direct|x|d3d|lod\d|10\d\d|8bit|16bit|png|jpg|jpeg|exr)$`)
})

// UseOf returns the use of a picture by its file's name, and the part of the name that says so. It returns "color" and
// "" if there is none.
func UseOf(name string) (use, because string) {
	use, _, because = read(name)
	return use, because
}

// read is like [UseOf], and also returns the word of the table.
func read(name string) (use, word, because string) {
	base := path.Base(name)
	ext := path.Ext(base)
	stem := strings.TrimSuffix(base, ext)
	words := wordsOf(stem)
	last := len(words) - 1
	for last > 0 && qualifier().MatchString(words[last].text) {
		last--
	}
	if last >= 0 && words[last].text == "map" && last > 0 { // Height_Map, HeightMap
		last--
	}
	if last >= 0 {
		w := words[last]
		short := strings.TrimSuffix(w.text, "map") // heightmap
		for _, s := range suffixes {
			for _, text := range []string{w.text, short} {
				if w.at > 0 && slices.Contains(s.words, text) && (w.apart || len(text) > 3 || w.capitals && len(text) > 1) {
					return s.use, text, stem[w.at-w.separator:]
				}
			}
		}
	}
	if ext = strings.ToLower(ext); ext == ".hdr" || ext == ".exr" {
		return "hdr", "", ext
	}
	return "color", "", ""
}

// nameWord is a word in a file's name.
type nameWord struct {
	text      string // in lower case
	at        int    // index of its first byte
	separator int    // 1 if a separator is before it
	apart     bool   // separated from the words around it: "n" in stone_n, not in StoneN
	capitals  bool   // it has only capitals: ORM
}

// wordsOf splits a name at separators, and at the word limits of CamelCase: "T_OcclusionRoughMetal_2K" is t, occlusion,
// rough, metal and 2k.
func wordsOf(stem string) (words []nameWord) {
	for at := 0; at < len(stem); {
		if isSeparator(stem[at]) {
			at++
			continue
		}
		end := at
		for end < len(stem) && !isSeparator(stem[end]) {
			end++
		}
		for from := at; from < end; {
			to := from + 1
			for to < end && !begins(stem[:end], to) {
				to++
			}
			w := nameWord{text: strings.ToLower(stem[from:to]), at: from, apart: from == at && to == end, capitals: stem[from:to] == strings.ToUpper(stem[from:to])}
			if from == at && at > 0 {
				w.separator = 1
			}
			words = append(words, w)
			from = to
		}
		at = end
	}
	return words
}

func isSeparator(c byte) bool { return strings.IndexByte("_-. ()", c) >= 0 }

// begins reports whether a CamelCase word begins at i: a capital after another character, or the last of several capitals
// before a small letter.
func begins(s string, i int) bool {
	upper := func(c byte) bool { return 'A' <= c && c <= 'Z' }
	lower := func(c byte) bool { return 'a' <= c && c <= 'z' }
	digit := func(c byte) bool { return '0' <= c && c <= '9' }
	return upper(s[i]) && (lower(s[i-1]) || digit(s[i-1]) && !digit(s[0]) || upper(s[i-1]) && i+1 < len(s) && lower(s[i+1]))
}

// Doubt returns what in a picture contradicts the use that its name states, or "".
func Doubt(name string, m *pixel.Image) string {
	use, word, because := read(name)
	switch {
	case use == "normal" && !directions(m):
		return fmt.Sprintf("named %q like a normal map, but most of its pixels are not directions", because)
	case use == "mask" && !slices.Contains(severalChannels, word) && coloured(m):
		return fmt.Sprintf("named %q like a mask, but it has colours", because)
	}
	return ""
}

// For returns the options for a file of that name, with a use other than auto.
func (o Options) For(name string) Options {
	if o.Use == "auto" || o.Use == "" {
		o.Use, _ = UseOf(name)
		if o.Use == "color" && o.packed() {
			o.Use = "mask"
		}
	}
	return o
}

// packed reports whether the channels come from several pictures. They are then not colours.
func (o Options) packed() bool { return o.R != "" || o.G != "" || o.B != "" }
