package astc

import "math"

// layout is a division of a block into partitions or planes, before a mode is chosen. Each partition has a line through its
// colours, and each texel a position on its line.
type layout struct {
	partitions int
	seed       int
	planes     int
	second     int              // the channel of the second plane
	part       [maxTexels]uint8 // none after the last texel
	sums       [4]sums
	lines      [2][4]line            // by plane and partition
	ideal      [2][maxTexels]float32 // by plane: 0 at one end of the line, 1 at the other
	residual   float32               // squared error that remains with the best weights
	scaled     float32               // additional squared error if lines must point at black
	scales     [4]float32            // the same by partition
	greys      [4]float32            // additional squared error if colours are grey, by partition
	power      [2]float32            // by plane: mean over the texels of their lines' squared lengths
	ways       []way
	room       [10]way // storage for ways
	near       bool    // ends are near enough to each other for offset modes
}

// size returns the number of bits for weights and colours.
func (l *layout) size() int {
	size := 128 - 17
	if l.partitions > 1 {
		size = 128 - 29
	}
	if l.planes == 2 {
		size -= 2
	}
	return size
}

// none marks a texel without a partition.
const none = 255

// sums has sums over the texels of a partition. Values up to 144*255*255 are exact.
type sums struct {
	x  [4]int32
	xx [10]int32 // products of two channels, at productOf
	n  int32
	_  int32 // pads to 64 bytes, the layout in lanes_amd64.s
}

// productOf has the index in sums.xx of the product of two channels.
var productOf = [4][4]int{{0, 1, 2, 3}, {1, 4, 5, 6}, {2, 5, 7, 8}, {3, 6, 8, 9}}

// sumsOf returns the sums of a single texel.
func sumsOf(r, g, b, a int32) sums {
	return sums{
		x:  [4]int32{r, g, b, a},
		xx: [10]int32{r * r, r * g, r * b, r * a, g * g, g * b, g * a, b * b, b * a, a * a},
		n:  1,
	}
}

func (s *sums) add(t *sums) {
	for i := range s.x {
		s.x[i] += t.x[i]
	}
	for i := range s.xx {
		s.xx[i] += t.xx[i]
	}
	s.n += t.n
}

func (s *sums) minus(t *sums) (d sums) {
	for i := range s.x {
		d.x[i] = s.x[i] - t.x[i]
	}
	for i := range s.xx {
		d.xx[i] = s.xx[i] - t.xx[i]
	}
	d.n = s.n - t.n
	return d
}

// line goes from low to low+span*axis.
type line struct {
	axis      [4]float32
	low, span float32 // along axis from 0
}

// direction is a direction of greatest variance.
type direction struct {
	axis     [4]float32
	residual float32    // sum of the squared distances of all texels from the line through their mean
	_        [3]float32 // pads to 32 bytes, the layout in lanes_amd64.s
}

// direction finds the direction of greatest variance in the channels of use, by power iteration.
func (s *sums) direction(use *[4]bool) direction {
	var axis [4]float32
	var m [4][4]float32
	trace := float32(0)
	for i := range 4 {
		for j := i; j < 4; j++ {
			if use[i] && use[j] {
				m[i][j] = float32(s.xx[productOf[i][j]]*s.n-s.x[i]*s.x[j]) / float32(s.n) // 144*144*255*255 is below 1<<31
				m[j][i] = m[i][j]
			}
		}
		trace += m[i][i]
	}
	if trace < 1e-3 {
		for i := range axis {
			if use[i] {
				axis[i] = 1
			}
		}
		return direction{axis: unit(axis)}
	}
	most := 0
	for i := range 4 {
		if m[i][i] > m[most][most] {
			most = i
		}
	}
	v := m[most]
	scale := 1 / trace // lengths stay at most 1, and shrink at most by the greatest eigenvalue's share of the trace
	for i := range v {
		v[i] *= scale
	}
	for range 5 {
		v = times(&m, v)
		for i := range v {
			v[i] *= scale
		}
	}
	v = unit(v)
	w := times(&m, v)
	value := float32(v[0]*w[0]) + float32(v[1]*w[1]) + float32(v[2]*w[2]) + float32(v[3]*w[3])
	if v[0]+v[1]+v[2] < 0 { // the first end of a line is the darker one
		for i := range v {
			v[i] = -v[i]
		}
	}
	return direction{axis: v, residual: max(trace-value, 0)}
}

