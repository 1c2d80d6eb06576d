package texture

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
)

// ddsWay is a kind of DDS: a pixel format of before Direct3D 10 (flags, FourCC, bits, masks of red, green, blue and alpha), or a
// format of DXGI.
type ddsWay struct {
	name  string
	old   [7]uint32
	dxgi  uint32
	block int // bytes of a block of 4 x 4, or 0
}

func fourCC(code string) [7]uint32 { return [7]uint32{4, binary.LittleEndian.Uint32([]byte(code))} }

var ddsWays = []ddsWay{
	{"DXT1", fourCC("DXT1"), 0, 8}, {"DXT3", fourCC("DXT3"), 0, 16}, {"DXT5", fourCC("DXT5"), 0, 16},
	{"ATI1", fourCC("ATI1"), 0, 8}, {"BC4U", fourCC("BC4U"), 0, 8}, {"ATI2", fourCC("ATI2"), 0, 16},
	{"BC5U", fourCC("BC5U"), 0, 16}, {"BC4S", fourCC("BC4S"), 0, 8}, {"BC5S", fourCC("BC5S"), 0, 16},
	{"BGR24", [7]uint32{0x40, 0, 24, 0xff0000, 0xff00, 0xff, 0}, 0, 0},
	{"RGB24", [7]uint32{0x40, 0, 24, 0xff, 0xff00, 0xff0000, 0}, 0, 0},
	{"BGRA32", [7]uint32{0x41, 0, 32, 0xff0000, 0xff00, 0xff, 0xff000000}, 0, 0},
	{"BGRX32", [7]uint32{0x40, 0, 32, 0xff0000, 0xff00, 0xff, 0}, 0, 0},
	{"RGBA32", [7]uint32{0x41, 0, 32, 0xff, 0xff00, 0xff0000, 0xff000000}, 0, 0},
	{"RGBX32", [7]uint32{0x40, 0, 32, 0xff, 0xff00, 0xff0000, 0}, 0, 0},
	{"565", [7]uint32{0x40, 0, 16, 0xf800, 0x7e0, 0x1f, 0}, 0, 0},
	{"1555", [7]uint32{0x41, 0, 16, 0x7c00, 0x3e0, 0x1f, 0x8000}, 0, 0},
	{"4444", [7]uint32{0x41, 0, 16, 0xf00, 0xf0, 0xf, 0xf000}, 0, 0}, {"L8", [7]uint32{0x20000, 0, 8, 0xff, 0, 0, 0}, 0, 0},
	{"L8A8", [7]uint32{0x20001, 0, 16, 0xff, 0, 0, 0xff00}, 0, 0}, {"R8G8B8A8", [7]uint32{32}, 28, 0},
	{"B5G6R5", [7]uint32{16}, 85, 0}, {"BC1", [7]uint32{}, 71, 8}, {"BC2", [7]uint32{}, 74, 16}, {"BC3", [7]uint32{}, 77, 16},
	{"BC4", [7]uint32{}, 80, 8}, {"BC5", [7]uint32{}, 83, 16}, {"BC4-signed", [7]uint32{}, 81, 8},
	{"BC5-signed", [7]uint32{}, 84, 16}, {"BC7", [7]uint32{}, 98, 16}, {"BC1-sRGB", [7]uint32{}, 72, 8},
	{"BC3-sRGB", [7]uint32{}, 78, 16}, {"BC7-sRGB", [7]uint32{}, 99, 16},
}

