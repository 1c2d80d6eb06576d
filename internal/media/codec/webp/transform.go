package webp

// reverse reverses the transform. It may do so in place.
func (t *transform) reverse(pix []uint32, height int) []uint32 {
	switch t.kind {
	case predictor:
		t.reversePredictor(pix)
	case crossColour:
		t.reverseCrossColour(pix)
	case subtractGreen:
		for i, v := range pix {
			green := v >> 8 & 0xff
			pix[i] = v&0xff00ff00 | (v&0xff00ff+(green<<16|green))&0xff00ff
		}
	case colourIndexing:
		return t.reverseColours(pix, height)
	}
	return pix
}

// add adds each channel by itself.
func add(a, b uint32) uint32 {
	return (a&0xff00ff00+b&0xff00ff00)&0xff00ff00 | (a&0xff00ff+b&0xff00ff)&0xff00ff
}

// mean is that of each channel, rounded down.
func mean(a, b uint32) uint32 { return (a^b)&0xfefefefe>>1 + a&b }

const opaque = 0xff000000

// reversePredictor adds what a pixel is predicted to be, by pixels to the left and above. Each block has a mode. The first row
// and column have their own.
func (t *transform) reversePredictor(pix []uint32) {
	w, across := t.width, blocks(t.width, t.bits)
	left := uint32(opaque)
	for x := range w {
		left = add(pix[x], left)
		pix[x] = left
	}
	for y := 1; w*y < len(pix); y++ {
		above, row := pix[w*(y-1):][:w+1], pix[w*y:][:w] // above ends with the first pixel of this row
		row[0] = add(row[0], above[0])
		modes := t.data[y>>t.bits*across:]
		for x := 1; x < w; {
			mode := modes[x>>t.bits] >> 8 & 15
			for end := min(w, (x>>t.bits+1)<<t.bits); x < end; x++ {
				row[x] = add(row[x], predict(mode, row[x-1], above[x], above[x+1], above[x-1]))
			}
		}
	}
}

func predict(mode, left, top, right, corner uint32) uint32 {
	switch mode {
	case 1:
		return left
	case 2:
		return top
	case 3:
		return right
	case 4:
		return corner
	case 5:
		return mean(mean(left, right), top)
	case 6:
		return mean(left, corner)
	case 7:
		return mean(left, top)
	case 8:
		return mean(corner, top)
	case 9:
		return mean(top, right)
	case 10:
		return mean(mean(left, corner), mean(top, right))
	case 11:
		return nearer(left, top, corner)
	case 12:
		return sum(left, top, corner)
	case 13:
		return beyond(mean(left, top), corner)
	}
	return opaque // 0; like libwebp, 14 and 15 too, which no description has
}

func at(v uint32, shift int) int { return int(v >> shift & 0xff) }

func clamped(v int) uint32 { return uint32(min(max(0, v), 255)) }

// sum is left + top - corner.
func sum(left, top, corner uint32) (v uint32) {
	for shift := 0; shift < 32; shift += 8 {
		v |= clamped(at(left, shift)+at(top, shift)-at(corner, shift)) << shift
	}
	return v
}

// beyond goes half as far from the corner again.
func beyond(m, corner uint32) (v uint32) {
	for shift := 0; shift < 32; shift += 8 {
		v |= clamped(at(m, shift)+(at(m, shift)-at(corner, shift))/2) << shift
	}
	return v
}

// nearer returns the one of two pixels that is nearer to left + top - corner.
func nearer(left, top, corner uint32) uint32 {
	toLeft, toTop := 0, 0
	for shift := 0; shift < 32; shift += 8 {
		l, t := at(top, shift)-at(corner, shift), at(left, shift)-at(corner, shift)
		toLeft, toTop = toLeft+max(l, -l), toTop+max(t, -t)
	}
	if toLeft < toTop {
		return left
	}
	return top
}

// reverseCrossColour adds parts of green to red and blue, and of red to blue. Each block has its factors, signed, in 32nds: those
// of red by green, of blue by green and of blue by red are in blue, green and red.
func (t *transform) reverseCrossColour(pix []uint32) {
	part := func(factor, v uint32) uint32 { return uint32(int32(int8(factor)) * int32(int8(v)) >> 5) }
	across := blocks(t.width, t.bits)
	for y := 0; len(pix) > 0; y++ {
		for x, v := range pix[:t.width] {
			f := t.data[y>>t.bits*across+x>>t.bits]
			green := v >> 8
			red := (v>>16 + part(f, green)) & 0xff
			blue := (v + part(f>>8, green) + part(f>>16, red)) & 0xff
			pix[x] = v&0xff00ff00 | red<<16 | blue
		}
		pix = pix[t.width:]
	}
}

// reverseColours replaces the numbers of colours, which are green, by these. Numbers without a colour are transparent.
func (t *transform) reverseColours(pix []uint32, height int) []uint32 {
	var colours [256]uint32
	copy(colours[:], t.data)
	if t.bits == 0 {
		for i, v := range pix {
			pix[i] = colours[v>>8&0xff]
		}
		return pix
	}
	out := make([]uint32, 0, t.width*height)
	narrow, size := blocks(t.width, t.bits), 8>>t.bits
	for ; len(pix) > 0; pix = pix[narrow:] {
		for x := range t.width {
			v := pix[x>>t.bits] >> 8 & 0xff
			out = append(out, colours[v>>(x&(1<<t.bits-1)*size)&(1<<size-1)])
		}
	}
	return out
}
