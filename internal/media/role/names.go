package role

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/processor"
)

// Named is what the name of a picture says of its use.
type Named struct {
	Use     string // Color if the name says nothing
	Because string // the part of the name that says so, with the separator before it: "_n"; "" if nothing does
	Packed  bool   // a mask that may have different numbers in its channels

	// Alone is a part that was not believed, because no other picture of the same thing is beside this one, and Like the use that it would
	// state.
	Alone, Like string
}

// Of returns what a picture's name says. Words of few letters and words for things need company: another picture of the same thing. beside
// has at least the source files that match [Beside]; those in other folders do not count.
func Of(name string, beside []string) Named {
	n := read(name)
	state := Named{Use: n.use, Because: n.because, Packed: n.packed}
	if n.need == nothing || n.accompanied(name, beside) {
		return n.light(state)
	}
	return n.light(Named{Use: Color, Alone: n.because, Like: n.use})
}

// Beside returns a glob for the files on which [Of] depends; "" if the name alone decides.
func Beside(name string) string {
	n := read(name)
	base := path.Join(processor.QuoteGlob(path.Dir(name)), processor.QuoteGlob(n.stem))
	switch {
	case n.need == nothing:
		return ""
	case n.stem == "":
		return path.Join(processor.QuoteGlob(path.Dir(name)), "*")
	case n.need == noStates:
		var both []string
		for _, s := range states {
			both = append(both, s, strings.ToUpper(s[:1])+s[1:])
		}
		return base + "[_. -]{" + strings.Join(both, ",") + "}.*"
	}
	return base + "*"
}

// need is what a word needs to be believed.
type need int

const (
	nothing  need = iota
	noStates      // no picture of another state beside it: button_normal
	map_          // another map of the same surface
	picture       // another map, or the picture of the same name without the word: rock.png and rock_n.png
)

// reading is a name, taken apart.
type reading struct {
	full    string // the name without qualifiers
	stem    string // what the picture is of: that without the word
	word    string // in lower case; the last word of the name if it states no use
	use     string
	because string
	packed  bool
	need    need
	ext     string
	letter  bool // word is one letter or two, and apart from others
}

// light gives pictures of light their use: they have no other colours.
func (n *reading) light(s Named) Named {
	if s.Use == Color && (n.ext == ".hdr" || n.ext == ".exr") {
		return Named{Use: HDR, Because: n.ext}
	}
	return s
}

func read(name string) (n reading) {
	base := path.Base(name)
	n.ext = strings.ToLower(path.Ext(base))
	text := strings.TrimSuffix(base, path.Ext(base))
	words := wordsOf(text)
	last, numbered := len(words)-1, false
	for last > 0 && qualifier().MatchString(words[last].text) {
		last--
	}
	if last > 0 && words[last].apart && variant().MatchString(words[last].text) {
		last, numbered = last-1, true
	}
	if last > 0 && words[last].text == "map" { // Height_Map, HeightMap
		last--
	}
	n.use = Color
	if last < 0 {
		return n
	}
	n.word, n.full = words[last].text, stemOf(text, words[:last+1])
	n.stem = n.full
	n.letter = len(n.word) <= 2 && words[last].apart
	first, word, use := n.state(words[:last+1])
	loose := use == UI || use == HDR || use == Data || slices.Contains(Nouns, word) || len(word) == 1
	if use == "" || numbered && (use == UI || use == HDR || use == Data) || loose && first == 0 {
		return n
	}
	w := words[first]
	n.use, n.word, n.because, n.packed = use, word, text[w.at-w.separator:], n.packed || slices.Contains(packed, word)
	n.stem = stemOf(text, words[:first])
	if first == 0 { // rock/normal.png: the folder says what it is of
		n.need = map_
		return n
	}
	switch unreal := words[0].text == "t" && words[0].apart && text[0] == 'T'; { // T_Rock_N: no other names begin with it
	case n.packed && last > first, unreal:
	case slices.Contains(Letters[use], word):
		n.need = map_
		if use == Normal {
			n.need = picture
		}
	case slices.Contains(Nouns, word):
		n.need = map_
	case word == "normal" && w.separator > 0 && len(text) == w.at+len(word):
		n.need = noStates
	}
	return n
}

