// Command atlases measures how well and how fast Kiln lays out atlases, compared with other packers, and prints a
// table:
//
//	npm install --prefix DIR maxrects-packer free-tex-packer-core
//	go run ./bench/atlases -peers DIR [-corpus DIR]
//
// The peers are maxrects-packer, the most used one of npm, and the MaxRects of free-tex-packer-core, which is the port
// of Jylänki's code that libGDX's packer also uses, called as libGDX calls it (peers.mjs). Without -peers only Kiln is
// measured. All get the same sizes and settings, and each result is checked for overlaps.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"image"
	_ "image/png" // for reading the sizes of the corpus
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	_ "embed"

	"github.com/kiln-pipeline/kiln/internal/media/packing"
)

//go:embed peers.mjs
var peers string

// task is a layout to make. The peers read it as JSON.
type task struct {
	Name    string         `json:"name"`
	Sizes   []packing.Size `json:"sizes"`
	Max     int            `json:"max"`
	Padding int            `json:"padding"`
	Pot     bool           `json:"pot"`
	Rotate  bool           `json:"rotate"`
}

// answer is a packer's result for a task.
type answer struct {
	Packer  string         `json:"packer"`
	Seconds float64        `json:"seconds"`
	Pages   []packing.Size `json:"pages"`
	Places  []place        `json:"places"` // one for each size
}

type place struct {
	Page, X, Y int
	Turned     bool
}

func main() {
	dir := flag.String("peers", "", "folder with node_modules of the peers")
	corpus := flag.String("corpus", os.Getenv("KILN_CORPUS"), "folder of real content: images of one folder are one atlas")
	flag.Parse()
	if err := run(*dir, *corpus); err != nil {
		fmt.Fprintln(os.Stderr, "atlases:", err)
		os.Exit(1)
	}
}

func run(dir, corpus string) error {
	fmt.Println("| images | settings | packer | pages | pixels | filled | seconds |\n|---|---|---|---|---|---|---|")
	for _, t := range tasks(corpus) {
		answers := []answer{kiln(t)}
		if dir != "" {
			more, err := ask(dir, t)
			if err != nil {
				return err
			}
			answers = append(answers, more...)
		}
		for _, a := range answers {
			if err := t.check(a); err != nil {
				return fmt.Errorf("%s, %s: %w", t.Name, a.Packer, err)
			}
			used, area := 0, 0
			for _, s := range t.Sizes {
				used += s.W * s.H
			}
			for _, p := range a.Pages {
				area += p.W * p.H
			}
			fmt.Printf("| %s | %s | %s | %d | %d | %.1f %% | %.3f |\n", t.Name, t.settings(), a.Packer, len(a.Pages), area, 100*float64(used)/float64(area), a.Seconds)
		}
	}
	return nil
}

func (t task) settings() string {
	s := []string{fmt.Sprintf("max %d", t.Max)}
	if t.Pot {
		s = append(s, "powers of two")
	}
	if t.Rotate {
		s = append(s, "turned")
	}
	return strings.Join(s, ", ")
}

// tasks returns sizes that are typical for games, made from a seed, and those of real games.
func tasks(corpus string) []task {
	var all []task
	add := func(name string, sizes []packing.Size, max int) {
		for _, t := range []task{{Pot: true, Max: max}, {Max: 4096}, {Max: 4096, Rotate: true}} {
			t.Name, t.Sizes, t.Padding = name, sizes, 2
			all = append(all, t)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	made := func(n int, one func() packing.Size) []packing.Size {
		sizes := make([]packing.Size, n)
		for i := range sizes {
			sizes[i] = one()
		}
		return sizes
	}
	sprite := func() packing.Size {
		base := 8 << r.IntN(4)
		return packing.Size{W: base + r.IntN(base), H: base + r.IntN(base)}
	}
	for _, n := range []int{100, 500, 2000, 5000} {
		add(fmt.Sprintf("%d sprites", n), made(n, sprite), 1024)
	}
	add("400 glyphs", made(400, func() packing.Size { return packing.Size{W: 6 + r.IntN(26), H: 14 + 6*r.IntN(4)} }), 512)
	add("200 bars and panels", made(200, func() packing.Size {
		if r.IntN(3) == 0 {
			return packing.Size{W: 40 + r.IntN(200), H: 6 + r.IntN(14)}
		}
		return packing.Size{W: 6 + r.IntN(60), H: 20 + r.IntN(160)}
	}), 1024)
	folders, _ := filepath.Glob(filepath.Join(corpus, "gdx-skins", "*", "raw"))
	for _, folder := range folders {
		if sizes := sizesIn(folder, 1000); corpus != "" {
			add("skin "+filepath.Base(filepath.Dir(folder)), sizes, 1024)
		}
	}
	return all
}

// sizesIn returns the sizes of the images in a folder, without those larger than a page.
func sizesIn(folder string, most int) (sizes []packing.Size) {
	files, _ := filepath.Glob(filepath.Join(folder, "*.png"))
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			continue
		}
		if c, _, err := image.DecodeConfig(f); err == nil && max(c.Width, c.Height) <= most {
			sizes = append(sizes, packing.Size{W: c.Width, H: c.Height})
		}
		f.Close()
	}
	return sizes
}

func kiln(t task) answer {
	items := make([]packing.Item, len(t.Sizes))
	for i, s := range t.Sizes {
		items[i].Size = s
	}
	both := func(n int) packing.Size { return packing.Size{W: n, H: n} }
	start := time.Now()
	l := packing.Pack(items, packing.Options{Max: both(t.Max), Padding: both(t.Padding), PowerOfTwo: t.Pot, Rotate: t.Rotate})
	a := answer{Packer: "Kiln", Seconds: time.Since(start).Seconds(), Pages: l.Pages}
	for _, p := range l.Places {
		a.Places = append(a.Places, place(p))
	}
	return a
}

// ask runs the peers on a task.
func ask(dir string, t task) ([]answer, error) {
	in, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("node", "--input-type=module", "-e", peers)
	cmd.Dir, cmd.Stdin, cmd.Stderr = dir, bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var answers []answer
	return answers, json.Unmarshal(out, &answers)
}

// check returns an error if rectangles overlap or lie outside of a page.
func (t task) check(a answer) error {
	if len(a.Places) != len(t.Sizes) {
		return fmt.Errorf("%d places for %d images", len(a.Places), len(t.Sizes))
	}
	on := make([][]image.Rectangle, len(a.Pages))
	for i, p := range a.Places {
		s := t.Sizes[i]
		if p.Turned {
			s.W, s.H = s.H, s.W
		}
		r := image.Rect(p.X, p.Y, p.X+s.W, p.Y+s.H)
		if page := a.Pages[p.Page]; !r.In(image.Rect(0, 0, page.W, page.H)) || max(page.W, page.H) > t.Max {
			return fmt.Errorf("%v is outside of its page of %v", r, page)
		}
		for _, o := range on[p.Page] {
			if r.Overlaps(o) {
				return fmt.Errorf("%v overlaps %v", r, o)
			}
		}
		on[p.Page] = append(on[p.Page], r)
	}
	return nil
}
