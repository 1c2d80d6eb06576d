package astc

import "math"

// plane has the weights of a grid's places, 0..64.
type plane [maxWeights]uint8

// quantize stretches the values of the places to the full range 0..64, and takes the nearest weights of the range r.
func (s *shape) quantize(out *plane, g *[maxWeights]float32, r uint8, lanes bool) {
	count := len(s.first) - 1
	near := &weightLevels()[r].near
	if lanes {
		for j := count; j&7 != 0; j++ {
			g[j] = g[0]
		}
		quantizeLanes(&g[0], (count+7)/8, &near[0], &out[0])
		return
	}
	low, high := g[0], g[0]
	for _, v := range g[1:count] {
		low, high = min(low, v), max(high, v)
	}
	low, high = max(low, 0), min(high, 1) // values beyond 0..1 are overshoot at an edge: clipping is better than shrinking the rest
	scale := float32(0)
	if high-low > 1e-6 {
		scale = 64 / (high - low)
	}
	for j := range count {
		out[j] = near[nearest(float32((g[j]-low)*scale))]
	}
}

// nearest returns the number of 0..64 nearest to v, which is less than 1<<62.
func nearest(v float32) int {
	return int(min(max(int64(v+0.5), 0), 64))
}

// infill computes the weights of the texels.
func (s *shape) infill(out *[maxTexels]int16, w *plane, lanes bool) {
	if lanes {
		infillLanes(&w[0], &s.infill16[0], (len(s.spread)+15)/16, s.registers, &out[0])
		return
	}
	if s.whole {
		for i := range s.spread {
			out[i] = int16(w[i&63])
		}
		return
	}
	for i := range s.spread {
		out[i] = int16(s.spread[i].weight((*[maxWeights]uint8)(w)))
	}
}

// settle moves each weight to its best value for the current neighbours, and reports whether any changed. rest has, for each
// texel, the distance along its line from the position of its weight, times the line's length; hold has the squared length
// for each partition. Lengths are in 64ths, as weights are.
func (s *shape) settle(w *plane, rest *[maxTexels]float32, l *layout, hold *[4]float32, r uint8, lanes bool) bool {
	near := &weightLevels()[r].near
	var pull, stiff [maxWeights]float32
	s.pulls(&pull, &stiff, rest, l, hold, lanes)
	moved := false
	for j := range len(s.first) - 1 {
		now := float32(w[j])
		to := near[nearest(now+pull[j&63]/(stiff[j&63]+1e-9))]
		if to == w[j] {
			continue
		}
		moved = true
		step := float32(to) - now
		w[j] = to
		if s.whole {
			continue
		}
		for _, r := range s.reach[s.first[j]:s.first[j+1]] {
			back := float32(float32(r.part*step) * hold[l.part[r.texel]&3])
			sp := &s.spread[r.texel]
			for k, place := range sp.place {
				pull[place&63] -= float32(float32(sp.part[k]) / 16 * back)
			}
		}
	}
	return moved
}

// waves returns the cosines of the discrete cosine transform of n values, the lowest frequency first.
func waves(n int) (t [12][12]float32) {
	for k := range n {
		for i := range n {
			scale := math.Sqrt(2 / float64(n))
			if k == 0 {
				scale = math.Sqrt(1 / float64(n))
			}
			wave := scale * math.Cos(math.Pi*(float64(i)+0.5)*float64(k)/float64(n))
			t[k][i] = float32(math.Round(wave*(1<<20)) / (1 << 20)) // machines differ in the last bits of a cosine
		}
	}
	return t
}

// roughness estimates, for grids of any width and height, the squared error of spreading their weights over the texels. It
// is the energy of the cosine transform beyond the same number of waves.
func (e *encoder) roughness(out *[13][13]float32, l *layout) {
	w, h := e.Width, e.Height
	for plane := range l.planes {
		power := l.power[plane]
		ideal := l.ideal[plane][:e.texels]
		total := float32(0)
		for _, v := range ideal {
			total += float32(v * v)
		}
		if e.lanes && w <= 8 && h <= 8 {
			roughLanes(&ideal[0], w, &e.columns, &e.down, total, power, gridLoss, &out[1][1])
			continue
		}
		var squares [12][12]float32
		e.transform(&squares, ideal)
		var inside [13]float32 // of all waves across up to here, by waves down
		for k := range w {
			sum := float32(0)
			for j := range h {
				sum += squares[j][k]
				inside[j+1] += sum
				out[k+1][j+1] += float32(max(total-inside[j+1], 0) * power * gridLoss)
			}
		}
	}
}

// transform computes the squares of a cosine transform, by waves down and across.
func (e *encoder) transform(squares *[12][12]float32, ideal []float32) {
	w, h := e.Width, e.Height
	var rows [12][12]float32 // by wave and row
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
	for k := range w {
		for j := range h {
			wave := e.down[j][:h]
			v := float32(0)
			for y, x := range rows[k][:h] {
				v += float32(x * wave[y])
			}
			squares[j][k] = float32(v * v)
		}
	}
}

// gridLoss is the ratio of a grid's error, with its straight lines, to that of the same number of waves; 1.2 to 1.5 gave the
// best blocks.
const gridLoss = 1.3