// state finds the words at the end that state a use: one, or several that are one term (metallicRoughness, metallic_roughness).
func (n *reading) state(words []nameWord) (first int, word, use string) {
	last := len(words) - 1
	use = lookup()[words[last].text]
	word = words[last].text
	if short := strings.TrimSuffix(word, "map"); use == "" && short != word { // heightmap
		word, use = short, lookup()[short]
	}
	for from := max(0, last-2); from < last; from++ { // the longest term
		if term := join(words[from:]); lookup()[term] != "" {
			return from, term, lookup()[term]
		}
	}
	w := words[last]
	if use == "" || !w.apart && len(word) <= 3 && (!w.capitals || len(word) == 1) {
		return 0, "", ""
	}
	first = last
	for first > 0 && words[first].separator == 0 { // OcclusionRoughMetal, in one piece
		before := lookup()[words[first-1].text]
		switch {
		case before == Mask && use == Mask:
			n.packed = true
		case before == Color && use == Mask && slices.Contains(inAlpha, word):
			use = Color
		default:
			return first, word, use
		}
		first--
	}
	return first, word, use
}

// join makes one term of several words. Short ones must be in one piece: a_ORM is no AORM.
func join(words []nameWord) (term string) {
	pieces, short := false, false
	for i, w := range words {
		term += w.text
		pieces = pieces || i > 0 && w.separator > 0
		short = short || len(w.text) < 3
	}
	if pieces && short {
		return ""
	}
	return term
}

// stemOf returns a name up to the last word that is not a qualifier.
func stemOf(text string, words []nameWord) string {
	for len(words) > 0 && qualifier().MatchString(words[len(words)-1].text) && len(words) > 1 {
		words = words[:len(words)-1]
	}
	if len(words) == 0 {
		return ""
	}
	w := words[len(words)-1]
	return text[:w.at+len(w.text)]
}

// accompanied reports whether the files beside a picture let its name be believed.
func (n *reading) accompanied(name string, beside []string) bool {
	maps, plain := false, false
	for _, other := range beside {
		if other == name || path.Dir(other) != path.Dir(name) || pixel.FormatOf(other) == "" {
			continue
		}
		o := read(other)
		switch {
		case n.strange(&o):
			return false
		case o.full == n.stem && n.stem != "":
			plain = true
		case o.stem == n.stem && o.because != "" && o.word != n.word:
			maps = maps || n.proves(&o)
		}
	}
	return n.need == noStates || maps || plain && n.need == picture
}

// strange reports whether a picture beside it shows that the word means something else: button_n.png beside button_p.png.
func (n *reading) strange(o *reading) bool {
	odd := slices.Contains(others, o.word) || o.letter && len(o.word) == 1 && !slices.Contains(neutral, o.word) && lookup()[o.word] == ""
	if n.stem == "" {
		return odd && strings.EqualFold(o.full, o.word)
	}
	return odd && strings.HasPrefix(o.full, n.stem) && len(o.full) == len(n.stem)+1+len(o.word)
}

// proves reports whether a map of the same stem shows that this picture is one, too. Colours in one letter do (rock_d), other letters do
// not: wall_n.png, wall_e.png and wall_s.png are three sides of a wall.
func (n *reading) proves(o *reading) bool {
	switch {
	case n.stem == "":
		return o.use == Color || o.use == Normal || n.use == Normal && o.use == Mask
	case o.need == nothing || o.need == noStates:
		return o.use == Color || o.use == Normal || o.use == Mask
	}
	return o.word == "d" || o.word == "c"
}

// qualifier matches a word that may follow the one that states the use: the size of the picture (2k, 1024, 1024x512), the direction of
// green, a level of detail, a tile (1001), the file format of a download.
var qualifier = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\d{1,2}k|128|256|512|1024|2048|4096|8192|\d{2,5}x\d{2,5}|lod\d|10\d\d|8bit|16bit|png|jpg|jpeg|exr` +
		`|(open|o)?gl|open|(direct|d)x|direct|x|d3d)$`)
})

// variant matches the number of a variant: Rock_Normal_02.
var variant = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\d{1,2}$`) })

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
			w := nameWord{text: lower(stem[from:to]), at: from, apart: from == at && to == end, capitals: stem[from:to] == upper(stem[from:to])}
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

// lower and upper change only the letters of ASCII, byte by byte, so that lengths stay.
func lower(s string) string { return cased(s, 'A', 'Z') }

func upper(s string) string { return cased(s, 'a', 'z') }

// cased changes the case of letters in a range.
func cased(s string, from, to byte) string {
	b := []byte(s)
	for i, c := range b {
		if from <= c && c <= to {
			b[i] ^= 'a' - 'A'
		}
	}
	return string(b)
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
