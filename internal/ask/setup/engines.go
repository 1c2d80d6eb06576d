package setup

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/media/soundfile"
	"github.com/kiln-pipeline/kiln/processor"
)

// Settings of other engines for sounds and pictures are imported: Godot's .import files, which are beside these, and
// MonoGame's lists of content. Settings that are Kiln's default make no rule.

// taken is the settings of an engine for one file: the text of settings by subject. Settings of one subject are set
// together.
type taken struct {
	from string // name of the engine
	has  map[about]string
	left []string // settings that Kiln has nothing for
}

// about is a subject of settings. Each subject is reduced to rules separately, because rules override each other field
// by field.
type about int

const (
	codec about = iota
	channels
	rate
	trim
	loop
	stream
	mips
	premultiply
	key
	size
	bleed
	subjects
)

// unset is the text that resets the settings of a folder's rule.
var unset = [subjects]string{
	codec: `codec = "auto"`, channels: `channels = "keep"`, rate: "rate = 0, max_rate = 0", trim: "trim = false", loop: `loop = "file"`,
	stream: `stream = "auto"`, mips: "mips = true", premultiply: "premultiply = false", key: `color_key = ""`,
	size: `max_size = 0, power_of_two = "none"`, bleed: "bleed = 0",
}

func (k *taken) set(a about, format string, args ...any) {
	if k.has == nil {
		k.has = map[about]string{}
	}
	k.has[a] = fmt.Sprintf(format, args...)
}

// maxNotes is the size limit for files of an engine.
const maxNotes = 1 << 20

// regular opens a regular file; it returns nil if it cannot.
func regular(file string) (f *os.File, size int64) {
	f, err := os.Open(file)
	if err != nil {
		return nil, 0
	}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		return f, info.Size()
	}
	f.Close()
	return nil, 0
}

// soundFile opens a sound and reads its header. It returns nil if the file cannot be read.
func soundFile(file string) *soundfile.File {
	f, size := regular(file)
	if f == nil {
		return nil
	}
	defer f.Close()
	s, err := soundfile.Open(f, size)
	if err != nil {
		return nil
	}
	return s
}

// godot reads the .import file of a sound or a picture. It returns no settings if the file does not exist or contains nothing known.
func (b *branch) godot(file string) (k taken) {
	data := b.t.head(path.Join(b.root, file)+".import", maxNotes)
	if !bytes.HasPrefix(data, []byte("[remap]")) {
		return k
	}
	k.from = "Godot"
	params := map[string]string{}
	importer, section := "", ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]") {
			section = line
			continue
		}
		key, value, found := strings.Cut(line, "=")
		switch {
		case !found:
		case section == "[remap]" && key == "importer":
			importer = strings.Trim(value, `"`)
		case section == "[params]":
			params[key] = value
		}
	}
	switch importer {
	case "wav":
		k.godotWAV(params, b.abs(file))
	case "oggvorbisstr", "ogg_vorbis", "mp3":
		k.godotStream(params, b.abs(file))
	case "texture":
		k.godotTexture(file, params)
	}
	return k
}

// godotWAV reads the options of Godot 3 and 4 for WAV. If PCM was chosen, it is kept, because it is lossless, although
// QOA would be smaller.
func (k *taken) godotWAV(params map[string]string, file string) {
	switch params["compress/mode"] {
	case "0":
		k.set(codec, `codec = "pcm"`)
	case "1":
		k.set(codec, `codec = "adpcm"`)
	}
	if params["force/mono"] == "true" {
		k.set(channels, `channels = "mono"`)
	}
	hz, err := strconv.ParseFloat(params["force/max_rate_hz"], 64)
	if err == nil && params["force/max_rate"] == "true" && hz >= 1000 && hz <= 384000 {
		k.set(rate, "max_rate = %d", int(hz))
	}
	if params["edit/trim"] == "true" {
		k.set(trim, "trim = true, trim_level = -50.0") // Godot's threshold
	}
	kinds := map[string]string{"2": "forward", "3": "ping-pong", "4": "backward"}
	kind := kinds[params["edit/loop_mode"]]
	switch {
	case params["edit/loop"] == "true": // Godot 3
		k.set(loop, `loop = "forward"`)
	case params["edit/loop_mode"] == "1":
		if s := soundFile(file); s != nil && len(s.Loops) > 0 {
			k.set(loop, `loop = "none"`)
		}
	case kind != "":
		begin, end := frame(params["edit/loop_begin"]), frame(params["edit/loop_end"])
		if s := soundFile(file); s != nil {
			if end >= s.Frames-1 { // Godot stores the last frame as the end
				end = 0
			}
			if begin >= s.Frames || end > 0 && begin >= end {
				begin, end = 0, 0 // an invalid loop; Godot repeats the whole sound
			}
		}
		k.loops(kind, begin, end)
	}
}

