package bptc

import "math"

// batch7 has eight lines through the same pixels, which restart improves, both in Go and for AVX2 with the same results. It serves
// opaque pixels in modes without separate indices. The rows are of 32 bytes, in the order that the generator in asm expects.
type batch7 struct {
	ends [2][3]lanes8 // the best endpoints, as decoded
	err  lanes8       // their errors
	by   lanes8       // see lengths
	span [2]lanes8    // the line through all pixels: the first three numbers of each row
	args lanes8       // the greatest index, 1 divided by it, the number of pixels, 1 divided by it, the sums of the channels

	one, half, round, round64, tiny, most, little lanes8 // constants

	memory [77]lanes8 // of vector code, whose stack is small
}

// init sets the constants.
func (b *batch7) init() {
	for i := range 8 {
		b.by[i] = lengths[i]
		b.one[i], b.half[i], b.tiny[i], b.most[i] = 1, 0.5, 1e-30, math.MaxFloat32
		b.round[i], b.round64[i] = 3<<22, 3<<16 // see batch6
		b.little[i] = 1. / 256                  // rounds halves of 64ths up
	}
}

// restart finds a line from each of eight lines of other lengths, as group.descend does.
func (b *batch7) restart(pix *[16][4]float32, n int, m *modeLanes, parities uint8, rounds int) {
	if lanes {
		restart7(b, &pix[0][0], n, &m[0][0], uint32(parities), rounds)
		return
	}
	for lane := range 8 {
		b.single(pix[:n], lane, m, parities, rounds)
	}
}

// line7 is the state of a line: the endpoints that are wanted, those that are stored, and the sums of pass.
type line7 struct {
	want, ends [2][3]float32
	err, w, ww float32
	wq         [3]float32
}

func (b *batch7) single(pix [][4]float32, lane int, m *modeLanes, parities uint8, rounds int) {
	var l line7
	for c := range 3 {
		first, last := b.span[0][c], b.span[1][c]
		middle, half := float32((first+last)*b.half[lane]), float32((last-first)*b.by[lane])
		l.want[0][c], l.want[1][c] = middle-half, middle+half
	}
	q := quadric{1, 0, 1}
	b.err[lane] = b.most[lane]
	n, inverse := b.args[2], b.args[3]
	for {
		l.round(q, m, parities, b.most[lane])
		b.pass(pix, lane, &l)
		if l.err < b.err[lane] {
			b.err[lane] = l.err
			for c := range 3 {
				b.ends[0][c][lane], b.ends[1][c][lane] = l.ends[0][c], l.ends[1][c]
			}
		}
		if rounds--; rounds < 0 {
			return
		}
		det := float32(n*l.ww) - float32(l.w*l.w) // exact, see batch6
		by := 1 / max(det, b.tiny[lane])
		for c := range 3 {
			sum := b.args[4+c] - float32(n*l.ends[0][c])
			slope := float32((float32(n*l.wq[c]) - float32(l.w*sum)) * by)
			if !(0 < det) {
				slope = 0
			}
			l.want[0][c] = l.ends[0][c] + float32((sum-float32(l.w*slope))*inverse)
			l.want[1][c] = l.want[0][c] + slope
		}
		apart := l.w - l.ww
		q = quadric{n - l.w - apart, apart + apart, l.ww}
	}
}

// round is mode7.round for three channels.
func (l *line7) round(q quadric, m *modeLanes, parities uint8, most float32) {
	scale, step, top, up, down := math.Float32frombits(m[0][0]), m[1][0], int32(m[2][0]), m[3][0], m[4][0]
	var costs [4]float32
	var chosen [4][2][3]float32
	for c := range 3 {
		var values, off [2][2][2]float32 // by endpoint, parity, side
		for end, want := range [2]float32{l.want[0][c], l.want[1][c]} {
			for p := range int32(2) {
				v := (int32(float32(want*scale)) - p) >> (step & 31)
				v = min(max(v, 0), top)
				for side, v := range [2]int32{v, min(v+1, top)} {
					v = v<<(step&31) | p
					v = v<<(up&31) | v>>(down&31)
					values[end][p][side] = float32(v)
					off[end][p][side] = float32(v) - want
				}
			}
		}
		for p := range 4 {
			if parities>>p&1 == 0 {
				continue
			}
			cost, best := q.least2(&off[0][p&1], &off[1][p>>1])
			costs[p] += cost
			chosen[p][0][c], chosen[p][1][c] = values[0][p&1][best&1], values[1][p>>1][best>>1]
		}
	}
	least := most
	for p := range 4 {
		if parities>>p&1 == 1 && costs[p] < least {
			least, l.ends = costs[p], chosen[p]
		}
	}
}

// least2 is what quadric.least does, except for which of equal costs it takes.
func (q quadric) least2(d0, d1 *[2]float32) (cost float32, best uint8) {
	var costs [2][2]float32
	for i := range d1 {
		for j := range d0 {
			costs[i][j] = float32(float32(q.a*d0[j])*d0[j]) + float32(float32(q.c*d1[i])*d1[i]) + float32(float32(q.b*d0[j])*d1[i])
		}
	}
	var low [2]float32
	var side [2]uint8
	for i := range low {
		low[i] = costs[i][0]
		if costs[i][1] < low[i] {
			low[i], side[i] = costs[i][1], 1
		}
	}
	if low[1] < low[0] {
		return low[1], 2 | side[1]
	}
	return low[0], side[0]
}

// pass gives the pixels the nearest places on a line, and computes the error and the sums.
func (b *batch7) pass(pix [][4]float32, lane int, l *line7) {
	var d [3]float32
	for c := range d {
		d[c] = l.ends[1][c] - l.ends[0][c]
	}
	length := float32(d[0]*d[0]) + float32(d[1]*d[1]) + float32(d[2]*d[2])
	scale := b.args[0] / max(length, b.tiny[lane])
	l.err, l.w, l.ww, l.wq = 0, 0, 0, [3]float32{}
	for i := range pix {
		var q [3]float32
		for c := range q {
			q[c] = pix[i][c] - l.ends[0][c]
		}
		t := float32((float32(q[0]*d[0]) + float32(q[1]*d[1]) + float32(q[2]*d[2])) * scale)
		t = float32(min(max(t, 0), b.args[0])+b.round[lane]) - b.round[lane]
		u := float32(float32(float32(t)*b.args[1])+b.round64[lane]) - b.round64[lane]
		l.w += u
		l.ww += float32(u * u)
		for c := range q {
			l.wq[c] += float32(u * q[c])
			at := float32(float32(float32(u*d[c])+b.little[lane])+b.round[lane]) - b.round[lane]
			q[c] -= at
		}
		l.err += float32(q[0]*q[0]) + float32(q[1]*q[1]) + float32(q[2]*q[2])
	}
}
