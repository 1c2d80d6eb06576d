package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/kiln-pipeline/kiln/internal/store/share/reapi/reapitest"
)

// measure builds some projects completely, here and with 1, 2 and 4 workers on this machine, compares the outputs, and
// prints the times. Each build has a new, empty server.
func measure(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("measure", flag.ContinueOnError)
	textures := flags.Int("textures", 500, "how many textures the first project has")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "kiln-testbed-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	_, here, _, _ := runtime.Caller(0)
	root := filepath.Dir(filepath.Dir(here))
	m := &measurement{kiln: filepath.Join(dir, "kiln"), dir: dir}
	if err := goBuild(ctx, root, "-o", m.kiln, "./cmd/kiln"); err != nil {
		return err
	}
	many := filepath.Join(dir, "textures")
	if err := makeTextures(many, *textures); err != nil {
		return err
	}
	knights, own := filepath.Join(dir, "knights"), filepath.Join(root, "examples", "_own-processors") // it has Go packages of this module
	defer os.RemoveAll(own)
	err = errors.Join(os.RemoveAll(own), copyExample(root, "knights", knights), copyExample(root, "own-processors", own))
	if err != nil {
		return err
	}
	fmt.Println("| project | workers | jobs | ran there | seconds | CPU, kiln | CPU, workers | CPU a job there | more than here |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|")
	for _, project := range []string{many, knights, own} {
		if err := m.project(ctx, project); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(project), err)
		}
	}
	return nil
}

// copyExample copies an example, and configures it to send every job that can be sent.
func copyExample(root, name, to string) error {
	if err := os.CopyFS(to, os.DirFS(filepath.Join(root, "examples", name))); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(to, "kiln.toml"), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString("\n[execution]\nall = true\n")
		err = errors.Join(err, f.Close())
	}
	return err
}

type measurement struct{ kiln, dir string }

// built is the cost of a build.
type built struct {
	jobs, remote int
	wall         time.Duration
	client       time.Duration // processor time
	workers      time.Duration
}

// project builds a project, and checks that the outputs are the same each time.
func (m *measurement) project(ctx context.Context, dir string) error {
	if _, err := m.build(ctx, dir, 0); err != nil { // records what jobs read, and compiles the project's own kiln
		return err
	}
	var want string
	var here built
	for _, workers := range []int{0, 1, 2, 4} {
		b, err := m.build(ctx, dir, workers)
		if err != nil {
			return err
		}
		got, err := outputs(filepath.Join(dir, "build"))
		if err != nil {
			return err
		}
		if workers == 0 {
			want, here = got, b
		}
		if got != want {
			return fmt.Errorf("with %d workers it comes out different", workers)
		}
		fmt.Printf("| %s | %d | %d | %d | %.1f | %.1f s | %.1f s |", filepath.Base(dir), workers, b.jobs, b.remote, b.wall.Seconds(),
			b.client.Seconds(), b.workers.Seconds())
		if b.remote > 0 {
			more := b.client + b.workers - here.client
			fmt.Printf(" %.0f ms | %.0f ms a job |", ms(b.workers)/float64(b.remote), ms(more)/float64(b.remote))
		} else {
			fmt.Print(" | |")
		}
		fmt.Println()
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// build builds a whole project. With workers, every job that can be sent is sent.
func (m *measurement) build(ctx context.Context, dir string, workers int) (b built, err error) {
	if err := os.RemoveAll(filepath.Join(dir, "build")); err != nil {
		return b, err
	}
	at, f := "off", (*reapitest.Farm)(nil)
	if workers > 0 {
		if f, err = reapitest.StartFarm(m.dir, workers); err != nil {
			return b, err
		}
		defer f.Stop()
		at = f.Address
	}
	c := exec.CommandContext(ctx, m.kiln, "-C", dir, "build", "--json", "--force")
	c.Env = append(os.Environ(), "KILN_EXECUTION="+at, "KILN_CACHE=off")
	c.Stderr = os.Stderr
	began := time.Now()
	out, err := c.Output()
	if err != nil {
		return b, err
	}
	b.wall, b.client = time.Since(began), c.ProcessState.UserTime()+c.ProcessState.SystemTime()
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	var sum struct{ Jobs, Remote int }
	err = json.Unmarshal(lines[len(lines)-1], &sum)
	b.jobs, b.remote = sum.Jobs, sum.Remote
	if f != nil {
		b.workers = f.CPU()
	}
	return b, err
}

// outputs returns the files of a folder with their contents, as text.
func outputs(dir string) (string, error) {
	var all strings.Builder
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		fmt.Fprintf(&all, "%s %q\n", name, data)
		return err
	})
	return all.String(), err
}

// makeTextures makes a project of different pictures.
func makeTextures(dir string, n int) error {
	if err := os.MkdirAll(filepath.Join(dir, "assets"), 0o777); err != nil {
		return err
	}
	const file = "[project]\nname = \"textures\"\n[execution]\nall = true\n[platforms.pc.texture]\nformat = \"bc7\"\n"
	err := os.WriteFile(filepath.Join(dir, "kiln.toml"), []byte(file), 0o666)
	for i := 0; i < n && err == nil; i++ {
		p := image.NewNRGBA(image.Rect(0, 0, 256, 256))
		for y := range 256 {
			for x := range 256 {
				v := uint8((x*x+y*(i+1))>>4 ^ x*y>>6)
				p.SetNRGBA(x, y, color.NRGBA{v, uint8(x + i), uint8(y), 255})
			}
		}
		var b bytes.Buffer
		if err = png.Encode(&b, p); err == nil {
			err = os.WriteFile(filepath.Join(dir, "assets", fmt.Sprintf("%03d.png", i)), b.Bytes(), 0o666)
		}
	}
	return err
}
