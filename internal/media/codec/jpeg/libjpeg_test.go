package jpeg

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
)

// In these tests libjpeg-turbo is the judge: its programs cjpeg, djpeg and jpegtran (Debian: libjpeg-turbo-progs), and Pillow.

var update = flag.Bool("update", false, "write the golden files again, with cjpeg and djpeg")

// piped runs a program with data as its input, and returns its output.
func piped(t testing.TB, data []byte, name string, args ...string) []byte {
	t.Helper()
	out, err := pipe(data, name, args...)
	if err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	return out
}

func pipe(data []byte, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Stdin = bytes.NewReader(data)
	var text bytes.Buffer
	cmd.Stderr = &text
	out, err := cmd.Output()
	if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == 2 { // warnings, as for Adobe's transform 2 with three parts
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("%w: %s", err, text.Bytes())
	}
	return out, err
}

func tools(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed (Debian: libjpeg-turbo-progs)", name)
		}
	}
}

// samePixels decodes a file and compares it with a PPM.
func samePixels(data, ppm []byte) error {
	p, err := Decode(data, 1<<26)
	if err != nil {
		return err
	}
	want := fmt.Appendf(nil, "P6\n%d %d\n255\n", p.Width, p.Height)
	for i := 0; i < len(p.Pix); i += 4 {
		want = append(want, p.Pix[i:i+3]...)
		if p.Pix[i+3] != 255 {
			return fmt.Errorf("alpha is %d", p.Pix[i+3])
		}
	}
	return sameBytes(want, ppm, p.Width)
}

func sameBytes(got, want []byte, width int) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d bytes, not %d: %.15q, %.15q", len(got), len(want), got, want)
	}
	first, n, most := -1, 0, 0
	for i := range got {
		if d := int(got[i]) - int(want[i]); d != 0 {
			if n++; first < 0 {
				first = i
			}
			most = max(most, d, -d)
		}
	}
	if n == 0 {
		return nil
	}
	at := (first - 15) / 3
	return fmt.Errorf("%d of %d numbers differ, by up to %d; the first near %d,%d", n, len(got), most, at%width, at/width)
}

// goldens are the arguments of cjpeg for each golden file.
var goldens = map[string]string{
	"444": "-quality 90 -sample 1x1", "420": "-quality 85", "422": "-quality 85 -sample 2x1", "440": "-quality 85 -sample 1x2",
	"411": "-quality 80 -sample 4x1", "410": "-quality 80 -sample 4x2", "441": "-quality 80 -sample 1x4",
	"grey": "-grayscale", "rgb": "-rgb -quality 95", "low": "-quality 5", "best": "-quality 100 -sample 1x1",
	"luma-half": "-sample 1x1,2x1,1x2", "chroma-odd": "-sample 2x2,1x1,1x2", "progressive": "-progressive", "restart": "-restart 1B",
	"progressive-restart": "-progressive -restart 1", "deep-quants": "-quality 1 -sample 2x2",
}

