// Command textures measures how well and how fast Kiln encodes textures, compared with other encoders, and prints a
// table:
//
//	go run ./bench/textures [-photo FILE] [-corpus DIR] [-runs N]
//	GOMAXPROCS=1 go run ./bench/textures -each 512 [-photo FILE] [-corpus DIR] [-only "BC7 normal"]
//
// There are two sets of pictures: a photograph, and every picture of exactly 1024 x 1024 in a folder of real game
// content. Without a photograph it uses a picture made from a seed, whose figures are not those of photographs: the
// targets do not apply to it.
//
// The peers are those in Debian: astcenc, and libsquish through peers/squish.cpp, which is compiled if g++ and
// libsquish-dev are installed. Kiln decodes their output; its decoders give the same result as theirs
// (internal/media/texture/judge_test.go). A peer that is not installed is listed and left out.
//
// With -each it prints a row for each picture of the folder instead, photographs and drawn art, without peers.
//
// Seconds are the median of the runs for the photograph, and a single run over all textures of games: wall time on all
// cores, and processor time, which depends less on other programs.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/kiln-pipeline/kiln/internal/media/codec/block"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
)

func main() {
	photo := flag.String("photo", "", "a photograph, at least 1024 x 1024; the middle of a larger one is taken")
	corpus := flag.String("corpus", os.Getenv("KILN_CORPUS"), "folder of real content")
	runs := flag.Int("runs", 3, "runs of the photograph, of which the median is printed; textures of games, of which there are more, are encoded once")
	only := flag.String("only", "", "only formats whose name begins so: \"ASTC\"")
	side := flag.Int("each", 0, "a row for each picture: this number of pixels a side of its middle")
	flag.Parse()
	if *side > 0 {
		if err := each(os.Stdout, *corpus, *photo, *only, *side, max(1, *runs)); err != nil {
			fmt.Fprintln(os.Stderr, "textures:", err)
			os.Exit(1)
		}
		return
	}
	if *corpus == "" {
		fmt.Fprintln(os.Stderr, "textures: KILN_CORPUS is not set and there is no -corpus: no textures of games")
	}
	if err := run(os.Stdout, *photo, *corpus, *only, max(1, *runs)); err != nil {
		fmt.Fprintln(os.Stderr, "textures:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, photo, corpus, only string, runs int) error {
	sets, err := picturesOf(photo, corpus)
	if err != nil {
		return err
	}
	p, err := findPeers()
	if err != nil {
		return err
	}
	defer p.close()
	for _, missing := range p.missing {
		fmt.Fprintf(w, "Not taking part: %s\n", missing)
	}
	fmt.Fprintf(w, "%d cores, load %s before; median of %d runs of the photograph.\n", runtime.GOMAXPROCS(0), load(), runs)
	for _, s := range sets {
		if len(s.pictures) > 1 {
			runs = 1
		}
		fmt.Fprintf(w, "\n%s:\n\n| format | encoder | dB | of | seconds | CPU | against the peer | asked | |\n|---|---|---|---|---|---|---|---|---|\n", s.name)
		for _, c := range codecs {
			if !strings.HasPrefix(c.name, only) {
				continue
			}
			if err := s.table(w, c, p, runs); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
		if only == "" {
			s.mips(w, runs)
		}
	}
	fmt.Fprintf(w, "\nLoad %s after.\n", load())
	return nil
}

// table prints the rows of a format: the peer's and Kiln's.
func (s *set) table(w io.Writer, c codec, p *peers, runs int) error {
	channels := c.channels
	if c.name == "BC7" && s.opaque() {
		channels = 3 // alpha has no error and would improve the figure
	}
	var theirs [3]result // for each quality
	for _, q := range []block.Quality{block.Fast, block.Normal, block.Best} {
		name, encode := p.of(c, q)
		if encode == nil {
			continue
		}
		if q == block.Best && name == theirs[block.Normal].name {
			theirs[q] = theirs[block.Normal]
			continue
		}
		r, err := s.measure(c, channels, runs, encode)
		if err != nil {
			return err
		}
		r.name = name
		theirs[q] = r
		fmt.Fprintf(w, "| %s | %s | %.2f | %s | %.3f | %.3f | | | |\n", c.name, name, r.db, "RGBA"[:channels], r.wall, r.cpu)
	}
	for q, name := range []string{"fast", "normal", "best"} {
		o := block.Options{Quality: block.Quality(q), Workers: runtime.GOMAXPROCS(0)}
		r, err := s.measure(c, channels, runs, func(p *picture) ([]byte, spent, error) {
			var data []byte
			var err error
			t := timed(func() { data, err = c.encode(p, o) })
			return data, t, err
		})
		if err != nil {
			return err
		}
		ratio := ""
		if t := theirs[q]; t.cpu > 0 {
			ratio = fmt.Sprintf("%+.2f dB, %.2f of the CPU of %s", r.db-t.db, r.cpu/t.cpu, t.name)
		}
		var want, verdict string
		if s.photo {
			want, verdict = c.targets[q].judge(r, theirs[q])
		}
		fmt.Fprintf(w, "| %s | **Kiln %s** | %.2f | %s | %.3f | %.3f | %s | %s | %s |\n", c.name, name, r.db, "RGBA"[:channels], r.wall, r.cpu, ratio, want, verdict)
	}
	return nil
}

// mips prints the time for all smaller levels, with the averaging for colours.
func (s *set) mips(w io.Writer, runs int) {
	f := pixel.Filter{SRGB: true, Weighted: true, Workers: runtime.GOMAXPROCS(0)}
	var all []spent
	for range max(runs, 9) { // short, and easily disturbed
		t := timed(func() {
			for _, p := range s.pictures {
				f.Mips(p.image)
			}
		})
		all = append(all, t)
	}
	r := result{spent: median(all)}
	var want, verdict string
	if s.photo {
		want, verdict = target{seconds: 0.02}.judge(r, result{})
	}
	fmt.Fprintf(w, "| mips | **Kiln** | | RGBA | %.3f | %.3f | | %s | %s |\n", r.wall, r.cpu, want, verdict)
}

// spent is a time in seconds.
type spent struct{ wall, cpu float64 }

// result is the result of an encoder for a set.
type result struct {
	name string
	db   float64
	spent
}

// target is the requirement for an encoder with a photograph of 1024 x 1024 on two cores. Zeros require nothing.
type target struct{ db, seconds float64 }

// judge returns the requirement and whether it was met. Photographs differ by many dB, so the answer includes whether
// the peer reaches the same figure with this one.
func (t target) judge(r, peer result) (want, verdict string) {
	if t == (target{}) {
		return "", ""
	}
	want = fmt.Sprintf("≤ %g s", t.seconds)
	if t.db > 0 {
		want = fmt.Sprintf("≥ %.1f dB, %s", t.db, want)
	}
	switch {
	case r.db < t.db && r.cpu/2 > t.seconds:
		return want, "both missed"
	case r.db < t.db && peer.name != "" && peer.db < t.db:
		return want, "dB missed, and by the peer, too"
	case r.db < t.db:
		return want, "dB missed"
	case r.wall <= t.seconds:
		return want, "held"
	case r.cpu/2 <= t.seconds:
		return want, "held by half its CPU time"
	}
	return want, "time missed"
}

// measure encodes all pictures several times. The mean error is over all pixels of the set.
func (s *set) measure(c codec, channels, runs int, encode func(*picture) ([]byte, spent, error)) (result, error) {
	var all []spent
	var squares, values float64
	for n := range runs {
		var sum spent
		for i := range s.pictures {
			p := &s.pictures[i]
			data, t, err := encode(p)
			if err != nil {
				return result{}, err
			}
			sum.wall += t.wall
			sum.cpu += t.cpu
			if n > 0 {
				continue
			}
			got, err := c.decode(data, p.image.Width, p.image.Height)
			if err != nil {
				return result{}, err
			}
			squares += squaredError(got, p.image.Pix, channels)
			values += float64(len(got) / 4 * channels)
		}
		all = append(all, sum)
	}
	return result{db: decibels(squares, values), spent: median(all)}, nil
}

func timed(work func()) spent {
	runtime.GC() // do not measure the collection of earlier garbage
	start, used := time.Now(), cpu()
	work()
	return spent{time.Since(start).Seconds(), (cpu() - used).Seconds()}
}

// median returns the median of each column separately.
func median(all []spent) spent {
	var wall, cpu []float64
	for _, s := range all {
		wall, cpu = append(wall, s.wall), append(cpu, s.cpu)
	}
	slices.Sort(wall)
	slices.Sort(cpu)
	return spent{wall[len(wall)/2], cpu[len(cpu)/2]}
}

// load returns the load average of the machine, if the system reports it.
func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(data))[:3], " ")
}
