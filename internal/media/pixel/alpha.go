package pixel

// Opaque reports whether alpha is 255 everywhere.
func (m *Image) Opaque() bool {
	for i := 3; i < len(m.Pix); i += 4 {
		if m.Pix[i] != 255 {
			return false
		}
	}
	return true
}

// Grey reports whether red, green and blue are equal in every pixel.
func (m *Image) Grey() bool {
	for i := 0; i < len(m.Pix); i += 4 {
		if p := m.Pix[i : i+3 : i+3]; p[0] != p[1] || p[1] != p[2] {
			return false
		}
	}
	return true
}

// Keyed returns the image with one colour replaced by transparent black. The alpha of that colour does not matter.
func (m *Image) Keyed(color [3]byte) *Image {
	out := New(m.Width, m.Height)
	for i := 0; i < len(m.Pix); i += 4 {
		if p := m.Pix[i : i+4 : i+4]; [3]byte(p) != color {
			copy(out.Pix[i:i+4], p)
		}
	}
	return out
}

// Bled returns the image with the colours of its visible pixels spread into the transparent ones, up to reach pixels
// away. Alpha does not change. In each round, a pixel next to coloured ones becomes the mean of those of its eight
// neighbours that have a colour. The edges of a texture then show no rim of the colour that an editor left in
// transparent pixels.
func (m *Image) Bled(reach int) *Image {
	out := New(m.Width, m.Height)
	copy(out.Pix, m.Pix)
	have := make([]bool, m.Width*m.Height)
	for i := range have {
		have[i] = m.Pix[4*i+3] != 0
	}
	ring := out.rim(have)
	for ; reach > 0 && len(ring) > 0; reach-- {
		for _, i := range ring {
			out.blend(i, have)
		}
		var next []int
		for _, i := range ring {
			have[i] = true
		}
		for _, i := range ring {
			out.around(i, func(j int) {
				if !have[j] && out.Pix[4*j+3] == 0 {
					next = append(next, j)
				}
			})
		}
		ring = unique(next, have)
	}
	return out
}

// rim lists the pixels that have no colour and a neighbour with one.
func (m *Image) rim(have []bool) []int {
	var found []int
	for i, h := range have {
		if h {
			continue
		}
		beside := false
		m.around(i, func(j int) { beside = beside || have[j] })
		if beside {
			found = append(found, i)
		}
	}
	return found
}

// unique removes duplicates. It uses have as scratch memory and restores it.
func unique(list []int, have []bool) []int {
	kept := list[:0]
	for _, i := range list {
		if !have[i] {
			have[i] = true
			kept = append(kept, i)
		}
	}
	for _, i := range kept {
		have[i] = false
	}
	return kept
}

// around visits the neighbours of pixel i.
func (m *Image) around(i int, visit func(j int)) {
	x, y := i%m.Width, i/m.Width
	for v := max(0, y-1); v <= min(y+1, m.Height-1); v++ {
		for u := max(0, x-1); u <= min(x+1, m.Width-1); u++ {
			if j := v*m.Width + u; j != i {
				visit(j)
			}
		}
	}
}

func (m *Image) blend(i int, have []bool) {
	var sum [3]int
	n := 0
	m.around(i, func(j int) {
		if have[j] {
			p := m.Pix[4*j : 4*j+3]
			sum[0], sum[1], sum[2] = sum[0]+int(p[0]), sum[1]+int(p[1]), sum[2]+int(p[2])
			n++
		}
	})
	for c, s := range sum {
		m.Pix[4*i+c] = byte((s + n/2) / n)
	}
}

// KeepCoverage scales the alpha of mip levels so that the same share of pixels as in the first level passes the test
// alpha >= cutoff. Without it, leaves and fences become thinner in the distance. The method is from "Computing Alpha
// Mipmaps" (Castaño, 2010), with the histogram of a level instead of a search. cutoff is 1 to 255.
func KeepCoverage(levels []*Image, cutoff byte) {
	first := histogram(levels[0])
	pass := passing(&first, int(cutoff))
	for _, m := range levels[1:] {
		h := histogram(m)
		total := m.Width * m.Height
		// want is the number of pixels that should pass: the share of the first level, rounded.
		all := levels[0].Width * levels[0].Height
		want := (pass*total + all/2) / all
		// best is the threshold at which the number of passing pixels is nearest to want. Of several, it is the one
		// nearest to the cutoff.
		best, off := int(cutoff), abs(passing(&h, int(cutoff))-want)
		for t := 1; t < 256; t++ {
			if d := abs(passing(&h, t) - want); d < off || d == off && abs(t-int(cutoff)) < abs(best-int(cutoff)) {
				best, off = t, d
			}
		}
		if best == int(cutoff) {
			continue
		}
		for i := 3; i < len(m.Pix); i += 4 {
			m.Pix[i] = scaled(int(m.Pix[i]), best, int(cutoff))
		}
	}
}

// scaled maps threshold to cutoff, smaller alpha towards 0, and larger alpha towards 255.
func scaled(alpha, threshold, cutoff int) byte {
	switch {
	case alpha < threshold:
		// The quotient is rounded down, so that no alpha below the threshold reaches the cutoff.
		return byte(alpha * cutoff / threshold)
	case threshold == 255:
		return 255
	}
	return byte(cutoff + (alpha-threshold)*(255-cutoff)/(255-threshold))
}

func histogram(m *Image) (h [256]int) {
	for i := 3; i < len(m.Pix); i += 4 {
		h[m.Pix[i]]++
	}
	return h
}

// passing counts the pixels of a histogram at or above a threshold.
func passing(h *[256]int, threshold int) (n int) {
	for _, count := range h[threshold:] {
		n += count
	}
	return n
}

func abs(v int) int { return max(v, -v) }
