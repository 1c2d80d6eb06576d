package setup

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/media/codec/wav"
	"github.com/kiln-pipeline/kiln/internal/media/placeholder"
)

var update = flag.Bool("update", false, "write the golden files")

// picture is a PNG of one colour.
func picture(side int, c color.Color) string {
	img := image.NewNRGBA(image.Rect(0, 0, side, side))
	for i := range side * side {
		img.Set(i%side, i/side, c)
	}
	var b bytes.Buffer
	png.Encode(&b, img)
	return b.String()
}

var (
	red    = picture(8, color.NRGBA{200, 30, 30, 255})
	normal = picture(8, color.NRGBA{128, 127, 254, 255})
	grey   = picture(8, color.NRGBA{90, 90, 90, 255})
	large  = picture(600, color.NRGBA{9, 9, 9, 255})
)

const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n"

// tone is a WAV file of 8 bits with a number of frames, and a loop over all of them.
func tone(rate, frames int) string {
	var b bytes.Buffer
	w, err := wav.NewWriter(&b, wav.Format{Rate: rate, Channels: 1, Coding: wav.PCM, Bits: 16},
		wav.Metadata{Loops: []wav.Loop{{End: int64(frames)}}}, int64(frames))
	if err == nil {
		err = w.Write(make([]float32, frames))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		panic(err)
	}
	return b.String()
}

// imported is the .import file that Godot writes beside a file.
func imported(importer string, params ...string) string {
	return "[remap]\n\nimporter=\"" + importer + "\"\n\n[deps]\n\nloop=\"no parameter\"\n\n[params]\n\n" + strings.Join(params, "\n") + "\n"
}

