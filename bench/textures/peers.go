package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"

	_ "embed"

	"github.com/kiln-pipeline/kiln/internal/media/codec/astc"
	"github.com/kiln-pipeline/kiln/internal/media/codec/block"
)

//go:embed peers/squish.cpp
var squishSource []byte

// peers are the other encoders that are installed.
type peers struct {
	dir     string
	astcenc string // the program, or empty
	squish  string
	missing []string
	start   map[string]spent // time of astcenc for almost nothing, by its arguments; it is subtracted
}

func findPeers() (*peers, error) {
	dir, err := os.MkdirTemp("", "textures")
	if err != nil {
		return nil, err
	}
	p := &peers{dir: dir, start: map[string]spent{}}
	if p.astcenc, err = exec.LookPath("astcenc"); err != nil {
		p.missing = append(p.missing, "astcenc, which is not installed (Debian: astcenc)")
	}
	source, program := filepath.Join(dir, "squish.cpp"), filepath.Join(dir, "squish")
	if err := os.WriteFile(source, squishSource, 0o600); err != nil {
		return nil, errors.Join(err, p.close())
	}
	if out, err := exec.Command("g++", "-O2", "-o", program, source, "-lsquish").CombinedOutput(); err != nil {
		line, _, _ := bytes.Cut(out, []byte("\n"))
		p.missing = append(p.missing, fmt.Sprintf("libsquish, which g++ cannot use (Debian: g++, libsquish-dev): %v %s", err, line))
	} else {
		p.squish = program
	}
	return p, nil
}

func (p *peers) close() error { return os.RemoveAll(p.dir) }

// of returns the peer for a format and a quality, with its name, or nil. Libsquish has only two methods: normal and
// best have the same peer.
func (p *peers) of(c codec, q block.Quality) (string, func(*picture) ([]byte, spent, error)) {
	switch {
	case c.peer == "astcenc" && p.astcenc != "":
		preset := [...]string{"fast", "medium", "thorough"}[q]
		return "astcenc -" + preset, func(m *picture) ([]byte, spent, error) { return p.runASTC(m, c.arg, "-"+preset) }
	case c.peer == "libsquish" && p.squish != "":
		fit := [...]string{"range", "cluster", "cluster"}[q]
		return "libsquish " + fit, func(m *picture) ([]byte, spent, error) { return p.runSquish(m, fit, c.arg) }
	}
	return "", nil
}

// runSquish runs libsquish, which measures its own time. It uses all cores if it was built so, as Debian's is. For BC1
// it would leave out transparent colours, which Kiln encodes too; so both get opaque pixels.
func (p *peers) runSquish(m *picture, fit, format string) ([]byte, spent, error) {
	cmd := exec.Command(p.squish, "encode", fit, format, strconv.Itoa(m.image.Width), strconv.Itoa(m.image.Height))
	var out, said bytes.Buffer
	pix := m.image.Pix
	if format == "bc1" {
		pix = slices.Clone(pix)
		for i := 3; i < len(pix); i += 4 {
			pix[i] = 255
		}
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(pix), &out, &said
	if err := cmd.Run(); err != nil {
		return nil, spent{}, fmt.Errorf("squish: %w %s", err, said.Bytes())
	}
	var t spent
	if _, err := fmt.Sscan(said.String(), &t.wall, &t.cpu); err != nil {
		return nil, spent{}, fmt.Errorf("squish said %q: %w", said.String(), err)
	}
	return out.Bytes(), t, nil
}

// runASTC runs astcenc on all cores. Its time is that of the process, minus that for a picture of 8 x 8, which is the
// time for tables and threads.
func (p *peers) runASTC(m *picture, footprint, preset string) ([]byte, spent, error) {
	key := footprint + preset
	if _, ok := p.start[key]; !ok {
		_, t, err := p.astcencOnce(make([]byte, 4*8*8), 8, 8, footprint, preset)
		if err != nil {
			return nil, spent{}, err
		}
		p.start[key] = t
	}
	data, t, err := p.astcencOnce(m.image.Pix, m.image.Width, m.image.Height, footprint, preset)
	if err != nil {
		return nil, spent{}, err
	}
	s := p.start[key]
	return data, spent{max(0, t.wall-s.wall), max(0, t.cpu-s.cpu)}, nil
}

func (p *peers) astcencOnce(rgba []byte, width, height int, footprint, preset string) ([]byte, spent, error) {
	in, out := filepath.Join(p.dir, "in.tga"), filepath.Join(p.dir, "out.astc")
	if err := os.WriteFile(in, tga(rgba, width, height), 0o600); err != nil {
		return nil, spent{}, err
	}
	cmd := exec.Command(p.astcenc, "-cl", in, out, footprint, preset, "-j", strconv.Itoa(runtime.NumCPU()), "-silent")
	start := time.Now()
	if said, err := cmd.CombinedOutput(); err != nil {
		return nil, spent{}, fmt.Errorf("astcenc: %w %s", err, said)
	}
	t := spent{time.Since(start).Seconds(), (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()}
	data, err := os.ReadFile(out)
	if err != nil {
		return nil, spent{}, err
	}
	file, err := astc.Read(data)
	return file.Blocks, t, err
}

// tga returns the format that is fastest to read: BGRA of 8 bits, rows from the top.
func tga(rgba []byte, width, height int) []byte {
	b := make([]byte, 18, 18+len(rgba))
	b[2] = 2 // uncompressed colours
	b[12], b[13], b[14], b[15], b[16], b[17] = byte(width), byte(width>>8), byte(height), byte(height>>8), 32, 0x28
	for i := 0; i < len(rgba); i += 4 {
		b = append(b, rgba[i+2], rgba[i+1], rgba[i], rgba[i+3])
	}
	return b
}
