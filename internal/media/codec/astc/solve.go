package astc

import (
	"math"
	"sync"
)

// matrices of a shape have a row for each texel and a column for each place of the grid; rows are padded with zeros to a
// multiple of eight.
type matrices struct {
	once   sync.Once
	width  int                 // of a row
	solve  []float32           // a texel's factor in each place of the least-squares solution
	spread []float32           // the factor of a place's weight in a texel
	square []float32           // the squares of spread
	sums   [maxWeights]float32 // of the columns of square
}

// matrices returns the matrices of a shape, which are computed on first use.
func (s *shape) matrices() *matrices {
	s.dense.once.Do(func() { s.dense.fill(s) })
	return s.dense
}

// fill computes solve as (S'S)^-1 S', where S is spread, by Cholesky decomposition. Places that share a texel are at most a
// row and one apart.
func (m *matrices) fill(s *shape) {
	count, texels, band := len(s.first)-1, len(s.spread), s.width+1
	m.width = (count + 7) / 8 * 8
	m.solve, m.spread = make([]float32, texels*m.width), make([]float32, texels*m.width)
	m.square = make([]float32, texels*m.width)
	for j := range count {
		for _, r := range s.reach[s.first[j]:s.first[j+1]] {
			m.spread[r.texel*m.width+j] = r.part
			m.square[r.texel*m.width+j] = float32(r.part * r.part)
			m.sums[j] += float32(r.part * r.part)
		}
	}
	row := func(t int) []float32 { return m.spread[t*m.width:][:count] }
	var lower [maxWeights][maxWeights]float64
	for i := range count {
		for j := max(0, i-band); j <= i; j++ {
			sum := 0.0
			for _, r := range s.reach[s.first[i]:s.first[i+1]] {
				sum += float64(float64(r.part) * float64(row(r.texel)[j]))
			}
			for k := max(0, i-band); k < j; k++ {
				sum -= float64(lower[i][k] * lower[j][k])
			}
			if lower[i][j] = sum / lower[j][j]; i == j {
				lower[i][j] = math.Sqrt(sum)
			}
		}
	}
	for t := range texels {
		var x [maxWeights]float64
		for i, v := range row(t) {
			sum := float64(v)
			for k := max(0, i-band); k < i; k++ {
				sum -= float64(lower[i][k] * x[k])
			}
			x[i] = sum / lower[i][i]
		}
		for i := count - 1; i >= 0; i-- {
			for k := i + 1; k <= min(i+band, count-1); k++ {
				x[i] -= float64(lower[k][i] * x[k])
			}
			x[i] /= lower[i][i]
			m.solve[t*m.width+i] = float32(x[i])
		}
	}
}

// relax finds the values of the grid's places that come nearest to ideal when they are spread over the texels.
func (s *shape) relax(g *[maxWeights]float32, ideal *[maxTexels]float32, lanes bool) {
	if s.whole {
		copy(g[:], ideal[:len(s.spread)])
		return
	}
	m := s.matrices()
	if lanes {
		mulLanes(&m.solve[0], &ideal[0], len(s.spread), m.width/8, &g[0])
		return
	}
	for i, v := range ideal[:len(s.spread)] {
		for j, part := range m.solve[i*m.width:][:m.width] {
			g[j&63] += float32(v * part)
		}
	}
}

// pulls computes for each place the force and the stiffness of its texels: the sums of rest weighted by spread, and of hold
// weighted by the squares of spread. hold is by partition.
func (s *shape) pulls(pull, stiff *[maxWeights]float32, rest *[maxTexels]float32, l *layout, hold *[4]float32, lanes bool) {
	count := len(s.first) - 1
	if s.whole {
		copy(pull[:count], rest[:])
		for j := range count {
			stiff[j&63] = hold[l.part[j]&3]
		}
		return
	}
	m := s.matrices()
	if l.partitions == 1 {
		for j := range stiff[:count] {
			stiff[j] = float32(hold[0] * m.sums[j])
		}
	}
	if lanes {
		mulLanes(&m.spread[0], &rest[0], len(s.spread), m.width/8, &pull[0])
		if l.partitions > 1 {
			var holds [maxTexels]float32
			for i := range s.spread {
				holds[i] = hold[l.part[i]&3]
			}
			mulLanes(&m.square[0], &holds[0], len(s.spread), m.width/8, &stiff[0])
		}
		return
	}
	for j := range count {
		for _, r := range s.reach[s.first[j]:s.first[j+1]] {
			pull[j&63] += float32(r.part * rest[r.texel])
			if l.partitions > 1 {
				stiff[j&63] += float32(float32(r.part*r.part) * hold[l.part[r.texel]&3])
			}
		}
	}
}