var projects = map[string]map[string]string{
	"godot": {
		"project.godot": "x", "hero.png": red, "hero.png.import": imported("texture", "compress/mode=0",
			"mipmaps/generate=false", "process/fix_alpha_border=true", "process/size_limit=0"),
		"big.png": red, "big.png.import": imported("texture", "mipmaps/generate=true",
			"process/premult_alpha=true", "process/fix_alpha_border=true", "process/size_limit=512",
			"process/channel_remap/red=0", "process/channel_remap/alpha=1"),
		"font.png": red, "font.png.import": imported("font_data_image", "mipmaps/generate=false"),
		"sfx/a.wav": tone(44100, 100), "sfx/a.wav.import": imported("wav", "force/mono=true", "edit/loop_mode=0", "edit/loop_begin=7", "compress/mode=0"),
		"sfx/b.wav": tone(44100, 100), "sfx/b.wav.import": imported("wav", "force/mono=true", "edit/loop_mode=1", "compress/mode=0"),
		"sfx/c.wav": tone(44100, 100), "sfx/c.wav.import": imported("wav", "force/mono=true", "edit/loop_mode=2", "edit/loop_begin=10", "edit/loop_end=90",
			"compress/mode=1"),
		"sfx/deep/d.wav": tone(44100, 100), "sfx/deep/d.wav.import": imported("wav", "edit/trim=true", "edit/loop_mode=3", "edit/loop_begin=0",
			"edit/loop_end=-1", "compress/mode=0"),
		"sfx/deep/e.wav": tone(44100, 100), "sfx/deep/e.wav.import": imported("wav", "edit/loop_mode=4", "edit/loop_begin=200", "edit/loop_end=300",
			"force/max_rate=true", "force/max_rate_hz=22050", "compress/mode=0"),
		"old.wav": tone(44100, 100), "old.wav.import": imported("wav", "edit/loop=true", "compress/mode=0"),
		"qoa.wav": tone(44100, 100), "qoa.wav.import": imported("wav", "force/max_rate_hz=44100", "compress/mode=2"),
		"music/x.ogg": string(placeholder.Vorbis()), "music/x.ogg.import": imported("oggvorbisstr", "loop=true", "loop_offset=0.05"),
		"music/y.ogg": string(placeholder.Vorbis()), "music/y.ogg.import": imported("ogg_vorbis", "loop=true", "loop_offset=0"),
		"music/z.mp3": string(placeholder.MP3()), "music/z.mp3.import": imported("mp3", "loop=false"),
		"music/none.ogg": string(placeholder.Vorbis()), "music/lost.ogg.import": imported("ogg_vorbis", "loop=true"),
	},
	"monogame": {
		"Content/Content.mgcb": "#---- Global ----#\r\n/outputDir:bin\r\n/platform:DesktopGL\r\n\r\n#begin Sounds/a.wav\r\n/importer:WavImporter\r\n" +
			"/processor:SoundEffectProcessor\r\n/processorParam:Quality=Low\r\n/build:Sounds\\a.wav;Effects/a.wav\r\n/build:Sounds/b.wav\n" +
			"/processorParam:Quality=Medium\n/build:Sounds/c.wav\n/processor:SoundEffectProcessor\n/build:Sounds/d.wav\n/build:Sounds/e.mp3\n" +
			"/processor:SongProcessor\n/processorParam:Quality=Low\n/build:Music/a.wav\n/processorParam:Quality=Best\n/build:Music/b.wav\n" +
			"/build:Music/c.mp3\n/build:Music/lfs.mp3\n/build:Music/gone.wav\n/build:Music/d.wma\n/processor:TextureProcessor\n" +
			"/build:hero.png\n" +
			"/processorParam:ColorKeyColor=0,128,255,255\n/processorParam:GenerateMipmaps=True\n/processorParam:PremultiplyAlpha=False\n" +
			"/processorParam:ResizeToPowerOfTwo=True\n/processorParam:MakeSquare=True\n" +
			"/processorParam:TextureFormat=DxtCompressed\n/build:sky.png\n" +
			"/processorParam:ColorKeyEnabled=False\n/processorParam:MakeSquare=False\n/processorParam:TextureFormat=Color\n" +
			"/build:ui/a.png\n/build:ui/b.png\n",
		"Content/Sounds/a.wav": tone(44100, 10), "Content/Sounds/b.wav": tone(44100, 10), "Content/Sounds/c.wav": tone(44100, 10),
		"Content/Sounds/d.wav": tone(44100, 10), "Content/Sounds/e.mp3": string(placeholder.MP3()), "Content/Sounds/unlisted.wav": tone(8000, 10),
		"Content/Music/a.wav": tone(44100, 10), "Content/Music/b.wav": tone(44100, 10), "Content/Music/c.mp3": string(placeholder.MP3()),
		"Content/Music/lfs.mp3": pointer, "Content/Music/d.wma": "x", "Content/hero.png": red,
		"Content/sky.png": red, "Content/ui/a.png": red, "Content/ui/b.png": red,
	},
	"assets": {
		"assets/hero.png": red, "assets/rock_n.png": normal, "assets/deep/wall_Normal.png": normal, "assets/deep/wall_roughness.png": grey, "assets/brick_nor_gl_1k.png": normal, "assets/FabricNormal.png": normal, "assets/floor_rough.png": red, "assets/sand_rough.png": red,
		"assets/button_n.png": red, "assets/old.blend1": "x", "assets/rock.blend": "x", "assets/.hidden/x.png": red,
		"assets/ui/a.png": red, "assets/ui/b.png": red, "assets/ui/c.png": red, "assets/ui/d.png": red,
		"assets/icons/a.png": large, "assets/icons/b.png": red, "assets/icons/c.png": red, "assets/icons/d.png": red,
		"icon.png": red, "README.md": "# hi", "src/main.c": "int main;", "build/CMakeCache.txt": "not ours",
	},
	"data": {
		"data/a.json": "{}", "data/skins/one.json": "{a:1}", "data/skins/deep/two.json": "[1,]", "data/lone.json": "// c\n1",
		"data/broken.json": "{{{", "data/t.csv": "a;b\n1;2\n", "data/t2.csv": "a\tb\n1\t2\n", "data/t3.csv": "a,b\n1\n", "data/x.toml": "a = 1", "data/y.yaml": "a: 1",
		"data/odd [1].json": "{b:2}", "data/lfs.json": pointer, "data/z.yml": "a: [",
	},
	"everywhere": {
		"one/a.png": red, "one/LICENSE": "x", "two/b.png": red, "two/LICENSE": "y", "two/assets/c.png": red, "two/node_modules/d.png": red,
		"three/project.godot": "x", "three/e.png": red, "three/e.png.import": "[remap]", "three/.godot/f.png": red, "three/g.import": "mine",
		"four/Four.csproj": "x", "four/bin/h.png": red, "four/Game.cs": "x", "four/i.png": red,
	},
	"unity": {
		"Assets/a.png": red, "Assets/a.png.meta": "fileFormatVersion: 2", "Library/a.png": red, "ProjectSettings/x.asset": "x", "Temp/b.png": red,
	},
	"two-roots":  {"assets/a.png": red, "data/b.png": red},
	"clash":      {"assets/a.png": red, "data/A.png": red},
	"one-folder": {"stuff/a.png": red, "stuff/b.ogg": "x", "tools/x.sh": "x"},
	"lfs":        {"assets/a.png": pointer, "assets/b.png": red, ".gitattributes": "*.png filter=lfs diff=lfs merge=lfs -text\n"},
	"empty":      {},
	"shaders": {
		"assets/a.png": red, "assets/shaders/sky.vs": "void main() {}", "assets/shaders/sky.fs": "#version 330\nvoid main() {}", "assets/shaders/common.h": "#define PI 3.14",
		"assets/sky.fs": "uniform vec4 c;\nvoid main() { gl_FragColor = c; }", "assets/tools/Main.fs": "module Main\nopen System\n", "assets/tools/a.h": "#include <stdio.h>\n",
		"assets/mixed/a.frag": "void main() {}", "assets/mixed/x.h": "float2 uv;", "assets/mixed/y.h": "#include <math.h>", "assets/tools/Main.c": "int main(void);",
	},
	"special": {
		"assets/a.png": red, "assets/.my[1]/b.png": red, "assets/s*{a}!/x.h": "float2 uv;", "assets/s*{a}!/y.fs": "void main() {}", "assets/tools/Main.c": "int main(void);", "assets/t/a.h": "#include <stdio.h>",
		"assets/s[2]/y.json": "// c\n1",
	},
	"quotes": {"my \"art\"/a.png": red},
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// TestText compares the file for each kind of project with a golden file, and reads it back.
func TestText(t *testing.T) {
	for name, files := range projects {
		t.Run(name, func(t *testing.T) {
			if (name == "quotes" || name == "special") && runtime.GOOS == "windows" {
				t.Skip("Windows has no such names")
			}
			dir := filepath.Join(t.TempDir(), name)
			os.MkdirAll(dir, 0o777)
			write(t, dir, files)
			p, err := Look(dir)
			if err != nil {
				t.Fatal(err)
			}
			if _, l := project.Parse(project.File, p.Text(), project.Given{}); len(l) > 0 {
				t.Errorf("cannot be read back: %s", l[0])
			}
			golden := filepath.Join("testdata", name+".toml")
			if *update {
				os.WriteFile(golden, p.Text(), 0o666)
			}
			want, _ := os.ReadFile(golden)
			if d := cmp.Diff(string(want), string(p.Text())); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestAtlases: a folder is suggested by its name or that of the one around it, or because it holds many small images that are cut out or
// are not textures of a usual size.
func TestAtlases(t *testing.T) {
	files := map[string]string{}
	add := func(folder string, n, side int) {
		for i := range n {
			files[fmt.Sprintf("assets/%s/%d.png", folder, i)] = picture(side, color.White)
		}
	}
	add("inventory", 20, 48)
	add("few", 19, 48)
	add("grounds", 20, 64)
	add("portraits", 20, 300)
	add("pack/blue-ui", 4, 300)
	add("guitar", 4, 48)
	add("sprites/hero", 4, 64) // two folders in one of sprites
	add("sprites/enemies", 5, 32)
	add("menu/ui", 9, 100) // with one large image
	files["assets/menu/ui/back.png"] = picture(1232, color.White)
	add("gui/backs", 4, 600) // all are large
	add("hud", 7, 48)        // one does not fit a page
	files["assets/hud/sky.png"] = picture(2049, color.White)
	for i := range 8 { // cut out, of sizes that textures have, too
		files[fmt.Sprintf("assets/coins/%d.png", i)] = picture(32, color.NRGBA{200, 200, 0, 0})
		files[fmt.Sprintf("assets/solid/%d.png", i)] = picture(32, color.White)
	}
	for _, name := range []string{"rock.png", "rock_n.png", "rock_ao.png", "rock_rough.png"} { // of a surface
		files["assets/tiles/"+name] = picture(64, color.White)
	}
	// of a model
	files["assets/tiles3d/icons/a.gltf"] = `{"images":[{"uri":"0.png"}],"textures":[{"source":0}],` +
		`"materials":[{"emissiveTexture":{"index":0}}]}`
	add("tiles3d/icons", 4, 64)
	for i := range 4 { // TGA: 18 bytes of header, of which these are true colour, 3 x 2 pixels, 24 bits
		head := "\x00\x00\x02" + strings.Repeat("\x00", 9) + "\x03\x00\x02\x00\x18\x00"
		files[fmt.Sprintf("assets/icons/%d.tga", i)] = head + strings.Repeat("\x80", 18)
	}
	dir := t.TempDir()
	write(t, dir, files)
	p, err := Look(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"coins/", "icons/", "inventory/", "menu/ui/", "pack/blue-ui/", "sprites/enemies/", "sprites/hero/"}
	if !slices.Equal(p.Atlases, want) {
		t.Errorf("%q, want %q", p.Atlases, want)
	}
}

// TestModels: what models use gets rules by that; a glob covers no file that needs something else.
func TestModels(t *testing.T) {
	use := func(slot, uri string) string {
		return fmt.Sprintf(`{"buffers":[{"uri":"a.bin"}],"images":[{"uri":%q}],"textures":[{"source":0}],"materials":[{%q:{"index":0}}]}`,
			uri, slot)
	}
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"assets/a.gltf": use("emissiveTexture", "x_normal.png"), "assets/a.bin": "x", "assets/b/b.gltf": use("emissiveTexture", "y_normal.png"),
		"assets/b/a.bin": "x", "assets/c.bin": "of no model", "assets/d.gltf": use("occlusionTexture", "plain.png"), "assets/broken.gltf": "{",
		"assets/e.gltf": use("emissiveTexture", "ready_normal.dds"), "assets/f.gltf": use("normalTexture", "w_rough.png"),
		"assets/both.gltf": use("normalTexture", "both_rough.png"), "assets/both2.gltf": use("emissiveTexture", "both_rough.png"),
		"assets/x_normal.png": normal, "assets/b/y_normal.png": red, "assets/z_normal.png": normal, "assets/plain.png": red,
		"assets/ready_normal.dds": "x",
		"assets/w_rough.png":      red, "assets/v_rough.png": red, "assets/both_rough.png": red,
		"assets/b/s_metallic_rough.png": grey, "assets/b/t_rough.png": red,
		"data/g.gltf": use("normalTexture", "over.png"), "assets/over.png": red, "data/a.json": "{}",
	})
	p, err := Look(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range p.Rules {
		got = append(got, r.Match+" "+r.Does)
	}
	color, mask, directions := `settings = { use = "color" }`, `settings = { use = "mask" }`, `settings = { use = "normal" }`
	want := []string{
		`a.bin processor = "none"`, `b/a.bin processor = "none"`, // c.bin is content
		"b/t_rough.png " + color, "b/y_normal.png " + color, "v_rough.png " + color, "x_normal.png " + color,
		"plain.png " + mask, "over.png " + directions, "w_rough.png " + directions,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestFound(t *testing.T) {
	look := func(name string) *Plan {
		dir := t.TempDir()
		write(t, dir, projects[name])
		p, err := Look(dir)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	left := []string{"MakeSquare=True of Content/sky.png", "TextureFormat=DxtCompressed of Content/sky.png"}
	if p := look("monogame"); !slices.Equal(p.Left, left) {
		t.Errorf("left %q", p.Left)
	}
	if p, want := look("godot"), []string{"process/channel_remap/alpha=1 of big.png"}; !slices.Equal(p.Left, want) {
		t.Errorf("left %q", p.Left)
	}
	if p := look("assets"); !slices.Equal(p.Outside, []string{"icon.png"}) || p.Output != "kiln-build" {
		t.Errorf("outside %q, output %q", p.Outside, p.Output)
	}
	if p := look("lfs"); p.Pointers != 1 || !p.LFS {
		t.Errorf("%d pointers, LFS %v", p.Pointers, p.LFS)
	}
	p := look("empty")
	if err := p.Write(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(p.Dir, "assets")); err != nil {
		t.Error("no source root was made:", err)
	}
	if err := p.Write(); err == nil {
		t.Error("wrote over the file")
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"kiln.toml": "[project]\nname=\"a\"\n", "file": "x"})
	for _, c := range []struct {
		dir  string
		code diag.Code
	}{{dir, diag.ProjectExists}, {filepath.Join(dir, "no"), diag.SetupFolder}, {filepath.Join(dir, "file"), diag.SetupFolder}} {
		_, err := Look(c.dir)
		var m *diag.Message
		if !errors.As(err, &m) || m.Code != c.code || m.Hint == "" {
			t.Errorf("%s: got %v", c.dir, err)
		}
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "kiln.toml")); !strings.Contains(string(text), `name="a"`) {
		t.Error("the file was changed")
	}
}
