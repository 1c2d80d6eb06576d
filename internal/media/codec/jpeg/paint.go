package jpeg

import (
	"encoding/binary"
	"slices"
)

// ratio is how a part of a lower resolution is enlarged. libjpeg calls the interpolated ones "fancy upsampling": a triangle
// filter, in which a new sample has 3/4 of the nearer and 1/4 of the farther sample. It repeats samples of other ratios, and
// of parts of one or two samples across, unless only their height is halved. Where it refuses ratios that are not whole
// numbers, Kiln repeats too.
type ratio int

const (
	same ratio = iota
	halfWidth
	halfHeight
	halfBoth
	repeated
)

func (d *decoder) ratioOf(p *part) ratio {
	width, height := 2*p.h == d.h, 2*p.v == d.v
	switch {
	case p.h == d.h && p.v == d.v:
		return same
	case p.h == d.h && height:
		return halfHeight
	case width && p.v == d.v && p.width > 2:
		return halfWidth
	case width && height && p.width > 2:
		return halfBoth
	}
	return repeated
}

// startPicture allocates the picture, and lines to work in.
func (d *decoder) startPicture() {
	d.pix = make([]byte, 4*d.width*d.height)
	d.mixer = newMixer()
	for _, p := range d.parts {
		wide := 8 * p.across
		p.strip = make([]byte, (1+8*p.v)*wide)
		if p.ratio = d.ratioOf(p); p.ratio != same {
			p.line = make([]byte, 8*d.across*d.h)
		}
	}
}

// transform makes the picture of all coefficients.
func (d *decoder) transform() {
	d.startPicture()
	for y := range d.down {
		for _, p := range d.parts {
			for i := range p.v * p.across {
				b, last := &d.spare, 0
				if p.blocks != nil {
					b = &p.blocks[y*p.v*p.across+i]
					last = b.last()
				}
				p.samples(b, last, i%p.across, i/p.across)
			}
		}
		d.paint(y)
	}
}

// last returns 0 if a block has no detail, corner-1 if it has only coefficients of its first four columns and rows, or else
// 63.
func (b *block) last() int {
	var small, large int16
	for i := 0; i < 64; i += 8 {
		r := (*[8]int16)(b[i:])
		if i < 32 {
			small |= r[0] | r[1] | r[2] | r[3]
			large |= r[4] | r[5] | r[6] | r[7]
			if i == 0 {
				small = r[1] | r[2] | r[3]
			}
			continue
		}
		large |= r[0] | r[1] | r[2] | r[3] | r[4] | r[5] | r[6] | r[7]
	}
	switch {
	case large != 0:
		return 63
	case small != 0:
		return corner - 1
	}
	return 0
}

// paint writes the lines of the picture for which all samples are known after a row of groups. The last line of the row waits
// for the next row, whose samples it may need.
func (d *decoder) paint(row int) {
	until := d.height
	if row < d.down-1 {
		until = (row+1)*8*d.v - 1
	}
	var lines [4][]byte
	for ; d.done < until; d.done++ {
		for i, p := range d.parts {
			lines[i] = p.enlarged(d, row)
		}
		d.convert(d.pix[4*d.width*d.done:][:4*d.width], &lines)
	}
	for _, p := range d.parts {
		wide := 8 * p.across
		copy(p.strip[:wide], p.strip[8*p.v*wide:])
	}
}

// samplesOf returns a line of samples; row is the current row of groups. Lines above and below the part repeat its first and
// last one.
func (p *part) samplesOf(line, row int) []byte {
	line = min(max(line, 0), p.height-1)
	return p.strip[(1+line-8*p.v*row)*8*p.across:][:p.width]
}

// enlarged returns the samples for the next line of the picture.
func (p *part) enlarged(d *decoder, row int) []byte {
	y := d.done
	near, far := y/2, y/2-1+y%2*2
	switch p.ratio {
	case same:
		return p.samplesOf(y, row)
	case halfWidth:
		widen(p.line, p.samplesOf(y, row), p.samplesOf(y, row), 4, 8)
	case halfHeight:
		mix(p.line, p.samplesOf(near, row), p.samplesOf(far, row), 1+y%2)
	case halfBoth:
		widen(p.line, p.samplesOf(near, row), p.samplesOf(far, row), 8, 7)
	default:
		repeat(p.line[:d.width], p.samplesOf(y*p.v/d.v, row), p.h, d.h)
	}
	return p.line[:d.width]
}

// repeat enlarges a line from h to all samples.
func repeat(dst, src []byte, h, all int) {
	at, part := 0, 0
	for x := range dst {
		dst[x] = src[at]
		for part += h; part >= all; part -= all {
			at = min(at+1, len(src)-1)
		}
	}
}

func mix(dst, near, far []byte, round int) {
	far = far[:len(near)]
	dst = dst[:len(near)]
	for i, v := range near {
		dst[i] = byte((3*int(v) + int(far[i]) + round) >> 2)
	}
}

