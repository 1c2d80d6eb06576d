package astc

import (
	"fmt"
	"image"
	"image/draw"
	_ "image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/media/codec/block"
)

var benchFootprints = []Footprint{Block4x4, Block6x6, Block8x8}

// BenchmarkEncode measures speed and PSNR of each quality, with two workers.
func BenchmarkEncode(b *testing.B) {
	m := benchImage(b)
	w, h := m.Rect.Dx(), m.Rect.Dy()
	for _, f := range benchFootprints {
		for q, name := range []string{"fast", "normal", "best"} {
			b.Run(fmt.Sprint(f, "/", name), func(b *testing.B) {
				var data []byte
				for b.Loop() {
					var err error
					if data, err = Encode(f, m.Pix, w, h, false, block.Options{Quality: block.Quality(q), Workers: 2}); err != nil {
						b.Fatal(err)
					}
				}
				report(b, f, data, m)
			})
		}
	}
}

// BenchmarkPeer measures astcenc in the same way, including its start and the reading of a PNG.
func BenchmarkPeer(b *testing.B) {
	m := benchImage(b)
	folder := b.TempDir()
	in, out := filepath.Join(folder, "in.png"), filepath.Join(folder, "out.astc")
	w, err := os.Create(in)
	if err != nil {
		b.Fatal(err)
	}
	if err := (&png.Encoder{CompressionLevel: png.NoCompression}).Encode(w, m); err != nil {
		b.Fatal(err)
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	for _, f := range benchFootprints {
		for _, quality := range []string{"fast", "medium", "thorough"} {
			b.Run(fmt.Sprint(f, "/", quality), func(b *testing.B) {
				for b.Loop() {
					astcenc(b, "-cl", in, out, f.String(), "-"+quality, "-j", "2")
				}
				data, err := os.ReadFile(out)
				if err != nil {
					b.Fatal(err)
				}
				im, err := Read(data)
				if err != nil {
					b.Fatal(err)
				}
				report(b, f, im.Blocks, m)
			})
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	m := benchImage(b)
	w, h := m.Rect.Dx(), m.Rect.Dy()
	for _, f := range benchFootprints {
		data, err := Encode(f, m.Pix, w, h, true, block.Options{Quality: block.Fast, Workers: 2})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(f.String(), func(b *testing.B) {
			for b.Loop() {
				if _, err := Decode(f, data, w, h, true); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(w*h*b.N)/1e6/b.Elapsed().Seconds(), "MPix/s")
		})
	}
}

// BenchmarkTables measures the time to build a footprint's tables, which its first block needs.
func BenchmarkTables(b *testing.B) {
	for _, f := range []Footprint{Block4x4, Block8x8, Block12x12} {
		b.Run(f.String(), func(b *testing.B) {
			for b.Loop() {
				newPlan(newTable(f))
			}
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)*float64(time.Second/time.Millisecond), "ms")
		})
	}
}

func report(b *testing.B, f Footprint, data []byte, m *image.NRGBA) {
	w, h := m.Rect.Dx(), m.Rect.Dy()
	out, err := Decode(f, data, w, h, false)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(w*h*b.N)/1e6/b.Elapsed().Seconds(), "MPix/s")
	b.ReportMetric(psnr(b, m.Pix, out), "dB")
}

// benchImage returns the photograph in KILN_PHOTO, a texture of the corpus, or a generated image.
func benchImage(b *testing.B) *image.NRGBA {
	file := os.Getenv("KILN_PHOTO")
	if corpus := os.Getenv("KILN_CORPUS"); file == "" && corpus != "" {
		file = filepath.Join(corpus, "raylib-cc0/examples/textures/resources/explosion.png")
	}
	const side = 1024
	out := image.NewNRGBA(image.Rect(0, 0, side, side))
	if file == "" {
		b.Log("KILN_PHOTO and KILN_CORPUS are not set: a picture that was made up")
		copy(out.Pix, picture(side, side, "alpha"))
		return out
	}
	r, err := os.Open(file)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	m, _, err := image.Decode(r)
	if err != nil {
		b.Fatal(err)
	}
	at := m.Bounds().Min.Add(image.Pt(max(m.Bounds().Dx()-side, 0)/2, max(m.Bounds().Dy()-side, 0)/2))
	draw.Draw(out, out.Rect, m, at, draw.Src)
	return out
}
