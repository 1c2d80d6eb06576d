package exr

import (
	"encoding/binary"
	"fmt"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

// PIZ packs a block in three steps: it numbers the 16-bit words that occur, transforms the numbers of each channel with a
// Haar wavelet, and encodes the result with a Huffman code. A float or a uint is two words, each in a separate plane.
//
//	0  u16  first and
//	2  u16  last byte of a bitmap of 65536 bits; no bytes if first > last
//	4  ...  these bytes: the words that occur; word 0 always counts; the lowest bit of a byte is the first word
//	   u32  number of bytes of
//	   ...  the words, all lines of a channel before the next channel

const (
	words = 1 << 16 // number of 16-bit words

	codes   = words + 1 // one more, which repeats the previous word
	maxCode = 58        // bits
	fastLen = 12        // bits that one table lookup decodes
)

// pizDecoder is the state for unpacking PIZ; all blocks share it.
type pizDecoder struct {
	values []uint16
	word   [words]uint16 // by number

	lengths [codes]uint8
	symbols [codes]int32 // symbols with a code, longest codes first, then by number
	base    [maxCode + 1]uint64
	first   [maxCode + 1]int     // the first symbol of each length in symbols
	count   [maxCode + 1]int     // of symbols
	fast    [1 << fastLen]uint32 // symbol << 6 | length of its code; 0 if the code is longer
}

func (d *decoder) unpackPIZ(dst, src []byte, lines int) error {
	if d.piz == nil {
		d.piz = &pizDecoder{}
	}
	p := d.piz
	if cap(p.values) < len(dst)/2 {
		p.values = make([]uint16, len(dst)/2)
	}
	p.values = p.values[:len(dst)/2]
	src, most, err := p.numbers(src)
	if err != nil {
		return err
	}
	if len(src) < 4 {
		return input.ErrTruncated
	}
	size := binary.LittleEndian.Uint32(src)
	if src = src[4:]; uint64(size) > uint64(len(src)) {
		return fmt.Errorf("%d bytes of codes: %w", size, input.ErrDamaged)
	}
	if err := p.decode(src[:size]); err != nil {
		return err
	}
	rest, width := p.values, d.data.width()
	for _, c := range d.channels {
		n := c.kind.size() / 2
		for i := range n {
			unwave(rest[i:], width, lines, n, most)
		}
		rest = rest[n*width*lines:]
	}
	// Reorder from channel by channel to line by line.
	rest = p.values
	at := 0
	for _, c := range d.channels {
		n := c.kind.size() / 2 * width
		for y := range lines {
			line := dst[y*d.lineSize+at:]
			for i, v := range rest[:n] {
				binary.LittleEndian.PutUint16(line[2*i:], p.word[v])
			}
			rest = rest[n:]
		}
		at += 2 * n
	}
	return nil
}

// numbers reads the words that occur, and returns the highest number of a word.
func (p *pizDecoder) numbers(src []byte) (rest []byte, most int, err error) {
	if len(src) < 4 {
		return nil, 0, input.ErrTruncated
	}
	from, to := int(binary.LittleEndian.Uint16(src)), int(binary.LittleEndian.Uint16(src[2:]))
	src = src[4:]
	if to >= words/8 {
		return nil, 0, fmt.Errorf("a bitmap up to byte %d: %w", to, input.ErrDamaged)
	}
	clear(p.word[:])
	n := 1 // word 0 has the number 0
	if from <= to {
		if len(src) < to-from+1 {
			return nil, 0, input.ErrTruncated
		}
		for i, b := range src[:to-from+1] {
			for bit := range 8 {
				if v := 8*(from+i) + bit; v != 0 && b>>bit&1 != 0 {
					p.word[n] = uint16(v)
					n++
				}
			}
		}
		src = src[to-from+1:]
	}
	return src, n - 1, nil
}

// bitReader reads bits from the highest down.
type bitReader struct {
	src  []byte
	bits uint64 // the highest are next
	n    int    // number of bits that are read into bits
}

// fill makes n at least 57, or as many as are left.
func (r *bitReader) fill() {
	for r.n <= 56 && len(r.src) > 0 {
		r.bits |= uint64(r.src[0]) << (56 - r.n)
		r.n += 8
		r.src = r.src[1:]
	}
}

// take reads up to 57 bits; ok is false if fewer are left.
func (r *bitReader) take(n int) (v uint64, ok bool) {
	if r.n < n {
		if r.fill(); r.n < n {
			return 0, false
		}
	}
	v = r.bits >> (64 - n)
	r.bits <<= n
	r.n -= n
	return v, true
}

// decode decodes the words into values.
//
//	 0  u32  first symbol with a code
//	 4  u32  last one; it is followed by a count of 8 bits and repeats the previous word
//	 8  u32  bytes of the lengths; not needed by this decoder
//	12  u32  bits of the codes
//	16  u32  unused
//	20  ...  the lengths of the codes, then the codes, from the next byte on
func (p *pizDecoder) decode(src []byte) error {
	if len(src) < 20 {
		return input.ErrTruncated
	}
	from, to, bits := binary.LittleEndian.Uint32(src), binary.LittleEndian.Uint32(src[4:]), uint64(binary.LittleEndian.Uint32(src[12:]))
	if from > to || to >= codes {
		return fmt.Errorf("symbols from %d to %d: %w", from, to, input.ErrDamaged)
	}
	r := &bitReader{src: src[20:]}
	if err := p.readLengths(r, int(from), int(to)); err != nil {
		return err
	}
	src = src[len(src)-len(r.src)-r.n/8:] // the remaining bits of the current byte are unused
	if err := p.makeCodes(); err != nil {
		return err
	}
	if bits > 8*uint64(len(src)) {
		return fmt.Errorf("%d bits of codes in %d bytes: %w", bits, len(src), input.ErrDamaged)
	}
	return p.readCodes(&bitReader{src: src[:(bits+7)/8]}, int(-bits&7), int32(to))
}

// readLengths reads 6 bits for each symbol. A value from 59 on is a run of zeros: 2 to 5 of them, or, with 8 bits more, 6 to
// 261.
func (p *pizDecoder) readLengths(r *bitReader, from, to int) error {
	clear(p.lengths[:])
	for i := from; i <= to; {
		n, ok := r.take(6)
		if !ok {
			return fmt.Errorf("the lengths of codes end too early: %w", input.ErrDamaged)
		}
		if n <= maxCode {
			p.lengths[i] = uint8(n)
			i++
			continue
		}
		run := int(n) - 59 + 2
		if n == 63 {
			more, ok := r.take(8)
			if !ok {
				return fmt.Errorf("the lengths of codes end too early: %w", input.ErrDamaged)
			}
			run = int(more) + 6
		}
		if i += run; i > to+1 {
			return fmt.Errorf("a run of %d symbols without codes: %w", run, input.ErrDamaged)
		}
	}
	return nil
}

// makeCodes assigns the codes: the longest begin at 0, and each shorter length continues where the longer one ended, without
// its last bit.
func (p *pizDecoder) makeCodes() error {
	clear(p.count[:])
	for _, n := range p.lengths {
		p.count[n]++
	}
	p.count[0] = 0
	next, at := uint64(0), 0
	for n := maxCode; n > 0; n-- {
		p.base[n], p.first[n] = next, at
		at += p.count[n]
		next += uint64(p.count[n])
		if n > 1 && next&1 != 0 || n <= 17 && next > 1<<n {
			return fmt.Errorf("invalid lengths of codes: %w", input.ErrDamaged)
		}
		next >>= 1
	}
	clear(p.fast[:])
	place := p.first
	for s, n := range p.lengths {
		if n == 0 {
			continue
		}
		if n <= fastLen {
			code := (p.base[n] + uint64(place[n]-p.first[n])) << (fastLen - n)
			for i := range uint64(1) << (fastLen - n) {
				p.fast[code+i] = uint32(s)<<6 | uint32(n)
			}
		}
		p.symbols[place[n]] = int32(s)
		place[n]++
	}
	return nil
}

// symbol reads a symbol. over is the number of bits at the end of r that are not part of a code.
func (p *pizDecoder) symbol(r *bitReader, over int) (s int32, ok bool) {
	if r.n <= maxCode {
		r.fill()
	}
	have := r.n
	if len(r.src) == 0 {
		have -= over
	}
	if f := p.fast[r.bits>>(64-fastLen)]; f != 0 {
		n := int(f & 63)
		r.bits <<= n
		r.n -= n
		return int32(f >> 6), n <= have
	}
	for n := fastLen + 1; n <= min(maxCode, have); n++ {
		if i := r.bits>>(64-n) - p.base[n]; i < uint64(p.count[n]) { // a smaller value is part of a longer code
			r.bits <<= n
			r.n -= n
			return p.symbols[p.first[n]+int(i)], true
		}
	}
	return 0, false
}

func (p *pizDecoder) readCodes(r *bitReader, over int, repeat int32) error {
	at := 0
	for len(r.src) > 0 || r.n > over {
		s, ok := p.symbol(r, over)
		switch {
		case !ok:
			return fmt.Errorf("bits that are not a code: %w", input.ErrDamaged)
		case s == repeat:
			n, ok := r.take(8)
			if !ok || len(r.src) == 0 && r.n < over || at == 0 || int(n) > len(p.values)-at {
				return fmt.Errorf("%d repeats of a word: %w", n, input.ErrDamaged)
			}
			last := p.values[at-1]
			for range n {
				p.values[at] = last
				at++
			}
		case at == len(p.values):
			return fmt.Errorf("codes of more than %d words: %w", at, input.ErrDamaged)
		default:
			p.values[at] = uint16(s)
			at++
		}
	}
	if at < len(p.values) {
		return fmt.Errorf("codes of %d words instead of %d: %w", at, len(p.values), input.ErrDamaged)
	}
	return nil
}

// unwave reverses the wavelet transform of a plane of w x h words, step words apart; most is the highest number before the
// transform. From the coarsest level on, each level turns averages and differences into groups of four numbers, or of two in
// an incomplete row or column.
func unwave(v []uint16, w, h, step, most int) {
	pair := pair16
	if most < 1<<14 {
		pair = pair14
	}
	size := 1
	for 2*size <= min(w, h) {
		size *= 2
	}
	row := step * w
	for ; size > 1; size /= 2 {
		half := size / 2
		right, down := step*half, row*half
		y := 0
		for ; y+size <= h; y += size {
			x := 0
			for ; x+size <= w; x += size {
				i := row*y + step*x
				a, c := pair(v[i], v[i+down])
				b, d := pair(v[i+right], v[i+right+down])
				v[i], v[i+right] = pair(a, b)
				v[i+down], v[i+right+down] = pair(c, d)
			}
			if w&half != 0 {
				i := row*y + step*x
				v[i], v[i+down] = pair(v[i], v[i+down])
			}
		}
		if h&half != 0 {
			for x := 0; x+size <= w; x += size {
				i := row*y + step*x
				v[i], v[i+right] = pair(v[i], v[i+right])
			}
		}
	}
}

// pair14 returns the two numbers of an average and a difference, signed.
func pair14(average, difference uint16) (a, b uint16) {
	d := int32(int16(difference))
	first := int32(int16(average)) + d&1 + d>>1
	return uint16(first), uint16(first - d)
}

// pair16 is pair14 for numbers of 16 bits, modulo 65536.
func pair16(average, difference uint16) (a, b uint16) {
	b = average - difference>>1
	return difference + b - 1<<15, b
}