func TestGolden(t *testing.T) {
	for name, args := range goldens {
		file, judged := "testdata/golden/"+name+".jpg", "testdata/golden/"+name+".ppm"
		if *update {
			data := piped(t, scene(23, 19), "cjpeg", strings.Fields(args)...)
			for name, data := range map[string][]byte{file: data, judged: piped(t, data, "djpeg", "-rgb")} {
				if err := os.WriteFile(name, data, 0o666); err != nil {
					t.Fatal(err)
				}
			}
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		ppm, err := os.ReadFile(judged)
		if err != nil {
			t.Fatal(err)
		}
		if err := samePixels(data, ppm); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSizes compares images of all small sizes, for each golden's way to encode them.
func TestSizes(t *testing.T) {
	tools(t, "cjpeg", "djpeg")
	sizes := [][2]int{{1, 1}, {2, 2}, {3, 5}, {5, 3}, {16, 17}, {17, 16}, {33, 34}}
	if thorough.Enabled() {
		sizes = [][2]int{{129, 65}, {64, 200}, {311, 1}, {1, 311}}
		for i := 0; i < 17*17; i += thorough.OfPeers(1, 5, 1) {
			sizes = append(sizes, [2]int{1 + i%17, 1 + i/17})
		}
	}
	for _, size := range sizes {
		ppm := scene(size[0], size[1])
		for name, args := range goldens {
			data := piped(t, ppm, "cjpeg", strings.Fields(args)...)
			if err := samePixels(data, piped(t, data, "djpeg", "-rgb")); err != nil {
				t.Errorf("%s, %d x %d: %v", name, size[0], size[1], err)
			}
		}
	}
}

// anyJPEG returns a random file that libjpeg reads, with ratios of whole numbers and at most 10 blocks in a group.
func anyJPEG(rng *rand.Rand) random {
	for {
		r := random{width: 1 + rng.IntN(70), height: 1 + rng.IntN(70), adobe: -1, apart: rng.IntN(3) == 0, deepQuants: rng.IntN(4) == 0,
			noTables: rng.IntN(4) == 0}
		if rng.IntN(3) == 0 {
			r.restart = 1 + rng.IntN(9)
		}
		switch rng.IntN(8) {
		case 0:
			r.ids = "RGB"
		case 1:
			r.adobe = rng.IntN(3)
		}
		n, blocks, most := 3, 0, [2]int{1, 1}
		if rng.IntN(8) == 0 {
			n = 1
		}
		for range n {
			s := [2]int{1 + rng.IntN(4), 1 + rng.IntN(4)}
			r.sampling = append(r.sampling, s)
			blocks += s[0] * s[1]
			most = [2]int{max(most[0], s[0]), max(most[1], s[1])}
		}
		whole := true
		for _, s := range r.sampling {
			whole = whole && most[0]%s[0] == 0 && most[1]%s[1] == 0
		}
		if whole && (blocks <= 10 || r.apart) {
			return r
		}
	}
}

func TestRandom(t *testing.T) {
	tools(t, "djpeg", "jpegtran")
	rng, count := rand.New(rand.NewPCG(thorough.Seed(t), 1)), thorough.OfPeers(60, 400, 2000)
	for range count {
		r := anyJPEG(rng)
		data := r.file(rng)
		ppm := piped(t, data, "djpeg", "-rgb")
		if err := samePixels(data, ppm); err != nil {
			t.Errorf("%v: %v", r, err)
		}
		if r.apart { // jpegtran may not be able to put its parts into one scan
			continue
		}
		for _, args := range []string{"-progressive", "-optimize", "-progressive -restart 2B"} {
			if err := samePixels(piped(t, data, "jpegtran", strings.Fields(args)...), ppm); err != nil {
				t.Errorf("%v: %s: %v", r, args, err)
			}
		}
	}
}

// pillow reads a line of JSON, a list of files, and writes the pixels of all.
const pillow = `
import json, sys
from PIL import Image
for name in json.load(sys.stdin):
    im = Image.open(name)
    sys.stdout.buffer.write((im.mode + "\n").encode() + im.tobytes())
`

// TestPillow compares with Pillow, which reads CMYK too, as 255 for full ink.
func TestPillow(t *testing.T) {
	const python = "/usr/bin/python3" // Debian's, not another that has no Pillow
	if _, err := pipe(nil, python, "-c", "import PIL.Image"); err != nil {
		t.Skip("Pillow is not installed (Debian: python3-pil)")
	}
	rng, dir := rand.New(rand.NewPCG(thorough.Seed(t), 2)), t.TempDir()
	var names []string
	var files [][]byte
	for i := range 40 {
		r := anyJPEG(rng)
		if i%2 == 0 {
			r.ids, r.adobe = "", i%8/2-1
			r.sampling = [][][2]int{{{1, 1}, {1, 1}, {1, 1}, {1, 1}}, {{2, 2}, {1, 1}, {1, 1}, {2, 2}}}[rng.IntN(2)]
		}
		data := r.file(rng)
		files, names = append(files, data), append(names, filepath.Join(dir, fmt.Sprint(i, ".jpg")))
		if err := os.WriteFile(names[i], data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	list, err := json.Marshal(names)
	if err != nil {
		t.Fatal(err)
	}
	out := piped(t, list, python, "-c", pillow)
	for i, data := range files {
		p, err := Decode(data, 1<<20)
		if err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		mode, rest, _ := bytes.Cut(out, []byte("\n"))
		n := map[string]int{"L": 1, "RGB": 3, "CMYK": 4}[string(mode)]
		pixels := rest[:n*p.Width*p.Height]
		out = rest[len(pixels):]
		var want []byte
		for j := 0; j < len(pixels); j += n {
			switch c := pixels[j:]; n {
			case 1:
				want = append(want, c[0], c[0], c[0], 255)
			case 3:
				want = append(want, c[0], c[1], c[2], 255)
			case 4:
				want = append(want, inked(255-c[0], 255-c[3]), inked(255-c[1], 255-c[3]), inked(255-c[2], 255-c[3]), 255)
			}
		}
		if err := sameBytes(p.Pix, want, p.Width); err != nil {
			t.Errorf("%d, %s: %v", i, mode, err)
		}
	}
}

// TestCorpus compares all JPEGs of a corpus with djpeg.
func TestCorpus(t *testing.T) {
	tools(t, "djpeg")
	root := os.Getenv("KILN_CORPUS")
	if root == "" {
		t.Skip("KILN_CORPUS names no folder of real content")
	}
	n := 0
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil || !bytes.HasPrefix(data, []byte("\xff\xd8\xff")) {
			return err
		}
		n++
		ppm, judged := pipe(data, "djpeg", "-rgb")
		if err := samePixels(data, ppm); err != nil && judged == nil {
			t.Errorf("%s: %v", file, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d files", n)
}
