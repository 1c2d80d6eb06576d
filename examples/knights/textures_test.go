// Package knights tests the textures of this example: their sizes, and their looks after decoding.
package knights

import (
	"bytes"
	"flag"
	"fmt"
	"image"
	"image/png"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln"
	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/internal/media/texture"
)

var update = flag.Bool("update", false, "write docs/textures.png and the table of the README anew")

// textures are the products that are textures, without their extension: pictures, and pages of atlases.
var textures = []string{
	"characters/knight/portrait.png", "characters/paladin/portrait.png", "characters/shared/page.png",
	"textures/ground/grass.png", "textures/ground/planks.png", "textures/ground/stone.png", "textures/ground/stone_n.png",
	"textures/scenery/castle.png", "textures/scenery/sky.png", "textures/title/banner.png",
	"sprites/ui.0", "sprites/knight_run.0",
}

// build builds a copy of the example with a changed project file.
func build(t *testing.T, change func(string) string) (output string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "assets"), os.DirFS("assets")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("kiln.toml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kiln.toml"), []byte(change(string(text))), 0o666); err != nil {
		t.Fatal(err)
	}
	p, err := kiln.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := p.Build(t.Context(), kiln.BuildOptions{Patterns: []string{"**/*.png", "sprites/*/"}})
	if err != nil || len(sum.Messages) > 0 {
		t.Fatal(err, sum.Messages)
	}
	return filepath.Join(dir, "build")
}

