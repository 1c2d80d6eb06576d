package mp3

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Decoder decodes the frames of layer III of MPEG-1, MPEG-2 and MPEG-2.5 one after another.
type Decoder struct {
	main     []byte // of this frame, and what it needs of those before
	spectrum [2][granule]float32
	scale    [2][39]uint8 // scale factors of this granule: of long bands, then of short ones, three windows each
	kept     [2][22]uint8 // of the first granule, which the second may use again
	illegal  [39]uint8    // scale factors of the right channel that are no direction
	synth    [2]synthesis
}

// NewDecoder returns a decoder for the first frame of a file.
func NewDecoder() *Decoder {
	prepare()
	return &Decoder{}
}

const (
	granule = 576     // samples of a channel that are decoded together
	maxMain = 1 << 13 // bytes of the bit reservoir that are kept, more than a frame can point back
)

// section is the side information of a granule of a channel.
type section struct {
	bits, pairs, gain, compress int // bits of scale factors and spectrum; pairs of large values
	kind                        int // of its windows: 0 long, 1 start, 2 short, 3 stop
	mixed                       bool
	tables                      [3]int
	sub                         [3]int // gains of short windows
	regions                     [2]int // where the second and third region of large values begin
	preemphasis, coarse, small  int
}

// side is the side information of a frame.
type side struct {
	back   int // bytes of main data in frames before
	reuse  [2]int
	parts  [2][2]section // granules, channels
	length int           // in bytes
}

var (
	errSide      = errors.New("wrong side information")
	errReservoir = errors.New("bytes of an earlier frame are missing")
	errCodes     = errors.New("its codes are longer than it says")
)

// Decode decodes a frame with its head into interleaved samples, and returns their number per channel. A frame that is damaged has
// silence in place of what cannot be decoded, and an error.
func (d *Decoder) Decode(dst []float32, frame []byte) (frames int, err error) {
	h, ok := ParseHead(frame)
	if !ok || h.Layer != 3 || len(frame) < 4 {
		return 0, fmt.Errorf("no frame of layer III: %w", ErrDamaged)
	}
	if len(dst) < h.Samples*h.Channels {
		return 0, errors.New("no room for a frame")
	}
	body := frame[4:]
	if frame[1]&1 == 0 && len(body) >= 2 { // a checksum, which few encoders compute rightly
		body = body[2:]
	}
	s, err := readSide(body, h)
	if err == nil {
		body = body[s.length:]
		kept := len(d.main)
		d.main = append(d.main, body...)
		if s.back > kept {
			err = errReservoir
		}
		kept -= s.back
		defer func() { d.main = slices.Delete(d.main, 0, max(0, len(d.main)-maxMain)) }()
		if err == nil {
			return d.granules(dst, h, s, d.main[kept:])
		}
	}
	for g := range h.Samples / granule {
		d.silence(dst[g*granule*h.Channels:], h.Channels)
	}
	return h.Samples, fmt.Errorf("%w: %w", err, ErrDamaged)
}

// Flush returns the rest of the sound, which is in the filters, in up to 1152 samples per channel.
func (d *Decoder) Flush(dst []float32, channels int) int {
	for g := range 2 {
		d.silence(dst[g*granule*channels:], channels)
	}
	return 2 * granule
}

// silence decodes a granule without sound.
func (d *Decoder) silence(dst []float32, channels int) {
	for c := range channels {
		clear(d.spectrum[c][:])
		d.synth[c].granule(dst[c:], channels, &d.spectrum[c], section{}, 0)
	}
}

// granules decodes the main data of a frame.
func (d *Decoder) granules(dst []float32, h Head, s side, main []byte) (int, error) {
	b := bits{data: main}
	var damage error
	for g := range h.Samples / granule {
		out := dst[g*granule*h.Channels:]
		var used [2]int // values of the spectrum up to the last that is not 0
		for c := range h.Channels {
			p, begin := &s.parts[g][c], b.at
			clear(d.spectrum[c][:])
			used[c] = 0
			if begin+p.bits > 8*len(main) {
				damage = errCodes
				continue
			}
			if h.Low {
				d.lowScale(&b, p, c, h.intensity() && c == 1)
			} else {
				d.factors(&b, p, c, g, s.reuse[c])
			}
			n, err := d.values(&b, p, c, begin+p.bits, h)
			if err != nil {
				damage = err
			}
			used[c] = n
			b.at = begin + p.bits
		}
		if h.Channels == 2 && h.mode == 1 {
			d.stereo(h, &s.parts[g][1])
			used[0] = granule
			used[1] = granule
		}
		for c := range h.Channels {
			p := s.parts[g][c]
			reorder(&d.spectrum[c], p, h)
			d.synth[c].granule(out[c:], h.Channels, &d.spectrum[c], p, used[c])
		}
	}
	if damage != nil {
		return h.Samples, fmt.Errorf("%w: %w", damage, ErrDamaged)
	}
	return h.Samples, nil
}

