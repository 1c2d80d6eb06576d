package astc

import "math/bits"

// split finds the patterns of count partitions whose lines are near the texels. It clusters the colours, takes the patterns
// most similar to the clusters, and of these the ones with the least distances from their lines. It appends their indices in
// e.similar to out, up to its capacity, best first. e.parts and e.directions then have the sums and directions of
// partitions, count for each similar pattern.
func (e *encoder) split(out []int, count int) []int {
	list := &e.patterns[count]
	similar := e.similar[:min(e.effort.patterns, len(list.seeds))]
	clusters := e.cluster(count)
	if e.hope < 1 && e.scatter(clusters, count) > float32(e.best.err)/2 {
		return out
	}
	e.resemble(similar, list, clusters)
	for i, at := range similar {
		e.part(e.parts[i*count:][:count], list, at)
	}
	e.direct(len(similar) * count)
	var best [8]float32
	for at := range similar {
		residual := float32(0)
		for _, d := range e.directions[at*count:][:count] {
			residual += d.residual
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

// scatter returns the residual of the lines through clusters. No pattern has much less; if it is more than half of the least
// error, partitions hardly ever win in blocks of at least 36 texels. In smaller ones they do, and scatter returns 0, as it does
// for empty clusters, and for blocks of which there are only samples.
func (e *encoder) scatter(clusters [2]uint64, count int) float32 {
	if e.texels < 36 || e.texels > len(e.sample) {
		return 0
	}
	rest := e.all
	for p := 1; p < count; p++ {
		s := &e.parts[p]
		*s = sums{}
		if e.lanes {
			sumLanes(&e.moments[0].x[0], clusters[p-1], &s.x[0])
		} else {
			for mask := clusters[p-1]; mask != 0; mask &= mask - 1 {
				s.add(&e.moments[bits.TrailingZeros64(mask)])
			}
		}
		rest = rest.minus(s)
		if s.n == 0 {
			return 0
		}
	}
	if rest.n == 0 {
		return 0
	}
	e.parts[0] = rest
	e.direct(count)
	residual := float32(0)
	for _, d := range e.directions[:count] {
		residual += d.residual
	}
	return residual
}

// part computes the sums of the partitions of a pattern.
func (e *encoder) part(s []sums, list *patterns, at int) {
	clear(s)
	if e.texels > len(e.sample) {
		var part [maxTexels]uint8
		partitionOf(part[:e.texels], list.seeds[at], len(s), e.Width)
		for i, p := range part[:e.texels] {
			if p > 0 {
				s[p].add(&e.moments[i])
			}
		}
	} else {
		for p := range s[1:] {
			if e.lanes {
				sumLanes(&e.moments[0].x[0], list.masks[at][p], &s[p+1].x[0])
				continue
			}
			for mask := list.masks[at][p]; mask != 0; mask &= mask - 1 {
				s[p+1].add(&e.moments[bits.TrailingZeros64(mask)])
			}
		}
	}
	s[0] = e.all
	for p := range s[1:] {
		s[0] = s[0].minus(&s[p+1])
	}
}

// cluster clusters the colours by k-means. It starts with the two ends of the block's line and the colour farthest from
// both. It returns the samples of the second and the third cluster.
func (e *encoder) cluster(count int) (masks [2]uint64) {
	centers := e.centers(count)
	if e.lanes && e.texels <= 64 {
		return e.clusterLanes(&centers, count)
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

// centers returns the first centers of the clusters.
func (e *encoder) centers(count int) (centers [3][4]float32) {
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
	return centers
}

// distance returns the squared distance of two colours.
func distance(a, b *[4]float32) float32 {
	d := [4]float32{a[0] - b[0], a[1] - b[1], a[2] - b[2], a[3] - b[3]}
	return float32(d[0]*d[0]) + float32(d[1]*d[1]) + float32(d[2]*d[2]) + float32(d[3]*d[3])
}

// resemble fills out with the patterns that have the fewest wrong samples: samples outside of the main cluster of their
// partition.
func (e *encoder) resemble(out []int, list *patterns, clusters [2]uint64) {
	if e.lanes {
		e.resembleLanes(out, list, &clusters)
		return
	}
	var count [65]int
	for i := range list.seeds {
		e.wrong[i] = wrongOf(&list.masks[i], &clusters, len(e.sample))
		count[e.wrong[i]]++
	}
	limit, inside := 0, count[0]
	for inside < len(out) {
		limit++
		inside += count[limit]
	}
	k, last := 0, len(out)-(inside-count[limit]) // how many of the patterns at the limit still fit
	for i, d := range e.wrong[:len(list.seeds)] {
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

// wrongOf counts the samples outside of the main cluster of their partition in a pattern.
func wrongOf(pattern, clusters *[2]uint64, n int) uint8 {
	m1, m2, a1, a2 := pattern[0], pattern[1], clusters[0], clusters[1]
	if m2 == 0 {
		d := bits.OnesCount64(m1 ^ a1)
		return uint8(min(d, n-d))
	}
	n1, n2 := bits.OnesCount64(a1), bits.OnesCount64(a2)
	b11, b12, b21, b22 := bits.OnesCount64(m1&a1), bits.OnesCount64(m1&a2), bits.OnesCount64(m2&a1), bits.OnesCount64(m2&a2)
	b10, b20 := bits.OnesCount64(m1)-b11-b12, bits.OnesCount64(m2)-b21-b22
	return uint8(n - max(b10, b11, b12) - max(b20, b21, b22) - max(n-n1-n2-b10-b20, n1-b11-b21, n2-b12-b22))
}
