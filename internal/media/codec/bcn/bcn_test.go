package bcn

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/draw"
	_ "image/jpeg"
	_ "image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/block"
)

var update = flag.Bool("update", false, "write the goldens")

var (
	written   = []Format{BC1, BC1A, BC3, BC4, BC5}
	qualities = []block.Quality{block.Fast, block.Normal, block.Best}
)

// channels returns the channels that a format keeps, apart from BC1A's alpha, which is all or nothing.
func channels(f Format) []int {
	return map[Format][]int{BC1: {0, 1, 2}, BC1A: {0, 1, 2}, BC3: {0, 1, 2, 3}, BC4: {0}, BC5: {0, 1}}[f]
}

// picture returns a gradient with a ring and some noise; its alpha fades from left to right.
func picture(w, h int) []byte {
	r := rand.New(rand.NewPCG(3, 4))
	pix := make([]byte, 0, 4*w*h)
	for y := range h {
		for x := range w {
			red, green, blue := 20+3*x%220, 30+5*y%200, 128+2*x%100-3*y%100
			if d := (x-9)*(x-9) + (y-7)*(y-7); d > 20 && d < 50 {
				red, green, blue = 250-red/4, 60+green/4, 20
			}
			n := r.IntN(9)
			pix = append(pix, byte(min(255, red+n)), byte(min(255, green+n)), byte(min(255, blue+n)), byte(min(255, 80+9*x)))
		}
	}
	return pix
}

func noise(w, h int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 0))
	pix := make([]byte, 4*w*h)
	for i := range pix {
		pix[i] = byte(r.Uint32())
	}
	return pix
}

func encode(t testing.TB, f Format, pix []byte, w, h int, o block.Options) (data, back []byte) {
	t.Helper()
	data, err := Encode(f, pix, w, h, o)
	if err != nil {
		t.Fatal(err)
	}
	back, err = Decode(f, data, w, h)
	if err != nil {
		t.Fatal(err)
	}
	return data, back
}

// squares returns the sum of squared errors in the channels that a format keeps.
func squares(f Format, a, b []byte) (sum int) {
	for _, c := range channels(f) {
		for i := c; i < len(a); i += 4 {
			d := int(a[i]) - int(b[i])
			sum += d * d
		}
	}
	return sum
}

func decibels(f Format, a, b []byte) float64 {
	return 10 * math.Log10(255*255*float64(len(a)/4*len(channels(f)))/float64(squares(f, a, b)))
}

// An image of any size is restored, except for noise.
func TestEverySize(t *testing.T) {
	least := map[Format]float64{BC1: 25, BC1A: 25, BC3: 26, BC4: 33, BC5: 33}
	for _, f := range written {
		for _, q := range qualities {
			for w := 1; w <= 17; w++ {
				for h := 1; h <= 17; h++ {
					pix := picture(w, h)
					if f == BC1A { // transparent pixels have no colour
						for i := 3; i < len(pix); i += 4 {
							pix[i] |= 128
						}
					}
					data, back := encode(t, f, pix, w, h, block.Options{Quality: q})
					if want := (w + 3) / 4 * ((h + 3) / 4) * f.BlockBytes(); len(data) != want {
						t.Fatalf("%v %dx%d: %d bytes, want %d", f, w, h, len(data), want)
					}
					if got := decibels(f, pix, back); got < least[f] {
						t.Errorf("%v %dx%d, quality %d: %.1f dB, want %.0f", f, w, h, q, got, least[f])
					}
				}
			}
		}
	}
}

// A higher quality gives a smaller error, for a smooth image and for noise, the worst case.
func TestQualities(t *testing.T) {
	for name, pix := range map[string][]byte{"picture": picture(64, 64), "noise": noise(64, 64, 1)} {
		for i := 3; i < len(pix); i += 4 {
			pix[i] |= 128
		}
		for _, f := range written {
			before := 0.0
			for _, q := range qualities {
				_, back := encode(t, f, pix, 64, 64, block.Options{Quality: q})
				got := decibels(f, pix, back)
				if got <= before {
					t.Errorf("%v of %s, quality %d: %.3f dB, after %.3f", f, name, q, got, before)
				}
				before = got
			}
		}
	}
	picture := picture(4, 4)
	best, _ := encode(t, BC1, picture, 4, 4, block.Options{Quality: block.Best})
	if beyond, _ := encode(t, BC1, picture, 4, 4, block.Options{Quality: 99}); !bytes.Equal(best, beyond) {
		t.Error("a quality beyond the best is not the best")
	}
}

