package texture

import (
	"path"
	"slices"
	"strings"
)

// suffixes tell what a picture is for by the last word of its name. docs/textures.md has the same table, and a test that it has.
var suffixes = []struct {
	use   string
	words []string
}{
	{"normal", []string{"n", "nrm", "nor", "norm", "normal", "normals", "normalmap"}},
	{"mask", []string{
		"rough", "roughness", "gloss", "smoothness", "metal", "metallic", "metalness", "ao", "occlusion",
		"mask", "orm", "arm", "rma", "mra", "h", "height", "disp", "displacement", "bump", "opacity", "thickness",
	}},
	{"hdr", []string{"hdr", "hdri"}},
	{"ui", []string{"ui", "icon", "hud"}},
	{"data", []string{"data", "lut", "noise", "flow"}},
}

// severalChannels are the words of masks that may hold another number in each channel.
var severalChannels = []string{"mask", "orm", "arm", "rma", "mra"}

// UseOf tells what a picture is for by its file's name, and what of the name says so; "color" and "" if nothing does.
func UseOf(name string) (use, because string) {
	base := strings.ToLower(path.Base(name))
	ext := path.Ext(base)
	stem := strings.TrimSuffix(base, ext)
	if i := strings.LastIndexAny(stem, "_-."); i >= 0 {
		for _, s := range suffixes {
			if slices.Contains(s.words, stem[i+1:]) {
				return s.use, stem[i:]
			}
		}
	}
	if ext == ".hdr" || ext == ".exr" {
		return "hdr", ext
	}
	return "color", ""
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
