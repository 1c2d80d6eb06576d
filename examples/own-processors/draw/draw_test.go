package main

import (
	"image"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/kiln-pipeline/kiln"
	"github.com/kiln-pipeline/kiln/examples/own-processors/tools/tilemap"
)

func readPNG(t *testing.T, file string) *image.NRGBA {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	out := image.NewNRGBA(m.Bounds())
	draw.Draw(out, out.Rect, m, image.Point{}, draw.Src)
	return out
}

func same(a, b *image.NRGBA) bool { return a.Rect == b.Rect && string(a.Pix) == string(b.Pix) }

// TestPictures checks that the sheet and the picture in the README are those that this program draws from Kiln's
// output.
func TestPictures(t *testing.T) {
	if !same(readPNG(t, filepath.Join("..", sheetFile)), sheet()) {
		t.Errorf("%s is another sheet: draw it again", sheetFile)
	}
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "assets"), os.DirFS("../assets")); err != nil {
		t.Fatal(err)
	}
	const toml = "[project]\nname = \"map\"\n[platforms.pc]\n[[rules]]\nmatch = \"go/*.map\"\nprocessor = \"tilemap\"\n"
	if err := os.WriteFile(filepath.Join(dir, "kiln.toml"), []byte(toml), 0o666); err != nil {
		t.Fatal(err)
	}
	p, err := kiln.Open(dir, kiln.With(tilemap.New()))
	if err != nil {
		t.Fatal(err)
	}
	if s, err := p.Build(t.Context(), kiln.BuildOptions{Patterns: []string{"go/**"}}); err != nil || s.Failed > 0 {
		t.Fatal(err, s.Messages)
	}
	tiles, err := os.ReadFile(filepath.Join(dir, "build/pc/go/clearing.map.tiles"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := layOut(tiles, sheet(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if !same(readPNG(t, "../docs/map.png"), m) {
		t.Error("docs/map.png is another picture: draw it again")
	}
	if _, err := layOut(tiles[:len(tiles)-1], sheet(), 1); err == nil {
		t.Error("half a map is drawn")
	}
}
