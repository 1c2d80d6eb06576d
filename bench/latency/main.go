// Command latency measures the time from a saved file to a running game, and prints a table:
//
//	go build -o /tmp/kiln ./cmd/kiln && go run ./bench/latency -kiln /tmp/kiln [-n 20] [-sprites 2000] [-size 1024]
//
// It makes a project in a temporary folder, starts `kiln serve` on it with the default quiet time, connects as a game,
// and edits files: by writing a new file and renaming it, as most programs save, and in place. The time is measured
// from the close(2) of the file, or the rename, until the game's Poll has applied the change. The game polls as soon as
// something has arrived, so that no frame time is included. With -n edits each, it prints the median, the slowest of 10
// and the slowest of all, and the processor time that Kiln used, which does not depend on the load of the machine.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	client "github.com/kiln-pipeline/kiln/kilnrt/live"
)

func main() {
	b := bench{}
	flag.StringVar(&b.kiln, "kiln", "kiln", "the `PROGRAM` to measure")
	flag.IntVar(&b.n, "n", 20, "`EDITS` of each kind")
	flag.IntVar(&b.sprites, "sprites", 2000, "`SPRITES` of the atlas")
	flag.IntVar(&b.size, "size", 1024, "`PIXELS` of a side of the texture")
	flag.IntVar(&b.others, "others", 0, "`FILES` of the project besides those that are edited")
	only := flag.String("only", "", "measure nothing but what has these `WORDS` in its name")
	flag.Parse()
	b.only = *only
	if err := b.run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type bench struct {
	kiln, only               string
	n, sprites, size, others int

	dir     string
	pid     int // of Kiln
	lib     *client.Library
	arrived chan time.Time
	random  *rand.Rand
}

// scene is one kind of edit.
type scene struct {
	name     string
	bar      time.Duration       // the required time; 0 for none
	resource string              // the game's resource that is replaced
	edit     func(int) time.Time // makes the n-th edit, and returns the time when it was complete on disk
}

const projectFile = `
[project]
name  = "latency"
roots = ["assets"]
[platforms.pc]
[platforms.pc.texture]
family = "bc"
[[rules]]
match    = "textures/*.png"
settings = { quality = "fast" }
[[rules]]
match    = "textures/draft.png"
settings = { quality = "draft-then-final" }
[[rules]]
match    = "textures/small.png"
settings = { format = "bc1" }
[[rules]]
match     = "sprites/"
processor = "atlas"
settings  = { max_size = 2048 }
[[rules]]
match     = "icons/"
processor = "atlas"
settings  = { max_size = 2048, format = "bc7" }
`

func (b *bench) run() (err error) {
	if b.dir, err = os.MkdirTemp("", "kiln-latency-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeAll(b.dir)) }()
	b.random = rand.New(rand.NewPCG(1, 2))
	if err := b.write(); err != nil {
		return err
	}
	stop, address, err := b.serve()
	if err != nil {
		return err
	}
	defer stop()
	if err := b.connect(address); err != nil {
		return err
	}
	defer b.lib.Close()
	fmt.Printf("| from the saved file to the game (%d edits) | median | slowest of 10 | slowest | asked for | processor time of Kiln |\n|---|---:|---:|---:|---:|---:|\n", b.n)
	for _, s := range b.scenes() {
		if !strings.Contains(s.name, b.only) {
			continue
		}
		if err := b.measure(s); err != nil {
			return err
		}
	}
	return nil
}

// write writes the project.
func (b *bench) write() error {
	var errs []error
	file := func(name string, data []byte) {
		path := filepath.Join(b.dir, filepath.FromSlash(name))
		errs = append(errs, os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, data, 0o666))
	}
	file("kiln.toml", []byte(projectFile))
	file("assets/data/waves.json", data(0))
	file("assets/text/hints.txt", []byte("0\n"))
	for _, name := range []string{"rock", "draft", "small"} {
		file("assets/textures/"+name+".png", b.picture(b.size, b.size))
	}
	for i := range b.sprites {
		sprite := b.picture(8+b.random.IntN(40), 8+b.random.IntN(40))
		file(fmt.Sprintf("assets/sprites/s%04d.png", i), sprite)
		file(fmt.Sprintf("assets/icons/s%04d.png", i), sprite)
	}
	for i := range b.others {
		file(fmt.Sprintf("assets/others/%03d/%d.txt", i/1000, i), fmt.Append(nil, i))
	}
	return errors.Join(errs...)
}

func data(n int) []byte {
	return fmt.Appendf(nil, `{"wave": %d, "enemies": [{"kind": "orc", "count": 12}, {"kind": "troll", "count": 1}], "delay": 2.5}`, n)
}

// picture is a picture with different content: a gradient, edges, noise.
func (b *bench) picture(w, h int) []byte {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	cx, cy, r := b.random.IntN(w), b.random.IntN(h), 1+b.random.IntN(w)
	for y := range h {
		for x := range w {
			c := color.NRGBA{uint8(x * 255 / w), uint8(y * 255 / h), uint8(b.random.IntN(32)), 255}
			if (x-cx)*(x-cx)+(y-cy)*(y-cy) < r*r/4 {
				c.R, c.B = 255-c.R, 200
			}
			img.SetNRGBA(x, y, c)
		}
	}
	var out strings.Builder
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&out, img); err != nil {
		panic(err) // encoding to memory cannot fail
	}
	return []byte(out.String())
}

