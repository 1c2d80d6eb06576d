package etc2

import (
	"image"
	"image/draw"
	_ "image/jpeg"
	_ "image/png"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/block"
)

// open reads an image file, and cuts a larger image to 1024x1024 pixels from its middle.
func open(t testing.TB, file string) (pix []byte, width, height int) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, _, err := image.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	b := m.Bounds()
	width, height = min(b.Dx(), 1024), min(b.Dy(), 1024)
	n := image.NewNRGBA(image.Rect(0, 0, width, height))
	draw.Draw(n, n.Rect, m, b.Min.Add(image.Pt((b.Dx()-width)/2, (b.Dy()-height)/2)), draw.Src)
	return n.Pix, width, height
}

// textures are files of the corpus: drawn, painted, effects and interface, with alpha and without.
var textures = []string{
	"gdx-skins/arcade/skin/arcade-ui.png",
	"gdx-skins/glassy/skin/glassy-ui.png",
	"raylib-cc0/examples/models/resources/models/iqm/guytex.png",
	"raylib-cc0/examples/textures/resources/explosion.png",
	"kenney-3d-platformer/sprites/skybox.png",
}

// TestCorpus checks the quality on real textures, in dB over the channels of the format, with a margin of 0.2.
func TestCorpus(t *testing.T) {
	corpus := os.Getenv("KILN_CORPUS")
	if corpus == "" {
		t.Skip("KILN_CORPUS is not set: no real textures are encoded")
	}
	for i, want := range [][2]float64{{42.5, 44.6}, {46.9, 48.0}, {46.5, 47.1}, {39.4, 39.7}, {52.9, 53.0}} {
		pix, w, h := open(t, filepath.Join(corpus, textures[i]))
		for q, least := range want {
			_, back := encodes(t, RGBA8, pix, w, h, block.Quality(q))
			got := psnr(pix, back, used(RGBA8))
			t.Logf("%s, quality %d: %.2f dB", textures[i], q, got)
			if got < least {
				t.Errorf("%s, quality %d: %.2f dB, and it was %.2f", textures[i], q, got, least)
			}
		}
	}
}

// BenchmarkEncode uses all cores, and reports dB over the channels of the format. KILN_PHOTO names a photograph to encode as
// well.
func BenchmarkEncode(b *testing.B) {
	files := map[string]string{"photo": os.Getenv("KILN_PHOTO")}
	if corpus := os.Getenv("KILN_CORPUS"); corpus != "" {
		for _, name := range textures {
			files[strings.TrimSuffix(filepath.Base(name), ".png")] = filepath.Join(corpus, name)
		}
	}
	for name, file := range files {
		pix, w, h := scene(1024, 1024), 1024, 1024
		if file != "" {
			pix, w, h = open(b, file)
		} else {
			name = "scene"
		}
		for _, f := range []Format{RGB8, RGBA8, R11, RG11} {
			for _, q := range qualities {
				b.Run(name+"/"+f.String()+"/"+[]string{"fast", "normal", "best"}[q], func(b *testing.B) {
					var out []byte
					for b.Loop() {
						out, _ = Encode(f, pix, w, h, block.Options{Quality: q, Workers: runtime.GOMAXPROCS(0)})
					}
					back, err := Decode(f, out, w, h)
					if err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(psnr(pix, back, used(f)), "dB")
					b.ReportMetric(float64(w*h)*float64(b.N)/1e6/b.Elapsed().Seconds(), "MPix/s")
				})
			}
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	pix := scene(1024, 1024)
	for f := range formats {
		b.Run(f.String(), func(b *testing.B) {
			data, err := Encode(f, pix, 1024, 1024, block.Options{Quality: block.Fast, Workers: runtime.GOMAXPROCS(0)})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := Decode(f, data, 1024, 1024); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*1.048576/b.Elapsed().Seconds(), "MPix/s")
		})
	}
}