func times(m *[4][4]float32, v [4]float32) (w [4]float32) {
	for i := range w {
		r := &m[i]
		w[i] = float32(r[0]*v[0]) + float32(r[1]*v[1]) + float32(r[2]*v[2]) + float32(r[3]*v[3])
	}
	return w
}

func unit(v [4]float32) [4]float32 {
	l := float32(v[0]*v[0]) + float32(v[1]*v[1]) + float32(v[2]*v[2]) + float32(v[3]*v[3])
	if l == 0 {
		return v
	}
	l = 1 / float32(math.Sqrt(float64(l)))
	return [4]float32{v[0] * l, v[1] * l, v[2] * l, v[3] * l}
}

// layOut computes the lines of all partitions from their directions.
func (e *encoder) layOut(l *layout, d []direction) {
	l.residual, l.scaled, l.power, l.near = 0, 0, [2]float32{}, true
	if l.planes == 2 {
		for p := range l.partitions {
			l.lines[1][p] = line{}
			l.lines[1][p].axis[l.second] = 1
		}
	}
	for p := range l.partitions {
		l.lines[0][p].axis = d[p].axis
		l.residual += d[p].residual
	}
	for plane := range l.planes {
		e.project(l, plane)
	}
	for p := range l.partitions {
		l.judge(p)
		l.greys[p] = max(l.sums[p].chroma()-d[p].residual, 0)
	}
}

// project projects the texels on the lines of a plane.
func (e *encoder) project(l *layout, plane int) {
	var low, high [4]float32
	for p := range low {
		low[p], high[p] = 1e9, -1e9
	}
	ideal := &l.ideal[plane]
	if e.lanes {
		e.projectLanes(l, plane, &low, &high)
	} else {
		for i := range e.texels {
			p := l.part[i] & 3
			a, x := &l.lines[plane][p].axis, &e.value[i]
			t := float32(a[0]*x[0]) + float32(a[1]*x[1]) + float32(a[2]*x[2]) + float32(a[3]*x[3])
			ideal[i] = t
			low[p], high[p] = min(low[p], t), max(high[p], t)
		}
	}
	var scale [4]float32
	for p := range l.partitions {
		ln := &l.lines[plane][p]
		ln.low, ln.span = low[p], high[p]-low[p]
		if ln.span > 1e-3 {
			scale[p] = 1 / ln.span
		}
		l.power[plane] += float32(ln.span*ln.span) * float32(l.sums[p].n) / float32(e.texels)
	}
	if e.lanes {
		table := [2][8]float32{{low[0], low[1], low[2]}, {scale[0], scale[1], scale[2]}}
		scaleLanes(&ideal[0], &l.part[0], &table, (e.texels+7)/8)
		return
	}
	for i := range e.texels {
		p := l.part[i] & 3
		ideal[i] = (ideal[i] - low[p]) * scale[p]
	}
}

// judge estimates how well a partition's ends fit the modes with base and offset, and with base and scale.
func (l *layout) judge(p int) {
	s := &l.sums[p]
	ln := &l.lines[0][p]
	a := &ln.axis
	center := float32(0)
	for c := range 4 {
		center += float32(a[c]*float32(s.x[c])) / float32(s.n)
	}
	var e0, e1 [3]float32
	dot, square := float32(0), float32(0)
	for c := range 3 {
		mean := float32(s.x[c]) / float32(s.n)
		e0[c] = mean + float32(a[c]*(ln.low-center))
		e1[c] = e0[c] + float32(a[c]*ln.span)
		dot += float32(e0[c] * e1[c])
		square += float32(e1[c] * e1[c])
		if d := e1[c] - e0[c]; d > 31 || d < -32 {
			l.near = false
		}
	}
	k := dot / max(square, 1)
	off := float32(0)
	for c := range 3 {
		d := e0[c] - float32(e1[c]*k)
		off += float32(d * d)
	}
	l.scales[p] = off * float32(s.n) / 3
	l.scaled += l.scales[p]
}
