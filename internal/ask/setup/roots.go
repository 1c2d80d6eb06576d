package setup

import (
	"path"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/processors"
)

// rootNames are usual names for the folder of the content.
var rootNames = []string{"assets", "asset", "content", "contents", "data", "res", "resources", "resource", "media", "art", "gamedata"}

// sure reports whether a file of this name can only be content.
func sure(file string) bool {
	k, _ := processors.Of(file)
	return k != nil && !k.Everywhere
}

// code are extensions of program source, which a game does not load. Scripts that a game may load are not in the list.
var code = strings.Fields(`.c .cc .cpp .cxx .h .hh .hpp .m .mm .cs .csproj .sln .vcxproj .fs .go .rs .java .kt .swift .d .zig .o .a .obj.d .pdb .dll .exe .so`)

// majority is the share of the content that must be in folders with these names. The rest is then left out.
const majority = 0.8

// maxRoots is the most such folders. More of them are modules, whose names should stay part of the ids.
const maxRoots = 3

// content returns the files that are surely content. If there are none, it returns all files except documents.
func (t *tree) content() []string {
	var certain, maybe []string
	for _, f := range t.files {
		ext := strings.ToLower(path.Ext(f))
		switch {
		case sure(f):
			certain = append(certain, f)
		case path.Dir(f) == "." && (ext == ".md" || ext == "" || ext == ".txt"): // the project's README and LICENSE
		default:
			maybe = append(maybe, f)
		}
	}
	if len(certain) > 0 {
		return certain
	}
	return maybe
}

// roots returns the source roots: folders with a usual name, if nearly all content is in them and no two have a file of
// the same path; else the one folder that contains everything; else the project folder.
func (t *tree) roots() []string {
	content := t.content()
	if len(content) == 0 {
		return []string{"assets"}
	}
	named := t.named(content)
	held := 0
	for _, f := range content {
		if inside(f, named) {
			held++
		}
	}
	if len(named) > 0 && len(named) <= maxRoots && float64(held) >= majority*float64(len(content)) && !t.clash(named) {
		return named
	}
	first, _, below := strings.Cut(content[0], "/")
	if below && !slices.ContainsFunc(content, func(f string) bool { return !strings.HasPrefix(f, first+"/") }) {
		return []string{first}
	}
	return []string{"."}
}

// named returns the outermost folders with a usual name that contain content.
func (t *tree) named(content []string) []string {
	var list []string
	for _, f := range content {
		for i, c := range f {
			if c == '/' && slices.Contains(rootNames, strings.ToLower(path.Base(f[:i]))) {
				if !slices.Contains(list, f[:i]) {
					list = append(list, f[:i])
				}
				break
			}
		}
	}
	slices.Sort(list)
	return list
}

// clash reports whether two folders contain a file of the same path: as roots, one file would hide the other.
func (t *tree) clash(folders []string) bool {
	seen := map[string]bool{}
	for _, folder := range folders {
		for _, f := range t.below(folder).files {
			if low := strings.ToLower(f); seen[low] {
				return true
			} else {
				seen[low] = true
			}
		}
	}
	return false
}