// widen doubles the width of 3 times the near and the far line. Sums of 16 samples are rounded by adding left or right, for
// samples left and right of the old one: it differs, so that rounding makes a picture neither lighter nor darker.
func widen(dst, near, far []byte, left, right int) {
	n := len(near)
	far = far[:n]
	sum := func(i int) int {
		i = min(max(i, 0), n-1)
		return 3*int(near[i]) + int(far[i])
	}
	i := 0
	if n >= 8 {
		// Four sums at a time, in the four 16 bits of a number.
		four := func(i int) uint64 {
			return 3*spread(binary.LittleEndian.Uint32(near[i:])) + spread(binary.LittleEndian.Uint32(far[i:]))
		}
		const ones = 0x0001000100010001
		roundLeft, roundRight := uint64(left)*ones, uint64(right)*ones
		before, this := uint64(sum(0)), four(0)
		for ; i+8 <= n; i += 4 {
			next := four(i + 4)
			l := (3*this + this<<16 + before + roundLeft) >> 4 & (ones * 255)
			r := (3*this + this>>16 + next<<48 + roundRight) >> 4 & (ones * 255)
			binary.LittleEndian.PutUint64(dst[2*i:], l|r<<8)
			before, this = this>>48, next
		}
	}
	for ; i < n; i++ {
		dst[2*i] = byte((3*sum(i) + sum(i-1) + left) >> 4)
		dst[2*i+1] = byte((3*sum(i) + sum(i+1) + right) >> 4)
	}
}

// spread moves four bytes to the lower halves of 16 bits.
func spread(v uint32) uint64 {
	w := uint64(v)
	w = (w | w<<16) & 0x0000ffff0000ffff
	return (w | w<<8) & 0x00ff00ff00ff00ff
}

// colour is what the parts of a picture mean.
type colour int

const (
	unknown colour = iota
	grey
	ycc
	rgb
	cmyk // 0 is full ink
	ycck // YCbCr of cmyk, K
)

// colours decides as libjpeg does: JFIF is always YCbCr, Adobe's segment says it, or else the ids of the parts. Adobe writes
// inverted ink, and other programs take that for granted.
func (d *decoder) colours() colour {
	switch len(d.parts) {
	case 1:
		return grey
	case 3:
		ids := []byte{byte(d.parts[0].id), byte(d.parts[1].id), byte(d.parts[2].id)}
		if !d.jfif && (d.adobe && d.adobeColour == 0 || !d.adobe && slices.Equal(ids, []byte("RGB"))) {
			return rgb
		}
		return ycc
	}
	if !d.adobe || d.adobeColour == 0 {
		return cmyk
	}
	return ycck
}

// convert writes a line of RGBA.
func (d *decoder) convert(dst []byte, lines *[4][]byte) {
	c := d.colour
	n := len(dst) / 4
	a := lines[0][:n]
	if c == grey {
		for x, v := range a {
			out := dst[4*x:][:4:4]
			out[0], out[1], out[2], out[3] = v, v, v, 255
		}
		return
	}
	b, e := lines[1][:n], lines[2][:n]
	if c == ycc || c == ycck {
		d.mixer.line(dst, a, b, e)
	} else {
		for x := range a {
			out := dst[4*x:][:4:4]
			out[0], out[1], out[2], out[3] = a[x], b[x], e[x], 255
		}
	}
	if c < cmyk {
		return
	}
	for x, k := range lines[3][:n] {
		out := dst[4*x:][:4:4]
		for i, v := range out[:3] {
			if c == ycck {
				v = 255 - v
			}
			out[i] = inked(v, k)
		}
	}
}

// inked returns (1-C)(1-K) for inverted C and K, rounded as image/color does by 16 bits.
func inked(c, k byte) byte {
	v := uint32(c) * 0x101 * (uint32(k) * 0x101) / 0xffff
	return byte((v*255 + 0x7fff) / 0xffff)
}

// Constants of JFIF (T.871) with 16 bits of fraction.
const (
	crToR = 91881  // 1.402
	cbToG = 22554  // 0.34414
	crToG = 46802  // 0.71414
	cbToB = 116130 // 1.772
	half  = 1 << 15
)

// mixer has what each Cb and Cr adds to green, red and blue, as numbers that are added at once: green with 16 bits of fraction
// from bit 0, red rounded from bit 32, blue rounded from bit 48. Sums are 256 too high, so that none is below 0.
type mixer struct {
	cb, cr [256]uint64
	alpha  uint32
}

const (
	mixerY     = 1<<16 | 1<<32 | 1<<48 // brightness 1
	mixerOver  = 0x300 * mixerY        // bits of the sums that are 1 for each value within 0..255
	mixerValid = 0x100 * mixerY
)

func newMixer() *mixer {
	m := &mixer{alpha: 255 << 24}
	for i := range 256 {
		c := i - 128
		m.cb[i] = uint64(128<<16-cbToG*c) + uint64(256+(cbToB*c+half)>>16)<<48
		m.cr[i] = uint64(128<<16+half-crToG*c) + uint64(256+(crToR*c+half)>>16)<<32
	}
	return m
}

// line writes a line of RGBA. Alpha is a variable: with a constant, the compiler writes a pixel in three parts.
func (m *mixer) line(dst, y, cb, cr []byte) {
	cb, cr, alpha := cb[:len(y)], cr[:len(y)], m.alpha
	for x, v := range y {
		s := uint64(v)*mixerY + m.cb[cb[x]] + m.cr[cr[x]]
		if s&mixerOver != mixerValid {
			s = clampSums(s)
		}
		binary.LittleEndian.PutUint32(dst[4*x:], uint32(s>>32)&0xff00ff|uint32(s)>>8&0xff00|alpha)
	}
}

// clampSums limits each of the three values of a sum.
func clampSums(s uint64) uint64 {
	value := func(at int) uint64 { return uint64(clamp(int32(s>>at&0xffff)-256)) << at }
	return value(16) | value(32) | value(48)
}
