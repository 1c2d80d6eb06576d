package setup

import (
	"path"
	"slices"
	"strings"
)

// rootNames are what people call the folder of their content.
var rootNames = []string{"assets", "asset", "content", "contents", "data", "res", "resources", "resource", "media", "art", "gamedata"}

// contentExtensions are those of files that only content has.
var contentExtensions = strings.Fields(`.png .jpg .jpeg .gif .bmp .tif .tiff .webp .tga .psd .hdr .exr .dds .ktx .ktx2 .svg .xcf .kra .ase .aseprite
	.wav .ogg .mp3 .flac .opus .wma .aif .aiff .mid .it .xm .mod .gltf .glb .fbx .obj .blend .iqm .dae .ply .vox .ttf .otf .fnt .woff .woff2 .bdf
	.tmx .tsx .ldtk .ldtkl .atlas .mp4 .webm .ogv .vert .frag .glsl .hlsl .wgsl .comp`)

// code are extensions of program source, which is never content for the game to load. Scripts that a game may load are not among them.
var code = strings.Fields(`.c .cc .cpp .cxx .h .hh .hpp .m .mm .cs .csproj .sln .vcxproj .fs .go .rs .java .kt .swift .d .zig .o .a .obj.d .pdb .dll .exe .so`)

// majority is how much of the content must lie in folders with the right names before the rest is left out.
const majority = 0.8

// maxRoots is how many such folders there may be: more of them are modules, whose own names are worth keeping.
const maxRoots = 3

// content is all files that look like content; if there is none that only content could be, then all files but for documents.
func (t *tree) content() []string {
	var sure, maybe []string
	for _, f := range t.files {
		ext := strings.ToLower(path.Ext(f))
		switch {
		case slices.Contains(contentExtensions, ext):
			sure = append(sure, f)
		case path.Dir(f) == "." && (ext == ".md" || ext == "" || ext == ".txt"): // the project's README and LICENSE
		default:
			maybe = append(maybe, f)
		}
	}
	if len(sure) > 0 {
		return sure
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
