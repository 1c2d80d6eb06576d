package mp3

import "math"

// bands are where the bands of scale factors begin.
type bands struct {
	long  [23]uint16
	short [14]uint8
}

// bandTables are those for 44100, 48000 and 32000 Hz, for half of these, and for a quarter.
var bandTables = [3][3]*bands{
	{
		{[23]uint16{0, 4, 8, 12, 16, 20, 24, 30, 36, 44, 52, 62, 74, 90, 110, 134, 162, 196, 238, 288, 342, 418, 576},
			[14]uint8{0, 4, 8, 12, 16, 22, 30, 40, 52, 66, 84, 106, 136, 192}},
		{[23]uint16{0, 4, 8, 12, 16, 20, 24, 30, 36, 42, 50, 60, 72, 88, 106, 128, 156, 190, 230, 276, 330, 384, 576},
			[14]uint8{0, 4, 8, 12, 16, 22, 28, 38, 50, 64, 80, 100, 126, 192}},
		{[23]uint16{0, 4, 8, 12, 16, 20, 24, 30, 36, 44, 54, 66, 82, 102, 126, 156, 194, 240, 296, 364, 448, 550, 576},
			[14]uint8{0, 4, 8, 12, 16, 22, 30, 42, 58, 78, 104, 138, 180, 192}},
	},
	{
		{evenBands, [14]uint8{0, 4, 8, 12, 18, 24, 32, 42, 56, 74, 100, 132, 174, 192}},
		{[23]uint16{0, 6, 12, 18, 24, 30, 36, 44, 54, 66, 80, 96, 114, 136, 162, 194, 232, 278, 332, 394, 464, 540, 576},
			[14]uint8{0, 4, 8, 12, 18, 26, 36, 48, 62, 80, 104, 136, 180, 192}},
		{evenBands, evenShort},
	},
	{
		{evenBands, evenShort},
		{evenBands, evenShort},
		{[23]uint16{0, 12, 24, 36, 48, 60, 72, 88, 108, 132, 160, 192, 232, 280, 336, 400, 476, 566, 568, 570, 572, 574, 576},
			[14]uint8{0, 8, 16, 24, 36, 52, 72, 96, 124, 160, 162, 164, 166, 192}},
	},
}

// evenBands and evenShort are those of several rates.
var (
	evenBands = [23]uint16{0, 6, 12, 18, 24, 30, 36, 44, 54, 66, 80, 96, 116, 140, 168, 200, 238, 284, 336, 396, 464, 522, 576}
	evenShort = [14]uint8{0, 4, 8, 12, 18, 26, 36, 48, 62, 80, 104, 134, 174, 192}
)

func (h Head) bands() *bands { return bandTables[h.version][h.index] }

// intensity reports whether the right channel has directions in place of sound in its high bands.
func (h Head) intensity() bool { return h.mode == 1 && h.extension&1 != 0 }

// stereo makes the left and the right channel of a sum and a difference, and of a sound and its directions. p is the side
// information of the right channel. Values of sums and differences have been divided by the root of 2.
func (d *Decoder) stereo(h Head, p *section) {
	left, right := &d.spectrum[0], &d.spectrum[1]
	both := h.extension&2 != 0
	plain := func(from, to int) {
		if !both {
			return
		}
		for i := from; i < to; i++ {
			left[i], right[i] = left[i]+right[i], left[i]-right[i]
		}
	}
	if !h.intensity() {
		plain(0, granule)
		return
	}
	long, short := split(p, h)
	b := h.bands()
	at := granule
	factor := long + 3*(13-short) // of the band, and of its first window if it is short
	var found [3]bool             // sound in this channel, in this band or above
	for i := 12; i >= short; i-- {
		factor -= 3
		from := factor
		if i == 12 {
			from -= 3 // the highest band has no factor of its own
		}
		width := int(b.short[i+1] - b.short[i])
		for w := 2; w >= 0; w-- {
			at -= width
			found[w] = found[w] || sounds(right[at:at+width])
			if found[w] || !d.direct(h, p, from+w, at, width, both) {
				plain(at, at+width)
			}
		}
	}
	any := found[0] || found[1] || found[2]
	for i := long - 1; i >= 0; i-- {
		width := int(b.long[i+1] - b.long[i])
		at -= width
		any = any || sounds(right[at:at+width])
		if any || !d.direct(h, p, min(i, 20), at, width, both) {
			plain(at, at+width)
		}
	}
}

func sounds(x []float32) bool {
	for _, v := range x {
		if v != 0 {
			return true
		}
	}
	return false
}

// direct gives both channels their part of a band, if it has a direction.
func (d *Decoder) direct(h Head, p *section, factor, at, width int, both bool) bool {
	v := d.scale[1][factor]
	if v == d.illegal[factor] || !h.Low && v > 6 {
		return false
	}
	l, r := float32(1), float32(1)
	switch {
	case !h.Low:
		l, r = directions[v], directions[6-v]
	case v&1 == 1:
		l = quarterPower(-(int(v) + 1) / 2 * (1 + p.compress&1))
	default:
		r = quarterPower(-int(v) / 2 * (1 + p.compress&1))
	}
	if both { // the gain of sums has been applied, and these bands have none
		l, r = float32(l*math.Sqrt2), float32(r*math.Sqrt2)
	}
	for i := at; i < at+width; i++ {
		x := d.spectrum[0][i]
		d.spectrum[0][i], d.spectrum[1][i] = float32(x*l), float32(x*r)
	}
	return true
}

// directions are t/(1+t), with t = tan(pi n/12): the part of the left channel.
var directions = [7]float32{0, 0.21132487, 0.3660254, 0.5, 0.6339746, 0.78867513, 1}
