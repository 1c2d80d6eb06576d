package role

import (
	"slices"
	"strings"
	"sync"
)

// Uses, as the setting of textures names them.
const (
	Color  = "color"
	UI     = "ui"
	Normal = "normal"
	Mask   = "mask"
	HDR    = "hdr"
	Data   = "data"
)

// All are the uses that a name can state, in the order of the documentation.
var All = []string{Color, UI, Normal, Mask, HDR, Data}

// Convention is how a site, a program or an engine names the pictures of one surface. The last word of the name has the use.
type Convention struct {
	Of      string
	Example string              // a name that follows it
	Words   map[string][]string // by use, in lower case
}

// Conventions are the known ones, and the source of each. A word has the same use in all of them; a test checks that. docs/textures.md has
// the same words.
var Conventions = []Convention{
	// Names of the files in downloads at polyhaven.com, and of the maps in its API: THING_MAP_SIZE, with the direction of green after "nor".
	{"Poly Haven", "brick_wall_nor_gl_2k.jpg", uses(Color, "diff diffuse col spec specular translucent emission",
		Normal, "nor", Mask, "rough disp ao arm metal bump mask opacity gloss anisotropy anisotropic", HDR, "")},
	// Names of the files in downloads at ambientcg.com: ID_SIZE-FORMAT_Map.
	{"ambientCG", "Wood027_1K-JPG_NormalGL.jpg", uses(Color, "color emission", Normal, "normal",
		Mask, "roughness metalness ambientocclusion displacement opacity scattering", HDR, "hdr hdri")},
	// Names of the maps that Quixel Bridge exports: ID_SIZE_Map, with _LOD0 after the maps of models.
	{"Quixel Megascans", "xyzabcd_4K_Roughness.jpg", uses(Color, "albedo diffuse specular translucency",
		Normal, "normal normals", Mask, "roughness gloss displacement ao cavity bump fuzz opacity mask transmission ord ordp")},
	// Output templates of Substance Painter and Sampler in the manual of Adobe: Unity, Unreal, glTF, Arnold, V-Ray, "Document channels".
	{"Substance", "Chair_Wood_OcclusionRoughnessMetallic.png", uses(
		Color, "basecolor basecolour albedotransparency diffusetransparency specularsmoothness specularglossiness emissive emission glow",
		Normal, "normal", Mask, "height roughness glossiness smoothness metallic metalness ao occlusion mixedao curvature thickness "+
			"metallicsmoothness occlusionroughnessmetallic metallicroughness roughnessmetallic ior scattering coatweight")},
	// Names of the textures in the Sample Assets of Khronos, and in the files of exporters of glTF.
	{"glTF", "Helmet_metallicRoughness.png", uses(Color, "basecolor diffuse emissive specularglossiness sheencolor", Normal, "normal normals",
		Mask, "metallicroughness roughnessmetallic occlusionroughnessmetallic occlusion orm transmission clearcoat iridescence sheenroughness")},
	// Names in the documentation and the samples of Unreal Engine, in the style guide for it that most teams begin with, and in those of
	// teams: T_Thing_MAP. What has one letter or two is in letters, below.
	{"Unreal Engine", "T_Rock_ORM.tga", uses(Color, "bc basecolor albedo", Normal, "nrm norm",
		Mask, "orm arm rma mra mrao rmo mro aorm ormh orma ero mask ao height roughness metallic specularlevel", Data, "flow flowmap")},
	// Textures of the materials of Unity (Standard, URP, HDRP) in its manual, with "Map" after most words.
	{"Unity", "Rock_MaskMap.png", uses(
		Color, "maintex basemap basecolormap albedo emission emissive specular specgloss specularcolor", Normal, "normal bentnormal",
		Mask, "mask metallic metallicgloss metallicsmoothness smoothness occlusion height parallax detailmask mads mods mohs")},
	// Textures of Godot's StandardMaterial3D and ORMMaterial3D, and of Blender's sockets, in their manuals.
	{"Godot, Blender", "rock_roughness.png", uses(Color, "albedo emission subsurface", Normal, "normal", Mask,
		"orm roughness metallic ao heightmap rim clearcoat transmission alpha")},
	// What painters and 2D games write, without a site that defines it.
	{"others", "grade_lut.png", uses(Color, "colour alb dif emit emiss sss", UI, "ui icon hud", Mask, "gloss disp transparency",
		Data, "data lut noise flow")},
}

// uses makes the words of a convention from pairs of a use and words.
func uses(pairs ...string) map[string][]string {
	m := map[string][]string{}
	for i := 0; i < len(pairs); i += 2 {
		if words := strings.Fields(pairs[i+1]); len(words) > 0 {
			m[pairs[i]] = words
		}
	}
	return m
}

// Words returns all words of a use, sorted.
func Words(use string) []string {
	var all []string
	for _, c := range Conventions {
		all = append(all, c.Words[use]...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Letters are the words of one or two letters, by use. They occur in other names as well (button_n, wall_s), so they need company.
var Letters = map[string][]string{
	Color:  {"c", "d", "e", "s"},                  // colour, diffuse, emissive, specular
	Normal: {"n", "nm"},                           //
	Mask:   {"dp", "g", "h", "m", "mt", "o", "r"}, // displacement, gloss, height, metallic or mask, metallic, occlusion or opacity, roughness
}

// Nouns are words that are also what a picture may show: the arm of a hero, scrap metal. They need company.
var Nouns = []string{"alpha", "arm", "ero", "fuzz", "ior", "metal", "mods", "ord", "rim", "scattering"}

// packed are masks with different numbers in their channels.
var packed = []string{"mask", "detailmask", "orm", "arm", "rma", "mra", "mrao", "rmo", "mro", "aorm", "ormh", "orma", "ero", "ord", "ordp",
	"mads", "mods", "mohs",
	"metallicroughness", "roughnessmetallic", "occlusionroughnessmetallic", "metallicsmoothness", "metallicgloss"}

// neutral are letters with which other conventions mean one map or another: albedo or alpha, bump or base colour.
var neutral = []string{"a", "b"}

// others are words of sets of pictures that are not maps of one surface: the states of a button, and directions.
var others = []string{"hover", "hovered", "over", "pressed", "press", "down", "up", "active", "inactive", "disabled", "selected", "focus",
	"focused", "clicked", "click", "highlight", "highlighted", "checked", "idle", "north", "south", "east", "west", "left", "right"}

// states are those of them that button_normal.png has beside it.
var states = []string{"hover", "pressed", "down", "active", "disabled", "selected", "focus", "clicked", "highlight", "over"}

// inAlpha are the measures that a picture of colours may have in its alpha: AlbedoTransparency, SpecularSmoothness.
var inAlpha = []string{"transparency", "alpha", "opacity", "smoothness", "glossiness", "gloss"}

// lookup returns the use of a word, whatever it needs.
var lookup = sync.OnceValue(func() map[string]string {
	m := map[string]string{}
	for _, use := range All {
		for _, w := range slices.Concat(Words(use), Letters[use]) {
			m[w] = use
		}
	}
	return m
})
