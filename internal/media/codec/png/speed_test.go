package png

import (
	"bytes"
	"image"
	std "image/png"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// picture is a real one, as RGBA.
type picture struct {
	name          string
	data          []byte
	pix           []byte
	width, height int
}

// corpus returns the real pictures that are read here, each once, in the order of their paths.
func corpus(b *testing.B) (all []picture) {
	root := os.Getenv("KILN_CORPUS")
	if root == "" {
		b.Skip("KILN_CORPUS is not set: no real pictures to measure")
	}
	seen := map[string]bool{}
	err := filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".png") {
			return err
		}
		data, err := os.ReadFile(name)
		if pix, w, h, ok := decode(data); ok && !seen[string(data)] {
			seen[string(data)] = true
			all = append(all, picture{filepath.Base(name), data, pix, w, h})
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return all
}

// seconds returns the least time of five runs.
func seconds(f func()) float64 {
	least := time.Hour
	for range 5 {
		start := time.Now()
		f()
		least = min(least, time.Since(start))
	}
	return least.Seconds()
}

// BenchmarkDecode prints the million pixels a second of pictures of at least 300,000 pixels and 40 KB, and how many times as fast
// as image/png that is.
func BenchmarkDecode(b *testing.B) {
	for _, p := range corpus(b) {
		if p.width*p.height < 300_000 || len(p.data) < 40_000 {
			continue
		}
		b.Run(p.name, func(b *testing.B) {
			for b.Loop() {
				ours := seconds(func() { _, _ = Decode(p.data) })
				other := seconds(func() { _, _ = std.Decode(bytes.NewReader(p.data)) })
				b.ReportMetric(float64(p.width*p.height)/ours/1e6, "Mpixel/s")
				b.ReportMetric(other/ours, "x")
			}
		})
	}
}

// BenchmarkEncode prints the time for pages of 8192 x 1024 pixels, and for large pictures; how many times as fast as image/png that
// is, and the size of the file compared with the one of image/png.
func BenchmarkEncode(b *testing.B) {
	all := corpus(b)
	page := picture{name: "page", pix: make([]byte, 4*8192*1024), width: 8192, height: 1024}
	x, y, bottom := 0, 0, 0
	for _, p := range all {
		if p.width > 1100 || p.height > 1024 {
			continue
		}
		if x+p.width > page.width {
			x, y = 0, bottom+2
		}
		if y+p.height > page.height {
			continue
		}
		for row := range p.height {
			copy(page.pix[4*((y+row)*page.width+x):], p.pix[4*row*p.width:][:4*p.width])
		}
		x, bottom = x+p.width+2, max(bottom, y+p.height)
	}
	for _, p := range append([]picture{page}, all...) {
		if p.width*p.height < 1e6 {
			continue
		}
		b.Run(p.name, func(b *testing.B) {
			for b.Loop() {
				var ours []byte
				var other bytes.Buffer
				took := seconds(func() { ours, _ = Encode(p.pix, p.width, p.height) })
				otherTook := seconds(func() {
					other.Reset()
					_ = std.Encode(&other, &image.NRGBA{Pix: p.pix, Stride: 4 * p.width, Rect: image.Rect(0, 0, p.width, p.height)})
				})
				b.ReportMetric(took, "s/picture")
				b.ReportMetric(otherTook/took, "x")
				b.ReportMetric(float64(len(ours))/float64(other.Len()), "size")
			}
		})
	}
}
