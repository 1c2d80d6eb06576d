package atlas

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	table "github.com/kiln-pipeline/kiln/internal/media/codec/atlas"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/processor"
)

// extensions of the images that belong to the folder: formats that programs export, not the documents that they save
// (.psd), which may be beside an exported image of the same name.
var extensions = pixel.Extensions("png", "jpeg", "gif", "bmp", "tiff", "webp", "tga")

// everyImage is the glob of all files with one of these extensions, in upper or lower case.
func everyImage() string {
	alternatives := make([]string, len(extensions))
	for i, ext := range extensions {
		var b strings.Builder
		for _, c := range ext[1:] {
			fmt.Fprintf(&b, "[%c%s]", c, strings.ToUpper(string(c)))
		}
		alternatives[i] = b.String()
	}
	return "**/*.{" + strings.Join(alternatives, ",") + "}"
}

// find returns the paths of the images, sorted bytewise.
func find(job processor.Job, s *Settings) ([]string, error) {
	include := s.Include
	if len(include) == 0 {
		include = []string{everyImage()}
	}
	for _, pattern := range slices.Concat(include, s.Exclude) {
		if err := checkPattern(pattern); err != nil {
			return nil, err
		}
	}
	folder := folderIn(job)
	var paths []string
	if s.Parcel != "" {
		var err error
		if paths, err = sprites(job, s.Parcel); err != nil {
			return nil, err
		}
		paths = slices.DeleteFunc(paths, func(p string) bool {
			return len(s.Include) > 0 && !slices.ContainsFunc(include, func(pattern string) bool { return doublestar.MatchUnvalidated(pattern, p) })
		})
		include = nil
	}
	for _, pattern := range include {
		found, err := job.Glob(path.Join(processor.QuoteGlob(folder), pattern))
		if err != nil {
			return nil, err
		}
		paths = append(paths, found...)
	}
	slices.Sort(paths)
	paths = slices.Compact(paths) // several patterns may match one file
	paths = slices.DeleteFunc(paths, func(p string) bool {
		return slices.ContainsFunc(s.Exclude, func(pattern string) bool {
			return doublestar.MatchUnvalidated(pattern, within(folder, p))
		})
	})
	return paths, nil
}

// sprites are the paths of the images that a parcel needs for its atlas.
func sprites(job processor.Job, parcel string) (paths []string, err error) {
	listed, err := job.Assets(parcelMark + parcel)
	for i := range listed {
		if listed[i].Type == table.Sprite {
			paths = append(paths, listed[i].Asset.Path)
		}
	}
	return paths, err
}

// checkHeld warns about the atlas of a parcel that does not hold it: a game with this parcel alone cannot draw the images in it.
func checkHeld(job processor.Job, s *Settings) error {
	listed, err := job.Assets(parcelMark + s.Parcel)
	id := job.Asset().ID
	needed := false
	for i := range listed {
		if listed[i].Asset.ID == id {
			return err
		}
		needed = needed || listed[i].Type == table.Sprite
	}
	if needed && id != "" {
		job.Warn(processor.Problem{
			Code: string(diag.AtlasNotHeld), Text: fmt.Sprintf("parcel %q holds images of this atlas, but not the atlas", s.Parcel),
			Hint: fmt.Sprintf("add %q to the assets of the parcel in kiln.toml", id),
		})
	}
	return err
}

// noSprites is the warning about the atlas of a parcel that has no image: why, and what to do.
func noSprites(job processor.Job, s *Settings) (processor.Problem, error) {
	listed, err := job.Assets(parcelMark + s.Parcel)
	sprites, other := 0, -1 // an image with another processor
	for i := range listed {
		switch {
		case listed[i].Type == table.Sprite:
			sprites++
		case other < 0 && !listed[i].Folder && slices.Contains(extensions, path.Ext(listed[i].Asset.Path)):
			other = i
		}
	}
	p := processor.Problem{
		Code: string(diag.AtlasNoSprites), Text: fmt.Sprintf(`the atlas is empty: parcel %q holds no image with processor = "sprite"`, s.Parcel),
		Hint: "refer to the images in an asset of the parcel (a file that is copied refers to nothing), or name them in its assets",
	}
	switch {
	case sprites > 0:
		p.Text = fmt.Sprintf("the atlas is empty: its settings leave out all %d images of parcel %q", sprites, s.Parcel)
		p.Hint = emptyHint(s)
	case other >= 0:
		p.Hint = fmt.Sprintf("a rule has to give them that processor: match = %q, processor = \"sprite\"; now it is %q", listed[other].Asset.Path, listed[other].Processor)
	}
	return p, err
}

// parcelMark begins the pattern of all that a parcel holds.
const parcelMark = "parcel:"

// empty is the error for an atlas without images.
func empty(folder string, s *Settings) error {
	return &processor.Problem{
		Code: string(diag.AtlasEmpty), Text: fmt.Sprintf("folder %q has no images for the atlas", folder),
		Hint: cmp.Or(emptyHint(s), "put images in it ("+strings.Join(extensions, ", ")+"), or remove its rule"),
	}
}

