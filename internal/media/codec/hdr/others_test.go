package hdr

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
)

// anyLine is a random line of pixels, flat or packed as in release 2.0.
func anyLine(r *rand.Rand, width int, packed bool) (out []byte) {
	pixels := make([]byte, 4*width)
	for i := range width {
		if p := pixels[4*i:]; i > 0 && r.IntN(2) == 0 {
			copy(p, pixels[4*i-4:][:4])
		} else { // the largest mantissa is at least 128
			p[0], p[1], p[2], p[3] = byte(r.IntN(256)), byte(r.IntN(256)), byte(r.IntN(256)), byte(118+r.IntN(13))
			p[r.IntN(3)] |= 128
			if r.IntN(20) == 0 {
				p[3] = 0
			}
		}
	}
	if !packed {
		return pixels
	}
	out = []byte{2, 2, byte(width >> 8), byte(width)}
	for c := range 4 {
		for x := 0; x < width; {
			n := 1
			for x+n < width && n < 127 && pixels[4*(x+n)+c] == pixels[4*x+c] {
				n++
			}
			if n > 1 {
				out = append(out, byte(128+n), pixels[4*x+c])
			} else {
				n = 1 + r.IntN(min(128, width-x))
				out = append(out, byte(n))
				for i := range n {
					out = append(out, pixels[4*(x+i)+c])
				}
			}
			x += n
		}
	}
	return out
}

// TestOthers compares with ImageMagick, which has numbers of 16 bits, up to 1: flat and packed lines, and both forms of the name.
// It reads neither other orientations nor the runs of release 1.4, and does not divide out the exposure.
func TestOthers(t *testing.T) {
	const magick = "convert-im6.q16"
	if _, err := exec.LookPath(magick); err != nil {
		t.Skipf("%s is not installed", magick)
	}
	r, name := rand.New(rand.NewPCG(thorough.Seed(t), 1)), filepath.Join(t.TempDir(), "a.hdr")
	files := 0
	for _, size := range [][2]int{{1, 1}, {7, 3}, {8, 3}, {9, 5}, {127, 4}, {128, 4}, {300, 7}, {1000, 3}} {
		for i := range thorough.OfPeers(2, 4, 16) {
			first := []string{"RADIANCE", "RGBE"}[i%2]
			packed := size[0] >= 8 && i/2%2 == 0
			data := file("#?"+first+"\n# made by hand\nFORMAT=32-bit_rle_rgbe\nSOFTWARE=none\n\n", fmt.Sprintf("-Y %d +X %d", size[1], size[0]))
			for range size[1] {
				data = append(data, anyLine(r, size[0], packed)...)
			}
			if err := os.WriteFile(name, data, 0o644); err != nil {
				t.Fatal(err)
			}
			_, got, err := Decode(data, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			want, err := exec.Command(magick, name, "-set", "colorspace", "sRGB", "-depth", "16", "-endian", "LSB", "rgba:-").Output()
			if err != nil || len(want) != 2*len(got) {
				t.Fatalf("%v, packed %v: %v", size, packed, err)
			}
			files++
			for j, v := range got {
				n := math.Round(float64(min(v, 1)) * 65535)
				if w := float64(binary.LittleEndian.Uint16(want[2*j:])); math.Abs(n-w) > 1 {
					t.Fatalf("%v, packed %v: number %d is %v, not %v", size, packed, j, n, w)
				}
			}
		}
	}
	t.Logf("%d files are equal", files)
}