// The encoder is at least as good as libsquish 1.15 on textures of games: Fast as its range fit, Normal and Best as its
// cluster fit, and BC5 as its only BC5 encoder.
func TestCorpus(t *testing.T) {
	corpus := os.Getenv("KILN_CORPUS")
	if corpus == "" {
		t.Skip("KILN_CORPUS names no folder of game content")
	}
	for _, tt := range []struct {
		file              string
		fit, cluster, bc5 float64 // dB
	}{
		{"raylib-cc0/examples/textures/resources/explosion.png", 35.18, 37.87, 46.35},
		{"raylib-cc0/examples/models/resources/models/iqm/guytex.png", 43.90, 46.05, 54.92},
		{"gdx-skins/arcade/skin/arcade-ui.png", 38.46, 39.37, 48.48},
	} {
		pix, w, h := load(t, filepath.Join(corpus, tt.file))
		for _, q := range qualities {
			want := map[Format]float64{BC1: tt.cluster, BC5: tt.bc5}
			if q == block.Fast {
				want[BC1] = tt.fit
			}
			for f, least := range want {
				_, back := encode(t, f, pix, w, h, block.Options{Quality: q, Workers: 2})
				if got := decibels(f, pix, back); got < least {
					t.Errorf("%v of %s, quality %d: %.2f dB, want %.2f", f, tt.file, q, got, least)
				}
			}
		}
	}
}

func TestWorkers(t *testing.T) {
	pix := append(picture(61, 40), noise(61, 37, 2)...)
	for _, f := range written {
		for _, q := range qualities {
			one, _ := encode(t, f, pix, 61, 77, block.Options{Quality: q, Workers: 1})
			for _, n := range []int{2, 7} {
				if many, _ := encode(t, f, pix, 61, 77, block.Options{Quality: q, Workers: n}); !bytes.Equal(one, many) {
					t.Errorf("%v, quality %d: %d workers write other bytes", f, q, n)
				}
			}
		}
	}
}

func TestEncodeRefused(t *testing.T) {
	for _, tt := range []struct {
		f             Format
		n             int
		width, height int
		want          error
	}{
		{BC2, 64, 4, 4, ErrFormat}, {BC4S, 64, 4, 4, ErrFormat}, {BC5S, 64, 4, 4, ErrFormat}, {formats, 64, 4, 4, ErrFormat},
		{BC1, 0, 4, 0, ErrSize}, {BC1, 0, -4, 4, ErrSize}, {BC1, 4 * (MaxSide + 1), MaxSide + 1, 1, ErrSize},
		{BC1, 63, 4, 4, ErrLength}, {BC1, 65, 4, 4, ErrLength}, {BC1, 0, MaxSide, MaxSide, ErrLength},
	} {
		if _, err := Encode(tt.f, make([]byte, tt.n), tt.width, tt.height, block.Options{}); !errors.Is(err, tt.want) {
			t.Errorf("%v of %d x %d, %d bytes: %v, want %v", tt.f, tt.width, tt.height, tt.n, err, tt.want)
		}
	}
}