func emptyHint(s *Settings) string {
	if len(s.Include)+len(s.Exclude) == 0 {
		return ""
	}
	return fmt.Sprintf("look at its settings: include = %q, exclude = %q", s.Include, s.Exclude)
}

// checkPattern returns an error for an invalid glob, or one that leaves the folder.
func checkPattern(pattern string) error {
	why := ""
	switch {
	case pattern == "" || !doublestar.ValidatePattern(pattern):
		why = "is not a glob"
	case strings.HasPrefix(pattern, "/"):
		why = "is absolute"
	case slices.Contains(strings.Split(pattern, "/"), ".."):
		why = "leads out of the folder"
	}
	if why == "" {
		return nil
	}
	return &processor.Problem{
		Code: string(diag.AtlasPattern), Text: fmt.Sprintf("pattern %q %s", pattern, why),
		Hint: `patterns in include and exclude are relative to the atlas folder: "**/*.png", "icons/*"`,
	}
}

// within is a path relative to its folder.
func within(folder, file string) string {
	if folder == "." || folder == "" {
		return file
	}
	return strings.TrimPrefix(file, folder+"/")
}

// frameName is the name of an image for the game: its path in the folder without the extension.
func frameName(folder, file string) string {
	return table.Stem(within(folder, file))
}

// source is an image file of the atlas.
type source struct {
	part    string // the part that reads it
	path    string // of the file, or of the asset that requests it
	within  string // path in the folder
	name    string // of the frame
	density int    // in thousandths: 2000 for a name with @2x
	patch   bool   // a nine-patch
	plan    plan
}

// numbered matches the name of an image of an animation.
var numbered = regexp.MustCompile(`^(.*[^/])_([0-9]{1,4})$`)

// sourceOf returns what the name of a file means.
func sourceOf(folder, file string, s *Settings, p plan) source {
	src := source{part: "image:" + file, path: file, within: within(folder, file), name: frameName(folder, file), plan: p}
	if p.flatten {
		src.name = path.Base(src.name)
	}
	src.name, src.density, src.patch = table.NameOf(src.name, s.NinePatch)
	return src
}

// sources returns all images. An image is left out with a warning if there is a nine-patch of its name: such pairs
// remain when an image is turned into a nine-patch.
func (p *plans) sources(paths []string) (all []source, problems []error) {
	for _, file := range paths {
		plan, err := p.of(path.Dir(file))
		if err != nil {
			return nil, []error{err}
		}
		if !plan.ignore {
			all = append(all, sourceOf(folderIn(p.job), file, p.s, plan))
		}
	}
	asked, err := p.requests()
	if err != nil {
		return nil, []error{err}
	}
	return p.distinct(append(all, asked...))
}

// distinct keeps one source of each name and density, sorted by both.
func (p *plans) distinct(sources []source) (all []source, problems []error) {
	type key struct {
		name    string
		density int
	}
	taken := map[key]int{} // index in all
	var left []string
	for _, src := range sources {
		k := key{src.name, src.density}
		i, clash := taken[k]
		switch {
		case !clash:
			taken[k] = len(all)
			all = append(all, src)
		case all[i].patch != src.patch:
			plain, patch := all[i], src
			if all[i].patch {
				plain, patch = src, all[i]
			}
			all[i], left = patch, append(left, plain.within)
		default:
			problems = append(problems, sameName(all[i], src))
		}
	}
	if len(left) > 0 {
		p.warned = append(p.warned, leftOut(left, p.s.Exclude))
	}
	slices.SortFunc(all, func(a, b source) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.density, b.density)) })
	return all, problems
}

// leftOut is the warning about images that have a nine-patch of their name: the first by name, and their
// number. The hint has the setting that excludes them.
func leftOut(files, excluded []string) processor.Problem {
	text, them := fmt.Sprintf("image %q is left out: a nine-patch has its name", files[0]), "it"
	if n := len(files) - 1; n > 0 {
		text, them = fmt.Sprintf("images %q and %d more are left out: nine-patches have their names", files[0], n), "them"
	}
	exclude := ""
	if len(files) <= 10 {
		patterns := slices.Clone(excluded)
		for _, f := range files {
			patterns = append(patterns, processor.QuoteGlob(f))
		}
		for i, p := range patterns {
			patterns[i] = strconv.Quote(p)
		}
		exclude = fmt.Sprintf("settings.exclude = [%s], or ", strings.Join(patterns, ", "))
	}
	hint := fmt.Sprintf(`delete %s or rename %s; or write in the rule of the atlas: %sallow = [%q]`, them, them, exclude, diag.AtlasPlain)
	return processor.Problem{Code: string(diag.AtlasPlain), Text: text, Hint: hint}
}

// sameName is the error for two images with the same name.
func sameName(a, b source) error {
	return &processor.Problem{
		Code: string(diag.AtlasNames), Path: b.path,
		Text: fmt.Sprintf("%q and %q would both be the frame %q", a.path, b.path, b.name),
		Hint: "frames are named by path without extension: rename one of the two, or exclude it",
	}
}
