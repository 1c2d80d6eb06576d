package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/kiln-pipeline/kiln/internal/cli"
	"github.com/kiln-pipeline/kiln/internal/media/role"
	"github.com/kiln-pipeline/kiln/internal/processors"
)

// looks are how a picture may look, whatever its name.
var looks = map[string]func(x, y int) color.NRGBA{
	"colours":    func(x, y int) color.NRGBA { return color.NRGBA{uint8(200 - x), uint8(20 + 4*y), 10, 255} },
	"directions": func(x, y int) color.NRGBA { return color.NRGBA{uint8(124 + x%8), uint8(124 + y%8), 254, 255} },
	"grey":       func(x, y int) color.NRGBA { return color.NRGBA{uint8(8 * x), uint8(8 * x), uint8(8 * x), 255} },
}

// TestInitThenBuild makes random projects of models and pictures: names of all conventions on pictures that look and are used like
// anything. Whatever `kiln init` writes, the next build has nothing to say against it, and no buffer of a model is in its output.
func TestInitThenBuild(t *testing.T) {
	for seed := range uint64(thorough.Of(4, 40)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			dir := t.TempDir()
			randomModels(t, dir, rand.New(rand.NewPCG(seed, 1)))
			runQuiet(t, dir, "init")
			for _, m := range messagesOf(t, runQuiet(t, dir, "build")) {
				t.Errorf("after init: %s %s:%s", m.Code, m.File, m.Text)
			}
			if files := built(t, dir, ".bin"); !slices.Equal(files, []string{"build/pc/loose.bin"}) {
				t.Errorf("the output has %q", files)
			}
			if t.Failed() {
				text, _ := os.ReadFile(filepath.Join(dir, "kiln.toml"))
				t.Logf("%s", text)
			}
		})
	}
}

// randomModels writes a project without kiln.toml. No picture is used in two ways: that needs two pictures, and is reported.
func randomModels(t *testing.T, dir string, r *rand.Rand) {
	put := func(name string, data []byte) {
		file := filepath.Join(dir, "assets", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var words []string
	for _, use := range role.All {
		words = append(append(words, role.Words(use)...), role.Letters[use]...)
	}
	folders := []string{"models", "models/textures", "art/2d", "art"}
	things, separators := []string{"rock", "T_Rock", "Chair_01", "metal", "", "hero"}, []string{"_", "-", "", "."}
	var byPurpose [role.Purposes][]string
	made := map[string]bool{}
	for range 60 {
		word := words[r.IntN(len(words))]
		if r.IntN(3) == 0 {
			word = strings.ToUpper(word[:1]) + word[1:]
		}
		name := path.Join(folders[r.IntN(len(folders))], things[r.IntN(len(things))]+separators[r.IntN(len(separators))]+word+
			[]string{"", "", "_2k", "-02"}[r.IntN(4)]+".png")
		if made[strings.ToLower(name)] || path.Base(name)[0] == '.' { // hidden
			continue
		}
		made[strings.ToLower(name)] = true
		put(name, drawn([]string{"colours", "directions", "grey"}[r.IntN(3)]))
		if p := role.Purpose(r.IntN(int(role.Purposes) + 1)); p < role.Purposes {
			byPurpose[p] = append(byPurpose[p], name)
		}
	}
	slots := [role.Purposes][]string{
		{`"pbrMetallicRoughness":{"baseColorTexture":{"index":0}}`, `"emissiveTexture":{"index":0}`}, {`"normalTexture":{"index":0}`},
		{`"occlusionTexture":{"index":0}`, `"pbrMetallicRoughness":{"metallicRoughnessTexture":{"index":0}}`},
	}
	n := 0
	for p, names := range byPurpose {
		for _, name := range names {
			model := path.Join(folders[r.IntN(len(folders))], fmt.Sprintf("m%d.gltf", n))
			n++
			uri, err := filepath.Rel(path.Dir(model), name)
			if err != nil {
				t.Fatal(err)
			}
			put(strings.TrimSuffix(model, ".gltf")+".bin", make([]byte, 4))
			put(model, fmt.Appendf(nil, `{"asset":{"version":"2.0"},"buffers":[{"uri":%q,"byteLength":4}],"images":[{"uri":%q}],`+
				`"textures":[{"source":0}],"materials":[{%s}]}`, path.Base(strings.TrimSuffix(model, ".gltf"))+".bin",
				filepath.ToSlash(uri), slots[p][r.IntN(len(slots[p]))]))
		}
	}
	put("loose.bin", []byte("of no model"))
}

func drawn(look string) []byte {
	m := image.NewNRGBA(image.Rect(0, 0, 16, 16))
	for i := range 256 {
		m.SetNRGBA(i%16, i/16, looks[look](i%16, i/16))
	}
	var b bytes.Buffer
	png.Encode(&b, m)
	return b.Bytes()
}

type messageLine struct{ Type, Severity, Code, File, Text string }

func messagesOf(t *testing.T, out string) (list []messageLine) {
	for line := range strings.Lines(out) {
		var m messageLine
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		if m.Type == "message" && m.Severity != "note" {
			list = append(list, m)
		}
	}
	return list
}

// runQuiet runs a command that must succeed, and returns its JSON.
func runQuiet(t *testing.T, dir string, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	st := cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }}
	cfg := cli.Config{Processors: processors.All(), Version: cli.Version{Number: "test"}}
	code := cli.Main(context.Background(), append(args, "-C", dir, "--json"), st, cfg)
	if code != 0 {
		t.Fatalf("kiln %s: exit code %d: %+v\n%s", strings.Join(args, " "), code, messagesOf(t, out.String()), errs.String())
	}
	return out.String()
}

// built returns the files of an extension in the output.
func built(t *testing.T, dir, ext string) (files []string) {
	err := fs.WalkDir(os.DirFS(dir), "build", func(p string, _ fs.DirEntry, err error) error {
		if path.Ext(p) == ext {
			files = append(files, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
