package astc

import "math"

// plane is weights of a grid's places, 0..64.
type plane [maxWeights]uint8

// relax finds values of the grid's places that, spread over the texels, come near to ideal, where texels count by power, which is given for
// each partition. It is a mean first, then some rounds of Gauss-Seidel.
func (s *shape) relax(g *[maxWeights]float32, ideal *[maxTexels]float32, part *[maxTexels]uint8, power *[4]float32, rounds int) {
	if s.whole {
		copy(g[:], ideal[:len(s.spread)])
		return
	}
	count := len(s.first) - 1
	for j := range count {
		sum, parts := float32(0), float32(0)
		for _, r := range s.reach[s.first[j]:s.first[j+1]] {
			sum += float32(r.part * ideal[r.texel])
			parts += r.part
		}
		g[j] = sum / parts
	}
	var rest [maxTexels]float32
	for i := range s.spread {
		sp := &s.spread[i]
		rest[i] = ideal[i] - float32(g[sp.place[0]&63]*float32(sp.part[0])/16) - float32(g[sp.place[1]&63]*float32(sp.part[1])/16) -
			float32(g[sp.place[2]&63]*float32(sp.part[2])/16) - float32(g[sp.place[3]&63]*float32(sp.part[3])/16)
	}
	for range rounds {
		for j := range count {
			reach := s.reach[s.first[j]:s.first[j+1]]
			pull, hold := float32(0), float32(1e-9)
			for _, r := range reach {
				w := float32(r.part * power[part[r.texel]&3])
				pull += float32(w * rest[r.texel])
				hold += float32(w * r.part)
			}
			step := pull / hold
			g[j] += step
			for _, r := range reach {
				rest[r.texel] -= float32(r.part * step)
			}
		}
	}
}

// quantize stretches values of places over all of 0..64, and takes the nearest that the range of weights has.
func (s *shape) quantize(out *plane, g *[maxWeights]float32, r uint8) {
	count := len(s.first) - 1
	low, high := g[0], g[0]
	for _, v := range g[1:count] {
		low, high = min(low, v), max(high, v)
	}
	low, high = max(low, 0), min(high, 1) // beyond is overshoot at an edge, which is better cut off than shrunk
	scale := float32(0)
	if high > low {
		scale = 64 / (high - low)
	}
	near := &weightLevels()[r].near
	for j := range count {
		out[j] = near[int(min(max(float32((g[j]-low)*scale), 0), 64)+0.5)]
	}
}

// infill gives the weights of the texels.
func (s *shape) infill(out *[maxTexels]int32, w *plane) {
	if s.whole {
		for i := range s.spread {
			out[i] = int32(w[i&63])
		}
		return
	}
	for i := range s.spread {
		out[i] = int32(s.spread[i].weight((*[maxWeights]uint8)(w)))
	}
}

// settle moves each weight to where it is best with its neighbours as they are, and says whether any moved. rest is, for
// each texel, its distance along its line from where its weight puts it, times the line's length; hold is for each partition
// the square of that length. Lengths are of one 64th, as weights are.
func (s *shape) settle(w *plane, rest *[maxTexels]float32, part *[maxTexels]uint8, hold *[4]float32, r uint8) bool {
	near := &weightLevels()[r].near
	moved := false
	for j := range len(s.first) - 1 {
		reach := s.reach[s.first[j]:s.first[j+1]]
		pull, stiff := float32(0), float32(1e-9)
		for _, r := range reach {
			pull += float32(r.part * rest[r.texel])
			stiff += float32(float32(r.part*r.part) * hold[part[r.texel]&3])
		}
		now := float32(w[j])
		to := near[int(min(max(now+pull/stiff, 0), 64)+0.5)]
		if to == w[j] {
			continue
		}
		moved = true
		step := float32(to) - now
		for _, r := range reach {
			rest[r.texel] -= float32(float32(r.part*step) * hold[part[r.texel]&3])
		}
		w[j] = to
	}
	return moved
}

// waves are the cosines of the discrete cosine transform of n values, the lowest first.
func waves(n int) (t [12][12]float32) {
	for k := range n {
		for i := range n {
			scale := math.Sqrt(2 / float64(n))
			if k == 0 {
				scale = math.Sqrt(1 / float64(n))
			}
			wave := scale * math.Cos(math.Pi*(float64(i)+0.5)*float64(k)/float64(n))
			t[k][i] = float32(math.Round(wave*(1<<20)) / (1 << 20)) // machines differ in a cosine's last bits
		}
	}
	return t
}

// roughness estimates, for grids of any width and height, the squared error of spreading their weights over the texels: what a cosine
// transform has beyond as many waves.
func (e *encoder) roughness(out *[13][13]float32, l *layout) {
	w, h := e.Width, e.Height
	for plane := range l.planes {
		power := l.power[plane]
		var rows [12][12]float32 // by wave and row
		ideal := l.ideal[plane][:e.texels]
		for y := range h {
			row := ideal[y*w : y*w+w]
			for k := range w {
				wave := e.across[k][:w]
				sum := float32(0)
				for x, v := range row {
					sum += float32(v * wave[x])
				}
				rows[k][y] = sum
			}
		}
		total := float32(0)
		for _, v := range ideal {
			total += float32(v * v)
		}
		var inside [13]float32 // of all waves so far across, by waves down
		for k := range w {
			sum := float32(0)
			line := rows[k][:h]
			for j := range h {
				wave := e.down[j][:h]
				v := float32(0)
				for y, x := range line {
					v += float32(x * wave[y])
				}
				sum += float32(v * v)
				inside[j+1] += sum
				out[k+1][j+1] += float32(max(total-inside[j+1], 0) * power * gridLoss)
			}
		}
	}
}

// gridLoss is how much more a grid's straight lines miss than as many waves do; 1.2 to 1.5 gave the best blocks.
const gridLoss = 1.3