func frame(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

func (k *taken) loops(kind string, begin, end int64) {
	text := "loop = " + quote(kind)
	if begin > 0 {
		text += ", loop_begin = " + strconv.FormatInt(begin, 10)
	}
	if end > 0 {
		text += ", loop_end = " + strconv.FormatInt(end, 10)
	}
	k.set(loop, "%s", text)
}

// godotStream reads the options for Ogg and MP3. They have the begin of the loop in seconds, so the rate of the file
// must be known.
func (k *taken) godotStream(params map[string]string, file string) {
	offset, err := strconv.ParseFloat(params["loop_offset"], 64)
	looping := params["loop"] == "true"
	if err != nil || offset < 0 {
		offset = 0
	}
	if looping && offset == 0 {
		k.set(loop, `loop = "forward"`)
		return
	}
	s := soundFile(file)
	switch {
	case s == nil:
	case !looping && len(s.Loops) > 0:
		k.set(loop, `loop = "none"`) // ignore the tags, as Godot does
	case looping:
		k.loops("forward", min(int64(offset*float64(s.Format.Rate)+0.5), s.Frames-1), 0)
	}
}

// monogame reads a list of content. Its lines set options for the files that later lines build. A line that sets a
// processor resets the parameters.
func (t *tree) monogame(list string, add func(file string, k taken)) {
	does, params := "", map[string]string{}
	in := bufio.NewScanner(bytes.NewReader(t.head(list, maxNotes)))
	for in.Scan() {
		line := strings.TrimSpace(in.Text())
		key, value, _ := strings.Cut(line, ":")
		switch strings.ToLower(key) {
		case "/processor", "-processor":
			does, params = strings.TrimSpace(value), map[string]string{}
		case "/processorparam", "-processorparam":
			if name, v, ok := strings.Cut(value, "="); ok {
				params[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(v)
			}
		case "/build", "-build":
			name, _, _ := strings.Cut(value, ";")
			file := path.Join(path.Dir(list), strings.ReplaceAll(strings.TrimSpace(name), `\`, "/"))
			if does == "TextureProcessor" {
				add(file, monogameTexture(file, params))
			} else if k, ok := t.monogameSound(file, does, cmp.Or(params["quality"], "Best")); ok {
				add(file, k)
			}
		}
	}
}

// monogameSound applies what MonoGame does on desktops. Effects become PCM, or ADPCM if their quality is not the best,
// at half the rate if it is the lowest. Songs become Ogg Vorbis and are streamed.
func (t *tree) monogameSound(file, does, quality string) (k taken, ok bool) {
	k.from = "MonoGame"
	format := soundfile.Named(strings.ToLower(path.Ext(file)))
	s := soundFile(t.abs(file)) // nil for a Git LFS pointer; then the extension decides
	if format == "" {
		return k, false
	}
	lossy := format == soundfile.Ogg || format == soundfile.MP3
	if s != nil {
		lossy = s.Lossy()
	}
	low := strings.EqualFold(quality, "Low")
	best := !low && !strings.EqualFold(quality, "Medium")
	switch does {
	case "SoundEffectProcessor":
		k.set(codec, `codec = "pcm"`)
		if !best {
			k.set(codec, `codec = "adpcm"`)
		}
		if low && s != nil && s.Format.Rate > 16000 {
			k.set(rate, "rate = %d", s.Format.Rate/2)
		}
	case "SongProcessor":
		k.set(stream, `stream = "yes"`)
		if !lossy { // lossy files are not converted again
			kbit := map[bool]int{low: 96, best: 192}[true]
			k.set(codec, `codec = "vorbis", bitrate = %d`, cmp.Or(kbit, 128))
		}
	default:
		return k, false
	}
	return k, true
}

// engines returns rules for the settings that other engines have for files in the roots.
func (p *Plan) engines(t *tree) []Rule {
	all := map[string]taken{} // by asset
	listed := map[string]taken{}
	for _, list := range t.lists {
		t.monogame(list, func(file string, k taken) { listed[file] = k })
	}
	for _, root := range p.Roots {
		b := t.below(root)
		for _, f := range b.files {
			if soundfile.Named(strings.ToLower(path.Ext(f))) == "" && !isImage(f) {
				continue
			}
			k, ok := listed[path.Join(b.root, f)]
			if !ok {
				k = b.godot(f)
			}
			all[f] = k
			p.Left = append(p.Left, k.left...)
		}
	}
	return folded(all)
}

// folded returns rules for the settings of many files. Each glob covers as many of them as possible.
func folded(all map[string]taken) []Rule {
	type rule struct {
		match string
		file  bool
		texts []string
	}
	byMatch := map[string]*rule{}
	engines := map[string]bool{}
	for a := range subjects {
		trees := map[string]*covered{} // by extension, as written
		for file, k := range all {
			if k.has[a] != "" {
				engines[k.from] = true
			}
			ext := path.Ext(file)
			if trees[ext] == nil {
				trees[ext] = newCovered()
			}
			trees[ext].add(file, k.has[a])
		}
		for ext, c := range trees {
			c.rules("", ext, "", func(match string, file bool, text string) {
				if byMatch[match] == nil {
					byMatch[match] = &rule{match: match, file: file}
				}
				byMatch[match].texts = append(byMatch[match].texts, cmp.Or(text, unset[a]))
			})
		}
	}
	names := slices.Sorted(maps.Keys(engines))
	why := "from " + strings.Join(names, " and ") + "'s import settings"
	list := slices.SortedFunc(maps.Values(byMatch), func(x, y *rule) int {
		outer := cmp.Compare(strings.Count(x.match, "/"), strings.Count(y.match, "/"))
		switch {
		case x.file != y.file && x.file:
			return 1
		case x.file != y.file:
			return -1
		}
		return cmp.Or(outer, cmp.Compare(x.match, y.match))
	})
	var rules []Rule
	for _, r := range list {
		rules = append(rules, Rule{r.match, "settings = { " + strings.Join(r.texts, ", ") + " }", why})
	}
	return rules
}

// covered is a folder with the settings that its files of one extension need.
type covered struct {
	files   map[string]string // text of the settings by file name, or ""
	folders map[string]*covered
	known   map[string]fewest
}

// fewest is the best text for a folder, and the number of rules that it needs.
type fewest struct {
	text  string
	rules int
}

func (c *covered) add(file, text string) {
	folder, rest, below := strings.Cut(file, "/")
	if !below {
		c.files[file] = text
		return
	}
	if c.folders[folder] == nil {
		c.folders[folder] = newCovered()
	}
	c.folders[folder].add(rest, text)
}

func newCovered() *covered {
	return &covered{map[string]string{}, map[string]*covered{}, map[string]fewest{}}
}

// within collects the texts that a rule for the whole folder may have: those of its files, except loops with frame
// numbers, which fit only one file.
func (c *covered) within(texts map[string]bool) {
	for _, text := range c.files {
		if !strings.Contains(text, "loop_") {
			texts[text] = true
		}
	}
	for _, folder := range c.folders {
		folder.within(texts)
	}
}

// best returns the text for a folder that needs the fewest rules, if around is the text of the folder above. If several
// are equal, it prefers around.
func (c *covered) best(around string) fewest {
	if f, ok := c.known[around]; ok {
		return f
	}
	best := fewest{around, c.count(around)}
	texts := map[string]bool{}
	c.within(texts)
	for _, text := range slices.Sorted(maps.Keys(texts)) {
		if n := c.count(text) + 1; n < best.rules {
			best = fewest{text, n}
		}
	}
	c.known[around] = best
	return best
}

// count returns the number of rules that the content of a folder needs if the folder has a text.
func (c *covered) count(text string) (rules int) {
	for _, need := range c.files {
		if need != text {
			rules++
		}
	}
	for _, folder := range c.folders {
		rules += folder.best(text).rules
	}
	return rules
}

// rules emits the rules of a folder and of the folders in it.
func (c *covered) rules(dir, ext, around string, emit func(match string, file bool, text string)) {
	text := c.best(around).text
	if text != around {
		emit(path.Join(dir, "**", "*"+processor.QuoteGlob(ext)), false, text)
	}
	for name, need := range c.files {
		if need != text {
			emit(path.Join(dir, processor.QuoteGlob(name)), true, need)
		}
	}
	for name, folder := range c.folders {
		folder.rules(path.Join(dir, processor.QuoteGlob(name)), ext, text, emit)
	}
}