// The golden file has the bits of blocks: a change of the bits changes every texture of every project.
func TestGolden(t *testing.T) {
	pix := picture(10, 7)
	for i := range 40 {
		pix[4*(69-i)+3] = byte(6 * i) // transparent from the lower right on
	}
	for _, f := range []Format{BC1A, BC3, BC5} {
		t.Run(f.String(), func(t *testing.T) {
			data, _ := encode(t, f, pix, 10, 7, block.Options{Quality: block.Normal})
			var b strings.Builder
			for i := 0; i < len(data); i += 8 {
				kind := "color"
				if f == BC5 || f == BC3 && i%16 == 0 {
					kind = "channel"
				}
				fmt.Fprintf(&b, "%d %s %s\n", i/f.BlockBytes(), kind, describe(kind, data[i:i+8]))
			}
			file := filepath.Join("testdata", strings.ToLower(f.String())+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if b.String() != string(want) {
				t.Errorf("got:\n%swant:\n%s", b.String(), want)
			}
		})
	}
}

// describe formats 8 bytes of a block as endpoints and indices, row by row.
func describe(kind string, data []byte) string {
	v := binary.LittleEndian.Uint64(data)
	ends, bits, indices := fmt.Sprintf("%3d %3d", data[0], data[1]), 3, v>>16
	if kind == "color" {
		ends, bits, indices = fmt.Sprintf("%04x %04x", uint16(v), uint16(v>>16)), 2, v>>32
	}
	for i := range 16 {
		if i%4 == 0 {
			ends += " "
		}
		ends += fmt.Sprint(indices >> (bits * i) & (1<<bits - 1))
	}
	return ends
}

// FuzzEncode encodes one block of the given colours; few or repeated colours could cause divisions by zero.
func FuzzEncode(f *testing.F) {
	f.Add(uint8(0), uint8(1), []byte{1, 2, 3, 255, 200, 100, 0, 0})
	f.Add(uint8(1), uint8(2), []byte{0, 0, 0, 255, 255, 255, 255, 255, 0, 0, 0, 127})
	f.Add(uint8(4), uint8(1), noise(4, 4, 5))
	f.Fuzz(func(t *testing.T, format, quality uint8, colors []byte) {
		if len(colors) < 4 {
			return
		}
		pix := make([]byte, 64)
		for i := range pix {
			pix[i] = colors[(i/4*4)%(len(colors)/4*4)+i%4]
		}
		k := written[int(format)%len(written)]
		_, back := encode(t, k, pix, 4, 4, block.Options{Quality: block.Quality(quality % 3)})
		if k == BC1A {
			for i := 3; i < 64; i += 4 {
				if (pix[i] >= 128) != (back[i] == 255) {
					t.Fatalf("alpha %d came back as %d", pix[i], back[i])
				}
				if pix[i] < 128 {
					copy(back[i-3:i], pix[i-3:i])
				}
			}
		}
		// The limit is the error of one colour for all pixels: the variance of the values, plus about 2 per channel for
		// rounding.
		limit := 16.0 * 3 * 4
		for _, c := range channels(k) {
			var s, ss float64
			for i := c; i < 64; i += 4 {
				s, ss = s+float64(pix[i]), ss+float64(pix[i])*float64(pix[i])
			}
			limit += ss - s*s/16
		}
		if got := float64(squares(k, pix, back)); got > limit {
			t.Fatalf("%v of %v: error %v, one colour has %v", k, pix, got, limit)
		}
	})
}

// BenchmarkEncode measures the speed, and the quality in decibels, for the image in KILN_PHOTO (1024 x 1024 pixels from its
// middle, if it is larger), else for a texture of the corpus, else for noise and gradients.
func BenchmarkEncode(b *testing.B) {
	pix, w, h := benchImage(b)
	for _, f := range written {
		for q, name := range []string{"fast", "normal", "best"} {
			b.Run(fmt.Sprintf("%v/%s", f, name), func(b *testing.B) {
				var data []byte
				for b.Loop() {
					var err error
					if data, err = Encode(f, pix, w, h, block.Options{Quality: block.Quality(q), Workers: 2}); err != nil {
						b.Fatal(err)
					}
				}
				back, err := Decode(f, data, w, h)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(w*h)*float64(b.N)/1e6/b.Elapsed().Seconds(), "MPix/s")
				b.ReportMetric(decibels(f, pix, back), "dB")
			})
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	for f := range formats {
		b.Run(f.String(), func(b *testing.B) {
			data := noise(256, f.BlockBytes()*64, 1)
			for b.Loop() {
				if _, err := Decode(f, data, 1024, 1024); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(1.048576*float64(b.N)/b.Elapsed().Seconds(), "MPix/s")
		})
	}
}

// benchImage returns an opaque image, so that BC1A has a colour for every pixel.
func benchImage(b *testing.B) (pix []byte, w, h int) {
	if photo := os.Getenv("KILN_PHOTO"); photo != "" {
		return load(b, photo)
	}
	if corpus := os.Getenv("KILN_CORPUS"); corpus != "" {
		return load(b, filepath.Join(corpus, "raylib-cc0/examples/textures/resources/explosion.png"))
	}
	b.Log("KILN_PHOTO and KILN_CORPUS are not set: a picture that was made up")
	return picture(1024, 1024), 1024, 1024
}

// load reads the middle of an image, at most 1024 x 1024, as opaque.
func load(t testing.TB, file string) (pix []byte, w, h int) {
	t.Helper()
	r, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	m, _, err := image.Decode(r)
	if err != nil {
		t.Fatal(err)
	}
	size := m.Bounds().Size()
	out := image.NewNRGBA(image.Rect(0, 0, min(1024, size.X), min(1024, size.Y)))
	draw.Draw(out, out.Rect, m, m.Bounds().Min.Add(size.Sub(out.Rect.Max).Div(2)), draw.Src)
	for i := 3; i < len(out.Pix); i += 4 {
		out.Pix[i] = 255
	}
	return out.Pix, out.Rect.Dx(), out.Rect.Dy()
}
