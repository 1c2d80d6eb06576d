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

// suffixes tell what a picture is for by the last word of its name. docs/textures.md has the same table, and a test that it has.
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

// severalChannels are the words of masks that may hold another number in each channel.
var severalChannels = []string{"mask", "orm", "arm", "rma", "mra", "mrao", "metallicroughness", "roughnessmetallic", "occlusionroughnessmetallic",
	"metallicsmoothness", "metallicgloss"}

// qualifier is a word after the one that counts: how large the picture is (2k, 1024, 1024x512), which way green points, a level of detail,
// a tile (1001), the file format that a site packed.
var qualifier = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\d{1,2}k|128|256|512|1024|2048|4096|8192|\d{2,5}x\d{2,5}|(open|o)?gl|open|(direct|d)x|direct|x|d3d|lod\d|10\d\d|8bit|16bit|png|jpg|jpeg|exr)$`)
})

// UseOf tells what a picture is for by its file's name, and what of the name says so; "color" and "" if nothing does.
func UseOf(name string) (use, because string) {
	use, _, because = read(name)
	return use, because
}

// read is [UseOf] with the word of the table.
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
	at        int    // where it begins
	separator int    // 1 if a separator is before it
	apart     bool   // from what is before and after it, by separators: "n" in stone_n, not in StoneN
	capitals  bool   // it has nothing else: ORM
}

// wordsOf splits a name at separators, and where CamelCase has a word begin: "T_OcclusionRoughMetal_2K" is t, occlusion, rough, metal and
// 2k.
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

// begins tells whether a word of CamelCase begins at i: a capital after what is none, or the last of several before a small letter.
func begins(s string, i int) bool {
	upper := func(c byte) bool { return 'A' <= c && c <= 'Z' }
	lower := func(c byte) bool { return 'a' <= c && c <= 'z' }
	digit := func(c byte) bool { return '0' <= c && c <= '9' }
	return upper(s[i]) && (lower(s[i-1]) || digit(s[i-1]) && !digit(s[0]) || upper(s[i-1]) && i+1 < len(s) && lower(s[i+1]))
}

// Doubt tells what in a picture speaks against the use that its name says: "" if nothing does.
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

// For is the options for a file of that name: use is no longer auto.
func (o Options) For(name string) Options {
	if o.Use == "auto" || o.Use == "" {
		o.Use, _ = UseOf(name)
		if o.Use == "color" && o.packed() {
			o.Use = "mask"
		}
	}
	return o
}

// packed tells whether colours are put together of several pictures: then they are none.
func (o Options) packed() bool { return o.R != "" || o.G != "" || o.B != "" }
