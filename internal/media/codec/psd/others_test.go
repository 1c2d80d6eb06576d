package psd

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

// wayOf is a way to store a picture.
type wayOf struct {
	mode           Mode
	depth          int
	extra          int // channels beyond the colours
	packing, large bool
	layers         int // 0 for no section
	size           [2]int
}

func (w wayOf) String() string {
	return fmt.Sprintf("%v of %d bits, %d more channels, packed %v, large %v, %d layers, %v", w.mode, w.depth, w.extra, w.packing,
		w.large, w.layers, w.size)
}

// allWays are all combinations.
func allWays() (list []wayOf) {
	depths := map[Mode][]int{bitmap: {1}, grey: {8, 16, 32}, indexed: {8}, rgb: {8, 16, 32}, cmyk: {8, 16}, duotone: {8, 16}}
	for _, mode := range []Mode{bitmap, grey, indexed, rgb, cmyk, duotone} {
		for _, depth := range depths[mode] {
			for extra := range 3 {
				if extra > 0 && (mode == bitmap || mode == indexed) {
					continue
				}
				for i := range 8 {
					for _, size := range [][2]int{{1, 1}, {3, 2}, {13, 5}, {300, 2}} {
						w := wayOf{mode, depth, extra, i&1 > 0, i&2 > 0, 0, size}
						if i&4 > 0 && extra > 0 {
							w.layers = []int{-1, 1}[size[0]%2]
						}
						if i&4 == 0 || w.layers != 0 {
							list = append(list, w)
						}
					}
				}
			}
		}
	}
	return list
}

// file makes a picture with random numbers, in runs.
func (w wayOf) file(r *rand.Rand) []byte {
	f := file{large: w.large, channels: w.mode.colours() + w.extra, w: w.size[0], h: w.size[1], depth: w.depth, mode: w.mode}
	switch {
	case w.mode == indexed:
		f.palette = make([]byte, 768)
		for i := range f.palette {
			f.palette[i] = byte(r.IntN(256))
		}
	case w.mode == duotone:
		f.palette = make([]byte, 552)
	}
	if w.layers != 0 {
		f.layers = count(w.layers, w.large)
	}
	stride := (w.size[0]*w.depth + 7) / 8
	for range f.channels * f.h {
		row := make([]byte, stride)
		for i := range row {
			row[i] = byte(r.IntN(256))
			if i > 0 && r.IntN(3) > 0 {
				row[i] = row[i-1]
			}
		}
		if w.depth == 32 {
			for i := 0; i < len(row); i += 4 { // light from 0 to 1
				binary.BigEndian.PutUint32(row[i:], math.Float32bits(float32(r.IntN(1<<12))/(1<<12)))
			}
		}
		if !w.packing {
			f.raw = append(f.raw, row...)
			continue
		}
		f.packing, f.packed = 1, append(f.packed, packBits(row))
	}
	return f.bytes()
}

// packBits packs runs, and bytes in between.
func packBits(row []byte) (out []byte) {
	for len(row) > 0 {
		n := 1
		for n < len(row) && n < 128 && row[n] == row[0] {
			n++
		}
		if n > 1 {
			out, row = append(out, byte(1-n), row[0]), row[n:]
			continue
		}
		for n < len(row) && n < 128 && row[n] != row[n-1] {
			n++
		}
		out, row = append(append(out, byte(n-1)), row[:n]...), row[n:]
	}
	return out
}

// pixels are RGBA of 16 bits, as this package reads a file.
func pixels(data []byte) ([]uint16, error) {
	m, err := Decode(data, 1<<20)
	if err != nil {
		return nil, err
	}
	out := m.Pix
	for _, v := range m.Light {
		out = append(out, uint16(math.Round(float64(min(max(v, 0), 1))*65535)))
	}
	return out, nil
}

// judge is another program. It writes RGBA, of 16 bits if deep, the low byte first.
type judge struct {
	program string
	args    func(w wayOf, name string) []string
	// reads reports whether it reads a way, and its alpha, as the format is described.
	reads func(w wayOf) (colours, alpha bool)
}

func judges() []judge {
	return []judge{
		{"convert-im6.q16", func(w wayOf, name string) []string {
			args := []string{"-define", "psd:alpha-unblend=off", name + "[0]"}
			if w.mode == cmyk {
				args = append(args, "-colorspace", "sRGB")
			}
			if w.depth == 32 {
				args = append(args, "-set", "colorspace", "sRGB")
			}
			return append(args, "-depth", "16", "-endian", "LSB", "rgba:-")
		}, func(w wayOf) (colours, alpha bool) {
			// Alpha that is not declared as transparency is left out; of grey, the channels beyond the second are colours.
			return w.mode != indexed && (w.mode != grey || w.extra < 2), w.extra == 0 || w.layers < 0 && (w.mode == rgb || w.mode == cmyk)
		}},
		{"ffmpeg", func(w wayOf, name string) []string {
			format := "rgba64le"
			if w.depth <= 8 {
				format = "rgba"
			}
			return []string{"-loglevel", "error", "-i", name, "-f", "rawvideo", "-pix_fmt", format, "-"}
		}, func(w wayOf) (colours, alpha bool) {
			// It takes 32 bits of grey for luma of video when it makes RGBA of them.
			return !w.large && w.extra < 2 && w.depth < 32, true
		}},
	}
}

// compare returns how much the numbers differ at most, of 65535. Those of other programs may have 8 bits.
func compare(got []uint16, out []byte, alpha bool) (most int, err error) {
	if len(out) != len(got) && len(out) != 2*len(got) {
		return 0, fmt.Errorf("%d bytes for %d numbers", len(out), len(got))
	}
	for i, v := range got {
		if i%4 == 3 && !alpha {
			continue
		}
		d := 0
		if len(out) == len(got) {
			d = (int(v)+128)/257*257 - int(out[i])*257
		} else {
			d = int(v) - int(binary.LittleEndian.Uint16(out[2*i:]))
		}
		most = max(most, d, -d)
	}
	return most, nil
}

// TestOthers compares with other programs. CMYK is converted with an error of up to one step of 8 bits.
func TestOthers(t *testing.T) {
	r, dir := rand.New(rand.NewPCG(thorough.Seed(t), 1)), t.TempDir()
	ways := allWays()
	for _, j := range judges() {
		if _, err := exec.LookPath(j.program); err != nil {
			t.Logf("%s is not installed", j.program)
			continue
		}
		files, equal := 0, 0
		for i := 0; i < len(ways); i += thorough.OfPeers(19, 5, 1) {
			w := ways[i]
			data := w.file(r)
			name := filepath.Join(dir, "a.psd")
			if err := os.WriteFile(name, data, 0o644); err != nil {
				t.Fatal(err)
			}
			got, err := pixels(data)
			if err != nil {
				t.Fatalf("%v: %v", w, err)
			}
			colours, alpha := j.reads(w)
			if files++; !colours {
				continue
			}
			out, err := exec.Command(j.program, j.args(w, name)...).Output()
			if err != nil {
				t.Errorf("%s: %v: %v", j.program, w, err)
				continue
			}
			limit := 0
			if w.mode == cmyk && (w.depth == 16 || j.program != "ffmpeg") {
				limit = 1
			} else if w.mode == cmyk {
				limit = 257
			}
			if most, err := compare(got, out, alpha); err != nil || most > limit {
				t.Errorf("%s: %v: differs by %d, %v", j.program, w, most, err)
				continue
			}
			equal++
		}
		t.Logf("%s: of %d files, it reads %d, with equal pixels", j.program, files, equal)
	}
}
