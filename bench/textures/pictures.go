package main

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/media/pixel"
)

// side of all pictures in pixels, as in the targets.
const side = 1024

type picture struct {
	image *pixel.Image
	light *pixel.Float // for formats of light
}

// set is pictures that share a table.
type set struct {
	name     string
	photo    bool // the targets apply to it
	pictures []picture
}

func (s *set) add(m *pixel.Image) { s.pictures = append(s.pictures, picture{m, m.Light(true)}) }

func (s *set) opaque() bool {
	for _, p := range s.pictures {
		if !p.image.Opaque() {
			return false
		}
	}
	return true
}

func picturesOf(photo, corpus string) ([]*set, error) {
	first := &set{name: "A picture made from a seed, no photograph", pictures: nil}
	if photo == "" {
		first.add(made())
	} else {
		m, err := load1024(photo)
		if err != nil {
			return nil, err
		}
		first.name, first.photo = "A photograph, 1024 x 1024", true
		first.add(m)
	}
	if corpus == "" {
		return []*set{first}, nil
	}
	games := &set{}
	if err := games.find(corpus); err != nil {
		return nil, err
	}
	if len(games.pictures) == 0 {
		return []*set{first}, nil
	}
	games.name = fmt.Sprintf("%d textures of games, 1024 x 1024, together", len(games.pictures))
	return []*set{first, games}, nil
}

func load1024(name string) (*pixel.Image, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	m, err := pixel.Decode(name, data, pixel.DefaultLimits())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if m.Width < side || m.Height < side {
		return nil, fmt.Errorf("%s is %d x %d, smaller than %d a side", name, m.Width, m.Height, side)
	}
	return m.Crop((m.Width-side)/2, (m.Height-side)/2, side, side), nil
}

// find adds every picture of the right size once, sorted by name.
func (s *set) find(dir string) error {
	seen := map[[32]byte]bool{}
	return filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(name, ".png") && !strings.HasSuffix(name, ".jpg") {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		c, err := pixel.DecodeConfig(name, data)
		if err != nil || c.Width != side || c.Height != side {
			return nil // damaged on purpose, or not a picture
		}
		m, err := pixel.Decode(name, data, pixel.DefaultLimits())
		if sum := sha256.Sum256(data); err == nil && !seen[sum] {
			seen[sum] = true
			s.add(m)
		}
		return nil
	})
}

// made returns a picture with the properties of photographs: large soft shapes, smaller ones on top with decreasing
// contrast, and grain.
func made() *pixel.Image {
	m := pixel.New(side, side)
	for y := range side {
		for x := range side {
			var rgb [3]int
			for octave, size := 0, side/2; size >= 2; octave, size = octave+1, size/2 {
				v := lattice(x, y, size, octave) - 128
				for c := range 3 {
					tint := lattice(x, y, max(size, 64), 100+3*octave+c) // colours change more slowly than brightness
					rgb[c] += v * (192 + tint/2) * size / side
				}
			}
			for c := range 3 {
				grain := hash(x, y, 200+c)%7 - 3
				m.Pix[4*(y*side+x)+c] = byte(max(0, min(255, 120+rgb[c]/128+grain)))
			}
			m.Pix[4*(y*side+x)+3] = 255
		}
	}
	return m
}

// lattice is noise from 0 to 255, interpolated linearly between points at a distance of size.
func lattice(x, y, size, seed int) int {
	gx, gy, fx, fy := x/size, y/size, x%size, y%size
	top := hash(gx, gy, seed)%256*(size-fx) + hash(gx+1, gy, seed)%256*fx
	low := hash(gx, gy+1, seed)%256*(size-fx) + hash(gx+1, gy+1, seed)%256*fx
	return (top*(size-fy) + low*fy) / (size * size)
}

func hash(x, y, seed int) int {
	h := uint32(x)*0x9e3779b1 ^ uint32(y)*0x85ebca77 ^ uint32(seed)*0xc2b2ae3d
	h = (h ^ h>>15) * 0x2c1b3c6d
	h = (h ^ h>>12) * 0x297a2d39
	return int((h ^ h>>15) >> 8)
}
