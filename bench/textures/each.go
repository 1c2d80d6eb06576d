package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/media/codec/block"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
)

// named is a picture with the name of its file.
type named struct {
	name string
	picture
}

// trial is an encoder with a quality.
type trial struct {
	format string
	q      block.Quality
	title  string
}

// trials are the encoders that users wait for.
var trials = []trial{
	{"BC1", block.Normal, "BC1 normal"},
	{"BC5", block.Normal, "BC5 normal"},
	{"BC6H", block.Fast, "BC6H fast"},
	{"BC6H", block.Normal, "BC6H normal"},
	{"BC7", block.Fast, "BC7 fast"},
	{"BC7", block.Normal, "BC7 normal"},
	{"ETC2 RGBA8", block.Fast, "ETC2 RGBA8 fast"},
	{"ETC2 RGBA8", block.Normal, "ETC2 RGBA8 normal"},
	{"EAC RG11", block.Normal, "EAC RG11 normal"},
	{"ASTC 4x4", block.Fast, "ASTC 4x4 fast"},
	{"ASTC 4x4", block.Normal, "ASTC 4x4 normal"},
	{"ASTC 6x6", block.Fast, "ASTC 6x6 fast"},
	{"ASTC 6x6", block.Normal, "ASTC 6x6 normal"},
	{"ASTC 8x8", block.Fast, "ASTC 8x8 fast"},
	{"ASTC 8x8", block.Normal, "ASTC 8x8 normal"},
}

// each prints a row for each picture: the result of each encoder and the CPU seconds that it takes. It shows pictures
// that became worse, which the mean of a set hides.
func each(w io.Writer, dir, photo, only string, side, runs int) error {
	if dir == "" {
		return errors.New("-each needs a folder of real content: name it in -corpus or KILN_CORPUS")
	}
	pictures, err := piecesOf(dir, photo, side)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "Up to %d x %d pixels of the middle of each picture; GOMAXPROCS=%d; median of %d runs, in CPU seconds.\n\n| picture |",
		side, side, runtime.GOMAXPROCS(0), runs)
	columns := slices.DeleteFunc(slices.Clone(trials), func(t trial) bool { return !strings.HasPrefix(t.title, only) })
	for _, t := range columns {
		fmt.Fprintf(w, " %s | s |", t.title)
	}
	fmt.Fprintf(w, "\n|---|%s\n", strings.Repeat("---|", 2*len(columns)))
	mean, pixels := make([]result, len(columns)), 0
	for _, p := range pictures {
		p.light = p.image.Light(true)
		s := set{pictures: []picture{p.picture}}
		fmt.Fprintf(w, "| %s |", p.name)
		pixels += len(p.image.Pix) / 4
		for i, t := range columns {
			r, err := s.try(t.format, t.q, runs)
			if err != nil {
				return fmt.Errorf("%s as %s: %w", p.name, t.title, err)
			}
			mean[i].db += r.db / float64(len(pictures))
			mean[i].cpu += r.cpu
			fmt.Fprintf(w, " %.3f | %.4f |", r.db, r.cpu)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprint(w, "| mean dB; s of a million pixels |")
	for _, r := range mean {
		fmt.Fprintf(w, " %.3f | %.4f |", r.db, r.cpu*1e6/float64(pixels))
	}
	fmt.Fprintln(w)
	return nil
}

// try measures Kiln's encoder for a format. A result without an error counts as 99 dB.
func (s *set) try(format string, q block.Quality, runs int) (result, error) {
	c := codecs[slices.IndexFunc(codecs, func(c codec) bool { return c.name == format })]
	channels := c.channels
	if format == "BC7" && s.opaque() {
		channels = 3
	}
	o := block.Options{Quality: q, Workers: runtime.GOMAXPROCS(0)}
	r, err := s.measure(c, channels, runs, func(p *picture) (data []byte, t spent, err error) {
		t = timed(func() { data, err = c.encode(p, o) })
		return data, t, err
	})
	r.db = min(r.db, 99)
	return r, err
}

// piecesOf returns the middle of every picture of at least 256 a side, without duplicates, sorted by name, and that of
// a photograph.
func piecesOf(dir, photo string, side int) ([]named, error) {
	var all []named
	seen := map[[32]byte]bool{}
	add := func(name string) error {
		m, err := decoded(name)
		if err != nil || m == nil {
			return err
		}
		w, h := min(m.Width, side), min(m.Height, side)
		m = m.Crop((m.Width-w)/2, (m.Height-h)/2, w, h)
		if sum := sha256.Sum256(m.Pix); !seen[sum] {
			seen[sum] = true
			all = append(all, named{filepath.Base(name), picture{image: m}})
		}
		return nil
	}
	if photo != "" {
		if err := add(photo); err != nil {
			return nil, err
		}
	}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		return add(name)
	})
	return all, err
}

// decoded returns a picture that is large enough, or nil. A file that is not a picture, or is damaged on purpose, is no
// error. A photograph of light becomes colours of 8 bits.
func decoded(name string) (*pixel.Image, error) {
	if !slices.Contains([]string{".png", ".jpg", ".hdr"}, filepath.Ext(name)) {
		return nil, nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	c, err := pixel.DecodeConfig(name, data)
	if err != nil || min(c.Width, c.Height) < 256 {
		return nil, nil
	}
	m, err := pixel.Decode(name, data, pixel.DefaultLimits())
	if err != nil {
		return nil, nil
	}
	return m, nil
}
