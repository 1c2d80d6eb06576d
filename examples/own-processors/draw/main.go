// Command draw draws the sheet of tiles, and the map of its built tiles:
//
//	go run ./examples/own-processors/draw
//	go run ./examples/own-processors/tools/kiln build -C examples/own-processors
//	go run ./examples/own-processors/draw build/pc/star/clearing.map.tiles docs/map.png
package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
)

// dir is the folder of the example, relative to the repository.
const dir = "examples/own-processors"

// sheetFile is the picture of the tiles, four in a row.
const sheetFile = "assets/tiles/forest.png"

func main() {
	var err error
	if len(os.Args) == 3 {
		err = drawMap(filepath.Join(dir, os.Args[1]), filepath.Join(dir, os.Args[2]))
	} else {
		err = save(filepath.Join(dir, sheetFile), sheet())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func drawMap(tiles, picture string) error {
	data, err := os.ReadFile(tiles)
	if err != nil {
		return err
	}
	m, err := layOut(data, sheet(), 2)
	if err != nil {
		return err
	}
	return save(picture, m)
}

func save(file string, m image.Image) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(png.Encode(f, m), f.Close())
}

// layOut draws a built map: width, height, size of a tile and tiles in a row of the sheet, then each tile, all in 16
// bits.
func layOut(data []byte, sheet image.Image, scale int) (*image.NRGBA, error) {
	at := func(i int) int { return int(binary.LittleEndian.Uint16(data[2*i:])) }
	if len(data) < 8 || len(data) != 8+2*at(0)*at(1) {
		return nil, fmt.Errorf("%d bytes are not a map", len(data))
	}
	width, height, size, columns := at(0), at(1), at(2), at(3)
	m := image.NewNRGBA(image.Rect(0, 0, width*size*scale, height*size*scale))
	for y := range m.Rect.Dy() {
		for x := range m.Rect.Dx() {
			px, py := x/scale, y/scale
			tile := at(4 + py/size*width + px/size)
			m.Set(x, y, sheet.At(tile%columns*size+px%size, tile/columns*size+py%size))
		}
	}
	return m, nil
}

const size = 16 // side of a tile

// shade returns the colour of a tile's pixel.
type shade func(x, y int) color.NRGBA

// sheet draws the tiles in the order of their numbers.
func sheet() *image.NRGBA {
	tiles := []shade{grass, flowers, tree, wall, water, path, bridge, rock}
	m := image.NewNRGBA(image.Rect(0, 0, 4*size, len(tiles)/4*size))
	for i, tile := range tiles {
		corner := image.Pt(i%4*size, i/4*size)
		for y := range size {
			for x := range size {
				m.SetNRGBA(corner.X+x, corner.Y+y, tile(x, y))
			}
		}
	}
	return m
}

// noise returns a pseudo-random number from 0 to n-1.
func noise(x, y, seed, n int) int {
	h := uint32(x*374761393 + y*668265263 + seed*1442695041)
	h = (h ^ h>>13) * 1274126177
	return int((h ^ h>>16) % uint32(n))
}

func rgb(hex uint32) color.NRGBA {
	return color.NRGBA{byte(hex >> 16), byte(hex >> 8), byte(hex), 255}
}

func grass(x, y int) color.NRGBA {
	return rgb([]uint32{0x6aa84f, 0x6aa84f, 0x6aa84f, 0x74b358, 0x629e49}[noise(x, y, 1, 5)])
}

func flowers(x, y int) color.NRGBA {
	for i, f := range []image.Point{{3, 4}, {11, 3}, {7, 10}, {13, 12}, {2, 13}} {
		switch d := abs(x-f.X) + abs(y-f.Y); {
		case d == 0:
			return rgb(0xffe066)
		case d == 1:
			return rgb([]uint32{0xf7f4ea, 0xf28fb1, 0xc9a0f0}[i%3])
		case x == f.X && y == f.Y+2:
			return rgb(0x44803a)
		}
	}
	return grass(x, y)
}

func tree(x, y int) color.NRGBA {
	dx, dy := float64(x)-7.5, float64(y)-6.5
	switch d := math.Hypot(dx, dy) + float64(noise(x, y, 2, 10))/10; {
	case d < 6.8:
		light := d + dx*0.35 + dy*0.45 // light from the upper left
		return rgb([]uint32{0x4f9a46, 0x3f8a3d, 0x2f7434, 0x255f2d, 0x1d4d26}[min(4, max(0, int(light/2)))])
	case x >= 6 && x <= 9 && y >= 12:
		return rgb([]uint32{0x7a5230, 0x654225}[x/8])
	case math.Hypot(dx, float64(y)-13) < 6 && y > 9:
		return rgb(0x4b8340) // its shadow
	}
	return grass(x, y)
}

func wall(x, y int) color.NRGBA {
	row := y / 4
	if y%4 == 3 || (x+row%2*4)%8 == 7 {
		return rgb(0x55524c)
	}
	stone := noise((x+row%2*4)/8, row, 3, 3)
	if y%4 == 0 {
		return rgb(0xb4ada0)
	}
	return rgb([]uint32{0x98917f, 0x8d8676, 0xa39c8b}[stone])
}

func water(x, y int) color.NRGBA {
	wave := float64(y) + 1.5*math.Sin(float64(x)*math.Pi/8)
	switch phase := math.Mod(wave+16, 8); {
	case phase < 1:
		return rgb(0x9fd3ee)
	case phase < 2:
		return rgb(0x5aa9d6)
	}
	return rgb([]uint32{0x3d8dc1, 0x3d8dc1, 0x3887ba}[noise(x, y, 4, 3)])
}

func path(x, y int) color.NRGBA {
	if noise(x/2, y/2, 5, 11) == 0 {
		return rgb(0xa58a5f)
	}
	return rgb([]uint32{0xcdb384, 0xcdb384, 0xc4a977, 0xd6bd90}[noise(x, y, 6, 4)])
}

func bridge(x, y int) color.NRGBA {
	switch {
	case y == 0 || y == 15:
		return rgb(0x5f3f22)
	case x%4 == 3:
		return rgb(0x6d4a2a)
	case noise(x/4, y/5, 7, 4) == 0 && y%5 == 2 && x%4 == 1:
		return rgb(0x4a321c) // a nail
	}
	return rgb([]uint32{0xa97c50, 0xa0744a, 0xb08456}[noise(x/4, 0, 8, 3)])
}

func rock(x, y int) color.NRGBA {
	dx, dy := float64(x)-7.5, (float64(y)-8.5)*1.25
	switch d := math.Hypot(dx, dy); {
	case d < 5.6:
		light := d + dx*0.5 + dy*0.6 + float64(noise(x, y, 9, 10))/10
		return rgb([]uint32{0xc2c2c2, 0xadadad, 0x969696, 0x7d7d7d, 0x686868}[min(4, max(0, int(light/2)))])
	case d < 6.8 && y > 9:
		return rgb(0x4b8340)
	}
	return grass(x, y)
}

func abs(n int) int { return max(n, -n) }