func read(t *testing.T, output, platform, asset string) *texture.File {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(output, platform, filepath.FromSlash(asset+".ktx2")))
	if err != nil {
		t.Fatal(err)
	}
	f, err := texture.Open(data, pixel.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// size returns the size of a product in bytes.
func size(t *testing.T, output, platform, asset string) int64 {
	t.Helper()
	st, err := os.Stat(filepath.Join(output, platform, filepath.FromSlash(asset+".ktx2")))
	if err != nil {
		t.Fatal(err)
	}
	return st.Size()
}

// TestTextures builds the example with and without compressed formats. It compares the README's table with the sizes
// and docs/textures.png with the looks.
func TestTextures(t *testing.T) {
	thorough.Only(t, "the example is built with all its textures")
	built := build(t, func(s string) string { return s })
	plain := build(t, strings.NewReplacer(`"bc"`, `"none"`, `"astc"`, `"none"`, `"eacrg11"`, `"rg8"`).Replace)
	var table strings.Builder
	table.WriteString("| texture | pc before | pc | | mobile before | mobile | |\n|---|---:|---:|---|---:|---:|---|\n")
	var sums [4]int64
	for _, asset := range textures {
		n := [4]int64{size(t, plain, "pc", asset), size(t, built, "pc", asset), size(t, plain, "mobile", asset), size(t, built, "mobile", asset)}
		for i, v := range n {
			sums[i] += v
		}
		fmt.Fprintf(&table, "| %s | %d | %d | %s | %d | %d | %s |\n", asset, n[0], n[1], read(t, built, "pc", asset).Format,
			n[2], n[3], read(t, built, "mobile", asset).Format)
	}
	fmt.Fprintf(&table, "| **all** | **%d** | **%d** | %.1f : 1 | **%d** | **%d** | %.1f : 1 |\n", sums[0], sums[1], float64(sums[0])/float64(sums[1]),
		sums[2], sums[3], float64(sums[2])/float64(sums[3]))
	t.Logf("bytes before and after:\n%s", table.String())
	checkTable(t, table.String())
	checkSheet(t, sheet(t, plain, built))
}

// checkTable compares the README's table, or writes it.
func checkTable(t *testing.T, table string) {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	from := strings.Index(page, "| texture | pc before")
	if from < 0 {
		t.Fatal("the README has no table of sizes")
	}
	to := from + strings.Index(page[from:], "\n\n") + 1
	if *update {
		if err := os.WriteFile("README.md", []byte(page[:from]+table+page[to:]), 0o666); err != nil {
			t.Fatal(err)
		}
	} else if page[from:to] != table {
		t.Errorf("the README's table is\n%s; run the test with -update", page[from:to])
	}
}

const (
	cell = 128 // most pixels a side
	gap  = 4
)

// sheet shows for each texture its pixels, those of pc and those of mobile, all at the size of the first.
func sheet(t *testing.T, plain, built string) *pixel.Image {
	t.Helper()
	out := pixel.New(3*(3*cell+4*gap)+gap, 1200)
	for i := 0; i < len(out.Pix); i += 4 {
		copy(out.Pix[i:], []byte{28, 26, 38, 255})
	}
	x, y, row := gap, gap, 0
	for _, asset := range textures {
		images := []*pixel.Image{top(t, read(t, plain, "pc", asset)), top(t, read(t, built, "pc", asset)), top(t, read(t, built, "mobile", asset))}
		w, h := pixel.Fit(images[0].Width, images[0].Height, cell)
		if width := 3*w + 4*gap; x+width > out.Width {
			x, y, row = gap, y+row+2*gap, 0
		}
		for _, m := range images {
			paint(out, pixel.Filter{SRGB: true, Weighted: true}.Resize(m, w, h), x, y)
			x += w + gap
		}
		x, row = x+2*gap, max(row, h)
	}
	return out.Crop(0, 0, out.Width, y+row+gap)
}

// top returns the largest level. For a texture with two channels it computes the third, as a shader does.
func top(t *testing.T, f *texture.File) *pixel.Image {
	t.Helper()
	p, err := f.Picture(0, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if f.Format == "BC5" || f.Format == "EAC RG11" {
		for i := 0; i < len(p.Eight.Pix); i += 4 {
			a, b := float64(p.Eight.Pix[i])/127.5-1, float64(p.Eight.Pix[i+1])/127.5-1
			p.Eight.Pix[i+2] = byte(math.Round(127.5 + 127.5*math.Sqrt(max(0, 1-a*a-b*b))))
		}
	}
	return p.Eight
}

// paint draws an image on the sheet.
func paint(out, m *pixel.Image, x, y int) {
	for j := range m.Height {
		for i := range m.Width {
			s, d := m.Pix[4*(j*m.Width+i):], out.Pix[4*((y+j)*out.Width+x+i):]
			for c := range 3 {
				d[c] = byte((int(s[c])*int(s[3]) + int(d[c])*(255-int(s[3]))) / 255)
			}
		}
	}
}

// checkSheet compares the committed picture with the decoded textures. They need not be equal to the bit, because
// encoders improve.
func checkSheet(t *testing.T, got *pixel.Image) {
	t.Helper()
	const file = "docs/textures.png"
	if *update {
		var b bytes.Buffer
		e := png.Encoder{CompressionLevel: png.BestCompression}
		if err := e.Encode(&b, &image.NRGBA{Pix: got.Pix, Stride: 4 * got.Width, Rect: image.Rect(0, 0, got.Width, got.Height)}); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want, err := pixel.Decode(file, data, pixel.DefaultLimits())
	if err != nil || want.Width != got.Width || want.Height != got.Height {
		t.Fatalf("%d x %d, not %d x %d: %v; run the test with -update", want.Width, want.Height, got.Width, got.Height, err)
	}
	sum := 0.0
	for i, v := range got.Pix {
		d := float64(v) - float64(want.Pix[i])
		sum += d * d
	}
	if psnr := 10 * math.Log10(255*255*float64(len(got.Pix))/max(sum, 1)); psnr < 36 {
		t.Errorf("docs/textures.png is %.1f dB away from what is built; run the test with -update, and look at it", psnr)
	}
}

// TestTexturesAreAll checks that the list has every picture that is not a part of a folder asset.
func TestTexturesAreAll(t *testing.T) {
	err := fs.WalkDir(os.DirFS("assets"), ".", func(name string, d fs.DirEntry, err error) error {
		skip := strings.HasPrefix(name, "sprites/") || strings.HasSuffix(name, ".wip.png") || !strings.HasSuffix(name, ".png")
		if err == nil && !skip && !slices.Contains(textures, name) {
			t.Errorf("%s is not on the sheet", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
