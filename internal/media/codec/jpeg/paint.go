package jpeg

import "slices"

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
				var b *block = &d.spare
				last := 0
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
		d.colour.convert(d.pix[4*d.width*d.done:][:4*d.width], &lines)
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
		widen(p.line, p.samplesOf(y, row))
	case halfHeight:
		mix(p.line, p.samplesOf(near, row), p.samplesOf(far, row), 1+y%2)
	case halfBoth:
		widenMix(p.line, p.samplesOf(near, row), p.samplesOf(far, row))
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

// widen doubles the width. Halves are rounded down for samples on the left and up on the right, as the average of the two
// errors is then zero.
func widen(dst, src []byte) {
	last := len(src) - 1
	dst[0] = src[0]
	dst[2*last+1] = src[last]
	before := int(src[0])
	for i, v := range src[1:] {
		this := int(v)
		out := dst[1+2*i:][:2:2]
		out[0] = byte((3*before + this + 2) >> 2)
		out[1] = byte((before + 3*this + 1) >> 2)
		before = this
	}
}

func mix(dst, near, far []byte, round int) {
	far = far[:len(near)]
	dst = dst[:len(near)]
	for i, v := range near {
		dst[i] = byte((3*int(v) + int(far[i]) + round) >> 2)
	}
}

// widenMix doubles the width of 3 times the near and the far line. The eights are rounded like the halves of widen.
func widenMix(dst, near, far []byte) {
	far = far[:len(near)]
	before := 3*int(near[0]) + int(far[0])
	dst[0] = byte((4*before + 8) >> 4)
	for i := 1; i < len(near); i++ {
		this := 3*int(near[i]) + int(far[i])
		out := dst[2*i-1:][:2:2]
		out[0] = byte((3*before + this + 7) >> 4)
		out[1] = byte((before + 3*this + 8) >> 4)
		before = this
	}
	dst[2*len(near)-1] = byte((4*before + 7) >> 4)
}

// colour is what the parts of a picture mean.
type colour int

const (
	unknown colour = iota
	grey
	ycc
	rgb
	cmyk         // the amounts of ink
	cmykInverted // 255 is no ink, as Adobe writes it
	ycck         // YCbCr of inverted CMY, inverted K
)

// colours decides as libjpeg does: JFIF is always YCbCr, Adobe's segment says it, or else the ids of the parts. Only Adobe
// writes inverted ink.
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
	switch {
	case !d.adobe:
		return cmyk
	case d.adobeColour == 0:
		return cmykInverted
	}
	return ycck
}

// convert writes a line of RGBA.
func (c colour) convert(dst []byte, lines *[4][]byte) {
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
		convertYCC(dst, a, b, e)
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
		switch c {
		case cmyk:
			k = 255 - k
			out[0], out[1], out[2] = 255-out[0], 255-out[1], 255-out[2]
		case ycck:
			out[0], out[1], out[2] = 255-out[0], 255-out[1], 255-out[2]
		}
		for i := range 3 {
			out[i] = inked(out[i], k)
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

func convertYCC(dst, y, cb, cr []byte) {
	cb, cr = cb[:len(y)], cr[:len(y)]
	for x := range y {
		l, b, r := int32(y[x])<<16+half, int32(cb[x])-128, int32(cr[x])-128
		out := dst[4*x:][:4:4]
		out[0] = clamp((l + crToR*r) >> 16)
		out[1] = clamp((l - cbToG*b - crToG*r) >> 16)
		out[2] = clamp((l + cbToB*b) >> 16)
		out[3] = 255
	}
}