// serve starts Kiln and waits until it has built everything.
func (b *bench) serve() (stop func(), address string, err error) {
	cmd := exec.Command(b.kiln, "serve", "--listen", "127.0.0.1:0", "-C", b.dir)
	out, err := cmd.StderrPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	b.pid = cmd.Process.Pid
	stop = func() {
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
	}
	lines := bufio.NewScanner(out)
	var said []string
	for lines.Scan() {
		said = append(said, lines.Text())
		if a, ok := strings.CutPrefix(lines.Text(), "serving "); ok {
			address = a
		}
		if strings.HasPrefix(lines.Text(), "built ") {
			fmt.Fprintln(os.Stderr, lines.Text())
			go io.Copy(io.Discard, out)
			return stop, address, nil
		}
	}
	stop()
	return nil, "", fmt.Errorf("%s ended: %s", b.kiln, strings.Join(said, "\n"))
}

func (b *bench) connect(address string) error {
	b.arrived = make(chan time.Time, 1)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var err error
	b.lib, err = client.Connect(ctx, client.Options{Address: address, Game: "latency", Notify: func(e client.Event) {
		if _, ok := e.(client.Arrived); ok {
			select {
			case b.arrived <- time.Now():
			default:
			}
		}
	}})
	if err != nil {
		return err
	}
	b.lib.Register("", func(in *client.Loading) (any, error) { return in.Resource.Bytes() })
	for _, r := range b.lib.Resources() {
		if strings.HasPrefix(r.Name(), "others/") {
			continue
		}
		if _, err := b.lib.LoadName(r.Name()); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) scenes() []scene {
	path := func(name string) string { return filepath.Join(b.dir, "assets", filepath.FromSlash(name)) }
	texture := [][]byte{b.picture(b.size, b.size), b.picture(b.size, b.size)}
	sprite := func(folder string) func(n int) time.Time {
		return func(n int) time.Time {
			name := path(fmt.Sprintf("%s/s%04d.png", folder, n*97%b.sprites))
			return replace(name, b.like(name))
		}
	}
	return []scene{
		{"a small data file, renamed into place", 60 * time.Millisecond, "data/waves.json", func(n int) time.Time { return replace(path("data/waves.json"), data(n+1)) }},
		{"a small data file, written in place", 60 * time.Millisecond, "data/waves.json", func(n int) time.Time { return overwrite(path("data/waves.json"), data(1000+n)) }},
		{"a text file that is copied", 0, "text/hints.txt", func(n int) time.Time { return replace(path("text/hints.txt"), fmt.Appendln(nil, n+1)) }},
		{fmt.Sprintf("a texture of %d x %d, BC1 with mips, `fast`", b.size, b.size), 250 * time.Millisecond, "textures/small.png",
			func(n int) time.Time { return replace(path("textures/small.png"), noted(texture[n%2], n)) }},
		{"the same, BC7, the draft of `draft-then-final`", 250 * time.Millisecond, "textures/draft.png",
			func(n int) time.Time { return replace(path("textures/draft.png"), noted(texture[n%2], n)) }},
		{"the same, BC7, `fast`", 250 * time.Millisecond, "textures/rock.png",
			func(n int) time.Time { return replace(path("textures/rock.png"), noted(texture[n%2], n)) }},
		{fmt.Sprintf("a sprite of an atlas of %d", b.sprites), 200 * time.Millisecond, "sprites/", sprite("sprites")},
		{"the same, a sprite of a page in BC7 of `normal` quality", 0, "icons/", sprite("icons")},
	}
}

// like returns another picture of the same size.
func (b *bench) like(name string) []byte {
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	c, err := png.DecodeConfig(f)
	if err != nil {
		return nil
	}
	return b.picture(c.Width, c.Height)
}

// noted returns the picture with a pixel that no earlier edit had, so that nothing comes from the cache.
func noted(data []byte, n int) []byte {
	img, err := png.Decode(strings.NewReader(string(data)))
	if err != nil {
		return data
	}
	img.(draw.Image).Set(n%64, n/64, color.NRGBA{uint8(n), uint8(n >> 8), 77, 255})
	var out strings.Builder
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&out, img); err != nil {
		return data
	}
	return []byte(out.String())
}

