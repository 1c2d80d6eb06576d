package role

import (
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
)

// folders are names of files that are in one folder each, by the use that they should get. The words are those that sites, programs and
// engines write; the things are made up. Names without an extension are pictures.
var folders = []struct {
	of    string
	names map[string]string
}{
	{"Poly Haven", map[string]string{
		Color:  "brick_wall_diff_2k brick_wall_col_01_4k brick_wall_spec_1k old_planks_diff_1k.exr.jpg lamp_emission_2k leaf_translucent_2k",
		Normal: `brick_wall_nor_gl_2k brick_wall_nor_dx_2k brick_wall_nor_gl_16k brick_wall_nor_gl_2k.exr old_planks_nor_gl_1k`,
		Mask: `brick_wall_rough_2k brick_wall_disp_2k brick_wall_ao_2k brick_wall_arm_2k brick_wall_metal_2k brick_wall_bump_2k
			brick_wall_mask_2k
			brick_wall_disp_2k.exr brick_wall_rough_2k.exr leaf_opacity_2k lamp_gloss_2k brick_wall_anisotropy_2k`,
		HDR: "dresden_square_1k.hdr dresden_square_4k.exr",
	}},
	{"ambientCG", map[string]string{
		Color:  "Wood027_1K-JPG_Color Metal009_2K-PNG_Color Wood027_1K_Color Lamp001_1K_Emission Wood027 Wood027_1K-JPG",
		Normal: "Wood027_1K-JPG_NormalGL Wood027_1K-JPG_NormalDX Wood027_4K-PNG_NormalGL Metal009_2K-PNG_NormalGL Wood027_1K_Normal",
		Mask: `Wood027_1K-JPG_Roughness Wood027_1K-JPG_AmbientOcclusion Wood027_1K-JPG_Displacement Metal009_2K-PNG_Metalness
			Leaf001_1K-PNG_Opacity Metal009_2K-PNG_Roughness Metal009_8K_Displacement`,
		HDR: "EveningSky001_4K-HDR.exr EveningSky001_4K_HDR EveningSky002_4K-HDRI.png",
	}},
	{"Quixel Megascans", map[string]string{
		Color: `xyzabcd_4K_Albedo xyzabcd_2K_Albedo_LOD0 Aset_stone_S_xyzabcd_4K_Diffuse xyzabcd_4K_Specular xyzabcd_4K_Translucency
			Stone_Wall_xyzabcd_4K_inst_Albedo`,
		Normal: "xyzabcd_4K_Normal xyzabcd_4K_Normal_LOD0 xyzabcd_4K_Normal_LOD5 Aset_stone_S_xyzabcd_4K_Normal xyzabcd_4K_NormalBump_Normals",
		Mask: `xyzabcd_4K_Roughness xyzabcd_4K_AO xyzabcd_4K_Cavity xyzabcd_4K_Displacement xyzabcd_4K_Gloss xyzabcd_8K_Gloss_LOD1
			xyzabcd_4K_Bump
			xyzabcd_4K_Opacity xyzabcd_4K_Transmission xyzabcd_4K_Fuzz T_Stone_4K_ORDp T_Stone_xyzabcd_4K_ORD`,
	}},
	{"Substance: document channels, UDIM, Arnold", map[string]string{
		Color: `Chair_Wood_BaseColor Chair_Wood_Base_Color Chair_Wood_Emissive Chair_Wood_Diffuse Chair_Wood_BaseColor.1001
			Chair_Wood_Specular Chair_Wood_base_color`,
		Normal: `Chair_Wood_Normal Chair_Wood_Normal_OpenGL Chair_Wood_Normal_DirectX Chair_Wood_Normal.1001 chair_wood_normal_1002
			Chair_Wood_NormalOpenGL M_Normal_2048.tga Chair_Wood_normal_base.normal`,
		Mask: `Chair_Wood_Height Chair_Wood_Roughness Chair_Wood_Metallic Chair_Wood_Metalness Chair_Wood_Mixed_AO Chair_Wood_Ambient_Occlusion
			Chair_Wood_Glossiness Chair_Wood_Opacity Chair_Wood_Curvature Chair_Wood_Thickness Chair_Wood_Metallic.1001 Chair_Wood_AO`,
	}},
	{"Substance: packed, for engines", map[string]string{
		Color: `Chair_Wood_AlbedoTransparency Chair_Wood_SpecularSmoothness Chair_Wood_BaseMap Chair_Wood_Emission
			Chair_Wood_DiffuseGlossiness`,
		Normal: "Chair_Wood_Normal",
		Mask: `Chair_Wood_MetallicSmoothness Chair_Wood_OcclusionRoughnessMetallic Chair_Wood_MaskMap Chair_Wood_metallicRoughness
			Chair_Wood_occlusionRoughnessMetallic Chair_Wood_OcclusionRoughMetal`,
	}},
	{"Khronos", map[string]string{
		Color: `Avocado_baseColor Helmet_BaseColor Default_albedo BoomBox_baseColor BoomBox_emissive Default_emissive Pot_specularGlossiness
			Pot_diffuse Cloth_sheenColor CheckAndX_V TextureCoordinateTemplate Waterbottle_specular`,
		Normal: "Avocado_normal Default_normal SheenChairFabricNormal NormalTangentTest_Normal.png BoomBox_normal.png Sponza_Column_normals",
		Mask: `Avocado_roughnessMetallic Default_metalRoughness BoomBox_occlusionRoughnessMetallic
			NormalTangentTest_OcclusionRoughnessMetallic Default_AO
			Default_AOMetallicRoughness Helmet_metallicRoughness helmet_metallicroughness helmet_metallic_roughness SheenChair_OcclusionRoughMetal
			Corset_occlusion Cloth_sheenRoughness Glass_transmission Car_clearcoat WaterBottle_occlusionRoughnessMetallic.png`,
	}},
	{"Unreal Engine", map[string]string{
		Color:  "T_Rock_D T_Rock_BC T_Rock_E T_Rock_01_D T_Rock_01_BaseColor T_Rock_S T_Rock_A T_Rock_Evil_D T_Rock T_Sand_BC_01",
		Normal: `T_Rock_N T_Rock_N.TGA T_Rock_01_N T_Rock_Norm T_Rock_NRM T_Rock_Evil_N T_Rock_N_2k T_Rock_NM`,
		Mask: `T_Rock_ORM T_RockORM T_Rock_MRA T_Rock_RMA T_Rock_ARM T_Rock_ERO T_Rock_R T_Rock_M T_Rock_O T_Rock_H T_Rock_AO T_Rock_MT T_Rock_DP
			T_Rock_Mask T_Rock_ORMH T_Rock_MROH_Roughness T_Rock_G`,
	}},
	{"Unity", map[string]string{
		Color: `Rock_Albedo Rock_MainTex Rock_BaseMap Rock_BaseColorMap Rock_EmissionMap Rock_SpecGlossMap Rock_EmissiveColorMap Rock_AlbedoAlpha
			Rock_LightMap rock_lightmap Rock_SpecularColor`,
		Normal: "Rock_Normal Rock_NormalMap Rock_BentNormalMap rock_normalmap Rock_Normals Rock_BumpedNormals",
		Mask: `Rock_MaskMap Rock_Mask Rock_MetallicGlossMap Rock_MetallicSmoothness Rock_OcclusionMap Rock_HeightMap rock_heightmap
			Rock_ParallaxMap
			Rock_DetailMask Rock_Smoothness RockAO Rock_MADS Rock_MOHS`,
	}},
	{"letters, with company", map[string]string{
		Color:  "stone_d stone_e stone_s stone moss sign plank_c floor_diffuse.png",
		Normal: "stone_n moss_n.tga plank_n floor_n.png sign_N.PNG",
		Mask:   "stone_r stone_m stone_o stone_h plank_r plank_g floor_r.png",
	}},
	{"without other words", map[string]string{
		Color:  "albedo.png basecolor.png n.png",
		Normal: "normal.png",
		Mask:   "roughness.png metallic.png ao.png height.png",
	}},
	{"separators", map[string]string{
		Color:  "wall-diff wall-albedo.jpg wall.base-color door (color)",
		Normal: "wall-normal wall_normal-ogl wall.normal wall-normal-1024x1024 wall_normal_02 wall-normal_x wall_nrm",
		Mask:   "wall-rough wall.roughness wall-ao-2k wall_roughness_02 wall-metallic wall-disp wall_parallax",
	}},
	{"states of a button, directions, and parts of a hero", map[string]string{
		Color: `button_normal button_hover button_pressed button_disabled key_n key_p key_h key_d wall_n wall_e wall_s wall_w flag_r
			flag_g flag_b car_l
			car_r car_u car_d hero_arm hero_leg hero_head scrap_metal tile_n hero_m hero_f arrow-n arrow-up arrow-down iron_rim`,
	}},
	{"the same, without a folder of parts", map[string]string{Color: "normal hover pressed mask icon noise rough.txt n ui orm"}},
	{"only similar", map[string]string{
		Color: `canon green_n norway formal armor_diff abnormal Platform snorkel_1k Enormous_2K marchao 1024 2k _gl_1k TEX_1K map
			cubicmap sitemap tilemap
			minimap Gem VirtualControlArrow warm swarm Bonn London normal_pressed button_normal_hover rockAo2 dresden_square_1k HeroArm ButtonN
			colormap citybits_texture hero_arm_2 level_data_01 hero_n lemon _none abnormal_rock roughneck metalhead maskman occult specs`,
	}},
	{"2D and others", map[string]string{
		UI:    "TopDown_ui clean_crispy-ui sword_icon health_hud",
		Data:  "grade_lut_1024 PerlinNoise WindFlow.png table_data river_flowmap",
		HDR:   "sky.hdr sky.EXR studio_hdri",
		Mask:  "terrain_mask oak_mask",
		Color: "dresden.png .png",
	}},
}

