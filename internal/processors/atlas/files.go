package atlas

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/kiln-pipeline/kiln/internal/diag"
	"github.com/kiln-pipeline/kiln/processor"
)

// extensions of the images that belong to the folder.
var extensions = []string{".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".tga"}

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

// list finds the paths of the images, sorted bytewise.
func list(job processor.Job, s *Settings) ([]string, error) {
	include := s.Include
	if len(include) == 0 {
		include = []string{everyImage()}
	}
	for _, pattern := range slices.Concat(include, s.Exclude) {
		if err := checkPattern(pattern); err != nil {
			return nil, err
		}
	}
	folder := job.Asset().Path
	var paths []string
	for _, pattern := range include {
		found, err := job.Glob(path.Join(literally(folder), pattern))
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
	if len(paths) == 0 {
		return nil, &processor.Problem{
			Code: string(diag.AtlasEmpty), Text: fmt.Sprintf("folder %q has no images for the atlas", folder),
			Hint: cmp.Or(emptyHint(s), "put images in it (.png, .jpg, .gif, .bmp, .tif, .webp, .tga), or remove its rule"),
		}
	}
	return paths, nil
}

func emptyHint(s *Settings) string {
	if len(s.Include)+len(s.Exclude) == 0 {
		return ""
	}
	return fmt.Sprintf("look at its settings: include = %q, exclude = %q", s.Include, s.Exclude)
}

// checkPattern refuses what is no glob, or looks outside of the folder.
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

// literally escapes what a glob would take for more than itself.
func literally(folder string) string {
	var b strings.Builder
	for _, c := range folder {
		if strings.ContainsRune(`*?[]{}\`, c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// within is a path relative to the folder that it is in.
func within(folder, file string) string {
	if folder == "." || folder == "" {
		return file
	}
	return strings.TrimPrefix(file, folder+"/")
}

// frameName is what the game calls an image: its path in the folder without the extension.
func frameName(folder, file string) string {
	p := within(folder, file)
	if stem := strings.TrimSuffix(p, path.Ext(p)); stem != "" && !strings.HasSuffix(stem, "/") {
		return stem
	}
	return p
}

// clashes complains of images that would have the same name.
func clashes(folder string, paths []string) (problems []error) {
	byName := map[string]string{}
	for _, p := range paths {
		name := frameName(folder, p)
		other, taken := byName[name]
		if !taken {
			byName[name] = p
			continue
		}
		problems = append(problems, &processor.Problem{
			Code: string(diag.AtlasNames), Path: p,
			Text: fmt.Sprintf("%q and %q would both be the frame %q", other, p, name),
			Hint: "frames are named by path without extension: rename one of the two, or exclude it",
		})
	}
	return problems
}