// bits reads bits, most significant first. After the end it reads zeros.
type bits struct {
	data []byte
	at   int
}

// peek returns the next 32 bits, of which 25 are right.
func (b *bits) peek() uint32 {
	var v uint32
	if i := b.at >> 3; i+4 <= len(b.data) {
		v = binary.BigEndian.Uint32(b.data[i:])
	} else {
		for k := range 4 {
			if v <<= 8; i+k < len(b.data) {
				v |= uint32(b.data[i+k])
			}
		}
	}
	return v << (b.at & 7)
}

func (b *bits) read(n int) int {
	if n == 0 {
		return 0
	}
	v := b.peek() >> (32 - n)
	b.at += n
	return int(v)
}

// readSide reads the side information.
//
//	MPEG-1: 9 bits main data before, 5 (mono) or 3 unused, 4 per channel reuse of scale factors; 2 granules
//	MPEG-2: 8 bits, 1 or 2 unused; 1 granule
//	then for each granule and channel 59 or 63 bits
func readSide(data []byte, h Head) (s side, err error) {
	if len(data) < h.side {
		return s, errSide
	}
	b := bits{data: data[:h.side]}
	s.length = h.side
	if h.Low {
		s.back = b.read(8)
		b.at += h.Channels
	} else {
		s.back = b.read(9)
		b.at += map[int]int{1: 5, 2: 3}[h.Channels]
		for c := range h.Channels {
			s.reuse[c] = b.read(4)
		}
	}
	for g := range h.Samples / granule {
		for c := range h.Channels {
			if err := s.parts[g][c].read(&b, h); err != nil {
				return s, err
			}
		}
	}
	return s, nil
}

func (p *section) read(b *bits, h Head) error {
	p.bits, p.pairs, p.gain = b.read(12), b.read(9), b.read(8)
	compress := 4
	if h.Low {
		compress = 9
	}
	p.compress = b.read(compress)
	bands := h.bands()
	if b.read(1) == 1 {
		p.kind, p.mixed = b.read(2), b.read(1) == 1
		p.tables = [3]int{b.read(5), b.read(5), 0}
		p.sub = [3]int{b.read(3), b.read(3), b.read(3)}
		p.regions = [2]int{int(bands.long[8]), granule}
		if p.kind == 2 {
			p.regions[0] = 3 * int(bands.short[3])
		}
		if p.kind == 0 {
			return errSide
		}
	} else {
		p.tables = [3]int{b.read(5), b.read(5), b.read(5)}
		first := b.read(4)
		second := first + b.read(3)
		p.regions = [2]int{int(bands.long[first+1]), int(bands.long[min(second+2, 22)])}
	}
	if !h.Low {
		p.preemphasis = b.read(1)
	}
	p.coarse, p.small = b.read(1), b.read(1)
	if 2*p.pairs > granule {
		return errSide
	}
	return nil
}

// slens has the bits of scale factors of MPEG-1, of low and of high bands.
var slens = [16][2]int{{0, 0}, {0, 1}, {0, 2}, {0, 3}, {3, 0}, {1, 1}, {1, 2}, {1, 3}, {2, 1}, {2, 2}, {2, 3}, {3, 1}, {3, 2}, {3, 3},
	{4, 2}, {4, 3}}

// factors reads the scale factors of MPEG-1. Bit 3-i of reuse says that group i of long bands has those of the first granule.
func (d *Decoder) factors(b *bits, p *section, c, g, reuse int) {
	low, high := slens[p.compress][0], slens[p.compress][1]
	s := &d.scale[c]
	*s = [39]uint8{}
	if c == 1 {
		for i := range d.illegal {
			d.illegal[i] = 7
		}
	}
	read := func(from, to, n int) {
		for i := from; i < to; i++ {
			s[i] = uint8(b.read(n))
		}
	}
	switch {
	case p.kind == 2 && p.mixed:
		read(0, 8, low)
		read(8, 8+9, low)
		read(8+9, 8+9+18, high)
	case p.kind == 2:
		read(0, 18, low)
		read(18, 36, high)
	default:
		for i, end := range []int{6, 11, 16, 21} {
			from, n := []int{0, 6, 11, 16}[i], low
			if i > 1 {
				n = high
			}
			if g == 1 && reuse>>(3-i)&1 == 1 {
				copy(s[from:end], d.kept[c][from:end])
			} else {
				read(from, end, n)
			}
		}
	}
	if g == 0 {
		copy(d.kept[c][:], s[:22])
	}
}

