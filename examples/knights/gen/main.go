// Command gen draws the knights example: its pictures, its models with the run that they share, and its sounds.
// Everything is computed from formulas and one palette, so that the same command gives the same files:
//
//	go run ./examples/knights/gen             all files below assets that are drawn
//	go run ./examples/knights/gen -contact    and docs/contact.png
//	go run ./examples/knights/gen -stride 1.3 a longer stride in characters/shared/run.bin
//
// Text files (rules, tables, dialogue) are written by hand and not changed.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	dir := flag.String("C", "examples/knights", "the example's folder")
	contact := flag.Bool("contact", false, "draw docs/contact.png too")
	stride := flag.Float64("stride", 1, "how far the run of the models strides; sprites keep theirs")
	flag.Parse()
	if err := generate(*dir, *stride, *contact); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func generate(dir string, stride float64, contact bool) error {
	files := drawings()
	files["assets/characters/shared/run.bin"] = runBuffer(stride)
	if contact {
		files["docs/contact.png"] = encode(contactSheet())
	}
	return write(dir, files)
}

// write does not write files that are unchanged, so that Kiln need not read them again.
func write(dir string, files map[string][]byte) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if old, err := os.ReadFile(path); err == nil && same(name, old, files[name]) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, files[name], 0o644); err != nil {
			return err
		}
		fmt.Println("wrote", filepath.ToSlash(path))
	}
	return nil
}

// drawings returns the pictures, the models and the sounds by their paths in the example.
func drawings() map[string][]byte {
	files := sounds()
	picture := func(name string, m image.Image) { files["assets/"+name+".png"] = encode(m) }

	page := texturePage()
	picture("characters/shared/page", page.image())
	for _, hero := range []struct {
		model *model
		glow  colours
	}{{knight(), dusky}, {paladin(), dawn}} {
		folder := "characters/" + hero.model.name + "/"
		text, own := writeModel(hero.model)
		files["assets/"+folder+hero.model.name+".gltf"] = text
		files["assets/"+folder+hero.model.name+".bin"] = own
		picture(folder+"portrait", portrait(hero.model, page, hero.glow).image())
	}
	for i, frame := range runFrames(knight(), page, 8) {
		picture(fmt.Sprintf("sprites/knight_run/run_%d", i), frame.image())
	}
	for name, icon := range icons() {
		picture("sprites/ui/"+name, icon.image())
	}
	for name, c := range map[string]*canvas{
		"scenery/sky":      sky(),
		"scenery/castle":   castle(),
		"scenery/moon.wip": moon(),
		"ground/stone":     stoneTile(),
		"ground/grass":     grassTile(),
		"ground/planks":    planksTile(),
		"title/banner":     banner(),
	} {
		picture("textures/"+name, c.image())
	}
	picture("textures/ground/stone_n", stoneNormals())
	return files
}

func encode(m image.Image) []byte {
	var b bytes.Buffer
	e := png.Encoder{CompressionLevel: png.BestCompression}
	if err := e.Encode(&b, m); err != nil {
		panic(err) // a buffer returns no errors
	}
	return b.Bytes()
}

// same compares pictures by their pixels, because PNG compression may change between releases of Go.
func same(name string, a, b []byte) bool {
	if !strings.HasSuffix(name, ".png") {
		return bytes.Equal(a, b)
	}
	var flat [2]*image.NRGBA
	for i, data := range [][]byte{a, b} {
		m, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			return false
		}
		flat[i] = image.NewNRGBA(m.Bounds())
		draw.Draw(flat[i], m.Bounds(), m, m.Bounds().Min, draw.Src)
	}
	return flat[0].Rect == flat[1].Rect && bytes.Equal(flat[0].Pix, flat[1].Pix)
}
