package astc

import "math/bits"

// split finds patterns of some partitions whose lines are near the texels: it clusters the colours, takes the patterns that
// resemble the clusters most, and then those with the least distances from their lines. It appends their places in the list of
// patterns to out, as many as it has room for, the best first.
func (e *encoder) split(out []int, count int) []int {
	list := &e.patterns[count]
	similar := e.similar[:min(e.effort.patterns, len(list.seeds))]
	e.resemble(similar, list, e.cluster(count))
	var best [8]float32
	for _, at := range similar {
		s := e.parts(list, at, count)
		residual := float32(0)
		for p := range count {
			_, r := s[p].axis(&e.use)
			residual += r
		}
		if len(out) < cap(out) {
			out = append(out, at)
		} else if residual >= best[len(out)-1] {
			continue
		}
		k := len(out) - 1
		for ; k > 0 && best[k-1] > residual; k-- {
			best[k], out[k] = best[k-1], out[k-1]
		}
		best[k], out[k] = residual, at
	}
	return out
}

// parts are the sums of the partitions of a pattern.
func (e *encoder) parts(list *patterns, at, count int) (s [4]sums) {
	if e.texels > len(e.sample) {
		var part [maxTexels]uint8
		partitionOf(part[:e.texels], list.seeds[at], count, e.Width)
		for i := range e.texels {
			if p := part[i] & 3; p > 0 {
				s[p].add(&e.texel[i])
			}
		}
	} else {
		for p, mask := range list.masks[at] {
			for ; mask != 0; mask &= mask - 1 {
				s[p+1].add(&e.texel[bits.TrailingZeros64(mask)])
			}
		}
	}
	s[0] = e.all.minus(&s[1])
	s[0] = s[0].minus(&s[2])
	return s
}

// cluster parts the colours by k-means, from the two ends of the block's line on and the colour farthest from both. It gives the samples of
// the second and the third part.
func (e *encoder) cluster(count int) (masks [2]uint64) {
	var centers [3][4]float32
	ideal := &e.layouts[0].ideal[0]
	low, high := 0, 0
	for i := range e.texels {
		if ideal[i] < ideal[low] {
			low = i
		}
		if ideal[i] > ideal[high] {
			high = i
		}
	}
	centers[0], centers[1] = e.value[low], e.value[high]
	if count == 3 {
		far := float32(-1)
		for i := range e.texels {
			if d := min(distance(&e.value[i], &centers[0]), distance(&e.value[i], &centers[1])); d > far {
				far, centers[2] = d, e.value[i]
			}
		}
	}
	var side [maxTexels]uint8
	for round := range 3 {
		var x [3][4]int32
		var n [3]int32
		for i := range e.texels {
			v := &e.value[i]
			best, near := 0, distance(v, &centers[0])
			for p := 1; p < count; p++ {
				if d := distance(v, &centers[p]); d < near {
					best, near = p, d
				}
			}
			side[i] = uint8(best)
			n[best]++
			for c, t := range e.texel[i] {
				x[best][c] += t
			}
		}
		if round == 2 {
			break
		}
		for p := range count {
			for c := range 4 {
				centers[p][c] = float32(x[p][c]) / float32(max(n[p], 1))
			}
		}
	}
	for k, i := range e.sample {
		if p := side[i]; p > 0 {
			masks[(p-1)&1] |= 1 << k
		}
	}
	return masks
}

// distance of two colours, squared.
func distance(a, b *[4]float32) float32 {
	d := [4]float32{a[0] - b[0], a[1] - b[1], a[2] - b[2], a[3] - b[3]}
	return float32(d[0]*d[0]) + float32(d[1]*d[1]) + float32(d[2]*d[2]) + float32(d[3]*d[3])
}

// resemble fills out with the patterns of a list in which the fewest samples are not of the cluster that most of their partition are of.
func (e *encoder) resemble(out []int, list *patterns, clusters [2]uint64) {
	var count [65]int
	n := len(e.sample)
	a1, a2 := clusters[0], clusters[1]
	n1, n2 := bits.OnesCount64(a1), bits.OnesCount64(a2)
	n0 := n - n1 - n2
	for i := range list.masks {
		m1, m2 := list.masks[i][0], list.masks[i][1]
		var d int
		if m2 == 0 {
			d = bits.OnesCount64(m1 ^ a1)
			d = min(d, n-d)
		} else {
			b11, b12, b21, b22 := bits.OnesCount64(m1&a1), bits.OnesCount64(m1&a2), bits.OnesCount64(m2&a1), bits.OnesCount64(m2&a2)
			b10, b20 := bits.OnesCount64(m1)-b11-b12, bits.OnesCount64(m2)-b21-b22
			d = n - max(b10, b11, b12) - max(b20, b21, b22) - max(n0-b10-b20, n1-b11-b21, n2-b12-b22)
		}
		e.wrong[i] = uint8(d)
		count[d]++
	}
	limit, inside := 0, count[0]
	for inside < len(out) {
		limit++
		inside += count[limit]
	}
	k, last := 0, len(out)-(inside-count[limit]) // of those at the limit, so many still find a place
	for i, d := range e.wrong[:len(list.masks)] {
		switch {
		case int(d) < limit:
		case int(d) == limit && last > 0:
			last--
		default:
			continue
		}
		out[k] = i
		k++
	}
}
