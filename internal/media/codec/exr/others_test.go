package exr

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
)

// wayOf is a way to store an image.
type wayOf struct {
	channels    string // in the order of the file
	kind        kind
	compression compression
	decreasing  bool
	display     int // how far the display window reaches beyond the data window
}

func (w wayOf) String() string {
	return fmt.Sprintf("%s of kind %d, %v, from below %v, window %d", w.channels, w.kind, w.compression, w.decreasing, w.display)
}

func allWays() (list []wayOf) {
	for _, channels := range []string{"BGR", "ABGR", "Y", "ABGRZ"} {
		for kind := kindHalf; kind <= kindFloat; kind++ {
			for c := none; c <= pxr24; c++ {
				for i := range 2 * 3 {
					list = append(list, wayOf{channels, kind, c, i%2 > 0, i/2 - 1})
				}
			}
		}
	}
	return list
}

// file makes an image with random numbers of 0 to 2, some of them in runs. Alpha is 1/8 to 1.
func (w wayOf) file(r *rand.Rand, width, height int) []byte {
	f := file{compression: w.compression, decreasing: w.decreasing, data: box{w.display, w.display, w.display + width - 1,
		w.display + height - 1}}
	f.display = box{0, 0, width - 1 + 2*w.display, height - 1 + 2*w.display}
	for _, name := range w.channels {
		f.channels = append(f.channels, channel{name: string(name), kind: w.kind})
	}
	var block []byte
	for y := range height {
		for _, name := range w.channels {
			half := uint16(0)
			for x := range width {
				switch {
				case name == 'A':
					half = 0x3000 + uint16(r.IntN(4))<<10
				case x == 0 || r.IntN(2) == 0:
					half = uint16(r.IntN(0x4000))
				}
				switch w.kind {
				case kindHalf:
					block = binary.LittleEndian.AppendUint16(block, half)
				case kindFloat: // of 24 bits, as many as PXR24 keeps
					block = binary.LittleEndian.AppendUint32(block, uint32(half)<<13+112<<23)
				case kindUint:
					block = binary.LittleEndian.AppendUint32(block, uint32(half))
				}
			}
		}
		if (y+1)%w.compression.lines() == 0 || y+1 == height {
			f.blocks, block = append(f.blocks, block), nil
		}
	}
	return f.bytes()
}

// TestOthers compares with ffmpeg. It takes whole numbers for parts of the largest one, and does not return alpha of grey.
func TestOthers(t *testing.T) {
	if _, err := exec.LookPath("ffmpeg"); err != nil {
		t.Skip("ffmpeg is not installed")
	}
	r, name := rand.New(rand.NewPCG(thorough.Seed(t), 1)), filepath.Join(t.TempDir(), "a.exr")
	files := 0
	for i, w := range allWays() {
		if i%thorough.OfPeers(17, 5, 1) != 0 {
			continue
		}
		width, height := 5+r.IntN(30), 3+r.IntN(40)
		data := w.file(r, width, height)
		if err := os.WriteFile(name, data, 0o644); err != nil {
			t.Fatal(err)
		}
		h, got, err := Decode(data, 1<<20)
		if err != nil {
			t.Fatalf("%v: %v", w, err)
		}
		format, planes := "gbrpf32le", []int{2, 0, 1} // as the file has them, so that it converts nothing
		switch {
		case strings.Contains(w.channels, "Y"):
			format, planes = "grayf32le", []int{0}
		case strings.Contains(w.channels, "A"):
			format, planes = "gbrapf32le", []int{2, 0, 1, 3}
		}
		out, err := exec.Command("ffmpeg", "-loglevel", "error", "-i", name, "-f", "rawvideo", "-pix_fmt", format, "-").Output()
		n := h.Width * h.Height
		if err != nil || len(out) != 4*n*len(planes) {
			t.Fatalf("%v: %v, %d bytes for %d pixels", w, err, len(out), n)
		}
		for i := range n {
			for c, plane := range planes {
				want := float64(math.Float32frombits(binary.LittleEndian.Uint32(out[4*(plane*n+i):])))
				v := float64(got[4*i+c])
				if a := float64(got[4*i+3]); c < 3 && a > 0 { // ffmpeg does not divide by alpha
					v *= a
				}
				if d := math.Abs(v - want); !(d < 1e-6) {
					t.Fatalf("%v: pixel %d, %d: number %d is %v, not %v", w, i%h.Width, i/h.Width, c, v, want)
				}
			}
		}
		files++
	}
	t.Logf("%d files are equal", files)
}