// TestOf checks at least 300 names.
func TestOf(t *testing.T) {
	n := 0
	for _, f := range folders {
		var beside []string
		file := func(name string) string {
			if !slices.Contains([]string{".png", ".jpg", ".tga", ".exr", ".hdr", ".txt"}, strings.ToLower(path.Ext(name))) {
				name += ".jpg"
			}
			return "models/a_n/" + name
		}
		for _, names := range f.names {
			for _, name := range strings.Fields(names) {
				beside = append(beside, file(name))
			}
		}
		for use, names := range f.names {
			for _, name := range strings.Fields(names) {
				n++
				name = file(name)
				got := Of(name, beside)
				if got.Use != use {
					t.Errorf("%s: %s is %s by %q, want %s", f.of, name, got.Use, got.Because, use)
				}
				// What a glob finds is enough.
				var found []string
				for _, b := range beside {
					if ok, err := doublestar.Match(Beside(name), b); err != nil {
						t.Fatal(Beside(name), err)
					} else if ok {
						found = append(found, b)
					}
				}
				if again := Of(name, found); again != got {
					t.Errorf("%s: %s is %+v by the files that %s matches, and %+v by all", f.of, name, again, Beside(name), got)
				}
			}
		}
	}
	if t.Logf("%d names", n); n < 300 {
		t.Errorf("only %d names", n)
	}
}

