package astc

// grid spreads weights, width by height, over the texels of a block ("Weight Infill").
type grid struct {
	width, height int
	spread        []spread // of each texel
}

// spread has the four places of the grid that make up a texel's weight, and the part of each in sixteenths.
type spread struct{ place, part [4]uint8 }

func newGrid(f Footprint, width, height int) *grid {
	g := &grid{width: width, height: height, spread: make([]spread, f.Width*f.Height)}
	ds := (1024 + f.Width/2) / (f.Width - 1)
	dt := (1024 + f.Height/2) / (f.Height - 1)
	for i := range g.spread {
		gs := (ds*(i%f.Width)*(width-1) + 32) >> 6
		gt := (dt*(i/f.Width)*(height-1) + 32) >> 6
		fs, ft := gs&15, gt&15
		both := (fs*ft + 8) >> 4
		parts := [4]int{16 - fs - ft + both, fs - both, ft - both, both}
		at := gs>>4 + gt>>4*width
		for k, place := range [4]int{at, at + 1, at + width, at + width + 1} {
			if parts[k] != 0 { // without a part, the place may lie outside of the grid
				g.spread[i].place[k], g.spread[i].part[k] = uint8(place), uint8(parts[k])
			}
		}
	}
	return g
}

// weight returns the weight of a texel, 0..64, from those of the grid.
func (s *spread) weight(weights *[maxWeights]uint8) int {
	return (int(weights[s.place[0]&63])*int(s.part[0]) + int(weights[s.place[1]&63])*int(s.part[1]) +
		int(weights[s.place[2]&63])*int(s.part[2]) + int(weights[s.place[3]&63])*int(s.part[3]) + 8) >> 4
}
