package astc

import (
	"encoding/binary"
	"math/bits"
)

// decoder decodes blocks to texels.
type decoder struct {
	*table
	srgb bool
}

// symbols are the fields of a block.
type symbols struct {
	mode
	partitions int
	seed       int    // of the partition pattern
	second     int    // the channel that uses the second plane's weights
	modes      [4]int // endpoint mode of each partition
	colors     uint8  // range of the endpoint values
	values     [18]uint8
	weight     [2][maxWeights]uint8 // for each plane; as stored, before unquantization
}

// block decodes one block to RGBA values.
func (d *decoder) block(out *[4 * maxTexels]byte, in *[BlockSize]byte) {
	w := word{binary.LittleEndian.Uint64(in[:8]), binary.LittleEndian.Uint64(in[8:])}
	if w.field(0, 9) == 0x1FC {
		c, ok := d.voidExtent(w)
		d.fill(out, c, ok)
		return
	}
	s, ok := d.parse(w)
	if !ok {
		d.fill(out, [4]byte{}, false)
		return
	}
	var ends [4][2]color
	var valid [4]bool
	at := 0
	for p := range s.partitions {
		var v [8]int
		for i := range endpointValues(s.modes[p]) {
			v[i] = int(colorValues[s.colors][s.values[at]])
			at++
		}
		ends[p][0], ends[p][1], valid[p] = endpoints(s.modes[p], &v)
	}
	d.paint(out, &s, &ends, &valid)
}

// paint mixes endpoints by weights. Texels of invalid partitions become magenta.
func (d *decoder) paint(out *[4 * maxTexels]byte, s *symbols, ends *[4][2]color, valid *[4]bool) {
	var weights [2][maxWeights]uint8
	for p := range s.planes {
		for i := range s.width * s.height {
			weights[p][i] = weightValues[s.weights][s.weight[p][i]]
		}
	}
	var part [maxTexels]uint8
	if s.partitions > 1 {
		partitionOf(part[:d.texels], s.seed, s.partitions, d.Width)
	}
	g := d.grids[s.width][s.height]
	for i := range d.texels {
		px := (*[4]byte)(out[4*i:])
		if p := part[i]; valid[p] {
			w := [2]int{g.spread[i].weight(&weights[0])}
			if s.planes == 2 {
				w[1] = g.spread[i].weight(&weights[1])
			}
			for c := range px {
				plane := 0
				if s.planes == 2 && c == s.second {
					plane = 1
				}
				px[c] = d.mix(ends[p][0][c], ends[p][1][c], w[plane])
			}
		} else {
			*px = magenta
		}
	}
}

// mix is "Weight Application", followed by the rounding to 8 bits.
func (d *decoder) mix(c0, c1, w int) byte {
	if d.srgb {
		return byte(((c0<<8|0x80)*(64-w) + (c1<<8|0x80)*w + 32) >> 14)
	}
	return unorm8(uint32(257*c0*(64-w)+257*c1*w+32) >> 6)
}

// unorm8 rounds a 16 bit value to 8 bits by way of a half float, whose lower bits are truncated.
func unorm8(c uint32) byte {
	if c == 65535 {
		return 255
	}
	if cut := bits.Len32(c) - 11; cut > 0 {
		c = c >> cut << cut
	}
	return byte((c*255 + 1<<15) >> 16)
}

var magenta = [4]byte{255, 0, 255, 255}

// fill gives all texels one colour, or magenta if ok is false.
func (d *decoder) fill(out *[4 * maxTexels]byte, c [4]byte, ok bool) {
	if !ok {
		c = magenta
	}
	for i := range d.texels {
		*(*[4]byte)(out[4*i:]) = c
	}
}

// voidExtent decodes a block of one colour ("Void-Extent Blocks").
func (d *decoder) voidExtent(w word) (c [4]byte, ok bool) {
	if w.field(9, 3) != 6 { // low dynamic range, and two reserved bits
		return c, false
	}
	if w.shift(12).keep(52) != (word{1<<52 - 1, 0}) &&
		(w.field(12, 13) >= w.field(25, 13) || w.field(38, 13) >= w.field(51, 13)) {
		return c, false
	}
	for i := range c {
		v := w.field(64+16*i, 16)
		if c[i] = unorm8(v); d.srgb {
			c[i] = byte(v >> 8)
		}
	}
	return c, true
}

// parse splits a block into its fields. It returns false for the cases in the list "Illegal Encodings".
func (d *decoder) parse(w word) (s symbols, ok bool) {
	if s.mode, ok = parseMode(w.field(0, 11)); !ok || s.width > d.Width || s.height > d.Height {
		return s, false
	}
	s.partitions = int(w.field(11, 2)) + 1
	if s.partitions == 4 && s.planes == 2 {
		return s, false
	}
	top := 128 - sequenceSize(s.count(), s.weights)
	start := 17
	if s.partitions == 1 {
		s.modes[0] = int(w.field(13, 4))
	} else {
		start = 29
		s.seed = int(w.field(13, 10))
		top -= s.parseModes(w, top)
	}
	if s.planes == 2 {
		top -= 2
		s.second = int(w.field(top, 2))
	}
	count := 0
	for p := range s.partitions {
		count += endpointValues(s.modes[p])
	}
	if count > len(s.values) || top-start < (13*count+4)/5 {
		return s, false
	}
	s.colors = colorRange(count, top-start)
	getSequence(s.values[:count], w.shift(start), s.colors)

	var both [maxWeights]uint8
	getSequence(both[:s.count()], w.reverse(), s.weights)
	for i := range s.width * s.height {
		for p := range s.planes {
			s.weight[p][i] = both[i*s.planes+p]
		}
	}
	return s, true
}

// parseModes reads the endpoint modes of several partitions. Bits that do not fit the fixed field are read from the bits
// below top; parseModes returns their number.
func (s *symbols) parseModes(w word, top int) int {
	first := int(w.field(23, 6))
	if first&3 == 0 {
		for p := range s.partitions {
			s.modes[p] = first >> 2
		}
		return 0
	}
	more := 3*s.partitions - 4
	all := first>>2 | int(w.field(top-more, more))<<4
	for p := range s.partitions {
		class := first&3 - 1 + all>>p&1
		s.modes[p] = class<<2 | all>>(s.partitions+2*p)&3
	}
	return more
}

// colorRange returns the largest range in which count values fit size bits, or 0 if none does.
func colorRange(count, size int) uint8 {
	for r := uint8(len(ranges) - 1); r >= minColor; r-- {
		if sequenceSize(count, r) <= size {
			return r
		}
	}
	return 0
}