func TestBecause(t *testing.T) {
	for _, tt := range []struct{ name, beside, use, because, alone string }{
		{"a/stone_n.png", "a/stone.png", Normal, "_n", ""},
		{"a/stone_n.png", "b/stone.png", Color, "", "_n"},
		{"a/stone_n.png", "a/stone.txt a/stone_n.png.import", Color, "", "_n"},
		{"Stone_Normal.TGA", "", Normal, "_Normal", ""},
		{"brick.rough.png", "", Mask, ".rough", ""},
		{"Avocado_roughnessMetallic.png", "", Mask, "_roughnessMetallic", ""},
		{"rock_metallic_roughness_2k.png", "", Mask, "_metallic_roughness_2k", ""},
		{"RockNormal.png", "", Normal, "Normal", ""},
		{"sky_n.exr", "", HDR, ".exr", ""},
		{"sky_normal.exr", "", Normal, "_normal", ""},
		{"rock_albedo.png", "", Color, "_albedo", ""},
		{"rock_albedo.exr", "", HDR, ".exr", ""},
		{"lemon.png", "", Color, "", ""},
		{"", "", Color, "", ""},
	} {
		got := Of(tt.name, strings.Fields(tt.beside))
		if got.Use != tt.use || got.Because != tt.because || got.Alone != tt.alone {
			t.Errorf("%s beside %q: %+v", tt.name, tt.beside, got)
		}
	}
}

