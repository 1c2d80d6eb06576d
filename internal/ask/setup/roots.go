package setup

import (
	"path"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/processors"
)

// rootNames are what people call the folder of their content.
var rootNames = []string{"assets", "asset", "content", "contents", "data", "res", "resources", "resource", "media", "art", "gamedata"}

// sure reports whether only content is called so.
func sure(file string) bool {
	k, _ := processors.Of(file)
	return k != nil && !k.Everywhere
}

// code are extensions of program source, which is never content for the game to load. Scripts that a game may load are not among them.
var code = strings.Fields(`.c .cc .cpp .cxx .h .hh .hpp .m .mm .cs .csproj .sln .vcxproj .fs .go .rs .java .kt .swift .d .zig .o .a .obj.d .pdb .dll .exe .so`)

// majority is how much of the content must lie in folders with the right names before the rest is left out.
const majority = 0.8

// maxRoots is how many such folders there may be: more of them are modules, whose own names are worth keeping.
const maxRoots = 3

// content is all files that look like content; if there is none that only content could be, then all files but for documents.
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

// roots picks the source roots: folders with a usual name, if nearly all content is in them and they hold no file twice; else
// the one folder that holds all; else the project folder itself.
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

// named are the folders with a usual name that hold content, the outermost each.
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

// clash reports whether two folders have a file of the same path in them: as roots, one would hide the other.
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