// lowBands has the number of scale factors of each length, for MPEG-2: for long windows, short ones, and both.
var lowBands = [6][3][4]int{
	{{6, 5, 5, 5}, {9, 9, 9, 9}, {6, 9, 9, 9}},
	{{6, 5, 7, 3}, {9, 9, 12, 6}, {6, 9, 12, 6}},
	{{11, 10, 0, 0}, {18, 18, 0, 0}, {15, 18, 0, 0}},
	{{7, 7, 7, 0}, {12, 12, 12, 0}, {6, 15, 12, 0}},
	{{6, 6, 6, 3}, {12, 9, 9, 6}, {6, 12, 9, 6}},
	{{8, 8, 5, 0}, {15, 12, 9, 0}, {6, 18, 9, 0}},
}

// lowScale reads the scale factors of MPEG-2. right is true for a channel that has directions of sound in place of values.
func (d *Decoder) lowScale(b *bits, p *section, c int, right bool) {
	var n [4]int
	row, v := 0, p.compress
	p.preemphasis = 0
	switch {
	case right && v>>1 < 180:
		v >>= 1
		row, n = 3, [4]int{v / 36, v % 36 / 6, v % 6}
	case right && v>>1 < 244:
		v = v>>1 - 180
		row, n = 4, [4]int{v >> 4, v >> 2 & 3, v & 3}
	case right:
		v = v>>1 - 244
		row, n = 5, [4]int{v / 3, v % 3}
	case v < 400:
		n = [4]int{v >> 4 / 5, v >> 4 % 5, v >> 2 & 3, v & 3}
	case v < 500:
		v -= 400
		row, n = 1, [4]int{v >> 2 / 5, v >> 2 % 5, v & 3}
	default:
		v -= 500
		row, n = 2, [4]int{v / 3, v % 3}
		p.preemphasis = 1
	}
	windows := 0
	switch {
	case p.kind == 2 && p.mixed:
		windows = 2
	case p.kind == 2:
		windows = 1
	}
	s := &d.scale[c]
	*s = [39]uint8{}
	at := 0
	for i, count := range lowBands[row][windows] {
		for range count {
			s[at] = uint8(b.read(n[i]))
			if c == 1 {
				d.illegal[at] = 255
				if n[i] > 0 {
					d.illegal[at] = uint8(1<<n[i] - 1)
				}
			}
			at++
		}
	}
	if c == 1 {
		for ; at < len(d.illegal); at++ {
			d.illegal[at] = 255
		}
	}
}

// values reads the spectrum, and returns how many values there are up to the last that is not 0.
func (d *Decoder) values(b *bits, p *section, c, end int, h Head) (used int, err error) {
	x := &d.spectrum[c]
	gains := d.gains(p, c, h)
	at := 0
	for region := 0; at < 2*p.pairs; {
		for region < 2 && at >= p.regions[region] {
			region++
		}
		stop := 2 * p.pairs
		if region < 2 {
			stop = min(stop, p.regions[region])
		}
		t := codes[p.tables[region]]
		if t == nil {
			at = stop
			continue
		}
		for ; at < stop; at += 2 {
			v := t.next(b)
			for k, n := range [2]int{int(v >> 4), int(v & 15)} {
				if n == 15 && t.extra > 0 {
					n += b.read(t.extra)
				}
				if n > 0 {
					f := float32(powers[n] * gains[at+k])
					if b.read(1) == 1 {
						f = -f
					}
					x[at+k] = f
				}
			}
			if b.at > end {
				x[at], x[at+1] = 0, 0
				return at, errCodes
			}
		}
	}
	t := codes[32+p.small]
	for at+4 <= granule && b.at < end {
		v := t.next(b)
		for k := range 4 {
			if v>>(3-k)&1 == 1 {
				f := gains[at+k]
				if b.read(1) == 1 {
					f = -f
				}
				x[at+k] = f
			}
		}
		if b.at > end { // stuffing
			clear(x[at : at+4])
			break
		}
		at += 4
	}
	return at, nil
}