// TestPacked: masks with several numbers may have colours.
func TestPacked(t *testing.T) {
	for name, want := range map[string]bool{
		"a_roughnessMetallic": true, "a_OcclusionRoughMetal": true, "a_ORM": true, "a_mask": true,
		"a_MetallicSmoothness": true, "a_metallic_roughness": true,
		"a_Metallic_Smoothness": true, "a_AOMetallicRoughness": true,
		"a_roughness": false, "a_AmbientOcclusion": false, "a_metallic": false, "Scrap_Metal_Roughness": false, "a_height": false,
	} {
		if got := Of(name+".png", nil); got.Use != Mask || got.Packed != want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestBeside: few names depend on others, and those with a long word only on the names of a few states.
func TestBeside(t *testing.T) {
	for name, want := range map[string]string{
		"a/rock_normal_2k.png": "", "a/rock_roughness.png": "", "a/rock.png": "", "T_Rock_N.png": "", "a/RockNormal.png": "",
		"a[1]/rock_n.png": `a\[1\]/rock*`, "rock_n.png": "rock*", "a/rock_2k_n.png": "a/rock*", "a/normal.png": "a/*",
	} {
		if got := Beside(name); got != want {
			t.Errorf("%s depends on %q, want %q", name, got, want)
		}
	}
	if got := Beside("a/button_normal.png"); !strings.HasPrefix(got, "a/button[_. -]{hover,Hover,") {
		t.Error(got)
	}
}

// TestWords: a word has one use in all conventions, and those that need company are words.
func TestWords(t *testing.T) {
	of := map[string]string{}
	for _, use := range All {
		for _, w := range slices.Concat(Words(use), Letters[use]) {
			if of[w] != "" {
				t.Errorf("%s is %s and %s", w, of[w], use)
			}
			of[w] = use
		}
	}
	for _, w := range slices.Concat(Nouns, packed, inAlpha) {
		if of[w] == "" {
			t.Errorf("%s is not a word", w)
		}
	}
	for _, w := range slices.Concat(neutral, others, states) {
		if of[w] != "" {
			t.Errorf("%s is a word", w)
		}
	}
	for _, w := range states {
		if !slices.Contains(others, w) {
			t.Errorf("%s is not in others", w)
		}
	}
	for _, c := range Conventions {
		if got := Of(c.Example, nil); got.Because == "" || got.Use == Color {
			t.Errorf("%s: the example %s is %+v", c.Of, c.Example, got)
		}
		for use := range maps.Keys(c.Words) {
			if !slices.Contains(All, use) {
				t.Errorf("%s has the use %q", c.Of, use)
			}
		}
	}
}

// TestDocumented compares the tables in the documentation with the code.
func TestDocumented(t *testing.T) {
	data, err := os.ReadFile("../../../docs/textures.md")
	if err != nil {
		t.Fatal(err)
	}
	page := strings.ReplaceAll(string(data), "\n  ", " ") // lists are wrapped
	code := func(words []string) string { return "`" + strings.Join(words, "` `") + "`" }
	for _, use := range All {
		if row := "| `" + use + "` | " + code(Words(use)); use != Color && !strings.Contains(page, row) {
			t.Errorf("docs/textures.md has no row %q", row)
		}
	}
	for _, text := range []string{
		code(Words(Color)), code(Letters[Color]), code(Letters[Normal]), code(Letters[Mask]), code(Nouns), code(states),
	} {
		if !strings.Contains(page, text) {
			t.Errorf("docs/textures.md does not have %q", text)
		}
	}
	for _, c := range Conventions {
		if row := "| " + c.Of + " | `" + c.Example + "` |"; !strings.Contains(page, row) {
			t.Errorf("docs/textures.md has no row %q", row)
		}
	}
}

func FuzzOf(f *testing.F) {
	f.Add("a/T_Rock_metallicRoughness_2k.png", "a/T_Rock.png")
	f.Fuzz(func(t *testing.T, name, beside string) {
		got := Of(name, []string{beside})
		if !slices.Contains(All, got.Use) || !strings.Contains(path.Base(name), got.Because) && got.Use != HDR {
			t.Errorf("%q: %+v", name, got)
		}
		if Beside(name) == "" && got != Of(name, nil) {
			t.Errorf("%q depends on %q", name, beside)
		}
	})
}
