package qoi

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
)

// anyFile has random chunks, of all kinds or of one, as many as the pixels need.
func anyFile(r *rand.Rand, width, height, channels, space, kind int) []byte {
	b := binary.BigEndian.AppendUint32([]byte(magic), uint32(width))
	b = append(binary.BigEndian.AppendUint32(b, uint32(height)), byte(channels), byte(space))
	for left := width * height; left > 0; left-- {
		k := kind
		if kind == 6 {
			k = r.IntN(6)
		}
		switch any := byte(r.IntN(64)); k {
		case 0:
			b = append(b, chunkRGB, byte(r.IntN(256)), byte(r.IntN(256)), byte(r.IntN(256)))
		case 1:
			b = append(b, chunkRGBA, byte(r.IntN(256)), byte(r.IntN(256)), byte(r.IntN(256)), byte(r.IntN(256)))
		case 2:
			b = append(b, chunkIndex|any)
		case 3:
			b = append(b, chunkDiff|any)
		case 4:
			b = append(b, chunkLuma|any, byte(r.IntN(256)))
		case 5:
			n := min(1+int(any), maxRun, left)
			b = append(b, chunkRun|byte(n-1))
			left -= n - 1
		}
	}
	return append(b, end...)
}

// TestOthers compares with ffmpeg: each number of channels, colour space and kind of chunk.
func TestOthers(t *testing.T) {
	if _, err := exec.LookPath("ffmpeg"); err != nil {
		t.Skip("ffmpeg is not installed")
	}
	r, name := rand.New(rand.NewPCG(thorough.Seed(t), 1)), filepath.Join(t.TempDir(), "a.qoi")
	files := 0
	for _, size := range [][2]int{{57, 43}, {1, 1}, {1, 90}, {200, 3}}[:thorough.OfPeers(1, 2, 4)] {
		for i := range 2 * 2 * 7 {
			channels, space, kind := 3+i%2, i/2%2, i/4
			if kind < 6 && space == 1 && !thorough.Whole() {
				continue
			}
			data := anyFile(r, size[0], size[1], channels, space, kind)
			if err := os.WriteFile(name, data, 0o644); err != nil {
				t.Fatal(err)
			}
			got, _, _, err := Decode(data, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			want, err := exec.Command("ffmpeg", "-loglevel", "error", "-i", name, "-f", "rawvideo", "-pix_fmt", "rgba", "-").Output()
			if err != nil || len(want) != len(got) {
				t.Fatalf("%d channels, chunks of kind %d: %v", channels, kind, err)
			}
			files++
			for j, v := range got {
				// Of three channels, ffmpeg returns no alpha, and this package what the chunks say.
				if v != want[j] && (channels == 4 || j%4 < 3) {
					t.Fatalf("%v, %d channels, chunks of kind %d: number %d is %d, not %d", size, channels, kind, j, v, want[j])
				}
			}
		}
	}
	t.Logf("%d files are equal", files)
}
