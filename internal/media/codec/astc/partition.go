package astc

// partitionOf fills out with the partition of each texel of a block of the given width, rows top down, for 2 to 4 partitions
// ("Partition Pattern Generation").
func partitionOf(out []uint8, seed, count, width int) {
	small := len(out) < 31
	seed += (count - 1) * 1024
	h := hash52(uint32(seed))

	first, second := 5, 5
	if seed&2 != 0 {
		first = 4
	}
	if count == 3 {
		second = 6
	}
	if seed&1 == 0 {
		first, second = second, first
	}
	var step [8]int // of x and y, for each partition
	for i := range step {
		s := int(h>>(4*i)) & 15
		step[i] = s * s >> first
		if i&1 == 1 {
			step[i] = s * s >> second
		}
	}
	for i := range out {
		x, y := i%width, i/width
		if small {
			x, y = 2*x, 2*y
		}
		best, most := 0, -1
		for p, start := range [4]int{int(h >> 14), int(h >> 10), int(h >> 6), int(h >> 2)} {
			if v := (step[2*p]*x + step[2*p+1]*y + start) & 63; p < count && v > most {
				best, most = p, v
			}
		}
		out[i] = uint8(best)
	}
}

func hash52(p uint32) uint32 {
	p ^= p >> 15
	p -= p << 17
	p += p << 7
	p += p << 4
	p ^= p >> 5
	p += p << 16
	p ^= p >> 7
	p ^= p >> 3
	p ^= p << 6
	p ^= p >> 17
	return p
}
