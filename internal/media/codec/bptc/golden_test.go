package bptc

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"image"
	"image/draw"
	_ "image/png"
	"math"
	mathbits "math/bits"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/block"
	"github.com/kiln-pipeline/kiln/internal/media/codec/hdr"
)

var update = flag.Bool("update", false, "write the goldens")

// The golden file has the quality, the number of blocks of each mode, and the hash of the bytes for generated images. These
// must be the same on every machine.
func TestEncoded(t *testing.T) {
	var got strings.Builder
	rgba, shine := picture(128, 96), light(128, 96)
	for q, name := range qualities {
		o := block.Options{Quality: block.Quality(q), Workers: 2}
		data, back := encodeBC7(t, rgba, 128, 96, o)
		var modes [8]int
		for i := 0; i < len(data); i += 16 {
			modes[mathbits.TrailingZeros8(data[i])]++
		}
		fmt.Fprintf(&got, "bc7 %-6s %.2f dB RGBA, modes %v, %x\n", name, decibels(rgba, back, 0, 4), modes, sha256.Sum256(data))
	}
	for _, signed := range []bool{false, true} {
		for q, name := range qualities {
			data, back := encodeBC6H(t, shine, 128, 96, signed, block.Options{Quality: block.Quality(q), Workers: 2})
			var modes [14]int
			for i := 0; i < len(data); i += 16 {
				modes[numbered()[data[i]&31]]++
			}
			fmt.Fprintf(&got, "bc6h signed=%-5v %-6s %.4f stops, modes %v, %x\n", signed, name, stops(shine, back), modes, sha256.Sum256(data))
		}
	}
	const name = "testdata/encoded.txt"
	if *update {
		if err := os.WriteFile(name, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := read(t, "encoded.txt"); got.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}

// corpus returns the path of a file in the corpus, or skips the test.
func corpus(t testing.TB, file string) string {
	t.Helper()
	root := os.Getenv("KILN_CORPUS")
	if root == "" {
		t.Skip("KILN_CORPUS is not set: no real images")
	}
	return filepath.Join(root, file)
}

const square = "raylib-cc0/examples/models/resources/dresden_square_1k.hdr"

// exposed returns a photograph of a square at night: its light, and an 8-bit version.
func exposed(t testing.TB) (light []float32, rgba []byte, width, height int) {
	t.Helper()
	data, err := os.ReadFile(corpus(t, square))
	if err != nil {
		t.Fatal(err)
	}
	h, light, err := hdr.Decode(data, 1<<22)
	if err != nil {
		t.Fatal(err)
	}
	rgba = make([]byte, len(light))
	for i, v := range light {
		rgba[i] = 255
		if i%4 < 3 {
			rgba[i] = byte(min(255, 255*math.Pow(max(0, float64(v)), 1/2.2)+0.5))
		}
	}
	return light, rgba, h.Width, h.Height
}

func decodePNG(t testing.TB, file string) (rgba []byte, width, height int) {
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
	size := m.Bounds().Size()
	out := image.NewNRGBA(image.Rect(0, 0, size.X, size.Y))
	draw.Draw(out, out.Rect, m, m.Bounds().Min, draw.Src)
	return out.Pix, size.X, size.Y
}

// BenchmarkEncode measures the speed, and the quality in decibels, for a photograph of the corpus, a sheet of sprites with
// alpha, a page of a skin, and the image in KILN_PHOTO.
func BenchmarkEncode(b *testing.B) {
	run := func(name string, load func(b *testing.B) ([]byte, int, int)) {
		for q, quality := range qualities {
			b.Run("bc7/"+name+"/"+quality, func(b *testing.B) {
				rgba, w, h := load(b)
				o := block.Options{Quality: block.Quality(q), Workers: 2}
				for b.Loop() {
					if _, err := EncodeBC7(rgba, w, h, o); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(w*h*b.N)/1e6/b.Elapsed().Seconds(), "MPix/s")
				_, back := encodeBC7(b, rgba, w, h, o)
				b.ReportMetric(decibels(rgba, back, 0, 3), "dB-RGB")
				b.ReportMetric(decibels(rgba, back, 0, 4), "dB-RGBA")
			})
		}
	}
	file := func(path string) func(b *testing.B) ([]byte, int, int) {
		return func(b *testing.B) ([]byte, int, int) { return decodePNG(b, corpus(b, path)) }
	}
	run("square", func(b *testing.B) ([]byte, int, int) { _, rgba, w, h := exposed(b); return rgba, w, h })
	run("explosion", file("raylib-cc0/examples/textures/resources/explosion.png"))
	run("skin", file("gdx-skins/arcade/skin/arcade-ui.png"))
	if photo := os.Getenv("KILN_PHOTO"); photo != "" {
		run("photo", func(b *testing.B) ([]byte, int, int) { return decodePNG(b, photo) })
	}
	for q, quality := range qualities {
		b.Run("bc6h/square/"+quality, func(b *testing.B) {
			light, _, w, h := exposed(b)
			o := block.Options{Quality: block.Quality(q), Workers: 2}
			for b.Loop() {
				if _, err := EncodeBC6H(light, w, h, false, o); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(w*h*b.N)/1e6/b.Elapsed().Seconds(), "MPix/s")
			_, back := encodeBC6H(b, light, w, h, false, o)
			b.ReportMetric(stops(light, back), "stops")
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	b.Run("bc7", func(b *testing.B) {
		data := read(b, "modes.bc7")
		for b.Loop() {
			if _, err := DecodeBC7(data, 64, 64); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(64*64*float64(b.N)/1e6/b.Elapsed().Seconds(), "MPix/s")
	})
	b.Run("bc6h", func(b *testing.B) {
		data := read(b, "modes.bc6h")
		for b.Loop() {
			if _, err := DecodeBC6H(data, 64, 64, false); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(64*64*float64(b.N)/1e6/b.Elapsed().Seconds(), "MPix/s")
	})
}

// A photograph reaches the documented quality.
func TestPhotograph(t *testing.T) {
	light, rgba, w, h := exposed(t)
	for q, least := range []float64{block.Fast: 41.8, block.Normal: 42.9} {
		_, back := encodeBC7(t, rgba, w, h, block.Options{Quality: block.Quality(q), Workers: 2})
		if got := decibels(rgba, back, 0, 3); got < least {
			t.Errorf("quality %d: %.2f dB RGB, want at least %.1f", q, got, least)
		}
	}
	_, back := encodeBC6H(t, light, w, h, false, block.Options{Quality: block.Normal, Workers: 2})
	if got := stops(light, back); got > 0.035 {
		t.Errorf("BC6H: %.4f stops", got)
	}
}
