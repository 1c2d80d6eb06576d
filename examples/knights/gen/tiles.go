package main

import (
	"image"
	"image/color"
	"math"
)

// All tiles repeat in both directions, except grass, which has a top.
const tileSize = 64

// flagstones returns the height of the stone tile at a point: 0 in the joints, up to 1.
func flagstones(x, y float64) float64 {
	wrap := func(v float64) float64 { return math.Mod(v+2*tileSize, tileSize) }
	x, y = wrap(x), wrap(y)
	row := int(y / 16)
	shift := []float64{0, 10, 4, 13}[row]
	widths := [][]float64{{20, 24, 20}, {26, 16, 22}, {18, 22, 24}, {24, 22, 18}}[row]
	sx, start, col := wrap(x-shift), 0.0, 0
	for sx >= start+widths[col] {
		start += widths[col]
		col++
	}
	edge := -box(start, 0, start+widths[col], 16, 3)(sx, math.Mod(y, 16))
	slab := 1 - math.Pow(1-min(max((edge-0.6)/3, 0), 1), 2)
	worn := 0.30 * (clouds(x/8, y/8, 8, 91) - 0.5)
	high := 0.16 * hash01(col, row, 92)
	return slab * (0.78 + high + worn)
}

// slope returns the normal of the flagstones.
func slope(x, y int) (nx, ny, nz float64) {
	fx, fy := float64(x)+0.5, float64(y)+0.5
	dx := flagstones(fx+0.5, fy) - flagstones(fx-0.5, fy)
	dy := flagstones(fx, fy+0.5) - flagstones(fx, fy-0.5)
	l := math.Sqrt(dx*dx*9 + dy*dy*9 + 1)
	return -dx * 3 / l, -dy * 3 / l, 1 / l
}

func stoneTile() *canvas {
	c := newCanvas(tileSize, tileSize)
	c.each(func(x, y int) Colour {
		nx, ny, nz := slope(x, y)
		h := flagstones(float64(x)+0.5, float64(y)+0.5)
		t := 0.4 + 1.5*h + 1.9*(nx*lightX+ny*lightY+nz*lightZ-lightZ)
		moss := clouds(float64(x)/16, float64(y)/16, 4, 93)
		if moss > 0.62 && h < 0.7 {
			return green.tone(t+0.4, x, y, 0.4)
		}
		return stone.tone(t+0.35, x, y, 0.35)
	})
	return c
}

// stoneNormals is the stone tile as a normal map: X right, Y up as in OpenGL and glTF.
func stoneNormals() *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, tileSize, tileSize))
	pack := func(v float64) uint8 { return uint8(math.Round((v*0.5 + 0.5) * 255)) }
	for y := range tileSize {
		for x := range tileSize {
			nx, ny, nz := slope(x, y)
			m.SetNRGBA(x, y, color.NRGBA{pack(nx), pack(-ny), pack(nz), 255})
		}
	}
	return m
}

// grassTile is earth with pebbles under a ragged edge of grass.
func grassTile() *canvas {
	c := newCanvas(tileSize, tileSize)
	c.each(func(x, y int) Colour {
		n := clouds(float64(x)/16, float64(y)/16, 4, 95)
		return wood.tone(0.5+2.4*n-0.5*float64(y)/tileSize, x, y, 0.4)
	})
	for i := range 9 {
		x, y := 4+56*hash01(i, 1, 96), 28+32*hash01(i, 2, 96)
		r := 1.6 + 2.4*hash01(i, 3, 96)
		c.solid(ellipse(x, y, r*1.3, r), material{ramp: stone, base: 2, gain: 1.6, bevel: r, edge: true})
	}
	c.each(func(x, y int) Colour {
		tuft := 5 * noise(float64(x)/4, 0.5, 16, 97)
		root := 9 + tuft + 6*noise(float64(x)/2, 3.5, 32, 98)
		blade := 5*hash01(x, 0, 99) - 2
		fy := float64(y)
		switch {
		case fy < 4-blade:
			return clear
		case fy < root:
			return green.tone(3.9-2.6*(fy-4)/(root-4)+0.5*(hash01(x, y/2, 100)-0.5), x, y, 0.3)
		case fy < root+1.5:
			return wood.at(0)
		}
		return clear
	})
	for x := range tileSize {
		for y := range 4 - int(5*hash01(x, 0, 99)-2) {
			c.set(x, y, clear)
		}
	}
	return c
}

func planksTile() *canvas {
	c := newCanvas(tileSize, tileSize)
	c.each(func(x, y int) Colour {
		board := y / 16
		joint := []int{10, 42, 24, 56}[board]
		grain := clouds(float64(x)/16, float64(y)/2, 4, 110+board)
		t := 1.2 + 1.9*grain + 0.6*(hash01(board, btoi(x < joint), 111)-0.5)
		switch {
		case y%16 == 15 || x == joint:
			t = 0
		case y%16 == 0 || x == joint+1:
			t += 0.8
		case y%16 == 14:
			t -= 0.6
		}
		return wood.tone(t, x, y, 0.3)
	})
	for board, joint := range []int{10, 42, 24, 56} {
		for _, dx := range []int{-4, 4} {
			for _, dy := range []int{4, 11} {
				x, y := (joint+dx+tileSize)%tileSize, board*16+dy
				c.set(x, y, steel.at(0))
				c.set(x-1, y-1, steel.at(2))
			}
		}
	}
	return c
}

func btoi(b bool) int { return int(btof(b)) }
