package codegen

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
)

var update = flag.Bool("update", false, "write golden files")

// model has what is awkward: keywords, digits first, accents, other scripts, names that come out alike, text that would end a comment.
func model() Model {
	return Model{Parcels: []Parcel{
		{Name: "preload", Resources: []Resource{
			{3, "sprites/tank.png", "", "texture"},
			{4, "sprites/ui/", "", "atlas"},
			{5, "sprites/ui/", "page-1", "texture"},
			{6, "3d/2nd.bin", "", "copy"},
			{7, "höhle/Straße.png", "", ""},
			{8, "地図", "", ""},
			{9, "a-b.txt", "", ""},
			{10, "a_b.txt", "", ""},
			{11, "a b.txt", "2", ""},
			{12, "x*/y/*z.txt", "", ""},
			{13, `back\`, "", ""},
			{14, "line\nbreak\u202e.txt", "", ""},
			{15, "<b>&.txt", "", ""},
			{16, "level/1/2", "", ""},
			{17, "...", "", ""},
			{18, "ToString", "", ""},
			{19, "preload", "", ""},
			{20, "what??/", "", ""},
			{16777215, "sirGalahad.png", "", ""},
		}},
		{Name: "default", Resources: []Resource{{3, "sprites/tank.png", "", "texture"}, {0, "null", "", ""}}},
		{Name: "string", Resources: []Resource{{1, "class", "", ""}}},
		{Name: "preload-sprites", Resources: []Resource{{2, "tank.png", "", ""}}},
		{Name: "std", Resources: nil},
		{Name: "1up", Resources: []Resource{{21, "end", "", ""}}},
	}}
}

func generate(t *testing.T, language string) string {
	t.Helper()
	b, err := Generate(language, model(), "")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestGolden(t *testing.T) {
	for _, l := range Languages() {
		name, err := FileName(l, "")
		if err != nil {
			t.Fatal(err)
		}
		golden := filepath.Join("testdata", l, name+".golden")
		got := generate(t, l)
		if *update {
			os.MkdirAll(filepath.Dir(golden), 0o777)
			if err := os.WriteFile(golden, []byte(got), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s: %s", l, diff)
		}
	}
}

func TestOrderDoesNotMatter(t *testing.T) {
	m := model()
	slices.Reverse(m.Parcels)
	for _, p := range m.Parcels {
		slices.Reverse(p.Resources)
	}
	for _, l := range Languages() {
		b, err := Generate(l, m, "")
		if err != nil || string(b) != generate(t, l) {
			t.Errorf("%s: %v, or it differs", l, err)
		}
	}
}

func TestGoIsFormatted(t *testing.T) {
	src := generate(t, "go")
	want, err := format.Source([]byte(src))
	if err != nil || src != string(want) {
		t.Errorf("%v: %s", err, cmp.Diff(string(want), src))
	}
}

// TestPrograms lets the language itself say whether the constants are what they should be: each program prints two of them.
func TestPrograms(t *testing.T) {
	thorough.Only(t, "eight compilers take seconds")
	const want = "3 16777215"
	for _, c := range []struct{ language, tool, name, program, file, run string }{
		{"go", "go", "ids/kiln.go", "package main\nimport \"fmt\"\nimport \"m/ids\"\nfunc main() { fmt.Println(kiln.PreloadSpritesTankPng, kiln.PreloadSirGalahadPng) }\n", "main.go",
			"printf 'module m\\n' > go.mod && go run ."},
		{"c", "gcc", "kiln_ids.h", "#include \"kiln_ids.h\"\n#include <stdio.h>\n#include <string.h>\nint main(void) { enum kiln_preload r = KILN_PRELOAD_SPRITES_TANK_PNG; printf(\"%d %d\\n\", r, KILN_PRELOAD_SIR_GALAHAD_PNG); return 0; }\n", "main.c",
			"gcc -std=c99 -pedantic -Wall -Wextra -Werror main.c -o main && ./main"},
		{"cpp", "g++", "kiln.hpp", "#include \"kiln.hpp\"\n#include <iostream>\nint main() { std::cout << kiln::preload::SpritesTankPng << ' ' << kiln::preload::SirGalahadPng << std::endl; }\n", "main.cpp",
			"g++ -std=c++17 -pedantic -Wall -Wextra -Werror main.cpp -o main && ./main"},
		{"csharp", "mcs", "Kiln.cs", "class M { static void Main() { System.Console.WriteLine(Kiln.Preload.SpritesTankPng + \" \" + Kiln.Preload.SirGalahadPng); } }\n", "Main.cs",
			"mcs -warnaserror Main.cs Kiln.cs -out:main.exe && mono main.exe"},
		{"rust", "rustc", "kiln.rs", "mod kiln;\nfn main() { println!(\"{} {}\", kiln::preload::SPRITES_TANK_PNG, kiln::preload::SIR_GALAHAD_PNG); }\n", "main.rs",
			"rustc -D warnings main.rs -o main && ./main"},
		// Without a compiler: what only types need is taken out, and the rest runs.
		{"typescript", "node", "kiln.ts", "import * as kiln from './kiln.mjs';\nconsole.log(kiln.Preload.SpritesTankPng, kiln.Preload.SirGalahadPng);\n", "main.mjs",
			"sed -e '/^export type /d' -e 's/ as const;$/;/' kiln.ts > kiln.mjs && node main.mjs"},
		{"typescript", "tsc", "kiln.ts", "import * as kiln from './kiln';\nconst r: kiln.Preload = kiln.Preload.SpritesTankPng;\nconsole.log(r, kiln.Preload.SirGalahadPng);\ndeclare var console: any;\n", "main.ts",
			"tsc --strict --module commonjs main.ts && node main.js"},
		{"haxe", "haxe", "Kiln.hx", "class Main { static function main() { var r:Kiln.Preload = SPRITES_TANK_PNG; Sys.println((r : Int) + ' ' + (Kiln.Preload.SIR_GALAHAD_PNG : Int)); } }\n", "Main.hx",
			"haxe --main Main --interp"},
		{"lua", "lua5.4", "kiln.lua", "local kiln = require 'kiln'\nprint(kiln.preload.SPRITES_TANK_PNG .. ' ' .. kiln.preload.SIR_GALAHAD_PNG)\n", "main.lua",
			"lua5.4 main.lua"},
	} {
		t.Run(c.language+" "+c.tool, func(t *testing.T) {
			for _, tool := range []string{c.tool, "sh"} {
				if _, err := exec.LookPath(tool); err != nil {
					t.Skipf("%s is not installed: constants for %s are only compared with their golden file", tool, c.language)
				}
			}
			dir := t.TempDir()
			for name, text := range map[string]string{c.name: generate(t, c.language), c.file: c.program} {
				file := filepath.Join(dir, filepath.FromSlash(name))
				os.MkdirAll(filepath.Dir(file), 0o777)
				if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command("sh", "-c", c.run)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
			out, err := cmd.CombinedOutput()
			if err != nil || strings.TrimSpace(string(out)) != want {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// TestBesideRuntime: what kiln.h defines is no constant's name, and both are included together, whatever parcels and assets are called.
func TestBesideRuntime(t *testing.T) {
	header, err := os.ReadFile("../../../kilnrt/c/kiln.h")
	if err != nil {
		t.Fatal(err)
	}
	m := Model{}
	for _, name := range regexp.MustCompile(`\bKILN_[A-Z0-9_]+`).FindAllString(string(header), -1) {
		parcel, asset, ok := strings.Cut(strings.ToLower(strings.TrimPrefix(name, "KILN_")), "_")
		if !ok {
			continue // a constant has two parts at least
		}
		if i := slices.IndexFunc(m.Parcels, func(p Parcel) bool { return p.Name == parcel }); i < 0 {
			m.Parcels = append(m.Parcels, Parcel{Name: parcel, Resources: []Resource{{Asset: asset}}})
		} else if !slices.Contains(m.Parcels[i].Resources, Resource{Asset: asset}) {
			m.Parcels[i].Resources = append(m.Parcels[i].Resources, Resource{Asset: asset})
		}
	}
	m.Parcels = append(m.Parcels, Parcel{Name: "ids", Resources: []Resource{{Asset: "h"}}})
	for _, match := range regexp.MustCompile(`(?m)^(?:typedef .*\*|typedef struct |struct |} )\b?kiln_([a-z0-9_]+)`).FindAllStringSubmatch(string(header), -1) {
		if !slices.ContainsFunc(m.Parcels, func(p Parcel) bool { return p.Name == match[1] }) {
			m.Parcels = append(m.Parcels, Parcel{Name: match[1], Resources: []Resource{{Asset: "a"}}})
		}
	}
	if len(m.Parcels) < 14 {
		t.Errorf("kiln.h is read wrong: %v", m.Parcels)
	}
	constants, err := Generate("c", m, "")
	if err != nil {
		t.Fatal(err)
	}
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("there is no gcc")
	}
	dir := t.TempDir()
	file, err := FileName("c", "")
	if err != nil {
		t.Fatal(err)
	}
	program := "#define KILN_IMPLEMENTATION\n#define KILN_LIVE_IMPLEMENTATION\n#include \"kiln.h\"\n#include \"" + file + "\"\nint main(void) { return 0; }\n"
	for name, text := range map[string][]byte{file: constants, "kiln.h": header, "main.c": []byte(program)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, language := range []string{"c", "c++"} {
		cmd := exec.Command(gcc, "-x", language, "-fsyntax-only", "main.c")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil && !strings.Contains(string(out), "cc1plus") { // which is a package of its own
			t.Errorf("%s: %v: %s", language, err, out)
		}
	}
}

func TestWords(t *testing.T) {
	for path, want := range map[string]string{
		"sprites/tank.png": "sprites tank png",
		"sirGalahad":       "sir Galahad",
		"HTTPServer":       "HTTPServer",
		"höhle":            "hohle",
		"straße":           "stra uDF e",
		"地図":               "u5730 u56F3",
		"a__b--c":          "a b c",
		"...":              "",
		"":                 "",
	} {
		if got := strings.Join(words(path), " "); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}

// TestHelpers: templates can shorten names, and keep short ones apart.
func TestHelpers(t *testing.T) {
	for call, want := range map[string]string{
		`.Asset | base`: "big tank.png", `.Asset | stem`: "big tank", `.Asset | dir`: "sprites", `.Asset | upper`: "SPRITES/BIG TANK.PNG",
		`.Asset | lower`: "sprites/big tank.png", `.Asset | pascal`: "SpritesBigTankPng", `.Asset | camel`: "spritesBigTankPng",
		`.Asset | snake`: "sprites_big_tank_png", `.Asset | capital`: "SPRITES_BIG_TANK_PNG", `.Asset | replace "tank" "car"`: "sprites/big car.png",
		`unique "a" (.Asset | stem | camel)`: "bigTank",
	} {
		m := Model{Parcels: []Parcel{{Name: "p", Resources: []Resource{{ID: 1, Asset: "sprites/big tank.png"}}}}}
		got, err := Generate("lua", m, "{{range .Parcels}}{{range .Constants}}{{"+call+"}}{{end}}{{end}}")
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", call, got, err, want)
		}
	}
	m := Model{Parcels: []Parcel{{Name: "p", Resources: []Resource{{ID: 1, Asset: "a/x.png"}, {ID: 2, Asset: "b/x.png"}}}}}
	got, err := Generate("lua", m, `{{range .Parcels}}{{range .Constants}}{{unique "p" (.Asset | stem)}} {{unique "q" .Type}} {{end}}{{end}}`)
	if err != nil || string(got) != "x  x_2 _2 " {
		t.Errorf("%q, %v", got, err)
	}
	long := `{{$s := "0123456789"}}{{range .Parcels}}` + strings.Repeat(`{{$s = replace "0" $s $s}}{{$s = replace "" $s $s}}`, 6) + "{{end}}"
	if _, err := Generate("lua", m, long); err == nil || !strings.Contains(err.Error(), "more than 1 MiB") {
		t.Errorf("a text that grows: %v", err)
	}
}

func TestOwnTemplate(t *testing.T) {
	got, err := Generate("lua", model(), "{{range .Parcels}}{{.Ident}}={{len .Constants}} {{end}}")
	if err != nil || string(got) != "r_1up=1 default=2 preload=19 preload_sprites=1 std=0 string=1 " {
		t.Errorf("%q, %v", got, err)
	}
	for tmpl, want := range map[string]string{"{{": "unclosed action", "{{.Nothing}}": "Nothing"} {
		if _, err := Generate("go", model(), tmpl); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", tmpl, err)
		}
	}
	if _, err := Generate("cobol", model(), ""); err == nil || !strings.Contains(err.Error(), "go, c, cpp") {
		t.Error(err)
	}
	twice := Model{Parcels: []Parcel{{Name: "p", Resources: []Resource{{ID: 1, Asset: "a"}, {ID: 2, Asset: "a"}}}}}
	if _, err := Generate("go", twice, ""); err == nil {
		t.Error("a resource that is there twice is taken")
	}
}

// FuzzNames: whatever paths there are, names are ASCII, unique and no keyword, and no comment breaks its line.
func FuzzNames(f *testing.F) {
	f.Add("a/b.png", "b", "class")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		m := Model{Package: c, Parcels: []Parcel{{Name: "p", Resources: []Resource{{1, a, b, c}, {2, b, c, a}, {3, c, a, b}}}}}
		for _, l := range languages {
			file, err := l.resolve(m)
			if err != nil {
				return // the same resource twice
			}
			seen := map[string]bool{}
			reserved := newScope(l.reserved)
			for _, k := range file.Parcels[0].Constants {
				ok := k.Ident != "" && !isDigit(k.Ident[0]) && !seen[k.Ident] && !reserved[k.Ident]
				for _, ch := range []byte(k.Ident) {
					ok = ok && (ch == '_' || isDigit(ch) || 'a' <= ch|0x20 && ch|0x20 <= 'z')
				}
				if !ok {
					t.Errorf("%s: %q for %q", l.name, k.Ident, k.Asset)
				}
				if strings.ContainsAny(k.Doc, "\n\r\u2028\u2029\x00") || l.escape == block && strings.Contains(k.Doc, "*/") {
					t.Errorf("%s: comment %q", l.name, k.Doc)
				}
				seen[k.Ident] = true
			}
		}
		if x, y := must(Generate("c", m, "")), must(Generate("c", m, "")); !bytes.Equal(x, y) {
			t.Error("not the same twice")
		}
	})
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(fmt.Sprint(err))
	}
	return b
}
