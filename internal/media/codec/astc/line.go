package astc

import "math"

// layout is a way to cut a block up before a mode is chosen: in partitions, or in planes. Each partition has a line through its
// colours, and each texel its place on it.
type layout struct {
	partitions int
	seed       int
	planes     int
	second     int // the channel of the second plane
	part       [maxTexels]uint8
	sums       [4]sums
	lines      [2][4]line            // by plane and partition
	ideal      [2][maxTexels]float32 // by plane: 0 at the line's one end, 1 at the other
	residual   float32               // squared error that no weights mend
	scaled     float32               // the same, more, if lines must point at black
	power      [2]float32            // by plane: squared length of the texels' lines on average
	ways       []way
	room       [4]way // for ways
	near       bool   // ends are near enough to each other for offsets
}

// sums are of the texels of a partition. Values up to 144*255*255 are exact.
type sums struct {
	n  int32
	x  [4]int32
	xx [4][4]int32 // upper triangle
}

func (s *sums) add(x *[4]int32) {
	s.n++
	for i := range x {
		s.x[i] += x[i]
		for j := i; j < 4; j++ {
			s.xx[i][j] += x[i] * x[j]
		}
	}
}

func (s *sums) minus(t *sums) (d sums) {
	d.n = s.n - t.n
	for i := range s.x {
		d.x[i] = s.x[i] - t.x[i]
		for j := i; j < 4; j++ {
			d.xx[i][j] = s.xx[i][j] - t.xx[i][j]
		}
	}
	return d
}

// line goes from low to low+span*axis.
type line struct {
	axis      [4]float32
	low, span float32 // along axis from 0
}

// axis is the direction of the greatest variance in the channels of use, and the squared distances of all texels from the
// line through their mean, by power iteration.
func (s *sums) axis(use *[4]bool) (axis [4]float32, residual float32) {
	var m [4][4]float32
	trace := float32(0)
	for i := range 4 {
		for j := i; j < 4; j++ {
			if use[i] && use[j] {
				m[i][j] = float32(int64(s.xx[i][j])*int64(s.n)-int64(s.x[i])*int64(s.x[j])) / float32(s.n)
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
		return unit(axis), 0
	}
	most := 0
	for i := range 4 {
		if m[i][i] > m[most][most] {
			most = i
		}
	}
	v := m[most]
	scale := 1 / trace // so that no length grows beyond 1, and none below what the greatest of four eigenvalues keeps of it
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
	return v, max(trace-value, 0)
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

// layOut finds lines for partitions and planes, which l has already.
func (e *encoder) layOut(l *layout) {
	l.residual, l.scaled, l.power, l.near = 0, 0, [2]float32{}, true
	use := e.use
	if l.planes == 2 {
		use[l.second] = false
		for p := range l.partitions {
			l.lines[1][p] = line{}
			l.lines[1][p].axis[l.second] = 1
		}
	}
	for p := range l.partitions {
		axis, residual := l.sums[p].axis(&use)
		l.lines[0][p].axis = axis
		l.residual += residual
	}
	for plane := range l.planes {
		e.project(l, plane)
	}
	for p := range l.partitions {
		l.judge(p)
	}
}

// project places the texels on the lines of a plane.
func (e *encoder) project(l *layout, plane int) {
	var low, high [4]float32
	for p := range low {
		low[p], high[p] = 1e9, -1e9
	}
	ideal := &l.ideal[plane]
	for i := range e.texels {
		p := l.part[i] & 3
		a, x := &l.lines[plane][p].axis, &e.value[i]
		t := float32(a[0]*x[0]) + float32(a[1]*x[1]) + float32(a[2]*x[2]) + float32(a[3]*x[3])
		ideal[i] = t
		low[p], high[p] = min(low[p], t), max(high[p], t)
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
	for i := range e.texels {
		p := l.part[i] & 3
		ideal[i] = (ideal[i] - low[p]) * scale[p]
	}
}

// judge says how well a partition's ends would do as base and offset, or base and scale.
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
	l.scaled += off * float32(s.n) / 3
}