// gains returns what each value of a spectrum is multiplied with.
func (d *Decoder) gains(p *section, c int, h Head) (gains [granule]float32) {
	bands := h.bands()
	base := p.gain - 210
	if h.mode == 1 && h.extension&2 != 0 {
		base -= 2 // both channels are divided by the root of 2
	}
	step := 2 << p.coarse // quarters of powers of 2
	at, n := 0, 0
	fill := func(width, quarters int) {
		g := quarterPower(quarters)
		for end := at + width; at < end; at++ {
			gains[at] = g
		}
	}
	long, short := split(p, h)
	for i := range long {
		f := int(d.scale[c][n])
		if p.preemphasis == 1 {
			f += int(preemphasis[i])
		}
		n++
		fill(int(bands.long[i+1]-bands.long[i]), base-step*f)
	}
	for i := short; i < 13; i++ {
		for w := range 3 {
			fill(int(bands.short[i+1]-bands.short[i]), base-8*p.sub[w]-step*int(d.scale[c][n]))
			n++
		}
	}
	return gains
}

// split returns how many long bands there are, and the first short one, or 13.
func split(p *section, h Head) (long, short int) {
	switch {
	case p.kind != 2:
		return 22, 13
	case !p.mixed:
		return 0, 0
	case h.Low:
		return 6, 3
	}
	return 8, 3
}

var preemphasis = [22]uint8{11: 1, 1, 1, 1, 2, 2, 3, 3, 3, 2, 0}

// quarterPower is 2^(n/4).
func quarterPower(n int) float32 {
	roots := [4]float64{1, 1.189207115002721, 1.4142135623730951, 1.681792830507429}
	return float32(math.Ldexp(roots[n&3], n>>2))
}

// powers are n^(4/3).
var powers []float32

func newPowers() []float32 {
	t := make([]float32, 1<<13+15)
	for n := range t {
		x := float64(n)
		root := math.Sqrt(math.Sqrt(x)) + 1
		for range 30 { // Newton's method for the third root; each product is rounded, so it is the same on every machine
			square := float64(root * root)
			root -= float64(float64(square*root)-x) / float64(3*square)
		}
		t[n] = float32(x * root)
	}
	return t
}

// reorder puts the values of short windows beside one another, as the filters need them.
func reorder(x *[granule]float32, p section, h Head) {
	if p.kind != 2 {
		return
	}
	_, first := split(&p, h)
	short := h.bands().short
	var out [granule]float32
	for i := first; i < 13; i++ {
		from, width := int(short[i]), int(short[i+1]-short[i])
		for w := range 3 {
			for k := range width {
				out[3*(from+k)+w] = x[3*from+w*width+k]
			}
		}
	}
	begin := 3 * int(short[first])
	copy(x[begin:], out[begin:])
}

// code is a table of Huffman codes.
type code struct {
	begins []uint32 // where each code begins, in 20 bits
	sizes  []uint8
	values []uint8
	first  [512]uint16 // the code that has these bits, or the first of them
	extra  int         // bits that are added to a value of 15
}

var codes [34]*code // by their numbers; nil if all values are 0

func newCodes() (all [34]*code) {
	digit := func(c byte) int {
		if c >= 'a' {
			return int(c) - 'a' + 10
		}
		return int(c) - '0'
	}
	for n, text := range huffman {
		t := &code{}
		at := uint32(0)
		for i := 0; i < len(text); i += 3 {
			size := digit(text[i])
			t.begins = append(t.begins, at)
			t.sizes = append(t.sizes, uint8(size))
			t.values = append(t.values, uint8(digit(text[i+1])<<4|digit(text[i+2])))
			at += 1 << (20 - size)
		}
		for i := range t.first {
			k, _ := slices.BinarySearch(t.begins, uint32(i)<<11+1)
			t.first[i] = uint16(k - 1)
		}
		all[n] = t
	}
	for i, extra := range []int{1, 2, 3, 4, 6, 8, 10, 13, 4, 5, 6, 7, 8, 9, 11, 13} {
		t := *all[16+i/8*8]
		t.extra = extra
		all[16+i] = &t
	}
	return all
}

func (t *code) next(b *bits) uint8 {
	p := b.peek() >> 12
	i := int(t.first[p>>11])
	for i+1 < len(t.begins) && t.begins[i+1] <= p {
		i++
	}
	b.at += int(t.sizes[i])
	return t.values[i]
}
