package jpeg

import (
	"bytes"
	"image"
	"image/color"
	std "image/jpeg"
	"math/rand/v2"
	"os/exec"
	"runtime"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
)

// photograph returns an image with detail of all sizes, as photographs have it.
func photograph(side int) *image.RGBA {
	rng := rand.New(rand.NewPCG(1, 2))
	m := image.NewRGBA(image.Rect(0, 0, side, side))
	sum := make([][3]float64, side*side)
	for step := side; step >= 1; step /= 2 {
		n := side/step + 2
		grid := make([][3]float64, n*n)
		for i := range grid {
			light := rng.NormFloat64()
			for c := range 3 {
				grid[i][c] = (light + 0.3*rng.NormFloat64()) * 8 * float64(min(step, 16)) / 16
			}
		}
		for i := range sum {
			x, y := i%side, i/side
			u, v := float64(x%step)/float64(step), float64(y%step)/float64(step)
			at := y/step*n + x/step
			for c := range 3 {
				top := grid[at][c]*(1-u) + grid[at+1][c]*u
				bottom := grid[at+n][c]*(1-u) + grid[at+n+1][c]*u
				sum[i][c] += top*(1-v) + bottom*v
			}
		}
	}
	for i, s := range sum {
		at := func(c int) byte { return byte(min(max(s[c]+128, 0), 255)) }
		m.SetRGBA(i%side, i/side, color.RGBA{at(0), at(1), at(2), 255})
	}
	return m
}

// stdRGBA decodes with the standard library.
func stdRGBA(b *testing.B, data []byte) []byte {
	m, err := std.Decode(bytes.NewReader(data))
	if err != nil {
		b.Fatal(err)
	}
	y := m.(*image.YCbCr)
	pix := make([]byte, 4*y.Rect.Dx()*y.Rect.Dy())
	for j := range y.Rect.Dy() {
		dst := pix[4*j*y.Rect.Dx():][:4*y.Rect.Dx()]
		for i := 0; i < len(dst); i += 4 {
			yi, ci := y.YOffset(i/4, j), y.COffset(i/4, j)
			dst[i], dst[i+1], dst[i+2] = color.YCbCrToRGB(y.Y[yi], y.Cb[ci], y.Cr[ci])
			dst[i+3] = 255
		}
	}
	return pix
}

// BenchmarkDecode compares the best processor time with that of the standard library: for its own picture, whose chroma keeps its
// resolution, and for RGBA.
func BenchmarkDecode(b *testing.B) {
	m := photograph(1024)
	files := map[string][]byte{}
	for name, quality := range map[string]int{"420-75": 75, "420-95": 95} {
		var out bytes.Buffer
		if err := std.Encode(&out, m, &std.Options{Quality: quality}); err != nil {
			b.Fatal(err)
		}
		files[name] = out.Bytes()
	}
	if jpegtran, err := exec.LookPath("jpegtran"); err == nil {
		cmd := exec.Command(jpegtran, "-progressive")
		cmd.Stdin = bytes.NewReader(files["420-75"])
		if files["progressive-75"], err = cmd.Output(); err != nil {
			b.Fatal(err)
		}
	}
	for name, data := range files {
		b.Run(name, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			best := [3]float64{1e9, 1e9, 1e9}
			for range b.N {
				for i, run := range []func(){
					func() { _, _ = Decode(data, 1<<30) },
					func() { _, _ = std.Decode(bytes.NewReader(data)) },
					func() { stdRGBA(b, data) },
				} {
					start := thorough.CPU()
					run()
					best[i] = min(best[i], (thorough.CPU() - start).Seconds())
				}
			}
			b.ReportMetric(float64(m.Rect.Dx()*m.Rect.Dy())/best[0]/1e6, "Mpixel/s")
			b.ReportMetric(best[0]/best[1], "of-std")
			b.ReportMetric(best[0]/best[2], "of-std-RGBA")
		})
	}
}