// replace writes a new file and renames it, as most programs save.
func replace(path string, data []byte) time.Time {
	overwrite(path+".tmp~", data)
	os.Rename(path+".tmp~", path)
	return time.Now()
}

// overwrite writes in place. The time starts after close(2).
func overwrite(path string, data []byte) time.Time {
	os.WriteFile(path, data, 0o666)
	return time.Now()
}

// measure makes the edits of a scene and waits for each.
func (b *bench) measure(s scene) error {
	var took []time.Duration
	used := time.Duration(0)
	for i := range b.n {
		before := processorTime(b.pid)
		saved := s.edit(i)
		for late, done := time.After(30*time.Second), false; !done; {
			select {
			case <-b.arrived:
			case <-late:
				return fmt.Errorf("%s: nothing came of edit %d in 30 s", s.name, i)
			}
			for _, x := range b.lib.Poll() {
				if x.Kept != nil {
					return x.Kept
				}
				done = done || x.Resource.Asset() == s.resource
			}
		}
		took = append(took, time.Since(saved))
		used += processorTime(b.pid) - before
		b.settle()
	}
	slices.Sort(took)
	bar := ""
	if s.bar > 0 {
		bar = fmt.Sprintf("%d ms", s.bar.Milliseconds())
	}
	ms := func(at int) string { return fmt.Sprintf("%.0f ms", took[at].Seconds()*1000) }
	cpu := "?"
	if used > 0 {
		cpu = fmt.Sprintf("%.0f ms", used.Seconds()*1000/float64(b.n))
	}
	fmt.Printf("| %s | %s | %s | %s | %s | %s |\n", s.name, ms(len(took)/2), ms(len(took)*9/10), ms(len(took)-1), bar, cpu)
	return nil
}

// settle waits until no changes arrive and Kiln is idle. The final texture follows its draft, and its job would have to
// be stopped first.
func (b *bench) settle() {
	const quiet = 200 * time.Millisecond
	for rest, used := 0, processorTime(b.pid); rest < 3; {
		select {
		case <-b.arrived:
			b.lib.Poll()
			rest = 0
		case <-time.After(quiet):
			now := processorTime(b.pid)
			if rest++; now-used > 10*time.Millisecond {
				rest = 0
			}
			used = now
		}
	}
}

// processorTime returns the user and system time of a process on Linux, in the hundredths of a second of proc(5).
func processorTime(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// removeAll also removes read-only files.
func removeAll(dir string) error {
	filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			os.Chmod(path, 0o777)
		}
		return nil
	})
	return os.RemoveAll(dir)
}