func (w ddsWay) file(r *rand.Rand, width, height int) []byte {
	size := (width + 3) / 4 * ((height + 3) / 4) * w.block
	flags, pitch := uint32(0x81007), uint32(size) // with the size of the data
	pf := w.old
	if w.block == 0 {
		bytes := int(w.old[2]) / 8
		if w.dxgi > 0 {
			bytes = int(w.old[0]) / 8
		}
		size, flags, pitch = width*height*bytes, 0x100f, uint32(width*bytes) // with the size of a row
	}
	if w.dxgi > 0 {
		pf = fourCC("DX10")
	}
	b := make([]byte, 128, 148+size)
	copy(b, "DDS ")
	put := func(at int, v ...uint32) {
		for i, v := range v {
			binary.LittleEndian.PutUint32(b[at+4*i:], v)
		}
	}
	put(4, 124, flags, uint32(height), uint32(width), pitch)
	put(76, 32)
	put(80, pf[:]...)
	put(108, 0x1000)
	if w.dxgi > 0 {
		for _, v := range []uint32{w.dxgi, 3, 0, 1, 0} {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
	}
	for range size {
		b = append(b, byte(r.IntN(256)))
	}
	return b
}

// pillow writes the pixels of a file.
const pillow = `
import sys
from PIL import Image
sys.stdout.buffer.write(Image.open(sys.argv[1]).convert("RGBA").tobytes())
`

// ddsJudges are other programs, and what they read as it is described: how many channels are compared, and how much they may
// differ by rounding. What is not in this table they refuse, or read in another way: ImageMagick does not look at the order of
// red and blue, nor ffmpeg at that of DXGI formats; Pillow takes pixels of 32 bits without alpha for 24; the blue of BC5 and
// channels of BC4 are made up; alpha of one bit is left out; DXT2 and DXT4 are not divided by alpha alike.
var ddsJudges = []struct {
	program string
	args    []string // before the name
	after   []string
	reads   []ddsRead
}{
	{"/usr/bin/python3", []string{"-c", pillow}, nil, []ddsRead{
		{"ATI2 BC5 BC7 BC7-sRGB BGR24 RGB24 BGRA32 RGBA32 DXT1 DXT3 DXT5 L8 L8A8 R8G8B8A8", 4, 0},
	}},
	{"convert-im6.q16", nil, []string{"-depth", "8", "rgba:-"}, []ddsRead{
		{"4444 BGR24 BGRA32 BGRX32 DXT1 DXT3 DXT5 L8", 4, 0}, {"565 1555", 4, 1},
	}},
	{"ffmpeg", []string{"-loglevel", "error", "-i"}, []string{"-f", "rawvideo", "-pix_fmt", "rgba", "-"}, []ddsRead{
		{"BGR24 BGRA32 BGRX32 RGBA32 RGBX32 L8 L8A8", 4, 0}, {"DXT1 DXT3 DXT5 BC1 BC2 BC3 BC1-sRGB BC3-sRGB 565 B5G6R5", 4, 1},
		{"1555", 3, 1}, {"BC5 BC5U", 2, 0}, {"BC5S BC5-signed", 2, 1}, {"BC4 BC4U ATI1", 1, 0}, {"BC4S BC4-signed", 1, 1},
	}},
}

type ddsRead struct {
	ways                string
	channels, tolerance int
}

func TestOthers(t *testing.T) {
	r, name := rand.New(rand.NewPCG(thorough.Seed(t), 1)), filepath.Join(t.TempDir(), "a.dds")
	for _, j := range ddsJudges {
		if exec.Command(j.program, "-c", "import PIL.Image").Run() != nil && j.after == nil {
			t.Log("Pillow is not installed")
			continue
		}
		if _, err := exec.LookPath(j.program); err != nil {
			t.Logf("%s is not installed", j.program)
			continue
		}
		files := 0
		for _, read := range j.reads {
			for _, way := range strings.Fields(read.ways) {
				for _, size := range [][2]int{{17, 10}, {16, 12}, {5, 7}, {1, 1}, {33, 2}}[:thorough.OfPeers(1, 1, 5)] {
					data := ddsNamed(way).file(r, size[0], size[1])
					if err := os.WriteFile(name, data, 0o644); err != nil {
						t.Fatal(err)
					}
					p, err := open(t, data).Picture(0, 0, 0, 0)
					if err != nil {
						t.Fatal(err)
					}
					want, err := exec.Command(j.program, append(append(slices.Clone(j.args), name), j.after...)...).Output()
					if err != nil || len(want) != len(p.Eight.Pix) {
						t.Errorf("%s: %s: %v", j.program, way, err)
						continue
					}
					files++
					for i, v := range p.Eight.Pix {
						if d := int(v) - int(want[i]); i%4 < read.channels && max(d, -d) > read.tolerance {
							t.Errorf("%s: %s, %v: pixel %d is %v, not %v", j.program, way, size, i/4, p.Eight.Pix[i/4*4:][:4], want[i/4*4:][:4])
							break
						}
					}
				}
			}
		}
		t.Logf("%s: %d files", j.program, files)
	}
}

func ddsNamed(name string) ddsWay {
	for _, w := range ddsWays {
		if w.name == name {
			return w
		}
	}
	panic(name)
}
