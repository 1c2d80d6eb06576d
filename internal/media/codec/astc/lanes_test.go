package astc

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/block"
	"github.com/kiln-pipeline/kiln/internal/media/codec/lanestest"
)

// somePixels returns blocks of all kinds side by side: from generated images, noise of every strength around any colour, a
// few colours, extreme values, with alpha and without.
func somePixels(f Footprint, columns, rows int) []byte {
	r := rand.New(rand.NewPCG(7, 8))
	width, height := columns*f.Width, rows*f.Height
	drawn := picture(width, height, "alpha")
	for i := range columns * rows {
		kind, strength, few := r.IntN(6), 1+r.IntN(255), 2+r.IntN(4)
		var around [4]int
		for c := range around {
			around[c] = r.IntN(256)
		}
		opaque, grey := r.IntN(3) > 0, r.IntN(4) == 0
		for j := range f.Width * f.Height {
			at := 4 * ((i/columns*f.Height+j/f.Width)*width + i%columns*f.Width + j%f.Width)
			px := drawn[at : at+4]
			level := r.IntN(few)
			for c := range px {
				switch kind {
				case 0:
					px[c] = byte(min(max(around[c]+r.IntN(strength)-strength/2, 0), 255))
				case 1:
					px[c] = byte(255 * r.IntN(2))
				case 2:
					px[c] = byte(around[c] + level*strength*(c+1))
				case 3:
					px[c] = byte(min(max(around[c]+(j%f.Width-j/f.Width)*strength/16, 0), 255))
				}
			}
			if grey {
				px[1], px[2] = px[0], px[0]
			}
			if opaque {
				px[3] = 255
			}
		}
	}
	return drawn
}

// sameByLanes fails if blocks differ between vector code and plain Go.
func sameByLanes(t *testing.T, f Footprint, q block.Quality, rgba []byte, columns, rows int) {
	t.Helper()
	if !lanes {
		t.Skip("this processor has no AVX2")
	}
	defer func() { lanes = true }()
	var data [2][]byte
	for i := range data {
		lanes = i == 1
		var err error
		if data[i], err = Encode(f, rgba, columns*f.Width, rows*f.Height, false, block.Options{Quality: q}); err != nil {
			t.Fatal(err)
		}
	}
	for b := range columns * rows {
		if got, want := data[1][16*b:][:16], data[0][16*b:][:16]; !bytes.Equal(got, want) {
			t.Fatalf("%v, quality %d: block %d is % x by lanes, % x without", f, q, b, got, want)
		}
	}
}

// Vector code gives the same blocks as plain Go, at every footprint and quality.
func TestLanesSameBytes(t *testing.T) {
	for _, f := range Footprints() {
		for q := block.Fast; q <= block.Best; q++ {
			sameByLanes(t, f, q, somePixels(f, 12, 8), 12, 8)
		}
	}
}

// The same holds for a texture of an explosion.
func TestLanesSameBytesOfTexture(t *testing.T) {
	corpus := os.Getenv("KILN_CORPUS")
	if corpus == "" {
		t.Skip("KILN_CORPUS is not set")
	}
	m := readPNG(t, filepath.Join(corpus, "raylib-cc0/examples/textures/resources/explosion.png"))
	for _, f := range Footprints() {
		columns, rows := 120/f.Width, 120/f.Height
		rgba := make([]byte, 0, 4*120*120)
		for y := range rows * f.Height {
			at := m.PixOffset(260, 260+y)
			rgba = append(rgba, m.Pix[at:at+4*columns*f.Width]...)
		}
		sameByLanes(t, f, block.Normal, rgba, columns, rows)
	}
}

func TestGenerated(t *testing.T) { lanestest.Generated(t, "astc") }

// The matrices of every grid are consistent: values that are spread over texels and solved for again are unchanged.
func TestMatrices(t *testing.T) {
	for _, f := range Footprints() {
		p := newPlan(newTable(f))
		for k := range p.shapes {
			s := &p.shapes[k]
			m := s.matrices()
			count := s.width * s.height
			for a := range count {
				for b := range count {
					sum := 0.0
					for i := range s.spread {
						sum += float64(m.solve[i*m.width+a]) * float64(m.spread[i*m.width+b])
					}
					want := 0.0
					if a == b {
						want = 1
					}
					if !(math.Abs(sum-want) < 1e-4) {
						t.Fatalf("%v, %d by %d: place %d of place %d is %v", f, s.width, s.height, a, b, sum)
					}
				}
			}
		}
	}
}
